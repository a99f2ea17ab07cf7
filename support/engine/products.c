/* products.c: the same entry of many lanes as products of matrices.
 *
 * y = w x and its two gradients, for linear, and in attention for row dots and weighted sums. They
 * promise what linear_forward() and the others in autograd.c define; sums are taken in another
 * order, so last bits differ. Neighboring lanes are one product if they use the same rows and all
 * their other operands are distinct, in the order of the lanes.
 *
 * How an Entry is computed: it joins those of other lanes in a Product; each use of the product is
 * a Task; the Plan of plan.c cuts tasks into smaller ones for threads; tiles.c does a task Block by
 * Block, and each block Tile by Tile, or kernels.c does it, if there are few lanes.
 */
#include "tiles.h"

#ifdef VECTORS

/* ------------------------------------------------------------------------------------------------
 * From entries to products.
 */
// Is x after the n values from y on, in the same chunk? Gradients lie between two chunks.
static inline bool is_after(const Tape *t, const double *x, const double *y, size_t n)
{
    return x >= y + n && (uintptr_t)x - (uintptr_t)y < t->chunk_size * sizeof *x;
}

// Can an entry be part of one product with the one of the lane before? They use the same rows, and
// the operands come after what the lane before has used and made; so all of them are distinct.
static inline bool can_join(const Tape *t, const Entry *e, const Entry *before)
{
    bool weighted = e->op == OP_WEIGHTED_SUM;
    size_t n_in = weighted ? before->n : e->length, n_out = weighted ? e->length : before->n;
    if (e->b != before->b || !is_after(t, e->a, before->a, n_in)) return false;
    if (!is_after(t, e->a, before->out, n_out)) return false;
    if (e->op == OP_LINEAR) return true;
    return e->n >= before->n && e->length == before->length && e->stride == before->stride &&
           e->c == before->c && is_after(t, before->out, e->b, (e->n - 1) * e->stride + e->length);
}

// Joins entry k of up to MAX_LANES neighboring lanes into one product, from the first lane or, if
// `last`, from the last.
static void take_lanes(Product *p, const Tape *t, Entry *const *lanes, size_t n, size_t k,
                       bool last)
{
    size_t joined = 1;
    for (; joined < n && joined < MAX_LANES; joined++) {
        size_t lane = last ? n - joined : joined;
        if (!can_join(t, &lanes[lane][k], &lanes[lane - 1][k])) break;
    }
    fill_product(p, t, lanes + (last ? n - joined : 0), joined, k);
}

/* ------------------------------------------------------------------------------------------------
 * From products to tasks.
 */
static size_t multiply_adds(const Product *p) { return p->n * p->rows[p->n / 2] * p->cols; }

// Is it for kernels.c?
static bool is_few(const Product *p)
{
    return p->n < FEW_LANES && p->cols % VEC == 0 && p->rows[0] == p->rows[p->n - 1];
}

static void product_forward(const Product *p, bool weighted)
{
    Task task = {.p = p, .end = p->n, .right = weighted ? p->cols : p->rows[p->n - 1]};
    task.use = weighted ? INPUTS : is_few(p) ? FEW_OUTPUTS : OUTPUTS;
    multiply_tasks(&task, 1, multiply_adds(p));
}

// The gradients of the rows, and of what was multiplied by them.
static void product_backward(const Product *p, bool weighted)
{
    enum { NARROW = 64 };  // rows of a wide matrix are too far apart to walk through by vectors
    size_t rows = p->rows[p->n - 1], g = p->t->chunk_size;
    Task both = {.p = p, .use = FEW_GRADIENTS, .end = p->n, .right = p->cols};
    Task weights = {.p = p, .use = WEIGHTS, .w_at = g, .add = true, .end = rows, .right = p->cols};
    weights.x_at = weighted ? g : 0;
    weights.y_at = weighted ? 0 : g;
    Task inputs = {.p = p, .x_at = g, .y_at = g, .add = true, .end = p->n};
    inputs.use = weighted ? OUTPUTS : INPUTS;
    inputs.right = weighted ? rows : p->cols;
    if (!weighted && is_few(p) && p->cols <= NARROW) {
        multiply_tasks(&both, 1, 2 * multiply_adds(p));
    } else {
        multiply_tasks((Task[]){weights, inputs}, 2, 2 * multiply_adds(p));
    }
}

static void products_forward(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    Product p;
    for (; n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, t, lanes, n, k, false);
        product_forward(&p, lanes[0][k].op == OP_WEIGHTED_SUM);
    }
}

static void products_backward(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    Product p;
    for (; n > 0; n -= p.n) {
        take_lanes(&p, t, lanes, n, k, true);
        product_backward(&p, lanes[0][k].op == OP_WEIGHTED_SUM);
    }
}

bool fast_linear_forward(Entry *e)
{
    products_forward(NULL, &e, 1, 0);
    return true;
}

bool fast_linear_backward(const Tape *t, Entry *e)
{
    products_backward(t, &e, 1, 0);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * Threads share documents, whose attention has nothing in common; or else each product.
 */
// Short rows, or few of them, are not worth a product.
static bool too_small(const Entry *e, size_t n)
{
    return e->op != OP_LINEAR && (n * e->length < 32 * WIDTH || e->length <= VEC);
}

bool forward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    if (too_small(&lanes[0][k], n)) return false;
    if (!share_lanes(t, lanes, n, k, products_forward)) products_forward(t, lanes, n, k);
    return true;
}

bool backward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    if (too_small(&lanes[0][k], n)) return false;
    if (!share_lanes(t, lanes, n, k, products_backward)) products_backward(t, lanes, n, k);
    return true;
}

#endif
