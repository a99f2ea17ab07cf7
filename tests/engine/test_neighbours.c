/* What lies beside a slice stays out of it: every operation on n values whose neighbors are not a
 * number, or infinite, gives finite results and finite gradients, and leaves the gradients of the
 * neighbors alone.
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

int main(void)
{
    for (Op k = 0; k < N_OPS; k++) {
        test_operation(k, NAN, false);
        test_operation(k, INFINITY, false);
        test_operation(k, NAN, true);
    }
    return finish();
}
