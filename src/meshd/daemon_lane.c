/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon_lane.h"

#include "clock.h"
#include "daemon.h"
#include "daemon_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NS_PER_MS       UINT64_C(1000000)
#define NS_PER_S        UINT64_C(1000000000)
#define READS           64 /* of a socket at a time */
#define ANSWER_NS       (20 * NS_PER_MS)
#define LOG_EVERY_NS    (10 * NS_PER_S)
#define LINK_LOG_NS     (100 * NS_PER_MS)
#define HEARD_INTERVALS 8 /* so long IPv4 is answered beside IPv6 */

static const int families[MESH_DAEMON_CHANNEL_COUNT] = {
    [MESH_DAEMON_CHANNEL_6] = AF_INET6,
    [MESH_DAEMON_CHANNEL_4] = AF_INET,
};

const char *mesh_daemon_lane_name(const struct mesh_daemon_lane *lane)
{
    return lane->info.netdev[0] != '\0' ? lane->info.netdev : lane->info.ibdev;
}

static uint64_t interval_ns(const struct mesh_daemon_lane *lane)
{
    return lane->daemon->settings.hello_ms * NS_PER_MS;
}

static bool lane_is_up(const struct mesh_daemon_lane *lane)
{
    return lane->up_ns != 0;
}

void mesh_daemon_lane_hello_soon(struct mesh_daemon_lane *lane)
{
    uint64_t due = lane->hello_ns + ANSWER_NS;

    if (lane_is_up(lane) &&
        (lane->hello.prev == NULL || due < lane->hello.due_ns))
        mesh_loop_timer_set(lane->daemon->loop, &lane->hello, due);
}

static void tick_fire(struct mesh_loop_timer *timer)
{
    struct mesh_daemon_lane *lane =
        mesh_loop_owner(timer, struct mesh_daemon_lane, tick);

    mesh_daemon_link_event(lane, MESH_NEIGHBOUR_TICK, NULL);
    mesh_daemon_work(lane->daemon);
}

/* Sending ----------------------------------------------------------------- */

static void channel_close(struct mesh_daemon_channel *channel)
{
    if (channel->socket.fd >= 0)
        mesh_loop_unwatch(channel->lane->daemon->loop, &channel->watch);
    mesh_lane_socket_close(&channel->socket);
    channel->heard_ns = 0;
}

/* What cannot be sent now is as good as lost. */
static bool channel_send(struct mesh_daemon_channel *channel,
                         const struct sockaddr_storage *to, const uint8_t *data,
                         size_t len)
{
    int error;

    if (channel->socket.fd < 0)
        return false;
    error = mesh_lane_socket_send(&channel->socket, to, data, len);
    if (error == 0)
        return true;
    /* Without an address, or the netdev has lost the group with its IPv6: the
     * next scan opens it anew. */
    if (to == NULL && error != -EAGAIN && error != -ENOBUFS)
        channel_close(channel);
    return false;
}

/* The same hello to the addresses of those that have links here, as RDMA
 * would go: see neighbour.h. */
static void hello_send_to_links(struct mesh_daemon_lane *lane,
                                const uint8_t *data, size_t len)
{
    struct sockaddr_storage to = {.ss_family = AF_INET};
    struct sockaddr_in *in = (struct sockaddr_in *)&to;

    in->sin_port = htons((uint16_t)lane->daemon->settings.port);
    for (unsigned i = 0; i < MESH_NEIGHBOUR_MAX; i++) {
        const struct mesh_neighbour *peer = &lane->table.peers[i];
        struct mesh_addr local, remote;

        if (peer->state != MESH_NEIGHBOUR_LINKED ||
            !mesh_daemon_link_is_one(lane, peer) ||
            !mesh_daemon_link_addresses(lane, peer, &local, &remote))
            continue;
        memcpy(&in->sin_addr, remote.bytes, sizeof(in->sin_addr));
        (void)channel_send(&lane->channels[MESH_DAEMON_CHANNEL_4], &to, data,
                           len);
    }
}

/* IPv6 wherever it works; IPv4 where it does not, or for those who use it. */
static void hello_send(struct mesh_daemon_lane *lane)
{
    struct mesh_daemon_channel *six = &lane->channels[MESH_DAEMON_CHANNEL_6];
    struct mesh_daemon_channel *four = &lane->channels[MESH_DAEMON_CHANNEL_4];
    struct mesh_hello hello = {
        .interval_ms = (uint16_t)lane->daemon->settings.hello_ms,
        .lane = lane->info,
    };
    uint8_t data[MESH_WIRE_DATAGRAM_MAX];
    bool four_is_heard, sent;
    size_t len;

    memcpy(hello.node_name, lane->daemon->node.name, sizeof(hello.node_name));
    mesh_neighbour_fill(&lane->table, &hello);
    mesh_link_map_digest(lane->daemon->map, &hello.map);
    lane->hello_ns = mesh_clock_ns();
    if (mesh_hello_wire_encode(&hello, mesh_daemon_key(lane->daemon), data,
                               &len) != 0)
        return;
    four_is_heard =
        four->heard_ns != 0 &&
        lane->hello_ns - four->heard_ns < HEARD_INTERVALS * interval_ns(lane);
    sent = channel_send(six, NULL, data, len);
    if (!sent || four_is_heard)
        sent |= channel_send(four, NULL, data, len);
    hello_send_to_links(lane, data, len);
    if (sent)
        lane->counters.hellos_out++;
    else
        lane->counters.send_errors++;
}

