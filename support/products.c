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

/* ------------------------------------------------------------------------------------------------
 * Threads share a product: each computes some columns of some rows of the result.
 */
typedef struct {
    Task task;
    size_t across, down;  // parts of its columns, of its rows
} Shared;

// The lanes of a small matrix are cut first: then a lane stays in one cache from entry to entry. Of
// a large one each thread has columns of its own, so that they are copied to panels only once.
static void cut_task(Shared *shared, size_t wanted)
{
    enum {
        SMALL_MATRIX = 20000,
        LANES = 32
    };  // numbers in a matrix; lanes that are worth its copy
    const Task *task = &shared->task;
    size_t n = task->end, panels = (task->right + WIDTH - 1) / WIDTH;
    size_t tiles = (n + DOWN - 1) / DOWN;
    if (task->use != WEIGHTS && task->p->cols * task->p->rows[task->p->n - 1] <= SMALL_MATRIX) {
        shared->down = smaller(smaller(tiles, n < LANES ? 1 : n / LANES), wanted);
        shared->across = smaller(panels, (wanted + shared->down - 1) / shared->down);
    } else {
        shared->across = smaller(panels, wanted);
        shared->down = smaller(tiles, (wanted + shared->across - 1) / shared->across);
    }
}

// Where part i of n_parts of so many rows or columns begins: at a multiple of `unit`.
static size_t cut_at(size_t n, size_t unit, size_t n_parts, size_t i, Slope slope)
{
    return smaller(cut_by_work((n + unit - 1) / unit, n_parts, i, slope) * unit, n);
}

static void do_task(const Shared *shared, size_t part)
{
    Task task = shared->task;
    size_t n = task.end, right = task.right, i = part % shared->across, j = part / shared->across;
    bool same = task.p->rows[0] == task.p->rows[task.p->n - 1];  // all lanes see all rows
    Slope rows = same ? EVEN : task.use == WEIGHTS ? FALLING : RISING;
    Slope columns = same || task.use != OUTPUTS ? EVEN : FALLING;
    task.left = cut_at(right, WIDTH, shared->across, i, columns);
    task.right = cut_at(right, WIDTH, shared->across, i + 1, columns);
    task.first = cut_at(n, DOWN, shared->down, j, rows);
    task.end = cut_at(n, DOWN, shared->down, j + 1, rows);
    multiply_matrices(&task);
}

static void do_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Shared *shared = context;
    (void)unused;
    assert(shared->across * shared->down == n_parts);
    do_task(shared, part);
}

// The parts of two tasks alternate, so that each thread gets some of both; the longer goes on.
static void do_part_of_two(void *context, size_t part, size_t n_parts, double *unused)
{
    const Shared *shared = context;
    size_t n[2] = {shared[0].across * shared[0].down, shared[1].across * shared[1].down};
    size_t both = 2 * smaller(n[0], n[1]), more = n[0] > n[1] ? 0 : 1;
    (void)unused;
    assert(n[0] + n[1] == n_parts);
    size_t which = part < both ? part % 2 : more;
    do_task(&shared[which], part < both ? part / 2 : part - both / 2);
}

// One or two tasks that do not depend on each other, each in so many parts, or nearly.
static void share_tasks(Shared *shared, size_t n, size_t wanted)
{
    size_t n_parts = 0;
    for (size_t i = 0; i < n; i++) {
        cut_task(&shared[i], wanted);
        n_parts += shared[i].across * shared[i].down;
    }
    share(n == 2 ? do_part_of_two : do_part, shared, n_parts, NULL);
}

static size_t product_work(const Product *p) { return p->n * p->rows[p->n / 2] * p->cols; }

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
    size_t n_in = linear ? e->w->cols : weighted ? before->n : e->length;
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
    p->w = linear ? e->w->data : e->b;
    p->stride = linear ? e->w->cols : e->stride;
    p->cols = linear ? e->w->cols : e->length;
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
    size_t wanted = parts_of(product_work(p));
    if (wanted > 1) {
        share_tasks(&(Shared){.task = task}, 1, wanted);
    } else {
        multiply_matrices(&task);
    }
}

// Rows of w, for few lanes: four at a time.
static void few_lanes_forward_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Product *p = context;
    double *y[FEW_LANES];
    size_t fours = (p->rows[0] + 3) / 4;
    size_t first = 4 * cut(fours, n_parts, part), end = 4 * cut(fours, n_parts, part + 1);
    (void)unused;
    assert(first < end && first < p->rows[0] && end < p->rows[0] + 4);
    for (size_t lane = 0; lane < p->n; lane++) y[lane] = p->y[lane] + first;
    multiply_few_lanes(y, p->w + first * p->stride, p->stride, p->x, p->n,
                       smaller(end, p->rows[0]) - first, p->cols);
}

// Few lanes are not worth a panel, unless rows end within a vector.
bool linear_forward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    Product p;
    for (; n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, t, lanes, n, k, false);
        size_t n_parts = smaller((p.rows[0] + 3) / 4, parts_of(product_work(&p)));
        if (p.n >= FEW_LANES || p.cols % VEC) {
            multiply_product(&p, OUTPUTS);
        } else if (n_parts > 1) {
            share(few_lanes_forward_part, &p, n_parts, NULL);
        } else {
            multiply_few_lanes(p.y, p.w, p.stride, p.x, p.n, p.rows[0], p.cols);
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
    Task of_w = {.p = p, .use = WEIGHTS, .w_at = g, .add = true, .end = rows, .right = p->cols};
    Task of_in = {.p = p, .use = INPUTS, .x_at = g, .y_at = g, .add = true, .end = p->n};
    of_w.x_at = weighted ? g : 0;
    of_w.y_at = weighted ? 0 : g;
    of_in.use = weighted ? OUTPUTS : INPUTS;
    of_in.right = weighted ? rows : p->cols;
    size_t wanted = parts_of(2 * product_work(p));
    if (wanted > 1) {
        share_tasks((Shared[]){{.task = of_w}, {.task = of_in}}, 2, wanted / 2);
    } else {
        multiply_matrices(&of_w);
        multiply_matrices(&of_in);
    }
}

static void products_backward(const Tape *t, Entry *const *lanes, size_t n, size_t k,
                              double *unused)
{
    Product p;
    (void)unused;
    for (; n > 0; n -= p.n) {
        take_lanes(&p, t, lanes, n, k, true);
        product_backward(&p, lanes[0][k].op == OP_WEIGHTED_SUM);
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
