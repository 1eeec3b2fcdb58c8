#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Relayed connections: data, windows, limits and every kind of end."""

import os
import re
import time

import lab
import meshd

TRAFFIC = os.fspath(lab.BUILD / "test" / "meshd" / "relay_traffic")
HOSTILE = os.fspath(lab.HERE / "relay_hostile.py")
QUICK = lab.FABRIC == "swverbs"
# Each way.
MESSAGES = 50000 if QUICK else 3000
SETTLE_S = 30
# A cable that is cut shows after the retries of RDMA, or, without traffic,
# after the keepalive of TCP.
CUT_S = 30 if QUICK else 90
# A sanitizer keeps what was freed, up to 256 MiB.
RSS_SLACK_KIB = 2048 + (256 << 10) * lab.SANITIZED


def _settle(net):
    """Waits until all have the whole map; a cut or restart is no hurry."""
    with meshd.Watch(net) as watch:
        watch.wait_links(meshd.cabling(net), "the map", limit=SETTLE_S)


def _target(net, endpoint, *options, node=None):
    """A process that waits for a connection, by default on the last node."""
    job = net.start(node or net.nodes()[-1], TRAFFIC, "target", endpoint,
                    *map(str, options))
    job.wait_for("listening")
    return job


def _start(net, endpoint, mode, *options, node=None):
    return net.start("n1", TRAFFIC, "source", endpoint,
                     node or net.nodes()[-1], "--mode", mode,
                     *map(str, options))


def _source(net, endpoint, mode, *options, node=None, deadline=120):
    return _start(net, endpoint, mode, *options, node=node).wait(deadline)


def _named(text, *patterns):
    """The text names the cause: all patterns are in it."""
    for pattern in patterns:
        lab.check(re.search(pattern, text), f"no {pattern!r} in what was said",
                  text)


def _flows(net, node):
    return meshd.total(meshd.status(net, node), "mesh_relay_flows")


def _rss_kib(net, node):
    """Of the node's meshd."""
    text = net.shell(node, "cat /proc/$(" + lab.BUSYBOX +
                     " pidof meshd | cut -d' ' -f1)/status")
    return int(re.search(r"VmRSS:\s*(\d+)", text).group(1))


