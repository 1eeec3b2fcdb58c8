#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""meshctl doctor, plan and order: what they say of faults that are there."""

import configparser
import json
import os
import shutil
import subprocess
import tempfile
import time

import lab
import meshd

PLANS = os.fspath(lab.HERE / "topologies.json")
MESHCTL = os.fspath(lab.BUILD / "src" / "meshctl" / "meshctl")
EXIT_DONE, EXIT_RED, EXIT_WARNINGS = 0, 1, 6
# Of the node's software, which these tests do not change.
BESIDE = {"TRANSPORT_MISSING", "PLUGIN_MISSING", "UCX_VERSION", "OMPI_PML",
          "NCCL_VERSION"}
FOLLOW_S = 30
POLL_S = 0.2


def _doctor(net, node="n1", env=None, before="exec", options=""):
    """(status, {code: finding}, codes left out); before: a shell's words."""
    result = net.exec(node, "sh", "-c", f"{before} {MESHCTL} doctor --json "
                      f"{options}",
                      env=env)
    lab.check(result.status in (EXIT_DONE, EXIT_RED, EXIT_WARNINGS),
              f"doctor: status {result.status}", result.text)
    answer = json.loads(result.out)
    found = {finding["code"]: finding for finding in answer["findings"]
             if finding["code"] not in BESIDE}
    for finding in found.values():
        lab.check(finding["text"] and finding["fix"], "no text or no fix",
                  str(finding))
    return result.status, found, answer["left_out"]


def _finds(net, *codes, node="n1", severity=None, subject="", **options):
    """Waits until these are found and no other; the findings."""
    deadline = time.monotonic() + FOLLOW_S
    while True:
        _, found, _ = _doctor(net, node, **options)
        if set(found) == set(codes) or time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    lab.check(set(found) == set(codes), f"found {sorted(found)}, not "
              f"{sorted(codes)}", json.dumps(found, indent=1))
    for code in codes[:1]:
        lab.check(severity in (None, found[code]["severity"]),
                  f"{code} is {found[code]['severity']}")
        lab.check(subject in found[code]["subject"], f"{code} is of "
                  f"{found[code]['subject']}, not of {subject}")
    return found


def _store(net):
    """Every node gets the files that keep its addresses."""
    net.shell("all", f"{MESHCTL} plan --from-map --keep --format networkd "
              "--output /tmp/plan >/tmp/plan.log; mkdir -p "
              "/etc/systemd/network; "
              "cp /tmp/plan/$(hostname)/*.network /etc/systemd/network")


def healthy(net):
    """Nothing is found, once the addresses are in files."""
    meshd.start(net, "all")
    with meshd.Watch(net) as watch:
        watch.wait_links(meshd.cabling(net), "the map", limit=FOLLOW_S)
    _finds(net, "ADDRESS_NOT_PERSISTENT", severity="warning")
    _store(net)
    _finds(net)
    text = net.exec("n1", MESHCTL, "doctor").out
    lab.check("cable      green" in text, "the text says otherwise", text)


def addresses(net):
    """One is missing, all are missing."""
    first, second = [(lane["netdev"], lane["addresses"][0])
                     for lane in net.lanes("n1")]
    net.shell("n1", f"ip address del {first[1]} dev {first[0]}")
    _finds(net, "NO_ADDRESS", severity="warning", subject=first[0])
    net.shell("n1", f"ip address del {second[1]} dev {second[0]}")
    found = _finds(net, "NO_ADDRESS", severity="red")
    status, _, left_out = _doctor(net)
    lab.check(status == EXIT_RED and "NO_LINK" in left_out
              and "MEMLOCK" not in left_out, "left out", str(left_out))
    lab.check("ip address add" in found["NO_ADDRESS"]["fix"], "another fix")
    for netdev, address in (first, second):
        net.shell("n1", f"ip address add {address} dev {netdev}")
    _finds(net)


def cables(net):
    """One is pulled; a netdev is set down; a far end has no meshd."""
    lane = net.lanes("n1")[0]
    port = f"n1.{lane['port']}"
    net.link(port, "down")
    _finds(net, "PORT_DOWN", severity="warning", subject=lane["netdev"])
    net.link(port, "up")
    net.shell("n1", f"ip link set {lane['netdev']} down")
    found = _finds(net, "PORT_DOWN", subject=lane["netdev"])
    lab.check(found["PORT_DOWN"]["fix"] == f"ip link set {lane['netdev']} up",
              "another fix", str(found))
    net.shell("n1", f"ip link set {lane['netdev']} up")
    _finds(net)
    meshd.stop(net, "n2")
    _finds(net, "ADDRESS_UNCABLED", severity="warning")
    meshd.start(net, "n2")
    _finds(net)


