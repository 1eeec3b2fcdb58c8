/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay_core.h"
#include "relay_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOG_EVERY_NS 1000000000u

/* The control thread ------------------------------------------------------- */

static void news_take(struct mesh_relay *relay)
{
    struct mesh_relay_view_copy *news;

    pthread_mutex_lock(&relay->mutex);
    news = relay->news;
    relay->news = NULL;
    if (relay->stop)
        mesh_loop_stop(relay->loop);
    pthread_mutex_unlock(&relay->mutex);
    if (news == NULL)
        return;
    free(relay->map);
    relay->map = news;
    mesh_relay_listeners_update(relay);
    mesh_relay_devices_prune(relay, false);
}

static void wake_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    uint64_t count;

    (void)events;
    (void)!read(watch->fd, &count, sizeof(count));
    news_take(mesh_loop_owner(watch, struct mesh_relay, wake));
}

static void failed_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct mesh_relay *relay =
        mesh_loop_owner(watch, struct mesh_relay, failed);
    struct mesh_relay_pipe *pipe;
    char reason[MESH_OOB_REASON_LEN];
    int error;

    (void)events;
    while ((pipe = mesh_relay_data_failed_pipe(relay->data)) != NULL) {
        error = mesh_relay_setup_explain(pipe->owner, reason);
        mesh_relay_flow_fail(pipe->owner, error, reason);
    }
}

static void *control_main(void *arg)
{
    struct mesh_relay *relay = arg;
    int error = mesh_loop_run(relay->loop);

    if (error != 0)
        mesh_error("relay: waiting for events failed: %s", strerror(-error));
    mesh_relay_listeners_close(relay);
    mesh_relay_flows_destroy(relay);
    mesh_relay_devices_prune(relay, true);
    return NULL;
}

static void wake(struct mesh_relay *relay)
{
    const uint64_t one = 1;

    (void)!write(relay->wake_fd, &one, sizeof(one));
}

/* The caller's side -------------------------------------------------------- */

static void relay_free(struct mesh_relay *relay)
{
    mesh_relay_data_destroy(relay->data);
    mesh_loop_destroy(relay->loop);
    if (relay->wake_fd >= 0)
        close(relay->wake_fd);
    pthread_mutex_destroy(&relay->mutex);
    free(relay->news);
    free(relay->map);
    free(relay);
}

static int relay_start(struct mesh_relay *relay)
{
    int error = mesh_loop_create(&relay->loop);

    if (error != 0)
        return error;
    relay->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (relay->wake_fd < 0)
        return -errno;
    error =
        mesh_relay_data_create((unsigned)relay->settings.flows,
                               (unsigned)relay->settings.spin_us, &relay->data);
    if (error != 0)
        return error;
    relay->wake = (struct mesh_loop_watch){relay->wake_fd, wake_ready};
    relay->failed = (struct mesh_loop_watch){
        mesh_relay_data_failed_fd(relay->data), failed_ready};
    error = mesh_loop_watch(relay->loop, &relay->wake, EPOLLIN);
    if (error == 0)
        error = mesh_loop_watch(relay->loop, &relay->failed, EPOLLIN);
    if (error == 0)
        error = -pthread_create(&relay->thread, NULL, control_main, relay);
    return error;
}

int mesh_relay_create(const struct mesh_relay_config *config,
                      struct mesh_relay **relay_p)
{
    struct mesh_relay *relay = calloc(1, sizeof(*relay));
    int error;

    if (relay == NULL)
        return -ENOMEM;
    relay->settings = *config->settings;
    relay->node_id = config->node_id;
    memcpy(relay->name, config->name, sizeof(relay->name));
    relay->port = config->port;
    relay->forwards = config->forwards;
    relay->wake_fd = -1;
    relay->refused_limit.interval_ns = LOG_EVERY_NS;
    relay->failed_limit.interval_ns = LOG_EVERY_NS;
    pthread_mutex_init(&relay->mutex, NULL);
    error = relay_start(relay);
    if (error != 0) {
        mesh_error("relay: cannot start on node %s: %s; no relayed connection "
                   "goes through it or ends there",
                   relay->name, strerror(-error));
        relay_free(relay);
        return error;
    }
    *relay_p = relay;
    return 0;
}

void mesh_relay_destroy(struct mesh_relay *relay)
{
    if (relay == NULL)
        return;
    pthread_mutex_lock(&relay->mutex);
    relay->stop = true;
    pthread_mutex_unlock(&relay->mutex);
    wake(relay);
    pthread_join(relay->thread, NULL);
    relay_free(relay);
}

static bool is_neighbour(const struct mesh_map_record *self, uint64_t node_id)
{
    for (unsigned i = 0; i < self->link_count; i++) {
        if (self->links[i].remote_node == node_id)
            return true;
    }
    return false;
}

static void labels_take(struct mesh_relay *relay,
                        const struct mesh_map_record *self)
{
    relay->label_count = self->lane_count;
    for (unsigned i = 0; i < self->lane_count; i++) {
        const struct mesh_lane_info *lane = &self->lanes[i];

        /* As in the daemon's own lines. */
        relay->labels[i].lane = lane->index;
        snprintf(relay->labels[i].text, sizeof(relay->labels[i].text), "%s",
                 lane->netdev[0] != '\0' ? lane->netdev : lane->ibdev);
    }
}

/* This node and its neighbours: all that a path check looks at. */
static struct mesh_relay_view_copy *
view_copy(const struct mesh_relay *relay, const struct mesh_map_record *self,
          const struct mesh_map_record *const *records, unsigned count)
{
    struct mesh_relay_view_copy *copy;
    unsigned kept = 0;

    for (unsigned i = 0; i < count; i++)
        kept += records[i] == self || is_neighbour(self, records[i]->node_id);
    copy = malloc(sizeof(*copy) + kept * sizeof(copy->records[0]));
    if (copy == NULL)
        return NULL;
    copy->view = (struct mesh_relay_view){
        .node_id = relay->node_id,
        .forwards = relay->forwards,
        .records = copy->records,
    };
    for (unsigned i = 0; i < count; i++) {
        if (records[i] == self || is_neighbour(self, records[i]->node_id))
            copy->records[copy->view.count++] = *records[i];
    }
    return copy;
}

void mesh_relay_map_changed(struct mesh_relay *relay,
                            const struct mesh_map_record *const *records,
                            unsigned count)
{
    const struct mesh_map_record *self = NULL;
    struct mesh_relay_view_copy *copy;

    for (unsigned i = 0; i < count; i++) {
        if (records[i]->node_id == relay->node_id)
            self = records[i];
    }
    if (self == NULL)
        return;
    labels_take(relay, self);
    copy = view_copy(relay, self, records, count);
    if (copy == NULL) {
        mesh_error("relay: no memory for the link map; the last one stays");
        return;
    }
    pthread_mutex_lock(&relay->mutex);
    free(relay->news);
    relay->news = copy;
    pthread_mutex_unlock(&relay->mutex);
    wake(relay);
}

unsigned mesh_relay_flow_count(const struct mesh_relay *relay)
{
    return atomic_load(&relay->sockets);
}
