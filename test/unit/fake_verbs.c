/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_verbs.h"

#include "addr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#undef ibv_query_port

struct fake_verbs fake_verbs;

struct ibv_device **__wrap_ibv_get_device_list(int *count_p);
void __wrap_ibv_free_device_list(struct ibv_device **list);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
int __wrap_ibv_close_device(struct ibv_context *context);
int __wrap_ibv_query_device(struct ibv_context *context,
                            struct ibv_device_attr *attr_p);
int __wrap_ibv_query_port(struct ibv_context *context, uint8_t port,
                          struct ibv_port_attr *attr_p);
ssize_t __wrap__ibv_query_gid_table(struct ibv_context *context,
                                    struct ibv_gid_entry *entries, size_t max,
                                    uint32_t flags, size_t entry_size);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

static struct fake_device *device_of(struct ibv_context *context)
{
    return (struct fake_device *)((char *)context -
                                  offsetof(struct fake_device, context));
}

struct ibv_device **__wrap_ibv_get_device_list(int *count_p)
{
    struct ibv_device **list;
    unsigned i;

    if (fake_verbs.list_error) {
        errno = fake_verbs.list_error;
        return NULL;
    }
    list = calloc(FAKE_MAX_DEVICES + 1, sizeof(*list));
    for (i = 0; i < fake_verbs.device_count; i++)
        list[i] = &fake_verbs.devices[i].device;
    if (count_p)
        *count_p = (int)fake_verbs.device_count;
    fake_verbs.lists++;
    return list;
}

void __wrap_ibv_free_device_list(struct ibv_device **list)
{
    fake_verbs.lists--;
    free(list);
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
    struct fake_device *fake = (struct fake_device *)device;

    if (fake->open_error) {
        errno = fake->open_error;
        return NULL;
    }
    fake->opened++;
    return &fake->context;
}

int __wrap_ibv_close_device(struct ibv_context *context)
{
    device_of(context)->opened--;
    return 0;
}

int __wrap_ibv_query_device(struct ibv_context *context,
                            struct ibv_device_attr *attr_p)
{
    *attr_p = device_of(context)->attr;
    return 0;
}

int __wrap_ibv_query_port(struct ibv_context *context, uint8_t port,
                          struct ibv_port_attr *attr_p)
{
    struct fake_device *fake = device_of(context);

    if (fake->port_error)
        return fake->port_error;
    if (!port || port > fake->attr.phys_port_cnt)
        return EINVAL;
    *attr_p = fake->ports[port - 1];
    return 0;
}

ssize_t __wrap__ibv_query_gid_table(struct ibv_context *context,
                                    struct ibv_gid_entry *entries, size_t max,
                                    uint32_t flags, size_t entry_size)
{
    struct fake_device *fake = device_of(context);
    const union ibv_gid hole = {0};
    size_t count = 0;
    unsigned i;

    assert_int_equal(flags, 0);
    assert_int_equal(entry_size, sizeof(*entries));
    if (fake_verbs.table_hook)
        fake_verbs.table_hook(fake);
    if (fake->table_error)
        return -fake->table_error;
    for (i = 0; i < fake->gid_count; i++) {
        if (!memcmp(&fake->gids[i].gid, &hole, sizeof(hole)))
            continue;
        if (count == max)
            return -EINVAL;
        entries[count++] = fake->gids[i];
    }
    return (ssize_t)count;
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    unsigned at = fake_verbs.modify_count++;

    assert_non_null(qp);
    assert_true(at < FAKE_MAX_MODIFY);
    fake_verbs.modify[at] = (struct fake_modify){*attr, mask};
    return fake_verbs.modify_error[at];
}

void fake_verbs_reset(void)
{
    unsigned i;

    for (i = 0; i < fake_verbs.device_count; i++)
        assert_int_equal(fake_verbs.devices[i].opened, 0);
    assert_int_equal(fake_verbs.lists, 0);
    memset(&fake_verbs, 0, sizeof(fake_verbs));
}

struct fake_device *fake_device_add(const char *name, const char *path)
{
    struct fake_device *fake;

    assert_true(fake_verbs.device_count < FAKE_MAX_DEVICES);
    fake = &fake_verbs.devices[fake_verbs.device_count++];
    memset(fake, 0, sizeof(*fake));
    snprintf(fake->device.name, sizeof(fake->device.name), "%s", name);
    snprintf(fake->device.ibdev_path, sizeof(fake->device.ibdev_path), "%s",
             path ? path : "/nonexistent");
    fake->device.transport_type = IBV_TRANSPORT_IB;
    fake->context.device = &fake->device;
    fake->attr.phys_port_cnt = 1;
    fake->attr.max_qp_rd_atom = 16;
    fake->attr.max_qp_init_rd_atom = 16;
    fake->ports[0] = (struct ibv_port_attr){
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_4096,
        .gid_tbl_len = FAKE_MAX_GIDS,
        .active_width = 2,  /* 4x */
        .active_speed = 32, /* 25 Gb/s */
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };
    fake->ports[1] = fake->ports[0];
    return fake;
}

void fake_gid_add(struct fake_device *device, const char *address,
                  uint32_t type, int ifindex)
{
    struct ibv_gid_entry *entry = &device->gids[device->gid_count];
    struct mesh_addr addr;

    assert_true(device->gid_count < FAKE_MAX_GIDS);
    entry->gid_index = device->gid_count++;
    entry->port_num = 1;
    entry->gid_type = type;
    entry->ndev_ifindex = (uint32_t)ifindex;
    if (!address[0])
        return;
    assert_int_equal(mesh_addr_parse(address, &addr), 0);
    mesh_addr_to_gid(&addr, &entry->gid);
}
