/* tour.c: the walk through one training step and one sampled name.
 *
 * A stop is a value of microgpt.c, by its name, what happens there, and the numbers of this run. It
 * fits a screen of 24 lines of 80 columns; what does not is shown by `more`. The program itself walks,
 * if MICROGPT_TOUR says from which stop on: it tells every stop, and asks what to do next, or calls
 * walk_stop(), where a debugger stops.
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POSITION = 3, HEAD = 1, ROW = 3, COLUMN = 5 };  // where we look

typedef struct {
    const char *value;     // shown when this has been made, or called; NULL: when adam() is called
    int position, head;    // in the loops; NONE: anywhere
    const char *function;  // where it is made; NULL: wherever
    const char *views;     // the commands that it shows, between bars
    const char *more;      // the command that shows more; NULL: there is no more
    void (*own)(void);     // what no command shows, or NULL
    const char *prose;
} Stop;

/* ------------------------------------------------------------------------
 * What no command shows.
 */
static const Place *here(const char *name) { return find_place(name, POSITION); }

static void show_mean_square(void)
{
    const Place *p = here("emb_norm");
    double sum = 0;
    for (size_t i = 0; p && i < p->n; i++) sum += p->at[i] * p->at[i] / (double)p->n;
    print("the mean of its squares: %.*g\n", watched.digits, sum);
}

// The lesson's lines 125 to 128, one by one, each with what it gives here.
static void show_slices(void)
{
    size_t head_dim = watched.model->head_dim;
    print("    size_t hs = h * head_dim;  // 125\n  hs  %d * %zu = %zu\n", HEAD, head_dim,
          HEAD * head_dim);
    for (const char *const *name = head_slices; *name; name++) {
        char text[32];
        snprintf(text, sizeof text, "%s =", *name);
        print_statement(line_of("gpt", text), "    ");
        show_head_slice(HEAD, *name, POSITION);
    }
}

static void show_residual(void)
{
    const Place *a = here("x_wo"), *b = here("x_residual"), *sum = here("x_mid");
    if (!a || !b || !sum) return;
    head_of("  i", "x_wo", "x_residual", "x_mid", NULL);
    for (size_t i = 0; i < 8 && i < a->n; i++) {
        char label[8];
        snprintf(label, sizeof label, "%3zu", i);
        row_of(label, 3, a->at[i], b->at[i], sum->at[i]);
    }
}

// fc1 and act; after backward(), with the gradient of each.
static void show_relu(void)
{
    const Place *before = here("fc1"), *p = here("act");
    size_t zeros = 0;
    if (!before || !p) return;
    bool grads = gradients_known();
    head_of("  i", "fc1", "act", grads ? "grad of act" : NULL, "grad of fc1", NULL);
    for (size_t i = 0; i < 8 && i < p->n; i++) {
        char label[8];
        snprintf(label, sizeof label, "%3zu", i);
        row_of(label, grads ? 4 : 2, before->at[i], p->at[i], gradient_of(p->at + i),
               gradient_of(before->at + i));
    }
    for (size_t i = 0; i < p->n; i++) zeros += p->at[i] == 0;
    print("%zu of %zu are off.\n", zeros, p->n);
}

// The gradients of the logits, beside the formula for them.
static void show_way_to_logits(void)
{
    const Place *logits = here("logits"), *probs = here("probs");
    const Place *losses = find_place("losses", LATEST);
    if (!logits || !probs || !losses) return;
    size_t target = token_at(POSITION + 1);
    double sum = 0, n = (double)losses->n;
    head_of("logit   ", "probability", "minus", "over n", "gradient", NULL);
    for (size_t i = 0; i < logits->n; i++) {
        double one = i == target, p = probs->at[i], gradient = gradient_of(logits->at + i);
        char label[40];
        sum += gradient;
        if (i > 4 && i != target && i + 1 != logits->n) continue;
        snprintf(label, sizeof label, "%3zu %-4s", i, token_text(i));
        row_of(label, 4, p, one, (p - one) / n, gradient);
    }
    print("  the sum of all %zu gradients: %.1g\n", logits->n, fabs(sum) < 1e-15 ? 0 : sum);
}