def no_meshd(net):
    """Where none runs what is cabled is not judged."""
    meshd.stop(net, "n1")
    _finds(net, "NO_MESHD", severity="red")
    _, _, left_out = _doctor(net)
    lab.check("MTU_DIFFERS" in left_out, "left out", str(left_out))
    meshd.start(net, "n1")
    _finds(net)


def mtus(net):
    """Both ends have another one than the rest, then one of them."""
    near, far = net.cabled("n1", "n2")[0]
    net.shell("n1", f"ip link set {near} mtu 1500")
    found = _finds(net, "MTU_LOW", "MTU_DIFFERS")
    lab.check(f"{near} mtu 9000" in found["MTU_DIFFERS"]["fix"]
              and "1500" in found["MTU_DIFFERS"]["text"], "another fix",
              str(found))
    _finds(net, "MTU_DIFFERS", node="n2", subject=far)
    net.shell("n1", f"ip link set {near} mtu 9000")
    _finds(net)


def neighbours(net):
    """A far end that answers no ARP is found though its hellos come."""
    near, far = net.cabled("n1", "n2")[0]
    net.shell("n2", f"sysctl -qw net.ipv4.conf.{far}.arp_ignore=8")
    net.shell("n1", f"ip neighbour flush dev {near}")
    _finds(net, "NEIGHBOUR_FAILED", severity="red", subject=near)
    net.shell("n2", f"sysctl -qw net.ipv4.conf.{far}.arp_ignore=0")
    net.shell("n1", f"ip neighbour flush dev {near}")
    _finds(net)


def firewall(net):
    """Rules of nftables that drop what the mesh needs."""
    if net.exec("n1", "sh", "-c", "nft list ruleset").status != 0:
        raise lab.Skip("no nft here")
    net.shell("n1", "nft add table inet mesh; nft add chain inet mesh input "
              "'{ type filter hook input priority 0; policy accept; }'; "
              "nft add rule inet mesh input tcp dport 1024-65535 ct state new "
              "drop")
    _finds(net, "FIREWALL_MESHD", severity="red")
    net.shell("n1", "nft insert rule inet mesh input tcp dport 18518 accept")
    _finds(net, "FIREWALL_OOB", severity="red")
    _finds(net, "FIREWALL_OOB", env={"MESH_OOB_PORT_FIRST": 47000,
                                     "MESH_OOB_PORT_LAST": 47200})
    net.shell("n1", "nft insert rule inet mesh input tcp dport 47000-47200 "
              "accept")
    _finds(net, env={"MESH_OOB_PORT_FIRST": 47000,
                     "MESH_OOB_PORT_LAST": 47200})
    net.shell("n1", "nft delete table inet mesh")
    _finds(net)


def limits(net):
    """Little memory may be locked, and the process has no capability."""
    if not shutil.which("setpriv"):
        raise lab.Skip("no setpriv here")
    found = _finds(net, "MEMLOCK", severity="red",
                   before="ulimit -l 64; exec setpriv --bounding-set -ipc_lock"
                   " --inh-caps -ipc_lock")
    lab.check("memlock" in found["MEMLOCK"]["fix"].lower(), "another fix")


def settings(net):
    """Left over in the environment, and in files, with their names."""
    for code, name, value in (
            ("UCX_TLS", "UCX_TLS", "rc,sm,self"),
            ("UCX_NET_DEVICES", "UCX_NET_DEVICES", "mlx5_7:1"),
            ("NCCL_NET", "NCCL_NET", "Socket"),
            ("NCCL_NET_PLUGIN", "NCCL_NET_PLUGIN", "none"),
            ("EMPTY_SETTING", "NCCL_IB_GID_INDEX", ""),
            ("OMPI_UCX_TLS", "OMPI_MCA_opal_common_ucx_tls", "rc_verbs")):
        found = _finds(net, code, env={name: value}, subject=name)
        lab.check("environment" in found[code]["text"], "no source",
                  str(found))
    net.shell("n1", "echo NCCL_NET=IB >/etc/nccl.conf; mkdir -p /etc/ucx; "
              "echo UCX_TLS=ud >/etc/ucx/ucx.conf")
    # A layer ends at its first red one.
    found = _finds(net, "UCX_TLS", severity="red")
    lab.check("/etc/ucx/ucx.conf" in found["UCX_TLS"]["text"], "no source")
    net.shell("n1", "rm /etc/ucx/ucx.conf")
    found = _finds(net, "NCCL_NET", severity="red")
    lab.check("/etc/nccl.conf" in found["NCCL_NET"]["text"], "no source")
    net.shell("n1", "rm /etc/nccl.conf")
    _finds(net)


