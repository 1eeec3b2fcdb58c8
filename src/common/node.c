/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MACHINE_ID_FILE "/etc/machine-id"
#define BOOT_ID_FILE    "/proc/sys/kernel/random/boot_id"

/* Longest id file: a UUID with dashes. */
#define ID_TEXT_LEN 40

/* machine-id(5) asks for a keyed hash, so that applications cannot be tied to
 * each other. The label is the key; changing it changes every node's id. */
static const unsigned char hash_label[] = "rdma-mesh node id, 1";

/* Reads 32 hex digits, dashes left out. 0 or -errno. */
static int id_file_read(const char *path, char text[ID_TEXT_LEN])
{
    FILE *file = fopen(path, "re");
    unsigned len = 0;
    bool zero = true;
    int c;

    if (!file)
        return -errno;
    while ((c = fgetc(file)) != EOF && c != '\n' && len < ID_TEXT_LEN - 1) {
        if (c == '-')
            continue;
        if (!isxdigit(c))
            break;
        zero = zero && c == '0';
        text[len++] = (char)tolower(c);
    }
    fclose(file);
    text[len] = '\0';
    /* Empty or "uninitialized" in images before their first boot. */
    return len == 32 && !zero ? 0 : -EINVAL;
}

static uint64_t id_hash(const char *text)
{
    unsigned char hash[crypto_generichash_BYTES_MIN];
    uint64_t id = 0;
    unsigned i;

    /* Cannot fail: all lengths are constants within the allowed range. */
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)text,
                       strlen(text), hash_label, sizeof(hash_label) - 1);
    for (i = 0; i < sizeof(id); i++)
        id = id << 8 | hash[i];
    return id ? id : 1; /* 0 stands for no node */
}

static int id_override_parse(const char *text, uint64_t *id_p)
{
    size_t i;

    for (i = 0; text[i]; i++) {
        if (!isxdigit((unsigned char)text[i]))
            break;
    }
    if (text[i] || i != 16 || !strtoull(text, NULL, 16)) {
        mesh_error("MESH_NODE_ID is '%s': 16 hex digits, not all 0, are "
                   "needed",
                   text);
        return -EINVAL;
    }
    *id_p = strtoull(text, NULL, 16);
    return 0;
}

static void boot_id_warn(int rc)
{
    static int warned;

    if (__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
        return;
    mesh_warn("%s holds no machine id (%s): this node's id is taken from its "
              "boot id and changes with each boot; run "
              "systemd-machine-id-setup or set MESH_NODE_ID",
              MACHINE_ID_FILE, strerror(-rc));
}

static int node_id(uint64_t *id_p)
{
    const char *override = getenv("MESH_NODE_ID");
    char text[ID_TEXT_LEN];
    int rc, boot_rc;

    if (override && override[0])
        return id_override_parse(override, id_p);
    rc = id_file_read(MACHINE_ID_FILE, text);
    if (rc) {
        boot_rc = id_file_read(BOOT_ID_FILE, text);
        if (boot_rc) {
            mesh_error("no node id: %s: %s; %s: %s; set MESH_NODE_ID",
                       MACHINE_ID_FILE, strerror(-rc), BOOT_ID_FILE,
                       strerror(-boot_rc));
            return boot_rc;
        }
        boot_id_warn(rc);
    }
    *id_p = id_hash(text);
    return 0;
}

int mesh_node_self(struct mesh_node *node_p)
{
    struct mesh_node node = {0};
    char name[256];
    int rc;

    rc = node_id(&node.id);
    if (rc)
        return rc;
    /* POSIX does not promise the terminating zero for a cut name. */
    if (gethostname(name, sizeof(name) - 1))
        name[0] = '\0';
    name[sizeof(name) - 1] = '\0';
    if (name[0])
        snprintf(node.name, sizeof(node.name), "%.*s",
                 (int)sizeof(node.name) - 1, name);
    else
        snprintf(node.name, sizeof(node.name), "node-%016llx",
                 (unsigned long long)node.id);
    *node_p = node;
    return 0;
}
