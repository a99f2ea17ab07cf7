/* products.c: the same entry of many lanes as products of matrices.
 *
 * y = w x and its two gradients, for linear(), and in attention for row dots and weighted sums.
 * They promise what linear_forward() and the others in autograd.c define; sums are taken in another
 * order, so last bits differ. Entries that cannot be one product are done one after another. Where
 * a product is not worth it, nothing is done. tiles.c does the arithmetic.
 */
#include "tiles.h"

#include <assert.h>

#ifdef VECTORS

static size_t work_of(const Product *p) { return p->n * p->rows[p->n / 2] * p->cols; }

/* ------------------------------------------------------------------------------------------------
 * From entries to products.
 */

// Are two values in one chunk? Gradients lie between the values of two chunks.
static inline bool same_chunk(const Tape *t, const double *x, const double *y)
{
    uintptr_t distance = x > y ? (uintptr_t)x - (uintptr_t)y : (uintptr_t)y - (uintptr_t)x;
    return distance < t->chunk_size * sizeof(double);
}

// Is x after the n values from y on? In another chunk, it is not among them either.
static inline bool is_after(const Tape *t, const double *x, const double *y, size_t n)
{
    return x >= y + n || !same_chunk(t, x, y);
}

// Can an entry be part of one product with the one of the lane before? They use the same rows, and
// the operands come after what the lane before has used and made; so all of them are distinct.
static inline bool can_join(const Tape *t, Op op, const Entry *e, const Entry *before)
{
    if (e->b != before->b) return false;
    bool linear = op == OP_LINEAR, weighted = op == OP_WEIGHTED_SUM;
    size_t n_in = weighted ? before->n : e->length;
    if (e->a < before->a + n_in || !same_chunk(t, e->a, before->a)) return false;
    if (!is_after(t, e->a, before->out, weighted ? e->length : before->n)) return false;
    if (linear) return true;
    return e->n >= before->n && e->length == before->length && e->stride == before->stride &&
           e->c == before->c && is_after(t, before->out, e->b, (e->n - 1) * e->stride + e->length);
}

// Gathers entry k of as many lanes as can be one product, from the first on or (last) from the last
// one back. A weighted sum goes from y to x, the others from x to y.
static void take_lanes(Product *p, const Tape *t, Entry *const *lanes, size_t n, size_t k,
                       bool last)
{
    Op op = lanes[0][k].op;
    p->t = t;
    for (p->n = 1; p->n < n && p->n < MAX_LANES; p->n++) {
        size_t lane = last ? n - p->n : p->n;
        if (!can_join(t, op, &lanes[lane][k], &lanes[lane - 1][k])) break;
    }
    lanes += last ? n - p->n : 0;
    const Entry *e = &lanes[0][k];
    bool linear = op == OP_LINEAR, weighted = op == OP_WEIGHTED_SUM;
    p->w = e->b;
    p->stride = e->stride;
    p->cols = e->length;
    p->c = linear || weighted ? 1 : e->c;
    for (size_t lane = 0; lane < p->n; lane++) {
        e = &lanes[lane][k];
        p->x[lane] = weighted ? e->out : e->a;
        p->y[lane] = weighted ? e->a : e->out;
        p->rows[lane] = e->n;
    }
}

/* ------------------------------------------------------------------------------------------------
 * Outputs.
 */
static void multiply_product(const Product *p, Use use)
{
    size_t rows = p->rows[p->n - 1];
    Task task = {.p = p, .use = use, .end = p->n, .right = use == OUTPUTS ? rows : p->cols};
    multiply_tasks(&task, 1, work_of(p));
}

// Few lanes: rows of w, four at a time.
static void few_lanes_forward_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Product *p = context;
    (void)unused;
    few_lanes_forward(p, cut_units(p->rows[0], 4, n_parts, part, EVEN),
                      cut_units(p->rows[0], 4, n_parts, part + 1, EVEN));
}

