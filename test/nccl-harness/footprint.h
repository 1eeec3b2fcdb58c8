/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footprint: what this process has: memory, mappings, open files.
 *
 * Threads: no state of its own.
 */
#ifndef HARNESS_FOOTPRINT_H
#define HARNESS_FOOTPRINT_H

/* So many on a link touch all of its buffers in the first quarter. */
#define FOOTPRINT_MESSAGES 100000

struct footprint {
    unsigned long resident_kb, mappings, files;
};

/* Entries of a directory, "." and ".." too; 0 where it cannot be read. */
unsigned footprint_entries(const char *path);

void footprint_take(struct footprint *footprint_p);
/* End the process where there are more mappings and files than there were, or
 * by so much more memory. */
void footprint_check_kernel(const struct footprint *early,
                            const struct footprint *now);
void footprint_check_memory(const struct footprint *early,
                            const struct footprint *now,
                            unsigned long growth_kb);
/* After so many of what. */
void footprint_print(const struct footprint *footprint, unsigned rank,
                     unsigned count, const char *what);

#endif
