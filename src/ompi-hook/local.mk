# SPDX-License-Identifier: BSD-3-Clause
# The Open MPI component that loads the UCX transport.  Open MPI looks up
# mca_hook_mesh_component in it.
