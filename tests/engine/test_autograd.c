/* The engine: each operation's value and derivative, the tape, fused against atomic and against
 * plain loops, lanes, Adam. The definitions that entries stand in for, linear() and the like, are
 * those of microgpt.c.
 */
// takes long
// also built with -DAUTOGRAD_PLAIN
// also built with -DAUTOGRAD_TILE=2 only with ALL=1
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/engine/adam.h"
#include "../../support/engine/fast.h"
#include "../../support/engine/faster.h"
#include "../test.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static Tape t;

static double *leaf(double x) { return ag_scalar(&t, x); }

static void start(void) { tape_drop(&t); }

static double *dot_of(Tape *tape, double *a, double *b, size_t n)
{
    return ag_dot(tape, ag_vector(tape, 1), a, b, n);
}

/* ------------------------------------------------------------------------------------------------
 * Atoms: the value and the derivatives of each, at points where they are known.
 */
static void check_one(const char *what, double *x, double *y, double expected, double derivative)
{
    char text[64];
    backward(&t, y);
    snprintf(text, sizeof text, "%s: value", what);
    check_near(text, expected, *y, 1e-15);
    snprintf(text, sizeof text, "%s: derivative", what);
    check_near(text, derivative, *grad(&t, x), 1e-15);
    start();
}

static void test_atoms(void)
{
    double *a, *b;
    a = leaf(3), b = leaf(5);
    check_one("add, by the first", a, ag_add(&t, a, b, 1), 8, 1);
    a = leaf(3), b = leaf(5);
    check_one("add, by the second", b, ag_add(&t, a, b, 1), 8, 1);
    a = leaf(3), b = leaf(5);
    check_one("mul, by the first", a, ag_mul(&t, a, b, 1), 15, 5);
    a = leaf(3), b = leaf(5);
    check_one("mul, by the second", b, ag_mul(&t, a, b, 1), 15, 3);
    a = leaf(3);
    check_one("pow 2", a, ag_pow(&t, a, 2, 1), 9, 6);
    a = leaf(4);
    check_one("pow -0.5", a, ag_pow(&t, a, -0.5, 1), 0.5, -0.0625);
    a = leaf(-2);
    check_one("pow 3 of a negative number", a, ag_pow(&t, a, 3, 1), -8, 12);
    a = leaf(0);
    check_one("pow 2 of 0", a, ag_pow(&t, a, 2, 1), 0, 0);
    a = leaf(2);
    check_one("log", a, ag_log(&t, a, 1), 0.6931471805599453, 0.5);
    a = leaf(1);
    check_one("exp", a, ag_exp(&t, a, 1), 2.718281828459045, 2.718281828459045);
    a = leaf(2.5);
    check_one("relu above 0", a, ag_relu(&t, a, 1), 2.5, 1);
    a = leaf(-2.5);
    check_one("relu below 0", a, ag_relu(&t, a, 1), 0, 0);
    a = leaf(0);
    check_one("relu at 0", a, ag_relu(&t, a, 1), 0, 0);
    a = leaf(3);
    check_one("add const", a, ag_add_const(&t, a, 4, 1), 7, 1);
    a = leaf(3);
    check_one("mul const", a, ag_mul_const(&t, a, 4, 1), 12, 4);
    a = leaf(3);
    check_one("neg", a, ag_neg(&t, a, 1), -3, -1);
    a = leaf(3), b = leaf(5);
    check_one("sub, by the first", a, ag_sub(&t, a, b, 1), -2, 1);
    a = leaf(3), b = leaf(5);
    check_one("sub, by the second", b, ag_sub(&t, a, b, 1), -2, -1);
    a = leaf(3), b = leaf(4);
    check_one("div, by the first", a, ag_div(&t, a, b, 1), 0.75, 0.25);
    a = leaf(3), b = leaf(4);
    check_one("div, by the second", b, ag_div(&t, a, b, 1), 0.75, -0.1875);
    a = leaf(3);
    check_one("a + a", a, ag_add(&t, a, a, 1), 6, 2);
    a = leaf(3);
    check_one("a * a", a, ag_mul(&t, a, a, 1), 9, 6);
    a = leaf(3);
    check_one("a / a", a, ag_div(&t, a, a, 1), 1, 0);
}

// A copy: its value and its gradient, in the middle of another vector, whose other values are as
// they were.
static void test_copy(void)
{
    for (int atomic = 0; atomic < 2; atomic++) {
        start();
        t.fused = atomic ? 0 : FUSED;
        double *row = ag_vector(&t, 7), *a = ag_vector(&t, 3), *weigh = ag_vector(&t, 7);
        for (int i = 0; i < 7; i++) {
            row[i] = 70 + i, weigh[i] = i + 1;
        }
        a[0] = 1.5, a[1] = -2, a[2] = 4;
        size_t n_values = t.n_values, n_entries = t.n_entries;
        double *out = ag_copy(&t, row + 1, a, 3);
        check(out == row + 1 && t.n_values == n_values,
              "copy: into the place that is given, and no other value");
        check_size("copy: entries", atomic ? 3 : 1, t.n_entries - n_entries);
        ag_copy(&t, row + 5, a + 1, 1);
        check_all_near("copy: values", (double[]){70, 1.5, -2, 4, 74, -2, 76}, row, 7, 0);
        backward(&t, dot_of(&t, row, weigh, 7));
        check_all_near("copy: gradient, of a value that was copied twice too",
                       (double[]){2, 3 + 6, 4}, grad(&t, a), 3, 0);
        check_all_near("copy: gradient of the row", weigh, grad(&t, row), 7, 0);
        t.fused = FUSED;
    }
    start();
}

// The leaves: a copy of numbers, a draw of them, and gradients that are cleared.
static double next_number(void *context) { return *(double *)context += 0.5; }

static void test_leaves(void)
{
    start();
    double from[] = {1, -2, 3.5}, last = 1;
    double *x = ag_input(&t, from, 3), *one = ag_input(&t, from + 2, 1);
    from[0] = 7;
    check_all_near("an input is a copy", (double[]){1, -2, 3.5}, x, 3, 0);
    check_near("an input of one value", 3.5, *one, 0);
    size_t n_entries = t.n_entries;
    double *drawn = ag_vector(&t, 5);
    drawn[4] = 77;
    ag_fill(drawn, 4, next_number, &last);
    check_all_near("values that are drawn, in order", (double[]){1.5, 2, 2.5, 3, 77}, drawn, 5, 0);
    check_size("leaves make no entry", n_entries, t.n_entries);
    backward(&t, ag_sum(&t, x, 3));
    ag_clear_grad(&t, x, 2);
    check_all_near("gradients that are cleared, and the one beside them", (double[]){0, 0, 1},
                   grad(&t, x), 3, 0);
    check_all_near("their values stay", (double[]){1, -2, 3.5}, x, 3, 0);
    start();
}

// A bias: added to each row; its gradient is the sum over the rows.
static void test_add_to_rows(void)
{
    for (int scalar = 0; scalar < 2; scalar++) {
        start();
        t.fused = scalar ? 0 : FUSED;
        double *rows = ag_input(&t, (double[]){1, 2, 3, 4, 5, 6}, 6);
        double *bias = ag_input(&t, (double[]){10, 20}, 2);
        double *weigh = ag_input(&t, (double[]){1, 2, 3, 4, 5, 6}, 6);
        size_t n_entries = t.n_entries;
        double *out = ag_add_to_rows(&t, rows, bias, 3, 2);
        check_size("a bias: entries", scalar ? 6 : 3, t.n_entries - n_entries);
        check_all_near("a bias: values", (double[]){11, 22, 13, 24, 15, 26}, out, 6, 0);
        backward(&t, dot_of(&t, out, weigh, 6));
        check_all_near("a bias: gradient of the rows", weigh, grad(&t, rows), 6, 0);
        check_all_near("a bias: its gradient", (double[]){1 + 3 + 5, 2 + 4 + 6}, grad(&t, bias), 2,
                       0);
        t.fused = FUSED;
    }
    start();
}

/* ------------------------------------------------------------------------------------------------
 * Whole expressions.
 */
