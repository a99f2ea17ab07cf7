/* The engine: each operation's value and derivative, the tape and its memory, and each operation computed in every way that
 * there is. The definitions that entries stand in for, linear() and the like, are those of microgpt.c.
 */
// takes long
// also built with -DAUTOGRAD_PLAIN
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/engine/faster.h"
#include "../test.h"

#include <setjmp.h>

static Tape t;

static void start(void)
{
    tape_drop(&t);
    t.fused = FUSED;
}

static double *dot_of(double *a, double *b, size_t n)
{
    return ag_dot(&t, ag_vector(&t, 1), a, b, n);
}

/* ------------------------------------------------------------------------------------------------
 * Atoms: the value and the derivatives of each, at points where they are known.
 */
static double *u, *v;  // one value each

static void at(double u_value, double v_value)
{
    start();
    u = ag_scalar(&t, u_value);
    v = ag_scalar(&t, v_value);
}

static void known(const char *what, double *y, double value, double by_u, double by_v)
{
    double expected[] = {value, by_u, by_v};
    backward(&t, y);
    check_all_near(what, expected, (double[]){*y, *grad(&t, u), *grad(&t, v)}, 3, 1e-15);
}

static void test_atoms(void)
{
    at(3, 4);
    known("add", ag_add(&t, u, v, 1), 7, 1, 1);
    known("sub", ag_sub(&t, u, v, 1), -1, 1, -1);
    known("mul", ag_mul(&t, u, v, 1), 12, 4, 3);
    known("div", ag_div(&t, u, v, 1), 0.75, 0.25, -0.1875);
    known("pow 2", ag_pow(&t, u, 2, 1), 9, 6, 0);
    known("pow -0.5", ag_pow(&t, v, -0.5, 1), 0.5, 0, -0.0625);
    known("add const", ag_add_const(&t, u, 4, 1), 7, 1, 0);
    known("mul const", ag_mul_const(&t, u, 4, 1), 12, 4, 0);
    known("neg", ag_neg(&t, u, 1), -3, -1, 0);
    known("relu above 0", ag_relu(&t, u, 1), 3, 1, 0);
    known("copy", ag_copy(&t, ag_vector(&t, 1), u, 1), 3, 1, 0);
    known("u + u", ag_add(&t, u, u, 1), 6, 2, 0);
    known("u * u", ag_mul(&t, u, u, 1), 9, 6, 0);
    known("u / u", ag_div(&t, u, u, 1), 1, 0, 0);
    at(2, 1);
    known("log", ag_log(&t, u, 1), 0.6931471805599453, 0.5, 0);
    known("exp", ag_exp(&t, v, 1), 2.718281828459045, 0, 2.718281828459045);
    at(-2, 0);
    known("pow 3 of a negative number", ag_pow(&t, u, 3, 1), -8, 12, 0);
    known("pow 2 of 0", ag_pow(&t, v, 2, 1), 0, 0, 0);
    known("relu below 0", ag_relu(&t, u, 1), 0, 0, 0);
    known("relu at 0", ag_relu(&t, v, 1), 0, 0, 0);
}

static double next_number(void *context) { return *(double *)context += 0.5; }

static void test_leaves(void)
{
    start();
    double from[] = {1, -2, 3.5}, last = 1;
    double *x = ag_input(&t, from, 3), *drawn = ag_vector(&t, 5);
    from[0] = 7;
    drawn[4] = 77;
    ag_fill(drawn, 4, next_number, &last);
    check_all_near("values that are drawn, in order", (double[]){1.5, 2, 2.5, 3, 77}, drawn, 5, 0);
    check_size("leaves make no entry", 0, t.n_entries);
    backward(&t, ag_sum(&t, x, 3));
    ag_clear_grad(&t, x, 2);
    check_all_near("gradients that are cleared", (double[]){0, 0, 1}, grad(&t, x), 3, 0);
    check_all_near("an input is a copy", (double[]){1, -2, 3.5}, x, 3, 0);
    double *both = ag_add_to_rows(&t, ag_input(&t, (double[]){1, 2, 3, 4, 5, 6}, 6), x, 2, 3);
    check_all_near("a bias", (double[]){2, 0, 6.5, 5, 3, 9.5}, both, 6, 0);
}

