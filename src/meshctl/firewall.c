/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/firewall.h"

#include "meshctl/tool.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DEPTH_MAX       16
#define TOOL_TIMEOUT_MS 5000

int mesh_firewall_chain_add(struct mesh_firewall *firewall,
                            const struct mesh_firewall_chain *chain)
{
    struct mesh_firewall_chain *chains = realloc(
        firewall->chains, (firewall->chain_count + 1) * sizeof(chains[0]));

    if (chains == NULL)
        return -ENOMEM;
    firewall->chains = chains;
    chains[firewall->chain_count] = *chain;
    return (int)firewall->chain_count++;
}

int mesh_firewall_chain_find(const struct mesh_firewall *firewall,
                             const char *name, uint8_t family)
{
    for (unsigned i = 0; i < firewall->chain_count; i++) {
        if (firewall->chains[i].family == family &&
            strcmp(firewall->chains[i].name, name) == 0)
            return (int)i;
    }
    return -ENOENT;
}

int mesh_firewall_rule_add(struct mesh_firewall *firewall,
                           const struct mesh_firewall_rule *rule)
{
    struct mesh_firewall_rule *rules = firewall->rules;
    unsigned count = firewall->rule_count;

    /* At powers of two. */
    if ((count & (count - 1)) == 0) {
        rules = realloc(rules, (count == 0 ? 1 : 2 * count) * sizeof(rules[0]));
        if (rules == NULL)
            return -ENOMEM;
        firewall->rules = rules;
    }
    rules[firewall->rule_count] = *rule;
    return (int)firewall->rule_count++;
}

void mesh_firewall_range_add(struct mesh_firewall_rule *rule, long first,
                             long last)
{
    if (rule->range_count == MESH_FIREWALL_RANGES || first < 0 ||
        last > UINT16_MAX) {
        rule->doubtful = true;
        return;
    }
    rule->ranges[rule->range_count][0] = (uint16_t)first;
    rule->ranges[rule->range_count++][1] = (uint16_t)last;
}

void mesh_firewall_release(struct mesh_firewall *firewall)
{
    free(firewall->chains);
    free(firewall->rules);
    *firewall = (struct mesh_firewall){0};
}

/* Asking ------------------------------------------------------------------- */

static bool netdev_matches(const struct mesh_firewall_rule *rule,
                           const char *netdev)
{
    size_t len = strlen(rule->netdev);
    bool same;

    if (len == 0)
        return true;
    if (rule->netdev[len - 1] == '*')
        same = strncmp(rule->netdev, netdev, len - 1) == 0;
    else
        same = strcmp(rule->netdev, netdev) == 0;
    return same != rule->netdev_not;
}

static bool port_matches(const struct mesh_firewall_rule *rule, uint16_t port)
{
    for (unsigned i = 0; i < rule->range_count; i++) {
        if (port >= rule->ranges[i][0] && port <= rule->ranges[i][1])
            return true;
    }
    return rule->range_count == 0;
}

static bool rule_matches(const struct mesh_firewall_rule *rule,
                         const struct mesh_firewall_packet *packet)
{
    return !rule->not_new && netdev_matches(rule, packet->netdev) &&
           (rule->family == 0 || rule->family == packet->family) &&
           (rule->protocol == 0 || rule->protocol == packet->protocol) &&
           port_matches(rule, packet->port);
}

/* One packet's way; doubt: a rule that may have decided otherwise. */
struct walk {
    const struct mesh_firewall *firewall;
    const struct mesh_firewall_packet *packet;
    bool doubt;
};

static enum mesh_firewall_verdict chain_walk(struct walk *walk, unsigned chain,
                                             unsigned depth);

static enum mesh_firewall_verdict
target_walk(struct walk *walk, const struct mesh_firewall_rule *rule,
            unsigned depth)
{
    int target =
        mesh_firewall_chain_find(walk->firewall, rule->target,
                                 walk->firewall->chains[rule->chain].family);

    if (target < 0 || depth == DEPTH_MAX) {
        walk->doubt = true;
        return MESH_FIREWALL_NEXT;
    }
    return chain_walk(walk, (unsigned)target, depth + 1);
}

