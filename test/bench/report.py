#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""Says what a run of bench.py found.

    report.py DIRECTORY        writes summary.txt, index.html and its plots
    report.py --compare A B    B's medians beside A's

Plots need python3-matplotlib; without it the page has the tables only. Each is
drawn twice, for light and for dark pages.
"""

import argparse
import html
import json
import pathlib
import statistics

# Measure, section, case, contender, the one it is compared to, limit; a case
# that ends in * is the sum of what is there.
AT_MOST, AT_LEAST = "<=", ">="
TARGETS = (
    ("tag latency 8 B, mesh_rc / rc_verbs", "p2p", "tag_lat_8", "mesh_rc",
     "rc_verbs", AT_MOST, 0.95),
    ("tag latency 8 B, mesh_rc / raw verbs ping-pong", "p2p", "tag_lat_8",
     "mesh_rc", "ib_send_lat", AT_MOST, 1.15),
    ("bandwidth 1 MiB, mesh_rc / raw verbs write", "p2p", "tag_bw_1048576",
     "mesh_rc", "ib_write_bw", AT_LEAST, 0.97),
    ("message rate 8 B, 64 outstanding, mesh_rc / rc_verbs", "p2p",
     "rate_8_outstanding_64", "mesh_rc", "rc_verbs", AT_LEAST, 1.2),
    ("instructions per 8 B AM send+receive, mesh_rc / rc_verbs",
     "instructions", "am_short_8_pingpong", "mesh_rc", "rc_verbs", AT_MOST,
     0.9),
    ("two lanes / one lane, 16 MiB, shaped lanes", "lanes",
     "lanes_tag_bw_16777216", "mesh_rc_2", "mesh_rc_1", AT_LEAST, 1.9),
    ("connect to first byte, mesh_rc / rc_verbs with ud", "connect",
     "first_byte_16", "mesh_rc", "rc_verbs", AT_MOST, 0.8),
    ("progress with 64 idle peers / with 1", "instructions",
     "progress_64_peers:progress_1_peer", "mesh_rc", "mesh_rc", AT_MOST, 1.1),
    ("idle memory per connected peer, KiB of the heap beyond the QP", "heap",
     "peer", "mesh_rc", None, AT_MOST, 16),
    ("NCCL all-reduce 64 MiB, mesh / Socket", "nccl",
     "all_reduce_67108864", "mesh", "Socket", AT_LEAST, 1.0),
)
THEMES = {"light": ("#ffffff", "#1f2328"), "dark": ("#0d1117", "#e6edf3")}
STYLE = """body{font:15px/1.5 sans-serif;margin:2em auto;max-width:60em;
padding:0 1em;color:#1f2328;background:#fff}table{border-collapse:collapse;
margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #8886;
text-align:right}td:first-child,th:first-child{text-align:left}img{width:100%}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}}"""


class Results:
    """What is in results.jsonl: numbers by section, case and contender, in the
    order of the rounds."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.about, self.notes, self.values, self.units = {}, [], {}, {}
        self.lines = []
        with open(self.directory / "results.jsonl",
                  encoding="utf-8") as stream:
            for line in map(json.loads, stream):
                self._take(line)

    def _take(self, line):
        if "about" in line:
            self.about = line["about"]
        elif "note" in line:
            self.notes.append(f"{line['section']}: {line['note']}")
        else:
            key = line["section"], line["case"], line["contender"]
            self.values.setdefault(key, []).append(line["value"])
            self.units[key] = line["unit"]
            self.lines.append(line)

    def median(self, section, case, contender):
        """None if it was not measured."""
        values = self.values.get((section, case, contender))
        return statistics.median(values) if values else None

    def ratio(self, section, case, over, under):
        """(ratio of the medians, smallest and largest of a round) or None.
        "A:B" as a case: that of case A to case B."""
        first, _, second = case.partition(":")
        one = self.values.get((section, first, over))
        other = self.values.get((section, second or first, under))
        if under is None and one:
            return statistics.median(one), min(one), max(one)
        if not one or not other or not statistics.median(other):
            return None
        rounds = [a / b for a, b in zip(one, other) if b]
        return (statistics.median(one) / statistics.median(other),
                min(rounds), max(rounds))

    def targets(self):
        """[(measure, limit, ratio or None, verdict)]"""
        rows = []
        for measure, section, case, over, under, sign, limit in TARGETS:
            ratio = self.ratio(section, case, over, under)
            verdict = "not measured"
            if ratio:
                reached = (ratio[0] <= limit if sign == AT_MOST
                           else ratio[0] >= limit)
                verdict = "reached" if reached else "missed"
            rows.append((measure, f"{sign} {limit}", ratio, verdict))
        return rows

    def tables(self):
        """{section: (contenders, [(case, unit, {contender: median})])}"""
        result = {}
        for (section, case, contender), unit in self.units.items():
            contenders, rows = result.setdefault(section, ([], {}))
            if contender not in contenders:
                contenders.append(contender)
            rows.setdefault((case, unit), {})[contender] = \
                self.median(section, case, contender)
        return {section: (contenders,
                          [(case, unit, row)
                           for (case, unit), row in rows.items()])
                for section, (contenders, rows) in result.items()}


def _about(results):
    about = results.about
    packages = ", ".join(f"{name} {version}" for name, version
                         in about.get("packages", {}).items())
    return (f"{about.get('date')}, commit {about.get('commit')}, fabric "
            f"{about.get('fabric')}{', quick' if about.get('quick') else ''}; "
            f"{about.get('processors')} processors ({about.get('processor')}),"
            f" Linux {about.get('kernel')}, load {about.get('load'):.1f} at the"
            f" start; {packages}")


