/* atoms.c: the table of the atoms: how each is written, its value, its derivatives. A view computes
 * with this table, so that a breakpoint in autograd.c does not stop it. An operation that is new is
 * asked itself.
 */
#include "views.h"

#include <math.h>
#include <stdio.h>

static bool has_constant(const Entry *e)
{
    return e->op == OP_POW || e->op == OP_ADD_CONST || e->op == OP_MUL_CONST;
}

// In an atom with a constant, the constant may be in its place.
double *second_operand(const Entry *e)
{
    return !has_constant(e) && e->b && on_tape(e->b) ? e->b : NULL;
}

// What a new operation's own functions make of a copy of the entry.
static Atom ask_operation(const Entry *e, double a, double b)
{
    double values[] = {a, b, 0, 0, 0, 1};  // the operands, the result, their gradients
    Entry alone = *e;
    alone.n = 1;
    alone.a = values;
    if (second_operand(e)) alone.b = values + 1;
    alone.out = values + 2;
    operations[e->op].forward(&alone);
    operations[e->op].backward(&(Tape){.chunk_size = 3}, &alone);
    return (Atom){operations[e->op].name, " ", values[2], {values[3], values[4]}, 0};
}

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
    default: return ask_operation(e, a, b);
    }
}

bool uses(const Entry *e, const double *value)
{
    return e->a == value || second_operand(e) == value;
}

double local_derivative(const Entry *e, const double *value)
{
    Atom it = atom(e);
    return (e->a == value ? it.derivative[0] : 0) +
           (second_operand(e) == value ? it.derivative[1] : 0);
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
