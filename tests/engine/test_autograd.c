/* The engine alone: each operation's value and derivative, the tape, fused against atomic, Adam. */
// also built with -DAUTOGRAD_PLAIN
// also built with -DAUTOGRAD_TILE=3
#include "../../autograd.h"
#include "../test.h"

static Tape t;

static double *value(double x)
{
    return v_value(&t, x);
}

static void start(void)
{
    tape_drop(&t);
}

/* ------------------------------------------------------------------------------------------------------------------
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
    a = value(3), b = value(5);
    check_one("add, by the first", a, v_add(&t, a, b, 1), 8, 1);
    a = value(3), b = value(5);
    check_one("add, by the second", b, v_add(&t, a, b, 1), 8, 1);
    a = value(3), b = value(5);
    check_one("mul, by the first", a, v_mul(&t, a, b, 1), 15, 5);
    a = value(3), b = value(5);
    check_one("mul, by the second", b, v_mul(&t, a, b, 1), 15, 3);
    a = value(3);
    check_one("pow 2", a, v_pow(&t, a, 2, 1), 9, 6);
    a = value(4);
    check_one("pow -0.5", a, v_pow(&t, a, -0.5, 1), 0.5, -0.0625);
    a = value(-2);
    check_one("pow 3 of a negative number", a, v_pow(&t, a, 3, 1), -8, 12);
    a = value(0);
    check_one("pow 2 of 0", a, v_pow(&t, a, 2, 1), 0, 0);
    a = value(2);
    check_one("log", a, v_log(&t, a, 1), 0.6931471805599453, 0.5);
    a = value(1);
    check_one("exp", a, v_exp(&t, a, 1), 2.718281828459045, 2.718281828459045);
    a = value(2.5);
    check_one("relu above 0", a, v_relu(&t, a, 1), 2.5, 1);
    a = value(-2.5);
    check_one("relu below 0", a, v_relu(&t, a, 1), 0, 0);
    a = value(0);
    check_one("relu at 0", a, v_relu(&t, a, 1), 0, 0);
    a = value(3);
    check_one("plus", a, v_plus(&t, a, 4, 1), 7, 1);
    a = value(3);
    check_one("times", a, v_times(&t, a, 4, 1), 12, 4);
    a = value(3);
    check_one("neg", a, v_neg(&t, a, 1), -3, -1);
    a = value(3), b = value(5);
    check_one("sub, by the first", a, v_sub(&t, a, b, 1), -2, 1);
    a = value(3), b = value(5);
    check_one("sub, by the second", b, v_sub(&t, a, b, 1), -2, -1);
    a = value(3), b = value(4);
    check_one("div, by the first", a, v_div(&t, a, b, 1), 0.75, 0.25);
    a = value(3), b = value(4);
    check_one("div, by the second", b, v_div(&t, a, b, 1), 0.75, -0.1875);
    a = value(3);
    check_one("a + a", a, v_add(&t, a, a, 1), 6, 2);
    a = value(3);
    check_one("a * a", a, v_mul(&t, a, a, 1), 9, 6);
    a = value(3);
    check_one("a / a", a, v_div(&t, a, a, 1), 1, 0);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Whole expressions.
 */