def all_kinds(net):
    """Messages of all kinds and sizes, both ways: none is lost, doubled, late
    or changed, and every relay forwarded each of them once."""
    _settle(net)
    relays = net.nodes()[1:-1]
    count = MESSAGES if len(relays) == 1 else MESSAGES // 20
    before = {node: meshd.status(net, node) for node in relays}
    target = _target(net, "a1")
    result = _source(net, "a1", "mixed", "--count", count // 8 * 8, "--both",
                     deadline=300).succeeded()
    target.wait_for("fine")
    target.stop()
    lab.note(result.out.strip())
    for node in relays:
        after = meshd.status(net, node)
        for what in ("received", "sent"):
            name = f"mesh_relay_{what}_messages_total"
            moved = meshd.total(after, name) - meshd.total(before[node], name)
            lab.check(moved == 2 * (count // 8 * 8),
                      f"{node} {what} {moved:.0f} messages", str(after))
        lab.check(meshd.total(after, "mesh_relay_buffer_bytes") == 0,
                  f"{node} keeps buffers", str(after))


def forwarding_off_in_kernel(net):
    """No packet is routed by the kernel."""
    for node in net.nodes()[1:-1]:
        text = net.shell(node, "cat /proc/sys/net/ipv4/ip_forward")
        lab.check(text.strip() == "0", f"{node} has ip_forward {text}")


def slow_receiver(net):
    """Holds its own flow only."""
    _settle(net)
    slow = _target(net, "51", "--slow-us", 2000)
    quick = _target(net, "52")
    held = _start(net, "51", "mixed", "--count", 100000)
    time.sleep(0.5)
    _source(net, "52", "mixed", "--count", 2000).succeeded()
    lab.check(held.process.poll() is None, "the slow flow is over already",
              held.out())
    for job in (held, slow, quick):
        job.stop()


def limit_of_flows(net):
    """Is a refusal that says so, and room is used again."""
    meshd.restart(net, "n2", {"MESH_RELAY_FLOWS": 2})
    _settle(net)
    targets = [_target(net, f"6{i}") for i in range(3)]
    held = [_start(net, f"6{i}", "hold") for i in range(2)]
    end = time.monotonic() + SETTLE_S
    while _flows(net, "n2") < 2:
        lab.check(time.monotonic() < end, "two flows did not come up")
        time.sleep(lab.POLL_S)
    result = _source(net, "62", "hold").failed()
    _named(result.out, r"limit of 2 flows \(MESH_RELAY_FLOWS\) reached on "
           "node n2")
    held[0].stop()
    while _flows(net, "n2") > 1:
        lab.check(time.monotonic() < end, "the flow's place is not free")
        time.sleep(lab.POLL_S)
    _source(net, "62", "connect", "--count", 1).succeeded()
    for job in targets + held:
        job.stop()
    meshd.restart(net, "n2")
    _settle(net)


def many_connects(net):
    """Leave nothing behind."""
    _settle(net)
    count = 400 if QUICK else 40
    target = _target(net, "c1", "--window", 4)
    _source(net, "c1", "connect", "--count", count // 4, "--window",
            4).succeeded()
    before = {node: _rss_kib(net, node) for node in net.nodes()}
    _source(net, "c1", "connect", "--count", count, "--window", 4,
            deadline=240).succeeded()
    for node in net.nodes():
        more = _rss_kib(net, node) - before[node]
        lab.check(more < RSS_SLACK_KIB, f"meshd of {node} grew by {more} KiB")
    target.stop()


def nobody_there(net):
    """No such process, no meshd at the next node."""
    _settle(net)
    result = _source(net, "dead", "hold").failed()
    _named(result.out, f"no process of node {net.nodes()[-1]} has endpoint "
           "000000000000dead")


def hostile_bytes(net):
    """Garbage, false paths and loops are refused by name; meshd lives on, no
    larger than before, and serves others."""
    _settle(net)
    lane = net.cabled("n1", "n2")[0][1]
    address = next(lane_["addresses"][0].split("/")[0]
                   for lane_ in net.lanes("n2") if lane_["netdev"] == lane)
    for _ in range(2):
        before = _rss_kib(net, "n2")
        result = net.exec("n1", "python3", HOSTILE, address,
                          deadline=120).succeeded()
    # All that those clients can take at a time it has taken the first time.
    more = _rss_kib(net, "n2") - before
    lab.check(more < RSS_SLACK_KIB, f"meshd grew by {more} KiB")
    for cause in ("node [0-9a-f]{16} is wanted", "comes twice in the path",
                  "malformed bytes", "not version"):
        _named(result.out, cause)
    target = _target(net, "b1")
    _source(net, "b1", "mixed", "--count", 800).succeeded()
    target.stop()


def _break(net, mode, how, limit=CUT_S):
    """Breaks a running connection: what source and target say of it."""
    _settle(net)
    options = ["--count", 10 ** 9, "--both"] if mode == "mixed" else []
    target = _target(net, "f1")
    source = _start(net, "f1", mode, *options)
    last = net.nodes()[-2]
    end = time.monotonic() + SETTLE_S
    while not meshd.total(meshd.status(net, last), "mesh_relay_flows_open"):
        lab.check(time.monotonic() < end, "the flow does not open",
                  source.out())
        time.sleep(lab.POLL_S)
    how(target)
    result = source.wait(limit).failed()
    if target.process.poll() is None:
        target.wait_for("closed|counter", limit)
    texts = result.out, target.out()
    target.stop()
    end = time.monotonic() + limit
    while _flows(net, "n2") or _flows(net, last):
        lab.check(time.monotonic() < end, "a relay keeps the flow")
        time.sleep(lab.POLL_S)
    return texts


def _kill_meshd(net):
    net.shell("n3", f"{lab.BUSYBOX} killall -9 meshd; {meshd.UNTIL_GONE}")
    meshd.start(net, "n3")


def relay_killed(net):
    """Both ends are told which meshd went away; then all works again."""
    for mode in ("mixed", "hold"):
        texts = _break(net, mode, lambda _: _kill_meshd(net))
        for text in texts:
            _named(text, "meshd on node n3 went away without a word",
                   "node n[24] lane")
    target = _target(net, "f2")
    _settle(net)
    _source(net, "f2", "mixed", "--count", 800).succeeded()
    target.stop()


def cable_pulled(net):
    """Both ends are told which cable; put back, it is used again."""
    netdev = net.cabled("n2", "n3")[0][0]
    cable = next(f"n2.{lane['port']}" for lane in net.lanes("n2")
                 if lane["netdev"] == netdev)
    for mode in ("mixed", "hold"):
        texts = _break(net, mode, lambda _: net.link(cable, "down", both=True))
        for text in texts:
            _named(text, r"node n[23] lane \S+ \(\S+\) to node n[23] lane",
                   "local GID", "remote GID")
        net.link(cable, "up", both=True)
        _settle(net)
    target = _target(net, "f3")
    _source(net, "f3", "mixed", "--count", 800).succeeded()
    target.stop()


def target_killed(net):
    """The source is told whose process it was."""
    text, _ = _break(net, "mixed", lambda target: target.stop())
    _named(text, f"the process on node {net.nodes()[-1]} went away")


def main():
    """Runs the tests of this file."""
    if not lab.THOROUGH:
        lab.main([
            ("line3", [all_kinds, forwarding_off_in_kernel]),
            *([("line4", [slow_receiver, limit_of_flows, many_connects,
                          hostile_bytes, relay_killed, target_killed])]
              if lab.SANITIZED else [])])
        return
    lab.main([
        ("line3", [all_kinds, forwarding_off_in_kernel]),
        ("line4", [all_kinds, slow_receiver, limit_of_flows, many_connects,
                   nobody_there, hostile_bytes, relay_killed, cable_pulled,
                   target_killed]),
        # Seven machines are too many to emulate.
        *([("line7", [all_kinds])] if QUICK else []),
    ])


if __name__ == "__main__":
    main()
