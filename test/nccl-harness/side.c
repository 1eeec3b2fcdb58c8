/* SPDX-License-Identifier: BSD-3-Clause */
#include "side.h"

#include "net.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_US   2000
#define WAITS_MAX (180 * 1000000 / WAIT_US)

static const char *directory;

void side_init(const char *path)
{
    directory = path;
}

static void path_of(char *path, size_t size, const char *format, va_list args)
{
    int at = snprintf(path, size, "%s/", directory);

    vsnprintf(path + at, size - (size_t)at, format, args);
}

void side_put(const void *data, size_t len, const char *format, ...)
{
    char path[512], draft[528];
    va_list args;
    FILE *file;

    va_start(args, format);
    path_of(path, sizeof(path), format, args);
    va_end(args);
    snprintf(draft, sizeof(draft), "%s.%d", path, (int)gettid());
    file = fopen(draft, "w");
    if (file == NULL || fwrite(data, 1, len, file) != len ||
        fclose(file) != 0 || rename(draft, path) != 0)
        fail("cannot write %s", path);
}

static bool read_file(const char *path, void *data, size_t len)
{
    FILE *file = fopen(path, "r");
    size_t done;

    if (file == NULL)
        return false;
    done = fread(data, 1, len, file);
    fclose(file);
    if (done != len)
        fail("%s has %zu bytes, not %zu", path, done, len);
    return true;
}

void side_get(void *data, size_t len, const char *format, ...)
{
    char path[512];
    va_list args;

    va_start(args, format);
    path_of(path, sizeof(path), format, args);
    va_end(args);
    for (unsigned i = 0; i < WAITS_MAX; i++) {
        if (read_file(path, data, len))
            return;
        usleep(WAIT_US);
    }
    fail("no %s within three minutes", path);
}

void side_barrier(const char *name, unsigned rank, unsigned ranks)
{
    char byte = 'x';

    side_put(&byte, 1, "%s.%u", name, rank);
    for (unsigned i = 0; i < ranks; i++)
        side_get(&byte, 1, "%s.%u", name, i);
}
