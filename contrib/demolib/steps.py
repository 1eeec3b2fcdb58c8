# SPDX-License-Identifier: BSD-3-Clause
"""The steps of the demo: each returns its result in a few words or fails."""

import pathlib
import re
import textwrap

import hpcc
import lanes
from runner import Failed, say, show

TOPOLOGY = "ring4"
BOOT_S = 300
# Stock UCX needs a while to give up, and mpirun does not always end then.
STOCK_S = 150
STOCK_END_S = 15
PERF_S = 180
MPI_S = 300
INSTALL_S = 300
HPCC_S = 1200
PERF_PORT = 13337
STOOD_STILL = "retry counter exceeded"
INSTALLED = ("ucx/libuct_mesh.so.0", "mca_hook_mesh.so", "sbin/meshd")
# A lane that carries less than this part of a pair's bytes carries none.
STRAY = 0.05
PERF_TESTS = (("tag_lat", 8, 100), ("tag_bw", 65536, 50))

# Starts a server and tells when it listens: ucx_perftest itself does not.
PERF_SERVER = """\
"$@" &
pid=$!
until grep -qi ':{port:04x} .* 0A ' /proc/net/tcp /proc/net/tcp6; do
    kill -0 $pid || exit
    sleep 0.2
done
echo listening
wait $pid
"""


