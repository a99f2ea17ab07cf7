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
 * One use of a product, or two that do not depend on each other, done by one thread or shared. A
 * part is some columns of some rows of a result.
 */
enum { MAX_TASKS = 2 };
typedef struct {
    const Task *tasks[MAX_TASKS];
    size_t n_tasks;
    size_t across[MAX_TASKS], down[MAX_TASKS];  // parts of the columns of each, and of its rows
} Plan;

// The lanes of a small matrix are cut first: then a lane stays in one cache from entry to entry. Of
// a large one each thread has columns of its own, so that they are copied to panels only once.
static size_t cut_task(const Task *task, size_t wanted, size_t *across, size_t *down)
{
    enum { SMALL_MATRIX = 20000, LANES = 32 };  // numbers in it; lanes that are worth its copy
    size_t tiles = n_units(task->end, DOWN), panels = n_units(task->right, WIDTH);
    if (task->use != WEIGHTS && task->p->cols * task->p->rows[task->p->n - 1] <= SMALL_MATRIX) {
        *down = smaller(smaller(tiles, n_units(task->end, LANES)), wanted);
        *across = smaller(panels, (wanted + *down - 1) / *down);
    } else {
        *across = smaller(panels, wanted);
        *down = smaller(tiles, (wanted + *across - 1) / *across);
    }
    return *across * *down;
}

static void do_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Plan *plan = context;
    size_t first_ones = plan->across[0] * plan->down[0], which = part < first_ones ? 0 : 1;
    (void)n_parts, (void)unused;
    assert(which < plan->n_tasks);
    Task task = *plan->tasks[which];
    part -= which ? first_ones : 0;
    size_t across = plan->across[which], i = part % across;
    size_t down = plan->down[which], j = part / across;
    bool same = task.p->rows[0] == task.p->rows[task.p->n - 1];  // all lanes see all rows
    Slope rows = same ? EVEN : task.use == WEIGHTS ? FALLING : RISING;
    Slope columns = same || task.use != OUTPUTS ? EVEN : FALLING;
    size_t n_rows = task.end, n_columns = task.right;
    assert(j < down && task.first == 0 && task.left == 0);
    task.left = cut_units(n_columns, WIDTH, across, i, columns);
    task.right = cut_units(n_columns, WIDTH, across, i + 1, columns);
    task.first = cut_units(n_rows, DOWN, down, j, rows);
    task.end = cut_units(n_rows, DOWN, down, j + 1, rows);
    multiply_matrices(&task);
}

static void do_plan(Plan *plan, size_t work)
{
    size_t wanted = parts_of(work) / plan->n_tasks, n_parts = 0;
    if (wanted < 2) {
        for (size_t i = 0; i < plan->n_tasks; i++) multiply_matrices(plan->tasks[i]);
        return;
    }
    for (size_t i = 0; i < plan->n_tasks; i++) {
        n_parts += cut_task(plan->tasks[i], wanted, &plan->across[i], &plan->down[i]);
    }
    share(do_part, plan, n_parts, NULL);
}

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
    do_plan(&(Plan){.tasks = {&task}, .n_tasks = 1}, work_of(p));
}

// Few lanes are not worth a copy of w: rows of it, four at a time.
static void few_lanes_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Product *p = context;
    double *y[FEW_LANES];
    size_t first = cut_units(p->rows[0], 4, n_parts, part, EVEN);
    size_t end = cut_units(p->rows[0], 4, n_parts, part + 1, EVEN);
    (void)unused;
    assert(first < end && p->n <= FEW_LANES);
    for (size_t lane = 0; lane < p->n; lane++) y[lane] = p->y[lane] + first;
    multiply_few_lanes(y, p->w + first * p->stride, p->stride, p->x, p->n, end - first, p->cols);
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
                share(few_lanes_part, &p, n_parts, NULL);
            } else {
                multiply_few_lanes(p.y, p.w, p.stride, p.x, p.n, p.rows[0], p.cols);
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
    Task of_w = {.p = p, .use = WEIGHTS, .w_at = g, .add = true, .end = rows, .right = p->cols};
    Task of_in = {.p = p, .use = INPUTS, .x_at = g, .y_at = g, .add = true, .end = p->n};
    of_w.x_at = weighted ? g : 0;
    of_w.y_at = weighted ? 0 : g;
    of_in.use = weighted ? OUTPUTS : INPUTS;
    of_in.right = weighted ? rows : p->cols;
    do_plan(&(Plan){.tasks = {&of_w, &of_in}, .n_tasks = 2}, 2 * work_of(p));
}

// Columns of w, a vector at a time.
static void few_lanes_backward_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Product *p = context;
    FewLanes few = {.n = p->n, .x = p->x, .y = p->y, .w = p->w, .stride = p->stride, .c = p->c};
    few.rows = p->rows[0];
    few.g = p->t->chunk_size;
    (void)unused;
    few_lanes_backward(&few, cut_units(p->cols, VEC, n_parts, part, EVEN),
                       cut_units(p->cols, VEC, n_parts, part + 1, EVEN));
}

static void products_backward(const Tape *t, Entry *const *lanes, size_t n, size_t k,
                              double *unused)
{
    Product p;
    Op op = lanes[0][k].op;
    (void)unused;
    for (; n > 0; n -= p.n) {
        take_lanes(&p, t, lanes, n, k, true);
        if (op != OP_LINEAR || p.n >= FEW_LANES || p.cols % VEC) {
            product_backward(&p, op == OP_WEIGHTED_SUM);
        } else {
            size_t n_parts = smaller(n_units(p.cols, VEC), parts_of(2 * work_of(&p)));
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
