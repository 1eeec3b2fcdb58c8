/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook_mesh: the Open MPI component that makes a stock Open MPI use mesh_rc.
 *
 * UCX before 1.22 loads only the transports it was built with, and Open MPI's
 * UCX components turn themselves off unless they know a transport by name.
 * This component closes both gaps in a process where a UCX component was
 * selected, before that component opens:
 *
 * - It loads libuct_mesh.so.0, unless it is there already (preloaded).
 * - It appends mesh_rc to opal_common_ucx_tls, keeping what is in the default
 *   list.  A list that the user has set stays as it is.
 * - opal_common_ucx_devices compares names of PCI drivers, and only decides
 *   whether pml ucx ranks above ob1.  It is irrelevant where pml=ucx was asked
 *   for.  Where the pml is left to priorities, it becomes "any" if UCX_TLS
 *   names mesh_rc: virtual devices such as Soft-RoCE have no driver to match.
 *   Again a value that the user has set stays.
 *
 * Whether a UCX component was selected is not guessed: this component has
 * Open MPI register the components of pml and osc, as it would shortly after
 * anyway, and looks whether the variable opal_common_ucx_tls exists then.  So
 * a process without pml or osc ucx loads no UCX library on account of this
 * component, nor does ompi_info, which registers components without opening
 * them.  The early registration holds a reference of each framework, given
 * back when MPI_Init ends.
 *
 * One build serves Open MPI 4.1 to 6.0: what it uses is the same in all of
 * them.  It is linked with libmpi only, since libopen-pal, which libmpi brings
 * along, changes its name between them.
 *
 * Any failure leaves the job running without mesh_rc.  To turn the component
 * off: --mca hook ^mesh.  To see what it does: --mca hook_base_verbose 10.
 *
 * Threads: Open MPI calls it from the thread that runs MPI_Init or
 * MPI_Finalize, never concurrently.
 */
#include "ompi_config.h"

#include "ompi/constants.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "opal/mca/base/mca_base_framework.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOOK_MESH_TRANSPORT "mesh_rc"
#define HOOK_MESH_SONAME    "libuct_mesh.so.0"

/* Declared here, since their own headers want those of other projects. */
extern mca_base_framework_t ompi_pml_base_framework, ompi_osc_base_framework;

/* opal_output_verbose() is a function in Open MPI 4 only. */
#define hook_mesh_verbose(level, ...)                                     \
    do {                                                                  \
        int hook_mesh_output = ompi_hook_base_framework.framework_output; \
                                                                          \
        if (opal_output_get_verbosity(hook_mesh_output) >= (level))       \
            opal_output(hook_mesh_output, "hook:mesh: " __VA_ARGS__);     \
    } while (0)

static int hook_mesh_register(void);
static int hook_mesh_open(void);
static int hook_mesh_close(void);
static void hook_mesh_init_end(int argc, char **argv, int requested,
                               int *provided);

extern ompi_hook_base_component_t mca_hook_mesh_component
    __attribute__((visibility("default")));

ompi_hook_base_component_t mca_hook_mesh_component = {
    .hookm_version =
        {
            OMPI_HOOK_BASE_VERSION_1_0_0,
            .mca_component_name = "mesh",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION,
                                  OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_register_component_params = hook_mesh_register,
            .mca_open_component = hook_mesh_open,
            .mca_close_component = hook_mesh_close,
        },
    .hookm_data.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT,
    .hookm_mpi_init_bottom = hook_mesh_init_end,
    .hookm_mpi_init_error = hook_mesh_init_end,
};

/* What Open MPI 6 looks up; those before it take the component itself. */
extern const mca_base_component_t *mca_hook_mesh_component_ptr
    __attribute__((visibility("default")));
const mca_base_component_t *mca_hook_mesh_component_ptr =
    &mca_hook_mesh_component.hookm_version;

/* The frameworks that have a UCX component. */
static mca_base_framework_t *const hook_mesh_frameworks[] = {
    &ompi_pml_base_framework,
    &ompi_osc_base_framework,
};
#define HOOK_MESH_FRAMEWORK_COUNT \
    (sizeof(hook_mesh_frameworks) / sizeof(hook_mesh_frameworks[0]))

static bool hook_mesh_held[HOOK_MESH_FRAMEWORK_COUNT];

/* Owned by the variable system once it is registered. */
static char *hook_mesh_library;

static int hook_mesh_register(void)
{
    int index;

    hook_mesh_library = MESH_UCX_MODULE_DIR "/" HOOK_MESH_SONAME;
    index = mca_base_component_var_register(
        &mca_hook_mesh_component.hookm_version, "library",
        "Path of the UCX transport mesh_rc, loaded before UCX is initialized",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3,
        MCA_BASE_VAR_SCOPE_LOCAL, &hook_mesh_library);
    return index < 0 ? index : OMPI_SUCCESS;
}

static void hook_mesh_hold_frameworks(void)
{
    unsigned i;

    for (i = 0; i < HOOK_MESH_FRAMEWORK_COUNT; i++) {
        /* A failure comes up again, with Open MPI's own message, when the
         * framework is opened. */
        mca_base_framework_register(hook_mesh_frameworks[i],
                                    MCA_BASE_REGISTER_DEFAULT);
        hook_mesh_held[i] = true;
    }
}

