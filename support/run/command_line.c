/* command_line.c: the table of commands, the command line and the help. */
#define _XOPEN_SOURCE 700
#include "command_line.h"
#include "../base/output.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

const Command commands[] = {
    {"train", "[OPTION]...", "train, then print samples (default)", TRAIN, 0, 0},
    {"sample", "MODEL [OPTION]...", "print samples from a saved model", SAMPLE, 1, 1},
    {"eval", "MODEL [OPTION]...", "mean loss of a saved model", EVAL, 1, 1},
    {"heads", "MODEL [OPTION]... [WORD]", "what each attention head looks at", HEADS, 1, 2},
    {"page", "MODEL [OPTION]... [WORD]", "the model as one HTML page", PAGE, 1, 2},
    {"check", "[OPTION]...", "do all definitions agree?", CHECK, 0, 0},
};
const size_t N_COMMANDS = sizeof commands / sizeof commands[0];

// Is a word of n characters nearly this name? At most two characters, in one place, may differ.
static bool is_similar(const char *name, const char *word, size_t n)
{
    size_t length = strlen(name), same = 0, last = 0;
    size_t shorter = n < length ? n : length, longer = n < length ? length : n;
    while (same < shorter && word[same] == name[same]) same++;
    while (same + last < shorter && word[n - 1 - last] == name[length - 1 - last]) last++;
    return longer - same - last <= 2 && 2 * (same + last) >= longer;
}

// Records the error: an argument too many or, if command is NULL, no such command. If it looks like
// a file, the hint says how to use it.
static bool unexpected(const char *argument, const Command *command)
{
    const char *problem = command ? "one argument too many" : "no such command";
    const char *ending = strrchr(argument, '.');
    bool train = !command || command->bit == TRAIN;
    bool file = strpbrk(argument, "./") || access(argument, F_OK) == 0;
    if (train && ending && strcmp(ending, ".safetensors") == 0) {
        return usage("%s: %s; for a saved model: microgpt sample|eval|heads|page %s", argument,
                     problem, argument);
    }
    if (train && file) {
        return usage("%s: %s; to train on it: --data %s", argument, problem, argument);
    }
    for (size_t i = 0; !command && i < N_COMMANDS; i++) {
        if (is_similar(commands[i].name, argument, strlen(argument))) {
            return usage("%s: %s; did you mean %s? See microgpt --help", argument, problem,
                         commands[i].name);
        }
    }
    return usage("%s: %s; see microgpt %s%s--help", argument, problem, command ? command->name : "",
                 command ? " " : "");
}

// The option that `-q`, `--name` or `--name=value` gives. The beginning of a name is enough if no
// other option begins with it. NULL: the error is recorded.
static const Option *find_option(const Command *command, const char *argument)
{
    bool letter = argument[1] != '-';
    const char *name = argument + 2, *near = NULL;
    size_t length = letter ? 0 : strcspn(name, "="), n_found = 0;
    const Option *found = NULL;
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        if (!(option->commands & command->bit)) continue;
        if (letter && argument[1] == option->letter && !*name) return option;
        if (!length) continue;
        if (strncmp(option->name, name, length) == 0) {
            if (option->name[length] == '\0') return option;
            found = option;
            n_found++;
        }
        if (is_similar(option->name, name, length)) near = option->name;
    }
    if (n_found == 1) return found;
    bool hint = near && !n_found;
    set_failure(USAGE, "%.*s: %s; %s%s%s microgpt %s --help", letter ? INT_MAX : (int)length + 2,
                argument, n_found ? "ambiguous option" : "no such option",
                hint ? "did you mean --" : "", hint ? near : "", hint ? "? See" : "see",
                command->name);
    return NULL;
}

// Reads the arguments after the command, over the recipe's defaults. With `only`, sets just that
// option.
static bool read_arguments(Options *o, int argc, char **argv, const char *only)
{
    const Command *command = o->command;
    bool options_over = false;
    *o = default_options(o->recipe);
    o->command = command;
    for (int i = 0; i < argc; i++) {
        const char *argument = argv[i];
        if (options_over || argument[0] != '-' || !argument[1]) {
            if (o->n_arguments == command->max) return unexpected(argument, command);
            o->arguments[o->n_arguments++] = argument;
            continue;
        }
        options_over = strcmp(argument, "--") == 0;
        if (options_over) continue;
        const Option *option = find_option(command, argument);
        if (!option) return false;
        const char *name = option->name, *value = argument[1] == '-' ? strchr(argument, '=') : NULL;
        bool flag = option->kind == FLAG, last = i + 1 == argc;
        if (flag && value) return usage("--%s takes no value", name);
        if (!flag && !value && last) return usage("--%s needs a value: %s", name, option->argument);
        value = flag ? NULL : value ? value + 1 : argv[++i];
        bool sets = !only || strcmp(only, name) == 0;
        const char *problem = sets ? set_option(o, option, value) : NULL;
        if (problem) return usage("--%s %s: %s", name, value, problem);
        o->given |= (uint64_t)1 << (option - options);
    }
    return true;
}

