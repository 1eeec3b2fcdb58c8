#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""meshd: the map it makes, and how fast it follows what happens."""

import lab
import meshd

PLANS = "topologies.json"
SETTLE_S = 30
LEAVE_S = 20
DEVICE_S = 30
KEY = "/run/mesh-lab/key"
RSS_KB = 32768
# Random bytes, some with the magic of a hello or of the map in front, to all
# on a netdev; then nonsense on the local socket.
HOSTILE = """
import random, socket, sys
rng = random.Random(1)
index = socket.if_nametoindex(sys.argv[1])
udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
for i in range(20000):
    start = rng.choice((b"", b"MHEL", b"MMAP", b"MHEL\\0\\1\\0\\0"))
    try:
        udp.sendto(start + rng.randbytes(rng.randrange(1400)),
                   ("ff02::114", 18518, 0, index))
    except OSError:
        pass
for i in range(100):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as local:
        local.settimeout(20)
        local.connect("\\0mesh/meshd")
        local.send(rng.randbytes(rng.randrange(1, 9000)))
        try:
            while local.recv(20000):
                pass
        except ConnectionResetError:
            pass
"""


def map_is_right(net):
    """Every node has every cable, and no other link."""
    with meshd.Watch(net) as watch:
        watch.wait_links(meshd.cabling(net), "the map", limit=SETTLE_S)
        for node in net.nodes():
            lab.check(watch.map(node).nodes == set(net.nodes()),
                      f"{node} has other nodes",
                      " ".join(sorted(watch.map(node).nodes)))
    for node in net.nodes():
        counters = meshd.status(net, node)
        lab.check(meshd.total(counters, "mesh_nodes") == len(net.nodes()),
                  f"{node} counts other nodes", str(counters))


def cable_pulled_and_put_back(net):
    """All know it in time, whether the other end has lost its carrier too."""
    everything = meshd.cabling(net)
    port = net.spec["cables"][0][0]
    with meshd.Watch(net) as watch:
        for both in (False, True):
            net.link(port, "down", both=both)
            watch.wait_links(meshd.cabling(net, [port]),
                             f"pulled, {'both ends' if both else 'one end'}")
            net.link(port, "up", both=both)
            watch.wait_links(everything, "put back")


def silent_node(net):
    """A node that stands still is off the map; its carriers stay up."""
    rest = [node for node in net.nodes() if node != "n2"]
    without = {link for link in meshd.cabling(net)
               if not any(node == "n2" for node, _ in link)}
    with meshd.Watch(net) as watch:
        net.power("n2", "pause")
        try:
            watch.wait_links(without, "silent", nodes=rest)
        finally:
            net.power("n2", "resume")
        watch.wait_links(meshd.cabling(net), "resumed", limit=SETTLE_S)


def restarted(net):
    """A meshd that is killed is missed, a new one is found by all."""
    rest = [node for node in net.nodes() if node != "n2"]
    without = {link for link in meshd.cabling(net)
               if not any(node == "n2" for node, _ in link)}
    with meshd.Watch(net) as watch:
        meshd.stop(net, "n2")
        watch.jobs["n2"].wait_for("^gone$")
        watch.wait_links(without, "killed", nodes=rest)
        meshd.start(net, "n2")
        watch.wait_links(meshd.cabling(net), "started again", limit=SETTLE_S)


def restarted_at_once(net):
    """The old instance's hellos and records do not get in the way."""
    everything = meshd.cabling(net)
    with meshd.Watch(net) as watch:
        meshd.restart(net, "n2")
        watch.wait(lambda seen: seen.links == everything, "restarted",
                   nodes=["n1", "n3"], limit=SETTLE_S)
        watch.wait_links(everything, "and known to all", limit=SETTLE_S)


