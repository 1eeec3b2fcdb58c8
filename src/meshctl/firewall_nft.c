/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules as `nft -j list ruleset` has them. */
#include "meshctl/firewall.h"

#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PROTOCOL_OTHER 1

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* False: not one whose chains see packets to this node. */
static bool family_of(const char *text, uint8_t *family_p)
{
    *family_p = strcmp(text, "ip") == 0    ? AF_INET
                : strcmp(text, "ip6") == 0 ? AF_INET6
                                           : 0;
    return *family_p != 0 || strcmp(text, "inet") == 0;
}

static void name_make(const json_t *object, const char *chain,
                      char name[MESH_FIREWALL_NAME_LEN])
{
    snprintf(name, MESH_FIREWALL_NAME_LEN, "%s %s %s",
             text_of(object, "family"), text_of(object, "table"), chain);
}

static int chain_take(const json_t *object, bool without_iptables,
                      struct mesh_firewall *firewall)
{
    const char *name = text_of(object, "name");
    struct mesh_firewall_chain chain = {0};

    if (!family_of(text_of(object, "family"), &chain.family) ||
        (without_iptables && chain.family != 0 &&
         strcmp(text_of(object, "table"), "filter") == 0))
        return 0;
    name_make(object, name, chain.name);
    chain.input = strcmp(text_of(object, "hook"), "input") == 0;
    chain.drops = strcmp(text_of(object, "policy"), "drop") == 0;
    return mesh_firewall_chain_add(firewall, &chain);
}

/* Matches ------------------------------------------------------------------ */

static uint8_t protocol_of(const char *name)
{
    if (strcmp(name, "tcp") == 0)
        return IPPROTO_TCP;
    return strcmp(name, "udp") == 0 ? IPPROTO_UDP : PROTOCOL_OTHER;
}

static void port_take(const json_t *right, struct mesh_firewall_rule *rule)
{
    const json_t *range = json_object_get(right, "range");
    const json_t *set = json_object_get(right, "set");
    size_t i;
    json_t *item;

    if (json_is_integer(right))
        mesh_firewall_range_add(rule, (long)json_integer_value(right),
                                (long)json_integer_value(right));
    else if (json_array_size(range) == 2)
        mesh_firewall_range_add(
            rule, (long)json_integer_value(json_array_get(range, 0)),
            (long)json_integer_value(json_array_get(range, 1)));
    else if (json_is_array(set))
        json_array_foreach(set, i, item) port_take(item, rule);
    else
        rule->doubtful = true;
}

/* A word, or a set of words, one of which is wanted. */
static bool words_have(const json_t *right, const char *wanted)
{
    const json_t *set = json_object_get(right, "set");
    size_t i;
    json_t *item;

    if (json_is_string(right))
        return strcmp(json_string_value(right), wanted) == 0;
    if (set == NULL)
        set = right;
    json_array_foreach(set, i, item)
    {
        if (words_have(item, wanted))
            return true;
    }
    return false;
}

static void meta_take(const char *key, const char *op, const json_t *right,
                      struct mesh_firewall_rule *rule)
{
    bool is_not = strcmp(op, "!=") == 0;

    if ((strcmp(key, "iifname") == 0 || strcmp(key, "iif") == 0) &&
        json_is_string(right)) {
        snprintf(rule->netdev, sizeof(rule->netdev), "%s",
                 json_string_value(right));
        rule->netdev_not = is_not;
    } else if (strcmp(key, "l4proto") == 0 && json_is_string(right) &&
               !is_not) {
        rule->protocol = protocol_of(json_string_value(right));
    } else if (strcmp(key, "nfproto") == 0 && json_is_string(right) &&
               !is_not) {
        rule->family = words_have(right, "ipv4") ? AF_INET : AF_INET6;
    } else {
        rule->doubtful = true;
    }
}

