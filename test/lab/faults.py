#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What breaks becomes an error that names it, in time, and nothing else."""

import os
import re
import time

import lab

# The longest that a failure may take to become an error.
BOUND_S = 30
STOP_S = 120
PERFTEST = "ucx_perftest"
STRANGERS = os.fspath(lab.HERE / "strangers.py")
TRANSPORT = os.fspath(lab.BUILD / ".libs" / "libuct_mesh.so.0")
# Codes of REFUSE, see oob_wire.c.
BAD_BYTES, BAD_VERSION, BAD_TOKEN = "1", "2", "3"
BAD_NODE, BAD_ENDPOINT, TOO_LATE = "4", "5", "8"
ANSWERS = {
    "random": BAD_BYTES, "magic": BAD_BYTES, "version": BAD_VERSION,
    "oversized": BAD_BYTES, "undersized": BAD_BYTES, "type": BAD_BYTES,
    "node": BAD_NODE, "endpoint": BAD_ENDPOINT, "token": BAD_TOKEN,
    "half": TOO_LATE, "silent": TOO_LATE, "trickle": TOO_LATE,
}
PROMPT_S, LATE_S = 8, 20


def _busy_job(net, seconds=600, **options):
    """A job in the middle of its traffic."""
    job = net.start_mpirun("traffic", seconds, **options)
    job.wait_for(r"^round \d+", 90)
    return job


def _pid(job, node):
    return job.wait_for(rf"^rank \d+ pid (\d+) host {node}$").group(1)


def _check_names_link(net, line, node, other):
    """Is all there that tells which cable it is?"""
    (netdev, _), = net.cabled(node, other)
    for name, address in ((node, "local"), (other, "remote")):
        ip = net.lanes(name)[0]["addresses"][0].partition("/")[0]
        lab.check(f"{address} GID ::ffff:{ip} " in line,
                  f"the error does not name the {address} GID {ip}", line)
    for word in (f"to node {other} lane", f"({netdev})", "neighbour"):
        lab.check(word in line, f"the error does not say '{word}'", line)


def _ends_in_time(net, job, since):
    """The job's Result; it must end by itself, not well, within the bound."""
    result = job.wait(max(1, BOUND_S - (time.monotonic() - since)))
    if result.status is None:
        net.kill_ranks("traffic")
        net.exec("all", lab.BUSYBOX, "killall", "-9", PERFTEST)
    return result.failed()


def _error_of(result):
    """The first of UCX's errors that tells of a connection."""
    lines = result.lines("ERROR.*local GID")
    lab.check(lines, f"{result.what}: no error tells of a connection",
              result.text)
    return lines[0]


def _perftest(net, node, *arguments):
    return net.start(node, PERFTEST, *arguments, "-t", "tag_bw", "-s", "10000",
                     "-n", "100000000",
                     env={"LD_PRELOAD": TRANSPORT, "UCX_TLS": "mesh_rc,self"})


def _perftest_pair(net):
    """{node: Job} of two that are busy with each other, n2 sending."""
    host = net.shell("n1", "hostname -I").split()[0]
    server = _perftest(net, "n1")
    net.shell("n1", "until ss -ltn | grep -q :13337; do sleep 0.5; done")
    client = _perftest(net, "n2", host)
    client.wait_for(r"^\[thread 0\]|^ *\d+ +[\d.]+", 60)
    return {"n1": server, "n2": client}


def _new_job_works(net):
    net.mpirun("traffic", 1).succeeded()


def _end(net, job):
    """Whatever became of it, the next test finds the nodes idle."""
    if job.process.poll() is None:
        job.stop()
        net.kill_ranks("traffic")


def cable_pulled(net):
    """Both ends say which cable it is; plugged in, a new job works."""
    ends = _perftest_pair(net)
    since = time.monotonic()
    net.link("n1.0", "down")
    try:
        for node, other in (("n1", "n2"), ("n2", "n1")):
            line = _error_of(_ends_in_time(net, ends[node], since))
            _check_names_link(net, line, node, other)
            lab.check("cable" in line, f"{node}: no word of the cable", line)
            lab.check((node == "n1") == ("no carrier" in line),
                      f"{node}: it is n1's port that has no carrier", line)
    finally:
        net.link("n1.0", "up")
    _new_job_works(net)


def cable_pulled_from_mpi_job(net):
    """The job ends, with an error that names the cable."""
    job = _busy_job(net)
    since = time.monotonic()
    net.link("n1.0", "down")
    try:
        result = _ends_in_time(net, job, since)
        lines = result.lines("ERROR.*local GID.*cable")
        lab.check(lines, "no error names the cable", result.text)
    finally:
        net.link("n1.0", "up")
    _new_job_works(net)


