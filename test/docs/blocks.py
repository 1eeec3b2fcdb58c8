# SPDX-License-Identifier: BSD-3-Clause
"""Code blocks of Markdown files, and running their commands in a lab.

    blocks.py FILE      prints where and what is run, one command a line

A block that begins with "```sh NODE" is run on that node of a ring of four,
"```sh root" on a machine that gets the packages; a mere "```sh" is not run.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
LAB = TOP / "contrib/mesh-lab"
BLOCK = re.compile(r"^```sh *(\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND_S = 240  # on a machine that others use, too
# In a lab this takes the place of ssh between the nodes.
AGENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_plm_rsh_agent": "/run/mesh-lab/rsh",
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "OMPI_MCA_oob_tcp_if_include": "eth0",
    "PRTE_MCA_plm_ssh_agent": "/run/mesh-lab/rsh",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    "PRTE_MCA_prte_if_include": "eth0",
}


class Block:
    """where: a node, "root", or "" for a block that is not run."""

    def __init__(self, where, text):
        self.where = where
        self.commands = text.rstrip("\n").split("\n")


def parse(text):
    """The command blocks of a Markdown text."""
    return [Block(*match) for match in BLOCK.findall(text)]


def of(text, *places):
    """(place, command) of the blocks that are run there, in order."""
    return [(block.where, command) for block in parse(text)
            for command in block.commands if block.where in places]


@contextlib.contextmanager
def lab(name, environment, *options):
    """A ring of four; yields a function (node, command) -> (status, text)."""
    base = [os.fspath(LAB), "--name", name]

    def run(node, command):
        settings = [f"--env={key}={value}"
                    for key, value in environment.items()]
        try:
            done = subprocess.run(
                [*base, "exec", "-n", "--cwd=/", *settings, node, "sh", "-c",
                 command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, check=False, timeout=COMMAND_S)
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode(errors="replace")
            return f"none, no end within {COMMAND_S} s", text
        return done.returncode, done.stdout

    subprocess.run([*base, "--fabric", "swverbs", "up", *options, "ring4"],
                   check=True, stdout=subprocess.DEVNULL)
    try:
        yield run
    finally:
        subprocess.run([*base, "down"], check=False)


def _build_environment(build):
    """So that a build that is not installed is used, as mesh-env does."""
    libs = build / ".libs"
    path = ":".join([f"{build}/src/meshctl", f"{build}/src/meshd",
                     "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
    return {**AGENT, "PATH": path,
            "OMPI_MCA_mca_base_component_path":
                f"{libs}:SYSTEM_DEFAULT:USER_DEFAULT",
            "OMPI_MCA_hook_mesh_library": f"{libs}/libuct_mesh.so.0"}


def run_all(documents, build, report):
    """Runs what the documents say of nodes; report(name, problems) -> bool."""
    os.environ["MESH_BUILD_DIR"] = os.fspath(build)
    good = True
    with lab(f"docs-{os.getpid()}", _build_environment(build)) as run:
        for path, text in documents.items():
            for node, command in of(text, "n1", "n2", "n3", "n4"):
                status, output = run(node, command)
                problems = [f"status {status}", *output.splitlines()]
                good &= report(f"{path.name}: {command[:60]}",
                               problems if status else [])
    return good


if __name__ == "__main__":
    for place, line in of(pathlib.Path(sys.argv[1]).read_text("utf-8"),
                          "root", "n1", "n2", "n3", "n4"):
        print(f"{place}\t{line}")
