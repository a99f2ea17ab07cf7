/* tour.c: the walk through one training step and one sampled name.
 *
 * A stop is a line of microgpt.c, found by its text, what happens there, and the numbers of this
 * run. It fits a screen of 24 lines of 80 columns; what does not is shown by `more`. In gdb,
 * tour.gdb goes from stop to stop. With MICROGPT_TOUR=1 in its environment, the program itself
 * walks, without any debugger, and prints the same.
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POSITION = 3, HEAD = 1, ROW = 3, COLUMN = 5 };  // where we look
static const char matrix[] = "layer0.attn_wo";

// When the program itself shows a stop: before or after an operation, or before one of the two.
typedef enum { BEFORE, AFTER, AT_BACKWARD, AT_ADAM } When;

// The statement of a stop, and where in the loops it is; NONE: anywhere.
typedef struct {
    const char *function, *text;
    int position, head;
    When when;
} Where;

typedef struct {
    Where at;
    const char *shown;          // the statement that is shown, if it is another
    const char *debugger_text;  // where a debugger stops for it, if that is elsewhere
    const char *condition;      // when it stops there, if the loops do not say it
    const char *prose;
    void (*view)(void);
    void (*more)(void);  // NULL: there is no more
} Stop;

/* ------------------------------------------------------------------------
 * What the stops show.
 */
static void show_emb(void) { show_row("emb", POSITION); }
static void explain_emb(void) { show_value_named("emb", 0, POSITION); }

static void show_norms(void)
{
    show_row("emb", POSITION);
    show_row("emb_norm", POSITION);
    const Place *p = find_place("emb_norm", POSITION);
    double sum = 0;
    for (size_t i = 0; p && i < p->n; i++) sum += p->at[i] * p->at[i] / (double)p->n;
    print("the mean of its squares: %.*g\n", watched.digits, sum);
}

static void around_rmsnorm(void) { show_value_named("emb_norm", 0, POSITION); }
static void show_query(void) { show_row("q", POSITION); }
static void explain_query(void) { show_value_named("q", 4, POSITION); }
static void show_whole_cache(void) { show_cache(LATEST); }
static void show_slices(void) { show_head(HEAD, POSITION); }
static void show_logits(void) { show_vector("head1.attn_logits", POSITION); }
static void explain_logits(void) { show_value_named("head1.attn_logits", 2, POSITION); }
static void show_weights(void) { show_attention(HEAD, POSITION); }
static void explain_weights(void) { show_value_named("head1.attn_weights", 2, POSITION); }
static void show_output(void) { show_vector("head1.head_out", POSITION); }
static void explain_output(void) { show_value_named("head1.head_out", 0, POSITION); }
static void show_place(void) { show_landing(HEAD, POSITION); }

static void show_mixed(void)
{
    show_row("x_attn", POSITION);
    show_row("x_wo", POSITION);
}

static void around_wo(void) { show_value_named("x_wo", ROW, POSITION); }

// The sum itself: the two vectors that were added, and the third.
static void show_residual(void)
{
    const Place *sum = survey() ? need_place("x_mid", POSITION) : NULL;
    if (!sum || !sum->from || !sum->from->b) return;
    const Place *a = place_of(sum->from->a), *b = place_of(sum->from->b);
    if (!a || !b) return;
    print("    i %12s + %12s = %12s\n", a->name, b->name, sum->name);
    for (size_t i = 0; i < sum->n && i < 8; i++) {
        print("  %3zu %12.6g + %12.6g = %12.6g\n", i, a->at[i], b->at[i], sum->at[i]);
    }
}

static void explain_residual(void) { show_value_named("x_mid", 0, POSITION); }

static void show_hidden(void)
{
    const Place *p = survey() ? need_place("act", POSITION) : NULL;
    const Place *before = p ? operand_of(p) : NULL;
    size_t zeros = 0;
    if (!before) return;
    for (size_t i = 0; i < p->n; i++) zeros += p->at[i] == 0;
    print("    i %12s %12s\n", before->name, p->name);
    for (size_t i = 0; i < 8; i++) print("  %3zu %12.6g %12.6g\n", i, before->at[i], p->at[i]);
    print("%zu of %zu are zero.\n", zeros, p->n);
}

static void explain_hidden(void) { show_value_named("act", 0, POSITION); }
static void show_guess(void) { show_top(POSITION); }

static void explain_guess(void)
{
    show_value_named("probs", (int)watched.model->tokens[POSITION + 1], POSITION);
}

static void show_losses(void)
{
    show_document();
    const Place *loss = find_place("loss", LATEST);
    if (loss) print("  their mean, the loss: %.16g\n", *loss->at);
}

