# SPDX-License-Identifier: BSD-3-Clause
"""The nodes' kernel: the distribution's package, unpacked and not installed.

Unpacked packages are cached under ${XDG_CACHE_HOME:-~/.cache}/mesh-lab.
"""

import contextlib
import fcntl
import gzip
import hashlib
import lzma
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import zlib

META_PACKAGE = "linux-image-{}"
# Newer than what apt knows: no need to ask it again.
APT_STATE = ("/var/lib/apt/lists", "/var/cache/apt/pkgcache.bin")
# Offsets in a bzImage, from Linux's Documentation/arch/x86/boot.rst.
SETUP_SECTORS = 0x1F1
PAYLOAD = 0x248
# An ELF note: name size, size, type 18 (the PVH entry point), name.
PVH_NOTE = re.compile(rb"\x04\0\0\0[\x04\x08]\0\0\0\x12\0\0\0Xen\0")


class KernelError(Exception):
    """Why there is no kernel to boot."""


class Kernel:
    """An unpacked kernel package with its modules.dep made."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()
        images = sorted(self.directory.glob("boot/vmlinuz-*"))
        if not images:
            raise KernelError(f"{directory}: no boot/vmlinuz-* in it")
        self.image = images[-1]
        self.release = self.image.name.removeprefix("vmlinuz-")
        libs = [self.directory / lib / "modules" / self.release
                for lib in ("lib", "usr/lib")]
        self.modules = next((lib for lib in libs if lib.is_dir()), None)
        if self.modules is None:
            raise KernelError(f"{directory}: no modules of {self.release}")

    def boot_image(self):
        """The fastest image to boot.

        Unpacking itself takes a kernel longer than all the rest of its start
        where the processor is emulated. So that is done here, once, and the
        machine enters the kernel by PVH.
        """
        data = self.image.read_bytes()
        name = f"vmlinux-{hashlib.sha256(data).hexdigest()[:24]}"
        path = cache_directory() / name
        if not path.exists():
            unpacked = _vmlinux(data)
            if unpacked is None:
                return self.image
            temporary = path.with_suffix(f".{os.getpid()}")
            temporary.write_bytes(unpacked)
            temporary.rename(path)
        return path

    def module_files(self, names):
        """Paths of these modules and what they need, in loading order.

        A name that is built into the kernel is left out.
        """
        table = {}
        for line in (self.modules / "modules.dep").read_text().splitlines():
            path, _, needs = line.partition(":")
            table[_module_name(path)] = (path, needs.split())
        builtin = {_module_name(line) for line in
                   (self.modules / "modules.builtin").read_text().split()}
        order = []
        for name in names:
            if name not in table:
                if name in builtin:
                    continue
                raise KernelError(f"kernel {self.release} has no {name}: it "
                                  "must be the generic one, not a cloud one")
            path, needs = table[name]
            order += [*reversed(needs), path]
        return [self.modules / path for path in dict.fromkeys(order)]


def _module_name(path):
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def _vmlinux(image):
    """What is packed in a bzImage, or None if it cannot be booted by PVH."""
    start = (image[SETUP_SECTORS] + 1) * 512
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    payload = image[start + offset:start + offset + length]
    try:
        if payload.startswith(b"\xfd7zXZ\0"):
            data = lzma.LZMADecompressor().decompress(payload)
        elif payload.startswith(b"\x1f\x8b"):
            data = gzip.decompress(payload[:-4])
        elif payload.startswith(b"\x28\xb5\x2f\xfd"):
            data = subprocess.run(["zstd", "-dcq"], input=payload[:-4],
                                  stdout=subprocess.PIPE, check=True).stdout
        else:
            return None
    except (OSError, lzma.LZMAError, zlib.error,
            subprocess.CalledProcessError):
        return None
    whole = data.startswith(b"\x7fELF") and PVH_NOTE.search(data)
    return data if whole else None


def cache_directory():
    """Where kernels are kept, created."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = pathlib.Path(base) / "mesh-lab"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def _locked(directory, say):
    with open(directory / "lock", "w", encoding="ascii") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another lab to unpack the kernel")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=False).stdout