// Through one head: from its output to the weights, the logits, and an element of the query.
static void show_way_through_head(void)
{
    const Place *weights = here("head1.attn_weights"), *q = here("head1.q_h");
    const Place *logits = here("head1.attn_logits"), *out = here("head1.head_out");
    if (!weights || !logits || !q || !out) return;
    double mean = 0, sum = 0, factor = 1 / sqrt((double)watched.model->head_dim);
    for (size_t t = 0; t < weights->n; t++) mean += weights->at[t] * gradient_of(weights->at + t);
    print("  the gradient of head_out:");
    for (size_t j = 0; j < out->n; j++) print(" %.6g", gradient_of(out->at + j));
    print("\n");
    head_of("t     ", "weight", "its gradient", "minus mean", "* weight", "of the logit", NULL);
    for (size_t t = 0; t < weights->n; t++) {
        const Place *k = find_place("k", (int)t);
        double w = weights->at[t], g = gradient_of(weights->at + t),
               of_logit = gradient_of(logits->at + t);
        char label[40];
        snprintf(label, sizeof label, "%zu %-4s", t, text_at((int)t));
        row_of(label, 5, w, g, g - mean, w * (g - mean), of_logit);
        if (k) sum += of_logit * k->at[HEAD * watched.model->head_dim] * factor;
    }
    print("  the mean, each gradient times its weight: %.6g\n", mean);
    print("  those of the logits * k_h[t][0] * %g, added up: %.6g\n", factor, sum);
    print("  the gradient of q_h[0]: %.6g\n", gradient_of(q->at));
}

// A token that is not in the document, in the two matrices that have a row for each.
static void show_unread_row(void)
{
    const Model *model = watched.model;
    size_t token = 0, n = model->n_embd < 3 ? model->n_embd : 3;
    for (size_t t = 0; t < model->block_size; t++) {
        if (model->tokens[t] == token) token++, t = SIZE_MAX;
        if (t != SIZE_MAX && t > 0 && model->tokens[t] == watched.tokenizer->BOS) break;
    }
    const Matrix *w[] = {model->wte, model->wte, model->lm_head};
    const size_t rows[] = {model->tokens[1], token, token};
    for (int i = 0; i < 3; i++) {
        double *row = w[i]->data + rows[i] * w[i]->cols;
        print("  %-8s row %2zu (%s), gradient", w[i]->name, rows[i], token_text(rows[i]));
        for (size_t k = 0; k < n; k++) number(gradient_of(row + k));
        print(" ..\n");
    }
}

// How backward() goes through the last use of a parameter.
static void show_first_gain(void)
{
    double *p = find_parameter("layer0.attn_wo", ROW, COLUMN);
    if (!p) return;
    const Tape *tape = &watched.model->tape;
    const Entry *e = tape->entries + tape->n_entries;
    while (e > tape->entries && e[-1].a != p && second_operand(e - 1) != p) e--;
    if (e-- == tape->entries) return;
    double g = *grad(tape, e->out), *second = second_operand(e);
    int line = statement_start(line_that_made(e));
    if (!second) return;
    print("entry %td: out = %s * %s, in microgpt.c:%d\n", e - tape->entries, value_name(e->a),
          value_name(second), line);
    print_statement(line, "    ");
    print("  a = %.6g, b = %.6g, gradient of out = %.6g\n", *e->a, *second, g);
    print("  the gradient of a was 0; it gains %.6g * %.6g = %.6g\n", *second, g, *second * g);
    print("  the gradient of b gains %.6g * %.6g = %.6g\n", *e->a, g, *e->a * g);
}

