/* prove.h: what the proof of the operations and that of the whole model share. Private to prove.c
 * and check.c.
 */
#ifndef PROVE_H
#define PROVE_H

#include "job.h"

#define SAME 1e-9        // of the largest value: rounding alone stays below
#define DERIVATIVE 1e-6  // the same for central differences

extern struct Proof {
    bool table;      // print a row for each comparison, with its note below
    size_t n_wrong;  // comparisons that differ
} proof;

// One comparison. `what` is its row of the table; the rest is the note: two functions and where
// they are, and what runs.
PRINTF_LIKE(4, 5)
bool agrees(double difference, double limit, const char *what, const char *format, ...);

// How far two lists are apart, and their largest value. It starts with zeros.
typedef struct {
    double apart, largest;
} Difference;
void compare(Difference *d, const double *a, const double *b, size_t n);  // adds to it
double relative(Difference d);

void restart_draws(uint64_t seed);
double draw(void *unused);  // up to 1.2 on both sides, but not near 0

const char *function_of(Op op, const char *direction);  // "linear_forward"

// All of these: false: no memory.
bool prove_operations(bool fast);      // derivatives; fast versions
bool prove_entries(const Options *o);  // one entry per call, and the atoms that define it
bool prove_small(const Options *o);    // a batch in parts, and Adam, at the smallest sizes

#endif
