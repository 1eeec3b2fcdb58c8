# SPDX-License-Identifier: BSD-3-Clause
"""What the lab tests share: a lab per topology, commands in it, reports.

A test file is executable, defines functions that take a Lab, and ends with

    if __name__ == "__main__":
        lab.main([("ring3", [pairs, no_ud]), ("FILE.json#ID", [pairs])])

A topology without a slash before its # is looked for beside the test. Each
topology is booted once for all its functions, which run in order; a function
that needs a fresh lab is listed under a topology of its own. What a function
raises is its verdict: nothing is a pass, Failure or any other exception a
failure, Skip a skip. contrib/test counts the lines this prints.

    FILE [TOPOLOGY | FUNCTION | TOPOLOGY/FUNCTION]...   runs a part
    FILE --list                                         names the tests

MESH_BUILD_DIR names the build, which the nodes see as it is. MESH_LAB_FABRIC
is mesh-lab's: vm, or swverbs for namespaces with software verbs; a test that
is about the kernel's RDMA devices calls needs_machines(). MESH_LAB_VERBOSE set
shows each command and what it printed.

Every command has a deadline. A lab is gone when the test is, however it ends.
"""

import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
MESH_LAB = os.fspath(TOP / "contrib" / "mesh-lab")
BUILD = pathlib.Path(os.environ.get("MESH_BUILD_DIR", TOP / "build")).resolve()
FABRIC = os.environ.get("MESH_LAB_FABRIC") or "vm"
# Directories besides the build, which the nodes may write to.
SHARES = []
VERBOSE = bool(os.environ.get("MESH_LAB_VERBOSE"))
SANITIZED = (BUILD / "Makefile").exists() and \
    "-fsanitize" in (BUILD / "Makefile").read_text()
# Emulated machines are slow, and so is what a sanitizer watches: what
# namespaces have shown already is run there only when asked for.
MACHINES = FABRIC == "vm"
THOROUGH = not (MACHINES or SANITIZED) or bool(os.environ.get("MESH_LAB_LONG"))

BOOT_S = 300
COMMAND_S = 60
MPI_S = 240
DOWN_S = 60
POLL_S = 0.1
SHOWN_LINES = 40
CLOCK_SKEW_S = 15
STACK = re.compile(r"\] \[ ?\d+\] /")
UNSHOWN = ("mesh-lab status", "mesh-lab counters")
BUSYBOX = "/run/mesh-lab/busybox"
SANITIZER_REPORTS = "/run/mesh-lab/sanitizer.*"
# Open MPI and PMIx have faults of their own.
OWN_FRAME = re.compile(
    rf"^ *#\d+ .*({re.escape(str(BUILD))}|/src/(common|meshctl|meshd|nccl-net|"
    r"ompi-hook|uct)/|/test/(meshd|mpi|nccl-harness|swverbs)/)", re.MULTILINE)
EXIT_SKIP = 77
PR_SET_PDEATHSIG = 1
# Tests that want meshd say so.
DIRECT_ONLY = {"MESH_MESHD": "off"}


class Failure(AssertionError):
    """A test's finding: one line, and maybe output that shows it."""

    def __init__(self, reason, output=""):
        super().__init__(reason)
        self.reason = reason
        self.output = output


class Skip(Exception):
    """Why a test cannot run here."""


def check(condition, reason, output=""):
    """Fails the test with that reason unless the condition holds."""
    if not condition:
        raise Failure(reason, output)


def needs_machines(why):
    """Skips the test where nodes are no machines with RDMA in the kernel."""
    if FABRIC != "vm":
        raise Skip(f"{why}: virtual machines only")


class Result:
    """What a command did; status None: it ran into its deadline."""

    def __init__(self, what, status, out, err, seconds):
        self.what = what
        self.status = status
        self.out = out
        self.err = err
        self.seconds = seconds

    @property
    def text(self):
        """Both outputs."""
        return self.out + self.err

    def lines(self, pattern):
        """The lines of both outputs in which the pattern is found."""
        return [line for line in self.text.splitlines()
                if re.search(pattern, line)]

    def succeeded(self):
        """Fails the test unless the status is 0; returns the result."""
        check(self.status is not None,
              f"{self.what}: no end within {self.seconds:.0f} s", self.text)
        check(self.status == 0, f"{self.what}: status {self.status}",
              self.text)
        return self

    def failed(self):
        """Fails the test unless it ended by itself with another status."""
        check(self.status is not None,
              f"{self.what}: no end within {self.seconds:.0f} s", self.text)
        check(self.status != 0, f"{self.what}: succeeded", self.text)
        return self


