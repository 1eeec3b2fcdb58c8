#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What MPI programs do over mesh_rc: sizes, threads, one-sided, children."""

import lab

MIB = 1 << 20
RNR = ("rcvd_rnr_err", "send_rnr_err", "retry_rnr_exceeded_err")
# Soft-RoCE in an emulated machine does a few hundred of them in a second.
QUICK = not (lab.MACHINES or lab.SANITIZED)
SMALL_MESSAGES = 1000000 if QUICK else 200000 if lab.SANITIZED else 20000
THREAD_ROUNDS = 10 if QUICK else 2
PROGRAM_S = 200


def _quiet(result, *allowed):
    """A job that succeeded without a word of UCX, or only those allowed."""
    loud = [line for line in result.lines(r"\b(WARN|ERROR)\b")
            if not any(word in line for word in allowed)]
    lab.check(result.status == 0 or not loud,
              f"{result.what}: status {result.status}, {loud[:1]}",
              result.text)
    result.succeeded()
    lab.check(not loud, f"the job's output has {loud[:1]}", result.text)


def _run(net, program, *arguments, allowed=(), **options):
    _quiet(net.mpirun(program, *arguments, deadline=PROGRAM_S, **options),
           *allowed)


def sizes_up_to_16_mib(net):
    """Each byte of all sizes, odd ones and alignments too."""
    _run(net, "sweep", hosts=net.nodes()[:2])


def sizes_all_pairs(net):
    """The same up to 256 KiB, every pair of three nodes."""
    _run(net, "sweep", MIB // 4)


def sizes_several_ranks_per_node(net):
    """Lanes to the same node and to another one at the same time."""
    _run(net, "sweep", MIB // 8, 8, hosts=net.nodes()[:2], slots=2)


@lab.long
def sizes_with_shared_memory(net):
    """sm within the node, mesh_rc to the other one."""
    _run(net, "sweep", MIB // 8, 8, hosts=net.nodes()[:2], slots=2,
         tls="mesh_rc,self,sm")


def thread_multiple(net):
    """Four threads of each rank at the same time."""
    _run(net, "threads", THREAD_ROUNDS)


def onesided(net):
    """MPI windows by UCX's RMA."""
    _run(net, "onesided", mca={"osc": "ucx"})


def spawn(net):
    """Children on the parent's node, then on another one."""
    hosts = net.nodes()[:2]
    for host in hosts:
        _run(net, "spawn", 2, host, hosts=hosts, ranks=1,
             mca={"rmaps_base_oversubscribe": "1"})


def fork(net):
    """Children with and without a command beside transfers."""
    _run(net, "forker", 3, hosts=net.nodes()[:2])


def fork_and_write(net):
    """Children that write to their copy of registered pages, which they have
    as long as nobody calls ibv_fork_init()."""
    _run(net, "forker", 3, 1, hosts=net.nodes()[:2],
         env={"UCX_IB_FORK_INIT": "n"}, allowed=("IB: ",))


def _rnr(net):
    return {(node, lane): [values["rdma"].get(name, 0) for name in RNR]
            for node, lanes in net.counters().items()
            for lane, values in lanes.items()}


def flood_of_unexpected_messages(net):
    """A receiver that sleeps: all arrive, in order, without an RNR error."""
    before = _rnr(net)
    _run(net, "flood", 2000)
    after = _rnr(net)
    lab.check(before == after, f"{RNR} went from {before} to {after}")


def memory_flat(net):
    """The resident memory of both ranks stays what it is: 1000000 messages,
    but 20000 between machines and 200000 with a sanitizer."""
    lab.note(f"{SMALL_MESSAGES} messages")
    _run(net, "many", SMALL_MESSAGES, hosts=net.nodes()[:2])


@lab.long
def same_host_off(net):
    """Ranks of one node: a clear end without another transport, else sm."""
    host = net.nodes()[:1]
    off = {"UCX_MESH_RC_SAME_HOST": "n"}
    result = net.mpirun("sweep", 1000, 8, hosts=host, slots=2, env=off)
    result.failed()
    lab.check(result.lines("unreachable|UNREACHABLE"),
              "no word of an unreachable peer", result.text)
    _run(net, "sweep", 1000, 8, hosts=host, slots=2, env=off,
         tls="mesh_rc,self,sm")


def limits_are_named(net):
    """What the device refuses: a job ends with the limit, its value, and where
    to look."""
    if lab.FABRIC != "swverbs":
        raise lab.Skip("faults can be ordered of software verbs only")
    # The first queue pair is a trial.
    for verb, limit in (("create_qp 2", r"\d+ queue pairs .*rdma resource"),
                        ("create_cq 1", r"\d+ entries .*UCX_MESH_RC_TX_CQ_LEN"),
                        ("create_srq 1", r"\d+ receives .*RX_QUEUE_LEN"),
                        ("reg_mr 1", r"locked memory is .*limited")):
        result = net.mpirun(
            "sweep", 100000, 8, hosts=net.nodes()[:2], deadline=PROGRAM_S,
            env={"SWVERBS_FAULTS": f"fail {verb} ENOMEM 1000"})
        result.failed()
        lab.check(result.lines(limit), f"{verb}: no word of {limit}",
                  result.text)


def only_who_talks(net):
    """Ranks of one node are connected when they talk, not all to all."""
    ranks = 24
    result = net.mpirun("connect", 1, hosts=net.nodes()[:1], slots=ranks,
                        env={"UCX_LOG_LEVEL": "info"}).succeeded()
    ends = len(result.lines("connected to node "))
    # Two neighbours, and whom sums and barriers take one to.
    lab.check(2 * ranks <= ends < ranks * (ranks - 1) / 2,
              f"{ends} ends of connections, {ranks} ranks", result.text)


if __name__ == "__main__":
    # Machines are too small for that many ranks of one node.
    crowded = [] if lab.MACHINES else [only_who_talks]
    lab.main([("ring3", [
        sizes_up_to_16_mib, sizes_all_pairs, sizes_several_ranks_per_node,
        sizes_with_shared_memory, thread_multiple, onesided, spawn, fork,
        fork_and_write, flood_of_unexpected_messages, memory_flat,
        same_host_off, limits_are_named, *crowded])])
