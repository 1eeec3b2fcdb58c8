#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Each pair of nodes talks over its own cable, in many address plans."""

import ipaddress
import json
import re
import time

import lab
import traffic

PLANS = "topologies.json"
MIB = 1 << 20
# Of what both twins carry, the least that each one does.
TWIN_SHARE = 0.25
MESHCTL = lab.BUILD / "src" / "meshctl" / "meshctl"
# Until all of meshd know which lanes to use.
RAILS_S = 30


def _played(result):
    """{(rank, rank): bytes each way} of what `pairs` printed."""
    found = re.findall(r"^pair (\d+)-(\d+): (\d+) bytes each way$",
                       result.out, re.MULTILINE)
    return {(int(a), int(b)): int(count) for a, b, count in found}


def _quiet(result):
    """A job that succeeded without a word of UCX."""
    loud = result.succeeded().lines(r"\b(WARN|ERROR)\b")
    lab.check(not loud, f"the job's output has {loud[:1]}", result.text)
    return result


def _on_its_lanes(net, hosts, played):
    """{(node, netdev): bytes} where each pair has one lane."""
    expected = {}
    for (a, b), count in played.items():
        (lane, other), = net.cabled(hosts[a], hosts[b])
        expected[hosts[a], lane] = count
        expected[hosts[b], other] = count
    return expected


def all_pairs_in_one_job(net):
    """As many bytes on each cable as its pair exchanged, no two alike."""
    nodes = net.nodes()
    pairs = [f"{nodes.index(a)}-{nodes.index(b)}x{weight}"
             for weight, (a, b) in enumerate(net.pairs(), 1)]
    watch = traffic.Watch(net)
    result = _quiet(net.mpirun("pairs", "-M", MIB, "-r", 2, *pairs))
    played = _played(result)
    lab.check(len(played) == len(pairs), "not every pair played", result.text)
    watch.check(_on_its_lanes(net, nodes, played))


@lab.long
def each_pair_alone(net):
    """Two nodes at a time: their cable is busy, all others are idle."""
    for hosts in net.pairs():
        watch = traffic.Watch(net)
        result = _quiet(net.mpirun("pairs", "-M", MIB, hosts=list(hosts)))
        played = _played(result)
        lab.check(len(played) == 1, "the pair did not play", result.text)
        watch.check(_on_its_lanes(net, hosts, played))


def sixteen_megabytes(net):
    """1 byte to 16 MiB, each byte checked."""
    hosts = net.pairs()[-1]
    watch = traffic.Watch(net)
    result = _quiet(net.mpirun("pairs", "-M", 16 * MIB, hosts=list(hosts)))
    watch.check(_on_its_lanes(net, hosts, _played(result)))


def both_rails(net):
    """Large messages use both twins of a cable, each with its own twin."""
    hosts = net.nodes()
    rails = net.cabled(*hosts)
    lab.check(len(rails) == 2, f"the plan has {len(rails)} rails")
    watch = traffic.Watch(net)
    result = _quiet(net.mpirun("pairs", "-m", MIB, "-M", MIB, "-r", 7))
    total = sum(_played(result).values())
    moved = watch.moved()
    for node, twins in zip(hosts, zip(*rails)):
        sent = {twin: moved[node, twin].tx_bytes for twin in twins}
        lab.check(min(sent.values()) >= TWIN_SHARE * total,
                  f"{node}: the twins did not share the load: {sent}",
                  traffic.table(moved))
        lab.check(total <= sum(sent.values()) <= total * traffic.OVERHEAD,
                  f"{node} sent {sent}, expected {total} in all",
                  traffic.table(moved))
    for own, other in rails:
        one, two = moved[hosts[0], own], moved[hosts[1], other]
        lab.check(abs(one.sent - two.rcvd) <= two.rcvd // 10 and
                  abs(two.sent - one.rcvd) <= one.rcvd // 10,
                  f"{own} and {other} are no pair", traffic.table(moved))


