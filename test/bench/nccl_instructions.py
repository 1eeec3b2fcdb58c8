# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of each call of the NCCL plugin on the data path.

nccl_cost runs under callgrind over software verbs, once for each call: irecv;
isend, which also takes in the receiver's post; test of a send and of a receive
that is over; test of one that is not. Recorded are these, and their sum for a
whole message (a test of each when it is over). Instructions within the software
device and in what it calls are left out, an adapter does that work; so are
those of the driver. Locks, the log and the C library count. The same build
gives the same numbers. NCCL itself needs a GPU: test/nccl-gpu.
"""

import os
import subprocess
import tempfile

import callgrind

CALLS = ("irecv", "isend", "test_send", "test_recv", "test_idle")
WHOLE = CALLS[:4]
SIZES = (8, 65536)
MESSAGES = 50
DRIVER = "nccl_cost"
LATE = 3
TRIES = 5
SECONDS = 240


def _environment(build):
    others = [name for name in os.listdir("/sys/class/net") if name != "lo"]
    return {**os.environ, "LD_BIND_NOW": "1", "MESH_MESHD": "off",
            "LD_PRELOAD": os.fspath(build / "test/swverbs/.libs/libswverbs.so"),
            "SWVERBS_LO": "1", "SWVERBS_IGNORE": ",".join(others),
            # The plugin's own look at its comms, which could hold a lock.
            "NCCL_MESH_HEALTH_CHECK_INTERVAL_MS": "3600000"}


def _count(build, call, size):
    """(instructions of one call, those in the device); a device that was late
    is given more chances."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "out")
            status = subprocess.run(
                ["valgrind", "--tool=callgrind", "--collect-atstart=no",
                 f"--toggle-collect=count_{call}",
                 f"--callgrind-out-file={out}", f"--log-file={out}.log",
                 os.fspath(build / "test/bench" / DRIVER),
                 os.fspath(build / ".libs/libnccl-net-mesh.so"), str(size),
                 str(MESSAGES)], env=_environment(build), timeout=SECONDS,
                check=False).returncode
            if status == 0:
                dump = callgrind.Dump(out, "libswverbs")
                return ((dump.own - dump.of_object(DRIVER)) / MESSAGES,
                        dump.apart / MESSAGES)
        if status != LATE:
            break
    raise RuntimeError(f"{DRIVER} {call} {size}: status {status}")


def run(bench):
    """Counts all."""
    for size in SIZES:
        whole = 0
        for call in CALLS:
            own, device = _count(bench.build, call, size)
            whole += own if call in WHOLE else 0
            bench.record("nccl_instructions", f"{call}/{size}", "mesh", own,
                         "instructions", in_device=device)
        bench.record("nccl_instructions", f"message/{size}", "mesh", whole,
                     "instructions")
