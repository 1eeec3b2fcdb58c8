# SPDX-License-Identifier: BSD-3-Clause
"""What must be true of the paths in a topology, worked out from its file.

Nothing here knows how meshd or meshctl go about it. A Plan is made of a
topology's specification (contrib/lab/topology.py); everything is pure.
"""

import collections
import copy
import ipaddress
import itertools

MANY_CABLES = 3


class Plan:
    """Nodes, lanes with their networks, and cables of one specification."""

    def __init__(self, spec):
        self.spec = spec
        self.nodes = list(spec["nodes"])
        self.cables = [[end.split(".") for end in cable
                        if isinstance(end, str)] for cable in spec["cables"]]
        self._links = {}
        for number, ends in enumerate(self.cables):
            for (a, port_a), (b, port_b) in itertools.combinations(ends, 2):
                self._join(number, (a, port_a), (b, port_b))
        self._prune()
        self._near = {node: [other for other in self.nodes
                             if (node, other) in self._links]
                      for node in self.nodes}
        self._distances = {}

    def _prune(self):
        """Of two nodes' lanes only those that suit each other best count."""
        for pair, links in self._links.items():
            close = [link for link in links if link[3]]
            self._links[pair] = close or links

    def addresses(self, node, lane):
        """The addresses of a lane that a connection can use."""
        found = map(ipaddress.ip_interface,
                    self.spec["nodes"][node]["ifs"][lane])
        return [address for address in found
                if address.version == 4 or not address.is_link_local]

    def networks(self, node, lane):
        """The networks a lane is in."""
        return {address.network for address in self.addresses(node, lane)}

    def _lanes(self, node, port):
        return [lane for lane in sorted(self.spec["nodes"][node]["ifs"])
                if lane[1:] == port]

    def _join(self, cable, end, other):
        """Pairs the lanes of two ports: by network, then first with first."""
        near, far = (self._lanes(*side) for side in (end, other))
        pairs = sorted(
            itertools.product(enumerate(near), enumerate(far)),
            key=lambda pair: (
                not self.networks(end[0], pair[0][1])
                & self.networks(other[0], pair[1][1]),
                abs(pair[0][0] - pair[1][0]), pair[0][0]))
        taken = set()
        for (_, lane), (_, peer) in pairs:
            if (end, lane) in taken or (other, peer) in taken:
                continue
            taken |= {(end, lane), (other, peer)}
            if self.addresses(end[0], lane) and self.addresses(other[0], peer):
                common = (self.networks(end[0], lane)
                          & self.networks(other[0], peer))
                self._add(end[0], other[0], (cable, lane, peer, common))
                self._add(other[0], end[0], (cable, peer, lane, common))

    def _add(self, node, other, link):
        self._links.setdefault((node, other), []).append(link)

    def rails(self, node, other):
        """{(lane, lane of the other)} of two nodes, empty without a cable."""
        return {(lane, peer) for _, lane, peer, _
                in self._links.get((node, other), [])}

    def neighbours(self, node):
        """The nodes it has a link to."""
        return self._near[node]

    def distances(self, node):
        """{node: hops} of all that can be reached."""
        if node not in self._distances:
            self._distances[node] = self._walk(node)
        return self._distances[node]

    def _walk(self, node):
        hops, queue = {node: 0}, collections.deque([node])
        while queue:
            here = queue.popleft()
            for other in self.neighbours(here):
                if other not in hops:
                    hops[other] = hops[here] + 1
                    queue.append(other)
        return hops

    def disjoint(self, source, target):
        """How many shortest paths there are without a relay in common."""
        hops = self.distances(target)
        if hops[source] == 1:
            return 1
        # A relay is an arc from its entry to its exit; each is used once.
        flow, found = set(), 0
        while True:
            way = self._augment(source, target, hops, flow)
            if way is None:
                return found
            found += 1
            for arc in way:
                if (arc[1], arc[0]) in flow:
                    flow.discard((arc[1], arc[0]))
                else:
                    flow.add(arc)

    def _arcs(self, source, target, hops):
        for node in hops:
            if node not in (source, target):
                yield (node, "in"), (node, "out")
            for other in self.neighbours(node):
                if hops[other] == hops[node] - 1 and node != target:
                    yield (node, "out"), (other, "in")

    def _augment(self, source, target, hops, flow):
        onward = collections.defaultdict(list)
        for start, end in self._arcs(source, target, hops):
            if (start, end) in flow:
                onward[end].append(start)
            else:
                onward[start].append(end)
        before = {(source, "out"): None}
        queue = collections.deque(before)
        while queue:
            here = queue.popleft()
            if here == (target, "in"):
                break
            for there in onward[here]:
                if there not in before:
                    before[there] = here
                    queue.append(there)
        if (target, "in") not in before:
            return None
        way, here = [], (target, "in")
        while before[here] is not None:
            way.append((before[here], here))
            here = before[here]
        return way

    # ---- warnings ------------------------------------------------------------

    def warnings(self, source, vias, target):
        """The codes of what is odd about the cables of these paths."""
        used = set()
        for via in vias:
            stops = [source, *via, target]
            for pair in zip(stops, stops[1:]):
                used |= {link[0] for link in self._links[pair]}
        found = set()
        networks = self._cable_networks()
        if any(map(self._twins_share, used)):
            found.add("TWINS_SHARE_SUBNET")
        if self._all_alike():
            found.add("ALL_LINKS_SAME_SUBNET")
        elif any(networks[one] & networks[other] for one in used
                 for other in networks if one != other):
            found.add("SUBNET_REUSED_ON_TWO_CABLES")
        return found

    def _links_by_cable(self):
        result = collections.defaultdict(list)
        for (node, other), links in self._links.items():
            for cable, lane, peer, common in links:
                result[cable].append((node, other, lane, peer, common))
        return result

    def _cable_networks(self):
        return {cable: set().union(*(link[4] for link in links))
                for cable, links in self._links_by_cable().items()}

    def _twins_share(self, cable):
        lanes = {(node, lane) for node, _, lane, _, _
                 in self._links_by_cable()[cable]}
        return any(one[0] == two[0] and self.networks(*one)
                   & self.networks(*two)
                   for one, two in itertools.combinations(sorted(lanes), 2))

    def _all_alike(self):
        cables = self._links_by_cable()
        return len(cables) >= MANY_CABLES and bool(set.intersection(
            *(set(link[4]) for links in cables.values() for link in links)))


