# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests of report.py."""

import json
import pathlib
import tempfile
import unittest

import report

ABOUT = {"commit": "abc", "date": "2026-12-01 00:00", "load": 0.5}


def _line(case, contender, value, **more):
    return {"section": "p2p", "case": case, "contender": contender,
            "value": value, "unit": "us", **more}


class ReportTest(unittest.TestCase):
    """What is made of a file of results."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)

    def _write(self, *lines):
        with open(self.path / "results.jsonl", "w",
                  encoding="utf-8") as stream:
            for line in ({"about": ABOUT}, *lines):
                stream.write(json.dumps(line) + "\n")
        return report.Results(self.path)

    def _verdict(self, results, measure):
        return {row[0]: row[3] for row in results.targets()}[measure]

    def test_ratio_is_that_of_medians_in_turns(self):
        """With the smallest and the largest of a round."""
        results = self._write(*(_line("tag_lat_8", name, value)
                                for name, values in (("mesh_rc", (9, 18, 90)),
                                                     ("rc_verbs", (10, 20, 30)))
                                for value in values))
        self.assertEqual(results.ratio("p2p", "tag_lat_8", "mesh_rc",
                                       "rc_verbs"), (0.9, 0.9, 3))
        measure = "tag latency 8 B, mesh_rc / rc_verbs"
        self.assertEqual(self._verdict(results, measure), "reached")

    def test_missed_and_not_measured(self):
        """Neither counts as reached."""
        results = self._write(_line("tag_lat_8", "mesh_rc", 2),
                              _line("tag_lat_8", "rc_verbs", 1))
        measure = "tag latency 8 B, mesh_rc / rc_verbs"
        self.assertEqual(self._verdict(results, measure), "missed")
        measure = "progress with 64 idle peers / with 1"
        self.assertEqual(self._verdict(results, measure), "not measured")

    def test_page_and_summary(self):
        """Each number and each note is there; a size makes a plot's point."""
        results = self._write(
            *(_line(f"tag_lat_{size}", "mesh_rc", size / 8, size=size)
              for size in (8, 64)),
            {"section": "p2p", "note": "<tcp> failed"})
        text = report.write(self.path)
        self.assertIn("p2p: <tcp> failed", text)
        page = (self.path / "index.html").read_text("utf-8")
        self.assertIn("&lt;tcp&gt; failed", page)
        self.assertIn("<td>8.0</td>", page)
        curves = report._series(results)  # pylint: disable=protected-access
        self.assertEqual(curves["p2p-tag_lat"][2],
                         {"mesh_rc": {8: 1, 64: 8}})

    def test_compare(self):
        """B beside A."""
        self._write(_line("get_8", "mesh_rc", 4))
        text = report.compare(self.path, self.path)
        self.assertIn("p2p get_8 mesh_rc: 4.00 -> 4.00 us (1.00)", text)


if __name__ == "__main__":
    unittest.main()
