/* SPDX-License-Identifier: BSD-3-Clause */
/* The proofs of oob_wire.h: the only place that touches the token. */
#include "oob_wire.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

_Static_assert(MESH_OOB_WIRE_PROOF_LEN == crypto_generichash_BYTES,
               "proof length");
_Static_assert(MESH_OOB_TOKEN_LEN >= crypto_generichash_KEYBYTES_MIN &&
                   MESH_OOB_TOKEN_LEN <= crypto_generichash_KEYBYTES_MAX,
               "token length");

#define LABEL_LEN 16

/* In a REQUEST or REPLY; see the layout in oob_wire.h. */
#define AT_FLAGS    (MESH_OOB_WIRE_HEADER_LEN + 16 + MESH_OOB_WIRE_NAME_LEN)
#define AT_WINDOW   (AT_FLAGS + 1)
#define AT_COUNTS   (AT_WINDOW + 6)
#define AT_RAIL     (AT_COUNTS + 2)
#define AT_RAIL_END (AT_RAIL + MESH_OOB_WIRE_RAIL_LEN)

/* The label keeps a proof of one role from being sent back as that of the
 * other; it is padded to a fixed length, so that fields cannot shift. */
static const char *proof_label(const uint8_t *frame)
{
    switch (frame[6]) {
    case MESH_OOB_WIRE_REQUEST:
        return "mesh client req";
    case MESH_OOB_WIRE_REPLY:
        return "mesh server rep";
    case MESH_OOB_WIRE_READY:
        return "mesh client rdy";
    default:
        return NULL;
    }
}

static bool is_relayed(const uint8_t *frame, size_t len)
{
    return (frame[6] == MESH_OOB_WIRE_REQUEST ||
            frame[6] == MESH_OOB_WIRE_REPLY) &&
           len >= AT_RAIL_END + MESH_OOB_WIRE_PROOF_LEN && frame[AT_FLAGS] != 0;
}

/* What relays change counts as zeros; the flag that says so counts. */
static void frame_update(crypto_generichash_state *state, const uint8_t *frame,
                         size_t len)
{
    static const uint8_t zeros[MESH_OOB_WIRE_RAIL_LEN];

    if (!is_relayed(frame, len)) {
        crypto_generichash_update(state, frame, len - MESH_OOB_WIRE_PROOF_LEN);
        return;
    }
    crypto_generichash_update(state, frame, AT_WINDOW);
    crypto_generichash_update(state, zeros, AT_COUNTS - AT_WINDOW);
    crypto_generichash_update(state, frame + AT_COUNTS, AT_RAIL - AT_COUNTS);
    crypto_generichash_update(state, zeros, sizeof(zeros));
    crypto_generichash_update(state, frame + AT_RAIL_END,
                              len - MESH_OOB_WIRE_PROOF_LEN - AT_RAIL_END);
}

static int proof_make(const struct mesh_oob_wire_keys *keys,
                      const uint8_t *frame, size_t len,
                      uint8_t proof[MESH_OOB_WIRE_PROOF_LEN])
{
    crypto_generichash_state state;
    char label[LABEL_LEN] = "";
    const char *name;

    if (len < MESH_OOB_WIRE_HEADER_LEN + MESH_OOB_WIRE_PROOF_LEN)
        return -EINVAL;
    name = proof_label(frame);
    if (name == NULL)
        return -EINVAL;
    memcpy(label, name, strlen(name));
    crypto_generichash_init(&state, keys->token, MESH_OOB_TOKEN_LEN,
                            MESH_OOB_WIRE_PROOF_LEN);
    crypto_generichash_update(&state, (const uint8_t *)label, sizeof(label));
    crypto_generichash_update(&state, keys->client_nonce,
                              MESH_OOB_WIRE_NONCE_LEN);
    crypto_generichash_update(&state, keys->server_nonce,
                              MESH_OOB_WIRE_NONCE_LEN);
    frame_update(&state, frame, len);
    crypto_generichash_final(&state, proof, MESH_OOB_WIRE_PROOF_LEN);
    sodium_memzero(&state, sizeof(state));
    return 0;
}

int mesh_oob_wire_seal(const struct mesh_oob_wire_keys *keys, uint8_t *frame,
                       size_t len)
{
    uint8_t proof[MESH_OOB_WIRE_PROOF_LEN];
    int error = proof_make(keys, frame, len, proof);

    if (error != 0)
        return error;
    memcpy(frame + len - sizeof(proof), proof, sizeof(proof));
    return 0;
}

int mesh_oob_wire_verify(const struct mesh_oob_wire_keys *keys,
                         const uint8_t *frame, size_t len)
{
    uint8_t proof[MESH_OOB_WIRE_PROOF_LEN];

    if (proof_make(keys, frame, len, proof) != 0 ||
        sodium_memcmp(proof, frame + len - sizeof(proof), sizeof(proof)) != 0)
        return -EKEYREJECTED;
    return 0;
}
