#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does the lab itself keep its word? Quick on every fabric."""

import json
import os
import pathlib
import signal
import subprocess
import time

import lab

GONE_S = 20
IDENTITY = ("hostname; cat /etc/machine-id /proc/sys/kernel/random/boot_id; "
            "ls /sys/class/net")
# perftest's port; its words come late, through a buffer.
LISTENS = ("until grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6; "
           "do sleep 0.1; done")


def own_identity(net):
    """Each node has its own name, ids, netdevs and /tmp."""
    seen = {node: net.shell(node, f"echo {node} >/tmp/x; {IDENTITY}")
            .split() for node in net.nodes()}
    for node, (name, *_, lo) in seen.items():
        netdevs = [lane["netdev"] for lane in net.lanes(node)]
        lab.check(name == node and lo == "lo", f"{node}: {seen[node]}")
        lab.check(seen[node][3:-1] == sorted([*netdevs, "eth0"]),
                  f"{node}: {seen[node]}")
        lab.check(net.shell(node, "cat /tmp/x").strip() == node,
                  f"{node} shares its /tmp")
    for what in (1, 2):
        lab.check(len({words[what] for words in seen.values()}) == len(seen),
                  f"nodes share an id: {seen}")
    lab.check(not os.path.exists("/tmp/x"), "the host shares its /tmp")


def exit_statuses(net):
    """A command's status is the caller's, 128 and more for signals."""
    for script, status in (("exit 0", 0), ("exit 7", 7),
                           ("kill -TERM $$", 128 + signal.SIGTERM)):
        result = net.exec("n1", "sh", "-c", script)
        lab.check(result.status == status, f"{script}: {result.status}",
                  result.text)
    lab.check(net.exec("n1", "/no/such").status == 127, "/no/such")


def _devices(net, node):
    out = net.exec(node, "ibv_devinfo").succeeded().out.split()
    return {out[i + 1]: out[out.index("state:", i) + 1]
            for i, word in enumerate(out) if word == "hca_id:"}


def devices_by_their_names(net):
    """RDMA devices are those of the plan, whatever the environment is."""
    for node in net.nodes():
        names = {lane["ibdev"]: "PORT_ACTIVE" for lane in net.lanes(node)}
        lab.check(_devices(net, node) == names,
                  f"{node} has {_devices(net, node)}")
    result = net.exec("n1", "ibv_devinfo", "-l", env={"LD_PRELOAD": ""})
    lab.check("rxe0" in result.out, "no device with another LD_PRELOAD",
              result.text)


