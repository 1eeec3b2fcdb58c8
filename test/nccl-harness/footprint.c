/* SPDX-License-Identifier: BSD-3-Clause */
#include "footprint.h"

#include "net.h"

#include <dirent.h>
#include <stdio.h>

/* For what other threads take meanwhile. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define GROWTH_MAPPINGS 10000 /* the sanitizer's own */
#else
#define GROWTH_MAPPINGS 4
#endif
#define GROWTH_FILES 2

unsigned footprint_entries(const char *path)
{
    DIR *dir = opendir(path);
    unsigned count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

static unsigned long resident_kb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long kb = 0;
    char line[256];

    while (file != NULL && kb == 0 && fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "VmRSS: %lu kB", &kb);
    if (kb == 0)
        fail("/proc/self/status does not tell what is in memory");
    fclose(file);
    return kb;
}

static unsigned long mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned long count = 0;
    int c;

    while (file != NULL && (c = getc(file)) != EOF)
        count += c == '\n';
    if (count == 0)
        fail("/proc/self/maps cannot be read");
    fclose(file);
    return count;
}

static void check_one(const char *what, unsigned long early, unsigned long now,
                      unsigned long growth)
{
    if (now > early + growth)
        fail("%s grew from %lu to %lu", what, early, now);
}

void footprint_take(struct footprint *footprint_p)
{
    footprint_p->resident_kb = resident_kb();
    footprint_p->mappings = mappings();
    footprint_p->files = footprint_entries("/proc/self/fd");
}

void footprint_check_kernel(const struct footprint *early,
                            const struct footprint *now)
{
    check_one("mappings", early->mappings, now->mappings, GROWTH_MAPPINGS);
    check_one("open files", early->files, now->files, GROWTH_FILES);
}

void footprint_check_memory(const struct footprint *early,
                            const struct footprint *now,
                            unsigned long growth_kb)
{
    check_one("memory in kB", early->resident_kb, now->resident_kb, growth_kb);
}

void footprint_print(const struct footprint *footprint, unsigned rank,
                     unsigned count, const char *what)
{
    printf("rank %u: after %u %s %lu kB resident, %lu mappings, %lu files\n",
           rank, count, what, footprint->resident_kb, footprint->mappings,
           footprint->files - 3);
}
