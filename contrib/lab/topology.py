# SPDX-License-Identifier: BSD-3-Clause
"""Topologies: nodes, their lanes and the cables between their ports.

A topology comes from a JSON file (`FILE#ID`: the file holds one object or a
list of objects with an "id") or is built in: pair, and ring, line or mesh
with a number of nodes (ring4).

    {"id": "P01", "title": "two nodes, one cable",
     "nodes": {"n1": {"mgmt": "10.99.0.1/24",
                      "ifs": {"a1": ["172.30.1.1/24"],
                              "b1": ["172.30.2.1/24"]}}, ...},
     "cables": [["n1.1", "n2.1"]]}

A netdev is named by its twin letter and its port: a1 and b1 are the two
lanes of port 1. A cable joins ports; where a port has more than one lane, or
a cable more than two ends (a small switch), all their lanes share one wire.

Optional keys:
    cables[i][last]         an MTU: a number, or {"n1": 1500, "n2": 9000}
    nodes.N.rxe             {"a0": "rxe3"}: RDMA device of a lane; the others
                            get rxe0, rxe1, ... in the netdevs' order
    nodes.N.gid_holes       {"a0": 2}: so many addresses are added to the lane
                            before its own ones and removed afterwards, which
                            leaves holes in its GID table
    noise, nodes.N.noise    {"docker0": ["172.17.0.1/16"]}: interfaces that
                            lead nowhere, on every node or on one
    sysctl, nodes.N.sysctl  {"net.ipv4.conf.all.arp_ignore": 1}: set before
                            the lanes are up. arp_ignore of lanes that share
                            a wire is 1 unless said otherwise: with 0 they
                            answer ARP for each other, as they do on a
                            machine that nobody has set up
An explicit fe80:: address replaces the one the kernel would choose.
Everything here is pure: no process, no socket, only the file is read.
"""

import ipaddress
import json
import re

DEFAULT_MTU = 9000
MGMT_NETDEV = "eth0"
MAX_NODES = 99

NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")
LANE = re.compile(r"([a-z])([0-9]{1,3})")
NETDEV = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,14}")
BUILTIN = re.compile(r"(ring|line|mesh)([0-9]{1,2})")


class TopologyError(ValueError):
    """What is wrong with a topology, in words for its author."""


class Lane:
    """One RDMA device port with its netdev."""

    def __init__(self, netdev, addresses):
        match = LANE.fullmatch(netdev)
        if not match:
            raise TopologyError(
                f"{netdev}: a lane is a letter and a port, such as a0")
        self.netdev = netdev
        self.twin, self.port = match.groups()
        self.addresses = [_interface(text) for text in addresses]
        self.mtu = DEFAULT_MTU
        self.ibdev = None
        self.cabled = False
        self.gid_holes = 0


class Node:
    """One machine; lanes are in the order of their netdevs' names."""

    def __init__(self, name, index, spec):
        if not NAME.fullmatch(name) or name == "all":
            raise TopologyError(f"{name!r} cannot name a node")
        self.name = name
        self.index = index
        self.mgmt = _interface(spec.get("mgmt", f"10.99.0.{index}/24"))
        self.lanes = [Lane(netdev, addresses) for netdev, addresses
                      in sorted(spec.get("ifs", {}).items())]
        self.noise = _noise(spec.get("noise", {}))
        self.sysctl = dict(spec.get("sysctl", {}))
        self._name_devices(spec.get("rxe", {}))
        for netdev, count in spec.get("gid_holes", {}).items():
            self.lane(netdev).gid_holes = int(count)

    def _name_devices(self, given):
        for netdev, ibdev in given.items():
            self.lane(netdev).ibdev = ibdev
        free = (f"rxe{i}" for i in range(1000))
        for lane in self.lanes:
            if lane.ibdev is None:
                lane.ibdev = next(name for name in free
                                  if name not in given.values())
        if len({lane.ibdev for lane in self.lanes}) != len(self.lanes):
            raise TopologyError(f"{self.name}: two lanes share an RDMA device")

    def lane(self, netdev):
        """The lane of that netdev."""
        for lane in self.lanes:
            if lane.netdev == netdev:
                return lane
        raise TopologyError(f"{self.name} has no lane {netdev}")

    def separate_twins(self):
        """Lanes that share a wire answer ARP for themselves only."""
        for lane in self.lanes:
            if lane.cabled and len(self.port(lane.port)) > 1:
                self.sysctl.setdefault(
                    f"net.ipv4.conf.{lane.netdev}.arp_ignore", 1)

    def port(self, port):
        """The lanes of that port, first twin first; at least one."""
        lanes = [lane for lane in self.lanes if lane.port == port]
        if not lanes:
            raise TopologyError(f"{self.name} has no port {port}")
        return lanes


class Cable:
    """What joins ports; ends are (node, port), two unless it is a switch."""

    def __init__(self, ends):
        self.ends = ends

    def lanes(self):
        """Every (node, lane) on this cable."""
        return [(node, lane) for node, port in self.ends
                for lane in node.port(port)]

    def shared(self):
        """True where the wire has more than two lanes."""
        return len(self.lanes()) > 2

    def networks(self):
        """The IP networks both ends have an address in, as text."""
        seen = [{str(address.network) for lane in node.port(port)
                 for address in lane.addresses
                 if not address.is_link_local or address.version == 4}
                for node, port in self.ends]
        return sorted(set.intersection(*seen))


