/* commands.c: the table of commands, and how they are read. From the table commands.awk makes gdb's
 * and lldb's definitions and the guide's list.
 */
#include "views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A command with its words, the ones in brackets optional; its view; what it shows. Without a view
// it is the debugger's own.
typedef struct {
    const char *usage;
    View *view;
    const char *help;
} Command;

static View set_layer, set_digits, set_depth, show_commands;

static const Command commands[] = {
    {"doc", show_document, "the document, its tokens and losses; the sample so far"},
    {"map", show_map, "the model as it was recorded; each vector, its size, what it is made from"},
    {"here", show_here, "the vectors in scope, with their first numbers"},
    {"vec [NAME [POS]]", show_vector,
     "a vector, its data and its gradient; `vec q 2`, `vec head1.q_h`, `vec probs.exps`"},
    {"row NAME [POS]", show_row,
     "only its numbers, four per line; or a row of a matrix, with its gradients: `row wte 24`"},
    {"around OP [POS]", show_around,
     "the vector before and after an operation; OP is a word of its line: `around rmsnorm 2`"},
    {"head H [POS]", show_head,
     "what one head read; its slice of the query, of each key and of each value"},
    {"cache [POS]", show_cache, "how much is cached, and where; or one key and value in full"},
    {"attn H [POS]", show_attention,
     "one head's logits and weights; beside them the characters they belong to"},
    {"lands H [POS]", show_landing, "where the head's `head_out` lands in `x_attn`"},
    {"silence H [POS]", show_silence,
     "the prediction and the loss without that head; `silence 1 all`: at every position"},
    {"top5 [POS]", show_top, "the five likeliest next characters; the actual one, with its loss"},
    {"draw", show_draw, "while sampling, why this token; the random number, the running sums"},
    {"param NAME ROW COL", show_parameter,
     "a parameter, its gradient, and Adam's m and v; `param layer0.attn_wo 3 5`"},
    {"moves NAME ROW COL", show_moves, "how Adam changes it, term by term; and in the step before"},
    {"biggest WHAT [N]", show_biggest,
     "the biggest moves or gradients, by name; `biggest moves 3`, `biggest gradients`"},
    {"watchgrad NAME ROW COL", NULL,
     "stops each time its gradient changes; what was added, by which statement"},
    {"explain VALUE", show_origin,
     "what made a value, from what, and who used it; with the local derivatives"},
    {"users VALUE", show_users, "every operation that uses it; what each added to its gradient"},
    {"graph VALUE", show_graph,
     "the tree of operations below it; also a picture, `.build/graph.svg` (lldb: `picture`)"},
    {"nudge VALUE [B]", show_nudge,
     "its gradient, and what the loss really does; or how it changes B: `nudge q[4]@3 "
     "head1.attn_logits[1]@3`"},
    {"look EXPR [N]", show_values,
     "N numbers from a pointer on, with their names; in `gpt()`, `look q_h 4`"},
    {"tape", show_tape, "the entries of the tape, counted by operation"},
    {"at FUNCTION TEXT [COND]", NULL,
     "stops once, at a line with this text; `at gpt head_out, pos_id==3&&h==1`"},
    {"rewind [H [POS]]", NULL,
     "in gdb, starts again and records from a head on; then `reverse-next`"},
    {"begin", NULL, "starts, up to the loss of the first document"},
    {"layer L", set_layer, "sets which layer is shown (0 at first)"},
    {"digits N", set_digits, "sets how many digits are shown (6 at first)"},
    {"depth N", set_depth, "sets how many operations deep a graph is (3)"},
    {"views [PAGE]", show_commands, "this list, in two pages"},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0], HALF = N_COMMANDS / 2 };

static void set(const char *name, int *setting, int to, int least, int most)
{
    if (to >= least && to <= most)
        *setting = to;
    else
        print("%s takes a number from %d to %d.\n", name, least, most);
}

static void set_layer(const Question *q)
{
    set("layer", &watched.layer, q->number[0], 0, (int)watched.model->n_layer - 1);
}

static void set_digits(const Question *q) { set("digits", &watched.digits, q->number[0], 1, 17); }

static void set_depth(const Question *q) { set("depth", &watched.depth, q->number[0], 1, 20); }