static void test_expressions(void)
{
    // micrograd's first: z = 3x + 2, q = relu(z) + zx, h = relu(z^2), y = h + q + qx
    double *x = leaf(-4);
    double *z = ag_add(&t, ag_add_const(&t, ag_mul_const(&t, x, 2, 1), 2, 1), x, 1);
    double *q = ag_add(&t, ag_relu(&t, z, 1), ag_mul(&t, z, x, 1), 1);
    double *h = ag_relu(&t, ag_mul(&t, z, z, 1), 1);
    double *y = ag_add(&t, ag_add(&t, h, q, 1), ag_mul(&t, q, x, 1), 1);
    backward(&t, y);
    check_near("micrograd's first expression: y", -20, *y, 0);
    check_near("micrograd's first expression: dy/dx", 46, *grad(&t, x), 0);

    // micrograd's second
    start();
    double *a = leaf(-4), *b = leaf(2);
    double *c = ag_add(&t, a, b, 1);
    double *d = ag_add(&t, ag_mul(&t, a, b, 1), ag_pow(&t, b, 3, 1), 1);
    c = ag_add(&t, c, ag_add_const(&t, c, 1, 1), 1);
    c = ag_add(&t, c, ag_add(&t, ag_add_const(&t, c, 1, 1), ag_neg(&t, a, 1), 1), 1);
    d = ag_add(&t, d, ag_add(&t, ag_mul_const(&t, d, 2, 1), ag_relu(&t, ag_add(&t, b, a, 1), 1), 1),
               1);
    d = ag_add(&t, d, ag_add(&t, ag_mul_const(&t, d, 3, 1), ag_relu(&t, ag_sub(&t, b, a, 1), 1), 1),
               1);
    double *f = ag_pow(&t, ag_sub(&t, c, d, 1), 2, 1);
    double *g =
        ag_add(&t, ag_mul_const(&t, f, 0.5, 1), ag_mul_const(&t, ag_pow(&t, f, -1, 1), 10, 1), 1);
    backward(&t, g);
    check_near("micrograd's second expression: g", 24.70408163265306, *g, 1e-15);
    check_near("micrograd's second expression: dg/da", 138.83381924198252, *grad(&t, a), 1e-15);
    check_near("micrograd's second expression: dg/db", 645.5772594752186, *grad(&t, b), 1e-15);

    // A neuron: tanh of two inputs weighed, tanh made of exponentials. At this bias its output is
    // the root of 1/2.
    start();
    double *in = ag_vector(&t, 2), *w = ag_vector(&t, 2), *bias = leaf(6.881373587019543);
    in[0] = 2, in[1] = 0, w[0] = -3, w[1] = 1;
    double *e = ag_exp(&t, ag_mul_const(&t, ag_add(&t, dot_of(&t, in, w, 2), bias, 1), 2, 1), 1);
    double *out = ag_div(&t, ag_add_const(&t, e, -1, 1), ag_add_const(&t, e, 1, 1), 1);
    backward(&t, out);
    check_near("a neuron's output", sqrt(0.5), *out, 1e-14);
    check_all_near("a neuron's gradient, inputs", (double[]){-1.5, 0.5}, grad(&t, in), 2, 1e-14);
    check_all_near("a neuron's gradient, weights", (double[]){1, 0}, grad(&t, w), 2, 1e-14);
    check_near("a neuron's gradient, bias", 0.5, *grad(&t, bias), 1e-14);
    start();
}

// One neuron learns the logical or, with Adam: the parameters stand before the mark.
static void test_learning(void)
{
    double m[3] = {0}, v[3] = {0}, loss = 0, first = 0;
    Model model = {.num_params = 3, .m = m, .v = v};
    Tape *mine = &model.tape;
    check(tape_init(mine, 200), "a small tape");
    double *w = model.params = ag_vector(mine, 3);
    w[0] = w[1] = w[2] = 0;
    tape_mark(mine);
    for (size_t step = 0; step < 300; step++) {
        double *sum = NULL;
        tape_drop(mine);
        for (int i = 0; i < 4; i++) {
            double *x = ag_vector(mine, 3);
            x[0] = i & 1, x[1] = i >> 1, x[2] = 1;
            double *score = ag_mul_const(mine, dot_of(mine, w, x, 3), i ? -1 : 1, 1);
            double *surprise = ag_log(mine, ag_add_const(mine, ag_exp(mine, score, 1), 1, 1), 1);
            sum = sum ? ag_add(mine, sum, surprise, 1) : surprise;
        }
        backward(mine, sum);
        adam(&model, &(Config){.beta1 = 0.9, .beta2 = 0.999}, 0.1);
        loss = *sum;
        first = step ? first : loss;
    }
    check_near("a neuron before it has learned: the loss", 4 * log(2), first, 1e-15);
    check(loss < 0.2 && w[0] > 3 && w[1] > 3 && w[2] < -1,
          "a neuron learns or: expected a loss below 0.2, saw %g", loss);
    tape_free(mine);
}

/* ------------------------------------------------------------------------------------------------
 * The tape.
 */
static void test_tape(void)
{
    // Results in the middle of the tape: what comes after them has no part in it.
    start();
    double *a = ag_vector(&t, 3), *b = ag_vector(&t, 3), *two = leaf(2);
    for (int i = 0; i < 3; i++) {
        a[i] = i + 1, b[i] = 10 * (i + 1);
    }
    double *c = ag_mul(&t, a, b, 3);
    double *y = ag_mul(&t, c + 1, c + 2, 1);
    double *late = ag_mul(&t, ag_log(&t, two, 1), y, 1);
    ag_mul(&t, late, a, 1);
    backward(&t, y);
    check_all_near("from the middle: gradient", (double[]){0, 20 * 90, 40 * 30}, grad(&t, a), 3, 0);
    check_near("from the middle: what comes later", 0, *grad(&t, two), 0);
    backward(&t, c + 1);
    check_all_near("from one of several neighbors in the middle", (double[]){0, 20, 0}, grad(&t, a),
                   3, 0);
    check_near("from one of several neighbors: what comes later", 0, *grad(&t, two), 0);
    backward(&t, a + 2);
    check_all_near("from a leaf: itself", (double[]){0, 0, 1}, grad(&t, a), 3, 0);
    check_all_near("from a leaf: nothing else", (double[]){0, 0, 0}, grad(&t, b), 3, 0);

    // The same with a matrix that is used before and after the result.
    start();
    Matrix w = {.rows = 2, .cols = 2, .data = ag_vector(&t, 4)};
    double *x = ag_vector(&t, 2), *other = ag_vector(&t, 2);
    memcpy(w.data, (double[]){1, 2, 3, 4}, 4 * sizeof(double));
    x[0] = 5, x[1] = 7, other[0] = 11, other[1] = 13;
    y = ag_sum(&t, ag_linear(&t, x, &w), 2);
    double *later = ag_linear(&t, other, &w);
    ag_mul(&t, ag_sum(&t, later, 2), y, 1);
    backward(&t, y);
    check_all_near("a matrix used after the result: its gradient", (double[]){5, 7, 5, 7},
                   grad(&t, w.data), 4, 0);
    check_all_near("a matrix used after the result: the input's", (double[]){4, 6}, grad(&t, x), 2,
                   0);

    // A second backward begins anew; values before the mark add up.
    Tape mine;
    check(tape_init(&mine, 100), "a small tape for the mark");
    double *p = ag_scalar(&mine, 3);
    *grad(&mine, p) = 0;
    tape_mark(&mine);
    double *r = ag_mul(&mine, p, p, 1);
    backward(&mine, r);
    backward(&mine, r);
    check_near("twice backward: before the mark, added", 12, *grad(&mine, p), 0);
    check_near("twice backward: after it, anew", 1, *grad(&mine, r), 0);
    size_t n_values = mine.n_values, n_entries = mine.n_entries;
    tape_drop(&mine);
    check_near("dropped: what stood before the mark stays", 3, *p, 0);
    check_near("dropped: its gradient too", 12, *grad(&mine, p), 0);
    double *again = ag_mul(&mine, p, p, 1);
    check(again == r && mine.n_values == n_values && mine.n_entries == n_entries,
          "dropped: the room is used again");
    bool fits = true;
    for (int i = 0; i < 100000; i++) {
        tape_drop(&mine);
        double *s = ag_exp(&mine, ag_mul_const(&mine, p, 0.5, 1), 1);
        fits = fits && mine.n_entries == 2 && s < mine.chunk + 100;
    }
    check(fits, "a hundred thousand passes fit where one does");

    // A matrix that was used before the mark.
    tape_free(&mine);
    check(tape_init(&mine, 100), "a small tape with a matrix");
    Matrix old = {.rows = 1, .cols = 2, .data = ag_vector(&mine, 2)};
    double *u = ag_vector(&mine, 2);
    old.data[0] = 2, old.data[1] = 3, u[0] = 5, u[1] = 7;
    ag_linear(&mine, u, &old);
    tape_mark(&mine);
    y = ag_mul_const(&mine, ag_linear(&mine, u, &old), 10, 1);
    backward(&mine, y);
    check_all_near("a matrix used before the mark and after it", (double[]){50, 70},
                   grad(&mine, old.data), 2, 0);
    tape_free(&mine);

    // One value in ten thousand products and sums.
    start();
    x = leaf(1.5);
    double *sum = ag_mul_const(&t, x, 1, 1);
    for (int i = 0; i < 10000; i++) {
        sum = ag_add(&t, sum, i % 2 ? ag_mul(&t, x, x, 1) : x, 1);
    }
    backward(&t, sum);
    check_near("reuse: value", 1.5 + 5000 * 1.5 + 5000 * 2.25, *sum, 0);
    check_near("reuse: gradient", 1 + 5000 + 5000 * 3.0, *grad(&t, x), 0);
    start();

    // Each operation has a name, for people.
    bool named = true;
    for (int i = 0; i < N_OPS; i++) {
        named = named && operations[i].name && operations[i].name[0] && operations[i].forward &&
                operations[i].backward;
        for (int j = 0; named && j < i; j++) {
            named = strcmp(operations[i].name, operations[j].name) != 0;
        }
    }
    check(named, "every operation has a name of its own, and both ways");

    check(!tape_init(&mine, SIZE_MAX / 2), "a tape that no memory holds");
    tape_free(&mine);
    check(mine.chunk == NULL && mine.entries == NULL, "a tape is freed twice without harm");
}