static void test_expressions(void)
{
    // micrograd's first: z = 3x + 2, q = relu(z) + zx, h = relu(z^2), y = h + q + qx
    double *x = value(-4);
    double *z = v_add(&t, v_plus(&t, v_times(&t, x, 2, 1), 2, 1), x, 1);
    double *q = v_add(&t, v_relu(&t, z, 1), v_mul(&t, z, x, 1), 1);
    double *h = v_relu(&t, v_mul(&t, z, z, 1), 1);
    double *y = v_add(&t, v_add(&t, h, q, 1), v_mul(&t, q, x, 1), 1);
    backward(&t, y);
    check_near("micrograd's first expression: y", -20, *y, 0);
    check_near("micrograd's first expression: dy/dx", 46, *grad(&t, x), 0);

    // micrograd's second
    start();
    double *a = value(-4), *b = value(2);
    double *c = v_add(&t, a, b, 1);
    double *d = v_add(&t, v_mul(&t, a, b, 1), v_pow(&t, b, 3, 1), 1);
    c = v_add(&t, c, v_plus(&t, c, 1, 1), 1);
    c = v_add(&t, c, v_add(&t, v_plus(&t, c, 1, 1), v_neg(&t, a, 1), 1), 1);
    d = v_add(&t, d, v_add(&t, v_times(&t, d, 2, 1), v_relu(&t, v_add(&t, b, a, 1), 1), 1), 1);
    d = v_add(&t, d, v_add(&t, v_times(&t, d, 3, 1), v_relu(&t, v_sub(&t, b, a, 1), 1), 1), 1);
    double *f = v_pow(&t, v_sub(&t, c, d, 1), 2, 1);
    double *g = v_add(&t, v_times(&t, f, 0.5, 1), v_times(&t, v_pow(&t, f, -1, 1), 10, 1), 1);
    backward(&t, g);
    check_near("micrograd's second expression: g", 24.70408163265306, *g, 1e-15);
    check_near("micrograd's second expression: dg/da", 138.83381924198252, *grad(&t, a), 1e-15);
    check_near("micrograd's second expression: dg/db", 645.5772594752186, *grad(&t, b), 1e-15);

    // A neuron: tanh of two inputs weighed, tanh made of exponentials. At this bias its output is the root of 1/2.
    start();
    double *in = v_new(&t, 2), *w = v_new(&t, 2), *bias = value(6.881373587019543);
    in[0] = 2, in[1] = 0, w[0] = -3, w[1] = 1;
    double *e = v_exp(&t, v_times(&t, v_add(&t, v_dot(&t, in, w, 2), bias, 1), 2, 1), 1);
    double *out = v_div(&t, v_plus(&t, e, -1, 1), v_plus(&t, e, 1, 1), 1);
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
    Tape mine;
    check(tape_init(&mine, 200, 100), "a small tape");
    double *w = v_new(&mine, 3), m[3] = {0}, v[3] = {0}, loss = 0, first = 0;
    w[0] = w[1] = w[2] = 0;
    tape_mark(&mine);
    for (size_t step = 0; step < 300; step++) {
        double *sum = NULL;
        tape_drop(&mine);
        for (int i = 0; i < 4; i++) {
            double *x = v_new(&mine, 3);
            x[0] = i & 1, x[1] = i >> 1, x[2] = 1;
            double *score = v_times(&mine, v_dot(&mine, w, x, 3), i ? -1 : 1, 1);
            double *surprise = v_log(&mine, v_plus(&mine, v_exp(&mine, score, 1), 1, 1), 1);
            sum = sum ? v_add(&mine, sum, surprise, 1) : surprise;
        }
        backward(&mine, sum);
        adam(w, grad(&mine, w), m, v, 3, step, 0.1, 0.9, 0.999, 1e-8);
        loss = *sum;
        first = step ? first : loss;
    }
    check_near("a neuron before it has learned: the loss", 4 * log(2), first, 1e-15);
    check(loss < 0.2 && w[0] > 3 && w[1] > 3 && w[2] < -1, "a neuron learns or: expected a loss below 0.2, saw %g", loss);
    tape_free(&mine);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The tape.
 */
static void test_tape(void)
{
    // Results in the middle of the tape: what comes after them has no part in it, not even as 0 times infinity.
    start();
    double *a = v_new(&t, 3), *b = v_new(&t, 3), *zero = value(0);
    for (int i = 0; i < 3; i++) {
        a[i] = i + 1, b[i] = 10 * (i + 1);
    }
    double *c = v_mul(&t, a, b, 3);
    double *y = v_mul(&t, c + 1, c + 2, 1);
    double *late = v_mul(&t, v_log(&t, zero, 1), y, 1);
    v_mul(&t, late, a, 1);
    backward(&t, y);
    check_all_near("from the middle: gradient", (double[]){0, 20 * 90, 40 * 30}, grad(&t, a), 3, 0);
    check_near("from the middle: what comes later", 0, *grad(&t, zero), 0);
    backward(&t, c + 1);
    check_all_near("from one of several neighbours in the middle", (double[]){0, 20, 0}, grad(&t, a), 3, 0);
    check_near("from one of several neighbours: what comes later", 0, *grad(&t, zero), 0);
    backward(&t, a + 2);
    check_all_near("from a leaf: itself", (double[]){0, 0, 1}, grad(&t, a), 3, 0);
    check_all_near("from a leaf: nothing else", (double[]){0, 0, 0}, grad(&t, b), 3, 0);

    // The same with a matrix that is used before and after the result.
    start();
    Matrix w = {.rows = 2, .cols = 2, .data = v_new(&t, 4)};
    double *x = v_new(&t, 2), *bad = v_new(&t, 2);
    memcpy(w.data, (double[]){1, 2, 3, 4}, 4 * sizeof(double));
    x[0] = 5, x[1] = 7, bad[0] = INFINITY, bad[1] = INFINITY;
    y = v_sum(&t, v_linear(&t, v_new(&t, 2), x, &w), 2);
    double *later = v_linear(&t, v_new(&t, 2), bad, &w);
    v_mul(&t, v_sum(&t, later, 2), y, 1);
    backward(&t, y);
    check_all_near("a matrix used after the result: its gradient", (double[]){5, 7, 5, 7}, grad(&t, w.data), 4, 0);
    check_all_near("a matrix used after the result: the input's", (double[]){4, 6}, grad(&t, x), 2, 0);

    // A second backward begins anew; values before the mark add up.
    Tape mine;
    check(tape_init(&mine, 100, 100), "a small tape for the mark");
    double *p = v_value(&mine, 3);
    *grad(&mine, p) = 0;
    tape_mark(&mine);
    double *r = v_mul(&mine, p, p, 1);
    backward(&mine, r);
    backward(&mine, r);
    check_near("twice backward: before the mark, added", 12, *grad(&mine, p), 0);
    check_near("twice backward: after it, anew", 1, *grad(&mine, r), 0);
    size_t n_values = mine.n_values, n_lines = mine.n_lines;
    tape_drop(&mine);
    check_near("dropped: what stood before the mark stays", 3, *p, 0);
    check_near("dropped: its gradient too", 12, *grad(&mine, p), 0);
    double *again = v_mul(&mine, p, p, 1);
    check(again == r && mine.n_values == n_values && mine.n_lines == n_lines, "dropped: the room is used again");
    bool fits = true;
    for (int i = 0; i < 100000; i++) {
        tape_drop(&mine);
        double *s = v_exp(&mine, v_times(&mine, p, 0.5, 1), 1);
        fits = fits && mine.n_lines == 2 && s < mine.data + 100;
    }
    check(fits, "a hundred thousand passes fit where one does");

    // A matrix that was used before the mark.
    tape_free(&mine);
    check(tape_init(&mine, 100, 100), "a small tape with a matrix");
    Matrix old = {.rows = 1, .cols = 2, .data = v_new(&mine, 2)};
    double *u = v_new(&mine, 2);
    old.data[0] = 2, old.data[1] = 3, u[0] = 5, u[1] = 7;
    v_linear(&mine, v_new(&mine, 1), u, &old);
    tape_mark(&mine);
    y = v_times(&mine, v_linear(&mine, v_new(&mine, 1), u, &old), 10, 1);
    backward(&mine, y);
    check_all_near("a matrix used before the mark and after it", (double[]){50, 70}, grad(&mine, old.data), 2, 0);
    tape_free(&mine);

    // One value in ten thousand products and sums.
    start();
    x = value(1.5);
    double *sum = v_times(&t, x, 1, 1);
    for (int i = 0; i < 10000; i++) {
        sum = v_add(&t, sum, i % 2 ? v_mul(&t, x, x, 1) : x, 1);
    }
    backward(&t, sum);
    check_near("reuse: value", 1.5 + 5000 * 1.5 + 5000 * 2.25, *sum, 0);
    check_near("reuse: gradient", 1 + 5000 + 5000 * 3.0, *grad(&t, x), 0);
    start();

    // Each operation has a name, for people.
    bool named = true;
    for (int i = 0; i < N_OPS; i++) {
        named = named && op_names[i] && op_names[i][0];
        for (int j = 0; named && j < i; j++) {
            named = strcmp(op_names[i], op_names[j]) != 0;
        }
    }
    check(named, "every operation has a name of its own");

    check(!tape_init(&mine, SIZE_MAX / 2, 10), "a tape that no memory holds: values");
    check(!tape_init(&mine, 10, SIZE_MAX / 2), "a tape that no memory holds: lines");
    tape_free(&mine);
    check(mine.data == NULL && mine.lines == NULL, "a tape is freed twice without harm");
}

static void test_ten_million(void)
{
    const size_t n = 10000000;
    Tape big;
    if (!tape_init(&big, n + 100, n + 100)) {
        printf("skip - ten million nodes: not enough memory\n");
        return;
    }
    double *a = v_value(&big, 0.5), *sum = a;
    for (size_t i = 0; i < n; i++) {
        sum = v_add(&big, sum, a, 1);
    }
    backward(&big, sum);
    check_size("ten million nodes: lines", n, big.n_lines);
    check_near("ten million nodes: value", 0.5 * (double)n + 0.5, *sum, 0);
    check_near("ten million nodes: gradient", (double)n + 1, *grad(&big, a), 0);
    tape_free(&big);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Fused against atomic: each operation is built both ways from the same inputs, and must give the same values and the
 * same gradients. The inputs are slices of a buffer in which everything else is not a number, as is the memory that
 * the results go to; so whatever is read or written outside its slice shows.
 */
enum { N_INPUTS = 8192 };

typedef struct {
    size_t n, m, stride, offset;
    double size;                     // the inputs' scale
} Sizes;

typedef double *Build(const Sizes *s, size_t *n_out);

static double inputs[N_INPUTS], *buffer, *weights;
static Matrix matrices[2];

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

// A result's place inside a larger vector of the tape.
static double *place(const Sizes *s, size_t n)
{
    double *larger = v_new(&t, n + 7);
    for (size_t i = 0; i < n + 7; i++) {
        larger[i] = 77;
    }
    return larger + s->offset;
}

static double *A(const Sizes *s) { return slice(s->offset, s->n, s->size); }
static double *B(const Sizes *s) { return slice(1001 + s->offset, s->n, s->size); }
static double *P(const Sizes *s) { return positive(2000 + s->offset, s->n); }

static double *build_add(const Sizes *s, size_t *n) { *n = s->n; return v_add(&t, A(s), B(s), s->n); }
static double *build_mul(const Sizes *s, size_t *n) { *n = s->n; return v_mul(&t, A(s), B(s), s->n); }
static double *build_pow(const Sizes *s, size_t *n) { *n = s->n; return v_pow(&t, P(s), -0.5, s->n); }
static double *build_square(const Sizes *s, size_t *n) { *n = s->n; return v_pow(&t, A(s), 2, s->n); }
static double *build_log(const Sizes *s, size_t *n) { *n = s->n; return v_log(&t, P(s), s->n); }
static double *build_exp(const Sizes *s, size_t *n) { *n = s->n; return v_exp(&t, A(s), s->n); }
static double *build_relu(const Sizes *s, size_t *n) { *n = s->n; return v_relu(&t, A(s), s->n); }
static double *build_plus(const Sizes *s, size_t *n) { *n = s->n; return v_plus(&t, A(s), 0.3, s->n); }
static double *build_times(const Sizes *s, size_t *n) { *n = s->n; return v_times(&t, A(s), -1.7, s->n); }
static double *build_neg(const Sizes *s, size_t *n) { *n = s->n; return v_neg(&t, A(s), s->n); }
static double *build_sub(const Sizes *s, size_t *n) { *n = s->n; return v_sub(&t, A(s), B(s), s->n); }
static double *build_div(const Sizes *s, size_t *n) { *n = s->n; return v_div(&t, A(s), P(s), s->n); }
static double *build_sum(const Sizes *s, size_t *n) { *n = 1; return v_sum(&t, A(s), s->n); }
static double *build_dot(const Sizes *s, size_t *n) { *n = 1; return v_dot(&t, A(s), B(s), s->n); }
static double *build_softmax(const Sizes *s, size_t *n) { *n = s->n; return v_softmax(&t, A(s), s->n); }
static double *build_rmsnorm(const Sizes *s, size_t *n) { *n = s->n; return v_rmsnorm(&t, A(s), 1e-5, s->n); }

static double *build_scale(const Sizes *s, size_t *n)
{
    *n = s->n;
    return v_scale(&t, A(s), slice(1503, 1, 1), s->n);
}

// Operands that are the same, or share values.
static double *build_scale_by_own(const Sizes *s, size_t *n)
{
    *n = s->n;
    double *a = A(s);
    return v_scale(&t, a, a + s->n / 2, s->n);
}

static double *build_dot_with_itself(const Sizes *s, size_t *n)
{
    *n = 1;
    double *a = A(s);
    return v_dot(&t, a, a, s->n);
}

static double *build_overlap(const Sizes *s, size_t *n)
{
    *n = s->n;
    double *a = slice(s->offset, s->n + 1, s->size);
    return v_add(&t, v_mul(&t, a, a + 1, s->n), v_sub(&t, a + 1, a, s->n), s->n);
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
    return v_dots(&t, slice(s->offset, s->m, s->size), rows(s), s->n, s->stride, s->m, 0.6);
}

static double *build_weighted_sum(const Sizes *s, size_t *n)
{
    *n = s->m;
    double *out = place(s, s->m);
    v_weighted_sum(&t, out, slice(s->offset, s->n, s->size), rows(s), s->n, s->stride, s->m);
    if (out[s->m] != 77 || (s->offset && out[-1] != 77)) {
        out[0] = NAN;
    }
    return out;
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
        v_linear(&t, out + use * s->n, slice(s->offset + use * (s->m + 1), s->m, s->size), &matrices[0]);
    }
    if (out[*n] != 77 || (s->offset && out[-1] != 77)) {
        out[0] = NAN;
    }
    return out;
}

// Two square matrices that follow each other again and again; and what the second gets is not only the first's.
static double *build_deep(const Sizes *s, size_t *n)
{
    double *x = A(s);
    for (size_t i = 0; i < 2; i++) {
        matrices[i].rows = matrices[i].cols = s->n;
        matrices[i].data = slice(3000 + 2500 * i + s->offset, s->n * s->n, 0.3);
    }
    for (size_t use = 0; use < s->stride; use++) {
        double *y = v_relu(&t, v_linear(&t, v_new(&t, s->n), x, &matrices[0]), s->n);
        x = v_add(&t, x, v_linear(&t, v_new(&t, s->n), y, &matrices[1]), s->n);
    }
    *n = s->n;
    return x;
}

// A matrix that is itself a result.
static double *build_made_matrix(const Sizes *s, size_t *n)
{
    size_t size = s->n * s->n;
    matrices[0].rows = matrices[0].cols = s->n;
    matrices[0].data = v_mul(&t, slice(3000, size, s->size), slice(5500, size, s->size), size);
    double *x = A(s);
    double *y = v_linear(&t, v_new(&t, s->n), x, &matrices[0]);
    *n = s->n;
    return v_mul(&t, v_linear(&t, v_new(&t, s->n), y, &matrices[0]), matrices[0].data, s->n);
}

// Builds one graph one way; its values and the inputs' gradients go to the arrays.
static size_t run_one(Build *build, const Sizes *s, bool atomic, double *values, double *gradients)
{
    tape_drop(&t);
    t.atomic = atomic;
    for (size_t i = 0; i < N_INPUTS; i++) {
        buffer[i] = NAN;
        grad(&t, buffer)[i] = 0.5;
    }
    for (size_t i = t.n_values; i < t.n_values + 5000; i++) {
        t.data[i] = NAN;
        grad(&t, t.data)[i] = NAN;
    }
    size_t n_out = 0;
    double *out = build(s, &n_out);
    double *result = v_dot(&t, out, weights, n_out);
    memcpy(values, out, n_out * sizeof(double));
    backward(&t, result);
    for (size_t i = 0; i < N_INPUTS; i++) {
        gradients[i] = isnan(buffer[i]) && grad(&t, buffer)[i] != 0.5 ? NAN : grad(&t, buffer)[i];
    }
    t.atomic = false;
    return n_out;
}

static bool both_ways(const char *what, Build *build, const Sizes *s)
{
    static double values[2][N_INPUTS], gradients[2][N_INPUTS];
    char text[128] = "";
    size_t n = run_one(build, s, false, values[0], gradients[0]);
    run_one(build, s, true, values[1], gradients[1]);
    const char *part = "value";
    bool ok = all_near(values[1], values[0], n, 1e-12, text, sizeof text);
    for (size_t i = 0; ok && i < n; i++) {
        ok = !isnan(values[0][i]);
    }
    if (ok) {
        part = "gradient";
        ok = all_near(gradients[1], gradients[0], N_INPUTS, 1e-12, text, sizeof text);
    }
    if (!ok) {
        check(false, "%s, n %zu, m %zu, stride %zu, offset %zu, size %g: %s %s", what, s->n, s->m, s->stride, s->offset,
              s->size, part, *text ? text : "is not a number");
    }
    return ok;
}

static void test_fused_runs(const char *what, Build *build, double size)
{
    bool ok = true;
    for (size_t n = 1; ok && n <= 40; n++) {
        for (size_t offset = 0; ok && offset < 4; offset++) {
            ok = both_ways(what, build, &(Sizes){.n = n, .offset = offset, .size = size, .stride = 3});
        }
    }
    if (ok) {
        check(true, "%s: fused and atomic agree for 1 to 40 values, inputs of size %g", what, size);
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
                ok = both_ways(what, build, &(Sizes){sizes[i], sizes[j], stride, offset, 1});
            }
        }
    }
    if (ok) {
        check(true, "%s: fused and atomic agree for 1 to 33 rows of 1 to 33", what);
    }
}