// How backward() goes through the last use of a parameter.
static void show_first_gain(void)
{
    double *p = survey() ? find_parameter(matrix, ROW, COLUMN) : NULL;
    if (!p) return;
    const Tape *tape = &watched.model->tape;
    const Entry *e = tape->entries + tape->n_entries;
    while (e > tape->entries && (e[-1].a != p && e[-1].b != p)) e--;
    if (e-- == tape->entries) return;
    double g = *grad(tape, e->out);
    int line = statement_start(line_that_made(e));
    print("entry %td: ", e - tape->entries);
    print_entry(e);
    print(", a part of microgpt.c:%d\n", line);
    print_statement(line, "    ");
    print("  a = %.6g, b = %.6g, gradient of out = %.6g\n", *e->a, *e->b, g);
    print("  the gradient of a was 0; it gains %.6g * %.6g = %.6g\n", *e->b, g, *e->b * g);
    print("  the gradient of b gains %.6g * %.6g = %.6g\n", *e->a, g, *e->a * g);
}

static void show_move(void) { show_moves(matrix, ROW, COLUMN); }
static void show_all_users(void) { show_users(matrix, ROW, COLUMN); }

static void show_first_draw(void)
{
    show_top(LATEST);
    show_draw();
}

static void show_later_draw(void)
{
    show_attention(0, LATEST);
    show_draw();
}

static void show_name(void)
{
    show_document();
    show_draw();
}