static void test_ten_million(void)
{
    const size_t n = 10000000;
    Tape big;
    if (!tape_init(&big, n + 100)) {
        printf("skip - ten million nodes: not enough memory\n");
        return;
    }
    double *a = ag_scalar(&big, 0.5), *sum = a;
    for (size_t i = 0; i < n; i++) {
        sum = ag_add(&big, sum, a, 1);
    }
    backward(&big, sum);
    check_size("ten million nodes: entries", n, big.n_entries);
    check_near("ten million nodes: value", 0.5 * (double)n + 0.5, *sum, 0);
    check_near("ten million nodes: gradient", (double)n + 1, *grad(&big, a), 0);
    tape_free(&big);
}

/* ------------------------------------------------------------------------------------------------
 * Four ways to the same: each operation is built from the same inputs as one entry, atom by atom,
 * as one entry on a tape without faster functions, and as an entry that waits for tape_compute().
 * All of them must give the same values and the same gradients. The
 * inputs are slices of a buffer in which everything else is not a number, as is the memory that the
 * results go to; so whatever is read or written outside its slice shows.
 */
enum { N_INPUTS = 8192 };

typedef struct {
    size_t n, m, stride, offset;
    double size;  // the inputs' scale
} Sizes;

typedef double *Build(const Sizes *s, size_t *n_out);

static double inputs[N_INPUTS], *buffer, *weights;
static Matrix matrices[2];
static uint64_t mask = FUSED;  // what a fused tape has as one entry

// n numbers of the buffer.
static double *slice(size_t at, size_t n, double size)
{
    for (size_t i = 0; i < n; i++) {
        buffer[at + i] = inputs[at + i] * size;
    }
    return buffer + at;
}

static double *positive(size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buffer[at + i] = fabs(inputs[at + i]) + 0.1;
    }
    return buffer + at;
}

// A result's place inside a larger vector of the tape, whose other values must stay as they are.
static struct {
    double *larger;
    size_t n, offset;
} placed;

static double *place(const Sizes *s, size_t n)
{
    double *larger = ag_vector(&t, n + 7);
    for (size_t i = 0; i < n + 7; i++) {
        larger[i] = 77;
    }
    placed.larger = larger, placed.n = n, placed.offset = s->offset;
    return larger + s->offset;
}

static bool place_is_kept(void)
{
    for (size_t i = 0; placed.larger && i < placed.n + 7; i++) {
        bool beside = i < placed.offset || i >= placed.offset + placed.n;
        if (beside && placed.larger[i] != 77) {
            return false;
        }
    }
    return true;
}

static double *one(const Sizes *s) { return slice(s->offset, s->n, s->size); }
static double *other(const Sizes *s) { return slice(1001 + s->offset, s->n, s->size); }
static double *above_zero(const Sizes *s) { return positive(2000 + s->offset, s->n); }

static double *build_add(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_add(&t, one(s), other(s), s->n);
}
static double *build_mul(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_mul(&t, one(s), other(s), s->n);
}
static double *build_pow(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_pow(&t, above_zero(s), -0.5, s->n);
}
static double *build_square(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_pow(&t, one(s), 2, s->n);
}
static double *build_log(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_log(&t, above_zero(s), s->n);
}
static double *build_exp(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_exp(&t, one(s), s->n);
}
static double *build_relu(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_relu(&t, one(s), s->n);
}
static double *build_add_const(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_add_const(&t, one(s), 0.3, s->n);
}
static double *build_mul_const(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_mul_const(&t, one(s), -1.7, s->n);
}
static double *build_neg(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_neg(&t, one(s), s->n);
}
static double *build_sub(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_sub(&t, one(s), other(s), s->n);
}
static double *build_div(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_div(&t, one(s), above_zero(s), s->n);
}
static double *build_sum(const Sizes *s, size_t *n)
{
    *n = 1;
    return ag_sum(&t, one(s), s->n);
}
static double *build_dot(const Sizes *s, size_t *n)
{
    *n = 1;
    return dot_of(&t, one(s), other(s), s->n);
}
static double *build_softmax(const Sizes *s, size_t *n)
{
    *n = s->n;
    return softmax(&t, one(s), s->n);
}
static double *build_rmsnorm(const Sizes *s, size_t *n)
{
    *n = s->n;
    return rmsnorm(&t, one(s), s->n);
}

static double *build_scale(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_mul_scalar(&t, one(s), slice(1503, 1, 1), s->n);
}

// Operands that are the same, or share values.
static double *build_scale_by_own(const Sizes *s, size_t *n)
{
    *n = s->n;
    double *a = one(s);
    return ag_mul_scalar(&t, a, a + s->n / 2, s->n);
}

static double *build_dot_with_itself(const Sizes *s, size_t *n)
{
    *n = 1;
    double *a = one(s);
    return dot_of(&t, a, a, s->n);
}

static double *build_overlap(const Sizes *s, size_t *n)
{
    *n = s->n;
    double *a = slice(s->offset, s->n + 1, s->size);
    return ag_add(&t, ag_mul(&t, a, a + 1, s->n), ag_sub(&t, a + 1, a, s->n), s->n);
}

static double *rows(const Sizes *s)
{
    for (size_t i = 0; i < s->n; i++) {
        slice(3000 + s->offset + i * s->stride, s->m, s->size);
    }
    return buffer + 3000 + s->offset;
}

static double *build_dots(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_row_dots(&t, slice(s->offset, s->m, s->size), rows(s), s->n, s->stride, s->m, 0.6);
}

static double *build_weighted_sum(const Sizes *s, size_t *n)
{
    *n = s->m;
    return ag_weighted_sum(&t, slice(s->offset, s->n, s->size), rows(s), s->n, s->stride, s->m);
}

// One matrix, used s->stride times, each time with other inputs.
static double *build_linear(const Sizes *s, size_t *n)
{
    matrices[0].rows = s->n;
    matrices[0].cols = s->m;
    matrices[0].data = slice(3000 + s->offset, s->n * s->m, s->size);
    *n = s->n * s->stride;
    double *out = place(s, *n);
    for (size_t use = 0; use < s->stride; use++) {
        double *x = slice(s->offset + use * (s->m + 1), s->m, s->size);
        ag_copy(&t, out + use * s->n, linear(&t, x, &matrices[0]), s->n);
    }
    return out;
}

// A bias, on rows one after another.
static double *build_add_to_rows(const Sizes *s, size_t *n)
{
    *n = s->n * s->m;
    double *all = slice(3000 + s->offset, *n, s->size);
    return ag_add_to_rows(&t, all, slice(s->offset, s->m, s->size), s->n, s->m);
}

static double *build_copy(const Sizes *s, size_t *n)
{
    *n = s->n;
    return ag_copy(&t, place(s, s->n), one(s), s->n);
}

static double *build_dot_in_place(const Sizes *s, size_t *n)
{
    *n = 1;
    return ag_dot(&t, place(s, 1), one(s), other(s), s->n);
}

// One matrix, used in s->stride lanes.
static double *build_lanes(const Sizes *s, size_t *n)
{
    matrices[0].rows = s->n;
    matrices[0].cols = s->m;
    matrices[0].data = slice(3000 + s->offset, s->n * s->m, s->size);
    *n = s->n * s->stride;
    double *out = place(s, *n);
    for (size_t use = 0; use < s->stride; use++) {
        tape_lane(&t);
        double *x = ag_mul_const(&t, slice(s->offset + use * (s->m + 1), s->m, s->size), 0.7, s->m);
        ag_copy(&t, out + use * s->n, linear(&t, x, &matrices[0]), s->n);
    }
    tape_end_lanes(&t);
    return out;
}

