/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_MAX 8
#define TAG_BASE  100

/* What is sent ------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

static unsigned group_size(const struct link_plan *plan, unsigned group)
{
    if (plan->max_group == 1 || group % 3 == 0)
        return 1;
    return (unsigned)(mix(plan->seed + group) % plan->max_group) + 1;
}

/* Of member number i of a group: 0, a few bytes, odd sizes, the largest. */
static size_t message_size(const struct link_plan *plan, unsigned group,
                           unsigned i)
{
    uint64_t random = mix(plan->seed * 31 + group * GROUP_MAX + i);

    switch (random % 6) {
    case 0:
        return 0;
    case 1:
        return random / 8 % 64 % (plan->max_size + 1);
    case 2:
        return plan->max_size;
    default:
        return random / 8 % (plan->max_size + 1);
    }
}

/* What a receive is posted with: as much, or more. */
static size_t post_size(const struct link_plan *plan, unsigned group,
                        unsigned i)
{
    size_t size = message_size(plan, group, i);

    return group % 2 == 0 ? size : plan->max_size;
}

static uint8_t pattern(const struct link_plan *plan, unsigned group, unsigned i)
{
    return (uint8_t)mix(plan->seed * 7 + group * GROUP_MAX + i);
}

static void fill(uint8_t *data, size_t size, uint8_t first)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(first + i * 7 + (i >> 8));
}

static void check_data(const uint8_t *data, size_t size, uint8_t first,
                       const struct link *link, unsigned group)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != (uint8_t)(first + i * 7 + (i >> 8)))
            fail("from rank %u, group %u: byte %zu of %zu is %u", link->peer,
                 group, i, size, data[i]);
    }
}

/* Set-up --------------------------------------------------------------------
 */

void link_create(struct link *link, struct net *net, void *comm, bool sender,
                 const struct link_plan *plan)
{
    link->net = net;
    link->comm = comm;
    link->sender = sender;
    link->plan = *plan;
    link->stride = (plan->max_size + 4096) & ~(size_t)4095;
    memory_create(&link->memory, link->stride * plan->depth * plan->max_group,
                  plan->gpu);
    net_reg(net, comm, link->memory.address, link->memory.size,
            memory_export(&link->memory), &link->mr);
    for (unsigned i = 0; i < plan->messages; i++)
        link->total += sender ? group_size(plan, i) : 1;
}

void link_destroy(struct link *link)
{
    net_dereg(link->net, link->comm, link->mr);
    net_close_comm(link->net, link->comm, link->sender);
    memory_destroy(&link->memory);
}

bool link_done(const struct link *link)
{
    return link->finished == link->total;
}

static size_t offset(const struct link *link, unsigned group, unsigned i)
{
    const struct link_plan *plan = &link->plan;

    return (group % plan->depth * plan->max_group + i) * link->stride;
}

/* What the plugin gets, and where the harness sees it. */
static uint8_t *buffer(struct link *link, unsigned group, unsigned i)
{
    return link->memory.address + offset(link, group, i);
}

static uint8_t *view(struct link *link, unsigned group, unsigned i)
{
    return link->memory.view + offset(link, group, i);
}

/* Sending -------------------------------------------------------------------
 */

/* Members of a group are sent last one first: tags say which is which. */
static int start_send(struct link *link, struct link_request *slot)
{
    unsigned count = group_size(&link->plan, link->group);
    unsigned i = count - 1 - link->matched;
    size_t size = message_size(&link->plan, link->group, i);
    uint8_t *data = buffer(link, link->group, i);
    int result;

    if (!link->filled)
        fill(view(link, link->group, i), size,
             pattern(&link->plan, link->group, i));
    link->filled = true; /* the plugin may not take it yet */
    result = net_isend(link->net, link->comm, data, size, TAG_BASE + (int)i,
                       link->mr, &slot->request);
    if (result != MESH_NCCL_SUCCESS || slot->request == NULL)
        return result;
    link->filled = false;
    slot->first = link->group;
    slot->count = i;
    link->started++;
    if (++link->matched == count) {
        link->matched = 0;
        link->group++;
    }
    return result;
}

