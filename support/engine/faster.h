/* faster.h: the fast engine, as programs see it. It computes what autograd.c defines. */
#ifndef FASTER_H
#define FASTER_H

#include "../../autograd.h"

// Does this build have it? Only where -DAUTOGRAD_LANES is set, as make does.
extern const bool have_faster;
// Installs it on a tape that is empty. false: not enough memory.
bool install_faster(Tape *t);

// A program that repeats the same operations on many inputs calls tape_lane() before each input;
// the entries of one input are a lane. Where the fast engine is installed, lanes are recorded first
// and computed later: entry 1 of every lane, entry 2 of every lane, and so on, unless a lane needs
// the order of the tape. Elsewhere the two do nothing.
void tape_lane(Tape *t);       // starts the next lane
void tape_end_lanes(Tape *t);  // ends the last one

// Fast versions of an operation: of entry e, and of entry k of n lanes. false: not done; the
// definition does it, and overwrites. A program may take out those that it does not trust.
typedef struct {
    bool (*forward)(Entry *e);
    bool (*backward)(const Tape *t, Entry *e);
    bool (*forward_lanes)(const Tape *t, Entry *const *lanes, size_t n, size_t k);
    bool (*backward_lanes)(const Tape *t, Entry *const *lanes, size_t n, size_t k);
    const char *names[4], *files[2];  // what they are called; where they are: of an entry, of lanes
} FastOperation;
extern FastOperation fast_operations[N_OPS];
extern bool use_lanes;  // false: every tape is computed in its order

// The count of values that an extent means.
static inline size_t extent_of(const Entry *e, Extent extent)
{
    if (extent == N_ROWS) return (size_t)(e->n - 1) * e->stride + e->length;
    return extent == N_VALUES ? e->n : extent == A_ROW ? e->length : 0;
}

// A step of Adam, as adam() in microgpt.c up to rounding, for the first of n parameters p with
// gradients g; returns their count. 0: nothing is done.
typedef struct {
    double lr, beta1, beta2, eps, correct1, correct2, weight_decay;
} AdamRates;
size_t move_parameters(double *p, double *g, double *m, double *v, size_t n,
                       const AdamRates *rates);

#endif
