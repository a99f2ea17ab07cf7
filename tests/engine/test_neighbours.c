/* What lies beside a slice stays out of it: every operation on n values whose neighbors are not a
 * number, or infinite, gives finite results and finite gradients, and leaves the gradients of the
 * neighbors alone. And what the table of operations says of each: its extents, and its derivative.
 */
// also built with -DAUTOGRAD_PLAIN
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../test.h"

enum { ROOM = 64, AT = 8 };

// A slice of n ordinary numbers, with `beside` before it and after it.
static double *slice(Tape *t, size_t n, double beside)
{
    double *x = ag_vector(t, ROOM);
    for (size_t i = 0; i < ROOM; i++) {
        x[i] = i >= AT && i < AT + n ? 1 + any_number() / 2 : beside;
    }
    return x + AT;
}

// Is the gradient finite within the slice, and zero beside it?
static bool clean(const Tape *t, double *x, size_t n)
{
    const double *g = grad(t, x) - AT;
    for (size_t i = 0; i < ROOM; i++) {
        bool within = i >= AT && i < AT + n;
        if (within ? !isfinite(g[i]) : g[i] != 0) {
            return false;
        }
    }
    return true;
}

// Operation k on slices of n: its results, *results of them. b may go unused. NULL: an operation
// that this test does not know.
static double *operate(Tape *t, Op k, double *a, double *b, Matrix *w, size_t n, size_t *results)
{
    *results = k == OP_LINEAR ? w->rows : k == OP_SUM || k == OP_ROW_DOTS ? 1 : n;
    switch (k) {
    case OP_ADD: return ag_add(t, a, b, n);
    case OP_MUL: return ag_mul(t, a, b, n);
    case OP_POW: return ag_pow(t, a, 1.5, n);
    case OP_LOG: return ag_log(t, a, n);
    case OP_EXP: return ag_exp(t, a, n);
    case OP_RELU: return ag_relu(t, a, n);
    case OP_ADD_CONST: return ag_add_const(t, a, 0.5, n);
    case OP_MUL_CONST: return ag_mul_const(t, a, 0.5, n);
    case OP_COPY: return ag_copy(t, slice(t, 0, 7) + 3, a, n);
    case OP_SUM: return ag_sum(t, a, n);
    case OP_ROW_DOTS: return ag_row_dots(t, a, b, 1, n, n, 0.5);
    case OP_WEIGHTED_SUM: return ag_weighted_sum(t, b, a, 1, n, n);
    case OP_LINEAR: return linear(t, a, w);
    case OP_SOFTMAX: return softmax(t, a, n);
    case OP_RMSNORM: return rmsnorm(t, a, n);
    default: return NULL;
    }
}

static void test_operation(Op k, double beside, bool atomic)
{
    const char *name = operations[k].name, *how = atomic ? " atom by atom" : "";
    for (size_t n = 1; n <= 19; n++) {
        Tape t;
        if (!tape_init(&t, 1 << 12)) {
            check(false, "memory for the tape: expected some, saw none");
            return;
        }
        Matrix w = {.name = "w", .rows = 5, .cols = n};
        w.data = ag_vector(&t, w.rows * w.cols);
        for (size_t i = 0; i < w.rows * w.cols; i++) w.data[i] = any_number();
        tape_mark(&t);
        t.fused = atomic ? 0 : FUSED;
        double *a = slice(&t, n, beside), *b = slice(&t, n, beside);
        size_t results = 0;
        double *out = operate(&t, k, a, b, &w, n, &results);
        if (!out) {
            tape_free(&t);
            printf("skip - %s: this test has no case for it yet\n", name ? name : "an operation");
            return;
        }
        bool values = all_finite(out, results);
        backward(&t, results > 1 ? ag_sum(&t, out, results) : out);
        bool gradients = clean(&t, a, n) && clean(&t, b, n);
        gradients = gradients && all_finite(grad(&t, w.data), w.rows * w.cols);
        tape_free(&t);
        if (!values || !gradients) {
            check(false, "%s of %zu%s, with %g beside it: expected finite %s, saw others", name, n,
                  how, beside, values ? "gradients" : "results");
            return;
        }
    }
    check(true, "%s of 1 to 19 values%s keeps out %g that lies beside them", name, how, beside);
}

// The count of values that an extent means.
static size_t count(const Entry *e, Extent extent)
{
    const size_t counts[] = {[NO_VALUES] = 0,
                             [ONE_VALUE] = 1,
                             [N_VALUES] = e->n,
                             [A_ROW] = e->length,
                             [N_ROWS] = (size_t)(e->n - 1) * e->stride + e->length};
    return counts[extent];
}