class Demo:
    """What the steps share."""

    def __init__(self, lab, base):
        self.lab = lab
        self.base = base
        self.hpcc_dir = pathlib.Path(base) / "hpcc"
        self.nodes = []
        self.cables = []
        self.library = None
        # (title, counters before, counters after)
        self.periods = []

    # ---- helpers -------------------------------------------------------------

    def _program(self):
        return f"{self.base}/alltoall"

    def _mpi_arguments(self, tls, program, *before):
        return ["mpirun", "-n", "-np", str(len(self.nodes)), *before, "--mca",
                "pml", "ucx", "-x", f"UCX_TLS={tls}", program]

    def _mpirun(self, tls, program, *before):
        arguments = self._mpi_arguments(tls, program, *before)
        shown = [word.rpartition("/")[2] if word == program else word
                 for word in arguments if word not in ("-n", *before)]
        print(f"    $ {' '.join(shown)}", flush=True)
        return self.lab.start(shown[-1], *arguments)

    def _counted(self, title, function):
        before = self.lab.counters()
        result = function()
        self.periods.append((title, before, self.lab.counters()))
        return result

    def _preloaded(self, *command, tls=None):
        settings = [f"LD_PRELOAD={self.library}"]
        settings += [f"UCX_TLS={tls}"] if tls else []
        return ["env", *settings, *command]

    # ---- steps ---------------------------------------------------------------

    def boot(self):
        """Boots the machines."""
        self.hpcc_dir.mkdir(exist_ok=True)
        self.lab.up(TOPOLOGY, BOOT_S, self.hpcc_dir)
        status = self.lab.status()
        self.nodes = list(status["nodes"])
        self.cables = lanes.cables(status)
        return f"{len(self.nodes)} machines, {len(self.cables)} cables"

    def stock(self):
        """The job with stock UCX: shows why it fails."""
        job = self._mpirun("rc,self,sm", self._program())
        try:
            job.wait_for(r"UCX +ERROR", STOCK_S)
            status = job.wait(job.seconds() + STOCK_END_S)
        except Failed:
            status = job.wait(0)
        finally:
            job.stop()
        if status == 0:
            show(job.text())
            return "works here"
        if status is None:
            self.lab.kill_left(self._program().rpartition("/")[2])
        lines = essential_lines(job.text())
        lines += why_unreachable(self.lab.status(), self.cables, lines)
        for line in lines or ["no message at all"]:
            print(textwrap.fill(line, 80, initial_indent="    ",
                                subsequent_indent="        "), flush=True)
        return "fails as expected" + ("" if lines else
                                      f", no end within {STOCK_S} s")

    def install(self):
        """Puts on every node what `make install` puts there."""
        stage = pathlib.Path(self.base) / "stage"
        files = [f"/{path.relative_to(stage)}" for name in INSTALLED
                 for path in stage.rglob(name)]
        if len(files) != len(INSTALLED):
            raise Failed(f"make install made {files}")
        self.lab.call("copying", "exec", "-n", "all", "cp", "-R",
                      f"{stage}/usr", "/", deadline=INSTALL_S)
        show(self.lab.call("ls", "exec", "-n", "all", "ls", *files))
        self.library = files[0]
        # What the service does, where systemd runs.
        self.lab.call("meshd", "exec", "-n", "all", "sh", "-c",
                      '"$1" </dev/null >/tmp/meshd.log 2>&1 &', "sh", files[2])
        return ", ".join(name.rpartition("/")[2] for name in INSTALLED)

    def info(self):
        """What ucx_info says of the transport."""
        print("    $ LD_PRELOAD=libuct_mesh.so.0 ucx_info -d", flush=True)
        out = self.lab.call("ucx_info", "exec", "-n", self.nodes[0],
                            *self._preloaded("ucx_info", "-d"))
        devices = transport_devices(out, "mesh_rc")
        show(transport_part(out, "mesh_rc"))
        wanted = [f"{ibdev}:1" for cable in self.cables
                  for node, _, ibdev in cable.ends if node == self.nodes[0]]
        wanted = sorted(wanted + [f"relay{i}" for i in range(len(wanted))])
        if sorted(devices) != wanted:
            raise Failed(f"mesh_rc is on {devices}, not on {wanted}", out)
        return f"mesh_rc on {', '.join(devices)}"

    def perftest(self):
        """ucx_perftest on each pair of neighbours, over its own cable."""
        start = before = self.lab.counters()
        for cable in self.cables:
            server, client = cable.nodes()
            for test, size, count in PERF_TESTS:
                self._perftest(server, client, test, size, count)
            after = self.lab.counters()
            self._check_only(cable, before, after)
            before = after
        self.periods.append(("ucx_perftest", start, before))
        return f"{len(self.cables)} pairs, each over its own cable"

    def _perftest(self, server, client, test, size, count):
        script = PERF_SERVER.format(port=PERF_PORT)
        command = self._preloaded("ucx_perftest", "-p", str(PERF_PORT),
                                  tls="mesh_rc")
        serving = self.lab.start(f"server on {server}", "exec", "-n", server,
                                 "sh", "-c", script, "sh", *command)
        try:
            serving.wait_for("listening", PERF_S)
            out = self.lab.call(
                f"{test} {client} to {server}", "exec", "-n", client,
                *command, server, "-t", test, "-s", str(size), "-n",
                str(count), "-w", "5", deadline=PERF_S)
            serving.succeed(PERF_S)
        except Failed as error:
            error.output += f"the server on {server}:\n{serving.text()}"
            raise
        finally:
            serving.stop()
        say(f"    {client}-{server} {test} {size} bytes: "
            + perftest_result(out, test))

    def _check_only(self, cable, before, after):
        """Only that cable may have carried the bytes."""
        bytes_of = {str(other): lanes.traffic(other, before, after)[0]
                    for other in self.cables}
        own = bytes_of.pop(str(cable))
        for other, count in bytes_of.items():
            if count > own * STRAY:
                raise Failed(f"{cable} carried {own} bytes, but {other} "
                             f"{count}")

    def alltoall(self):
        """The job that stock UCX could not run."""
        def run():
            job = self._mpirun("mesh_rc,self,sm", self._program())
            try:
                return job.succeed(MPI_S)
            finally:
                job.stop()
        out = self._counted("all-to-all", run)
        show(out)
        right = re.findall(r"all-to-all with blocks of (\d+) bytes over "
                           rf"{len(self.nodes)} ranks: right", out)
        if not right:
            raise Failed("no result", out)
        return f"right, up to {right[-1]} bytes to each rank"

    def hpcc(self):
        """HPC Challenge to its end."""
        try:
            text = self._counted("HPC Challenge", self._hpcc_output)
        except Failed as error:
            if STOOD_STILL not in error.output:
                raise
            show(error.output)
            say("    An emulated machine stood still for longer than RDMA "
                "tries again (4 s), as where")
            say("    others use these processors, too: once more.")
            text = self._counted("HPC Challenge", self._hpcc_output)
        verdict = hpcc.Verdict(text)
        if verdict.problems:
            raise Failed("; ".join(verdict.problems[:3]), text)
        print(f"    {verdict.residual.group()}")
        print(f"    Success=1, {verdict.passed} checks passed, none failed",
              flush=True)
        return f"Success=1, {verdict.passed} checks passed"

    def _hpcc_output(self):
        # Read here and not in the machines, whose processors are busy.
        where = self.hpcc_dir / "hpccoutf.txt"
        where.unlink(missing_ok=True)
        (self.hpcc_dir / "hpccinf.txt").write_text(
            hpcc.input_text(len(self.nodes)))
        seen = []

        def output():
            return where.read_text() if where.exists() else ""

        def tick():
            if not seen and self._check_queue_pairs():
                seen.append(True)
            return hpcc.section(output())

        job = self._mpirun("mesh_rc,self,sm", "hpcc", "-wdir",
                           str(self.hpcc_dir))
        try:
            job.succeed(HPCC_S, tick)
        finally:
            job.stop()
        if not seen:
            raise Failed("no RC queue pair was seen")
        return output()

    def _check_queue_pairs(self):
        """Whether the job has queue pairs by now: RC ones, and no UD one."""
        out = self.lab.call("rdma", "exec", "-n", "all", "rdma", "resource",
                            "show", "qp")
        kinds = re.findall(r"\btype (\w+)", out)
        if "UD" in kinds:
            raise Failed("there is a UD queue pair", out)
        if "RC" in kinds:
            say(f"    queue pairs in use: {kinds.count('RC')} RC, 0 UD")
        return "RC" in kinds


