# SPDX-License-Identifier: BSD-3-Clause
"""Reads what callgrind has dumped."""

import re

NAME = re.compile(r"\((\d+)\)(?: (.*))?$")
POSITION = re.compile(r"(ob|fn|cob|cfn)=(.*)$")
COST = re.compile(r"[-+*]?\d*\*? (\d+)$")


class Dump:
    """Instructions of one dump: all of them, those of calls that lead into the
    object whose name has `apart` in it, and each function's own."""

    def __init__(self, path, apart):
        self.total = 0
        self.apart = 0
        self.functions = {}
        self._apart = apart
        self._names = {}
        self._at = {}
        self._call = False
        with open(path, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                self._read(line.rstrip("\n"))

    @property
    def own(self):
        """Without what is counted apart."""
        return self.total - self.apart

    def of_object(self, name):
        """An object's own functions, without what they call."""
        return sum(cost for function, cost in self.functions.items()
                   if function.startswith(f"{name}:"))

    def _name(self, kind, text):
        number, name = NAME.match(text).groups()
        kind = kind[-2:]  # cob and ob count as one, as do cfn and fn
        if name is not None:
            self._names[kind, number] = name
        return self._names[kind, number]

    def _read(self, line):
        position = POSITION.match(line)
        if position:
            kind, text = position.groups()
            self._at[kind] = self._name(kind, text)
            if kind == "fn":
                self._at.pop("cob", None)
            return
        if line.startswith("calls="):
            self._call = True
            return
        cost = COST.match(line)
        if cost:
            self._take(int(cost.group(1)))

    def _take(self, cost):
        inside = self._apart in self._at["ob"]
        if self._call:
            called = self._at.pop("cob", self._at["ob"])
            self._call = False
            if self._apart in called and not inside:
                self.apart += cost
            return
        self.total += cost
        key = f"{self._at['ob'].rpartition('/')[2]}:{self._at['fn']}"
        self.functions[key] = self.functions.get(key, 0) + cost