def address_comes_and_goes(net):
    """A new address and a lost one are told to all."""
    lane = net.lanes("n1")[0]["netdev"]
    key = ("n1", lane)
    with meshd.Watch(net) as watch:
        before = watch.map("n1").lanes[key][1]
        net.shell("n1", f"ip address add 198.51.100.1/24 dev {lane}")
        watch.wait(lambda seen: seen.lanes[key][1] == before + 1, "added")
        net.shell("n1", f"ip address del 198.51.100.1/24 dev {lane}")
        watch.wait(lambda seen: seen.lanes[key][1] == before, "removed")


def device_comes_and_goes(net):
    """meshd does not hold up who takes a device out, and finds a new one."""
    lab.needs_machines("takes devices of the kernel out")
    lane = net.lanes("n1")[0]
    port = f"n1.{lane['port']}"
    with meshd.Watch(net) as watch:
        net.shell("n1", f"rdma link delete {lane['ibdev']}", deadline=DEVICE_S)
        watch.wait_links(meshd.cabling(net, [port]), "taken out",
                         limit=SETTLE_S)
        net.shell("n1", f"rdma link add {lane['ibdev']} type rxe netdev "
                  f"{lane['netdev']}")
        watch.wait_links(meshd.cabling(net), "put in", limit=SETTLE_S)


def node_joins(net):
    """The last node of a line is known as soon as its meshd starts."""
    last = net.nodes()[-1]
    rest = net.nodes()[:-1]
    without = {link for link in meshd.cabling(net)
               if not any(node == last for node, _ in link)}
    meshd.stop(net, last)
    with meshd.Watch(net, rest) as watch:
        watch.wait_links(without, "without it")
        meshd.start(net, last)
        watch.wait_links(meshd.cabling(net), "with it", limit=SETTLE_S)


def one_per_node(net):
    """A second meshd says who serves the node, and leaves."""
    result = net.exec("n1", meshd.MESHD)
    lab.check(result.status == 3, f"status {result.status}", result.text)
    pid = net.shell("n1", f"{lab.BUSYBOX} pidof meshd").strip()
    lab.check(result.lines(f"served by process {pid} of user 0"),
              "it does not say by whom", result.text)
    lab.check(meshd.show(net, "n1").nodes, "the first one is harmed")


def starts_by_itself_and_leaves(net):
    """Where none runs, clients start one, which leaves when idle."""
    meshd.stop(net, "n1")
    env = {"MESH_MESHD_PATH": meshd.MESHD, "MESH_MESHD_IDLE": "1s"}
    # Many at a time, as the ranks of a job do.
    script = f"for i in 1 2 3 4 5; do {meshd.SHOW} --auto & done; wait"
    result = net.exec("n1", "sh", "-c", script, env=env).succeeded()
    lab.check(result.out.count("end\n") == 5, "not all got a map", result.text)
    seen = meshd.Map(result.out)
    lab.check(seen.settled and seen.links == meshd.cabling(net),
              "the map is not right", result.text)
    net.shell("n1", meshd.UNTIL_GONE, deadline=LEAVE_S)
    result = net.exec("n1", meshd.SHOW).failed()
    lab.check(result.lines("no meshd"), "another reason", result.text)
    meshd.start(net, "n1")


def cannot_be_started(net):
    """A client says what is wrong, in bounded time."""
    meshd.stop(net, "n1")
    for path, text in (("/no/such/meshd", "cannot be started"),
                       ("/bin/false", "did not start")):
        result = net.exec("n1", meshd.SHOW, "--auto",
                          env={"MESH_MESHD_PATH": path}).failed()
        lab.check(result.lines(text), "no line says so", result.text)
    meshd.start(net, "n1")


