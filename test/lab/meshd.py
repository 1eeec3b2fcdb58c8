# SPDX-License-Identifier: BSD-3-Clause
"""What tests of the daemon share: its life on a node, maps, clients."""

import os
import time

import lab

MESHD = os.fspath(lab.BUILD / "src" / "meshd" / "meshd")
SHOW = os.fspath(lab.BUILD / "test" / "meshd" / "map_show")
LOG = "/run/mesh-lab/meshd.log"
# What a change may take until all know it; where the processors are emulated
# or busy with something else, the time is shown only.
CHANGE_S = 3
SLOW_CHANGE_S = 30
BUSY = 1.5
POLL_S = 0.02
# By its name: its process may be a zombie for a while.
UNTIL_GONE = ("while grep -q '@mesh/meshd$' /proc/net/unix; "
              "do sleep 0.05; done")
UNTIL_THERE = UNTIL_GONE.replace("while", "while !")


class Map:
    """What a client printed of a map."""

    def __init__(self, text):
        self.nodes = set()
        self.links = set()
        self.lanes = {}
        self.settled = False
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["nodes"]:
                self.nodes = set(words[1:])
            elif words[:1] == ["settled"]:
                self.settled = words[1] == "1"
            elif words[:1] == ["lane"]:
                self.lanes[(words[1], words[2])] = (words[3], int(words[5]))
            elif words[:1] == ["link"] and words[5] == "usable":
                self.links.add(link(*words[1:5]))


def _change_s():
    busy = os.getloadavg()[0] / os.cpu_count() > BUSY
    return SLOW_CHANGE_S if busy or lab.MACHINES else CHANGE_S


def link(node, netdev, other, other_netdev):
    """A link as Map.links has it."""
    return frozenset([(node, netdev), (other, other_netdev)])


def cabling(net, without=()):
    """The links that the topology has; without: "n1.0", cables not there."""
    result = set()
    pulled = [port.split(".") for port in without]
    for one, other in net.pairs():
        result |= {link(one, own, other, far)
                   for own, far in net.cabled(one, other)
                   if not any((node == one and own.endswith(port))
                              or (node == other and far.endswith(port))
                              for node, port in pulled)}
    return result


def show(net, node):
    """The map of a node's meshd."""
    return Map(net.exec(node, SHOW).succeeded().out)


class Watch:
    """Clients that follow the maps of nodes (all)."""

    def __init__(self, net, nodes=None):
        self.nodes = nodes or net.nodes()
        self.jobs = {node: net.start(node, SHOW, "watch")
                     for node in self.nodes}

    def __enter__(self):
        for job in self.jobs.values():
            job.wait_for("^end$")
        return self

    def __exit__(self, *_):
        for job in self.jobs.values():
            job.stop()

    def map(self, node):
        """The last whole map of a node."""
        text = self.jobs[node].out()
        return Map(text[:text.rindex("end\n")].rpartition("map\n")[2])

    def wait(self, is_right, what, limit=None, nodes=None):
        """Waits until is_right(map) holds on the nodes; the seconds."""
        started = time.monotonic()
        limit = limit or _change_s()
        waiting = list(nodes or self.nodes)
        while waiting:
            waiting = [node for node in waiting
                       if not is_right(self.map(node))]
            seconds = time.monotonic() - started
            lab.check(not waiting or seconds < limit,
                      f"{what}: not on {' '.join(waiting)} within {limit} s",
                      self.jobs[waiting[0]].out() if waiting else "")
            time.sleep(POLL_S if waiting else 0)
        lab.note(f"{what}: on all after {time.monotonic() - started:.2f} s")
        return time.monotonic() - started

    def wait_links(self, links, what, **options):
        """Waits until all have these links."""
        return self.wait(lambda seen: seen.links == links, what, **options)


def stop(net, node):
    """Ends the meshd of a node, or of "all", and waits for it."""
    net.shell(node, f"{lab.BUSYBOX} killall meshd || true; {UNTIL_GONE}")


def start(net, node, env=None):
    """Starts a meshd on a node, or on "all", with settings; it serves when
    this returns."""
    settings = " ".join(f"{name}={value}"
                        for name, value in (env or {}).items())
    net.shell(node, f"{settings} {MESHD} >>{LOG} 2>&1 </dev/null & "
              f"{UNTIL_THERE}")


def restart(net, node, env=None):
    """Both."""
    stop(net, node)
    start(net, node, env)


def status(net, node):
    """Its counters: {line without the number: number}."""
    result = {}
    for line in net.exec(node, SHOW, "status").succeeded().out.splitlines():
        name, _, value = line.rpartition(" ")
        result[name] = float(value)
    return result


def total(counters, name, **labels):
    """The sum of the counters of that name with these labels."""
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(value for line, value in counters.items()
               if line.partition("{")[0] == name
               and all(word in line for word in wanted))
