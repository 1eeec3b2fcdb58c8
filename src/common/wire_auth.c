/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire_auth.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(MESH_WIRE_AUTH_MAC_LEN == crypto_generichash_BYTES,
               "MAC length");
_Static_assert(MESH_WIRE_AUTH_KEY_LEN == crypto_generichash_KEYBYTES,
               "key length");

#define LABEL_LEN 16
#define FLAGS_LOW 7 /* the byte with bit 0 of the flags */

/* The label is padded to a fixed length, so that it cannot grow into data. */
static void mac_make(const struct mesh_wire_key *key, const char *label,
                     const uint8_t *data, size_t len,
                     uint8_t mac[MESH_WIRE_AUTH_MAC_LEN])
{
    crypto_generichash_state state;
    uint8_t padded[LABEL_LEN] = {0};

    memcpy(padded, label, strnlen(label, sizeof(padded)));
    crypto_generichash_init(&state, key->bytes, sizeof(key->bytes),
                            MESH_WIRE_AUTH_MAC_LEN);
    crypto_generichash_update(&state, padded, sizeof(padded));
    crypto_generichash_update(&state, data, len);
    crypto_generichash_final(&state, mac, MESH_WIRE_AUTH_MAC_LEN);
    sodium_memzero(&state, sizeof(state));
}

int mesh_wire_auth_seal(const struct mesh_wire_key *key, const char *label,
                        uint8_t *data, size_t size, size_t *len_p)
{
    if (*len_p < MESH_WIRE_AUTH_HEADER)
        return -EINVAL;
    data[FLAGS_LOW] &= (uint8_t)~MESH_WIRE_AUTH_KEYED;
    if (key == NULL)
        return *len_p <= size ? 0 : -EMSGSIZE;
    if (*len_p + MESH_WIRE_AUTH_MAC_LEN > size)
        return -EMSGSIZE;
    data[FLAGS_LOW] |= MESH_WIRE_AUTH_KEYED;
    mac_make(key, label, data, *len_p, data + *len_p);
    *len_p += MESH_WIRE_AUTH_MAC_LEN;
    return 0;
}

int mesh_wire_auth_open(const struct mesh_wire_key *key, const char *label,
                        const uint8_t *data, size_t *len_p)
{
    uint8_t mac[MESH_WIRE_AUTH_MAC_LEN];
    bool keyed;
    size_t len;

    if (*len_p < MESH_WIRE_AUTH_HEADER)
        return -EPROTO;
    keyed = (data[FLAGS_LOW] & MESH_WIRE_AUTH_KEYED) != 0;
    if (!keyed)
        return key == NULL ? 0 : -ENOKEY;
    if (key == NULL)
        return -EKEYREVOKED;
    if (*len_p < MESH_WIRE_AUTH_HEADER + MESH_WIRE_AUTH_MAC_LEN)
        return -EPROTO;
    len = *len_p - MESH_WIRE_AUTH_MAC_LEN;
    mac_make(key, label, data, len, mac);
    if (sodium_memcmp(mac, data + len, sizeof(mac)) != 0)
        return -EKEYREJECTED;
    *len_p = len;
    return 0;
}

const char *mesh_wire_auth_strerror(int error)
{
    switch (error) {
    case -ENOKEY:
        return "the sender has no key, this node has one";
    case -EKEYREVOKED:
        return "the sender has a key, this node has none";
    case -EKEYREJECTED:
        return "the sender has another key";
    default:
        return NULL;
    }
}
