/* tiles.c: products of matrices, tile by tile.
 *
 * A product has three uses, and each is c(i, j) = sum over k of a(i, k) * b(k, j):
 *
 *              result              a                b              i      j        k
 *   outputs    y = x w^T           x                w, transposed  lane   row      column
 *   inputs     x = y w             y                w              lane   column   row
 *   weights    w = y^T x           y, transposed    x              row    column   lane
 *
 *   block   up to BLOCK_ROWS values of i and DEPTH of k: this part of a, copied to one place, which
 *           the second cache holds. Here data or gradients are chosen, the constant is applied, and
 *           what a lane does not see becomes zero.
 *   panel   WIDTH columns of b for these k, copied to one place, which the first cache holds.
 *   tile    DOWN rows of WIDTH sums, which stay in registers while k goes from first to last. For
 *           every k, the WIDTH neighbors b(k, j), times a(i, k), are added to row i. There are
 *           enough sums that none waits for the one before.
 *
 * Sums start at zero for every block and are added to the result at its end, whatever the tile: so
 * how a product is cut into parts changes no bits. products.c says how an entry gets here.
 */
#include "tiles.h"

#include <assert.h>

#ifdef VECTORS

typedef double TileVec __attribute__((vector_size(TILE_VEC * sizeof(double))));
typedef TileVec StoredTileVec __attribute__((aligned(8), may_alias));  // among doubles in memory

typedef struct {
    double *const *c;  // [down] rows of the result; WIDTH of each, from c_at on, are computed
    const double *a;   // a(r, k) is a[r * a_row + k * a_k]
    const double *b;   // [depth][b_k], the first WIDTH of each row are used
    size_t c_at, a_row, a_k, b_k, depth;
    bool add;  // to what is there
} Tile;

// c(r, j) = sum over k of a(r, k) * b(k, j), for r < down and j < WIDTH. The result is on its way
// while the sums are taken.
static ALWAYS_INLINE void tile_of(const Tile *t, size_t down)
{
    TileVec sums[DOWN][ACROSS];
    const double *a = t->a, *b = t->b;
    size_t a_row = t->a_row, a_k = t->a_k, b_k = t->b_k, k = t->depth;
    bool add = t->add;
    for (size_t r = 0; r < down; r++) {
        for (size_t i = 0; i < ACROSS; i++) sums[r][i] = (TileVec){0};
        for (size_t j = 0; k >= 32 && j < WIDTH; j += 8)
            __builtin_prefetch(t->c[r] + t->c_at + j, 1);
    }
    do {
        double ak[DOWN];
        for (size_t r = 0; r < down; r++) ak[r] = a[r * a_row];
        for (size_t i = 0; i < ACROSS; i++) {
            // volatile: the compiler neither moves nor repeats it; else it runs out of registers
            TileVec bki = *(const volatile StoredTileVec *)(b + i * TILE_VEC);
            for (size_t r = 0; r < down; r++) sums[r][i] += ak[r] * bki;
        }
        a += a_k;
        b += b_k;
    } while (--k > 0);
    for (size_t r = 0; r < down; r++) {
        StoredTileVec *c = (StoredTileVec *)(t->c[r] + t->c_at);
        for (size_t i = 0; add && i < ACROSS; i++) sums[r][i] += c[i];
        for (size_t i = 0; i < ACROSS; i++) c[i] = sums[r][i];
    }
}

static NOINLINE void tile(const Tile *t, size_t down)
{
    assert(down >= 1 && down <= DOWN && t->depth >= 1 && t->depth <= DEPTH);
#define TILE(d)                                                                                    \
    case d: tile_of(t, (d) <= DOWN ? (d) : DOWN); break;
    switch (down) {  // a constant each, so that the loops over it are unrolled
        TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8)
    }
#undef TILE
}

// How many of n rows the next tile takes. Two tiles share what is more than one and less than two.
static inline size_t tile_rows(size_t n)
{
    return n <= DOWN ? n : n < 2 * DOWN ? (n + 1) / 2 : DOWN;
}

/* ------------------------------------------------------------------------------------------------
 * Copies.
 */
