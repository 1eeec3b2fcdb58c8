#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""What README, docs and man pages name exists, and every setting is explained.

    check.py [--run]

Fails on a setting, file, command, option, test or log line that is not there,
and on a setting that no man page has. --run also runs the commands of blocks
that say where ("```sh n1") on that node of a ring of four in namespaces with
software verbs; blocks of "```sh root" install packages and are run by
test/packages/new-user. MESH_TOP_BUILDDIR (or the current directory) names the
build. Prints a PASS or FAIL line for each file and each command.
"""

import os
import pathlib
import re
import subprocess
import sys

import blocks

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MESH_TOP_BUILDDIR", ".")).resolve()
SETTING = re.compile(r"\b(?:UCX|NCCL)_MESH_[A-Z0-9_]*[A-Z0-9]\b"
                     r"|\bMESH_[A-Z0-9_]*[A-Z0-9]\b|\bSWVERBS_[A-Z]+\b")
# What a name in code style looks like that is a file of the tree.
UCX_OWN = "test/gtest"
TREE_DIRECTORIES = ("contrib", "debian", "docs", "man", "m4", "src", "test")
CODE = re.compile(r"`([^`]+)`")
SUBCOMMANDS = {"meshctl": "topology", "contrib/mesh-lab": "up",
               "mesh-lab": "up"}
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
KNOWN = 20  # so many characters tell a message from others
MACRO = re.compile(r"\bPRI[a-z]+64\b")


def _documents():
    paths = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md")),
             *sorted((TOP / "man").glob("*.scd")),
             *sorted((TOP / "test").glob("*/README.md"))]
    return {path: path.read_text("utf-8") for path in paths}


def _output(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def _declared():
    return set(_output(BUILD / "test/docs/settings", "--names").split())


class Tree:
    """What there is to be named."""

    def __init__(self):
        self.declared = _declared()
        self.sources = {
            path: path.read_text("utf-8", "replace")
            for top in ("src", "test", "contrib", "debian")
            for path in sorted((TOP / top).rglob("*"))
            if path.is_file() and path.suffix not in (".md", ".pyc")
            and "__pycache__" not in path.parts}
        self.names = set()
        for text in self.sources.values():
            self.names |= set(SETTING.findall(text))
        self.messages = [pattern for path, text in self.sources.items()
                         if path.suffix == ".c"
                         and path.is_relative_to(TOP / "src")
                         for pattern in _messages(text)]
        self.helps = {
            "meshctl": _meshctl_help(),
            "meshd": _output(BUILD / "src/meshd/meshd", "--help"),
            "contrib/mesh-lab": _lab_help(),
            "contrib/test": _output(TOP / "contrib/test", "--list")
            + (TOP / "contrib/test").read_text("utf-8"),
            "contrib/demo": (TOP / "contrib/demo").read_text("utf-8")
            + (TOP / "contrib/demolib/main.py").read_text("utf-8"),
            "contrib/packages":
                (TOP / "contrib/packages").read_text("utf-8"),
            "contrib/mesh-env": "",
        }
        self.helps["mesh-lab"] = self.helps["contrib/mesh-lab"]


def _meshctl_help():
    """Its own and that of each command, which stand indented in it."""
    program = BUILD / "src/meshctl/meshctl"
    text = _output(program, "--help")
    return text + "".join(_output(program, command, "--help") for command
                          in re.findall(r"^  ([a-z]+) ", text, re.MULTILINE))


def _lab_help():
    lab = TOP / "contrib/mesh-lab"
    return "".join(_output(lab, *sub, "--help") for sub in (
        [], ["up"], ["exec"], ["link"], ["counters"], ["status"]))


def _messages(text):
    """Patterns of the texts in a C source that are long enough to be known."""
    text = MACRO.sub('""', text)
    for run in re.findall(r'(?:"(?:[^"\\]|\\.)*"\s*)+', text):
        joined = "".join(part[1:-1] for part in LITERAL.findall(run))
        plain = joined.replace('\\"', '"').replace("%%", "%")
        parts = re.split(r"%[-0-9.*]*(?:ll|l|z|hh|h)?[a-zA-Z]?", plain)
        if sum(map(len, parts)) >= KNOWN:
            yield re.compile(".*".join(map(re.escape, parts)))


def _without_code_blocks(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def wrong_settings(tree, text):
    """Settings that neither a table nor a source of the tree has."""
    for name in sorted(set(SETTING.findall(text))):
        if name not in tree.declared and name not in tree.names:
            yield f"setting {name} does not exist"


def wrong_files(path, text):
    """Names that look like files of the tree, and links, that lead nowhere."""
    for code in CODE.findall(_without_code_blocks(text)):
        for word in code.split():
            word = word.strip(",;:()'\"").split("#")[0]
            if (word.split("/")[0] in TREE_DIRECTORIES and "/" in word
                    and not word.startswith(UCX_OWN)
                    and not list(TOP.glob(word.rstrip("/").split(":")[0]))):
                yield f"file {word} does not exist"
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if not (path.parent / target).exists():
            yield f"link {target} leads nowhere"


def _commands(text):
    """The command lines of blocks and of code in sentences."""
    for block in blocks.parse(text):
        yield from block.commands
    for code in CODE.findall(_without_code_blocks(text)):
        yield code
    for line in text.splitlines():
        if line.startswith("    ") and not line.startswith("     "):
            yield line.strip()


def wrong_commands(tree, text):
    """Subcommands, groups and options of the tree's commands."""
    for command in _commands(text):
        words = command.split("#")[0].replace("sudo ", "").split()
        if not words or words[0] not in tree.helps:
            continue
        known = tree.helps[words[0]]
        if words[0] in SUBCOMMANDS:
            plain = [word for word in words[1:]
                     if re.fullmatch(r"[a-z][a-z-]*", word)]
            if plain and not re.search(rf"\b{plain[0]}\b", known):
                yield f"`{command}`: no {plain[0]}"
        for word in words[1:]:
            option = re.match(r"--?[a-z][a-z-]*", word)
            if words[0].endswith("mesh-lab") and "mpirun" in words:
                break
            if option and option.group() not in known:
                yield f"`{command}`: no option {option.group()}"
            if words[0] == "contrib/test" and re.fullmatch("[a-z][a-z-]*", word) \
                    and not re.search(rf"^{word}\b", known, re.MULTILINE):
                yield f"`{command}`: no group {word}"