// Are the first and the last of n numbers other than 0, and the two beside them 0?
static bool spans(const double *x, size_t n)
{
    bool inner = n == 0 || (fpclassify(x[0]) != FP_ZERO && fpclassify(x[n - 1]) != FP_ZERO);
    return inner && fpclassify(x[-1]) == FP_ZERO && fpclassify(x[n]) == FP_ZERO;
}

// The entry of an operation fills its extents, and no more: forward writes out, backward gradients.
static void test_extents(Op k)
{
    enum { ROWS = 3, LENGTH = 5, STRIDE = 9 };
    double values[6][ROOM] = {{0}};  // out, a, b, and their gradients a chunk further on
    const Tape t = {.chunk_size = 3 * ROOM};
    double *out = values[0] + AT, *a = values[1] + AT, *b = values[2] + AT;
    const OpRules *rules = &operations[k];
    bool in_rows = rules->b == N_ROWS;
    Entry e = {.op = k, .n = ROWS, .out = out, .a = a, .b = rules->b ? b : NULL, .c = 1.5};
    e.length = in_rows ? LENGTH : 0;
    e.stride = in_rows ? STRIDE : 0;
    for (size_t i = 0; i < ROOM; i++) {
        values[1][i] = 0.5 + 0.01 * (double)i;
        values[2][i] = 0.7 + 0.01 * (double)(i * i);
    }
    rules->forward(&e);
    size_t n_out = count(&e, rules->out);
    check(n_out > 0 && spans(out, n_out), "%s: forward fills its extent", rules->name);
    for (size_t i = 0; i < n_out; i++) grad(&t, out)[i] = 1 + 0.1 * (double)(i * i);
    rules->backward(&t, &e);
    check(spans(grad(&t, a), count(&e, rules->a)), "%s: backward fills that of a", rules->name);
    check(spans(grad(&t, b), count(&e, rules->b)), "%s: backward fills that of b", rules->name);
}

// Backward is the derivative: differences of results say the same, unless no_derivative has its bit.
static void test_derivative(Op k)
{
    enum { N = 6 };
    if (no_derivative >> k & 1) return;
    Tape t;
    if (!tape_init(&t, 1 << 12)) exit(1);
    double *x[2], seen[2][N], *weigh = ag_vector(&t, N), *numbers = ag_vector(&t, N * N);
    Matrix w = {.rows = N, .cols = N, .data = numbers};
    for (size_t i = 0; i < N * N; i++) numbers[i] = any_number();
    for (size_t i = 0; i < N; i++) weigh[i] = any_number();
    x[0] = slice(&t, N, 7), x[1] = slice(&t, N, 7);
    tape_mark(&t);
    for (size_t i = 0; i < 2 * N; i++) {
        double *p = x[i / N] + i % N, was = *p, h = 1e-4, results[5];
        for (int step = -2; step <= 2; step++) {
            size_t n = 0;
            tape_drop(&t);
            *p = was + step * h;
            double *out = operate(&t, k, x[0], x[1], &w, N, &n);
            if (!out) {  // an operation that operate() does not know
                tape_free(&t);
                return;
            }
            double *sum = ag_dot(&t, ag_vector(&t, 1), out, weigh, n);
            results[step + 2] = *sum;
            if (step == 0 && i == 0) {
                backward(&t, sum);
                for (int o = 0; o < 2; o++) memcpy(seen[o], grad(&t, x[o]), sizeof seen[o]);
            }
        }
        *p = was;
        double slope = (results[0] - results[4] + 8 * (results[3] - results[1])) / (12 * h);
        if (!(fabs(slope - seen[i / N][i % N]) <= 1e-8)) {
            check(false, "%s: the derivative by operand %zu, value %zu: expected %.12g, saw %.12g",
                  operations[k].name, i / N, i % N, slope, seen[i / N][i % N]);
        }
    }
    check(true, "%s: differences of results and backward were compared", operations[k].name);
    tape_free(&t);
}

int main(void)
{
    check(no_derivative >> N_OPS == 0, "no_derivative has bits of operations alone");
    for (Op k = 0; k < N_OPS; k++) {
        test_operation(k, NAN, false);
        test_operation(k, INFINITY, false);
        test_operation(k, NAN, true);
        test_extents(k);
        test_derivative(k);
    }
    return finish();
}
