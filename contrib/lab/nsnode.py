# SPDX-License-Identifier: BSD-3-Clause
"""A node that is a process: the first one of its namespaces.

It has its own processes, netdevs, hostname, shared memory and files, and ends
with all that runs in it when it is killed or when the lab's supervisor goes
away. On its console it reports the same stages as a virtual machine.
"""

import codecs
import os
import pathlib
import signal
import socket
import traceback

from lab import agent, guest, mounts, net

CONFIG = "/etc/swverbs.conf"
COUNTERS = f"{guest.HOME}/counters"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES = (net.CLONE_NEWNS | net.CLONE_NEWUTS | net.CLONE_NEWIPC
              | net.CLONE_NEWNET)
READY, GO = b"r", b"g"


class Process:
    """A forked process in the shape of subprocess.Popen.

    gate is a socket: the node says READY when it has its namespaces and goes
    on when it hears GO. It stays open as long as this process lives.
    """

    def __init__(self, pid, gate):
        self.pid = pid
        self.gate = gate
        self.returncode = None

    def await_namespaces(self):
        """Until then its netdevs have no place."""
        if self.gate.recv(1) != READY:
            raise OSError("a node's namespaces cannot be made; see its "
                          "console")

    def go(self):
        """Its netdevs are there."""
        self.gate.send(GO)

    def poll(self):
        """Its exit status, None while it runs."""
        if self.returncode is None:
            self._collect(os.WNOHANG)
        return self.returncode

    def wait(self):
        """Waits for its end."""
        if self.returncode is None:
            self._collect(0)
        return self.returncode

    def kill(self):
        """Ends it and all that runs in its namespaces."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def _collect(self, flags):
        pid, status = os.waitpid(self.pid, flags)
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)


def fork(console, serve):
    """Starts a process that calls serve(gate) as the first of its kind.

    One process in between has it for a child in a new pid namespace: nobody
    but root could undo this for itself. It ends at once, and this process
    adopts the child.
    """
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    net.adopt_orphans()
    between = os.fork()
    if between == 0:
        _between(console, theirs, serve, writer)
    for fd in (theirs.detach(), writer):
        os.close(fd)
    with open(reader, encoding="ascii") as stream:
        pid = stream.read()
    os.waitpid(between, 0)
    if not pid:
        raise OSError("a pid namespace cannot be made")
    return Process(int(pid), ours)


def _between(console, gate, serve, writer):
    try:
        net.unshare(net.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            _first(console, gate, serve)
        os.write(writer, str(pid).encode())
    except OSError:
        traceback.print_exc()
    finally:
        os._exit(0)


def _first(console, gate, serve):
    try:
        output = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND,
                         0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # The lab's lock is among what is not to be kept.
        kept = os.dup2(gate.detach(), 3)
        os.closerange(4, 1 << 20)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.setsid()
        serve(socket.socket(fileno=kept))
    except BaseException as error:  # pylint: disable=broad-except
        traceback.print_exc()
        say(f"failed: {error}")
    finally:
        os._exit(1)


def say(text):
    """One stage, on the console."""
    print(f"mesh-lab: {text}", flush=True)


def _wait_for_netdevs(gate):
    net.unshare(NAMESPACES)
    # Nobody may be at the other end yet: duplicates are not looked for.
    _set_sysctl("net/ipv6/conf/default/accept_dad", 0, optional=True)
    gate.send(READY)
    if gate.recv(1) != GO:
        os._exit(0)
    # Its parent is the supervisor by now.
    net.signal_at_parents_end(signal.SIGKILL)
    gate.setblocking(False)
    try:
        # It was too late for the signal if the other end is closed.
        gate.recv(1)
        os._exit(0)
    except BlockingIOError:
        gate.close()


def _set_sysctl(path, value, optional=False):
    try:
        pathlib.Path("/proc/sys", path).write_text(f"{value}\n", "ascii")
    except OSError as error:
        if not optional:
            raise OSError(f"sysctl {path}: {error.strerror}") from None


def _write(path, text, mode=0o644):
    path = pathlib.Path(path)
    # It may be a link to somewhere.
    path.unlink(missing_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)


def _configure(node, files):
    for path, (text, mode) in files.items():
        _write(path, text, mode)
    busybox = next(filter(os.path.exists, ("/bin/busybox",
                                           "/usr/bin/busybox")), None)
    if busybox:
        os.symlink(busybox, f"{guest.HOME}/busybox")
    socket.sethostname(node.name)
    for key, value in node.sysctl.items():
        _set_sysctl(key.replace(".", "/"), value)
    script = net.Script()
    script.lines += guest.links(node, noise="") + guest.addresses(node)
    script.run()


def _environment(more):
    home = "/root" if os.access("/root", os.W_OK) else "/tmp"
    os.environ.clear()
    os.environ.update(PATH=PATH, HOME=home, USER="root",
                      PMIX_MCA_gds="hash", SWVERBS_CONFIG=CONFIG,
                      SWVERBS_COUNTERS=COUNTERS, **more)
    os.mkdir(COUNTERS)
    os.chdir("/")


def _serve_shells():
    """What busybox's nc is in a machine: a shell for each connection."""
    listener = socket.create_server(("", guest.SHELL_PORT), backlog=64)
    if os.fork():
        listener.close()
        return
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection = listener.accept()[0]
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            for fd in (0, 1, 2):
                os.dup2(connection.fileno(), fd)
            os.execv("/bin/sh", ["/bin/sh"])
        connection.close()


def _start_meshd(program):
    """The daemon, with a log of its own."""
    if os.fork():
        return
    os.setsid()
    log = os.open(guest.MESHD_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND,
                  0o644)
    for target in (1, 2):
        os.dup2(log, target)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.closerange(3, 64)
    os.execv(program, [program])


def _load_codecs():
    """Python would look for them when first used, in a root without it."""
    for name in ("idna", "unicode_escape", "latin-1"):
        codecs.lookup(name)


def serve(gate, node, root, files, shares, boot_id, environment, meshd):
    """The life of a node: files as {path: (text, mode)}, meshd a program to
    start, if any; does not return."""
    _wait_for_netdevs(gate)
    say("root")
    _load_codecs()
    mounts.build(guest.HOME, root, shares, boot_id, net.in_user_namespace())
    _environment(environment)
    say("network")
    _configure(node, files)
    if meshd:
        _start_meshd(meshd)
    say("server")
    _serve_shells()
    agent.serve(str(node.mgmt.ip))
