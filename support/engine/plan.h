/* plan.h: what is worth sharing among threads, and how it is cut into parts. See plan.c. */
#ifndef PLAN_H
#define PLAN_H

#include "threads.h"

#include <math.h>

// How many parts to cut work into, measured in multiply-adds; 1: do not share it. Small work has at
// most one part per thread, and wakes nobody; large work has two, and wakes threads.
enum { LEAST_PART = 16384, LARGE = 32 * LEAST_PART };
static inline size_t parts_of(size_t work)
{
    if (n_threads < 2 || work < 2 * LEAST_PART) return 1;
    size_t parts = work < LARGE ? n_threads : 2 * n_threads, most = work / LEAST_PART;
    if (work >= LARGE && most <= n_threads) most = n_threads + 1;
    return most < parts ? most : parts;
}

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Cuts n things into parts of nearly the same size: where part i begins.
static inline size_t cut(size_t n, size_t n_parts, size_t i) { return n * i / n_parts; }

// The same, of nearly the same work. In attention each lane sees one row more than the lane before.
// So later lanes take longer, and later rows are seen by fewer lanes.
typedef enum { EVEN, RISING, FALLING } Slope;
static inline size_t cut_by_work(size_t n, size_t n_parts, size_t i, Slope slope)
{
    double share = (double)i / (double)n_parts;
    if (slope == EVEN) return cut(n, n_parts, i);
    share = slope == RISING ? sqrt(share) : 1 - sqrt(1 - share);
    return (size_t)(share * (double)n + 0.5);
}

#endif