/* ------------------------------------------------------------------------------------------------
 * The tape.
 */
// Results in the middle of the tape: what comes after them has no part in it.
static void test_middle(void)
{
    start();
    double *a = ag_input(&t, (double[]){1, 2, 3}, 3), *b = ag_input(&t, (double[]){10, 20, 30}, 3);
    double *two = ag_scalar(&t, 2), *c = ag_mul(&t, a, b, 3), *y = ag_mul(&t, c + 1, c + 2, 1);
    ag_mul(&t, ag_mul(&t, ag_log(&t, two, 1), y, 1), a, 1);
    backward(&t, y);
    check_all_near("from the middle", (double[]){0, 20 * 90, 40 * 30}, grad(&t, a), 3, 0);
    check_near("from the middle: what comes later", 0, *grad(&t, two), 0);
    backward(&t, c + 1);
    check_all_near("from one of several neighbors", (double[]){0, 20, 0}, grad(&t, a), 3, 0);
    backward(&t, a + 2);
    check_all_near("from a leaf: itself", (double[]){0, 0, 1}, grad(&t, a), 3, 0);
    check_all_near("from a leaf: nothing else", (double[]){0, 0, 0}, grad(&t, b), 3, 0);
    start();
    Matrix w = {.rows = 2, .cols = 2, .data = ag_input(&t, (double[]){1, 2, 3, 4}, 4)};
    double *x = ag_input(&t, (double[]){5, 7}, 2);
    y = ag_sum(&t, ag_linear(&t, x, &w), 2);
    ag_mul(&t, ag_sum(&t, ag_linear(&t, a, &w), 2), y, 1);
    backward(&t, y);
    check_all_near("a matrix used after the result", (double[]){5, 7, 5, 7}, grad(&t, w.data), 4,
                   0);
    check_all_near("and its input", (double[]){4, 6}, grad(&t, x), 2, 0);
}

// A second backward begins anew; gradients of values before the mark add up.
static void test_mark(void)
{
    Tape mine;
    check(tape_init(&mine, 100), "a small tape for the mark");
    double *p = ag_input(&mine, (double[]){3, 2}, 2);
    Matrix w = {.rows = 1, .cols = 2, .data = p};
    ag_clear_grad(&mine, p, 2);
    ag_linear(&mine, p, &w);  // before the mark: no part of what follows
    tape_mark(&mine);
    size_t kept = mine.n_entries;
    double *r = ag_mul(&mine, p, p, 1), *first = r;
    backward(&mine, r);
    backward(&mine, r);
    check_near("twice backward: before the mark, added", 12, *grad(&mine, p), 0);
    check_near("twice backward: after it, anew", 1, *grad(&mine, r), 0);
    bool fits = true;
    for (int i = 0; i < 100000; i++) {
        tape_drop(&mine);
        r = ag_mul(&mine, p, p, 1);
        fits = fits && r == first && mine.n_entries == kept + 1;
    }
    check(fits, "a hundred thousand passes fit where one does");
    check_near("dropped: what stood before the mark stays", 3, *p, 0);
    check_near("dropped: its gradient too", 12, *grad(&mine, p), 0);
    tape_free(&mine);
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
    for (size_t i = 0; i < n; i++) sum = ag_add(&big, sum, a, 1);
    backward(&big, sum);
    check_size("ten million nodes: entries", n, big.n_entries);
    check_near("ten million nodes: value", 0.5 * (double)n + 0.5, *sum, 0);
    check_near("ten million nodes: gradient", (double)n + 1, *grad(&big, a), 0);
    tape_free(&big);
}

/* ------------------------------------------------------------------------------------------------
 * Four ways to the same: each operation is built from the same inputs as one entry, atom by atom, as
 * one entry on a tape without faster functions, and as an entry that waits for tape_compute(). All
 * of them must give the same values and the same gradients. The inputs are slices of a buffer in
 * which everything else is not a number, or infinite, as is the memory that results go to; so
 * whatever is read or written outside of its slice shows.
 */
enum { N_INPUTS = 8192 };

typedef struct {
    size_t n, m, stride, offset;
    double size;  // the inputs' scale
} Sizes;

static double inputs[N_INPUTS], *buffer, *weights;
static Matrix matrices[2];
static size_t n_out;  // results of what is built; n if it says nothing else

