# SPDX-License-Identifier: BSD-3-Clause
"""What a node that is a process sees of the host's files.

The host's root, or another one, read-only, with a layer of the node's own over
each of its directories: what a node writes stays in its memory, as in a virtual
machine.
/tmp, /run and shared memory are the node's own and empty; /proc and /sys show
the node's processes and netdevs. Everything here runs in the node's process,
in its own mount namespace, and needs no more than a user namespace's root.
"""

import ctypes
import os
import pathlib
import shutil

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_SLAVE = 4096, 16384, 1 << 19
SAFE = MS_NOSUID | MS_NODEV
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
# The same number on every architecture.
SYS_MOUNT_SETATTR = 442
# Not layered: the node has its own.
KERNEL_VIEWS = ("proc", "sys", "dev")
OWN = (*KERNEL_VIEWS, "run", "tmp", "lost+found")
RDMA_CLASSES = ("infiniband", "infiniband_verbs", "infiniband_mad")

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _mount(source, target, kind=None, flags=0, data=None):
    def text(value):
        return None if value is None else os.fsencode(value)
    _check(_libc.mount(text(source), text(target), text(kind),
                       ctypes.c_ulong(flags), text(data)), target)


def _protect(path, recursive=False):
    """Makes a mount read-only and leaves its other flags as they are."""
    _set_attributes(path, MS_RDONLY, 0, recursive)


def _set_attributes(path, added, removed, recursive):
    attributes = (ctypes.c_uint64 * 4)(added, removed, 0, 0)
    _check(_libc.syscall(ctypes.c_long(SYS_MOUNT_SETATTR),
                         ctypes.c_int(AT_FDCWD), os.fsencode(path),
                         ctypes.c_uint(AT_RECURSIVE if recursive else 0),
                         attributes, ctypes.c_size_t(32)), path)


def _mount_points():
    """Where something is mounted, as this process sees it."""
    text = pathlib.Path("/proc/self/mountinfo").read_text("utf-8")
    return [line.split()[4].encode().decode("unicode_escape")
            for line in text.splitlines()]


def layered(entries, points):
    """The directories of / that can get a layer. Pure.

    entries are the real directories in /. One with a mount below cannot: a
    user namespace may not look under it.
    """
    return [name for name in sorted(entries) if name not in OWN
            and not any(point.startswith(f"/{name}/") for point in points)]


def _directories():
    with os.scandir("/") as entries:
        return [entry.name for entry in entries
                if entry.is_dir(follow_symlinks=False)]


def _layer(name, rw, options):
    upper, work = f"{rw}/{name}/upper", f"{rw}/{name}/work"
    os.makedirs(upper)
    os.mkdir(work)
    os.chmod(upper, os.stat(f"/{name}").st_mode & 0o7777)
    _mount("mesh-lab", f"/{name}", "overlay", 0,
           f"lowerdir=/{name},upperdir={upper},workdir={work}{options}")


def _own_etc(rw):
    """/etc where it cannot be layered, as in containers: a copy."""
    def copy(source, target):
        try:
            shutil.copy2(source, target, follow_symlinks=False)
        except OSError:
            pass
    copied = f"{rw}/etc"
    shutil.copytree("/etc", copied, symlinks=True, copy_function=copy,
                    ignore_dangling_symlinks=True)
    _mount(copied, "/etc", None, MS_BIND)


def _own_kernel_views(boot_id):
    _mount("proc", "/proc", "proc", SAFE | MS_NOEXEC)
    _mount("sysfs", "/sys", "sysfs", SAFE | MS_NOEXEC)
    # What is not the node's own there is the host's.
    _mount("/proc/sys", "/proc/sys", None, MS_BIND)
    _mount("/proc/sys/net", "/proc/sys/net", None, MS_BIND)
    _protect("/proc/sys")
    _mount(boot_id, "/proc/sys/kernel/random/boot_id", None, MS_BIND)
    for name in RDMA_CLASSES:
        if os.path.isdir(f"/sys/class/{name}"):
            _mount("tmpfs", f"/sys/class/{name}", "tmpfs", SAFE | MS_RDONLY)


def _own_tmpfs():
    for path, mode in (("/run", "755"), ("/tmp", "1777"),
                       ("/dev/shm", "1777")):
        if os.path.isdir(path):
            _mount("tmpfs", path, "tmpfs", SAFE, f"mode={mode}")
    os.mkdir("/run/lock")
    os.chmod("/run/lock", 0o1777)


def _share(descriptor, path, mode):
    os.makedirs(path, exist_ok=True)
    _mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
    if mode == "ro":
        _protect(path, recursive=True)
    elif mode == "rw":
        # The root that it comes from is read-only by now.
        _set_attributes(path, 0, MS_RDONLY, False)
    os.close(descriptor)


def enter(root, paths):
    """Makes what is in a directory this process's root, in its own namespace.

    Kernel views come along. The root itself is new, and has a place for each
    of the paths where the directory has none. Files in it are left out, and
    what is mounted further below.
    """
    held = os.open(root, os.O_PATH | os.O_DIRECTORY)
    old = f"/proc/self/fd/{held}"
    with os.scandir(old) as entries:
        entries = [(entry.name, entry.is_symlink() and os.readlink(entry.path))
                   for entry in entries if entry.is_dir()]
    _mount("mesh-lab", root, "tmpfs", 0, "mode=755")
    for name, link in entries:
        if link:
            os.symlink(link, f"{root}/{name}")
        elif name not in KERNEL_VIEWS:
            os.mkdir(f"{root}/{name}")
            _mount(f"{old}/{name}", f"{root}/{name}", None, MS_BIND)
    for name in KERNEL_VIEWS:
        os.mkdir(f"{root}/{name}")
        _mount(f"/{name}", f"{root}/{name}", None, MS_BIND | MS_REC)
    for path in paths:
        os.makedirs(f"{root}/{path.split('/')[1]}", exist_ok=True)
    os.close(held)
    os.chroot(root)
    os.chdir("/")


def build(home, root, shares, boot_id, user):
    """Puts the node's files together; home is a directory for its own.

    root is the directory that holds all the others of the node. shares are
    [directory, "ro" or "rw"], seen at the same path as they are. user: this is
    a user namespace.
    """
    if "/" not in _mount_points():
        raise OSError("/ is no mount point, as in a bare chroot: mount its "
                      "directory onto itself before you enter it")
    _mount(None, "/", None, MS_REC | MS_SLAVE)
    # What comes next may cover them.
    held = [(os.open(path, os.O_PATH | os.O_DIRECTORY), path, mode)
            for path, mode in shares]
    if root != "/":
        enter(root, [path for path, _ in shares])
    names = layered(_directories(), _mount_points())
    _protect("/", recursive=True)
    _own_tmpfs()
    rw = f"{home}/rw"
    os.makedirs(rw)
    for name in names:
        try:
            _layer(name, rw, ",userxattr" if user else "")
        except OSError:
            # It stays read-only; only /etc must be the node's own.
            if name == "etc":
                _own_etc(rw)
    if "etc" not in names:
        _own_etc(rw)
    (pathlib.Path(home) / "boot_id").write_text(f"{boot_id}\n", "utf-8")
    for share in held:
        _share(*share)
    _own_kernel_views(f"{home}/boot_id")
