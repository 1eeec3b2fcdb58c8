/* SPDX-License-Identifier: BSD-3-Clause */
#include "side.h"

#include "net.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_US 2000
#define SETUP_S 180
#define BARRIER_S                                               \
    1200 /* a rank without comms waits for all the others' work \
          */

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

static void wait_file(const char *path, void *data, size_t len,
                      unsigned seconds)
{
    for (unsigned i = 0; i < seconds * (1000000 / WAIT_US); i++) {
        if (read_file(path, data, len))
            return;
        usleep(WAIT_US);
    }
    fail("no %s within %u s", path, seconds);
}

void side_get(void *data, size_t len, const char *format, ...)
{
    char path[512];
    va_list args;

    va_start(args, format);
    path_of(path, sizeof(path), format, args);
    va_end(args);
    wait_file(path, data, len, SETUP_S);
}

void side_barrier(const char *name, unsigned rank, unsigned ranks)
{
    char path[512], byte = 'x';

    side_put(&byte, 1, "%s.%u", name, rank);
    for (unsigned i = 0; i < ranks; i++) {
        snprintf(path, sizeof(path), "%s/%s.%u", directory, name, i);
        wait_file(path, &byte, 1, BARRIER_S);
    }
}
