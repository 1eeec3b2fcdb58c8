# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the pure parts of the lab's fabric of namespaces."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[2]
                             / "contrib"))

# pylint: disable=wrong-import-position
from lab import counters, guest, mounts, net, nsnode, swverbs  # noqa: E402
from lab import topology  # noqa: E402

SPEC = {
    "id": "x", "title": "three nodes",
    "nodes": {"n1": {"ifs": {"a0": ["172.30.1.1/24"],
                             "b0": ["172.30.2.1/24"],
                             "a1": ["172.30.3.1/24"]},
                     "rxe": {"b0": "mlx5_7"}, "gid_holes": {"b0": 2},
                     "noise": {"docker0": ["172.17.0.1/16"]}},
              "n2": {"ifs": {"a0": ["172.30.1.2/24"]}},
              "n3": {"ifs": {"a0": ["172.30.3.3/24"]}}},
    "cables": [["n1.0", "n2.0", {"n2": 1500}], ["n1.1", "n3.0"]],
}
OPTIONS = {"build": "/no/such/build", "root": "/", "kernel": None,
           "shares": [], "meshd": ""}


def topo(**changes):
    """SPEC with some of its keys replaced."""
    return topology.Topology({**SPEC, **changes})


def fabric(spec=None, **options):
    """A fabric that is never started."""
    return swverbs.SwverbsFabric("lab", spec or topo(), "/no/such",
                                 {**OPTIONS, **options})


class Files(unittest.TestCase):
    """What a node is given."""

    def test_devices_have_the_names_and_holes_of_the_plan(self):
        self.assertEqual(swverbs.devices(topo().node("n1")),
                         "device rxe0 netdev=a0\n"
                         "device rxe1 netdev=a1\n"
                         "device mlx5_7 netdev=b0 holes=1,2\n")

    def test_own_files(self):
        plan = topo()
        files = swverbs.node_files("lab", plan, plan.node("n2"), "/a/b.so\n")
        self.assertEqual(files["/etc/hostname"][0], "n2\n")
        self.assertIn("10.99.0.3 n3\n", files["/etc/hosts"][0])
        self.assertEqual(files["/etc/ld.so.preload"][0], "/a/b.so\n")
        self.assertEqual(files[nsnode.CONFIG][0], "device rxe0 netdev=a0\n")
        self.assertEqual(files[f"{guest.HOME}/rsh"][1], 0o755)

    def test_noise_comes_with_its_wire(self):
        lines = guest.links(topo().node("n1"), noise="")
        self.assertIn("link set docker0 up", lines)
        self.assertFalse([line for line in lines if "link add" in line])


class Wires(unittest.TestCase):
    """Cables of veths."""

    def test_only_cables_with_a_small_end_are_narrow(self):
        self.assertEqual(swverbs.narrow_lanes(topo()),
                         {"n1": {"a0", "b0"}, "n2": {"a0"}, "n3": set()})

    def test_a_bridge_with_an_address_keeps_its_own_mac(self):
        """Else it changes when the port leaves that it had it from."""
        script = net.Script()
        script.bridge("mgmt", 1500, "10.99.0.254/24")
        self.assertIn(f"link set mgmt address {net.BRIDGE_MAC}", script.lines)

    def test_names_fit_the_kernel(self):
        plan = topology.Topology({
            "nodes": {f"n{i}": {"ifs": {"a127": []},
                                "mgmt": f"10.99.0.{i}/24"}
                      for i in range(1, topology.MAX_NODES + 1)},
            "cables": []})
        ends = [end for node in plan.nodes.values()
                for end, _, _ in swverbs._ends(node)]
        self.assertEqual(len(set(ends)), 2 * topology.MAX_NODES)
        self.assertLess(max(map(len, ends)), 16)


class Refusals(unittest.TestCase):
    """What this fabric cannot do, in words."""

    def test_without_the_library(self):
        self.assertRegex(fabric().refusal(), "make test/swverbs/")

    def test_a_sysctl_that_all_nodes_would_share(self):
        plan = topo(sysctl={"vm.nr_hugepages": 1})
        with self.assertRaisesRegex(topology.TopologyError, "vm.nr_hugepages"):
            fabric(plan).prepare(print)


class Layers(unittest.TestCase):
    """Which directories of / get a layer of the node's own."""

    def test_not_over_other_mounts(self):
        self.assertEqual(
            mounts.layered(["var", "etc", "proc", "tmp", "home"],
                           ["/", "/proc", "/home", "/etc/hosts",
                            "/variety/x"]),
            ["home", "var"])


class Roots(unittest.TestCase):
    """Nodes with another root than the host's."""

    SCRIPT = """
import os, sys
from lab import mounts
mounts.enter(sys.argv[1], ["/usr/src", "/nowhere/else"])
print(*sorted(os.listdir("/")), os.listdir("/usr"), os.readlink("/bin"))
os.makedirs("/nowhere/else")
"""

    @unittest.skipUnless(os.geteuid() == 0, "mounts need root")
    def test_a_place_for_each_share(self):
        """It is not made in the directory that is the root."""
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(f"{root}/usr/bin")
            os.makedirs(f"{root}/proc")
            os.symlink("usr/bin", f"{root}/bin")
            output = subprocess.run(
                ["unshare", "--mount", sys.executable, "-c", self.SCRIPT,
                 root], stdout=subprocess.PIPE, text=True, check=True,
                env={"PYTHONPATH": os.pathsep.join(sys.path)}).stdout
            self.assertEqual(output.split(), ["bin", "dev", "nowhere", "proc",
                                              "sys", "usr", "['bin']",
                                              "usr/bin"])
            self.assertEqual(sorted(os.listdir(root)), ["bin", "proc", "usr"])


class Counters(unittest.TestCase):
    """What is asked of a node."""

    def test_every_device_by_its_name(self):
        script = counters.command(topo().node("n1"))[2]
        for name in ("rxe0", "rxe1", "mlx5_7"):
            self.assertIn(f"/sys/class/infiniband/{name}/ports/1/hw_counters/"
                          "sent_pkts", script)


if __name__ == "__main__":
    unittest.main()