def wrong_twin_answers_arp(net, env=None):
    """What happens without arp_ignore: one twin carries all, with a warning."""
    one, two = net.nodes()
    rails = net.cabled(one, two)
    neighbour = _mislead(net, one, two)
    watch = traffic.Watch(net)
    result = net.mpirun("pairs", "-M", MIB).succeeded()
    net.shell(one, f"ip neigh del {neighbour}")
    warnings = result.lines(r"\bWARN\b")
    lab.check(len(warnings) == 1 and "arp_ignore" in warnings[0],
              f"{len(warnings)} warnings, expected one about ARP",
              result.text)
    count, = _played(result).values()
    watch.check({(one, rails[1][0]): count, (two, rails[1][1]): count})


def _mislead(net, one, two):
    """What is for the first of two's twins goes to the second; returns the
    entry to delete."""
    rails = net.cabled(one, two)
    wrong = net.shell(two, f"cat /sys/class/net/{rails[1][1]}/address").strip()
    target, = [lane["addresses"][0].partition("/")[0]
               for lane in net.lanes(two) if lane["netdev"] == rails[0][1]]
    neighbour = f"{target} dev {rails[0][0]}"
    net.shell(one, f"ip neigh replace {neighbour} lladdr {wrong} "
              "nud permanent")
    return neighbour


def _await_rails(net, one, two, rails):
    """Waits until that node's meshd names these lanes for the other one."""
    end = time.monotonic() + RAILS_S
    while True:
        answer = json.loads(net.exec(one, str(MESHCTL), "path", "--json",
                                     two).out)
        named = answer["paths"][0]["lanes"] if answer["paths"] else []
        if named == [[list(rail) for rail in rails]]:
            return
        lab.check(time.monotonic() < end, f"{one} to {two}: lanes {named}, "
                  f"expected {rails}")
        time.sleep(0.3)


@lab.long
def wrong_twins_all_round(net):
    """Each cable's first twins are astray: meshd finds it out, and all talk,
    on relays too, over the second ones; then over both again."""
    names = net.nodes()
    pairs = [(one, two) for one in names for two in names
             if one < two and net.cabled(one, two)]
    astray = {pair: _mislead(net, *pair) for pair in pairs}
    for one, two in pairs:
        _await_rails(net, one, two, net.cabled(one, two)[1:])
        _await_rails(net, two, one, net.cabled(two, one)[1:])
    watch = traffic.Watch(net)
    result = net.mpirun("pairs", "-M", MIB,
                        env={"MESH_MESHD": "required"}).succeeded()
    lab.check(all("arp_ignore" in line for line in
                  result.lines(r"\b(WARN|ERROR)\b")),
              "a warning that is not about ARP", result.text)
    lab.check(len(_played(result)) == len(names) * (len(names) - 1) // 2,
              "not every pair played", result.text)
    moved = watch.moved()
    for one, two in pairs:
        first = net.cabled(one, two)[0][0]
        lab.check(moved[one, first].sent == 0, f"{one} sent over {first}",
                  traffic.table(moved))
    for (one, _), neighbour in astray.items():
        net.shell(one, f"ip neigh del {neighbour}")
    for one, two in pairs:
        _await_rails(net, one, two, net.cabled(one, two))


def only_rc_queue_pairs(net):
    """No process ever has a UD QP: looked at all the time."""
    lab.needs_machines("looks at queue pairs with rdma(8)")
    nodes = net.nodes()
    watch = ("while :; do rdma resource show qp; sleep 0.2; done")
    watchers = {node: net.start(node, "sh", "-c", watch) for node in nodes}
    try:
        result = net.mpirun("pairs", "-M", 65536, "-w", 1500).succeeded()
    finally:
        for watcher in watchers.values():
            watcher.stop()
    for node, watcher in watchers.items():
        seen = set(re.findall(r"type (\S+) .*?\bpid \d+ comm (\S+)",
                              watcher.out()))
        # Named for the thread that made it: the program's, or mesh_rc's.
        lab.check({("RC", "pairs"), ("RC", "mesh-oob")} & seen,
                  f"{node}: no RC QP was seen", watcher.out() + result.text)
        lab.check({kind for kind, _ in seen} == {"RC"},
                  f"{node}: {sorted(seen)}, expected RC only", watcher.out())