def _candidate(meta_package):
    """Name and version of the package the meta package stands for, or None."""
    match = re.search(r"Depends: (linux-image-\S+)",
                      _output("apt-cache", "depends", meta_package))
    if not match:
        return None
    name = match.group(1)
    match = re.search(r"Candidate: (\S+)",
                      _output("apt-cache", "policy", name))
    return (name, match.group(1)) if match else None


def _download(name, directory):
    command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root",
               "download", name]
    result = subprocess.run(command, cwd=directory, text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    debs = list(pathlib.Path(directory).glob("*.deb"))
    if result.returncode != 0 or not debs:
        raise KernelError(f"cannot download {name} (are the package lists "
                          f"old? apt-get update):\n{result.stdout.strip()}")
    return debs[0]


def _unpack(deb, directory):
    """Unpacks a package and makes what its installation would have made."""
    try:
        subprocess.run(["dpkg", "-x", deb, directory], check=True)
    except subprocess.CalledProcessError:
        raise KernelError(f"{deb}: dpkg cannot unpack it") from None
    kernel = Kernel(directory)
    base = kernel.modules.parents[2]
    subprocess.run(["depmod", "-b", base, kernel.release], check=True)


def _install(target, get_deb):
    """Unpacks a package into the cache, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        tree = pathlib.Path(work) / "tree"
        _unpack(get_deb(work), tree)
        if target.exists():
            shutil.rmtree(target)
        tree.rename(target)


def _cached(cache, arch):
    pattern = f"linux-image-*-{arch}_*/boot"
    trees = [path.parent for path in cache.glob(pattern)]
    return max(trees, key=lambda path: path.stat().st_mtime, default=None)


def _known(cache):
    """The tree apt's package was found to be, if apt has not changed since."""
    try:
        checked = (cache / "current").stat().st_mtime
        tree = cache / (cache / "current").read_text("utf-8")
        changed = max(os.stat(path).st_mtime for path in APT_STATE
                      if os.path.exists(path))
    except (OSError, ValueError):
        return None
    return tree if checked > changed and tree.is_dir() else None


def find(arch, say):
    """The distribution's kernel, downloaded and unpacked if need be.

    arch is the host's, in Debian's words.
    """
    cache = cache_directory()
    meta_package = META_PACKAGE.format(arch)
    with _locked(cache, say):
        tree = _known(cache)
        if tree is not None:
            return Kernel(tree)
        candidate = _candidate(meta_package)
        if candidate is None:
            tree = _cached(cache, arch)
            if tree is None:
                raise KernelError(f"apt knows no {meta_package}: run apt-get "
                                  "update, or give --kernel")
            return Kernel(tree)
        target = cache / "_".join(candidate).replace(":", "%3a")
        if not target.exists():
            say(f"downloading {' '.join(candidate)}")
            _install(target, lambda work: _download(candidate[0], work))
        (cache / "current").write_text(target.name, "utf-8")
        return Kernel(target)


def load(path, say):
    """The kernel of a .deb file or of a directory it was unpacked in."""
    if os.path.isdir(path):
        kernel = Kernel(path)
        if not (kernel.modules / "modules.dep").exists():
            raise KernelError(f"{path}: run depmod -b {path} "
                              f"{kernel.release} first")
        return kernel
    cache = cache_directory()
    deb = pathlib.Path(path).resolve()
    if not deb.is_file():
        raise KernelError(f"{path}: no such file")
    target = cache / f"linux-image-file-{deb.stem}"
    with _locked(cache, say):
        if not target.exists():
            say(f"unpacking {deb.name}")
            _install(target, lambda work: deb)
    return Kernel(target)