class Job:
    """A command that runs in the lab; its output can be read meanwhile."""

    def __init__(self, what, argv):
        self.what = what
        self.started = time.monotonic()
        # Files: a pipe that nobody reads would stop the command.
        self._out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self._out,
            stderr=self._err, preexec_fn=die_with_parent)

    def seconds(self):
        """Since the start."""
        return time.monotonic() - self.started

    def out(self):
        """What it has written to its standard output so far."""
        return _read(self._out)

    def err(self):
        """What it has written to its standard error so far."""
        return _read(self._err)

    def wait_for(self, pattern, deadline=COMMAND_S):
        """Waits until a line of its output has the pattern; the match."""
        end = time.monotonic() + deadline
        while True:
            running = self.process.poll() is None
            match = re.search(pattern, self.out() + self.err(), re.MULTILINE)
            if match:
                return match
            check(running, f"{self.what}: ended before {pattern!r} came",
                  self.out() + self.err())
            check(time.monotonic() < end, f"{self.what}: no {pattern!r} "
                  f"within {deadline} s", self.out() + self.err())
            time.sleep(POLL_S)

    def wait(self, deadline):
        """Its Result; one that is not over by then is ended."""
        status = None
        try:
            status = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.stop()
        result = Result(self.what, status, self.out(), self.err(),
                        self.seconds())
        if VERBOSE and self.what not in UNSHOWN:
            note(f"{self.what}: status {status} after {self.seconds():.1f} s")
            _show(result.text)
        return result

    def stop(self):
        """Ends it: the node hangs up what it ran."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _read(stream):
    size = os.fstat(stream.fileno()).st_size
    return os.pread(stream.fileno(), size, 0).decode("utf-8", "replace")


def die_with_parent():
    """Ends this process when its parent ends: a test that is killed must not
    leave `up` behind, nor its clients."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class Lab:
    """A running lab, a context manager; topology is what mesh-lab takes."""

    def __init__(self, topology):
        self.topology = topology
        self.name = f"test-{os.getpid()}"
        self._guard = None
        self._jobs = []
        self.spec = None

    def __enter__(self):
        note(f"booting {self.topology}")
        # Ends the lab when its input ends: with this process at the latest.
        self._guard = subprocess.Popen(
            ["sh", "-c", 'cat; exec "$0" --name "$1" down', MESH_LAB,
             self.name], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            self._up()
        except BaseException:
            self._down()
            raise
        return self

    def __exit__(self, *_):
        for job in self._jobs:
            job.stop()
        self._down()

    def _up(self):
        shares = [os.fspath(BUILD), *(f"{path}:rw" for path in SHARES)]
        job = self._start("mesh-lab up", [
            "up", *(f"--share={path}" for path in shares), self.topology])
        try:
            job.wait(BOOT_S).succeeded()
        finally:
            job.stop()
        state = json.loads(self._call("status", "--json").succeeded().out)
        self.spec = state["topology"]
        self._lanes = {name: node["lanes"]
                       for name, node in state["nodes"].items()}
        note(f"{self.topology} is up after {job.seconds():.0f} s")

    def _down(self):
        self._guard.stdin.close()
        try:
            self._guard.wait(DOWN_S)
        except subprocess.TimeoutExpired:
            note(f"lab {self.name} does not go down")

    def _start(self, what, arguments):
        job = Job(what, [MESH_LAB, "--name", self.name, *arguments])
        self._jobs.append(job)
        return job

    def _call(self, *arguments, deadline=COMMAND_S):
        return self._start(f"mesh-lab {arguments[0]}",
                           arguments).wait(deadline)

    # ---- what is there -------------------------------------------------------

    def nodes(self):
        """The nodes' names in order."""
        return list(self._lanes)

    def lanes(self, node):
        """A node's lanes: dicts with netdev, port, twin, ibdev, mtu and
        addresses."""
        return self._lanes[node]

    def cabled(self, node, other):
        """The lanes that join two nodes: [(netdev, netdev of the other)],
        twins paired in order, those without an address left out."""
        result = []
        for cable in self.spec["cables"]:
            ends = dict(end.split(".") for end in cable
                        if isinstance(end, str))
            if node in ends and other in ends:
                result += zip(*([lane["netdev"] for lane in self.lanes(name)
                                 if lane["port"] == ends[name]
                                 and lane["addresses"]]
                                for name in (node, other)))
        return result

    def pairs(self):
        """Every two nodes with a cable between them."""
        names = self.nodes()
        return [(one, other) for i, one in enumerate(names)
                for other in names[i + 1:] if self.cabled(one, other)]

    def counters(self):
        """What each lane has counted: {node: {netdev: {"ibdev", "rdma":
        {...}, "netdev": {...}}}}, as `mesh-lab counters --json` has it."""
        return json.loads(self._call("counters", "--json").succeeded().out)

    # ---- what can be done ----------------------------------------------------

    def start(self, node, *argv, env=None):
        """Starts a command in a node, or in "all"; a Job."""
        return self._start(f"{argv[0]} on {node}",
                           ["exec", "-n",
                            *_env_options({**DIRECT_ONLY, **(env or {})}),
                            node, *argv])

    def exec(self, node, *argv, env=None, deadline=COMMAND_S):
        """Runs a command in a node, or in "all"; a Result."""
        return self.start(node, *argv, env=env).wait(deadline)

    def shell(self, node, script, deadline=COMMAND_S):
        """Runs a shell script in a node; its output. It must succeed."""
        return self.exec(node, "sh", "-ec", script,
                         deadline=deadline).succeeded().out

    def start_mpirun(self, program, *arguments, hosts=None, ranks=None,
                     slots=1, tls="mesh_rc,self", env=None, mca=None,
                     stock=False, installed=False, wdir=None):
        """Starts an MPI program over the transport of the build; a Job.

        program is a path, or the name of one in test/mpi. hosts are nodes
        (all), with so many slots each; ranks (one for each slot). env goes to
        the ranks, mca are more of mpirun's --mca settings. stock leaves the
        build out of it, installed takes what `make install` has put in
        place. mpirun runs on the first host.
        """
        hosts = hosts or self.nodes()
        ranks = ranks or len(hosts) * slots
        settings = {"UCX_TLS": tls, **DIRECT_ONLY, **(env or {})}
        if "/" not in program:
            program = os.fspath(BUILD / "test" / "mpi" / program)
        argv = ["mpirun", "-n", "--hosts", ",".join(hosts),
                f"--slots={slots}", "-np", str(ranks)]
        for name, value in {**_mca(stock, installed), **(mca or {})}.items():
            argv += ["--mca", name, value]
        for name, value in settings.items():
            argv += ["-x", f"{name}={value}"]
        if wdir is not None:
            argv += ["-wdir", wdir]
        what = " ".join([os.path.basename(program), *map(str, arguments)])
        return self._start(f"{what} on {','.join(hosts)}",
                           argv + [program, *map(str, arguments)])

    def mpirun(self, program, *arguments, deadline=MPI_S, **options):
        """Runs an MPI program, see start_mpirun; a Result."""
        job = self.start_mpirun(program, *arguments, **options)
        result = job.wait(deadline)
        if result.status is None:
            self.kill_ranks(program)
        return result

    def kill_ranks(self, program):
        """Ends what a job that was given up may have left on the nodes. A node's
        own agent is a Python program, too: such ranks end with their orted."""
        names = {"orted", "mpirun", os.path.basename(program)} - {"python3"}
        for node in self.nodes():
            self.exec(node, BUSYBOX, "killall", "-9", *sorted(names))

    def link(self, port, state, both=False):
        """Pulls ("down") or plugs ("up") the cable at a port, "n1.0"."""
        self._call("link", *(["--both"] if both else []), port,
                   state).succeeded()

    def power(self, node, verb):
        """kill, pause or resume a node."""
        self._call(verb, node).succeeded()


def _env_options(env):
    return [f"--env={name}={value}" for name, value in env.items()]


def _mca(stock, installed):
    libs = BUILD / ".libs"
    if installed:
        return {"pml": "ucx"}
    if stock:
        # Open MPI's gates take other devices than Mellanox's for none.
        return {"pml": "ucx", "opal_common_ucx_tls": "any",
                "opal_common_ucx_devices": "any"}
    return {
        "pml": "ucx",
        "mca_base_component_path": f"{libs}:SYSTEM_DEFAULT:USER_DEFAULT",
        "hook_mesh_library": f"{libs}/libuct_mesh.so.0",
    }


# ---- running and reporting ---------------------------------------------------

def note(text):
    """Prints a line that is no verdict."""
    print(f"- {text}", flush=True)


def _show(text):
    """The first and the last lines: causes come early, ends late."""
    lines = [line for line in text.splitlines() if not STACK.search(line)]
    left_out = len(lines) - SHOWN_LINES
    if left_out > 0:
        lines[SHOWN_LINES // 2:-SHOWN_LINES // 2] = [f"({left_out} more)"]
    for line in lines:
        print(f"    {line}", flush=True)


def _one_line(text):
    return " ".join(str(text).split())


class _Report:
    def __init__(self):
        self.counts = {"PASS": 0, "FAIL": 0, "SKIP": 0}

    def verdict(self, word, name, reason=None):
        """One counted line."""
        self.counts[word] += 1
        tail = f": {_one_line(reason)}" if reason is not None else ""
        print(f"{word} {name}{tail}", flush=True)

    def status(self):
        """The exit status of all."""
        if self.counts["FAIL"]:
            return 1
        return 0 if self.counts["PASS"] else EXIT_SKIP


def _note_clocks(lab):
    """A clock that leapt ends a QP's retries at once: no fault of the test."""
    for node in lab.nodes():
        text = lab.exec(node, "date", "+%s", deadline=5).out.strip()
        ahead = int(text) - time.time() if text.isdigit() else 0
        if FABRIC == "vm" and abs(ahead) > CLOCK_SKEW_S:
            note(f"the clock of {node} is {ahead:.0f} s ahead of this host's")


def _sanitizer_reports(lab):
    """What a sanitizer has said of any program of any node since the last
    time."""
    if not SANITIZED:
        return ""
    text = "".join(
        lab.exec(node, "sh", "-c", f"cat {SANITIZER_REPORTS}; "
                 f"rm -f {SANITIZER_REPORTS}", deadline=10).out
        for node in lab.nodes())
    if text and not OWN_FRAME.search(text):
        note("a sanitizer's report has no line of the project's code: "
             + next(line for line in text.splitlines() if line.strip("=")))
        return ""
    return text


def _run_one(name, function, lab):
    """(verdict, reason) of one test; what it printed is shown."""
    started = time.monotonic()
    verdict = "FAIL", "not run"
    try:
        function(lab)
        verdict = "PASS", None
    except Skip as error:
        verdict = "SKIP", error
    except Failure as error:
        verdict = "FAIL", error.reason
        _show(error.output)
    except Exception as error:  # pylint: disable=broad-except
        verdict = "FAIL", f"{type(error).__name__}: {error}"
        _show(traceback.format_exc())
    note(f"{name}: {time.monotonic() - started:.0f} s")
    reports = _sanitizer_reports(lab)
    if reports:
        _show(reports)
        return "REPORT", reports.strip().splitlines()[0]
    if verdict[0] == "FAIL":
        _note_clocks(lab)
    return verdict


def _try_once(report, topology, tests, last):
    """Runs tests in one lab; those that fail, unless this is the last try."""
    failed = []
    try:
        with Lab(locate(topology)) as lab:
            for name, function in tests:
                word, reason = _run_one(name, function, lab)
                if word == "FAIL" and not last:
                    note(f"{name} failed: {_one_line(reason)}")
                    failed.append((name, function))
                elif word == "REPORT":  # no second try makes up for it
                    report.verdict("FAIL", name, reason)
                elif word == "PASS" and last:
                    report.verdict(word, name, "at the second try")
                else:
                    report.verdict(word, name, reason)
    except Failure as error:
        _show(error.output)
        if not last:
            note(f"no lab: {_one_line(error.reason)}")
            return tests
        for name, _ in tests:
            report.verdict("FAIL", name, f"no lab: {error.reason}")
    return failed


def _run_topology(report, topology, tests):
    # Emulated machines stand still for seconds when their host is busy, and
    # their clocks have been seen to leap: what fails is tried once more, in a
    # fresh lab, and its line then says so.
    failed = _try_once(report, topology, tests, last=False)
    if failed:
        note(f"trying {len(failed)} once more")
        _try_once(report, topology, failed, last=True)


def locate(topology):
    """What mesh-lab takes for it: FILE without a slash is beside the tests."""
    path = topology.partition("#")[0]
    if "#" in topology and "/" not in path:
        return os.fspath(HERE / topology)
    return topology


def _named(groups):
    """[(topology, [(full name, function)])] of what main() got."""
    stem = pathlib.Path(sys.argv[0]).stem
    if FABRIC != "vm":
        stem += f"@{FABRIC}"
    result = []
    for topology, functions in groups:
        short = topology.rpartition("#")[2]
        result.append((topology, [
            (f"{stem} {short}/{function.__name__}", function)
            for function in functions
            if THOROUGH or not getattr(function, "is_long", False)]))
    return result


def long(test):
    """Marks a test that is run only where all are."""
    test.is_long = True
    return test


def _wanted(name, words):
    topology, _, function = name.partition(" ")[2].partition("/")
    return not words or any(
        word in (topology, function, f"{topology}/{function}")
        for word in words)


def _check_build():
    library = BUILD / ".libs" / "libuct_mesh.so.0"
    if not library.exists():
        sys.exit(f"{library} is missing: run make, and set MESH_BUILD_DIR to "
                 "the build directory")


def _interrupted(number, _):
    sys.exit(128 + number)


def main(groups):
    """Runs the tests, groups of (topology, [function...]); exits."""
    words = sys.argv[1:]
    todo = [(topology, [test for test in tests if _wanted(test[0], words)])
            for topology, tests in _named(groups) if words != ["--list"]]
    if words == ["--list"]:
        for _, tests in _named(groups):
            for name, _ in tests:
                print(name.partition(" ")[2])
        return
    if not any(tests for _, tests in todo):
        sys.exit(f"no test is named {' or '.join(words)}")
    _check_build()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _interrupted)
    report = _Report()
    for topology, tests in todo:
        if tests:
            _run_topology(report, topology, tests)
    sys.exit(report.status())
