/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh_credit: how many active messages each end of a connection may have on
 * the way, so that they always find a receive buffer.
 *
 * A peer may have a window's worth on the way.  Credits come back to it with an
 * active message as soon as a quarter of the window is used up, and in a
 * message of their own when half of it is and none has carried them.
 *
 * Threads: none of its own; the owner of the struct.
 */
#ifndef UCT_MESH_CREDIT_H
#define UCT_MESH_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

/* Counts of active messages; all but tx, rx_left and rx_carry modulo 2^32.
 * All zero at first. */
struct uct_mesh_credit {
    int32_t tx;          /* may be sent */
    uint32_t tx_granted; /* were or may be sent */
    uint32_t rx_granted; /* have or may come in */
    uint32_t rx_due;     /* will have come in when credits are due */
    int32_t rx_left;     /* until then */
    int32_t rx_carry;    /* an active message carries them from here on */
};

/* How many were sent, and came in. */
static inline uint32_t
uct_mesh_credit_sent(const struct uct_mesh_credit *credit)
{
    return credit->tx_granted - (uint32_t)credit->tx;
}

static inline uint32_t
uct_mesh_credit_received(const struct uct_mesh_credit *credit)
{
    return credit->rx_due - (uint32_t)credit->rx_left;
}

/* How many the peer could get. */
uint32_t uct_mesh_credit_owed(const struct uct_mesh_credit *credit,
                              uint32_t window);

/* Gives the peer so many at most; the peer is to be told what is returned. */
uint32_t uct_mesh_credit_grant(struct uct_mesh_credit *credit, uint32_t window,
                               uint32_t most);

/* A new queue pair: what comes in is counted anew. */
void uct_mesh_credit_restart(struct uct_mesh_credit *credit);

/* What the peer gave with the exchange, whatever it gave before; and what it
 * gave then. False: nobody gives that many. */
bool uct_mesh_credit_start(struct uct_mesh_credit *credit, uint32_t count);
bool uct_mesh_credit_gain(struct uct_mesh_credit *credit, uint32_t count);

#endif
