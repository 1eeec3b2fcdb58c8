#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The NCCL plugin on cables: every table, every pair, and what breaks."""

import atexit
import os
import shutil
import tempfile
import time

import lab
import traffic

RANK = os.fspath(lab.BUILD / "test" / "nccl-harness" / "rank")
PLUGIN = os.fspath(lab.BUILD / ".libs" / "libnccl-net-mesh.so")
GPU = os.fspath(lab.BUILD / "test" / "nccl-harness" / ".libs" /
                "libcuda.so.1")
MESHD = os.fspath(lab.BUILD / "src" / "meshd" / "meshd")
ENV = {"MESH_MESHD": "auto", "MESH_MESHD_PATH": MESHD, "NCCL_MESH_DEBUG": "1"}
# A call takes as long as it takes where the processors are emulated.
PATIENCE = {"HARNESS_LIMIT_MS": "60000", "NCCL_MESH_CONNECT_TIMEOUT_SEC": "60",
            "NCCL_MESH_ACCEPT_TIMEOUT_SEC": "150",
            } if lab.MACHINES else {}
RUN_S = 150 if lab.FABRIC != "vm" else 400
# How long an error may take.
BOUND_S = 45
MIB = 1 << 20
TWIN_SHARE = 0.25
# Longer than a queue pair goes on trying.
STOPPED_S = 6
LONG_STOP_S = 120
LONG_S = 900
# What all meshds of a node have: memory in kB, mappings, open files.
HOLDS = """
for pid in $(busybox pidof meshd); do
    echo $(awk '/^VmRSS/ {print $2}' /proc/$pid/status) \\
        $(wc -l </proc/$pid/maps) $(ls /proc/$pid/fd | wc -l)
done""".replace("busybox", lab.BUSYBOX)
# For what meshd does besides: maps, watches.
GROWTH = (256, 4, 4)


class Ranks:
    """One rank of the harness on each node."""

    def __init__(self, net, *arguments, env=None):
        # What the ranks tell each other.
        self.directory = tempfile.mkdtemp(dir=lab.SHARES[0])
        nodes = net.nodes()
        self.jobs = [
            net.start(node, RANK, "--plugin", PLUGIN, "--directory",
                      self.directory, "--rank", str(rank), "--ranks",
                      str(len(nodes)), *map(str, arguments),
                      env={**ENV, **PATIENCE, **(env or {})})
            for rank, node in enumerate(nodes)]

    def started(self):
        """Waits until all have their comms."""
        for job in self.jobs:
            job.wait_for(r"rank \d+: \d+ comms")

    def results(self, deadline=RUN_S):
        """What each has to say at its end."""
        end = time.monotonic() + deadline
        found = [job.wait(max(1, end - time.monotonic()))
                 for job in self.jobs]
        shutil.rmtree(self.directory, ignore_errors=True)
        return found


def _run(net, *arguments, env=None):
    """A run that succeeds on all nodes; what they printed."""
    return [result.succeeded()
            for result in Ranks(net, *arguments, env=env).results()]


def every_table(net):
    """Each version of the interface moves the same data."""
    for table in range(7, 13):
        _run(net, "--table", table, "--messages", 15)


