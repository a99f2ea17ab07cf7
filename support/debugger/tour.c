/* tour.c: the walk through one training step and one sampled name.
 *
 * A stop is a value of microgpt.c, by its name, what happens there, and the numbers of this run. It
 * fits a screen of 24 lines of 80 columns; what does not is shown by `more`. The program itself
 * walks, if MICROGPT_TOUR says from which stop on: it tells every stop, and asks what to do next,
 * or calls walk_stop(), where a debugger stops.
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POSITION = 3, HEAD = 1 };  // where we look

typedef struct {
    const char *value;  // shown when this has been made: FUNCTION NAME; NULL: when adam() is called
    const char *line;   // a text of the line that is shown; NULL: it is the one that made the value
    const char *views;  // the commands that it shows, between bars, or NULL
    const char *more;   // the command that shows more; NULL: there is no more
    void (*own)(void);  // what no command shows, or NULL
    const char *prose;
} Stop;

/* ------------------------------------------------------------------------
 * What no command shows.
 */
static const Place *here(const char *name) { return find_place(name, POSITION); }

// The lesson's lines 125 to 128, one by one, each with what it gives here.
static void show_slices(void)
{
    size_t head_dim = watched.model->head_dim;
    print("    size_t hs = h * head_dim;  // 125\n  hs  %d * %zu = %zu\n", HEAD, head_dim,
          HEAD * head_dim);
    for (const char *const *name = head_slices; *name; name++) {
        char text[32];
        snprintf(text, sizeof text, "%s =", *name);
        print_statement(line_of("gpt", text));
        show_head_slice(HEAD, *name, POSITION);
    }
}

static void show_residual(void)
{
    const Place *const places[] = {here("x_wo"), here("x_residual"), here("x_mid")};
    side_by_side(3, places, (const char *[]){"x_wo", "x_residual", "x_mid"}, 8);
}

static void show_relu(void)
{
    const Place *act = here("act"), *const places[] = {act, here("fc1")};
    size_t zeros = 0;
    side_by_side(2, places, (const char *[]){"act", "fc1"}, 8);
    for (size_t i = 0; i < act->n; i++) zeros += act->at[i] == 0;
    print("%zu of %zu are off.\n", zeros, act->n);
}

// The gradients of the logits, beside the formula for them.
static void show_way_to_logits(void)
{
    const Place *logits = here("logits"), *probs = here("probs");
    size_t target = token_at(POSITION + 1), n = find_place("losses", LATEST)->n;
    double sum = 0;
    head_of("logit   ", "probability", "minus", "over n", "gradient", NULL);
    for (size_t i = 0; i < logits->n; i++) {
        double one = i == target, p = probs->at[i], gradient = gradient_of(logits->at + i);
        sum += gradient;
        if (i > 4 && i != target && i + 1 != logits->n) continue;
        print("  %3zu %-4s", i, token_text(i));
        numbers(4, p, one, (p - one) / (double)n, gradient);
    }
    print("  the sum of all %zu gradients: %.1g\n", logits->n, fabs(sum) < 1e-15 ? 0 : sum);
}

// Through one head: from its output to the weights, the logits, and an element of the query.
static void show_way_through_head(void)
{
    const Place *weights = here("head1.attn_weights"), *logits = here("head1.attn_logits");
    const Place *out = here("head1.head_out");
    double mean = 0, sum = 0, factor = 1 / sqrt((double)watched.model->head_dim);
    for (size_t t = 0; t < weights->n; t++) mean += weights->at[t] * gradient_of(weights->at + t);
    print("  the gradient of head_out:");
    for (size_t j = 0; j < out->n; j++) print(" %.6g", gradient_of(out->at + j));
    head_of("\n  t     ", "weight", "its gradient", "minus mean", "* weight", "of the logit", NULL);
    for (size_t t = 0; t < weights->n; t++) {
        double w = weights->at[t], g = gradient_of(weights->at + t);
        double of_logit = gradient_of(logits->at + t);
        print("  %zu %-4s", t, text_at((int)t));
        numbers(5, w, g, g - mean, w * (g - mean), of_logit);
        sum += of_logit * find_place("k", (int)t)->at[HEAD * watched.model->head_dim] * factor;
    }
    print("  the mean, each gradient times its weight: %.6g\n", mean);
    print("  those of the logits * k_h[t][0] * %g, added up: %.6g\n", factor, sum);
    print("  the gradient of q_h[0]: %.6g\n", gradient_of(here("head1.q_h")->at));
}