static int finish_send(struct link *link, struct link_request *slot)
{
    int done, size = 0x5a5a5a;
    bool ask = slot->first % 2 == 0;
    int result = net_test(link->net, slot->request, &done, ask ? &size : NULL);
    size_t expected = message_size(&link->plan, slot->first, slot->count);

    if (result != MESH_NCCL_SUCCESS || done == 0)
        return result;
    if (ask && (size_t)size != expected)
        fail("a send to rank %u of %zu bytes gives %d", link->peer, expected,
             size);
    slot->request = NULL;
    link->bytes += expected;
    link->finished++;
    return result;
}

/* Receiving -----------------------------------------------------------------
 */

static int start_recv(struct link *link, struct link_request *slot)
{
    unsigned count = group_size(&link->plan, link->group);
    void *data[GROUP_MAX], *mrs[GROUP_MAX];
    size_t sizes[GROUP_MAX];
    int tags[GROUP_MAX];
    int result;

    for (unsigned i = 0; i < count; i++) {
        data[i] = buffer(link, link->group, i);
        sizes[i] = post_size(&link->plan, link->group, i);
        tags[i] = TAG_BASE + (int)i;
        mrs[i] = link->mr;
        memset(view(link, link->group, i), 0xee,
               message_size(&link->plan, link->group, i));
    }
    slot->request = link->group % 3 == 1 ? MESH_NCCL_OPTIONAL : (void *)2;
    result = net_irecv(link->net, link->comm, (int)count, data, sizes, tags,
                       mrs, &slot->request);
    if (result != MESH_NCCL_SUCCESS)
        slot->request = NULL;
    if (slot->request == NULL)
        return result;
    slot->first = link->group++;
    slot->count = count;
    link->started++;
    return result;
}

static int finish_recv(struct link *link, struct link_request *slot)
{
    int done, sizes[GROUP_MAX];
    bool ask = slot->first % 4 != 0;
    int result = net_test(link->net, slot->request, &done, ask ? sizes : NULL);

    if (result != MESH_NCCL_SUCCESS || done == 0)
        return result;
    for (unsigned i = 0; i < slot->count; i++) {
        size_t expected = message_size(&link->plan, slot->first, i);

        if (ask && (size_t)sizes[i] != expected)
            fail("a receive from rank %u has %d bytes, not %zu", link->peer,
                 sizes[i], expected);
        check_data(view(link, slot->first, i), expected,
                   pattern(&link->plan, slot->first, i), link, slot->first);
        link->bytes += expected;
    }
    slot->request = NULL;
    link->finished++;
    return result;
}

/* Progress ------------------------------------------------------------------
 */

/* Buffers are used again when all of an older group is over. */
static bool may_start(const struct link *link, unsigned *slot_p)
{
    unsigned depth = link->plan.depth;
    unsigned room = link->sender ? depth * GROUP_MAX : depth;
    bool found = false;

    if (link->group == link->plan.messages)
        return false;
    for (unsigned i = 0; i < room; i++) {
        if (link->requests[i].request == NULL) {
            *slot_p = i;
            found = true;
        } else if (link->requests[i].first + depth <= link->group) {
            return false;
        }
    }
    return found;
}

/* What can be, as NCCL does, and not one message for each time that this
 * thread has a processor. */
static int start_all(struct link *link)
{
    int result = MESH_NCCL_SUCCESS;
    unsigned slot, before;

    while (result == MESH_NCCL_SUCCESS && may_start(link, &slot)) {
        before = link->started;
        result = link->sender ? start_send(link, &link->requests[slot])
                              : start_recv(link, &link->requests[slot]);
        if (link->started == before)
            break;
    }
    return result;
}

int link_progress(struct link *link, bool *moved_p)
{
    const unsigned before = link->started + link->finished;
    int result = MESH_NCCL_SUCCESS;

    for (unsigned i = 0; i < LINK_DEPTH * GROUP_MAX; i++) {
        if (link->requests[i].request == NULL)
            continue;
        result = link->sender ? finish_send(link, &link->requests[i])
                              : finish_recv(link, &link->requests[i]);
        if (result != MESH_NCCL_SUCCESS)
            return result;
    }
    result = start_all(link);
    if (link->started + link->finished != before)
        *moved_p = true;
    return result;
}
