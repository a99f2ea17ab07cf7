/* views.c: what one can ask of a run that has stopped; commands.c gives the views their names, and
 * calls survey() before them. All they need is on the tape, which in this build has an entry for every
 * single + and *, and in the notes that notes.c takes.
 *
 * A view computes with its own copy of the arithmetic, so that a breakpoint in autograd.c does not
 * stop it. An operation that is new is asked itself.
 */
#define _XOPEN_SOURCE 700
#include "views.h"
#include "../run/job.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------
 * What is shown: on standard output, in lines of at most WIDTH columns. The program's own output is
 * buffered elsewhere, and does not mix with it within a line.
 */
// Puts a line out, and breaks it at spaces if it is too long, unless more digits were asked for.
static void print_broken(const char *line)
{
    for (const char *indent = "";; indent = "      ") {
        size_t column = strlen(indent), cut = 0, end = 0;
        for (; line[end] && (column <= WIDTH || watched.digits > 6); end++) {
            bool word = line[end] == ' ' && end > 0 && line[end - 1] != ' ';
            if (word && column < WIDTH) cut = end;
            column += (line[end] & 0xc0) != 0x80;  // characters, not bytes
        }
        if (!line[end] && (column <= WIDTH || watched.digits > 6)) cut = 0;
        size_t length = cut ? cut : strlen(line);
        while (length > 0 && line[length - 1] == ' ') length--;
        printf("%s%.*s\n", indent, (int)length, line);
        if (!cut) break;
        line += cut + strspn(line + cut, " ");
    }
}

void print(const char *format, ...)
{
    static char text[1024];  // the line so far
    static size_t n;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text + n, sizeof text - n, format, args);
    va_end(args);
    n = length < 0 || n + (size_t)length >= sizeof text ? sizeof text - 1 : n + (size_t)length;
    char *line = text;
    for (char *end = strchr(line, '\n'); end; end = strchr(line, '\n')) {
        *end = '\0';
        print_broken(line);
        line = end + 1;
    }
    n = strlen(line);
    memmove(text, line, n + 1);
    fflush(stdout);
}

// A number in its column, and the column's heading.
void number(double x)
{
    print(" %*.*g", watched.digits + 6, watched.digits, x == 0 ? 0 : x);  // no -0
}

static void heading(const char *text) { print(" %*s", watched.digits + 6, text); }

// A row of a table: what it is about, and its n numbers.
void row_of(const char *label, int n, ...)
{
    va_list args;
    va_start(args, n);
    print("  %s", label);
    while (n-- > 0) number(va_arg(args, double));
    print("\n");
    va_end(args);
}

// The heading of a table, up to a NULL.
void head_of(const char *label, ...)
{
    va_list args;
    va_start(args, label);
    print("  %s", label);
    for (const char *text; (text = va_arg(args, const char *));) heading(text);
    print("\n");
    va_end(args);
}

// Are there gradients? While backward() is under way, they are sums so far.
bool gradients_known(void) { return !sampling() && phase() != FORWARD; }

// The gradient of a value. Adam clears those of the parameters; what it found is remembered.
double gradient_of(double *value)
{
    const Model *model = watched.model;
    if (is_parameter(value) && phase() == MOVED) return moved(0)->g[value - model->params];
    return *grad(&model->tape, value);
}

static void data_and_grad(double *value)
{
    number(*value);
    if (gradients_known()) number(gradient_of(value));
}

static void headings(const char *data)
{
    heading(data);
    if (gradients_known()) heading(phase() == BACKWARD ? "grad so far" : "grad");
}

// The title of a vector.
static void title(const Place *p)
{
    print("%s", place_name(p));
    if (p->position != NONE) print(" at position %d (%s)", p->position, text_at(p->position));
    print("\n");
}

// Two vectors side by side, their first rows.
static void two_columns(const Place *a, const char *of_a, const Place *b, const char *of_b,
                        size_t most)
{
    print("    i");
    headings(of_a);
    headings(of_b);
    print("\n");
    for (size_t i = 0; i < most && (i < a->n || i < b->n); i++) {
        print("  %3zu", i);
        if (i < a->n) data_and_grad(a->at + i);
        if (i >= a->n) heading("");
        if (i >= a->n && gradients_known()) heading("");
        if (i < b->n) data_and_grad(b->at + i);
        print("\n");
    }
}

/* ------------------------------------------------------------------------
 * The document and the model.
 */
static void show_sample(void)
{
    int n = latest_position() + 1;
    print("The sample so far, as gpt() has seen it: ");
    for (int i = 1; i < n; i++) print("%s", text_at(i));
    print("\n  position  token\n");
    for (int i = 0; i < n; i++) print("  %8d  %5zu  %s\n", i, token_at(i), text_at(i));
}

// The document in work, or the sample, and its tokens.
void show_document(void)
{
    const Model *model = watched.model;
    const uint32_t *tokens = model->tokens, BOS = model->BOS;
    if (sampling()) {
        show_sample();
        return;
    }
    if (tokens[0] != BOS) {
        print("No document has been taken yet: stop in document_loss(), or later.\n");
        return;
    }
    size_t n = 1;  // tokens to predict
    while (n < model->block_size && tokens[n] != BOS) n++;
    print("The document: ");
    for (size_t i = 1; i <= n && tokens[i] != BOS; i++) print("%s", token_text(tokens[i]));
    print("\n  position  token         to predict    loss\n");
    for (size_t i = 0; i < n; i++) {
        const Place *loss = find_place("loss_t", (int)i);
        print("  %8zu  %5u  %-5s", i, tokens[i], token_text(tokens[i]));
        print("  %5u  %-5s", tokens[i + 1], token_text(tokens[i + 1]));
        if (loss) number(*loss->at);
        print(!loss && (int)i == latest_position() ? "  <- gpt() is here\n" : "\n");
    }
    const Place *mean = find_place("document_loss", LATEST), *batch = find_place("sum", LATEST);
    if (mean) print("  their mean, document_loss: %.*g\n", watched.digits + 10, *mean->at);
    if (batch && watched.run->config->batch > 1) {
        print("  the sum over the batch so far, sum: %.*g\n", watched.digits + 10, *batch->at);
    }
}