static void test_fused(void)
{
    static const struct { const char *name; Build *build; } runs[] = {
        {"add", build_add}, {"mul", build_mul}, {"pow -0.5", build_pow}, {"pow 2", build_square}, {"log", build_log},
        {"exp", build_exp}, {"relu", build_relu}, {"plus", build_plus}, {"times", build_times}, {"neg", build_neg},
        {"sub", build_sub}, {"div", build_div}, {"sum", build_sum}, {"dot", build_dot}, {"scale", build_scale},
        {"softmax", build_softmax}, {"rmsnorm", build_rmsnorm}, {"scale by one of its own", build_scale_by_own},
        {"dot with itself", build_dot_with_itself}, {"operands that overlap", build_overlap},
        {"matrices that follow each other", build_deep}, {"a matrix that is a result", build_made_matrix},
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
    test_fused_rows("dots", build_dots, 0);
    test_fused_rows("weighted sum", build_weighted_sum, 0);
    test_fused_rows("linear, used once to five times", build_linear, 1);
    bool ok = true;
    for (size_t uses = 30; ok && uses <= 67; uses++) {
        ok = both_ways("linear, used many times", build_linear, &(Sizes){5, 6, uses, uses % 4, 1});
    }
    if (ok) {
        check(true, "linear: fused and atomic agree for 30 to 67 uses of one matrix");
    }
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
            ok = both_ways("softmax with minus infinity", build_softmax, &(Sizes){.n = n, .size = 1});
        }
    }
    if (ok) {
        check(true, "softmax with minus infinity: fused and atomic agree");
    }
    start();
    double *a = v_new(&t, 4);
    a[0] = 1, a[1] = INFINITY, a[2] = INFINITY, a[3] = -INFINITY;
    check_near("softmax of one value, with infinities beside it", 1, *v_softmax(&t, a, 1), 0);
    a[0] = NAN;
    check(isnan(v_softmax(&t, a, 2)[0]), "softmax of what is not a number is not a number");
}

