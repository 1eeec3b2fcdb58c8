/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of words, and of files in the format of mesh-lab's topologies. */
#include "meshctl/plan.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define WORD_NODES_MAX 99

/* Words -------------------------------------------------------------------- */

static int word_nodes(struct mesh_plan *plan, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%u", i + 1);
        if (mesh_plan_node_add(plan, name) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* A cable from the lane of one node to that of another. */
static int word_cable(struct mesh_plan *plan, unsigned a, unsigned port_a,
                      unsigned b, unsigned port_b)
{
    struct mesh_plan_lane near = {.node = a, .wire = plan->wire_count};
    struct mesh_plan_lane far = {.node = b, .wire = plan->wire_count};

    snprintf(near.netdev, sizeof(near.netdev), "a%u", port_a);
    snprintf(far.netdev, sizeof(far.netdev), "a%u", port_b);
    plan->wire_count++;
    if (mesh_plan_lane_add(plan, &near) < 0 ||
        mesh_plan_lane_add(plan, &far) < 0)
        return -ENOMEM;
    return 0;
}

/* Port 0 leads to the next node, port 1 to the one before. */
static int word_chain(struct mesh_plan *plan, unsigned count, bool closed)
{
    int ret = 0;

    for (unsigned i = 0; ret == 0 && i + !closed < count; i++)
        ret = word_cable(plan, i, 0, (i + 1) % count, 1);
    return ret;
}

/* Port k of a node leads to the k-th of the others. */
static int word_mesh(struct mesh_plan *plan, unsigned count)
{
    int ret = 0;

    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = a + 1; ret == 0 && b < count; b++)
            ret = word_cable(plan, a, b - 1, b, a);
    }
    return ret;
}

static int lane_order(const void *a, const void *b)
{
    const struct mesh_plan_lane *left = a, *right = b;

    if (left->node != right->node)
        return left->node < right->node ? -1 : 1;
    return strverscmp(left->netdev, right->netdev);
}

static void plan_sort(struct mesh_plan *plan)
{
    if (plan->lane_count > 0)
        qsort(plan->lanes, plan->lane_count, sizeof(plan->lanes[0]),
              lane_order);
    mesh_plan_twins_number(plan);
}

int mesh_plan_from_word(const char *word, struct mesh_plan *plan_p,
                        char text[MESH_PLAN_ERROR])
{
    size_t letters = strcspn(word, "0123456789");
    unsigned count = strcmp(word, "pair") == 0
                         ? 2
                         : (unsigned)strtoul(word + letters, NULL, 10);
    bool is_ring = strncmp(word, "ring", letters) == 0 && letters == 4;
    bool is_line = (strncmp(word, "line", letters) == 0 && letters == 4) ||
                   strcmp(word, "pair") == 0;
    bool is_mesh = strncmp(word, "mesh", letters) == 0 && letters == 4;
    int ret;

    *plan_p = (struct mesh_plan){0};
    if ((!is_ring && !is_line && !is_mesh) || count < (is_ring ? 3u : 2u) ||
        count > WORD_NODES_MAX) {
        snprintf(text, MESH_PLAN_ERROR,
                 "%s is neither a file nor pair, ringN, lineN or meshN with up "
                 "to %u nodes",
                 word, WORD_NODES_MAX);
        return -EINVAL;
    }
    ret = word_nodes(plan_p, count);
    if (ret == 0)
        ret = is_mesh ? word_mesh(plan_p, count)
                      : word_chain(plan_p, count, is_ring);
    if (ret < 0)
        mesh_plan_release(plan_p);
    else
        plan_sort(plan_p);
    return ret;
}

/* Files -------------------------------------------------------------------- */

/* "a1" is a lane of port "1". */
static bool lane_has_port(const char *netdev, const char *port)
{
    return netdev[0] != '\0' && strcmp(netdev + 1, port) == 0;
}

static bool is_netdev(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len < IF_NAMESIZE &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789_.-") == len;
}

