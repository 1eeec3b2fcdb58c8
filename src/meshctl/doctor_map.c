/* SPDX-License-Identifier: BSD-3-Clause */
/* What meshd knows, and what the kernel knows of the far ends. */
#include "clock.h"
#include "meshctl/doctor.h"
#include "meshd_client.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DISCARD_PORT 9
#define POLL_US      50000
/* Three unanswered requests of one second each, which the kernel sends. */
#define RESOLVE_NS UINT64_C(4000000000)

/* Makes the kernel look for the address now; whether anybody listens there is
 * of no matter. */
static void neighbour_ask(const struct mesh_doctor_neighbour *neighbour)
{
    const char *netdev = neighbour->local->netdev;
    struct sockaddr_storage sa;
    socklen_t len = mesh_addr_to_sockaddr(&neighbour->addr, DISCARD_PORT,
                                          (int)if_nametoindex(netdev), &sa);
    int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return;
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev,
                   (socklen_t)strlen(netdev) + 1) == 0)
        (void)!sendto(fd, "", 1, MSG_DONTROUTE, (struct sockaddr *)&sa, len);
    close(fd);
}

static bool is_open(const char *state)
{
    return strncmp(state, "none", 4) == 0 ||
           strncmp(state, "INCOMPLETE", 10) == 0;
}

static void neighbours_describe(struct mesh_doctor_map *map)
{
    for (unsigned i = 0; i < map->neighbour_count; i++) {
        struct mesh_doctor_neighbour *neighbour = &map->neighbours[i];

        mesh_neigh_describe((int)if_nametoindex(neighbour->local->netdev),
                            &neighbour->addr, neighbour->state);
    }
}

static void neighbours_resolve(struct mesh_doctor_map *map)
{
    uint64_t end = mesh_clock_ns() + RESOLVE_NS;
    bool open = true;

    for (unsigned i = 0; i < map->neighbour_count; i++)
        neighbour_ask(&map->neighbours[i]);
    while (open && mesh_clock_ns() < end) {
        usleep(POLL_US);
        neighbours_describe(map);
        open = false;
        for (unsigned i = 0; i < map->neighbour_count; i++)
            open |= is_open(map->neighbours[i].state);
    }
}

static void neighbour_add(struct mesh_doctor_map *map,
                          const struct mesh_route_link *link, unsigned end)
{
    struct mesh_doctor_neighbour *neighbour =
        &map->neighbours[map->neighbour_count];
    struct mesh_addr local;

    *neighbour = (struct mesh_doctor_neighbour){
        .local = link->lanes[end],
        .far = link->lanes[1 - end],
        .node =
            mesh_snapshot_name(map->snapshot, link->nodes[1 - end]->node_id),
    };
    if (mesh_lane_info_pick(neighbour->local, neighbour->far, &local,
                            &neighbour->addr))
        map->neighbour_count++;
}

static int neighbours_read(struct mesh_doctor_map *map)
{
    uint64_t self = map->snapshot->self;

    map->neighbours =
        calloc(2 * map->cabling->link_count + 1, sizeof(map->neighbours[0]));
    if (map->neighbours == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < map->cabling->link_count; i++) {
        const struct mesh_route_link *link = &map->cabling->links[i].link;

        for (unsigned end = 0; end < 2; end++) {
            if (link->usable && link->nodes[end]->node_id == self &&
                link->lanes[end]->netdev[0] != '\0')
                neighbour_add(map, link, end);
        }
    }
    neighbours_resolve(map);
    return 0;
}

static int snapshot_read(uint32_t timeout_ms, struct mesh_doctor_map *map)
{
    struct mesh_meshd_client *client;
    struct mesh_map_record *records;
    struct mesh_meshd_self self;
    unsigned count;
    int ret;

    map->error =
        mesh_meshd_client_create(MESH_MESHD_RUNNING, timeout_ms, &client);
    if (map->error < 0)
        return 0;
    mesh_meshd_client_self(client, &self);
    ret = mesh_meshd_client_records(client, &records, &count);
    mesh_meshd_client_destroy(client);
    if (ret == 0)
        ret =
            mesh_snapshot_create(records, count, self.node_id, &map->snapshot);
    return ret;
}

int mesh_doctor_map_read(uint32_t timeout_ms, struct mesh_doctor_map *map_p)
{
    int ret, self;

    *map_p = (struct mesh_doctor_map){0};
    ret = snapshot_read(timeout_ms, map_p);
    if (ret == 0 && map_p->snapshot != NULL) {
        self = mesh_snapshot_index(map_p->snapshot, map_p->snapshot->self);
        map_p->self = self < 0 ? 0 : (unsigned)self;
        map_p->error = self < 0 ? -ESTALE : 0;
        ret = mesh_cabling_create(map_p->snapshot, &map_p->cabling);
        if (ret == 0)
            ret = neighbours_read(map_p);
    }
    if (ret < 0)
        mesh_doctor_map_release(map_p);
    return ret;
}

void mesh_doctor_map_release(struct mesh_doctor_map *map)
{
    free(map->neighbours);
    mesh_cabling_destroy(map->cabling);
    mesh_snapshot_destroy(map->snapshot);
    *map = (struct mesh_doctor_map){0};
}
