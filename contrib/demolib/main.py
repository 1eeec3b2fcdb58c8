# SPDX-License-Identifier: BSD-3-Clause
"""main.py BASE SECONDS [--keep]: the part of contrib/demo in the lab.

BASE is the directory contrib/demo has built in, SECONDS how long that took.
"""

import argparse
import signal
import sys
import time

import lanes
from runner import Failed, Lab, MESH_LAB, say, show
from steps import Demo

NAME = "demo"
FIRST = 3


def _steps(demo):
    return [
        ("boot", demo.boot, "boot the machines"),
        ("stock UCX, UCX_TLS=rc", demo.stock,
         "an all-to-all with stock UCX, before anything is installed"),
        ("install", demo.install, "install mesh on the machines"),
        ("ucx_info", demo.info, "ucx_info -d"),
        ("ucx_perftest", demo.perftest, "ucx_perftest between neighbours"),
        ("all-to-all", demo.alltoall,
         "the same all-to-all over mesh_rc, all pairs of machines"),
        ("HPC Challenge", demo.hpcc,
         "HPC Challenge over mesh_rc (the longest step)"),
    ]


def _run_steps(demo, rows):
    """Whether all went well; rows gets (step, result, seconds)."""
    steps = _steps(demo)
    for number, (name, function, title) in enumerate(steps, FIRST):
        say(f"{number}/{FIRST + len(steps) - 1} {title}")
        started = time.monotonic()
        try:
            result = function()
        except Failed as error:
            rows.append((name, f"FAILED: {error}",
                         time.monotonic() - started))
            show(error.output, 60)
            say(f"FAILED: {error}")
            return False
        rows.append((name, result, time.monotonic() - started))
        say(f"    {result}")
    return True


def _print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in
                        zip(row, widths)).rstrip())
    sys.stdout.flush()


def _report(demo, rows):
    print()
    _print_table([("step", "result", "time")] + [
        (name, result, f"{seconds:.0f} s") for name, result, seconds in rows])
    if demo.periods:
        print("\nBytes and RDMA packets that the lanes of each pair sent:")
        _print_table(lanes.table(demo.cables, demo.periods))
        print("The processors are emulated: times say nothing about real "
              "machines.\n", flush=True)


def _interrupt(number, _):
    raise KeyboardInterrupt(number)


def _finish(lab, keep):
    """Ends the lab, or tells how to use it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lab.close()
    try:
        if not lab.is_up():
            return
    except Failed:  # a lab that can't be asked cannot be ended either
        return
    if keep:
        print(f"The machines stay up:\n  {MESH_LAB} --name {NAME} exec n1 "
              f"bash\n  {MESH_LAB} --name {NAME} down", flush=True)
    else:
        say("ending the machines")
        lab.down()


def main():
    """The exit status of the demo."""
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    rows = [("packages and build", "done", arguments.seconds)]
    lab = Lab(NAME)
    demo = Demo(lab, arguments.base)
    try:
        if lab.is_up():
            say("ending the machines of an earlier run")
            lab.down()
        good = _run_steps(demo, rows)
        _report(demo, rows)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except Failed as error:
        show(error.output, 60)
        say(f"FAILED: {error}")
        return 1
    finally:
        _finish(lab, arguments.keep)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
