/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loading: finds out which UCX the library is in and registers with it, once.
 */
#include "mesh_backend.h"

#include "common/log.h"

#include <dlfcn.h>
#include <stdio.h>

/* The newest symbol that is there tells the minor. */
static const struct {
    const struct uct_mesh_backend *backend;
    const char *symbol;
} marks[] = {
#define MARK(minor, symbol) {&UCT_MESH_BACKEND_NAME(minor), symbol},
    UCT_MESH_UCX_MINORS(MARK)};
#define MARK_COUNT (sizeof(marks) / sizeof(marks[0]))
#define NEWEST     (marks[MARK_COUNT - 1].backend)

const struct uct_mesh_backend *uct_mesh_backend;

static const struct uct_mesh_backend *find_by_symbol(void)
{
    for (unsigned i = MARK_COUNT; i > 0; i--) {
        if (dlsym(RTLD_DEFAULT, marks[i - 1].symbol) != NULL)
            return marks[i - 1].backend;
    }
    return NULL;
}

/*
 * The minor by UCX's own word, which only its protocol library has; 0: it is
 * not there.  It is loaded if need be, but only where UCX may be newer than
 * anything known here: in all others its symbols are enough.
 */
static unsigned ask_minor(bool load)
{
    void (*get_version)(unsigned *major_p, unsigned *minor_p,
                        unsigned *release_p);
    unsigned major = 0, minor = 0, release = 0;
    void *library = dlopen("libucp.so.0", RTLD_LAZY | (load ? 0 : RTLD_NOLOAD));

    if (library == NULL)
        return 0;
    *(void **)&get_version = dlsym(library, "ucp_get_version");
    if (get_version != NULL)
        get_version(&major, &minor, &release);
    dlclose(library);
    return minor;
}

/* NULL, and a reason, if this is no UCX that the library can work with. */
static const struct uct_mesh_backend *find_backend(char *reason, size_t size)
{
    const struct uct_mesh_backend *backend = find_by_symbol();
    unsigned minor;

    if (backend == NULL) {
        snprintf(reason, size, "this UCX is older than 1.%u",
                 marks[0].backend->minor);
        return NULL;
    }
    minor = ask_minor(backend == NEWEST);
    if (minor != 0 && minor != backend->minor) {
        snprintf(reason, size,
                 "this is UCX 1.%u, but what it exports is that of 1.%u", minor,
                 backend->minor);
        return NULL;
    }
    if (uct_base_iface_t_class.size != sizeof(uct_base_iface_t) ||
        uct_base_ep_t_class.size != sizeof(uct_base_ep_t)) {
        snprintf(reason, size,
                 "this UCX 1.%u was built with statistics (--enable-stats)",
                 backend->minor);
        return NULL;
    }
    return backend;
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

__attribute__((constructor)) static void load(void)
{
    struct mesh_log_sink sink = {.write = write_log};
    char reason[128];

    sink.level = ucx_log_level();
    mesh_log_sink_set(&sink);
    uct_mesh_backend = find_backend(reason, sizeof(reason));
    if (uct_mesh_backend == NULL) {
        mesh_warn("%s: mesh_rc, made for UCX 1.%u to 1.%u without statistics, "
                  "is not loaded; other transports go on",
                  reason, marks[0].backend->minor, NEWEST->minor);
        return;
    }
    /* A second copy in the process would register the same name again, and UCX
     * would never come back from walking its lists. */
    if (uct_mesh_backend->registered()) {
        mesh_debug("mesh is registered already");
        return;
    }
    if (uct_mesh_backend->attach() != 0)
        mesh_warn("out of memory: mesh_rc is not loaded");
}