// Two square matrices that follow each other again and again; and what the second gets is not only
// the first's.
static double *build_deep(const Sizes *s, size_t *n)
{
    double *x = one(s);
    for (size_t i = 0; i < 2; i++) {
        matrices[i].rows = matrices[i].cols = s->n;
        matrices[i].data = slice(3000 + 2500 * i + s->offset, s->n * s->n, 0.3);
    }
    for (size_t use = 0; use < s->stride; use++) {
        double *y = ag_relu(&t, linear(&t, x, &matrices[0]), s->n);
        x = ag_add(&t, x, linear(&t, y, &matrices[1]), s->n);
    }
    *n = s->n;
    return x;
}

// A matrix that is itself a result.
static double *build_made_matrix(const Sizes *s, size_t *n)
{
    size_t size = s->n * s->n;
    matrices[0].rows = matrices[0].cols = s->n;
    matrices[0].data = ag_mul(&t, slice(3000, size, s->size), slice(5500, size, s->size), size);
    double *x = one(s);
    double *y = linear(&t, x, &matrices[0]);
    *n = s->n;
    return ag_mul(&t, linear(&t, y, &matrices[0]), matrices[0].data, s->n);
}

enum Way { WHOLE, ATOMS, PLAIN, WAITING, N_WAYS };
static const char *const ways[N_WAYS] = {"fused", "atom by atom", "with plain loops",
                                         "computed later"};

// Builds one graph one way; its values and the inputs' gradients go to the arrays.
static size_t run_one(Build *build, const Sizes *s, enum Way way, double *values, double *gradients)
{
    tape_drop(&t);
    t.fused = way != ATOMS ? mask : 0;
    const Faster *faster = t.faster;
    if (way == PLAIN) t.faster = NULL;
    placed.larger = NULL;
    for (size_t i = 0; i < N_INPUTS; i++) {
        buffer[i] = NAN;
        grad(&t, buffer)[i] = 0.5;
    }
    for (size_t i = t.n_values; i < t.n_values + 5000; i++) {
        t.chunk[i] = NAN;
        grad(&t, t.chunk)[i] = NAN;
    }
    if (way == WAITING) {
        tape_lane(&t);
    }
    size_t n_out = 0;
    double *out = build(s, &n_out), *beside = leaf(77);
    double *result = dot_of(&t, out, weights, n_out);
    tape_compute(&t);
    memcpy(values, out, n_out * sizeof(double));
    if (*beside != 77 || !place_is_kept()) {
        values[0] = NAN;
    }
    backward(&t, result);
    for (size_t i = 0; i < N_INPUTS; i++) {
        gradients[i] = isnan(buffer[i]) && grad(&t, buffer)[i] != 0.5 ? NAN : grad(&t, buffer)[i];
    }
    t.fused = FUSED;
    t.faster = faster;
    return n_out;
}

static bool all_ways(const char *what, Build *build, const Sizes *s)
{
    static double values[2][N_INPUTS], gradients[2][N_INPUTS];
    char text[128] = "";
    size_t n = run_one(build, s, WHOLE, values[0], gradients[0]);
    bool ok = true;
    for (enum Way way = ATOMS; ok && way < N_WAYS; way++) {
        run_one(build, s, way, values[1], gradients[1]);
        const char *part = "value";
        ok = all_near(values[1], values[0], n, 1e-12, text, sizeof text);
        for (size_t i = 0; ok && i < n; i++) {
            ok = !isnan(values[0][i]);
        }
        if (ok) {
            part = "gradient";
            ok = all_near(gradients[1], gradients[0], N_INPUTS, 1e-12, text, sizeof text);
        }
        if (!ok) {
            check(false, "%s, fused and %s, n %zu, m %zu, stride %zu, offset %zu, size %g: %s %s",
                  what, ways[way], s->n, s->m, s->stride, s->offset, s->size, part,
                  *text ? text : "is not a number");
        }
    }
    return ok;
}

static void test_fused_runs(const char *what, Build *build, double size)
{
    bool ok = true;
    for (size_t n = 1; ok && n <= 40; n++) {
        for (size_t offset = 0; ok && offset < 4; offset++) {
            ok = all_ways(what, build,
                          &(Sizes){.n = n, .offset = offset, .size = size, .stride = 3});
        }
    }
    if (ok) {
        check(true, "%s: all ways agree for 1 to 40 values, inputs of size %g", what, size);
    }
}

static void test_fused_rows(const char *what, Build *build, size_t least_stride)
{
    bool ok = true;
    static const size_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 17, 31, 32, 33};
    for (size_t i = 0; ok && i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t j = 0; ok && j < sizeof sizes / sizeof sizes[0]; j++) {
            for (size_t offset = 0; ok && offset < 4; offset++) {
                size_t stride = (least_stride ? least_stride : sizes[j]) + (i + 3 * j + offset) % 5;
                ok = all_ways(what, build, &(Sizes){sizes[i], sizes[j], stride, offset, 1});
            }
        }
    }
    if (ok) {
        check(true, "%s: all ways agree for 1 to 33 rows of 1 to 33", what);
    }
}

static void test_fused(void)
{
    static const struct {
        const char *name;
        Build *build;
    } runs[] = {
        {"add", build_add},
        {"mul", build_mul},
        {"pow -0.5", build_pow},
        {"pow 2", build_square},
        {"log", build_log},
        {"exp", build_exp},
        {"relu", build_relu},
        {"add const", build_add_const},
        {"mul const", build_mul_const},
        {"neg", build_neg},
        {"sub", build_sub},
        {"div", build_div},
        {"sum", build_sum},
        {"dot", build_dot},
        {"mul scalar", build_scale},
        {"softmax", build_softmax},
        {"rmsnorm", build_rmsnorm},
        {"scale by one of its own", build_scale_by_own},
        {"dot with itself", build_dot_with_itself},
        {"dot, in its place", build_dot_in_place},
        {"copy", build_copy},
        {"operands that overlap", build_overlap},
        {"matrices that follow each other", build_deep},
        {"a matrix that is a result", build_made_matrix},
    };
    for (size_t i = 0; i < N_INPUTS; i++) {
        inputs[i] = any_number();
    }
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        test_fused_runs(runs[i].name, runs[i].build, 1);
    }
    test_fused_runs("softmax", build_softmax, 700);
    test_fused_runs("softmax", build_softmax, 1e6);
    test_fused_runs("softmax", build_softmax, 1e300);
    test_fused_runs("softmax", build_softmax, 1e-300);
    test_fused_runs("rmsnorm", build_rmsnorm, 1e100);
    test_fused_runs("rmsnorm", build_rmsnorm, 1e-200);
    test_fused_runs("rmsnorm", build_rmsnorm, 0);
    test_fused_rows("row dots", build_dots, 0);
    test_fused_rows("weighted sum", build_weighted_sum, 0);
    test_fused_rows("add to rows", build_add_to_rows, 0);
    test_fused_rows("linear, used once to five times", build_linear, 1);
    test_fused_rows("linear, in one to five lanes", build_lanes, 1);
    bool ok = true;
    for (size_t uses = 30; ok && uses <= 67; uses++) {
        ok = all_ways("linear, used many times", build_linear, &(Sizes){5, 6, uses, uses % 4, 1}) &&
             all_ways("linear, in many lanes", build_lanes, &(Sizes){5, 6, uses, uses % 4, 1});
    }
    if (ok) {
        check(true, "linear: all ways agree for 30 to 67 uses of one matrix, in lanes or not");
    }
}

// Each bit of t->fused decides for one operation: without it, no entry is that operation, and what
// is computed is the same.
static void test_mask(void)
{
    static const struct {
        Op op;
        Build *build;
    } cases[] = {
        {OP_SUM, build_sum},
        {OP_ROW_DOTS, build_dots},
        {OP_WEIGHTED_SUM, build_weighted_sum},
        {OP_LINEAR, build_linear},
        {OP_SOFTMAX, build_softmax},
        {OP_RMSNORM, build_rmsnorm},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static double values[2][N_INPUTS], gradients[2][N_INPUTS];
        const Sizes s = {.n = 7, .m = 5, .stride = 6, .offset = 1, .size = 1};
        Op op = cases[i].op;
        char text[128] = "";
        size_t n = run_one(cases[i].build, &s, WHOLE, values[0], gradients[0]), found[2] = {0, 0};
        for (int way = 0; way < 2; way++) {
            mask = way ? FUSED & ~((uint64_t)1 << op) : FUSED;
            // after the operation itself run_one() records only a dot product of the results
            if (op == OP_ROW_DOTS && !way) continue;
            run_one(cases[i].build, &s, WHOLE, values[1], gradients[1]);
            for (size_t k = t.kept_entries; k < t.n_entries; k++)
                found[way] += t.entries[k].op == op;
        }
        mask = FUSED;
        check(found[1] == 0 && (found[0] > 0 || op == OP_ROW_DOTS),
              "%s, without its bit: no entry; with it: %zu", operations[op].name, found[0]);
        bool ok = all_near(values[0], values[1], n, 1e-12, text, sizeof text) &&
                  all_near(gradients[0], gradients[1], N_INPUTS, 1e-12, text, sizeof text);
        check(ok, "%s, without its bit: the same%s", operations[op].name, text);
    }
    check(!one_entry(&(Tape){.fused = 0}, OP_SUM) &&
              one_entry(&(Tape){.fused = FUSED}, OP_RMSNORM) &&
              one_entry(&(Tape){.fused = 1 << OP_SUM}, OP_SUM) &&
              !one_entry(&(Tape){.fused = 1 << OP_SUM}, OP_LINEAR),
          "one_entry() reads the bit of the operation");
}

