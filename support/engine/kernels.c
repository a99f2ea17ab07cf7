/* kernels.c: products of few lanes, and weighted sums of one, a vector at a time.
 *
 * They promise what linear_forward() and the others in autograd.c define. Sums are taken in another
 * order, so last bits differ. Rows are whole vectors. All is used in place: with copies, outputs of
 * seven lanes take a fifth more time, gradients a third. products.c says how an entry gets here.
 */
#include "tiles.h"

#include <assert.h>

#ifdef VECTORS

/* ------------------------------------------------------------------------------------------------
 * Outputs: rows times vectors, four rows at a time.
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

// Up to four rows from j on, for all lanes. `cols` is p->cols; a constant, where it can be.
static ALWAYS_INLINE void multiply_four(const Product *p, size_t j, size_t n, bool add, size_t cols)
{
    const double *w = p->w + j * p->stride;
    double sums[4], scale = p->scale;
    for (size_t lane = 0, n_lanes = p->n, stride = p->stride; lane < n_lanes; lane++) {
        dot_rows(sums, w, stride, p->x[lane], n, cols);
        for (size_t k = 0; k < n; k += VEC) {
            double *y = p->y[lane] + j + k;
            Vec old = load(y), new = load(sums + k) * scale;
            if (add) new += old;
            store(y, k + VEC <= n ? new : blend_first(new, n - k, old));
        }
    }
}

static ALWAYS_INLINE void multiply_rows(const Product *p, size_t j, size_t end, bool add,
                                        size_t cols)
{
    for (; j + 4 <= end; j += 4) multiply_four(p, j, 4, add, cols);
    if (j < end) multiply_four(p, j, end - j, add, cols);
}

static ALWAYS_INLINE void multiply_outputs(const Product *p, size_t first, size_t end, bool add)
{
    switch (p->cols) {  // the default model's rows (4, if that is VEC), so that loops are unrolled
    case VEC: multiply_rows(p, first, end, add, VEC); break;
    case 16: multiply_rows(p, first, end, add, 16); break;
    case 64: multiply_rows(p, first, end, add, 64); break;
    default: multiply_rows(p, first, end, add, p->cols);
    }
}

/* ------------------------------------------------------------------------------------------------
 * Gradients.
 */
// Lanes whose gradients are added at a time: about as many as there are registers for. A product of
// more lanes is halved.
enum { AT_ONCE = 8 };
_Static_assert(FEW_LANES <= 2 * AT_ONCE + 1, "half of fewer than FEW_LANES lanes fits");

// For n lanes, in the columns of w numbered left to right - 1: the numbers of x and the sums for x
// stay in registers, while each row of w and of its gradients is used once.
static ALWAYS_INLINE void add_gradients(const Product *p, size_t left, size_t right, size_t lane,
                                        size_t n)
{
    size_t g = p->t->chunk_size, stride = p->stride, rows = p->rows[0];
    for (size_t j = left; j < right; j += VEC) {
        const double *w = p->w + j, *gy[AT_ONCE];
        double *gw = p->w + g + j;
        Vec scaled[AT_ONCE], sums[AT_ONCE];
        for (size_t k = 0; k < n; k++) {
            gy[k] = p->y[lane + k] + g;
            scaled[k] = p->scale * load(p->x[lane + k] + j);
            sums[k] = ZERO;
        }
        for (size_t i = 0; i < rows; i++, w += stride, gw += stride) {
            Vec row = load(w), sum = load(gw);
            for (size_t k = 0; k < n; k++) {
                sums[k] += gy[k][i] * row;
                sum += gy[k][i] * scaled[k];
            }
            store(gw, sum);
        }
        for (size_t k = 0; k < n; k++) {
            double *gx = p->x[lane + k] + g + j;
            store(gx, load(gx) + p->scale * sums[k]);
        }
    }
}

void multiply_few_lanes(const Task *task)
{
    const Product *p = task->p;
    size_t left = task->left, right = task->right;
    assert(p->n < FEW_LANES && p->rows[0] == p->rows[p->n - 1] && p->cols % VEC == 0);
    assert(task->end == p->n && right <= (task->use == FEW_OUTPUTS ? p->rows[0] : p->cols));
    if (task->use == FEW_OUTPUTS) {
        multiply_outputs(p, left, right, false);
        return;
    }
    for (size_t lane = 0, n; lane < p->n; lane += n) {
        n = p->n - lane <= AT_ONCE ? p->n - lane : (p->n - lane + 1) / 2;
#define LANES(k)                                                                                   \
    case k: add_gradients(p, left, right, lane, k); break;
        switch (n) {  // a constant each, up to AT_ONCE, so that the loops over it are unrolled
            LANES(1) LANES(2) LANES(3) LANES(4) LANES(5) LANES(6) LANES(7) LANES(8)
        }
#undef LANES
    }
}

/* ------------------------------------------------------------------------------------------------
 * Attention at one position.
 */
bool fast_row_dots_forward(Entry *e)
{
    Product p;
    if (e->length % VEC) return false;
    fill_product(&p, NULL, &e, 1, 0);
    multiply_outputs(&p, 0, e->n, false);
    return true;
}

bool fast_row_dots_backward(const Tape *t, Entry *e)
{
    Product p;
    if (e->length % VEC) return false;
    fill_product(&p, t, &e, 1, 0);
    add_gradients(&p, 0, e->length, 0, 1);
    return true;
}

bool fast_weighted_sum_forward(Entry *e)
{
    size_t n = e->n, length = e->length, stride = e->stride;
    if (length % VEC) return false;
    for (size_t j = 0; j < length; j += VEC) {
        Vec sum = ZERO;
        const double *b = e->b + j;
        for (size_t i = 0; i < n; i++, b += stride) sum += e->a[i] * load(b);
        store(e->out + j, sum);
    }
    return true;
}

bool fast_weighted_sum_backward(const Tape *t, Entry *e)
{
    Product p;
    double *a = e->a, *g = grad(t, e->out);
    if (e->length % VEC) return false;
    fill_product(&p, t, &e, 1, 0);
    p.x[0] = g;
    p.y[0] = grad(t, a);
    multiply_outputs(&p, 0, e->n, true);
    for (size_t j = 0, n = e->n, stride = e->stride; j < p.cols; j += VEC) {
        double *gb = grad(t, e->b) + j;
        Vec gj = load(g + j);
        for (size_t i = 0; i < n; i++, gb += stride) store(gb, load(gb) + a[i] * gj);
    }
    return true;
}

#endif
