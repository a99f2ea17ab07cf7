/* Any command line, one argument per line: it is accepted, with every number within its limits, or
 * refused in one line.
 */
#define _XOPEN_SOURCE 700
#include "../../support/run/command_line.h"
#include "fuzz.h"

enum { MOST_ARGUMENTS = 64 };

static void check_limits(const Options *o)
{
    PROMISE(o->command >= commands && o->command < commands + N_COMMANDS);
    PROMISE(o->n_arguments <= o->command->max);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *field = (const char *)o + options[i].offset;
        if (!(options[i].commands & o->command->bit)) continue;
        double min = ranges[options[i].kind].min, max = ranges[options[i].kind].max;
        if (options[i].kind > NAME && options[i].kind < REAL) {
            uint64_t n = *(const uint64_t *)field;
            PROMISE((double)n <= max);
            Options defaults = default_options(o->recipe);
            const char *recipe = (const char *)&defaults;
            PROMISE((double)n >= min || n == *(const uint64_t *)(recipe + options[i].offset));
        } else if (options[i].kind >= REAL) {
            double x = *(const double *)field;
            PROMISE(isfinite(x) && x >= min && x <= max);
        } else if (options[i].kind == NAME) {
            int at = *(const int *)field, n = 1;
            for (const char *c = options[i].argument; *c; c++) n += *c == '|';
            PROMISE(at >= 0 && at < n);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *argv[MOST_ARGUMENTS + 2] = {(char *)(uintptr_t) "microgpt"};
    int argc = 1;
    PROMISE(text);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *argument = text; argument && argc <= MOST_ARGUMENTS;) {
        argv[argc++] = argument;
        argument = strchr(argument, '\n');
        if (argument) *argument++ = '\0';
    }
    Options o;
    bool ok = parse_command_line(&o, argc, argv);
    PROMISE(ok || failure.status == USAGE);
    check_failure(ok);
    if (ok) check_limits(&o);
    free(text);
    return 0;
}
