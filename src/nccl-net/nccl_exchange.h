/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_exchange: what the two ends of a comm tell each other about a leg,
 * beside what the out-of-band exchange itself carries.
 *
 * User bytes of a hello, big-endian:
 *
 *      version u8, listener u32, slots u64 (address in the caller's memory),
 *      group u64, leg u8, legs u8,
 *      for each rail: lane u8 (of the reader, in its node's order),
 *                     longest message u32, key of the slots u32
 *
 * The answer has no use for listener and slots.  group is a number that the
 * caller chooses for the legs of one comm.
 *
 * Threads: pack and unpack any; the others the engine's.
 */
#ifndef MESH_NCCL_EXCHANGE_H
#define MESH_NCCL_EXCHANGE_H

#include "nccl_comm.h"

struct mesh_nccl_info_rail {
    uint8_t lane;
    uint32_t max_msg;
    uint32_t slots_rkey;
};

struct mesh_nccl_info {
    uint32_t listener;
    uint64_t slots;
    uint64_t group;
    uint8_t leg;
    uint8_t legs;
    struct mesh_nccl_info_rail rails[MESH_NCCL_MAX_RAILS];
};

/* For hello->rail_count rails. */
void mesh_nccl_info_pack(const struct mesh_nccl_info *info,
                         struct mesh_oob_hello *hello);
/* -EPROTONOSUPPORT: another version. -EPROTO: nonsense. */
int mesh_nccl_info_unpack(const struct mesh_oob_hello *hello,
                          struct mesh_nccl_info *info_p);

/* What there is to tell of a leg whose rails are made. */
void mesh_nccl_leg_describe(const struct mesh_nccl_leg *leg,
                            struct mesh_oob_hello *hello_p);
/* The leg's rails are made; takes what the other end said of its own. */
void mesh_nccl_leg_learn(struct mesh_nccl_leg *leg,
                         const struct mesh_oob_hello *peer,
                         const struct mesh_nccl_info *info);
/* Before a rail is made: it goes over relays, with what the settings ask. */
void mesh_nccl_rail_relay(struct mesh_nccl_rail *rail);

/* The called end: accept() of mesh_nccl_call_ops, in nccl_answer.c. */
int mesh_nccl_answer(void *listener_arg, struct mesh_oob_channel *channel,
                     const struct mesh_oob_hello *peer,
                     struct mesh_oob_hello *reply_p, void **arg_p,
                     char reason[MESH_OOB_REASON_LEN]);

#endif