// Softmax where inputs are infinite: minus infinity, as a mask has it, is a share of 0.
static void test_infinities(void)
{
    bool ok = true;
    for (size_t n = 2; ok && n <= 12; n++) {
        for (size_t at = 0; ok && at < n; at++) {
            for (size_t i = 0; i < n; i++) {
                inputs[i] = i == at ? -INFINITY : any_number();
            }
            ok =
                all_ways("softmax with minus infinity", build_softmax, &(Sizes){.n = n, .size = 1});
        }
    }
    if (ok) {
        check(true, "softmax with minus infinity: all ways agree");
    }
    start();
    double *a = ag_vector(&t, 4);
    a[0] = 1, a[1] = INFINITY, a[2] = INFINITY, a[3] = -INFINITY;
    check_near("softmax of one value, with infinities beside it", 1, *ag_softmax(&t, a, 1), 0);
    a[0] = NAN;
    check(isnan(ag_softmax(&t, a, 2)[0]), "softmax of what is not a number is not a number");
}

// The exponentials of softmax against the C library's, to a few units of the last place, down to
// the smallest.
static void test_exponentials(void)
{
    double worst = 0, at = 0;
    for (double x = -745; x <= 0; x += 0.0917) {
        start();
        double *a = ag_vector(&t, 5);
        a[0] = a[4] = 0, a[1] = x, a[2] = x / 2, a[3] = x - 1e-3;
        double *p = ag_softmax(&t, a, 5);
        for (int i = 1; i < 4; i++) {
            double expected = exp(a[i]) * p[0];
            double error = fabs(p[i] - expected) / fmax(expected, 1e-307);
            if (!(error <= worst)) {
                worst = error, at = a[i];
            }
        }
    }
    check(worst < 2e-15,
          "exponentials in softmax: expected an error below 2e-15, saw %.3g at %.17g", worst, at);
    start();
}

/* ------------------------------------------------------------------------------------------------
 * A tape that grows: what it computes does not depend on where its chunks end.
 */

// Every operation, in and out of lanes. Returns a result.
static double *all_operations(Tape *tape, double *p, size_t n, Matrix *w)
{
    double *row = ag_vector(tape, 3 * n), *sums = ag_vector(tape, 3);
    for (size_t lane = 0; lane < 3; lane++) {
        tape_lane(tape);
        double *b = ag_exp(tape, ag_mul_const(tape, p + lane, 0.1, n), n);
        double *a = ag_add_const(tape, p + lane, 1, n);
        a = ag_sub(tape, ag_add(tape, a, b, n), ag_mul(tape, a, b, n), n);
        a = ag_div(tape, ag_neg(tape, a, n), ag_pow(tape, b, 1.5, n), n);
        a = ag_add(tape, ag_relu(tape, a, n), ag_log(tape, b, n), n);
        a = rmsnorm(tape, ag_mul_scalar(tape, a, ag_sum(tape, b, n), n), n);
        double *y = softmax(tape, ag_linear(tape, a, w), n + 1);
        double *shares = softmax(tape, ag_row_dots(tape, a, p, n, n, n, 0.5), n);
        a = ag_weighted_sum(tape, shares, p, n, n, n);
        ag_copy(tape, row + lane * n, a, n);
        ag_copy(tape, sums + lane, ag_mul(tape, dot_of(tape, a, b, n), y, 1), 1);
    }
    tape_end_lanes(tape);
    return ag_add(tape, ag_sum(tape, row, 3 * n), ag_sum(tape, sums, 3), 1);
}

static void test_chunks(void)
{
    enum { MOST = 33, PARAMETERS = MOST * MOST + MOST + 2 };
    static double seen[2][PARAMETERS + 1];
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, MOST};
    bool ok = true, many = true, stable = true, kept = true;
    char text[128] = "";
    for (size_t i = 0; ok && i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i], n_params = n * n + n + 2;
        for (int way = 0; way < 2; way++) {
            Tape tape;
            if (!tape_init(&tape, way ? n_params + 8 : 100000) || !install_faster(&tape)) {
                check(false, "a tape: expected memory for it, saw none");
                return;
            }
            double *p = ag_vector(&tape, n_params);
            for (size_t k = 0; k < n_params; k++) p[k] = sin((double)k);
            tape_mark(&tape);
            size_t n_chunks = 0;
            Matrix w = {.rows = n + 1, .cols = n, .data = p};
            for (int pass = 0; pass < 3; pass++) {
                tape_drop(&tape);
                kept = kept && p == tape.chunks[0] && tape.this_chunk == 0;
                for (size_t k = 0; k < n_params; k++) grad(&tape, p)[k] = 0;
                double *result = all_operations(&tape, p, n, &w);
                backward(&tape, result);
                memcpy(seen[way], grad(&tape, p), n_params * sizeof *p);
                seen[way][n_params] = *result;
                stable = stable && (pass == 0 || tape.n_chunks == n_chunks);
                n_chunks = tape.n_chunks;
            }
            many = many && (way ? n_chunks > 2 : n_chunks == 1);
            tape_free(&tape);
        }
        ok = all_near(seen[0], seen[1], n_params + 1, 1e-12, text, sizeof text);
    }
    check(ok, "one chunk or many, the same result and gradients%s", text);
    check(many, "small chunks are many, a large one is one");
    check(stable, "a second pass needs no more chunks than the first");
    check(kept, "tape_drop() goes back to the chunk of the mark");
}

static void test_entries_grow(void)
{
    Tape tape;
    if (!tape_init(&tape, 10000) || !install_faster(&tape)) {
        check(false, "a tape: expected memory for it, saw none");
        return;
    }
    double *x = ag_scalar(&tape, 1), *y = x;
    size_t room = tape.max_entries;
    for (int i = 0; i < 5000; i++) {
        if (i == 100) tape_lane(&tape);  // the rest waits
        y = ag_add(&tape, y, x, 1);
    }
    backward(&tape, y);
    check(tape.max_entries > room, "five thousand entries: expected the tape to grow");
    check_near("five thousand entries, most of them put off: the result", 5001, *y, 0);
    check_near("five thousand entries, most of them put off: the gradient", 5001, *grad(&tape, x),
               0);
    tape_free(&tape);
}

// With -fsanitize=address: that memory is refused is a part of the test.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

// Where there is no memory, the program decides. What it kept is still there.
static jmp_buf no_room;

static void no_memory_here(void) { longjmp(no_room, 1); }

static void test_no_memory(void)
{
    static Tape tape;
    static size_t chunk, max_entries;
    static volatile bool told;
    if (!tape_init(&tape, 100)) {
        check(false, "a tape: expected memory for it, saw none");
        return;
    }
    double *x = ag_scalar(&tape, 7);
    tape_mark(&tape);
    tape.out_of_memory = no_memory_here;
    chunk = tape.chunk_size;
    told = false;
    if (setjmp(no_room) == 0) {
        tape.chunk_size = SIZE_MAX / 64;  // of such chunks there is no second one
        tape.n_values = tape.chunk_size - 4;
        ag_vector(&tape, 8);
    } else {
        told = true;
    }
    check(told, "a tape that cannot grow: expected no_memory() to be called");
    tape.chunk_size = chunk;
    tape_drop(&tape);
    check_near("then what stood before the mark is there", 7, *tape.chunk, 0);
    check_near("and the tape is used again", 49, *ag_mul(&tape, tape.chunk, tape.chunk, 1), 0);
    max_entries = tape.max_entries;
    told = false;
    if (setjmp(no_room) == 0) {
        tape.max_entries = SIZE_MAX / sizeof(Entry) / 2 + 1;  // twice as many have no addresses
        tape.n_entries = tape.max_entries;
        ag_add(&tape, tape.chunk, tape.chunk, 1);
    } else {
        told = true;
    }
    check(told, "entries that cannot grow: expected no_memory() to be called");
    tape.max_entries = max_entries;
    tape_drop(&tape);
    check_near("and the tape is used again", 49, *ag_mul(&tape, tape.chunk, tape.chunk, 1), 0);
    (void)x;
    tape_free(&tape);
}

enum { BLOCK = 4 };  // as in autograd.c

