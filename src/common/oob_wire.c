/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob_wire.h"

#include "wire_cursor.h"

#include <errno.h>
#include <string.h>

_Static_assert(MESH_OOB_WIRE_NAME_LEN == MESH_NODE_NAME_LEN,
               "a longer node name is another version of the wire format");
_Static_assert(MESH_OOB_WIRE_LANE_LEN == MESH_LANE_LABEL_LEN,
               "a longer lane label is another version of the wire format");
_Static_assert(MESH_OOB_USER_LEN <= UINT8_MAX, "user length is one byte");

#define QPN_MAX      0xffffffu
#define FLAG_RELAYED 0x01u

/* Codes of REFUSE. errno numbers differ between systems and do not travel. */
static const struct {
    uint16_t code;
    int error;
} refuse_codes[] = {
    {1, EPROTO},       {2, EPROTONOSUPPORT}, {3, EKEYREJECTED},
    {4, EHOSTUNREACH}, {5, ENOENT},          {6, EALREADY},
    {7, EAGAIN},       {8, ETIMEDOUT},       {9, ENOMEM},
    {10, EINVAL},      {11, ECANCELED},      {12, ECONNREFUSED},
    {13, ENETUNREACH}, {14, ESHUTDOWN},      {15, ENOBUFS},
    {16, ECONNRESET},  {17, ENODEV},         {18, EIO},
};
#define REFUSE_CODE_COUNT (sizeof(refuse_codes) / sizeof(refuse_codes[0]))
#define REFUSE_CODE_OTHER 12

static uint16_t refuse_code(int error)
{
    for (size_t i = 0; i < REFUSE_CODE_COUNT; i++) {
        if (refuse_codes[i].error == -error)
            return refuse_codes[i].code;
    }
    return REFUSE_CODE_OTHER;
}

/* 0: there is no such code. */
static int refuse_error(uint16_t code)
{
    for (size_t i = 0; i < REFUSE_CODE_COUNT; i++) {
        if (refuse_codes[i].code == code)
            return -refuse_codes[i].error;
    }
    return 0;
}

static bool mtu_is_valid(unsigned mtu)
{
    return mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 ||
           mtu == 4096;
}

static bool rail_is_valid(const struct mesh_qp_end *rail)
{
    return rail->gid_type <= MESH_GID_ROCE_V2 && rail->port != 0 &&
           mtu_is_valid(rail->mtu) && rail->qpn <= QPN_MAX &&
           rail->psn <= QPN_MAX;
}

static bool hello_is_valid(const struct mesh_oob_hello *hello)
{
    if (hello->rail_count < 1 || hello->rail_count > MESH_OOB_MAX_RAILS ||
        hello->user_len > MESH_OOB_USER_LEN)
        return false;
    if (hello->relayed)
        return hello->rail_count == 1 && hello->window > 0 && hello->chunk > 0;
    return hello->window == 0 && hello->chunk == 0;
}

static bool path_is_valid(const struct mesh_oob_path *path, unsigned position)
{
    return path->hop_count >= MESH_OOB_WIRE_MIN_HOPS &&
           path->hop_count <= MESH_OOB_MAX_HOPS && position < path->hop_count;
}

/* Smallest and largest body of a type; 0 and 0: no such type. */
static void body_bounds(unsigned type, size_t *min_p, size_t *max_p)
{
    *min_p = *max_p = 0;
    switch (type) {
    case MESH_OOB_WIRE_HELLO:
        *min_p = *max_p = 16 + MESH_OOB_WIRE_NONCE_LEN;
        break;
    case MESH_OOB_WIRE_CHALLENGE:
        *min_p = *max_p = MESH_OOB_WIRE_NONCE_LEN;
        break;
    case MESH_OOB_WIRE_REQUEST:
    case MESH_OOB_WIRE_REPLY:
        *min_p = MESH_OOB_WIRE_HELLO_MIN + MESH_OOB_WIRE_RAIL_LEN +
                 MESH_OOB_WIRE_PROOF_LEN;
        *max_p = MESH_OOB_WIRE_HELLO_MAX + MESH_OOB_WIRE_PROOF_LEN;
        break;
    case MESH_OOB_WIRE_READY:
        *min_p = *max_p = MESH_OOB_WIRE_PROOF_LEN;
        break;
    case MESH_OOB_WIRE_REFUSE:
        *min_p = 4;
        *max_p = 4 + MESH_OOB_REASON_LEN - 1;
        break;
    case MESH_OOB_WIRE_PATH:
        *min_p = MESH_OOB_WIRE_PATH_LEN(MESH_OOB_WIRE_MIN_HOPS);
        *max_p = MESH_OOB_WIRE_PATH_LEN(MESH_OOB_MAX_HOPS);
        break;
    default:
        break;
    }
}