// The names of all vectors, as gpt() makes them: of the first head, and of the layer shown.
static void list_vectors(void)
{
    bool any = false;
    for (size_t i = 0; i < n_places(); i++) {
        const Place *p = place(i);
        char name[64], size[40];
        snprintf(name, sizeof name, "%s%s", p->head == 0 ? "head0." : "", p->name);
        bool shown = p->head <= 0 && (p->layer == NONE || p->layer == watched.layer) && !p->inner;
        if (!shown || find_place(name, LATEST) != p) continue;
        any = true;
        snprintf(size, sizeof size, p->position == NONE ? "[%zu]" : "[%zu] at %d", p->n,
                 p->position);
        print("  %-19s %-10s %.46s\n", name, size, p->meaning);
    }
    if (!any) print("There are none yet: step on.\n");
}

// A vector in a line: its first numbers, and what it is.
static void show_line(const char *name, const double *x, size_t n, const char *what)
{
    print("  %-19s", name);
    for (size_t i = 0; i < 3; i++) {
        if (i < n) number(x[i]);
        if (i >= n) heading("");
    }
    print("%s %.15s\n", n > 3 ? " .." : "   ", what);
}

// Is a vector in scope where another is the newest?
static bool in_scope(const Place *p, const Place *newest)
{
    const Place *of = place_of(p->at);
    bool double_name = p->pointer && of && strcmp(of->name, p->name) == 0 &&
                       strcmp(of->function, p->function) == 0;
    return strcmp(p->function, newest->function) == 0 && p->outer == newest->outer &&
           (p->from || p->pointer) && !double_name &&
           (p->position == NONE || p->position == latest_position()) &&
           (p->layer == NONE || p->layer == newest->layer) &&
           (p->head == NONE || p->head == newest->head);
}

// The vectors in scope where the program is, as they were made.
void show_here(const void *pc)
{
    const Model *model = watched.model;
    const char *function = function_at(pc);
    const Place *newest = NULL;
    if (function && strcmp(function, "adam") == 0) {
        size_t n = (size_t)model->num_params;
        show_line("p", model->params, n, "the parameters");
        show_line("g", grad(&model->tape, model->params), n, "their gradients");
        show_line("m", model->m, n, "Adam's means");
        show_line("v", model->v, n, "of squares");
        return;
    }
    for (size_t i = 0; i < n_places(); i++) {
        const Place *p = place(i);
        bool outer = p->outer == NONE || !place((size_t)p->outer)->from;
        if (function ? strcmp(p->function, function) == 0 : outer) newest = p;
    }
    size_t shown = 0;
    for (size_t i = 0; newest && i < n_places(); i++) {
        const Place *p = place(i);
        if (!in_scope(p, newest)) continue;
        show_line(place_name(p), p->at, p->n, p->pointer ? value_name(p->at) : p->meaning);
        shown++;
    }
    if (!shown) print("No vector has been made in this call yet: step on.\n");
}

static const Place *head_place(int head, const char *name, int position, bool need)
{
    char full[64];
    snprintf(full, sizeof full, "head%d.%s", head, name);
    return need ? need_place(full, position) : find_place(full, position);
}

// The position that a head's logit belongs to: of the key that its query was multiplied with. NONE if
// it was made in another way.
static int position_looked_at(const Place *p, size_t i)
{
    const Place *logits = head_place(p->head, "attn_logits", p->position, false);
    const Entry *e = logits && i < logits->n ? maker(logits->at + i) : NULL;
    while (e && e->op != OP_MUL) e = maker(e->a);
    const Place *key = e ? place_of(second_operand(e)) : NULL;
    return key ? key->position : NONE;
}

// What the i-th element of a vector belongs to.
static void element_label(const Place *p, size_t i)
{
    static const char tokens[] = " logits probs scores ", heads[] = " q k v x_attn ";
    char word[48];
    snprintf(word, sizeof word, " %s ", p->name);
    if (p->pointer)
        print("  %s", value_name(p->at + i));
    else if (strstr(tokens, word))
        print("  %s", token_text(i));
    else if (strstr(heads, word))
        print("  head %zu", i / watched.model->head_dim);
    int at = strncmp(p->name, "attn_", 5) == 0 && !p->inner ? position_looked_at(p, i) : NONE;
    if (at != NONE) print("  %s", text_at(at));
    print("\n");
}

// One vector, with data and gradient; without a name, all names.
void show_vector(const char *name, int position)
{
    if (!*name) list_vectors();
    const Place *p = *name ? need_place(name, position) : NULL;
    if (!p) return;
    title(p);
    const Place *of = p->pointer ? place_of(p->at) : NULL;
    if (of && of->position < p->position) {  // the first of several rows, as k_h and v_h
        show_head_slice(p->head, p->name, p->position);
        return;
    }
    print("    i");
    headings("data");
    print("\n");
    for (size_t i = 0; i < p->n; i++) {
        print("  %3zu", i);
        data_and_grad(p->at + i);
        element_label(p, i);
    }
}

static void four_in_a_row(const char *what, const double *x, size_t n)
{
    if (*what) print("  %s\n", what);
    for (size_t i = 0; i < n; i++) {
        if (i % 4 == 0) print("  [%2zu]", i);
        number(x[i]);
        if (i % 4 == 3 || i + 1 == n) print("\n");
    }
}

// The numbers of a vector alone; or of a row of a matrix, with its gradients.
void show_row(const char *name, int i)
{
    const Matrix *w = find_matrix(name);
    const Place *p = w ? NULL : need_place(name, i);
    if (p) {
        title(p);
        four_in_a_row("", p->at, p->n);
    }
    bool inside = w && i >= 0 && (size_t)i < w->rows;
    if (w && !inside) {
        print("%s has %zu rows, counted from 0: `row %s 0` is the first.\n", name, w->rows, name);
    }
    if (inside) {
        double *row = w->data + (size_t)i * w->cols, *g = grad(&watched.model->tape, row);
        if (phase() == MOVED) g = moved(0)->g + (row - watched.model->params);
        bool tokens = w == watched.model->wte || w == watched.model->lm_head;
        print("row %d of %s%s%s%s\n", i, name, tokens ? " (" : "",
              tokens ? token_text((size_t)i) : "", tokens ? ")" : "");
        four_in_a_row(gradients_known() ? "data" : "", row, w->cols);
        if (!gradients_known()) return;
        four_in_a_row(phase() == BACKWARD ? "gradient so far: backward() is under way"
                      : phase() == MOVED  ? "gradient, before adam() cleared it"
                                          : "gradient",
                      g, w->cols);
    }
}

// n neighbors, wherever they are: what they are, with data and gradient.
void show_values(double *x, int n)
{
    for (int i = 0; i < n; i++) {
        const char *name = value_name(x + i);
        if (*name == '?') {
            print("This is no value of the tape. A value is a pointer to its data, like logits or "
                  "&logits[5].\n");
            return;
        }
        if (on_tape(x + i))
            data_and_grad(x + i);
        else
            number(x[i]);
        print("  %s\n", name);
    }
}