def link_local(spec):
    """The same with one address in 169.254/16 in the place of all others,
    lanes without an address excepted."""
    result = copy.deepcopy(spec)
    for number, node in enumerate(result["nodes"].values(), 1):
        for place, lane in enumerate(sorted(node["ifs"]), 1):
            if node["ifs"][lane]:
                node["ifs"][lane] = [f"169.254.{number}.{place}/16"]
    return result


def paths_wrong(plan, source, answer):
    """What is wrong with the paths from a node that meshctl answered, in
    words, or None. answer: what `meshctl path --json` printed."""
    target = answer["node"]
    hops = plan.distances(source).get(target)
    paths = answer["paths"]
    if hops is None:
        return f"{len(paths)} paths, expected none" if paths else None
    if {path["hops"] for path in paths} != {hops}:
        return f"hops {[path['hops'] for path in paths]}, expected {hops}"
    expected = plan.disjoint(source, target)
    if len(paths) != expected:
        return f"{len(paths)} paths, expected {expected}"
    relays = [relay for path in paths for relay in path["via"]]
    if len(set(relays)) != len(relays):
        return f"paths share a relay: {relays}"
    for path in paths:
        stops = [source, *path["via"], target]
        if len(stops) != hops + 1 or len(path["lanes"]) != hops:
            return f"{path} has not {hops} hops"
        for near, far, lanes in zip(stops, stops[1:], path["lanes"]):
            seen = {tuple(pair) for pair in lanes}
            if seen != plan.rails(near, far) or len(seen) != len(lanes):
                return (f"{near}-{far} over {sorted(seen)}, expected "
                        f"{sorted(plan.rails(near, far))}")
    warnings = plan.warnings(source, [path["via"] for path in paths], target)
    if set(answer["warnings"]) != warnings:
        return f"warnings {answer['warnings']}, expected {sorted(warnings)}"
    return None


def expectation_missed(expect, forward, answer):
    """The same against what a topology's file expects of a pair: hops, via
    of two hops, rails, warn. forward: in the order of the pair's name."""
    paths = answer["paths"]
    if not paths or paths[0]["hops"] != expect["hops"]:
        return f"{paths[:1]}, expected {expect['hops']} hops"
    if "via" in expect:
        via = sorted(relay for path in paths for relay in path["via"])
        if via != expect["via"]:
            return f"via {via}, expected {expect['via']}"
    if "rails" in expect:
        rails = sorted(pair if forward else pair[::-1]
                       for pair in paths[0]["lanes"][0])
        if rails != sorted(expect["rails"]) or len(paths) != 1:
            return f"rails {rails}, expected {expect['rails']}"
    if sorted(answer["warnings"]) != sorted(expect.get("warn", [])):
        return (f"warnings {answer['warnings']}, expected "
                f"{expect.get('warn', [])}")
    return None