static void hook_mesh_release_frameworks(void)
{
    unsigned i;

    for (i = 0; i < HOOK_MESH_FRAMEWORK_COUNT; i++) {
        if (hook_mesh_held[i]) {
            hook_mesh_held[i] = false;
            mca_base_framework_close(hook_mesh_frameworks[i]);
        }
    }
}

/* Is name an element of the comma separated list? */
static bool hook_mesh_list_has(const char *list, const char *name)
{
    size_t length = strlen(name);

    while (list != NULL && *list != '\0') {
        size_t item = strcspn(list, ",");

        if (item == length && strncmp(list, name, length) == 0)
            return true;
        list += item;
        list += *list == ',';
    }
    return false;
}

/* One warning per node, not per rank; ranks without mpirun count as first. */
static void hook_mesh_warn_load(const char *reason)
{
    const char *local_rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

    if (local_rank != NULL && strcmp(local_rank, "0") != 0)
        return;
    opal_output(0,
                "hook:mesh: the UCX transport " HOOK_MESH_TRANSPORT
                " is not available to this job: %s. Install %s, set"
                " OMPI_MCA_hook_mesh_library to its path, or turn this off"
                " with --mca hook ^mesh.",
                reason, HOOK_MESH_SONAME);
}

/* Returns whether the transport is in the process. */
static bool hook_mesh_load(void)
{
    /* NOLOAD also matches a library preloaded from elsewhere: by soname. */
    if (dlopen(HOOK_MESH_SONAME, RTLD_NOW | RTLD_NOLOAD) != NULL) {
        hook_mesh_verbose(10, "%s is loaded already", HOOK_MESH_SONAME);
        return true;
    }
    /* Never closed: UCX keeps pointers into the transport. */
    if (dlopen(hook_mesh_library, RTLD_NOW | RTLD_LOCAL) == NULL) {
        hook_mesh_warn_load(dlerror());
        return false;
    }
    hook_mesh_verbose(10, "loaded %s", hook_mesh_library);
    return true;
}

/* The variable opal_common_ucx_<name>; NULL: not registered. */
static const char *hook_mesh_var(const char *name, int *index_p,
                                 mca_base_var_source_t *source_p)
{
    char **value = NULL;

    *index_p = mca_base_var_find("opal", "opal_common", "ucx", name);
    if (*index_p < 0 || mca_base_var_get_value(*index_p, &value, source_p,
                                               NULL) != OPAL_SUCCESS)
        return NULL;
    return *value;
}

static void hook_mesh_var_set(int index, const char *name, const char *value)
{
    /* The origin stays "default", so that nothing takes it for the user's. */
    int rc = mca_base_var_set_value(index, value, strlen(value) + 1,
                                    MCA_BASE_VAR_SOURCE_DEFAULT, NULL);

    if (rc == OPAL_SUCCESS)
        hook_mesh_verbose(10, "opal_common_ucx_%s is now %s", name, value);
    else
        hook_mesh_verbose(1, "opal_common_ucx_%s cannot be set: error %d", name,
                          rc);
}

static void hook_mesh_allow_transport(int index, const char *list,
                                      mca_base_var_source_t source)
{
    char *longer;

    if (hook_mesh_list_has(list, HOOK_MESH_TRANSPORT))
        return;
    if (source != MCA_BASE_VAR_SOURCE_DEFAULT) {
        hook_mesh_verbose(10,
                          "opal_common_ucx_tls=%s was set by the user and"
                          " stays as it is",
                          list);
        return;
    }
    if (asprintf(&longer, "%s,%s", list, HOOK_MESH_TRANSPORT) < 0)
        return;
    hook_mesh_var_set(index, "tls", longer);
    free(longer);
}

static void hook_mesh_allow_devices(void)
{
    const char *pml = ompi_pml_base_framework.framework_selection;
    mca_base_var_source_t source;
    const char *value;
    int index;

    if (hook_mesh_list_has(pml, "ucx") ||
        !hook_mesh_list_has(getenv("UCX_TLS"), HOOK_MESH_TRANSPORT))
        return;
    value = hook_mesh_var("devices", &index, &source);
    if (value != NULL && source == MCA_BASE_VAR_SOURCE_DEFAULT)
        hook_mesh_var_set(index, "devices", "any");
}

/* Never fails: the job can always go on without the transport. */
static int hook_mesh_open(void)
{
    mca_base_var_source_t source;
    const char *tls;
    int index;

    hook_mesh_hold_frameworks();
    tls = hook_mesh_var("tls", &index, &source);
    if (tls == NULL) {
        hook_mesh_verbose(10, "no UCX component is selected, nothing to do");
        return OMPI_SUCCESS;
    }
    if (hook_mesh_load()) {
        hook_mesh_allow_transport(index, tls, source);
        hook_mesh_allow_devices();
    }
    return OMPI_SUCCESS;
}

static int hook_mesh_close(void)
{
    hook_mesh_release_frameworks();
    return OMPI_SUCCESS;
}

/* MPI has opened the frameworks itself by now, or has failed for good. */
static void hook_mesh_init_end(int argc, char **argv, int requested,
                               int *provided)
{
    (void)argc;
    (void)argv;
    (void)requested;
    (void)provided;
    hook_mesh_release_frameworks();
}
