/* vectors.c: the views of the document, of the vectors that gpt() made of it, and of the tape. */
#include "views.h"

#include <stdio.h>
#include <string.h>

static void show_sample(void)
{
    int n = latest_position() + 1;
    print("The sample so far, as gpt() has seen it: ");
    for (int i = 1; i < n; i++) print("%s", text_at(i));
    print("\n  position  token\n");
    for (int i = 0; i < n; i++) print("  %8d  %5zu  %s\n", i, token_at(i), text_at(i));
}

// The document in work, or the sample, and its tokens.
void show_document(const Question *q)
{
    (void)q;
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

/* ------------------------------------------------------------------------
 * One vector, by its name.
 */
static void show_title(const Place *p)
{
    print("%s", place_name(p));
    if (p->position != NONE) print(" at position %d (%s)", p->position, text_at(p->position));
    print("\n");
}

// What the i-th element of a vector belongs to.
static void show_label(const Place *p, size_t i)
{
    static const char tokens[] = " logits probs scores ", heads[] = " q k v x_attn ";
    char word[48];
    snprintf(word, sizeof word, " %s ", p->name);
    bool of_positions = strncmp(p->name, "attn_", 5) == 0 && p->outer == NONE;
    int at = of_positions ? position_looked_at(p, i) : NONE;
    if (p->pointer)
        print("  %s\n", value_name(p->at + i));
    else if (strstr(tokens, word))
        print("  %s\n", token_text(i));
    else if (strstr(heads, word))
        print("  head %zu\n", i / watched.model->head_dim);
    else
        print("  %s\n", at != NONE ? text_at(at) : "");
}

// One vector, with data and gradient; without a name, all names.
void show_vector(const Question *q)
{
    if (!*q->name) show_map(q);
    const Place *p = *q->name ? need_place(q->name, q->number[0]) : NULL;
    if (!p) return;
    show_title(p);
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
        show_label(p, i);
    }
}

static void show_four_in_a_row(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i % 4 == 0) print("  [%2zu]", i);
        number(x[i]);
        if (i % 4 == 3 || i + 1 == n) print("\n");
    }
}

static void show_matrix_row(const Matrix *w, int i)
{
    const Model *model = watched.model;
    if (i < 0 || (size_t)i >= w->rows) {
        print("%s has %zu rows, counted from 0: `row %s 0` is the first.\n", w->name, w->rows,
              w->name);
        return;
    }
    double *row = w->data + (size_t)i * w->cols, *g = grad(&model->tape, row);
    bool tokens = w == model->wte || w == model->lm_head;
    print(tokens ? "row %d of %s (%s)\n" : "row %d of %s\n", i, w->name, token_text((size_t)i));
    if (gradients_known()) print("  data\n");
    show_four_in_a_row(row, w->cols);
    if (!gradients_known()) return;
    if (phase() == MOVED) g = moved(0)->g + (row - model->params);
    print(phase() == BACKWARD ? "  gradient so far: backward() is under way\n"
          : phase() == MOVED  ? "  gradient, before adam() cleared it\n"
                              : "  gradient\n");
    show_four_in_a_row(g, w->cols);
}

// The numbers of a vector alone; or of a row of a matrix, with its gradients.
void show_row(const Question *q)
{
    int i = q->number[0];
    const Matrix *w = find_matrix(q->name);
    const Place *p = w ? NULL : need_place(q->name, i);
    if (w) show_matrix_row(w, i);
    if (!p) return;
    show_title(p);
    show_four_in_a_row(p->at, p->n);
}

// Neighbors, wherever they are: what they are, with data and gradient.
void show_values(const Question *q)
{
    for (double *x = q->value; x < q->value + q->number[0]; x++) {
        const char *name = value_name(x);
        if (*name == '?') {
            print("This is no value of the tape. A value is a pointer to its data, like logits or "
                  "&logits[5].\n");
            return;
        }
        if (on_tape(x)) data_and_grad(x);
        if (!on_tape(x)) number(*x);
        print("  %s\n", name);
    }
}

/* ------------------------------------------------------------------------
 * Several vectors: those in scope, those around an operation, all of a position.
 */
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
                       strcmp(of->line->function, p->line->function) == 0;
    return *p->name && strcmp(p->line->function, newest->line->function) == 0 &&
           p->outer == newest->outer && !double_name &&
           (p->position == NONE || p->position == latest_position()) &&
           (p->layer == NONE || p->layer == newest->layer) &&
           (p->head == NONE || p->head == newest->head);
}

static void show_adam(void)
{
    const Model *model = watched.model;
    size_t n = (size_t)model->num_params;
    show_line("p", model->params, n, "the parameters");
    show_line("g", grad(&model->tape, model->params), n, "their gradients");
    show_line("m", model->m, n, "Adam's means");
    show_line("v", model->v, n, "of squares");
}

// The vectors in scope where the program is, as they were made.
void show_here(const Question *q)
{
    const char *function = function_at(q->pc);
    const Place *newest = NULL;
    if (function && strcmp(function, "adam") == 0) {
        show_adam();
        return;
    }
    for (const Place *p = notes.all; p < notes.all + notes.n; p++) {
        bool outer = p->outer == NONE || !notes.all[p->outer].at;
        bool here = function ? strcmp(p->line->function, function) == 0 : outer;
        if (here && *p->name) newest = p;
    }
    bool any = false;
    for (const Place *p = notes.all; newest && p < notes.all + notes.n; p++) {
        if (!in_scope(p, newest)) continue;
        show_line(place_name(p), p->at, p->n, p->pointer ? value_name(p->at) : p->line->meaning);
        any = true;
    }
    if (!any) print("No vector has been made in this call yet: step on.\n");
}

