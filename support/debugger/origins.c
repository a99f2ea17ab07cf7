/* origins.c: where a value comes from, and where it goes: the entry that made it, and those that
 * used it. A gradient as it grows is the same question, asked during backward().
 */
#include "views.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *entry_text(const Entry *e)
{
    static char text[512];
    const double *b = second_operand(e);
    name_atom(e, value_name(e->a), b ? value_name(b) : "", text, sizeof text);
    return text;
}

// A row: a name, and numbers, NULL for a blank. A name that is too long has a line of its own.
static void print_row(const char *name, const double *a, const double *b, const double *c)
{
    const double *x[] = {a, b, c};
    print(strlen(name) > 38 ? "  %s\n  %38s" : "  %-38s", name, "");
    for (int i = 0; i < 3; i++) {
        if (x[i]) number(*x[i]);
        if (!x[i]) heading("");
    }
    print("\n");
}

/* ------------------------------------------------------------------------
 * The uses of a value.
 */
// The first value with a name that an entry's result is a term of, or else that result.
static const double *named_after(const Entry *e)
{
    const Tape *tape = &watched.model->tape;
    const double *value = e->out;
    for (const Entry *k = e + 1; !has_name(value) && k < tape->entries + tape->n_entries; k++) {
        if (!uses(k, value)) continue;
        if (k->op != OP_ADD && k->op != OP_COPY && k->op != OP_MUL_CONST) break;
        value = k->out;
    }
    return has_name(value) ? value : e->out;
}

// What a use of a value adds to its gradient.
static double product(const Entry *e, const double *value)
{
    return local_derivative(e, value) * *grad(&watched.model->tape, e->out);
}

// The first entry whose product backward() has added. While it is under way, it has read the tape
// from the end down to some entry: the products from there on sum to the gradient.
static const Entry *added_from(double *value)
{
    const Tape *tape = &watched.model->tape;
    const Entry *end = tape->entries + tape->n_entries, *found = end;
    if (phase() != BACKWARD) return tape->entries;
    double now = gradient_of(value), sum = 0, off = fabs(now);
    for (const Entry *e = end; e-- > tape->entries;) {
        if (!uses(e, value)) continue;
        sum += product(e, value);
        if (fabs(sum - now) >= off) continue;
        off = fabs(sum - now);
        found = e;
    }
    return found;
}

// How many entries use a value, from this one on.
static size_t count_uses(const double *value, const Entry *e)
{
    const Tape *tape = &watched.model->tape;
    size_t n = 0;
    for (; e < tape->entries + tape->n_entries; e++) n += uses(e, value);
    return n;
}

static void print_no_use(double *value)
{
    const Place *p = place_of(value);
    bool over = gradients_known() || (p && p->position < latest_position());
    bool start = gradients_known() && gradient_of(value) == 1;
    print("used by  nothing%s%s\n", over ? "" : " yet",
          start ? ": backward() starts here, with gradient 1" : "");
}

