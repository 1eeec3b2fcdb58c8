#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How fast NCCL's collectives are, from PyTorch.

    torchrun --nnodes 4 --node-rank R --nproc-per-node 1 \\
        --master-addr NODE0 nccl_collectives.py --output results.jsonl

run on every node, with NCCL_NET_PLUGIN=mesh NCCL_NET=Mesh in the environment.
Rank 0 writes one line of JSON for each collective and size as soon as it is
measured, so that what was measured is there if the rest fails:

    collective, bytes, ranks, net, iterations, seconds (of one), algbw and
    busbw (GB/s), wrong (elements that are not what they should be), nccl

The size is that of the largest buffer of a rank, as nccl-tests counts it, and
busbw is algbw times 2(n-1)/n for all_reduce, (n-1)/n for all_gather,
reduce_scatter and alltoall, and 1 for broadcast, reduce and sendrecv.
"""

import argparse
import ctypes
import json
import os
import sys
import time

import torch
import torch.distributed as dist

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall",
               "broadcast", "reduce", "sendrecv")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_of(text):
    """Bytes of "64", "64K", "1M", "1G"."""
    unit = UNITS.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def bus_factor(collective, ranks):
    """What algbw is multiplied with, as nccl-tests does."""
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if collective in ("all_gather", "reduce_scatter", "alltoall"):
        return (ranks - 1) / ranks
    return 1.0


class Case:
    """One collective of one size: buffers, the call, the check.

    Rank r's input is r + 1 everywhere, in each part for another rank p also
    times p + 1 where parts differ; sums stay small integers, which floats
    hold exactly.
    """

    def __init__(self, collective, size, group, device):
        self.collective = collective
        self.group = group
        self.rank = dist.get_rank()
        self.ranks = dist.get_world_size()
        # Whole parts, for those that share a buffer out.
        self.part = max(1, size // 4 // self.ranks)
        self.count = (self.part * self.ranks if collective in
                      ("all_gather", "reduce_scatter", "alltoall")
                      else max(1, size // 4))
        self.bytes = self.count * 4
        self.full = torch.empty(self.count, device=device)
        self.piece = torch.empty(self.part, device=device)
        self.other = (torch.empty_like(self.full) if collective in
                      ("alltoall", "sendrecv") else None)

    def fill(self):
        """Inputs as above, outputs such that a call that does nothing is
        noticed."""
        self.full.fill_(self.rank + 1)
        self.piece.fill_(self.rank + 1)
        if self.other is not None:
            self.other.fill_(-1)
        if self.collective == "all_gather":
            self.full.fill_(-1)
        if self.collective == "reduce_scatter":
            self.piece.fill_(-1)
            self._scale_parts()
        if self.collective == "alltoall":
            self._scale_parts()

    def _scale_parts(self):
        for part in range(self.ranks):
            self.full[part * self.part:(part + 1) * self.part] *= part + 1

    def call(self):
        """Does it once."""
        name, group = self.collective, self.group
        if name == "all_reduce":
            dist.all_reduce(self.full, group=group)
        elif name == "all_gather":
            dist.all_gather_into_tensor(self.full, self.piece, group=group)
        elif name == "reduce_scatter":
            dist.reduce_scatter_tensor(self.piece, self.full, group=group)
        elif name == "alltoall":
            dist.all_to_all_single(self.other, self.full, group=group)
        elif name == "broadcast":
            dist.broadcast(self.full, 0, group=group)
        elif name == "reduce":
            dist.reduce(self.full, 0, group=group)
        else:
            self._sendrecv()

    def _sendrecv(self):
        for work in dist.batch_isend_irecv([
                dist.P2POp(dist.isend, self.full,
                           (self.rank + 1) % self.ranks, group=self.group),
                dist.P2POp(dist.irecv, self.other,
                           (self.rank - 1) % self.ranks, group=self.group)]):
            work.wait()

    def wrong(self):
        """Elements that are not right after fill() and one call()."""
        name, total = self.collective, self.ranks * (self.ranks + 1) // 2
        if name == "all_reduce":
            return _differ(self.full, total)
        if name == "reduce":
            return _differ(self.full, total) if self.rank == 0 else 0
        if name == "broadcast":
            return _differ(self.full, 1)
        if name == "sendrecv":
            return _differ(self.other, (self.rank - 1) % self.ranks + 1)
        if name == "reduce_scatter":
            return _differ(self.piece, total * (self.rank + 1))
        result, factor = ((self.other, self.rank + 1) if name == "alltoall"
                          else (self.full, 1))
        return sum(_differ(result[part * self.part:(part + 1) * self.part],
                           (part + 1) * factor)
                   for part in range(self.ranks))


def _differ(tensor, value):
    return int((tensor != value).sum().item())


def _elapsed(case, iterations):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(iterations):
        case.call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def agreed(value, device, group, op):
    """The same number on all ranks."""
    tensor = torch.tensor([value], dtype=torch.float64, device=device)
    dist.all_reduce(tensor, op=op, group=group)
    return tensor.item()


def measure(case, options, device):
    """(iterations, seconds of one, wrong); the slowest rank's time."""
    case.fill()
    case.call()
    torch.cuda.synchronize()
    wrong = agreed(case.wrong(), device, case.group, dist.ReduceOp.SUM)
    once = agreed(_elapsed(case, 1), device, case.group, dist.ReduceOp.MAX)
    iterations = int(min(options.iterations,
                         max(1, options.seconds / max(once, 1e-6))))
    seconds = agreed(_elapsed(case, iterations), device, case.group,
                     dist.ReduceOp.MAX)
    return iterations, seconds / iterations, int(wrong)


