#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the suites of a gtest program, whatever becomes of its process.

A suite, or a part of a long one, runs in one process; several run side by
side. A test that crashes, or is silent for too long, takes only itself down:
the rest goes on in a new process. Prints the tests of each suite that failed,
then a table of the suites with the reasons of what was skipped. Results are
kept as they come, and a later run goes on with them, until all have one. Exit
status: 0 passed and no suite passes fewer than are recorded, 1 worse, 2 no
such test.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time

RUN = re.compile(r"\[ RUN      \] (\S+)")
END = re.compile(r"\[ {7}OK \] (\S+)|\[  FAILED  \] (\S+).*\(\d+ ms\)")
SKIP = re.compile(r"\[     SKIP \] \(?(.*?)\)?$")
SANITIZER = re.compile(r"ERROR: (Address|Leak)Sanitizer|runtime error:")
COLUMNS = ("passed", "skipped", "failed", "crashed", "hung")
# How many tests of a suite run in one process.
BATCH = 40


def list_suites(program, environment, pattern):
    """The tests of each suite that the pattern selects."""
    text = subprocess.run(
        [program, "--gtest_list_tests", "--gtest_filter=" + pattern],
        stdout=subprocess.PIPE, universal_newlines=True, check=True,
        env=environment).stdout
    suites = collections.OrderedDict()
    for line in text.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  "):
            suites[suite].append(suite + name)
        elif re.match(r"\w[\w/]*\.$", name):
            suite = name
            suites[suite] = []
    return suites


