/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire_auth: the optional key that all nodes of a mesh share.
 *
 * With a key each datagram ends in a MAC, BLAKE2b keyed with it over a label
 * of the protocol and all bytes before the MAC; without a key there is none.
 * Whether a datagram has a MAC is a bit of its flags field, which stands at
 * the same place in every protocol that uses this:
 *
 *      magic u32, version u16, flags u16 (bit 0: MAC at the end)
 *
 * Replays are the business of the protocols: the hello has sequences and
 * echoes, the link map's records have sequences and lifetimes.
 *
 * Threads: any, all functions are pure.  The key is borrowed.
 */
#ifndef MESH_WIRE_AUTH_H
#define MESH_WIRE_AUTH_H

#include <stddef.h>
#include <stdint.h>

#define MESH_WIRE_AUTH_KEY_LEN 32
#define MESH_WIRE_AUTH_MAC_LEN 32
#define MESH_WIRE_AUTH_HEADER  8
#define MESH_WIRE_AUTH_KEYED   0x0001 /* the flag */

/* Longest datagram of the hello and the link map, MAC and all: passes where
 * the netdev MTU is 1500 or a little less. */
#define MESH_WIRE_DATAGRAM_MAX 1400

struct mesh_wire_key {
    uint8_t bytes[MESH_WIRE_AUTH_KEY_LEN];
};

/*
 * Ends a datagram of *len_p bytes: sets the flag and appends the MAC where
 * there is a key (else clears the flag).  label: of the protocol, at most 16
 * characters.  -EMSGSIZE: does not fit in size.
 */
int mesh_wire_auth_seal(const struct mesh_wire_key *key, const char *label,
                        uint8_t *data, size_t size, size_t *len_p);

/*
 * Checks a datagram's end; *len_p becomes its length without the MAC.
 * -ENOKEY: we have a key, the sender has none.  -EKEYREVOKED: the sender has a
 * key, we have none.  -EKEYREJECTED: another key, or changed on its way.
 * -EPROTO: too short.
 */
int mesh_wire_auth_open(const struct mesh_wire_key *key, const char *label,
                        const uint8_t *data, size_t *len_p);

/* One sentence for the log; NULL: error is none of the key. */
const char *mesh_wire_auth_strerror(int error);

#endif
