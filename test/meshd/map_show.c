/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map_show [--auto] [--wait SECONDS] [status | watch]
 *
 * Prints the link map that this node's meshd has, one line per link that both
 * ends have, as the lower node id's record names it:
 *
 *      self n1
 *      settled 1
 *      nodes n1 n2
 *      lane n1 a0 up addresses 1
 *      link n1 a0 n2 a1 usable cable 0
 *      end
 *
 * status prints the counters, watch prints "map" and the above at each change
 * and "gone" when meshd is.
 */
#include "log.h"
#include "meshd_client.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void link_print(void *arg, const struct mesh_route_link *link)
{
    (void)arg;
    printf("link %s %s %s %s %s cable %u\n", link->nodes[0]->name,
           link->lanes[0]->netdev, link->nodes[1]->name, link->lanes[1]->netdev,
           link->usable ? "usable" : "unusable", link->cable);
}

static int links_print(const struct mesh_map_record *records, unsigned count)
{
    const struct mesh_map_record **pointers;
    struct mesh_route_graph *graph;
    int error;

    pointers = calloc(count + 1, sizeof(*pointers));
    if (pointers == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++)
        pointers[i] = &records[i];
    error = mesh_route_graph_create(pointers, count, &graph);
    if (error == 0) {
        mesh_route_links_visit(graph, link_print, NULL);
        mesh_route_graph_destroy(graph);
    }
    free(pointers);
    return error;
}

static int map_print(struct mesh_meshd_client *client)
{
    struct mesh_map_record *records;
    struct mesh_meshd_self self;
    unsigned count;
    int error;

    mesh_meshd_client_self(client, &self);
    error = mesh_meshd_client_records(client, &records, &count);
    if (error != 0)
        return error;
    printf("self %s\nsettled %d\nnodes", self.name, self.settled);
    for (unsigned i = 0; i < count; i++)
        printf(" %s", records[i].name);
    printf("\n");
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < records[i].lane_count; k++)
            printf("lane %s %s %s addresses %u\n", records[i].name,
                   records[i].lanes[k].netdev,
                   records[i].lanes[k].flags & MESH_LANE_INFO_UP ? "up"
                                                                 : "down",
                   records[i].lanes[k].addr_count);
    }
    error = links_print(records, count);
    printf("end\n");
    free(records);
    return error;
}

static int status_print(struct mesh_meshd_client *client)
{
    char *text;
    int error = mesh_meshd_client_status(client, 5000, &text);

    if (error != 0)
        return error;
    fputs(text, stdout);
    free(text);
    return 0;
}

static int watch(struct mesh_meshd_client *client)
{
    struct pollfd pollfd = {
        .fd = mesh_meshd_client_fd(client),
        .events = POLLIN,
    };
    int error = 0, got;

    while (error == 0) {
        printf("map\n");
        error = map_print(client);
        fflush(stdout);
        while (error == 0) {
            if (poll(&pollfd, 1, -1) < 0)
                return -errno;
            got = mesh_meshd_client_process(client);
            if (got == -ENOTCONN)
                printf("gone\n");
            fflush(stdout);
            if (got == 1)
                break;
        }
    }
    return error;
}

static void log_print(void *arg, enum mesh_log_level level, const char *file,
                      unsigned line, const char *text)
{
    (void)arg;
    (void)level;
    (void)file;
    (void)line;
    fprintf(stderr, "map_show: %s\n", text);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"auto", no_argument, NULL, 'a'},
        {"wait", required_argument, NULL, 'w'},
        {0},
    };
    static const struct mesh_log_sink sink = {
        .write = log_print,
        .level = MESH_LOG_INFO,
    };
    enum mesh_meshd_mode mode = MESH_MESHD_RUNNING;
    struct mesh_meshd_client *client;
    const char *verb;
    unsigned wait_s = 10;
    int option, error;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'a')
            mode = MESH_MESHD_AUTO;
        else if (option == 'w')
            wait_s = (unsigned)atoi(optarg);
        else
            return 2;
    }
    verb = optind < argc ? argv[optind] : "";
    mesh_log_sink_set(&sink);
    error = mesh_meshd_client_create(mode, wait_s * 1000, &client);
    if (error != 0) {
        fprintf(stderr, "map_show: no meshd: %s\n", strerror(-error));
        return 1;
    }
    if (strcmp(verb, "status") == 0)
        error = status_print(client);
    else if (strcmp(verb, "watch") == 0)
        error = watch(client);
    else
        error = map_print(client);
    mesh_meshd_client_destroy(client);
    if (error != 0)
        fprintf(stderr, "map_show: %s\n", strerror(-error));
    return error != 0;
}
