# SPDX-License-Identifier: BSD-3-Clause
"""The fabric of namespaces: the host's kernel, software verbs, in seconds.

A node is a process in namespaces of its own (nsnode.py). Its RDMA devices are
made by libswverbs.so, which the node's /etc/ld.so.preload loads into every
program. Each of its netdevs is a veth; the other end lies in the lab's
network namespace, on the cable's bridge. That end going down is a cable
pulled at one side.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import uuid

from lab import guest, net, nsnode, vm
from lab.topology import MGMT_NETDEV, TopologyError

LIBRARY = "test/swverbs/.libs/libswverbs.so"
PRELOAD = "/etc/ld.so.preload"
NEEDED_IN = ("usr/sbin", "usr/bin", "sbin", "bin")
MGMT_MTU = 1500
# One packet at a time, or nobody would cut long ones to the MTU.
NO_GSO = "gso_max_segs 1"
STOPPED = ("T", "t")
# What a node's programs are told where the library was built with a sanitizer:
# leaks and races of others are their own affair, and the hooks that Open MPI
# and UCX put into the C library don't go with the thread sanitizer's.
SANITIZERS = {
    "libasan": {"ASAN_OPTIONS": f"detect_leaks=0:log_path={guest.REPORTS}",
                "UBSAN_OPTIONS": "print_stacktrace=1:"
                                 f"log_path={guest.REPORTS}"},
    "libtsan": {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:"
                                f"log_path={guest.REPORTS}",
                "OMPI_MCA_memory": "^patcher", "UCX_MEM_EVENTS": "n"},
}


class SwverbsFabric:
    """The nodes of one lab; directory is the lab's state."""

    PROGRAMS = {"ip": "iproute2", "bash": "bash"}

    def __init__(self, name, topology, directory, options):
        self.name = name
        self.topology = topology
        self.directory = pathlib.Path(directory)
        self.given = options
        self.library = os.path.join(options["build"], LIBRARY)
        self.preload = ""
        self.environment = {}

    def options(self):
        """JSON that makes an equal fabric for the lab's other commands."""
        return self.given

    def missing(self):
        """{what: package} that the host lacks."""
        return vm.lacking(self.PROGRAMS)

    def refusal(self):
        """Why this fabric cannot be here, or None."""
        if not os.path.exists(self.library):
            return (f"{self.library} is missing: run `make "
                    "test/swverbs/libswverbs.la` in the build directory, and "
                    "set MESH_BUILD_DIR if that is not build/")
        if self.given["kernel"]:
            return "--kernel is of virtual machines only"
        root = self.given["root"]
        if not shutil.which("ip", path=":".join(
                os.path.join(root, directory) for directory in NEEDED_IN)):
            return f"{root} has no `ip`: install iproute2 there"
        return None

    def prepare(self, say):
        """Checks what only machines can have; looks at the library."""
        for node in self.topology.nodes.values():
            for key in node.sysctl:
                if not key.startswith("net."):
                    raise TopologyError(f"sysctl {key}: nodes that share a "
                                        "kernel have their own net.* only")
        runtimes = _runtimes(self.library)
        self.preload = "".join(f"{path}\n"
                               for path in [*runtimes, self.library])
        for path in runtimes:
            self.environment |= SANITIZERS[os.path.basename(path)
                                           .partition(".")[0]]
        say(f"software verbs {self.library}")

    def start(self):
        """Builds nodes and wires; the nodes go on by themselves."""
        processes = {node.name: self._fork(node)
                     for node in self.topology.nodes.values()}
        for process in processes.values():
            process.await_namespaces()
        self._build_wires({name: process.pid
                           for name, process in processes.items()})
        for process in processes.values():
            process.go()
        return processes

    def _fork(self, node):
        files = node_files(self.name, self.topology, node, self.preload)
        shares = self.given["shares"] + [[self.given["build"], "ro"]]
        boot_id = str(uuid.uuid4())
        return nsnode.fork(
            self.console(node),
            lambda gate: nsnode.serve(gate, node, self.given["root"], files,
                                      shares, boot_id, self.environment,
                                      self.given["meshd"]))

    def _build_wires(self, pids):
        script = net.Script()
        script.bridge("mgmt", MGMT_MTU, self.topology.host_mgmt())
        narrow = narrow_lanes(self.topology)
        for index in range(len(self.topology.cables)):
            script.bridge(f"wire{index}", net.WIRE_MTU)
        for node in self.topology.nodes.values():
            for index, (end, netdev, mtu) in enumerate(_ends(node)):
                peer = f"{netdev} address {guest.mac(node, index)}"
                if netdev in narrow[node.name]:
                    peer += f" {NO_GSO}"
                script.veth(end, mtu, peer, pids[node.name])
            self._plug(script, node, True)
        script.run()

    def _plug(self, script, node, plugged):
        """Joins all ends of a node to their bridges, or none."""
        bridges = {f"wire{index}": cable.ends
                   for index, cable in enumerate(self.topology.cables)}
        script.plug(_end(node, MGMT_NETDEV), "mgmt" if plugged else None)
        for lane in node.lanes:
            for bridge, ends in bridges.items():
                if (node, lane.port) in ends:
                    script.plug(_end(node, lane.netdev),
                                bridge if plugged else None)

    def console(self, node):
        """The path of what the node printed."""
        return self.directory / f"{node.name}.console"

    def stage(self, node):
        """The last stage the node reported, or None."""
        return guest.last_stage(self.console(node))

    def link(self, ends, up):
        """Sets the carrier of every lane of these (node, port)."""
        script = net.Script()
        for node, port in ends:
            script.lines += [f"link set {_end(node, lane.netdev)} "
                             f"{'up' if up else 'down'}"
                             for lane in node.port(port)]
        self._run(script)

    def power(self, node, pid, verb):
        """Ends a node, stops all of it or lets it go on.

        The kernel would go on to answer for a stopped node: it is unplugged,
        its carriers stay.
        """
        if verb == "kill":
            os.kill(pid, signal.SIGKILL)
            return
        script = net.Script()
        self._plug(script, node, verb == "resume")
        if verb == "pause":
            _signal_all(pid, signal.SIGSTOP)
        self._run(script)
        if verb == "resume":
            _signal_all(pid, signal.SIGCONT)

    def state(self, node):
        """running or paused."""
        pid = self._state()["machines"][node.name][0]
        text = pathlib.Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        return ("paused" if text.rpartition(")")[2].split()[0] in STOPPED
                else "running")

    def _state(self):
        return json.loads((self.directory / "state.json").read_text("utf-8"))

    def _run(self, script):
        net.enter(self._state()["supervisor"])
        script.run()


