#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks data of collectives with each of NCCL's algorithms forced, each in a
communicator of its own, and of communicators of some of the ranks.
Environment as torchrun sets it. One line of JSON for each case.
"""

import json
import os
import pathlib
import sys
import time

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[1] /
                             "bench"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import nccl_collectives as bench  # noqa: E402

SIZES = (4, 4 << 10, 1 << 20, 16 << 20)
# NCCL_ALGO, and what it is forced for.
ALGORITHMS = {
    "": bench.COLLECTIVES,
    "Ring": ("all_reduce", "all_gather", "reduce_scatter", "broadcast"),
    "Tree": ("all_reduce",),
    "allgather:pat;reducescatter:pat": ("all_gather", "reduce_scatter"),
}


def check(group, collectives, device):
    """(calls, wrong elements on any rank)."""
    calls, wrong = 0, 0
    for collective in collectives:
        for size in SIZES:
            case = bench.Case(collective, size, group, device)
            for _ in range(3):
                case.fill()
                case.call()
                torch.cuda.synchronize()
                wrong += case.wrong()
                calls += 1
    return calls, int(bench.agreed(wrong, device, group, dist.ReduceOp.SUM))


def halves(device):
    """Wrong results of communicators of two ranks each, at the same time."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    # Opposite ones, which on a ring or line have no cable.
    groups = [dist.new_group([i, i + ranks // 2]) for i in range(ranks // 2)]
    tensor = torch.full((1 << 18,), float(rank + 1), device=device)
    first = rank % (ranks // 2)
    dist.all_reduce(tensor, group=groups[first])
    torch.cuda.synchronize()
    expected = (first + 1) + (first + ranks // 2 + 1)
    wrong = int((tensor != expected).sum().item())
    return int(bench.agreed(wrong, device, None, dist.ReduceOp.SUM))


def say(**line):
    """On rank 0."""
    if dist.get_rank() == 0:
        print(json.dumps({
            "test": "checks", **line, "ranks": dist.get_world_size(),
            "nccl": bench.nccl_version(),
            "runtime_connect": os.environ.get("NCCL_RUNTIME_CONNECT", "")}),
              flush=True)


def main():
    """Status 0: all right."""
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) %
                          torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    failed = 0
    for algorithm, collectives in ALGORITHMS.items():
        start = time.monotonic()
        os.environ.pop("NCCL_ALGO", None)
        if algorithm:
            os.environ["NCCL_ALGO"] = algorithm
        group = dist.new_group()
        calls, wrong = check(group, collectives, device)
        failed += wrong
        say(algorithm=algorithm or "default", calls=calls, wrong=wrong,
            seconds=round(time.monotonic() - start, 1))
    os.environ.pop("NCCL_ALGO", None)
    wrong = halves(device)
    failed += wrong
    say(algorithm="default", groups="halves", wrong=wrong)
    dist.destroy_process_group()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
