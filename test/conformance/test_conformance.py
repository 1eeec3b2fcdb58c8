#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests of what reads the tests of others and compares results."""

import contextlib
import io
import os
import tempfile
import unittest

import mpi_cases
import suites

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

    def test_state(self):
        """A run that was interrupted goes on."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "state")
            suites.State(path).add({"s.a": ("passed", None)})
            suites.State(path).add({"s.b": ("skipped", "why")})
            self.assertEqual(suites.State(path).results,
                             {"s.a": ("passed", None),
                              "s.b": ("skipped", "why")})
            suites.State(path).finish()
            self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
