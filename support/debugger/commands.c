/* commands.c: the table of commands, and how they are read. From the table commands.awk makes gdb's
 * and lldb's definitions and the guide's list.
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show_views(int page);

// A command with its words, the ones in brackets optional; what it shows; the function that shows it,
// by what the words are. Without a function it is the debugger's own.
typedef struct {
    const char *usage, *help;
    void (*alone)(void);
    void (*here)(const void *pc);
    void (*number)(int);
    void (*numbers)(int, int);
    void (*named)(const char *, int);
    void (*element)(const char *, int, int);
    void (*value)(double *);
    void (*pointer)(double *, int);
    void (*setting)(int);  // that needs no model
} Command;

static const Command commands[] = {
    {"doc",
     "the document, its tokens, and the losses; the token to predict after each; while "
     "sampling, the sample so far",
     .alone = show_document},
    {"map", "the model as it was recorded; each vector, its size, and what it was made from",
     .alone = show_map},
    {"here", "the vectors in scope, with their first numbers", .here = show_here},
    {"vec [NAME [POS]]",
     "a vector, its data and its gradient; without a name, the names of all: `vec q 2`, `vec "
     "head1.q_h`, `vec probs.exps`",
     .named = show_vector},
    {"row NAME [POS]",
     "only its numbers, four per line; a row of a matrix, with its gradients: `row wte 24`",
     .named = show_row},
    {"around OP [POS]",
     "the vector before and after an operation; OP is a word of its line: `around rmsnorm 2`, "
     "`around residual`",
     .named = show_around},
    {"head H [POS]", "what one head read; its slice of the query, of each key and of each value",
     .numbers = show_head},
    {"cache [POS]",
     "how many positions are cached, and where; the first numbers of each, or one key and value "
     "in full",
     .number = show_cache},
    {"attn H [POS]", "one head's logits and weights; beside them the characters they belong to",
     .numbers = show_attention},
    {"lands H [POS]", "where the head's `head_out` lands in `x_attn`", .numbers = show_landing},
    {"silence H [POS]",
     "the prediction and the loss without that head; its output is zero there or, with `silence "
     "1 all`, at every position",
     .numbers = show_silence},
    {"top5 [POS]", "the five likeliest next characters; the actual one, with its loss",
     .number = show_top},
    {"draw",
     "while sampling, why this token is drawn; the random number, the running sums of the "
     "probabilities",
     .alone = show_draw},
    {"param NAME ROW COL",
     "a parameter, its gradient, and Adam's m and v; `param layer0.attn_wo 3 5`",
     .element = show_parameter},
    {"moves NAME ROW COL", "how Adam changes it, term by term; in this step and in the one before",
     .element = show_moves},
    {"biggest WHAT [N]",
     "the biggest moves or gradients, by name; `biggest moves 3`, `biggest gradients`",
     .named = show_biggest},
    {"watchgrad NAME ROW COL",
     "stops each time its gradient changes; the entry, what it added, the statement",
     .alone = NULL},
    {"explain VALUE",
     "what made a value, from what, and who used it; the operation, its operands, the local "
     "derivatives",
     .value = show_value},
    {"users VALUE", "every operation that uses it; what each added to its gradient",
     .value = show_users},
    {"graph VALUE",
     "the tree of operations below it; a picture, too, in `.build/graph.svg` (lldb: then "
     "`picture`)",
     .value = show_graph},
    {"nudge VALUE [B]",
     "its gradient, and what the loss really does; the value changes a little: type it where "
     "`adam()` begins; or how a value changes B: `nudge head1.attn_logits[0]@3 "
     "head1.attn_weights[1]@3`",
     .value = show_nudge},
    {"look EXPR [N]", "N numbers from a pointer on, with their names; in `gpt()`, `look q_h 4`",
     .pointer = show_values},
    {"tape", "the entries of the tape, counted by operation", .alone = show_tape},
    {"at FUNCTION TEXT [COND]",
     "stops once, at a function's line with this text; `at gpt ag_copy pos_id==3&&h==1`",
     .alone = NULL},
    {"rewind [H [POS]]", "in gdb, starts again and records from a head on; then `reverse-next`",
     .alone = NULL},
    {"begin", "starts, up to the loss of the first document", .alone = NULL},
    {"layer L", "sets which layer is shown (0 at first)", .number = show_layer},
    {"digits N", "sets how many digits are shown (6 at first)", .setting = show_digits},
    {"depth N", "sets how many operations deep a graph is (3)", .setting = show_depth},
    {"views [PAGE]", "this list, in two pages", .setting = show_views},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0], HALF = N_COMMANDS / 2 };

// One page of the list: of each command what stands before the first semicolon.
static void show_views(int page)
{
    int first = page == 2 ? HALF : 0, end = page == 2 ? N_COMMANDS : HALF;
    for (const Command *c = commands + first; c < commands + end; c++) {
        print("  %-23s %.*s\n", c->usage, (int)strcspn(c->help, ";"), c->help);
    }
    if (page != 2) print("The others: views 2. More on one of them: help COMMAND.\n");
    if (page != 2) return;
    print("POS is a position; without it, the latest. VALUE is  logits 5 [POS],\n"
          "layer0.attn_wo 3 5,  loss,  v123 (a value that has no name),  logits[5]@3\n"
          "in one word, or C without spaces, like  &logits[5].\n");
}

static void show_help(const Command *c) { print("%s: %s.\n", c->usage, c->help); }

static const Command *find_command(const char *name)
{
    size_t length = strlen(name);
    for (const Command *c = commands; c < commands + N_COMMANDS; c++) {
        if (strncmp(c->usage, name, length) == 0 && strchr(" ", c->usage[length])) return c;
    }
    return NULL;
}

// A number, or `all`; false for other words.
static bool read_number(const char *word, int *number)
{
    if (strcmp(word, "all") == 0) return *number = ALL, true;
    if (!*word) return *number = LATEST, true;
    if (strlen(word) > 8 || strspn(word, "0123456789") != strlen(word)) return false;
    return *number = atoi(word), true;
}

// The VALUE of a command, as three words. 1: its name is no name.
static int command_on_value(const Command *c, char word[4][64], const void *pc)
{
    int i, j;
    if (is_value_name(word[1], pc) != 1 && !*word[2]) return 1;
    bool numbers = read_number(word[2], &i) && read_number(word[3], &j);
    double *value = numbers ? find_value(word[1], i, j) : NULL;
    if (value) c->value(value);
    if (!numbers && c->value == show_nudge) show_local(word[1], word[2]);
    if (!numbers && c->value != show_nudge) show_help(c);
    return 0;
}

int command(const char *line, const void *pc)
{
    char word[4][64] = {"", "", "", ""};
    int n = sscanf(line, "%63s %63s %63s %63s", word[0], word[1], word[2], word[3]), i, j;
    const Command *c = find_command(n > 0 ? word[0] : "?"), *help = find_command(word[1]);
    if (strcmp(word[0], "help") == 0 && help) return show_help(help), 0;
    if (!c) return print("%s: no such command; `views` lists them.\n", word[0]), 0;
    int needed = 1;  // the words without brackets
    for (const char *s = strchr(c->usage, ' '); s; s = strchr(s + 1, ' ')) needed += s[1] != '[';
    bool named = c->named || c->element, one = read_number(word[named ? 2 : 1], &i);
    bool two = read_number(word[named ? 3 : 2], &j);
    if (n < needed || ((c->number || c->numbers || named) && !one) ||
        ((c->numbers || c->element) && !two))
        return show_help(c), 0;
    bool own = !c->alone && !c->here && !c->number && !c->numbers && !named && !c->value;
    if (own && !c->pointer && !c->setting)
        return print("A debugger has this command: make debug.\n"), 0;
    if (c->setting) return c->setting(i), 0;
    if (c->pointer) return 1;
    if (!survey()) return 0;
    if (c->value) return command_on_value(c, word, pc);
    if (c->alone) c->alone();
    if (c->here) c->here(pc);
    if (c->number) c->number(i);
    if (c->numbers) c->numbers(i, j);
    if (c->named) c->named(word[1], i);
    if (c->element) c->element(word[1], i, j);
    return 0;
}

void command_at(const char *name, double *value, int n)
{
    const Command *c = find_command(name);
    if (!survey()) return;
    if (c->value && on_tape(value)) c->value(value);
    if (!c->value || !on_tape(value)) show_values(value, n);
}

void answer(const char *line, const void *pc)
{
    char word[64] = "";
    if (!command(line, pc)) return;
    sscanf(line, "%*s %63s", word);
    print(
        "%s is a variable here, too: `&%s[0]` means that one. For the name in microgpt.c, go `up` "
        "to a function of that file first.\n",
        word, word);
}
