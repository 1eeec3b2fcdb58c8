# SPDX-License-Identifier: BSD-3-Clause
"""Two processes on two nodes: mesh_rc beside rc_verbs, tcp and raw verbs.

ucx_perftest moves the data for UCX's transports; perftest's ib_* and
ibv_rc_pingpong use verbs directly, on the same devices. The contenders of a
case take turns, round after round.
"""

import collections
import itertools
import os
import re

import lab

TRANSPORT = os.fspath(lab.BUILD / ".libs" / "libuct_mesh.so.0")
PERFTEST = "/usr/bin/ucx_perftest"
SECONDS = 90
ROUNDS, QUICK_ROUNDS = 9, 5
KIB, MIB = 1 << 10, 1 << 20
GID = {"swverbs": "1", "vm": "1"}

# How an MPI job uses each of them, for Lab.mpirun().
MPI = {
    "mesh_rc": {"tls": "mesh_rc,self"},
    "rc_verbs": {"tls": "rc_verbs,ud_verbs,self", "stock": True,
                 "env": {"UCX_IB_GID_INDEX": "0"}},
    "tcp": {"tls": "tcp,self", "stock": True},
}

Case = collections.namedtuple("Case", "name test size count options")
_ports = itertools.count(14000)


class Pair:
    """Two nodes of a lab, and how to measure between them."""

    def __init__(self, net, client="n1", server="n2", lanes=1, meshd_on=False):
        self.net = net
        self.client, self.server = client, server
        cabled = net.cabled(client, server)
        self.lanes = [own for own, _ in cabled[:lanes]]
        self.meshd_on = meshd_on
        self.host = net.shell(server, "hostname -I").split()[0]
        if cabled:
            self.device = self._device(client, cabled[0][0])
            self.far_device = self._device(server, cabled[0][1])
            self.far_address = self._address(server, cabled[0][1])
        self.devices = ",".join(self._device(client, lane) + ":1"
                                for lane in self.lanes)
        self.far_devices = ",".join(self._device(server, far) + ":1"
                                    for _, far in cabled[:lanes])
        self.netdevs = cabled[0] if cabled else None

    def _lane(self, node, netdev):
        return next(lane for lane in self.net.lanes(node)
                    if lane["netdev"] == netdev)

    def _device(self, node, netdev):
        return self._lane(node, netdev)["ibdev"]

    def _address(self, node, netdev):
        return self._lane(node, netdev)["addresses"][0].partition("/")[0]

    def environment(self, contender, far=0):
        """The settings of UCX at the client, or at the far end."""
        devices = self.far_devices if far else self.devices
        if contender == "mesh_rc":
            env = {"LD_PRELOAD": TRANSPORT, "UCX_TLS": "mesh_rc"}
            if self.meshd_on:
                env["MESH_MESHD"] = "required"
        elif contender == "rc_verbs":
            env = {"UCX_TLS": "rc_verbs,ud_verbs", "UCX_IB_GID_INDEX": "0"}
        else:
            return {"UCX_TLS": "tcp", "UCX_NET_DEVICES": self.netdevs[far]}
        if devices:
            env["UCX_NET_DEVICES"] = devices
        return env

    def _both(self, argv, env, far_env, host, more=((), ())):
        """Runs a server and a client; the client's output."""
        port = next(_ports)
        argv = [*map(str, argv), "-p", str(port)]
        server = self.net.start(self.server, *argv, *more[1], env=far_env)
        self.net.shell(self.server, f"until grep -qi ':{port:04X} .* 0A ' "
                       "/proc/net/tcp /proc/net/tcp6; do sleep 0.05; done")
        client = self.net.exec(self.client, *argv, *more[0], host, env=env,
                               deadline=SECONDS)
        server.wait(SECONDS)
        return client.succeeded().out

    def ucx(self, contender, case):
        """ucx_perftest's last line of numbers."""
        argv = [PERFTEST, "-v", "-f", "-t", case.test, "-s", case.size, "-n",
                case.count, "-w", max(1, case.count // 10), *case.options]
        out = self._both(argv, self.environment(contender, 0),
                         self.environment(contender, 1), self.host)
        numbers = re.findall(r"^ *\d+(?:,[\d.]+)+$", out, re.MULTILINE)
        lab.check(numbers, f"{case.name}: no figures", out)
        fields = [float(text) for text in numbers[-1].split(",")]
        return {"latency": fields[1], "bandwidth": fields[5],
                "rate": fields[7]}

    def raw(self, tool, case):
        """The same of perftest or of ibv_rc_pingpong."""
        gid = GID[lab.FABRIC]
        if tool == "ibv_rc_pingpong":
            out = self._both([tool, "-g", gid, "-s", case.size, "-n",
                              case.count], None, None, self.far_address,
                             (("-d", self.device), ("-d", self.far_device)))
            value = re.search(r"= ([\d.]+) usec/iter", out)
            lab.check(value, f"{tool}: no figures", out)
            return {"latency": float(value.group(1)) / 2}
        out = self._both([tool, "-F", "-x", gid, "-s", case.size, "-n",
                          case.count], None, None, self.far_address,
                         (("-d", self.device), ("-d", self.far_device)))
        rows = re.findall(rf"^ *{case.size} +\d+ +(.*)$", out, re.MULTILINE)
        lab.check(rows, f"{tool}: no figures", out)
        fields = [float(text) for text in rows[-1].split()]
        if tool.endswith("_lat"):
            return {"latency": fields[2]}
        return {"bandwidth": fields[1]}


def _count(size, machines, rate=False):
    """How often: what takes a second or so. Two processes and their devices'
    threads on few processors take turns in some way or other for a while."""
    if rate:
        return 1000 if machines else 100000
    most = (8 if machines else 256) * MIB
    return max(8, min(200 if machines else 10000, most // size))


def _cases(bench, machines):
    """[(unit, case, contenders)]"""
    ucx = ("mesh_rc", "rc_verbs", "tcp")
    small = (8, 4 * KIB, 64 * KIB) if bench.quick else \
        (1, 8, 64, 512, 4 * KIB, 16 * KIB, 64 * KIB)
    large = (64 * KIB, MIB) if bench.quick else \
        (64 * KIB, MIB, 16 * MIB, 64 * MIB)
    for size in small:
        count = _count(size, machines)
        raw = ("ib_send_lat", "ibv_rc_pingpong") if size == 8 else \
            ("ib_send_lat",)
        yield "latency", Case(f"tag_lat_{size}", "tag_lat", size, count, ()), \
            ucx + raw
        yield "latency", Case(f"am_lat_{size}", "ucp_am_lat", size, count,
                              ()), ucx
    for size in large:
        count = _count(size, machines)
        raw = ("ib_write_bw", "ib_read_bw") if size <= MIB else ()
        yield "bandwidth", Case(f"tag_bw_{size}", "tag_bw", size, count,
                                ("-O", 16)), \
            ucx + raw
    for outstanding in (1, 16, 64):
        yield "rate", Case(f"rate_8_outstanding_{outstanding}", "tag_bw", 8,
                           _count(8, machines, True),
                           ("-O", outstanding)), ucx
    yield "latency", Case("put_lat_8", "ucp_put_lat", 8, _count(8, machines),
                          ()), ucx[:2] + ("ib_write_lat",)
    yield "latency", Case("get_8", "ucp_get", 8, _count(8, machines), ()), \
        ucx[:2]
    for test in ("ucp_put_bw", "ucp_get"):
        yield "bandwidth", Case(f"{test}_{MIB}", test, MIB,
                                _count(MIB, machines), ()), ucx[:2]


UNITS = {"latency": "us", "bandwidth": "MB/s", "rate": "messages/s"}


def measure(bench, section, pairs, cases):
    """All rounds of all cases, the contenders in turns. pairs are {suffix of
    a contender's name: Pair}."""
    rounds = QUICK_ROUNDS if bench.quick else ROUNDS
    for unit, case, contenders in cases:
        broken = set()
        for number, contender, suffix in itertools.product(
                range(rounds), contenders, pairs):
            name = contender + suffix
            if name in broken:
                continue
            pair = pairs[suffix]
            run = pair.raw if contender.startswith("ib") else pair.ucx
            try:
                value = run(contender, case)[unit]
            except lab.Failure as error:
                broken.add(name)
                bench.note(section, f"{case.name} {name}: {error.reason}")
                continue
            bench.record(section, case.name, name, value, UNITS[unit],
                         round=number, size=case.size)


def run(bench):
    """On one cable."""
    with lab.Lab("pair") as net:
        measure(bench, "p2p", {"": Pair(net)}, _cases(bench, lab.MACHINES))
