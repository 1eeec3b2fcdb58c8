/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which devices there are. A file (SWVERBS_CONFIG) has one device per line,
 *   device NAME netdev=NETDEV [speed=MBPS] [pci=ADDRESS] [numa=NODE]
 *          [pcie=GTxWIDTH] [link=ethernet|ib]
 *          [types=v2|v1|v1v2] [holes=0,3] [inline=BYTES]
 *   gid NAME INDEX ADDRESS v1|v2      (a table of its own, address by address)
 * Lines whose netdev is not in this network namespace are skipped, so one
 * file serves many. Without a file each netdev but lo becomes swv_<netdev>.
 */
#include "swverbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int swv_port_base(void)
{
    const char *v = getenv("SWVERBS_PORT");

    return v != NULL && *v != '\0' ? atoi(v) : 21000;
}

/* A peer that is gone is never given up sooner than this (nanoseconds). */
uint64_t swv_retry_floor(void)
{
    const char *v = getenv("SWVERBS_RETRY_MS");

    return (v != NULL && *v != '\0' ? strtoull(v, NULL, 10) : 500) * SWV_MS;
}

/* SWVERBS_UD=0: a device without datagrams. */
bool swv_ud_wanted(void)
{
    const char *v = getenv("SWVERBS_UD");

    return v == NULL || strcmp(v, "0") != 0;
}

static void cfg_init(struct swv_devcfg *c, const char *name)
{
    memset(c, 0, sizeof(*c));
    snprintf(c->name, sizeof(c->name), "%s", name);
    c->speed_mbps = 100000;
    c->numa = -1;
    c->max_inline = SWV_MAX_INLINE;
    c->gid_v2 = true;
}

static void cfg_holes(struct swv_devcfg *c, const char *v)
{
    char *end;

    while (*v != '\0') {
        unsigned long i = strtoul(v, &end, 10);

        if (end == v)
            return;
        if (i < SWV_MAX_GIDS)
            c->gid_holes |= 1ull << i;
        v = *end == ',' ? end + 1 : end;
    }
}

/* "16x4" */
static void cfg_pcie(struct swv_devcfg *c, const char *v)
{
    size_t n = strcspn(v, "x");

    snprintf(c->pcie_speed, sizeof(c->pcie_speed), "%.*s", (int)n, v);
    c->pcie_width = v[n] == 'x' ? atoi(v + n + 1) : 0;
}

static int cfg_set(struct swv_devcfg *c, const char *key, const char *v)
{
    if (strcmp(key, "netdev") == 0)
        snprintf(c->netdev, sizeof(c->netdev), "%s", v);
    else if (strcmp(key, "speed") == 0)
        c->speed_mbps = (uint32_t)strtoul(v, NULL, 10);
    else if (strcmp(key, "pci") == 0)
        snprintf(c->pci, sizeof(c->pci), "%s", v);
    else if (strcmp(key, "pcie") == 0)
        cfg_pcie(c, v);
    else if (strcmp(key, "numa") == 0)
        c->numa = atoi(v);
    else if (strcmp(key, "link") == 0)
        c->infiniband = strcmp(v, "ib") == 0;
    else if (strcmp(key, "holes") == 0)
        cfg_holes(c, v);
    else if (strcmp(key, "inline") == 0)
        c->max_inline = atoi(v) <= SWV_MAX_INLINE ? atoi(v) : SWV_MAX_INLINE;
    else if (strcmp(key, "types") == 0) {
        c->gid_v1 = strstr(v, "v1") != NULL;
        c->gid_v2 = strstr(v, "v2") != NULL;
    } else
        return -EINVAL;
    return 0;
}

static int parse_device(char *save, struct swv_devcfg *c)
{
    char *word = strtok_r(NULL, " \t\n", &save);

    if (word == NULL)
        return -EINVAL;
    cfg_init(c, word);
    while ((word = strtok_r(NULL, " \t\n", &save)) != NULL) {
        char *eq = strchr(word, '=');

        if (eq == NULL)
            return -EINVAL;
        *eq = '\0';
        if (cfg_set(c, word, eq + 1) != 0)
            return -EINVAL;
    }
    return c->netdev[0] == '\0' ? -EINVAL : 0;
}

