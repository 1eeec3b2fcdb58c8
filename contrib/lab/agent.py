# SPDX-License-Identifier: BSD-3-Clause
"""Command server of a lab's node, and the framing its clients share.

It runs inside the node. Each connection is served by a forked process, runs
one command and carries its three streams, signals and exit status. A frame
is a type byte, a 32-bit length and so many bytes:

    to the node    R  the request (encode_request)
                   I  standard input; an empty one ends it
                   S  a signal for the command's process group (one byte)
    from the node  A  so many bytes of input were taken (32 bits); a client
                      keeps at most WINDOW bytes on the way, so that signals
                      never queue up behind input that nobody reads
                   O  standard output     E  standard error
                   X  exit status (32 bits), the last frame

A connection that ends early hangs the command up: SIGHUP and SIGTERM, then
SIGKILL. The node needs no more of Python than the package python3-minimal.
"""

import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

PORT = 98
HEAD = struct.Struct("!cI")
NUMBER = struct.Struct("!I")
CHUNK = 65536
WINDOW = 262144
LINGER_S = 0.2
TERM_S = 3.0
EXIT_NOT_FOUND = 127
EXIT_NOT_RUN = 126


def frame(kind, data=b""):
    """The bytes of one frame."""
    return HEAD.pack(kind, len(data)) + data


def take_frames(buffer):
    """Removes the whole frames at the start of a bytearray, yields them."""
    while len(buffer) >= HEAD.size:
        kind, length = HEAD.unpack_from(buffer)
        if len(buffer) < HEAD.size + length:
            return
        data = bytes(buffer[HEAD.size:HEAD.size + length])
        del buffer[:HEAD.size + length]
        yield kind, data


def encode_request(argv, env, cwd, any_cwd):
    """The bytes of a request: strings, each ended by a zero.

    env is added to the node's own; with any_cwd, / will do where the node
    has no directory cwd.
    """
    fields = ["1" if any_cwd else "0", cwd, str(len(argv)), *argv,
              *(f"{name}={value}" for name, value in env.items())]
    return b"".join(os.fsencode(field) + b"\0" for field in fields)


def decode_request(data):
    """(argv, env, cwd, any_cwd) of encode_request's bytes."""
    fields = [os.fsdecode(field) for field in data.split(b"\0")[:-1]]
    end = 3 + int(fields[2])
    env = dict(field.split("=", 1) for field in fields[end:])
    return fields[3:end], env, fields[1], fields[0] == "1"