// The exponentials of softmax against the C library's, to a few units of the last place, down to the smallest.
static void test_exponentials(void)
{
    double worst = 0, at = 0;
    for (double x = -745; x <= 0; x += 0.0917) {
        start();
        double *a = v_new(&t, 5);
        a[0] = a[4] = 0, a[1] = x, a[2] = x / 2, a[3] = x - 1e-3;
        double *p = v_softmax(&t, a, 5);
        for (int i = 1; i < 4; i++) {
            double expected = exp(a[i]) * p[0];
            double error = fabs(p[i] - expected) / fmax(expected, 1e-307);
            if (!(error <= worst)) {
                worst = error, at = a[i];
            }
        }
    }
    check(worst < 2e-15, "exponentials in softmax: expected an error below 2e-15, saw %.3g at %.17g", worst, at);
    start();
}

// Without recording: values, and not a line.
static void test_not_recording(void)
{
    start();
    double *a = v_new(&t, 6), *b = v_new(&t, 6), *out = v_new(&t, 3);
    Matrix w = {.rows = 3, .cols = 2, .data = b};
    for (int i = 0; i < 6; i++) {
        a[i] = i + 1, b[i] = 0.5;
    }
    double *before = v_linear(&t, v_new(&t, 3), a, &w);
    double *result = v_sum(&t, before, 3);
    for (int atomic = 0; atomic < 2; atomic++) {
        size_t n_lines = t.n_lines;
        t.recording = false;
        t.atomic = atomic;
        v_add(&t, a, b, 6), v_mul(&t, a, b, 6), v_pow(&t, a, 2, 6), v_log(&t, a, 6), v_exp(&t, a, 6), v_relu(&t, a, 6);
        v_plus(&t, a, 1, 6), v_times(&t, a, 2, 6), v_neg(&t, a, 6), v_sub(&t, a, b, 6), v_div(&t, a, b, 6);
        v_scale(&t, a, b, 6), v_sum(&t, a, 6), v_dot(&t, a, b, 6), v_softmax(&t, a, 6), v_rmsnorm(&t, a, 1, 6);
        v_dots(&t, a, b, 2, 3, 3, 1), v_weighted_sum(&t, out, a, b, 2, 3, 3), v_linear(&t, out, a, &w);
        t.recording = true;
        t.atomic = false;
        check_size(atomic ? "not recording, atomic: lines written" : "not recording: lines written", 0,
                   t.n_lines - n_lines);
        check_all_near("not recording: values all the same", (double[]){1.5, 1.5, 1.5}, out, 3, 0);
    }
    double *after = v_linear(&t, v_new(&t, 3), a, &w);
    result = v_add(&t, result, v_sum(&t, after, 3), 1);
    backward(&t, result);
    check_all_near("a use that was not recorded has no gradient", (double[]){2, 4, 2, 4, 2, 4}, grad(&t, b), 6, 0);
    start();
}

