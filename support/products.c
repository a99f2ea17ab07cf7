/* products.c: products of matrices, for the same entry of many lanes.
 *
 * y = w x and its two gradients, for linear(), and in attention for row dots and weighted sums.
 * They promise what linear_forward() and the others in autograd.c define; sums are taken in another
 * order, so last bits differ. Entries that cannot be one product are done one after another. Where
 * a product is not worth it, nothing is done.
 *
 * A product has three uses: outputs, gradients of inputs, gradients of weights. Each is a sum over
 * k of a(r, k) * b(k, j), and is computed in the same way:
 *
 *   tile     DOWN rows of ACROSS vectors of sums, which stay in registers while k goes from first
 *            to last. For every k the WIDTH neighbors b(k, j) are added to each row, a(r, k) times.
 *            There are enough sums that none waits for the one before; each load serves several of
 *            them; and no sum is taken across a vector.
 *   panel    the WIDTH columns of b, for up to DEPTH values of k, copied to one place. There they
 *            stay, in the first cache, while one tile after another uses them.
 *
 *   outputs                y(lane, j) = sum of x(lane, k) * w(j, k)   w transposed, in a panel
 *   gradients of inputs    x(lane, j) = sum of y(lane, k) * w(k, j)   w as it is, in a panel
 *   gradients of weights   w(r, j) = sum of y(k, r) * x(k, j)         k is the lane; both copied
 */
#include "fast.h"

#ifdef VECTORS

#if !defined AUTOGRAD_TILE && (defined __AVX512VL__ || defined __aarch64__)
#define AUTOGRAD_TILE 4  // rows of a tile: as many as there are registers for
#elif !defined AUTOGRAD_TILE
#define AUTOGRAD_TILE 3
#endif
enum { ACROSS = 4, DOWN = AUTOGRAD_TILE, WIDTH = ACROSS * VEC, DEPTH = 128 };
enum { FEW_LANES = 12, MAX_LANES = 128 };

// Products with the same rows w: of each lane y = w x, or gradients of these. A lane sees the first
// rows[lane] rows, and no more than the lane after it does.
typedef struct {
    size_t n;  // lanes
    double *x[MAX_LANES], *y[MAX_LANES];
    size_t rows[MAX_LANES];
    double *w;
    size_t stride, cols;  // of w: from row to row, and how much of each is used
    double c;             // all products are multiplied by it
} Product;

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// A load that the compiler neither moves nor repeats.
static inline Vec load_once(const double *p)
{
    typedef Vec Anywhere __attribute__((aligned(8), may_alias));
    return *(const volatile Anywhere *)p;
}

// y[i] += c * x[i], as in autograd.c.
static inline void add_scaled(double *restrict y, double c, const double *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += c * x[i];
}

// The `down` rows of a tile are lanes: then row r is to[r] + to_at, a(r, k) is a[r][a_at + k], and
// b(k, j) is b[k * step + j]. Or they are rows of w: then row r is w + r * step, a(r, k) is
// a[k][a_at + r], b(k, j) is x[k][j].
typedef enum { OF_LANES, OF_ROWS } TileKind;

// Each row (from zero, or added to) = the sum over k < depth of a(r, k) * b(k, j). A vector of b is
// loaded once, right where it is used: else the compiler runs out of registers.
static ALWAYS_INLINE void tile(TileKind kind, double *const *to, size_t to_at, double *w,
                               double *const *a, size_t a_at, const double *b, size_t step,
                               double *const *x, size_t depth, bool add, size_t down)
{
    Vec sums[DOWN][ACROSS];
    double *row[DOWN], *ar[DOWN];
    for (size_t r = 0; r < down; r++) {
        row[r] = kind == OF_LANES ? to[r] + to_at : w + r * step;
        ar[r] = kind == OF_LANES ? a[r] + a_at : NULL;
        for (size_t i = 0; i < ACROSS; i++) sums[r][i] = add ? load(row[r] + i * VEC) : ZERO;
    }
    size_t k = 0;
    do {
        double ak[DOWN];
        for (size_t r = 0; r < down; r++) ak[r] = kind == OF_LANES ? ar[r][k] : a[k][a_at + r];
        b = kind == OF_LANES ? b : x[k];
        for (size_t i = 0; i < ACROSS; i++) {
            Vec bi = load_once(b + i * VEC);
            for (size_t r = 0; r < down; r++) sums[r][i] += ak[r] * bi;
        }
        if (kind == OF_LANES) b += step;
    } while (++k < depth);
    for (size_t r = 0; r < down; r++) {
        for (size_t i = 0; i < ACROSS; i++) store(row[r] + i * VEC, sums[r][i]);
    }
}

