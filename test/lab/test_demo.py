# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the demo's pure parts: what it reads out of outputs."""

import json
import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[2]
                             / "contrib" / "demolib"))

# pylint: disable=wrong-import-position
import hpcc  # noqa: E402
import lanes  # noqa: E402
import steps  # noqa: E402
from runner import Failed  # noqa: E402

INFO = """\
# Memory domain: rxe0
#     Component: ib
#
#      Transport: rc_verbs
#         Device: rxe0:1
#             am_bcopy: <= 1
#
# Memory domain: rxe0
#     Component: mesh
#             register: unlimited, cost: 200 nsec
#
#      Transport: mesh_rc
#         Device: rxe0:1
#           Type: network
#             am_bcopy: <= 8244
#
#
# Memory domain: rxe1
#     Component: mesh
#
#      Transport: mesh_rc
#         Device: rxe1:1
#
# Connection manager: tcp
#         Device: none
"""

PERFTEST = """\
|    Stage     | # iterations | 50.0%ile | average | overall | ...
[thread 0]                51      2.000 19879.570 19879.570   3.14   3.14  50 50
Final:                   100      2.000       inf 45763.030   0.00   1.37   0 22
"""

STOCK = """\
[1795968618.859147] [n3:161  :0]  ib_device.c:1466 UCX  ERROR   \
ibv_create_ah(dgid=::ffff:172.30.2.2) for UD on rxe0 failed: timed out
[1795968618.859148] [n1:161  :0]  ib_device.c:1466 UCX  ERROR   \
ibv_create_ah(dgid=::ffff:172.30.2.1) for UD on rxe0 failed: timed out
[n3:00161] ../ompi/mca/pml/ucx/pml_ucx.c:419  Error: ucp_ep_create failed
[n3:00161] *** An error occurred in MPI_Alltoall
"""

STATUS = {
    "topology": {"cables": [["n1.0", "n2.1", 1500], ["n2.0", "n1.1"]]},
    "nodes": {"n1": {"lanes": [{"netdev": "a0", "port": "0", "ibdev": "rxe0",
                                "addresses": []},
                               {"netdev": "a1", "port": "1",
                                "ibdev": "rxe1", "addresses": []}]},
              "n2": {"lanes": [{"netdev": "a0", "port": "0", "ibdev": "rxe0",
                                "addresses": []},
                               {"netdev": "a1", "port": "1",
                                "ibdev": "rxe1", "addresses": []}]}},
}


