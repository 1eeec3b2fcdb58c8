/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Longest line; what is longer ends in CUT_MARK. */
#define LINE_LEN 1024
#define CUT_MARK " [cut]"

static void stderr_write(void *arg, enum mesh_log_level level, const char *file,
                         unsigned line, const char *text)
{
    static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG"};

    (void)arg;
    (void)file;
    (void)line;
    /* One call, so that lines of several threads do not mix. */
    fprintf(stderr, "mesh: %s: %s\n", names[level], text);
}

static const struct mesh_log_sink stderr_sink = {
    .write = stderr_write,
    .level = MESH_LOG_WARN,
};

static struct mesh_log_sink current_sink = {
    .write = stderr_write,
    .level = MESH_LOG_WARN,
};

void mesh_log_sink_set(const struct mesh_log_sink *sink)
{
    current_sink = sink ? *sink : stderr_sink;
}

bool mesh_log_enabled(enum mesh_log_level level)
{
    return level <= current_sink.level;
}

/*
 * Bytes of the printable character at text, 0 where there is none: control
 * characters, C1 controls and what is not UTF-8.  The sequences that only
 * look like UTF-8 (overlong, surrogates) are harmless to a terminal.
 */
static size_t printable_len(const unsigned char *text)
{
    size_t len, i;

    if (text[0] < 0x80)
        return text[0] >= 0x20 && text[0] != 0x7f;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    if (text[0] == 0xc2 && text[1] < 0xa0)
        return 0;
    len = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    for (i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    return len;
}

/* Text may come from the network: nothing of it may move a terminal's cursor
 * or begin a new line. Returns the length without a character cut in two. */
static size_t line_clean(char *text, bool cut)
{
    unsigned char *at = (unsigned char *)text;

    while (*at) {
        size_t len = printable_len(at);

        /* A character that was cut in two is the last thing in the line. */
        if (cut && !len && *at >= 0xc2 && strlen((char *)at) < 4)
            break;
        if (!len) {
            *at = '?';
            len = 1;
        }
        at += len;
    }
    *at = '\0';
    return (size_t)(at - (unsigned char *)text);
}

void mesh_log_write(enum mesh_log_level level, const char *file, unsigned line,
                    const char *format, ...)
{
    char text[LINE_LEN];
    size_t room = sizeof(text) - strlen(CUT_MARK);
    va_list args;
    size_t len;
    int wanted;

    va_start(args, format);
    wanted = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (wanted < 0) {
        /* An encoding error of the C library: the format is still of use. */
        snprintf(text, sizeof(text), "%s", format);
        wanted = 0;
    }
    if ((size_t)wanted >= sizeof(text)) {
        text[room - 1] = '\0';
        len = line_clean(text, true);
        memcpy(text + len, CUT_MARK, strlen(CUT_MARK) + 1);
    } else {
        line_clean(text, false);
    }
    current_sink.write(current_sink.arg, level, file, line, text);
}

bool mesh_log_limit_pass(struct mesh_log_limit *limit, uint64_t now_ns,
                         unsigned *suppressed_p)
{
    uint64_t next = __atomic_load_n(&limit->next_ns, __ATOMIC_RELAXED);

    /* The thread that moves next_ns on is the one that writes. */
    if (now_ns >= next &&
        __atomic_compare_exchange_n(&limit->next_ns, &next,
                                    now_ns + limit->interval_ns, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        *suppressed_p =
            __atomic_exchange_n(&limit->suppressed, 0, __ATOMIC_RELAXED);
        return true;
    }
    __atomic_fetch_add(&limit->suppressed, 1, __ATOMIC_RELAXED);
    return false;
}