def cable_plugged_in_while_asked(net):
    """A job starts while the kernel still asks for the neighbour since before
    the cable was plugged in, and is told that nobody answered."""
    (netdev, _), = net.cabled("n1", "n2")
    address = net.lanes("n2")[0]["addresses"][0].partition("/")[0]
    setting = f"/proc/sys/net/ipv4/neigh/{netdev}/retrans_time_ms"
    net.link("n1.0", "down")
    try:
        # It asks at 0, 3 and 6 seconds, and gives up at 9.
        net.shell("n1", f"echo 3000 >{setting}; ip neigh flush dev {netdev}; "
                        f"{lab.BUSYBOX} ping -c 1 -W 1 {address} >&2 || true; "
                        "sleep 5.5")
        lab.check("INCOMPLETE" in net.shell("n1", f"ip neigh show {address}"),
                  "the kernel does not ask for the neighbour")
        net.link("n1.0", "up")
        _new_job_works(net)
    finally:
        net.link("n1.0", "up")
        net.shell("n1", f"echo 1000 >{setting}")


def rank_killed(net):
    """kill -9 of a rank ends the job."""
    job = _busy_job(net)
    since = time.monotonic()
    net.exec("n2", "kill", "-9", _pid(job, "n2")).succeeded()
    _ends_in_time(net, job, since)
    _new_job_works(net)


def peer_killed_without_mpirun(net):
    """Nobody cleans up: the other end finds out itself, whichever it is."""
    for victim, other in (("n2", "n1"), ("n1", "n2")):
        ends = _perftest_pair(net)
        since = time.monotonic()
        net.exec(victim, lab.BUSYBOX, "killall", "-9", PERFTEST).succeeded()
        line = _error_of(_ends_in_time(net, ends[other], since))
        _check_names_link(net, line, other, victim)


def address_lost(net):
    """An address that goes away: an error that says so, and no new job; put
    back, a new job works."""
    (_, netdev), = net.cabled("n1", "n2")
    address = net.lanes("n2")[0]["addresses"][0]
    ends = _perftest_pair(net)
    since = time.monotonic()
    net.shell("n2", f"ip address del {address} dev {netdev}")
    try:
        for node, other in (("n2", "n1"), ("n1", "n2")):
            line = _error_of(_ends_in_time(net, ends[node], since))
            _check_names_link(net, line, node, other)
            lab.check(node == "n1" or "lost its address" in line,
                      "n2 does not say that its address is gone", line)
        result = net.mpirun("traffic", 1, deadline=90).failed()
        lab.check(result.lines("mesh_rc' is not available"),
                  "no word of a lane that cannot be used", result.text)
    finally:
        net.shell("n2", f"ip address add {address} dev {netdev}")
    _new_job_works(net)


def _listener(net, node):
    """(address, port) of a job's TCP listener on the lane."""
    netdev = net.lanes(node)[0]["netdev"]
    text = net.shell(node, "ss -ltnp")
    port = re.search(rf"%{netdev}:(\d+)\s.*\"traffic\"", text)
    lab.check(port, f"nobody listens on {netdev} of {node}", text)
    return net.lanes(node)[0]["addresses"][0].partition("/")[0], port.group(1)


def _check_answers(result):
    found = {line.split()[0]: line.split()[1:]
             for line in result.out.splitlines()}
    for kind, code in ANSWERS.items():
        lab.check(found.get(kind, [None])[0] == code,
                  f"a client with a wrong {kind}: {found.get(kind)} instead "
                  f"of refusal {code}", result.text)
        limit = LATE_S if code == TOO_LATE else PROMPT_S
        lab.check(float(found[kind][1]) < limit,
                  f"{kind}: sent away after {found[kind][1]} s", result.text)
    count, closed, _ = found["flood"]
    lab.check(count == closed, f"only {closed} of {count} clients of the "
              "flood were sent away", result.text)


def bad_clients(net):
    """Clients that do not belong there are sent away, each with the right
    reason; a few lines tell of them; connections made meanwhile work, as do
    those that exist."""
    job = net.start_mpirun("traffic", 900, 8)
    try:
        pid = _pid(job, "n1")
        address, port = _listener(net, "n1")
        result = net.exec("n2", "/usr/bin/python3", "-IB", STRANGERS, address,
                          port, deadline=300)
        _check_answers(result.succeeded())
        net.exec("n1", "kill", "-USR1", pid).succeeded()
        done = job.wait(60).succeeded()
    finally:
        _end(net, job)
    lines = done.lines(r"oob: refused")
    lab.check(lines, "not a word of the bad clients", done.text)
    lab.check(len(lines) <= done.seconds + 2,
              f"{len(lines)} lines in {done.seconds:.0f} s", done.text)
    lab.check(not done.lines(r"\bERROR\b"), "the job has errors", done.text)


