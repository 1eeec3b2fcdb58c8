/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer software: the UCX and NCCL that programs get here. */
#include "meshctl/doctor.h"
#include "meshctl/library.h"
#include "uct/mesh/ucx_minors.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NCCL_FIRST 19 /* of NCCL 2 */
#define NCCL_LAST  32

static const unsigned ucx_minors[] = {
#define MINOR(minor, symbol) minor,
    UCT_MESH_UCX_MINORS(MINOR)
#undef MINOR
};
#define UCX_FIRST (ucx_minors[0])
#define UCX_LAST  (ucx_minors[sizeof(ucx_minors) / sizeof(ucx_minors[0]) - 1])

/* Reading ------------------------------------------------------------------ */

/* In the directory "ucx" beside the library. */
static bool module_is_there(const char *root, const char *library)
{
    char path[MESH_DOCTOR_PATH_LEN], full[2 * MESH_DOCTOR_PATH_LEN];

    snprintf(path, sizeof(path), "%s", library);
    snprintf(full, sizeof(full), "%s%s/ucx/libuct_mesh.so.0", root,
             dirname(path));
    return access(full, R_OK) == 0;
}

static void library_read(const char *root, const char *name, bool is_nccl,
                         struct mesh_doctor_library *library)
{
    if (mesh_library_find(root, name, library->path, sizeof(library->path)) < 0)
        return;
    if (!mesh_library_version(root, library->path, is_nccl, &library->major,
                              &library->minor))
        library->major = library->minor = 0;
}

void mesh_doctor_software_read(const char *root,
                               struct mesh_doctor_software *software_p)
{
    *software_p = (struct mesh_doctor_software){0};
    library_read(root, "libuct.so.0", false, &software_p->ucx);
    software_p->ucx_has_mesh = software_p->ucx.path[0] != '\0' &&
                               module_is_there(root, software_p->ucx.path);
    library_read(root, "libnccl.so.2", true, &software_p->nccl);
    mesh_library_find(root, "libnccl-net-mesh.so", software_p->plugin.path,
                      sizeof(software_p->plugin.path));
}

/* Checks ------------------------------------------------------------------- */

void mesh_check_ucx_version(const struct mesh_doctor *doctor,
                            struct mesh_findings *findings)
{
    const struct mesh_doctor_library *ucx = &doctor->software.ucx;

    if (ucx->path[0] == '\0') {
        mesh_finding_add(findings, MESH_SEVERITY_NOTE, "libuct.so.0",
                         "The dynamic linker finds no UCX: MPI cannot use the "
                         "mesh here. A UCX of one's own (HPC-X, conda) may "
                         "still be found by its job.");
        mesh_finding_fix(findings, "apt install libucx0 openmpi-bin");
        return;
    }
    if (ucx->major == 1 && ucx->minor >= UCX_FIRST && ucx->minor <= UCX_LAST)
        return;
    mesh_finding_add(findings, MESH_SEVERITY_RED, ucx->path,
                     "This UCX is older than 1.%u: mesh_rc, made for UCX 1.%u "
                     "to 1.%u, cannot be loaded into it.",
                     UCX_FIRST, UCX_FIRST, UCX_LAST);
    mesh_finding_fix(findings, "Install UCX 1.%u to 1.%u: apt install libucx0",
                     UCX_FIRST, UCX_LAST);
}

void mesh_check_transport_missing(const struct mesh_doctor *doctor,
                                  struct mesh_findings *findings)
{
    const struct mesh_doctor_software *software = &doctor->software;
    char path[MESH_DOCTOR_PATH_LEN];

    if (software->ucx.path[0] == '\0' || software->ucx_has_mesh)
        return;
    snprintf(path, sizeof(path), "%s", software->ucx.path);
    mesh_finding_add(
        findings, MESH_SEVERITY_WARNING, "libuct_mesh.so.0",
        "mesh_rc is not where this UCX has its transports (%s/ucx).",
        dirname(path));
    mesh_finding_fix(findings,
                     "apt install libuct-mesh openmpi-mesh-hook, or "
                     "./configure --with-ucx-moduledir=%s/ucx && make install",
                     path);
}

void mesh_check_nccl_version(const struct mesh_doctor *doctor,
                             struct mesh_findings *findings)
{
    const struct mesh_doctor_library *nccl = &doctor->software.nccl;

    if (nccl->path[0] == '\0' || nccl->major == 0)
        return; /* torch brings its own */
    if (nccl->major == 2 && nccl->minor >= NCCL_FIRST &&
        nccl->minor <= NCCL_LAST)
        return;
    mesh_finding_add(findings,
                     nccl->major == 2 && nccl->minor > NCCL_LAST
                         ? MESH_SEVERITY_WARNING
                         : MESH_SEVERITY_RED,
                     nccl->path,
                     "This is NCCL %u.%u; the plugin is made for NCCL 2.%u to "
                     "2.%u.",
                     nccl->major, nccl->minor, NCCL_FIRST, NCCL_LAST);
    mesh_finding_fix(findings, "Install one of those: apt install libnccl2, or "
                               "pip install nvidia-nccl-cu12");
}

void mesh_check_plugin_missing(const struct mesh_doctor *doctor,
                               struct mesh_findings *findings)
{
    const struct mesh_doctor_software *software = &doctor->software;

    if (software->nccl.path[0] == '\0' || software->plugin.path[0] != '\0')
        return;
    mesh_finding_add(findings, MESH_SEVERITY_WARNING, "libnccl-net-mesh.so",
                     "There is an NCCL (%s), but the dynamic linker does not "
                     "find the plugin.",
                     software->nccl.path);
    mesh_finding_fix(findings, "apt install libnccl-net-mesh; ldconfig");
}
