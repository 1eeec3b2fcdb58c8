# SPDX-License-Identifier: BSD-3-Clause
"""Heap that a connected peer takes, mesh_rc beside UCX's own rc_verbs.

connect_cost runs under massif over software verbs with few peers and with
more; what the heap has more in the end is the peers'. What was allocated
within a call of the verbs is left out: a queue pair is the device's. What UCX
maps and does not allocate, as its pools and with them UCP's endpoints, is no
heap. The same build gives the same numbers.
"""

import os
import re
import subprocess
import tempfile

import instructions

NODE = re.compile(r"( *)n(\d+): (\d+) (?:0x[0-9A-F]+: )?(\S+)")
DEVICE = re.compile(r"swv_|ibv_")
FEW, MANY = 16, 64
SECONDS = 500
VALGRIND = ["valgrind", "--tool=massif", "--detailed-freq=1",
            "--max-snapshots=10", "--threshold=0.02", "--depth=20"]


def own_bytes(text):
    """Of massif's last snapshot with a tree: (bytes, those of the device)."""
    trees = re.split(r"^heap_tree=(?:detailed|peak)$", text,
                     flags=re.MULTILINE)
    own, device, stack = 0, 0, []
    for line in trees[-1].splitlines():
        node = NODE.match(line)
        if node is None:
            continue
        depth, callers = len(node.group(1)), int(node.group(2))
        stack = stack[:depth] + [node.group(4)]
        if callers == 0 and any(map(DEVICE.match, stack)):
            device += int(node.group(3))
        elif callers == 0:
            own += int(node.group(3))
    return own, device


def _heap(bench, name, peers):
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "heap")
        result = subprocess.run(
            [*VALGRIND, f"--massif-out-file={out}", f"--log-file={out}.log",
             os.fspath(bench.build / "test/bench/connect_cost"), str(peers),
             "lo"], stdout=subprocess.DEVNULL, timeout=SECONDS,
            check=False, env=instructions.environment(
                bench.build, f"{instructions.UCP[name]},self"))
        if result.returncode != 0:
            raise RuntimeError(f"connect_cost {peers}: status "
                               f"{result.returncode}")
        with open(out, encoding="utf-8") as stream:
            return own_bytes(stream.read())


def run(bench):
    """One round: it comes out the same each time."""
    for name in instructions.UCP:
        few, many = (_heap(bench, name, peers) for peers in (FEW, MANY))
        own, device = ((b - a) / (MANY - FEW) / 1024
                       for a, b in zip(few, many))
        bench.record("heap", "peer", name, own, "KiB", in_device=device)