// Passes with other lines in other places: what was known of a matrix in the last pass must not count in this one.
static void test_passes(void)
{
    Tape both[2];
    Matrix w[2];
    double *p[2];
    bool ok = true;
    for (int way = 0; way < 2; way++) {
        ok = tape_init(&both[way], 20000, 20000) && ok;
        both[way].atomic = way;
        p[way] = v_new(&both[way], 25 + 5);
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
                x = v_times(tape, x, 0.9, 5);
            }
            for (int k = 0; k < pass % 5; k++) {
                x = v_linear(tape, v_new(tape, 5), x, &w[way]);
            }
            backward(tape, v_sum(tape, x, 5));
        }
        ok = all_near(grad(&both[1], p[1]), grad(&both[0], p[0]), 30, 1e-12, text, sizeof text);
    }
    check(ok, "two hundred passes of different lengths%s", text);
    tape_free(&both[0]);
    tape_free(&both[1]);
}

// Strands, read side by side, against the same lines in plain order: the result, and the gradients. In most
// cases the strands are not quite alike, so that there is nothing to be gained and everything to be got wrong.
enum Strands {
    ALIKE, MANY, ONE, LONGER_FIRST, LONGER_LAST, OTHER_OP, OTHER_MATRIX, NOT_JOINED, TWICE, WITHIN, LATER, N_CASES
};

