#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch_loss.py rank|cable|meshd: what NCCL says when one is lost in the midst
of all-reduces.  Each rank that is left must get an error of NCCL's in bounded
time, and ncclCommAbort() must return; status 0: so it was.

rank   rank 1 is killed by SIGKILL
cable  rank 1 takes down its port cab2, the cable to node 2
meshd  rank 1 kills the process MESHD_PID, which relays for others

NCCL is called directly: PyTorch shows no error of NCCL's to Python before it
ends the process.  Environment as torchrun sets it.
"""

import ctypes
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[1] /
                             "bench"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import nccl_collectives as bench  # noqa: E402

CULPRIT = 1
BOUND_S = 60
FLOAT32, SUM, IN_PROGRESS = 7, 0, 7
ELEMENTS = 1 << 20


class UniqueId(ctypes.Structure):
    """ncclUniqueId."""
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Nccl:
    """A communicator; raises nothing: results are NCCL's."""

    def __init__(self, store, rank, ranks):
        # The one that PyTorch has loaded, or that was preloaded.
        self.lib = ctypes.CDLL("libnccl.so.2")
        self.lib.ncclGetLastError.restype = ctypes.c_char_p
        self.lib.ncclGetErrorString.restype = ctypes.c_char_p
        self.comm = ctypes.c_void_p()
        key = UniqueId()
        if rank == 0:
            self.lib.ncclGetUniqueId(ctypes.byref(key))
            store.set("id", bytes(key).hex())
        raw = bytes.fromhex(store.get("id").decode())
        ctypes.memmove(ctypes.byref(key), raw, len(raw))
        result = self.lib.ncclCommInitRank(ctypes.byref(self.comm), ranks, key,
                                           rank)
        if result != 0:
            raise RuntimeError(f"ncclCommInitRank: {self.text(result)}")

    def all_reduce(self, tensor):
        """Begins one in place on the current stream."""
        data = ctypes.c_void_p(tensor.data_ptr())
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        return self.lib.ncclAllReduce(data, data,
                                      ctypes.c_size_t(tensor.numel()), FLOAT32,
                                      SUM, self.comm, stream)

    def error(self):
        """Of what runs in the background; 0: none."""
        result = ctypes.c_int()
        self.lib.ncclCommGetAsyncError(self.comm, ctypes.byref(result))
        return 0 if result.value == IN_PROGRESS else result.value

    def text(self, result):
        """What the result means, and NCCL's last warning."""
        last = (self.lib.ncclGetLastError(None) or b"").decode()
        return (f"{self.lib.ncclGetErrorString(result).decode()}; "
                f"{last.splitlines()[-1] if last.strip() else 'no warning'}")


def lose(what, store):
    """Rank 1: does it."""
    store.set("lost", repr(time.time()))
    if what == "rank":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "cable":
        subprocess.run(["ip", "link", "set", "cab2", "down"], check=True)
    else:
        os.kill(int(os.environ["MESHD_PID"]), signal.SIGKILL)


def until_error(nccl, what, store, rank):
    """NCCL's result that is none of success. Nothing here waits for the GPU,
    where a kernel may wait for the dead for ever."""
    tensor = torch.zeros(ELEMENTS, device="cuda")
    end = time.monotonic() + BOUND_S
    for step in range(1 << 30):
        if rank == CULPRIT and step == 50:
            lose(what, store)
        result = nccl.all_reduce(tensor)
        done = torch.cuda.Event()
        done.record()
        while result == 0 and not done.query():
            result = nccl.error()
            if time.monotonic() > end:
                raise TimeoutError(f"no error within {BOUND_S} s")
            time.sleep(0.0005)
        if result != 0:
            return result
    return 0


def leave(store, rank, ranks, what):
    """Rank 0 has the store and goes last."""
    store.set(f"over{rank}", "1")
    if rank == 0:
        store.wait([f"over{i}" for i in range(ranks)
                    if what != "rank" or i != CULPRIT])
    # Nothing of PyTorch's own clean-up.
    os._exit(0)


def main():
    """Prints how it ended."""
    what = sys.argv[1]
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(0)
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), ranks,
        rank == 0, timeout=datetime.timedelta(seconds=BOUND_S))
    nccl = Nccl(store, rank, ranks)
    try:
        result = until_error(nccl, what, store, rank)
    except TimeoutError as failure:
        print(f"rank {rank}: {failure}", flush=True)
        os._exit(1)
    seen, text = time.time(), nccl.text(result)
    nccl.lib.ncclCommAbort(nccl.comm)
    print(json.dumps({
        "test": "loss", "lost": what, "rank": rank, "ranks": ranks,
        "nccl": bench.nccl_version(), "result": result, "error": text,
        "seconds": round(seen - float(store.get("lost")), 2),
        "abort_seconds": round(time.time() - seen, 2)}), flush=True)
    leave(store, rank, ranks, what)


if __name__ == "__main__":
    main()
