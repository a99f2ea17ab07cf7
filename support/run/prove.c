/* prove.c: does what runs agree with what one reads?
 *
 * The atoms in microgpt.c define what the program computes; then come the plain functions of
 * autograd.c; then whatever is there for speed alone. When a command that computes begins, each
 * fast way is held against its definition, on small inputs. One that differs is not used in this
 * run, and a note says so. Each backward is held against differences of its forward; one that is
 * no derivative is used all the same, since it is the definition, with a note.
 */
#define _XOPEN_SOURCE 700
#include "prove.h"
#include "../engine/faster.h"

#include <assert.h>
#include <float.h>
#include <stdarg.h>

InUse in_use = {.fused = FUSED, .adam = true, .parts = true};
struct Proof proof;

bool agrees(double difference, double limit, const char *what, const char *format, ...)
{
    char text[512];
    bool ok = difference <= limit;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (proof.table) say("%-58s %8.1e  %s\n", what, difference, ok ? "ok" : "differs");
    if (proof.table && !ok) say("    %s\n", text);
    if (!proof.table && !ok) note("%s", text);
    proof.n_wrong += !ok;
    return ok;
}

void compare(Difference *d, const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double apart = fabs(a[i] - b[i]), size = fabs(a[i]);
        bool same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));  // also if they are infinite
        if (size > d->largest && size <= DBL_MAX) d->largest = size;
        if (!same && !(apart <= d->apart)) d->apart = isnan(apart) ? INFINITY : apart;
    }
}

double relative(Difference d) { return d.apart / fmax(d.largest, 1e-300); }

static uint64_t drawn;

void restart_draws(uint64_t seed) { drawn = seed; }

double draw(void *unused)
{
    (void)unused;
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    double x = (double)(int32_t)(drawn >> 32) / 0x1p31;
    return x + copysign(0.2, x);
}

/* ------------------------------------------------------------------------------------------------
 * Two tapes on which the same is recorded: t[0] has the definition, t[1] the fast way.
 */
enum { ROOM = 4000 };  // values of a tape

static Difference values, gradients;  // of the two tapes

static void restart(Tape *t)
{
    tape_drop(t);
    restart_draws(1);
}

static double *operand(Tape *t, size_t n)
{
    double *x = ag_vector(t, n);
    ag_fill(x, n, draw, NULL);
    return x;
}

// Goes back as backward() does, but all values have gradients already.
static void go_back(Tape *t)
{
    tape_compute(t);
    assert(t->this_chunk == 0 && t->n_entries <= t->max_entries);
    ag_fill(grad(t, t->chunk), t->n_values, draw, NULL);
    for (size_t i = t->n_entries; i-- > t->kept_entries;) {
        if (t->faster && t->faster->backward(t, &i)) continue;
        operations[t->entries[i].op].backward(t, &t->entries[i]);
    }
}

static void compare_values(const Tape *t, double *a, double *b, size_t n)
{
    compare(&values, a, b, n);
    compare(&gradients, grad(&t[0], a), grad(&t[1], b), n);
}

/* ------------------------------------------------------------------------------------------------
 * Fast versions of an operation, and its plain one.
 */
typedef struct {
    uint32_t n, length, lanes;
    bool growing;  // each lane has a row more than the lane before, as in attention
} Shape;

// Records an entry of any operation, with new values for its operands and its result. Rows are new
// if there are none.
static void record_entry(Tape *t, Entry e)
{
    const OpRules *rules = &operations[e.op];
    e.a = operand(t, extent_of(&e, rules->a));
    if (rules->b && !e.b) e.b = operand(t, extent_of(&e, rules->b));
    e.out = operand(t, extent_of(&e, rules->out));
    Entry *at = &t->entries[t->n_entries++];
    *at = e;
    if (!t->waiting && !(t->faster && t->faster->forward(at))) rules->forward(at);
}

static void record_lanes(Tape *t, Op op, Shape shape)
{
    Entry e = {.op = op, .length = shape.length, .stride = shape.length + 4 * shape.growing};
    e.n = shape.n + (shape.growing ? shape.lanes - 1 : 0);
    e.c = op == OP_POW ? 2 : 0.7;
    restart(t);
    if (operations[op].b == N_ROWS) e.b = operand(t, extent_of(&e, N_ROWS));
    for (uint32_t lane = 0; lane < shape.lanes; lane++) {
        tape_lane(t);
        if (shape.growing) e.n = shape.n + lane;
        record_entry(t, e);
    }
    tape_end_lanes(t);
    go_back(t);
}

static void try_shapes(Tape *t, Op op, bool lanes)
{
    static const Shape shapes[] = {
        {3, 7, 1, false},   {6, 16, 1, false}, {16, 16, 3, false},
        {5, 17, 13, false}, {1, 8, 14, true},  {1, 132, 12, false},
    };
    const OpRules *rules = &operations[op];
    bool grows = rules->b == N_ROWS && op != OP_LINEAR;
    values = gradients = (Difference){0, 0};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (lanes != (shapes[i].lanes > 1) || (shapes[i].growing && !grows)) continue;
        for (size_t tape = 0; tape < 2; tape++) record_lanes(&t[tape], op, shapes[i]);
        for (size_t k = 0; k < t[0].n_entries; k++) {
            const Entry *e = &t[0].entries[k], *fast = &t[1].entries[k];
            compare_values(t, e->out, fast->out, extent_of(e, rules->out));
            compare_values(t, e->a, fast->a, extent_of(e, rules->a));
            if (rules->b) compare_values(t, e->b, fast->b, extent_of(e, rules->b));
        }
    }
}