// n numbers of the buffer.
static double *slice(size_t at, size_t n, double size)
{
    for (size_t i = at; i < at + n; i++) buffer[i] = inputs[i] * size;
    return buffer + at;
}

static double *one(const Sizes *s) { return slice(s->offset, s->n, s->size); }
static double *other(const Sizes *s) { return slice(1001 + s->offset, s->n, s->size); }
static double *above_zero(const Sizes *s)
{
    double *x = slice(2000 + s->offset, s->n, 1);
    for (size_t i = 0; i < s->n; i++) x[i] = fabs(x[i]) + 0.1;
    return x;
}

// A result's place inside a larger vector of the tape, whose other values must stay as they are.
static struct {
    double *larger;  // [n + 7]
    size_t n, offset;
} placed;

static double *place(const Sizes *s, size_t n)
{
    placed.larger = ag_vector(&t, n + 7);
    placed.n = n;
    placed.offset = s->offset;
    for (size_t i = 0; i < n + 7; i++) placed.larger[i] = 77;
    return placed.larger + s->offset;
}

static bool place_is_kept(void)
{
    for (size_t i = 0; placed.larger && i < placed.n + 7; i++) {
        bool beside = i < placed.offset || i >= placed.offset + placed.n;
        if (beside && placed.larger[i] != 77) return false;
    }
    return true;
}

typedef double *Build(const Sizes *s);
static double *build_add(const Sizes *s) { return ag_add(&t, one(s), other(s), s->n); }
static double *build_mul(const Sizes *s) { return ag_mul(&t, one(s), other(s), s->n); }
static double *build_pow(const Sizes *s) { return ag_pow(&t, above_zero(s), -0.5, s->n); }
static double *build_square(const Sizes *s) { return ag_pow(&t, one(s), 2, s->n); }
static double *build_log(const Sizes *s) { return ag_log(&t, above_zero(s), s->n); }
static double *build_exp(const Sizes *s) { return ag_exp(&t, one(s), s->n); }
static double *build_relu(const Sizes *s) { return ag_relu(&t, one(s), s->n); }
static double *build_add_const(const Sizes *s) { return ag_add_const(&t, one(s), 0.3, s->n); }
static double *build_mul_const(const Sizes *s) { return ag_mul_const(&t, one(s), -1.7, s->n); }
static double *build_copy(const Sizes *s) { return ag_copy(&t, place(s, s->n), one(s), s->n); }
static double *build_sub(const Sizes *s) { return ag_sub(&t, one(s), other(s), s->n); }
static double *build_div(const Sizes *s) { return ag_div(&t, one(s), above_zero(s), s->n); }
static double *build_softmax(const Sizes *s) { return softmax(&t, one(s), s->n); }
static double *build_rmsnorm(const Sizes *s) { return rmsnorm(&t, one(s), s->n); }
static double *build_sum(const Sizes *s)
{
    n_out = 1;
    return ag_sum(&t, one(s), s->n);
}
static double *build_dot(const Sizes *s)
{
    n_out = 1;
    return ag_dot(&t, place(s, 1), one(s), other(s), s->n);
}
// Operands that are the same, or share values.
static double *build_scale_by_own(const Sizes *s)
{
    double *a = one(s);
    return ag_mul_scalar(&t, a, a + s->n / 2, s->n);
}
static double *build_dot_with_itself(const Sizes *s)
{
    n_out = 1;
    double *a = one(s);
    return dot_of(a, a, s->n);
}
static double *build_overlap(const Sizes *s)
{
    double *a = slice(s->offset, s->n + 1, s->size);
    return ag_add(&t, ag_mul(&t, a, a + 1, s->n), ag_sub(&t, a + 1, a, s->n), s->n);
}

static double *rows(const Sizes *s)
{
    for (size_t i = 0; i < s->n; i++) slice(3000 + s->offset + i * s->stride, s->m, s->size);
    return buffer + 3000 + s->offset;
}
static double *build_row_dots(const Sizes *s)
{
    double *query = slice(s->offset, s->m, s->size);
    return ag_row_dots(&t, query, rows(s), s->n, s->stride, s->m, 0.6);
}
static double *build_weighted_sum(const Sizes *s)
{
    n_out = s->m;
    return ag_weighted_sum(&t, one(s), rows(s), s->n, s->stride, s->m);
}
static double *build_add_to_rows(const Sizes *s)
{
    n_out = s->n * s->m;
    double *all = slice(3000 + s->offset, n_out, s->size);
    return ag_add_to_rows(&t, all, slice(s->offset, s->m, s->size), s->n, s->m);
}