// A vector that no chunk holds is a mistake of the program. A process of its own makes it. The
// largest that one does hold leaves a block for what reads past the end.
static void test_too_large(void)
{
    Tape whole;
    if (tape_init(&whole, 100)) {
        ag_scalar(&whole, 1);
        double *x = ag_vector(&whole, whole.chunk_size - BLOCK);
        check(whole.n_chunks == 2 && x == whole.chunks[1],
              "a vector as large as a chunk: expected it in the second of 2, saw %zu",
              whole.n_chunks);
        tape_free(&whole);
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        Tape tape;
        if (!freopen("/dev/null", "w", stderr) || !tape_init(&tape, 100)) _exit(2);
        ag_vector(&tape, tape.chunk_size - BLOCK + 1);
        _exit(0);
    }
    int status = 0;
    bool ended = child > 0 && waitpid(child, &status, 0) == child;
    check(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
          "a vector larger than a chunk: expected an abort, saw status %d", status);
}

// Passes with other entries in other places: what was known of a matrix in the last pass must not
// count in this one.
static void test_passes(void)
{
    Tape both[2];
    Matrix w[2];
    double *p[2];
    bool ok = true;
    for (int way = 0; way < 2; way++) {
        ok = tape_init(&both[way], 20000) && (way || install_faster(&both[way])) && ok;
        both[way].fused = way ? 0 : FUSED;
        p[way] = ag_vector(&both[way], 25 + 5);
        w[way] = (Matrix){.rows = 5, .cols = 5, .data = p[way]};
        tape_mark(&both[way]);
    }
    for (int i = 0; i < 30; i++) {
        p[0][i] = p[1][i] = any_number();
    }
    char text[128] = "";
    for (int pass = 0; ok && pass < 200; pass++) {
        for (int way = 0; way < 2; way++) {
            Tape *tape = &both[way];
            tape_drop(tape);
            double *x = p[way] + 25;
            for (int k = 0; k < pass % 7; k++) {
                x = ag_mul_const(tape, x, 0.9, 5);
            }
            for (int k = 0; k < pass % 5; k++) {
                x = linear(tape, x, &w[way]);
            }
            backward(tape, ag_sum(tape, x, 5));
        }
        ok = all_near(grad(&both[1], p[1]), grad(&both[0], p[0]), 30, 1e-12, text, sizeof text);
    }
    check(ok, "two hundred passes of different lengths%s", text);
    tape_free(&both[0]);
    tape_free(&both[1]);
}

// Lanes, read side by side, against the same entries in plain order: the result, and the gradients.
// In most cases the lanes are not quite alike, so that there is nothing to be gained and everything
// to be got wrong.
enum LaneCase {
    ALIKE,
    MANY,
    ONE,
    LONGER_FIRST,
    LONGER_LAST,
    SHORTER_LAST,
    OTHER_OP,
    OTHER_MATRIX,
    NOT_ENDED,
    BATCH,
    RAGGED_BATCH,
    BETWEEN,
    RESULT_BETWEEN,
    RESULT_WITHIN,
    RESULT_WITHIN_LAST,
    LATER,
    N_CASES
};

// One group of n lanes, and the sum of what they make. *within is what the lane before the last has
// made.
static double *lanes(Tape *tape, enum LaneCase which, size_t n, Matrix *w, double *x, bool marked,
                     double **within)
{
    double *place = ag_vector(tape, 6), *keys = ag_vector(tape, n * 6), *terms = ag_vector(tape, n);
    for (size_t s = 0; s < n; s++) {
        if (marked) {
            tape_lane(tape);
        }
        double *in = ag_rmsnorm(tape, ag_add(tape, x + s, x + 6, 6), 6);
        ag_copy(tape, keys + s * 6, ag_linear(tape, in, &w[which == OTHER_MATRIX && s == 3]), 6);
        double *query = ag_relu(tape, ag_linear(tape, in, &w[0]), 6);
        if ((which == LONGER_FIRST && s == 1) || (which == LONGER_LAST && s == n - 1) ||
            (which == SHORTER_LAST && s != n - 1)) {
            query = ag_mul_const(tape, query, 0.5, 6);
        }
        double *out = ag_vector(tape, 6);
        for (size_t h = 0; h < 6; h += 3) {
            double *share =
                ag_softmax(tape, ag_row_dots(tape, query + h, keys + h, s + 1, 6, 3, 0.7), s + 1);
            ag_copy(tape, out + h, ag_weighted_sum(tape, share, keys + h, s + 1, 6, 3), 3);
        }
        double *one = which == OTHER_OP && s == 2 ? ag_exp(tape, out, 1) : ag_relu(tape, out, 1);
        double *two = ag_mul(tape, ag_mul_scalar(tape, ag_add_const(tape, out, 2, 6), one, 6),
                             ag_pow(tape, query, 2, 6), 6);
        double *three = ag_add(tape, ag_sum(tape, two, 6), dot_of(tape, two, out, 6), 1);
        double *four = ag_neg(tape, ag_log(tape, ag_exp(tape, three, 1), 1), 1);
        ag_copy(tape, terms + s, four, 1);
        *within = s + 2 == n || which == RESULT_WITHIN_LAST ? three : *within;
        if (marked && which == BETWEEN) {
            tape_end_lanes(tape);  // what follows belongs to no lane
        }
        if (which == BETWEEN) {
            ag_copy(tape, terms + s, ag_mul_const(tape, four, (double)s, 1), 1);
        }
    }
    if (marked && which != NOT_ENDED) {
        tape_end_lanes(tape);
    }
    double *result = ag_mul_const(tape, ag_sum(tape, terms, n), 1.0 / (double)n, 1);
    if (which == LATER) {
        ag_copy(tape, place, ag_linear(tape, x, &w[0]),
                6);  // after the result, and so without a part in it
    }
    return result;
}

// A single group, or a batch of three of them, each followed by a sum.
static double *groups_of_lanes(Tape *tape, enum LaneCase which, Matrix *w, double *x, bool marked)
{
    double *within = NULL, *first = NULL, *sum = ag_scalar(tape, 0);
    bool batch = which == BATCH || which == RAGGED_BATCH || which == RESULT_BETWEEN;
    for (size_t i = 0; i < (batch ? 3 : 1); i++) {
        size_t n = which == ONE ? 1 : which == MANY ? 40 : batch ? 3 + 2 * i : 7;
        enum LaneCase kind = which == RAGGED_BATCH && i == 1 ? LONGER_LAST : which;
        sum = ag_add(tape, sum, lanes(tape, kind, n, w, x, marked, &within), 1);
        first = i == 0 ? sum : first;
    }
    return which == RESULT_WITHIN || which == RESULT_WITHIN_LAST ? within
           : which == RESULT_BETWEEN                             ? first
                                                                 : sum;
}

#ifdef AUTOGRAD_LANES
// How many lanes were computed side by side.
static size_t lanes_together(const Tape *tape) { return tape->lanes->end > 0 ? tape->lanes->n : 0; }
#endif

static void test_lanes(void)
{
    static const char *const names[N_CASES] = {
        "alike",
        "many",
        "only one",
        "one of them longer",
        "the last one longer",
        "the last one shorter",
        "another operation",
        "another matrix",
        "not ended",
        "a batch of three groups",
        "a batch with a longer lane",
        "entries between all of them",
        "the result between two groups",
        "the result within",
        "the result in the last",
        "a later entry that fills an earlier place",
    };
    enum { PARAMETERS = 2 * 36 + 48 };
    Tape both[2];
    double *p[2];
    bool ok = true;
    for (int way = 0; way < 2; way++) {
        ok = tape_init(&both[way], 20000) && install_faster(&both[way]) && ok;
        p[way] = ag_vector(&both[way], PARAMETERS);
        tape_mark(&both[way]);
    }
    for (int i = 0; i < PARAMETERS; i++) {
        p[0][i] = p[1][i] = any_number();
    }
    for (int pass = 0; ok && pass < 2 * N_CASES; pass++) {
        char text[128] = "";
        double *result[2];
        enum LaneCase which = (enum LaneCase)(pass % N_CASES);
        for (int way = 0; way < 2; way++) {
            Matrix w[2] = {{.rows = 6, .cols = 6, .data = p[way]},
                           {.rows = 6, .cols = 6, .data = p[way] + 36}};
            tape_drop(&both[way]);
            result[way] = groups_of_lanes(&both[way], which, w, p[way] + 72, way == 0);
            backward(&both[way], result[way]);
        }
        ok = all_near(result[1], result[0], 1, 1e-13, text, sizeof text) &&
             all_near(grad(&both[1], p[1]), grad(&both[0], p[0]), PARAMETERS, 1e-12, text,
                      sizeof text) &&
             *result[0] == *result[0];
        check(ok, "lanes side by side, %s%s", names[which], text);
#ifdef AUTOGRAD_LANES
        bool unlike = which == ONE ||
                      (which >= LONGER_FIRST && which <= NOT_ENDED && which != OTHER_MATRIX) ||
                      which == RAGGED_BATCH;
        size_t n = which == MANY ? 40 : which == BATCH || which == RESULT_BETWEEN ? 3 + 5 + 7 : 7;
        check_size("of these, lanes that were taken together", unlike ? 0 : n,
                   lanes_together(&both[0]));
#endif
    }
    tape_free(&both[0]);
    tape_free(&both[1]);
}