def other_users_meshd(net):
    """A client trusts root's and its own user's, no other."""
    user = "nobody"
    if net.exec("n1", lab.BUSYBOX, "su", "-s", "/bin/sh", user, "-c",
                "true").status != 0:
        raise lab.Skip("this fabric has root only")
    if net.exec("n1", lab.BUSYBOX, "su", "-s", "/bin/sh", user, "-c",
                f"test -x {meshd.MESHD}").status != 0:
        raise lab.Skip(f"{lab.BUILD} can be read by its owner only")
    meshd.stop(net, "n1")
    net.shell("n1", f"{lab.BUSYBOX} su -s /bin/sh {user} -c "
              f"'{meshd.MESHD} >/tmp/meshd.log 2>&1 </dev/null &'")
    net.shell("n1", meshd.UNTIL_THERE)
    result = net.exec("n1", meshd.SHOW).failed()
    lab.check(result.lines("whom this process does not trust"),
              "no line says so", result.text)
    # It needs no privilege to do its work; its own user may ask it.
    result = net.exec("n1", lab.BUSYBOX, "su", "-s", "/bin/sh", user, "-c",
                      meshd.SHOW).succeeded()
    lab.check(meshd.Map(result.out).links == meshd.cabling(net),
              f"the map is not right for {user}", result.text)
    meshd.restart(net, "n1")


def shared_key(net):
    """Who has no key is refused by those who have it."""
    for node in net.nodes():
        net.shell(node, f"umask 077; echo a shared secret of a mesh >{KEY}")
    env = {"MESH_MESHD_KEY_FILE": KEY}
    everything = meshd.cabling(net)
    without = {link for link in everything
               if not any(node == "n1" for node, _ in link)}
    rest = [node for node in net.nodes() if node != "n1"]
    for node in rest:
        meshd.restart(net, node, env)
    with meshd.Watch(net) as watch:
        watch.wait_links(without, "with a key but for n1", limit=SETTLE_S,
                         nodes=rest)
        # What n1 has heard of the others before outlives their links to it.
        watch.wait(lambda seen: not any(node == "n1" for link in seen.links
                                        for node, _ in link),
                   "n1 alone", limit=SETTLE_S, nodes=["n1"])
        for node in ("n1", "n2"):
            counters = meshd.status(net, node)
            refused = meshd.total(counters, "mesh_hellos_refused_total",
                                  reason="KEY")
            lab.check(refused > 0, f"{node} counts none", str(counters))
            lab.check("KEY" in net.shell(node, f"cat {meshd.LOG}"),
                      f"{node} logs none")
        meshd.restart(net, "n1", env)
        watch.wait_links(everything, "with a key", limit=SETTLE_S)
    net.shell("n1", f"chmod 644 {KEY}")
    meshd.stop(net, "n1")
    result = net.exec("n1", meshd.MESHD, env=env).failed()
    lab.check(result.lines("chmod 600"), "no line says so", result.text)
    for node in net.nodes():
        meshd.restart(net, node)


def limits_are_named(net):
    """What hits a limit is refused with the limit's name."""
    meshd.restart(net, "n1", {"MESH_MESHD_CLIENTS": 2, "MESH_MESHD_NODES": 2})
    with meshd.Watch(net, ["n1"]):
        # Asking for the counters takes a second connection of its own.
        result = net.exec("n1", meshd.SHOW, "status").failed()
        lab.check(result.lines("LIMIT_CLIENTS"), "no name", result.text)
    net.shell("n1", f"while ! {meshd.SHOW} status; do sleep 0.1; done")
    _refused(net, "mesh_map_refused_total", "LIMIT_NODES")
    _refused(net, "mesh_clients_refused_total", "LIMIT_CLIENTS")
    meshd.restart(net, "n1", {"MESH_MESHD_LANES": 1})
    meshd.show(net, "n1")
    _refused(net, "mesh_lanes_refused_total", "LIMIT_LANES")
    meshd.restart(net, "n1")


def _refused(net, name, reason):
    counters = meshd.status(net, "n1")
    lab.check(meshd.total(counters, name, reason=reason) > 0,
              f"{reason} is not counted", str(counters))
    lab.check(reason in net.shell("n1", f"cat {meshd.LOG}"),
              f"{reason} is not logged")


