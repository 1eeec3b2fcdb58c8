# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests of callgrind.py."""

import os
import tempfile
import unittest

import callgrind

# counted() calls send(), which does 7 instructions of its own and calls the
# device; the device calls the C library.
DUMP = """\
# callgrind format
positions: line
events: Ir
summary: 100

ob=(1) /usr/bin/cost
fl=(1) cost.c
fn=(1) counted
12 4
cob=(2) /usr/lib/libtransport.so
cfi=(2) send.c
cfn=(2) send
calls=2 30
+1 96

ob=(2)
fl=(2)
fn=(2)
30 5
* 2
cob=(3) /build/libswverbs.so
cfi=(3) post.c
cfn=(3) post_send
calls=2 50
31 89
fi=(4) inline.h
-2 1

ob=(3)
fl=(3)
fn=(3)
50 60
cob=(4) /usr/lib/libc.so.6
cfn=(4) sendmsg
calls=2 0
50 29

ob=(4)
fl=(5) libc.c
fn=(4)
0 29
"""


class DumpTest(unittest.TestCase):
    """A dump is read as callgrind's manual describes it."""

    def setUp(self):
        with tempfile.NamedTemporaryFile("w", delete=False) as stream:
            stream.write(DUMP)
        self.addCleanup(os.unlink, stream.name)
        self.dump = callgrind.Dump(stream.name, "libswverbs")

    def test_device_and_what_it_calls_are_apart(self):
        """The rest is what the transport did."""
        self.assertEqual(self.dump.apart, 89)
        self.assertEqual(self.dump.total, 4 + 8 + 60 + 29)
        self.assertEqual(self.dump.own, 12)

    def test_own_instructions_of_functions(self):
        """Also those of lines of another file, and at the same line."""
        self.assertEqual(self.dump.functions["libtransport.so:send"], 8)
        self.assertEqual(self.dump.functions["libc.so.6:sendmsg"], 29)
        self.assertEqual(self.dump.of_object("libtransport.so"), 8)


if __name__ == "__main__":
    unittest.main()
