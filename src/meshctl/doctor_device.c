/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer device: is there one, may it be used, is it of this namespace? */
#include "meshctl/doctor.h"
#include "common/textfile.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The RDMA drivers of network drivers. */
static const struct {
    const char *net, *rdma;
} driver_pairs[] = {
    {"mlx5_core", "mlx5_ib"}, {"mlx4_core", "mlx4_ib"}, {"bnxt_en", "bnxt_re"},
    {"ice", "irdma"},         {"i40e", "irdma"},        {"qede", "qedr"},
    {"ionic", "ionic_rdma"},  {"cxgb4", "iw_cxgb4"},
};

/* Reading ------------------------------------------------------------------ */

static const char *rdma_driver_of(const char *driver)
{
    for (size_t i = 0; i < sizeof(driver_pairs) / sizeof(driver_pairs[0]);
         i++) {
        if (strcmp(driver_pairs[i].net, driver) == 0)
            return driver_pairs[i].rdma;
    }
    return NULL;
}

static bool file_is_there(const char *root, const char *path)
{
    char full[PATH_MAX];

    snprintf(full, sizeof(full), "%s%s", root, path);
    return access(full, F_OK) == 0;
}

static unsigned entries_count(const char *root, const char *path,
                              const char *prefix)
{
    char full[PATH_MAX];
    struct dirent *entry;
    unsigned count = 0;
    DIR *dir;

    snprintf(full, sizeof(full), "%s%s", root, path);
    dir = opendir(full);
    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.' &&
                 strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return count;
}

static void adapter_read(const char *root, const char *bus_id,
                         struct mesh_doctor_devices *devices)
{
    char path[PATH_MAX], target[PATH_MAX];
    const char *driver, *rdma;
    ssize_t len;

    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/driver", root,
             bus_id);
    len = readlink(path, target, sizeof(target) - 1);
    if (len < 0)
        return;
    target[len] = '\0';
    driver = strrchr(target, '/') != NULL ? strrchr(target, '/') + 1 : target;
    rdma = rdma_driver_of(driver);
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/infiniband", bus_id);
    if (rdma == NULL || file_is_there(root, path) ||
        devices->adapter_count == 8)
        return;
    snprintf(devices->adapters[devices->adapter_count].bus_id,
             sizeof(devices->adapters[0].bus_id), "%.31s", bus_id);
    snprintf(devices->adapters[devices->adapter_count].driver,
             sizeof(devices->adapters[0].driver), "%.31s", driver);
    devices->adapters[devices->adapter_count++].rdma_driver = rdma;
}

static void adapters_read(const char *root, struct mesh_doctor_devices *devices)
{
    char full[PATH_MAX];
    struct dirent *entry;
    DIR *dir;

    snprintf(full, sizeof(full), "%s/sys/bus/pci/devices", root);
    dir = opendir(full);
    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.')
            adapter_read(root, entry->d_name, devices);
    }
    closedir(dir);
}

static void device_read(const char *root, struct ibv_device *device,
                        struct mesh_doctor_devices *devices)
{
    struct mesh_doctor_device *one = &devices->list[devices->count++];
    struct ibv_context *context;
    char path[PATH_MAX];

    snprintf(one->name, sizeof(one->name), "%s", ibv_get_device_name(device));
    errno = 0;
    context = ibv_open_device(device);
    if (context == NULL)
        one->error = errno != 0 ? errno : EIO;
    else
        ibv_close_device(context);
    snprintf(path, sizeof(path),
             "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", one->name);
    mesh_textfile_line(root, path, one->netdev, sizeof(one->netdev));
}

void mesh_doctor_devices_read(const char *root,
                              struct mesh_doctor_devices *devices_p)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    *devices_p = (struct mesh_doctor_devices){
        .in_kernel = entries_count(root, "/sys/class/infiniband", ""),
        .verbs_files = entries_count(root, "/dev/infiniband", "uverbs") > 0,
        .container = file_is_there(root, "/.dockerenv") ||
                     file_is_there(root, "/run/.containerenv") ||
                     file_is_there(root, "/run/systemd/container") ||
                     getenv("container") != NULL,
    };
    for (unsigned i = 0; list != NULL && list[i] != NULL &&
                         devices_p->count < MESH_DOCTOR_MAX_DEVICES;
         i++)
        device_read(root, list[i], devices_p);
    if (list != NULL)
        ibv_free_device_list(list);
    adapters_read(root, devices_p);
}

/* Checks ------------------------------------------------------------------- */

