# SPDX-License-Identifier: BSD-3-Clause
"""until_stopped.py STOP COUNT: rings of messages until a file STOP exists.

The file COUNT says how many there were.
"""

import os
import sys

from mpi4py import MPI


def main(stop, count):
    """Ends when rank 0 says so."""
    comm = MPI.COMM_WORLD
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    runs = 0
    while not comm.bcast(os.path.exists(stop), 0):
        got = comm.sendrecv((runs, comm.rank, bytes(300000)), right,
                            source=left)
        assert got == (runs, left, bytes(300000)), "wrong data"
        runs += 1
        if comm.rank == 0 and runs % 20 == 0:
            with open(count, "w", encoding="ascii") as stream:
                stream.write(f"{runs}\n")
    if comm.rank == 0:
        print(f"{runs} rings of messages: right")


main(*sys.argv[1:])