static const Stop stops[] = {
    {"losses", NONE, NONE, NULL, "doc", NULL, NULL,
     "A training step begins. Its document is one name, a row of characters, and\n"
     "every character has a number: its token. The token BOS marks both its ends.\n"
     "From each token, and those before it, the model is to say which comes next.\n"},
    {"emb", POSITION, NONE, NULL, "row emb 3", "explain emb 0 3", NULL,
     "Embedding. We join at position 3, after three tokens have passed through. The\n"
     "token picks a row of the matrix wte, the position a row of wpe; their sum is\n"
     "how the model sees \"this character, at this place\".\n"},
    {"emb_norm", POSITION, NONE, NULL, "row emb 3|row emb_norm 3", "explain emb_norm 0 3",
     show_mean_square,
     "rmsnorm. The vector keeps its direction; it is divided by the root of the mean\n"
     "of its squares (plus a little, eps), so that this mean is nearly 1 afterwards.\n"
     "No later step has to cope with numbers that grow or fade from layer to layer.\n"},
    {"q", POSITION, NONE, NULL, "row q 3", "explain q 4 3", NULL,
     "Query, key, value. Before it reads x, each layer scales it once more (x_norm):\n"
     "layers add to x, so it may have grown. In this first layer nothing was added\n"
     "yet, and x_norm is emb_norm but for eps. Three matrices read x_norm: the query\n"
     "says what this position looks for, the key what it can be found by, the value\n"
     "what it hands on. Each element is a row of the matrix times x_norm, added up.\n"},
    {"x_attn", POSITION, NONE, NULL, "cache", NULL, NULL,
     "The cache. The key and the value of this position join those of the positions\n"
     "before it. That is all that a later position can know of an earlier one, and\n"
     "nothing of the past is computed twice. Rows lie one after another in memory:\n"
     "each begins n_embd numbers after the one before.\n"},
    {"attn_logits", POSITION, HEAD, NULL, "", NULL, show_slices,
     "One head's slices. The heads share the vectors: each has its own part of the\n"
     "query, of every key and of every value. Head 0 is done; this is head 1.\n"},
    {"attn_logits", POSITION, HEAD, NULL, "vec head1.attn_logits 3",
     "explain head1.attn_logits 2 3", NULL,
     "Attention logits. The head's query is multiplied with its part of each cached\n"
     "key, element by element, and added up: the better the two fit, the higher the\n"
     "score. Then it is divided by the root of head_dim: sums of more products are\n"
     "larger, and softmax would make too much of that. Here 1 / sqrt(4) = 0.5.\n"},
    {"attn_weights", POSITION, HEAD, NULL, "attn 1 3", "explain head1.attn_weights 2 3", NULL,
     "Attention weights. softmax turns the scores into shares: e to each score,\n"
     "divided by the sum of these. All are positive, with the sum 1. Before training\n"
     "they are nearly even, because the head has not learned yet where to look.\n"},
    {"head_out", POSITION, HEAD, NULL, "vec head1.head_out 3", "explain head1.head_out 0 3", NULL,
     "Head output. The values of all positions are mixed, each by its weight. What\n"
     "the head has looked at most is most of what it says.\n"},
    {"ag_copy", POSITION, HEAD, NULL, "lands 1 3", NULL, NULL,
     "Concatenation. The head's output goes to its place in x_attn, a row with room\n"
     "for the outputs of all heads: head 1 begins at element hs = 4.\n"},
    {"x_wo", POSITION, NONE, NULL, "row x_attn 3|row x_wo 3", "explain x_wo 3 3", NULL,
     "wo. So far each head knows only its own slice. One more matrix mixes the row,\n"
     "so that every element of the result can draw on every head.\n"},
    {"x_mid", POSITION, NONE, NULL, "", "explain x_mid 0 3", show_residual,
     "Residual connection. What attention found is added to what entered the layer:\n"
     "the layer corrects its input and does not replace it. Backward, the gradient\n"
     "flows through this addition undiminished.\n"},
    {"act", POSITION, NONE, NULL, "", "explain act 0 3", show_relu,
     "MLP. Now the position thinks for itself: a matrix makes the vector four times\n"
     "as long, relu sets what is negative to zero, and a second matrix brings it\n"
     "back to size. Here are the first eight before and after relu.\n"},
    {"probs", POSITION, NONE, "document_loss", "top5 3", "explain probs 8 3", NULL,
     "Logits. After the second residual connection, lm_head gives every token a\n"
     "score, and softmax makes them probabilities. An untrained model finds all of\n"
     "them about equally likely, near 1/27 = 0.037. The loss of this position is\n"
     "minus the logarithm of what the true next token got.\n"},
    {"loss", NONE, NONE, NULL, "doc", "tape", NULL,
     "Loss. Every position has one by now, and the loss of the document is their\n"
     "mean. All that was computed is on the tape, one entry for each operation.\n"},
    {NULL, NONE, NONE, NULL, "", NULL, show_way_to_logits,
     "The way back, from the loss to the logits. backward() has run. For -log p of\n"
     "the target, calculus gives the gradient of every logit: its probability, minus\n"
     "1 if it is the target. The loss is a mean of n = 7, so each counts 1/7: with\n"
     "p = 0.03 or so, about 0.004, and for the target about -0.14. What one logit\n"
     "gains the others lose.\n"},
    {NULL, NONE, NONE, NULL, "", NULL, show_way_through_head,
     "The way back through a head. A weight's gradient is head_out's times its row of\n"
     "v_h (stop 6). Weights share a sum of 1: one can only grow at the cost of the\n"
     "others, so softmax takes off the mean, and multiplies by the weight: that is\n"
     "the gradient of the logit. Through q . k / sqrt(4) it goes on to q_h, by k_h.\n"
     "Predict the last number from the line above it.\n"},
    {NULL, NONE, NONE, NULL, "", NULL, show_relu,
     "The way back through relu. Where relu was on, the gradient passes unchanged.\n"
     "Where it was off (fc1 is negative), nothing passes: a small change there would\n"
     "not change the loss. Cover the last column: what is in it?\n"},
    {NULL, NONE, NONE, NULL, "", NULL, show_first_gain,
     "Backward, through one multiplication. The tape is read from its end. One entry\n"
     "of it made out = a * b, with a the parameter layer0.attn_wo[3][5]. A change of\n"
     "a counts b times in out: so b times the gradient of out is added to the\n"
     "gradient of a, and for b it is the other way round.\n"},
    {NULL, NONE, NONE, NULL, "users layer0.attn_wo 3 5", NULL, NULL,
     "Seven gradients in one weight. The same parameter was used at each of the\n"
     "seven positions, each use leads to the loss of its position, and each adds its\n"
     "product to the one gradient. The last entry is the one of the stop before.\n"},
    {NULL, NONE, NONE, NULL, "", NULL, show_unread_row,
     "What was not read. A token that is not in the name had its row of wte read by\n"
     "nothing: its gradient is 0, and this step will not move it. But lm_head scored\n"
     "that token at every position, and each time too high by p: its row has one.\n"},
    {NULL, NONE, NONE, NULL, "moves layer0.attn_wo 3 5", "biggest moves", NULL,
     "Adam. Every parameter has its gradient. Adam keeps a running mean of the\n"
     "gradients, m, and of their squares, v, and moves the parameter against m_hat\n"
     "over the root of v_hat. In the first step these are the gradient and its size:\n"
     "the move is the learning rate, 0.01, whatever the gradient is. Later it is less\n"
     "where gradients change their sign from step to step.\n"},
    {"probs", 0, NONE, "sample", "top5|draw", NULL, NULL,
     "Sampling. The trained model starts from BOS alone. Its logits are divided by\n"
     "the temperature, 0.5: every difference between two scores is doubled, so that\n"
     "what is likely becomes likelier. softmax makes probabilities of the scores, and\n"
     "one token is drawn; it is the next input.\n"},
    {"probs", POSITION, NONE, "sample", "attn 0|draw", NULL, NULL,
     "Three characters later. Where head 0 looks by now: compare it with the nearly\n"
     "even weights of the untrained head at stop 8.\n"},
    {"probs", NONE, NONE, "sample", "doc|draw", NULL, NULL,
     "The end. BOS is drawn, and the name is complete.\n"},
};

