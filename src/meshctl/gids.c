/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meshctl gids: as show_gids, with what is used and why. Asks no meshd.
 *
 *      [{"ibdev", "port", "netdev" ("": none), "index", "gid",
 *        "type" ("RoCE v2", "RoCE v1", "IB"), "chosen" (bool), "why"}, ...]
 *
 * The text in "why" is for people and may change.
 */
#include "meshctl/command.h"
#include "meshctl/gid_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Settings that demand an index, the first one that is set counts. */
static const char *const demand_names[] = {"UCX_MESH_RC_GID_INDEX",
                                           "NCCL_MESH_GID_INDEX"};

static void demand_read(struct mesh_gid_demand *demand)
{
    demand->name = NULL;
    for (unsigned i = 0; i < sizeof(demand_names) / sizeof(demand_names[0]);
         i++) {
        const char *text = getenv(demand_names[i]);
        char *end;
        long value;

        if (text == NULL || text[0] == '\0')
            continue;
        value = strtol(text, &end, 10);
        if (*end != '\0' || value < 0 || value > UINT16_MAX)
            continue;
        demand->name = demand_names[i];
        demand->index = (int)value;
        return;
    }
}

static int table_of(struct ibv_device **devices, const struct mesh_lane *lane,
                    struct mesh_gid **gids_p, unsigned *count_p)
{
    struct ibv_context *context;
    int ret = -ENODEV;

    for (; *devices != NULL; devices++) {
        if (strcmp(ibv_get_device_name(*devices), lane->ibdev) != 0)
            continue;
        context = ibv_open_device(*devices);
        if (context == NULL)
            return errno != 0 ? -errno : -EIO;
        ret = mesh_gid_table_read(context, lane->port, gids_p, count_p);
        ibv_close_device(context);
        break;
    }
    return ret;
}

static json_t *gid_json(const struct mesh_lane *lane,
                        const struct mesh_gid *gid, bool chosen,
                        const char *why)
{
    char text[MESH_GID_TEXT_LEN];

    return json_pack(
        "{s:s, s:i, s:s, s:i, s:s, s:s, s:b, s:s}", "ibdev", lane->ibdev,
        "port", lane->port, "netdev", lane->netdev, "index", (int)gid->index,
        "gid", mesh_gid_format(&gid->raw, text), "type",
        mesh_gid_type_name(gid->type), "chosen", chosen, "why", why);
}

static void gid_print(const struct mesh_lane *lane, const struct mesh_gid *gid,
                      bool chosen, const char *why, FILE *stream)
{
    char text[MESH_GID_TEXT_LEN];

    fprintf(stream, "%-15s %4u %5u  %-39s  %-7s  %-15s  %-6s  %s\n",
            lane->ibdev, lane->port, gid->index,
            mesh_gid_format(&gid->raw, text), mesh_gid_type_name(gid->type),
            lane->netdev[0] != '\0' ? lane->netdev : "-", chosen ? "yes" : "no",
            why);
}

static int lane_show(struct ibv_device **devices, const struct mesh_lane *lane,
                     json_t *array, FILE *stream)
{
    struct mesh_gid_demand demand;
    struct mesh_gid *gids;
    char why[MESH_GID_WHY_LEN];
    unsigned count;
    int ret = table_of(devices, lane, &gids, &count);

    if (ret < 0)
        return ret;
    demand_read(&demand);
    for (unsigned i = 0; i < count; i++) {
        bool chosen =
            mesh_gid_choice(lane, gids, count, &gids[i], &demand, why);

        if (array != NULL)
            json_array_append_new(array, gid_json(lane, &gids[i], chosen, why));
        else
            gid_print(lane, &gids[i], chosen, why, stream);
    }
    free(gids);
    return 0;
}

static int lanes_show(const struct mesh_lane *lanes, unsigned count,
                      json_t *array, FILE *stream)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    int ret = 0;

    if (devices == NULL)
        return errno != 0 ? -errno : -EIO;
    if (array == NULL)
        fprintf(stream, "%-15s %4s %5s  %-39s  %-7s  %-15s  %-6s  %s\n",
                "device", "port", "index", "GID", "type", "netdev", "chosen",
                "why");
    for (unsigned i = 0; ret == 0 && i < count; i++)
        ret = lane_show(devices, &lanes[i], array, stream);
    ibv_free_device_list(devices);
    return ret;
}

enum mesh_exit mesh_gids_run(const struct mesh_options *options, FILE *stream)
{
    json_t *array = options->json ? json_array() : NULL;
    struct mesh_lane *lanes;
    unsigned count;
    int ret = mesh_lane_discover(NULL, &lanes, &count);

    if (ret == 0) {
        if (count == 0)
            fprintf(stderr, "meshctl: no RDMA device here\n");
        else
            ret = lanes_show(lanes, count, array, stream);
        free(lanes);
    }
    if (ret < 0) {
        json_decref(array);
        return mesh_command_failed("GID tables", ret);
    }
    return options->json ? mesh_command_json(array, stream) : MESH_EXIT_DONE;
}