static void hello_fire(struct mesh_loop_timer *timer)
{
    struct mesh_daemon_lane *lane =
        mesh_loop_owner(timer, struct mesh_daemon_lane, hello);

    hello_send(lane);
    mesh_loop_timer_set(lane->daemon->loop, timer,
                        lane->hello_ns + interval_ns(lane));
}

void mesh_daemon_lane_send_map(struct mesh_daemon_lane *lane,
                               const struct mesh_link_map_out *out)
{
    const struct mesh_neighbour *peer =
        mesh_neighbour_find(&lane->table, out->remote_node, out->remote_lane);
    const struct sockaddr_storage *to;

    if (peer == NULL)
        return;
    to = &lane->from[peer - lane->table.peers];
    for (unsigned i = 0; i < MESH_DAEMON_CHANNEL_COUNT; i++) {
        if (to->ss_family != families[i])
            continue;
        if (channel_send(&lane->channels[i], to, out->data, out->len))
            lane->counters.maps_out++;
        else
            lane->counters.send_errors++;
    }
}

/* Receiving --------------------------------------------------------------- */

static void address_text(const struct sockaddr_storage *from,
                         char text[INET6_ADDRSTRLEN])
{
    const void *address =
        from->ss_family == AF_INET6
            ? (const void *)&((const struct sockaddr_in6 *)from)->sin6_addr
            : &((const struct sockaddr_in *)from)->sin_addr;

    if (inet_ntop(from->ss_family, address, text, INET6_ADDRSTRLEN) == NULL)
        strcpy(text, "?");
}

/* Counts and, now and then, logs. */
static void hello_refuse(struct mesh_daemon_lane *lane, int error,
                         const struct sockaddr_storage *from)
{
    const char *why = mesh_wire_auth_strerror(error);
    char text[INET6_ADDRSTRLEN];
    unsigned suppressed;

    if (why != NULL)
        lane->counters.key++;
    else if (error == -EPROTONOSUPPORT)
        lane->counters.version++;
    else
        lane->counters.malformed++;
    if (!mesh_log_limit_pass(&lane->refusal_limit, mesh_clock_ns(),
                             &suppressed))
        return;
    address_text(from, text);
    mesh_warn("lane %s: a hello from %s was refused: %s: %s (%u more)",
              mesh_daemon_lane_name(lane), text,
              why != NULL                 ? "KEY"
              : error == -EPROTONOSUPPORT ? "VERSION"
                                          : "MALFORMED",
              why != NULL ? why
              : error == -EPROTONOSUPPORT
                  ? "another version of meshd: use the same on all nodes"
                  : "no hello",
              suppressed);
}

static bool has_address(const struct mesh_daemon_lane *lane, struct in_addr in)
{
    for (unsigned i = 0; i < lane->info.addr_count; i++) {
        const struct mesh_addr *addr = &lane->info.addrs[i];

        if (addr->family == AF_INET &&
            memcmp(addr->bytes, &in, sizeof(in)) == 0)
            return true;
    }
    return false;
}

/* A hello to one address: does it come where the address is? */
static void address_hello_take(struct mesh_daemon_lane *lane,
                               const struct mesh_hello *hello,
                               struct in_addr to)
{
    char text[INET_ADDRSTRLEN];
    unsigned suppressed;

    if (has_address(lane, to)) {
        (void)mesh_daemon_link_event(lane, MESH_NEIGHBOUR_ADDRESS, hello);
        return;
    }
    if (!mesh_log_limit_pass(&lane->astray_limit, mesh_clock_ns(), &suppressed))
        return;
    inet_ntop(AF_INET, &to, text, sizeof(text));
    mesh_warn("lane %s: what node %s lane %s sends to %s comes in here, where "
              "that address is not: set net.ipv4.conf.NETDEV.arp_ignore=1 for "
              "all lanes of this node that share a cable (%u more)",
              mesh_daemon_lane_name(lane), hello->node_name, hello->lane.netdev,
              text, suppressed);
}

