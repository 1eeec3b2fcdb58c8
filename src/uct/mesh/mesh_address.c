/* SPDX-License-Identifier: BSD-3-Clause */
#include "mesh_address.h"

#include "common/wire_cursor.h"

#include <errno.h>
#include <string.h>

#define FLAG_RELAYED 1u
#define EXTRA_AT     37 /* number of further addresses */

void uct_mesh_address_set_lane(struct uct_mesh_address *address,
                               const struct mesh_lane *lane)
{
    bool have_ipv6 = false;
    unsigned ipv4 = 0;

    address->twin_index = lane->twin_index < 15 ? lane->twin_index : 15;
    address->twin_count = lane->twin_count < 15 ? lane->twin_count : 15;
    address->addr_count = 0;
    for (unsigned i = 0; i < lane->addr_count; i++) {
        const struct mesh_addr *addr = &lane->addrs[i];

        if (addr->family == AF_INET6 ? have_ipv6
                                     : ipv4 > UCT_MESH_ADDRESS_MAX_EXTRA)
            continue;
        if (addr->family == AF_INET6)
            have_ipv6 = true;
        else
            ipv4++;
        address->addrs[address->addr_count++] = *addr;
    }
}

static const struct mesh_addr *
first_of_family(const struct uct_mesh_address *address, int family)
{
    for (unsigned i = 0; i < address->addr_count; i++) {
        if (address->addrs[i].family == family)
            return &address->addrs[i];
    }
    return NULL;
}

static size_t family_bytes(int family)
{
    return family == AF_INET ? 4 : 16;
}

/* An absent address is written as zeros: prefix length 0 is none. */
static void write_addr(struct mesh_wire_writer *writer,
                       const struct mesh_addr *addr, int family)
{
    static const struct mesh_addr none;

    if (addr == NULL)
        addr = &none;
    mesh_wire_write_bytes(writer, addr->bytes, family_bytes(family));
    mesh_wire_write_u8(writer, addr->prefix_len);
}

static void read_addr(struct mesh_wire_reader *reader, int family,
                      struct uct_mesh_address *address)
{
    struct mesh_addr addr = {.family = (uint8_t)family};

    mesh_wire_read_bytes(reader, addr.bytes, family_bytes(family));
    addr.prefix_len = mesh_wire_read_u8(reader);
    if (addr.prefix_len > 8 * family_bytes(family))
        reader->failed = true;
    if (addr.prefix_len != 0)
        address->addrs[address->addr_count++] = addr;
}

static void pack_device(const struct uct_mesh_address *address,
                        uint8_t device[UCT_MESH_DEVICE_ADDR_LEN])
{
    struct mesh_wire_writer writer;

    mesh_wire_writer_init(&writer, device, UCT_MESH_DEVICE_ADDR_LEN);
    mesh_wire_write_u8(&writer, UCT_MESH_ADDRESS_VERSION);
    mesh_wire_write_u8(
        &writer, (uint8_t)(address->twin_index << 4 | address->twin_count));
    write_addr(&writer, first_of_family(address, AF_INET), AF_INET);
    write_addr(&writer, first_of_family(address, AF_INET6), AF_INET6);
}

static void pack_iface(const struct uct_mesh_address *address,
                       uint8_t iface[UCT_MESH_IFACE_ADDR_LEN])
{
    const struct mesh_addr *first = first_of_family(address, AF_INET);
    struct mesh_wire_writer writer;
    uint8_t extra = 0;

    memset(iface, 0, UCT_MESH_IFACE_ADDR_LEN);
    mesh_wire_writer_init(&writer, iface, UCT_MESH_IFACE_ADDR_LEN);
    mesh_wire_write_u64(&writer, address->node_id);
    mesh_wire_write_u64(&writer, address->endpoint_id);
    mesh_wire_write_bytes(&writer, address->token, sizeof(address->token));
    mesh_wire_write_u16(&writer, address->port_ipv4);
    mesh_wire_write_u16(&writer, address->port_ipv6);
    mesh_wire_write_u8(&writer, address->relayed ? FLAG_RELAYED : 0);
    mesh_wire_write_u8(&writer, 0);
    for (unsigned i = 0; i < address->addr_count; i++) {
        const struct mesh_addr *addr = &address->addrs[i];

        if (addr->family != AF_INET || addr == first)
            continue;
        write_addr(&writer, addr, AF_INET);
        extra++;
    }
    iface[EXTRA_AT] = extra;
}

void uct_mesh_address_pack(const struct uct_mesh_address *address,
                           uint8_t device[UCT_MESH_DEVICE_ADDR_LEN],
                           uint8_t iface[UCT_MESH_IFACE_ADDR_LEN])
{
    pack_device(address, device);
    pack_iface(address, iface);
}

int uct_mesh_address_unpack(const uint8_t device[UCT_MESH_DEVICE_ADDR_LEN],
                            const uint8_t iface[UCT_MESH_IFACE_ADDR_LEN],
                            struct uct_mesh_address *address_p)
{
    struct uct_mesh_address address = {0};
    struct mesh_wire_reader dev, ifc;
    unsigned extra, twins, flags;

    mesh_wire_reader_init(&dev, device, UCT_MESH_DEVICE_ADDR_LEN);
    if (mesh_wire_read_u8(&dev) != UCT_MESH_ADDRESS_VERSION)
        return -EPROTONOSUPPORT;
    twins = mesh_wire_read_u8(&dev);
    address.twin_index = (uint8_t)(twins >> 4);
    address.twin_count = (uint8_t)(twins & 15);
    read_addr(&dev, AF_INET, &address);

    mesh_wire_reader_init(&ifc, iface, UCT_MESH_IFACE_ADDR_LEN);
    address.node_id = mesh_wire_read_u64(&ifc);
    address.endpoint_id = mesh_wire_read_u64(&ifc);
    mesh_wire_read_bytes(&ifc, address.token, sizeof(address.token));
    address.port_ipv4 = mesh_wire_read_u16(&ifc);
    address.port_ipv6 = mesh_wire_read_u16(&ifc);
    flags = mesh_wire_read_u8(&ifc);
    extra = mesh_wire_read_u8(&ifc);
    if (extra > UCT_MESH_ADDRESS_MAX_EXTRA || (flags & ~FLAG_RELAYED) != 0)
        return -EPROTO;
    address.relayed = (flags & FLAG_RELAYED) != 0;
    for (unsigned i = 0; i < extra; i++)
        read_addr(&ifc, AF_INET, &address);
    read_addr(&dev, AF_INET6, &address);
    if (!mesh_wire_reader_done(&dev) || ifc.failed)
        return -EPROTO;
    *address_p = address;
    return 0;
}
