# SPDX-License-Identifier: BSD-3-Clause
"""What runs inside a node from its kernel's start to its command server.

Two scripts: INIT, in the initramfs, puts the root file system together; the
boot script, made for each node, sets up names, addresses and RDMA devices.
They report "mesh-lab: STAGE" on the console; "mesh-lab: ready" is the last.
"""

import hashlib
import pathlib
import re
import shlex

from lab import agent
from lab.topology import MGMT_NETDEV

# In the node; a tmpfs.
HOME = "/run/mesh-lab"
SHELL_PORT = 99
MESHD_LOG = f"{HOME}/meshd.log"
# What a sanitizer says of a program goes to a file that begins so.
REPORTS = f"{HOME}/sanitizer"
STAGE = re.compile(r"^mesh-lab: (.*?)\r?$", re.MULTILINE)

# Lower files come from the host by 9p and are read-only; what a node writes
# stays in its memory. Shares are mounted without a cache, so that a program
# that was just built is the one that runs.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /lower /rw /new
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
export PATH=/bin
exec </dev/console >/dev/console 2>&1
say() { echo "mesh-lab: $*"; }
fail() { say "failed: $*"; sleep 1; poweroff -f; }
say modules
while read m; do insmod /modules/$m || fail insmod $m; done < /modules/order
say root
opts=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o ro,$opts,cache=loose root /lower || fail mount root
mount -t tmpfs -o size=90% tmpfs /rw
mkdir /rw/upper /rw/work
mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work \\
    overlay /new || fail mount overlay
cd /new
mkdir -p proc sys dev run tmp etc root lib/modules
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t devtmpfs dev dev
mkdir -p dev/pts dev/shm
mount -t devpts -o gid=5,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -m 1777 run/lock
mount -t 9p -o ro,$opts,cache=loose modules lib/modules
while read tag mode path; do
    mkdir -p "/new$path"
    mount -t 9p -o $mode,$opts,cache=none $tag "/new$path" || fail share $path
done < /node/shares
for f in /node/etc/*; do
    rm -f etc/${f##*/}
    cp $f etc/
done
mkdir -p run/mesh-lab
cp /bin/busybox /node/run/* run/mesh-lab/
cd /
exec /bin/busybox switch_root /new /bin/sh /run/mesh-lab/boot
"""

# The shell is process 1 and collects orphans while the command server runs.
BOOT = """export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root
export PMIX_MCA_gds=hash
cd {home}
exec </dev/null >/dev/console 2>&1
say() {{ echo "mesh-lab: $*"; }}
fail() {{ say "failed: $*"; sleep 1; ./busybox poweroff -f; }}
for p in ip rdma python3; do
    command -v $p >/dev/null || fail "no $p in the root file system"
done
./busybox hostname {name}
say network
for d in /sys/class/net/*; do
    read mac < $d/address
    case $mac in
{renames}
    esac
done
while read path value; do
    echo "$value" >/proc/sys/$path || fail sysctl $path
done <sysctls
ip -batch links || fail links
say devices
rdma -b devices || fail "RDMA devices"
say addresses
ip -batch addresses || fail addresses
./busybox nc -ll -p {shell_port} -e /bin/sh </dev/null &
{meshd}
say server
python3 -IS agent.py {address}
fail "command server"
"""

# Open MPI starts its daemons with it: HOST COMMAND...
RSH = """#!/bin/bash
host=$1
shift
exec 3<>"/dev/tcp/$host/{port}"
printf '%s\\n' "$*" >&3
exec cat <&3
"""


def last_stage(console):
    """The last stage reported on that console, or None."""
    try:
        text = console.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None
    stages = STAGE.findall(text)
    return stages[-1] if stages else None


def mac(node, index):
    """The hardware address of a node's interface: 0 is the management one."""
    return f"52:54:00:00:{node.index:02x}:{index:02x}"


def _renames(node):
    lines = [f"{mac(node, i)}) [ ${{d##*/}} = {lane.netdev} ] || "
             f"ip link set ${{d##*/}} name {lane.netdev} ;;"
             for i, lane in enumerate(node.lanes, 1)]
    return "\n".join(f"    {line}" for line in lines) or "    *) ;;"


