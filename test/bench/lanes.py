# SPDX-License-Identifier: BSD-3-Clause
"""Two lanes of one cable beside one, and paths of one to three hops.

The lanes are shaped by a token bucket, so that they and not the processor are
the limit.
"""

import lab
import meshd
import p2p

RATE_MBIT = {"swverbs": 160, "vm": 8}
SHAPE = "tbf rate {}mbit burst 64kb latency 100ms"
SETTLE_S = 30


def _shape(net):
    shape = SHAPE.format(RATE_MBIT[lab.FABRIC])
    for node in net.nodes():
        for lane in net.lanes(node):
            net.shell(node, f"tc qdisc add dev {lane['netdev']} root {shape}")


def _twins(bench):
    size = p2p.MIB if lab.MACHINES else 16 * p2p.MIB
    with lab.Lab(lab.locate("topologies.json#P01")) as net:
        _shape(net)
        pairs = {f"_{count}": p2p.Pair(net, lanes=count) for count in (1, 2)}
        case = p2p.Case(f"lanes_tag_bw_{size}", "tag_bw", size, 4, ())
        p2p.measure(bench, "lanes", pairs,
                    [("bandwidth", case, ("mesh_rc", "rc_verbs"))])


def _hops(bench):
    size = p2p.MIB // 8 if lab.MACHINES else p2p.MIB
    pings = 50 if lab.MACHINES else 1000
    with lab.Lab("line4") as net:
        meshd.start(net, "all")
        with meshd.Watch(net) as watch:
            watch.wait_links(meshd.cabling(net), "the map", limit=SETTLE_S)
        pairs = {f"_{hops}": p2p.Pair(net, "n1", f"n{hops + 1}", meshd_on=True)
                 for hops in (1, 2, 3)}
        p2p.measure(bench, "lanes", pairs, [
            ("latency", p2p.Case("hops_tag_lat_8", "tag_lat", 8, pings, ()),
             ("mesh_rc",)),
            ("bandwidth", p2p.Case(f"hops_tag_bw_{size}", "tag_bw", size, 16,
                                   ()), ("mesh_rc",))])


def run(bench):
    """Both."""
    _twins(bench)
    _hops(bench)