def nccl_version():
    """Of the library that runs, which may be another than PyTorch was built
    with, as torch.cuda.nccl.version() has it."""
    number = ctypes.c_int()
    ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(number))
    return (f"{number.value // 10000}.{number.value // 100 % 100}."
            f"{number.value % 100}")


def report(case, result, output):
    """Rank 0 writes a line at once."""
    iterations, seconds, wrong = result
    algbw = case.bytes / seconds / 1e9
    line = json.dumps({
        "collective": case.collective, "bytes": case.bytes,
        "ranks": case.ranks, "net": os.environ.get("NCCL_NET", "default"),
        "iterations": iterations, "seconds": seconds,
        "algbw": round(algbw, 6),
        "busbw": round(algbw * bus_factor(case.collective, case.ranks), 6),
        "wrong": wrong,
        "nccl": nccl_version()})
    if case.rank != 0:
        return
    if output is None:
        print(line, flush=True)
        return
    with open(output, "a", encoding="utf-8") as stream:
        stream.write(line + "\n")


def sizes(options):
    """From the smallest to the largest by the factor."""
    size = options.min_size
    while size <= options.max_size:
        yield size
        size *= options.factor


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    # No name may begin an option of torchrun's, which looks at these, too, and
    # takes --max for --max-restarts.
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--min-size", type=size_of, default="1K")
    parser.add_argument("--max-size", type=size_of, default="1G")
    parser.add_argument("--factor", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=20,
                        help="of one size at most")
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="for one size, about, but for a first call")
    parser.add_argument("--output", help="a file, else standard output")
    options = parser.parse_args()
    options.collectives = options.collectives.split(",")
    unknown = set(options.collectives) - set(COLLECTIVES)
    if unknown or options.factor < 2:
        parser.error(f"unknown collectives {sorted(unknown)}, or a factor "
                     "below 2")
    return options


def main():
    """Measures everything that was asked for."""
    options = parse()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) %
                          torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    failed = 0
    for collective in options.collectives:
        for size in sizes(options):
            case = Case(collective, size, None, device)
            result = measure(case, options, device)
            failed += result[2]
            report(case, result, options.output)
            del case
    dist.destroy_process_group()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