static void hello_take(struct mesh_daemon_channel *channel,
                       const struct mesh_lane_datagram *datagram)
{
    struct mesh_daemon_lane *lane = channel->lane;
    const struct mesh_neighbour *peer;
    struct mesh_hello hello;
    int error;

    error = mesh_hello_wire_decode(datagram->data, datagram->len,
                                   mesh_daemon_key(lane->daemon), &hello);
    if (error != 0) {
        hello_refuse(lane, error, &datagram->from);
        return;
    }
    if (datagram->to.s_addr != htonl(INADDR_ANY)) {
        address_hello_take(lane, &hello, datagram->to);
        return;
    }
    lane->counters.hellos_in++;
    if (mesh_daemon_link_event(lane, MESH_NEIGHBOUR_HELLO, &hello) !=
        MESH_NEIGHBOUR_TAKEN)
        return;
    peer = mesh_neighbour_find(&lane->table, hello.node_id, hello.lane.index);
    if (peer == NULL)
        return;
    channel->heard_ns = mesh_clock_ns();
    lane->from[peer - lane->table.peers] = datagram->from;
    if (peer->state != MESH_NEIGHBOUR_LINKED)
        return;
    /* The map must know of a new link before it can answer over it. */
    mesh_daemon_work(lane->daemon);
    mesh_link_map_heard(lane->daemon->map, hello.node_id, &hello.map,
                        mesh_clock_ns());
}

static void datagram_take(struct mesh_daemon_channel *channel,
                          const struct mesh_lane_datagram *datagram)
{
    struct mesh_daemon_lane *lane = channel->lane;
    struct mesh_wire_reader reader;
    uint32_t magic;

    mesh_wire_reader_init(&reader, datagram->data, datagram->len);
    magic = mesh_wire_read_u32(&reader);
    if (!reader.failed && magic == MESH_HELLO_WIRE_MAGIC) {
        hello_take(channel, datagram);
    } else if (!reader.failed && magic == MESH_MAP_WIRE_MAGIC) {
        lane->counters.maps_in++;
        (void)mesh_link_map_receive(lane->daemon->map, lane->info.index,
                                    datagram->data, datagram->len,
                                    mesh_clock_ns());
    } else {
        lane->counters.malformed++;
    }
}

static void channels_watch(struct mesh_daemon_lane *lane, uint32_t events)
{
    for (unsigned i = 0; i < MESH_DAEMON_CHANNEL_COUNT; i++) {
        if (lane->channels[i].socket.fd >= 0)
            mesh_loop_rewatch(lane->daemon->loop, &lane->channels[i].watch,
                              events);
    }
}

/* True: enough for this second; the kernel drops what does not fit its
 * queue meanwhile. */
static bool rate_is_used_up(struct mesh_daemon_lane *lane)
{
    uint64_t now = mesh_clock_ns();

    if (now - lane->window_ns >= NS_PER_S) {
        lane->window_ns = now;
        lane->window_count = 0;
    }
    if (++lane->window_count <= lane->daemon->settings.max_rate)
        return false;
    lane->counters.rate++;
    lane->paused = true;
    channels_watch(lane, 0);
    mesh_loop_timer_set(lane->daemon->loop, &lane->resume,
                        lane->window_ns + NS_PER_S);
    return true;
}

static void resume_fire(struct mesh_loop_timer *timer)
{
    struct mesh_daemon_lane *lane =
        mesh_loop_owner(timer, struct mesh_daemon_lane, resume);
    unsigned suppressed;

    lane->paused = false;
    channels_watch(lane, EPOLLIN);
    if (mesh_log_limit_pass(&lane->refusal_limit, mesh_clock_ns(), &suppressed))
        mesh_warn("lane %s: more than %d datagrams in a second: LIMIT_RATE "
                  "(MESH_MESHD_RATE); is there a loop or a flood?",
                  mesh_daemon_lane_name(lane), lane->daemon->settings.max_rate);
}

static void channel_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct mesh_daemon_channel *channel =
        mesh_loop_owner(watch, struct mesh_daemon_channel, watch);
    struct mesh_daemon_lane *lane = channel->lane;
    struct mesh_lane_datagram datagram;
    int error;

    (void)events;
    for (unsigned i = 0; i < READS && !lane->paused; i++) {
        error = mesh_lane_socket_receive(&channel->socket, &datagram);
        if (error == -EPROTO)
            lane->counters.malformed++;
        else if (error != 0)
            break; /* empty, or the netdev says that it is down */
        else
            datagram_take(channel, &datagram);
        if (rate_is_used_up(lane))
            break;
    }
    mesh_daemon_work(lane->daemon);
}

/* Coming and going -------------------------------------------------------- */