// One matrix, used s->stride times, each time with other inputs; the odd half of the shapes in lanes.
static double *build_linear(const Sizes *s)
{
    matrices[0] = (Matrix){.rows = s->n, .cols = s->m};
    matrices[0].data = slice(3000 + s->offset, s->n * s->m, s->size);
    n_out = s->n * s->stride;
    double *out = place(s, n_out);
    for (size_t use = 0; use < s->stride; use++) {
        if ((s->n + s->m + s->offset) % 2) tape_lane(&t);
        double *x = ag_mul_const(&t, slice(s->offset + use * (s->m + 1), s->m, s->size), 0.7, s->m);
        ag_copy(&t, out + use * s->n, linear(&t, x, &matrices[0]), s->n);
    }
    tape_end_lanes(&t);
    return out;
}

// Two square matrices, one of them a result, that follow each other again and again; and what the
// second gets is not only the first's.
static double *build_deep(const Sizes *s)
{
    size_t size = s->n * s->n;
    double *x = one(s), *data = slice(3000 + s->offset, size, 0.3);
    matrices[0] = matrices[1] = (Matrix){.rows = s->n, .cols = s->n, .data = data};
    matrices[1].data = ag_mul(&t, data, slice(5500, size, 0.5), size);
    for (size_t use = 0; use < s->stride; use++) {
        double *y = ag_relu(&t, linear(&t, x, &matrices[0]), s->n);
        x = ag_add(&t, x, linear(&t, y, &matrices[1]), s->n);
    }
    return ag_mul(&t, x, matrices[1].data, s->n);
}

enum Way { WHOLE, ATOMS, PLAIN, WAITING, N_WAYS };
static const char *const ways[N_WAYS] = {"fused", "atom by atom", "with plain loops",
                                         "computed later"};

// Builds one graph one way; its values and the inputs' gradients go to the arrays.
static void run_one(Build *build, const Sizes *s, enum Way way, double *values, double *gradients)
{
    double around = s->offset % 2 ? INFINITY : NAN;
    const Faster *faster = t.faster;
    start();
    t.fused = way != ATOMS ? FUSED : 0;
    if (way == PLAIN) t.faster = NULL;
    placed.larger = NULL;
    for (size_t i = 0; i < N_INPUTS; i++) {
        buffer[i] = around;
        grad(&t, buffer)[i] = 0.5;
    }
    for (double *x = t.chunk + t.n_values; x < t.chunk + t.n_values + 5000; x++) {
        *x = *grad(&t, x) = around;
    }
    if (way == WAITING) tape_lane(&t);
    n_out = s->n;
    double *out = build(s), *beside = ag_scalar(&t, 77), *result = dot_of(out, weights, n_out);
    tape_compute(&t);
    memcpy(values, out, n_out * sizeof *values);
    if (*beside != 77 || !place_is_kept()) values[0] = NAN;
    backward(&t, result);
    for (size_t i = 0; i < N_INPUTS; i++) {
        double g = grad(&t, buffer)[i];
        gradients[i] = !isfinite(buffer[i]) && g != 0.5 ? NAN : g;
    }
    t.faster = faster;
}

static bool all_ways(const char *what, Build *build, const Sizes *s)
{
    static double values[2][N_INPUTS], gradients[2][N_INPUTS];
    run_one(build, s, WHOLE, values[0], gradients[0]);
    for (enum Way way = ATOMS; way < N_WAYS; way++) {
        char text[128] = "are not finite";
        run_one(build, s, way, values[1], gradients[1]);
        if (!all_finite(values[0], n_out) || !all_finite(gradients[0], N_INPUTS) ||
            !all_near(values[1], values[0], n_out, 1e-12, text, sizeof text) ||
            !all_near(gradients[1], gradients[0], N_INPUTS, 1e-12, text, sizeof text)) {
            check(false, "%s, fused and %s, n %zu, m %zu, stride %zu, offset %zu, size %g: %s",
                  what, ways[way], s->n, s->m, s->stride, s->offset, s->size, text);
            return false;
        }
    }
    return true;
}

