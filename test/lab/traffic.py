# SPDX-License-Identifier: BSD-3-Clause
"""Proof of the path: what the lanes' own counters say of a job.

A lane has moved RDMA packets when its RDMA device says so, and so many bytes
when its netdev says so; the log of the transport is not asked.
"""

import collections

import lab

# Probes and set-up of connections, ARP, neighbour discovery, multicast.
NOISE_BYTES = 64 << 10
# Headers of packets and acknowledgements, a few sent again.
OVERHEAD = 1.3
MTU = 4096

Moved = collections.namedtuple("Moved", "sent rcvd tx_bytes rx_bytes tx_pkts")


def _flat(counters):
    return {(node, netdev): Moved(
        lane["rdma"]["sent_pkts"], lane["rdma"]["rcvd_pkts"],
        lane["netdev"]["tx_bytes"], lane["netdev"]["rx_bytes"],
        lane["netdev"]["tx_packets"])
            for node, lanes in counters.items()
            for netdev, lane in lanes.items()}


class Watch:
    """What every lane moves from now on."""

    def __init__(self, net):
        self.net = net
        self.before = _flat(net.counters())

    def moved(self):
        """{(node, netdev): Moved} since the start."""
        after = _flat(self.net.counters())
        return {lane: Moved(*(new - old for new, old
                              in zip(after[lane], self.before[lane])))
                for lane in after}

    def check(self, expected):
        """Checks all lanes; expected is {(node, netdev): payload bytes in
        each direction}, any other lane must be idle. Returns moved()."""
        moved = self.moved()
        for lane, now in moved.items():
            if lane in expected:
                check_busy(lane, now, expected[lane], moved)
            else:
                check_idle(lane, now, moved)
        return moved


def table(moved):
    """All of it as text."""
    return "\n".join(f"{node}.{netdev}: {now}"
                     for (node, netdev), now in moved.items())


def check_idle(lane, now, moved):
    """Not one RDMA packet, and no more bytes than noise."""
    name = ".".join(lane)
    lab.check(now.sent == 0 and now.rcvd == 0,
              f"{name} moved {now.sent + now.rcvd} RDMA packets, it should "
              "have been idle", table(moved))
    lab.check(now.tx_bytes < NOISE_BYTES and now.rx_bytes < NOISE_BYTES,
              f"{name} moved {now.tx_bytes + now.rx_bytes} bytes, it should "
              "have been idle", table(moved))


def check_busy(lane, now, payload, moved):
    """So many bytes in each direction, and as RDMA packets."""
    name = ".".join(lane)
    most = payload * OVERHEAD + NOISE_BYTES
    for what, count in (("sent", now.tx_bytes), ("received", now.rx_bytes)):
        lab.check(payload <= count <= most,
                  f"{name} {what} {count} bytes, expected about {payload}",
                  table(moved))
    lab.check(now.sent >= payload // MTU and now.rcvd >= payload // MTU,
              f"{name} moved {now.sent + now.rcvd} RDMA packets, too few",
              table(moved))
