/* tiles.h: products of matrices as products.c asks for them and tiles.c computes them. */
#ifndef TILES_H
#define TILES_H

#include "private.h"

#ifdef VECTORS

/* The shape of a tile. Its sums, one vector of b and one number of a stay in registers, so there
 * must be more registers than sums:
 *
 *              numbers in a vector   registers   rows x vectors   sums   columns
 *   AVX-512            8                32           8 x 2         16      16
 *   AVX2               4                16           3 x 4         12      16
 *   NEON               2                32           6 x 4         24       8
 *   SSE2               2                16           3 x 4         12       8
 *
 * Columns that come in eights or sixteens fill whole tiles. Sixteen sums are enough for AVX-512,
 * where eight rows divide most counts. With AVX2, 6 x 2 takes up to half as long again.
 */
#if defined __AVX512F__
enum { REGISTERS = 32, TILE_VEC = 8, DOWN = 8, ACROSS = 2 };
#elif defined __AVX__
enum { REGISTERS = 16, TILE_VEC = 4, DOWN = 3, ACROSS = 4 };
#elif defined __aarch64__
enum { REGISTERS = 32, TILE_VEC = 2, DOWN = 6, ACROSS = 4 };
#else
enum { REGISTERS = 16, TILE_VEC = 2, DOWN = 3, ACROSS = 4 };
#endif
enum {
    WIDTH = ACROSS * TILE_VEC,  // columns of a tile
    DEPTH = 128,                // terms of a sum before it is added to the result
    MAX_LANES = 128,            // lanes in one product, at most
    FEW_LANES = 12,             // fewer lanes than this are for kernels.c
};
_Static_assert(DOWN *ACROSS + 2 <= REGISTERS, "a tile stays in registers");

// Products with the same rows w: of each lane y = scale * w x, or gradients of these. A lane sees
// the first rows[lane] rows, and no more than the lane after it does.
typedef struct {
    const Tape *t;
    size_t n;              // lanes
    double *x[MAX_LANES];  // [n][cols]
    double *y[MAX_LANES];  // [n][rows[lane]]
    size_t rows[MAX_LANES];
    double *w;  // [rows[n - 1]][stride], the first cols of each row are used
    size_t stride, cols;
    double scale;
} Product;

// From entry k of n lanes. A weighted sum goes from y to x, the others from x to y.
static inline void fill_product(Product *p, const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    const Entry *e = &lanes[0][k];
    bool weighted = e->op == OP_WEIGHTED_SUM;
    p->t = t;
    p->n = n;
    p->w = e->b;
    p->stride = e->stride;
    p->cols = e->length;
    p->scale = e->op == OP_ROW_DOTS ? e->c : 1;
    for (size_t lane = 0; lane < n; lane++) {
        e = &lanes[lane][k];
        p->x[lane] = weighted ? e->out : e->a;
        p->y[lane] = weighted ? e->a : e->out;
        p->rows[lane] = e->n;
    }
}

// What is computed from what. FEW_OUTPUTS and FEW_GRADIENTS are for fewer than FEW_LANES lanes that
// see all rows, with cols a multiple of VEC.
typedef enum {
    OUTPUTS,        // y = x w^T
    INPUTS,         // x = y w
    WEIGHTS,        // w = y^T x
    FEW_OUTPUTS,    // OUTPUTS
    FEW_GRADIENTS,  // the gradients of INPUTS and of WEIGHTS, at once
} Use;

// One use of a product, or a part of it: the rows of the result from `first` to `end`, and its
// columns from `left` to `right`. Cuts change no bits, but those at multiples of DOWN and WIDTH
// leave tiles whole. FEW_ uses are cut by columns alone.
typedef struct {
    const Product *p;
    Use use;
    size_t x_at, y_at, w_at;  // t->chunk_size where gradients are meant, else 0
    bool add;                 // the result is added to what is there
    size_t first, end, left, right;
} Task;

void multiply_matrices(const Task *task);   // tiles.c: OUTPUTS, INPUTS, WEIGHTS
void multiply_few_lanes(const Task *task);  // kernels.c: FEW_OUTPUTS, FEW_GRADIENTS

// plan.c: one task, or two that do not depend on each other, shared by threads if that is worth it.
// work: multiply-adds of all
void multiply_tasks(const Task *tasks, size_t n, size_t work);

#endif
#endif