class Process:
    """One run of the program: what it says about each test. State and log get
    a test when it has ended."""

    def __init__(self, program, environment, tests, state, log, silence):
        self.state = state
        self.log = log
        self.silence = silence
        self.results = collections.OrderedDict()
        self.output = []
        self.current = None
        self.reason = None
        self.sanitizer = False
        self.process = subprocess.Popen(
            [program, "--gtest_filter=" + ":".join(tests)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, env=environment)

    def lines(self):
        """Lines as they come; None when there was none for too long."""
        stream = self.process.stdout
        data = b""
        while True:
            if not select.select([stream], [], [], self.silence)[0]:
                yield None
                return
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                break
            data += chunk
            *whole, data = data.split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")
        if data:
            yield data.decode(errors="replace")

    def take(self, line):
        self.output.append(line + "\n")
        self.sanitizer |= bool(SANITIZER.search(line))
        if self.current is None:
            match = RUN.search(line)
            if match:
                self.current, self.reason = match.group(1), None
            return
        match = SKIP.search(line)
        if match:
            self.reason = match.group(1)
        match = END.search(line)
        if match:
            failed = match.group(2) is not None
            self.end("failed" if failed else
                     "skipped" if self.reason is not None else "passed")

    def end(self, result):
        self.results[self.current] = (result, self.reason)
        self.state.add({self.current: self.results[self.current]})
        self.current = None
        self.keep_output()

    def keep_output(self):
        self.log.write("".join(self.output))
        self.output = []

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def run(self):
        hung = False
        for line in self.lines():
            if line is None:
                hung = True
                break
            self.take(line)
        if hung:
            self.kill()
        self.process.stdout.close()
        status = self.process.wait()
        self.kill() # children that tests have left
        if self.current is not None:
            self.reason = "silent for %d s" % self.silence if hung else \
                "exit status %d" % status
            self.end("hung" if hung else "crashed")
        self.keep_output()
        return status


class Log:
    """What tests print, one after the other. Any thread may write."""

    def __init__(self, path, anew):
        self.path = path
        self.lock = threading.Lock()
        with open(path, "w" if anew else "a"):
            pass

    def write(self, text):
        with self.lock, open(self.path, "a") as file:
            file.write(text)


class State:
    """Results of a run that may be interrupted, in a file. Any thread may add
    some."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.results = {}
        if os.path.exists(path):
            with open(path) as file:
                for line in file.read().splitlines():
                    result, name, reason = line.split("\t")
                    self.results[name] = (result, reason or None)

    def add(self, results):
        """Keeps results, in place of earlier ones of the same tests."""
        self.results.update(results)
        with self.lock, open(self.path, "a") as file:
            for name, (result, reason) in results.items():
                print(result, name, reason or "", sep="\t", file=file)

    def finish(self, results=None):
        """All is done: the next run begins anew. The file is kept as results,
        if given."""
        if os.path.exists(self.path):
            if results is not None:
                os.replace(self.path, results)
            else:
                os.unlink(self.path)


def batches(tests):
    """As many at a time as one process runs."""
    return [tests[i:i + BATCH] for i in range(0, len(tests), BATCH)]


def run_batch(program, environment, tests, log, silence, state):
    """Runs those that have no result yet: a process for all that are left
    when one has ended. The seconds it took."""
    start = time.monotonic()
    left = [test for test in tests if test not in state.results]
    while left:
        process = Process(program, environment, left, state, log, silence)
        status = process.run()
        if not process.results: # it died before the first test
            process.current = left[0]
            process.reason = "exit status %d" % status
            process.end("crashed")
        if process.sanitizer:
            name = next(reversed(process.results))
            state.add({name: ("failed", "memory error, see the log")})
        left = [test for test in left if test not in process.results]
    return time.monotonic() - start


def run_suites(suites, jobs, state, run):
    """{suite: {test: its result}}, each suite printed when it is over.
    run(tests) runs a batch, so many of them side by side."""
    table = collections.OrderedDict()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        started = {suite: [pool.submit(run, batch) for batch in batches(tests)]
                   for suite, tests in suites.items()}
        for suite, tests in suites.items():
            seconds = sum(batch.result() for batch in started[suite])
            results = {test: state.results[test] for test in tests}
            table[suite[:-1]] = results
            print("# %s: %d tests, %.0f s" % (suite[:-1], len(tests), seconds))
            for name, (result, reason) in results.items():
                if result not in ("passed", "skipped"):
                    print("%s %s%s" % (result, name,
                                       ": " + reason if reason else ""))
            sys.stdout.flush()
    return table


def print_table(table):
    width = max(map(len, table), default=0)
    print(" ".join(["%-*s" % (width, "suite")] + ["%7s" % c for c in COLUMNS]))
    total = collections.Counter()
    for suite, results in table.items():
        count = collections.Counter(result for result, _ in results.values())
        total.update(count)
        print(" ".join(["%-*s" % (width, suite)] +
                       ["%7s" % (count[c] or "-") for c in COLUMNS]))
        reasons = collections.Counter(
            reason for result, reason in results.values()
            if result == "skipped")
        for reason, number in reasons.items():
            print("    %d skipped: %s" % (number, reason))
    print(" ".join(["%-*s" % (width, "all")] +
                   ["%7d" % total[c] for c in COLUMNS]))
    return total


def read_recorded(path):
    """{suite: how many of it pass}."""
    with open(path) as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    return {suite: int(passed) for suite, passed in lines}


def count_passed(results):
    return sum(result == "passed" for result, _ in results.values())


def print_worse(table, recorded):
    """Suites that pass less than recorded; how many they are."""
    worse = 0
    for suite, wanted in recorded.items():
        passed = count_passed(table.get(suite, {}))
        if passed < wanted:
            print("worse: %s: %d passed, %d are recorded" %
                  (suite, passed, wanted))
            worse += 1
    return worse


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--silence", type=int, default=60, metavar="SECONDS",
                        help="how long a test may say nothing (60)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="how many processes run side by side (1)")
    parser.add_argument("--log", required=True, help="all that is printed")
    parser.add_argument("--env", action="append", default=[],
                        metavar="NAME=VALUE", help="for the program only")
    parser.add_argument("--state", required=True, metavar="FILE",
                        help="what has been run so far")
    parser.add_argument("--results", metavar="FILE",
                        help="where that is kept when all has been run")
    parser.add_argument("--recorded", metavar="FILE",
                        help="how many of each suite have to pass")
    parser.add_argument("--record", action="store_true",
                        help="write that file")
    parser.add_argument("program")
    parser.add_argument("pattern", help="as of --gtest_filter")
    return parser.parse_args()


def main():
    args = parse_arguments()
    environment = dict(os.environ)
    environment.update(pair.split("=", 1) for pair in args.env)
    suites = list_suites(args.program, environment, args.pattern)
    if not suites:
        return 2
    # At once: no process is waited for, and what has ended is kept.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    state = State(args.state)
    log = Log(args.log, anew=not state.results)
    table = run_suites(
        suites, args.jobs, state, lambda tests: run_batch(
            args.program, environment, tests, log, args.silence, state))
    state.finish(args.results)
    total = print_table(table)
    bad = total["failed"] + total["crashed"] + total["hung"]
    if args.record:
        with open(args.recorded, "w") as file:
            print("# suite, and how many of its tests pass", file=file)
            for suite, results in table.items():
                print(suite, count_passed(results), file=file)
    elif args.recorded:
        bad += print_worse(table, read_recorded(args.recorded))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
