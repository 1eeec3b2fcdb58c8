# SPDX-License-Identifier: BSD-3-Clause
"""Every rank sends a block to every other one, and looks at what came."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
sent = [bytes([comm.rank]) * 1000000] * comm.size
got = comm.alltoall(sent)
for source, block in enumerate(got):
    assert block == bytes([source]) * 1000000, f"wrong data from {source}"
if comm.rank == 0:
    print(f"all-to-all between {comm.size} ranks: right")