int mesh_oob_wire_frame(const uint8_t *data, size_t len, size_t *frame_len_p)
{
    static const uint8_t magic[4] = {'M', 'O', 'O', 'B'};
    static const uint8_t version[2] = {0, MESH_OOB_WIRE_VERSION};
    struct mesh_wire_reader reader;
    size_t min = 0, max = 0, body_len;

    if (memcmp(data, magic, len < 4 ? len : 4) != 0)
        return -EPROTO;
    if (len < 6)
        return -EAGAIN;
    if (memcmp(data + 4, version, 2) != 0)
        return -EPROTONOSUPPORT;
    if (len > 6) {
        body_bounds(data[6], &min, &max);
        if (max == 0)
            return -EPROTO;
    }
    if (len > 7 && data[7] != 0)
        return -EPROTO;
    if (len < MESH_OOB_WIRE_HEADER_LEN)
        return -EAGAIN;
    mesh_wire_reader_init(&reader, data + 8, 4);
    body_len = mesh_wire_read_u32(&reader);
    if (body_len < min || body_len > max)
        return -EPROTO;
    *frame_len_p = MESH_OOB_WIRE_HEADER_LEN + body_len;
    return 0;
}

static void header_write(struct mesh_wire_writer *writer, unsigned type,
                         size_t body_len)
{
    mesh_wire_write_u32(writer, MESH_OOB_WIRE_MAGIC);
    mesh_wire_write_u16(writer, MESH_OOB_WIRE_VERSION);
    mesh_wire_write_u8(writer, (uint8_t)type);
    mesh_wire_write_u8(writer, 0);
    mesh_wire_write_u32(writer, (uint32_t)body_len);
}

static void rail_write(struct mesh_wire_writer *writer,
                       const struct mesh_qp_end *rail)
{
    if (!rail_is_valid(rail))
        writer->failed = true;
    mesh_wire_write_bytes(writer, rail->gid.raw, sizeof(rail->gid.raw));
    mesh_wire_write_u8(writer, rail->gid_type);
    mesh_wire_write_u8(writer, rail->port);
    mesh_wire_write_u16(writer, rail->mtu);
    mesh_wire_write_u32(writer, rail->qpn);
    mesh_wire_write_u32(writer, rail->psn);
    mesh_wire_write_text(writer, rail->lane, MESH_OOB_WIRE_LANE_LEN);
}

static void rail_read(struct mesh_wire_reader *reader, struct mesh_qp_end *rail)
{
    mesh_wire_read_bytes(reader, rail->gid.raw, sizeof(rail->gid.raw));
    rail->gid_type = mesh_wire_read_u8(reader);
    rail->port = mesh_wire_read_u8(reader);
    rail->mtu = mesh_wire_read_u16(reader);
    rail->qpn = mesh_wire_read_u32(reader);
    rail->psn = mesh_wire_read_u32(reader);
    mesh_wire_read_text(reader, rail->lane, MESH_OOB_WIRE_LANE_LEN);
    if (!rail_is_valid(rail))
        reader->failed = true;
}

static void hello_write(struct mesh_wire_writer *writer,
                        const struct mesh_oob_hello *hello)
{
    if (!hello_is_valid(hello)) {
        writer->failed = true;
        return;
    }
    mesh_wire_write_u64(writer, hello->node_id);
    mesh_wire_write_u64(writer, hello->endpoint_id);
    mesh_wire_write_text(writer, hello->node_name, MESH_OOB_WIRE_NAME_LEN);
    mesh_wire_write_u8(writer, hello->relayed ? FLAG_RELAYED : 0);
    mesh_wire_write_u16(writer, hello->window);
    mesh_wire_write_u32(writer, hello->chunk);
    mesh_wire_write_u8(writer, (uint8_t)hello->rail_count);
    mesh_wire_write_u8(writer, (uint8_t)hello->user_len);
    for (unsigned i = 0; i < hello->rail_count; i++)
        rail_write(writer, &hello->rails[i]);
    mesh_wire_write_bytes(writer, hello->user, hello->user_len);
}

