/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/lane_counters.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* Under "hw_counters", of mlx5 (first ones) and rxe. */
static const char *const retry_names[] = {
    "local_ack_timeout_err", "packet_seq_err",      "rnr_nak_retry_err",
    "rcvd_seq_err",          "completer_retry_err", "rcvd_rnr_err",
};
static const char *const error_names[] = {
    "req_cqe_error",          "resp_cqe_error", "retry_exceeded_err",
    "retry_rnr_exceeded_err", "send_err",
};
/* Under "counters". */
static const char *const port_error_names[] = {
    "port_rcv_errors",
    "port_xmit_discards",
};

/* The port counts words of four bytes. */
#define PORT_DATA_UNIT 4

static bool number_read(const char *directory, const char *name,
                        uint64_t *value_p)
{
    char path[PATH_MAX];
    FILE *file;
    bool found;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    found = fscanf(file, "%" SCNu64, value_p) == 1;
    fclose(file);
    return found;
}

static uint64_t sum_read(const char *directory, const char *const *names,
                         size_t count)
{
    uint64_t sum = 0, value;

    for (size_t i = 0; i < count; i++) {
        if (number_read(directory, names[i], &value))
            sum += value;
    }
    return sum;
}

#define SUM_READ(directory, names) \
    sum_read(directory, names, sizeof(names) / sizeof((names)[0]))

void mesh_lane_counters_read(const char *root,
                             const struct mesh_lane_info *lane,
                             struct mesh_lane_counters *counters_p)
{
    char port[PATH_MAX / 2], directory[PATH_MAX / 2 + 32];

    memset(counters_p, 0, sizeof(*counters_p));
    snprintf(port, sizeof(port), "%s/class/infiniband/%s/ports/%u", root,
             lane->ibdev, lane->port);
    snprintf(directory, sizeof(directory), "%s/hw_counters", port);
    counters_p->retries = SUM_READ(directory, retry_names);
    counters_p->errors = SUM_READ(directory, error_names);
    snprintf(directory, sizeof(directory), "%s/counters", port);
    counters_p->errors += SUM_READ(directory, port_error_names);
    if (number_read(directory, "port_xmit_data", &counters_p->sent_bytes) &&
        number_read(directory, "port_rcv_data", &counters_p->received_bytes)) {
        counters_p->sent_bytes *= PORT_DATA_UNIT;
        counters_p->received_bytes *= PORT_DATA_UNIT;
        return;
    }
    if (lane->netdev[0] == '\0')
        return;
    snprintf(directory, sizeof(directory), "%s/class/net/%s/statistics", root,
             lane->netdev);
    number_read(directory, "tx_bytes", &counters_p->sent_bytes);
    number_read(directory, "rx_bytes", &counters_p->received_bytes);
}