static const Stop stops[] = {
    {.at = {"sum_of_losses", "document_loss(", NONE, NONE, BEFORE},
     .condition = "1",
     .prose = "A training step begins. Its document is one name, a row of characters, and\n"
              "every character has a number: its token. The token BOS marks both its ends.\n"
              "From each token, and those before it, the model is to say which comes next.\n",
     .view = show_document},
    {.at = {"gpt", "tok_emb, pos_emb", POSITION, NONE, AFTER},
     .prose = "Embedding. We join at position 3, after three tokens have passed through. The\n"
              "token picks a row of the matrix wte, the position a row of wpe; their sum is\n"
              "how the model sees \"this character, at this place\".\n",
     .view = show_emb,
     .more = explain_emb},
    {.at = {"gpt", "rmsnorm(", POSITION, NONE, AFTER},
     .prose = "rmsnorm. The vector keeps its direction; it is divided by the root of the mean\n"
              "of its squares (plus a little, eps), so that this mean is nearly 1 afterwards.\n"
              "No later step has to cope with numbers that grow or fade from layer to layer.\n",
     .view = show_norms,
     .more = around_rmsnorm},
    {.at = {"gpt", "layer->attn_wq", POSITION, NONE, AFTER},
     .prose = "Query, key, value. Three matrices read the same vector. The query says what\n"
              "this position looks for, the key what it can be found by, the value what it\n"
              "hands on. Each element is a row of the matrix times x_norm, added up.\n",
     .view = show_query,
     .more = explain_query},
    {.at = {"gpt", "layer->attn_wv", POSITION, NONE, AFTER},
     .prose = "The cache. The key and the value of this position join those of the positions\n"
              "before it. That is all that a later position can know of an earlier one, and\n"
              "nothing of the past is computed twice.\n",
     .view = show_whole_cache},
    {.at = {"gpt", "attn_logits =", POSITION, HEAD, AFTER},
     .shown = "q_h =",
     .prose = "One head's slice, and what it makes of it. The heads share the vectors: each\n"
              "has its own part of the query, of every key and of every value, and starts at\n"
              "hs. Head 0 is done; here head 1 has read its part of the query and the keys.\n",
     .view = show_slices},
    {.at = {"gpt", "attn_logits =", POSITION, HEAD, AFTER},
     .prose = "Attention logits. The head's query is multiplied with its part of each cached\n"
              "key, element by element, and added up: the better the two fit, the higher the\n"
              "score. The root of head_dim keeps the scores small.\n",
     .view = show_logits,
     .more = explain_logits},
    {.at = {"gpt", "attn_weights =", POSITION, HEAD, AFTER},
     .prose = "Attention weights. softmax turns the scores into shares: all positive, with\n"
              "the sum 1. Before training they are nearly even, because the head has not\n"
              "learned yet where to look.\n",
     .view = show_weights,
     .more = explain_weights},
    {.at = {"gpt", "head_out =", POSITION, HEAD, AFTER},
     .prose = "Head output. The values of all positions are mixed, each by its weight. What\n"
              "the head has looked at most is most of what it says.\n",
     .view = show_output,
     .more = explain_output},
    {.at = {"gpt", "ag_copy(", POSITION, HEAD, AFTER},
     .prose = "Concatenation. The head's output goes to its place in x_attn, a row with room\n"
              "for the outputs of all heads.\n",
     .view = show_place},
    {.at = {"gpt", "layer->attn_wo", POSITION, NONE, AFTER},
     .prose = "wo. So far each head knows only its own slice. One more matrix mixes the row,\n"
              "so that every element of the result can draw on every head.\n",
     .view = show_mixed,
     .more = around_wo},
    {.at = {"gpt", "x, x_residual", POSITION, NONE, AFTER},
     .prose = "Residual connection. What attention found is added to what entered the layer:\n"
              "the layer corrects its input and does not replace it. Backward, the gradient\n"
              "flows through this addition undiminished.\n",
     .view = show_residual,
     .more = explain_residual},
    {.at = {"gpt", "relu(", POSITION, NONE, AFTER},
     .prose = "MLP. Now the position thinks for itself: a matrix makes the vector four times\n"
              "as long, relu sets what is negative to zero, and a second matrix brings it\n"
              "back to size. Here are the first eight before and after relu.\n",
     .view = show_hidden,
     .more = explain_hidden},
    {.at = {"document_loss", "probs =", POSITION, NONE, AFTER},
     .prose = "Logits. After the second residual connection, lm_head gives every token a\n"
              "score, and softmax makes them probabilities. An untrained model finds all of\n"
              "them about equally likely. The loss of this position is minus the logarithm of\n"
              "what the true next token got.\n",
     .view = show_guess,
     .more = explain_guess},
    {.at = {"train", "backward(", NONE, NONE, AT_BACKWARD},
     .condition = "step == 0",
     .prose = "Loss. Every position has one by now, and the loss of the document is their\n"
              "mean. All that was computed is on the tape, one entry for each operation.\n",
     .view = show_losses,
     .more = show_tape},
    {.at = {"train", "backward(", NONE, NONE, AT_ADAM},
     .condition = "step == 0",
     .prose = "Backward, through one multiplication. The tape is read from its end. One entry\n"
              "of it made out = a * b, with a the parameter layer0.attn_wo[3][5]. A change of\n"
              "a counts b times in out: so b times the gradient of out is added to the\n"
              "gradient of a, and for b it is the other way round.\n",
     .view = show_first_gain},
    {.at = {"train", "adam(", NONE, NONE, AT_ADAM},
     .condition = "step == 0",
     .prose = "Adam. Every parameter now has its gradient. Adam keeps a running mean of the\n"
              "gradients, m, and of their squares, v, and moves the parameter against m, in\n"
              "steps of about the learning rate, whatever the gradient's size.\n",
     .view = show_move,
     .more = show_all_users},
    {.at = {"sample", "probs =", 0, NONE, AFTER},
     .debugger_text = "choose_token(",
     .prose = "Sampling. The trained model starts from BOS alone. Its logits are divided by\n"
              "the temperature, softmax makes probabilities of them, and one token is drawn;\n"
              "it is the next input.\n",
     .view = show_first_draw},
    {.at = {"sample", "probs =", POSITION, NONE, AFTER},
     .debugger_text = "choose_token(",
     .prose = "Three characters later. The first head has learned by now where to look.\n",
     .view = show_later_draw},
    {.at = {"sample", "probs =", NONE, NONE, AFTER},
     .debugger_text = "choose_token(",
     .condition = "draws_the_end()",
     .prose = "The end. BOS is drawn, and the name is complete.\n",
     .view = show_name},
};

int n_stops(void) { return (int)(sizeof stops / sizeof stops[0]); }

/* ------------------------------------------------------------------------
 * For tour.gdb.
 */
static const Stop *stop_number(int stop)
{
    return stop >= 1 && stop <= n_stops() ? &stops[stop - 1] : NULL;
}

int stop_line(int stop)
{
    const Stop *s = stop_number(stop);
    return s ? line_of(s->at.function, s->debugger_text ? s->debugger_text : s->at.text) : 0;
}

// Is it where the stop before it is?
int stop_is_same(int stop)
{
    const Stop *s = stop_number(stop), *before = stop_number(stop - 1);
    return s && before && strcmp(s->at.function, before->at.function) == 0 &&
           strcmp(s->at.text, before->at.text) == 0 && s->at.position == before->at.position;
}

const char *stop_condition(int stop)
{
    static char text[64];
    const Stop *s = stop_number(stop);
    if (!s) return "0";
    if (s->condition) return s->condition;
    snprintf(text, sizeof text, s->at.head == NONE ? "pos_id == %d" : "pos_id == %d && h == %d",
             s->at.position, s->at.head);
    return text;
}

