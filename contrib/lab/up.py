# SPDX-License-Identifier: BSD-3-Clause
"""Brings a lab up: checks the host, starts the machines, waits for them."""

import os
import pathlib
import shutil
import sys
import time

from lab import drawing, store, supervisor, topology
from lab.swverbs import SwverbsFabric
from lab.vm import VmFabric

FABRICS = {"vm": VmFabric, "swverbs": SwverbsFabric}
MESHD = "src/meshd/meshd"
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
POLL_S = 0.2
REPORT_S = 2.0
TAIL_LINES = 25


class UpError(Exception):
    """Why the lab did not come up."""


def fabric_of(lab):
    """The fabric of a running lab."""
    return FABRICS[lab.fabric_name](lab.name, lab.topology, lab.directory,
                                    lab.options)


class Progress:
    """Prints what happens with the seconds since the start."""

    def __init__(self):
        self.started = time.monotonic()

    def seconds(self):
        """Since the start."""
        return time.monotonic() - self.started

    def say(self, text):
        """One line."""
        print(f"[{self.seconds():5.1f} s] {text}", flush=True)


def _build_directory():
    """MESH_BUILD_DIR, or the build that lies in the checkout."""
    given = os.environ.get("MESH_BUILD_DIR")
    inside = CHECKOUT / "build"
    return os.path.realpath(given or (inside if inside.is_dir()
                                      else CHECKOUT))


def _options(arguments):
    shares = [[str(CHECKOUT), "ro"]]
    for share in arguments.share:
        path, _, mode = share.partition(":")
        path = os.path.realpath(path)
        if mode not in ("", "ro", "rw") or not os.path.isdir(path):
            raise UpError(f"--share {share}: a directory, maybe with :rw")
        shares.append([path, mode or "ro"])
    build = _build_directory()
    meshd = arguments.meshd or os.path.join(build, MESHD)
    if arguments.no_meshd or not (arguments.meshd or os.path.exists(meshd)):
        meshd = ""
    elif not arguments.meshd and not any(
            build == path or build.startswith(f"{path}/")
            for path, _ in shares):
        shares.append([build, "ro"])
    root = os.path.realpath(arguments.root)
    if not os.path.isdir(root):
        raise UpError(f"--root {arguments.root}: no such directory")
    return {"accel": arguments.accel, "arch": arguments.arch,
            "mem": arguments.mem, "root": root,
            "kernel": arguments.kernel, "shares": shares,
            "build": build, "meshd": meshd}


def _check_host(fabric):
    missing = fabric.missing()
    if missing:
        lines = [f"  {what} (package {package})"
                 for what, package in missing.items()]
        packages = " ".join(sorted(set(missing.values())))
        raise UpError("missing on this machine:\n" + "\n".join(lines)
                      + f"\ntry: apt-get install {packages}")
    refusal = fabric.refusal()
    if refusal:
        raise UpError(refusal)


def _stages(fabric):
    return {node.name: fabric.stage(node) or "kernel"
            for node in fabric.topology.nodes.values()}


def _summary(stages):
    groups = {}
    for name, stage in stages.items():
        groups.setdefault(stage, []).append(name)
    return ", ".join(f"{' '.join(names)}: {stage}"
                     for stage, names in groups.items())


def _failed(fabric, lab, stages):
    """The node that cannot come up any more, or None."""
    for node in fabric.topology.nodes.values():
        if stages[node.name].startswith("failed") or lab.pid(node) is None:
            return node
    return None


def _console_tail(fabric, node):
    try:
        text = fabric.console(node).read_text("utf-8", "replace")
    except FileNotFoundError:
        text = ""
    log = (fabric.directory / "log").read_text("utf-8", "replace")
    return "\n".join(text.splitlines()[-TAIL_LINES:] + log.splitlines()[-5:])


def _wait_ready(fabric, lab, progress, timeout):
    shown, shown_at = None, 0.0
    while True:
        stages = _stages(fabric)
        if set(stages.values()) == {"ready"}:
            return
        node = _failed(fabric, lab, stages)
        late = progress.seconds() > timeout
        if node is None and late:
            node = next(n for n in fabric.topology.nodes.values()
                        if stages[n.name] != "ready")
        if node is not None:
            why = f"not ready in {timeout} s" if late else "failed to start"
            raise UpError(f"{node.name} {why} ({stages[node.name]}); its "
                          f"console ends with:\n"
                          f"{_console_tail(fabric, node)}")
        if stages != shown and progress.seconds() - shown_at >= REPORT_S:
            progress.say(f"waiting for {_summary(stages)}")
            shown, shown_at = stages, progress.seconds()
        time.sleep(POLL_S)


def _boot(fabric, arguments, directory, lock, progress):
    daemon = (", each with a meshd" if fabric.given["meshd"] else
              "" if arguments.no_meshd else ", without a meshd: none is built")
    progress.say(f"starting {len(fabric.topology.nodes)} nodes{daemon}")
    boot = supervisor.fork(fabric, arguments.fabric, directory, lock)
    try:
        error = boot.started()
        if error:
            raise UpError(f"cannot start: {error}")
        lab = store.find(arguments.name)
        _wait_ready(fabric, lab, progress, arguments.timeout)
    except BaseException:
        boot.drop(directory)
        raise
    boot.keep()


def describe(topo):
    """Prints lanes and cabling."""
    for line in drawing.lanes(topo):
        print(line)
    print()
    for line in drawing.picture(topo) + [""] + drawing.cables(topo):
        print("  " + line)


def up(arguments):
    """Brings a lab up; 0, or an exception after everything is cleaned."""
    progress = Progress()
    if arguments.fabric not in FABRICS:
        raise UpError(f"no fabric {arguments.fabric!r}: "
                      f"{' or '.join(FABRICS)}")
    topo = topology.load(arguments.topology)
    options = _options(arguments)
    directory, lock = store.create(arguments.name)
    try:
        fabric = FABRICS[arguments.fabric](arguments.name, topo, directory,
                                           options)
        _check_host(fabric)
        fabric.prepare(progress.say)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    _boot(fabric, arguments, directory, lock, progress)
    progress.say(f"lab {arguments.name} is up: {topo.name}, {topo.title}")
    print()
    describe(topo)
    sys.stdout.flush()
    return 0