def _spread(ratio):
    if ratio is None:
        return "-"
    middle, low, high = ratio
    return (f"{middle:.2f}" if abs(high - low) < 0.005
            else f"{middle:.2f} ({low:.2f} to {high:.2f})")


def summary(results):
    """As text."""
    lines = [_about(results), ""]
    for measure, limit, ratio, verdict in results.targets():
        lines.append(f"{measure}: {_spread(ratio)}, {limit}: {verdict}")
    for section, (contenders, rows) in results.tables().items():
        lines += ["", f"{section} (medians)"]
        for case, unit, row in rows:
            figures = ", ".join(f"{name} {row[name]:.1f}"
                                for name in contenders if name in row)
            lines.append(f"  {case} [{unit}]: {figures}")
    return "\n".join(lines + [""] + results.notes) + "\n"


# ---- the page ----------------------------------------------------------------

def _cells(tag, texts):
    return "<tr>" + "".join(f"<{tag}>{html.escape(str(text))}</{tag}>"
                            for text in texts) + "</tr>"


def _table(head, rows):
    return ("<table>" + _cells("th", head)
            + "".join(_cells("td", row) for row in rows) + "</table>")


def _picture(name):
    return (f'<picture><source srcset="{name}-dark.svg" media="(prefers-color-'
            f'scheme: dark)"><img src="{name}-light.svg" alt="{name}">'
            "</picture>")


def page(results, plots):
    """As HTML."""
    parts = ["<!DOCTYPE html><meta charset=utf-8><title>Benchmarks</title>",
             f"<style>{STYLE}</style><h1>Benchmarks</h1>",
             f"<p>{html.escape(_about(results))}</p>",
             _table(("measure", "limit", "ratio (rounds)", ""),
                    [(measure, limit, _spread(ratio), verdict)
                     for measure, limit, ratio, verdict
                     in results.targets()])]
    parts += [_picture(name) for name in plots]
    for section, (contenders, rows) in results.tables().items():
        parts += [f"<h2>{section}</h2>", _table(
            ("case (medians)", "unit", *contenders),
            [(case, unit, *(f"{row[name]:.1f}" if name in row else ""
                            for name in contenders))
             for case, unit, row in rows])]
    parts += [f"<p>{html.escape(note)}</p>" for note in results.notes]
    return "\n".join(parts) + "\n"


def _series(results):
    """{plot: (unit, along, {contender: {number: median}})} of the cases whose
    lines have a size or a number of peers to plot along."""
    plots = {}
    for line in results.lines:
        along = "peers" if "peers" in line else "size"
        if along not in line or not isinstance(line[along], int):
            continue
        kind = line["case"].removesuffix(f"_{line[along]}")
        _, _, curves = plots.setdefault(
            f"{line['section']}-{kind}", (line["unit"], along, {}))
        curves.setdefault(line["contender"], {})[line[along]] = results.median(
            line["section"], line["case"], line["contender"])
    return {name: plot for name, plot in plots.items()
            if max(map(len, plot[2].values())) > 1}


def _draw(pyplot, path, name, plot, theme):
    unit, along, curves = plot
    background, ink = THEMES[theme]
    with pyplot.rc_context({"axes.edgecolor": ink, "axes.labelcolor": ink,
                            "xtick.color": ink, "ytick.color": ink,
                            "text.color": ink, "svg.hashsalt": name}):
        figure, axes = pyplot.subplots(figsize=(8, 4))
        figure.patch.set_facecolor(background)
        axes.set_facecolor(background)
        for contender, curve in sorted(curves.items()):
            axes.plot(*zip(*sorted(curve.items())), marker="o",
                      label=contender)
        axes.set(xscale="log", yscale="log", title=name,
                 xlabel="bytes" if along == "size" else along, ylabel=unit)
        axes.grid(alpha=0.3)
        axes.legend(facecolor=background, edgecolor=ink)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def draw(results):
    """Draws all; the names of the plots."""
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel
        matplotlib.use("svg")
        from matplotlib import pyplot  # pylint: disable=all
    except ImportError:
        results.notes.append("no plots: python3-matplotlib is missing")
        return []
    plots = _series(results)
    for name, plot in plots.items():
        for theme in THEMES:
            _draw(pyplot, results.directory / f"{name}-{theme}.svg", name,
                  plot, theme)
    return list(plots)


def write(directory):
    """Everything; the summary's text."""
    results = Results(directory)
    text = summary(results)
    plots = draw(results)
    (results.directory / "summary.txt").write_text(text, "utf-8")
    (results.directory / "index.html").write_text(page(results, plots),
                                                  "utf-8")
    return text


def compare(first, second):
    """B / A of each median, where both measured it."""
    one, other = Results(first), Results(second)
    lines = [f"A: {_about(one)}", f"B: {_about(other)}", ""]
    for key in one.values:
        before, after = one.median(*key), other.median(*key)
        if before and after is not None:
            lines.append(f"{' '.join(key)}: {before:.2f} -> {after:.2f} "
                         f"{one.units[key]} ({after / before:.2f})")
    for row, new in zip(one.targets(), other.targets()):
        lines.append(f"{row[0]}: {_spread(row[2])} -> {_spread(new[2])}")
    return "\n".join(lines)


def main():
    """See above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("directories", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.compare:
        print(compare(*options.directories[:2]))
        return
    for directory in options.directories:
        print(write(directory), end="")


if __name__ == "__main__":
    main()
