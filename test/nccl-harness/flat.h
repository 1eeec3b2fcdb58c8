/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flat: what this process has: memory, mappings, open files.
 *
 * Threads: no state of its own.
 */
#ifndef HARNESS_FLAT_H
#define HARNESS_FLAT_H

/* So many on a link touch all of its buffers in the first quarter. */
#define FLAT_MESSAGES 100000

struct flat {
    unsigned long resident_kb, mappings, files;
};

/* Entries of a directory, "." and ".." too; 0 where it cannot be read. */
unsigned flat_entries(const char *path);

void flat_take(struct flat *flat_p);
/* End the process where there are more mappings and files than there were, or
 * by so much more memory. */
void flat_check_kernel(const struct flat *early, const struct flat *now);
void flat_check_memory(const struct flat *early, const struct flat *now,
                       unsigned long growth_kb);
/* After so many of what. */
void flat_print(const struct flat *flat, unsigned rank, unsigned count,
                const char *what);

#endif
