/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/library.h"

#include "uct/mesh/ucx_minors.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_FILE "/etc/ld.so.cache"

/* A whole file, to be unmapped. */
struct mapping {
    const char *data;
    size_t len;
};

static int mapping_open(const char *root, const char *path,
                        struct mapping *mapping)
{
    char full[PATH_MAX];
    struct stat status;
    void *data = MAP_FAILED;
    int fd;

    snprintf(full, sizeof(full), "%s%s", root, path);
    fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size > 0)
        data =
            mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return -EIO;
    *mapping = (struct mapping){data, (size_t)status.st_size};
    return 0;
}

static void mapping_close(const struct mapping *mapping)
{
    munmap((void *)(uintptr_t)mapping->data, mapping->len);
}

/* Finding ------------------------------------------------------------------ */

static bool is_there(const char *root, const char *path)
{
    char full[PATH_MAX];

    snprintf(full, sizeof(full), "%s%s", root, path);
    return access(full, R_OK) == 0;
}

/* The cache holds paths as strings with a zero at both ends. */
int mesh_library_cache_find(const char *data, size_t len, const char *name,
                            char *path, size_t room)
{
    char wanted[NAME_MAX + 2];
    size_t wanted_len;
    const char *at = data;

    wanted_len =
        (size_t)snprintf(wanted, sizeof(wanted), "/%.*s", NAME_MAX, name) + 1;
    while ((at = memmem(at, len - (size_t)(at - data), wanted, wanted_len)) !=
           NULL) {
        const char *begin = at;

        while (begin > data && begin[-1] != '\0')
            begin--;
        if (begin[0] == '/' && (size_t)(at - begin) + wanted_len <= room) {
            memcpy(path, begin, (size_t)(at - begin) + wanted_len);
            return 0;
        }
        at++;
    }
    return -ENOENT;
}

static bool path_find(const char *root, const char *name, char *path,
                      size_t room)
{
    const char *directories = getenv("LD_LIBRARY_PATH");

    while (directories != NULL && *directories != '\0') {
        size_t len = strcspn(directories, ":;");

        if (len > 0 &&
            (size_t)snprintf(path, room, "%.*s/%s", (int)len, directories,
                             name) < room &&
            is_there(root, path))
            return true;
        directories += len + (directories[len] != '\0');
    }
    return false;
}

int mesh_library_find(const char *root, const char *name, char *path,
                      size_t room)
{
    struct mapping cache;
    int ret;

    if (path_find(root, name, path, room))
        return 0;
    ret = mapping_open(root, CACHE_FILE, &cache);
    if (ret == 0) {
        ret = mesh_library_cache_find(cache.data, cache.len, name, path, room);
        mapping_close(&cache);
    }
    if (ret == 0 && is_there(root, path))
        return 0;
    path[0] = '\0';
    return -ENOENT;
}

/* Versions ----------------------------------------------------------------- */

static const struct {
    unsigned minor;
    const char *symbol;
} ucx_symbols[] = {
#define SYMBOL(minor, symbol) {minor, symbol},
    UCT_MESH_UCX_MINORS(SYMBOL)
#undef SYMBOL
};
#define UCX_SYMBOL_COUNT (sizeof(ucx_symbols) / sizeof(ucx_symbols[0]))

static bool has_word(const char *data, size_t len, const char *word)
{
    char wanted[64] = "";
    size_t word_len = strlen(word);

    /* With a zero before and behind, as in a table of strings. */
    memcpy(wanted + 1, word, word_len);
    return memmem(data, len, wanted, word_len + 2) != NULL;
}

bool mesh_library_ucx_minor(const char *data, size_t len, unsigned *minor_p)
{
    for (size_t i = UCX_SYMBOL_COUNT; i > 0; i--) {
        if (has_word(data, len, ucx_symbols[i - 1].symbol)) {
            *minor_p = ucx_symbols[i - 1].minor;
            return true;
        }
    }
    return false;
}

bool mesh_library_nccl_version(const char *data, size_t len, unsigned *major_p,
                               unsigned *minor_p)
{
    static const char text[] = "NCCL version ";
    const char *at = data, *end = data + len;

    while ((at = memmem(at, (size_t)(end - at), text, sizeof(text) - 1)) !=
           NULL) {
        char number[16];

        at += sizeof(text) - 1;
        if ((size_t)(end - at) < sizeof(number))
            return false;
        memcpy(number, at, sizeof(number) - 1);
        number[sizeof(number) - 1] = '\0';
        if (sscanf(number, "%u.%u", major_p, minor_p) == 2)
            return true;
    }
    return false;
}

bool mesh_library_version(const char *root, const char *path, bool is_nccl,
                          unsigned *major_p, unsigned *minor_p)
{
    struct mapping file;
    bool known;

    if (mapping_open(root, path, &file) < 0)
        return false;
    if (is_nccl) {
        known =
            mesh_library_nccl_version(file.data, file.len, major_p, minor_p);
    } else {
        *major_p = 1;
        known = mesh_library_ucx_minor(file.data, file.len, minor_p);
    }
    mapping_close(&file);
    return known;
}
