/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/address_store.h"

#include "common/textfile.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *directory, *suffix;
} places[] = {
    {"/etc/netplan", ".yaml"},
    {"/run/netplan", ".yaml"},
    {"/lib/netplan", ".yaml"},
    {"/etc/NetworkManager/system-connections", ""},
    {"/run/NetworkManager/system-connections", ""},
    {"/usr/lib/NetworkManager/system-connections", ""},
    {"/etc/systemd/network", ".network"},
    {"/run/systemd/network", ".network"},
    {"/usr/lib/systemd/network", ".network"},
    {"/etc/network/interfaces.d", ""},
    {"/etc/sysconfig/network-scripts", ""},
};
static const char interfaces_file[] = "/etc/network/interfaces";

/* What says that addresses come by themselves. */
static const char *const automatic[] = {
    "dhcp",
    "DHCP=yes",
    "dhcp4: true",
    "method=auto",
    "link-local",
    "LinkLocalAddressing=yes",
    "LinkLocalAddressing=ipv4",
};

struct reader {
    const char *root;
    struct mesh_address_store *store;
    int error;
};

static void file_take(void *arg, const char *path)
{
    struct reader *reader = arg;
    struct mesh_address_store *store = reader->store;
    char **texts, *text;
    int ret = mesh_textfile_read(reader->root, path, &text);

    if (ret < 0) {
        store->hidden |= ret == -EACCES || ret == -EPERM;
        return;
    }
    texts = realloc(store->texts, (store->count + 1) * sizeof(texts[0]));
    if (texts == NULL) {
        free(text);
        reader->error = -ENOMEM;
        return;
    }
    store->texts = texts;
    store->texts[store->count++] = text;
}

int mesh_address_store_read(const char *root,
                            struct mesh_address_store *store_p)
{
    struct reader reader = {.root = root, .store = store_p};

    *store_p = (struct mesh_address_store){0};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int ret = mesh_textfile_visit(root, places[i].directory,
                                      places[i].suffix, file_take, &reader);

        store_p->hidden |= ret == -EACCES || ret == -EPERM;
    }
    file_take(&reader, interfaces_file);
    if (reader.error < 0)
        mesh_address_store_release(store_p);
    return reader.error;
}

void mesh_address_store_release(struct mesh_address_store *store)
{
    for (unsigned i = 0; i < store->count; i++)
        free(store->texts[i]);
    free(store->texts);
    *store = (struct mesh_address_store){0};
}

static bool goes_on(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == ':' || c == '_';
}

/* Not as a part of a longer word: "10.0.0.1" is not in "10.0.0.11". A colon
 * ends the name of a netdev in YAML. */
static bool word_is_in(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = strstr(text, word); at != NULL;
         at = strstr(at + 1, word)) {
        bool begins = at == text || !goes_on(at[-1]);

        if (begins && (!goes_on(at[len]) ||
                       (at[len] == ':' && isspace((unsigned char)at[len + 1]))))
            return true;
    }
    return false;
}

static bool is_automatic(const char *text)
{
    for (size_t i = 0; i < sizeof(automatic) / sizeof(automatic[0]); i++) {
        if (strstr(text, automatic[i]) != NULL)
            return true;
    }
    return false;
}

bool mesh_address_store_has(const struct mesh_address_store *store,
                            const char *netdev, const struct mesh_addr *addr)
{
    char text[MESH_ADDR_TEXT_LEN];

    mesh_addr_format(addr, text);
    text[strcspn(text, "/")] = '\0';
    for (unsigned i = 0; i < store->count; i++) {
        if (word_is_in(store->texts[i], text) ||
            (word_is_in(store->texts[i], netdev) &&
             is_automatic(store->texts[i])))
            return true;
    }
    return false;
}