class Topology:
    """Nodes by name (in order) and cables; spec is the JSON it came from."""

    def __init__(self, spec):
        self.spec = spec
        self.name = spec.get("id", "unnamed")
        self.title = spec.get("title", "")
        self.nodes = {}
        for index, (name, node) in enumerate(spec["nodes"].items(), 1):
            self.nodes[name] = Node(name, index, node)
        if not 1 <= len(self.nodes) <= MAX_NODES:
            raise TopologyError(f"between 1 and {MAX_NODES} nodes, please")
        for node in self.nodes.values():
            node.noise = {**_noise(spec.get("noise", {})), **node.noise}
            node.sysctl = {**spec.get("sysctl", {}), **node.sysctl}
        self.cables = [self._cable(cable) for cable in spec["cables"]]
        for node in self.nodes.values():
            node.separate_twins()
        self._check_mgmt()

    def _cable(self, spec):
        names = [end for end in spec if isinstance(end, str)]
        if len(names) < 2 or len(spec) - len(names) > 1:
            raise TopologyError(f"cable {spec}: two ports and maybe an MTU")
        cable = Cable([self.end(name) for name in names])
        for node, lane in cable.lanes():
            if lane.cabled:
                raise TopologyError(f"cable {spec}: {node.name}.{lane.port} "
                                    "has a cable already")
            lane.cabled = True
            if len(names) < len(spec):
                lane.mtu = _mtu(spec[-1], node.name)
        return cable

    def _check_mgmt(self):
        networks = {node.mgmt.network for node in self.nodes.values()}
        addresses = {node.mgmt.ip for node in self.nodes.values()}
        if len(networks) > 1 or len(addresses) < len(self.nodes):
            raise TopologyError("every node needs its own mgmt address in "
                                "one network")

    def end(self, text):
        """(node, port) of "n1.0"."""
        name, _, port = text.partition(".")
        node = self.node(name)
        node.port(port)
        return node, port

    def node(self, name):
        """The node of that name."""
        if name not in self.nodes:
            raise TopologyError(f"no node {name!r} in {self.name} "
                                f"({', '.join(self.nodes)})")
        return self.nodes[name]

    def cable_of(self, node, port):
        """The cable in that port, or None."""
        for cable in self.cables:
            if (node, port) in cable.ends:
                return cable
        return None

    def host_mgmt(self):
        """A management address for the lab's own host."""
        taken = {node.mgmt.ip for node in self.nodes.values()}
        network = next(iter(self.nodes.values())).mgmt.network
        last = int(network.broadcast_address)
        for value in range(last - 1, int(network.network_address), -1):
            address = ipaddress.ip_address(value)
            if address not in taken:
                return ipaddress.ip_interface(
                    f"{address}/{network.prefixlen}")
        raise TopologyError(f"no address left in {network}")


def _interface(text):
    try:
        return ipaddress.ip_interface(text)
    except ValueError as error:
        raise TopologyError(str(error)) from None


def _noise(spec):
    for name in spec:
        if not NETDEV.fullmatch(name) or LANE.fullmatch(name):
            raise TopologyError(f"{name!r} cannot name a noise interface")
    return {name: [_interface(text) for text in addresses]
            for name, addresses in spec.items()}


def _mtu(spec, node):
    value = spec.get(node, DEFAULT_MTU) if isinstance(spec, dict) else spec
    if not isinstance(value, int) or not 576 <= value <= DEFAULT_MTU:
        raise TopologyError(f"MTU {value!r}: a number from 576 to "
                            f"{DEFAULT_MTU}")
    return value


def _builtin_pairs(kind, count):
    """The cables of a built-in topology as ((node, port), (node, port))."""
    if kind == "mesh":
        # Node i's ports are numbered by its peers in order, itself left out.
        return [((i, j - 1), (j, i)) for i in range(count)
                for j in range(i + 1, count)]
    last = count if kind == "ring" else count - 1
    return [((i, 0), ((i + 1) % count, 1)) for i in range(last)]


def builtin(name):
    """The specification of a built-in topology, or None."""
    match = BUILTIN.fullmatch("line2" if name == "pair" else name)
    if not match:
        return None
    kind, count = match.group(1), int(match.group(2))
    if count < (3 if kind == "ring" else 2):
        raise TopologyError(f"{name}: too few nodes")
    pairs = _builtin_pairs(kind, count)
    if name == "pair":
        pairs = [((0, 0), (1, 0))]
    nodes = {f"n{i + 1}": {"mgmt": f"10.99.0.{i + 1}/24", "ifs": {}}
             for i in range(count)}
    for cable, ends in enumerate(pairs, 1):
        for node, port in ends:
            nodes[f"n{node + 1}"]["ifs"][f"a{port}"] = [
                f"172.30.{cable}.{node + 1}/24"]
    cables = [[f"n{node + 1}.{port}" for node, port in ends]
              for ends in pairs]
    return {"id": name, "title": f"built-in {name}", "nodes": nodes,
            "cables": cables}


def _from_file(name):
    path, _, wanted = name.partition("#")
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
    except (OSError, ValueError) as error:
        raise TopologyError(f"{path}: {error}") from None
    specs = content if isinstance(content, list) else [content]
    if not wanted and len(specs) == 1:
        return specs[0]
    for spec in specs:
        if spec.get("id") == wanted:
            return spec
    raise TopologyError(f"{path} has no topology {wanted!r} (it has "
                        f"{', '.join(str(s.get('id')) for s in specs)})")


def load(name):
    """The topology of that name: a built-in one or FILE#ID."""
    spec = builtin(name)
    if spec is None and "#" not in name and not name.endswith(".json"):
        raise TopologyError(f"{name}: neither FILE#ID nor pair, ringN, lineN "
                            "or meshN")
    return Topology(spec or _from_file(name))
