/* origins.c: where a value comes from, and where it goes: the entry that made it, and those that
 * used it. A gradient as it grows is the same question, asked during backward().
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_entry(const Entry *e)
{
    char text[512];
    const double *b = second_operand(e);
    name_atom(e, value_name(e->a), b ? value_name(b) : "", text, sizeof text);
    print("%s", text);
}

// A row: a name, and n numbers that end in the third column. A name that is too long has a line of
// its own.
static void print_row(const char *name, int n, int last, double a, double b, double c)
{
    const double x[] = {a, b, c};
    print(strlen(name) > 38 ? "  %s\n" : "  %-38s", name);
    if (strlen(name) > 38) print("  %38s", "");
    for (int i = 0; i < last; i++) {
        if (i < last - n) heading("");
        if (i >= last - n) number(x[i]);
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
        bool term = k->op == OP_ADD || k->op == OP_COPY || k->op == OP_MUL_CONST;
        if (k->a != value && second_operand(k) != value) continue;
        if (!term) break;
        value = k->out;
    }
    return has_name(value) ? value : e->out;
}

// Is a value an operand of an entry, once or twice? Then how much the result changes per small change
// of it, and what that adds to its gradient.
static bool uses(const Entry *e, const double *value, double *local, double *product)
{
    bool first = e->a == value, second = second_operand(e) == value;
    if (!first && !second) return false;
    Atom it = atom(e);
    *local = (first ? it.derivative[0] : 0) + (second ? it.derivative[1] : 0);
    *product = *local * *grad(&watched.model->tape, e->out);
    return true;
}

// The first entry whose product backward() has added. While it is under way, it has read the tape from
// the end down to some entry: the products from there on sum to the gradient.
static const Entry *added_from(double *value)
{
    const Tape *tape = &watched.model->tape;
    const Entry *end = tape->entries + tape->n_entries, *found = end;
    if (phase() != BACKWARD) return tape->entries;
    double now = gradient_of(value), sum = 0, off = fabs(now), local, product;
    for (const Entry *e = end; e-- > tape->entries;) {
        if (!uses(e, value, &local, &product)) continue;
        sum += product;
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
    for (; e < tape->entries + tape->n_entries; e++)
        n += e->a == value || second_operand(e) == value;
    return n;
}

static void print_uses(double *value, size_t most)
{
    const Tape *tape = &watched.model->tape;
    const Entry *from = added_from(value);
    bool known = gradients_known();
    size_t n = count_uses(value, tape->entries), i = 0;
    double sum = 0, local, product;
    if (n == 0) {
        bool start = known && gradient_of(value) == 1;
        bool over = known || (place_of(value) && place_of(value)->position < latest_position());
        print("used by  nothing%s%s\n", over ? "" : " yet",
              start ? ": backward() starts here, with gradient 1" : "");
        return;
    }
    print("used by  %zu entr%s of the tape\n", n, n == 1 ? "y" : "ies");
    head_of("entry, for                            ", "derivative", known ? "gradient" : NULL,
            "product", NULL);
    for (const Entry *e = tape->entries; i < n; e++) {
        if (!uses(e, value, &local, &product)) continue;
        char text[256];
        bool added = known && e >= from;
        if (added) sum += product;
        snprintf(text, sizeof text, "%td %s, %s%s", e - tape->entries, operations[e->op].name,
                 value_name(named_after(e)), known && !added ? ": not added yet" : "");
        if (i++ < most)
            print_row(text, added ? 3 : 1, added ? 3 : 1, local, *grad(tape, e->out), product);
    }
    if (n > most) print("  and %zu more\n", n - most);
    if (!known) return;
    bool right = close_to(sum, gradient_of(value));
    print_row(phase() == BACKWARD ? "the gradient so far"
              : right             ? "the sum, its gradient"
                                  : "the sum",
              1, 3, 0, 0, sum);
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
        print_row(text, 3, 3, data_of(k->a), data_of(b), *k->out);
    }
    snprintf(text, sizeof text, "sum of %zu products", n);
    print_row(text, 1, 3, 0, 0, *e->out);
    if (factor) print_row("times the factor", 2, 3, 0, factor->c, *factor->out);
    return true;
}

// The operation, its operands, the local derivatives.
static void print_operands(const Entry *e)
{
    double *second = second_operand(e);
    Atom it = atom(e);
    print("  ");
    print_entry(e);
    print("\n");
    head_of("operand                               ", "data", "derivative", NULL);
    if (second == e->a) it.derivative[0] += it.derivative[1];
    print_row(value_name(e->a), 2, 2, data_of(e->a), it.derivative[0], 0);
    if (second && second != e->a)
        print_row(value_name(second), 2, 2, data_of(second), it.derivative[1], 0);
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
// The gradient of a parameter, to be watched by the debugger; NULL if there is none.
double *watch_gradient(const char *name, int row, int column)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    watched.gradient = p ? grad(&watched.model->tape, p) : NULL;
    watched.gained = p ? *watched.gradient : 0;
    if (p)
        print("The gradient of %s is %.*g now.\n", value_name(p), watched.digits, watched.gained);
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
    const Entry *e = added_from(p);
    double local, product;
    if (e == tape->entries + tape->n_entries || !uses(e, p, &local, &product)) return;
    const double *whole = named_after(e);
    int line = line_that_made(e);
    print("  entry %td: ", e - tape->entries);
    print_entry(e);
    print(whole == e->out ? ", which is %s" : ", a part of %s", value_name(whole));
    print("\n  adds %.*g, as use %zu of %zu, counted from the end\n", watched.digits, product,
          count_uses(p, e), count_uses(p, tape->entries));
    print("  recorded by microgpt.c:%d\n", line);
    print_statement(line, "    ");
}