// Entries in lanes, and those after them, wait until tape_compute(), backward() or tape_mark();
// without a lane none does.
static void test_waiting(void)
{
    start();
    double *x = leaf(3), *out = leaf(-1);
    ag_copy(&t, out, x, 1);
    check_near("outside of lanes nothing waits", 3, *out, 0);
    *out = -1;
    tape_lane(&t);
    ag_copy(&t, out, x, 1);
    tape_end_lanes(&t);
    double *after = ag_mul_const(&t, out, 2, 1);
    *x = 5;
    check(value(&t, after) == after && !t.waiting,
          "value() computes, and returns what it is given");
#ifdef AUTOGRAD_LANES
    check_near("in a lane, the values at the time of value() count", 10, *after, 0);
#else
    check_near("without -DAUTOGRAD_LANES a lane is computed at once", 6, *after, 0);
#endif
    tape_compute(&t);
    check_near("after tape_compute() nothing waits", *after + 1, *ag_add_const(&t, after, 1, 1), 0);
    tape_lane(&t);
    *out = -1;
    tape_drop(&t);
    x = leaf(3);
    check_near("nor after tape_drop()", 4, *ag_add_const(&t, x, 1, 1), 0);
    start();
}

// A plain number that is asked for within a lane is of what was computed, not of what is still to
// be.
static void test_max_in_lanes(void)
{
    enum { LANES = 5, N = 6 };
    Tape both[2];
    double *x[2], *sum[2];
    bool ok = true;
    for (int way = 0; way < 2; way++) {
        ok = tape_init(&both[way], 1000) && install_faster(&both[way]) && ok;
    }
    for (int way = 0; ok && way < 2; way++) {
        Tape *tape = &both[way];
        x[way] = ag_vector(tape, LANES * N);
        for (size_t i = 0; i < LANES * N; i++) {
            x[way][i] = way ? x[0][i] : any_number();
        }
        tape_mark(tape);
        sum[way] = ag_scalar(tape, 0);
        double *terms = ag_vector(tape, LANES);
        for (size_t s = 0; s < LANES; s++) {
            if (way) {
                tape_lane(tape);
            }
            double *y = ag_exp(tape, x[way] + s * N, N);
            double max = ag_max(tape, y, N);
            ag_copy(tape, terms + s,
                    ag_sum(tape, ag_pow(tape, ag_add_const(tape, y, -max, N), 2, N), N), 1);
        }
        tape_end_lanes(tape);
        sum[way] = ag_sum(tape, terms, LANES);
        backward(tape, sum[way]);
    }
    check_all_near("the largest, asked for within lanes: the result", sum[0], sum[1], 1, 1e-14);
    check_all_near("the largest, asked for within lanes: gradients", grad(&both[0], x[0]),
                   grad(&both[1], x[1]), LANES * N, 1e-13);
    tape_free(&both[0]);
    tape_free(&both[1]);
}

// Lanes after a mark are a new group: that those before it were not alike is forgotten.
static void test_lanes_after_a_mark(void)
{
    Tape tape;
    if (!tape_init(&tape, 100) || !install_faster(&tape)) {
        check(false, "expected memory for a tape, saw none");
        return;
    }
    double *x = ag_scalar(&tape, 3), *y = x;
    for (int i = 0; i < 2; i++) {
        tape_lane(&tape);
        y = i ? ag_mul(&tape, x, x, 1) : ag_add(&tape, x, x, 1);
    }
    tape_end_lanes(&tape);
    tape_mark(&tape);
    check_near("lanes that are not alike, before a mark", 9, *y, 0);
    for (int i = 0; i < 2; i++) {
        tape_lane(&tape);
        y = ag_mul_const(&tape, x, 2, 1);
    }
    tape_end_lanes(&tape);
    tape_compute(&tape);
    check_near("lanes that are alike, after it", 6, *y, 0);
#ifdef AUTOGRAD_LANES
    check_size("of these, lanes that were taken together", 2, lanes_together(&tape));
#endif
    tape_free(&tape);
}

// Lanes that multiply what is not theirs alone, a mark after lanes, and lanes that are computed
// before the last is there.
static void test_lanes_of_products(void)
{
    static const char *const kinds[] = {"all of one input", "all of one input into earlier places",
                                        "each of what the last has made", "before a mark",
                                        "computed too early"};
    enum { SHARED, PLACED, CHAIN, MARK, EARLY, N_KINDS, MOST = 20 };
    for (int kind = 0; kind < N_KINDS; kind++) {
        bool ok = true;
        char text[128] = "";
        for (size_t size = 1; size <= MOST; size++) {
            for (size_t n = 2; ok && n <= 5; n++) {
                double expected[MOST * MOST + MOST + 1] = {0};
                for (int way = 0; ok && way < 2; way++) {
                    Tape tape;
                    if (!tape_init(&tape, 2000) || !install_faster(&tape)) {
                        check(false, "expected memory for a tape, saw none");
                        return;
                    }
                    double *places = ag_vector(&tape, n * size),
                           *p = ag_vector(&tape, size * size + size);
                    double *x = p + size * size, *h = x, *terms = ag_vector(&tape, n);
                    Matrix w = {.rows = size, .cols = size, .data = p};
                    for (size_t i = 0; i < size * size + size; i++) {
                        p[i] = sin((double)i);
                    }
                    for (size_t s = 0; s < n; s++) {
                        if (way) {
                            tape_lane(&tape);
                        }
                        double *y = ag_linear(&tape, h, &w);
                        if (kind == PLACED) y = ag_copy(&tape, places + s * size, y, size);
                        h = kind == CHAIN ? y : x;
                        ag_copy(&tape, terms + s, ag_sum(&tape, y, size), 1);
                        if (kind == EARLY && s + 2 == n) {
                            tape_compute(&tape);
                        }
                    }
                    tape_end_lanes(&tape);
                    double *result = ag_mul_const(&tape, ag_sum(&tape, terms, n), 2, 1);
                    if (kind == MARK) {
                        tape_mark(&tape);
                        result = ag_mul(&tape, ag_sum(&tape, x, size), result, 1);
                    }
                    backward(&tape, result);
                    double seen[MOST * MOST + MOST + 1];
                    memcpy(seen, grad(&tape, p), (size * size + size) * sizeof *seen);
                    seen[size * size + size] = *result;
                    if (way) {
                        ok = all_near(expected, seen, size * size + size + 1, 1e-12, text,
                                      sizeof text);
                    } else {
                        memcpy(expected, seen, (size * size + size + 1) * sizeof *seen);
                    }
                    tape_free(&tape);
                }
            }
        }
        check(ok, "lanes of products, %s%s", kinds[kind], text);
    }
}

/* ------------------------------------------------------------------------------------------------
 * Adam against the formula, for all sizes up to 70, over several steps. After the last parameter
 * nothing changes.
 */
enum { ROOM = 80 };
static double weight_decay;

// A step of n parameters p, with their gradients in p + ROOM. Where eps is that of adam(), it is
// adam() that does it; otherwise move_parameters(), and the formula for the rest. Returns how many
// were left to the formula.
static size_t adam_step(double *p, double *m, double *v, size_t n, size_t step, double lr,
                        double beta1, double beta2, double eps)
{
    double *g = p + ROOM, correct1 = 1 - pow(beta1, (double)step + 1),
           correct2 = 1 - pow(beta2, (double)step + 1);
    if (eps == 1e-8) {
        Model model = {.params = p,
                       .num_params = n,
                       .m = m,
                       .v = v,
                       .steps_done = step,
                       .tape = {.chunk_size = ROOM, .faster = t.faster}};
        adam(&model, &(Config){.beta1 = beta1, .beta2 = beta2, .weight_decay = weight_decay}, lr);
        return model.steps_done == step + 1 ? 0 : SIZE_MAX;
    }
    AdamRates rates = {lr, beta1, beta2, eps, correct1, correct2, weight_decay};
    size_t n_moved = move_parameters(p, g, m, v, n, &rates);
    for (size_t i = n_moved; i < n; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        p[i] -= lr * (m[i] / correct1) / (sqrt(v[i] / correct2) + eps) + lr * weight_decay * p[i];
        g[i] = 0;
    }
    return n - n_moved;
}

