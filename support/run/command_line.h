/* command_line.h: one table of commands, and what a user may write. After parse_command_line()
 * every value is within its limits.
 */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include "options.h"

typedef struct Command {
    const char *name, *arguments, *summary;
    unsigned bit;     // marks its options in the table of options
    size_t min, max;  // how many arguments it takes
} Command;

extern const Command commands[];  // [N_COMMANDS]
extern const size_t N_COMMANDS;

bool parse_command_line(Options *o, int argc, char **argv);  // false: the error is recorded
// This command line, but it goes on from what is saved: quoted for a shell, on one line.
const char *command_to_continue(const Options *o, int argc, char **argv);
void print_help(const Command *command);

#endif