def set_nonblocking(fd):
    """Makes a descriptor non-blocking."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_NONBLOCK)


class Session:
    """One command on one connection; run() returns when both have ended."""

    def __init__(self, connection):
        self.socket = connection
        self.process = None
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.input = bytearray()
        self.input_ended = False
        self.lost = False
        self.outputs = {}
        self.exited_at = None

    def run(self):
        """Serves the connection to its end."""
        request = self._read_request()
        if request is None or not self._start(*request):
            return
        self._loop()
        if self.lost:
            self._hang_up()
        else:
            self._flush_status(self.process.wait())

    def _read_request(self):
        while True:
            data = self.socket.recv(CHUNK)
            if not data:
                return None
            self.incoming += data
            for kind, body in take_frames(self.incoming):
                return decode_request(body) if kind == b"R" else None

    def _start(self, argv, env, cwd, any_cwd):
        if any_cwd and not os.path.isdir(cwd):
            cwd = "/"
        try:
            self.process = subprocess.Popen(
                argv, env={**os.environ, **env}, cwd=cwd,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            self._refuse(error, argv[0])
            return False
        self.outputs = {self.process.stdout.fileno(): b"O",
                        self.process.stderr.fileno(): b"E"}
        for stream in (self.process.stdin, self.process.stdout,
                       self.process.stderr):
            set_nonblocking(stream.fileno())
        self.socket.setblocking(False)
        return True

    def _refuse(self, error, program):
        text = f"mesh-lab: {error.filename or program}: {error.strerror}\n"
        missing = isinstance(error, FileNotFoundError)
        status = EXIT_NOT_FOUND if missing else EXIT_NOT_RUN
        self.socket.sendall(frame(b"E", text.encode())
                            + frame(b"X", NUMBER.pack(status)))

    def _loop(self):
        pidfd = os.pidfd_open(self.process.pid)
        self._take_input()
        while not self.lost and not self._finished():
            for fd, events in self._poll(pidfd):
                if fd == self.socket.fileno():
                    self._serve_socket(events)
                elif fd == pidfd:
                    self.exited_at = time.monotonic()
                elif fd in self.outputs:
                    self._read_output(fd)
                else:
                    self._write_input()
        os.close(pidfd)

    def _finished(self):
        """The command is gone and so is what it had to say.

        A background process may keep the pipes open: it gets a moment.
        """
        if self.exited_at is None:
            return False
        late = time.monotonic() - self.exited_at > LINGER_S
        return not self.outgoing and (not self.outputs or late)

    def _poll(self, pidfd):
        poll = select.poll()
        wanted = select.POLLIN | (select.POLLOUT if self.outgoing else 0)
        poll.register(self.socket, wanted)
        if self.exited_at is None:
            poll.register(pidfd, select.POLLIN)
        if len(self.outgoing) < WINDOW:
            for fd in self.outputs:
                poll.register(fd, select.POLLIN)
        if self.input and self.process.stdin:
            poll.register(self.process.stdin, select.POLLOUT)
        return poll.poll(None if self.exited_at is None else 50)

    def _serve_socket(self, events):
        try:
            if events & select.POLLOUT and self.outgoing:
                del self.outgoing[:self.socket.send(self.outgoing)]
            if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                data = self.socket.recv(CHUNK)
                self.lost = self.lost or not data
                self.incoming += data
                self._take_input()
        except BlockingIOError:
            pass
        except OSError:
            self.lost = True

    def _take_input(self):
        for kind, data in take_frames(self.incoming):
            if kind == b"S" and self.exited_at is None:
                self._signal(data[0])
            elif kind == b"I" and data:
                self.input += data
            elif kind == b"I":
                self.input_ended = True
        self._close_input_when_done()

    def _write_input(self):
        try:
            count = os.write(self.process.stdin.fileno(), self.input)
            del self.input[:count]
        except BlockingIOError:
            return
        except BrokenPipeError:
            count = len(self.input)
            self.input.clear()
        self.outgoing += frame(b"A", NUMBER.pack(count))
        self._close_input_when_done()

    def _close_input_when_done(self):
        if self.input_ended and not self.input and self.process.stdin:
            self.process.stdin.close()
            self.process.stdin = None

    def _read_output(self, fd):
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        if data:
            self.outgoing += frame(self.outputs[fd], data)
        else:
            del self.outputs[fd]

    def _signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def _hang_up(self):
        for number in (signal.SIGHUP, signal.SIGTERM):
            self._signal(number)
        deadline = time.monotonic() + TERM_S
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _flush_status(self, status):
        if status < 0:
            status = 128 - status
        self.socket.setblocking(True)
        try:
            self.socket.sendall(frame(b"X", NUMBER.pack(status)))
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def reap():
    """Collects the sessions that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def serve(address):
    """Accepts connections for ever."""
    listener = socket.create_server((address, PORT), backlog=64)
    listener.settimeout(5.0)
    print("mesh-lab: ready", flush=True)
    while True:
        try:
            connection = listener.accept()[0]
        except TimeoutError:
            continue
        finally:
            reap()
        if os.fork() == 0:
            listener.close()
            connection.setblocking(True)
            try:
                Session(connection).run()
            finally:
                os._exit(0)
        connection.close()


if __name__ == "__main__":
    serve(sys.argv[1])