// Is a vector's name a text, or does its statement contain it?
static bool statement_has(const Place *p, const char *text)
{
    const char *comment = comment_on(p->line);
    if (strcmp(p->name, text) == 0) return true;
    for (int line = p->line; line < p->line + 8; line++) {
        if (strstr(source_line(line), text)) return true;
        if (strchr(source_line(line), ';')) break;
    }
    return comment && strncmp(comment, "residual", 8) == 0 && strcmp(text, "residual") == 0;
}

// Vectors before and after one operation of the model: every line of the source that has its name.
void show_around(const char *operation, int position)
{
    const Place *found[64];
    size_t n = 0;
    for (size_t k = n_places(); k-- > 0 && n < 64;) {
        const Place *p = place(k);
        if (!p->from || p->head != NONE || p->inner || p->position == NONE) continue;
        if (p->layer != NONE && p->layer != watched.layer) continue;
        if (!operand_of(p) || !statement_has(p, operation)) continue;
        if (position == LATEST) position = p->position;
        if (p->position == position) found[n++] = p;
    }
    size_t most = n == 1 ? 16 : n == 2 ? 6 : 2;
    for (size_t i = n; i-- > 0;) {
        const Place *after = found[i], *before = operand_of(after);
        size_t rows = before->n > after->n ? before->n : after->n;
        print("microgpt.c:%d, at position %d (%s): before, %s; after, %s\n", after->line, position,
              text_at(position), before->name, after->name);
        print_statement(after->line, "    ");
        two_columns(before, "before", after, "after", most);
        if (rows <= most) continue;
        print("  ... and %zu more: `around %s %d`, `row %s %d`\n", rows - most, after->name,
              position, after->name, position);
    }
    if (n) return;
    print("%s: no line of gpt() with this text has come by yet, or there is no such position. "
          "Try rmsnorm, wq, wo, residual, fc1, relu, lm_head, softmax.\n",
          operation);
}

/* ------------------------------------------------------------------------
 * The heads.
 */
static bool is_head(int head)
{
    bool ok = head >= 0 && (size_t)head < watched.model->n_head;
    if (!ok) print("There are %zu heads, counted from 0.\n", watched.model->n_head);
    return ok;
}

// A view of a head at a position: its first line.
static void head_title(const Place *p, const char *what)
{
    print("layer %d, head %d at position %d (%s)%s\n", p->layer, p->head, p->position,
          text_at(p->position), what);
}

const char *const head_slices[] = {"q_h", "k_h", "v_h", NULL};

// A pointer of a head into other vectors: one row, or as many as it has looked at.
void show_head_slice(int head, const char *name, int position)
{
    const Place *p = head_place(head, name, position, false), *of = p ? place_of(p->at) : NULL;
    for (int t = of ? of->position : 0; of && t <= p->position; t++) {
        const Place *row = find_place(of->name, t);
        if (!row) continue;
        print("  %s %3d %-4s", name, t, text_at(t));
        size_t start = (size_t)(p->at - of->at);
        for (size_t i = start; i < start + p->n; i++) number(row->at[i]);
        print("  %s[%zu..%zu]\n", row->name, start, start + p->n - 1);
    }
}

// What one head reads: its slice of the query, of each key and of each value.
void show_head(int head, int position)
{
    const Place *q = is_head(head) ? head_place(head, "q_h", position, true) : NULL;
    if (!q) return;
    head_title(q, " reads");
    for (const char *const *name = head_slices; *name; name++) {
        show_head_slice(head, *name, q->position);
    }
}

// The cache of keys and values: how full it is, where it lies, the beginning of each; or one position.
void show_cache(int position)
{
    int n = 0;
    if (position != LATEST) {
        const Place *k = need_place("k", position), *v = k ? need_place("v", position) : NULL;
        if (!v) return;
        print("position %d (%s): the key at %p, the value at %p\n", position, text_at(position),
              (void *)k->at, (void *)v->at);
        two_columns(k, "key", v, "value", k->n);
        return;
    }
    const Place *k0 = find_place("k", 0), *v0 = find_place("v", 0);
    while (find_place("k", n) && find_place("v", n)) n++;
    print("layer %d: %d position%s in the cache\n", watched.layer, n, n == 1 ? "" : "s");
    if (!n) return;
    print("the keys lie at %p, the values at %p, and from there\n", (void *)k0->at, (void *)v0->at);
    head_of("  t         at", "key[0]", "key[1]", "value[0]", "value[1]", NULL);
    size_t next = watched.model->n_embd > 1;
    for (int t = 0; t < n; t++) {
        const double *k = find_place("k", t)->at, *v = find_place("v", t)->at;
        char label[48];
        snprintf(label, sizeof label, "%3d %-4s +%5td", t, text_at(t), k - k0->at);
        row_of(label, 4, k[0], k[next], v[0], v[next]);
    }
}

// What a head looks at: its logits and weights beside the characters they belong to.
void show_attention(int head, int position)
{
    const Place *logits = is_head(head) ? head_place(head, "attn_logits", position, true) : NULL;
    if (!logits) return;
    const Place *weights = head_place(head, "attn_weights", logits->position, false);
    if (weights && weights->n != logits->n) weights = NULL;  // not those of these logits
    head_title(logits, " looks at");
    head_of("  t       ", "logit", weights ? "weight" : NULL, NULL);
    for (size_t t = 0; t < logits->n; t++) {
        int at = position_looked_at(logits, t);
        if (at == NONE)
            print("    ?  ?    ");
        else
            print("  %3d  %-4s ", at, text_at(at));
        number(logits->at[t]);
        double weight = weights ? weights->at[t] : 0;
        if (weights) number(weight);
        if (weight > 0 && weight <= 1) {
            print("  %.*s", (int)(weight * 36 + 0.5), "####################################");
        }
        print("\n");
    }
    if (!weights) print("  The weights are not there yet: step on.\n");
}

// Where a head's output stands in the row of all outputs: the entries that copied it.
void show_landing(int head, int position)
{
    const Place *out = is_head(head) ? head_place(head, "head_out", position, true) : NULL;
    if (!out) return;
    bool any = false;
    const Tape *tape = &watched.model->tape;
    head_title(out, "");
    for (const Entry *e = out->to; e < tape->entries + tape->n_entries; e++) {
        if (e->op != OP_COPY || e->a < out->at || e->a >= out->at + out->n) continue;
        const Place *row = place_of(e->out);
        print("  head %d: head_out[%td] -> %s[%td]", head, e->a - out->at, row ? row->name : "?",
              row ? e->out - row->at : 0);
        data_and_grad(e->out);
        print("\n");
        any = true;
    }
    if (!any) print("  It has not been copied yet: step on.\n");
}