static double *strands(Tape *tape, enum Strands which, Matrix *w, double *x, bool marked)
{
    if (which == TWICE) {
        double *once = strands(tape, ALIKE, w, x, marked);
        return v_add(tape, once, strands(tape, ALIKE, w, x, marked), 1);
    }
    size_t n = which == ONE ? 1 : which == MANY ? 40 : 7;
    double *place = v_new(tape, 6), *keys = v_new(tape, n * 6), *sum = v_value(tape, 0), *within = NULL;
    for (size_t s = 0; s < n; s++) {
        if (marked) {
            tape_strand(tape);
        }
        double *in = v_rmsnorm(tape, v_add(tape, x + s, x + 6, 6), 1e-5, 6);
        v_linear(tape, keys + s * 6, in, &w[which == OTHER_MATRIX && s == 3]);
        double *query = v_relu(tape, v_linear(tape, v_new(tape, 6), in, &w[0]), 6);
        if ((which == LONGER_FIRST && s == 1) || (which == LONGER_LAST && s == n - 1)) {
            query = v_times(tape, query, 0.5, 6);
        }
        double *out = v_new(tape, 6);
        for (size_t h = 0; h < 6; h += 3) {
            double *share = v_softmax(tape, v_dots(tape, query + h, keys + h, s + 1, 6, 3, 0.7), s + 1);
            v_weighted_sum(tape, out + h, share, keys + h, s + 1, 6, 3);
        }
        double *one = which == OTHER_OP && s == 2 ? v_exp(tape, out, 1) : v_relu(tape, out, 1);
        double *two = v_mul(tape, v_scale(tape, v_plus(tape, out, 2, 6), one, 6), v_pow(tape, query, 2, 6), 6);
        double *three = v_add(tape, v_sum(tape, two, 6), v_dot(tape, two, out, 6), 1);
        sum = v_add(tape, sum, v_neg(tape, v_log(tape, v_exp(tape, three, 1), 1), 1), 1);
        within = s == 1 ? sum : within;
    }
    if (marked && which != NOT_JOINED) {
        tape_join(tape);
    }
    double *result = which == WITHIN ? within : v_times(tape, sum, 1.0 / 7, 1);
    if (which == LATER) {
        v_linear(tape, place, x, &w[0]);         // after the result, and so without a part in it
    }
    return result;
}

