#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch_stall.py SECONDS: rank 1 is stopped for so long in the midst of an
all-reduce.  With NCCL_MESH_TIMEOUT_SEC above that no rank may get an error,
and the sums are right; status 0: so it was, and each rank has waited that long.

NCCL is called directly, as in torch_loss.py.  Environment as torchrun sets it.
"""

import datetime
import json
import os
import signal
import subprocess
import sys
import time

import torch
import torch.distributed as dist

import torch_loss

STEPS = 100
SLACK_S = 45


def stop_for(seconds):
    """This whole process, until another one wakes it."""
    script = f"sleep {seconds}; kill -CONT {os.getpid()}"
    with subprocess.Popen(["sh", "-c", script]) as waker:
        os.kill(os.getpid(), signal.SIGSTOP)
        waker.wait()


def step(nccl, tensor, pause):
    """One all-reduce; NCCL's result. pause is done when it has begun."""
    end = time.monotonic() + SLACK_S + float(sys.argv[1])
    tensor.fill_(1)
    result = nccl.all_reduce(tensor)
    done = torch.cuda.Event()
    done.record()
    pause()
    while result == 0 and not done.query():
        result = nccl.error()
        if time.monotonic() > end:
            raise TimeoutError("an all-reduce has no end")
        time.sleep(0.0005)
    return result


def main():
    """Prints how it went."""
    seconds = float(sys.argv[1])
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(0)
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), ranks,
        rank == 0, timeout=datetime.timedelta(seconds=SLACK_S + seconds))
    nccl = torch_loss.Nccl(store, rank, ranks)
    tensor = torch.empty(torch_loss.ELEMENTS, device="cuda")
    longest, wrong, result, text = 0.0, 0, 0, ""
    for number in range(STEPS):
        stops = rank == torch_loss.CULPRIT and number == STEPS // 2
        start = time.monotonic()
        result = step(nccl, tensor,
                      (lambda: stop_for(seconds)) if stops else lambda: None)
        longest = max(longest, time.monotonic() - start)
        if result != 0:
            text = nccl.text(result)
            break
        wrong += int((tensor != ranks).sum().item())
    print(json.dumps({
        "test": "stall", "stopped_seconds": seconds, "rank": rank,
        "ranks": ranks, "nccl": torch_loss.bench.nccl_version(), "result": result,
        "error": text, "all_reduces": number + (result == 0), "wrong": wrong,
        "longest_seconds": round(longest, 2)}), flush=True)
    status = 0 if result == 0 and wrong == 0 and longest >= seconds else 1
    store.set(f"over{rank}", "1")
    if rank == 0:
        store.wait([f"over{i}" for i in range(ranks)])
    os._exit(status)


if __name__ == "__main__":
    main()