static void print_uses(double *value, size_t most)
{
    const Tape *tape = &watched.model->tape;
    const Entry *from = added_from(value);
    bool known = gradients_known();
    size_t n = count_uses(value, tape->entries), i = 0;
    double sum = 0;
    if (n == 0) {
        print_no_use(value);
        return;
    }
    print("used by  %zu entr%s of the tape\n", n, n == 1 ? "y" : "ies");
    head_of("entry, for                            ", "derivative", known ? "gradient" : NULL,
            "product", NULL);
    for (const Entry *e = tape->entries; i < n; e++) {
        if (!uses(e, value)) continue;
        char text[256];
        bool added = known && e >= from;
        double local = local_derivative(e, value), adds = product(e, value);
        if (added) sum += adds;
        snprintf(text, sizeof text, "%td %s, %s%s", e - tape->entries, operations[e->op].name,
                 value_name(named_after(e)), known && !added ? ": not added yet" : "");
        if (i++ >= most) continue;
        print_row(text, &local, added ? grad(tape, e->out) : NULL, added ? &adds : NULL);
    }
    if (n > most) print("  and %zu more\n", n - most);
    if (!known) return;
    bool right = close_to(sum, gradient_of(value));
    const char *whole = right ? "the sum, its gradient" : "the sum";
    print_row(phase() == BACKWARD ? "the gradient so far" : whole, NULL, NULL, &sum);
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

void show_users(const Question *q)
{
    print_head_of(q->value);
    print_uses(q->value, 64);
}

/* ------------------------------------------------------------------------
 * The entry that made a value.
 */
// The products that a value is the sum of, or a multiple of the sum of. False if it is no such sum.
static bool print_sum(const Entry *e)
{
    const Entry *factor = e->op == OP_MUL_CONST && !has_name(e->a) ? e : NULL;
    if (factor) e = maker(e->a);
    if (!e || e->op != OP_ADD) return false;
    Made sum = made_from(e->out);
    const Entry *first = maker(sum.terms[0]);
    if (!first || first->op != OP_MUL || has_name(first->out)) return false;
    for (const Entry *k = e; k != first; k = maker(k->a)) {
        const Entry *product = maker(second_operand(k));
        if (!product || product->op != OP_MUL || has_name(second_operand(k))) return false;
    }
    char text[512];
    head_of("product                               ", "a", "b", "a * b", NULL);
    for (const Entry *k = first; k <= e; k++) {
        if (k->op != OP_MUL) continue;
        double a = data_of(k->a), b = data_of(k->b);
        snprintf(text, sizeof text, "%s * %s", value_name(k->a), value_name(k->b));
        print_row(text, &a, &b, k->out);
    }
    snprintf(text, sizeof text, "sum of %zu products", sum.n);
    print_row(text, NULL, NULL, e->out);
    if (factor) print_row("times the factor", NULL, &factor->c, factor->out);
    return true;
}

// The operation, its operands, the local derivatives.
static void print_operands(const Entry *e)
{
    const double *operands[] = {e->a, second_operand(e)};
    print("  %s\n", entry_text(e));
    head_of("operand                               ", "data", "derivative", NULL);
    for (int i = 0; i < 2 && operands[i] && (i == 0 || operands[1] != e->a); i++) {
        double data = data_of(operands[i]), local = local_derivative(e, operands[i]);
        print_row(value_name(operands[i]), &data, &local, NULL);
    }
}

// Where a value comes from, and who used it.
void show_origin(const Question *q)
{
    const Entry *e = maker(q->value);
    print_head_of(q->value);
    if (!e)
        print("made by  no operation: it is a %s\n", is_parameter(q->value) ? "parameter" : "leaf");
    if (e) {
        int line = line_that_made(e);
        print("made by  entry %td (%s)", e - watched.model->tape.entries, operations[e->op].name);
        print(line ? ", microgpt.c:%d\n" : "\n", line);
        if (!print_sum(e)) print_operands(e);
    }
    print_uses(q->value, 6);
}

/* ------------------------------------------------------------------------
 * A gradient as it grows.
 */
static double *gradient, gained;  // the one that `watchgrad` watches; what it was at the last stop

// The gradient of a parameter, to be watched by the debugger; NULL if there is none.
double *watch_gradient(const char *name, int row, int column)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    gradient = p ? grad(&watched.model->tape, p) : NULL;
    gained = p ? *gradient : 0;
    if (p) print("The gradient of %s is %.*g now.\n", value_name(p), watched.digits, gained);
    return gradient;
}

// If that gradient has changed since it was asked for last: which entry did it, by how much, and
// which statement recorded the entry.
void show_gain(void)
{
    if (!gradient || *gradient == gained || !survey()) return;
    const Tape *tape = &watched.model->tape;
    double *p = gradient - tape->chunk_size;
    print("The gradient of %s was %.*g and is now %.*g.\n", value_name(p), watched.digits, gained,
          watched.digits, *gradient);
    gained = *gradient;
    if (phase() == MOVED || phase() == FORWARD) {
        print("  adam() has cleared it for the next step.\n");
        return;
    }
    const Entry *e = added_from(p);
    if (e == tape->entries + tape->n_entries || !uses(e, p)) return;
    const double *whole = named_after(e);
    print("  entry %td: %s, %s %s\n", e - tape->entries, entry_text(e),
          whole == e->out ? "which is" : "a part of", value_name(whole));
    print("  adds %.*g, as use %zu of %zu, counted from the end\n", watched.digits, product(e, p),
          count_uses(p, e), count_uses(p, tape->entries));
    print("  recorded by microgpt.c:%d\n", line_that_made(e));
    print_statement(line_that_made(e));
}
