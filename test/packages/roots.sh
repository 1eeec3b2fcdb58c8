# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian roots for the tests of the packages; to be sourced, with $suite, $top,
# $cache (a directory that stays) and $work (one that goes) set.
#
# A root is a stack of layers, each a directory of $cache that overlayfs puts
# over those below: "base" is what debootstrap makes, "build" adds what the
# packages need to be built, "users" those programs that must go on working.
# A layer is made once.  What apt fetches lies in $archives of $cache, one for
# each run that may go on at the same time.  What a test writes to a root lies in $work.
#
# To be used in a mount namespace of one's own: nothing is unmounted.
# shellcheck disable=SC2154

# The archive of the host's own suite.
mirror() {
    # shellcheck disable=SC2016 # a format of apt's
    apt-get indextargets --format '$(SITE)|$(LABEL)|$(CREATED_BY)' |
        sed -n 's/|Debian|Packages$//p' | head -n 1
}

# The files of the tree ($top), as they are.
list_source() {
    if [ -e "$top/.git" ]; then
        git -c safe.directory="$top" -C "$top" ls-files -co --exclude-standard
    else
        (cd "$top" && find . -type f -not -path './build*')
    fi
}

# mount_root DIR UPPER LAYER...: the topmost layer first.
mount_root() {
    local dir=$1 upper=$2 lower='' layer kept

    shift 2
    kept=$cache/${archives:-$suite-archives}
    for layer; do
        lower=$lower${lower:+:}$cache/$suite-$layer
    done
    mkdir -p "$dir" "$upper" "$upper.work" "$kept/partial"
    mount -t overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$upper.work" \
        "$suite" "$dir" || return
    mount --bind "$kept" "$dir/var/cache/apt/archives"
}

# in_root DIR COMMAND...: as on a machine of its own that was not booted.
in_root() {
    local dir=$1

    shift
    # shellcheck disable=SC2016 # for the shell inside
    unshare --mount --pid --fork --kill-child --uts --ipc bash -c '
        dir=$1
        shift
        mount -t proc proc "$dir/proc" && mount -t tmpfs tmpfs "$dir/tmp" &&
            mount -t tmpfs tmpfs "$dir/run" && mkdir "$dir/run/lock" &&
            mount --rbind /dev "$dir/dev" && mount --rbind /sys "$dir/sys" &&
            mount -t tmpfs tmpfs "$dir/dev/shm" || exit 125
        [ ! -d "$work/in" ] || {
            mkdir "$dir/tmp/in" && mount --bind "$work/in" "$dir/tmp/in"
        } || exit 125
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive chroot "$dir" "$@"
    ' - "$dir" "$@"
}

apt_in() {
    local dir=$1

    shift
    in_root "$dir" apt-get -q -y -o APT::Sandbox::User=root \
        -o APT::Keep-Downloaded-Packages=true "$@"
}

# make_base: debootstrap, with the lists of the archive.
make_base() {
    local new=$cache/$suite-base.new

    [ ! -d "$cache/$suite-base" ] || return 0
    rm -rf "$new"
    debootstrap "$suite" "$new" "$(mirror)" || return
    cp /etc/resolv.conf "$new/etc/"
    chroot "$new" apt-get -q update || return
    mv "$new" "$cache/$suite-base"
}

# make_layer NAME APT-GET-ARGUMENT...: base and what apt-get does to it.
make_layer() {
    local name=$1 new=$cache/$suite-$1.new

    [ ! -d "$cache/$suite-$name" ] || return 0
    shift
    make_base || return
    rm -rf "$new" "$new.work"
    mount_root "$work/make-$name" "$new" base || return
    apt_in "$work/make-$name" "$@" || return
    umount -l "$work/make-$name"
    rm -rf "$new.work"
    mv "$new" "$cache/$suite-$name"
}