/* ------------------------------------------------------------------------
 * What the model says.
 */
// The probabilities after a position. Where softmax has not run yet, as it would compute them: in a
// sample, with the temperature.
static void find_probs(const Place *logits, const Place *probs, double *p)
{
    double total = 0, max = logits->at[0], temperature = watched.run->config->temperature;
    if (!sampling() || temperature <= 0) temperature = 1;
    for (size_t i = 1; i < logits->n; i++) max = fmax(max, logits->at[i]);
    for (size_t i = 0; i < logits->n; i++) {
        p[i] = exp((logits->at[i] - max) / temperature);
        total += p[i];
    }
    for (size_t i = 0; i < logits->n; i++) p[i] = probs ? probs->at[i] : p[i] / total;
}

// The five likeliest tokens, and the true one: its place in the order, and a number from each column.
static void show_ranking(const double *p, size_t n, size_t truth, int n_columns,
                         const double *const column[])
{
    bool taken[2048] = {false}, among = false;
    for (int rank = 1; rank <= 6; rank++) {
        size_t best = n;
        for (size_t i = 0; i < n && i < 2048; i++) {
            if (!taken[i] && (best == n || p[i] > p[best])) best = i;
        }
        size_t token = rank < 6 ? best : truth;
        if (token >= n || (rank == 6 && among)) continue;
        if (token < 2048) taken[token] = true;
        among = among || token == truth;
        if (rank < 6)
            print("  %d.  %-4s   ", rank, token_text(token));
        else
            print("  -   %-4s   ", token_text(token));
        for (int c = 0; c < n_columns; c++) number(column[c][token]);
        if (token == truth) print("  true: loss %.*g", watched.digits, -log(p[token]));
        print("\n");
    }
}

static size_t truth_after(int position)
{
    return sampling() ? SIZE_MAX : watched.model->tokens[position + 1];
}

// The likeliest next tokens, and the true one.
void show_top(int position)
{
    const Place *logits = need_place("logits", position);
    if (!logits) return;
    const Place *probs = find_place("probs", logits->position),
                *scores = probs ? operand_of(probs) : NULL;
    double *p = malloc(logits->n * sizeof *p);
    if (!p) abort();
    find_probs(logits, probs, p);
    bool sample = scores && scores != logits;  // the logits over the temperature
    const double *const columns[] = {logits->at, sample ? scores->at : p, p};
    print("after position %d (%s), the likeliest next\n", logits->position,
          text_at(logits->position));
    head_of("           ", "logit", sample ? scores->name : "probability",
            sample ? "probability" : NULL, NULL);
    show_ranking(p, logits->n, truth_after(logits->position), sample ? 3 : 2, columns);
    free(p);
}

// While sampling: a uniform number against the running sums of the probabilities.
void show_draw(void)
{
    const Place *probs = find_place("probs", LATEST);
    if (!sampling() || !probs || probs->position != latest_position()) {
        print("There is nothing to draw from here: stop where a sample chooses, `tbreak "
              "choose_token`.\n");
        return;
    }
    const Job *job = watched.run->job;
    size_t chosen = 0, position = (size_t)probs->position;
    print("after position %zu (%s)\n", position, text_at((int)position));
    if (position < job->samples.prompt.length) {
        print("  The prompt decides: %s\n", token_text(job->samples.prompt.tokens[position]));
        return;
    }
    if (job->o.greedy) {
        print("  Temperature 0: the likeliest, %s\n", token_text(argmax(probs->at, probs->n)));
        return;
    }
    Random random = notes.random;
    double total = 0, sum = 0;
    for (size_t i = 0; i < probs->n; i++) total += probs->at[i];
    double uniform = random_uniform(&random), u = uniform * total;
    print("  the number drawn, uniform between 0 and 1: %.*g\n", watched.digits, uniform);
    print("  the first token whose running sum is above it is the next\n");
    head_of("       ", "probability", "running sum", NULL);
    double so_far = probs->at[0];
    while (so_far <= u && chosen + 1 < probs->n) so_far += probs->at[++chosen];
    for (size_t i = 0; i < probs->n; i++) {
        sum += probs->at[i];
        if (i + 3 < chosen || i > chosen + 2) continue;  // its neighbors
        print("  %3zu %-4s", i, token_text(i));
        number(probs->at[i]);
        number(sum);
        print("%s\n", i == chosen ? "  <- drawn" : "");
    }
}

// Adds a name to a list, unless it is there already.
static void add_name(char list[200], const char *name)
{
    const char *found = strstr(list, name);
    size_t n = strlen(list), length = strlen(name);
    if (found && (found[length] == ',' || !found[length])) return;
    snprintf(list + n, 200 - n, "%s%s", n ? ", " : "", name);
}

// What a vector was made from: other vectors, and matrices with their shapes.
static void list_operands(const Place *p, char list[200])
{
    for (const Entry *e = p->from; e < p->to; e++) {
        for (int second = 0; second < 2; second++) {
            const double *x = second ? second_operand(e) : e->a;
            const Matrix *w = x ? matrix_of(x) : NULL;
            const Place *of = x ? place_of(x) : NULL;
            char name[80] = "";
            if (w) snprintf(name, sizeof name, "%s [%zu x %zu]", w->name, w->rows, w->cols);
            bool inside = !of || (of->from && of->from >= p->from && of->to <= p->to);
            if (!inside) snprintf(name, sizeof name, "%s", of->name);
            if (*name) add_name(list, name);
        }
    }
}

// The model as a map, as it was recorded: of one position, the vectors with their sizes.
void show_map(void)
{
    const Model *model = watched.model;
    const Place *end = find_place("logits", LATEST);
    int position = end ? end->position : latest_position();
    print("  %zu layer%s, %zu heads of %zu, a block of %zu\n", model->n_layer,
          model->n_layer == 1 ? "" : "s", model->n_head, model->head_dim, model->block_size);
    for (size_t i = 0; i < n_places(); i++) {
        const Place *p = place(i);
        if (!p->from || p->from == p->to || p->inner || p->head > 0 || p->position != position)
            continue;
        if (position == NONE || (p->layer != NONE && p->layer != watched.layer)) continue;
        char list[200] = "", name[64];
        snprintf(name, sizeof name, "%s%s", p->head == 0 ? "headH." : "", p->name);
        list_operands(p, list);
        print("  %-20s %4zu  %s%s\n", name, p->n, *list ? "from " : "", list);
    }
    if (position != NONE) return;
    for (size_t k = 0; k < model->n_matrices; k++) {
        const Matrix *w = &model->state_dict[k];
        print("  %s [%zu x %zu]\n", w->name, w->rows, w->cols);
    }
    print("What is made of these is shown once gpt() has run.\n");
}