def node_files(lab_name, topology, node, preload):
    """What a node has of its own: {path: (text, mode)}. Pure."""
    files = {f"/etc/{name}": (text, 0o644) for name, text
             in guest.etc(lab_name, topology, node).items()}
    files[nsnode.CONFIG] = (devices(node), 0o644)
    files[f"{guest.HOME}/rsh"] = (guest.RSH.format(port=guest.SHELL_PORT),
                                  0o755)
    files[PRELOAD] = (preload, 0o644)
    return files


def narrow_lanes(topology):
    """{node's name: netdevs} on cables with a small MTU at some end. Pure."""
    result = {name: set() for name in topology.nodes}
    for cable in topology.cables:
        if min(lane.mtu for _, lane in cable.lanes()) < net.WIRE_MTU:
            for node, lane in cable.lanes():
                result[node.name].add(lane.netdev)
    return result


def devices(node):
    """The RDMA devices of a node as libswverbs.so is told. Pure.

    Index 0 of a GID table is the netdev's own; the holes are next.
    """
    lines = []
    for lane in node.lanes:
        line = f"device {lane.ibdev} netdev={lane.netdev}"
        if lane.gid_holes:
            line += " holes=" + ",".join(
                str(index) for index in range(1, lane.gid_holes + 1))
        lines.append(f"{line}\n")
    return "".join(lines)


def _runtimes(library):
    """A library built with a sanitizer needs its run-time before it."""
    output = subprocess.run(["ldd", library], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True,
                            check=False).stdout
    return [line.split()[2] for line in output.splitlines()
            if line.strip().startswith(tuple(f"{name}."
                                             for name in SANITIZERS))]


def _end(node, netdev):
    """The lab's end of a node's netdev."""
    return f"v{node.index}.{netdev}"


def _ends(node):
    """(end, netdev, MTU) of all; a netdev's place is that of its MAC."""
    return ([(_end(node, MGMT_NETDEV), MGMT_NETDEV, MGMT_MTU)]
            + [(_end(node, lane.netdev), lane.netdev, net.WIRE_MTU)
               for lane in node.lanes]
            + [(f"x{node.index}.{place}", name, MGMT_MTU)
               for place, name in enumerate(node.noise)])


def _members(pid):
    """The processes of a node."""
    namespace = os.readlink(f"/proc/{pid}/ns/pid")
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/ns/pid") == namespace:
                yield int(name)
        except OSError:
            pass


def _signal_all(pid, number):
    """Signals a node's processes until there is none that is new."""
    reached = set()
    while True:
        fresh = set(_members(pid)) - reached
        if not fresh:
            return
        for member in fresh:
            try:
                os.kill(member, number)
            except ProcessLookupError:
                pass
        reached |= fresh
