/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor: what keeps this node from its mesh, from the bottom to the top.
 *
 * Facts are read first, all of them, in bounded time.  Checks only judge them:
 * they are pure, one for each code, listed in one table (doctor_table.c).  A
 * layer ends at its first check with a red finding; layers that rest upon a
 * red one are left out, and it is said which checks that were.
 *
 * Each file doctor_*.c has the checks of a layer; what reads its facts is
 * beside it, or in a file of its own.
 *
 * Threads: one owner.
 */
#ifndef MESH_DOCTOR_H
#define MESH_DOCTOR_H

#include "meshctl/bandwidth.h"
#include "meshctl/cabling.h"
#include "meshctl/findings.h"
#include "meshctl/firewall.h"
#include "common/pcie.h"
#include "meshctl/setting_list.h"
#include "lane.h"
#include "neigh.h"

#define MESH_DOCTOR_MAX_DEVICES 64
#define MESH_DOCTOR_PATH_LEN    256
#define MESH_DOCTOR_VALUE_LEN   64

/* An RDMA device that libibverbs lists. */
struct mesh_doctor_device {
    char name[MESH_LANE_NAME_LEN];
    int error;                /* why it cannot be opened: errno, 0: it can */
    unsigned lanes;           /* of it in this network namespace */
    char netdev[IF_NAMESIZE]; /* that the kernel names, in any namespace */
};

struct mesh_doctor_devices {
    unsigned count;
    struct mesh_doctor_device list[MESH_DOCTOR_MAX_DEVICES];
    unsigned in_kernel; /* entries of /sys/class/infiniband */
    bool verbs_files;   /* /dev/infiniband has uverbs files */
    bool container;
    unsigned adapter_count; /* whose RDMA driver is not there */
    struct {
        char bus_id[32];
        char driver[32]; /* of its netdev */
        const char *rdma_driver;
    } adapters[8];
};

struct mesh_doctor_lane {
    struct mesh_lane lane;
    char state[32];      /* of the port, as the kernel says it; "": unknown */
    char phys_state[32]; /* likewise */
    bool admin_up;       /* the netdev is set up */
    /* Of the netdev, with or without a GID, fe80 left out. */
    unsigned addr_count;
    struct mesh_addr addrs[MESH_LANE_MAX_ADDRS];
    bool stored[MESH_LANE_MAX_ADDRS]; /* in a file that outlives a restart */
    struct mesh_pcie pcie;
    int arp_ignore; /* as it counts, -1: unknown */
};

/* What the kernel knows of the far end of a link. */
struct mesh_doctor_neighbour {
    const struct mesh_lane_info *local; /* borrowed, of the map */
    const char *node;                   /* borrowed, of the map */
    const struct mesh_lane_info *far;   /* borrowed */
    struct mesh_addr addr;
    char state[MESH_NEIGH_TEXT_LEN];
};

struct mesh_doctor_map {
    int error; /* -errno of asking meshd, 0: the map is there */
    struct mesh_snapshot *snapshot;           /* owned; NULL: no map */
    struct mesh_cabling *cabling;             /* owned */
    unsigned self;                            /* place in the snapshot */
    struct mesh_doctor_neighbour *neighbours; /* owned; of this node's links */
    unsigned neighbour_count;
};

/* What went over a link of this node. */
struct mesh_doctor_bandwidth {
    const struct mesh_lane_info *near, *far; /* borrowed, of the map */
    const char *node;                        /* borrowed; of far */
    uint16_t port;                           /* called there, 0: none is told */
    int error; /* -errno, see bandwidth.h; 0: it was measured */
    char reason[MESH_QP_ERROR_LEN];
    struct mesh_bandwidth_result result;
    uint64_t link_mbps; /* of the slower end, 0: unknown */
    uint64_t pcie_mbps; /* likewise */
};

/* Who holds a limit down. */
struct mesh_doctor_limits {
    uint64_t memlock; /* bytes, UINT64_MAX: none */
    bool may_lock;    /* CAP_IPC_LOCK */
    char unit[64];    /* "slurmd.service" that this process runs in; "" */
    char file[MESH_DOCTOR_PATH_LEN]; /* that sets it at login; "" */
    uint64_t cma_total, cma_free;    /* bytes, 0: there is none */
};

struct mesh_doctor_library {
    char path[MESH_DOCTOR_PATH_LEN]; /* "": not found */
    unsigned major, minor;           /* 0.0: none that is known */
};

struct mesh_doctor_software {
    struct mesh_doctor_library ucx;
    bool ucx_has_mesh; /* where it looks for transports */
    struct mesh_doctor_library nccl;
    struct mesh_doctor_library plugin; /* libnccl-net-mesh.so, no version */
};

struct mesh_doctor_ports {
    uint16_t meshd;               /* UDP and TCP */
    uint16_t oob_first, oob_last; /* TCP; any: those that the kernel gives */
    bool oob_any;
};