bool linear_forward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    Product p;
    for (; n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, t, lanes, n, k, false);
        if (p.n >= FEW_LANES || p.cols % VEC) {
            multiply_product(&p, OUTPUTS);
        } else {
            size_t n_parts = smaller(n_units(p.rows[0], 4), parts_of(work_of(&p)));
            if (n_parts > 1) {
                share(few_lanes_forward_part, &p, n_parts, NULL);
            } else {
                few_lanes_forward(&p, 0, p.rows[0]);
            }
        }
    }
    return true;
}

bool fast_linear_forward(Entry *e) { return linear_forward_lanes(NULL, &e, 1, 0); }

/* ------------------------------------------------------------------------------------------------
 * Gradients.
 */
// Of the rows, and of what was multiplied by them. A weighted sum goes from y to x.
static void product_backward(const Product *p, bool weighted)
{
    size_t rows = p->rows[p->n - 1], g = p->t->chunk_size;
    Task tasks[] = {{.p = p, .use = WEIGHTS, .w_at = g, .add = true}, {.p = p, .add = true}};
    tasks[0].x_at = weighted ? g : 0;
    tasks[0].y_at = weighted ? 0 : g;
    tasks[0].end = rows;
    tasks[0].right = p->cols;
    tasks[1].use = weighted ? OUTPUTS : INPUTS;
    tasks[1].x_at = tasks[1].y_at = g;
    tasks[1].end = p->n;
    tasks[1].right = weighted ? rows : p->cols;
    multiply_tasks(tasks, 2, 2 * work_of(p));
}

// Few lanes: columns of w, whole lines of the cache.
static void few_lanes_backward_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Product *p = context;
    (void)unused;
    few_lanes_backward(p, cut_units(p->cols, WIDTH, n_parts, part, EVEN),
                       cut_units(p->cols, WIDTH, n_parts, part + 1, EVEN));
}

// Rows of a wide matrix are too far from each other to be walked through a vector at a time.
enum { NARROW = 64 };

static void products_backward(const Tape *t, Entry *const *lanes, size_t n, size_t k,
                              double *unused)
{
    Product p;
    Op op = lanes[0][k].op;
    (void)unused;
    for (; n > 0; n -= p.n) {
        take_lanes(&p, t, lanes, n, k, true);
        if (op != OP_LINEAR || p.n >= FEW_LANES || p.cols > NARROW || p.cols % VEC) {
            product_backward(&p, op == OP_WEIGHTED_SUM);
        } else {
            size_t n_parts = smaller(n_units(p.cols, WIDTH), parts_of(2 * work_of(&p)));
            share(few_lanes_backward_part, &p, n_parts, NULL);
        }
    }
}

bool linear_backward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    products_backward(t, lanes, n, k, NULL);
    return true;
}

bool fast_linear_backward(const Tape *t, Entry *e) { return linear_backward_lanes(t, &e, 1, 0); }

/* ------------------------------------------------------------------------------------------------
 * Row dots and weighted sums. Threads share documents, which have nothing in common here; or, if
 * there is only one, its products.
 */
// Short rows, or few of them, are not worth a product.
static bool too_small(const Entry *e, size_t n)
{
    return n * e->length < 32 * WIDTH || e->length <= VEC;
}

static void rows_forward(const Tape *t, Entry *const *lanes, size_t n, size_t k, double *unused)
{
    Product p;
    (void)unused;
    for (; n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, t, lanes, n, k, false);
        multiply_product(&p, lanes[0][k].op == OP_ROW_DOTS ? OUTPUTS : INPUTS);
    }
}

bool rows_forward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    if (too_small(&lanes[0][k], n)) return false;
    if (!share_lanes(t, lanes, n, k, true, rows_forward)) rows_forward(t, lanes, n, k, NULL);
    return true;
}

bool rows_backward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    if (too_small(&lanes[0][k], n)) return false;
    if (share_lanes(t, lanes, n, k, true, products_backward)) return true;
    return linear_backward_lanes(t, lanes, n, k);
}

#endif
