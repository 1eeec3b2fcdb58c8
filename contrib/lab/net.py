# SPDX-License-Identifier: BSD-3-Clause
"""The lab's namespaces and the wires in them.

A namespace has no name: processes of the lab hold it, and with the last of
them it vanishes, bridges and taps included. Who may not make one makes a user
namespace first, where the kernel allows that; this is enough for bridges and
veths, not for taps.
"""

import ctypes
import os
import subprocess

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
WIRE_MTU = 9000
BRIDGE_MAC = "52:54:00:ff:ff:fe"  # of those that have an address

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def unshare(flags):
    """Moves this process into new namespaces (pid: its next child)."""
    _check(_libc.unshare(flags))


def leave():
    """Moves this process into a new network namespace."""
    try:
        unshare(CLONE_NEWNET)
    except PermissionError:
        _become_root()
        unshare(CLONE_NEWNET)


def _become_root():
    """Moves this process into a user namespace, as its root."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        unshare(CLONE_NEWUSER)
    except OSError as error:
        raise OSError(error.errno, "this user may not make namespaces "
                      f"({error.strerror}): try as root") from None
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                       ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as stream:
            stream.write(text)


def in_user_namespace():
    """Whether this process is root of less than the machine."""
    with open("/proc/self/uid_map", encoding="ascii") as stream:
        return stream.read().split() != ["0", "0", "4294967295"]


def _set_namespace(path, kind):
    fd = os.open(path, os.O_RDONLY)
    try:
        _check(_libc.setns(fd, kind))
    finally:
        os.close(fd)


def enter(pid):
    """Moves this process into the network namespace of another."""
    if os.readlink(f"/proc/{pid}/ns/user") != os.readlink(
            "/proc/self/ns/user"):
        _set_namespace(f"/proc/{pid}/ns/user", CLONE_NEWUSER)
    _set_namespace(f"/proc/{pid}/ns/net", CLONE_NEWNET)


def die_with_parent(parent, number):
    """Asks the kernel for that signal when the parent goes away."""
    signal_at_parents_end(number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def signal_at_parents_end(number):
    """As above, for a caller that finds out otherwise if it came too late."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0))


def adopt_orphans():
    """Makes this process the parent of its descendants without one."""
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


class Script:
    """Collects `ip` commands and runs them at once."""

    def __init__(self):
        self.lines = ["link set lo up"]

    def bridge(self, name, mtu, address=None):
        """A wire. It passes everything, LLDP too, and says nothing itself."""
        self.lines += [
            f"link add {name} mtu {mtu} type bridge stp_state 0 "
            "mcast_snooping 0 group_fwd_mask 0xfff8",
            f"link set {name} addrgenmode none"]
        if address:
            # Without one of its own a bridge takes a port's hardware address
            # and another when that port leaves: nobody finds it then.
            self.lines += [f"link set {name} address {BRIDGE_MAC}",
                           f"address add {address} dev {name}"]
        self.lines.append(f"link set {name} up")

    def tap(self, name, bridge, mtu):
        """A machine's end of a wire."""
        self.lines += [
            f"tuntap add dev {name} mode tap vnet_hdr",
            f"link set {name} addrgenmode none",
            f"link set {name} mtu {mtu} master {bridge} up"]

    def veth(self, name, mtu, peer, pid):
        """A wire's end here; peer is a process's netdev: its name and more."""
        self.lines += [
            f"link add {name} mtu {mtu} type veth peer name {peer} "
            f"mtu {mtu} netns {pid}",
            f"link set {name} addrgenmode none", f"link set {name} up"]

    def plug(self, name, bridge):
        """Joins a wire's end to a bridge, or with None to nothing."""
        self.lines.append(f"link set {name} "
                          + (f"master {bridge}" if bridge else "nomaster"))

    def run(self):
        """Runs them in this process's network namespace."""
        result = subprocess.run(
            ["ip", "-batch", "-"], input="\n".join(self.lines) + "\n",
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False)
        if result.returncode != 0:
            raise OSError(f"ip: {result.stdout.strip()}")
