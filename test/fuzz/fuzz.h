/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz: what a fuzz target, test/fuzz/fuzz_*.c, defines.
 *
 * Purpose: one parser fed with arbitrary bytes, by runner.c as part of the
 * tests or by libFuzzer, whose function name this is (clang -fsanitize=fuzzer).
 * Threads: one.  Ownership: data is borrowed for the call.
 */
#ifndef MESH_FUZZ_H
#define MESH_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Aborts when a property does not hold; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the seed of this index, a valid input of at most max bytes, and
 * returns its length; 0: there are no more. */
size_t fuzz_seed(unsigned index, uint8_t *data, size_t max);

#endif
