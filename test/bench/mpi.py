# SPDX-License-Identifier: BSD-3-Clause
"""What users of MPI compare, by stock mpirun: two nodes with a rank each."""

import itertools
import os

import lab
import p2p

PROGRAM = os.fspath(lab.BUILD / "test" / "bench" / "mpi_cost")
ROUNDS, QUICK_ROUNDS = 5, 3


def run(bench):
    """The transports in turns."""
    rounds = QUICK_ROUNDS if bench.quick else ROUNDS
    count, size = (20, 32768) if lab.MACHINES else (200, 524288)
    broken = set()
    with lab.Lab("pair") as net:
        for number, name in itertools.product(range(rounds), p2p.MPI):
            if name in broken:
                continue
            result = net.mpirun(PROGRAM, count, size, **p2p.MPI[name])
            if result.status != 0:
                broken.add(name)
                bench.note("mpi", f"{name}: status {result.status}")
                continue
            for line in result.lines(r"^\w+ \d+ [\d.]+$"):
                case, length, value = line.split()
                bench.record("mpi", f"{case}_{length}", name, float(value),
                             "MB/s" if case.endswith("bw") else "us",
                             round=number, size=int(length))
