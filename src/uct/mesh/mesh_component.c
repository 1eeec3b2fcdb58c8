/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loading: finds out which UCX the library is in and registers with it, once.
 */
#include "mesh_backend.h"
#include "mesh_md.h"

#include "common/log.h"

#include <dlfcn.h>
#include <string.h>

/*
 * Exported symbols that came, or went, with a minor version; the newest one
 * that is there tells the minor. Those of one minor only come with a flag.
 */
static const struct {
    unsigned minor;
    const char *symbol;
} marks[] = {
    {22, "uct_ep_put_sgl_zcopy"},
    {21, "uct_md_mem_elem_pack"},
    {20, "uct_iface_mem_element_pack"},
    {19, "uct_rkey_unpack_v2"},
    {18, "uct_iface_fill_info_str_buf"},
    {17, "uct_md_base_md_query"},
    {16, "uct_rkey_compare"},
    {15, "uct_base_iface_is_reachable_v2"},
    {14, "uct_md_query_v2"},
    {13, "uct_ep_invalidate"},
};

static unsigned find_ucx_minor(void)
{
    for (unsigned i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (dlsym(RTLD_DEFAULT, marks[i].symbol) != NULL)
            return marks[i].minor;
    }
    return 0;
}

static void write_log(void *arg, enum mesh_log_level level, const char *file,
                      unsigned line, const char *text)
{
    static const ucs_log_level_t levels[] = {
        [MESH_LOG_ERROR] = UCS_LOG_LEVEL_ERROR,
        [MESH_LOG_WARN] = UCS_LOG_LEVEL_WARN,
        [MESH_LOG_INFO] = UCS_LOG_LEVEL_INFO,
        [MESH_LOG_DEBUG] = UCS_LOG_LEVEL_DEBUG,
    };

    (void)arg;
    ucs_log_dispatch(file, line, "mesh", levels[level],
                     &ucs_global_opts.log_component, "%s", text);
}

static enum mesh_log_level ucx_log_level(void)
{
    ucs_log_level_t level = ucs_global_opts.log_component.log_level;

    if (level >= UCS_LOG_LEVEL_DEBUG)
        return MESH_LOG_DEBUG;
    if (level >= UCS_LOG_LEVEL_INFO)
        return MESH_LOG_INFO;
    return level >= UCS_LOG_LEVEL_WARN ? MESH_LOG_WARN : MESH_LOG_ERROR;
}

/* A second copy in the process would register the same name again, and UCX
 * would never come back from walking its lists. */
static bool already_registered(void)
{
    const uct_component_t *component;

    ucs_list_for_each (component, &uct_components_list, list) {
        if (strcmp(component->name, UCT_MESH_COMPONENT_NAME) == 0)
            return true;
    }
    return false;
}

__attribute__((constructor)) static void load(void)
{
    struct mesh_log_sink sink = {.write = write_log};
    unsigned minor = find_ucx_minor();

    sink.level = ucx_log_level();
    mesh_log_sink_set(&sink);
    if (minor != UCX_ABI_MINOR) {
        mesh_warn("mesh_rc is made for UCX 1.%u, this is UCX 1.%u%s: not "
                  "loaded, other transports go on",
                  UCX_ABI_MINOR, minor, minor == 0 ? " (unknown)" : "");
        return;
    }
    if (already_registered()) {
        mesh_debug("mesh is registered already");
        return;
    }
    uct_mesh_backend_register();
}