// The gradient that stop 16 waits for, to be watched by the debugger.
double *watch_first_gain(void)
{
    double *p = survey() ? find_parameter(matrix, ROW, COLUMN) : NULL;
    return p ? grad(&watched.model->tape, p) : NULL;
}

// Has the statement of a stop run, where the stop is to show what it made?
int stop_is_done(int stop)
{
    const Stop *s = stop_number(stop);
    if (!s || s->at.when != AFTER || s->debugger_text || !survey()) return 1;
    int line = statement_start(line_of(s->at.function, s->at.text));
    for (size_t i = n_places(); i-- > 0;) {
        const Place *p = place(i);
        bool head = s->at.head == NONE || p->head == s->at.head;
        if (p->line == line && head && p->position == s->at.position &&
            p->position == latest_position())
            return 1;
    }
    const Tape *tape = &watched.model->tape;
    const Entry *last = tape->entries + tape->n_entries - 1;
    return strcmp(s->at.text, "ag_copy(") == 0 && last->op == OP_COPY;
}

// The next draw of the sample is its last: for the condition of the last stop.
int draws_the_end(void)
{
    const Place *probs = survey() ? find_place("probs", LATEST) : NULL;
    if (!sampling() || !probs || probs->position != latest_position()) return 0;
    Random random = *draws_from();
    bool full = (size_t)probs->position + 1 == watched.model->block_size;
    return full || random_choice(&random, probs->at, probs->n) == watched.tokenizer->BOS;
}

void show_stop(int stop)
{
    const Stop *s = stop_number(stop);
    if (!s) return;
    int line = statement_start(line_of(s->at.function, s->shown ? s->shown : s->at.text));
    print("==== %d of %d ==== microgpt.c:%d, in %s()%s\n", stop, n_stops(), line, s->at.function,
          s->at.when == AFTER ? ", done:" : "");
    print_statement(line, "    ");
    print_comment(line, "    ");
    print("\n%s\n", s->prose);
    s->view();
}

int has_more(int stop)
{
    const Stop *s = stop_number(stop);
    return s && s->more;
}

void show_more(int stop)
{
    if (has_more(stop)) stops[stop - 1].more();
}

/* ------------------------------------------------------------------------
 * The walk without a debugger.
 */
static int next_stop;  // 0: there is no walk

static bool walking(void)
{
    static bool asked;
    if (!asked && watched.model) {
        asked = true;
        next_stop = getenv("MICROGPT_TOUR") ? 1 : 0;
        if (next_stop) {
            print("A walk through one training step and one sampled name, in %d stops.\n",
                  n_stops());
        }
    }
    return next_stop >= 1 && next_stop <= n_stops();
}

// Enter goes on, m shows more, q ends the walk. Without a keyboard and a screen, all is shown.
static void ask_reader(int stop)
{
    bool more = has_more(stop);
    if (!isatty(0) || !isatty(1)) {
        if (more) print("\n");
        show_more(stop);
        return;
    }
    for (char line[64];;) {
        printf("(%d of %d: Enter goes on%s, q quits) ", stop, n_stops(),
               more ? ", m shows more" : "");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin) || line[0] == 'q') exit(0);
        if (line[0] != 'm' || !more) return;
        show_more(stop);
        more = false;
    }
}

static void arrive(void)
{
    print("\n");
    show_stop(next_stop);
    ask_reader(next_stop);
    next_stop++;
}

void walk_note(const char *function, int line, const size_t loops[3], bool done)
{
    while (walking()) {
        const Stop *s = &stops[next_stop - 1];
        if (s->at.when != (done ? AFTER : BEFORE) || strcmp(function, s->at.function) != 0) return;
        if (statement_start(line) != statement_start(line_of(s->at.function, s->at.text))) return;
        if (s->at.position != NONE && loops[0] != (size_t)s->at.position) return;
        if (s->at.head != NONE && loops[2] != (size_t)s->at.head) return;
        if (s->view == show_name && !draws_the_end()) return;
        arrive();
    }
}

void walk_backward(void)
{
    while (walking() && stops[next_stop - 1].at.when == AT_BACKWARD) arrive();
}

void walk_adam(void)
{
    while (walking() && stops[next_stop - 1].at.when == AT_ADAM) arrive();
    bool training = walking() && strcmp(stops[next_stop - 1].at.function, "sample") == 0;
    uint64_t done = training ? watched.model->steps_done : 0, steps = watched.run->config->steps;
    if (done && done % 200 == 0) {
        print("%s  step %d of %d\n",
              done == 200 ? "\nThe other training steps, without a stop:\n" : "", (int)done,
              (int)steps);
    }
}
