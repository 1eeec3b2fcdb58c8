/* SPDX-License-Identifier: BSD-3-Clause */
#include "meshctl/glyphs.h"

#include <langinfo.h>
#include <string.h>

const struct mesh_glyphs mesh_glyphs_utf8 = {
    .across = {"─", "═"},
    .down = {"│", "║"},
    .top_right = {"┐", "╗"},
    .bottom_right = {"┘", "╝"},
    .tap = {"┤", "╣"},
    .top_left = {"┌", "╔"},
    .bottom_left = {"└", "╚"},
};

const struct mesh_glyphs mesh_glyphs_ascii = {
    .across = {"-", "="},
    .down = {"|", "|"},
    .top_right = {"+", "+"},
    .bottom_right = {"+", "+"},
    .tap = {"+", "+"},
    .top_left = {"+", "+"},
    .bottom_left = {"+", "+"},
};

const struct mesh_glyphs *mesh_glyphs_of_locale(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? &mesh_glyphs_utf8
                                                      : &mesh_glyphs_ascii;
}
