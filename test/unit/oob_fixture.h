/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob_fixture: an engine with a listener, and ends of channels that note what
 * they see, for the tests of the exchange over real sockets.
 *
 * Threads: callbacks run on the engine's thread; what they write is guarded by
 * mutex.
 */
#ifndef OOB_FIXTURE_H
#define OOB_FIXTURE_H

#include "oob.h"
#include "oob_wire.h"

#include <pthread.h>
#include <stdbool.h>

#define SERVER_NODE 0x1111222233334444u
#define WAIT_MS     20000
#define IDLE_MS     800

/* In which callback a side closes its channel. */
enum close_at { CLOSE_NEVER, CLOSE_FIRST, CLOSE_REPLY, CLOSE_READY, CLOSE_END };

/* One end of one channel, and what was seen there. */
struct end {
    struct mesh_oob_channel *channel;
    struct mesh_oob_hello peer;
    enum close_at close_at;
    bool ready, closed;
    int error;
    char reason[MESH_OOB_REASON_LEN];
    int give_up; /* what request() or reply() says */
    unsigned callbacks;
};

#define END_MAX 256

/* What the listener's side does and has seen. */
struct server {
    struct end ends[END_MAX];
    unsigned count;
    int refuse;
    enum close_at close_at;
    unsigned sleep_ms;
};

extern struct server server;
extern pthread_mutex_t mutex;
extern pthread_cond_t changed;
/* Names the unix socket, of which other runs have theirs. */
extern uint64_t server_endpoint;
extern struct mesh_oob *oob;
extern struct mesh_oob_listener *listener;
extern uint16_t port;
extern const struct mesh_oob_ops ops;

void sleep_ms(unsigned ms);
uint64_t now_ms(void);

void hello_make(struct mesh_oob_hello *hello, uint64_t node, uint64_t endpoint);

/* Waits until a flag that is written under the mutex is set. */
bool wait_flag(const bool *flag);

/* Reads a number that is written under the mutex. */
unsigned get(const unsigned *value);

/* How many warnings and errors there were, and whether the last has this. */
unsigned log_count_get(void);
bool log_has(const char *what);

/* Descriptors that were opened since the set-up and are not closed. */
int fds_open(void);

struct mesh_oob_listen_params listen_params(const char *netdev, uint8_t family);

struct mesh_oob_connect_params
connect_params(const char *netdev, const char *address, struct end *end);

/* A callback may want the handle before the call has returned. */
void start_connect(const struct mesh_oob_connect_params *params,
                   struct end *end);

/* Connects with these parameters and waits for the end: the error. */
int connect_fails(const struct mesh_oob_connect_params *params,
                  struct end *client);

/* An engine alone, and one with a listener on lo. */
int setup_engine(void **state);
int setup_lo(void **state);

/* Nothing may be left open, whatever the test did. */
int teardown(void **state);

/* A whole exchange, and the end of the channel seen at the server. */
void exchange(const char *netdev, const char *address);

#endif
