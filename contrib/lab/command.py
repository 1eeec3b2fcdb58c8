# SPDX-License-Identifier: BSD-3-Clause
"""The commands of mesh-lab."""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading

from lab import agent, client, counters, drawing, kernel, net, store, vm
from lab import guest, topology, up

CONNECT_S = 10.0
DOWN_S = 15.0
# What of the caller's environment a command in a node gets.
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TZ")
# mpirun's settings; options on the command line win over these.
MPI_ENV = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_plm_rsh_agent": f"{guest.HOME}/rsh",
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "OMPI_MCA_oob_tcp_if_include": topology.MGMT_NETDEV,
    # Namespaces share processors, and each would bind its ranks to the first.
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    # The same for Open MPI 5, whose launcher has its own names.
    "PRTE_MCA_plm_ssh_agent": f"{guest.HOME}/rsh",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    "PRTE_MCA_prte_if_include": topology.MGMT_NETDEV,
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}

USAGE = """\
topologies: pair, ringN, lineN, meshN, or FILE#ID (a JSON file)

  mesh-lab up ring4              boots four machines cabled as a ring
  mesh-lab exec n1 ibv_devinfo   runs a command in one of them (or "all")
  mesh-lab mpirun -np 4 PROG     runs Open MPI's mpirun from the first one
  mesh-lab link n1.0 down        pulls the cable out of port 0 of n1
  mesh-lab down                  ends it all
  mesh-lab --fabric swverbs up ring4
                                 the same in a second, with namespaces and
                                 the software verbs of the build directory

An exit status is that of what ran inside; 125 is mesh-lab's own failure.
"""


class CommandError(Exception):
    """What was wrong with a command."""


def _connect(lab, node):
    """A connection to a node's command server and a pidfd of its machine."""
    pid = lab.pid(node)
    if pid is None:
        raise CommandError(f"{node.name} is not running")
    machine = os.pidfd_open(pid)
    net.enter(lab.supervisor)
    try:
        connection = socket.create_connection(
            (str(node.mgmt.ip), agent.PORT), CONNECT_S)
    except OSError as error:
        raise CommandError(f"{node.name} does not answer: {error} (is it "
                           "paused?)") from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection, machine


def _environment(settings):
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals and name in os.environ:
            value = os.environ[name]
        env[name] = value
    return env


def _request(arguments, argv, env):
    return agent.encode_request(
        argv, {**_environment(arguments.env), **env},
        arguments.cwd or os.getcwd(), not arguments.cwd)


def _run(lab, node, request, stdin_fd):
    connection, machine = _connect(lab, node)
    try:
        return client.run(connection, machine, request, stdin_fd)
    except client.Lost as error:
        raise CommandError(f"{node.name}: {error}") from None


def _stdin(arguments):
    """The descriptor to forward, None for an empty input."""
    if arguments.no_stdin:
        return None
    try:
        os.fstat(0)
    except OSError:
        return None
    return 0


def cmd_exec(arguments):
    """Runs a command in one node or in all."""
    lab = store.find(arguments.name)
    if not arguments.command:
        raise CommandError("exec: no command")
    if arguments.node == "all":
        return _exec_all(lab, arguments)
    node = lab.topology.node(arguments.node)
    return _run(lab, node, _request(arguments, arguments.command, {}),
                _stdin(arguments))


