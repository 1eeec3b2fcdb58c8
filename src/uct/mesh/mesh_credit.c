/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_credit.h"

/* Far more than there are receive buffers. */
#define MAX_CREDITS (1 << 24)

uint32_t uct_mesh_credit_owed(const struct uct_mesh_credit *credit,
                              uint32_t window)
{
    uint32_t limit = uct_mesh_credit_received(credit) + window;
    int32_t owed = (int32_t)(limit - credit->rx_granted);

    /* What was promised stays promised when the window gets smaller. */
    return owed > 0 ? (uint32_t)owed : 0;
}

uint32_t uct_mesh_credit_grant(struct uct_mesh_credit *credit, uint32_t window,
                               uint32_t most)
{
    uint32_t received = uct_mesh_credit_received(credit);
    uint32_t owed = uct_mesh_credit_owed(credit, window);
    uint32_t count = owed < most ? owed : most;

    credit->rx_granted += count;
    credit->rx_due = credit->rx_granted - window / 2;
    credit->rx_left = (int32_t)(credit->rx_due - received);
    credit->rx_carry = (int32_t)(window / 4);
    return count;
}

void uct_mesh_credit_restart(struct uct_mesh_credit *credit)
{
    credit->rx_granted = 0;
    credit->rx_due = 0;
    credit->rx_left = 0;
    credit->rx_carry = 0;
}

bool uct_mesh_credit_start(struct uct_mesh_credit *credit, uint32_t count)
{
    credit->tx = 0;
    credit->tx_granted = 0;
    return uct_mesh_credit_gain(credit, count);
}

bool uct_mesh_credit_gain(struct uct_mesh_credit *credit, uint32_t count)
{
    if (count > MAX_CREDITS || credit->tx > MAX_CREDITS)
        return false;
    credit->tx_granted += count;
    credit->tx += (int32_t)count;
    return true;
}
