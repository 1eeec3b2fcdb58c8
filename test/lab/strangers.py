#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""strangers.py HOST PORT: bad clients of an out-of-band listener, in a node.

First one of each kind, with a line "KIND CODE SECONDS" for each: the code of
the listener's REFUSE, "closed" without one, or "open" if it let the client be
for longer than PATIENCE_S. Then "flood N CLOSED SECONDS": N clients at once,
of all kinds, and how many of them were sent away.

The frames are made here, from what oob_wire.h says of them.
"""

import os
import select
import socket
import struct
import sys
import threading
import time

MAGIC = 0x4d4f4f42
VERSION = 2
HEADER = struct.Struct(">IHBBI")
HELLO, CHALLENGE, REQUEST, READY, REFUSE = 1, 2, 3, 5, 6
NODE_LEN, LANE_LEN, PROOF_LEN = 64, 88, 32
DIRECT = struct.pack(">BHI", 0, 0, 0)  # not relayed: no window, no chunk
PATIENCE_S = 40
FLOOD = 500


def frame(kind, body, magic=MAGIC, version=VERSION, length=None):
    """A frame; its header may lie."""
    length = len(body) if length is None else length
    return HEADER.pack(magic, version, kind, 0, length) + body


def hello(node, endpoint, **lies):
    """A HELLO for that node and endpoint."""
    return frame(HELLO, struct.pack(">QQ", node, endpoint) + os.urandom(32),
                 **lies)


def request():
    """A REQUEST that is fine but for its proof."""
    rail = (bytes(10) + b"\xff\xff" + socket.inet_aton("192.0.2.1")
            + struct.pack(">BBHII", 2, 1, 1024, 17, 99)
            + b"lane".ljust(LANE_LEN, b"\0"))
    body = (struct.pack(">QQ", 1, 2) + b"stranger".ljust(NODE_LEN, b"\0")
            + DIRECT + b"\1\0" + rail + os.urandom(PROOF_LEN))
    return frame(REQUEST, body)


class Client:
    """One connection to the listener."""

    def __init__(self, address):
        self.started = time.monotonic()
        self.socket = socket.create_connection(address, PATIENCE_S)

    def send(self, data):
        """Sends, unless the listener has had enough."""
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def receive(self, patience=PATIENCE_S):
        """What comes until the listener closes: bytes, or None."""
        data = b""
        end = time.monotonic() + patience
        while True:
            left = max(0, end - time.monotonic())
            if not select.select([self.socket], [], [], left)[0]:
                return None
            try:
                part = self.socket.recv(4096)
            except OSError:
                return data
            if not part:
                return data
            data += part

    def frame(self):
        """The body of the next frame."""
        self.socket.settimeout(PATIENCE_S)
        head = self.socket.recv(HEADER.size, socket.MSG_WAITALL)
        length = HEADER.unpack(head)[4]
        return self.socket.recv(length, socket.MSG_WAITALL)

    def verdict(self):
        """The code of the REFUSE that ends it, "closed" or "open"."""
        data = self.receive()
        self.socket.close()
        if data is None:
            return "open"
        while len(data) >= HEADER.size:
            _, _, kind, _, length = HEADER.unpack_from(data)
            if kind == REFUSE:
                return struct.unpack_from(">H", data, HEADER.size)[0]
            data = data[HEADER.size + length:]
        return "closed"


def who_is_there(address):
    """(node id, endpoint id) of the listener: it says so in its refusals."""
    node = endpoint = 1
    for _ in range(2):
        client = Client(address)
        client.send(hello(node, endpoint))
        body = client.frame()
        client.socket.close()
        right = int(body[4:].decode().rsplit("this is ", 1)[1][:16], 16)
        if b"node" in body[4:12]:
            node = right
        else:
            endpoint = right
    return node, endpoint


def wrong_token(client, ids):
    """All is right but the proof."""
    client.send(hello(*ids))
    client.frame()
    client.send(request())


def trickle(client, ids):
    """A byte now and then must not buy time."""
    for byte in hello(*ids):
        client.send(bytes([byte]))
        if select.select([client.socket], [], [], 1.0)[0]:
            return


KINDS = {
    "random": lambda c, ids: c.send(os.urandom(200)),
    "magic": lambda c, ids: c.send(hello(*ids, magic=MAGIC ^ 1)),
    "version": lambda c, ids: c.send(hello(*ids, version=VERSION + 1)),
    "oversized": lambda c, ids: c.send(hello(*ids, length=0xffffffff)),
    "undersized": lambda c, ids: c.send(hello(*ids, length=3)),
    "type": lambda c, ids: c.send(frame(READY, os.urandom(PROOF_LEN))),
    "node": lambda c, ids: c.send(hello(ids[0] ^ 1, ids[1])),
    "endpoint": lambda c, ids: c.send(hello(ids[0], ids[1] ^ 1)),
    "token": wrong_token,
    "half": lambda c, ids: c.send(hello(*ids)[:30]),
    "silent": lambda c, ids: None,
    "trickle": trickle,
}


def meet(address, kind, ids):
    """(verdict, seconds) of one client."""
    client = Client(address)
    KINDS[kind](client, ids)
    return client.verdict(), time.monotonic() - client.started


def each_kind(address, ids):
    """One of each, at the same time."""
    def one(kind):
        verdict, seconds = meet(address, kind, ids)
        print(kind, verdict, f"{seconds:.1f}", flush=True)
    threads = [threading.Thread(target=one, args=(kind,)) for kind in KINDS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def flood(address, ids):
    """Clients that say one thing and wait; most of them say nothing."""
    started = time.monotonic()
    quick = [kind for kind in KINDS if kind not in ("token", "trickle")]
    clients = []
    for i in range(FLOOD):
        client = Client(address)
        KINDS[quick[i] if i < len(quick) else "silent"](client, ids)
        clients.append(client)
    closed = sum(client.receive(max(0, started + 3 * PATIENCE_S
                                    - time.monotonic())) is not None
                 for client in clients)
    print("flood", FLOOD, closed, f"{time.monotonic() - started:.1f}",
          flush=True)


def main():
    """As the module says."""
    address = sys.argv[1], int(sys.argv[2])
    ids = who_is_there(address)
    each_kind(address, ids)
    flood(address, ids)


if __name__ == "__main__":
    main()
