/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer settings: what is left over from other networks and keeps UCX, NCCL
 * or Open MPI from the mesh. */
#include "meshctl/doctor.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TRANSPORT "mesh_rc"

static const struct mesh_setting_entry *find(const struct mesh_doctor *doctor,
                                             const char *name)
{
    const struct mesh_setting_entry *entry =
        mesh_setting_list_find(&doctor->settings, name);

    return entry != NULL && entry->value[0] != '\0' ? entry : NULL;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Is word one of the comma separated list? An item may say "net:word". */
static bool list_has(const char *list, const char *word)
{
    size_t len = strlen(word);

    while (*list != '\0') {
        size_t item = strcspn(list, ",");

        if (item == len && strncmp(list, word, len) == 0)
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}

/* How to be rid of it. */
static void unset_fix(const struct mesh_setting_entry *entry,
                      const char *instead, struct mesh_findings *findings)
{
    if (entry->origin == MESH_ORIGIN_ENVIRONMENT)
        mesh_finding_fix(findings,
                         "unset %s (it is set in ~/.bashrc, /etc/environment, "
                         "/etc/profile.d or the job's script)%s",
                         entry->name, instead);
    else
        mesh_finding_fix(findings, "Take it out of %s%s", entry->source,
                         instead);
}

static void report(const struct mesh_setting_entry *entry,
                   enum mesh_severity severity, const char *what,
                   const char *instead, struct mesh_findings *findings)
{
    mesh_finding_add(findings, severity, entry->name, "%s=%s of %s %s.",
                     entry->name, entry->value, entry->source, what);
    unset_fix(entry, instead, findings);
}

void mesh_check_empty_setting(const struct mesh_doctor *doctor,
                              struct mesh_findings *findings)
{
    const struct mesh_setting_list *list = &doctor->settings;

    for (unsigned i = 0; i < list->count; i++) {
        const struct mesh_setting_entry *entry = &list->list[i];

        if (entry->value[0] != '\0' || starts_with(entry->name, "OMPI_") ||
            mesh_setting_list_find(list, entry->name) != entry)
            continue;
        mesh_finding_add(findings, MESH_SEVERITY_WARNING, entry->name,
                         "%s is set to nothing by %s. The mesh's own settings "
                         "take that for unset; others take it for 0.",
                         entry->name, entry->source);
        unset_fix(entry, "", findings);
    }
}

/* UCX ---------------------------------------------------------------------- */

static bool tls_allows_mesh(const char *value)
{
    static const char *const names[] = {TRANSPORT, "mesh", "all",
                                        ("\\" TRANSPORT)};
    bool listed = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        listed |= list_has(value[0] == '^' ? value + 1 : value, names[i]);
    return listed != (value[0] == '^');
}

void mesh_check_ucx_tls(const struct mesh_doctor *doctor,
                        struct mesh_findings *findings)
{
    const struct mesh_setting_entry *entry = find(doctor, "UCX_TLS");

    if (entry != NULL && !tls_allows_mesh(entry->value))
        report(entry, MESH_SEVERITY_RED, "leaves " TRANSPORT " out",
               ", or set UCX_TLS=" TRANSPORT ",self,sm", findings);
}

static bool lane_is_named(const struct mesh_lane *lane, const char *list)
{
    char name[MESH_LANE_NAME_LEN + 8];

    snprintf(name, sizeof(name), "%s:%u", lane->ibdev, lane->port);
    return list_has(list, name);
}

static bool names_relay(const char *list)
{
    for (const char *at = list; at != NULL;
         at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        if (starts_with(at, "relay"))
            return true;
    }
    return false;
}

void mesh_check_ucx_devices(const struct mesh_doctor *doctor,
                            struct mesh_findings *findings)
{
    const struct mesh_setting_entry *entry = find(doctor, "UCX_NET_DEVICES");
    unsigned named = 0, up = 0;

    if (entry == NULL || list_has(entry->value, "all") ||
        entry->value[0] == '^')
        return;
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const struct mesh_lane *lane = &doctor->lanes[i].lane;

        up += lane->up;
        named += lane->up && lane_is_named(lane, entry->value);
    }
    if (named == 0 && up > 0)
        report(entry, MESH_SEVERITY_RED,
               "names none of this node's lanes that are up (names are those "
               "of `ucx_info -d`, such as mlx5_0:1)",
               ", and choose lanes with UCX_MESH_LANES", findings);
    else if (named < up || !names_relay(entry->value))
        report(entry, MESH_SEVERITY_WARNING,
               named < up ? "leaves lanes of this node out"
                          : "leaves the relay devices (relay0) out",
               ", and choose lanes with UCX_MESH_LANES", findings);
}

/* NCCL --------------------------------------------------------------------- */

void mesh_check_nccl_net(const struct mesh_doctor *doctor,
                         struct mesh_findings *findings)
{
    const struct mesh_setting_entry *entry = find(doctor, "NCCL_NET");

    if (entry != NULL && strcasecmp(entry->value, "mesh") != 0)
        report(entry, MESH_SEVERITY_RED, "makes NCCL pass over the plugin",
               ", or set NCCL_NET=Mesh", findings);
}

void mesh_check_nccl_plugin(const struct mesh_doctor *doctor,
                            struct mesh_findings *findings)
{
    const struct mesh_setting_entry *entry = find(doctor, "NCCL_NET_PLUGIN");

    if (entry != NULL && strstr(entry->value, "mesh") == NULL)
        report(entry, MESH_SEVERITY_RED,
               strcmp(entry->value, "none") == 0
                   ? "keeps NCCL from loading any plugin"
                   : "makes NCCL load another plugin",
               ", or set NCCL_NET_PLUGIN=mesh", findings);
}

/* Open MPI ----------------------------------------------------------------- */

/* A file of the distribution is overruled on the command line; that is what
 * everybody does, and no fault. */
static enum mesh_severity severity_of(const struct mesh_setting_entry *entry)
{
    return entry->origin == MESH_ORIGIN_SYSTEM_FILE ? MESH_SEVERITY_NOTE
                                                    : MESH_SEVERITY_WARNING;
}

void mesh_check_ompi_pml(const struct mesh_doctor *doctor,
                         struct mesh_findings *findings)
{
    const struct mesh_setting_entry *entry = find(doctor, "OMPI_MCA_pml");
    bool excludes = entry != NULL && entry->value[0] == '^';

    if (entry == NULL ||
        list_has(excludes ? entry->value + 1 : entry->value, "ucx") != excludes)
        return;
    mesh_finding_add(findings, severity_of(entry), "pml",
                     "pml = %s of %s turns UCX off: Open MPI says nothing and "
                     "uses another transport.",
                     entry->value, entry->source);
    mesh_finding_fix(findings, "mpirun --mca pml ucx, or pml = ucx in %s",
                     entry->origin == MESH_ORIGIN_ENVIRONMENT
                         ? "~/.openmpi/mca-params.conf"
                         : entry->source);
}

void mesh_check_ompi_tls(const struct mesh_doctor *doctor,
                         struct mesh_findings *findings)
{
    const struct mesh_setting_entry *entry =
        find(doctor, "OMPI_MCA_opal_common_ucx_tls");

    if (entry != NULL && !list_has(entry->value, "any") &&
        !tls_allows_mesh(entry->value))
        report(entry, MESH_SEVERITY_RED,
               "is a gate of Open MPI that " TRANSPORT
               " does not pass: what is set by hand is not changed",
               ", or add " TRANSPORT " to it", findings);
}

void mesh_check_ompi_devices(const struct mesh_doctor *doctor,
                             struct mesh_findings *findings)
{
    const struct mesh_setting_entry *entry =
        find(doctor, "OMPI_MCA_opal_common_ucx_devices");
    bool fits = false;

    if (entry == NULL || list_has(entry->value, "any") ||
        doctor->lane_count == 0)
        return;
    /* Items are device names, or their beginnings with a star. */
    for (unsigned i = 0; i < doctor->lane_count; i++) {
        const char *item = entry->value, *name = doctor->lanes[i].lane.ibdev;

        while (*item != '\0') {
            size_t len = strcspn(item, ",");
            size_t star = len > 0 && item[len - 1] == '*' ? len - 1 : len;

            fits |= strncmp(item, name, star) == 0 &&
                    (star < len || name[len] == '\0');
            item += len + (item[len] == ',');
        }
    }
    if (!fits)
        report(entry, MESH_SEVERITY_RED,
               "is a gate of Open MPI that none of this node's devices passes",
               ", or set it to any", findings);
}

/* The rest ----------------------------------------------------------------- */

/* Of what is left of other networks: without effect on the mesh. */
void mesh_check_leftover(const struct mesh_doctor *doctor,
                         struct mesh_findings *findings)
{
    static const char *const starts[] = {"UCX_IB_",   "UCX_RC_",  "UCX_UD_",
                                         "UCX_DC_",   "NCCL_IB_", "NCCL_ALGO",
                                         "NCCL_PROTO"};
    const struct mesh_setting_list *list = &doctor->settings;

    for (unsigned i = 0; i < list->count; i++) {
        const struct mesh_setting_entry *entry = &list->list[i];
        bool is_leftover = false, forces;

        for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++)
            is_leftover |= starts_with(entry->name, starts[k]);
        if (!is_leftover || entry->value[0] == '\0' ||
            mesh_setting_list_find(list, entry->name) != entry)
            continue;
        forces = !starts_with(entry->name, "NCCL_IB_") &&
                 starts_with(entry->name, "NCCL_");
        report(entry, MESH_SEVERITY_NOTE,
               forces ? "forces an algorithm or protocol that need not suit "
                        "this mesh"
                      : "is of another transport and has no effect here",
               "", findings);
    }
}
