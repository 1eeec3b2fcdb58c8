# SPDX-License-Identifier: BSD-3-Clause
"""Builds a node's initramfs: a cpio archive (newc) made without cpio."""

import gzip
import lzma
import stat

MODULES = ("virtio_net", "virtio_pci", "9p", "9pnet_virtio", "overlay",
           # rxe computes its checksums with it and cannot say so itself.
           "crc32_generic", "rdma_rxe", "rdma_ucm", "ib_umad", "virtio_rng")
MAGIC = b"070701"


class Archive:
    """A cpio archive in memory; parent directories come first."""

    def __init__(self):
        self.parts = []
        self.inode = 0
        self.directories = set()

    def add(self, path, data, mode=0o644):
        """Adds a file; path is relative to the root."""
        self._parents(path)
        self._entry(path, stat.S_IFREG | mode, data)

    def _parents(self, path):
        names = path.split("/")[:-1]
        for depth in range(1, len(names) + 1):
            directory = "/".join(names[:depth])
            if directory not in self.directories:
                self.directories.add(directory)
                self._entry(directory, stat.S_IFDIR | 0o755, b"")

    def _entry(self, path, mode, data):
        self.inode += 1
        name = path.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0,
                  len(name), 0)
        head = MAGIC + b"".join(b"%08X" % field for field in fields) + name
        self.parts += [head, b"\0" * (-len(head) % 4),
                       data, b"\0" * (-len(data) % 4)]

    def close(self):
        """The archive's bytes, padded so that another may follow."""
        self._entry("TRAILER!!!", 0, b"")
        data = b"".join(self.parts)
        return data + b"\0" * (-len(data) % 512)


def _module_bytes(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def base(kernel, busybox, init):
    """The compressed part every node shares."""
    archive = Archive()
    archive.add("bin/busybox", busybox, 0o755)
    archive.add("init", init.encode(), 0o755)
    names = []
    for path in kernel.module_files(MODULES):
        name = path.name.split(".ko")[0] + ".ko"
        archive.add(f"modules/{name}", _module_bytes(path))
        names.append(name)
    archive.add("modules/order", "".join(f"{n}\n" for n in names).encode())
    return gzip.compress(archive.close(), 1)


def node(files):
    """A node's own part, to follow the base: {path: (text, mode)}."""
    archive = Archive()
    for path, (text, mode) in files.items():
        archive.add(path, text.encode(), mode)
    return archive.close()
