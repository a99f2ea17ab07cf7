/* kernels.c: softmax, row dots and weighted sums of one entry, a vector at a time.
 *
 * They promise what softmax_forward() and the others in autograd.c define. Sums are taken in
 * another order and exponentials by another series, so last bits differ. Rows whose length is not a
 * multiple of a vector are left to the definitions, and so is a softmax of infinities and the like.
 */
#include "fast.h"

#ifdef VECTORS

/* ------------------------------------------------------------------------------------------------
 * Rows times vectors: the rows are used in place, four at a time.
 */

// sums[0..3] = the sums of four vectors
static inline void vec_sums(double *sums, const Vec v[4])
{
#ifdef SHUFFLE
    Vec ab = SHUFFLE(v[0], v[1], 0, 4, 2, 6) + SHUFFLE(v[0], v[1], 1, 5, 3, 7);
    Vec cd = SHUFFLE(v[2], v[3], 0, 4, 2, 6) + SHUFFLE(v[2], v[3], 1, 5, 3, 7);
    store(sums, SHUFFLE(ab, cd, 0, 1, 4, 5) + SHUFFLE(ab, cd, 2, 3, 6, 7));
#else
    for (size_t k = 0; k < 4; k++) sums[k] = vec_sum(v[k]);
#endif
}

// to[k] = row k of w dot x, so that each piece of x is loaded once for four sums. From the (n+1)-th
// row on, the n-th is taken instead. cols is a multiple of VEC.
static ALWAYS_INLINE void dot_rows(double *restrict to, const double *restrict w, size_t stride,
                                   const double *restrict x, size_t n, size_t cols)
{
    const double *w1 = n > 1 ? w + stride : w, *w2 = n > 2 ? w1 + stride : w1;
    const double *rows[4] = {w, w1, w2, n > 3 ? w2 + stride : w2};
    Vec xi = load(x), sums[4];
    for (size_t k = 0; k < 4; k++) sums[k] = load(rows[k]) * xi;
    for (size_t i = VEC; i < cols; i += VEC) {
        xi = load(x + i);
        for (size_t k = 0; k < 4; k++) sums[k] += load(rows[k] + i) * xi;
    }
    vec_sums(to, sums);
}

// y[lane][j] = c * (row j of w dot x[lane]), or that added to y[lane][j], for n lanes. Rows are
// fetched once for all of them.
static ALWAYS_INLINE void multiply_rows(double *const *y, const double *w, size_t stride,
                                        double *const *x, size_t n, size_t rows, size_t cols,
                                        double c, bool add)
{
    double sums[4];
    size_t j = 0;
    for (; j + 4 <= rows; j += 4) {
        for (size_t lane = 0; lane < n; lane++) {
            double *to = y[lane] + j;
            dot_rows(sums, w + j * stride, stride, x[lane], 4, cols);
            for (size_t k = 0; k < 4; k += VEC) {
                store(to + k, add ? load(to + k) + c * load(sums + k) : c * load(sums + k));
            }
        }
    }
    for (size_t lane = 0; j < rows && lane < n; lane++) {
        dot_rows(sums, w + j * stride, stride, x[lane], rows - j, cols);
        for (size_t k = 0; k < rows - j; k += VEC) {
            double *to = y[lane] + j + k;
            Vec old = load(to), product = c * load(sums + k), new = add ? old + product : product;
            store(to, k + VEC <= rows - j ? new : blend_first(new, rows - j - k, old));
        }
    }
}

// The same, with the lengths of the default model's rows as constants, so that the compiler unrolls
// the loops over them.
static ALWAYS_INLINE void multiply(double *const *y, const double *w, size_t stride,
                                   double *const *x, size_t n, size_t rows, size_t cols, double c,
                                   bool add)
{
    if (cols == VEC) {
        multiply_rows(y, w, stride, x, n, rows, VEC, c, add);
    } else if (cols == 16) {
        multiply_rows(y, w, stride, x, n, rows, 16, c, add);
    } else if (cols == 64) {
        multiply_rows(y, w, stride, x, n, rows, 64, c, add);
    } else {
        multiply_rows(y, w, stride, x, n, rows, cols, c, add);
    }
}

void multiply_few_lanes(double *const *y, const double *w, size_t stride, double *const *x,
                        size_t n, size_t rows, size_t cols)
{
    multiply(y, w, stride, x, n, rows, cols, 1, false);
}

static bool row_dots_forward(Entry *e)
{
    if (e->length % VEC) return false;
    multiply(&e->out, e->b, e->stride, &e->a, 1, e->n, e->length, e->c, false);
    return true;
}

static bool row_dots_backward(const Tape *t, Entry *e)
{
    double *g = grad(t, e->out);
    size_t n = e->n, length = e->length, stride = e->stride;
    if (length % VEC) return false;
    for (size_t j = 0; j < length; j += VEC) {
        double *b = e->b + j, *gb = grad(t, b), *ga = grad(t, e->a) + j;
        Vec ca = e->c * load(e->a + j), sum = ZERO;
        for (size_t i = 0; i < n; i++, b += stride, gb += stride) {
            sum += g[i] * load(b);
            store(gb, load(gb) + g[i] * ca);
        }
        store(ga, load(ga) + e->c * sum);
    }
    return true;
}

static bool weighted_sum_forward(Entry *e)
{
    double *a = e->a, *out = e->out;
    size_t n = e->n, length = e->length, stride = e->stride;
    if (length % VEC) return false;
    for (size_t j = 0; j < length; j += VEC) {
        Vec sum = ZERO;
        const double *b = e->b + j;
        for (size_t i = 0; i < n; i++, b += stride) sum += a[i] * load(b);
        store(out + j, sum);
    }
    return true;
}

