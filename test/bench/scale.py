#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What connections cost where there are many: memory and time for each peer.

    scale.py [TOPOLOGY/RANKS-PER-NODE/PEERS]...

By default 256 ranks on one node, each connected to all others; and 64 nodes in
a ring, each connected to its two neighbours and, over relays, to the next two.
Namespaces with software verbs: the memory is the transport's, the software
queue pairs' included; the time is that of processors that all ranks share.
What it printed is kept in scale.txt beside it.
"""

import os
import pathlib
import sys

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[1] /
                             "lab"))

import lab  # noqa: E402 pylint: disable=wrong-import-position
import meshd  # noqa: E402 pylint: disable=wrong-import-position

CASES = ("pair/32/31", "pair/64/63", "pair/128/127", "pair/256/255",
         "ring16/1/2", "ring64/1/2")
SECONDS = 900


def run(case):
    """One line."""
    topology, slots, peers = case.split("/")
    with lab.Lab(topology) as net:
        hosts = net.nodes() if int(slots) == 1 else net.nodes()[:1]
        env = {}
        if len(hosts) > 2:
            meshd.start(net, "all")
            env = {"MESH_MESHD": "required"}
        result = net.mpirun(
            "connect", peers, hosts=hosts, slots=int(slots), env=env,
            mca={"mpi_yield_when_idle": "1"}, deadline=SECONDS)
        print(result.succeeded().lines("^connect:")[0], flush=True)


def main():
    """All cases; what fails is an exception."""
    lab.FABRIC = os.environ["MESH_LAB_FABRIC"] = "swverbs"
    for case in sys.argv[1:] or CASES:
        try:
            run(case)
        except lab.Failure as error:
            sys.exit(f"{case}: {error}\n{error.output}")


if __name__ == "__main__":
    main()
