#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank is killed in the midst of all-reduces: each other rank must get an
error of NCCL's in bounded time.  Status 0: it did; rank 1 is the one killed.
"""

import json
import os
import signal
import time

import torch
import torch.distributed as dist

VICTIM = 1
BOUND_S = 40
# This program sees to errors itself.
os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"


def error_of(work, end):
    """The error of one all-reduce; "" where it is over without one.  Nothing
    here waits for the GPU, where a kernel may wait for the dead for ever."""
    while not work.is_completed():
        if time.monotonic() > end:
            raise TimeoutError(f"neither result nor error within {BOUND_S} s")
        time.sleep(0.001)
    return str(work.exception() or "")


def reduce_until_error(rank, tensor):
    """The error of NCCL's."""
    end = time.monotonic() + BOUND_S
    for step in range(1 << 30):
        if rank == VICTIM and step == 50:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            error = error_of(dist.all_reduce(tensor, async_op=True), end)
        except dist.DistBackendError as failure:
            error = str(failure)
        if error:
            return error
    return ""


def main():
    """Prints how it ended."""
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    tensor = torch.ones(1 << 20, device=device)
    dist.all_reduce(tensor)
    torch.cuda.synchronize()
    start = time.monotonic()
    try:
        error = reduce_until_error(rank, tensor)
    except TimeoutError as failure:
        print(f"rank {rank}: {failure}", flush=True)
        os._exit(1)
    print(json.dumps({
        "test": "kill", "rank": rank, "ranks": dist.get_world_size(),
        "seconds": round(time.monotonic() - start, 2),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "error": error.splitlines()[:6]}), flush=True)
    # Nothing of PyTorch's own clean-up, which waits for the others.
    os._exit(0)


if __name__ == "__main__":
    main()
