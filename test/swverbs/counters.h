/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device has counted, under the names that Soft-RoCE gives them.
 * Purpose: numbers for readers of hw_counters. Thread rule: any thread, no
 * lock needed. Ownership: counters live until the process ends; those in
 * SWVERBS_COUNTERS outlive it and are shared by all processes.
 */
#ifndef SWVERBS_COUNTERS_H
#define SWVERBS_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

struct swv_device;

enum swv_counter {
    SWV_SENT_PKTS,
    SWV_RCVD_PKTS,
    SWV_OUT_OF_SEQ_REQUEST,
    SWV_RCVD_RNR_ERR,
    SWV_SEND_RNR_ERR,
    SWV_RETRY_RNR_EXCEEDED_ERR,
    SWV_RETRY_EXCEEDED_ERR,
    SWV_COMPLETER_RETRY_ERR,
    SWV_NUM_COUNTERS
};

void swv_count(const struct swv_device *dev, enum swv_counter which,
               uint32_t n);

/* How many packets of that path MTU (enum ibv_mtu) so many bytes are. */
uint32_t swv_packets(uint32_t len, uint32_t path_mtu);

/* The text of a counter's file: bytes, or -ENOENT for other names. */
int swv_counter_text(const struct swv_device *dev, const char *name, char *text,
                     size_t room);

#endif
