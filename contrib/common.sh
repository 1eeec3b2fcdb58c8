# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What contrib/test and contrib/demo share; to be sourced, with $top set to the
# root of the tree, $base to the directory that everything is built under, $src
# to where the tree is copied there, and $logs to where logs go.
# shellcheck disable=SC2154

say() {
    printf '%s %s\n' "$(date +%H:%M:%S)" "$*"
}

list_files() {
    if [ -e "$top/.git" ] && command -v git >/dev/null; then
        git -c safe.directory="$top" -C "$top" ls-files -co --exclude-standard
    else
        (cd "$top" && find . -type f -not -path './build*' \
            -not -path './.git/*')
    fi
}

# The tree may be configured in place, which would forbid other build
# directories, so a copy is built.
copy_source() {
    mkdir -p "$src" "$logs"
    list_files | LC_ALL=C sort >"$base/files.new"
    if [ -f "$base/files" ]; then
        LC_ALL=C comm -23 "$base/files" "$base/files.new" |
            (cd "$src" && xargs -r -d '\n' rm -f)
    fi
    mv "$base/files.new" "$base/files"
    tar -C "$top" --ignore-failed-read -cf - -T "$base/files" 2>/dev/null |
        tar -C "$src" -xf -
    [ ! -f "$src/config.status" ] || make -s -C "$src" distclean
}