def _exec_all(lab, arguments):
    """Runs it everywhere at once; the first status that is not 0, by node."""
    options = [f"--env={setting}" for setting in arguments.env]
    if arguments.cwd:
        options.append(f"--cwd={arguments.cwd}")
    processes, threads = [], []
    for name in lab.topology.nodes:
        process = subprocess.Popen(
            [sys.argv[0], "--name", lab.name, "exec", "-n", *options, name,
             *arguments.command], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        processes.append(process)
        for source, target in ((process.stdout, sys.stdout.buffer),
                               (process.stderr, sys.stderr.buffer)):
            threads.append(threading.Thread(
                target=_prefix_lines, args=(name, source, target)))
            threads[-1].start()
    for number in client.FORWARDED:
        signal.signal(number, lambda number, _: [
            process.send_signal(number) for process in processes])
    for thread in threads:
        thread.join()
    return next(filter(None, [p.wait() for p in processes]), 0)


def _prefix_lines(name, source, target):
    for line in source:
        target.write(f"{name}: ".encode() + line)
        target.flush()


def cmd_mpirun(arguments):
    """Runs mpirun from the first of the hosts."""
    lab = store.find(arguments.name)
    names = arguments.hosts.split(",") if arguments.hosts else list(
        lab.topology.nodes)
    nodes = [lab.topology.node(name) for name in names]
    hosts = ",".join(f"{node.name}:{arguments.slots}" for node in nodes)
    argv = ["mpirun", "--host", hosts, *arguments.command]
    return _run(lab, nodes[0], _request(arguments, argv, MPI_ENV),
                _stdin(arguments))


def cmd_link(arguments):
    """Plugs or pulls a cable."""
    lab = store.find(arguments.name)
    node, port = lab.topology.end(arguments.port)
    ends = [(node, port)]
    if arguments.both:
        cable = lab.topology.cable_of(node, port)
        if cable is None:
            raise CommandError(f"{arguments.port} has no cable")
        ends = cable.ends
    for end, _ in ends:
        if lab.pid(end) is None:
            raise CommandError(f"{end.name} is not running")
    up.fabric_of(lab).link(ends, arguments.state == "up")
    return 0


def cmd_power(arguments):
    """Powers a node off, stops it or lets it go on."""
    lab = store.find(arguments.name)
    node = lab.topology.node(arguments.node)
    pid = lab.pid(node)
    if pid is None:
        raise CommandError(f"{node.name} is not running")
    up.fabric_of(lab).power(node, pid, arguments.verb)
    return 0


def _node_state(lab, fabric, node):
    return "off" if lab.pid(node) is None else fabric.state(node)


def cmd_status(arguments):
    """Shows a lab."""
    lab = store.find(arguments.name)
    fabric = up.fabric_of(lab)
    states = {node.name: _node_state(lab, fabric, node)
              for node in lab.topology.nodes.values()}
    if arguments.json:
        print(json.dumps({
            "name": lab.name, "fabric": lab.fabric_name,
            "directory": str(lab.directory), "supervisor": lab.supervisor,
            "topology": lab.topology.spec, "options": lab.options,
            "nodes": {name: {"state": state, "pid": lab.machines[name][0],
                             "lanes": _lanes(lab.topology.node(name))}
                      for name, state in states.items()}}, indent=1))
        return 0
    print(f"lab {lab.name}: {lab.topology.name}, {lab.topology.title}; "
          f"consoles in {lab.directory}")
    print("  ".join(f"{name} {state}" for name, state in states.items()))
    print()
    up.describe(lab.topology)
    return 0


def _lanes(node):
    return [{"netdev": lane.netdev, "port": lane.port, "twin": lane.twin,
             "ibdev": lane.ibdev, "mtu": lane.mtu,
             "addresses": [str(address) for address in lane.addresses]}
            for lane in node.lanes]


def cmd_counters(arguments):
    """Shows what each lane counted."""
    lab = store.find(arguments.name)
    names = [arguments.node] if arguments.node else list(lab.topology.nodes)
    result = {}
    for name in names:
        node = lab.topology.node(name)
        process = subprocess.run(
            [sys.argv[0], "--name", lab.name, "exec", "-n", name,
             *counters.command(node)], stdout=subprocess.PIPE, text=True,
            check=False)
        if process.returncode != 0:
            raise CommandError(f"{name}: cannot read the counters")
        result[name] = counters.parse(node, process.stdout)
    if arguments.json:
        print(json.dumps(result, indent=1))
    else:
        print("\n".join(drawing.table(counters.rows(result))))
    return 0


def cmd_list(_):
    """Lists the labs of this host."""
    rows = [(lab.name, lab.fabric_name, lab.topology.name,
             " ".join(lab.topology.nodes)) for lab in store.labs()]
    if rows:
        print("\n".join(drawing.table(rows)))
    return 0


def cmd_down(arguments):
    """Ends a lab."""
    lab = store.find(arguments.name)
    os.kill(lab.supervisor, signal.SIGTERM)
    if not store.wait_gone(lab.directory, DOWN_S):
        raise CommandError(f"process {lab.supervisor} does not end")
    return 0


def _add_run_options(parser):
    parser.add_argument("--env", action="append", default=[],
                        metavar="K[=V]", help="sets an environment variable; "
                        "without a value, the caller's")
    parser.add_argument("--cwd", help="working directory (the caller's, or / "
                        "where the node does not have it)")
    parser.add_argument("-n", "--no-stdin", action="store_true",
                        help="with an empty standard input")


def _add_up(commands):
    parser = commands.add_parser("up", help="starts a lab")
    parser.add_argument("topology")
    parser.add_argument("--fabric", choices=up.FABRICS,
                        default=argparse.SUPPRESS, help="the same here")
    parser.add_argument("--accel", choices=("tcg", "kvm"), default="tcg")
    parser.add_argument("--arch", choices=sorted(vm.MACHINES),
                        default=vm.host_architecture(), help="of the machines "
                        "(this host's); another one needs --root and --kernel")
    parser.add_argument("--mem", type=int, default=512, metavar="MIB",
                        help="memory of each node (512)")
    parser.add_argument("--root", default="/", metavar="DIR",
                        help="the nodes' root file system (this host's)")
    parser.add_argument("--kernel", metavar="DEB", help="a kernel package, "
                        "or the directory it was unpacked in")
    parser.add_argument("--share", action="append", default=[],
                        metavar="DIR[:rw]", help="a directory the nodes see "
                        "at the same path, as it is at any moment (the "
                        "checkout always is one)")
    parser.add_argument("--no-meshd", action="store_true", help="without the "
                        "build's meshd on each node, which logs to "
                        f"{guest.MESHD_LOG}")
    parser.add_argument("--meshd", metavar="PATH", help="the nodes' meshd, "
                        "such as /usr/sbin/meshd of a --root, in place of "
                        "the build's")
    parser.add_argument("--timeout", type=int, default=300, metavar="S",
                        help="how long the nodes may take (300)")
    parser.set_defaults(run=up.up)


def _add_running(commands):
    parser = commands.add_parser("exec", help="runs a command in a node")
    _add_run_options(parser)
    parser.add_argument("node", help='a node, or "all"')
    parser.add_argument("command", nargs=argparse.REMAINDER)
    parser.set_defaults(run=cmd_exec)
    parser = commands.add_parser("mpirun", help="runs mpirun", add_help=False)
    _add_run_options(parser)
    parser.add_argument("--slots", type=int, default=1, metavar="N",
                        help="slots of each node (1)")
    parser.add_argument("--hosts", metavar="N1,N2", help="these nodes only")
    parser.set_defaults(run=cmd_mpirun)


def _add_faults(commands):
    parser = commands.add_parser("link", help="pulls or plugs a cable")
    parser.add_argument("port", metavar="NODE.PORT")
    parser.add_argument("state", choices=("up", "down"))
    parser.add_argument("--both", action="store_true",
                        help="at the other end too")
    parser.set_defaults(run=cmd_link)
    for verb, text in (("kill", "powers a node off at once"),
                       ("pause", "stops a node"),
                       ("resume", "lets a stopped node go on")):
        parser = commands.add_parser(verb, help=text)
        parser.add_argument("node")
        parser.set_defaults(run=cmd_power, verb=verb)


def _add_reports(commands):
    parser = commands.add_parser("counters", help="what each lane counted")
    parser.add_argument("node", nargs="?")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=cmd_counters)
    parser = commands.add_parser("status", help="shows a lab")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=cmd_status)
    parser = commands.add_parser("list", help="lists the labs")
    parser.set_defaults(run=cmd_list)
    parser = commands.add_parser("down", help="ends a lab")
    parser.set_defaults(run=cmd_down)


