/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules as `iptables -S` has them. */
#include "meshctl/firewall.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL_OTHER 1
#define WORDS_MAX      64

static unsigned line_split(char *line, char *words[WORDS_MAX])
{
    unsigned count = 0;
    char *save = NULL;

    for (char *word = strtok_r(line, " \t", &save);
         word != NULL && count < WORDS_MAX; word = strtok_r(NULL, " \t", &save))
        words[count++] = word;
    return count;
}

static int chain_take(const char *name, const char *policy, uint8_t family,
                      struct mesh_firewall *firewall)
{
    struct mesh_firewall_chain chain = {
        .family = family,
        .input = strcmp(name, "INPUT") == 0,
        .drops = strcmp(policy, "DROP") == 0,
    };

    snprintf(chain.name, sizeof(chain.name), "iptables %.80s", name);
    return mesh_firewall_chain_add(firewall, &chain);
}

static void ports_take(const char *text, struct mesh_firewall_rule *rule)
{
    while (*text != '\0') {
        char *end;
        long first = strtol(text, &end, 10), last = first;

        if (end == text) {
            rule->doubtful = true;
            return;
        }
        if (*end == ':')
            last = strtol(end + 1, &end, 10);
        mesh_firewall_range_add(rule, first, last);
        text = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\0') {
            rule->doubtful = true;
            return;
        }
    }
}

static uint8_t protocol_of(const char *name)
{
    if (strcmp(name, "tcp") == 0)
        return IPPROTO_TCP;
    if (strcmp(name, "udp") == 0)
        return IPPROTO_UDP;
    return strcmp(name, "all") == 0 ? 0 : PROTOCOL_OTHER;
}

static void target_take(const char *name, bool jump,
                        struct mesh_firewall_rule *rule)
{
    if (strcmp(name, "ACCEPT") == 0)
        rule->verdict = MESH_FIREWALL_ACCEPT;
    else if (strcmp(name, "DROP") == 0 || strcmp(name, "REJECT") == 0)
        rule->verdict = MESH_FIREWALL_DROP;
    else if (strcmp(name, "RETURN") == 0)
        rule->verdict = MESH_FIREWALL_RETURN;
    else if (strcmp(name, "LOG") == 0 || strcmp(name, "NFLOG") == 0 ||
             strcmp(name, "MARK") == 0)
        rule->verdict = MESH_FIREWALL_NEXT;
    else {
        rule->verdict = jump ? MESH_FIREWALL_JUMP : MESH_FIREWALL_GOTO;
        snprintf(rule->target, sizeof(rule->target), "iptables %.80s", name);
    }
}

static void netdev_take(const char *name, bool is_not,
                        struct mesh_firewall_rule *rule)
{
    size_t len;

    snprintf(rule->netdev, sizeof(rule->netdev), "%.31s", name);
    len = strlen(rule->netdev);
    if (len > 0 && rule->netdev[len - 1] == '+')
        rule->netdev[len - 1] = '*';
    rule->netdev_not = is_not;
}

/* One option with its value. False: it has none. */
static bool option_take(const char *name, const char *value, bool is_not,
                        struct mesh_firewall_rule *rule)
{
    if (strcmp(name, "-i") == 0)
        netdev_take(value, is_not, rule);
    else if (strcmp(name, "-m") == 0)
        ; /* names what the next options are of */
    else if (strcmp(name, "-p") == 0 && !is_not)
        rule->protocol = protocol_of(value);
    else if ((strcmp(name, "--dport") == 0 || strcmp(name, "--dports") == 0) &&
             !is_not)
        ports_take(value, rule);
    else if ((strcmp(name, "--ctstate") == 0 || strcmp(name, "--state") == 0) &&
             !is_not)
        rule->not_new = strstr(value, "NEW") == NULL;
    else if (strcmp(name, "-j") == 0 || strcmp(name, "-g") == 0)
        target_take(value, name[1] == 'j', rule);
    else if (strcmp(name, "--comment") == 0 ||
             strcmp(name, "--reject-with") == 0 ||
             strncmp(name, "--log-", 6) == 0)
        return false;
    else
        rule->doubtful = true;
    return rule->doubtful == false;
}

static int rule_take(char *const *words, unsigned count, uint8_t family,
                     struct mesh_firewall *firewall)
{
    struct mesh_firewall_rule rule = {0};
    char name[MESH_FIREWALL_NAME_LEN];
    bool is_not = false;
    int chain;

    snprintf(name, sizeof(name), "iptables %.80s", words[1]);
    chain = mesh_firewall_chain_find(firewall, name, family);
    if (chain < 0)
        return 0;
    rule.chain = (unsigned)chain;
    for (unsigned i = 2; i < count; i++) {
        if (strcmp(words[i], "!") == 0) {
            is_not = true;
            continue;
        }
        if (words[i][0] != '-')
            continue; /* more of a value */
        if (option_take(words[i], i + 1 < count ? words[i + 1] : "", is_not,
                        &rule))
            i++;
        is_not = false;
    }
    return mesh_firewall_rule_add(firewall, &rule);
}

int mesh_firewall_parse_iptables(const char *text, uint8_t family,
                                 struct mesh_firewall *firewall)
{
    char *copy = strdup(text), *save = NULL, *words[WORDS_MAX];
    int ret = copy == NULL ? -ENOMEM : 0;

    if (ret < 0)
        return ret;
    for (char *line = strtok_r(copy, "\n", &save); line != NULL && ret >= 0;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned count = line_split(line, words);

        if (count >= 2 && strcmp(words[0], "-N") == 0)
            ret = chain_take(words[1], "", family, firewall);
        else if (count >= 3 && strcmp(words[0], "-P") == 0)
            ret = chain_take(words[1], words[2], family, firewall);
        else if (count >= 2 && strcmp(words[0], "-A") == 0)
            ret = rule_take(words, count, family, firewall);
    }
    free(copy);
    return ret < 0 ? ret : 0;
}
