# SPDX-License-Identifier: BSD-3-Clause
"""Draws a topology's cabling as text. Pure."""


def _order(topology):
    """Node names along a line or a ring, and whether it is a ring.

    None where the cabling is neither. A line starts at the end that comes
    first in the topology, a ring at its first node.
    """
    peers = {name: [] for name in topology.nodes}
    for cable in topology.cables:
        if len(cable.ends) != 2:
            return None
        first, second = (node.name for node, _ in cable.ends)
        peers[first].append(second)
        peers[second].append(first)
    if any(len(set(p)) != len(p) or len(p) not in (1, 2)
           for p in peers.values()):
        return None
    tips = [name for name, p in peers.items() if len(p) == 1]
    order = [tips[0] if tips else next(iter(peers))]
    while True:
        following = [p for p in peers[order[-1]] if p not in order]
        if not following:
            break
        order.append(following[0])
    if len(order) != len(peers):
        return None
    return order, not tips


def _cable_between(topology, first, second):
    """(port at first, port at second, whether twins share the cable)."""
    for cable in topology.cables:
        ports = {node.name: port for node, port in cable.ends}
        if set(ports) == {first, second}:
            return ports[first], ports[second], cable.shared()
    return None


def _chain(topology, order):
    text = order[0]
    for left, right in zip(order, order[1:]):
        near, far, twins = _cable_between(topology, left, right)
        text += f" {near}{('═' if twins else '─') * 5}{far} {right}"
    return text


def _ring(topology, order):
    last, first, twins = _cable_between(topology, order[-1], order[0])
    bar, left, right = ("═", "╔╚", "╗╝") if twins else ("─", "┌└", "┐┘")
    text = f"{bar}{first} {_chain(topology, order)} {last}{bar}"
    return [left[0] + text + right[0],
            left[1] + bar * len(text) + right[1]]


def _matrix(topology):
    """Which port leads to whom: a row and a column for each node."""
    names = list(topology.nodes)
    cells = {}
    for cable in topology.cables:
        for node, port in cable.ends:
            for other, _ in cable.ends:
                if other is not node:
                    cells.setdefault((node.name, other.name), []).append(port)
    width = max(len(name) for name in names)
    width = max([width] + [len(",".join(c)) for c in cells.values()]) + 2
    head = "to".ljust(width) + "│"
    lines = [head + "".join(name.rjust(width) for name in names),
             "─" * width + "┼" + "─" * (width * len(names))]
    for name in names:
        row = "".join(",".join(cells.get((name, other), ["·"])).rjust(width)
                      for other in names)
        lines.append(name.ljust(width) + "│" + row)
    return lines


def picture(topology):
    """Lines that show the cabling: a line, a ring, or a table of ports."""
    found = _order(topology)
    if found is None:
        return _matrix(topology)
    order, ring = found
    return _ring(topology, order) if ring else [_chain(topology, order)]


def cables(topology):
    """One line for each cable: its ends, twins, networks and MTU."""
    lines = []
    for cable in topology.cables:
        bar = "═══" if cable.shared() else "───"
        text = f" {bar} ".join(f"{node.name}.{port}"
                               for node, port in cable.ends)
        networks = ", ".join(cable.networks()) or "no common network"
        mtus = sorted({lane.mtu for _, lane in cable.lanes()})
        lines.append(f"{text}  {networks}  mtu "
                     + "/".join(str(mtu) for mtu in mtus))
    return lines


def table(rows):
    """Rows of cells as aligned lines."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths))
            .rstrip() for row in rows]


def lanes(topology):
    """A table of all lanes with their devices, addresses and MTUs."""
    rows = [("node", "mgmt", "netdev", "ibdev", "mtu", "addresses")]
    for node in topology.nodes.values():
        name, mgmt = node.name, str(node.mgmt.ip)
        for lane in node.lanes:
            rows.append((name, mgmt, lane.netdev, lane.ibdev, str(lane.mtu),
                         " ".join(map(str, lane.addresses)) or "-"))
            name = mgmt = ""
    return table(rows)