def links(node, noise="link add {} type dummy"):
    """`ip` commands that bring a node's netdevs up.

    noise makes an interface that leads nowhere; empty where it exists.
    """
    lines = ["link set lo up", f"link set {MGMT_NETDEV} up",
             f"address add {node.mgmt} dev {MGMT_NETDEV}"]
    for lane in node.lanes:
        if any(a.version == 6 and a.is_link_local for a in lane.addresses):
            lines.append(f"link set {lane.netdev} addrgenmode none")
        lines.append(f"link set {lane.netdev} mtu {lane.mtu} up")
    for name in node.noise:
        lines += [noise.format(name)] if noise else []
        lines.append(f"link set {name} up")
    return lines


def _address(verb, address, netdev):
    # Nobody may be at the other end yet: duplicates are not looked for.
    flag = " nodad" if address.version == 6 and verb == "add" else ""
    return f"address {verb} {address} dev {netdev}{flag}"


def addresses(node):
    """`ip` commands for a node's addresses."""
    holes = [(f"192.0.2.{16 * i + k + 1}/32", lane.netdev)
             for i, lane in enumerate(node.lanes)
             for k in range(lane.gid_holes)]
    lines = [f"address add {text} dev {netdev}" for text, netdev in holes]
    lines += [_address("add", address, lane.netdev)
              for lane in node.lanes for address in lane.addresses]
    lines += [_address("add", address, name)
              for name, addresses in node.noise.items()
              for address in addresses]
    lines += [f"address del {text} dev {netdev}" for text, netdev in holes]
    return lines


def _devices(node):
    return [f"link add {lane.ibdev} type rxe netdev {lane.netdev}"
            for lane in node.lanes]


def _text(lines):
    return "".join(f"{line}\n" for line in lines)


def _hosts(topology):
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    lines += [f"{node.mgmt.ip} {node.name}"
              for node in topology.nodes.values()]
    return _text(lines)


def identity(lab_name, node):
    """32 hex digits of a node's own."""
    return hashlib.md5(f"{lab_name}/{node.name}".encode(),
                       usedforsecurity=False).hexdigest()


def etc(lab_name, topology, node):
    """A node's own files in /etc: {name: text}."""
    return {
        "hostname": f"{node.name}\n",
        "machine-id": f"{identity(lab_name, node)}\n",
        "hosts": _hosts(topology),
        "resolv.conf": "",
    }


def boot_script(node, meshd=""):
    """The boot script of a node; meshd is a program to start, if any."""
    start = f"{shlex.quote(meshd)} </dev/null >{MESHD_LOG} 2>&1 &"
    return BOOT.format(home=HOME, name=shlex.quote(node.name),
                       renames=_renames(node), address=node.mgmt.ip,
                       shell_port=SHELL_PORT, meshd=start if meshd else "")


def files(lab_name, topology, node, shares, meshd=""):
    """A node's own part of the initramfs: {path: (text, mode)}.

    shares is a list of (9p tag, "ro" or "rw", directory); meshd is a program
    to start, if any.
    """
    texts = {
        **{f"etc/{name}": content for name, content
           in etc(lab_name, topology, node).items()},
        "shares": _text(" ".join(share) for share in shares),
        "run/boot": boot_script(node, meshd),
        "run/sysctls": _text(f"{key.replace('.', '/')} {value}"
                             for key, value in node.sysctl.items()),
        "run/links": _text(links(node)),
        "run/devices": _text(_devices(node)),
        "run/addresses": _text(addresses(node)),
        "run/agent.py": pathlib.Path(agent.__file__).read_text("utf-8"),
    }
    result = {f"node/{path}": (text, 0o644) for path, text in texts.items()}
    result["node/run/rsh"] = (RSH.format(port=SHELL_PORT), 0o755)
    return result