def wrong_messages(tree, text):
    """Log lines that no source has, and tests that are not there."""
    for block in re.findall(r"^```log\n(.*?)^```", text,
                            re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if not any(message.fullmatch(line) for message in tree.messages):
                yield f"no source says '{line}'"
    for name, functions in re.findall(
            r"`(test/lab/\w+\.py)`\s+\(([a-z0-9_,\s]+)\)", text):
        source = (TOP / name).read_text("utf-8")
        for function in re.split(r",\s*", functions):
            if f"def {function.strip()}(" not in source:
                yield f"{name} has no {function.strip()}"


def undocumented(tree, documents):
    """Settings that are declared and in no man page."""
    pages = "".join(text for path, text in documents.items()
                    if path.suffix == ".scd")
    for name in sorted(tree.declared):
        if f"*{name}*" not in pages:
            yield f"setting {name} is in no man page"


def _report(name, problems):
    problems = list(problems)
    if not problems:
        print(f"PASS docs/{name}")
        return True
    print(f"FAIL docs/{name}: {problems[0]}"
          + (f" (and {len(problems) - 1} more)" if problems[1:] else ""))
    for problem in problems:
        print(f"    {problem}")
    return False


def _check_names():
    tree, documents = Tree(), _documents()
    good = _report("settings are documented", undocumented(tree, documents))
    for path, text in documents.items():
        good &= _report(path.relative_to(TOP), [
            *wrong_settings(tree, text), *wrong_files(path, text),
            *wrong_commands(tree, text), *wrong_messages(tree, text)])
    return good


def main(argv):
    """The exit status."""
    good = _check_names()
    if "--run" in argv:
        good &= blocks.run_all(_documents(), BUILD, _report)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
