/* SPDX-License-Identifier: BSD-3-Clause */
/* meshd: the process: its options, its log, its life with systemd. */
#include "clock.h"
#include "daemon.h"
#include "log.h"
#include "node_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "config.h"

/* Exit statuses. */
#define EXIT_USAGE  2
#define EXIT_SERVED 3 /* another meshd serves the node */

#define NS_PER_US       UINT64_C(1000)
#define REPETITIONS_MAX 64

/* Stops at SIGTERM and SIGINT, tells systemd that all is well. */
struct life {
    struct mesh_loop *loop; /* borrowed */
    struct mesh_loop_watch signals;
    struct mesh_loop_timer watchdog;
    uint64_t watchdog_ns; /* 0: none wanted */
};

/* The log ----------------------------------------------------------------- */

static bool log_to_journal;

/* Devices are looked at every few seconds, and what is wrong with one is said
 * each time: once is enough.  Only the thread of the loop looks. */
static bool is_repetition(const char *file, const char *text)
{
    static uint64_t said[REPETITIONS_MAX];
    static unsigned next;
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    const char *name = strrchr(file, '/');

    if (strncmp(name != NULL ? name + 1 : file, "lane.", 5) != 0 &&
        strncmp(name != NULL ? name + 1 : file, "lane_build.", 11) != 0)
        return false;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
    for (unsigned i = 0; i < REPETITIONS_MAX; i++) {
        if (said[i] == hash)
            return true;
    }
    said[next++ % REPETITIONS_MAX] = hash;
    return false;
}

static void log_line(void *arg, enum mesh_log_level level, const char *file,
                     unsigned line, const char *text)
{
    static const struct {
        const char *journal;
        const char *plain;
    } prefixes[] = {
        [MESH_LOG_ERROR] = {SD_ERR, "error: "},
        [MESH_LOG_WARN] = {SD_WARNING, "warning: "},
        [MESH_LOG_INFO] = {SD_INFO, ""},
        [MESH_LOG_DEBUG] = {SD_DEBUG, "debug: "},
    };

    (void)arg;
    (void)line;
    if (is_repetition(file, text))
        return;
    fprintf(stderr, "%s%s%s\n", log_to_journal ? "" : "meshd: ",
            log_to_journal ? prefixes[level].journal : prefixes[level].plain,
            text);
}

/* systemd names the file that it has made standard error, which may have been
 * replaced since. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat info;

    return stream != NULL &&
           sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &info) == 0 && info.st_dev == device &&
           info.st_ino == inode;
}

static void log_open(enum mesh_log_level level)
{
    const struct mesh_log_sink sink = {.write = log_line, .level = level};

    mesh_log_sink_set(&sink);
}

/* Away from the terminal or pipe of whoever started it, who may wait until
 * nobody holds that any more. */
static void log_detach(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int journal = sd_journal_stream_fd("meshd", LOG_INFO, true);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(journal >= 0 ? journal : null, STDERR_FILENO);
        close(null);
    }
    log_to_journal = journal >= 0;
    if (journal >= 0)
        close(journal);
    log_open(MESH_LOG_INFO);
}

/* Life -------------------------------------------------------------------- */

static void signals_ready(struct mesh_loop_watch *watch, uint32_t events)
{
    struct life *life = mesh_loop_owner(watch, struct life, signals);
    struct signalfd_siginfo info;

    (void)events;
    if (read(watch->fd, &info, sizeof(info)) != sizeof(info))
        return;
    mesh_info("stopping at signal %u of process %u", info.ssi_signo,
              info.ssi_pid);
    mesh_loop_stop(life->loop);
}

static void watchdog_fire(struct mesh_loop_timer *timer)
{
    struct life *life = mesh_loop_owner(timer, struct life, watchdog);

    sd_notify(0, "WATCHDOG=1");
    mesh_loop_timer_set(life->loop, timer,
                        mesh_clock_ns() + life->watchdog_ns / 3);
}

/* Before any thread, so that all have the mask. */
static int signals_open(int *fd_p)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -errno;
    *fd_p = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *fd_p >= 0 ? 0 : -errno;
}

static int life_begin(struct life *life, struct mesh_loop *loop, int signals_fd)
{
    uint64_t watchdog_us = 0;

    life->loop = loop;
    life->signals.fd = signals_fd;
    life->signals.ready = signals_ready;
    life->watchdog.fire = watchdog_fire;
    if (sd_watchdog_enabled(0, &watchdog_us) > 0)
        life->watchdog_ns = watchdog_us * NS_PER_US;
    if (life->watchdog_ns > 0)
        mesh_loop_timer_set(loop, &life->watchdog, 0);
    return mesh_loop_watch(loop, &life->signals, EPOLLIN);
}

