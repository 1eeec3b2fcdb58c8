dnl SPDX-License-Identifier: BSD-3-Clause
dnl Dependencies that are all reported at once, with the Debian packages that
dnl provide them, instead of one configure run per missing package.

dnl MESH_MISSING(WHAT, PACKAGE)
AC_DEFUN([MESH_MISSING],
[AS_VAR_APPEND([mesh_missing_what], ["
    $1 (Debian package $2)"])
AS_CASE([" $mesh_missing_packages "],
    [*" $2 "*], [],
    [AS_VAR_APPEND([mesh_missing_packages], [" $2"])])])

dnl MESH_REQUIRE_MODULE(VARIABLE-PREFIX, PKG-CONFIG-MODULES, PACKAGE)
AC_DEFUN([MESH_REQUIRE_MODULE],
[PKG_CHECK_MODULES([$1], [$2], [], [MESH_MISSING([$2], [$3])])])

dnl MESH_REQUIRE_HEADER(HEADER, PACKAGE, [CPPFLAGS])
AC_DEFUN([MESH_REQUIRE_HEADER],
[mesh_saved_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $3"
AC_CHECK_HEADER([$1], [], [MESH_MISSING([$1], [$2])])
CPPFLAGS=$mesh_saved_CPPFLAGS])

dnl MESH_REQUIRE_ALL: ends configure when anything was missing.
AC_DEFUN([MESH_REQUIRE_ALL],
[AS_IF([test -n "$mesh_missing_packages"],
    [AC_MSG_NOTICE([missing:$mesh_missing_what])
    AC_MSG_ERROR([dependencies are missing; on Debian and Ubuntu:
    apt install$mesh_missing_packages])])])
