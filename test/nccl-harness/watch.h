/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: do calls wait that must not?
 *
 * How long a call takes says little on a loaded machine.  So the program has
 * the C library's functions that can sleep in their place, and a call between
 * watch_start() and watch_stop() that comes to one of them, such that it would
 * sleep, ends the process.  What goes on to sleep in another way, as for a
 * lock, is measured: such a call fails only at HARNESS_LIMIT_MS.
 *
 * Threads: any; each is watched by itself.
 */
#ifndef HARNESS_WATCH_H
#define HARNESS_WATCH_H

/* Before the plugin is loaded. */
void watch_init(void);

/* what: static. */
void watch_start(const char *what);
void watch_stop(void);

/* Prints how long calls were that gave up the processor. */
void watch_report(int rank);

#endif