static bool weighted_sum_backward(const Tape *t, Entry *e)
{
    double *a = e->a, *g = grad(t, e->out), *ga = grad(t, a);
    size_t n = e->n, length = e->length, stride = e->stride;
    if (length % VEC) return false;
    multiply(&ga, e->b, stride, &g, 1, n, length, 1, true);
    for (size_t j = 0; j < length; j += VEC) {
        double *gb = grad(t, e->b) + j;
        Vec gj = load(g + j);
        for (size_t i = 0; i < n; i++, gb += stride) store(gb, load(gb) + a[i] * gj);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * Softmax: the largest is found, and the exponentials are taken, a vector at a time. Vectors are
 * loaded just as they were stored, because a load across two stores would wait.
 */
static inline Vec vec_max(Vec a, Vec b)
{
    for (int k = 0; k < VEC; k++) a[k] = a[k] > b[k] ? a[k] : b[k];
    return a;
}

// e^x = 2^k * e^r, with k the integer nearest to x / ln 2: then |r| < 0.35, and the series needs
// terms up to r^12. Adding 1.5 * 2^52 rounds x / ln 2 to k and leaves k in the low bits, from where
// it is shifted into the exponent. Where x is too small for that, or not a number, the result is
// not a number. x must not be positive.
static inline Vec vec_exp(Vec x)
{
    const double log2_e = 0x1.71547652b82fep0, rounder = 0x1.8p52;
    const double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b39p-40;
    Vec shifted = x * log2_e + rounder, k = shifted - rounder;
    Vec r = (x - k * ln2_high) - k * ln2_low, r2 = r * r, r4 = r2 * r2;
    Vec p0 = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    Vec p4 = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    Vec p8 = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    Vec p12 = ZERO + 1.0 / 479001600;
    Bits e = (Bits)(p0 + r4 * (p4 + r4 * (p8 + r4 * p12))) + ((Bits)shifted << 52);
    return (Vec)(e | ~(Bits)(x > -708));
}

// Is vec_exp() what it should be? With -funsafe-math-optimizations a compiler takes its rounding
// apart, and not every one says so to the preprocessor. Asked once, before main().
static bool exp_works;

__attribute__((constructor)) static void check_exp(void)
{
    exp_works = true;
    for (volatile double x = 0; x > -700; x -= 12.7) {
        double right = exp(x), error = vec_exp(ZERO + x)[0] - right;
        if (!(fabs(error) <= 1e-15 * right)) exp_works = false;
    }
}

// Where vec_exp() gives up, the definition decides. It also decides on one value alone, whose
// neighbors are not its own.
static bool softmax_forward(Entry *e)
{
    double *out = e->out, *a = e->a;
    size_t n = e->n, whole = n / VEC * VEC;
    if (n == 1 || !exp_works) return false;
    Vec maxima = ZERO + a[0], sum = ZERO;
    for (size_t i = 0; i < whole; i += VEC) maxima = vec_max(load(a + i), maxima);
    if (whole < n) maxima = vec_max(blend_first(load(a + whole), n - whole, maxima), maxima);
    double max = maxima[0];
    for (int k = 1; k < VEC; k++) max = maxima[k] > max ? maxima[k] : max;
    for (size_t i = 0; i < n; i += VEC) {
        Vec x = load(a + i) - max;
        if (n - i < VEC) x = blend_first(x, n - i, ZERO - 100);  // e^-100 is lost in a sum above 1
        Vec exps = vec_exp(x);
        store(out + i, exps);
        sum += exps;
    }
    double total = vec_sum(sum), share = 1 / total;
    for (size_t i = 0; i < n; i += VEC) store(out + i, load(out + i) * share);
    return !isnan(total);
}

// As dot() in autograd.c, in the same order.
static inline double dot(const double *a, const double *b, size_t n)
{
    size_t i = 0;
#if VEC == 4
    Vec sums = ZERO;
    for (; i + 4 <= n; i += 4) sums += load(a + i) * load(b + i);
#else
    Vec sums = ZERO, high = ZERO;
    for (; i + 4 <= n; i += 4) {
        sums += load(a + i) * load(b + i);
        high += load(a + i + 2) * load(b + i + 2);
    }
    sums += high;
#endif
    double sum = vec_sum(sums);
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static bool softmax_backward(const Tape *t, Entry *e)
{
    double *out = e->out, *g = grad(t, out), *ga = grad(t, e->a), mean = dot(g, out, e->n);
    for (size_t i = 0, n = e->n; i < n; i += VEC) {
        Vec old = load(ga + i), new = old + load(out + i) * (load(g + i) - mean);
        store(ga + i, n - i < VEC ? blend_first(new, n - i, old) : new);
    }
    return true;
}

FastOperation fast_operations[N_OPS] = {
    [OP_LINEAR] = {fast_linear_forward, fast_linear_backward, linear_forward_lanes,
                   linear_backward_lanes, "support/products.c"},
    [OP_ROW_DOTS] = {row_dots_forward, row_dots_backward, rows_forward_lanes, rows_backward_lanes,
                     "support/kernels.c and products.c"},
    [OP_WEIGHTED_SUM] = {weighted_sum_forward, weighted_sum_backward, rows_forward_lanes,
                         rows_backward_lanes, "support/kernels.c and products.c"},
    [OP_SOFTMAX] = {softmax_forward, softmax_backward, NULL, NULL, "support/kernels.c"},
};

#else

FastOperation fast_operations[N_OPS] = {{NULL}};
#endif