class Stopped:
    """The job of which a rank does not run."""
    job = pid = since = None


def rank_stops(net):
    """A rank is stopped in the middle of its traffic."""
    Stopped.job = _busy_job(net, STOP_S)
    Stopped.pid = _pid(Stopped.job, "n2")
    net.exec("n2", "kill", "-STOP", Stopped.pid).succeeded()
    Stopped.since = time.monotonic()


@lab.long
def rank_goes_on_after_two_minutes(net):
    """Nothing has happened meanwhile: no word, right data."""
    lab.check(Stopped.since, "no rank was stopped")
    try:
        time.sleep(max(0, STOP_S - (time.monotonic() - Stopped.since)))
        lab.check(Stopped.job.process.poll() is None, "the job has ended",
                  Stopped.job.out() + Stopped.job.err())
        net.exec("n2", "kill", "-CONT", Stopped.pid).succeeded()
        result = Stopped.job.wait(90).succeeded()
    finally:
        _end(net, Stopped.job)
    lab.check("OK: traffic" in result.out, "no end", result.text)
    lab.check(not result.lines(r"\b(WARN|ERROR)\b"), "the job has errors",
              result.text)


def little_locked_memory(net):
    """64 KiB, not root: an error names the limit; with tcp the job goes on."""
    other = "setpriv --reuid=65534 --regid=65534 --clear-groups"
    if net.exec("n1", "sh", "-c",
                f"exec {other} test -r {TRANSPORT}").status != 0:
        raise lab.Skip(f"{lab.BUILD} can be read by its owner only")
    script = ("ulimit -l 64; export LD_PRELOAD=%s; exec %s "
              "ucx_perftest -l -t tag_lat -n 100")
    for tls, works in (("mesh_rc", False), ("mesh_rc,tcp,self", True)):
        result = net.exec("n1", "sh", "-c", script % (TRANSPORT, other),
                          env={"UCX_TLS": tls, "HOME": "/"})
        lab.check(result.lines(r"(memlock|locked memory|ulimit -l)"),
                  f"{tls}: no word of the limit", result.text)
        lab.check((result.status == 0) == works,
                  f"{tls}: status {result.status}", result.text)


def bad_settings(net):
    """Each is named in one clear line."""
    for name, value in (("UCX_MESH_RC_GID_INDEX", "many"),
                        ("UCX_MESH_RC_SAME_HOST", "maybe"),
                        ("UCX_MESH_RC_TIMEOUT", "soon"),
                        ("UCX_MESH_RC_SEG_SIZE", "tiny"),
                        ("UCX_MESH_RC_RX_QUEUE_LEN", "some")):
        result = net.exec("n1", "ucx_info", "-d",
                          env={"LD_PRELOAD": TRANSPORT, "UCX_TLS": "mesh_rc",
                               name: value})
        key = name.rpartition("MESH_RC_")[2]
        lab.check([line for line in result.lines(r"\b(WARN|ERROR)\b")
                   if key in line and value in line],
                  f"{name}={value}: no error names it", result.text)


def node_gone(net):
    """A node powered off: the other one has an error that names it, and its
    rank ends. mpirun, which in a namespace knows as soon as UCX and would end
    the rank before, stands still meanwhile; in the end it may wait for TCP to
    give up its daemon there."""
    log = "/tmp/ucx.log"
    job = _busy_job(net, env={"UCX_LOG_FILE": log})
    net.exec("n1", lab.BUSYBOX, "killall", "-STOP", "mpirun")
    since = time.monotonic()
    net.power("n2", "kill")
    lines = []
    while not lines:
        lab.check(time.monotonic() - since < BOUND_S,
                  f"no error tells of a connection after {BOUND_S} s",
                  job.out() + job.err())
        time.sleep(0.5)
        lines = re.findall("^.*ERROR.*local GID.*$", net.exec(
            "n1", "cat", log).out, re.MULTILINE)
    _check_names_link(net, lines[0], "n1", "n2")
    net.exec("n1", lab.BUSYBOX, "killall", "-CONT", "mpirun")
    while net.exec("n1", "pgrep", "-x", "traffic").status == 0:
        lab.check(time.monotonic() - since < BOUND_S,
                  f"the rank of n1 lives on after {BOUND_S} s",
                  job.out() + job.err())
        time.sleep(1)
    net.exec("n1", lab.BUSYBOX, "killall", "-9", "mpirun")
    job.wait(10)


if __name__ == "__main__":
    lab.main([("pair", [cable_pulled, cable_pulled_from_mpi_job,
                        cable_plugged_in_while_asked, rank_killed,
                        peer_killed_without_mpirun, address_lost, bad_clients,
                        rank_stops, bad_settings, little_locked_memory,
                        rank_goes_on_after_two_minutes, node_gone])])
