/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls by which programs read sysfs, taken over for the paths of the
 * software devices. Everything else goes to the C library.
 */
#include "swverbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX 4096

/* Declares `next`: the definition of a function behind this library's. */
#define NEXT(type, name) \
    static void *known;  \
    __typeof__(type) next = (__typeof__(type))(uintptr_t)next_find(&known, name)

static void *next_find(void **known, const char *name)
{
    void *f = __atomic_load_n(known, __ATOMIC_RELAXED);

    if (f == NULL) {
        f = dlsym(RTLD_NEXT, name);
        __atomic_store_n(known, f, __ATOMIC_RELAXED);
    }
    return f;
}

/*
 * Programs call these with no path, too. The C library declares that they do
 * not, from which a compiler would take that there is no need to look; it must
 * not know where the path comes from.
 */
static bool is_ours(const char *path)
{
    __asm__("" : "+r"(path));
    return path != NULL && (strncmp(path, "/sys/class/infiniband/", 22) == 0 ||
                            strncmp(path, "/dev/infiniband/uverbs", 22) == 0);
}

/* A descriptor on the text of the file, -1 where there is no such file. */
static int text_open(const char *path)
{
    char text[TEXT_MAX];
    int n = swv_sysfs_text(path, text, sizeof(text));
    int fd;

    if (n < 0) {
        errno = -n;
        return -1;
    }
    fd = memfd_create("sysfs", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    if (write(fd, text, (size_t)n) != n || lseek(fd, 0, SEEK_SET) != 0) {
        close(fd);
        errno = EIO;
        return -1;
    }
    return fd;
}

static mode_t open_mode(int flags, va_list ap)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

SWV_EXPORT int open(const char *path, int flags, ...)
{
    NEXT(int (*)(const char *, int, ...), "open");
    va_list ap;
    mode_t mode;

    if (is_ours(path))
        return text_open(path);
    va_start(ap, flags);
    mode = open_mode(flags, ap);
    va_end(ap);
    return next(path, flags, mode);
}

SWV_EXPORT int open64(const char *path, int flags, ...)
{
    NEXT(int (*)(const char *, int, ...), "open64");
    va_list ap;
    mode_t mode;

    if (is_ours(path))
        return text_open(path);
    va_start(ap, flags);
    mode = open_mode(flags, ap);
    va_end(ap);
    return next(path, flags, mode);
}

SWV_EXPORT int __open_2(const char *path, int flags);
SWV_EXPORT int __open_2(const char *path, int flags)
{
    NEXT(int (*)(const char *, int), "__open_2");

    return is_ours(path) ? text_open(path) : next(path, flags);
}

SWV_EXPORT int __open64_2(const char *path, int flags);
SWV_EXPORT int __open64_2(const char *path, int flags)
{
    NEXT(int (*)(const char *, int), "__open64_2");

    return is_ours(path) ? text_open(path) : next(path, flags);
}

static FILE *text_fopen(const char *path)
{
    int fd = text_open(path);
    FILE *f;

    if (fd < 0)
        return NULL;
    f = fdopen(fd, "r");
    if (f == NULL)
        close(fd);
    return f;
}

SWV_EXPORT FILE *fopen(const char *path, const char *mode)
{
    NEXT(FILE * (*)(const char *, const char *), "fopen");

    return is_ours(path) ? text_fopen(path) : next(path, mode);
}

SWV_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    NEXT(FILE * (*)(const char *, const char *), "fopen64");

    return is_ours(path) ? text_fopen(path) : next(path, mode);
}

SWV_EXPORT int access(const char *path, int mode)
{
    NEXT(int (*)(const char *, int), "access");

    if (!is_ours(path))
        return next(path, mode);
    if (swv_sysfs_exists(path))
        return 0;
    errno = ENOENT;
    return -1;
}

static int our_stat(const char *path, void *st, size_t size)
{
    bool dev = strncmp(path, "/dev/", 5) == 0;
    struct stat s;

    if (!swv_sysfs_exists(path)) {
        errno = ENOENT;
        return -1;
    }
    memset(&s, 0, sizeof(s));
    s.st_mode = dev ? S_IFCHR | 0666 : S_IFREG | 0444;
    s.st_nlink = 1;
    memcpy(st, &s, size < sizeof(s) ? size : sizeof(s));
    return 0;
}

SWV_EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
    NEXT(int (*)(const char *, struct stat *), "stat");

    return is_ours(path) ? our_stat(path, st, sizeof(*st)) : next(path, st);
}

SWV_EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
    NEXT(int (*)(const char *, struct stat64 *), "stat64");

    return is_ours(path) ? our_stat(path, st, sizeof(*st)) : next(path, st);
}

static ssize_t our_readlink(const char *path, char *buf, size_t size)
{
    char target[256];
    int n = swv_sysfs_link(path, target, sizeof(target));

    if (n < 0) {
        errno = -n;
        return -1;
    }
    if ((size_t)n < size)
        size = (size_t)n;
    memcpy(buf, target, size);
    return (ssize_t)size;
}

SWV_EXPORT ssize_t readlink(const char *restrict path, char *restrict buf,
                            size_t size)
{
    NEXT(ssize_t(*)(const char *, char *, size_t), "readlink");

    return is_ours(path) ? our_readlink(path, buf, size)
                         : next(path, buf, size);
}

SWV_EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t size,
                                  size_t room);
SWV_EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t size,
                                  size_t room)
{
    NEXT(ssize_t(*)(const char *, char *, size_t, size_t), "__readlink_chk");

    return is_ours(path) ? our_readlink(path, buf, size < room ? size : room)
                         : next(path, buf, size, room);
}

static char *our_realpath(const char *path, char *resolved)
{
    char link[256], full[PATH_MAX];
    int n = swv_sysfs_link(path, link, sizeof(link));

    if (n >= 0)
        snprintf(full, sizeof(full), "/sys/%s", link + strlen("../../../"));
    else if (swv_sysfs_exists(path))
        snprintf(full, sizeof(full), "%s", path);
    else {
        errno = ENOENT;
        return NULL;
    }
    return resolved != NULL ? strcpy(resolved, full) : strdup(full);
}

SWV_EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
    NEXT(char *(*)(const char *, char *), "realpath");

    return is_ours(path) ? our_realpath(path, resolved) : next(path, resolved);
}

SWV_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room);
SWV_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room)
{
    NEXT(char *(*)(const char *, char *, size_t), "__realpath_chk");

    return is_ours(path) ? our_realpath(path, resolved)
                         : next(path, resolved, room);
}