def essential_lines(text, most=3):
    """Lines of UCX and Open MPI that say what is wrong, each kind once."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"\[[\d.]+\] \[(\w+):.*UCX +ERROR +(.*)", line)
        if not match:
            match = re.match(r"\[(\w+):\d+\] \S+ +Error: (.*)", line)
        if match:
            kind = re.sub(r"[\d:.]+", "", match.group(2))[:30]
            found.setdefault(kind, f"{match.group(1)}: {match.group(2)}")
    return list(found.values())[:most] or text.splitlines()[-most:]


def _owner(status, address):
    """(node, netdev) that has an address."""
    for name, node in status["nodes"].items():
        for lane in node["lanes"]:
            if address in [text.partition("/")[0]
                           for text in lane["addresses"]]:
                return name, lane["netdev"]
    return None


def why_unreachable(status, cables, lines):
    """Where the address in UCX's message is, compared with the cabling."""
    for line in lines:
        match = re.search(r"^(\w+): .*\bdgid=(?:::ffff:)?(\S+) .* on (\w+) ",
                          line)
        owner = match and _owner(status, match.group(2))
        for cable in cables if owner else []:
            if owner in [end[:2] for end in cable.ends]:
                node, address, used = match.groups()
                return [f"But {address} is {owner[0]} {owner[1]}, and that "
                        f"cable is {cable}: {node} cannot reach it through "
                        f"{used}."]
    return []


def _transport_blocks(text, transport):
    for block in re.split(r"(?m)^#\s+Transport: ", text)[1:]:
        if block.splitlines()[0] == transport:
            yield re.split(r"(?m)^#\s*(?:Memory domain|Connection manager)",
                           block)[0]


def transport_devices(text, transport):
    """The devices of a transport, from the output of ucx_info -d."""
    return [re.search(r"Device: (\S+)", block).group(1)
            for block in _transport_blocks(text, transport)]


def transport_part(text, transport):
    """The first lines about each device of a transport."""
    kept = r"Device|latency|bandwidth|am_bcopy|put_zcopy|connection|error"
    return "\n".join(
        f"#  Transport: {transport}\n" + "\n".join(
            line for line in block.splitlines() if re.search(kept, line))
        for block in _transport_blocks(text, transport))


def perftest_result(text, test):
    """The overall latency or bandwidth of ucx_perftest's last line."""
    match = re.search(r"^Final: +\d+ +\S+ +\S+ +(\S+) +\S+ +(\S+)", text,
                      re.MULTILINE)
    if not match:
        raise Failed("ucx_perftest gave no result", text)
    if test.endswith("_lat"):
        return f"{float(match.group(1)) / 1000:.1f} ms"
    return f"{float(match.group(2)):.1f} MB/s"
