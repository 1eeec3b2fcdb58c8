# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command in a node: the caller's side of agent.py.

The caller's standard streams are the command's. SIGINT, SIGTERM, SIGHUP and
SIGQUIT go to the command; a second one ends the connection, which kills it.
"""

import os
import select
import signal
import socket

from lab import agent

EXIT_LAB = 125
EXIT_PIPE = 128 + signal.SIGPIPE
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# A writable pipe takes this much without blocking.
PIPE_ATOMIC = 4096


class Lost(Exception):
    """The connection or the machine went away before the exit status."""


class Client:
    """One command; run() returns its exit status or raises Lost."""

    def __init__(self, connection, machine_fd, stdin_fd):
        self.socket = connection
        self.machine_fd = machine_fd
        self.stdin_fd = stdin_fd
        self.window = agent.WINDOW
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.pending = {1: bytearray(), 2: bytearray()}
        self.status = None
        self.signals = 0
        self.wake_r, self.wake_w = os.pipe()

    def run(self, request):
        """Carries the streams of an encoded request to its end."""
        agent.set_nonblocking(self.wake_w)
        signal.set_wakeup_fd(self.wake_w, warn_on_full_buffer=False)
        for number in FORWARDED:
            signal.signal(number, lambda *_: None)
        self.outgoing += agent.frame(b"R", request)
        if self.stdin_fd is None:
            self.outgoing += agent.frame(b"I")
        self.socket.setblocking(False)
        while self.status is None or any(self.pending.values()):
            self._step()
        return self.status

    def _step(self):
        poll = select.poll()
        poll.register(self.wake_r, select.POLLIN)
        if self.status is None:
            self._watch_node(poll)
        for fd, data in self.pending.items():
            if data:
                poll.register(fd, select.POLLOUT)
        for fd, events in poll.poll():
            if fd == self.wake_r:
                self._forward_signals()
            elif fd == self.socket.fileno():
                self._serve_socket(events)
            elif fd == self.machine_fd:
                raise Lost("its machine is gone")
            elif fd == self.stdin_fd:
                self._read_stdin()
            else:
                self._write(fd)

    def _watch_node(self, poll):
        wanted = select.POLLOUT if self.outgoing else 0
        if sum(map(len, self.pending.values())) < agent.WINDOW:
            wanted |= select.POLLIN
        poll.register(self.socket, wanted)
        poll.register(self.machine_fd, select.POLLIN)
        if self.stdin_fd is not None and self.window > 0:
            poll.register(self.stdin_fd, select.POLLIN)

    def _forward_signals(self):
        for number in os.read(self.wake_r, 64):
            if number not in FORWARDED:
                continue
            self.signals += 1
            if self.signals > 1:
                raise Lost("interrupted twice")
            self.outgoing += agent.frame(b"S", bytes([number]))

    def _serve_socket(self, events):
        try:
            if events & select.POLLOUT and self.outgoing:
                del self.outgoing[:self.socket.send(self.outgoing)]
            if events & ~select.POLLOUT:
                data = self.socket.recv(agent.CHUNK)
                if not data:
                    raise Lost("its command server is gone")
                self.incoming += data
        except BlockingIOError:
            return
        except OSError as error:
            raise Lost(str(error)) from None
        for kind, body in agent.take_frames(self.incoming):
            self._take(kind, body)

    def _take(self, kind, body):
        if kind == b"O":
            self.pending[1] += body
        elif kind == b"E":
            self.pending[2] += body
        elif kind == b"A":
            self.window += agent.NUMBER.unpack(body)[0]
        elif kind == b"X":
            self.status = agent.NUMBER.unpack(body)[0]

    def _read_stdin(self):
        try:
            data = os.read(self.stdin_fd, min(agent.CHUNK, self.window))
        except OSError:
            data = b""
        self.window -= len(data)
        self.outgoing += agent.frame(b"I", data)
        if not data:
            self.stdin_fd = None

    def _write(self, fd):
        data = self.pending[fd]
        try:
            del data[:os.write(fd, data[:PIPE_ATOMIC])]
        except BlockingIOError:
            pass


def run(connection, machine_fd, request, stdin_fd):
    """The exit status of a request; EXIT_PIPE when nobody reads it."""
    try:
        return Client(connection, machine_fd, stdin_fd).run(request)
    except BrokenPipeError:
        return EXIT_PIPE
    finally:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()
