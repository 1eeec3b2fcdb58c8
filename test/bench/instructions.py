# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of each operation, mesh_rc beside UCX's own rc_verbs.

uct_cost and ucp_cost run under callgrind over software verbs, both contenders
with the same libraries loaded. Instructions within the software device and in
what it calls are left out: an adapter does that work. What is left is that of
the transport, of UCX around it, and of the library's part in a call (none:
the verbs are called through pointers). Debian's UCX is built with assertions,
which cost rc_verbs and UCP some. The same build gives the same numbers, but for
a lock that was waited for, so one round is enough.
"""

import os
import subprocess
import tempfile

import callgrind

DEVICE = "swv_lo:1"
UCT = {"mesh_rc": ("mesh", "mesh_rc"), "rc_verbs": ("ib", "rc_verbs")}
UCP = {"mesh_rc": "mesh_rc", "rc_verbs": "rc_verbs,ud_verbs"}
LATE = 3
TRIES = 5
SECONDS = 500
VALGRIND = ["valgrind", "--tool=callgrind", "--collect-atstart=no",
            "--toggle-collect=counted", "--zero-before=case_begin",
            "--dump-after=case_end"]


def environment(build, tls):
    """Both contenders' libraries, and the software device on lo."""
    preload = [build / "test/swverbs/.libs/libswverbs.so",
               build / ".libs/libuct_mesh.so.0"]
    return {**os.environ, "LD_PRELOAD": ":".join(map(os.fspath, preload)),
            "LD_BIND_NOW": "1", "MESH_MESHD": "off", "SWVERBS_LO": "1",
            "UCX_TLS": tls, "UCX_NET_DEVICES": DEVICE}


def _valgrind(argv, env, directory):
    """[(case, part, operations, dump)] in order."""
    out = os.path.join(directory, "dump")
    result = subprocess.run(
        [*VALGRIND, f"--callgrind-out-file={out}",
         f"--log-file={out}.log", *map(os.fspath, argv)],
        env=env, stdout=subprocess.PIPE, text=True, timeout=SECONDS,
        check=False)
    if result.returncode != 0:
        return result.returncode, []
    cases = [line.split() for line in result.stdout.splitlines()]
    return 0, [(case, part, int(count),
                callgrind.Dump(f"{out}.{i}", "libswverbs"))
               for i, (case, part, count) in enumerate(cases, 1)]


def _counted(argv, env):
    """As above; a device that was late is given more chances."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as directory:
            status, cases = _valgrind(argv, env, directory)
        if status != LATE:
            break
    if status != 0:
        raise RuntimeError(f"{argv[0].name} {argv[1:]}: status {status}")
    return cases


def run(bench):
    """Counts all; a case's parts are recorded, and their sum."""
    programs = [(bench.build / "test/bench/uct_cost", name, (*UCT[name],
                                                             DEVICE))
                for name in UCT]
    programs += [(bench.build / "test/bench/ucp_cost", name, (DEVICE,))
                 for name in UCP]
    for program, name, arguments in programs:
        sums = {}
        for case, part, count, dump in _counted(
                [program, *arguments], environment(bench.build, UCP[name])):
            value = dump.own / count
            sums[case] = sums.get(case, 0) + value
            bench.record("instructions", f"{case}/{part}", name, value,
                         "instructions", in_device=dump.apart / count)
        for case, value in sums.items():
            bench.record("instructions", case, name, value, "instructions")