struct mesh_doctor {
    struct mesh_doctor_devices devices;
    struct mesh_doctor_lane *lanes; /* owned */
    unsigned lane_count;
    bool stores_hidden; /* some files of addresses may not be read */
    struct mesh_doctor_map map;
    struct mesh_doctor_ports ports;
    struct mesh_firewall firewall;
    struct mesh_doctor_limits limits;
    struct mesh_doctor_software software;
    struct mesh_setting_list settings;
    bool cluster;                            /* compare nodes */
    bool probe;                              /* look at the bandwidth */
    struct mesh_doctor_bandwidth *bandwidth; /* owned */
    unsigned bandwidth_count;
};

/* Reading --------------------------------------------------------------------
 * root: "" or a directory that stands for / in tests. */
void mesh_doctor_devices_read(const char *root,
                              struct mesh_doctor_devices *devices_p);
/* Also counts the devices' lanes. -errno. */
int mesh_doctor_lanes_read(const char *root, struct mesh_doctor *doctor);
/* -ENOMEM; that meshd does not answer is a fact. */
int mesh_doctor_map_read(uint32_t timeout_ms, struct mesh_doctor_map *map_p);
void mesh_doctor_map_release(struct mesh_doctor_map *map);
/* Takes the map; a line on progress for each link. -ENOMEM. */
int mesh_doctor_bandwidth_read(struct mesh_doctor *doctor, FILE *progress);
void mesh_doctor_ports_read(const char *root, struct mesh_doctor_ports *ports);
void mesh_doctor_limits_read(const char *root,
                             struct mesh_doctor_limits *limits_p);
void mesh_doctor_software_read(const char *root,
                               struct mesh_doctor_software *software_p);

/* The value of a name in "name=value name=value" that a node tells; "" where it
 * is not. */
const char *mesh_doctor_about(const struct mesh_map_record *record,
                              const char *name,
                              char value[MESH_DOCTOR_VALUE_LEN]);

/* What was measured, a line for each link. */
void mesh_doctor_bandwidth_print(const struct mesh_doctor *doctor,
                                 FILE *stream);
json_t *mesh_doctor_bandwidth_json(const struct mesh_doctor *doctor);

/* Checks ---------------------------------------------------------------------
 * Each adds what it finds; nothing is good news. */
typedef void mesh_doctor_check_fn(const struct mesh_doctor *doctor,
                                  struct mesh_findings *findings);
mesh_doctor_check_fn mesh_check_no_device, mesh_check_device_closed,
    mesh_check_device_netns, mesh_check_port_down, mesh_check_no_netdev,
    mesh_check_pcie_speed, mesh_check_no_address, mesh_check_no_gid,
    mesh_check_address_not_persistent, mesh_check_mtu_low, mesh_check_no_meshd,
    mesh_check_no_link, mesh_check_address_uncabled, mesh_check_mtu_differs,
    mesh_check_speed_differs, mesh_check_address_unreached,
    mesh_check_twin_unused, mesh_check_twin_arp, mesh_check_twins_share_subnet,
    mesh_check_subnet_reused, mesh_check_all_links_same_subnet,
    mesh_check_neighbour_failed, mesh_check_firewall_meshd,
    mesh_check_firewall_oob, mesh_check_memlock, mesh_check_cma,
    mesh_check_ucx_version, mesh_check_transport_missing,
    mesh_check_nccl_version, mesh_check_plugin_missing,
    mesh_check_empty_setting, mesh_check_ucx_tls, mesh_check_ucx_devices,
    mesh_check_nccl_net, mesh_check_nccl_plugin, mesh_check_ompi_pml,
    mesh_check_ompi_tls, mesh_check_ompi_devices, mesh_check_leftover,
    mesh_check_cluster_versions, mesh_check_cluster_settings,
    mesh_check_cluster_mtu, mesh_check_cluster_relay,
    mesh_check_bandwidth_unsupported, mesh_check_bandwidth_busy,
    mesh_check_bandwidth_failed, mesh_check_bandwidth_low;

struct mesh_doctor_check {
    enum mesh_layer layer;
    const char *code;
    mesh_doctor_check_fn *check;
};
extern const struct mesh_doctor_check mesh_doctor_checks[];
extern const unsigned mesh_doctor_check_count;

/* What came of each check, in the table's order. */
enum mesh_doctor_verdict {
    MESH_DOCTOR_PASSED,
    MESH_DOCTOR_FOUND,
    MESH_DOCTOR_LEFT_OUT, /* below a red one */
    MESH_DOCTOR_NOT_ASKED,
};
void mesh_doctor_judge(const struct mesh_doctor *doctor,
                       struct mesh_findings *findings,
                       enum mesh_doctor_verdict *verdicts);

#endif