// How many of n rows the next tile takes: DOWN, or one less where that leaves fewer rows alone.
static inline size_t tile_rows(size_t n)
{
    return n == DOWN - 1 || (n > DOWN && n == 2 * (DOWN - 1)) ? DOWN - 1 : n >= DOWN ? DOWN : 1;
}

// n rows, tile after tile. With many lanes, the rows of the next tile are on their way before they
// are needed.
static ALWAYS_INLINE void tiles(TileKind kind, double *const *to, size_t to_at, double *w,
                                double *const *a, size_t a_at, size_t n, const double *b,
                                size_t step, double *const *x, size_t depth, bool add)
{
    for (size_t r = 0, down; r < n; r += down) {
        down = tile_rows(n - r);
        for (size_t i = r + down;
             (kind == OF_LANES ? n : depth) >= FEW_LANES && i < n && i < r + down + DOWN; i++) {
            const double *next = kind == OF_LANES ? to[i] + to_at : w + i * step;
            for (size_t j = 0; j < WIDTH; j += 8) __builtin_prefetch(next + j, 1);
        }
        double *const *rows = kind == OF_LANES ? to + r : NULL, *const *ar =
                                                                    kind == OF_LANES ? a + r : a;
        double *wr = kind == OF_LANES ? NULL : w + r * step;
        size_t first = kind == OF_LANES ? a_at : a_at + r;
        if (down == DOWN) {
            tile(kind, rows, to_at, wr, ar, first, b, step, x, depth, add, DOWN);
        } else if (down == DOWN - 1) {
            tile(kind, rows, to_at, wr, ar, first, b, step, x, depth, add, DOWN - 1);
        } else {
            tile(kind, rows, to_at, wr, ar, first, b, step, x, depth, add, 1);
        }
    }
}

static NOINLINE void tiles_of_lanes(double *const *to, size_t to_at, double *const *a, size_t a_at,
                                    size_t n, const double *b, size_t step, size_t depth, bool add)
{
    tiles(OF_LANES, to, to_at, NULL, a, a_at, n, b, step, NULL, depth, add);
}

static NOINLINE void tiles_of_rows(double *w, size_t step, double *const *a, size_t a_at, size_t n,
                                   double *const *x, size_t depth)
{
    tiles(OF_ROWS, NULL, 0, w, a, a_at, n, NULL, step, x, depth, true);
}

// to[j] = c * from[j], and zero from j = n to room
static ALWAYS_INLINE double *pack_row(double *restrict to, const double *restrict from, size_t n,
                                      size_t room, double c)
{
    for (size_t j = 0; j < n; j++) to[j] = c * from[j];
    for (size_t j = n; j < room; j++) to[j] = 0;
    return to;
}

// panel[k][j] = c * w(k, j), and zero from j = width on; WIDTH is a constant, where it can be
static NOINLINE void pack(double *panel, const double *w, size_t stride, size_t depth, size_t width,
                          double c)
{
    for (size_t k = 0; k < depth && width == WIDTH; k++)
        pack_row(panel + k * WIDTH, w + k * stride, WIDTH, WIDTH, c);
    for (size_t k = 0; k < depth && width < WIDTH; k++)
        pack_row(panel + k * WIDTH, w + k * stride, width, WIDTH, c);
}

