/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans as files of what sets up a node's network. */
#include "meshctl/plan.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define SECRET_MODE 0600 /* netplan and NetworkManager ask for it */
#define PUBLIC_MODE 0644

/* Where files go, one after the other. */
struct sink {
    const struct mesh_plan *plan;
    const char *directory; /* NULL: all on the stream */
    FILE *stream;
    int error;
};

/* path: on the node, "/etc/...".  NULL: sink->error says why. */
static FILE *file_open(struct sink *sink, unsigned node, const char *path,
                       mode_t mode)
{
    const char *name = sink->plan->nodes[node];
    char full[PATH_MAX];
    FILE *file;

    if (sink->error < 0)
        return NULL;
    if (sink->directory == NULL) {
        fprintf(sink->stream, "# %s: %s\n", name, path);
        return sink->stream;
    }
    snprintf(full, sizeof(full), "%s/%s", sink->directory, name);
    if (mkdir(full, 0755) != 0 && errno != EEXIST) {
        sink->error = -errno;
        return NULL;
    }
    snprintf(full, sizeof(full), "%s/%s/%s", sink->directory, name,
             strrchr(path, '/') + 1);
    file = fopen(full, "we");
    if (file == NULL || fchmod(fileno(file), mode) != 0)
        sink->error = -errno;
    return file;
}

static void file_close(struct sink *sink, FILE *file)
{
    if (file == sink->stream)
        fputc('\n', file);
    else if (fclose(file) != 0 && sink->error == 0)
        sink->error = -errno;
}

static bool is_planned(const struct mesh_plan_lane *lane, unsigned node)
{
    return lane->node == node && lane->addr.family != 0;
}

/* netplan ------------------------------------------------------------------ */

static void netplan_lane(const struct mesh_plan_lane *lane, FILE *file)
{
    char addr[MESH_ADDR_TEXT_LEN];

    fprintf(file,
            "    \"%s\":\n"
            "      dhcp4: false\n"
            "      dhcp6: false\n"
            "      accept-ra: false\n"
            "      link-local: [ipv6]\n"
            "      mtu: %u\n"
            "      optional: true\n"
            "      addresses:\n"
            "        - \"%s\"\n",
            lane->netdev, MESH_PLAN_MTU, mesh_addr_format(&lane->addr, addr));
}

static void netplan_node(struct sink *sink, unsigned node)
{
    FILE *file =
        file_open(sink, node, "/etc/netplan/60-mesh.yaml", SECRET_MODE);

    if (file == NULL)
        return;
    fprintf(file, "network:\n  version: 2\n  ethernets:\n");
    for (unsigned i = 0; i < sink->plan->lane_count; i++) {
        if (is_planned(&sink->plan->lanes[i], node))
            netplan_lane(&sink->plan->lanes[i], file);
    }
    file_close(sink, file);
}

/* systemd-networkd --------------------------------------------------------- */

static void networkd_lane(struct sink *sink, const struct mesh_plan_lane *lane)
{
    char path[64], addr[MESH_ADDR_TEXT_LEN];
    FILE *file;

    snprintf(path, sizeof(path), "/etc/systemd/network/60-mesh-%s.network",
             lane->netdev);
    file = file_open(sink, lane->node, path, PUBLIC_MODE);
    if (file == NULL)
        return;
    fprintf(file,
            "[Match]\n"
            "Name=%s\n\n"
            "[Link]\n"
            "MTUBytes=%u\n"
            "RequiredForOnline=no\n\n"
            "[Network]\n"
            "Address=%s\n"
            "LinkLocalAddressing=ipv6\n"
            "IPv6AcceptRA=no\n",
            lane->netdev, MESH_PLAN_MTU, mesh_addr_format(&lane->addr, addr));
    file_close(sink, file);
}

/* NetworkManager ----------------------------------------------------------- */

static void manager_lane(struct sink *sink, const struct mesh_plan_lane *lane)
{
    bool is_ipv4 = lane->addr.family == AF_INET;
    char path[96], addr[MESH_ADDR_TEXT_LEN];
    FILE *file;

    snprintf(path, sizeof(path),
             "/etc/NetworkManager/system-connections/mesh-%s.nmconnection",
             lane->netdev);
    file = file_open(sink, lane->node, path, SECRET_MODE);
    if (file == NULL)
        return;
    mesh_addr_format(&lane->addr, addr);
    fprintf(file,
            "[connection]\n"
            "id=mesh-%s\n"
            "type=ethernet\n"
            "interface-name=%s\n"
            "autoconnect=true\n\n"
            "[ethernet]\n"
            "mtu=%u\n\n"
            "[ipv4]\n"
            "method=%s\n%s%s%s\n"
            "[ipv6]\n"
            "method=%s\n%s%s%s",
            lane->netdev, lane->netdev, MESH_PLAN_MTU,
            is_ipv4 ? "manual" : "disabled", is_ipv4 ? "address1=" : "",
            is_ipv4 ? addr : "", is_ipv4 ? "\nnever-default=true\n" : "",
            is_ipv4 ? "link-local" : "manual",
            is_ipv4 ? "" : "address1=", is_ipv4 ? "" : addr,
            is_ipv4 ? "" : "\nnever-default=true\n");
    file_close(sink, file);
}

/* All ---------------------------------------------------------------------- */

/* Twins on one wire answer ARP for each other otherwise. */
static void sysctl_node(struct sink *sink, unsigned node)
{
    FILE *file = NULL;

    for (unsigned i = 0; i < sink->plan->lane_count; i++) {
        const struct mesh_plan_lane *lane = &sink->plan->lanes[i];

        if (!is_planned(lane, node) || lane->addr.family != AF_INET ||
            !mesh_plan_has_twin(sink->plan, lane))
            continue;
        if (file == NULL)
            file = file_open(sink, node, "/etc/sysctl.d/60-mesh.conf",
                             PUBLIC_MODE);
        if (file == NULL)
            return;
        fprintf(file, "net/ipv4/conf/%s/arp_ignore = 1\n", lane->netdev);
    }
    if (file != NULL)
        file_close(sink, file);
}

static const struct {
    const char *name;
    void (*node)(struct sink *sink, unsigned node);
    void (*lane)(struct sink *sink, const struct mesh_plan_lane *lane);
} formats[] = {
    {"netplan", netplan_node, NULL},
    {"networkd", NULL, networkd_lane},
    {"networkmanager", NULL, manager_lane},
};
#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

const char *mesh_plan_format(unsigned number)
{
    return number < FORMAT_COUNT ? formats[number].name : NULL;
}

int mesh_plan_files_write(const struct mesh_plan *plan, const char *format,
                          const char *directory, FILE *stream)
{
    struct sink sink = {
        .plan = plan,
        .directory = directory,
        .stream = stream,
    };
    size_t i = 0;

    while (i < FORMAT_COUNT && strcmp(formats[i].name, format) != 0)
        i++;
    if (i == FORMAT_COUNT)
        return -EINVAL;
    if (directory != NULL && mkdir(directory, 0755) != 0 && errno != EEXIST)
        return -errno;
    for (unsigned node = 0; node < plan->node_count; node++) {
        if (formats[i].node != NULL)
            formats[i].node(&sink, node);
        for (unsigned k = 0; formats[i].lane != NULL && k < plan->lane_count;
             k++) {
            if (is_planned(&plan->lanes[k], node))
                formats[i].lane(&sink, &plan->lanes[k]);
        }
        sysctl_node(&sink, node);
    }
    return sink.error;
}
