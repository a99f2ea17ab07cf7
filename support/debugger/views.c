/* views.c: what one can ask of a run that has stopped. Each view is a function that any debugger can
 * call; commands.gdb and commands.lldb give them short names. All they need is on the tape, which in this
 * build has an entry for every single + and *, and in the notes that names.h takes.
 *
 * A view computes with its own copy of the arithmetic, so that a breakpoint in autograd.c does not
 * stop it. An operation that is new is asked itself.
 */
#define _XOPEN_SOURCE 700
#include "views.h"
#include "../job.h"

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

// How many bytes of a text fit so many columns.
static int print_width(const char *text, int columns)
{
    int n = 0;
    for (; text[n] && (columns > 0 || (text[n] & 0xc0) == 0x80); n++) {
        columns -= (text[n] & 0xc0) != 0x80;
    }
    return n;
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
void number(double x) { print(" %*.*g", watched.digits + 6, watched.digits, x); }

static void heading(const char *text) { print(" %*s", watched.digits + 6, text); }

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

// What the i-th element of a vector belongs to.
static void element_label(const Place *p, size_t i)
{
    static const char *const of_tokens[] = {"logits", "probs", "scores"};
    static const char *const of_heads[] = {"q", "k", "v", "x_attn"};
    for (size_t k = 0; k < 3; k++) {
        if (strcmp(p->name, of_tokens[k]) == 0) print("  %s", token_text(i));
    }
    for (size_t k = 0; k < 4; k++) {
        if (strcmp(p->name, of_heads[k]) == 0) print("  head %zu", i / watched.model->head_dim);
    }
    if (strncmp(p->name, "attn_", 5) == 0 && !p->inner) {  // logits and weights
        print("  %s", text_at((int)i));
    }
    print("\n");
}

/* ------------------------------------------------------------------------
 * The document and the model.
 */
// The list of the commands of commands.gdb and commands.lldb.
void show_views(void)
{
    static const char *const views[][2] = {
        {"doc", "the document, its tokens, and what is to be predicted"},
        {"map", "the model as a map: shapes and flow"},
        {"here", "the vectors in scope, with their first numbers"},
        {"vec NAME [POS]", "a vector with data and gradient; alone, the names"},
        {"row NAME [POS]", "its numbers, four in a row; row wte 24: of a matrix"},
        {"around OP [POS]", "before and after an operation: rmsnorm, wq, wo ..."},
        {"head H [POS]", "what one head read: of q, and of each k and v"},
        {"cache [POS]", "the cache of keys and values, or one position of it"},
        {"attn H [POS]", "one head's logits and weights beside their characters"},
        {"lands H [POS]", "where a head's output lands in x_attn"},
        {"silence H [POS]", "what the model would say without this head"},
        {"top5 [POS]", "the likeliest next characters, and the true one"},
        {"draw", "while sampling: which token is drawn, and why"},
        {"param NAME ROW COL", "a parameter: value, gradient, Adam's m and v"},
        {"moves NAME ROW COL", "how Adam moves it, this step and the one before"},
        {"watchgrad NAME ROW COL", "stop whenever its gradient changes, with the reason"},
        {"explain VALUE", "what made a value, from what, and who used it"},
        {"users VALUE", "all who used it, with local derivatives"},
        {"graph VALUE", "the tree below a value, also as a picture; depth N"},
        {"nudge VALUE", "its gradient, and what the loss does if it is moved"},
        {"nudge A B", "the same for two values: how A changes B"},
        {"look EXPR [N]", "N values from a pointer on: data, gradient, name"},
        {"tape", "the tape, counted by operation"},
        {"at FUNC TEXT [COND]", "stop once at the line of FUNC with this text"},
        {"layer L, digits N", "which layer to show, and how many digits"},
        {"views", "this list; help COMMAND says more"},
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        print("  %-22s %s\n", views[i][0], views[i][1]);
    }
    print("POS is a position; without it, the latest. VALUE is  logits 5 [POS],\n"
          "layer0.attn_wo 3 5,  loss,  v123 (a value that has no name),  logits[5]@3\n"
          "in one word, or C without spaces, like  &logits[5].\n");
}

void show_begin(void)
{
    print("\nThe loss of the first document begins here. `views` lists the commands.\n");
}

// How many tokens of the document there are to predict.
static size_t document_length(void)
{
    const Model *model = watched.model;
    size_t n = 1;
    while (n < model->block_size && model->tokens[n] != watched.tokenizer->BOS) n++;
    return n;
}

// The document in work, or the sample, and its tokens.
void show_document(void)
{
    if (!survey()) return;
    const Model *model = watched.model;
    if (sampling()) {
        size_t n = (size_t)(latest_position() + 1);
        print("The sample so far, as gpt() has seen it: ");
        for (size_t i = 1; i < n; i++) print("%s", text_at((int)i));
        print("\n  position  token\n");
        for (size_t i = 0; i < n; i++) {
            print("  %8zu  %5zu  %s\n", i, token_at((int)i), text_at((int)i));
        }
        return;
    }
    if (model->tokens[0] != watched.tokenizer->BOS) {
        print("No document has been taken yet: stop in document_loss(), or later.\n");
        return;
    }
    size_t n = document_length();
    print("The document: ");
    for (size_t i = 1; i <= n && model->tokens[i] != watched.tokenizer->BOS; i++) {
        print("%s", token_text(model->tokens[i]));
    }
    print("\n  position  token         to predict    loss\n");
    for (size_t i = 0; i < n; i++) {
        const Place *loss = find_place("loss_t", (int)i);
        print("  %8zu  %5u  %-5s", i, model->tokens[i], token_text(model->tokens[i]));
        print("  %5u  %-5s", model->tokens[i + 1], token_text(model->tokens[i + 1]));
        if (loss) number(*loss->at);
        print((int)i == latest_position() ? "  <- the latest\n" : "\n");
    }
}

// The title of a vector.
static void title(const Place *p)
{
    print("%s", place_name(p));
    if (p->position != NONE) {
        print(" at position %d (%s)", p->position, text_at(p->position));
    }
    print("\n");
}

// The names of all vectors, as gpt() makes them: of the first head, and of the layer shown.
void show_vectors(void)
{
    if (!survey()) return;
    bool any = false;
    for (size_t i = 0; i < n_places(); i++) {
        const Place *p = place(i);
        char name[64];
        snprintf(name, sizeof name, "%s%s", p->head == 0 ? "head0." : "", p->name);
        bool shown = p->head <= 0 && (p->layer == NONE || p->layer == watched.layer) && !p->inner;
        if (!shown || find_place(name, LATEST) != p) continue;
        any = true;
        char size[40];
        snprintf(size, sizeof size, p->position == NONE ? "[%zu]" : "[%zu] at %d", p->n,
                 p->position);
        int length = print_width(p->meaning, WIDTH - 2 - 20 - 11);
        print("  %-19s %-10s %.*s\n", name, size, length, p->meaning);
    }
    if (!any) print("There are none yet: step on.\n");
}

// Where the debugger's frame is: a variable of microgpt.c that is declared further down has no number
// yet, or one of the time before.
static int frame_line;

void show_before(int line) { frame_line = line; }

// A variable of that frame: its first numbers, and what it points to. NULL ends the list.
void show_pointer(const char *name, double *x)
{
    static size_t shown;
    if (name && frame_line && declared_at(name, frame_line) >= frame_line) return;
    if (!name) frame_line = 0;
    if (!name && !shown) print("No vector is there yet: step on.\n");
    shown = name ? shown : 0;
    if (!name || !watched.model || watched.model->tape.fused || !on_tape(x)) return;
    const Place *p = place_of(x);
    size_t n = p ? p->n - (size_t)(x - p->at) : 1;
    if (!p && x < watched.model->params + watched.model->num_params) n = watched.model->n_embd;
    print("  %-13s", name);
    for (size_t i = 0; i < 3; i++) {
        if (i < n) number(x[i]);
        if (i >= n) heading("");
    }
    print("%s ", n > 3 ? " .." : "   ");
    if (p && x == p->at && p->position != NONE) {
        print("%s@%d\n", place_name(p), p->position);
    } else {
        print("%s\n", value_name(x));
    }
    shown++;
}

// The vectors of the call that is under way, as gpt() made them.
void show_here(void)
{
    if (!survey()) return;
    int last = latest_position();
    size_t shown = 0;
    const Place *newest = NULL;
    for (size_t i = 0; i < n_places(); i++) {
        if (place(i)->position == last && place(i)->from) newest = place(i);
    }
    for (size_t i = 0; i < n_places(); i++) {
        const Place *p = place(i);
        if (p->position != last || !p->from || (p->inner && p->outer != NONE)) continue;
        if (newest && p->layer != NONE && p->layer != newest->layer) continue;
        if (p->head != NONE && p->head != newest->head) continue;
        show_pointer(place_name(p), p->at);
        shown++;
    }
    if (!shown) print("No vector has been made in this call yet: step on.\n");
}

// One vector, with data and gradient.
void show_vector(const char *name, int position)
{
    const Place *p = survey() ? need_place(name, position) : NULL;
    if (!p) return;
    title(p);
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
    if (!survey()) return;
    const Matrix *w = find_matrix(name);
    if (w && (i < 0 || (size_t)i >= w->rows)) {
        print("%s has %zu rows, counted from 0: `row %s 0` is the first.\n", name, w->rows, name);
        return;
    }
    if (w) {
        double *row = w->data + (size_t)i * w->cols, *g = grad(&watched.model->tape, row);
        if (phase() == MOVED) g = moved(0)->g + (row - watched.model->params);
        bool tokens = w == watched.model->wte || w == watched.model->lm_head;
        print("row %d of %s", i, name);
        if (tokens) print(" (%s)", token_text((size_t)i));
        print("\n");
        four_in_a_row(gradients_known() ? "data" : "", row, w->cols);
        if (!gradients_known()) return;
        four_in_a_row(phase() == BACKWARD ? "gradient so far: backward() is under way"
                      : phase() == MOVED  ? "gradient, before adam() cleared it"
                                          : "gradient",
                      g, w->cols);
        return;
    }
    const Place *p = need_place(name, i);
    if (!p) return;
    title(p);
    four_in_a_row("", p->at, p->n);
}

// Is it a value? If not, this says so.
static bool is_value(const double *x)
{
    if (on_tape(x)) return true;
    print("This is no value of the tape. A value is a pointer to its data, like logits or "
          "&logits[5].\n");
    return false;
}

// n neighbors, wherever they are: what they are, with data and gradient.
void show_values(double *x, size_t n)
{
    if (!survey()) return;
    for (size_t i = 0; i < n && is_value(x + i); i++) {
        data_and_grad(x + i);
        print("  %s\n", value_name(x + i));
    }
}

// Does the statement of a vector contain a text?
static bool statement_has(const Place *p, const char *text)
{
    const char *comment = comment_on(p->line);
    for (int line = p->line; line < p->line + 8; line++) {
        if (strstr(source_line(line), text)) return true;
        if (strchr(source_line(line), ';')) break;
    }
    return comment && strncmp(comment, "residual", 8) == 0 && strcmp(text, "residual") == 0;
}

// Vectors before and after one operation of the model: every line of the source that has its name.
void show_around(const char *operation, int position)
{
    size_t n_shown = 0;
    if (!survey()) return;
    int asked = position;
    for (size_t k = 0; k < n_places(); k++) {
        const Place *p = place(k);
        if (asked != LATEST || !p->from || p->head != NONE || p->inner) continue;
        if (operand_of(p) && statement_has(p, operation)) position = p->position;
    }
    for (size_t k = 0; k < n_places(); k++) {
        const Place *after = place(k), *before = after->from ? operand_of(after) : NULL;
        if (!before || after->position != position || after->head != NONE || after->inner) continue;
        if (after->layer != NONE && after->layer != watched.layer) continue;
        if (!statement_has(after, operation)) continue;
        n_shown++;
        print("microgpt.c:%d, at position %d (%s): before, %s; after, %s\n", after->line, position,
              text_at(position), before->name, after->name);
        print_statement(after->line, "    ");
        print("    i");
        headings("before");
        headings("after");
        print("\n");
        for (size_t i = 0; i < before->n || i < after->n; i++) {
            print("  %3zu", i);
            if (i < before->n) {
                data_and_grad(before->at + i);
            } else {
                heading("");
                if (gradients_known()) heading("");
            }
            if (i < after->n) data_and_grad(after->at + i);
            print("\n");
        }
    }
    if (!n_shown) {
        print("%s: no line of gpt() with this text has come by yet, or there is no such position. "
              "Try rmsnorm, wq, wo, residual, fc1, relu, lm_head, softmax.\n",
              operation);
    }
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

static const Place *head_place(int head, const char *name, int position, bool need)
{
    char full[64];
    snprintf(full, sizeof full, "head%d.%s", head, name);
    return need ? need_place(full, position) : find_place(full, position);
}

// The slices that the entries of a vector read, one row each: neighbors in memory, in order.
static void print_slices(const Place *p, const char *first, const char *others, const char *skip)
{
    const double *slices[512][2];  // from, to
    size_t n = 0;
    for (const Entry *e = p->from; e < p->to; e++) {
        for (int second = 0; second < 2; second++) {
            const double *x = second ? e->b : e->a;
            const Place *of = x ? place_of(x) : NULL;
            if (!of || of == p || strcmp(of->name, skip) == 0) continue;
            size_t k = 0;
            for (; k < n; k++) {
                bool same = place_of(slices[k][0]) == of;
                if (same && x >= slices[k][0] && x <= slices[k][1]) break;
            }
            if (k == 512) return;
            if (k == n) slices[n][0] = slices[n][1] = x, n++;
            if (x == slices[k][1]) slices[k][1]++;
        }
    }
    for (size_t k = 0; k < n; k++) {
        const Place *of = place_of(slices[k][0]);
        size_t start = (size_t)(slices[k][0] - of->at), end = (size_t)(slices[k][1] - of->at);
        print("  %s %3d %-4s", k == 0 && *first ? first : others, of->position,
              of->position == NONE ? "" : text_at(of->position));
        for (size_t i = start; i < end; i++) number(of->at[i]);
        print("  %s[%zu..%zu]\n", of->name, start, end - 1);
    }
}

// What one head read: its slice of the query, of each key and of each value.
void show_head(int head, int position)
{
    if (!survey() || !is_head(head)) return;
    const Model *model = watched.model;
    const Place *logits = head_place(head, "attn_logits", position, false);
    const Place *q = need_place("q", position);
    if (!q) return;
    size_t hs = (size_t)head * model->head_dim;
    bool read = logits && (position != LATEST || logits->position == q->position);
    print("layer %d, head %d at position %d (%s)", q->layer, head, q->position,
          text_at(q->position));
    if (!read) {
        print(": it has not run yet. It will read\n");
        for (int kind = 0; kind < 3; kind++) {
            for (int t = kind ? 0 : q->position; t <= q->position; t++) {
                const Place *p = find_place(kind == 0 ? "q" : kind == 1 ? "k" : "v", t);
                if (!p) continue;
                print("  %c_h %3d %-4s", "qkv"[kind], t, text_at(t));
                for (size_t i = 0; i < model->head_dim; i++) number(p->at[hs + i]);
                print("  %s[%zu..%zu]\n", p->name, hs, hs + model->head_dim - 1);
            }
        }
        return;
    }
    print(" reads\n");
    print_slices(logits, "q_h", "k_h", "");
    const Place *out = head_place(head, "head_out", logits->position, false);
    if (out) print_slices(out, "", "v_h", "attn_weights");
}

// The cache of keys and values: how full it is, and one position of it, or the beginning of each.
void show_cache(int position)
{
    if (!survey()) return;
    int n = 0;
    size_t few = watched.model->n_embd < 2 ? watched.model->n_embd : 2;
    while (find_place("k", n) && find_place("v", n)) n++;
    print("layer %d: %d position%s in the cache\n", watched.layer, n, n == 1 ? "" : "s");
    for (int t = 0; t < n && position == LATEST; t++) {
        const Place *k = find_place("k", t), *v = find_place("v", t);
        print(" %3d %-4s key", t, text_at(t));
        for (size_t i = 0; i < few; i++) number(k->at[i]);
        print(" ... value");
        for (size_t i = 0; i < few; i++) number(v->at[i]);
        print(" ...\n");
    }
    const Place *k = position == LATEST ? NULL : need_place("k", position);
    const Place *v = k ? need_place("v", position) : NULL;
    if (!v) return;
    print("position %d (%s)\n    i", position, text_at(position));
    headings("key");
    headings("value");
    print("\n");
    for (size_t i = 0; i < k->n; i++) {
        print("  %3zu", i);
        data_and_grad(k->at + i);
        data_and_grad(v->at + i);
        print("  head %zu\n", i / watched.model->head_dim);
    }
}

// What a head looks at: its logits and weights beside the characters they belong to.
void show_attention(int head, int position)
{
    if (!survey() || !is_head(head)) return;
    const Place *logits = head_place(head, "attn_logits", position, true);
    if (!logits) return;
    const Place *weights = head_place(head, "attn_weights", logits->position, false);
    print("layer %d, head %d at position %d (%s) looks at\n    t       ", logits->layer, head,
          logits->position, text_at(logits->position));
    heading("logit");
    if (weights) heading("weight");
    print("\n");
    for (size_t t = 0; t < logits->n; t++) {
        print("  %3zu  %-4s ", t, text_at((int)t));
        number(logits->at[t]);
        if (weights) {
            number(weights->at[t]);
            int width = weights->at[t] > 0 ? (int)(weights->at[t] * 36 + 0.5) : 0;
            print("  %.*s", width, "####################################");
        }
        print("\n");
    }
    if (!weights) print("  The weights are not there yet: step on.\n");
}

// Where a head's output stands in the row of all outputs: the entries that copied it.
void show_landing(int head, int position)
{
    if (!survey() || !is_head(head)) return;
    const Place *out = head_place(head, "head_out", position, true);
    if (!out) return;
    bool any = false;
    const Tape *tape = &watched.model->tape;
    print("layer %d, head %d at position %d (%s)\n", out->layer, head, out->position,
          text_at(out->position));
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
// The probabilities after a position. Where softmax has not run yet, as it would compute them.
static void find_probs(const Place *logits, const Place *probs, double *p)
{
    double total = 0, max = logits->at[0];
    for (size_t i = 1; i < logits->n; i++) max = fmax(max, logits->at[i]);
    for (size_t i = 0; i < logits->n; i++) {
        p[i] = exp(logits->at[i] - max);
        total += p[i];
    }
    for (size_t i = 0; i < logits->n; i++) p[i] = probs ? probs->at[i] : p[i] / total;
}

enum { TOP = 5 };

static void rank_tokens(const double *p, size_t n, size_t best[TOP])
{
    for (size_t rank = 0; rank < TOP; rank++) {
        best[rank] = n;
        for (size_t i = 0; i < n; i++) {
            bool taken = false;
            for (size_t k = 0; k < rank; k++) taken = taken || best[k] == i;
            if (!taken && (best[rank] == n || p[i] > p[best[rank]])) best[rank] = i;
        }
    }
}

// The likeliest next tokens, and the true one.
void show_top(int position)
{
    const Place *logits = survey() ? need_place("logits", position) : NULL;
    if (!logits) return;
    const Place *probs = find_place("probs", logits->position);
    const Place *scores = probs ? operand_of(probs) : NULL;
    if (!scores) scores = logits;
    size_t n = logits->n, best[TOP];
    double *p = malloc(n * sizeof *p);
    if (!p) abort();
    find_probs(logits, probs, p);
    rank_tokens(p, n, best);
    print("after position %d (%s), the likeliest next\n             ", logits->position,
          text_at(logits->position));
    heading("logit");
    if (scores != logits) heading(scores->name);  // a sample: the logits over the temperature
    heading("probability");
    print("\n");
    size_t truth = sampling() ? n : watched.model->tokens[logits->position + 1];
    bool among = false;
    for (size_t rank = 0; rank <= TOP; rank++) {
        size_t token = rank < TOP ? best[rank] : truth;
        if (token >= n || (rank == TOP && among)) continue;
        among = among || token == truth;
        if (rank < TOP) print("  %zu.  %-4s   ", rank + 1, token_text(token));
        if (rank == TOP) print("  -   %-4s   ", token_text(token));
        number(logits->at[token]);
        if (scores != logits) number(scores->at[token]);
        number(p[token]);
        if (token == truth) print("  true: loss %.*g", watched.digits, -log(p[token]));
        print("\n");
    }
    free(p);
}

// While sampling: a uniform number against the running sums of the probabilities.
void show_draw(void)
{
    if (!survey()) return;
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
    Random random = *draws_from();
    double total = 0, sum = 0;
    for (size_t i = 0; i < probs->n; i++) total += probs->at[i];
    double uniform = random_uniform(&random), u = uniform * total;
    print("  the number drawn, uniform between 0 and 1: %.*g\n", watched.digits, uniform);
    print("  the first token whose running sum is above it is the next\n         ");
    heading("probability");
    heading("running sum");
    print("\n");
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

// A line of the map: what is there, the residual beside it, and a word.
static void map_line(const char *beside, const char *word, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print("  %-38s%s%s%s\n", text, beside, *word ? "   " : "", word);
}

// The model as a map, with the sizes of this run.
void show_map(void)
{
    if (!survey()) return;
    const Model *model = watched.model;
    size_t e = model->n_embd, h = model->n_head, d = model->head_dim, v = model->vocab_size;
    size_t hidden = model->layers[0].mlp_fc1->rows;
    char word[64];
    map_line("", "a row of each, added", "wte [%zu x %zu], wpe [%zu x %zu]", v, e,
             model->block_size, e);
    map_line("", "", "emb %zu", e);
    map_line("", "", "  rmsnorm");
    snprintf(word, sizeof word, "%zu layer%s", model->n_layer, model->n_layer == 1 ? "" : "s");
    map_line("--.", word, "emb_norm %zu", e);
    map_line("  |", "", "  rmsnorm");
    map_line("  |", "", "x_norm %zu", e);
    map_line("  |", "k and v go into the cache", "  attn_wq, attn_wk, attn_wv [%zu x %zu]", e, e);
    map_line("  |", "", "q %zu, k %zu, v %zu", e, e, e);
    snprintf(word, sizeof word, "q . k / sqrt(%zu), softmax, mix v", d);
    map_line("  |", word, "  %zu heads of %zu", h, d);
    map_line("  |", "one after another", "x_attn %zu x %zu", h, d);
    map_line("  |", "", "  attn_wo [%zu x %zu]", e, e);
    map_line("  +", "x_mid is their sum", "x_wo %zu", e);
    map_line("--.", "", "x_mid %zu", e);
    map_line("  |", "", "  rmsnorm");
    map_line("  |", "", "mid_norm %zu", e);
    map_line("  |", "", "  mlp_fc1 [%zu x %zu]", hidden, e);
    map_line("  |", "", "fc1 %zu, %s act %zu", hidden,
             model->activation == RELU2 ? "relu and square" : "relu", hidden);
    map_line("  |", "", "  mlp_fc2 [%zu x %zu]", e, hidden);
    map_line("  +", "x_out is their sum", "fc2 %zu", e);
    map_line("", "", "x_out %zu, lm_head [%zu x %zu]", e, v, e);
    map_line("", "the loss: -log of the true one", "logits %zu, softmax: probs %zu", v, v);
}

// The tape, counted by operation.
void show_tape(void)
{
    if (!survey()) return;
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
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    if (!p) return;
    size_t k = (size_t)(p - watched.model->params);
    Phase now = phase();
    print("%s\n  value   ", value_name(p));
    number(*p);
    print("\n  gradient");
    number(gradients_known() ? gradient_of(p) : *grad(&watched.model->tape, p));
    print("%s", !gradients_known() ? "  (no backward() on this tape yet)"
                : now == BACKWARD  ? "  so far: backward() is under way"
                : now == MOVED     ? "  before adam() cleared it"
                                   : "");
    print("\n  Adam's m");
    number(watched.model->m[k]);
    print("\n  Adam's v");
    number(watched.model->v[k]);
    print("\n");
}

// How Adam moves one parameter.
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
enum { MOVE_ROWS = sizeof move_rows / sizeof move_rows[0] };

static void find_move(const Moved *found, size_t k, double column[MOVE_ROWS])
{
    double eps = 1e-8, t = (double)found->step + 1, beta1 = found->beta1, beta2 = found->beta2;
    double g = found->g[k], m = found->m[k], v = found->v[k], p = found->p[k];
    double new_m = beta1 * m + (1 - beta1) * g, m_hat = new_m / (1 - pow(beta1, t));
    double new_v = beta2 * v + (1 - beta2) * g * g, v_hat = new_v / (1 - pow(beta2, t));
    double move = -found->lr * m_hat / (sqrt(v_hat) + eps);
    double decay = -found->lr * found->weight_decay * p;
    const double rows[MOVE_ROWS] = {
        (double)found->step, g,    m,     new_m, m_hat,           v, new_v, v_hat,
        found->lr,           move, decay, p,     p + move + decay};
    memcpy(column, rows, sizeof rows);
}

// What Adam is about to do, where the gradients are there; or what it did. And the step before.
void show_moves(const char *name, int row, int column)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    if (!p) return;
    Model *model = watched.model;
    const Config *config = watched.run->config;
    size_t k = (size_t)(p - model->params);
    bool coming = phase() == GRADIENTS;
    Moved next = {.step = model->steps_done,
                  .lr = learning_rate(config, model->steps_done),
                  .beta1 = config->beta1,
                  .beta2 = config->beta2,
                  .weight_decay = config->weight_decay,
                  .p = model->params,
                  .g = grad(&model->tape, model->params),
                  .m = model->m,
                  .v = model->v};
    const Moved *latest = coming && !adam_is_called() ? &next : moved(0);
    const Moved *before = moved(latest == &next ? 0 : 1);
    if (!latest) {
        print("Adam has not moved anything yet, and there is no gradient: ask where adam() begins, "
              "`tbreak adam`.\n");
        return;
    }
    double columns[2][MOVE_ROWS];
    size_t n = 0;
    if (before) find_move(before, k, columns[n++]);
    find_move(latest, k, columns[n++]);
    print("%s: %s in step %.0f, counted from 0%s\n", value_name(p),
          coming ? "what Adam is about to do" : "what Adam did", columns[n - 1][0],
          n == 2 ? "; before it, the step before" : "");
    for (size_t i = 0; i < MOVE_ROWS; i++) {
        print("  %-41s", move_rows[i]);
        for (size_t c = 0; c < n; c++) number(columns[c][i]);
        print("\n");
    }
}

/* ------------------------------------------------------------------------
 * Where a value comes from, and where it goes.
 */
// How small changes of an entry's first or second operand change its result.
double local_derivative(const Entry *e, bool second)
{
    double a = data_of(e->a), b = e->b ? data_of(e->b) : 0;
    switch (e->op) {
    case OP_MUL: return second ? a : b;
    case OP_POW: return e->c * (e->c == 2 ? a : pow(a, e->c - 1));
    case OP_LOG: return 1 / a;
    case OP_EXP: return *e->out;
    case OP_RELU: return a > 0 ? 1 : 0;
    case OP_MUL_CONST: return e->c;
    case OP_ADD:
    case OP_ADD_CONST:
    case OP_COPY: return 1;
    default: break;
    }
    // An operation that is new: what its own backward adds, to a copy of the entry.
    double values[] = {a, b, *e->out, 0, 0, 1};
    Entry alone = *e;
    alone.n = 1;
    alone.a = values;
    alone.b = e->b ? values + 1 : NULL;
    alone.out = values + 2;
    operations[e->op].backward(&(Tape){.chunk_size = 3}, &alone);
    return values[second ? 4 : 3];
}

// What an entry makes of its operands' data now.
static void compute(Entry *e)
{
    switch (e->op) {
    case OP_ADD: *e->out = *e->a + *e->b; break;
    case OP_MUL: *e->out = *e->a * *e->b; break;
    case OP_POW: *e->out = e->c == 2 ? *e->a * *e->a : pow(*e->a, e->c); break;
    case OP_LOG: *e->out = log(*e->a); break;
    case OP_EXP: *e->out = exp(*e->a); break;
    case OP_RELU: *e->out = *e->a > 0 ? *e->a : 0; break;
    case OP_ADD_CONST: *e->out = *e->a + e->c; break;
    case OP_MUL_CONST: *e->out = *e->a * e->c; break;
    case OP_COPY: *e->out = *e->a; break;
    default: operations[e->op].forward(e); break;
    }
}

void print_entry(const Entry *e)
{
    const char *a = value_name(e->a), *b = e->b ? value_name(e->b) : "";
    switch (e->op) {
    case OP_ADD: print("%s + %s", a, b); break;
    case OP_MUL: print("%s * %s", a, b); break;
    case OP_POW: print("%s ^ %g", a, e->c); break;
    case OP_LOG: print("log %s", a); break;
    case OP_EXP: print("e ^ %s", a); break;
    case OP_RELU: print("relu %s", a); break;
    case OP_COPY: print("%s, copied", a); break;
    case OP_ADD_CONST: print("%s %c %g", a, e->c < 0 ? '-' : '+', fabs(e->c)); break;
    case OP_MUL_CONST: print("%s * %g", a, e->c); break;
    default: print("%s %s", operations[e->op].name, a); break;
    }
}

// The first value with a name that an entry's result leads to, or else that result.
static const double *named_after(const Entry *e)
{
    const Tape *tape = &watched.model->tape;
    const double *value = e->out;
    for (const Entry *k = e + 1; !has_name(value) && k < tape->entries + tape->n_entries; k++) {
        if (k->a == value || (k->b && k->b == value)) value = k->out;
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
        if (e->a != value && e->b != value) continue;
        if (uses.n == uses.room) uses.all = more_room(uses.all, &uses.room, sizeof *uses.all);
        double local = (e->a == value ? local_derivative(e, false) : 0) +
                       (e->b == value ? local_derivative(e, true) : 0);
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

static bool close_to(double a, double b) { return fabs(a - b) <= 1e-12 + 1e-9 * fabs(b); }

// A name in its column. One that is too long has a line of its own.
static void name_column(const char *name)
{
    if (strlen(name) > 38) print("  %s\n  %38s", name, "");
    if (strlen(name) <= 38) print("  %-38s", name);
}

static void print_uses(double *value, size_t most)
{
    bool known = gradients_known(), under_way = phase() == BACKWARD;
    double sum = 0;
    find_uses(value);
    if (uses.n == 0) {
        bool start = known && gradient_of(value) == 1;
        print("used by  nothing yet%s\n", start ? ": backward() starts here, with gradient 1" : "");
        return;
    }
    print("used by  %zu entr%s of the tape\n", uses.n, uses.n == 1 ? "y" : "ies");
    print("  %-38s", "entry, for");
    heading("derivative");
    if (known) heading("gradient");
    if (known) heading("product");
    print("\n");
    for (size_t i = 0; i < uses.n; i++) {
        const Use *use = &uses.all[i];
        double product = use->local * use->gradient;
        if (use->added) sum += product;
        if (i == most) print("  and %zu more\n", uses.n - most);
        if (i >= most) continue;
        const double *whole = named_after(use->entry);
        char text[256];
        snprintf(text, sizeof text, "%td %s, %s", use->entry - watched.model->tape.entries,
                 operations[use->entry->op].name, value_name(whole));
        name_column(text);
        number(use->local);
        if (known && use->added) number(use->gradient);
        if (known && use->added) number(product);
        if (known && !use->added) print("  not added yet");
        print("\n");
    }
    if (!known) return;
    bool right = close_to(sum, gradient_of(value));
    print("  %-38s", under_way ? "the gradient so far"
                     : right   ? "the sum, its gradient"
                               : "the sum");
    heading("");
    heading("");
    number(sum);
    print("\n");
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
void show_users_at(double *value)
{
    if (!survey() || !is_value(value)) return;
    print_head_of(value);
    print_uses(value, 64);
}

// A row of a table: the expression, its two numbers and what comes out.
static void product_row(const Entry *e)
{
    char text[512];
    snprintf(text, sizeof text, "%s * %s", value_name(e->a), value_name(e->b));
    name_column(text);
    number(data_of(e->a));
    number(data_of(e->b));
    number(*e->out);
    print("\n");
}

// The products that a value is the sum of, or a multiple of the sum of. False if it is no such sum.
static bool print_sum(const Entry *e)
{
    size_t n = 1;
    const Entry *factor = e->op == OP_MUL_CONST && !has_name(e->a) ? e : NULL;
    if (factor) e = maker(e->a);
    if (!e) return false;
    const Entry *first = e;
    for (; first && first->op == OP_ADD && (first == e || !has_name(first->out)); n++) {
        first = maker(first->a);
    }
    if (n < 2 || !first || first->op != OP_MUL || (first != e && has_name(first->out)))
        return false;
    for (const Entry *k = e; k != first; k = maker(k->a)) {
        const Entry *product = maker(k->b);
        if (!product || product->op != OP_MUL || has_name(k->b)) return false;
    }
    print("  %-38s", "product");
    heading("a");
    heading("b");
    heading("a * b");
    print("\n");
    for (const Entry *k = first; k <= e; k++) {
        if (k->op == OP_MUL) product_row(k);
    }
    char text[64];
    snprintf(text, sizeof text, "sum of %zu products", n);
    print("  %-38s", text);
    heading("");
    heading("");
    number(*e->out);
    print("\n");
    if (!factor) return true;
    print("  %-38s", "times the factor");
    heading("");
    number(factor->c);
    number(*factor->out);
    print("\n");
    return true;
}

// Where a value comes from: the operation that made it, its operands, the local derivatives; and
// who used it.
void show_value(double *value)
{
    if (!survey() || !is_value(value)) return;
    const Entry *e = maker(value);
    print_head_of(value);
    if (!e) {
        print("made by  no operation: it is a %s\n", is_parameter(value) ? "parameter" : "leaf");
        print_uses(value, 6);
        return;
    }
    int line = line_that_made(e);
    print("made by  entry %td (%s)", e - watched.model->tape.entries, operations[e->op].name);
    if (line) print(", microgpt.c:%d", statement_start(line));
    print("\n");
    if (!print_sum(e)) {
        print("  ");
        print_entry(e);
        print("\n  %-38s", "operand");
        heading("data");
        heading("derivative");
        print("\n");
        for (int second = 0; second < 2 && (second ? e->b : e->a); second++) {
            double *operand = second ? e->b : e->a;
            if (second && operand == e->a) continue;
            double local = local_derivative(e, second);
            if (e->a == e->b) local += local_derivative(e, !second);
            name_column(value_name(operand));
            number(data_of(operand));
            number(local);
            print("\n");
        }
    }
    print_uses(value, 6);
}

// The same by name.
static void show_named(void (*show_at)(double *value), const char *name, int i, int j)
{
    double *value = survey() ? find_value(name, i, j) : NULL;
    if (value) show_at(value);
}

void show_value_named(const char *name, int i, int j) { show_named(show_value, name, i, j); }
void show_users(const char *name, int i, int j) { show_named(show_users_at, name, i, j); }

/* ------------------------------------------------------------------------
 * What would be if.
 */
// Computes an entry again, and all after it.
static void compute_from(const Entry *first)
{
    const Tape *tape = &watched.model->tape;
    size_t i = (size_t)(first - tape->entries);
    for (; i < tape->n_entries; i++) compute(&tape->entries[i]);
}

static double result_with(double *value, double number, const double *result)
{
    const Entry *made = maker(value);
    *value = number;
    compute_from(made ? made + 1 : watched.model->tape.entries + watched.model->tape.kept_entries);
    return *result;
}

static void print_agreement(double slope, double derivative)
{
    bool agree = fabs(slope - derivative) <= 1e-8 + 1e-4 * fabs(slope);
    print("  %s\n", agree ? "They agree." : "THEY DIFFER.");
}

// A value is moved a little to both sides. What the loss does then is its derivative, whatever
// backward() says.
void show_nudge_at(double *value)
{
    const Place *loss = survey() && on_tape(value) ? find_place("loss", LATEST) : NULL;
    if (!loss || phase() != GRADIENTS) {
        print("There is no loss with all its gradients here: ask where adam() begins, `tbreak "
              "adam`.\n");
        return;
    }
    double before = *value, h = 1e-5, gradient = gradient_of(value);
    double up = result_with(value, before + h, loss->at);
    double down = result_with(value, before - h, loss->at);
    double slope = (up - down) / (2 * h);
    result_with(value, before, loss->at);
    print("%s = %.*g\n", value_name(value), watched.digits, before);
    print("  the loss, if it is 0.00001 more      %.15g\n", up);
    print("  the loss, if it is 0.00001 less      %.15g\n", down);
    print("  their difference over 0.00002        %.*g\n", watched.digits, slope);
    print("  its gradient, by backward()          %.*g\n", watched.digits, gradient);
    print_agreement(slope, gradient);
}

void show_nudge(const char *name, int i, int j) { show_named(show_nudge_at, name, i, j); }

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
        sums[value_number(e->a)] += local_derivative(e, false) * g;
        if (e->b) sums[value_number(e->b)] += local_derivative(e, true) * g;
    }
    double found = sums[value_number(with_respect_to)];
    free(sums);
    return found;
}

// How one value changes another: by differences, and by the local derivatives on the way.
void show_local(const char *from, const char *to)
{
    double *a = survey() ? find_value(from, NONE, NONE) : NULL;
    double *b = a ? find_value(to, NONE, NONE) : NULL;
    if (!b) return;
    const Entry *made_a = maker(a), *made_b = maker(b);
    if (phase() == MOVED) {
        print("Adam has moved the parameters since: ask where adam() begins, or before.\n");
        return;
    }
    if (!made_b || (made_a && made_a >= made_b)) {
        print("%s was not made from %s.\n", value_name(b), value_name(a));
        return;
    }
    double before = *a, h = 1e-5;
    double up = result_with(a, before + h, b), down = result_with(a, before - h, b);
    double slope = (up - down) / (2 * h);
    result_with(a, before, b);
    double by_rule = derivative(b, a);
    print("%s = %.*g\n", value_name(a), watched.digits, before);
    print("%s = %.*g\n", value_name(b), watched.digits, *b);
    print("  the second, if the first is 0.00001 more   %.15g\n", up);
    print("  the second, if the first is 0.00001 less   %.15g\n", down);
    print("  their difference over 0.00002              %.*g\n", watched.digits, slope);
    print("  by the local derivatives on the way        %.*g\n", watched.digits, by_rule);
    print_agreement(slope, by_rule);
}

// What the model would say if a head said nothing at one position.
void show_silence(int head, int position)
{
    if (!survey() || !is_head(head)) return;
    const Place *out = head_place(head, "head_out", position, true);
    const Place *logits = out ? need_place("logits", out->position) : NULL;
    if (!logits) return;
    if (phase() == MOVED) {
        print("Adam has moved the parameters since: ask where adam() begins, or before.\n");
        return;
    }
    const Place *loss = find_place("loss", LATEST);
    size_t n = logits->n, best[TOP];
    double *before = malloc(2 * n * sizeof *before), *after = before + n;
    double *kept = malloc(out->n * sizeof *kept);
    if (!before || !kept) abort();
    double loss_before = loss ? *loss->at : 0;
    memcpy(kept, out->at, out->n * sizeof *kept);
    find_probs(logits, NULL, before);
    for (size_t i = 0; i < out->n; i++) out->at[i] = 0;
    compute_from(out->to);
    find_probs(logits, NULL, after);
    double loss_after = loss ? *loss->at : 0;
    memcpy(out->at, kept, out->n * sizeof *kept);
    compute_from(out->to);
    rank_tokens(before, n, best);
    print("after position %d (%s), if head %d were silent there\n             ", out->position,
          text_at(out->position), head);
    heading("as it is");
    heading("silent");
    print("\n");
    for (size_t rank = 0; rank < TOP && best[rank] < n; rank++) {
        print("  %zu.  %-4s   ", rank + 1, token_text(best[rank]));
        number(before[best[rank]]);
        number(after[best[rank]]);
        print("\n");
    }
    if (loss) {
        print("  the loss   ");
        number(loss_before);
        number(loss_after);
        print("\n");
    }
    print("Nothing is changed: the program goes on with its own numbers.\n");
    free(before);
    free(kept);
}

/* ------------------------------------------------------------------------
 * Settings, and a gradient as it grows.
 */
void show_layer(int layer)
{
    if (!survey()) return;
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