static void test_strands(void)
{
    static const char *const names[N_CASES] = {"alike", "many", "only one", "one of them longer", "the last one longer",
                                               "another operation", "another matrix", "not joined", "twice",
                                               "the result within", "a later line that fills an earlier place"};
    enum { PARAMETERS = 2 * 36 + 48 };
    Tape both[2];
    double *p[2];
    bool ok = true;
    for (int way = 0; way < 2; way++) {
        ok = tape_init(&both[way], 20000, 20000) && ok;
        p[way] = v_new(&both[way], PARAMETERS);
        tape_mark(&both[way]);
    }
    for (int i = 0; i < PARAMETERS; i++) {
        p[0][i] = p[1][i] = any_number();
    }
    for (int pass = 0; ok && pass < 2 * N_CASES; pass++) {
        char text[128] = "";
        double *result[2];
        for (int way = 0; way < 2; way++) {
            Matrix w[2] = {{.rows = 6, .cols = 6, .data = p[way]}, {.rows = 6, .cols = 6, .data = p[way] + 36}};
            tape_drop(&both[way]);
            result[way] = strands(&both[way], (enum Strands)(pass % N_CASES), w, p[way] + 72, way == 0);
            backward(&both[way], result[way]);
        }
        ok = all_near(result[1], result[0], 1, 1e-13, text, sizeof text) &&
             all_near(grad(&both[1], p[1]), grad(&both[0], p[0]), PARAMETERS, 1e-12, text, sizeof text);
        check(ok, "strands side by side, %s%s", names[pass % N_CASES], text);
    }
    tape_free(&both[0]);
    tape_free(&both[1]);
}

