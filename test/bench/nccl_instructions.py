#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of each call of the NCCL plugin on the data path.

nccl_cost runs under callgrind over software verbs, once for each call: irecv;
isend, which also takes in the receiver's post; test of a send and of a receive
that is over; test of one that is not.  Instructions within the software device
and in what it calls are left out, an adapter does that work; so are those of
the driver.  Locks, the log and the C library count.  The same build gives the
same numbers.

    nccl_instructions.py [--messages N] [SIZE]...

prints lines of JSON: one for each call and size, and one for each size for a
whole message (irecv + isend + a test of each when it is over). MESH_BUILD_DIR
names the build.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MESH_BUILD_DIR", TOP / "build")).resolve()
CALLS = ("irecv", "isend", "test_send", "test_recv", "test_idle")
WHOLE = CALLS[:4]
SIZES = (8, 65536)
DEVICE = "libswverbs"
DRIVER = "nccl_cost"
LATE = 3
TRIES = 5
SECONDS = 240
NAMED = re.compile(r"(c?ob)=\((\d+)\)(?: (.*))?$")
COST = re.compile(r"[-+*]?\d*\*? (\d+)$")


def read(lines):
    """(instructions outside the device and the driver, those of calls that lead
    into the device) of what callgrind has written."""
    names, ob, called, call = {}, "", None, False
    own = device = 0
    for line in lines:
        named = NAMED.match(line)
        cost = COST.match(line)
        if named:
            kind, number, name = named.groups()
            if name is not None:
                names[number] = name
            if kind == "ob":
                ob, called = names[number], None
            else:
                called = names[number]
        elif line.startswith("fn="):
            called = None
        elif line.startswith("calls="):
            call = True
        elif cost and call:
            if DEVICE in (called or ob) and DEVICE not in ob:
                device += int(cost.group(1))
            call, called = False, None
        elif cost and DRIVER not in ob:
            own += int(cost.group(1))
    return own - device, device


def count(call, size, messages):
    """The same for one call on average."""
    env = {**os.environ, "LD_BIND_NOW": "1", "MESH_MESHD": "off",
           "LD_PRELOAD": os.fspath(BUILD / "test/swverbs/.libs/libswverbs.so"),
           "SWVERBS_LO": "1", "SWVERBS_IGNORE": others(),
           # The plugin's own look at its comms, which could hold a lock.
           "NCCL_MESH_HEALTH_CHECK_INTERVAL_MS": "3600000"}
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "out")
            status = subprocess.run(
                ["valgrind", "--tool=callgrind", "--collect-atstart=no",
                 f"--toggle-collect=count_{call}",
                 f"--callgrind-out-file={out}", f"--log-file={out}.log",
                 os.fspath(BUILD / "test/bench" / DRIVER),
                 os.fspath(BUILD / ".libs/libnccl-net-mesh.so"), str(size),
                 str(messages)],
                env=env, timeout=SECONDS, check=False).returncode
            if status == 0:
                with open(out, encoding="utf-8", errors="replace") as stream:
                    own, device = read(line.rstrip("\n") for line in stream)
                return own / messages, device / messages
        if status != LATE:
            break
    sys.exit(f"{DRIVER} {call} {size}: status {status}")


def others():
    """All netdevs but lo."""
    return ",".join(name for name in os.listdir("/sys/class/net")
                    if name != "lo")


def main():
    """Counts all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--messages", type=int, default=50)
    parser.add_argument("sizes", metavar="SIZE", type=int, nargs="*",
                        default=SIZES)
    options = parser.parse_args()
    for size in options.sizes:
        whole = 0
        for call in CALLS:
            own, device = count(call, size, options.messages)
            whole += own if call in WHOLE else 0
            report(f"{call}/{size}", own, in_device=round(device, 2))
        report(f"message/{size}", whole)


def report(case, value, **more):
    """One line, at once."""
    print(json.dumps({"section": "nccl_instructions", "case": case,
                      "contender": "mesh", "value": round(value, 2),
                      "unit": "instructions", **more}), flush=True)


if __name__ == "__main__":
    main()
