/* private.h: what the files of this folder share. Programs include faster.h and threads.h alone.
 *
 *   lanes.c      what is installed on a tape; entries that do the same to many inputs, side by side
 *   kernels.c    linear of few lanes, row dots and weighted sums, a vector at a time
 *   softmax.c    softmax, a vector at a time
 *   products.c   the same entry of many lanes as products of matrices
 *   tiles.c      products of matrices, tile by tile
 *   adam.c       a step of Adam; the engine itself does not need it
 *   plan.c       what is shared by threads, and in which parts
 *   threads.c    threads that share all of this
 *
 * All of it is defined in autograd.c, the step of Adam in microgpt.c. A fast way that returns false
 * has changed no gradient: not done; the definition does it, and overwrites.
 */
#ifndef PRIVATE_H
#define PRIVATE_H

#include "../../autograd.h"
#include "faster.h"
#include "threads.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__) ||             \
    defined __ASSOCIATIVE_MATH__ || defined __RECIPROCAL_MATH__ || defined __NO_SIGNED_ZEROS__
#error "-ffast-math (part of -Ofast) changes sums and drops checks for infinities: build without it"
#endif

/* ------------------------------------------------------------------------------------------------
 * Lanes: see faster.h and lanes.c. Entries may move while lanes are recorded, so a lane is known by
 * the index of its first entry. A place is the index of a value among all that a tape has made.
 */
typedef struct {
    size_t begin, end;  // places
} Span;

typedef struct {
    size_t first;       // its first entry
    size_t begin, end;  // the places of the values that it made
} Lane;

// An operand of entry k, or its result, that is not among the lane's own values.
typedef enum { A, B, OUT } Operand;  // in this order for each k
typedef struct {
    size_t k;
    Operand operand;
    Span all;  // where it is, of all lanes of a group together
} Outside;

struct Lanes {
    Lane *lane;                             // [n]
    Entry **at;                             // [n] their first entries, once no entry moves
    size_t n, max;                          // count of lanes; capacity
    size_t length;                          // entries in each of them
    size_t end;                             // entry after the last, if computed together; else 0
    size_t mark;                            // the place after the parameters
    Outside *outsides;                      // [n_outsides] by k
    size_t n_outsides, max_outsides, next;  // next: of the lane that ends
    size_t n_begun;                         // how often lanes were begun on this tape
    bool look;                              // at what they read and write
    bool open;                              // a lane is being recorded
    bool unlike;                            // they are computed one after another
};

/* ------------------------------------------------------------------------------------------------
 * Fast ways to do what an entry says, and what entry k of n lanes says.
 */
// FLT_EVAL_METHOD 0 and 16: a double is computed as a double. 16: on machines with a 16-bit type.
#if defined __GNUC__ && defined __OPTIMIZE__ && !defined AUTOGRAD_PLAIN &&                         \
    (FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16)
#define VECTORS
#if defined AUTOGRAD_LANES && defined __has_include && !defined __STDC_NO_ATOMICS__
#if __has_include(<pthread.h>) && (__SIZEOF_POINTER__ == 8 || defined __i586__ || defined __SSE2__)
#define THREADS  // only where there are VECTORS, too; see threads.c
#endif
#endif
#endif

// Threads share entry k of n lanes: each calls part() for a run of neighboring lanes. No two
// threads have an operand in common. false: not worth it; nothing is done.
typedef void LanesPart(const Tape *t, Entry *const *lanes, size_t n, size_t k);
bool share_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k, LanesPart *part);

/* ------------------------------------------------------------------------------------------------
 * What is worth sharing among threads, and where it is cut.
 */
// How many parts to cut work into, measured in multiply-adds; 1: do not share it. Small work has at
// most one part per thread, and wakes nobody; large work has two, and wakes threads.
enum { LEAST_PART = 16384, LARGE = 32 * LEAST_PART };
static inline size_t parts_of(size_t work)
{
    if (n_threads < 2 || work < 2 * LEAST_PART) return 1;
    size_t parts = work < LARGE ? n_threads : 2 * n_threads, most = work / LEAST_PART;
    if (work >= LARGE && most <= n_threads) most = n_threads + 1;  // so that share() wakes threads
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

/* ------------------------------------------------------------------------------------------------
 * Vectors, as wide as the machine's, with GCC's and clang's vector types. There are none with other
 * compilers, in builds without optimization, and with -DAUTOGRAD_PLAIN. Values come in whole blocks
 * (see ag_vector()), so a loop may read past n to the end of its last vector; blend_first() keeps
 * what is there out: single values, and slices, have neighbors there.
 */
#ifdef VECTORS
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

#ifdef __AVX__
#define VEC 4
#else
#define VEC 2
#endif
typedef double Vec __attribute__((vector_size(VEC * sizeof(double))));
typedef uint64_t Bits __attribute__((vector_size(VEC * sizeof(double))));
#define ZERO ((Vec){0})

#if VEC == 4 && (defined __clang__ || __GNUC__ >= 12)
#define SHUFFLE __builtin_shufflevector
#endif

static inline Vec load(const double *p)
{
    Vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(double *p, Vec v) { memcpy(p, &v, sizeof v); }

// The first n numbers of v, at most VEC of them, then those of other.
static inline Vec blend_first(Vec v, size_t n, Vec other)
{
    static const uint64_t ones[8] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    Bits keep;
    memcpy(&keep, ones + 4 - n, sizeof keep);
    return (Vec)(((Bits)v & keep) | ((Bits)other & ~keep));
}

static inline double vec_sum(Vec v)
{
    return VEC == 4 ? (v[0] + v[2 % VEC]) + (v[1] + v[3 % VEC]) : v[0] + v[1];
}

// softmax.c
bool fast_softmax_forward(Entry *e);
bool fast_softmax_backward(const Tape *t, Entry *e);

// kernels.c
bool fast_row_dots_forward(Entry *e);
bool fast_row_dots_backward(const Tape *t, Entry *e);
bool fast_weighted_sum_forward(Entry *e);
bool fast_weighted_sum_backward(const Tape *t, Entry *e);

// products.c: linear, and many lanes of linear, row dots and weighted sums
bool fast_linear_forward(Entry *e);
bool fast_linear_backward(const Tape *t, Entry *e);
bool forward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k);
bool backward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k);
#endif

#endif
