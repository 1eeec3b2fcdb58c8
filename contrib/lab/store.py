# SPDX-License-Identifier: BSD-3-Clause
"""What is known of the labs on this host: one directory for each.

A lab lives as long as its supervisor holds the lock in its directory. What a
lab that was killed has left is swept by whoever comes next.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import time

from lab import topology

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
# A socket's path has 108 bytes, the longest name in a lab needs 32 of them.
PATH_MAX = 72


class StoreError(Exception):
    """What is wrong with a lab's name or state."""


def base():
    """The directory of all labs, created."""
    run = pathlib.Path(os.environ.get("XDG_RUNTIME_DIR") or "/run")
    path = run / "mesh-lab"
    if not os.access(run, os.W_OK) or len(str(path)) + 34 > PATH_MAX:
        path = pathlib.Path(f"/tmp/mesh-lab-{os.getuid()}")
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise StoreError(f"{path} belongs to somebody else")
    return path


def start_time(pid):
    """When a process started, in ticks; None if there is no such process."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


class Lab:
    """A running lab as its commands see it."""

    def __init__(self, directory, state):
        self.directory = directory
        self.name = directory.name
        self.supervisor = state["supervisor"]
        self.fabric_name = state["fabric"]
        self.options = state["options"]
        self.machines = state["machines"]
        self.topology = topology.Topology(state["topology"])

    def pid(self, node):
        """The process of a node's machine, or None when it is gone."""
        pid, started = self.machines[node.name]
        return pid if start_time(pid) == started else None


def write_state(directory, state):
    """Makes a lab known to the other commands."""
    temporary = directory / "state.new"
    temporary.write_text(json.dumps(state), "utf-8")
    temporary.rename(directory / "state.json")


@contextlib.contextmanager
def _exclusive(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _alive(directory):
    """Whether some process holds the lab's lock."""
    try:
        with open(directory / "lock", "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _sweep(path):
    for directory in path.iterdir():
        if directory.is_dir() and not _alive(directory):
            shutil.rmtree(directory, ignore_errors=True)


def create(name):
    """A new lab's directory and the descriptor of its lock, held."""
    if not NAME.fullmatch(name):
        raise StoreError(f"{name!r} cannot name a lab")
    path = base()
    with _exclusive(path):
        _sweep(path)
        directory = path / name
        if directory.exists():
            raise StoreError(f"lab {name} is up already: mesh-lab --name "
                             f"{name} down, or choose another --name")
        directory.mkdir(mode=0o700)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return directory, lock


def labs():
    """Every lab that is up, by name."""
    path = base()
    with _exclusive(path):
        _sweep(path)
    found = []
    for state in sorted(path.glob("*/state.json")):
        with contextlib.suppress(FileNotFoundError):
            found.append(Lab(state.parent, json.loads(state.read_text())))
    return found


def find(name):
    """The lab of that name."""
    for lab in labs():
        if lab.name == name:
            return lab
    raise StoreError(f"no lab {name} is up")


def wait_gone(directory, timeout):
    """Waits until nobody holds the lab's lock; False after the timeout."""
    deadline = time.monotonic() + timeout
    while _alive(directory):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    shutil.rmtree(directory, ignore_errors=True)
    return True
