#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Does meshctl name the right path for every pair, in every topology?

On each node meshd works out the link map from its hellos alone, and meshctl
answers from it. The answers are held against what the topology's file expects
of a pair, and against what follows from its cables (plans.py).
"""

import json
import time

import lab
import meshd
import plans

FILE = "topologies.json"
MESHCTL = lab.BUILD / "src" / "meshctl" / "meshctl"
# Each node's hellos and maps take their time on a busy machine.
SETTLE_S = 60
SETTLE_NODE_S = 1
RETRY_S = 0.3
EXIT_NO_PATH = 1
EXIT_NO_MESHD = 3


def _meshctl(net, node, *words):
    result = net.exec(node, str(MESHCTL), *words)
    lab.check(result.status in (0, EXIT_NO_PATH),
              f"meshctl on {node}: status {result.status}", result.text)
    return result.out


def _answers(net, node):
    """What meshctl on a node says of all others: [answer]."""
    others = [name for name in net.nodes() if name != node]
    lines = _meshctl(net, node, "path", "--json", *others).splitlines()
    lab.check(len(lines) == len(others), f"{node}: {len(lines)} answers")
    return [json.loads(line) for line in lines]


def _expected(spec, node, other):
    """(what the file says of the pair, in the order of its name), or None."""
    expect = spec.get("expect", {})
    for name, forward in ((f"{node}-{other}", True), (f"{other}-{node}",
                                                      False)):
        if name in expect:
            return expect[name], forward
    return None


def _wrong(plan, spec, node, answers):
    """The first thing that is wrong with a node's answers, or None."""
    for answer in answers:
        reason = plans.paths_wrong(plan, node, answer)
        expected = _expected(spec, node, answer["node"])
        if reason is None and expected is not None:
            reason = plans.expectation_missed(*expected, answer)
        if reason is not None:
            return f"{node} to {answer['node']}: {reason}"
    return None


def _judged(net, plan, spec, node):
    """What is wrong with what a node says by now, or None."""
    try:
        answers = _answers(net, node)
    except lab.Failure as error:
        # The map may lack nodes yet.
        return f"{error.reason}: {error.output}"
    return _wrong(plan, spec, node, answers)


def _check_all(net, spec):
    """Every node comes to say what is right, all pairs, in bounded time."""
    plan = plans.Plan(spec)
    waiting = net.nodes()
    deadline = (time.monotonic() + SETTLE_S
                + SETTLE_NODE_S * len(waiting))
    while True:
        wrong = {node: _judged(net, plan, spec, node) for node in waiting}
        waiting = [node for node in waiting if wrong[node] is not None]
        if not waiting:
            return
        lab.check(time.monotonic() < deadline, wrong[waiting[0]],
                  _meshctl(net, waiting[0], "topology"))
        time.sleep(RETRY_S)


def every_pair(net):
    """As the file says."""
    _check_all(net, net.spec)


def every_pair_link_local(net):
    """With addresses in 169.254/16 on all lanes, while meshd runs."""
    spec = plans.link_local(net.spec)
    for node, own in spec["nodes"].items():
        net.shell(node, "; ".join(
            f"ip -4 addr flush dev {lane}; "
            f"ip -6 addr flush dev {lane} scope global; "
            f"ip addr add {addresses[0]} dev {lane}"
            for lane, addresses in own["ifs"].items() if addresses))
    # The file's expectations hold for paths, not for warnings, and rails may
    # pair otherwise: what follows from the cables is what counts.
    _check_all(net, {**spec, "expect": {}})


def kernel_routes(net):
    """Routes to the far subnets change nothing, forwarding or not."""
    for node, via, far in (("n1", "10.1.0.1", "10.1.0.2/31"),
                           ("n3", "10.1.0.2", "10.1.0.0/31")):
        net.shell(node, f"ip route add {far} via {via}")
    net.shell("n2", "sysctl -qw net.ipv4.ip_forward=1")
    net.shell("n1", f"{lab.BUSYBOX} ping -c 2 10.1.0.3")
    _check_all(net, net.spec)


def every_command(net):
    """Drawing, links, GIDs and counters of running nodes."""
    _check_all(net, net.spec)
    for locale, ring in (("C", "n1 - n2 - n3"), ("C.UTF-8", "n1 ─ n2 ─ n3")):
        text = net.shell("n1", f"LC_ALL={locale} {MESHCTL} topology")
        lab.check(ring in text, f"no ring in locale {locale}", text)
    links = _meshctl(net, "n1", "links")
    lab.check("rxe0 port 1 ==> a0 (Up) ==> n2 a1 (rxe0 port 1)" in links
              and "a2 (Up) ==> no link" in links, "links", links)
    gids = {(entry["netdev"], entry["index"]): entry["chosen"] for entry
            in json.loads(_meshctl(net, "n1", "gids", "--json"))}
    lab.check(gids == {("a0", 0): False, ("a0", 4): True, ("a1", 0): False,
                       ("a1", 2): True, ("a2", 0): False}, f"GIDs {gids}")
    counters = json.loads(_meshctl(net, "n1", "status", "--json"))
    sent = {entry["labels"]["lane"]: entry["value"] for entry in counters
            if entry["name"] == "mesh_lane_sent_bytes_total"}
    lab.check(sorted(sent) == ["a0", "a1", "a2"] and all(sent.values()),
              f"bytes sent: {sent}")
    _saved_map(net)


def _saved_map(net):
    """A map that was saved on a node says elsewhere what the node says."""
    text = _meshctl(net, "n2", "topology", "--json")
    _meshctl(net, "n2", "topology", "--save", "/tmp/map")
    again = _meshctl(net, "n2", "topology", "--json", "--map", "/tmp/map")
    lab.check(again == text, "the saved map differs", text + again)


def no_meshd(net):
    """Without meshd: a status of its own, a line that says what to do."""
    meshd.stop(net, "n1")
    result = net.exec("n1", str(MESHCTL), "path", "n2")
    lab.check(result.status == EXIT_NO_MESHD
              and "systemctl start meshd" in result.err,
              f"status {result.status}", result.text)
    lab.check(net.exec("n1", str(MESHCTL), "gids").status == 0,
              "gids needs meshd")


PLANS = ("P01", "P02", "P05", "P06", "P08", "P09", "P11", "one-prefix",
         "two-rings", "twins-one-net", "reused", "noise", "names",
         "idle-twins", "switch", "ring4-lies")
BUILTIN = ("line6", "ring8", "mesh4")
# Machines take long to boot, and 64 of them are too many.
ON_MACHINES = ("P02", "P05", "P11", "names")


def _groups():
    both = [every_pair, every_pair_link_local]
    if not lab.THOROUGH:
        return [(f"{FILE}#odd", [every_command]), (f"{FILE}#P11", both),
                *([(f"{FILE}#P05", both), ("ring8", [every_pair])]
                  if lab.SANITIZED else [])]
    if lab.MACHINES:
        names = [f"{FILE}#{plan}" for plan in ON_MACHINES]
    else:
        names = [f"{FILE}#{plan}" for plan in PLANS] + list(BUILTIN)
    return ([("pair", [no_meshd]), (f"{FILE}#odd", [every_command]),
             (f"{FILE}#routed", [every_pair, kernel_routes,
                                 every_pair_link_local])]
            + [(name, both) for name in names]
            + [("ring64", [every_pair_link_local])] * (not lab.MACHINES))


if __name__ == "__main__":
    lab.main(_groups())
