/* tiles.h: products of matrices as products.c asks for them and tiles.c computes them. */
#ifndef TILES_H
#define TILES_H

#include "fast.h"

#ifdef VECTORS

// The vectors of a tile may be wider than other vectors: no sum is taken across them. A tile has as
// many rows as there are registers for.
#ifdef __AVX512F__
#define WIDE 8
enum { ACROSS = 2 };
#else
#define WIDE VEC
enum { ACROSS = 4 };
#endif
#if !defined AUTOGRAD_TILE && defined __AVX512F__
#define AUTOGRAD_TILE 8
#elif !defined AUTOGRAD_TILE && defined __aarch64__
#define AUTOGRAD_TILE 4
#elif !defined AUTOGRAD_TILE
#define AUTOGRAD_TILE 3
#endif
enum { DOWN = AUTOGRAD_TILE, WIDTH = ACROSS * WIDE, DEPTH = 128 };
enum { FEW_LANES = 12, MAX_LANES = 128 };
enum { ROWS = 64 };  // of y that add_outer_products() copies at a time

// Products with the same rows w: of each lane y = w x, or gradients of these. A lane sees the first
// rows[lane] rows, and no more than the lane after it does.
typedef struct {
    const Tape *t;
    size_t n;  // lanes
    double *x[MAX_LANES], *y[MAX_LANES];
    size_t rows[MAX_LANES];
    double *w;
    size_t stride, cols;  // of w: from row to row, and how much of each is used
    double c;             // all products are multiplied by it
} Product;

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// What is to be computed with a product: two of x, y and w give the third, for the lanes or rows of
// w from `first` to `end`, and for the columns of the result from `left` to `right`.
typedef struct {
    const Product *p;
    size_t x_at, y_at;  // t->chunk_size where gradients are meant, else 0
    double *w;
    bool to_y, add;  // the result is y, or x; it is added to what is there
    size_t first, end, left, right;
} Task;

void multiply_lanes(const Task *task);
void add_outer_products(const Task *task, double *copies);  // room for SHARED_SCRATCH numbers
void few_lanes_backward(const Product *p, size_t left, size_t right);  // columns of w

#endif
#endif