static bool adam_agrees(size_t n, double scale, double lr, double beta1, double beta2, double eps)
{
    double p[2 * ROOM], *g = p + ROOM, m[ROOM], v[ROOM], p2[ROOM], m2[ROOM], v2[ROOM];
    char text[128] = "";
    for (size_t i = 0; i < ROOM; i++) {
        p[i] = p2[i] = any_number();
        m[i] = m2[i] = v[i] = v2[i] = i < n ? 0 : 9;
    }
    for (size_t step = 0; step < 6; step++) {
        for (size_t i = 0; i < ROOM; i++) {
            double kind = any_number();
            g[i] = i >= n ? 9 : kind < -0.8 ? 0 : any_number() * (kind > 0.8 ? 1e-9 : scale);
            if (i < n) {
                m2[i] = beta1 * m2[i] + (1 - beta1) * g[i];
                v2[i] = beta2 * v2[i] + (1 - beta2) * g[i] * g[i];
                double m_hat = m2[i] / (1 - pow(beta1, (double)step + 1));
                double v_hat = v2[i] / (1 - pow(beta2, (double)step + 1));
                p2[i] -= lr * m_hat / (sqrt(v_hat) + eps) + lr * weight_decay * p2[i];
            }
        }
        bool ok = adam_step(p, m, v, n, step, lr, beta1, beta2, eps) <= n;
        ok = ok && all_near(p2, p, ROOM, 1e-12, text, sizeof text);
        for (size_t i = 0; ok && i < ROOM;
             i++) {  // sums of large gradients may cancel: the scale is theirs
            ok = fabs(m2[i] - m[i]) <= 1e-12 * fmax(scale, 1) &&
                 fabs(v2[i] - v[i]) <= 1e-12 * fmax(scale * scale, 1);
            snprintf(text, sizeof text, "[%zu]: expected means %g and %g, saw %g and %g", i, m2[i],
                     v2[i], m[i], v[i]);
        }
        for (size_t i = 0; ok && i < ROOM; i++) {
            ok = g[i] == (i < n ? 0 : 9);
            snprintf(text, sizeof text, "[%zu]: a gradient afterwards: saw %g", i, g[i]);
        }
        if (!ok) {
            check(false, "Adam, %zu parameters, gradients of size %g, step %zu %s", n, scale, step,
                  text);
            return false;
        }
    }
    return true;
}

static void test_weight_decay(void)
{
    bool ok = true;
    weight_decay = 0.3;
    for (size_t n = 1; ok && n <= 70; n++) {
        ok = adam_agrees(n, 1, 0.01, 0.85, 0.99, 1e-8) && adam_agrees(n, 1, 0.01, 0.4, 0.4, 1e-8);
    }
    if (ok) check(true, "Adam with weight decay: 1 to 70 parameters");
    weight_decay = 0;
    double p[ROOM], g[ROOM] = {0}, m[ROOM] = {0}, v[ROOM] = {0};
    for (size_t i = 0; i < ROOM; i++) p[i] = -0.0;
    const AdamRates rates = {0.01, 0.85, 0.99, 1e-8, 0.15, 0.01, 0};
    size_t n_kept = 0;
    move_parameters(p, g, m, v, ROOM, &rates);
    for (size_t i = 0; i < ROOM; i++) n_kept += signbit(p[i]) != 0;
    check(n_kept == ROOM, "Adam without weight decay: %zu of %d keep the sign of -0", n_kept, ROOM);
}

static void test_adam(void)
{
    static const double scales[] = {1,    1e-6, 1e-10, 1e-18, 1e-30, 1e9,  1e17,
                                    1e18, 1e19, 1e20,  1e60,  1e100, 1e140};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        bool ok = true;
        for (size_t n = 1; ok && n <= 70; n++) {
            ok = adam_agrees(n, scales[i], 0.01, 0.85, 0.99, 1e-8);
        }
        if (ok) {
            check(true, "Adam: 1 to 70 parameters, gradients of size %g", scales[i]);
        }
    }
    if (adam_agrees(37, 1, 0, 0.9, 0.95, 1e-8) && adam_agrees(37, 1, 1e-200, 0.9, 0.95, 1e-8) &&
        adam_agrees(37, 1, 1e9, 0.5, 0.999, 1e-8)) {
        check(true, "Adam: no learning, next to none, giant steps");
    }
    if (adam_agrees(37, 1, 0.1, 0, 0, 1e-8) && adam_agrees(37, 1, 0.1, 0.6, 0, 1e-8) &&
        adam_agrees(37, 1, 0.1, 0.5, 0.5, 1e-8)) {
        check(true, "Adam: no memory, memory of one kind, a short one");
    }
    if (adam_agrees(37, 1, 0.1, 0.9, 0.95, 0) && adam_agrees(37, 1, 0.1, 0.9, 0.95, 1e-300) &&
        adam_agrees(37, 1, 0.1, 0.9, 0.95, 1e-15) && adam_agrees(37, 1, 0.1, 0.9, 0.95, 1e3)) {
        check(true, "Adam: eps from nothing to a thousand");
    }
    static const double tiny[] = {1e-5, 1e-10, 1e-14, 1e-17, 1e-18, 1e-19, 1e-20, 1e-25, 1e-30};
    for (size_t i = 0; i < sizeof tiny / sizeof tiny[0]; i++) {
        if (adam_agrees(64, tiny[i], 1, 0.85, 0.99, 1e-8) &&
            adam_agrees(64, tiny[i], 1, 0.9, 0.999999, 1e-8) &&
            adam_agrees(64, tiny[i], 1, 0.9, 0.999999999999, 1e-8) &&
            adam_agrees(64, tiny[i], 1, 0.9, 0.9, 1e-14) &&
            adam_agrees(64, tiny[i], 1, 0.9, 0.9, 1e-20)) {
            check(true, "Adam: gradients of size %g beside every eps", tiny[i]);
        }
    }
    // Parameters that no gradient reaches stay where they are, however large the steps of the
    // others.
    static const double rates[] = {1e9, 1e70, 1e80, 1e155, 1e200, 1e250, 1e300};
    for (size_t k = 0; k < sizeof rates / sizeof rates[0]; k++) {
        double still[2 * ROOM] = {0}, first[32] = {0}, second[32] = {0}, expected[32];
        char what[80];
        for (int i = 0; i < 32; i++) {
            still[i] = expected[i] = any_number();
        }
        adam_step(still, first, second, 32, 0, rates[k], 0.85, 0.99, 1e-8);
        snprintf(what, sizeof what,
                 "Adam: without gradients nothing moves, at a rate of %g: ", rates[k]);
        check_all_near(what, expected, still, 32, 0);
    }
    double p[2 * ROOM] = {0}, *g = p + ROOM, m[32] = {0}, v[32] = {0};
    bool zero = true;
    for (int i = 0; i < 32; i++) {
        g[i] = i == 3 ? INFINITY : i == 9 ? NAN : 1;
    }
    adam_step(p, m, v, 32, 0, 0.01, 0.9, 0.99, 1e-8);
    for (int i = 0; i < 32; i++) {
        zero = zero && g[i] == 0;
    }
    check(zero, "Adam sets all gradients to zero, infinite ones too");
    check_near("Adam: beside an infinite gradient", -0.01, p[2], 1e-9);

    // The fast way takes all whole vectors, or none where it is not meant to be.
    double q[2 * ROOM] = {0}, q_m[ROOM] = {0}, q_v[ROOM] = {0};
#ifdef VECTORS
    check_size("Adam: the fast way leaves less than four vectors of 70", 70 % (4 * VEC),
               adam_step(q, q_m, q_v, 70, 0, 0.01, 0.85, 0.99, 2e-8));
#else
    check_size("Adam: a plain build leaves all to the definition", 70,
               adam_step(q, q_m, q_v, 70, 0, 0.01, 0.85, 0.99, 2e-8));
#endif
    check_size("Adam: without eps all is left to the definition", 70,
               adam_step(q, q_m, q_v, 70, 0, 0.01, 0.85, 0.99, 0));
}

int main(void)
{
    if (!tape_init(&t, 400000) || !install_faster(&t)) {
        check(false, "expected memory for a tape, saw none");
        return finish();
    }
    buffer = ag_vector(&t, N_INPUTS);
    weights = ag_vector(&t, N_INPUTS);
    for (size_t i = 0; i < N_INPUTS; i++) {
        weights[i] = any_number();
    }
    tape_mark(&t);
    test_atoms();
    test_copy();
    test_leaves();
    test_add_to_rows();
    test_expressions();
    test_learning();
    test_tape();
    test_ten_million();
    test_fused();
    test_mask();
    test_infinities();
    test_exponentials();
    test_chunks();
    test_entries_grow();
    test_no_memory();
    test_too_large();
    test_passes();
    test_lanes();
    test_waiting();
    test_max_in_lanes();
    test_lanes_after_a_mark();
    test_lanes_of_products();
    test_weight_decay();
    test_adam();
    tape_free(&t);
    return finish();
}