static const Command *find_command(const char *name)
{
    const Command *command = commands, *end = commands + N_COMMANDS;
    while (command < end && strcmp(name, command->name) != 0) command++;
    return command < end ? command : NULL;
}

// Reads the arguments twice: first for the recipe, wherever it stands, then for the rest.
// `microgpt help`, `help COMMAND` and `--help COMMAND` are what GNU programs accept, too.
bool parse_command_line(Options *o, int argc, char **argv)
{
    bool named = argc > 1 && argv[1][0] != '-';
    bool help = argc > 1 && (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0);
    const char *name = help && argc == 3 ? argv[2] : named && !help ? argv[1] : "train";
    const Command *command = find_command(name);
    int first = named ? 2 : 1;
    if (!command && !(help && !named)) return unexpected(name, NULL);
    *o = (Options){.command = command ? command : commands, .recipe = RECIPE_MICROGPT};
    if (help && command && argc <= 3) return o->help = true;
    if (!read_arguments(o, argc - first, argv + first, "recipe")) return false;
    if (!read_arguments(o, argc - first, argv + first, NULL)) return false;
    if (o->help || o->version) return true;
    if (o->n_arguments < command->min) {
        return usage("%s: an argument is missing; see microgpt %s --help", command->name,
                     command->name);
    }
    Config *config = &o->config;
    if (config->temperature < 1e-200) {  // scores divided by it could overflow
        o->greedy = true;
        config->temperature = 1;
    }
    if (o->save_every && !o->save) return usage("--save-every needs --save FILE");
    if (command->bit == SAMPLE && o->data && !o->new) return usage("--data needs --new");
    // A resumed run takes its sizes from the file.
    return o->resume || check_options(o, NULL);
}

/* ------------------------------------------------------------------------------------------------
 * A command line for people: what to type next, and the help.
 */
// What a shell leaves as it is.
static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "%+,-./:=@_";

// Appends a word of a command line, quoted for a shell where it must be.
static void append_word(char *text, size_t room, const char *word)
{
    const char *quote = !*word || word[strspn(word, plain)] ? "'" : "";
    size_t n = strlen(text);
    n += (size_t)snprintf(text + n, room - n, " %s", quote);
    for (; *word && n + 8 < room; word++) {
        n += (size_t)snprintf(text + n, room - n, *word == '\'' ? "'\\''" : "%c", *word);
    }
    snprintf(text + n, room - n, "%s", quote);
}

// A message shows no control characters. A command that has some becomes one that prints them.
static void spell_controls(char *text, size_t room)
{
    static char command[MESSAGE_ROOM];
    snprintf(command, sizeof command, "%s", text);
    if (!mask_controls(text)) return;
    size_t n = (size_t)snprintf(text, room, " eval \"$(printf '");
    for (const char *c = command; *c && n + 8 < room; c++) {
        bool safe = *c == ' ' || (*c != '%' && strchr(plain, *c));
        n += (size_t)snprintf(text + n, room - n, safe ? "%c" : "\\%03o", (unsigned char)*c);
    }
    snprintf(text + n, room - n, "')\"");
}

const char *command_to_continue(const Options *o, int argc, char **argv)
{
    static char command[MESSAGE_ROOM];
    command[0] = '\0';
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") != 0) append_word(command, sizeof command, argv[i]);
    }
    if (!o->resume || strcmp(o->resume, o->save) != 0) {
        append_word(command, sizeof command, "--resume");
        append_word(command, sizeof command, o->save);
    }
    spell_controls(command, sizeof command);
    return command + 1;  // after a blank
}

// " (1000; lesson: 500)": the default in both recipes, if they differ. "" if the help says it.
static void default_text(const Option *option, char *text, size_t room)
{
    char a[32], b[32];
    Options microgpt = default_options(RECIPE_MICROGPT), lesson = default_options(RECIPE_LESSON);
    option_text(option, &microgpt, a, sizeof a);
    option_text(option, &lesson, b, sizeof b);
    bool differ = strcmp(a, b) != 0 && option->offset != FIELD(recipe);
    bool none = !*a || option->kind == FLAG || strstr(option->help, "(default: ");
    snprintf(text, none ? 1 : room, " (%s%s%s)", a, differ ? "; lesson: " : "", differ ? b : "");
}

enum { HELP_WIDTH = 79, HELP_LEFT = 31 };  // columns: of a line, and where the right side starts

void print_help(const Command *command)
{
    say("Usage:\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "microgpt %s %s", commands[i].name, commands[i].arguments);
        say("  %-39s %s\n", left, commands[i].summary);
    }
    say("\nOptions of %s:\n", command->name);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const Option *option = &options[i];
        const char *argument = option->argument ? option->argument : "";
        char left[64], letter[8] = "    ", value[80];
        if (!(option->commands & command->bit)) continue;
        if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "  %s--%s %s", letter, option->name, argument);
        default_text(option, value, sizeof value);
        say("%-*s", HELP_LEFT, left);
        if (strlen(left) >= HELP_LEFT) say("\n%*s", HELP_LEFT, "");
        say_wrapped(HELP_WIDTH, HELP_LEFT, HELP_LEFT, "%s%s", option->help, value);
    }
}