// The tape, counted by operation.
void show_tape(void)
{
    const Tape *tape = &watched.model->tape;
    size_t counts[N_OPS] = {0};
    int positions = 0;
    for (size_t i = 0; i < tape->n_entries; i++) counts[tape->entries[i].op]++;
    for (size_t op = 0; op < N_OPS; op++) {
        if (counts[op]) print("  %-10s %8zu\n", operations[op].name, counts[op]);
    }
    for (size_t i = 0; i < n_places(); i++) {
        if (place(i)->from && place(i)->position >= positions) positions = place(i)->position + 1;
    }
    print("  %-10s %8zu entries, from %d position%s\n", "all", tape->n_entries, positions,
          positions == 1 ? "" : "s");
}

/* ------------------------------------------------------------------------
 * Parameters.
 */
// One parameter, with what Adam remembers of it.
void show_parameter(const char *name, int row, int column)
{
    double *p = find_parameter(name, row, column);
    if (!p) return;
    size_t k = (size_t)(p - watched.model->params);
    print("%s\n", value_name(p));
    row_of("value   ", 1, *p);
    print("  gradient");
    number(gradients_known() ? gradient_of(p) : *grad(&watched.model->tape, p));
    print("%s\n", !gradients_known()    ? "  (no backward() on this tape yet)"
                  : phase() == BACKWARD ? "  so far: backward() is under way"
                  : phase() == MOVED    ? "  before adam() cleared it"
                                        : "");
    row_of("Adam's m", 1, watched.model->m[k]);
    row_of("Adam's v", 1, watched.model->v[k]);
}

// The decay of every parameter in a step, over the learning rate.
static double weight_decay(void) { return watched.run->config->weight_decay; }

static bool close_to(double a, double b) { return fabs(a - b) <= 1e-12 + 1e-9 * fabs(b); }

// How Adam moves one parameter.
enum {
    STEP,
    GRADIENT,
    M,
    NEW_M,
    M_HAT,
    V,
    NEW_V,
    V_HAT,
    RATE,
    MOVE,
    DECAY,
    BEFORE,
    AFTER,
    MOVE_ROWS
};
static const char *const move_rows[] = {"step",
                                        "gradient",
                                        "m was",
                                        "m = beta1 * m + (1 - beta1) * gradient",
                                        "m_hat = m / (1 - beta1^(step + 1))",
                                        "v was",
                                        "v = beta2 * v + (1 - beta2) * gradient^2",
                                        "v_hat = v / (1 - beta2^(step + 1))",
                                        "learning rate",
                                        "move = -lr * m_hat / (sqrt(v_hat) + eps)",
                                        "decay = -lr * weight_decay * value",
                                        "value before",
                                        "value after"};

static void find_move(const Moved *found, size_t k, double x[MOVE_ROWS])
{
    const Config *config = watched.run->config;
    double t = (double)found->step + 1, beta1 = config->beta1, beta2 = config->beta2;
    x[STEP] = (double)found->step;
    x[GRADIENT] = found->g[k];
    x[M] = found->m[k];
    x[NEW_M] = beta1 * x[M] + (1 - beta1) * x[GRADIENT];
    x[M_HAT] = x[NEW_M] / (1 - pow(beta1, t));
    x[V] = found->v[k];
    x[NEW_V] = beta2 * x[V] + (1 - beta2) * x[GRADIENT] * x[GRADIENT];
    x[V_HAT] = x[NEW_V] / (1 - pow(beta2, t));
    x[RATE] = learning_rate(config, found->step);
    x[MOVE] = -x[RATE] * x[M_HAT] / (sqrt(x[V_HAT]) + 1e-8);
    x[BEFORE] = found->p[k];
    x[DECAY] = -x[RATE] * weight_decay() * x[BEFORE];
    x[AFTER] = x[BEFORE] + x[MOVE] + x[DECAY];
}

// The same for a step that is over. False if Adam would have made other numbers of these.
static bool find_past_move(const Moved *found, const Moved *after, size_t k, double x[MOVE_ROWS])
{
    find_move(found, k, x);
    bool adam = close_to(x[NEW_M], after->m[k]) && close_to(x[NEW_V], after->v[k]) &&
                close_to(x[AFTER], after->p[k]);
    x[AFTER] = after->p[k];
    return adam;
}

// What Adam would find now.
static Moved moved_now(void)
{
    Model *model = watched.model;
    return (Moved){.step = model->steps_done,
                   .p = model->params,
                   .g = grad(&model->tape, model->params),
                   .m = model->m,
                   .v = model->v};
}

// What Adam is about to do, where the gradients are there; or what it did. And the step before. Where
// adam() is not Adam, only what was, and what came of it.
void show_moves(const char *name, int row, int column)
{
    double *p = find_parameter(name, row, column);
    if (!p) return;
    Moved now = moved_now();
    size_t k = (size_t)(p - now.p), n = 0;
    bool coming = phase() == GRADIENTS, early = coming && notes.phase != MOVED, adam = true;
    const Moved *latest = early ? &now : moved(0), *before = moved(early ? 0 : 1);
    if (!latest) {
        print("Adam has not moved anything yet, and there is no gradient: ask where adam() begins, "
              "`tbreak adam`.\n");
        return;
    }
    double x[2][MOVE_ROWS];
    if (before) adam = find_past_move(before, latest, k, x[n++]);
    if (coming)
        find_move(latest, k, x[n++]);
    else
        adam = find_past_move(latest, &now, k, x[n++]) && adam;
    print("%s: %s in step %.0f, counted from 0%s\n", value_name(p),
          coming ? "what Adam is about to do" : "what Adam did", x[n - 1][STEP],
          n == 2 ? "; before it, the step before" : "");
    if (!adam) print("  adam() is not Adam: here is what was, and what came of it.\n");
    for (int i = 0; i < MOVE_ROWS; i++) {
        char label[48];
        bool known = i == STEP || i == GRADIENT || i == BEFORE || (i == AFTER && !coming);
        if ((!adam && !known) || (i == DECAY && weight_decay() == 0)) continue;
        snprintf(label, sizeof label, "%-41s", move_rows[i]);
        row_of(label, (int)n, x[0][i], x[n - 1][i]);
    }
}

