#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Every pair of nodes talks, over relays where no cable joins them."""

import os
import re
import time

import lab
import meshd
import traffic

MIB = 1 << 20
PERFTEST = "ucx_perftest"
TRANSPORT = os.fspath(lab.BUILD / ".libs" / "libuct_mesh.so.0")
ENV = {"MESH_MESHD": "auto", "MESH_MESHD_PATH": meshd.MESHD}
# The longest that a failure may take to become an error.
BOUND_S = 30
PROGRAM_S = 200
STOP_S = 15
# Time for a new cable to be found.
ADD_S = 5
# Emulated machines do a few hundred messages in a second.
MESSAGES = 3000 if lab.MACHINES else 100000
# Of what both relays of a diagonal carry, the least that each one does.
SHARE = 0.25


def _run(net, program, *arguments, env=None, **options):
    """A job that succeeds without a word of UCX."""
    result = net.mpirun(program, *arguments, deadline=PROGRAM_S,
                        env={**ENV, **(env or {})}, **options)
    result.succeeded()
    loud = result.lines(r"\b(WARN|ERROR)\b")
    lab.check(not loud, f"the job's output has {loud[:1]}", result.text)
    return result


def _far_pairs(net):
    names = net.nodes()
    return [(one, other) for i, one in enumerate(names)
            for other in names[i + 1:] if not net.cabled(one, other)]


# ---- data --------------------------------------------------------------------

def every_pair(net):
    """Every two nodes play ping-pong with 1 byte to 1 MiB."""
    result = _run(net, "pairs", "-M", MIB)
    count = len(net.nodes())
    lab.check(len(result.lines("^pair ")) == count * (count - 1) // 2,
              "not every pair played", result.text)


def sizes_up_to_16_mib(net):
    """Each byte of all sizes, odd ones and alignments too, over relays."""
    _run(net, "sweep", hosts=list(_far_pairs(net)[-1]))


def all_to_all(net):
    """MPI_Alltoall on all nodes."""
    _run(net, "alltoall", MIB)


