/* fast.h: what autograd.c and the files that make it fast share. Private to them.
 *
 *   chunks.c     the memory of the tape, and how it grows
 *   lanes.c      entries that do the same to many inputs, computed side by side
 *   kernels.c    row dots and weighted sums, a vector at a time
 *   softmax.c    softmax, a vector at a time
 *   products.c   the same entry of many lanes as products of matrices
 *   tiles.c      products of matrices, tile by tile
 *   adam.c       a step of Adam; the engine itself does not need it
 *   plan.c       what is shared by threads, and in which parts
 *   threads.c    threads that share all of this
 *
 * Nothing here computes what autograd.c does not define. A fast way returns false where it does
 * not apply; then nothing has been done, and the definition does it.
 */
#ifndef FAST_H
#define FAST_H

#include "../autograd.h"
#include "plan.h"
#include "threads.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__) ||             \
    defined __ASSOCIATIVE_MATH__ || defined __RECIPROCAL_MATH__ || defined __NO_SIGNED_ZEROS__
#error "-ffast-math (part of -Ofast) changes sums and drops checks for infinities: build without it"
#endif

#ifdef __GNUC__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE
#endif

/* ------------------------------------------------------------------------------------------------
 * The tape's memory. Both return only if there is enough.
 */
enum { BLOCK = 4 };  // vectors start at, and take, a multiple of so many values

double *vector_in_next_chunk(Tape *t, size_t n);  // ag_vector(), after the end of this chunk
void more_entries(Tape *t);                       // makes t->max_entries larger; entries move

/* ------------------------------------------------------------------------------------------------
 * Lanes: see the end of autograd.h. Entries may move while lanes are recorded, so a lane is known
 * by the index of its first entry.
 */
struct Lanes {
    size_t *first;    // [n] of each lane, its first entry
    Entry **at;       // [n] during a walk: where it is
    size_t n, max;    // lanes
    size_t length;    // entries in each of them
    size_t end;       // after the last lane, once they are computed side by side; else 0
    bool open;        // a lane is being recorded
    bool unlike;      // the lanes are not alike: they are computed one after another
    bool waiting;     // entries are recorded, but not computed
    double *scratch;  // [SHARED_SCRATCH] for products.c
    void *memory;     // what scratch lies in
};

struct Lanes *new_lanes(void);  // NULL: not enough memory
void free_lanes(struct Lanes *lanes);
void forget_lanes(Tape *t);  // no lanes, and nothing waits
void compute_lanes(Tape *t);
size_t walk_lanes_back(const Tape *t);  // returns the first entry of the first lane

// Is the entry just recorded computed later?
static inline bool waiting(const Tape *t) { return t->lanes->waiting; }

// Computes what waits, up to the end of the last lane. Lanes that are not alike are left to the
// walk forward.
static inline void lanes_forward(Tape *t)
{
    if (t->lanes->waiting) compute_lanes(t);
}

// If entry i is the last of the lanes: goes back through all of them, and sets i to their first.
static inline bool lanes_backward(const Tape *t, size_t *i)
{
    if (*i + 1 != t->lanes->end) return false;
    *i = walk_lanes_back(t);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * Fast ways to do what an entry says, and what entry k of n lanes says.
 */
// 0 and 16: a double is computed as a double. 16 is for machines that have a 16-bit type, too.
#if FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16
#define TRUE_DOUBLES
#endif
#if defined __GNUC__ && defined __OPTIMIZE__ && defined TRUE_DOUBLES && !defined AUTOGRAD_PLAIN
#define VECTORS
#if defined AUTOGRAD_LANES && defined __has_include && !defined __STDC_NO_ATOMICS__
#if __has_include(<pthread.h>) && (__SIZEOF_POINTER__ == 8 || defined __i586__ || defined __SSE2__)
#define THREADS  // see threads.c
#endif
#endif
#endif

void clear(double *values, size_t n);  // chunks.c: all become 0; shared by threads

// Entry k of n lanes, shared by threads: each does part() for some neighbors of the lanes. With
// `apart`, no two threads have lanes with an operand in common. false: nothing is done, it is not
// worth it.
typedef void LanesPart(const Tape *t, Entry *const *lanes, size_t n, size_t k, double *scratch);
bool share_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k, bool apart,
                 LanesPart *part);

typedef struct {
    bool (*forward)(Entry *e);
    bool (*backward)(const Tape *t, Entry *e);
    bool (*forward_lanes)(const Tape *t, Entry *const *lanes, size_t n, size_t k);
    bool (*backward_lanes)(const Tape *t, Entry *const *lanes, size_t n, size_t k);
} FastOperation;

#ifdef VECTORS
extern const FastOperation fast_operations[N_OPS];  // kernels.c; NULL where there is none
#endif

static inline const FastOperation *fast_operation(Op op)
{
#ifdef VECTORS
    return &fast_operations[op];
#else
    static const FastOperation none = {NULL, NULL, NULL, NULL};
    (void)op;
    return &none;
#endif
}

static inline bool fast_forward(Entry *e)
{
    const FastOperation *fast = fast_operation(e->op);
    return fast->forward && fast->forward(e);
}

static inline bool fast_backward(const Tape *t, Entry *e)
{
    const FastOperation *fast = fast_operation(e->op);
    return fast->backward && fast->backward(t, e);
}

/* ------------------------------------------------------------------------------------------------
 * Vectors, as wide as the machine's, with GCC's and clang's vector types. There are none with other
 * compilers, in builds without optimization, and with -DAUTOGRAD_PLAIN. Values come in whole blocks
 * (see ag_vector()), so a loop may read past n to the end of its last vector; blend_first() keeps
 * what is there out: single values, and slices, have neighbors there.
 */
#ifdef VECTORS
#define ALWAYS_INLINE inline __attribute__((always_inline))

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

// products.c: the fast ways of linear, and those of many lanes for row dots and weighted sums
bool fast_linear_forward(Entry *e);
bool fast_linear_backward(const Tape *t, Entry *e);
bool linear_forward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k);
bool linear_backward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k);
bool rows_forward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k);
bool rows_backward_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k);
#endif

#endif