def a_write_is_counted(net):
    """ib_write_bw between neighbours: on their lanes, nowhere else."""
    before = net.counters()
    address = net.lanes("n2")[1]["addresses"][0].partition("/")[0]
    options = ("-s", "65536", "-n", "100", "-x", "1")
    server = net.start("n2", "ib_write_bw", "-d", "rxe1", *options)
    net.shell("n2", LISTENS)
    net.exec("n1", "ib_write_bw", "-d", "rxe0", *options,
             address).succeeded()
    server.wait(lab.COMMAND_S).succeeded()
    after = net.counters()
    for node, lanes in after.items():
        for netdev, lane in lanes.items():
            moved = {key: lane["rdma"][key]
                     - before[node][netdev]["rdma"][key]
                     for key in ("sent_pkts", "rcvd_pkts")}
            used = (node, netdev) in (("n1", "a0"), ("n2", "a1"))
            lab.check(used == (max(moved.values()) >= 100 * 65536 // 4096),
                      f"{node}.{netdev} moved {moved}")


def cable_pulled_at_one_end(net):
    """That port goes down and comes back, the other end's stays."""
    net.link("n1.0", "down")
    lab.check(_devices(net, "n1")["rxe0"] == "PORT_DOWN", "the port is up")
    lab.check(_devices(net, "n1")["rxe1"] == "PORT_ACTIVE",
              "the other port is down")
    lab.check(_devices(net, "n2")["rxe1"] == "PORT_ACTIVE",
              "the other end is down")
    net.link("n1.0", "up")
    lab.check(_devices(net, "n1")["rxe0"] == "PORT_ACTIVE",
              "the port stays down")


def _ping(net, node, other, count=1):
    own, _ = net.cabled(node, other)[0]
    address = next(lane["addresses"][0].partition("/")[0]
                   for lane in net.lanes(other)
                   if lane["netdev"] == net.cabled(other, node)[0][0])
    return net.exec(node, lab.BUSYBOX, "ping", "-c", str(count), "-W", "2",
                    "-I", own, address).status == 0


def paused_and_killed(net):
    """Who is paused is silent and comes back; who is killed does not."""
    ticker = net.start("n2", "sh", "-c", "while sleep 0.1; do echo x; done")
    ticker.wait_for("x")
    net.power("n2", "pause")
    lab.check(not _ping(net, "n1", "n2"), "a paused node answers")
    ticks = len(ticker.out())
    time.sleep(0.5)
    lab.check(len(ticker.out()) == ticks, "a paused node works")
    net.power("n2", "resume")
    # The first may be dropped with the neighbour that was not found meanwhile.
    lab.check(_ping(net, "n1", "n2", 4), "a resumed node does not answer")
    ticker.stop()
    net.power("n2", "kill")
    result = net.exec("n2", "true")
    lab.check(result.status == 125, f"exec: {result.status}", result.text)
    lab.check(_devices(net, "n1")["rxe0"] == "PORT_ACTIVE",
              "the neighbour's port is down")


def every_cable_leads_somewhere(net):
    """Each node reaches all its neighbours, each by the cable to it."""
    for node in net.nodes():
        script = "true"
        for one, other in net.pairs():
            if node in (one, other):
                peer = other if node == one else one
                own, theirs = net.cabled(node, peer)[0]
                address = next(lane["addresses"][0].partition("/")[0]
                               for lane in net.lanes(peer)
                               if lane["netdev"] == theirs)
                script += (f" && {lab.BUSYBOX} ping -c 4 -A -W 5 -I {own} "
                           f"{address}")
        net.shell(node, script)


def few_local_ports(net):
    """One node may have more connections than ports for them to come from."""
    node = net.nodes()[0]
    net.shell(node, "echo 40000 40063 >/proc/sys/net/ipv4/ip_local_port_range")
    net.mpirun("connect", hosts=[node], slots=16).succeeded()


def _running(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def _mesh_lab(name, *arguments):
    return subprocess.run([lab.MESH_LAB, "--name", name, *arguments],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=lab.BOOT_S)


def nothing_is_left(net):
    """A lab whose supervisor is killed is gone with all that ran in it."""
    name = f"{net.name}-x"
    result = _mesh_lab(name, "up", "pair")
    lab.check(result.returncode == 0, "up failed", result.stdout)
    try:
        state = json.loads(_mesh_lab(name, "status", "--json").stdout)
        pids = [state["supervisor"]] + [node["pid"] for node
                                        in state["nodes"].values()]
        namespace = os.readlink(f"/proc/{pids[0]}/ns/net")
        os.kill(state["supervisor"], signal.SIGKILL)
        deadline = time.monotonic() + GONE_S
        while any(map(_running, pids)) and time.monotonic() < deadline:
            time.sleep(lab.POLL_S)
        lab.check(not any(map(_running, pids)), "its nodes go on")
        lab.check(namespace not in _namespaces(), "its namespace is held")
        lab.check(_mesh_lab(name, "status").returncode == 125, "it is known")
    finally:
        _mesh_lab(name, "down")
    lab.check(not os.path.exists(state["directory"]), "its files are there")


def _namespaces():
    result = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/ns/net"):
        try:
            result.add(os.readlink(path))
        except OSError:
            pass
    return result


if __name__ == "__main__":
    TESTS = [("ring4", [own_identity, exit_statuses, devices_by_their_names,
                        a_write_is_counted, cable_pulled_at_one_end,
                        paused_and_killed, nothing_is_left])]
    if lab.FABRIC == "swverbs":
        TESTS += [(name, [every_cable_leads_somewhere]) for name in
                  ("ring8", "line6", "topologies.json#two-rings", "ring64")]
        TESTS.append(("pair", [few_local_ports]))
    lab.main(TESTS)
