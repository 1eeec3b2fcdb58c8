/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of the devices: one file for each in SWVERBS_COUNTERS, mapped by
 * every process that uses the device. Without it, each process counts alone.
 */
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "swverbs.h"

#define FILE_SIZE 4096

static const char *const names[SWV_NUM_COUNTERS] = {
    [SWV_SENT_PKTS] = "sent_pkts",
    [SWV_RCVD_PKTS] = "rcvd_pkts",
    [SWV_OUT_OF_SEQ_REQUEST] = "out_of_seq_request",
    [SWV_RCVD_RNR_ERR] = "rcvd_rnr_err",
    [SWV_SEND_RNR_ERR] = "send_rnr_err",
    [SWV_RETRY_RNR_EXCEEDED_ERR] = "retry_rnr_exceeded_err",
    [SWV_RETRY_EXCEEDED_ERR] = "retry_exceeded_err",
    [SWV_COMPLETER_RETRY_ERR] = "completer_retry_err",
};

struct tally {
    struct tally *next;
    const struct swv_device *dev; /* borrowed; devices are never freed */
    uint64_t *values;             /* SWV_NUM_COUNTERS */
    uint64_t own[SWV_NUM_COUNTERS];
};

static pthread_mutex_t tallies_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally *tallies; /* atomic: grows at its head, never shrinks */

/* The mapped file of a device, or NULL. */
static uint64_t *file_map(const char *device)
{
    const char *dir = getenv("SWVERBS_COUNTERS");
    char path[PATH_MAX];
    void *map = MAP_FAILED;
    int fd;

    if (dir == NULL || *dir == '\0')
        return NULL;
    snprintf(path, sizeof(path), "%s/%s", dir, device);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && ftruncate(fd, FILE_SIZE) == 0)
        map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        swv_log("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return map == MAP_FAILED ? NULL : map;
}

static struct tally *tally_known(const struct swv_device *dev)
{
    struct tally *t = __atomic_load_n(&tallies, __ATOMIC_ACQUIRE);

    while (t != NULL && t->dev != dev)
        t = t->next;
    return t;
}

/* NULL without memory. */
static struct tally *tally_get(const struct swv_device *dev)
{
    struct tally *t = tally_known(dev);

    if (t != NULL)
        return t;
    pthread_mutex_lock(&tallies_lock);
    t = tally_known(dev);
    if (t == NULL && (t = calloc(1, sizeof(*t))) != NULL) {
        t->dev = dev;
        t->next = tallies;
        t->values = file_map(dev->cfg.name);
        if (t->values == NULL)
            t->values = t->own;
        __atomic_store_n(&tallies, t, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&tallies_lock);
    return t;
}

void swv_count(const struct swv_device *dev, enum swv_counter which, uint32_t n)
{
    struct tally *t = tally_get(dev);

    if (t != NULL)
        __atomic_fetch_add(&t->values[which], n, __ATOMIC_RELAXED);
}

uint32_t swv_packets(uint32_t len, uint32_t path_mtu)
{
    uint32_t size = 128u << path_mtu;

    return len <= size ? 1 : (uint32_t)(((uint64_t)len + size - 1) / size);
}

int swv_counter_text(const struct swv_device *dev, const char *name, char *text,
                     size_t room)
{
    struct tally *t = tally_get(dev);

    for (int i = 0; t != NULL && i < SWV_NUM_COUNTERS; i++) {
        if (strcmp(names[i], name) == 0)
            return snprintf(text, room, "%llu\n",
                            (unsigned long long)__atomic_load_n(
                                &t->values[i], __ATOMIC_RELAXED));
    }
    return -ENOENT;
}