// Strands that multiply what is not theirs alone, a mark behind strands, and a line that is not kept within them.
static void test_strands_of_products(void)
{
    static const char *const kinds[] = {"all of one input", "all of one input into earlier places",
                                        "each of what the last has made", "before a mark", "not kept"};
    enum { SHARED, PLACED, CHAIN, MARK, UNKEPT, N_KINDS, MOST = 20 };
    for (int kind = 0; kind < N_KINDS; kind++) {
        bool ok = true;
        char text[128] = "";
        for (size_t size = 1; size <= MOST; size++) {
            for (size_t n = 2; ok && n <= 5; n++) {
                double expected[MOST * MOST + MOST + 1] = {0};
                for (int way = 0; ok && way < 2; way++) {
                    Tape tape;
                    if (!tape_init(&tape, 2000, 100)) {
                        check(false, "expected memory for a tape, saw none");
                        return;
                    }
                    double *places = v_new(&tape, n * size), *p = v_new(&tape, size * size + size);
                    double *x = p + size * size, *h = x, *sum = v_value(&tape, 0);
                    Matrix w = {.rows = size, .cols = size, .data = p};
                    for (size_t i = 0; i < size * size + size; i++) {
                        p[i] = sin((double)i);
                    }
                    for (size_t s = 0; s < n; s++) {
                        if (way) {
                            tape_strand(&tape);
                        }
                        double *y = v_linear(&tape, kind == PLACED ? places + s * size : v_new(&tape, size), h, &w);
                        h = kind == CHAIN ? y : x;
                        sum = v_add(&tape, sum, v_sum(&tape, y, size), 1);
                    }
                    tape.recording = kind != UNKEPT;
                    if (tape.recording) {
                        tape_join(&tape);
                    }
                    double *result = v_times(&tape, sum, 2, 1);
                    tape.recording = true;
                    if (kind == MARK) {
                        tape_mark(&tape);
                        result = v_sum(&tape, x, size);
                    }
                    backward(&tape, result);
                    double seen[MOST * MOST + MOST + 1];
                    memcpy(seen, grad(&tape, p), (size * size + size) * sizeof *seen);
                    seen[size * size + size] = *result;
                    if (way) {
                        ok = all_near(expected, seen, size * size + size + 1, 1e-12, text, sizeof text);
                    } else {
                        memcpy(expected, seen, (size * size + size + 1) * sizeof *seen);
                    }
                    tape_free(&tape);
                }
            }
        }
        check(ok, "strands of products, %s%s", kinds[kind], text);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Adam against the formula, for all sizes up to 70, over several steps. Behind the last parameter nothing changes.
 */
static bool adam_agrees(size_t n, double scale, double lr, double beta1, double beta2, double eps)
{
    enum { ROOM = 80 };
    double p[ROOM], g[ROOM], m[ROOM], v[ROOM], p2[ROOM], m2[ROOM], v2[ROOM];
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
                p2[i] -= lr * m_hat / (sqrt(v_hat) + eps);
            }
        }
        adam(p, g, m, v, n, step, lr, beta1, beta2, eps);
        bool ok = all_near(p2, p, ROOM, 1e-12, text, sizeof text);
        for (size_t i = 0; ok && i < ROOM; i++) {      // sums of large gradients may cancel: the scale is theirs
            ok = fabs(m2[i] - m[i]) <= 1e-12 * fmax(scale, 1) && fabs(v2[i] - v[i]) <= 1e-12 * fmax(scale * scale, 1);
            snprintf(text, sizeof text, "[%zu]: expected means %g and %g, saw %g and %g", i, m2[i], v2[i], m[i], v[i]);
        }
        for (size_t i = 0; ok && i < ROOM; i++) {
            ok = g[i] == (i < n ? 0 : 9);
            snprintf(text, sizeof text, "[%zu]: a gradient afterwards: saw %g", i, g[i]);
        }
        if (!ok) {
            check(false, "Adam, %zu parameters, gradients of size %g, step %zu %s", n, scale, step, text);
            return false;
        }
    }
    return true;
}

static void test_adam(void)
{
    static const double scales[] = {1, 1e-6, 1e-10, 1e-18, 1e-30, 1e9, 1e17, 1e18, 1e19, 1e20, 1e60, 1e100, 1e140};
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
        if (adam_agrees(64, tiny[i], 1, 0.85, 0.99, 1e-8) && adam_agrees(64, tiny[i], 1, 0.9, 0.999999, 1e-8) &&
            adam_agrees(64, tiny[i], 1, 0.9, 0.999999999999, 1e-8) && adam_agrees(64, tiny[i], 1, 0.9, 0.9, 1e-14) &&
            adam_agrees(64, tiny[i], 1, 0.9, 0.9, 1e-20)) {
            check(true, "Adam: gradients of size %g beside every eps", tiny[i]);
        }
    }
    // Parameters that no gradient reaches stay where they are, however large the steps of the others.
    static const double rates[] = {1e9, 1e70, 1e80, 1e155, 1e200, 1e250, 1e300};
    for (size_t k = 0; k < sizeof rates / sizeof rates[0]; k++) {
        double still[32], none[32] = {0}, first[32] = {0}, second[32] = {0}, expected[32];
        char what[80];
        for (int i = 0; i < 32; i++) {
            still[i] = expected[i] = any_number();
        }
        adam(still, none, first, second, 32, 0, rates[k], 0.85, 0.99, 1e-8);
        snprintf(what, sizeof what, "Adam: without gradients nothing moves, at a rate of %g: ", rates[k]);
        check_all_near(what, expected, still, 32, 0);
    }
    double p[32] = {0}, g[32], m[32] = {0}, v[32] = {0};
    bool zero = true;
    for (int i = 0; i < 32; i++) {
        g[i] = i == 3 ? INFINITY : i == 9 ? NAN : 1;
    }
    adam(p, g, m, v, 32, 0, 0.01, 0.9, 0.99, 1e-8);
    for (int i = 0; i < 32; i++) {
        zero = zero && g[i] == 0;
    }
    check(zero, "Adam sets all gradients to zero, infinite ones too");
    check_near("Adam: beside an infinite gradient", -0.01, p[2], 1e-9);
}

int main(void)
{
    if (!tape_init(&t, 400000, 400000)) {
        check(false, "expected memory for a tape, saw none");
        return finish();
    }
    buffer = v_new(&t, N_INPUTS);
    weights = v_new(&t, N_INPUTS);
    for (size_t i = 0; i < N_INPUTS; i++) {
        weights[i] = any_number();
    }
    tape_mark(&t);
    test_atoms();
    test_expressions();
    test_learning();
    test_tape();
    test_ten_million();
    test_fused();
    test_infinities();
    test_exponentials();
    test_not_recording();
    test_passes();
    test_strands();
    test_strands_of_products();
    test_adam();
    tape_free(&t);
    return finish();
}
