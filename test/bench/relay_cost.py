#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What a relay costs: two hops beside one, and a diagonal over two relays.

Each figure is a ratio of two that are measured in turns, in one lab and one
run. Bandwidth is that of WRITEs of one chunk over cables that a token bucket
shapes, so that the link and not the processor is the limit; latency is half of
the round trip of 8 bytes, unshaped, between processes that sleep until something
comes: three that spin, the relay in the middle, would wait for one of two
processors and not for the relay. `make bench` runs this, too.
"""

import os
import pathlib
import re
import statistics
import sys

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[1] /
                             "lab"))

import lab  # noqa: E402 pylint: disable=wrong-import-position
import meshd  # noqa: E402 pylint: disable=wrong-import-position

TRAFFIC = os.fspath(lab.BUILD / "test" / "meshd" / "relay_traffic")
SETTLE_S = 30
ROUNDS = 5
PINGS = 2000 if lab.FABRIC == "swverbs" else 200
SECONDS = 2
RATE_MBIT = 160 if lab.FABRIC == "swverbs" else 8
SHAPE = f"tbf rate {RATE_MBIT}mbit burst 64kb latency 100ms"
BANDWIDTH_LEAST = 0.85
BOTH_LEAST = 1.7
LATENCY_MOST = 2.3


def _target(net, node, endpoint, *options):
    job = net.start(node, TRAFFIC, "target", endpoint, *options)
    job.wait_for("listening")
    return job


class Ends:
    """n1 and who it talks to: a neighbour, and the other end of the
    diagonal."""

    def __init__(self, net):
        self.net = net
        with meshd.Watch(net) as watch:
            watch.wait_links(meshd.cabling(net), "the map", limit=SETTLE_S)
        self.near = net.pairs()[0][1]
        self.far = next(node for node in net.nodes()[1:]
                        if not net.cabled("n1", node))
        self.jobs = [_target(net, self.near, "1", "--direct",
                             net.cabled("n1", self.near)[0][1]),
                     _target(net, self.far, "2"), _target(net, self.far, "3")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.jobs:
            job.stop()

    def _start(self, endpoint, node, *options):
        return self.net.start("n1", TRAFFIC, "source", endpoint, node,
                              *map(str, options))

    def direct(self, *options):
        """Starts a source over one cable."""
        return self._start("1", self.near, "--direct", "-", *options)

    def relayed(self, path, *options):
        """Starts one over a relay."""
        return self._start(str(2 + path), self.far, "--path", path, *options)


def _figure(job):
    """The number that the source printed."""
    out = job.wait(lab.COMMAND_S).succeeded().out
    return float(re.search(r"^(?:latency_us|mbytes_per_s) ([0-9.]+)$", out,
                           re.MULTILINE).group(1))


def _report(what, one, other, least=None, most=None):
    """Says the ratio of the medians, and fails beyond the limit."""
    ratio = statistics.median(other) / statistics.median(one)
    limit = f"at least {least}" if least else f"at most {most}"
    lab.note(f"figure: {what}: {statistics.median(other):.2f} / "
             f"{statistics.median(one):.2f} = {ratio:.2f} ({limit})")
    lab.check((not least or ratio >= least) and (not most or ratio <= most),
              f"{what}: {ratio:.2f}, not {limit}", f"{one} {other}")


def latency(net):
    """Of two hops beside one, unshaped."""
    options = ["--mode", "pingpong", "--count", PINGS]
    one, two = [], []
    with Ends(net) as ends:
        for _ in range(ROUNDS):
            one.append(_figure(ends.direct(*options)))
            two.append(_figure(ends.relayed(0, *options)))
    _report("latency in us, two hops to one", one, two, most=LATENCY_MOST)


def bandwidth(net):
    """Of two hops beside one, and of two disjoint relays beside one."""
    options = ["--mode", "stream", "--seconds", SECONDS]
    one, two, both = [], [], []
    for node in net.nodes():
        for lane in net.lanes(node):
            net.shell(node, f"tc qdisc add dev {lane['netdev']} root {SHAPE}")
    with Ends(net) as ends:
        for _ in range(ROUNDS):
            one.append(_figure(ends.direct(*options)))
            two.append(_figure(ends.relayed(0, *options)))
            jobs = [ends.relayed(path, *options) for path in (0, 1)]
            both.append(sum(_figure(job) for job in jobs))
    lab.note(f"cables of {RATE_MBIT} Mbit/s")
    _report("MB/s, two hops to one", one, two, least=BANDWIDTH_LEAST)
    _report("MB/s, two disjoint relays to one", two, both, least=BOTH_LEAST)


if __name__ == "__main__":
    lab.main([("ring4", [latency, bandwidth])])
