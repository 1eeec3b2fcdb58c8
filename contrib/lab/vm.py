# SPDX-License-Identifier: BSD-3-Clause
"""The fabric of virtual machines: QEMU, the distribution's kernel, Soft-RoCE.

A fabric offers what the rest of the lab needs and nothing else does:
    missing()                   {program: Debian package} the host lacks
    refusal()                   why it cannot be on this host, or None
    prepare(say)                slow work before anything is started
    start()                     wires and nodes, in the lab's own namespace;
                                returns {node name: process}
    stage(node)                 the last thing a starting node reported
    console(node)               the path of what the node printed
    link(ends, up)              plugs or pulls the cable at these ends
    power(node, pid, verb)      kill, pause, resume
    state(node)                 running or paused
    options()                   what makes the same fabric again elsewhere
Nodes answer agent.py's protocol on their management address.
"""

import json
import os
import pathlib
import platform
import signal
import socket
import subprocess
import typing

from lab import guest, image, kernel, net

BUSYBOX = "bin/busybox"
APPEND = ("quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on "
          "console={}")
QMP_TIMEOUT_S = 10.0


class Machine(typing.NamedTuple):
    """What a machine is to QEMU."""

    qemu: str
    package: str
    type: str
    emulated_cpu: str
    # For the kernel's command line: the console, and what is its alone.
    append: str


# By Debian's names of architectures.
MACHINES = {
    # Emulated, "rep movsb" goes byte by byte: without erms copies take moves
    # of 8 bytes, and messages little more than half of the processor's time.
    # Page tables of four levels and copies without SMAP's switches save some
    # more.
    "amd64": Machine("qemu-system-x86_64", "qemu-system-x86", "q35",
                     "max,erms=off,la57=off,smap=off,smep=off,pku=off",
                     "ttyS0 tsc=reliable no_timer_check"),
    # A newer one authenticates pointers, which emulated takes long.
    "arm64": Machine("qemu-system-aarch64", "qemu-system-arm", "virt",
                     "cortex-a72", "ttyAMA0"),
}
UNAME = {"x86_64": "amd64", "aarch64": "arm64"}


def host_architecture():
    """Debian's name of this host's architecture, or what uname says."""
    name = platform.machine()
    return UNAME.get(name, name)


class MachineError(Exception):
    """What a machine's monitor refused."""