def hostile_bytes(net):
    """Floods and nonsense are counted, and harm nothing."""
    everything = meshd.cabling(net)
    own, far = net.cabled("n2", "n1")[0]
    net.exec("n2", "python3", "-c", HOSTILE, own).succeeded()
    with meshd.Watch(net) as watch:
        watch.wait_links(everything, "after the flood", limit=SETTLE_S)
    flooded, local = meshd.status(net, "n1"), meshd.status(net, "n2")
    # An emulated processor does not flood anybody.
    rate = ["LIMIT_RATE"] if lab.FABRIC == "swverbs" else []
    for reason in ["MALFORMED", *rate]:
        lab.check(meshd.total(flooded, "mesh_hellos_refused_total", lane=far,
                              reason=reason) > 0,
                  f"{reason} is not counted", str(flooded))
    lab.check(meshd.total(local, "mesh_clients_refused_total",
                          reason="MALFORMED") > 0,
              "nonsense is not counted", str(local))
    for node in ("n1", "n2"):
        rss = int(net.shell(node, f"grep VmRSS /proc/$({lab.BUSYBOX} pidof "
                            "meshd)/status").split()[1])
        lab.check(rss < RSS_KB, f"meshd of {node} takes {rss} kB")


def without_ipv6(net):
    """IPv4 serves where a netdev has no IPv6, also beside others that have."""
    lane = net.cabled("n1", "n2")[0][0]
    everything = meshd.cabling(net)
    key = f"net.ipv6.conf.{lane}.disable_ipv6"
    net.shell("n1", f"sysctl -qw {key}=1")
    meshd.restart(net, "n1")
    with meshd.Watch(net, [node for node in net.nodes()
                           if node != "n1"]) as watch:
        watch.wait_links(everything, "with IPv4 on a lane", limit=SETTLE_S)
    with meshd.Watch(net) as watch:
        net.shell("n1", f"sysctl -qw {key}=0")
        watch.wait_links(everything, "with IPv6 again", limit=SETTLE_S)


def sixty_four(net):
    """A large ring; what it takes is shown."""
    ends = ["n1", "n33"]
    everything = meshd.cabling(net)
    with meshd.Watch(net, ends) as watch:
        watch.wait_links(everything, "64 nodes", limit=SETTLE_S * 2)
        net.link("n10.0", "down")
        watch.wait_links(meshd.cabling(net, ["n10.0"]), "pulled",
                         limit=SETTLE_S)
        net.link("n10.0", "up")
        watch.wait_links(everything, "put back", limit=SETTLE_S)
    for node in net.nodes()[::8]:
        lab.check(meshd.show(net, node).links == everything,
                  f"{node} has another map")
    text = net.shell("n1", "grep VmRSS /proc/$(%s pidof meshd)/status; cat "
                     "/proc/$(%s pidof meshd)/stat" % ((lab.BUSYBOX,) * 2))
    lab.note(f"meshd of n1: {text.splitlines()[0]}, "
             f"{sum(map(int, text.splitlines()[1].split()[13:15]))} ticks")


# Where only some of it is run: what the kernel has a part in, or, under a
# sanitizer, all that takes bytes from others.
QUICK = ([map_is_right, cable_pulled_and_put_back, restarted,
          address_comes_and_goes, device_comes_and_goes]
         + [hostile_bytes, limits_are_named, shared_key, without_ipv6]
         * lab.SANITIZED)


def main():
    """All; large meshes on namespaces only, where they are up at once."""
    if not lab.THOROUGH:
        lab.main([("ring4", QUICK)])
        return
    groups = [
        ("ring4", [map_is_right, cable_pulled_and_put_back, silent_node,
                   restarted, restarted_at_once, address_comes_and_goes,
                   device_comes_and_goes,
                   one_per_node, starts_by_itself_and_leaves,
                   cannot_be_started, other_users_meshd, without_ipv6,
                   hostile_bytes, limits_are_named, shared_key]),
        (f"{PLANS}#P02", [map_is_right]),
        (f"{PLANS}#P09", [map_is_right]),
    ]
    if not lab.MACHINES:
        groups += [
            ("line6", [map_is_right, node_joins]),
            ("ring8", [map_is_right, cable_pulled_and_put_back]),
            (f"{PLANS}#P01", [map_is_right, cable_pulled_and_put_back]),
            ("ring64", [sixty_four]),
        ]
    lab.main(groups)


if __name__ == "__main__":
    main()