def hpcc_output(*changes):
    """An output file of HPC Challenge in short, with changes."""
    text = "".join(f"Begin of {name} section.\nEnd of {name} section.\n"
                   for name in hpcc.SECTIONS)
    text += ("WALL   120   120  40  40   1   3     0.17 PASSED    0.001\n"
             "    5 tests completed and passed residual checks.\n"
             "    0 tests completed and failed residual checks.\n"
             "Found 0 errors in 32768 locations (passed).\n"
             "Node(s) with error 0\n"
             "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= "
             "       0.0041413 ...... PASSED\n"
             "Success=1\n")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def counters(*values):
    """Counters of n1 and n2: tx_bytes of n1's a0, a1 and n2's a0, a1."""
    result = {"n1": {}, "n2": {}}
    for (node, netdev), value in zip(
            (("n1", "a0"), ("n1", "a1"), ("n2", "a0"), ("n2", "a1")), values):
        result[node][netdev] = {"netdev": {"tx_bytes": value},
                                "rdma": {"sent_pkts": value // 100}}
    return result


class HpccTest(unittest.TestCase):
    """Verdicts on the output file, and the input file."""

    def test_good(self):
        verdict = hpcc.Verdict(hpcc_output())
        self.assertEqual(verdict.problems, [])
        self.assertEqual(verdict.passed, 4)
        self.assertIn("0.0041413", verdict.residual.group())

    def test_bad(self):
        for change in (("Success=1", "Success=0"),
                       ("...... PASSED", "...... FAILED"),
                       ("0.17 PASSED", "0.17 FAILED"),
                       ("Found 0 errors", "Found 12 errors"),
                       ("with error 0", "with error 2"),
                       ("    0 tests completed and failed",
                        "    1 tests completed and failed"),
                       ("End of HPL section", ""),
                       ("End of LatencyBandwidth section", "")):
            with self.subTest(change=change):
                self.assertTrue(hpcc.Verdict(hpcc_output(change)).problems)

    def test_empty(self):
        self.assertTrue(hpcc.Verdict("").problems)

    def test_section(self):
        self.assertEqual(hpcc.section(""), "")
        self.assertEqual(hpcc.section("Begin of PTRANS section.\n"
                                      "Begin of HPL section.\n"), "HPL")

    def test_input(self):
        lines = hpcc.input_text(3).splitlines()
        self.assertEqual(lines[11].split()[0], "3")
        self.assertEqual(lines[5].split()[0], "180")


class OutputTest(unittest.TestCase):
    """What is read out of UCX's and Open MPI's output."""

    def test_devices(self):
        self.assertEqual(steps.transport_devices(INFO, "mesh_rc"),
                         ["rxe0:1", "rxe1:1"])
        self.assertEqual(steps.transport_devices(INFO, "none"), [])

    def test_part(self):
        part = steps.transport_part(INFO, "mesh_rc")
        self.assertIn("8244", part)
        self.assertNotIn("<= 1\n", part)
        self.assertNotIn("none", part)

    def test_perftest(self):
        self.assertEqual(steps.perftest_result(PERFTEST, "tag_bw"),
                         "1.4 MB/s")
        self.assertEqual(steps.perftest_result(PERFTEST, "tag_lat"),
                         "45.8 ms")
        with self.assertRaises(Failed):
            steps.perftest_result("nothing", "tag_bw")

    def test_essential(self):
        lines = steps.essential_lines(STOCK)
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith("n3: ibv_create_ah(dgid="))
        self.assertEqual(lines[1], "n3: ucp_ep_create failed")
        self.assertEqual(steps.essential_lines(""), [])


    def test_why(self):
        status = json.loads(json.dumps(STATUS))
        status["nodes"]["n2"]["lanes"][0]["addresses"] = ["172.30.2.2/24"]
        cables = lanes.cables(status)
        line = ("n1: ibv_create_ah(dgid=::ffff:172.30.2.2 sgid_index=1) for "
                "UD verbs connect on rxe0 failed: Connection timed out")
        self.assertEqual(
            steps.why_unreachable(status, cables, ["other", line]),
            ["But 172.30.2.2 is n2 a0, and that cable is n2 a0/rxe0 ─ n1 "
             "a1/rxe1: n1 cannot reach it through rxe0."])
        self.assertEqual(steps.why_unreachable(status, cables, ["other"]), [])


class LanesTest(unittest.TestCase):
    """Cables and what they carried."""

    def test_cables(self):
        cables = lanes.cables(STATUS)
        self.assertEqual([str(cable) for cable in cables],
                         ["n1 a0/rxe0 ─ n2 a1/rxe1",
                          "n2 a0/rxe0 ─ n1 a1/rxe1"])

    def test_traffic(self):
        before, after = counters(0, 0, 0, 500), counters(1000, 7, 8, 2500)
        first, second = lanes.cables(STATUS)
        self.assertEqual(lanes.traffic(first, before, after), (3000, 30))
        self.assertEqual(lanes.traffic(second, before, after), (15, 0))

    def test_table(self):
        period = ("job", counters(0, 0, 0, 0), counters(1000, 7, 8, 2000))
        self.assertEqual(
            lanes.table(lanes.cables(STATUS), [period]),
            [("pair", "lanes", "job"),
             ("n1-n2", "n1 a0/rxe0 ─ n2 a1/rxe1", "3.0 kB, 30 pkts"),
             ("n2-n1", "n2 a0/rxe0 ─ n1 a1/rxe1", "15 B, 0 pkts")])

    def test_bytes(self):
        for count, text in ((999, "999 B"), (1000, "1.0 kB"),
                            (999960, "1.0 MB"), (5 * 10 ** 12, "5000.0 GB")):
            self.assertEqual(lanes.bytes_text(count), text)


if __name__ == "__main__":
    unittest.main()
