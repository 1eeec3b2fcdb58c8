/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * firewall: would this node's rules let a new packet in?
 *
 * Rules of nftables (`nft -j list ruleset`) and of iptables (`iptables -S`)
 * are taken into one form.  Matches of netdev, protocol, destination port and
 * connection state are understood; a rule with any other match may apply or
 * not, and makes an answer that depends on it a doubtful one.
 *
 * Threads: one owner.  Parsers and mesh_firewall_ask() are pure.
 */
#ifndef MESH_FIREWALL_H
#define MESH_FIREWALL_H

#include <stdbool.h>
#include <stdint.h>

#define MESH_FIREWALL_NAME_LEN 96
#define MESH_FIREWALL_RANGES   16

enum mesh_firewall_verdict {
    MESH_FIREWALL_NEXT,
    MESH_FIREWALL_ACCEPT,
    MESH_FIREWALL_DROP, /* also reject */
    MESH_FIREWALL_JUMP,
    MESH_FIREWALL_GOTO,
    MESH_FIREWALL_RETURN,
};

struct mesh_firewall_chain {
    char name[MESH_FIREWALL_NAME_LEN]; /* "inet filter input", "iptables INPUT"
                                        */
    uint8_t family;                    /* AF_INET, AF_INET6; 0: both */
    bool input;                        /* where packets to this node begin */
    bool drops;                        /* by policy */
};

struct mesh_firewall_rule {
    unsigned chain;
    enum mesh_firewall_verdict verdict;
    char target[MESH_FIREWALL_NAME_LEN]; /* of JUMP and GOTO */
    char netdev[32];                     /* "": any; may end with * */
    bool netdev_not;
    uint8_t family;
    uint8_t protocol;     /* IPPROTO_TCP, IPPROTO_UDP, 1: others; 0: any */
    unsigned range_count; /* of destination ports, 0: any */
    uint16_t ranges[MESH_FIREWALL_RANGES][2];
    bool not_new;  /* for packets of known connections only */
    bool doubtful; /* has a match that is not understood */
};

struct mesh_firewall {
    struct mesh_firewall_chain *chains; /* owned */
    unsigned chain_count;
    struct mesh_firewall_rule *rules; /* owned, in order */
    unsigned rule_count;
    bool denied; /* this user may not see them */
};

struct mesh_firewall_packet {
    const char *netdev; /* borrowed */
    uint8_t family;
    uint8_t protocol;
    uint16_t port;
};

enum mesh_firewall_answer {
    MESH_FIREWALL_OPEN,
    MESH_FIREWALL_DOUBTFUL,
    MESH_FIREWALL_CLOSED,
};

/* Runs the tools that are there, in bounded time. -ENOMEM. */
int mesh_firewall_read(struct mesh_firewall *firewall_p);
void mesh_firewall_release(struct mesh_firewall *firewall);

/* Add to what is there. -EPROTO, -ENOMEM. without_iptables: leave out the
 * chains that iptables itself shows. */
int mesh_firewall_parse_nft(const char *text, bool without_iptables,
                            struct mesh_firewall *firewall);
int mesh_firewall_parse_iptables(const char *text, uint8_t family,
                                 struct mesh_firewall *firewall);

/* chain_p: the name of the chain that says no, borrowed; NULL: none. */
enum mesh_firewall_answer
mesh_firewall_ask(const struct mesh_firewall *firewall,
                  const struct mesh_firewall_packet *packet,
                  const char **chain_p);

/* For the parsers: both -ENOMEM; a new chain's or rule's place. */
int mesh_firewall_chain_add(struct mesh_firewall *firewall,
                            const struct mesh_firewall_chain *chain);
int mesh_firewall_chain_find(const struct mesh_firewall *firewall,
                             const char *name, uint8_t family);
int mesh_firewall_rule_add(struct mesh_firewall *firewall,
                           const struct mesh_firewall_rule *rule);
void mesh_firewall_range_add(struct mesh_firewall_rule *rule, long first,
                             long last);

#endif
