/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_dir.h"

#include "relay_wire.h"

const char *mesh_relay_fault_text(enum mesh_relay_fault fault)
{
    static const char *const texts[MESH_RELAY_FAULT_COUNT] = {
        [MESH_RELAY_FAULT_NONE] = "no fault",
        [MESH_RELAY_FAULT_TYPE] = "a message of unknown type came",
        [MESH_RELAY_FAULT_SHORT] = "a message shorter than its header came",
        [MESH_RELAY_FAULT_WINDOW] = "more messages than the window came",
        [MESH_RELAY_FAULT_ACK] = "a false acknowledgement came",
    };

    return (unsigned)fault < MESH_RELAY_FAULT_COUNT ? texts[fault] : "unknown";
}

/* The last relay does what the header says, the others pass it on. */
static enum mesh_relay_fault op_of_imm(const struct mesh_relay_dir *dir,
                                       unsigned type, uint32_t len,
                                       enum mesh_relay_op *op_p)
{
    enum mesh_relay_op op;

    switch (type) {
    case MESH_RELAY_WRITE:
        op = MESH_RELAY_OP_WRITE;
        break;
    case MESH_RELAY_WRITE_IMM:
        op = MESH_RELAY_OP_WRITE_IMM;
        break;
    case MESH_RELAY_SEND_IMM:
        op = MESH_RELAY_OP_DELIVER_IMM;
        break;
    default:
        return MESH_RELAY_FAULT_TYPE;
    }
    if (len < MESH_RELAY_HDR_LEN)
        return MESH_RELAY_FAULT_SHORT;
    *op_p = dir->last ? op : MESH_RELAY_OP_SEND_IMM;
    return MESH_RELAY_FAULT_NONE;
}

enum mesh_relay_fault mesh_relay_dir_take(struct mesh_relay_dir *dir,
                                          bool has_imm, uint32_t imm,
                                          uint32_t len,
                                          enum mesh_relay_op *op_p)
{
    enum mesh_relay_fault fault;

    *op_p = MESH_RELAY_OP_SEND;
    if (has_imm && mesh_relay_imm_type(imm) == MESH_RELAY_ACK) {
        *op_p = MESH_RELAY_OP_ACK;
        return dir->first ? MESH_RELAY_FAULT_ACK : MESH_RELAY_FAULT_NONE;
    }
    if (has_imm) {
        fault = op_of_imm(dir, mesh_relay_imm_type(imm), len, op_p);
        if (fault != MESH_RELAY_FAULT_NONE)
            return fault;
    }
    if (dir->received - dir->told >= dir->window)
        return MESH_RELAY_FAULT_WINDOW;
    dir->received++;
    return MESH_RELAY_FAULT_NONE;
}

void mesh_relay_dir_done(struct mesh_relay_dir *dir)
{
    dir->done++;
}

enum mesh_relay_fault mesh_relay_dir_acked(struct mesh_relay_dir *dir,
                                           uint32_t count)
{
    uint32_t gain =
        mesh_relay_count_gain(count, dir->far & MESH_RELAY_COUNT_MASK);

    if (dir->last || gain > dir->received - dir->far)
        return MESH_RELAY_FAULT_ACK;
    dir->far += gain;
    return MESH_RELAY_FAULT_NONE;
}

bool mesh_relay_dir_tell(struct mesh_relay_dir *dir, uint32_t *count_p)
{
    uint32_t arrived = dir->done, gain;

    if (!dir->last && dir->received - dir->far > dir->received - dir->done)
        arrived = dir->far;
    gain = arrived - dir->told;
    if (gain == 0 ||
        (dir->last && gain < dir->window / 4 && dir->received != dir->done))
        return false;
    dir->told = arrived;
    *count_p = arrived & MESH_RELAY_COUNT_MASK;
    return true;
}
