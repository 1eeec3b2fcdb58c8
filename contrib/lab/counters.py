# SPDX-License-Identifier: BSD-3-Clause
"""Reads what a node's lanes counted: RDMA devices and netdevs. Pure."""

# Software verbs have no directories, and answer those who open a file by its
# full name; grep does not.
SCRIPT = """sed -sn 'F;p' {} 2>/dev/null | paste -d: - -
grep -H . {} 2>/dev/null; true"""
RDMA = ("sent_pkts", "rcvd_pkts", "duplicate_request", "out_of_seq_request",
        "rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err", "ack_deferred",
        "retry_rnr_exceeded_err", "retry_exceeded_err", "completer_retry_err",
        "send_err", "link_downed", "rdma_sends", "rdma_recvs")
SHOWN_RDMA = ("sent_pkts", "rcvd_pkts", "completer_retry_err",
              "retry_exceeded_err", "rcvd_rnr_err")
SHOWN_NETDEV = ("tx_packets", "rx_packets", "tx_bytes", "rx_bytes")


def command(node):
    """What prints a node's counters: a line for each file, PATH:VALUE."""
    rdma, netdev = [], []
    for lane in node.lanes:
        port = f"/sys/class/infiniband/{lane.ibdev}/ports/1"
        rdma += [f"{port}/state"] + [f"{port}/hw_counters/{name}"
                                     for name in RDMA]
        link = f"/sys/class/net/{lane.netdev}"
        netdev += [f"{link}/statistics/*", f"{link}/carrier"]
    return ("sh", "-c", SCRIPT.format(" ".join(rdma), " ".join(netdev)))


def _values(text):
    """{(class, device): {counter: value}} of what was printed."""
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
