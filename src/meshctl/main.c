/* SPDX-License-Identifier: BSD-3-Clause */
/* meshctl: shows and checks the mesh. See command.h for what is stable. */
#include "meshctl/options.h"

#include <locale.h>

int main(int argc, char **argv)
{
    const struct mesh_command *command;
    struct mesh_options options;
    enum mesh_exit status;

    setlocale(LC_CTYPE, "");
    switch (mesh_options_parse(argc, argv, &command, &options)) {
    case MESH_OPTIONS_DONE:
        return MESH_EXIT_DONE;
    case MESH_OPTIONS_BAD:
        return MESH_EXIT_USAGE;
    case MESH_OPTIONS_RUN:
        break;
    }
    status = command->run(&options, stdout);
    if (fflush(stdout) != 0 && status == MESH_EXIT_DONE) {
        perror("meshctl: output");
        status = MESH_EXIT_FAILED;
    }
    return (int)status;
}