def cluster(net):
    """Another node has other settings; a cable elsewhere has two MTUs."""
    net.shell("n1", f"{MESHCTL} doctor --cluster --json >/tmp/doctor.json || "
              "[ $? = 6 ]")
    meshd.restart(net, "n3", {"MESH_RELAY_CHUNK": "8k"})
    _finds(net, "CLUSTER_SETTINGS", subject="n3", options="--cluster")
    _finds(net)
    meshd.restart(net, "n3", {"MESH_MESHD_RELAY": "n"})
    _finds(net, "CLUSTER_RELAY", subject="n3", options="--cluster")
    meshd.restart(net, "n3")
    near, _ = net.cabled("n3", "n4")[0]
    net.shell("n3", f"ip link set {near} mtu 4000")
    found = _finds(net, "CLUSTER_MTU", options="--cluster")
    lab.check(f"On n3: ip link set {near} mtu 9000"
              == found["CLUSTER_MTU"]["fix"], "another fix", str(found))
    net.shell("n3", f"ip link set {near} mtu 9000")
    _finds(net, options="--cluster")


def twins(net):
    """Two in one subnet; then answers to ARP on both."""
    meshd.start(net, "all")
    with meshd.Watch(net) as watch:
        watch.wait_links(meshd.cabling(net), "the map", limit=FOLLOW_S)
    _store(net)
    found = _finds(net, "TWINS_SHARE_SUBNET", severity="warning")
    for lane in net.lanes("n1"):
        net.shell("n1", "sysctl -qw net.ipv4.conf."
                  f"{lane['netdev']}.arp_ignore=0")
    found = _finds(net, "TWIN_ARP", "TWINS_SHARE_SUBNET")
    lab.check("arp_ignore=1" in found["TWIN_ARP"]["fix"], "another fix")


# ---- order and plan ----------------------------------------------------------

def _order_is_right(net, closed):
    answer = json.loads(net.shell("n1", f"{MESHCTL} order --json"))
    names = answer["nodes"]
    pairs = {frozenset(pair) for pair in net.pairs()}
    lab.check(sorted(names) == sorted(net.nodes()), "other nodes", str(names))
    lab.check(all(frozenset(pair) in pairs for pair in zip(names, names[1:])),
              "neighbours without a cable", str(names))
    lab.check(answer["closed"] == closed and answer["relayed"] == 0,
              "it says otherwise", str(answer))
    host = net.shell("n1", f"{MESHCTL} order --format host --slots 2")
    lab.check(host.strip() == ",".join(f"{name}:2" for name in names),
              "for -H", host)
    ranks = net.shell("n1", f"{MESHCTL} order --format ranks")
    lab.check(ranks.splitlines() == [f"{name} {rank}" for rank, name
                                     in enumerate(names)], "ranks", ranks)


def plan_is_checked(net):
    """Of the running mesh with its addresses: as planned, and then not."""
    _order_is_right(net, closed=True)
    checked = f"{MESHCTL} plan --check"
    net.shell("n1", f"{checked} --from-map --keep")
    lane = net.lanes("n1")[0]
    # The lab's own plan gives n1 the same addresses, others not.
    result = net.exec("n1", "sh", "-c", f"{checked} ring4")
    lab.check(result.status == EXIT_RED and
              result.lines("n2: a0 has not the address 172.30.2.1/24") and
              not result.lines(f"n1: {lane['netdev']} has not"),
              "the plan is not compared with the mesh", result.text)
    net.shell("n1", f"ip address del {lane['addresses'][0]} "
              f"dev {lane['netdev']}")
    deadline = time.monotonic() + FOLLOW_S
    while True:
        result = net.exec("n3", "sh", "-c", f"{checked} ring4")
        if (result.lines(f"n1: {lane['netdev']} has not the address")
                or time.monotonic() > deadline):
            break
        time.sleep(POLL_S)
    lab.check(result.lines(f"n1: {lane['netdev']} has not the address"),
              "n3 does not say so", result.text)
    net.shell("n1", f"ip address add {lane['addresses'][0]} "
              f"dev {lane['netdev']}")


def other_cabling(net):
    """A line has two ends."""
    meshd.start(net, "all")
    with meshd.Watch(net) as watch:
        watch.wait_links(meshd.cabling(net), "the map", limit=FOLLOW_S)
    _order_is_right(net, closed=False)