enum { BEHIND, AHEAD, NO_STOP };  // what a debugger's `go` asks for, too

int n_stops(void) { return (int)(sizeof stops / sizeof stops[0]); }

/* ------------------------------------------------------------------------
 * The walk.
 */
static struct {
    int next, from, now;  // the next stop; the first to be shown; the one that was shown last
    bool due;             // what the next stop shows has been made
    bool debugger;        // it asks the reader
    const char *function;
    int line;  // of microgpt.c, where that is
} walk;

static const Stop *next_stop(void)
{
    static bool asked;
    if (!asked && watched.model) {
        const char *from = getenv("MICROGPT_TOUR");
        asked = true;
        walk.next = from ? 1 : 0;
        walk.from = from ? atoi(from) : 0;
        walk.debugger = from && strstr(from, "debugger");
        if (walk.from == 1)
            print("A walk through one training step and one sampled name, in %d stops.\n",
                  n_stops());
    }
    return walk.next >= 1 && walk.next <= n_stops() ? &stops[walk.next - 1] : NULL;
}

int walk_number(void) { return walk.now; }

// Is the next stop at the same place?
int walk_stays(void)
{
    const Stop *s = next_stop();
    return s && (s->value ? walk.due : !stops[walk.now - 1].value);
}

// Tells the walk to go on to a stop, if that is still to come; otherwise it has to begin again.
int walk_to(int stop)
{
    bool is_stop = stop >= 1 && stop <= n_stops();
    if (!is_stop) print("The walk has %d stops: `go 7` goes to stop 7.\n", n_stops());
    if (!is_stop) return NO_STOP;
    if (walk.next == 0 || stop < walk.next) return BEHIND;
    walk.from = stop;
    return AHEAD;
}

// The next draw of the sample is its last.
static bool draws_the_end(void)
{
    const Place *probs = survey() ? find_place("probs", LATEST) : NULL;
    if (!probs) return false;
    Random random = *watched.run->rng;
    bool full = (size_t)probs->position + 1 == watched.model->block_size;
    return full || random_choice(&random, probs->at, probs->n) == watched.tokenizer->BOS;
}

