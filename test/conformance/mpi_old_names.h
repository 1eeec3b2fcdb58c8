/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that MPICH's tests still use and MPI 3.0 removed, by those that replace
 * them; for the compiler's -include.
 */
#ifndef MPI_OLD_NAMES_H
#define MPI_OLD_NAMES_H

#include <mpi.h>

#undef MPI_Type_hindexed
#undef MPI_Type_hvector
#undef MPI_Type_struct
#define MPI_Type_hindexed MPI_Type_create_hindexed
#define MPI_Type_hvector  MPI_Type_create_hvector
#define MPI_Type_struct   MPI_Type_create_struct

#endif