def _written(directory, form, source):
    subprocess.run([MESHCTL, "plan", source, "--format", form, "--output",
                    directory], check=True, stdout=subprocess.DEVNULL)
    return [os.path.join(top, name) for top, _, names in os.walk(directory)
            for name in names]


def _ini(path):
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str
    parser.read(path)
    return {section: dict(parser[section]) for section in parser.sections()}


def _read_by_netplan(directory, node):
    """What netplan itself makes of a node's file."""
    root = os.path.join(directory, "root")
    os.makedirs(os.path.join(root, "etc", "netplan"))
    shutil.copy(os.path.join(directory, node, "60-mesh.yaml"),
                os.path.join(root, "etc", "netplan"))
    result = subprocess.run(["netplan", "generate", "--root-dir", root],
                            capture_output=True, text=True, check=False)
    lab.check(result.returncode == 0, "netplan refuses it", result.stderr)
    made = os.path.join(root, "run", "systemd", "network")
    return [_ini(os.path.join(made, name)) for name in sorted(os.listdir(made))
            if name.endswith(".network")]


def _read_by_network_manager(path):
    with open(path, encoding="ascii") as stream:
        result = subprocess.run(
            ["nmcli", "--offline", "connection", "modify", "connection.zone",
             ""], stdin=stream, capture_output=True, text=True, check=False)
    lab.check(result.returncode == 0 and "address1=" in result.stdout,
              f"NetworkManager refuses {path}", result.text
              if hasattr(result, "text") else result.stderr)


def plan_files(_net):
    """Each format holds every address; their own readers take them."""
    for source in (f"{PLANS}#P01", "ring4"):
        with tempfile.TemporaryDirectory(prefix="mesh-plan-") as directory:
            paths = _written(directory, "networkd", source)
            got = [_ini(path) for path in paths if path.endswith(".network")]
            lab.check(len(got) == (4 if "#" in source else 8)
                      and all(set(one) == {"Match", "Link", "Network"}
                              and "/24" in one["Network"]["Address"]
                              for one in got), "networkd", str(got))
        with tempfile.TemporaryDirectory(prefix="mesh-plan-") as directory:
            paths = _written(directory, "networkmanager", source)
            paths = [path for path in paths if path.endswith(".nmconnection")]
            lab.check(all(_ini(path)["ipv4"]["method"] == "manual"
                          and os.stat(path).st_mode & 0o077 == 0
                          for path in paths) and paths, "keyfiles")
            if shutil.which("nmcli"):
                for path in paths:
                    _read_by_network_manager(path)
        with tempfile.TemporaryDirectory(prefix="mesh-plan-") as directory:
            _written(directory, "netplan", source)
            if not shutil.which("netplan"):
                lab.note("no netplan here: its file is not read")
                continue
            made = _read_by_netplan(directory, "n1")
            lab.check(sorted(one["Network"]["Address"] for one in made)
                      == ["172.30.1.1/24", "172.30.2.1/24" if "#" in source
                          else "172.30.4.1/24"], "netplan", str(made))


def completion(_net):
    """Commands, and options as the command's own help has them."""
    for words, wanted in (("meshctl doc", "doctor"),
                          ("meshctl plan --from", "--from-map"),
                          ("meshctl order --format ho", "hostfile host"),
                          ("meshd --au", "--auto"),
                          ("mesh-lab upx", "")):
        script = (f"PATH={lab.BUILD}/src/meshctl:{lab.BUILD}/src/meshd:"
                  f"{lab.TOP}/contrib:$PATH; . {lab.TOP}/contrib/completion/"
                  f"{words.split()[0]}; COMP_WORDS=({words}); COMP_CWORD="
                  "$((${#COMP_WORDS[@]} - 1)); "
                  f"_{words.split()[0].replace('-', '_')}; "
                  'echo "${COMPREPLY[*]}"')
        result = subprocess.run(["bash", "-c", script], capture_output=True,
                                text=True, check=False)
        lab.check(result.stdout.strip() == wanted, f"{words}: "
                  f"{result.stdout.strip()!r}, not {wanted!r}", result.stderr)


def main():
    """Most on one ring; what needs other cables on those."""
    if lab.MACHINES and not lab.THOROUGH:
        lab.main([("ring4", [healthy, cables, mtus, limits])])
        return
    lab.main([
        ("ring4", [healthy, addresses, cables, no_meshd, mtus, neighbours,
                   firewall, limits, settings, cluster, plan_is_checked,
                   plan_files, completion]),
        ("topologies.json#P02", [twins]),
        ("line3", [other_cabling]),
    ])


if __name__ == "__main__":
    main()
