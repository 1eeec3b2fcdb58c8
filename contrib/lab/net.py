# SPDX-License-Identifier: BSD-3-Clause
"""The lab's network namespace and the wires in it.

The namespace has no name: processes of the lab hold it, and with the last of
them it vanishes, bridges and taps included. Needs root.
"""

import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
WIRE_MTU = 9000

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def leave():
    """Moves this process into a new network namespace."""
    _check(_libc.unshare(CLONE_NEWNET))


def enter(pid):
    """Moves this process into the network namespace of another."""
    fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _check(_libc.setns(fd, CLONE_NEWNET))
    finally:
        os.close(fd)


def die_with_parent(parent, number):
    """Asks the kernel for that signal when the parent goes away."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0))
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


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
            self.lines.append(f"address add {address} dev {name}")
        self.lines.append(f"link set {name} up")

    def tap(self, name, bridge, mtu):
        """A machine's end of a wire."""
        self.lines += [
            f"tuntap add dev {name} mode tap vnet_hdr",
            f"link set {name} addrgenmode none",
            f"link set {name} mtu {mtu} master {bridge} up"]

    def run(self):
        """Runs them in this process's network namespace."""
        result = subprocess.run(
            ["ip", "-batch", "-"], input="\n".join(self.lines) + "\n",
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False)
        if result.returncode != 0:
            raise OSError(f"ip: {result.stdout.strip()}")
