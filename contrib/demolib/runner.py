# SPDX-License-Identifier: BSD-3-Clause
"""Runs commands in the demo's lab, each with a deadline and signs of life."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

MESH_LAB = os.fspath(pathlib.Path(__file__).resolve().parents[1] / "mesh-lab")
BUSYBOX = "/run/mesh-lab/busybox"
POLL_S = 0.1
TICK_S = 10.0
STOP_S = 10.0
CALL_S = 120
SHOWN_LINES = 20
FIRST = 8
ERROR = re.compile(r"\b(ERROR|WARN|FATAL)\b")


class Failed(Exception):
    """Why a step failed, and the output that shows it."""

    def __init__(self, reason, output=""):
        super().__init__(reason)
        self.output = output


def say(text=""):
    """One line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}".rstrip(), flush=True)


def show(text, most=SHOWN_LINES, prefix="    "):
    """Lines of a command's output; if there are many, the last ones and before
    them the first errors, which tell the cause."""
    lines = text.rstrip().splitlines()
    errors = [line for line in lines[:-most] if ERROR.search(line)][:FIRST]
    for line in errors:
        print(prefix + line)
    if len(lines) > most:
        print(f"{prefix}... ({len(lines) - most - len(errors)} lines left "
              "out)")
    for line in lines[-most:]:
        print(prefix + line)
    sys.stdout.flush()


class Job:
    """A command of mesh-lab that runs; stop() must be called in the end.

    A quiet one gives no signs of life.
    """

    def __init__(self, what, argv, quiet=False):
        self.what = what
        self.quiet = quiet
        self.started = self._ticked = time.monotonic()
        # Files: a pipe that nobody reads would stop the command.
        self._out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        # A session of its own: ctrl-C is for the demo, which ends its jobs.
        self._process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self._out,
            stderr=self._err, start_new_session=True)

    def seconds(self):
        """Since the start."""
        return time.monotonic() - self.started

    def out(self):
        """What it has written to its standard output so far."""
        return _read(self._out)

    def text(self):
        """What it has written so far, errors last."""
        return _read(self._out) + _read(self._err)

    def wait(self, deadline, tick=None):
        """The exit status, None if there is none by the deadline.

        tick is called every few seconds; what it returns is printed.
        """
        while self._process.poll() is None:
            if self.seconds() > deadline:
                return None
            self._pause(tick)
        return self._process.returncode

    def wait_for(self, pattern, deadline):
        """Waits until its output has the pattern."""
        while not re.search(pattern, self.text()):
            if self._process.poll() is not None:
                raise Failed(f"{self.what} ended early", self.text())
            if self.seconds() > deadline:
                raise Failed(f"{self.what}: nothing in {deadline} s",
                             self.text())
            self._pause()

    def _pause(self, tick=None):
        late = time.monotonic() - self._ticked >= TICK_S
        if late and not self.quiet:
            detail = tick() if tick else ""
            say(f"    {self.what}, {self.seconds():.0f} s"
                + (f": {detail}" if detail else ""))
            self._ticked = time.monotonic()
        time.sleep(POLL_S)

    def succeed(self, deadline, tick=None):
        """Its standard output; Failed unless it ends well and in time."""
        status = self.wait(deadline, tick)
        if status is None:
            raise Failed(f"{self.what}: no end within {deadline} s",
                         self.text())
        if status != 0:
            raise Failed(f"{self.what}: status {status}", self.text())
        return self.out()

    def stop(self):
        """Ends it and what it runs in the node."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _read(stream):
    size = os.fstat(stream.fileno()).st_size
    return os.pread(stream.fileno(), size, 0).decode("utf-8", "replace")


class Lab:
    """A lab by its name; every job it started ends with close()."""

    def __init__(self, name):
        self.name = name
        self._jobs = []

    def start(self, what, *arguments, quiet=False):
        """Starts `mesh-lab ARGUMENTS`; a Job."""
        job = Job(what, [MESH_LAB, "--name", self.name, *arguments], quiet)
        self._jobs.append(job)
        return job

    def call(self, what, *arguments, deadline=CALL_S):
        """Runs `mesh-lab ARGUMENTS`; its standard output."""
        job = self.start(what, *arguments)
        try:
            return job.succeed(deadline)
        finally:
            job.stop()

    def close(self):
        """Ends the jobs, the lab stays."""
        for job in self._jobs:
            job.stop()
        self._jobs.clear()

    def up(self, topology, deadline, shared):
        """Boots it, with a directory that the machines may write to; what
        `mesh-lab up` prints is shown as it comes."""
        job = self.start("booting", "up", "--no-meshd", "--share",
                         f"{shared}:rw", "--timeout", str(deadline), topology,
                         quiet=True)
        shown = 0
        try:
            while job.wait(job.seconds() + 0.5) is None:
                shown = _show_new(job, shown)
            job.succeed(deadline)
            _show_new(job, shown)
        finally:
            job.stop()

    def is_up(self):
        """Whether there is a lab of that name."""
        return any(line.split()[:1] == [self.name] for line in
                   self.call("mesh-lab list", "list").splitlines())

    def down(self):
        """Ends it."""
        self.close()
        self.call("mesh-lab down", "down")

    def status(self):
        """What `mesh-lab status --json` tells."""
        return json.loads(self.call("mesh-lab status", "status", "--json"))

    def counters(self):
        """What `mesh-lab counters --json` tells."""
        return json.loads(self.call("mesh-lab counters", "counters",
                                    "--json"))

    def kill_left(self, *programs):
        """Ends what a job that was given up may have left in the nodes."""
        job = self.start("killall", "exec", "-n", "all", BUSYBOX, "killall",
                         "-9", "orted", "mpirun", *programs)
        job.wait(30)
        job.stop()


def _show_new(job, shown):
    """Prints the whole lines after the first shown characters."""
    text = job.out()
    end = text.rfind("\n") + 1
    for line in text[shown:end].splitlines():
        print(f"    {line}".rstrip(), flush=True)
    return max(end, shown)
