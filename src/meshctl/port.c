/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/port.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *mesh_speed_text(uint64_t mbps, char text[MESH_SPEED_TEXT_LEN])
{
    if (mbps == 0)
        snprintf(text, MESH_SPEED_TEXT_LEN, "?");
    else if (mbps < 1000)
        snprintf(text, MESH_SPEED_TEXT_LEN, "%" PRIu64 " Mb/s", mbps);
    else if (mbps % 1000 < 100)
        snprintf(text, MESH_SPEED_TEXT_LEN, "%" PRIu64 " Gb/s", mbps / 1000);
    else
        snprintf(text, MESH_SPEED_TEXT_LEN, "%" PRIu64 ".%" PRIu64 " Gb/s",
                 mbps / 1000, mbps % 1000 / 100);
    return text;
}

bool mesh_port_lane_idle(const struct mesh_cabling *cabling,
                         const struct mesh_port *port,
                         const struct mesh_lane_info *lane)
{
    return port->wire != MESH_CABLING_NO_WIRE &&
           !mesh_cabling_lane_used(cabling, lane);
}

/* Lanes that say something of the port: those in use, or all if none is. */
static unsigned lanes_that_count(const struct mesh_cabling *cabling,
                                 const struct mesh_port *port,
                                 const struct mesh_lane_info **lanes)
{
    unsigned count = 0;

    for (unsigned i = 0; i < port->lane_count; i++) {
        if (!mesh_port_lane_idle(cabling, port, port->lanes[i]))
            lanes[count++] = port->lanes[i];
    }
    for (unsigned i = 0; count == 0 && i < port->lane_count; i++)
        lanes[i] = port->lanes[i];
    return count == 0 ? port->lane_count : count;
}

static void append(char *text, size_t size, const char *before,
                   const char *what, const char *after)
{
    size_t len = strlen(text);

    snprintf(text + len, size - len, "%s%s%s", len > 0 ? before : "", what,
             after);
}

static void lanes_text(const struct mesh_cabling *cabling,
                       const struct mesh_port *port, char *text, size_t size)
{
    char lane[MESH_LANE_TEXT_LEN], shown[MESH_LANE_TEXT_LEN + 2];

    text[0] = '\0';
    for (unsigned i = 0; i < port->lane_count; i++) {
        bool idle = mesh_port_lane_idle(cabling, port, port->lanes[i]);

        mesh_lane_text(port->lanes[i], lane);
        snprintf(shown, sizeof(shown), idle ? "(%s)" : "%s", lane);
        append(text, size, " ", shown, "");
    }
}

static void speed_text(const struct mesh_lane_info *const *lanes,
                       unsigned count, char *text, size_t size)
{
    char speed[MESH_SPEED_TEXT_LEN];
    bool alike = true;

    for (unsigned i = 1; i < count; i++)
        alike = alike && lanes[i]->speed_mbps == lanes[0]->speed_mbps;
    text[0] = '\0';
    for (unsigned i = 0; i < (alike ? 1 : count); i++)
        append(text, size, " + ", mesh_speed_text(lanes[i]->speed_mbps, speed),
               "");
    if (alike && count > 1)
        snprintf(text, size, "%u x %s", count, speed);
}

static void mtu_text(const struct mesh_lane_info *const *lanes, unsigned count,
                     bool rdma, char *text, size_t size)
{
    char number[16];

    text[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        unsigned mtu = rdma ? lanes[i]->rdma_mtu : lanes[i]->netdev_mtu;
        bool known = false;

        for (unsigned j = 0; j < i; j++)
            known = known ||
                    mtu == (rdma ? lanes[j]->rdma_mtu : lanes[j]->netdev_mtu);
        if (known)
            continue;
        snprintf(number, sizeof(number), "%u", mtu);
        append(text, size, "/", mtu == 0 ? "?" : number, "");
    }
}

void mesh_port_text(const struct mesh_cabling *cabling,
                    const struct mesh_port *port, struct mesh_port_text *text)
{
    const struct mesh_lane_info *lanes[MESH_MAP_MAX_LANES];
    unsigned count = lanes_that_count(cabling, port, lanes);

    lanes_text(cabling, port, text->lanes, sizeof(text->lanes));
    speed_text(lanes, count, text->speed, sizeof(text->speed));
    mtu_text(lanes, count, false, text->mtu, sizeof(text->mtu));
    mtu_text(lanes, count, true, text->rdma_mtu, sizeof(text->rdma_mtu));
}
