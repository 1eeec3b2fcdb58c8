/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == ':' || (!first && c >= '0' && c <= '9');
}

/* Copies len bytes; false where they do not fit. */
static bool piece_copy(const char *from, size_t len, char *to, size_t size)
{
    if (len >= size)
        return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

/* The end of a list of labels: the brace outside of quotes; NULL: none. */
static const char *labels_end(const char *text)
{
    bool quoted = false;

    for (; *text != '\0' && *text != '\n'; text++) {
        if (quoted && text[0] == '\\' && text[1] != '\0')
            text++;
        else if (*text == '"')
            quoted = !quoted;
        else if (*text == '}' && !quoted)
            return text;
    }
    return NULL;
}

/* One line up to its end. */
static bool sample_parse(const char *line, size_t len,
                         struct mesh_sample *sample)
{
    const char *at = line, *end;
    char *number_end;

    while (name_char(*at, at == line))
        at++;
    if (at == line || !piece_copy(line, (size_t)(at - line), sample->name,
                                  sizeof(sample->name)))
        return false;
    sample->labels[0] = '\0';
    if (*at == '{') {
        end = labels_end(at + 1);
        if (end == NULL || !piece_copy(at + 1, (size_t)(end - at) - 1,
                                       sample->labels, sizeof(sample->labels)))
            return false;
        at = end + 1;
    }
    if (*at != ' ')
        return false;
    sample->value = strtod(at, &number_end);
    return number_end == line + len && number_end > at + 1;
}

static struct mesh_sample *sample_new(struct mesh_samples *samples)
{
    unsigned room = samples->room == 0 ? 64 : 2 * samples->room;
    struct mesh_sample *list;

    if (samples->count == samples->room) {
        list = realloc(samples->list, room * sizeof(list[0]));
        if (list == NULL)
            return NULL;
        samples->list = list;
        samples->room = room;
    }
    return &samples->list[samples->count];
}

int mesh_samples_parse(struct mesh_samples *samples, const char *text)
{
    struct mesh_sample *sample;
    int passed_over = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        sample = sample_new(samples);
        if (sample == NULL)
            return -ENOMEM;
        if (sample_parse(text, len, sample))
            samples->count++;
        else
            passed_over += len > 0 && text[0] != '#';
        text += len + (text[len] == '\n');
    }
    return passed_over;
}

int mesh_samples_add(struct mesh_samples *samples, const char *name,
                     const char *labels, double value)
{
    struct mesh_sample *sample = sample_new(samples);

    if (sample == NULL)
        return -ENOMEM;
    snprintf(sample->name, sizeof(sample->name), "%s", name);
    snprintf(sample->labels, sizeof(sample->labels), "%s", labels);
    sample->value = value;
    samples->count++;
    return 0;
}

void mesh_samples_release(struct mesh_samples *samples)
{
    free(samples->list);
    memset(samples, 0, sizeof(*samples));
}

/* The value up to its closing quote, which *at_p then is behind. */
static void value_take(const char **at_p, char value[MESH_SAMPLE_TEXT_LEN])
{
    const char *at = *at_p;
    size_t len = 0;

    for (; *at != '\0' && *at != '"'; at++) {
        if (at[0] == '\\' && at[1] != '\0')
            at++;
        value[len++] = *at;
    }
    value[len] = '\0';
    *at_p = at + (*at == '"');
}

void mesh_sample_labels_visit(const struct mesh_sample *sample,
                              void (*visit)(void *arg, const char *label,
                                            const char *value),
                              void *arg)
{
    char label[MESH_SAMPLE_TEXT_LEN], value[MESH_SAMPLE_TEXT_LEN];
    const char *at = sample->labels;

    while (*at != '\0') {
        size_t len = strcspn(at, "=");

        memcpy(label, at, len);
        label[len] = '\0';
        at += len + strspn(at + len, "=\"");
        value_take(&at, value);
        visit(arg, label, value);
        at += strspn(at, ", ");
    }
}

struct label_search {
    const char *label;
    char *text;
};

static void label_match(void *arg, const char *label, const char *value)
{
    const struct label_search *search = arg;

    if (strcmp(label, search->label) == 0)
        memcpy(search->text, value, strlen(value) + 1);
}

char *mesh_sample_label(const struct mesh_sample *sample, const char *label,
                        char text[MESH_SAMPLE_TEXT_LEN])
{
    struct label_search search = {label, text};

    text[0] = '\0';
    mesh_sample_labels_visit(sample, label_match, &search);
    return text;
}

static bool name_is_new(const struct mesh_samples *samples, unsigned at)
{
    for (unsigned i = 0; i < at; i++) {
        if (strcmp(samples->list[i].name, samples->list[at].name) == 0)
            return false;
    }
    return true;
}

static void sample_print(const struct mesh_sample *sample, FILE *stream)
{
    if (sample->labels[0] != '\0')
        fprintf(stream, "%s{%s} ", sample->name, sample->labels);
    else
        fprintf(stream, "%s ", sample->name);
    fprintf(stream, "%.17g\n", sample->value);
}

void mesh_samples_print(const struct mesh_samples *samples, FILE *stream)
{
    for (unsigned i = 0; i < samples->count; i++) {
        const char *name = samples->list[i].name;
        size_t len = strlen(name);
        bool counter = len > 6 && strcmp(name + len - 6, "_total") == 0;

        if (!name_is_new(samples, i))
            continue;
        fprintf(stream, "# TYPE %s %s\n", name, counter ? "counter" : "gauge");
        for (unsigned k = i; k < samples->count; k++) {
            if (strcmp(samples->list[k].name, name) == 0)
                sample_print(&samples->list[k], stream);
        }
    }
}