static int lanes_take(struct mesh_plan *plan, unsigned node,
                      const json_t *netdevs, char text[MESH_PLAN_ERROR])
{
    const char *netdev;
    json_t *addresses;

    json_object_foreach((json_t *)(uintptr_t)netdevs, netdev, addresses)
    {
        struct mesh_plan_lane lane = {.node = node, .wire = MESH_PLAN_NO_WIRE};
        size_t i;
        json_t *address;

        if (!is_netdev(netdev)) {
            snprintf(text, MESH_PLAN_ERROR, "%.40s cannot name a netdev",
                     netdev);
            return -EINVAL;
        }
        snprintf(lane.netdev, sizeof(lane.netdev), "%.15s", netdev);
        json_array_foreach(addresses, i, address)
        {
            struct mesh_addr addr;
            const char *value = json_string_value(address);

            if (value != NULL && mesh_addr_parse(value, &addr) == 0 &&
                !mesh_addr_is_link_local(&addr) && lane.addr.family == 0)
                lane.addr = addr;
        }
        if (mesh_plan_lane_add(plan, &lane) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Host names go into the names of files. */
static bool is_host(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len < MESH_NODE_NAME_LEN && name[0] != '.' &&
           name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789_.-") == len;
}

static int nodes_take(struct mesh_plan *plan, json_t *nodes,
                      char text[MESH_PLAN_ERROR])
{
    const char *name;
    json_t *node;

    if (json_object_size(nodes) == 0) {
        snprintf(text, MESH_PLAN_ERROR, "there are no \"nodes\"");
        return -EINVAL;
    }
    json_object_foreach(nodes, name, node)
    {
        int place, ret;

        if (!is_host(name)) {
            snprintf(text, MESH_PLAN_ERROR, "%.80s cannot name a node", name);
            return -EINVAL;
        }
        place = mesh_plan_node_add(plan, name);
        if (place < 0)
            return place;
        ret = lanes_take(plan, (unsigned)place, json_object_get(node, "ifs"),
                         text);
        if (ret < 0)
            return ret;
    }
    return 0;
}

/* "n1.0": all lanes of the port. False: there is none. */
static bool end_plug(struct mesh_plan *plan, const char *end)
{
    const char *dot = strrchr(end, '.');
    bool found = false;

    for (unsigned i = 0; dot != NULL && i < plan->lane_count; i++) {
        struct mesh_plan_lane *lane = &plan->lanes[i];
        const char *node = plan->nodes[lane->node];

        if (strlen(node) != (size_t)(dot - end) ||
            strncmp(node, end, (size_t)(dot - end)) != 0 ||
            (!lane_has_port(lane->netdev, dot + 1) &&
             strcmp(lane->netdev, dot + 1) != 0))
            continue;
        lane->wire = plan->wire_count;
        found = true;
    }
    return found;
}

static int cables_take(struct mesh_plan *plan, const json_t *cables,
                       char text[MESH_PLAN_ERROR])
{
    size_t i, k;
    json_t *cable, *end;

    json_array_foreach(cables, i, cable)
    {
        json_array_foreach(cable, k, end)
        {
            const char *name = json_string_value(end);

            if (name != NULL && !end_plug(plan, name)) {
                snprintf(text, MESH_PLAN_ERROR,
                         "cable %zu: no node and port %.80s", i + 1, name);
                return -EINVAL;
            }
        }
        plan->wire_count++;
    }
    return 0;
}

/* The one with the id, or the document itself where it is one. */
static json_t *topology_of(json_t *document, const char *id)
{
    size_t i;
    json_t *item;

    if (json_is_object(document))
        return document;
    json_array_foreach(document, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "id"));

        if (id == NULL || (name != NULL && strcmp(name, id) == 0))
            return item;
    }
    return NULL;
}

static int document_take(struct mesh_plan *plan, json_t *document,
                         const char *id, char text[MESH_PLAN_ERROR])
{
    json_t *topology = topology_of(document, id);
    int ret;

    if (topology == NULL) {
        snprintf(text, MESH_PLAN_ERROR, "there is no topology %.40s",
                 id != NULL ? id : "in it");
        return -EINVAL;
    }
    ret = nodes_take(plan, json_object_get(topology, "nodes"), text);
    if (ret == 0)
        ret = cables_take(plan, json_object_get(topology, "cables"), text);
    return ret;
}

int mesh_plan_from_file(const char *path, struct mesh_plan *plan_p,
                        char text[MESH_PLAN_ERROR])
{
    const char *hash = strrchr(path, '#');
    char name[4096];
    json_error_t error;
    json_t *document;
    FILE *file;
    int ret;

    *plan_p = (struct mesh_plan){0};
    snprintf(name, sizeof(name), "%.*s",
             hash != NULL ? (int)(hash - path) : (int)strlen(path), path);
    file = fopen(name, "re");
    if (file == NULL)
        return -errno;
    document = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (document == NULL) {
        snprintf(text, MESH_PLAN_ERROR, "line %d: %s", error.line, error.text);
        return -EINVAL;
    }
    ret = document_take(plan_p, document, hash != NULL ? hash + 1 : NULL, text);
    json_decref(document);
    if (ret < 0)
        mesh_plan_release(plan_p);
    else
        plan_sort(plan_p);
    return ret;
}
