/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_minors: the minors of UCX 1 that the transport has been made for.
 *
 * X(minor, symbol): an exported symbol that came with it.  The symbols of 15
 * and 20 went again.  A symbol of the last one will be in its successors, too.
 *
 * A table alone, without UCX's headers: meshctl reads it, too.
 */
#ifndef UCT_MESH_UCX_MINORS_H
#define UCT_MESH_UCX_MINORS_H

#define UCT_MESH_UCX_MINORS(X)              \
    X(13, "uct_ep_invalidate")              \
    X(14, "uct_md_query_v2")                \
    X(15, "uct_base_iface_is_reachable_v2") \
    X(16, "uct_rkey_compare")               \
    X(17, "uct_md_base_md_query")           \
    X(18, "uct_iface_fill_info_str_buf")    \
    X(19, "uct_rkey_unpack_v2")             \
    X(20, "uct_iface_mem_element_pack")     \
    X(21, "uct_md_mem_elem_pack")           \
    X(22, "uct_ep_put_sgl_zcopy")           \
    X(23, "uct_ep_get_sgl_zcopy")

#endif