static int parse_gid(char *save, struct swv_devcfg *cfg, int n)
{
    char *name = strtok_r(NULL, " \t\n", &save);
    char *index = strtok_r(NULL, " \t\n", &save);
    char *addr = strtok_r(NULL, " \t\n", &save);
    char *type = strtok_r(NULL, " \t\n", &save);
    struct swv_gid *g;
    unsigned long i;

    if (type == NULL || (i = strtoul(index, NULL, 10)) >= SWV_MAX_GIDS)
        return -EINVAL;
    while (n-- > 0) {
        if (strcmp(cfg[n].name, name) != 0)
            continue;
        cfg[n].own_gids = true;
        g = &cfg[n].gids[i];
        memset(g, 0, sizeof(*g));
        g->used = true;
        g->type = strcmp(type, "v1") == 0 ? IBV_GID_TYPE_ROCE_V1
                                          : IBV_GID_TYPE_ROCE_V2;
        if (inet_pton(AF_INET6, addr, g->gid.raw) == 1)
            return 0;
        g->gid.raw[10] = g->gid.raw[11] = 0xff;
        return inet_pton(AF_INET, addr, g->gid.raw + 12) == 1 ? 0 : -EINVAL;
    }
    return 0; /* of a device that is not here */
}

static int parse_line(char *line, struct swv_devcfg *cfg, int n, int max)
{
    struct swv_netdev nd;
    char *save = NULL, *word = strtok_r(line, " \t\n", &save);

    if (word == NULL || word[0] == '#')
        return n;
    if (strcmp(word, "gid") == 0)
        return parse_gid(save, cfg, n) == 0 ? n : -EINVAL;
    if (strcmp(word, "device") != 0 || n == max)
        return -EINVAL;
    if (parse_device(save, &cfg[n]) != 0)
        return -EINVAL;
    return swv_netdev_get(cfg[n].netdev, &nd) == 0 ? n + 1 : n;
}

static int load_file(const char *path, struct swv_devcfg *cfg, int max)
{
    FILE *f = fopen(path, "re");
    char line[512];
    int n = 0, number = 0;

    if (f == NULL) {
        fprintf(stderr, "swverbs: %s: %s\n", path, strerror(errno));
        return -errno;
    }
    while (n >= 0 && fgets(line, sizeof(line), f) != NULL) {
        number++;
        n = parse_line(line, cfg, n, max);
    }
    fclose(f);
    if (n < 0)
        fprintf(stderr, "swverbs: %s:%d: not understood\n", path, number);
    return n;
}

static bool ignored(const char *netdev)
{
    const char *list = getenv("SWVERBS_IGNORE"), *lo = getenv("SWVERBS_LO");
    size_t len = strlen(netdev);

    if (strcmp(netdev, "lo") == 0)
        return lo == NULL || strcmp(lo, "1") != 0;
    while (list != NULL && *list != '\0') {
        size_t n = strcspn(list, ",");

        if (n == len && strncmp(list, netdev, n) == 0)
            return true;
        list += list[n] == ',' ? n + 1 : n;
    }
    return false;
}

static int load_default(struct swv_devcfg *cfg, int max)
{
    struct if_nameindex *list = if_nameindex();
    char name[IFNAMSIZ + 4];
    struct swv_netdev nd;
    int n = 0;

    for (int i = 0; list != NULL && list[i].if_index != 0 && n < max; i++) {
        if (ignored(list[i].if_name) ||
            swv_netdev_get(list[i].if_name, &nd) != 0 || !nd.up)
            continue;
        snprintf(name, sizeof(name), "swv_%s", list[i].if_name);
        cfg_init(&cfg[n], name);
        snprintf(cfg[n++].netdev, IFNAMSIZ, "%s", list[i].if_name);
    }
    if (list != NULL)
        if_freenameindex(list);
    return n;
}

int swv_config_load(struct swv_devcfg *cfg, int max)
{
    const char *path = getenv("SWVERBS_CONFIG");

    if (path != NULL && *path != '\0')
        return load_file(path, cfg, max);
    return load_default(cfg, max);
}
