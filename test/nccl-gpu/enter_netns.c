/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into MPI ranks: after MPI_Init() each rank enters the network
 * namespace MESH_NETNS_PREFIX<rank> and takes a node id and host id of its own.
 * mpirun's connections are open by then and stay; what NCCL opens later is in
 * the namespace, as if each rank were on another node.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

static void enter(void)
{
    const char *prefix = getenv("MESH_NETNS_PREFIX");
    char path[256], id[32];
    int rank, fd;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(id, sizeof(id), "%016x", 0x100 + rank);
    setenv("MESH_NODE_ID", id, 1);
    snprintf(id, sizeof(id), "node%d", rank);
    setenv("NCCL_HOSTID", id, 1);
    if (prefix == NULL)
        return;
    snprintf(path, sizeof(path), "/run/netns/%s%d", prefix, rank);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        give_up(path);
    close(fd);
}

int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);

    if (result == MPI_SUCCESS)
        enter();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);

    if (result == MPI_SUCCESS)
        enter();
    return result;
}
