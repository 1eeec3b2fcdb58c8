# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests of heap.py."""

import unittest

import heap

# An earlier tree, then: 100 bytes of the transport's, 900 that the device
# allocates, 800 of them within a call of the verbs by the transport, and 10
# below the threshold.
DUMP = """\
snapshot=1
heap_tree=detailed
n1: 5000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n0: 5000 0x10: uct_mesh_conn_new (mesh_conn_table.c:63)
#-----------
snapshot=2
#-----------
mem_heap_B=1010
heap_tree=detailed
n3: 1010 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 900 0x11: swv_conn_new (conn.c:36)
  n1: 800 0x12: ibv_modify_qp (modify.c:181)
   n0: 800 0x13: uct_mesh_conn_qp_connect (mesh_conn_qp.c:90)
  n0: 100 0x14: thread_main (progress.c:204)
 n1: 100 0x10: uct_mesh_conn_new (mesh_conn_table.c:63)
  n0: 100 0x15: uct_ep_create (in /usr/lib/libuct.so.0)
 n0: 10 in 2 places, all below massif's threshold (0.02%)
#-----------
snapshot=3
"""


class OwnBytes(unittest.TestCase):
    """What of a snapshot is whose."""

    def test_last_tree_by_who_allocates(self):
        """The device's is apart, whoever calls it."""
        self.assertEqual(heap.own_bytes(DUMP), (110, 900))


if __name__ == "__main__":
    unittest.main()