const char *function_of(Op op, const char *direction)
{
    static char names[4][64];
    static size_t next;
    char *name = names[next++ % 4];
    snprintf(name, sizeof names[0], "%s_%s", operations[op].name, direction);
    for (char *c = name; *c; c++) *c = *c == ' ' ? '_' : *c;
    return name;
}

// If one fast version of an operation differs, none is used.
static void prove_fast(Tape *t, Op op)
{
    const FastOperation fast = fast_operations[op];
    const bool known[4] = {fast.forward, fast.backward, fast.forward_lanes, fast.backward_lanes};
    bool same = true;
    for (size_t i = 0; same && i < 4; i++) {
        bool back = i % 2, lanes = i / 2;
        char what[96];
        const char *name = function_of(op, back ? "backward" : "forward");
        if (!back && (known[i] || known[i + 1])) try_shapes(t, op, lanes);
        if (!known[i]) continue;
        snprintf(what, sizeof what, "%s and %s in engine/", name, fast.names[i]);
        same = agrees(relative(back ? gradients : values), SAME, what,
                      "%s() in autograd.c and %s() in %s differ; running %s()", name, fast.names[i],
                      fast.files[lanes], name);
    }
    if (!same) fast_operations[op] = (FastOperation){0};
}

/* ------------------------------------------------------------------------------------------------
 * Derivatives, and central differences.
 */
// The sum of an entry's results, weighted with their gradients.
static double weighted_result(const Tape *t, Entry *e)
{
    double sum = 0, *weights = grad(t, e->out);
    size_t n = extent_of(e, operations[e->op].out);
    operations[e->op].forward(e);
    for (size_t i = 0; i < n; i++) sum += weights[i] * e->out[i];
    return sum;
}

// Compares what backward has added to the gradients of an operand with differences.
static bool prove_operand(const Tape *t, Entry *e, char letter)
{
    double *x = letter == 'b' ? e->b : e->a, worst = 0, largest = 1e-3, h = 1e-5;
    double expected = 0, added = 0, *g = grad(t, x);
    size_t n = extent_of(e, letter == 'b' ? operations[e->op].b : operations[e->op].a);
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(g[i]));
    for (size_t i = 0; i < n; i++) {
        double old = x[i];
        x[i] = old + h;
        double above = weighted_result(t, e);
        x[i] = old - h;
        double difference = (above - weighted_result(t, e)) / (2 * h);
        x[i] = old;
        double error = fabs(difference - g[i]) / fmax(largest, fabs(difference));
        if (error <= worst) continue;
        worst = isnan(error) ? INFINITY : error;
        expected = difference;
        added = g[i];
    }
    char what[96];
    const char *name = function_of(e->op, "backward");
    snprintf(what, sizeof what, "%s and differences, operand %c, n = %" PRIu32, name, letter, e->n);
    return agrees(worst, DERIVATIVE, what,
                  "%s() in autograd.c is not the derivative of %s(): operand %c: expected %.6g, it "
                  "added %.6g; %s",
                  name, function_of(e->op, "forward"), letter, expected, added,
                  in_use.fused >> e->op & 1 ? "it runs all the same" : "the atoms run");
}

// One entry with operands of both signs or, where that gives no finite numbers, positive ones. Its
// results get gradients. NULL: nothing gives finite numbers.
static Entry *record_derivative(Tape *t, Op op, size_t n, size_t length)
{
    for (int positive = 0; positive < 2; positive++) {
        Entry e = {.op = op, .n = (uint32_t)n, .length = (uint32_t)length};
        e.stride = e.length + 1;
        e.c = positive ? -0.5 : op == OP_POW ? 2 : 0.7;
        restart(t);
        record_entry(t, e);
        for (size_t i = 0; positive && i < t->n_values; i++) t->chunk[i] = fabs(t->chunk[i]);
        ag_clear_grad(t, t->chunk, t->n_values);
        Entry *at = t->entries;
        ag_fill(grad(t, at->out), extent_of(at, operations[op].out), draw, NULL);
        if (isfinite(weighted_result(t, at))) return at;
    }
    return NULL;
}

static void prove_derivative(Tape *t, Op op)
{
    static const size_t shapes[][2] = {{1, 3}, {5, 4}};
    bool same = true;
    if (no_derivative >> op & 1) {
        if (proof.table) say("%-58s %8s  not compared\n", function_of(op, "backward"), "");
        return;
    }
    for (size_t i = 0; same && i < 2; i++) {
        Entry *e = record_derivative(t, op, shapes[i][0], shapes[i][1]);
        if (!e) {
            agrees(INFINITY, 0, operations[op].name,
                   "%s() in autograd.c: no operands were found for it; its derivative is not "
                   "compared",
                   function_of(op, "forward"));
            return;
        }
        operations[op].backward(t, e);
        same = prove_operand(t, e, 'a') && (!operations[op].b || prove_operand(t, e, 'b'));
    }
}

/* ------------------------------------------------------------------------------------------------
 * The proof.
 */
bool prove_operations(bool fast)
{
    Tape tapes[2] = {{0}, {0}};
    bool ok = tape_init(&tapes[0], ROOM) && tape_init(&tapes[1], ROOM);
    tapes[0].out_of_memory = tapes[1].out_of_memory = out_of_memory;
    for (Op op = 0; ok && op < N_OPS; op++) prove_derivative(&tapes[0], op);
    ok = ok && install_faster(&tapes[1]);
    for (Op op = 0; ok && fast && op < N_OPS; op++) prove_fast(tapes, op);
    tape_free(&tapes[0]);
    tape_free(&tapes[1]);
    return ok;
}

// Entries first: notes on derivatives say whether the entry or its atoms run.
bool prove(const Options *o)
{
    if (!have_faster || o->scalar) return true;
    return (prove_entries(o) && prove_operations(true) && prove_small(o)) || no_memory();
}
