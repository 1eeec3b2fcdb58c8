/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer limits: memory that may be locked, and memory that devices need in
 * one piece. */
#include "meshctl/doctor.h"
#include "common/textfile.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB            (UINT64_C(1) << 20)
#define MEMLOCK_RED    (64 * MIB)   /* less than a few queue pairs' buffers */
#define MEMLOCK_ENOUGH (4096 * MIB) /* what large jobs register */
#define CMA_LOW_PART   16           /* of all */
#define KIB            1024

/* Reading ------------------------------------------------------------------ */

/* The unit of "0::/system.slice/slurmd.service/job_1". */
static void unit_read(const char *root, char *unit, size_t room)
{
    char *text, *end, *begin;

    if (mesh_textfile_read(root, "/proc/self/cgroup", &text) < 0)
        return;
    end = strstr(text, ".service");
    /* A session's own manager is no unit to set limits in. */
    if (end != NULL && strstr(text, "/user@") == NULL) {
        begin = end;
        while (begin > text && begin[-1] != '/' && begin[-1] != ':')
            begin--;
        snprintf(unit, room, "%.*s", (int)(end + strlen(".service") - begin),
                 begin);
    }
    free(text);
}

struct memlock_file {
    const char *root;
    char *path; /* borrowed */
    size_t room;
};

static void limits_file_look(void *arg, const char *path)
{
    struct memlock_file *file = arg;
    char *text, *save = NULL;

    if (mesh_textfile_read(file->root, path, &text) < 0)
        return;
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        line[strcspn(line, "#")] = '\0';
        if (strstr(line, "memlock") != NULL)
            snprintf(file->path, file->room, "%s", path);
    }
    free(text);
}

static uint64_t meminfo_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at != NULL ? strtoull(at + strlen(name), NULL, 10) * KIB : 0;
}

static bool has_capability(const char *root, unsigned capability)
{
    char *text;
    const char *at;
    uint64_t set = 0;

    if (mesh_textfile_read(root, "/proc/self/status", &text) < 0)
        return false;
    at = strstr(text, "\nCapEff:");
    if (at != NULL)
        set = strtoull(at + strlen("\nCapEff:"), NULL, 16);
    free(text);
    return (set >> capability & 1) != 0;
}

void mesh_doctor_limits_read(const char *root,
                             struct mesh_doctor_limits *limits_p)
{
    struct rlimit limit = {0};
    struct memlock_file file = {
        .root = root,
        .path = limits_p->file,
        .room = sizeof(limits_p->file),
    };
    char *text;

    *limits_p = (struct mesh_doctor_limits){0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    limits_p->memlock =
        limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    limits_p->may_lock = has_capability(root, CAP_IPC_LOCK);
    unit_read(root, limits_p->unit, sizeof(limits_p->unit));
    limits_file_look(&file, "/etc/security/limits.conf");
    mesh_textfile_visit(root, "/etc/security/limits.d", ".conf",
                        limits_file_look, &file);
    if (mesh_textfile_read(root, "/proc/meminfo", &text) < 0)
        return;
    limits_p->cma_total = meminfo_of(text, "CmaTotal:");
    limits_p->cma_free = meminfo_of(text, "CmaFree:");
    free(text);
}

/* Checks ------------------------------------------------------------------- */

void mesh_check_memlock(const struct mesh_doctor *doctor,
                        struct mesh_findings *findings)
{
    const struct mesh_doctor_limits *limits = &doctor->limits;

    if (limits->may_lock || limits->memlock >= MEMLOCK_ENOUGH)
        return;
    mesh_finding_add(findings,
                     limits->memlock < MEMLOCK_RED ? MESH_SEVERITY_RED
                                                   : MESH_SEVERITY_WARNING,
                     limits->unit,
                     "Processes may lock %" PRIu64 " KiB of memory (ulimit "
                     "-l). RDMA locks all that it sends from and receives "
                     "into.",
                     limits->memlock / KIB);
    if (doctor->devices.container)
        mesh_finding_fix(findings, "Start the container with --ulimit "
                                   "memlock=-1 --cap-add IPC_LOCK");
    else if (limits->unit[0] != '\0')
        mesh_finding_fix(findings,
                         "systemctl edit %s: [Service] LimitMEMLOCK=infinity; "
                         "then systemctl restart %s",
                         limits->unit, limits->unit);
    else
        mesh_finding_fix(findings,
                         "%s%s: the line \"* - memlock unlimited\"; then log "
                         "in anew. Jobs that a daemon starts take the limit of "
                         "its unit: LimitMEMLOCK=infinity",
                         limits->file[0] != '\0' ? limits->file
                                                 : "/etc/security/limits.d/",
                         limits->file[0] != '\0' ? "" : "60-mesh.conf");
}

void mesh_check_cma(const struct mesh_doctor *doctor,
                    struct mesh_findings *findings)
{
    const struct mesh_doctor_limits *limits = &doctor->limits;

    if (limits->cma_total == 0 ||
        limits->cma_free >= limits->cma_total / CMA_LOW_PART)
        return;
    mesh_finding_add(findings, MESH_SEVERITY_WARNING, "/proc/meminfo",
                     "Of %" PRIu64 " MiB that the kernel keeps for devices in "
                     "one piece (CMA), %" PRIu64
                     " MiB are free: creating queue "
                     "pairs can fail with \"Cannot allocate memory\".",
                     limits->cma_total / MIB, limits->cma_free / MIB);
    mesh_finding_fix(findings,
                     "echo 1 >/proc/sys/vm/compact_memory, and end what holds "
                     "it; for good a larger cma= among the kernel's parameters "
                     "(cma=%" PRIu64 "M)",
                     2 * limits->cma_total / MIB);
}
