/* SPDX-License-Identifier: BSD-3-Clause */
#include "key_file.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LABEL "mesh shared secret"

_Static_assert(MESH_WIRE_AUTH_KEY_LEN >= crypto_generichash_BYTES_MIN &&
                   MESH_WIRE_AUTH_KEY_LEN <= crypto_generichash_BYTES_MAX,
               "key length");

static int owner_check(const char *path, int fd)
{
    struct stat info;
    int error;

    if (fstat(fd, &info) != 0) {
        error = -errno;
        mesh_error("key file %s cannot be looked at: %s", path,
                   strerror(-error));
        return error;
    }
    if (!S_ISREG(info.st_mode)) {
        mesh_error("key file %s is no regular file", path);
        return -EINVAL;
    }
    if ((info.st_mode & 077) != 0) {
        mesh_error("key file %s: others than its owner have access (mode "
                   "%03o): chmod 600 it, and make a new secret if it was "
                   "seen",
                   path, (unsigned)info.st_mode & 0777);
        return -EPERM;
    }
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
        mesh_error("key file %s belongs to user %lu: it must belong to root "
                   "or to user %lu, who runs meshd",
                   path, (unsigned long)info.st_uid, (unsigned long)geteuid());
        return -EPERM;
    }
    return 0;
}

/* Up to size bytes; more are an error of the caller's to see. */
static int bytes_read(int fd, uint8_t *data, size_t size, size_t *len_p)
{
    size_t len = 0;

    while (len < size) {
        ssize_t got = read(fd, data + len, size - len);

        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            break;
        len += got > 0 ? (size_t)got : 0;
    }
    *len_p = len;
    return 0;
}

static int key_make(const char *path, const uint8_t *data, size_t len,
                    struct mesh_wire_key *key_p)
{
    bool too_long = len > MESH_KEY_FILE_MAX;

    while (len > 0 && isspace(data[len - 1]))
        len--;
    if (too_long || len < MESH_KEY_FILE_MIN) {
        mesh_error("key file %s: %s than %d bytes: `head -c 32 /dev/urandom | "
                   "base64` makes a good one",
                   path, too_long ? "more" : "less",
                   too_long ? MESH_KEY_FILE_MAX : MESH_KEY_FILE_MIN);
        return -EINVAL;
    }
    crypto_generichash(key_p->bytes, sizeof(key_p->bytes), data, len,
                       (const uint8_t *)LABEL, sizeof(LABEL) - 1);
    return 0;
}

int mesh_key_file_read(const char *path, struct mesh_wire_key *key_p)
{
    uint8_t data[MESH_KEY_FILE_MAX + 1];
    size_t len = 0;
    int error, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0) {
        error = -errno;
        mesh_error("key file %s cannot be opened: %s", path, strerror(-error));
        return error;
    }
    error = owner_check(path, fd);
    if (error == 0) {
        error = bytes_read(fd, data, sizeof(data), &len);
        if (error != 0)
            mesh_error("key file %s cannot be read: %s", path,
                       strerror(-error));
    }
    close(fd);
    if (error == 0)
        error = key_make(path, data, len, key_p);
    sodium_memzero(data, sizeof(data));
    return error;
}