def several_ranks_per_node(net):
    """Lanes, relays and the same node at the same time."""
    _run(net, "sweep", MIB // 16, 8, slots=2)


def many_ranks_all_to_all(net):
    """Four ranks on each node of a ring of 8: meshd's defaults let all
    connections be, those that both ends begin at a time, too."""
    _run(net, "alltoall", 64, 1, slots=4)


def thread_multiple(net):
    """Four threads of each rank at the same time."""
    _run(net, "threads", 6)


def onesided(net):
    """MPI windows by UCX's RMA."""
    _run(net, "onesided", MIB // 4, mca={"osc": "ucx"})


def mixed_messages(net):
    """Messages of random sizes in both directions: none is lost, doubled or
    out of order."""
    lab.note(f"{MESSAGES} messages in each direction")
    _run(net, "mixed", MESSAGES, hosts=list(_far_pairs(net)[0]))


def slow_receiver(net):
    """A receiver that sleeps holds up nobody else, and all arrives."""
    _run(net, "flood", 1500)


def both_relays_of_a_diagonal(net):
    """Large messages use both disjoint paths, and no other lane."""
    one, other = _far_pairs(net)[0]
    watch = traffic.Watch(net)
    result = _run(net, "pairs", "-m", MIB, "-M", MIB, "-r", 7,
                  hosts=[one, other])
    total = int(re.search(r"^pair 0-1: (\d+) bytes each way$", result.out,
                          re.MULTILINE).group(1))
    moved = watch.moved()
    for relay in net.nodes():
        if relay in (one, other):
            continue
        for end in (one, other):
            (own, _), = net.cabled(relay, end)
            now = moved[relay, own]
            lab.check(min(now.tx_bytes, now.rx_bytes) >= SHARE * total,
                      f"{relay}.{own} moved too little of {total} bytes",
                      traffic.table(moved))
            lab.check(max(now.tx_bytes, now.rx_bytes) <=
                      (1 - SHARE) * total * traffic.OVERHEAD,
                      f"{relay}.{own} moved too much of {total} bytes",
                      traffic.table(moved))


def direct_pairs_use_their_cable(net):
    """With meshd, too, neighbours use their own cable and nothing else."""
    for hosts in net.pairs()[:2]:
        watch = traffic.Watch(net)
        result = _run(net, "pairs", "-M", MIB, hosts=list(hosts))
        total = int(re.search(r"^pair 0-1: (\d+) bytes each way$", result.out,
                              re.MULTILINE).group(1))
        (lane, far), = net.cabled(*hosts)
        watch.check({(hosts[0], lane): total, (hosts[1], far): total})


# ---- faults ------------------------------------------------------------------

def _perftest(net, node, *arguments):
    return net.start(node, PERFTEST, *arguments, "-t", "tag_bw", "-s", "10000",
                     "-n", "100000000",
                     env={**ENV, "LD_PRELOAD": TRANSPORT,
                          "UCX_TLS": "mesh_rc,self"})


def _perftest_pair(net, one, other):
    """{node: Job} of two that are busy with each other."""
    host = net.shell(one, "hostname -I").split()[0]
    server = _perftest(net, one)
    net.shell(one, "until ss -ltn | grep -q :13337; do sleep 0.2; done")
    client = _perftest(net, other, host)
    client.wait_for(r"^\[thread 0\]|^ *\d+ +[\d.]+", 60)
    return {one: server, other: client}


def _ends_in_time(net, job, since):
    result = job.wait(max(1, BOUND_S - (time.monotonic() - since)))
    if result.status is None:
        net.exec("all", lab.BUSYBOX, "killall", "-9", PERFTEST)
    return result.failed()


def _check_error(result, other):
    """Its first error names the peer, that it is relayed, and both GIDs."""
    lines = result.lines("ERROR.*local GID")
    lab.check(lines, f"{result.what}: no error tells of a connection",
              result.text)
    for word in (f"to node {other} over relay", "remote GID"):
        lab.check(word in lines[0], f"the error does not say '{word}'",
                  lines[0])


def _progress(job):
    return len(job.out().splitlines())


def _check_goes_on(job):
    """The job prints more lines."""
    seen = _progress(job)
    end = time.monotonic() + BOUND_S
    while _progress(job) < seen + 2:
        lab.check(job.process.poll() is None and time.monotonic() < end,
                  f"{job.what} does not go on", job.out() + job.err())
        time.sleep(lab.POLL_S)


def peer_killed(net):
    """kill -9 behind a relay: the other end finds out, whichever it is."""
    ends = _far_pairs(net)[0]
    for victim, other in (ends, ends[::-1]):
        jobs = _perftest_pair(net, *ends)
        since = time.monotonic()
        net.exec(victim, lab.BUSYBOX, "killall", "-9", PERFTEST).succeeded()
        _check_error(_ends_in_time(net, jobs[other], since), victim)


def stopped_peer_goes_on(net):
    """A stopped process behind a relay is no failure."""
    job = net.start_mpirun("traffic", STOP_S + 10, env=ENV,
                           hosts=list(_far_pairs(net)[0]))
    job.wait_for(r"^round \d+", 90)
    node, = [name for name in _far_pairs(net)[0][1:]]
    pid = job.wait_for(rf"^rank \d+ pid (\d+) host {node}$").group(1)
    net.exec(node, "kill", "-STOP", pid).succeeded()
    time.sleep(STOP_S)
    lab.check(job.process.poll() is None, "the job has ended",
              job.out() + job.err())
    net.exec(node, "kill", "-CONT", pid).succeeded()
    result = job.wait(90).succeeded()
    lab.check(not result.lines(r"\b(WARN|ERROR)\b"), "the job has errors",
              result.text)


def cable_pulled(net):
    """What crossed it fails by name, new connections take the other way."""
    one, other = _far_pairs(net)[0]
    jobs = _perftest_pair(net, one, other)
    since = time.monotonic()
    net.link("n1.0", "down")
    try:
        for node, peer in ((one, other), (other, one)):
            _check_error(_ends_in_time(net, jobs[node], since), peer)
        watch = traffic.Watch(net)
        _run(net, "pairs", "-M", MIB, hosts=[one, other])
        moved = watch.moved()
        (lane, _), = net.cabled("n2", other)
        traffic.check_idle(("n2", lane), moved["n2", lane], moved)
        _run(net, "pairs", "-M", 65536, hosts=["n1", "n2"])
    finally:
        net.link("n1.0", "up")


def relay_killed(net):
    """meshd of the relay dies: what it relayed fails by name, its node's own
    connections go on; started again it relays again."""
    relay = net.nodes()[1]
    one, other = net.nodes()[0], net.nodes()[2]
    direct = net.start_mpirun("traffic", 600, env=ENV, hosts=[one, relay])
    try:
        direct.wait_for(r"^round \d+", 90)
        jobs = _perftest_pair(net, one, other)
        since = time.monotonic()
        net.shell(relay, f"{lab.BUSYBOX} killall -9 meshd; "
                  f"{meshd.UNTIL_GONE}")
        for node, peer in ((one, other), (other, one)):
            _check_error(_ends_in_time(net, jobs[node], since), peer)
        _check_goes_on(direct)
        meshd.start(net, relay)
        _run(net, "pairs", "-M", MIB, hosts=[one, other])
        _check_goes_on(direct)
    finally:
        direct.stop()
        net.kill_ranks("traffic")


def node_added(net):
    """A node that is cabled to the end of a line while a job runs is reached
    by that job, over a relay, too."""
    meshd.stop(net, "n3")
    net.link("n2.0", "down", both=True)
    job = net.start_mpirun("spawn", 1, "n3", ADD_S, env=ENV, ranks=2,
                           mca={"rmaps_base_oversubscribe": "1"})
    job.wait_for("^connected$")
    net.link("n2.0", "up", both=True)
    meshd.start(net, "n3")
    result = job.wait(PROGRAM_S).succeeded()
    lab.check(not result.lines(r"\b(WARN|ERROR)\b"), "the job has errors",
              result.text)


def meshd_starts_by_itself(net):
    """Without a service the first process of each node starts one, which
    leaves when nobody needs it."""
    meshd.stop(net, "all")
    try:
        _run(net, "pairs", "-M", 65536, env={"MESH_MESHD_IDLE": "2s"})
        net.shell("all", meshd.UNTIL_GONE, deadline=BOUND_S)
    finally:
        meshd.start(net, "all")


def main():
    """Runs the tests of this file."""
    if not lab.THOROUGH:
        lab.main([("ring4", [every_pair, both_relays_of_a_diagonal,
                             all_to_all, cable_pulled]),
                  ("line3", [node_added])])
        return
    lab.main([
        ("ring4", [every_pair, both_relays_of_a_diagonal,
                   direct_pairs_use_their_cable, sizes_up_to_16_mib,
                   all_to_all, several_ranks_per_node, thread_multiple,
                   onesided, mixed_messages, slow_receiver, peer_killed,
                   stopped_peer_goes_on, cable_pulled]),
        ("line4", [meshd_starts_by_itself, every_pair, all_to_all,
                   relay_killed]),
        ("line3", [node_added]),
        ("line6", [every_pair]),
        ("ring8", [every_pair, many_ranks_all_to_all]),
        ("topologies.json#two-rings", [every_pair, all_to_all]),
        ("topologies.json#ring4-lies", [every_pair,
                                        direct_pairs_use_their_cable]),
    ])


if __name__ == "__main__":
    main()