// One page of the list: of each command what stands before the first semicolon.
static void show_commands(const Question *q)
{
    bool last = q->number[0] == 2;
    for (int i = last ? HALF : 0; i < (last ? N_COMMANDS : HALF); i++) {
        const char *help = commands[i].help;
        print("  %-23s %.*s\n", commands[i].usage, (int)strcspn(help, ";"), help);
    }
    print(last ? "POS is a position; without it, the latest. VALUE is  logits 5 [POS],\n"
                 "layer0.attn_wo 3 5,  loss,  v123 (a value that has no name),  logits[5]@3\n"
                 "in one word, or C without spaces, like  &logits[5].\n"
               : "The others: views 2. More on one of them: help COMMAND.\n");
}

static int show_help(const Command *c) { return print("%s: %s.\n", c->usage, c->help), 0; }

static const Command *find_command(const char *name)
{
    size_t length = strlen(name);
    for (const Command *c = commands; c < commands + N_COMMANDS; c++) {
        if (strncmp(c->usage, name, length) == 0 && strchr(" ", c->usage[length])) return c;
    }
    return NULL;
}

// A number, or `all`, or none; false for other words.
static bool read_number(const char *word, int *number)
{
    *number = *word ? ALL : LATEST;
    if (!*word || strcmp(word, "all") == 0) return true;
    if (strlen(word) > 8 || strspn(word, "0123456789") != strlen(word)) return false;
    return *number = atoi(word), true;
}

typedef char Words[4][64];

// Reads the words as the usage names them. False if one is missing, or is not a number but should
// be.
static bool read_words(const Command *c, Words word, Question *q)
{
    int w = 1, n = 0;
    for (const char *s = strchr(c->usage, ' '); s; s = strchr(s, ' '), w++) {
        bool optional = *++s == '[';
        char kind[18] = " ";
        sscanf(s + optional, "%15[A-Z]", kind + 1);
        strcat(kind, " ");
        if (!*word[w] && !optional) return false;
        if (strstr(" NAME OP WHAT ", kind))
            q->name = word[w];
        else if (!strstr(" VALUE EXPR B ", kind) && !read_number(word[w], &q->number[n++]))
            return false;
    }
    return true;
}

// The VALUE of a command, as up to three words. 1: its name is no name.
static int ask_about_value(const Command *c, Words word, Question *q)
{
    int i, j;
    if (!is_value_name(word[1], q->pc) && !*word[2]) return 1;
    if (read_number(word[2], &i) && read_number(word[3], &j)) {
        q->value = find_value(word[1], i, j);
        if (!q->value) return 0;
    } else {
        q->from = word[1];
        q->to = word[2];
        if (!strchr(c->usage, '[')) return show_help(c);
    }
    return c->view(q), 0;
}

int command(const char *line, const void *pc)
{
    Words word = {"", "", "", ""};
    Question q = {.name = "", .number = {LATEST, LATEST}, .pc = pc};
    int n = sscanf(line, "%63s %63s %63s %63s", word[0], word[1], word[2], word[3]);
    const Command *c = find_command(n > 0 ? word[0] : "?"), *help = find_command(word[1]);
    if (strcmp(word[0], "help") == 0 && help) return show_help(help);
    if (!c) return print("%s: no such command; `views` lists them.\n", word[0]), 0;
    if (!c->view) return print("A debugger has this command: make debug.\n"), 0;
    if (!read_words(c, word, &q)) return show_help(c);
    if (strstr(c->usage, "EXPR")) return 1;
    bool setting = c->view == set_digits || c->view == set_depth || c->view == show_commands;
    if (!setting && !survey()) return 0;
    if (strstr(c->usage, "VALUE")) return ask_about_value(c, word, &q);
    return c->view(&q), 0;
}

void command_at(const char *name, double *value, int n)
{
    if (!survey()) return;
    const Command *c = find_command(name);
    View *view = on_tape(value) ? c->view : show_values;  // which says what else it is
    view(&(Question){.name = "", .value = value, .number = {n, LATEST}});
}

void answer(const char *line, const void *pc)
{
    if (command(line, pc))
        print("That is no name here: `explain &sum[0]` explains the variable sum. For a name in "
              "microgpt.c, go `up` to a function of that file first.\n");
}