// The parameters that move most in a step, or have the largest gradients, by name.
void show_biggest(const char *what, int n)
{
    enum { MOST = 18 };
    size_t best[MOST + 1], n_best = 0, most = n < 0 ? 5 : n > MOST ? MOST : (size_t)n;
    double sizes[MOST + 1], x[MOVE_ROWS];
    bool moves = strcmp(what, "moves") == 0, after = phase() == MOVED;
    Moved now = moved_now();
    const Moved *found = after ? moved(0) : &now;
    if ((!moves && strcmp(what, "gradients") != 0) || !(after || phase() == GRADIENTS)) {
        print("biggest moves, biggest gradients: ask where adam() begins, or after it.\n");
        return;
    }
    for (size_t k = 0; k < watched.model->num_params; k++) {
        if (moves && !after) find_move(found, k, x);
        double size = !moves ? found->g[k] : after ? now.p[k] - found->p[k] : x[MOVE] + x[DECAY];
        size_t i = n_best;
        for (; i > 0 && fabs(size) > fabs(sizes[i - 1]); i--) {
            sizes[i] = sizes[i - 1];
            best[i] = best[i - 1];
        }
        sizes[i] = size;
        best[i] = k;
        if (n_best < most) n_best++;
    }
    print("the biggest %s in step %d, counted from 0%s\n", what, (int)found->step,
          moves && !after ? ": what Adam is about to do" : "");
    head_of("                              ", moves ? "move" : "gradient",
            moves ? "gradient" : NULL, NULL);
    for (size_t i = 0; i < n_best; i++) {
        char label[48];
        snprintf(label, sizeof label, "%2zu.  %-25s", i + 1, value_name(now.p + best[i]));
        row_of(label, moves ? 2 : 1, sizes[i], found->g[best[i]]);
    }
}

/* ------------------------------------------------------------------------
 * Where a value comes from, and where it goes.
 */
static bool has_constant(const Entry *e)
{
    return e->op == OP_POW || e->op == OP_ADD_CONST || e->op == OP_MUL_CONST;
}

// The table of the atoms: the words before and after the first operand, the value, the derivatives.
Atom atom(const Entry *e)
{
    const double *second = second_operand(e);
    double a = data_of(e->a), b = second ? data_of(second) : 0, c = has_constant(e) ? e->c : 0;
    bool square = c == 2;
    switch (e->op) {
    case OP_ADD: return (Atom){"", " + ", a + b, {1, 1}, 0};
    case OP_MUL: return (Atom){"", " * ", a * b, {b, a}, 0};
    case OP_LOG: return (Atom){"log ", "", log(a), {1 / a}, 0};
    case OP_EXP: return (Atom){"e ^ ", "", exp(a), {exp(a)}, 0};
    case OP_RELU: return (Atom){"relu ", "", a > 0 ? a : 0, {a > 0}, 0};
    case OP_ADD_CONST: return (Atom){"", c < 0 ? " - " : " + ", a + c, {1}, fabs(c)};
    case OP_MUL_CONST: return (Atom){"", " * ", a * c, {c}, c};
    case OP_COPY: return (Atom){"", ", copied", a, {1}, 0};
    case OP_POW:
        return (Atom){"", " ^ ", square ? a * a : pow(a, c), {c * (square ? a : pow(a, c - 1))}, c};
    default: break;
    }
    // An operation that is new: what its own functions make of a copy of the entry.
    double values[] = {a, b, 0, 0, 0, 1};
    Entry alone = *e;
    alone.n = 1;
    alone.a = values;
    if (second) alone.b = values + 1;
    alone.out = values + 2;
    operations[e->op].forward(&alone);
    operations[e->op].backward(&(Tape){.chunk_size = 3}, &alone);
    return (Atom){operations[e->op].name, second ? " " : "", values[2], {values[3], values[4]}, 0};
}

// An entry in words, with these names for its operands.
void name_atom(const Entry *e, const char *a, const char *b, char text[], size_t room)
{
    Atom it = atom(e);
    char constant[24] = "";
    if (has_constant(e)) snprintf(constant, sizeof constant, "%g", it.c);
    const char *space = it.before == operations[e->op].name ? " " : "";
    snprintf(text, room, "%s%s%s%s%s", it.before, space, a, it.after,
             second_operand(e) ? b : constant);
}

static void print_entry(const Entry *e)
{
    char text[512];
    const double *b = second_operand(e);
    name_atom(e, value_name(e->a), b ? value_name(b) : "", text, sizeof text);
    print("%s", text);
}

// The first value with a name that an entry's result is a term of, or else that result.
static const double *named_after(const Entry *e)
{
    const Tape *tape = &watched.model->tape;
    const double *value = e->out;
    for (const Entry *k = e + 1; !has_name(value) && k < tape->entries + tape->n_entries; k++) {
        bool term = k->op == OP_ADD || k->op == OP_COPY || k->op == OP_MUL_CONST;
        if (k->a != value && second_operand(k) != value) continue;
        if (!term) break;
        value = k->out;
    }
    return has_name(value) ? value : e->out;
}

// One use of a value: an entry that has it as an operand, once or twice.
typedef struct {
    const Entry *entry;
    double local, gradient;  // the local derivative; the gradient of what the entry made
    bool added;              // backward() has added their product
} Use;

static struct {
    Use *all;
    size_t n, room;
} uses;

// Finds the uses of a value. While backward() is under way, it has read the tape from the end down
// to some entry: what it has added so far are the latest uses, and they sum to the gradient.
static void find_uses(double *value)
{
    const Tape *tape = &watched.model->tape;
    uses.n = 0;
    for (size_t i = 0; i < tape->n_entries; i++) {
        const Entry *e = &tape->entries[i];
        if (e->a != value && second_operand(e) != value) continue;
        if (uses.n == uses.room) uses.all = more_room(uses.all, &uses.room, sizeof *uses.all);
        Atom it = atom(e);
        double local = (e->a == value ? it.derivative[0] : 0) +
                       (second_operand(e) == value ? it.derivative[1] : 0);
        double *g = grad(tape, e->out);
        uses.all[uses.n++] = (Use){e, local, *g, phase() != BACKWARD};
    }
    if (phase() != BACKWARD) return;
    double sum = 0, off = fabs(gradient_of(value)), now = gradient_of(value);
    size_t first = uses.n;
    for (size_t i = uses.n; i-- > 0;) {
        sum += uses.all[i].local * uses.all[i].gradient;
        if (fabs(sum - now) >= off) continue;
        off = fabs(sum - now);
        first = i;
    }
    for (size_t i = first; i < uses.n; i++) uses.all[i].added = true;
}