// Is a vector in the map: of the layer shown, of the first head, and made by gpt() itself?
static bool on_map(const Place *p)
{
    const Place *from = operand_of(p);
    bool copied = from && strcmp(from->name, p->name) == 0;  // as k and v, into the cache
    return *p->name && p->head <= 0 && (p->layer == NONE || p->layer == watched.layer) &&
           p->outer == NONE && !copied;
}

// Is a vector's name a text, or does its statement contain it?
static bool statement_has(const Place *p, const char *text)
{
    bool has = strcmp(p->name, text) == 0;
    for (int line = p->line->starts; source_line(line)->starts == p->line->starts; line++) {
        has = has || strstr(source_line(line)->code, text);
    }
    return has;
}

// Vectors before and after one operation of the model: every line of the source that has its name.
void show_around(const Question *q)
{
    const Place *found[64];
    int n = 0, position = q->number[0];
    for (const Place *p = notes.all + notes.n; p-- > notes.all && n < 64;) {
        if (!on_map(p) || p->head != NONE || p->position == NONE || !operand_of(p)) continue;
        if (!statement_has(p, q->name)) continue;
        if (position == LATEST) position = p->position;
        if (p->position == position) found[n++] = p;
    }
    size_t most = n == 1 ? 16 : n == 2 ? 6 : 2;
    for (int i = n; i-- > 0;) {
        const Place *after = found[i], *before = operand_of(after);
        size_t rows = before->n > after->n ? before->n : after->n;
        print("microgpt.c:%d, at position %d (%s): before, %s; after, %s\n", after->line->starts,
              position, text_at(position), before->name, after->name);
        print_statement(after->line->starts);
        side_by_side(2, (const Place *[]){before, after}, (const char *[]){"before", "after"},
                     most);
        if (rows <= most) continue;
        print("  ... and %zu more: `around %s %d`, `row %s %d`\n", rows - most, after->name,
              position, after->name, position);
    }
    if (n) return;
    print("%s: no line of gpt() with this text has come by yet, or there is no such position. "
          "Try rmsnorm, wq, wo, residual, fc1, relu, lm_head, softmax.\n",
          q->name);
}

// What a vector was made from: other vectors, and matrices with their shapes.
static void list_operands(const Place *p)
{
    char list[200] = "";
    for (const Entry *e = p->from; e < p->to; e++) {
        const double *operands[] = {e->a, second_operand(e)};
        for (int i = 0; i < 2; i++) {
            const Matrix *w = matrix_of(operands[i]);
            const Place *of = place_read(p, operands[i]);
            char name[80] = "";
            if (w) snprintf(name, sizeof name, " %s [%zu x %zu],", w->name, w->rows, w->cols);
            if (of) snprintf(name, sizeof name, " %s,", of->name);
            if (!strstr(list, name)) strncat(list, name, sizeof list - strlen(list) - 1);
        }
    }
    if (*list) print(" from%.*s", (int)strlen(list) - 1, list);
    print("\n");
}

// The model as a map, as it was recorded: of one position, the vectors with their sizes, and what
// they were made from; and the names of all others.
void show_map(const Question *q)
{
    (void)q;
    const Model *model = watched.model;
    const Place *end = find_place("logits", LATEST);
    int position = end ? end->position : latest_position();
    print("  %zu layer%s, %zu heads of %zu, a block of %zu\n", model->n_layer,
          model->n_layer == 1 ? "" : "s", model->n_head, model->head_dim, model->block_size);
    for (size_t k = 0; position == NONE && k < model->n_matrices; k++) {
        const Matrix *w = &model->state_dict[k];
        print("  %s [%zu x %zu]\n", w->name, w->rows, w->cols);
    }
    for (const Place *p = notes.all; p < notes.all + notes.n; p++) {
        if (!on_map(p) || p->position != position || p->from == p->to) continue;
        print("  %-20s %4zu ", place_name(p), p->n);
        list_operands(p);
    }
    print("  other names:");
    for (const Place *p = notes.all; p < notes.all + notes.n; p++) {
        bool shown = p->position == position && p->from != p->to;
        const char *name = place_name(p);
        if (on_map(p) && !shown && find_place(name, LATEST) == p) print(" %s", name);
    }
    print("\n");
}

// The tape, counted by operation.
void show_tape(const Question *q)
{
    (void)q;
    const Tape *tape = &watched.model->tape;
    size_t counts[N_OPS] = {0};
    int n = 0;
    for (size_t i = 0; i < tape->n_entries; i++) counts[tape->entries[i].op]++;
    for (size_t op = 0; op < N_OPS; op++) {
        if (counts[op]) print("  %-10s %8zu\n", operations[op].name, counts[op]);
    }
    for (const Place *p = notes.all; p < notes.all + notes.n; p++) {
        if (p->from && p->position >= n) n = p->position + 1;
    }
    print("  %-10s %8zu entries, from %d position%s\n", "all", tape->n_entries, n,
          n == 1 ? "" : "s");
}