static void hello_read(struct mesh_wire_reader *reader,
                       struct mesh_oob_hello *hello)
{
    uint8_t flags;

    hello->node_id = mesh_wire_read_u64(reader);
    hello->endpoint_id = mesh_wire_read_u64(reader);
    mesh_wire_read_text(reader, hello->node_name, MESH_OOB_WIRE_NAME_LEN);
    flags = mesh_wire_read_u8(reader);
    hello->relayed = flags == FLAG_RELAYED;
    hello->window = mesh_wire_read_u16(reader);
    hello->chunk = mesh_wire_read_u32(reader);
    hello->rail_count = mesh_wire_read_u8(reader);
    hello->user_len = mesh_wire_read_u8(reader);
    if ((flags & ~FLAG_RELAYED) != 0 || !hello_is_valid(hello)) {
        reader->failed = true;
        return;
    }
    for (unsigned i = 0; i < hello->rail_count; i++)
        rail_read(reader, &hello->rails[i]);
    mesh_wire_read_bytes(reader, hello->user, hello->user_len);
}

static void reason_write(struct mesh_wire_writer *writer, const char *reason)
{
    size_t len = strnlen(reason, MESH_OOB_REASON_LEN - 1);

    mesh_wire_write_u16(writer, (uint16_t)len);
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)reason[i];

        mesh_wire_write_u8(writer, mesh_wire_is_printable(byte) ? byte : '?');
    }
}

static void reason_read(struct mesh_wire_reader *reader,
                        char reason[MESH_OOB_REASON_LEN])
{
    size_t len = mesh_wire_read_u16(reader);

    if (len >= MESH_OOB_REASON_LEN) {
        reader->failed = true;
        return;
    }
    mesh_wire_read_bytes(reader, reason, len);
    reason[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        if (!mesh_wire_is_printable((uint8_t)reason[i]))
            reader->failed = true;
    }
}

static void path_write(struct mesh_wire_writer *writer,
                       const struct mesh_oob_path *path, unsigned position)
{
    if (!path_is_valid(path, position)) {
        writer->failed = true;
        return;
    }
    mesh_wire_write_u8(writer, (uint8_t)position);
    mesh_wire_write_u8(writer, (uint8_t)path->hop_count);
    for (unsigned i = 0; i < path->hop_count; i++) {
        mesh_wire_write_u8(writer, path->hops[i].lane);
        mesh_wire_write_u8(writer, path->hops[i].remote_lane);
        mesh_wire_write_u64(writer, path->hops[i].node_id);
    }
}

static void path_read(struct mesh_wire_reader *reader,
                      struct mesh_oob_path *path, unsigned *position_p)
{
    *position_p = mesh_wire_read_u8(reader);
    path->hop_count = mesh_wire_read_u8(reader);
    if (!path_is_valid(path, *position_p)) {
        reader->failed = true;
        return;
    }
    for (unsigned i = 0; i < path->hop_count; i++) {
        path->hops[i].lane = mesh_wire_read_u8(reader);
        path->hops[i].remote_lane = mesh_wire_read_u8(reader);
        path->hops[i].node_id = mesh_wire_read_u64(reader);
    }
}