// panel[k][j] = c * w(j, k), and zero from j = width on
static NOINLINE void pack_transpose(double *panel, const double *w, size_t stride, size_t depth,
                                    size_t width, double c)
{
    size_t k = 0;
#ifdef SHUFFLE
    for (; k + 4 <= depth && width == WIDTH; k += 4) {
        for (size_t j = 0; j < WIDTH; j += 4) {  // four by four
            const double *from = w + j * stride + k;
            Vec a = c * load(from), b = c * load(from + stride);
            Vec d = c * load(from + 2 * stride), e = c * load(from + 3 * stride);
            Vec even_ab = SHUFFLE(a, b, 0, 4, 2, 6), odd_ab = SHUFFLE(a, b, 1, 5, 3, 7);
            Vec even_de = SHUFFLE(d, e, 0, 4, 2, 6), odd_de = SHUFFLE(d, e, 1, 5, 3, 7);
            store(panel + k * WIDTH + j, SHUFFLE(even_ab, even_de, 0, 1, 4, 5));
            store(panel + (k + 1) * WIDTH + j, SHUFFLE(odd_ab, odd_de, 0, 1, 4, 5));
            store(panel + (k + 2) * WIDTH + j, SHUFFLE(even_ab, even_de, 2, 3, 6, 7));
            store(panel + (k + 3) * WIDTH + j, SHUFFLE(odd_ab, odd_de, 2, 3, 6, 7));
        }
    }
#endif
    for (; k < depth; k++) {
        for (size_t j = 0; j < WIDTH; j++)
            panel[k * WIDTH + j] = j < width ? c * w[j * stride + k] : 0;
    }
}

// What is to be computed with a product: two of x, y and w give the third, for the lanes or rows of
// w from `first` to `end`, and for the columns of the result from `left` to `right`.
typedef struct {
    const Product *p;
    size_t x_at, y_at;  // t->chunk_size where gradients are meant, else 0
    double *w;
    bool to_y, add;  // the result is y, or x; it is added to what is there
    size_t first, end, left, right;
} Task;

// For each lane y = c * w x (to_y), or x = c * (w transposed) y; with `add`, added to what is
// there.
static NOINLINE void multiply_lanes(const Task *task)
{
    _Alignas(64) double panel[DEPTH * WIDTH];
    double scratch[DOWN][WIDTH], *scratch_rows[DOWN];  // for tiles of which only a part is there
    for (size_t r = 0; r < DOWN; r++) scratch_rows[r] = scratch[r];
    const Product *p = task->p;
    bool to_y = task->to_y;
    size_t rows = p->rows[p->n - 1], n_k = to_y ? p->cols : rows, stride = p->stride;
    size_t from_at = to_y ? task->x_at : task->y_at, to_at = to_y ? task->y_at : task->x_at;
    double *const *from = to_y ? p->x : p->y, *const *to = to_y ? p->y : p->x;
    for (size_t k0 = 0; k0 < n_k; k0 += DEPTH) {
        size_t depth = smaller(n_k - k0, DEPTH);
        for (size_t j0 = task->left; j0 < task->right; j0 += WIDTH) {
            size_t width = smaller(task->right - j0, WIDTH), step = WIDTH, lane = 0, down = 0;
            const double *b = panel;
            if (to_y) {
                pack_transpose(panel, task->w + j0 * stride + k0, stride, depth, width, p->c);
            } else if (width == WIDTH && p->c == 1 && depth * stride <= DEPTH * WIDTH) {
                b = task->w + k0 * stride + j0;  // small enough to stay in the cache as it is
                step = stride;
            } else {
                pack(panel, task->w + k0 * stride + j0, stride, depth, width, p->c);
            }
            while (p->rows[lane] <= (to_y ? j0 : k0))
                lane++;  // skip lanes that see none of these rows
            bool start = task->add || k0 > 0, all = width == WIDTH && p->rows[0] == rows;
            if (all) lane = task->first;
            for (; lane < task->end; lane += down) {
                down = all ? task->end - lane : tile_rows(p->n - lane);
                if (lane < task->first) continue;
                // Of the lanes of a tile, the first sees the fewest rows.
                size_t common = to_y ? depth : smaller(depth, p->rows[lane] - k0);
                if (width == WIDTH && (!to_y || p->rows[lane] >= j0 + WIDTH)) {
                    tiles_of_lanes(to + lane, to_at + j0, from + lane, from_at + k0, down, b, step,
                                   common, start);
                } else {
                    tiles_of_lanes(scratch_rows, 0, from + lane, from_at + k0, down, b, step,
                                   common, false);
                    for (size_t r = 0; r < down; r++) {
                        double *y = to[lane + r] + to_at + j0;
                        size_t n_valid = to_y ? smaller(width, p->rows[lane + r] - j0) : width;
                        for (size_t j = 0; j < n_valid; j++)
                            y[j] = (start ? y[j] : 0) + scratch[r][j];
                    }
                }
                for (size_t r = 1; !to_y && !all && r < down; r++) {
                    double *y = to[lane + r] + to_at + j0, *a = from[lane + r] + from_at + k0;
                    for (size_t k = common; k < smaller(depth, p->rows[lane + r] - k0); k++)
                        add_scaled(y, a[k], b + k * step, width);
                }
            }
        }
    }
}

