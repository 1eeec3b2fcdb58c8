# SPDX-License-Identifier: BSD-3-Clause
"""Says to a meshd's flow port what nobody should, and prints the answers.

    relay_hostile.py ADDRESS
"""

import random
import re
import socket
import struct
import sys

PORT = 18518
VERSION = 2
HELLO, REQUEST, REFUSE, PATH = 1, 3, 6, 7
FLOOD = 300
ROUNDS = 200


def frame(kind, body, version=VERSION, length=None):
    """A frame of the OOB exchange."""
    return struct.pack(">4sHBBI", b"MOOB", version, kind, 0,
                       len(body) if length is None else length) + body


def path(source, hops, position=0, endpoint=1):
    """A PATH frame; hops: (lane, remote lane, node id)."""
    return frame(PATH, struct.pack(">QQBB", source, endpoint, position,
                                   len(hops)) +
                 b"".join(struct.pack(">BBQ", *hop) for hop in hops))


def ask(address, data):
    """Sends bytes: the reason of the refusal, or why there is none."""
    with socket.create_connection((address, PORT), timeout=10) as stream:
        answer = b""
        try:
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
            while part := stream.recv(4096):
                answer += part
        except OSError as error:
            return f"no answer: {error}"
    if len(answer) < 16 or answer[6] != REFUSE:
        return "closed without an answer"
    return answer[16:].decode()


def main(address):
    """All of it."""
    two = [(0, 0, 10), (1, 1, 20)]
    answer = ask(address, path(1, two))
    print(f"another node: {answer}")
    here = int(re.search(r"this is \S+ \(([0-9a-f]{16})\)", answer)[1], 16)
    cases = {
        "a node twice": path(1, [(0, 0, here), (1, 1, here)]),
        "the source again": path(here, [(0, 0, here), (1, 1, 20)]),
        "a stranger's lane": path(1, [(9, 200, here), (1, 1, 20)]),
        "too short a path": path(1, two[:1]),
        "too long a path": path(1, two * 17),
        "a position outside": path(1, two, position=2),
        "no frame": b"GET / HTTP/1.1\r\n\r\n",
        "another version": frame(PATH, bytes(38), version=9),
        "a huge frame": frame(PATH, b"", length=0xffffffff),
        "no path": frame(HELLO, bytes(48)),
        "a request": frame(REQUEST, bytes(300)),
        "nothing": b"",
        "half a frame": path(1, two)[:20],
    }
    for name, data in cases.items():
        print(f"{name}: {ask(address, data)}")
    rng = random.Random(1)
    good = path(1, two)
    for _ in range(ROUNDS):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        ask(address, bytes(data))
    silent = [socket.create_connection((address, PORT), timeout=10)
              for _ in range(FLOOD)]
    print(f"silent: {len(silent)}")
    print(f"beside them: {ask(address, path(1, two))}")


if __name__ == "__main__":
    main(sys.argv[1])