static void channels_open(struct mesh_daemon_lane *lane)
{
    struct mesh_daemon *daemon = lane->daemon;

    for (unsigned i = 0; i < MESH_DAEMON_CHANNEL_COUNT; i++) {
        struct mesh_daemon_channel *channel = &lane->channels[i];
        int error;

        if (channel->socket.fd >= 0)
            continue;
        error = mesh_lane_socket_open(&channel->socket, families[i],
                                      lane->info.netdev, lane->ifindex,
                                      (uint16_t)daemon->settings.port);
        if (error != 0) {
            mesh_debug("lane %s: no socket of IPv%d: %s",
                       mesh_daemon_lane_name(lane),
                       families[i] == AF_INET ? 4 : 6, strerror(-error));
            continue;
        }
        channel->watch.fd = channel->socket.fd;
        if (mesh_loop_watch(daemon->loop, &channel->watch, EPOLLIN) != 0)
            mesh_lane_socket_close(&channel->socket);
    }
}

static void channels_close(struct mesh_daemon_lane *lane)
{
    for (unsigned i = 0; i < MESH_DAEMON_CHANNEL_COUNT; i++)
        channel_close(&lane->channels[i]);
    mesh_loop_timer_clear(lane->daemon->loop, &lane->resume);
    lane->paused = false;
}

void mesh_daemon_lane_init(struct mesh_daemon_lane *lane,
                           struct mesh_daemon *daemon, uint8_t index)
{
    const struct mesh_neighbour_config config = {
        .node_id = daemon->node.id,
        .instance = daemon->instance,
        .lane = index,
        .first_sequence = daemon->first_sequence,
    };

    memset(lane, 0, sizeof(*lane));
    lane->daemon = daemon;
    lane->info.index = index;
    lane->hello.fire = hello_fire;
    lane->tick.fire = tick_fire;
    lane->resume.fire = resume_fire;
    lane->refusal_limit.interval_ns = LOG_EVERY_NS;
    lane->astray_limit.interval_ns = LOG_EVERY_NS;
    for (unsigned i = 0; i < MESH_NEIGHBOUR_ACTION_COUNT; i++)
        lane->link_limits[i].interval_ns = LINK_LOG_NS;
    mesh_neighbour_init(&lane->table, &config);
    for (unsigned i = 0; i < MESH_DAEMON_CHANNEL_COUNT; i++) {
        lane->channels[i].lane = lane;
        lane->channels[i].watch.ready = channel_ready;
        mesh_lane_socket_init(&lane->channels[i].socket);
    }
}

void mesh_daemon_lane_cleanup(struct mesh_daemon_lane *lane)
{
    if (lane->daemon == NULL)
        return;
    channels_close(lane);
    mesh_loop_timer_clear(lane->daemon->loop, &lane->hello);
    mesh_loop_timer_clear(lane->daemon->loop, &lane->tick);
}

static void lane_up(struct mesh_daemon_lane *lane)
{
    lane->up_ns = mesh_clock_ns();
    mesh_daemon_link_event(lane, MESH_NEIGHBOUR_UP, NULL);
    mesh_info("lane %s (%s port %u) is up", mesh_daemon_lane_name(lane),
              lane->info.ibdev, lane->info.port);
}

static void lane_down(struct mesh_daemon_lane *lane)
{
    lane->up_ns = 0;
    channels_close(lane);
    mesh_loop_timer_clear(lane->daemon->loop, &lane->hello);
    mesh_daemon_link_event(lane, MESH_NEIGHBOUR_DOWN, NULL);
    mesh_info("lane %s (%s port %u) is down", mesh_daemon_lane_name(lane),
              lane->info.ibdev, lane->info.port);
}

bool mesh_daemon_lane_update(struct mesh_daemon_lane *lane,
                             const struct mesh_lane *found)
{
    struct mesh_lane_info info = lane->info;
    bool up, changed;

    if (found != NULL)
        /* Which lanes share a physical port is not known: rank 0. */
        mesh_lane_info_from_lane(found, lane->info.index, 0, &info);
    else
        info.flags &= (uint8_t)~MESH_LANE_INFO_UP;
    up = (info.flags & MESH_LANE_INFO_UP) != 0 && info.netdev[0] != '\0';
    changed = !mesh_lane_info_equal(&info, &lane->info) ||
              lane->present != (found != NULL) || !lane->used;
    if (lane_is_up(lane) && (!up || found->ifindex != lane->ifindex))
        lane_down(lane);
    lane->used = true;
    lane->present = found != NULL;
    lane->info = info;
    lane->ifindex = found != NULL ? found->ifindex : 0;
    if (up) {
        channels_open(lane);
        if (!lane_is_up(lane))
            lane_up(lane);
    }
    if (changed || (up && lane->hello.prev == NULL))
        mesh_daemon_lane_hello_soon(lane);
    return changed;
}