// A name in its column. One that is too long has a line of its own.
static void name_column(const char *name)
{
    print(strlen(name) > 38 ? "  %s\n" : "  %-38s", name);
    if (strlen(name) > 38) print("  %38s", "");
}

// The last row of a table: a number under the third column.
static void sum_row(const char *name, double sum)
{
    print("  %-38s%*s", name, 2 * (watched.digits + 7), "");
    number(sum);
    print("\n");
}

static void print_uses(double *value, size_t most)
{
    bool known = gradients_known(), under_way = phase() == BACKWARD;
    double sum = 0;
    find_uses(value);
    if (uses.n == 0) {
        bool start = known && gradient_of(value) == 1;
        bool over = known || (place_of(value) && place_of(value)->position < latest_position());
        print("used by  nothing%s%s\n", over ? "" : " yet",
              start ? ": backward() starts here, with gradient 1" : "");
        return;
    }
    print("used by  %zu entr%s of the tape\n", uses.n, uses.n == 1 ? "y" : "ies");
    head_of("entry, for                            ", "derivative", known ? "gradient" : NULL,
            "product", NULL);
    for (size_t i = 0; i < uses.n; i++) {
        const Use *use = &uses.all[i];
        const Entry *e = use->entry;
        if (use->added) sum += use->local * use->gradient;
        if (i == most) print("  and %zu more\n", uses.n - most);
        if (i >= most) continue;
        char text[256];
        snprintf(text, sizeof text, "%td %s, %s", e - watched.model->tape.entries,
                 operations[e->op].name, value_name(named_after(e)));
        name_column(text);
        number(use->local);
        if (known && use->added) number(use->gradient);
        if (known && use->added) number(use->local * use->gradient);
        print(known && !use->added ? "  not added yet\n" : "\n");
    }
    if (!known) return;
    bool right = close_to(sum, gradient_of(value));
    sum_row(under_way ? "the gradient so far" : right ? "the sum, its gradient" : "the sum", sum);
    if (!right) print("  ITS GRADIENT IS ANOTHER: %.*g\n", watched.digits, gradient_of(value));
}

static void print_head_of(double *value)
{
    print("%s\n  data", value_name(value));
    number(data_of(value));
    if (gradients_known()) {
        print("   grad");
        number(gradient_of(value));
        if (phase() == BACKWARD) print("  so far: backward() is under way");
    }
    print("\n");
}

// Who used a value.
void show_users(double *value)
{
    print_head_of(value);
    print_uses(value, 64);
}

// The products that a value is the sum of, or a multiple of the sum of. False if it is no such sum.
static bool print_sum(const Entry *e)
{
    size_t n = 1;
    const Entry *factor = e->op == OP_MUL_CONST && !has_name(e->a) ? e : NULL;
    if (factor) e = maker(e->a);
    const Entry *first = e;
    for (; first && first->op == OP_ADD && (first == e || !has_name(first->out)); n++) {
        first = maker(first->a);
    }
    if (n < 2 || !first || first->op != OP_MUL || (first != e && has_name(first->out)))
        return false;
    for (const Entry *k = e; k != first; k = maker(k->a)) {
        const Entry *product = maker(second_operand(k));
        if (!product || product->op != OP_MUL || has_name(second_operand(k))) return false;
    }
    char text[512];
    head_of("product                               ", "a", "b", "a * b", NULL);
    for (const Entry *k = first; k <= e; k++) {
        const double *b = second_operand(k);
        if (k->op != OP_MUL) continue;
        snprintf(text, sizeof text, "%s * %s", value_name(k->a), value_name(b));
        name_column(text);
        number(data_of(k->a));
        number(data_of(b));
        number(*k->out);
        print("\n");
    }
    snprintf(text, sizeof text, "sum of %zu products", n);
    sum_row(text, *e->out);
    if (factor) {
        print("  %-38s%*s", "times the factor", watched.digits + 7, "");
        number(factor->c);
        number(*factor->out);
        print("\n");
    }
    return true;
}

// The entry that made a value: the operation, its operands, the local derivatives.
static void print_entry_of(const Entry *e)
{
    double *second = second_operand(e);
    Atom it = atom(e);
    print("  ");
    print_entry(e);
    print("\n");
    head_of("operand                               ", "data", "derivative", NULL);
    for (int i = 0; i < (second && second != e->a ? 2 : 1); i++) {
        double *operand = i ? second : e->a;
        name_column(value_name(operand));
        number(data_of(operand));
        number(it.derivative[i] + (second == e->a ? it.derivative[1] : 0));
        print("\n");
    }
}

// Where a value comes from, and who used it.
void show_value(double *value)
{
    const Entry *e = maker(value);
    print_head_of(value);
    if (!e)
        print("made by  no operation: it is a %s\n", is_parameter(value) ? "parameter" : "leaf");
    if (e) {
        int line = line_that_made(e);
        print("made by  entry %td (%s)", e - watched.model->tape.entries, operations[e->op].name);
        if (line) print(", microgpt.c:%d", statement_start(line));
        print("\n");
        if (!print_sum(e)) print_entry_of(e);
    }
    print_uses(value, 6);
}

/* ------------------------------------------------------------------------
 * What would be if.
 */
// These vectors are zero, whatever made them.
static struct {
    const Place *all[64];
    size_t n;
} silent;

// Computes an entry again, and all after it.
static void compute_from(const Entry *first)
{
    const Tape *tape = &watched.model->tape;
    for (const Entry *e = first; e < tape->entries + tape->n_entries; e++) {
        *e->out = atom(e).value;
        for (size_t i = 0; i < silent.n; i++) {
            const Place *p = silent.all[i];
            if (e->out >= p->at && e->out < p->at + p->n) *e->out = 0;
        }
    }
}

static double result_with(double *value, double number, const double *result)
{
    const Entry *made = maker(value);
    *value = number;
    compute_from(made ? made + 1 : watched.model->tape.entries + watched.model->tape.kept_entries);
    return *result;
}

static bool adam_has_moved(void)
{
    if (phase() == MOVED)
        print("Adam has moved the parameters since: ask where adam() begins, or before.\n");
    return phase() == MOVED;
}

