# SPDX-License-Identifier: BSD-3-Clause
"""What connections cost, for few peers and for many.

connect_cost calls one peer after the other on the lane's loopback of a node
that has nothing else to do there, so that what lo counts is its own. Each way
of a connection counts once. first_byte is the time of one whole exchange, from
the first send to the answer; with rc_verbs UD does the wire-up.
"""

import itertools
import os

import lab
import p2p

PROGRAM = os.fspath(lab.BUILD / "test" / "bench" / "connect_cost")
SECONDS = 150
ROUNDS = 3
COMPARED = (1, 16, 128)
QUICK = (1, 16, 64)
GROWTH = (4, 64, 256, 1024)
UNITS = {"first_byte": "us", "bytes": "bytes", "packets": "packets",
         "memory": "KiB", "progress": "ns"}


def _once(bench, pair, contender, peers, number):
    """One run. Its memory has the device's part in it, which is by far the
    most over software verbs: heap.py leaves that out."""
    env = {**pair.environment(contender), "UCX_NET_DEVICES":
           f"{pair.device}:1"}
    out = pair.net.exec(pair.client, PROGRAM, str(peers), "lo", env=env,
                        deadline=SECONDS).succeeded().out
    values = {name: float(value) for name, value
              in map(str.split, out.splitlines())}
    for name, value in values.items():
        bench.record("connect", f"{name}_{peers}", contender, value,
                     UNITS[name], round=number, peers=peers)


def _all(bench, pair, cases):
    broken = set()
    for peers, number, contender in cases:
        if (peers, contender) in broken:
            continue
        try:
            _once(bench, pair, contender, peers, number)
        except lab.Failure as error:
            broken.add((peers, contender))
            bench.note("connect", f"{peers} peers, {contender}: "
                       f"{error.reason}")


def _mpi_init(bench, net):
    """MPI_Init of one rank on each of four nodes."""
    for number in range(ROUNDS):
        for name, options in p2p.MPI.items():
            result = net.mpirun("connect", "1", **options)
            if result.status != 0:
                bench.note("connect", f"MPI_Init {name}: status "
                           f"{result.status}")
                continue
            words = result.out.split()
            bench.record("connect", "mpi_init_4_nodes", name,
                         float(words[words.index("s") - 1]), "s",
                         round=number)


def run(bench):
    """Compared in turns, then the growth of mesh_rc alone."""
    if lab.MACHINES:
        bench.note("connect", "emulated machines have no memory for it")
        return
    with lab.Lab("pair") as net:
        pair = p2p.Pair(net)
        _all(bench, pair, itertools.product(
            QUICK if bench.quick else COMPARED, range(ROUNDS),
            ("mesh_rc", "rc_verbs")))
        _all(bench, pair, itertools.product(
            GROWTH[:3] if bench.quick else GROWTH, range(1), ("mesh_rc",)))
    with lab.Lab("mesh4") as net:
        _mpi_init(bench, net)