static const Stop stops[] = {
    {"document_loss losses", NULL, "doc", NULL, NULL,
     "A training step begins. Its document is one name, a row of characters, and\n"
     "every character has a number: its token. The token BOS marks both its ends.\n"
     "From each token, and those before it, the model is to say which comes next.\n"
     "We follow position 3: it knows BOS, m, y and l, and should say i.\n"},
    {"gpt emb@3", NULL, "row emb 3", "explain emb 0 3", NULL,
     "Embedding. The token picks a row of the matrix wte, the position a row of wpe;\n"
     "their sum is \"this character, at this place\". All of it is still random: both\n"
     "rows have numbers of about 0.08, plus or minus, and their sum has 0.11 or so.\n"},
    {"gpt emb_norm@3", NULL, "row emb_norm.ms 3|row emb_norm.scale 3|row emb_norm 3",
     "explain emb_norm 0 3", NULL,
     "rmsnorm. ms is the mean of the squares of emb, and scale is 1 / sqrt(ms + eps),\n"
     "eps being tiny. All of emb is multiplied by scale: the direction stays, and the\n"
     "numbers are now about 1. So they neither grow nor fade from layer to layer.\n"},
    {"gpt q@3", NULL, "row q 3", "explain q 4 3", NULL,
     "Query, key, value. Before it reads x, each layer scales it once more (x_norm):\n"
     "layers add to x, so it may have grown. In this first layer nothing was added\n"
     "yet, and x_norm is emb_norm but for eps. Three matrices read x_norm: the query\n"
     "says what this position looks for, the key what it can be found by, the value\n"
     "what it hands on. An element is a row of the matrix times x_norm, added up: 16\n"
     "products of about 0.08. Their signs differ, and they cancel in part: the sum\n"
     "grows only by sqrt(16), to about 0.32.\n"},
    {"gpt x_attn@3", "ag_copy(tape, values", "cache", NULL, NULL,
     "The cache. The key and the value of this position join those of positions 0 to\n"
     "2. That is all that a later position can know of an earlier one. Rows lie one\n"
     "after another in memory: each begins n_embd = 16 numbers after the last.\n"},
    {"gpt head1.attn_logits@3", NULL, NULL, NULL, show_slices,
     "One head's slices. The heads share the vectors: each has its own part of the\n"
     "query, of every key and of every value. Head 0 is done; this is head 1, and its\n"
     "part of q is the second row of four at stop 4.\n"},
    {"gpt head1.attn_logits@3", NULL, "vec head1.attn_logits 3", "explain head1.attn_logits 2 3",
     NULL,
     "Attention logits. The head's query is multiplied with its part of each cached\n"
     "key, element by element, and added up: the better the two fit, the higher the\n"
     "score. Then it is divided by the root of head_dim: sums of more products are\n"
     "larger, and softmax would make too much of that. With stop 6, for BOS:\n"
     "(0.159 * 0.272 + 0.033 * 0.273 - 0.096 * 0.398 - 0.244 * 0.260) / sqrt(4).\n"},
    {"gpt head1.attn_weights@3", NULL, "attn 1 3", "explain head1.attn_weights 2 3", NULL,
     "Attention weights. softmax turns the scores into shares: it takes the largest\n"
     "off all of them, which changes no share, then e to each, divided by the sum of\n"
     "these. All are positive, with the sum 1. Before training the four scores are\n"
     "nearly 0, so e to them is nearly 1, and each share nearly 1/4: the head has not\n"
     "learned yet where to look.\n"},
    {"gpt head1.head_out@3", NULL, "vec head1.head_out 3", "explain head1.head_out 0 3", NULL,
     "Head output. The values of all positions are mixed, each by its weight. With\n"
     "even weights that is nearly the mean of each column of v_h at stop 6: for the\n"
     "first, (0.400 - 0.298 - 0.016 + 0.135) / 4 = 0.055.\n"},
    {"gpt head1.ag_copy@3", NULL, "lands 1 3", NULL, NULL,
     "Concatenation. The head's output, the same four numbers, goes to its place in\n"
     "x_attn, a row with room for the outputs of all heads: head 1 begins at element\n"
     "hs = 4.\n"},
    {"gpt x_wo@3", NULL, "row x_attn 3|row x_wo 3", "explain x_wo 3 3", NULL,
     "wo. So far each head knows only its own slice. One more matrix mixes the row,\n"
     "so that every element of the result can draw on every head. As in stop 4: 16\n"
     "products, each 0.08 * 0.15 or so, make about 0.08 * 0.15 * sqrt(16) = 0.05.\n"},
    {"gpt x_mid@3", NULL, NULL, "explain x_mid 0 3", show_residual,
     "Residual connection. What attention found is added to what entered the layer,\n"
     "emb_norm of stop 3: the layer corrects its input and does not replace it. Cover\n"
     "the last column: what is in it? Both derivatives of the sum are 1: on the way\n"
     "back (stop 16), it passes on all that it gets.\n"},
    {"gpt act@3", NULL, NULL, "explain act 0 3", show_relu,
     "MLP. Now the position thinks for itself: a matrix makes the vector four times\n"
     "as long (fc1), relu sets what is negative to zero (act), and a second matrix\n"
     "brings it back to size. The signs in fc1 are random, so about half of the 64\n"
     "are off. Here are the first eight.\n"},
    {"document_loss probs@3", NULL, "top5 3", "explain probs 8 3", NULL,
     "Logits. After the second residual connection, lm_head gives every token a\n"
     "score, and softmax makes them probabilities. An untrained model finds all of\n"
     "them about equally likely, near 1/27 = 0.037. The loss of this position is\n"
     "minus the logarithm of what the true next token got: near -log(1/27) = 3.3.\n"},
    {"train loss", NULL, "doc", "tape", NULL,
     "Loss. Every position has one by now, each near 3.3, and the document's loss is\n"
     "their mean. All that was computed is on the tape, one entry for each operation.\n"},
    {NULL, "backward(", NULL, NULL, show_way_to_logits,
     "The way back, from the loss to the logits. backward() has run: every number has\n"
     "a gradient, the change of the loss per unit of its own. For -log p of the\n"
     "target, calculus gives that of every logit: its probability, minus 1 if it is\n"
     "the target. The loss is a mean of n = 7, so each counts 1/7: with p = 0.03 or\n"
     "so, about 0.004, for the target about -0.14. All 27 add up to 0.\n"},
    {NULL, "backward(", NULL, NULL, show_way_through_head,
     "The way back through a head. A weight's gradient is head_out's times its row of\n"
     "v_h (stop 6). Weights share a sum of 1: one can only grow at the cost of the\n"
     "others, so softmax takes off their mean, each weighted by its share, and\n"
     "multiplies by the weight: that is the gradient of the logit. Through q . k /\n"
     "sqrt(4) it goes on to q_h: times k_h of stop 6, what is the last number?\n"},
    {NULL, "backward(", NULL, NULL, show_relu,
     "The way back through relu. Where relu was on, the gradient passes unchanged.\n"
     "Where it was off (fc1 is negative), nothing passes: a small change there would\n"
     "not change the loss. Cover the last column, the gradient of fc1: what is in it?\n"},
    {NULL, "backward(", "users layer0.attn_wo 3 5", NULL, NULL,
     "Seven gradients in one weight. Each of the seven positions used the parameter\n"
     "layer0.attn_wo[3][5] as a factor: out = a * b. A change of a counts b times in\n"
     "out, so b, the derivative, times the gradient of out is what a use adds, its\n"
     "product. All seven add up. b is x_attn[5]: at position 3, what stop 10 has put\n"
     "there. Cover the last column. backward() began at the end of the tape: with the\n"
     "last row.\n"},
    {NULL, "backward(", "users wte 1 0|users lm_head 1 0", NULL, NULL,
     "What was not read. There is no b in the name, so nothing read its row of wte:\n"
     "the gradient there is 0, and this step will not move it. But lm_head scored b\n"
     "at every position, each time with gradient p / 7: seven products, which add up.\n"},
    {NULL, "adam(", "moves layer0.attn_wo 3 5", "biggest moves", NULL,
     "Adam. Every parameter has its gradient. Adam keeps a running mean of the\n"
     "gradients, m, and of their squares, v, and moves the parameter by the rate\n"
     "times -m_hat / sqrt(v_hat). In step 0 these are the gradient and its size: the\n"
     "move is the learning rate, 0.01, upward where the gradient is negative; later\n"
     "less, where gradients change sign. The other 999 steps run without a stop.\n"},
    {"sample probs@0", NULL, "top5|draw", NULL, NULL,
     "Sampling. The trained model starts from BOS alone. Its logits are divided by\n"
     "the temperature, 0.5, which doubles every difference: a is ahead of m by 0.18,\n"
     "then by 0.36, and so e^0.36 = 1.4 times as likely, not 1.2. One token is drawn,\n"
     "the first whose running sum is above a random number; it is the next input.\n"},
    {"sample probs@3", NULL, "attn 1|draw", NULL, NULL,
     "Three characters later. Where head 1 looks by now: no longer a quarter each, as\n"
     "at stop 8, when it was untrained.\n"},
    {"sample probs", NULL, "doc|draw", NULL, NULL,
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
    int line;             // of microgpt.c, which is shown
} walk;

void walk_begin(void)
{
    const char *from = getenv("MICROGPT_TOUR");
    if (!from || walk.next) return;
    walk.next = 1;
    walk.from = atoi(from);
    walk.debugger = strstr(from, "debugger");
    if (walk.from == 1)
        print("A walk through one training step and one sampled name, in %d stops.\n", n_stops());
}

// NULL: there is no walk, or no stop is left.
static const Stop *next_stop(void)
{
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
    if (stop < 1 || stop > n_stops()) {
        print("The walk has %d stops: `go 7` goes to stop 7.\n", n_stops());
        return NO_STOP;
    }
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
void walk_sees(const Place *note)
{
    const Stop *s = next_stop();
    if (!s || !s->value || walk.due) return;
    const Line *line = note->line;
    char value[128], head[24] = "", at[24] = "";
    if (note->head != NONE) snprintf(head, sizeof head, "head%d.", note->head);
    if (note->position != NONE) snprintf(at, sizeof at, "@%d", note->position);
    snprintf(value, sizeof value, "%s %s%s%s", line->function, head,
             *line->name ? line->name : note->operation, at);
    if (strncmp(value, s->value, strlen(s->value)) != 0) return;
    if (s == &stops[n_stops() - 1] && !draws_the_end()) return;
    walk.due = true;
    walk.line = line->starts;
}

static void pass_stop(void)
{
    const Stop *s = &stops[walk.next++ - 1], *next = next_stop();
    walk.due = next && s->value && next->value && strcmp(next->value, s->value) == 0;
}

// Is a stop to be shown here? Those before the first to be shown pass.
bool walk_is_due(bool at_adam)
{
    for (const Stop *s = next_stop(); s && (s->value ? walk.due : at_adam); s = next_stop()) {
        if (walk.next >= walk.from) return true;
        pass_stop();
    }
    return false;
}

static void show_stop(const Stop *s)
{
    if (s->line) walk.line = line_of(s->value ? "gpt" : "train", s->line);
    bool done = !s->line || strcmp(s->line, "adam(") != 0;
    print("==== %d of %d ==== microgpt.c:%d, in %s()%s\n", walk.now, n_stops(), walk.line,
          source_line(walk.line)->function, done ? ", done:" : "");
    if (s->own != show_slices) print_lines(walk.line);
    print("\n%s\n", s->prose);
    char views[96];
    snprintf(views, sizeof views, "%s", s->views ? s->views : "");
    for (char *view = strtok(views, "|"); view; view = strtok(NULL, "|")) command(view, NULL);
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

// Without a debugger: Enter goes on, q ends the walk, any command is answered. Without a keyboard
// and a screen, all is shown.
static void ask_reader(void)
{
    bool more = stops[walk.now - 1].more, screen = isatty(0) && isatty(1);
    if (!screen && more) {
        print("\n");
        show_more();
    }
    if (!screen) return;
    for (char line[200], word[200] = "";;) {
        printf("(%d of %d: go, %sback, q, or any command) ", walk.now, n_stops(),
               more ? "more, " : "");
        fflush(stdout);
        bool read = fgets(line, sizeof line, stdin);
        int stop = 0, n = read ? sscanf(line, "%199s %d", word, &stop) : 0;
        bool go = strcmp(word, "go") == 0, back = strcmp(word, "back") == 0;
        if (feof(stdin) || (n > 0 && word[0] == 'q')) exit(0);
        if (n < 1 || (go && n == 1)) return;
        if (back) stop = walk.now - 1;
        int where = go || back ? walk_to(stop) : NO_STOP;
        if (where == AHEAD) return;
        if (where == BEHIND) begin_again(stop);
        if (strcmp(word, "more") == 0)
            show_more();
        else if (!go && !back && command(line, NULL))
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