static void all_lengths(const char *what, Build *build, double size)
{
    bool ok = true;
    for (size_t n = 1; ok && n <= 40; n++) {
        for (size_t offset = 0; ok && offset < 4; offset++) {
            Sizes s = {.n = n, .offset = offset, .size = size, .stride = 3};
            ok = all_ways(what, build, &s);
        }
    }
    if (ok) check(true, "%s: all ways agree for 1 to 40 values, inputs of size %g", what, size);
}

// Rows are at least as far apart as they are long, or used once to five times.
static void all_shapes(const char *what, Build *build, bool apart)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 17, 31, 32, 33};
    enum { N_SIZES = sizeof sizes / sizeof sizes[0] };
    bool ok = true;
    for (size_t i = 0; ok && i < N_SIZES * N_SIZES * 4; i++) {
        Sizes s = {.n = sizes[i % N_SIZES], .m = sizes[i / N_SIZES % N_SIZES], .size = 1};
        s.offset = i / (N_SIZES * N_SIZES);
        s.stride = (apart ? s.m : 1) + (i + i / N_SIZES) % 5;
        ok = all_ways(what, build, &s);
    }
    if (ok) check(true, "%s: all ways agree for 1 to 33 rows of 1 to 33", what);
}

static void test_ways(void)
{
    static const struct {
        const char *name;
        Build *build;
    } lengths[] = {
        {"add", build_add},
        {"mul", build_mul},
        {"pow -0.5", build_pow},
        {"pow 2", build_square},
        {"log", build_log},
        {"exp", build_exp},
        {"relu", build_relu},
        {"add const", build_add_const},
        {"mul const", build_mul_const},
        {"copy", build_copy},
        {"sub", build_sub},
        {"div", build_div},
        {"sum", build_sum},
        {"dot", build_dot},
        {"softmax", build_softmax},
        {"rmsnorm", build_rmsnorm},
        {"mul scalar, by one of its own", build_scale_by_own},
        {"dot with itself", build_dot_with_itself},
        {"operands that overlap", build_overlap},
        {"matrices that follow each other", build_deep},
    };
    for (size_t i = 0; i < N_INPUTS; i++) inputs[i] = any_number();
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        all_lengths(lengths[i].name, lengths[i].build, 1);
    }
    static const double of_softmax[] = {700, 1e6, 1e300, 1e-300}, of_rmsnorm[] = {1e100, 1e-200, 0};
    for (size_t i = 0; i < 4; i++) all_lengths("softmax", build_softmax, of_softmax[i]);
    for (size_t i = 0; i < 3; i++) all_lengths("rmsnorm", build_rmsnorm, of_rmsnorm[i]);
    all_shapes("row dots", build_row_dots, true);
    all_shapes("weighted sum", build_weighted_sum, true);
    all_shapes("add to rows", build_add_to_rows, false);
    all_shapes("linear, used once to five times", build_linear, false);
    bool ok = true;
    for (size_t uses = 30; ok && uses <= 67; uses++) {
        ok = all_ways("linear, used often", build_linear, &(Sizes){5, 6, uses, uses % 4, 1});
    }
    check(ok, "linear: all ways agree for 30 to 67 uses of one matrix");
}

// Softmax where inputs are infinite: minus infinity, as a mask has it, is a share of 0.
static void test_infinities(void)
{
    bool ok = true;
    for (size_t n = 2; n <= 12; n++) {
        for (size_t at = 0; ok && at < n; at++) {
            for (size_t i = 0; i < n; i++) inputs[i] = i == at ? -INFINITY : any_number();
            ok = all_ways("softmax of -inf", build_softmax, &(Sizes){.n = n, .size = 1});
        }
    }
    check(ok, "softmax with minus infinity: all ways agree");
    start();
    double *a = ag_input(&t, (double[]){1, INFINITY, INFINITY, -INFINITY}, 4);
    check_near("softmax of one value, with infinities beside it", 1, *ag_softmax(&t, a, 1), 0);
    a[0] = NAN;
    check(isnan(ag_softmax(&t, a, 2)[0]), "softmax of what is not a number is not a number");
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
        ag_copy(tape, sums + lane, ag_mul(tape, a, y, 1), 1);
    }
    tape_end_lanes(tape);
    return ag_add(tape, ag_sum(tape, row, 3 * n), ag_sum(tape, sums, 3), 1);
}

