#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests of what reads the tests of others and compares results."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import tempfile
import unittest
import unittest.mock

import beside
import mpi_cases
import suites

HERE = pathlib.Path(__file__).resolve().parent

LIST = """\
# comment
allred 4 arg=-count=10
allred 4 arg=-count=10 env=MPIR_CVAR_X=1
allred 7 arg=-count=10
huge 3 mem=6.5
mpich_only 2 mpix=true
errfatal 1 resultTest=TestErrFatal
plain
"""


def load_mpi_run():
    """The program as a module."""
    loader = importlib.machinery.SourceFileLoader(
        "mpi_run", os.fspath(HERE / "mpi_run"))
    spec = importlib.util.spec_from_loader("mpi_run", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Lists(unittest.TestCase):
    """MPICH's testlist files."""

    def setUp(self):
        self.cases = mpi_cases.parse_list(LIST, "coll", "/build")

    def test_names(self):
        """Settings of MPICH make no case of their own."""
        self.assertEqual([case.name for case in self.cases],
                         ["coll/allred 4 -count=10", "coll/allred 7 -count=10",
                          "coll/errfatal 1", "coll/plain 2"])

    def test_what_is_run(self):
        """Program, arguments and ranks."""
        case = self.cases[1]
        self.assertEqual((case.argv, case.ranks),
                         (["/build/coll/allred", "-count=10"], 7))

    def test_ends_badly(self):
        """Of a program that has to fail success is a failure."""
        judge = self.cases[2].judge
        self.assertEqual(judge(1, ""), "")
        self.assertTrue(judge(0, " No Errors\n"))
        self.assertTrue(judge(None, ""))

    def test_nodes(self):
        """Never more nodes than ranks."""
        names = ["n1", "n2", "n3", "n4"]
        for case in self.cases:
            self.assertEqual(len(case.nodes(names)), min(case.ranks, 4))


class Judges(unittest.TestCase):
    """What counts as passed."""

    def test_mpich(self):
        """The words alone are not enough, nor is the status."""
        self.assertEqual(mpi_cases.judge_mpich(0, "x\n No Errors\n"), "")
        for status, text in ((0, ""), (1, " No Errors\n"), (None, ""),
                             (0, "Found 3 errors\n")):
            self.assertTrue(mpi_cases.judge_mpich(status, text))

    def test_lammps(self):
        """The table of energies has to reach the last step."""
        head, last = "Step Temp\n  0 3\n", "  200 1.65\n"
        tail = "Loop time of 1 on 4 procs\n"
        self.assertEqual(mpi_cases.judge_lammps(0, head + last + tail), "")
        self.assertTrue(mpi_cases.judge_lammps(0, head + tail))
        self.assertTrue(mpi_cases.judge_lammps(1, head + last + tail))
        self.assertNotIn("Loop",
                         mpi_cases.lammps_energies(head + last + tail))


class Comparing(unittest.TestCase):
    """Worse than recorded, or than over tcp."""

    results = {"a": {"tcp": None, "mesh_rc": ""},
               "b": {"tcp": "timeout", "mesh_rc": "status 1"}}

    def test_as_recorded(self):
        """What was written is what is read, and no worse."""
        text = mpi_cases.format_recorded(self.results)
        failing, passed = mpi_cases.parse_recorded(text)
        self.assertEqual((list(failing), passed), (["b"], 1))
        self.assertEqual(
            mpi_cases.find_worse(self.results, failing, passed, True), [])

    def test_worse(self):
        """Each way of being worse."""
        find = mpi_cases.find_worse
        self.assertTrue(find(self.results, {}, 1, True))
        self.assertTrue(find(self.results, {"b": ""}, 2, True))
        self.assertFalse(find(self.results, {"b": ""}, 2, False))
        self.assertTrue(find({"a": {"tcp": "", "mesh_rc": "timeout"}},
                             {"a": ""}, 0, True))

    def test_suites(self):
        """A suite of UCX's that passes fewer than recorded."""
        table = {"s": {"s.a": ("passed", None), "s.b": ("skipped", "x")}}
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(suites.print_worse(table, {"s": 1}), 0)
            self.assertEqual(suites.print_worse(table, {"s": 2}), 1)
            self.assertEqual(suites.print_worse(table, {"other": 1}), 1)

    def test_beside(self):
        """What another transport's tests pass and these don't even begin."""
        own = {"mesh_rc/s.a/0": ("passed", None),
               "mesh_rc/s.b/0": ("skipped", "no atomics"),
               "mesh_rc/s.c/0": ("failed", None),
               "mesh_rc/s.d/0": ("skipped", "neither")}
        other = {"rc_verbs/s.a/0": ("passed", None),
                 "rc_verbs/s.b/0": ("passed", None),
                 "rc_verbs/s.c/0": ("passed", None),
                 "rc_verbs/s.d/0": ("skipped", "neither"),
                 "rc_verbs/s.e/0": ("passed", None)}
        self.assertEqual(beside.not_run(own, other),
                         {"s.b/0": "no atomics", "s.e/0": "no such test"})

    def test_beside_recorded(self):
        """What is known is no failure, what is new is one."""
        with tempfile.TemporaryDirectory() as directory:
            own, other, known = (os.path.join(directory, name)
                                 for name in ("own", "other", "known"))
            suites.State(own).add({"mesh_rc/s.a/0": ("skipped", "x")})
            suites.State(other).add({"rc_verbs/s.a/0": ("passed", None)})
            with open(known, "w"):
                pass
            def status(*options):
                with unittest.mock.patch(
                        "sys.argv", ["beside", own, other, known, *options]), \
                        contextlib.redirect_stdout(io.StringIO()):
                    return beside.main()
            self.assertEqual([status(), status("--record"), status()],
                             [1, 0, 0])

    def test_state(self):
        """A run that was interrupted goes on."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "state")
            suites.State(path).add({"s.a": ("passed", None)})
            suites.State(path).add({"s.b": ("skipped", "why")})
            self.assertEqual(suites.State(path).results,
                             {"s.a": ("passed", None),
                              "s.b": ("skipped", "why")})
            suites.State(path).finish(path + ".kept")
            self.assertFalse(os.path.exists(path))
            self.assertEqual(len(suites.State(path + ".kept").results), 2)
            suites.State(path + ".kept").finish()
            self.assertEqual(os.listdir(directory), [])


GTEST = """\
#!/usr/bin/env python3
import os, sys, time
tests = ["s.a", "s.crashes", "s.b", "s.skips", "s.fails", "s.c"] + \\
    ["t.%d" % i for i in range(100)]
if "--gtest_list_tests" in sys.argv:
    print("s.")
    print("\\n".join("  " + test[2:] for test in tests if test[0] == "s"))
    print("t.")
    print("\\n".join("  " + test[2:] for test in tests if test[0] == "t"))
    sys.exit()
for test in sys.argv[1].partition("=")[2].split(":"):
    print("[ RUN      ]", test, flush=True)
    if test == "s.crashes":
        os.abort()
    if test == "s.skips":
        print("[     SKIP ] (why)")
    word = "[  FAILED  ]" if test == "s.fails" else "[       OK ]"
    print(word, test, "(1 ms)", flush=True)
"""


class Running(unittest.TestCase):
    """Programs side by side, here one that only looks like UCX's tests."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name)
        self.program = self.path / "gtest"
        self.program.write_text(GTEST)
        self.program.chmod(0o755)

    def run_tests(self, jobs, state):
        """The table of all."""
        log = suites.Log(self.path / "log", anew=True)
        found = suites.list_suites(self.program, os.environ, "*")
        with contextlib.redirect_stdout(io.StringIO()):
            return suites.run_suites(
                found, jobs, state, lambda tests: suites.run_batch(
                    os.fspath(self.program), os.environ, tests, log, 60,
                    state))

    def test_jobs(self):
        """However many run side by side, each test has its own result, and
        the log has what each printed in one piece."""
        for jobs in (1, 5):
            table = self.run_tests(jobs, suites.State(self.path / f"s{jobs}"))
            self.assertEqual(
                {name: result for name, (result, _) in table["s"].items()},
                {"s.a": "passed", "s.crashes": "crashed", "s.b": "passed",
                 "s.skips": "skipped", "s.fails": "failed", "s.c": "passed"})
            self.assertEqual(suites.count_passed(table["t"]), 100)
            lines = (self.path / "log").read_text().splitlines()
            for number in range(100):
                start = lines.index(f"[ RUN      ] t.{number}")
                self.assertEqual(lines[start + 1],
                                 f"[       OK ] t.{number} (1 ms)")

    def test_goes_on(self):
        """What has a result is not run again."""
        state = suites.State(self.path / "state")
        state.add({"t.7": ("failed", "earlier")})
        table = self.run_tests(2, state)
        self.assertEqual(table["t"]["t.7"], ("failed", "earlier"))
        self.assertEqual(suites.count_passed(table["t"]), 99)
        self.assertEqual(len(suites.State(self.path / "state").results), 106)


class MpiRun(unittest.TestCase):
    """The queue of cases, and what is still to be run."""

    def setUp(self):
        self.mpi_run = load_mpi_run()
        self.mpi_run.RING_POLL_S = 0.2

    def test_rings(self):
        """Each case comes back once; what comes in meanwhile, too."""
        def serve(wanted, done):
            for number, transport in iter(wanted.get, None):
                done.put((number, transport, os.getpid()))
        rings = self.mpi_run.Rings(3, serve)
        for number in range(10):
            rings.give(number, ["mesh_rc"])
        seen = []
        for number, transport, pid in rings.results():
            self.assertNotEqual(pid, os.getpid())
            seen.append((number, transport))
            if number % 2 and transport == "mesh_rc":
                rings.give(number, ["tcp"])
        rings.close()
        self.assertEqual(sorted(seen),
                         sorted([(n, "mesh_rc") for n in range(10)] +
                                [(n, "tcp") for n in range(1, 10, 2)]))

    def test_lost_ring(self):
        """A ring that breaks ends the run: its case would never come."""
        rings = self.mpi_run.Rings(2, lambda wanted, done: os._exit(
            wanted.get()[0]))
        rings.give(1, ["mesh_rc"])
        with self.assertRaises(SystemExit):
            list(rings.results())

    def test_left(self):
        """Over tcp only what failed, or has a result to compare."""
        plain = mpi_cases.Case("a/b 2", ["b"], 2, ".", None)
        compared = mpi_cases.Case("c 2", ["c"], 2, ".", None, digest=str)
        with tempfile.TemporaryDirectory() as directory:
            state = self.mpi_run.State(pathlib.Path(directory, "s"), False)
            self.assertEqual(state.left(plain), ["mesh_rc"])
            state.add(plain.name, "mesh_rc", "", "")
            state.add(compared.name, "mesh_rc", "", "x")
            self.assertEqual((state.left(plain), state.left(compared)),
                             ([], ["tcp"]))
            state.add(plain.name, "mesh_rc", "timeout", "")
            self.assertEqual(state.left(plain), ["tcp"])
            state.add(plain.name, "tcp", "", "")
            self.assertEqual(state.left(plain), [])


if __name__ == "__main__":
    unittest.main()