static void body_write(struct mesh_wire_writer *writer,
                       const struct mesh_oob_message *message)
{
    static const uint8_t no_proof[MESH_OOB_WIRE_PROOF_LEN];

    switch (message->type) {
    case MESH_OOB_WIRE_HELLO:
        mesh_wire_write_u64(writer, message->node_id);
        mesh_wire_write_u64(writer, message->endpoint_id);
        mesh_wire_write_bytes(writer, message->nonce, sizeof(message->nonce));
        break;
    case MESH_OOB_WIRE_CHALLENGE:
        mesh_wire_write_bytes(writer, message->nonce, sizeof(message->nonce));
        break;
    case MESH_OOB_WIRE_REQUEST:
    case MESH_OOB_WIRE_REPLY:
        hello_write(writer, &message->hello);
        mesh_wire_write_bytes(writer, no_proof, sizeof(no_proof));
        break;
    case MESH_OOB_WIRE_READY:
        mesh_wire_write_bytes(writer, no_proof, sizeof(no_proof));
        break;
    case MESH_OOB_WIRE_REFUSE:
        mesh_wire_write_u16(writer, refuse_code(message->error));
        reason_write(writer, message->reason);
        break;
    case MESH_OOB_WIRE_PATH:
        mesh_wire_write_u64(writer, message->path.source);
        mesh_wire_write_u64(writer, message->endpoint_id);
        path_write(writer, &message->path, message->position);
        break;
    default:
        writer->failed = true;
    }
}

int mesh_oob_wire_encode(const struct mesh_oob_message *message,
                         uint8_t frame[MESH_OOB_WIRE_FRAME_MAX], size_t *len_p)
{
    struct mesh_wire_writer header, body;

    mesh_wire_writer_init(&body, frame + MESH_OOB_WIRE_HEADER_LEN,
                          MESH_OOB_WIRE_FRAME_MAX - MESH_OOB_WIRE_HEADER_LEN);
    body_write(&body, message);
    if (body.failed)
        return -EINVAL;
    mesh_wire_writer_init(&header, frame, MESH_OOB_WIRE_HEADER_LEN);
    header_write(&header, message->type, mesh_wire_writer_len(&body));
    *len_p = MESH_OOB_WIRE_HEADER_LEN + mesh_wire_writer_len(&body);
    return 0;
}

static void body_read(struct mesh_wire_reader *reader,
                      struct mesh_oob_message *message)
{
    uint8_t proof[MESH_OOB_WIRE_PROOF_LEN];

    switch (message->type) {
    case MESH_OOB_WIRE_HELLO:
        message->node_id = mesh_wire_read_u64(reader);
        message->endpoint_id = mesh_wire_read_u64(reader);
        mesh_wire_read_bytes(reader, message->nonce, sizeof(message->nonce));
        break;
    case MESH_OOB_WIRE_CHALLENGE:
        mesh_wire_read_bytes(reader, message->nonce, sizeof(message->nonce));
        break;
    case MESH_OOB_WIRE_REQUEST:
    case MESH_OOB_WIRE_REPLY:
        hello_read(reader, &message->hello);
        mesh_wire_read_bytes(reader, proof, sizeof(proof));
        break;
    case MESH_OOB_WIRE_READY:
        mesh_wire_read_bytes(reader, proof, sizeof(proof));
        break;
    case MESH_OOB_WIRE_REFUSE:
        message->error = refuse_error(mesh_wire_read_u16(reader));
        reason_read(reader, message->reason);
        if (message->error == 0)
            reader->failed = true;
        break;
    case MESH_OOB_WIRE_PATH:
        message->path.source = mesh_wire_read_u64(reader);
        message->endpoint_id = mesh_wire_read_u64(reader);
        path_read(reader, &message->path, &message->position);
        break;
    }
}

int mesh_oob_wire_decode(const uint8_t *frame, size_t len,
                         struct mesh_oob_message *message_p)
{
    struct mesh_wire_reader reader;
    size_t frame_len;
    int error;

    error = mesh_oob_wire_frame(frame, len, &frame_len);
    if (error != 0)
        return error == -EAGAIN ? -EPROTO : error;
    if (frame_len != len)
        return -EPROTO;
    memset(message_p, 0, sizeof(*message_p));
    message_p->type = frame[6];
    mesh_wire_reader_init(&reader, frame + MESH_OOB_WIRE_HEADER_LEN,
                          len - MESH_OOB_WIRE_HEADER_LEN);
    body_read(&reader, message_p);
    return mesh_wire_reader_done(&reader) ? 0 : -EPROTO;
}

const char *mesh_oob_wire_type_name(unsigned type)
{
    static const char *const names[] = {
        "no frame", "HELLO", "CHALLENGE", "REQUEST",
        "REPLY",    "READY", "REFUSE",    "PATH",
    };

    return type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}