// Three passes on a tape with chunks of this size; the result and gradients of p go to `seen`.
static size_t passes(size_t room, size_t n, double *seen)
{
    Tape tape;
    size_t n_params = n * n + n + 2, n_chunks = 0;
    if (!tape_init(&tape, room) || !install_faster(&tape)) exit(1);
    double *p = ag_vector(&tape, n_params);
    for (size_t k = 0; k < n_params; k++) p[k] = sin((double)k);
    tape_mark(&tape);
    Matrix w = {.rows = n + 1, .cols = n, .data = p};
    for (int pass = 0; pass < 3; pass++) {
        tape_drop(&tape);
        ag_clear_grad(&tape, p, n_params);
        double *result = all_operations(&tape, p, n, &w);
        backward(&tape, result);
        seen[n_params] = *result;
        if (pass > 0 && tape.n_chunks != n_chunks) seen[n_params] = NAN;
        n_chunks = tape.n_chunks;
    }
    memcpy(seen, grad(&tape, p), n_params * sizeof *p);
    tape_free(&tape);
    return n_chunks;
}

static void test_chunks(void)
{
    enum { MOST = 33, PARAMETERS = MOST * MOST + MOST + 2 };
    static double one_chunk[PARAMETERS + 1], small_ones[PARAMETERS + 1];
    char text[128] = "";
    bool ok = true;
    for (size_t n = 1; ok && n <= MOST; n += n < 8 ? 1 : 5) {
        size_t n_params = n * n + n + 2;
        ok = passes(100000, n, one_chunk) == 1 && passes(n_params + 8, n, small_ones) > 2 &&
             all_near(one_chunk, small_ones, n_params + 1, 1e-12, text, sizeof text);
    }
    check(ok, "one chunk or many: the same, and no more of them in later passes%s", text);
    Tape tape;
    if (!tape_init(&tape, 1000)) exit(1);
    ag_scalar(&tape, 1);
    double *largest = ag_vector(&tape, tape.chunk_size - 4);  // a block stays unused
    check(largest == tape.chunks[1], "the largest vector is in a chunk of its own");
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
    static volatile size_t n_told;
    if (!tape_init(&tape, 100)) exit(1);
    ag_scalar(&tape, 7);
    tape_mark(&tape);
    tape.out_of_memory = no_memory_here;
    for (volatile int of = 0; of < 2; of++) {
        volatile size_t chunk = tape.chunk_size, max_entries = tape.max_entries;
        if (setjmp(no_room) != 0) {
            n_told++;
        } else if (of == 0) {
            tape.chunk_size = SIZE_MAX / 64;  // of such chunks there is no second one
            tape.n_values = tape.chunk_size - 4;
            ag_vector(&tape, 8);
        } else {
            tape.max_entries = SIZE_MAX / sizeof(Entry) / 2 + 1;  // twice as many: no addresses
            tape.n_entries = tape.max_entries;
            ag_add(&tape, tape.chunk, tape.chunk, 1);
        }
        tape.chunk_size = chunk;
        tape.max_entries = max_entries;
        tape_drop(&tape);
        check_near("the tape is used again", 49, *ag_mul(&tape, tape.chunk, tape.chunk, 1), 0);
    }
    check_size("a tape that cannot grow, values and entries: out_of_memory() is called", 2, n_told);
    tape_free(&tape);
}

int main(void)
{
    if (!tape_init(&t, 400000) || !install_faster(&t)) exit(1);
    buffer = ag_vector(&t, N_INPUTS);
    weights = ag_vector(&t, N_INPUTS);
    for (size_t i = 0; i < N_INPUTS; i++) weights[i] = any_number();
    tape_mark(&t);
    test_atoms();
    test_leaves();
    test_middle();
    test_mark();
    test_ten_million();
    test_ways();
    test_infinities();
    test_chunks();
    test_no_memory();
    tape_free(&t);
    return finish();
}