def _route(net, node, via, other):
    """Kernel routes from a node, through its neighbour, to all of another."""
    gateway = _address(net, via, node)
    for network in _networks(net, other) - _networks(net, node):
        net.shell(node, f"ip route add {network} via {gateway}")


def _networks(net, node):
    return {_network(address) for lane in net.lanes(node)
            for address in lane["addresses"]}


def _network(address):
    return str(ipaddress.ip_interface(address).network)


def _address(net, node, seen_from):
    """The address of a node on its cable to another."""
    own, _ = net.cabled(node, seen_from)[0]
    lane, = [lane for lane in net.lanes(node) if lane["netdev"] == own]
    return lane["addresses"][0].partition("/")[0]


def _without_cable(net):
    """The first two nodes that no cable joins."""
    nodes = net.nodes()
    return next([a, b] for i, a in enumerate(nodes) for b in nodes[i + 1:]
                if not net.cabled(a, b))


@lab.long
def route_is_no_path(net):
    """A node that answers through the kernel's routes is not reachable."""
    near, far = _without_cable(net)
    via = next(node for node in net.nodes()
               if net.cabled(near, node) and net.cabled(far, node))
    net.shell(via, "sysctl -qw net.ipv4.ip_forward=1")
    for one, other in ((near, far), (far, near)):
        _route(net, one, via, other)
        _route(net, via, other, other)
    target, source = _address(net, far, via), _address(net, near, via)
    net.shell(near, f"{lab.BUSYBOX} ping -c 2 -I {source} {target}")
    _no_path(net, near, far)


def no_cable_no_path(net):
    """Nodes of one subnet that no cable joins do not reach each other."""
    near, far = _without_cable(net)
    devices = {f"{lane['ibdev']}:1" for node in (near, far)
               for lane in net.lanes(node)}
    # The subnet does not mislead UCX's tcp either.
    _no_path(net, near, far,
             {"UCX_NET_DEVICES": ",".join(sorted(devices) + ["eth0"])})


def _no_path(net, near, far, env=None):
    """An error that says unreachable; tcp carries it where it is let."""
    hosts = [near, far]
    watch = traffic.Watch(net)
    result = net.mpirun("pairs", "-M", 65536, hosts=hosts).failed()
    lab.check(result.lines("(?i)unreachable|not reachable"),
              "no line says that the peer is unreachable", result.text)
    result = net.mpirun("pairs", "-M", 65536, hosts=hosts, env=env,
                        tls="mesh_rc,self,tcp").succeeded()
    lab.check(len(_played(result)) == 1, "tcp did not carry it", result.text)
    moved = watch.moved()
    rdma = {lane: now for lane, now in moved.items() if now.sent or now.rcvd}
    lab.check(not rdma, f"RDMA packets on {sorted(rdma)}",
              traffic.table(moved))


TESTS = [
    ("ring3", [all_pairs_in_one_job, each_pair_alone, sixteen_megabytes,
               only_rc_queue_pairs]),
    (f"{PLANS}#P01", [both_rails, wrong_twin_answers_arp]),
    (f"{PLANS}#P05", [wrong_twins_all_round]),
    (f"{PLANS}#P02", [both_rails]),
    (f"{PLANS}#P06", [all_pairs_in_one_job, each_pair_alone,
                      route_is_no_path]),
    (f"{PLANS}#P09", [all_pairs_in_one_job]),
    (f"{PLANS}#P11", [all_pairs_in_one_job]),
    (f"{PLANS}#one-prefix", [each_pair_alone, no_cable_no_path]),
]
# The rest differs in addresses only, for a sanitizer.
SANITIZED = TESTS[:2]

if __name__ == "__main__":
    lab.main(SANITIZED if lab.SANITIZED and not lab.THOROUGH else TESTS)