def _parser():
    parser = argparse.ArgumentParser(
        prog="mesh-lab", description="A virtual cluster without a switch.",
        epilog=USAGE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="lab", help="which lab (lab)")
    parser.add_argument("--fabric", choices=up.FABRICS,
                        default=os.environ.get("MESH_LAB_FABRIC") or "vm",
                        help="what nodes are, for `up`: vm (virtual machines) "
                        "or swverbs (namespaces with software verbs); "
                        "default: MESH_LAB_FABRIC, or vm")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_up, _add_running, _add_faults, _add_reports):
        add(commands)
    return parser


def _command_index(argv):
    """Where the command's name stands, after the options of all commands."""
    index = 0
    while index < len(argv) and argv[index].startswith("-"):
        index += 2 if argv[index] in ("--name", "--fabric") else 1
    return index


def _parse(argv):
    """argparse would take mpirun's arguments apart: they are cut off first.

    Options of mesh-lab itself stand before the first one it does not know.
    """
    parser = _parser()
    index = _command_index(argv)
    if argv[index:index + 1] != ["mpirun"]:
        return parser.parse_args(argv)
    own = index + 1
    while own < len(argv) and argv[own].split("=")[0] in (
            "--env", "--cwd", "--slots", "--hosts", "-n", "--no-stdin"):
        alone = argv[own] in ("-n", "--no-stdin") or "=" in argv[own]
        own += 1 if alone else 2
    arguments = parser.parse_args(argv[:own])
    arguments.command = argv[own:]
    return arguments


def main(argv):
    """The exit status of a command line."""
    arguments = _parse(argv)
    try:
        status = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Nobody reads any more; the interpreter must not try again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return client.EXIT_PIPE
    except (CommandError, OSError, kernel.KernelError, store.StoreError,
            topology.TopologyError, up.UpError, vm.MachineError) as error:
        print(f"mesh-lab: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("mesh-lab: interrupted", file=sys.stderr)
    return client.EXIT_LAB
