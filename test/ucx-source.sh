# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Fetches source packages, that of the installed UCX first of all; to be sourced,
# with $work set to a scratch directory, $name to the name of the test, and
# skip() defined.
#
# It is fetched with an apt root of its own, whose sources are the host's with
# their keys; nothing of the host's apt changes, and no privilege is needed.
# shellcheck disable=SC2154 # what the caller sets

# Kept between runs.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mesh-test

# The host's apt sources, turned into sources of source packages.
write_sources() {
    eval "$(apt-config shell list Dir::Etc::sourcelist/f \
        parts Dir::Etc::sourceparts/d)"
    mkdir -p "$work/apt/sources.list.d"
    # shellcheck disable=SC2154 # list and parts come from apt-config
    for file in "$list" "$parts"*.list "$parts"*.sources; do
        [ -s "$file" ] || continue
        copy=$work/apt/sources.list.d/host-$(basename "$file")
        case $file in
            *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" >"$copy" ;;
            *) sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$file" \
                >"$copy" ;;
        esac
    done
    drop_other_archives
}

# Only the archive that the package $binary came from, where apt still knows
# which it was.
drop_other_archives() {
    uri=$(apt-cache policy "$binary" 2>/dev/null |
        sed -n 's/^ *[0-9]* \([a-z+]*:[^ ]*\) .*/\1/p' | head -n 1)
    [ -n "$uri" ] || return 0
    grep -qrF "$uri" "$work/apt/sources.list.d" || return 0
    for copy in "$work/apt/sources.list.d"/*; do
        grep -qF "$uri" "$copy" || rm "$copy"
    done
}

own_apt() {
    apt-get -q \
        -o Dir::Etc::sourcelist=/dev/null \
        -o Dir::Etc::sourceparts="$work/apt/sources.list.d" \
        -o Dir::State="$work/apt/state" \
        -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
        "$@" >>"$work/apt.log" 2>&1
}

# fetch_source SOURCE [VERSION]: sets tree to that source package, unpacked; any
# version that the host's archive has will do if none is named.
fetch_source() {
    for tool in apt-get dpkg-source; do
        command -v "$tool" >/dev/null || skip "no $tool here"
    done
    for tree in "$cache/$1-${2-}"*; do
        [ ! -d "$tree" ] || return 0
    done
    echo "$name: fetching the source package $1 ${2-}"
    write_sources
    mkdir -p "$work/apt/state/lists/partial" "$work/apt/cache" "$cache"
    # A failing archive matters only if the package is not found then.
    own_apt update || true
    (cd "$work" && own_apt source --download-only "$1${2:+=$2}") ||
        skip "cannot fetch $1 ${2-}: $(grep '^[EW]:' \
            "$work/apt.log" | head -n 1)"
    dpkg-source -x "$work/$1"_*.dsc "$work/tree" >>"$work/apt.log" 2>&1 ||
        skip "cannot unpack $1: $(tail -n 1 "$work/apt.log")"
    tree=$cache/$1-${2:-$(sed -n 's/^Version: *//p' "$work/$1"_*.dsc)}
    # Another run may have been faster.
    cp -a "$work/tree" "$cache/new.$$"
    mv -T "$cache/new.$$" "$tree" 2>/dev/null || rm -rf "$cache/new.$$"
}

# Sets tree to the unpacked source package of the installed UCX.
fetch_tree() {
    command -v dpkg-query >/dev/null || skip "no dpkg-query here"
    binary=$(dpkg-query -S "*/libuct.so.0" 2>/dev/null | head -n 1) ||
        true
    binary=${binary%%:*}
    [ -n "$binary" ] || skip "no package provides the installed UCX"
    # shellcheck disable=SC2016 # a dpkg-query format
    source=$(dpkg-query -W -f '${source:Package}' "$binary")
    # shellcheck disable=SC2016
    version=$(dpkg-query -W -f '${source:Version}' "$binary")
    fetch_source "$source" "$version"
}

# Prints a part of the version of the tree: major, minor or patch.
tree_version() {
    sed -n "s/^define(\[ucx_ver_$1\], *\([0-9]*\)).*/\1/p" \
        "$tree/configure.ac"
}
