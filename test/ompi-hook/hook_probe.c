/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook_probe: an MPI process that says which UCX libraries are in it.
 */
#include <link.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int library_print(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)size;
    (void)arg;
    if (slash != NULL && strncmp(slash, "/libuc", 6) == 0)
        printf("mapped: %s\n", slash + 1);
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    dl_iterate_phdr(library_print, NULL);
    MPI_Finalize();
    return 0;
}
