# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the lab's pure parts: topologies, drawings, nodes' scripts."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[2]
                             / "contrib"))

# pylint: disable=wrong-import-position
from lab import agent, counters, drawing, guest, topology  # noqa: E402

TWINS = {
    "id": "twins", "title": "two nodes, one cable, two lanes each",
    "nodes": {"n1": {"mgmt": "10.99.0.1/24",
                     "ifs": {"b1": ["172.30.2.1/24"],
                             "a1": ["172.30.1.1/24", "fe80::11/64"]}},
              "n2": {"mgmt": "10.99.0.2/24",
                     "ifs": {"a1": ["172.30.1.2/24"],
                             "b1": ["172.30.2.2/24"]}}},
    "cables": [["n1.1", "n2.1"]],
}


def twins(**changes):
    """TWINS with some of its keys replaced."""
    return topology.Topology({**TWINS, **changes})


def nodes_with(name, **keys):
    """TWINS' nodes with more keys for one of them."""
    nodes = json.loads(json.dumps(TWINS["nodes"]))
    nodes[name].update(keys)
    return nodes


class Builtin(unittest.TestCase):
    """The topologies that need no file."""

    def ends(self, name):
        """Its cables as text."""
        return topology.builtin(name)["cables"]

    def test_cables(self):
        self.assertEqual(self.ends("pair"), [["n1.0", "n2.0"]])
        self.assertEqual(self.ends("line3"),
                         [["n1.0", "n2.1"], ["n2.0", "n3.1"]])
        self.assertEqual(self.ends("ring4"),
                         [["n1.0", "n2.1"], ["n2.0", "n3.1"],
                          ["n3.0", "n4.1"], ["n4.0", "n1.1"]])

    def test_mesh_joins_every_pair_once(self):
        topo = topology.load("mesh4")
        pairs = {frozenset(node.name for node, _ in cable.ends)
                 for cable in topo.cables}
        self.assertEqual((len(topo.cables), len(pairs)), (6, 6))
        for node in topo.nodes.values():
            self.assertEqual([lane.netdev for lane in node.lanes],
                             ["a0", "a1", "a2"])

    def test_one_network_for_each_cable(self):
        for name in ("pair", "ring3", "line4", "mesh4"):
            topo = topology.load(name)
            networks = [cable.networks() for cable in topo.cables]
            self.assertTrue(all(len(n) == 1 for n in networks), name)
            self.assertEqual(len({n[0] for n in networks}), len(networks))

    def test_wrong_names(self):
        for name in ("ring2", "mesh1", "star4", "no-such-file#x"):
            with self.assertRaises(topology.TopologyError, msg=name):
                topology.load(name)


class File(unittest.TestCase):
    """The file format."""

    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json",
                                         delete=False) as stream:
            json.dump([{"id": "other"}, TWINS], stream)
        self.addCleanup(os.unlink, stream.name)
        self.path = stream.name

    def test_found_by_id(self):
        self.assertEqual(topology.load(f"{self.path}#twins").name, "twins")

    def test_unknown_id_names_those_there_are(self):
        with self.assertRaisesRegex(topology.TopologyError, "other, twins"):
            topology.load(f"{self.path}#x")


class Meaning(unittest.TestCase):
    """What a specification stands for."""

    def test_twins_share_one_wire(self):
        cable = twins().cables[0]
        self.assertTrue(cable.shared())
        self.assertEqual([(node.name, lane.netdev)
                          for node, lane in cable.lanes()],
                         [("n1", "a1"), ("n1", "b1"),
                          ("n2", "a1"), ("n2", "b1")])
        self.assertEqual(cable.networks(),
                         ["172.30.1.0/24", "172.30.2.0/24"])

    def test_devices_are_named_in_order_unless_told(self):
        node = twins().node("n1")
        self.assertEqual([(lane.netdev, lane.ibdev) for lane in node.lanes],
                         [("a1", "rxe0"), ("b1", "rxe1")])
        node = twins(nodes=nodes_with("n1", rxe={"a1": "rxe1"})).node("n1")
        self.assertEqual([(lane.netdev, lane.ibdev) for lane in node.lanes],
                         [("a1", "rxe1"), ("b1", "rxe0")])

    def test_mtu_of_a_cable_and_of_one_end(self):
        topo = twins(cables=[["n1.1", "n2.1", 1500]])
        self.assertEqual({lane.mtu for _, lane in topo.cables[0].lanes()},
                         {1500})
        topo = twins(cables=[["n1.1", "n2.1", {"n1": 1500}]])
        self.assertEqual([lane.mtu for _, lane in topo.cables[0].lanes()],
                         [1500, 1500, 9000, 9000])

    def test_noise_is_everywhere(self):
        topo = twins(noise={"docker0": ["172.17.0.1/16"]})
        for node in topo.nodes.values():
            self.assertEqual(list(node.noise), ["docker0"])
            self.assertIn("link add docker0 type dummy\n",
                          guest.files("x", topo, node, [])
                          ["node/run/links"][0])

    def test_host_address_is_free(self):
        self.assertEqual(str(twins().host_mgmt()), "10.99.0.254/24")

    def test_refused(self):
        wrong = (
            {"cables": [["n1.1", "n3.1"]]},
            {"cables": [["n1.1", "n2.7"]]},
            {"cables": [["n1.1"]]},
            {"cables": [["n1.1", "n2.1"], ["n2.1", "n1.1"]]},
            {"cables": [["n1.1", "n2.1", 100]]},
            {"nodes": nodes_with("n1", mgmt="10.99.0.2/24")},
            {"nodes": nodes_with("n1", mgmt="10.98.0.1/24")},
            {"nodes": nodes_with("n1", ifs={"a1": ["172.30.1/24"]})},
            {"nodes": nodes_with("n1", rxe={"a1": "x", "b1": "x"})},
            {"nodes": nodes_with("n1", gid_holes={"a7": 1})},
        )
        for changes in wrong:
            with self.assertRaises(topology.TopologyError, msg=changes):
                twins(**changes)