static void payload_take(const json_t *payload, const char *op,
                         const json_t *right, struct mesh_firewall_rule *rule)
{
    const char *protocol = text_of(payload, "protocol");
    const char *field = text_of(payload, "field");
    bool transport = protocol_of(protocol) != PROTOCOL_OTHER;

    if (transport)
        rule->protocol = protocol_of(protocol);
    if (transport && strcmp(field, "dport") == 0 && strcmp(op, "==") == 0)
        port_take(right, rule);
    else if (strcmp(protocol, "ip") == 0 && strcmp(field, "protocol") == 0 &&
             json_is_string(right) && strcmp(op, "==") == 0)
        rule->protocol = protocol_of(json_string_value(right));
    else if (strncmp(protocol, "icmp", 4) == 0)
        rule->protocol = PROTOCOL_OTHER;
    else
        rule->doubtful = true;
}

static void match_take(const json_t *match, struct mesh_firewall_rule *rule)
{
    const json_t *left = json_object_get(match, "left");
    const json_t *right = json_object_get(match, "right");
    const char *op = text_of(match, "op");
    const json_t *ct = json_object_get(left, "ct");

    if (json_object_get(left, "meta") != NULL)
        meta_take(text_of(json_object_get(left, "meta"), "key"), op, right,
                  rule);
    else if (json_object_get(left, "payload") != NULL)
        payload_take(json_object_get(left, "payload"), op, right, rule);
    else if (ct != NULL && strcmp(text_of(ct, "key"), "state") == 0 &&
             strcmp(op, "!=") != 0)
        rule->not_new |= !words_have(right, "new");
    else
        rule->doubtful = true;
}

/* Rules -------------------------------------------------------------------- */

static void statement_take(const json_t *statement, const json_t *object,
                           struct mesh_firewall_rule *rule)
{
    static const struct {
        const char *key;
        enum mesh_firewall_verdict verdict;
    } verdicts[] = {
        {"accept", MESH_FIREWALL_ACCEPT}, {"drop", MESH_FIREWALL_DROP},
        {"reject", MESH_FIREWALL_DROP},   {"jump", MESH_FIREWALL_JUMP},
        {"goto", MESH_FIREWALL_GOTO},     {"return", MESH_FIREWALL_RETURN},
    };
    const json_t *value;

    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        value = json_object_get(statement, verdicts[i].key);
        if (value == NULL)
            continue;
        rule->verdict = verdicts[i].verdict;
        if (json_is_object(value))
            name_make(object, text_of(value, "target"), rule->target);
        return;
    }
    if (json_object_get(statement, "match") != NULL) {
        match_take(json_object_get(statement, "match"), rule);
    } else if (json_object_get(statement, "counter") == NULL &&
               json_object_get(statement, "log") == NULL) {
        /* A vmap decides by itself, a limit matches now and then. */
        rule->doubtful = true;
        if (json_object_get(statement, "vmap") != NULL)
            rule->verdict = MESH_FIREWALL_DROP;
    }
}

static int rule_take(const json_t *object, struct mesh_firewall *firewall)
{
    struct mesh_firewall_rule rule = {0};
    char name[MESH_FIREWALL_NAME_LEN];
    uint8_t family;
    size_t i;
    json_t *statement;
    int chain;

    if (!family_of(text_of(object, "family"), &family))
        return 0;
    name_make(object, text_of(object, "chain"), name);
    chain = mesh_firewall_chain_find(firewall, name, family);
    if (chain < 0)
        return 0;
    rule.chain = (unsigned)chain;
    json_array_foreach(json_object_get(object, "expr"), i, statement)
        statement_take(statement, object, &rule);
    return mesh_firewall_rule_add(firewall, &rule);
}

int mesh_firewall_parse_nft(const char *text, bool without_iptables,
                            struct mesh_firewall *firewall)
{
    json_t *document = json_loads(text, 0, NULL);
    const json_t *list = json_object_get(document, "nftables");
    json_t *item, *object;
    int ret = json_is_array(list) ? 0 : -EPROTO;
    size_t i;

    /* A chain may be named before it is there. */
    json_array_foreach(list, i, item)
    {
        object = json_object_get(item, "chain");
        if (ret >= 0 && object != NULL)
            ret = chain_take(object, without_iptables, firewall);
    }
    json_array_foreach(list, i, item)
    {
        object = json_object_get(item, "rule");
        if (ret >= 0 && object != NULL)
            ret = rule_take(object, firewall);
    }
    json_decref(document);
    return ret < 0 ? ret : 0;
}
