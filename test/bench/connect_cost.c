/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect_cost PEERS NETDEV
 *
 * What a connection costs: one UCP worker calls PEERS others of another
 * process, one after the other, over the transports that UCX_TLS names, each
 * with an active message that is answered.  Prints for each peer:
 *     first_byte US    from the first send to the answer
 *     bytes N, packets N    that NETDEV moved (on lo both ways count once)
 *     memory KIB       resident of the caller, the queue pair in it
 * and what a progress call costs in the end, in nanoseconds.
 */
#include "../ucp_ends.h"
#include "cost.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <signal.h>

#define AM_ID 3
#define CALLS 20000

/* A peer's address, as it comes from the other process. */
struct address {
    size_t length;
    char *bytes;
};

static volatile unsigned *called; /* the peer, shared by both processes */
static ucp_context_h context;
static unsigned answers;

static void open_context(void)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_AM,
    };

    check("context", ucp_init(&params, NULL, &context));
}

static ucs_status_t answer(void *arg, const void *header, size_t header_length,
                           void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    ucp_request_param_t none = {0};
    void *request;

    (void)arg, (void)header, (void)header_length, (void)data, (void)length;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        answers++;
        return UCS_OK;
    }
    request = ucp_am_send_nbx(param->reply_ep, AM_ID, NULL, 0, NULL, 0, &none);
    if (UCS_PTR_IS_ERR(request))
        check("answering", UCS_PTR_STATUS(request));
    else if (request != NULL)
        ucp_request_free(request);
    return UCS_OK;
}

static ucp_worker_h open_worker(void)
{
    ucp_am_handler_param_t handler = {
        .field_mask =
            UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = AM_ID,
        .cb = answer,
    };
    ucp_worker_h worker = ucp_ends_worker(context);

    check("handler", ucp_worker_set_am_recv_handler(worker, &handler));
    return worker;
}

/* ---- the process with the peers ------------------------------------------ */

static void write_address(int fd, ucp_worker_h worker)
{
    ucp_address_t *address;
    size_t length;

    check("address", ucp_worker_get_address(worker, &address, &length));
    if (write(fd, &length, sizeof(length)) != sizeof(length) ||
        write(fd, address, length) != (ssize_t)length)
        exit(1);
    ucp_worker_release_address(worker, address);
}

__attribute__((noreturn)) static void be_peers(unsigned count, int fd)
{
    ucp_worker_h *workers = calloc(count, sizeof(*workers));

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_context();
    for (unsigned i = 0; i < count; i++) {
        workers[i] = open_worker();
        write_address(fd, workers[i]);
    }
    /* Only who is called has something to do. */
    for (;;)
        ucp_worker_progress(workers[*called]);
}

/* ---- the caller ---------------------------------------------------------- */

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static double resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long total, resident = 0;

    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        check("/proc/self/statm", UCS_ERR_IO_ERROR);
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static double moved(const char *netdev, const char *what)
{
    unsigned long long value = 0;
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", netdev,
             what);
    file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%llu", &value) != 1)
        check(path, UCS_ERR_NO_ELEM);
    fclose(file);
    return (double)value;
}

static void read_all(int fd, void *bytes, size_t length)
{
    ssize_t got;

    for (size_t done = 0; done < length; done += (size_t)got) {
        got = read(fd, (char *)bytes + done, length - done);
        if (got <= 0)
            check("address", UCS_ERR_IO_ERROR);
    }
}

/* When all are there, so are all peers. */
static struct address *read_addresses(int fd, unsigned count)
{
    struct address *addresses = calloc(count, sizeof(*addresses));

    for (unsigned i = 0; i < count; i++) {
        read_all(fd, &addresses[i].length, sizeof(addresses[i].length));
        addresses[i].bytes = malloc(addresses[i].length);
        read_all(fd, addresses[i].bytes, addresses[i].length);
    }
    return addresses;
}

static ucp_ep_h ep_to(ucp_worker_h worker, const struct address *address)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address = (const ucp_address_t *)address->bytes,
    };
    ucp_ep_h ep;

    check("endpoint", ucp_ep_create(worker, &params, &ep));
    return ep;
}

static void call(ucp_worker_h worker, const struct address *addresses,
                 unsigned i)
{
    static const ucp_request_param_t reply = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_REPLY,
    };
    time_t end = time(NULL) + TIMEOUT_S;
    void *request;

    *called = i;
    request = ucp_am_send_nbx(ep_to(worker, &addresses[i]), AM_ID, NULL, 0,
                              NULL, 0, &reply);
    if (UCS_PTR_IS_ERR(request))
        check("calling", UCS_PTR_STATUS(request));
    while (answers <= i) {
        ucp_worker_progress(worker);
        if (time(NULL) > end)
            check("calling", UCS_ERR_TIMED_OUT);
    }
    if (request != NULL)
        ucp_request_free(request);
}

static void measure(unsigned count, const char *netdev,
                    const struct address *addresses)
{
    ucp_worker_h worker = open_worker();
    double memory, bytes, packets, start;

    call(worker, addresses, 0); /* what is set up once is not the peers' */
    memory = resident_kib();
    bytes = moved(netdev, "rx_bytes");
    packets = moved(netdev, "rx_packets");
    start = now_us();
    for (unsigned i = 1; i <= count; i++)
        call(worker, addresses, i);
    printf("first_byte %.3f\n", (now_us() - start) / count);
    printf("bytes %.1f\n", (moved(netdev, "rx_bytes") - bytes) / count);
    printf("packets %.1f\n", (moved(netdev, "rx_packets") - packets) / count);
    printf("memory %.2f\n", (resident_kib() - memory) / count);
    start = now_us();
    for (unsigned i = 0; i < CALLS; i++)
        ucp_worker_progress(worker);
    printf("progress %.2f\n", (now_us() - start) * 1e3 / CALLS);
}

int main(int argc, char **argv)
{
    struct address *addresses;
    struct rlimit files;
    unsigned count;
    int fds[2];

    if (argc != 3 || (count = (unsigned)atoi(argv[1])) == 0) {
        fprintf(stderr, "usage: connect_cost PEERS NETDEV\n");
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    called = mmap(NULL, sizeof(*called), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (called == MAP_FAILED || pipe(fds) != 0)
        check("pipe", UCS_ERR_NO_RESOURCE);
    if (fork() == 0)
        be_peers(count + 1, fds[1]);
    addresses = read_addresses(fds[0], count + 1);
    open_context();
    measure(count, argv[2], addresses);
    fflush(stdout);
    _exit(0); /* closing is not what this is about */
}
