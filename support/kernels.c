/* kernels.c: row dots and weighted sums of one entry, and linear of few lanes, a vector at a time.
 *
 * They promise what row_dots_forward() and the others in autograd.c define. Sums are taken in
 * another order, so last bits differ. Rows whose length is not a multiple of a vector are left to
 * the definitions. The rows are used in place: a copy of them, as tiles.c makes it, is not worth it
 * for few lanes (measured: a fifth more time for seven lanes of 16 by 16).
 */
#include "fast.h"

#ifdef VECTORS

// Lanes whose gradients are computed together: twice as many vectors, and three, stay in registers.
#if defined __AVX512F__ || defined __aarch64__
enum { GROUP = 8 };
#else
enum { GROUP = 6 };
#endif

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

// The gradients of y = c * w x for n lanes, in columns of w from `left` to `right`. The sums of x and
// the numbers of x stay in registers while each row of w and of its gradients is used once.
static ALWAYS_INLINE void add_gradients(const FewLanes *few, size_t lane, size_t n, size_t left,
                                        size_t right)
{
    double *const *x = few->x + lane, *const *y = few->y + lane;
    size_t g = few->g, stride = few->stride;
    for (size_t j = left; j < right; j += VEC) {
        const double *w = few->w + j, *gy[GROUP];
        double *gw = few->w + g + j;
        Vec cx[GROUP], sums[GROUP];
        for (size_t k = 0; k < n; k++) {
            gy[k] = y[k] + g;
            cx[k] = few->c * load(x[k] + j);
            sums[k] = ZERO;
        }
        for (size_t i = 0; i < few->rows; i++, w += stride, gw += stride) {
            Vec row = load(w), sum = load(gw);
            for (size_t k = 0; k < n; k++) {
                sums[k] += gy[k][i] * row;
                sum += gy[k][i] * cx[k];
            }
            store(gw, sum);
        }
        for (size_t k = 0; k < n; k++) {
            double *gx = x[k] + g + j;
            store(gx, load(gx) + few->c * sums[k]);
        }
    }
}

void few_lanes_backward(const FewLanes *few, size_t left, size_t right)
{
    for (size_t lane = 0, n; lane < few->n; lane += n) {
        size_t more = few->n - lane;
        n = more <= GROUP ? more : more < 2 * GROUP ? (more + 1) / 2 : GROUP;
#define LANES(k)                                                                                   \
    case k: add_gradients(few, lane, (k) <= GROUP ? (k) : GROUP, left, right); break
        switch (n) {  // a constant each, so that the loops over it are unrolled
            LANES(1);
            LANES(2);
            LANES(3);
            LANES(4);
            LANES(5);
            LANES(6);
            LANES(7);
            LANES(8);
        }
#undef LANES
    }
}

static bool row_dots_backward(const Tape *t, Entry *e)
{
    if (e->length % VEC) return false;
    FewLanes few = {.n = 1, .x = &e->a, .y = &e->out, .w = e->b, .stride = e->stride, .c = e->c};
    few.rows = e->n;
    few.g = t->chunk_size;
    few_lanes_backward(&few, 0, e->length);
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

const FastOperation fast_operations[N_OPS] = {
    [OP_LINEAR] = {fast_linear_forward, fast_linear_backward, linear_forward_lanes,
                   linear_backward_lanes},
    [OP_ROW_DOTS] = {row_dots_forward, row_dots_backward, rows_forward_lanes, rows_backward_lanes},
    [OP_WEIGHTED_SUM] = {weighted_sum_forward, weighted_sum_backward, rows_forward_lanes,
                         rows_backward_lanes},
    [OP_SOFTMAX] = {fast_softmax_forward, fast_softmax_backward, NULL, NULL},
};

#endif