def every_pair(net):
    """All ranks with each other, over relays where no cable joins them."""
    _run(net, "--messages", 40, "--max-size", MIB // 2)


def gpu_memory(net):
    """The same from and to memory that the processor cannot touch."""
    for result in _run(net, "--gpu", GPU, "--messages", 40, "--max-size",
                       MIB // 2):
        lab.check(result.lines("right, memory of the GPU"),
                  "the GPU's memory was not used", result.text)


def few_messages(net):
    """The same, as much as emulated machines can do."""
    _run(net, "--messages", 8, "--max-size", 65536, "--depth", 2)


def several_comms(net):
    """Communicators at the same time, two comms each way between ranks."""
    _run(net, "--communicators", 2, "--connections", 2, "--table", 11,
         "--messages", 15)


def coming_and_going(net):
    """Nothing is left of a communicator, nor of the plugin."""
    _run(net, "--cycles", 3, "--messages", 6)


def without_meshd(net):
    """Subnets tell the way where no daemon does."""
    results = _run(net, "--messages", 15, env={"MESH_MESHD": "off"})
    lab.check(not results[0].lines("meshd"), "a word of meshd",
              results[0].text)


def no_way(net):
    """Without a cable and without meshd: an error that says what to do."""
    ranks = Ranks(net, "--messages", 1, env={"MESH_MESHD": "off"})
    for rank, result in enumerate(ranks.results(BOUND_S)):
        result.failed()
        lab.check(result.lines("shares a subnet.*run meshd"),
                  f"rank {rank}: no line that names the remedy", result.text)


def over_tcp(net):
    """Without RDMA, and one warning says so."""
    for result in _run(net, "--messages", 15,
                       env={"NCCL_MESH_DISABLE_RDMA": "1"}):
        loud = result.lines("NOT RDMA.*NCCL_MESH_DISABLE_RDMA")
        lab.check(len(loud) == 1, f"{len(loud)} warnings of TCP",
                  result.text)


def both_rails(net):
    """Large messages are spread over both twins of a cable."""
    rails = net.cabled(*net.nodes())
    watch = traffic.Watch(net)
    _run(net, "--messages", 30, "--max-size", MIB, "--max-group", 1)
    moved = watch.moved()
    for node, twins in zip(net.nodes(), zip(*rails)):
        sent = [moved[node, twin].tx_bytes for twin in twins]
        lab.check(min(sent) >= TWIN_SHARE * sum(sent),
                  f"{node}: the twins did not share the load: {sent}",
                  traffic.table(moved))


def both_ways(net):
    """Where two relays lead to a node, both carry what is large."""
    watch = traffic.Watch(net)
    results = _run(net, "--messages", 30, "--max-size", MIB, "--max-group", 1,
                   "--pairs", "0-2")
    for rank in (0, 2):
        lab.check(results[rank].lines("rail 2 of 2.* via "),
                  f"rank {rank} has one way only", results[rank].text)
    moved = watch.moved()
    sent = [sum(lane.tx_bytes for (node, _), lane in moved.items()
                if node == relay) for relay in ("n2", "n4")]
    lab.check(min(sent) >= TWIN_SHARE * sum(sent),
              f"the relays did not share the load: {sent}",
              traffic.table(moved))


def _breaks(net, arguments, harm, victims=()):
    """Something is done to ranks at work: all others get an error that says
    with whom, and close."""
    ranks = Ranks(net, "--messages", 1000000, "--max-size", 65536, *arguments)
    ranks.started()
    time.sleep(0.5)
    harm()
    for rank, result in enumerate(ranks.results(BOUND_S)):
        if rank in victims:
            continue
        result.succeeded()
        lab.check(result.lines("as expected"), f"rank {rank}: no error",
                  result.text)
        lab.check(result.lines("NET/Mesh ERROR.*GID"),
                  f"rank {rank}: no line that names GIDs", result.text)


def pulled_cable(net):
    """Both ends of a cable get an error."""
    _breaks(net, ["--expect-error"], lambda: net.link("n1.0", "down"))
    net.link("n1.0", "up")


def killed_rank(net):
    """A rank that dies is an error for all others."""
    _breaks(net, ["--expect-error"],
            lambda: _signal(net, "n2", "-KILL"),
            victims=[1])


def _signal(net, node, signal):
    """To the rank of a node."""
    net.exec(node, lab.BUSYBOX, "killall", signal, "rank").succeeded()


def _stops(net, *arguments, env=None):
    """Rank 1 stops itself in the midst of its messages: its process alone. A
    node that is silent as a whole is a dead one, whose cables time out."""
    ranks = Ranks(net, "--messages", 1000, "--max-size", 16384, "--sleeper",
                  1, *arguments,
                  env={"HARNESS_LIMIT_MS": "60000", **(env or {})})
    ranks.jobs[1].wait_for(r"rank 1: stops")
    return ranks


def stopped_rank(net):
    """A rank that is stopped for a while is no error for the other."""
    ranks = _stops(net)
    time.sleep(STOPPED_S)
    lab.check(ranks.jobs[0].process.poll() is None, "rank 0 did not wait",
              ranks.jobs[0].out() + ranks.jobs[0].err())
    _signal(net, "n2", "-CONT")
    for result in ranks.results():
        result.succeeded()


def stopped_too_long(net):
    """With a short timeout it is one, and the line says what to do. What is
    long is surely under way."""
    ranks = _stops(net, "--messages", 100, "--max-size", 4 << 20,
                   "--expect-error", env={"NCCL_MESH_TIMEOUT_SEC": "2"})
    result = ranks.jobs[0].wait(BOUND_S)
    _signal(net, "n2", "-CONT")
    ranks.results(BOUND_S)
    result.succeeded()
    lab.check(result.lines("no progress for .*NCCL_MESH_TIMEOUT_SEC"),
              "no line that says so", result.text)


def _stopped_long(net, *arguments):
    """Rank 1, or 2 over relays, stops for two minutes and the timeout is
    longer: no error, and the ranks have seen that it was so."""
    ranks = Ranks(net, "--messages", 400, "--max-size", 16384, "--seconds",
                  LONG_STOP_S, *arguments,
                  env={"HARNESS_LIMIT_MS": "200000",
                       "NCCL_MESH_TIMEOUT_SEC": "300"})
    for result in ranks.results(RUN_S + LONG_STOP_S):
        result.succeeded()
        for line in result.lines("pause|stops|goes on"):
            lab.note(line)


def stopped_two_minutes(net):
    """Over a cable."""
    _stopped_long(net, "--sleeper", 1)


def stopped_behind_relays(net):
    """Over relays."""
    _stopped_long(net, "--sleeper", 2, "--pairs", "0-2")


def _holds(net, node):
    words = net.shell(node, HOLDS).split()
    lab.check(len(words) == 3, f"{node}: not one meshd", " ".join(words))
    return tuple(map(int, words))


def _million(net, pair, relays=(), env=None):
    """A million messages, half of them each way: what the ranks and the relays
    have does not grow. The ranks look at themselves."""
    ranks = Ranks(net, "--messages", 500000, "--max-size", 64, "--max-group",
                  1, "--pairs", f"{pair[0]}-{pair[1]}", env=env)
    ranks.jobs[pair[0]].wait_for("after 1 quarters", LONG_S)
    early = {node: _holds(net, node) for node in relays}
    ranks.jobs[pair[0]].wait_for("after 3 quarters", LONG_S)
    for node in relays:
        now = _holds(net, node)
        lab.note(f"meshd of {node}: {early[node]} kB, mappings, files after a "
                 f"quarter, {now} after three")
        lab.check(all(new <= old + growth for new, old, growth
                      in zip(now, early[node], GROWTH)),
                  f"meshd of {node} grew from {early[node]} to {now}")
    for rank, result in enumerate(ranks.results(LONG_S)):
        result.succeeded()
        lab.check(rank not in pair or result.lines("after 4 quarters"),
                  f"rank {rank} did not look", result.text)
        for line in result.lines("quarters"):
            lab.note(line)


def a_million(net):
    """Over a cable."""
    _million(net, (0, 1))


def a_million_over_tcp(net):
    """Without RDMA."""
    _million(net, (0, 1), env={"NCCL_MESH_DISABLE_RDMA": "1"})


def a_million_over_relays(net):
    """Over both relays of a ring at once."""
    _million(net, (0, 2), ("n2", "n4"))


def killed_relays(net):
    """The two ends of a path get an error when its relay dies."""
    def kill():
        for node in ("n2", "n4"):
            net.exec(node, lab.BUSYBOX, "killall", "-9", "meshd").succeeded()

    nodes = net.nodes()
    ranks = Ranks(net, "--messages", 1000000, "--max-size", 65536,
                  "--expect-error", "--pairs", "0-2")
    for rank in (0, 2):
        ranks.jobs[rank].wait_for(r"rank \d+: 2 comms")
    time.sleep(0.5)
    kill()
    results = ranks.results(BOUND_S)
    for rank in (0, 2):
        results[rank].succeeded()
        lab.check(results[rank].lines("as expected"),
                  f"{nodes[rank]}: no error", results[rank].text)


NAMESPACES = [
    ("pair", [every_table, several_comms, without_meshd, over_tcp,
              stopped_rank, stopped_too_long, pulled_cable]),
    ("ring3", [every_pair, coming_and_going, killed_rank]),
    ("ring4", [no_way, every_pair, gpu_memory, several_comms, both_ways,
               killed_relays]),
    ("line4", [every_pair, gpu_memory]),
    ("topologies.json#P01", [both_rails, gpu_memory]),
    ("topologies.json#P02", [both_rails]),
]
SANITIZED = [
    ("pair", [every_table, over_tcp, stopped_too_long, pulled_cable]),
    ("ring4", [several_comms, both_ways, killed_relays]),
]
# Takes minutes: with MESH_LAB_LONG.
LONG = [
    ("pair", [a_million, a_million_over_tcp, stopped_two_minutes]),
    ("ring4", [a_million_over_relays, stopped_behind_relays]),
]
# What the kernel's own verbs have to show: data in every cabling, over cables
# and relays, and what breaks.
MACHINES = [
    ("pair", [few_messages, every_table, coming_and_going,
              stopped_two_minutes, pulled_cable]),
    ("ring3", [few_messages, several_comms, killed_rank]),
    ("ring4", [few_messages, both_ways, stopped_behind_relays,
               killed_relays]),
    ("line4", [few_messages]),
]


def main():
    """Runs the tests of this file."""
    lab.SHARES.append(tempfile.mkdtemp(prefix="mesh-nccl-"))
    atexit.register(shutil.rmtree, lab.SHARES[0], ignore_errors=True)
    if not lab.THOROUGH and lab.MACHINES:
        print("SKIP nccl: not among the quick tests of machines")
    elif not lab.THOROUGH:
        lab.main(SANITIZED)
    elif lab.MACHINES:
        lab.main(MACHINES)
    else:
        lab.main(NAMESPACES + (LONG if os.environ.get("MESH_LAB_LONG")
                               else []))


if __name__ == "__main__":
    main()