// A value has been made: is it the one of the next stop?
void walk_sees(const Note *note)
{
    const Stop *s = next_stop();
    char name[40];
    const char *meaning;
    if (!s || !s->value || walk.due) return;
    if (s->position != NONE && note->loops[0] != (size_t)s->position) return;
    if (s->head != NONE && note->loops[2] != (size_t)s->head) return;
    if (s->function && strcmp(note->function, s->function) != 0) return;
    bool named = name_in_source(note->line, name, &meaning);
    if (strcmp(named ? name : note->operation, s->value) != 0) return;
    if (s->value && s == &stops[n_stops() - 1] && !draws_the_end()) return;
    walk.due = true;
    walk.function = note->function;
    walk.line = statement_start(note->line);
}

static void pass_stop(void)
{
    const Stop *s = &stops[walk.next++ - 1], *next = next_stop();
    walk.due = next && s->value && next->value && strcmp(next->value, s->value) == 0 &&
               next->position == s->position;
}

// Is a stop to be shown here? Those before the first to be shown pass.
bool walk_is_due(bool at_adam)
{
    for (const Stop *s = next_stop(); s && (s->value ? walk.due : at_adam); s = next_stop()) {
        if (walk.next >= walk.from) return true;
        pass_stop();
    }
    const Stop *s = next_stop();
    bool training = s && at_adam && s->function && strcmp(s->function, "sample") == 0;
    uint64_t done = training ? watched.model->steps_done : 0, steps = watched.run->config->steps;
    if (done && done % 200 == 0) {
        print("%s  step %d of %d\n",
              done == 200 ? "\nThe other training steps, without a stop:\n" : "", (int)done,
              (int)steps);
    }
    return false;
}

static void show_stop(const Stop *s)
{
    bool moves = strncmp(s->views, "moves", 5) == 0;
    if (s->value && strcmp(s->value, "x_attn") == 0) walk.line = line_of("gpt", "attn_wv");
    if (!s->value) walk.function = "train";
    if (!s->value) walk.line = line_of("train", moves ? "adam(" : "backward(");
    print("==== %d of %d ==== microgpt.c:%d, in %s()%s\n", walk.now, n_stops(), walk.line,
          walk.function, moves ? "" : ", done:");
    if (s->own != show_slices) {
        print_statement(walk.line, "    ");
        print_comment(walk.line, "    ");
    }
    print("\n%s\n", s->prose);
    for (const char *view = s->views; *view; view += strcspn(view, "|"), view += *view == '|') {
        char one[64];
        snprintf(one, sizeof one, "%.*s", (int)strcspn(view, "|"), view);
        command(one, NULL);
    }
    if (s->own && survey()) s->own();
}

// What did not fit the stop that was shown last.
void show_more(void)
{
    const Stop *s = walk.now ? &stops[walk.now - 1] : NULL;
    if (s && s->more) command(s->more, NULL);
    if (!s || !s->more) print("There is no more to this stop.\n");
}

static void begin_again(int stop)
{
    char from[24];
    snprintf(from, sizeof from, "%d", stop);
    print("(It starts again and runs to stop %d.)\n", stop);
    setenv("MICROGPT_TOUR", from, 1);
    execl("./microgpt-debug", "microgpt-debug", "--quiet", "--samples", "1", (char *)NULL);
}

// Without a debugger: Enter goes on, q ends the walk, any command is answered. Without a keyboard and
// a screen, all is shown.
static void ask_reader(void)
{
    bool more = stops[walk.now - 1].more;
    if (!isatty(0) || !isatty(1)) {
        if (more) print("\n");
        if (more) show_more();
        return;
    }
    for (char line[200], word[200];;) {
        int stop = 0;
        printf("(%d of %d: go, %sback, q, or any command) ", walk.now, n_stops(),
               more ? "more, " : "");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) exit(0);
        int n = sscanf(line, "%199s %d", word, &stop);
        bool go = n > 0 && strcmp(word, "go") == 0, back = n > 0 && strcmp(word, "back") == 0;
        if (n < 1 || (go && n == 1)) return;
        if (strcmp(word, "q") == 0 || strcmp(word, "quit") == 0) exit(0);
        if (back) stop = walk.now - 1;
        int where = go || back ? walk_to(stop) : NO_STOP;
        if (where == AHEAD) return;
        if (where == BEHIND) begin_again(stop);
        if (go || back) continue;
        if (strcmp(word, "more") == 0)
            show_more();
        else if (command(line, NULL))
            print("That is for a debugger: `make tour` in gdb.\n");
    }
}

void walk_arrive(void)
{
    const Stop *s = next_stop();
    walk.now = walk.next;
    print("\n");
    show_stop(s);
    pass_stop();
    if (!walk.debugger) ask_reader();
}
