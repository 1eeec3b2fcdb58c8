#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What real machines have around their cables: unequal MTUs, holes in GID
tables, docker0, lanes without an address; and stock UCX on the same ring."""

import re

import lab
import traffic

MIB = 1 << 20
PLAN = "topologies.json#odd"
SMALL_MTU = 1024
HEADERS = 100
STOCK_S = 60
# It sorts before every other device, as docker0's could.
DOCKER = "adocker"


def _gids(net, node):
    """{(RDMA device, index): GID} of a node, without the holes."""
    script = ("grep -v 0000:0000:0000:0000:0000:0000:0000:0000 "
              "/sys/class/infiniband/*/ports/1/gids/? "
              "/sys/class/infiniband/*/ports/1/gids/1?")
    found = re.findall(r"infiniband/([^/]+)/.*/gids/(\d+):(\S+)",
                       net.shell(node, script))
    return {(ibdev, int(index)): gid for ibdev, index, gid in found}


def _index(gids, lane):
    """Where the GID of a lane's address is in the table."""
    octets = lane["addresses"][0].partition("/")[0].split(".")
    tail = "ffff:{:02x}{:02x}:{:02x}{:02x}".format(*map(int, octets))
    return next(index for (ibdev, index), gid in gids.items()
                if ibdev == lane["ibdev"] and gid.endswith(tail))


def _docker_packets(net):
    """RDMA packets of each node's device on docker0."""
    script = (f"cd /sys/class/infiniband/{DOCKER}/ports/1/hw_counters; "
              "cat sent_pkts rcvd_pkts")
    return {node: sum(map(int, net.shell(node, script).split()))
            for node in net.nodes()}


def _expected(net, result):
    nodes = net.nodes()
    expected = {}
    for a, b, count in re.findall(r"^pair (\d)-(\d): (\d+) bytes",
                                  result.out, re.MULTILINE):
        (lane, other), = net.cabled(nodes[int(a)], nodes[int(b)])
        expected[nodes[int(a)], lane] = int(count)
        expected[nodes[int(b)], other] = int(count)
    lab.check(len(expected) == 2 * len(net.pairs()), "not every pair played",
              result.text)
    return expected


def gid_indexes_differ(net):
    """The plan is what the other tests take it for."""
    lab.needs_machines("lists the kernel's GID tables")
    gids = {node: _gids(net, node) for node in net.nodes()}
    indexes = {f"{node}.{lane['netdev']}": _index(gids[node], lane)
               for node in net.nodes() for lane in net.lanes(node)
               if lane["addresses"]}
    lab.note(f"GID indexes: {indexes}")
    lab.check(len(set(indexes.values())) > 1, "all lanes have the same index")
    first = net.lanes("n1")[0]["ibdev"]
    used = [index for ibdev, index in gids["n1"] if ibdev == first]
    lab.check(max(used) >= len(used), f"no hole in n1's GIDs: {used}")


def odd_ring(net):
    """All pairs over their own cables; one warning: that of the MTU."""
    watch = traffic.Watch(net)
    result = net.mpirun("pairs", "-M", MIB).succeeded()
    moved = watch.check(_expected(net, result))
    _check_warning(result)
    for lane in (("n1", "a0"), ("n2", "a1")):
        mean = moved[lane].tx_bytes / moved[lane].tx_pkts
        lab.check(mean <= SMALL_MTU + HEADERS,
                  f"{lane} sent packets of {mean:.0f} bytes on the cable with "
                  "an end at MTU 1500", traffic.table(moved))


def _check_warning(result):
    loud = result.lines(r"\b(WARN|ERROR)\b")
    lab.check(len(loud) == 1, f"{len(loud)} warnings, expected one: that of "
              "the MTU", result.text)
    lab.check(re.search(r"(?i)mtu.*\ba0\b.*\ba1\b|mtu.*\ba1\b.*\ba0\b",
                        loud[0]), "the warning does not name both lanes",
              loud[0])
    lab.note(loud[0])


def docker_comes_first(net):
    """An RDMA device on top of docker0, first by name, is never used."""
    lab.needs_machines("makes a device with rdma(8)")
    for node in net.nodes():
        net.shell(node, f"rdma link add {DOCKER} type rxe netdev docker0")
        names = net.shell(node, "ls /sys/class/infiniband").split()
        lab.check(names[0] == DOCKER, f"{node} has {names}")
    watch = traffic.Watch(net)
    result = net.mpirun("pairs", "-M", MIB).succeeded()
    watch.check(_expected(net, result))
    packets = _docker_packets(net)
    lab.check(not any(packets.values()), f"docker0 was used: {packets}")
    words = result.lines("docker")
    lab.check(not words, f"the job speaks of docker0: {words[:1]}",
              result.text)


@lab.long
def stock_rc_fails(net):
    """The same ring without mesh_rc: UCX's own rc does not come up."""
    result = net.mpirun("pairs", "-M", "65536", tls="rc,self", stock=True,
                        deadline=STOCK_S)
    if result.status == 0:
        raise lab.Skip("stock rc works here")
    if result.status is None:
        lab.note(f"stock rc hung: stopped after {STOCK_S} s")
    for line in result.lines(r"\b(ERROR|FATAL)\b|ibv_create_ah|timeout")[:4]:
        lab.note(f"stock rc: {line.strip()}")
    played = result.lines(r"^pair .* bytes each way")
    lab.note(f"stock rc: {len(played)} of {len(net.pairs())} pairs played")


if __name__ == "__main__":
    lab.main([
        (PLAN, [gid_indexes_differ, odd_ring, docker_comes_first]),
        ("ring4", [stock_rc_fails]),
    ])
