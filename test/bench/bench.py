#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the benchmarks and keeps what they found: `make bench`.

    bench.py [--quick] [--fabric vm|swverbs] [--output DIRECTORY] [SECTION]...

Sections: instructions, heap, p2p, lanes, hops, connect, mpi,
nccl_instructions; all by default. Each is a module whose run() gets a Bench.
What is measured in time is measured alternately, in rounds, and says something
only as a ratio of what was measured in the same run.

DIRECTORY (bench/results/DATE-COMMIT by default) gets results.jsonl, whose first
line says what was run where, and each other one a number; and what report.py
makes of it.
"""

import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path[:0] = [os.fspath(HERE), os.fspath(TOP / "test" / "lab")]

import report  # noqa: E402 pylint: disable=wrong-import-position

SECTIONS = ("instructions", "heap", "p2p", "lanes", "hops", "connect",
            "mpi", "nccl_instructions")
PACKAGES = ("libucx0", "libopenmpi3", "openmpi-bin", "libibverbs1", "perftest",
            "valgrind")


def _output(*argv):
    result = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL, check=False)
    return result.stdout.strip() if result.returncode == 0 else ""


def _processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return os.uname().machine


def _packages():
    lines = _output("dpkg-query", "-W", "-f",
                    "${Package} ${Version} ${db:Status-Status}\n",
                    *PACKAGES) or ""
    return {words[0]: words[1] for words in map(str.split, lines.splitlines())
            if len(words) == 3 and words[2] == "installed"}


class Bench:
    """What a section gets: where things are, and where numbers go."""

    def __init__(self, options):
        self.build = pathlib.Path(
            os.environ.get("MESH_BUILD_DIR", TOP / "build")).resolve()
        self.fabric = options.fabric
        self.quick = options.quick
        self.directory = options.output or (
            self.build / "bench" / "results" /
            f"{time.strftime('%Y-%m-%d')}-{self._commit()}")
        self.directory.mkdir(parents=True, exist_ok=True)
        self._stream = open(self.directory / "results.jsonl", "w",
                            encoding="utf-8")
        self._write(self._about(options.sections))

    @staticmethod
    def _commit():
        commit = _output("git", "-C", os.fspath(TOP), "rev-parse", "--short",
                         "HEAD") or "unknown"
        dirty = _output("git", "-C", os.fspath(TOP), "status", "--porcelain",
                        "-uno")
        return commit + ("-changed" if dirty else "")

    def _about(self, sections):
        return {"about": {
            "commit": self._commit(), "date": time.strftime("%Y-%m-%d %H:%M"),
            "processor": _processor(), "processors": os.cpu_count(),
            "kernel": os.uname().release, "fabric": self.fabric,
            "load": os.getloadavg()[0], "quick": self.quick,
            "sections": sections, "packages": _packages()}}

    def _write(self, line):
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()

    def record(self, section, case, contender, value, unit, **more):
        """Keeps a number, and shows it."""
        self._write({"section": section, "case": case, "contender": contender,
                     "value": round(value, 4), "unit": unit, **more})
        print(f"{section} {case} {contender}: {value:.2f} {unit}", flush=True)

    def note(self, section, text):
        """Keeps a sentence, such as why something was not run."""
        self._write({"section": section, "note": text})
        print(f"{section}: {text}", flush=True)


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="fewer rounds and sizes")
    parser.add_argument("--fabric", default="swverbs",
                        choices=("swverbs", "vm"))
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("sections", nargs="*", metavar="SECTION")
    options = parser.parse_args()
    options.sections = options.sections or list(SECTIONS)
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {sorted(unknown)}; there are {SECTIONS}")
    return options


def main():
    """All sections, also after one that failed."""
    options = _options()
    os.environ["MESH_LAB_FABRIC"] = options.fabric
    bench = Bench(options)
    failed = 0
    for section in options.sections:
        try:
            importlib.import_module(section).run(bench)
        except Exception as error:  # pylint: disable=broad-except
            bench.note(section, f"failed: {type(error).__name__}: {error}")
            failed = 1
    print(report.write(bench.directory), end="")
    print(f"results in {bench.directory}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
