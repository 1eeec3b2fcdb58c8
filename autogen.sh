#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Generates configure and the Makefile.in files of a fresh checkout.
set -eu

cd "$(dirname "$0")"

missing=
need() {
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need autoreconf autoconf
need automake automake
need libtoolize libtool
need pkg-config pkg-config
if [ -n "$missing" ]; then
    echo "autogen.sh: missing build tools: apt install$missing" >&2
    exit 1
fi

mkdir -p build-aux m4
exec autoreconf --force --install --warnings=all