/* A descriptor per client. */
static void files_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Tells the parent that it serves; ready_fd -1: has none. */
static void ready_tell(int ready_fd)
{
    sd_notify(0, "READY=1");
    if (ready_fd < 0)
        return;
    log_detach();
    if (write(ready_fd, "r", 1) != 1)
        mesh_info("nobody waits for this process");
    close(ready_fd);
}

static int serve(bool leave_when_idle, int ready_fd)
{
    struct mesh_daemon *daemon;
    struct life life = {0};
    int signals_fd = -1, error;

    files_raise();
    error = signals_open(&signals_fd);
    if (error != 0) {
        mesh_error("signals cannot be read: %s", strerror(-error));
        return EXIT_FAILURE;
    }
    error = mesh_daemon_create(leave_when_idle, &daemon);
    if (error != 0) {
        close(signals_fd);
        return error == -EADDRINUSE ? EXIT_SERVED : EXIT_FAILURE;
    }
    error = life_begin(&life, daemon->loop, signals_fd);
    if (error == 0) {
        ready_tell(ready_fd);
        error = mesh_daemon_run(daemon);
        sd_notify(0, "STOPPING=1");
    }
    mesh_loop_unwatch(daemon->loop, &life.signals);
    mesh_loop_timer_clear(daemon->loop, &life.watchdog);
    mesh_daemon_destroy(daemon);
    close(signals_fd);
    return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Waits until the child serves, or says how it ended. */
static int child_await(int ready_fd, pid_t child)
{
    char byte;
    int status;

    if (read(ready_fd, &byte, 1) == 1)
        return EXIT_SUCCESS;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return EXIT_FAILURE;
    return WEXITSTATUS(status);
}

/* The process that started this one may be bound to a processor, where it
 * works itself. */
static void processors_widen(void)
{
    cpu_set_t all;

    memset(&all, 0xff, sizeof(all));
    (void)sched_setaffinity(0, sizeof(all), &all);
}

/* In the background and in a session of its own. */
static int serve_detached(void)
{
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0 || (child = fork()) < 0) {
        mesh_error("no process in the background: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    if (child > 0) {
        close(ends[1]);
        return child_await(ends[0], child);
    }
    close(ends[0]);
    setsid();
    processors_widen();
    if (chdir("/") != 0)
        mesh_info("the working directory stays: %s", strerror(errno));
    return serve(true, ends[1]);
}

/* Options ----------------------------------------------------------------- */

static const struct option options[] = {
    {"auto", no_argument, NULL, 'a'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {"verbose", no_argument, NULL, 'v'},
    {0},
};

static void help_print(void)
{
    printf("usage: meshd [--auto] [--verbose]\n\n"
           "Finds out which lanes of RDMA devices are cabled to which lanes of "
           "other\nnodes, tells the processes of this node, and forwards for "
           "nodes that share\nno cable.\n\n"
           "  --auto     go to the background and leave when nobody needs it\n"
           "  --verbose  log more\n"
           "  --help     this text\n"
           "  --version  the version\n\n"
           "Exit status: 0 stopped or, with --auto, serving in the "
           "background; 1 an error;\n2 bad usage; 3 another meshd serves this "
           "node.\n\n"
           "Settings, from the environment or from %s, section [node]:\n\n",
           MESH_CONFIG_FILE);
    mesh_settings_print(mesh_node_settings_table, "MESH_", stdout);
    printf("In section [meshd]:\n\n");
    mesh_settings_print(mesh_daemon_settings_table, "MESH_", stdout);
    mesh_settings_print(mesh_relay_settings_table, "MESH_", stdout);
}

int main(int argc, char **argv)
{
    enum mesh_log_level level = MESH_LOG_INFO;
    bool detached = false;
    int option;

    while ((option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
        switch (option) {
        case 'a':
            detached = true;
            break;
        case 'v':
            level = MESH_LOG_DEBUG;
            break;
        case 'h':
            help_print();
            return EXIT_SUCCESS;
        case 'V':
            printf("meshd (%s) %s\n", PACKAGE_NAME, PACKAGE_VERSION);
            return EXIT_SUCCESS;
        default:
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "meshd: no argument is known: %s\n", argv[optind]);
        return EXIT_USAGE;
    }
    log_to_journal = stderr_is_journal();
    /* Before it is in the background, only trouble is of interest. */
    log_open(detached ? MESH_LOG_WARN : level);
    return detached ? serve_detached() : serve(false, -1);
}