void mesh_check_no_device(const struct mesh_doctor *doctor,
                          struct mesh_findings *findings)
{
    const struct mesh_doctor_devices *devices = &doctor->devices;

    if (devices->count > 0 || devices->in_kernel > 0)
        return;
    if (devices->adapter_count > 0) {
        mesh_finding_add(
            findings, MESH_SEVERITY_RED, devices->adapters[0].bus_id,
            "The adapter has the network driver %s, but the RDMA "
            "driver %s is not loaded: this node has no RDMA "
            "device.",
            devices->adapters[0].driver, devices->adapters[0].rdma_driver);
        mesh_finding_fix(findings,
                         "modprobe %s; for each boot: echo %s "
                         ">/etc/modules-load.d/mesh.conf",
                         devices->adapters[0].rdma_driver,
                         devices->adapters[0].rdma_driver);
        return;
    }
    mesh_finding_add(findings, MESH_SEVERITY_RED, "",
                     "This node has no RDMA device, and no adapter whose RDMA "
                     "driver is missing.");
    mesh_finding_fix(findings,
                     "See `lspci -nn` for the adapter and install its driver. "
                     "Without one, Soft-RoCE makes a device of any netdev: "
                     "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev "
                     "NETDEV");
}

static void closed_fix(const struct mesh_doctor_devices *devices, int error,
                       struct mesh_findings *findings)
{
    if (devices->container)
        mesh_finding_fix(findings,
                         "Start the container with --device /dev/infiniband "
                         "--cap-add IPC_LOCK --ulimit memlock=-1 --network "
                         "host");
    else if (!devices->verbs_files)
        mesh_finding_fix(findings,
                         "modprobe ib_uverbs; for each boot: echo ib_uverbs "
                         ">/etc/modules-load.d/mesh.conf");
    else if (error == EACCES || error == EPERM)
        mesh_finding_fix(findings,
                         "chmod 666 /dev/infiniband/uverbs*, and for each boot "
                         "the udev rules of rdma-core: apt install rdma-core; "
                         "udevadm trigger");
    else
        mesh_finding_fix(findings,
                         "apt install ibverbs-providers, and see `dmesg` and "
                         "`ibv_devinfo`");
}

void mesh_check_device_closed(const struct mesh_doctor *doctor,
                              struct mesh_findings *findings)
{
    const struct mesh_doctor_devices *devices = &doctor->devices;
    unsigned closed = 0;

    if (devices->count == 0) {
        mesh_finding_add(findings, MESH_SEVERITY_RED, "/dev/infiniband",
                         "The kernel has %u RDMA devices, but libibverbs lists "
                         "none: %s.",
                         devices->in_kernel,
                         devices->verbs_files
                             ? "no provider serves them"
                             : "the files in /dev/infiniband are missing");
        closed_fix(devices, 0, findings);
        return;
    }
    for (unsigned i = 0; i < devices->count; i++)
        closed += devices->list[i].error != 0;
    for (unsigned i = 0; i < devices->count; i++) {
        const struct mesh_doctor_device *device = &devices->list[i];

        if (device->error == 0)
            continue;
        mesh_finding_add(findings,
                         closed == devices->count ? MESH_SEVERITY_RED
                                                  : MESH_SEVERITY_WARNING,
                         device->name, "The device cannot be opened: %s.",
                         strerror(device->error));
        closed_fix(devices, device->error, findings);
    }
}

void mesh_check_device_netns(const struct mesh_doctor *doctor,
                             struct mesh_findings *findings)
{
    const struct mesh_doctor_devices *devices = &doctor->devices;

    for (unsigned i = 0; i < devices->count; i++) {
        const struct mesh_doctor_device *device = &devices->list[i];

        if (device->error != 0 || device->lanes > 0)
            continue;
        mesh_finding_add(findings,
                         doctor->lane_count == 0 ? MESH_SEVERITY_RED
                                                 : MESH_SEVERITY_WARNING,
                         device->name,
                         "The device's netdev%s%s is in another network "
                         "namespace, so its GIDs cannot be used here.",
                         device->netdev[0] != '\0' ? " " : "", device->netdev);
        if (devices->container)
            mesh_finding_fix(findings,
                             "Start the container with --network host");
        else
            mesh_finding_fix(findings,
                             "Run in that namespace, or move the netdev to "
                             "this one: ip link set %s netns PID",
                             device->netdev[0] != '\0' ? device->netdev
                                                       : "NETDEV");
    }
}
