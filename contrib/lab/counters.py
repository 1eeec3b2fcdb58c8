# SPDX-License-Identifier: BSD-3-Clause
"""Reads what a node's lanes counted: RDMA devices and netdevs. Pure."""

COMMAND = ("sh", "-c", "grep -H . /sys/class/infiniband/*/ports/1/hw_counters"
           "/* /sys/class/infiniband/*/ports/1/state "
           "/sys/class/net/*/statistics/* /sys/class/net/*/carrier "
           "2>/dev/null; true")
SHOWN_RDMA = ("sent_pkts", "rcvd_pkts", "completer_retry_err",
              "retry_exceeded_err", "rnr_retry")
SHOWN_NETDEV = ("tx_packets", "rx_packets", "tx_bytes", "rx_bytes")


def _values(text):
    """{(class, device): {counter: value}} of grep's output."""
    result = {}
    for line in text.splitlines():
        path, _, value = line.partition(":")
        parts = path.split("/")
        if len(parts) < 6:
            continue
        device = result.setdefault((parts[3], parts[4]), {})
        device[parts[-1]] = int(value) if value.isdigit() else value
    return result


def parse(node, text):
    """{netdev: {"ibdev", "rdma": {...}, "netdev": {...}}} of a node."""
    values = _values(text)
    return {lane.netdev: {
        "ibdev": lane.ibdev,
        "rdma": values.get(("infiniband", lane.ibdev), {}),
        "netdev": values.get(("net", lane.netdev), {}),
    } for lane in node.lanes}


def rows(nodes):
    """A table of the counters that tell most, for all nodes."""
    head = ("node", "netdev", "ibdev", "state")
    result = [head + SHOWN_RDMA + SHOWN_NETDEV]
    for name, lanes in nodes.items():
        for netdev, lane in lanes.items():
            rdma, link = lane["rdma"], lane["netdev"]
            state = str(rdma.get("state", "-")).partition(": ")[2] or "-"
            result.append((name, netdev, lane["ibdev"], state)
                          + tuple(str(rdma.get(k, "-")) for k in SHOWN_RDMA)
                          + tuple(str(link.get(k, "-"))
                                  for k in SHOWN_NETDEV))
    return result
