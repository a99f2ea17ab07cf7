/* plan.c: how threads share products of matrices.
 *
 * A part is some columns of some rows of one result, so no two parts have a number in common, and
 * nobody adds up what others computed. Parts begin at multiples of the size of a tile and sums are
 * taken in the same order whatever the cuts are, so the number of threads changes no bits.
 *
 *   worth it   parts_of() in private.h decides by the number of multiply-adds: a part takes at
 *              least as long as threads need to meet
 *   lanes      outputs and gradients of inputs of a small matrix are cut by lanes: each thread
 *              copies the whole matrix, but a lane stays in the cache of one processor from entry
 *              to entry
 *   columns    a large matrix, and gradients of weights, are cut by columns of the result first:
 *              then no thread copies a panel that another copies, though each copies the blocks
 *   attention  documents have nothing in common: see share_lanes() in lanes.c; a single one is cut
 *              by lanes or rows, fewer of them where more is seen
 */
#include "tiles.h"

#include <assert.h>

#ifdef VECTORS

enum { MAX_TASKS = 2 };
typedef struct {
    const Task *tasks;  // [n]
    size_t n;
    size_t across[MAX_TASKS], down[MAX_TASKS];  // parts of the columns of each, and of its rows
} Plan;

static void multiply(const Task *task)
{
    bool few = task->use == FEW_OUTPUTS || task->use == FEW_GRADIENTS;
    (few ? multiply_few_lanes : multiply_matrices)(task);
}

// The count of units of this size in n things; the last unit is larger, if some are left over.
static size_t n_units(size_t n, size_t unit) { return n < unit ? 1 : n / unit; }

// Cuts n things into n_parts of whole units: where part i begins.
static size_t cut_units(size_t n, size_t unit, size_t n_parts, size_t i, Slope slope)
{
    return i == n_parts ? n : cut_by_work(n_units(n, unit), n_parts, i, slope) * unit;
}

// Cuts a task into about `wanted` parts. Returns their number.
static size_t cut_task(const Task *task, size_t wanted, size_t *across, size_t *down)
{
    enum { SMALL_MATRIX = 20000, LANES = 32 };  // numbers in it; lanes that are worth its copy
    const Product *p = task->p;
    size_t tiles = n_units(task->end, DOWN), panels = n_units(task->right, WIDTH);
    if (task->use >= FEW_OUTPUTS) tiles = 1;
    if (task->use != WEIGHTS && p->cols * p->rows[p->n - 1] <= SMALL_MATRIX) {
        *down = smaller(smaller(tiles, n_units(task->end, LANES)), wanted);
        *across = smaller(panels, (wanted + *down - 1) / *down);
    } else {
        *across = smaller(panels, wanted);
        *down = smaller(tiles, (wanted + *across - 1) / *across);
    }
    return *across * *down;
}

static void do_part(void *context, size_t part, size_t n_parts)
{
    const Plan *plan = context;
    size_t parts_of_first = plan->across[0] * plan->down[0], which = part >= parts_of_first;
    assert(which < plan->n && part < n_parts);
    (void)n_parts;
    Task task = plan->tasks[which];
    size_t across = plan->across[which], down = plan->down[which];
    size_t nth = part - which * parts_of_first, i = nth % across, j = nth / across;
    bool same = task.p->rows[0] == task.p->rows[task.p->n - 1];  // all lanes see all rows
    Slope rows = same ? EVEN : task.use == WEIGHTS ? FALLING : RISING;
    Slope columns = same || task.use != OUTPUTS ? EVEN : FALLING;
    assert(j < down && task.first == 0 && task.left == 0);
    task.left = cut_units(task.right, WIDTH, across, i, columns);
    task.right = cut_units(task.right, WIDTH, across, i + 1, columns);
    task.first = cut_units(task.end, DOWN, down, j, rows);
    task.end = cut_units(task.end, DOWN, down, j + 1, rows);
    multiply(&task);
}

void multiply_tasks(const Task *tasks, size_t n, size_t work)
{
    assert(n >= 1 && n <= MAX_TASKS);
    Plan plan = {.tasks = tasks, .n = n};
    size_t parts = parts_of(work), wanted = parts < 2 * n ? 1 : parts / n, n_parts = 0;
    if (parts < 2) {
        for (size_t i = 0; i < n; i++) multiply(&tasks[i]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        n_parts += cut_task(&tasks[i], wanted, &plan.across[i], &plan.down[i]);
    }
    share(do_part, &plan, n_parts);
}

#endif
