/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmdl_mesh: the PMIx component that lets mpirun's ranks find hook_mesh.
 *
 * Debian's PMIx 5 and later have a file of settings that names the directory
 * of PMIx's own components.  The setting has the same name in Open MPI, and
 * mpirun hands it to the ranks as theirs: they look for components where PMIx
 * has its, and no longer where hook_mesh is.  So mpirun gets Open MPI's own
 * default as a value of higher rank, unless the user has set one; and since
 * mpirun in its turn would hand that to PMIx, PMIx gets its directory in the
 * same way.
 *
 * PMIx opens this component early in mpirun, the only place where it does
 * anything.  It never becomes a programming model, which pmdl is for.  To turn
 * it off: PMIX_MCA_pmdl=^mesh.
 *
 * Threads: PMIx calls it from the thread that initializes it, before mpirun
 * has others.
 */
#include "src/include/pmix_config.h"

#include "pmix_common.h"
#include "src/mca/pmdl/pmdl.h"

#include <stdlib.h>

static int pmdl_mesh_open(void);

extern pmix_pmdl_base_component_t pmix_mca_pmdl_mesh_component
    __attribute__((visibility("default")));

pmix_pmdl_base_component_t pmix_mca_pmdl_mesh_component = {
    PMIX_PMDL_BASE_VERSION_1_0_0,
    .pmix_mca_component_name = "mesh",
    PMIX_MCA_BASE_MAKE_VERSION(component, PMIX_MAJOR_VERSION,
                               PMIX_MINOR_VERSION, PMIX_RELEASE_VERSION),
    .pmix_mca_open_component = pmdl_mesh_open,
};

static int pmdl_mesh_open(void)
{
    /* A rank: it has the variables already. */
    if (getenv("PMIX_NAMESPACE") != NULL)
        return PMIX_ERR_NOT_AVAILABLE;
    setenv("OMPI_MCA_mca_base_component_path", "SYSTEM_DEFAULT:USER_DEFAULT",
           0);
    setenv("PMIX_MCA_mca_base_component_path", MESH_PMIX_COMPONENT_DIR, 0);
    /* What a component says that is not to be used, and no error. */
    return PMIX_ERR_NOT_AVAILABLE;
}