enum { ROWS = 64 };  // of y that add_outer_products() copies at a time

// w += c * y x^T, for each lane. Here w points to gradients, and the rows of a tile are rows of w.
// x and y are copied to one place first, with room for SHARED_SCRATCH numbers; rows that a lane
// does not see are zero there.
static NOINLINE void add_outer_products(const Task *task, double *copies)
{
    // PAD: so that not all rows meet in the same cache lines
    enum { COLS = 8 * WIDTH, PAD = 8 };
    _Static_assert(MAX_LANES * (COLS + PAD + ROWS + PAD) <= SHARED_SCRATCH, "copies need room");
    double(*x_copy)[COLS + PAD] = (double(*)[COLS + PAD]) copies;
    double(*y_copy)[ROWS + PAD] = (double(*)[ROWS + PAD])(copies + MAX_LANES * (COLS + PAD));
    double scratch[DOWN][WIDTH], *x[MAX_LANES], *y[MAX_LANES];
    const Product *p = task->p;
    size_t rows = p->rows[p->n - 1];
    bool all = p->rows[0] == rows && p->cols % WIDTH == 0;
    for (size_t i0 = task->left; i0 < task->right; i0 += COLS) {
        size_t cols = smaller(task->right - i0, COLS), whole = (cols + WIDTH - 1) / WIDTH * WIDTH;
        for (size_t lane = 0; lane < p->n; lane++)
            pack_row(x_copy[lane], p->x[lane] + task->x_at + i0, cols, whole, p->c);
        for (size_t j0 = task->first / ROWS * ROWS; j0 < task->end; j0 += ROWS) {
            size_t n = smaller(rows - j0, ROWS), end = smaller(task->end - j0, n);
            size_t begin = task->first > j0 ? task->first - j0 : 0;
            for (size_t lane = 0; lane < p->n; lane++) {
                size_t seen = p->rows[lane] > j0 ? smaller(p->rows[lane] - j0, n) : 0;
                y[lane] = pack_row(y_copy[lane], p->y[lane] + task->y_at + j0, seen, n, 1);
            }
            for (size_t i = 0; i < cols; i += WIDTH) {
                for (size_t lane = 0; lane < p->n; lane++) x[lane] = x_copy[lane] + i;
                for (size_t j = all ? begin : 0, seen = 0, down; j < end; j += down) {
                    double *w = task->w + (j0 + j) * p->stride + i0 + i;
                    down = all ? end - j : tile_rows(n - j);
                    if (j < begin) continue;
                    while (p->rows[seen] <= j0 + j) seen++;  // skip those that see none of them
                    if (i + WIDTH <= cols) {
                        tiles_of_rows(w, p->stride, y + seen, j, down, x + seen, p->n - seen);
                        continue;
                    }
                    memset(scratch, 0, sizeof scratch);
                    tiles_of_rows(scratch[0], WIDTH, y + seen, j, down, x + seen, p->n - seen);
                    for (size_t r = 0; r < down; r++)
                        add_scaled(w + r * p->stride, 1, scratch[r], cols - i);
                }
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------
 * Threads share a product: each computes some columns of the result for some lanes, or rows of w.
 * Cuts are where tiles begin also without them, so every sum is the same.
 */
enum { CUT = 12 };  // rows of 4 tiles, or 3: a part begins at a multiple of it

// How many parts n rows can be cut into, and where part i of them begins. The last part takes the
// rows that are left over.
static size_t n_cuts(size_t n) { return n < 2 * CUT ? 1 : n / CUT; }

static size_t row_cut(size_t n, size_t n_parts, size_t i, Slope slope)
{
    return i == n_parts ? n : cut_by_work(n_cuts(n), n_parts, i, slope) * CUT;
}

// The same for rows of w, which are copied ROWS at a time: blocks of these are cut each by itself.
static size_t n_block_cuts(size_t n)
{
    return n / ROWS * n_cuts(ROWS) + (n % ROWS ? n_cuts(n % ROWS) : 0);
}

static size_t block_cut(size_t n, size_t n_parts, size_t i, Slope slope)
{
    size_t at = cut_by_work(n_block_cuts(n), n_parts, i, slope), per_block = n_cuts(ROWS);
    return i == n_parts ? n : at / per_block * ROWS + at % per_block * CUT;
}

// A task in parts: `across` parts of its columns by `down` parts of its lanes, or rows.
typedef struct {
    Task task;
    bool of_rows;
    size_t across, down;
} Shared;

static void cut_task(Shared *shared, size_t wanted)
{
    const Task *task = &shared->task;
    size_t n = task->end;
    size_t panels = (task->right + WIDTH - 1) / WIDTH;
    size_t cuts = shared->of_rows ? n_block_cuts(n) : n_cuts(n);
    shared->across = smaller(panels, wanted);
    shared->down = smaller(cuts, (wanted + shared->across - 1) / shared->across);
}

static void do_task(const Shared *shared, size_t part, double *scratch)
{
    Task task = shared->task;
    size_t n = task.end, i = part % shared->across, j = part / shared->across;
    size_t panels = (task.right + WIDTH - 1) / WIDTH, right = task.right;
    bool same = task.p->rows[0] == task.p->rows[task.p->n - 1];  // all lanes see all rows
    Slope of_lanes = same ? EVEN : RISING, of_rows = same ? EVEN : FALLING;
    Slope across = task.to_y ? of_rows : EVEN;
    task.left = cut_by_work(panels, shared->across, i, across) * WIDTH;
    task.right = smaller(cut_by_work(panels, shared->across, i + 1, across) * WIDTH, right);
    if (shared->of_rows) {
        task.first = block_cut(n, shared->down, j, of_rows);
        task.end = block_cut(n, shared->down, j + 1, of_rows);
        add_outer_products(&task, scratch);
    } else {
        task.first = row_cut(n, shared->down, j, of_lanes);
        task.end = row_cut(n, shared->down, j + 1, of_lanes);
        multiply_lanes(&task);
    }
}

static void do_tasks(void *context, size_t part, double *scratch)
{
    const Shared *shared = context;
    size_t n = shared->across * shared->down;
    do_task(part < n ? shared : shared + 1, part < n ? part : part - n, scratch);
}

// One or two tasks that do not depend on each other, each in so many parts, or nearly.
static void share_tasks(Shared *shared, size_t n, size_t wanted, double *scratch)
{
    size_t n_parts = 0;
    for (size_t i = 0; i < n; i++) {
        cut_task(&shared[i], wanted);
        n_parts += shared[i].across * shared[i].down;
    }
    share(do_tasks, shared, n_parts, scratch);
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
static void multiply_product(const Product *p, bool to_y)
{
    size_t rows = p->rows[p->n - 1];
    Task task = {p, 0, 0, p->w, to_y, false, 0, p->n, 0, to_y ? rows : p->cols};
    size_t wanted = parts_of(work_of(p));
    if (wanted > 1) {
        share_tasks(&(Shared){.task = task}, 1, wanted, NULL);
    } else {
        multiply_lanes(&task);
    }
}

// Rows of w, for few lanes: four at a time.
static void few_lanes_forward(void *context, size_t part, double *unused)
{
    const Product *p = context;
    double *y[FEW_LANES];
    size_t fours = (p->rows[0] + 3) / 4, n_parts = smaller(fours, parts_of(work_of(p)));
    size_t first = 4 * cut(fours, n_parts, part), end = 4 * cut(fours, n_parts, part + 1);
    (void)unused;
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
        if (p.n >= FEW_LANES || p.cols % VEC) {
            multiply_product(&p, true);
        } else if (parts_of(work_of(&p)) > 1) {
            size_t n_parts = smaller((p.rows[0] + 3) / 4, parts_of(work_of(&p)));
            share(few_lanes_forward, &p, n_parts, NULL);
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
// The gradients of y = w x for few lanes: all is used in place, as many columns at a time as a tile
// has.
static NOINLINE void few_lanes_backward(const Tape *t, const Product *p, size_t left, size_t right)
{
    double *x[FEW_LANES], *gx[FEW_LANES], *gy[FEW_LANES];
    size_t rows = p->rows[0];
    for (size_t lane = 0; lane < p->n; lane++) {
        gx[lane] = grad(t, p->x[lane]);
        gy[lane] = grad(t, p->y[lane]);
    }
    for (size_t i = left; i < right; i += WIDTH) {
        for (size_t lane = 0; lane < p->n; lane++) x[lane] = p->x[lane] + i;
        tiles_of_rows(grad(t, p->w + i), p->stride, gy, 0, rows, x, p->n);
    }
    for (size_t k = 0; k < rows; k += DEPTH) {
        const double *w = p->w + k * p->stride;
        size_t depth = smaller(DEPTH, rows - k);
        for (size_t i = left; i < right; i += WIDTH) {
            tiles_of_lanes(gx, i, gy, k, p->n, w + i, p->stride, depth, true);
        }
    }
}

typedef struct {
    const Tape *t;
    const Product *p;
} FewLanes;

static void few_lanes_part(void *context, size_t part, double *unused)
{
    const FewLanes *few = context;
    size_t panels = few->p->cols / WIDTH, n_parts = smaller(panels, parts_of(2 * work_of(few->p)));
    (void)unused;
    few_lanes_backward(few->t, few->p, cut(panels, n_parts, part) * WIDTH,
                       cut(panels, n_parts, part + 1) * WIDTH);
}

// Of the rows first, then of what was multiplied by them. A weighted sum goes from y to x.
static void product_backward(const Tape *t, const Product *p, bool weighted, double *scratch)
{
    size_t rows = p->rows[p->n - 1], g = t->chunk_size;
    Task of_w = {p, weighted ? g : 0, weighted ? 0 : g, grad(t, p->w), false, true, 0, rows,
                 0, p->cols};
    Task of_in = {p, g, g, p->w, weighted, true, 0, p->n, 0, weighted ? rows : p->cols};
    size_t wanted = parts_of(2 * work_of(p));
    if (wanted > 1) {
        Shared shared[2] = {{.task = of_w, .of_rows = true}, {.task = of_in}};
        share_tasks(shared, 2, wanted / 2, scratch);
    } else {
        add_outer_products(&of_w, scratch);
        multiply_lanes(&of_in);
    }
}

static void products_backward(const Tape *t, Entry *const *lanes, size_t n, size_t k,
                              double *scratch)
{
    Product p;
    bool linear = lanes[0][k].op == OP_LINEAR, weighted = lanes[0][k].op == OP_WEIGHTED_SUM;
    for (; n > 0; n -= p.n) {
        take_lanes(&p, t, lanes, n, k, true);
        if (!linear || p.n >= FEW_LANES || p.cols % WIDTH) {
            product_backward(t, &p, weighted, scratch);
        } else if (parts_of(2 * work_of(&p)) > 1) {
            size_t n_parts = smaller(p.cols / WIDTH, parts_of(2 * work_of(&p)));
            share(few_lanes_part, &(FewLanes){t, &p}, n_parts, NULL);
        } else {
            few_lanes_backward(t, &p, 0, p.cols);
        }
    }
}

bool linear_backward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    products_backward(t, lanes, n, k, t->lanes->scratch);
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
        multiply_product(&p, lanes[0][k].op == OP_ROW_DOTS);
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
