#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""After `make install` stock mpirun needs nothing but two settings."""

import subprocess

import lab


def _install(net):
    """Puts on every node, once, what `make install` installs."""
    stage = lab.BUILD / "stage"
    done = subprocess.run(["make", "-C", lab.BUILD, "install",
                           f"DESTDIR={stage}"], capture_output=True,
                          text=True, check=False)
    lab.check(done.returncode == 0, "make install fails",
              done.stdout + done.stderr)
    for node in net.nodes():
        # /lib is a link to usr/lib.
        net.shell(node, f"tar -C {stage} -c . | "
                  "tar -C / -x --keep-directory-symlink")


def files_are_where_their_hosts_look(net):
    """UCX's and Open MPI's own directories."""
    _install(net)
    for node in net.nodes():
        net.shell(node, "ls /usr/lib/*/ucx/libuct_mesh.so.0 "
                  "/usr/lib/*/openmpi/lib/openmpi3/mca_hook_mesh.so")


def mpirun_as_the_readme_says(net):
    """All pairs of the ring, with shared memory on the node."""
    _install(net)
    for tls in ("mesh_rc,self,sm", "mesh_rc,self"):
        result = net.mpirun("pairs", "-M", 1 << 16, slots=2, tls=tls,
                            installed=True).succeeded()
        lab.check(not result.lines(r"\b(WARN|ERROR)\b"),
                  f"{tls}: the job complains", result.text)


def other_jobs_are_not_touched(net):
    """Without UCX nothing of the transport is loaded."""
    _install(net)
    result = net.mpirun("pairs", "-M", 1 << 10, installed=True, tls="",
                        mca={"pml": "ob1", "btl": "tcp,self",
                             "btl_tcp_if_include": "eth0",
                             "hook_base_verbose": "10"}).succeeded()
    lab.check(not result.lines("libuct_mesh.so"), "the transport was loaded",
              result.text)


if __name__ == "__main__":
    lab.main([("ring3", [files_are_where_their_hosts_look,
                         mpirun_as_the_readme_says,
                         other_jobs_are_not_touched])])
