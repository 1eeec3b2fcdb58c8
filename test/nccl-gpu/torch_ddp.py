#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small model with DistributedDataParallel over NCCL, and the same
model with the same data in one process: the losses must be the same.

Each rank takes its share of every batch, so the mean of the ranks' losses is
the loss of the whole batch. Double precision leaves only the order of sums.
Environment as torchrun sets it.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[1] /
                             "bench"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

import nccl_collectives as bench  # noqa: E402

STEPS = 30
BATCH = 64
TOLERANCE = 1e-9


def model(device):
    """The same one wherever it is made."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(),
        nn.Linear(256, 1)).to(device, torch.float64)


def batches(device):
    """The same data everywhere."""
    torch.manual_seed(2)
    for _ in range(STEPS):
        x = torch.randn(BATCH, 64, dtype=torch.float64).to(device)
        yield x, torch.sin(x.sum(dim=1, keepdim=True))


def train(net, device, rank, ranks):
    """The loss of each step, over the batches of all ranks."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    share, losses = BATCH // ranks, []
    for x, y in batches(device):
        part = slice(rank * share, (rank + 1) * share)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x[part]), y[part])
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        if ranks > 1:
            dist.all_reduce(mean)
            mean /= ranks
        losses.append(mean.item())
    return losses


def main():
    """Status 0: the losses are the same."""
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) %
                          torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    net = nn.parallel.DistributedDataParallel(model(device),
                                              device_ids=[device.index])
    together = train(net, device, rank, ranks)
    alone = train(model(device), device, 0, 1)
    worst = max(abs(a - b) / abs(b) for a, b in zip(together, alone))
    if rank == 0:
        print(json.dumps({
            "test": "ddp", "ranks": ranks, "steps": STEPS,
            "nccl": bench.nccl_version(),
            "first_loss": together[0], "last_loss": together[-1],
            "single_process_last_loss": alone[-1],
            "worst_relative_difference": worst}), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 0 if worst < TOLERANCE and together[-1] != together[0] else 1


if __name__ == "__main__":
    sys.exit(main())
