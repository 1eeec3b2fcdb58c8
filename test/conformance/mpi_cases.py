# SPDX-License-Identifier: BSD-3-Clause
"""MPI tests of others as cases: what to run, when it passed. Pure but for
reading the lists."""

import re
import zlib

# Directories of MPICH's suite that no other installed MPI can be asked for:
# MPICH's own matters, newer than MPI 3.1, other languages, measurements.
LEFT_OUT = ("ckpoint", "cxx", "f08", "f77", "f90", "faults", "ft", "impls",
            "part", "perf")
# What ends by an error on purpose.
ENDS_BADLY = ("TestStatus", "TestErrFatal")
ONE_SIDED = re.compile(r"rma|win|onesided")

RECORDED_HEAD = (
    "# What fails over mesh_rc and over tcp, and how many pass over mesh_rc.",
    "# It only ever gets better; mpi_run --record writes it.")

# A liquid of 4000 atoms: from a lattice, by steps whose energies tell much.
LAMMPS_INPUT = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 20
run 200
"""


class Case:
    """One program with its arguments on so many ranks."""

    def __init__(self, name, argv, ranks, directory, judge, env=None,
                 digest=None):
        self.name = name
        self.argv = argv
        self.ranks = ranks
        self.directory = directory
        self.judge = judge # judge(status, text): "" or what is wrong
        self.env = env or {}
        # digest(text): what has to be the same over all transports
        self.digest = digest

    def nodes(self, names):
        """Two ranks are neighbours or have a relay between them, by their
        test's name; more ranks have all of it."""
        if self.ranks > 2:
            return names[:self.ranks]
        step = 1 + zlib.crc32(self.name.encode()) % 2
        return names[::step][:self.ranks]

    def mca(self):
        """UCX moves one-sided data, too."""
        if ONE_SIDED.search(self.name):
            return {"osc": "ucx,sm"}
        return {}


def judge_mpich(status, text):
    """MPICH's own rule."""
    if status is None:
        return "timeout"
    if status != 0:
        return f"status {status}"
    if not re.search(r"^\s*No [Ee]rrors\s*$|^\s*Test [Pp]assed\s*$", text,
                     re.MULTILINE):
        return "does not say No Errors"
    return ""


def judge_bad_end(status, _):
    """Of programs that have to fail by themselves."""
    if status is None:
        return "timeout"
    return "" if status != 0 else "status 0"


def judge_status(status, _):
    """Of programs that say it with their status only."""
    if status is None:
        return "timeout"
    return "" if status == 0 else f"status {status}"


def _parse_line(line):
    words = line.split("#")[0].split()
    if not words or not re.fullmatch(r"[\w/-]+", words[0]):
        return None
    ranks = int(words[1]) if len(words) > 1 and words[1].isdigit() else 2
    keys = [word.partition("=")[::2] for word in words[2:]]
    return words[0], ranks, keys


def parse_list(text, directory, build):
    """The cases of one list: lines "program ranks key=value...". What is
    only for MPICH or needs much memory is left out, and so are lines that
    differ in MPICH's own settings."""
    result = {}
    for line in text.splitlines():
        parsed = _parse_line(line)
        if parsed is None:
            continue
        program, ranks, keys = parsed
        values = dict(keys)
        if "mpix" in values or "mem" in values or "xfail" in values or \
                values.get("strict") == "false":
            continue
        arguments = [value for key, value in keys if key == "arg"]
        name = " ".join([f"{directory}/{program}", str(ranks), *arguments])
        bad_end = values.get("resultTest") in ENDS_BADLY
        result.setdefault(name, Case(
            name, [f"{build}/{directory}/{program}", *arguments], ranks,
            f"{build}/{directory}",
            judge_bad_end if bad_end else judge_mpich,
            {"MPITEST_RETURN_WITH_CODE": "yes"}))
    return list(result.values())


# ---- applications ------------------------------------------------------------

def lammps_energies(text):
    """The table of steps that LAMMPS prints."""
    match = re.search(r"^ *Step .*?(?=^Loop time)", text,
                      re.MULTILINE | re.DOTALL)
    return match.group(0) if match else ""


def judge_lammps(status, text):
    """It came to its last step."""
    wrong = judge_status(status, text)
    if wrong:
        return wrong
    last = re.search(r"^ *200 .*\n\Z", lammps_energies(text), re.MULTILINE)
    return "" if last else "no step 200"


# ---- recorded and compared ---------------------------------------------------

def parse_recorded(text):
    """What is not expected to pass, {name: why}, and how many do."""
    failing, passed = {}, 0
    for line in text.splitlines():
        if line.startswith("passed "):
            passed = int(line.split()[1])
        elif line and not line.startswith("#"):
            name, _, why = line.partition(": ")
            failing[name] = why
    return failing, passed


def format_recorded(results):
    """results: {name: {"tcp": wrong, "mesh_rc": wrong}}, wrong is "" where it
    passed, or None where it was not run. What parse_recorded() takes."""
    passed = sum(not result["mesh_rc"] for result in results.values())
    lines = [*RECORDED_HEAD, f"passed {passed}"]
    for name, result in results.items():
        if result["mesh_rc"]:
            over_tcp = result["tcp"] or "passes"
            lines.append(f"{name}: {result['mesh_rc']}; over tcp: {over_tcp}")
    return "\n".join(lines) + "\n"


def find_worse(results, failing, passed, whole):
    """Lines for what is worse over mesh_rc than over tcp, or than recorded."""
    worse = []
    for name, result in results.items():
        if not result["mesh_rc"]:
            continue
        if not result["tcp"]:
            worse.append(f"{name}: {result['mesh_rc']}, passes over tcp")
        elif name not in failing:
            worse.append(f"{name}: {result['mesh_rc']}, recorded as passed")
    now = sum(not result["mesh_rc"] for result in results.values())
    if whole and now < passed:
        worse.append(f"{now} passed, {passed} are recorded")
    return worse