// A value is moved a little to both sides: what a result does then is its derivative, whatever
// backward() says.
static void print_difference(double *value, const double *result, const char *names[3],
                             double derivative)
{
    double before = *value, h = 1e-5;
    double up = result_with(value, before + h, result),
           down = result_with(value, before - h, result);
    double slope = (up - down) / (2 * h);
    result_with(value, before, result);
    bool agree = fabs(slope - derivative) <= 1e-8 + 1e-4 * fabs(slope);
    print("%s = %.*g\n", value_name(value), watched.digits, before);
    print("  %s, if %s is 0.00001 more    %.15g\n", names[0], names[1], up);
    print("  %s, if %s is 0.00001 less    %.15g\n", names[0], names[1], down);
    print("  their difference over 0.00002            %.*g\n", watched.digits, slope);
    print("  %-40s %.*g\n  %s\n", names[2], watched.digits, derivative,
          agree ? "They agree." : "THEY DIFFER.");
}

void show_nudge(double *value)
{
    const Place *loss = find_place("loss", LATEST);
    if (!loss || phase() != GRADIENTS) {
        print("There is no loss with all its gradients here: ask where adam() begins, `tbreak "
              "adam`.\n");
        return;
    }
    const char *names[] = {"the loss", "it", "its gradient, by backward()"};
    print_difference(value, loss->at, names, gradient_of(value));
}

// The derivative of one value with respect to another, by the local derivatives between the two.
static double derivative(const double *of, const double *with_respect_to)
{
    const Tape *tape = &watched.model->tape;
    double *sums = calloc(n_numbers(), sizeof *sums);
    const Entry *last = maker(of);
    if (!sums) abort();
    sums[value_number(of)] = 1;
    for (const Entry *e = last; e && e >= tape->entries; e--) {
        double g = sums[value_number(e->out)];
        if (g == 0) continue;
        if (e->out == with_respect_to) continue;
        Atom it = atom(e);
        const double *b = second_operand(e);
        sums[value_number(e->a)] += it.derivative[0] * g;
        if (b) sums[value_number(b)] += it.derivative[1] * g;
    }
    double found = sums[value_number(with_respect_to)];
    free(sums);
    return found;
}

// How one value changes another: by differences, and by the local derivatives on the way.
void show_local(const char *from, const char *to)
{
    double *a = find_value(from, NONE, NONE), *b = a ? find_value(to, NONE, NONE) : NULL;
    if (!b || adam_has_moved()) return;
    const Entry *made_a = maker(a), *made_b = maker(b);
    if (!made_b || (made_a && made_a >= made_b)) {
        print("%s was not made from %s.\n", value_name(b), value_name(a));
        return;
    }
    const char *names[] = {"the second", "the first", "by the local derivatives on the way"};
    print("%s = %.*g\n", value_name(b), watched.digits, *b);
    print_difference(a, b, names, derivative(b, a));
}

// What the model would predict if a head's output were zero at one position, or at all of them.
void show_silence(int head, int position)
{
    bool all = position == ALL;
    const Place *out =
        is_head(head) ? head_place(head, "head_out", all ? LATEST : position, true) : NULL;
    const Place *logits = out ? need_place("logits", out->position) : NULL;
    if (!logits || adam_has_moved()) return;
    const Place *loss = find_place("loss", LATEST), *probs = find_place("probs", logits->position);
    if (!loss) loss = find_place("document_loss", LATEST);
    double *before = malloc(2 * logits->n * sizeof *before), *after = before + logits->n;
    if (!before) abort();
    double loss_before = loss ? *loss->at : 0;
    find_probs(logits, probs, before);
    for (size_t i = n_places(); i-- > 0 && silent.n < 64;) {
        const Place *p = place(i);
        if (p->head != head || p->layer != out->layer || strcmp(p->name, out->name) != 0) continue;
        if (all || p->position == out->position) silent.all[silent.n++] = p;
    }
    const Entry *first = silent.all[silent.n - 1]->from;
    compute_from(first);
    find_probs(logits, probs, after);
    double loss_after = loss ? *loss->at : 0;
    silent.n = 0;
    compute_from(first);
    const double *const columns[] = {before, after};
    print("after position %d (%s), if head %d were silent %s\n", out->position,
          text_at(out->position), head, all ? "at every position" : "there");
    head_of("           ", "as it is", "silent", NULL);
    show_ranking(before, logits->n, truth_after(logits->position), 2, columns);
    if (loss) row_of("the loss   ", 2, loss_before, loss_after);
    print("Nothing is changed: the program goes on with its own numbers.\n");
    free(before);
}

/* ------------------------------------------------------------------------
 * Settings, and a gradient as it grows.
 */
void show_layer(int layer)
{
    if (layer >= 0 && (size_t)layer < watched.model->n_layer) {
        watched.layer = layer;
        return;
    }
    print("Layers are counted from 0, and there %s %zu.\n",
          watched.model->n_layer == 1 ? "is" : "are", watched.model->n_layer);
}

void show_digits(int digits)
{
    if (digits < 1 || digits > 17) {
        print("Numbers are shown with 1 to 17 digits.\n");
        return;
    }
    watched.digits = digits;
}

// The gradient of a parameter, to be watched by the debugger; NULL if there is none.
double *watch_gradient(const char *name, int row, int column)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    watched.gradient = p ? grad(&watched.model->tape, p) : NULL;
    watched.gained = p ? *watched.gradient : 0;
    if (p) {
        print("The gradient of %s is %.*g now.\n", value_name(p), watched.digits, watched.gained);
    }
    return watched.gradient;
}

// If that gradient has changed since it was asked for last: which entry did it, by how much, and
// which statement recorded the entry.
void show_gain(void)
{
    if (!watched.gradient || *watched.gradient == watched.gained || !survey()) return;
    const Tape *tape = &watched.model->tape;
    double *p = watched.gradient - tape->chunk_size, now = *watched.gradient;
    print("The gradient of %s was %.*g and is now %.*g.\n", value_name(p), watched.digits,
          watched.gained, watched.digits, now);
    watched.gained = now;
    if (phase() == MOVED || phase() == FORWARD) {
        print("  adam() has cleared it for the next step.\n");
        return;
    }
    find_uses(p);
    size_t first = 0;
    while (first < uses.n && !uses.all[first].added) first++;
    if (first == uses.n) return;
    const Use *use = &uses.all[first];
    const double *whole = named_after(use->entry);
    int line = line_that_made(use->entry);
    print("  entry %td: ", use->entry - tape->entries);
    print_entry(use->entry);
    print(whole == use->entry->out ? ", which is %s" : ", a part of %s", value_name(whole));
    print("\n  adds %.*g, as use %zu of %zu, counted from the end\n", watched.digits,
          use->local * use->gradient, uses.n - first, uses.n);
    if (line) {
        print("  recorded by microgpt.c:%d\n", statement_start(line));
        print_statement(statement_start(line), "    ");
    }
}