def _monitor(path, *commands):
    """Runs QMP commands, returns the last one's result."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(QMP_TIMEOUT_S)
        connection.connect(os.fspath(path))
        stream = connection.makefile("rw", encoding="utf-8")
        stream.readline()
        result = None
        for name, arguments in (("qmp_capabilities", {}), *commands):
            stream.write(json.dumps({"execute": name,
                                     "arguments": arguments}) + "\n")
            stream.flush()
            result = _reply(stream)
        return result


def _reply(stream):
    for line in stream:
        reply = json.loads(line)
        if "error" in reply:
            raise MachineError(reply["error"]["desc"])
        if "return" in reply:
            return reply["return"]
    raise MachineError("the machine is gone")


class VmFabric:
    """The machines of one lab; directory is the lab's state."""

    PROGRAMS = {"busybox": "busybox-static", "depmod": "kmod",
                "ip": "iproute2", "rdma": "iproute2", "dpkg": "dpkg",
                "apt-get": "apt", "ibv_devinfo": "ibverbs-utils"}
    FILES = {"/etc/libibverbs.d/rxe.driver": "ibverbs-providers"}

    def __init__(self, name, topology, directory, options):
        self.name = name
        self.topology = topology
        self.directory = pathlib.Path(directory)
        self.given = options
        self.machine = MACHINES.get(options["arch"])
        self.kernel = None
        self.boot_image = None

    def options(self):
        """JSON that makes an equal fabric for the lab's other commands."""
        return self.given

    def missing(self):
        """{what: package} that the host lacks."""
        result = lacking(self.PROGRAMS)
        if self.machine is not None:
            result.update(lacking({self.machine.qemu: self.machine.package}))
        if self.given["root"] == "/":
            result.update({path: package
                           for path, package in self.FILES.items()
                           if not os.path.exists(path)})
        return result

    def refusal(self):
        """Why this fabric cannot be here, or None."""
        if os.geteuid() != 0:
            return "bridges and taps need root: sudo mesh-lab ..."
        arch = self.given["arch"]
        if self.machine is None:
            return f"machines of {arch} are not known: give another --arch"
        if arch != host_architecture() and (
                self.given["root"] == "/" or not self.given["kernel"]):
            return (f"machines of {arch} need a --root and a --kernel of "
                    "that architecture")
        if not os.path.exists(self._busybox()):
            return f"no {self._busybox()}: install busybox-static there"
        return None

    def _busybox(self):
        """A static one of the machines' architecture."""
        if self.given["arch"] == host_architecture():
            return _which("busybox")
        return os.path.join(self.given["root"], BUSYBOX)

    def prepare(self, say):
        """Finds the kernel and builds each node's initramfs."""
        if self.given["kernel"]:
            self.kernel = kernel.load(self.given["kernel"], say)
        else:
            self.kernel = kernel.find(self.given["arch"], say)
        self.boot_image = self.kernel.boot_image()
        say(f"kernel {self.kernel.release}")
        busybox = pathlib.Path(self._busybox()).read_bytes()
        base = image.base(self.kernel, busybox, guest.INIT)
        shares = [(f"share{i}", mode, path)
                  for i, (path, mode) in enumerate(self.given["shares"])]
        for node in self.topology.nodes.values():
            own = image.node(guest.files(self.name, self.topology, node,
                                         shares, self.given["meshd"]))
            path = self.directory / f"{node.name}.initrd"
            # The kernel takes the second archive at a multiple of four.
            path.write_bytes(base + b"\0" * (-len(base) % 4) + own)

    def start(self):
        """Builds the wires and starts every machine at once."""
        self._build_wires()
        parent = os.getpid()
        return {node.name: self._start(node, parent)
                for node in self.topology.nodes.values()}

    def _build_wires(self):
        script = net.Script()
        script.bridge("mgmt", 1500, self.topology.host_mgmt())
        for node in self.topology.nodes.values():
            script.tap(f"mgmt.{node.index}", "mgmt", 1500)
        for index, cable in enumerate(self.topology.cables):
            if cable.shared():
                script.bridge(f"wire{index}", net.WIRE_MTU)
                for node, lane in cable.lanes():
                    script.tap(_tap(node, lane), f"wire{index}", net.WIRE_MTU)
        script.run()

    def _start(self, node, parent):
        def limit():
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            net.die_with_parent(parent, signal.SIGKILL)
        # Relative paths: those of sockets are limited to 108 bytes.
        return subprocess.Popen(
            self._command(node), cwd=self.directory, preexec_fn=limit,
            stdin=subprocess.DEVNULL, start_new_session=True)

    def _command(self, node):
        accel = self.given["accel"]
        command = [
            self.machine.qemu, "-name", f"mesh-lab {self.name} {node.name}",
            "-nodefaults", "-no-user-config",
            "-M", f"{self.machine.type},accel={accel}", "-smp", "1",
            "-cpu", "host" if accel == "kvm" else self.machine.emulated_cpu,
            "-m", str(self.given["mem"]), "-no-reboot",
            "-display", "none", "-monitor", "none",
            "-serial", f"file:{node.name}.console",
            "-qmp", f"unix:{node.name}.qmp,server=on,wait=off",
            "-kernel", os.fspath(self.boot_image),
            "-append", APPEND.format(self.machine.append),
            "-initrd", f"{node.name}.initrd", "-device", "virtio-rng-pci"]
        command += self._exports()
        command += _nic(guest.mac(node, 0), "mgmt", 1500,
                        f"tap,ifname=mgmt.{node.index},script=no,"
                        "downscript=no")
        for index, lane in enumerate(node.lanes, 1):
            command += _nic(guest.mac(node, index), lane.netdev,
                            net.WIRE_MTU, self._backend(node, lane))
        return command

    def _exports(self):
        exports = [("root", "ro", self.given["root"]),
                   ("modules", "ro", os.fspath(self.kernel.modules.parent))]
        exports += [(f"share{i}", mode, path)
                    for i, (path, mode) in enumerate(self.given["shares"])]
        result = []
        for tag, mode, path in exports:
            result += ["-virtfs", f"local,path={_quote(path)},"
                       f"mount_tag={tag},security_model=none,"
                       f"multidevs=remap,readonly="
                       f"{'on' if mode == 'ro' else 'off'}"]
        return result

    def _backend(self, node, lane):
        cable = self.topology.cable_of(node, lane.port)
        if cable is not None and cable.shared():
            return (f"tap,ifname={_tap(node, lane)},script=no,downscript=no")
        local = f"{node.name}.{lane.netdev}"
        remote = f"{local}.open"
        if cable is not None:
            remote = next(f"{n.name}.{other.netdev}"
                          for n, other in cable.lanes() if other is not lane)
        return (f"dgram,local.type=unix,local.path={local},"
                f"remote.type=unix,remote.path={remote}")

    def console(self, node):
        """The path of the node's console output."""
        return self.directory / f"{node.name}.console"

    def stage(self, node):
        """The last stage the node reported, or None."""
        return guest.last_stage(self.console(node))

    def link(self, ends, up):
        """Sets the carrier of every lane of these (node, port)."""
        for node, port in ends:
            _monitor(self._monitor_path(node),
                     *(("set_link", {"name": lane.netdev, "up": up})
                       for lane in node.port(port)))

    def power(self, node, pid, verb):
        """Powers a machine off, stops it or lets it go on."""
        if verb == "kill":
            os.kill(pid, signal.SIGKILL)
        else:
            command = {"pause": "stop", "resume": "cont"}[verb]
            _monitor(self._monitor_path(node), (command, {}))

    def state(self, node):
        """What the machine's monitor says of it: running or paused."""
        return _monitor(self._monitor_path(node),
                        ("query-status", {}))["status"]

    def _monitor_path(self, node):
        return self.directory / f"{node.name}.qmp"


def lacking(programs):
    """Those of {program: package} that the host has not."""
    return {program: package for program, package in programs.items()
            if not _which(program)}


def _which(program):
    for directory in os.get_exec_path() + ["/usr/sbin", "/sbin"]:
        path = os.path.join(directory, program)
        if os.access(path, os.X_OK):
            return path
    return None


def _quote(path):
    return path.replace(",", ",,")


def _tap(node, lane):
    return f"tap{node.index}.{lane.netdev}"


def _nic(address, name, mtu, backend):
    kind, _, rest = backend.partition(",")
    return ["-netdev", f"{kind},id={name},{rest}", "-device",
            f"virtio-net-pci,romfile=,netdev={name},mac={address},"
            f"host_mtu={mtu}"]