/* NEXT: it came to the chain's end. */
static enum mesh_firewall_verdict chain_walk(struct walk *walk, unsigned chain,
                                             unsigned depth)
{
    for (unsigned i = 0; i < walk->firewall->rule_count; i++) {
        const struct mesh_firewall_rule *rule = &walk->firewall->rules[i];
        enum mesh_firewall_verdict verdict = rule->verdict;

        if (rule->chain != chain || verdict == MESH_FIREWALL_NEXT ||
            !rule_matches(rule, walk->packet))
            continue;
        if (rule->doubtful) {
            walk->doubt = true;
            continue;
        }
        if (verdict == MESH_FIREWALL_RETURN)
            return MESH_FIREWALL_NEXT;
        if (verdict != MESH_FIREWALL_JUMP && verdict != MESH_FIREWALL_GOTO)
            return verdict;
        verdict = target_walk(walk, rule, depth);
        if (verdict != MESH_FIREWALL_NEXT ||
            rule->verdict == MESH_FIREWALL_GOTO)
            return verdict;
    }
    return MESH_FIREWALL_NEXT;
}

enum mesh_firewall_answer
mesh_firewall_ask(const struct mesh_firewall *firewall,
                  const struct mesh_firewall_packet *packet,
                  const char **chain_p)
{
    enum mesh_firewall_answer answer = MESH_FIREWALL_OPEN;

    *chain_p = NULL;
    for (unsigned i = 0; i < firewall->chain_count; i++) {
        const struct mesh_firewall_chain *chain = &firewall->chains[i];
        struct walk walk = {.firewall = firewall, .packet = packet};
        enum mesh_firewall_verdict verdict;

        if (!chain->input ||
            (chain->family != 0 && chain->family != packet->family))
            continue;
        verdict = chain_walk(&walk, i, 0);
        if (verdict == MESH_FIREWALL_ACCEPT ||
            (verdict == MESH_FIREWALL_NEXT && !chain->drops))
            continue;
        *chain_p = chain->name;
        if (!walk.doubt)
            return MESH_FIREWALL_CLOSED;
        answer = MESH_FIREWALL_DOUBTFUL;
    }
    return answer;
}

/* Reading ------------------------------------------------------------------ */

/* What the tool shows; -ENOENT: it is not there. */
static int tool_read(struct mesh_firewall *firewall, char *const argv[],
                     char **text_p)
{
    int ret = mesh_tool_run(argv, TOOL_TIMEOUT_MS, text_p);

    if (ret < 0 && ret != -ENOENT && ret != -ENOMEM)
        firewall->denied = true;
    return ret;
}

static int iptables_read(struct mesh_firewall *firewall, char *tool,
                         uint8_t family)
{
    char option[] = "-S", *argv[] = {tool, option, NULL}, *text;
    int ret = tool_read(firewall, argv, &text);

    if (ret < 0)
        return ret;
    ret = mesh_firewall_parse_iptables(text, family, firewall);
    free(text);
    return ret;
}

static int nft_read(struct mesh_firewall *firewall, bool without_iptables)
{
    char tool[] = "nft", json[] = "-j", list[] = "list", what[] = "ruleset";
    char *argv[] = {tool, json, list, what, NULL}, *text;
    int ret = tool_read(firewall, argv, &text);

    if (ret < 0)
        return ret;
    ret = mesh_firewall_parse_nft(text, without_iptables, firewall);
    free(text);
    return ret;
}

int mesh_firewall_read(struct mesh_firewall *firewall_p)
{
    char v4[] = "iptables", v6[] = "ip6tables";
    int ret, nft;

    *firewall_p = (struct mesh_firewall){0};
    ret = iptables_read(firewall_p, v4, AF_INET);
    if (ret != -ENOMEM && ret != -ENOENT)
        iptables_read(firewall_p, v6, AF_INET6);
    nft = nft_read(firewall_p, ret == 0);
    if (ret == -ENOMEM || nft == -ENOMEM) {
        mesh_firewall_release(firewall_p);
        return -ENOMEM;
    }
    return 0;
}