// to[j] = scale * from[j], and zero from j = n to room. It may copy more, up to a whole vector.
static ALWAYS_INLINE void copy_row(double *restrict to, const double *restrict from, size_t n,
                                   size_t room, double scale)
{
    for (size_t j = 0; j < n; j += VEC) store(to + j, scale * load(from + j));
    for (size_t j = n; j < room; j++) to[j] = 0;
}

// panel[k][j] = w(j, k), and zero from j = width on
static NOINLINE void pack_transpose(double *panel, const double *w, size_t stride, size_t depth,
                                    size_t width)
{
    size_t k = 0;
#ifdef SHUFFLE
    for (; k + 4 <= depth && width == WIDTH; k += 4) {
        for (size_t j = 0; j < WIDTH; j += 4) {  // four by four
            const double *from = w + j * stride + k;
            Vec a = load(from), b = load(from + stride);
            Vec d = load(from + 2 * stride), e = load(from + 3 * stride);
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
        for (size_t j = 0; j < WIDTH; j++) panel[k * WIDTH + j] = j < width ? w[j * stride + k] : 0;
    }
}

enum {
    BLOCK_ROWS = DEPTH / DOWN * DOWN,  // rows of the result at a time: whole tiles
    PITCH = DEPTH + 8,                 // from row to row of a block: in other cache lines
};
_Static_assert((int)BLOCK_ROWS <= MAX_LANES && MAX_LANES <= DEPTH, "all lanes fit one block");

// How many of n rows, from `first` on, does a lane see?
static inline size_t seen_from(const Product *p, size_t lane, size_t first, size_t n)
{
    return p->rows[lane] > first ? smaller(p->rows[lane] - first, n) : 0;
}

// to[lane][.] = scale times the numbers of each lane from `at` on, for lanes from `first` to `end`
static void copy_lanes(double *to, const Task *task, size_t first, size_t end, size_t at, size_t n)
{
    const Product *p = task->p;
    bool whole = task->use == OUTPUTS || p->rows[0] == p->rows[p->n - 1];
    double *const *from = task->use == OUTPUTS ? p->x : p->y;
    size_t from_at = at + (task->use == OUTPUTS ? task->x_at : task->y_at);
    for (size_t lane = first; lane < end; lane++, to += PITCH) {
        size_t seen = whole ? n : seen_from(p, lane, at, n);
        copy_row(to, from[lane] + from_at, seen, n, p->scale);
    }
}

/* ------------------------------------------------------------------------------------------------
 * A product.
 */
typedef struct {
    size_t i0, n_i, k0, depth;  // some rows of the result, some values of k
    size_t j0, width;           // its panel: some columns
    double *const *c;           // [n_i] the rows of the result; their first column is at c_at
    size_t c_at;
    double *w[BLOCK_ROWS];  // [n_i] these rows, if they are of w
    Tile tile;
} Block;

// The block's rows of c, and of a, these in room: [MAX_LANES][PITCH].
static void take_block(Block *block, const Task *task, double *room)
{
    const Product *p = task->p;
    bool weights = task->use == WEIGHTS;
    block->tile = (Tile){.a = room, .depth = block->depth, .add = task->add || block->k0 > 0};
    block->tile.a_row = weights ? 1 : PITCH;
    block->tile.a_k = weights ? PITCH : 1;
    if (weights) {
        block->c = block->w;
        block->c_at = task->w_at;
        for (size_t i = 0; i < block->n_i; i++) block->w[i] = p->w + (block->i0 + i) * p->stride;
        copy_lanes(room, task, 0, p->n, block->i0, block->n_i);
    } else {
        block->c = (task->use == OUTPUTS ? p->y : p->x) + block->i0;
        block->c_at = task->use == OUTPUTS ? task->y_at : task->x_at;
        copy_lanes(room, task, block->i0, block->i0 + block->n_i, block->k0, block->depth);
    }
}

// b from column j0 on, in room: [depth][WIDTH]; or w itself, if it is small enough for the first
// cache.
static void take_panel(Block *block, const Task *task, double *room)
{
    const Product *p = task->p;
    size_t stride = p->stride;
    const double *w = p->w + task->w_at;
    block->width = smaller(task->right - block->j0, WIDTH);
    block->tile.c_at = block->c_at + block->j0;
    bool small = block->width == WIDTH && block->depth * stride <= DEPTH * WIDTH;
    bool in_place = task->use == INPUTS && small;
    block->tile.b = in_place ? w + block->k0 * stride + block->j0 : room;
    block->tile.b_k = in_place ? stride : WIDTH;
    if (in_place) return;
    if (task->use == OUTPUTS) {
        w += block->j0 * stride + block->k0;
        pack_transpose(room, w, stride, block->depth, block->width);
        return;
    }
    for (size_t k = block->k0; k < block->k0 + block->depth; k++, room += WIDTH) {
        const double *row = task->use == WEIGHTS ? p->x[k] + task->x_at : w + k * stride;
        copy_row(room, row + block->j0, block->width, WIDTH, 1);
    }
}

// A tile of which not all columns are there, or which not all lanes see: computed aside, without
// what none of its lanes sees, then copied.
static void partial_tile(const Task *task, const Block *block, Tile t, size_t i, size_t down)
{
    const Product *p = task->p;
    size_t last = i + down - 1, from = 0;
    double sums[DOWN][WIDTH], *rows[DOWN];
    if (task->use == OUTPUTS && p->rows[last] <= block->j0) return;
    if (task->use == INPUTS) t.depth = seen_from(p, last, block->k0, t.depth);
    while (task->use == WEIGHTS && p->rows[from] <= i) from++;
    t.a += from * t.a_k;
    t.b += from * t.b_k;
    t.depth -= from;
    if (t.depth == 0) return;
    Tile aside = t;
    aside.c = rows;
    aside.c_at = 0;
    aside.add = false;
    for (size_t r = 0; r < down; r++) rows[r] = sums[r];
    tile(&aside, down);
    for (size_t r = 0; r < down; r++) {
        double *c = t.c[r] + t.c_at;
        size_t n = block->width;
        if (task->use == OUTPUTS) n = seen_from(p, i + r, block->j0, n);
        for (size_t j = 0; j < n; j++) c[j] = (t.add ? c[j] : 0) + sums[r][j];
    }
}

static void multiply_panel(const Task *task, const Block *block)
{
    const Product *p = task->p;
    bool whole = block->width == WIDTH && p->rows[0] == p->rows[p->n - 1];
    Tile t = block->tile;
    for (size_t i = 0, down; i < block->n_i; i += down) {
        down = tile_rows(block->n_i - i);
        t.c = block->c + i;
        t.a = block->tile.a + i * t.a_row;
        if (whole) {
            tile(&t, down);
        } else {
            partial_tile(task, block, t, block->i0 + i, down);
        }
    }
}

void multiply_matrices(const Task *task)
{
    // too large for a small stack
    static _Thread_local _Alignas(64) double a_room[MAX_LANES * PITCH], b_room[DEPTH * WIDTH];
    const Product *p = task->p;
    assert(p->n <= MAX_LANES && task->first % DOWN == 0 && task->left % WIDTH == 0);
    size_t rows = p->rows[p->n - 1];
    assert(task->end <= (task->use == WEIGHTS ? rows : p->n));
    assert(task->right <= (task->use == OUTPUTS ? rows : p->cols));
    size_t n_k = task->use == WEIGHTS ? p->n : task->use == OUTPUTS ? p->cols : rows;
    Block block;
    for (block.k0 = 0; block.k0 < n_k; block.k0 += DEPTH) {
        block.depth = smaller(n_k - block.k0, DEPTH);
        for (block.i0 = task->first; block.i0 < task->end; block.i0 += block.n_i) {
            block.n_i = smaller(task->end - block.i0, BLOCK_ROWS);
            take_block(&block, task, a_room);
            for (block.j0 = task->left; block.j0 < task->right; block.j0 += WIDTH) {
                take_panel(&block, task, b_room);
                multiply_panel(task, &block);
            }
        }
    }
}

#endif
