/* What lies beside a slice stays out of it: every operation on n values whose neighbours are not a number, or infinite,
 * gives finite results and finite gradients, and leaves the gradients of the neighbours alone.
 */
// also built with -DAUTOGRAD_PLAIN
#include "../../autograd.h"
#include "../test.h"

enum { ROOM = 64, AT = 8 };

// A slice of n ordinary numbers, with `beside` before it and behind it.
static double *slice(Tape *t, size_t n, double beside)
{
    double *x = v_new(t, ROOM);
    for (size_t i = 0; i < ROOM; i++) {
        x[i] = i >= AT && i < AT + n ? 1 + any_number() / 2 : beside;
    }
    return x + AT;
}

static bool all_finite(const double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i])) {
            return false;
        }
    }
    return true;
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

// Operation k on slices of n: its results, of which there are *results. b may go unused.
static double *operate(Tape *t, int k, double *a, double *b, Matrix *w, size_t n, size_t *results)
{
    *results = n;
    switch (k) {
    case OP_ADD: return v_add(t, a, b, n);
    case OP_MUL: return v_mul(t, a, b, n);
    case OP_POW: return v_pow(t, a, 1.5, n);
    case OP_LOG: return v_log(t, a, n);
    case OP_EXP: return v_exp(t, a, n);
    case OP_RELU: return v_relu(t, a, n);
    case OP_PLUS: return v_plus(t, a, 0.5, n);
    case OP_TIMES: return v_times(t, a, 0.5, n);
    case OP_SCALE: return v_scale(t, a, b, n);
    case OP_SOFTMAX: return v_softmax(t, a, n);
    case OP_RMSNORM: return v_rmsnorm(t, a, 1e-5, n);
    case OP_WEIGHTED_SUM: return v_weighted_sum(t, v_new(t, n), b, a, 1, n, n);
    case OP_LINEAR:
        *results = w->rows;
        return v_linear(t, v_new(t, w->rows), a, w);
    default: break;
    }
    *results = 1;
    switch (k) {
    case OP_SUM: return v_sum(t, a, n);
    case OP_DOT: return v_dot(t, a, b, n);
    case OP_DOTS: return v_dots(t, a, b, 1, n, n, 0.5);
    default: return NULL;
    }
}

static void test_operation(int k, double beside, bool atomic)
{
    for (size_t n = 1; n <= 19; n++) {
        Tape t;
        if (!tape_init(&t, 1 << 15, 1 << 13)) {
            check(false, "memory for the tape: expected some, saw none");
            return;
        }
        Matrix w = {.name = "w", .rows = 5, .cols = n};
        w.data = v_new(&t, w.rows * w.cols);
        for (size_t i = 0; i < w.rows * w.cols; i++) {
            w.data[i] = any_number();
        }
        tape_mark(&t);
        t.atomic = atomic;
        double *a = slice(&t, n, beside), *b = slice(&t, n, beside);
        size_t results = 0;
        double *out = operate(&t, k, a, b, &w, n, &results);
        bool finite = all_finite(out, results);
        backward(&t, results > 1 ? v_sum(&t, out, results) : out);
        bool gradients = clean(&t, a, n) && clean(&t, b, n) && all_finite(grad(&t, w.data), w.rows * w.cols);
        tape_free(&t);
        if (!finite || !gradients) {
            check(false, "%s of %zu%s, with %g beside it: expected finite %s, saw others", op_names[k], n,
                  atomic ? " atom by atom" : "", beside, finite ? "gradients" : "results");
            return;
        }
    }
    check(true, "%s of 1 to 19 values%s keeps out %g that lies beside them", op_names[k],
          atomic ? " atom by atom" : "", beside);
}

int main(void)
{
    for (int k = 0; k < N_OPS; k++) {
        test_operation(k, NAN, false);
        test_operation(k, INFINITY, false);
        test_operation(k, NAN, true);
    }
    return finish();
}
