# SPDX-License-Identifier: BSD-3-Clause
"""Which lanes carried how much, from the lanes' own counters. Pure."""


class Cable:
    """Two lanes that a cable joins: (node, netdev, ibdev) each."""

    def __init__(self, ends):
        self.ends = ends

    def nodes(self):
        """The names of the two nodes."""
        return [node for node, _, _ in self.ends]

    def __str__(self):
        return " ─ ".join(f"{node} {netdev}/{ibdev}"
                          for node, netdev, ibdev in self.ends)


def cables(status):
    """The cables of a lab, from `mesh-lab status --json`; no twins."""
    result = []
    for cable in status["topology"]["cables"]:
        ends = []
        for end in [end for end in cable if isinstance(end, str)]:
            node, port = end.split(".")
            ends += [(node, lane["netdev"], lane["ibdev"])
                     for lane in status["nodes"][node]["lanes"]
                     if lane["port"] == port]
        result.append(Cable(ends))
    return result


def _sent(counters, end):
    node, netdev, _ = end
    lane = counters[node][netdev]
    return (int(lane["netdev"]["tx_bytes"]), int(lane["rdma"]["sent_pkts"]))


def traffic(cable, before, after):
    """(bytes, RDMA packets) that both ends of a cable sent in between."""
    result = (0, 0)
    for end in cable.ends:
        result = tuple(total + new - old for total, new, old in
                       zip(result, _sent(after, end), _sent(before, end)))
    return result


def bytes_text(count):
    """1234567 as "1.2 MB"."""
    if count < 1000:
        return f"{count} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95 or unit == "GB":
            return f"{count:.1f} {unit}"
    return ""


def table(all_cables, periods):
    """Rows: a cable each, and what it carried in each period.

    periods is a list of (title, counters before, counters after).
    """
    rows = [("pair", "lanes", *(title for title, _, _ in periods))]
    for cable in all_cables:
        rows.append(("-".join(cable.nodes()), str(cable),
                     *(_cell(traffic(cable, before, after))
                       for _, before, after in periods)))
    return rows


def _cell(sent):
    return f"{bytes_text(sent[0])}, {sent[1]} pkts"
