/* tiles.c: products of matrices, tile by tile.
 *
 * A product has three uses: outputs, gradients of inputs, gradients of weights. Each is a sum over
 * k of a(r, k) * b(k, j), and is computed in the same way:
 *
 *   tile     DOWN rows of ACROSS vectors of sums, which stay in registers while k goes from first
 *            to last. For every k, the WIDTH neighbors b(k, j), times a(r, k), are added to row r.
 *            There are enough sums that none waits for the one before; each load serves several of
 *            them; and no sum is taken across a vector.
 *   panel    the WIDTH columns of b, for up to DEPTH values of k, copied to one place. There they
 *            stay, in the first cache, while one tile after another uses them.
 *
 *   outputs                y(lane, j) = sum of x(lane, k) * w(j, k)   w transposed, in a panel
 *   gradients of inputs    x(lane, j) = sum of y(lane, k) * w(k, j)   w as it is, in a panel
 *   gradients of weights   w(r, j) = sum of y(k, r) * x(k, j)         k is the lane; both copied
 */
#include "tiles.h"

#ifdef VECTORS

typedef double Wide __attribute__((vector_size(WIDE * sizeof(double))));

static inline Wide load_wide(const double *p)
{
    Wide v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store_wide(double *p, Wide v) { memcpy(p, &v, sizeof v); }

// A load that the compiler neither moves nor repeats.
static inline Wide load_once(const double *p)
{
    typedef Wide Anywhere __attribute__((aligned(8), may_alias));
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
    Wide sums[DOWN][ACROSS];
    double *row[DOWN], *ar[DOWN];
    for (size_t r = 0; r < down; r++) {
        row[r] = kind == OF_LANES ? to[r] + to_at : w + r * step;
        ar[r] = kind == OF_LANES ? a[r] + a_at : NULL;
        for (size_t i = 0; i < ACROSS; i++)
            sums[r][i] = add ? load_wide(row[r] + i * WIDE) : (Wide){0};
    }
    size_t k = 0;
    do {
        double ak[DOWN];
        for (size_t r = 0; r < down; r++) ak[r] = kind == OF_LANES ? ar[r][k] : a[k][a_at + r];
        b = kind == OF_LANES ? b : x[k];
        for (size_t i = 0; i < ACROSS; i++) {
            Wide bi = load_once(b + i * WIDE);
            for (size_t r = 0; r < down; r++) sums[r][i] += ak[r] * bi;
        }
        if (kind == OF_LANES) b += step;
    } while (++k < depth);
    for (size_t r = 0; r < down; r++) {
        for (size_t i = 0; i < ACROSS; i++) store_wide(row[r] + i * WIDE, sums[r][i]);
    }
}

// How many of n rows the next tile takes. Two tiles share what is more than one and less than two.
static inline size_t tile_rows(size_t n)
{
    return n <= DOWN ? n : n < 2 * DOWN ? (n + 1) / 2 : DOWN;
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
        double *const *rows = kind == OF_LANES ? to + r : NULL;
        double *const *ar = kind == OF_LANES ? a + r : a;
        double *wr = kind == OF_LANES ? NULL : w + r * step;
        size_t first = kind == OF_LANES ? a_at : a_at + r;
#define TILE(d)                                                                                    \
    if (down == (d) && (d) <= DOWN)                                                                \
    tile(kind, rows, to_at, wr, ar, first, b, step, x, depth, add, (d) <= DOWN ? (d) : 1)
        TILE(8);  // a constant each, so that the loops over it are unrolled
        TILE(7);
        TILE(6);
        TILE(5);
        TILE(4);
        TILE(3);
        TILE(2);
        TILE(1);
#undef TILE
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
    for (size_t k = 0; k < depth; k++) {
        double *to = panel + k * WIDTH;
        const double *from = w + k * stride;
        if (width == WIDTH) {
            pack_row(to, from, WIDTH, WIDTH, c);
        } else {
            pack_row(to, from, width, WIDTH, c);
        }
    }
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

// How many of n rows, from `first` on, does a lane see?
static inline size_t seen_from(const Product *p, size_t lane, size_t first, size_t n)
{
    return p->rows[lane] > first ? smaller(p->rows[lane] - first, n) : 0;
}

// The columns of the result from j0 on, for values of k from k0 on.
typedef struct {
    size_t k0, depth, j0, width;
    const double *b;  // b(k0 + k, j0 + j) is b[k * step + j]
    size_t step;
    double *const *from, *const *to;  // of each lane; what is multiplied, from from_at on, and what
    size_t from_at, to_at;            // becomes of it, from to_at on
    bool add;                         // to what is there
} Panel;

static Panel take_panel(const Task *task, size_t k0, size_t depth, size_t j0, double *room)
{
    const Product *p = task->p;
    bool to_y = task->to_y;
    size_t width = smaller(task->right - j0, WIDTH), stride = p->stride;
    Panel panel = {.k0 = k0, .depth = depth, .j0 = j0, .width = width, .b = room, .step = WIDTH};
    panel.from = to_y ? p->x : p->y;
    panel.to = to_y ? p->y : p->x;
    panel.from_at = (to_y ? task->x_at : task->y_at) + k0;
    panel.to_at = (to_y ? task->y_at : task->x_at) + j0;
    panel.add = task->add || k0 > 0;
    if (to_y) {
        pack_transpose(room, task->w + j0 * stride + k0, stride, depth, width, p->c);
    } else if (width == WIDTH && p->c == 1 && depth * stride <= DEPTH * WIDTH) {
        panel.b = task->w + k0 * stride + j0;  // small enough to stay in the cache as it is
        panel.step = stride;
    } else {
        pack(room, task->w + k0 * stride + j0, stride, depth, width, p->c);
    }
    return panel;
}

// n lanes of a panel, all of whose columns are there.
static void whole_tiles(const Panel *panel, size_t lane, size_t n, size_t depth)
{
    tiles_of_lanes(panel->to + lane, panel->to_at, panel->from + lane, panel->from_at, n, panel->b,
                   panel->step, depth, panel->add);
}

// A tile of which some columns are not there: it is computed aside, then copied.
static void partial_tile(const Task *task, const Panel *panel, size_t lane, size_t n, size_t depth)
{
    double sums[DOWN][WIDTH], *rows[DOWN];
    for (size_t r = 0; r < n; r++) rows[r] = sums[r];
    tiles_of_lanes(rows, 0, panel->from + lane, panel->from_at, n, panel->b, panel->step, depth,
                   false);
    for (size_t r = 0; r < n; r++) {
        double *y = panel->to[lane + r] + panel->to_at;
        size_t width = panel->width;
        if (task->to_y) width = seen_from(task->p, lane + r, panel->j0, width);
        for (size_t j = 0; j < width; j++) y[j] = (panel->add ? y[j] : 0) + sums[r][j];
    }
}

// A panel for lanes that see more and more rows. The same lanes are a tile in every panel, so no
// other thread ever adds to them.
static void triangle(const Task *task, const Panel *panel)
{
    const Product *p = task->p;
    bool to_y = task->to_y;
    size_t k0 = panel->k0, j0 = panel->j0, depth = panel->depth;
    for (size_t lane = 0, n; lane < task->end; lane += n) {
        n = tile_rows(p->n - lane);
        if (lane < task->first || p->rows[lane + n - 1] <= (to_y ? j0 : k0)) continue;
        // Of the lanes of a tile, the first sees the fewest rows.
        size_t common = to_y ? depth : seen_from(p, lane, k0, depth);
        if (common > 0 && panel->width == WIDTH && (!to_y || p->rows[lane] >= j0 + WIDTH)) {
            whole_tiles(panel, lane, n, common);
        } else if (common > 0) {
            partial_tile(task, panel, lane, n, common);
        }
        for (size_t r = 0; !to_y && r < n; r++) {  // the rows that only later lanes see
            const double *a = panel->from[lane + r] + panel->from_at;
            double *x = panel->to[lane + r] + panel->to_at;
            for (size_t k = common; k < seen_from(p, lane + r, k0, depth); k++)
                add_scaled(x, a[k], panel->b + k * panel->step, panel->width);
        }
    }
}

// For each lane y = c * w x (to_y), or x = c * (w transposed) y; with `add`, added to what is
// there.
void multiply_lanes(const Task *task)
{
    _Alignas(64) double room[DEPTH * WIDTH];
    const Product *p = task->p;
    size_t rows = p->rows[p->n - 1], n_k = task->to_y ? p->cols : rows;
    for (size_t k0 = 0; k0 < n_k; k0 += DEPTH) {
        size_t depth = smaller(n_k - k0, DEPTH);
        for (size_t j0 = task->left; j0 < task->right; j0 += WIDTH) {
            Panel panel = take_panel(task, k0, depth, j0, room);
            if (panel.width == WIDTH && p->rows[0] == rows) {  // all lanes see all rows
                whole_tiles(&panel, task->first, task->end - task->first, depth);
            } else {
                triangle(task, &panel);
            }
        }
    }
}

// w += c * y x^T, for each lane. Here w points to gradients, and the rows of a tile are rows of w.
// x and y are copied to one place first, with room for SHARED_SCRATCH numbers; rows that a lane
// does not see are zero there.
void add_outer_products(const Task *task, double *copies)
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
                size_t seen = seen_from(p, lane, j0, n);
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

// The gradients of y = w x for few lanes: all is used in place, as many columns at a time as a tile
// has.
void few_lanes_backward(const Product *p, size_t left, size_t right)
{
    const Tape *t = p->t;
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

#endif