class Guest(unittest.TestCase):
    """What the nodes' scripts are given."""

    def text(self, topo, name, path):
        """One of a node's files."""
        files = guest.files("x", topo, topo.node(name), [])
        return files[f"node/{path}"][0]

    def test_machine_id_is_of_the_lab_and_the_node(self):
        topo = twins()
        ids = [guest.files(lab, topo, topo.node(name), [])
               ["node/etc/machine-id"][0]
               for lab in ("x", "y") for name in ("n1", "n2")]
        self.assertEqual(len(set(ids)), 4)
        self.assertTrue(all(len(text) == 33 for text in ids))

    def test_given_link_local_address_is_the_only_one(self):
        self.assertIn("link set a1 addrgenmode none\n",
                      self.text(twins(), "n1", "run/links"))
        self.assertNotIn("addrgenmode", self.text(twins(), "n2", "run/links"))

    def test_holes_come_before_and_go_after(self):
        topo = twins(nodes=nodes_with("n1", gid_holes={"b1": 2}))
        lines = self.text(topo, "n1", "run/addresses").splitlines()
        lines = [line.split()[1:3] for line in lines if " dev b1" in line]
        self.assertEqual(lines, [["add", "192.0.2.17/32"],
                                 ["add", "192.0.2.18/32"],
                                 ["add", "172.30.2.1/24"],
                                 ["del", "192.0.2.17/32"],
                                 ["del", "192.0.2.18/32"]])


class Drawing(unittest.TestCase):
    """Pictures."""

    def test_line(self):
        self.assertEqual(drawing.picture(topology.load("line3")),
                         ["n1 0─────1 n2 0─────1 n3"])

    def test_twins(self):
        self.assertEqual(drawing.picture(twins()), ["n1 1═════1 n2"])

    def test_ring(self):
        self.assertEqual(drawing.picture(topology.load("ring3")), [
            "┌─1 n1 0─────1 n2 0─────1 n3 0─┐",
            "└──────────────────────────────┘"])

    def test_mesh(self):
        lines = drawing.picture(topology.load("mesh4"))
        self.assertEqual([line.split() for line in lines], [
            ["to", "│", "n1", "n2", "n3", "n4"], ["────┼────────────────"],
            ["n1", "│", "·", "0", "1", "2"], ["n2", "│", "0", "·", "1", "2"],
            ["n3", "│", "0", "1", "·", "2"], ["n4", "│", "0", "1", "2", "·"]])

    def test_lanes(self):
        lines = drawing.lanes(topology.load("pair"))
        self.assertEqual(lines[1].split(), ["n1", "10.99.0.1", "a0", "rxe0",
                                            "9000", "172.30.1.1/24"])


class Framing(unittest.TestCase):
    """What travels between a node and its callers."""

    def test_request(self):
        request = (["sh", "-c", "", "ä\udcff"], {"A": "b=c", "E": ""}, "/x",
                   True)
        self.assertEqual(
            agent.decode_request(agent.encode_request(*request)), request)

    def test_frames_may_arrive_in_pieces(self):
        data = agent.frame(b"O", b"abc") + agent.frame(b"X", b"")
        buffer, found = bytearray(), []
        for value in data:
            buffer.append(value)
            found += agent.take_frames(buffer)
        self.assertEqual(found, [(b"O", b"abc"), (b"X", b"")])
        self.assertEqual(buffer, b"")


class Counters(unittest.TestCase):
    """What grep printed in a node."""

    def test_parse(self):
        text = ("/sys/class/infiniband/rxe0/ports/1/hw_counters/"
                "sent_pkts:12\n"
                "/sys/class/infiniband/rxe0/ports/1/state:4: ACTIVE\n"
                "/sys/class/net/a0/statistics/rx_bytes:90\n"
                "/sys/class/net/eth0/statistics/rx_bytes:7\n")
        node = topology.load("pair").node("n1")
        found = counters.parse(node, text)
        self.assertEqual(found, {"a0": {
            "ibdev": "rxe0",
            "rdma": {"sent_pkts": 12, "state": "4: ACTIVE"},
            "netdev": {"rx_bytes": 90}}})
        row = counters.rows({"n1": found})[1]
        self.assertEqual(row[:5], ("n1", "a0", "rxe0", "ACTIVE", "12"))


if __name__ == "__main__":
    unittest.main()
