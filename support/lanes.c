/* lanes.c: what a program does to many inputs is computed side by side.
 *
 * A program that does the same to many inputs (here: to the positions of a document) records the
 * same entries again and again. Between tape_lane() and tape_end_lanes() they are only recorded.
 * compute_lanes() then computes entry 1 of all lanes, entry 2 of all lanes, and so on, and after
 * these what was recorded between the lanes; walk_lanes_back() does the same from the end. What
 * the lanes have in common, such as a matrix, is then fetched once for many of them.
 *
 * Lanes that are not alike are computed in the order of the tape, and so are those for which there
 * is no memory. Lanes that were computed side by side are one group: until tape_mark() or
 * tape_drop(), tape_lane() then does nothing. Without -DAUTOGRAD_LANES it never does anything.
 */
#include "fast.h"

#include <stdlib.h>

struct Lanes *new_lanes(void)
{
    struct Lanes *lanes = calloc(1, sizeof *lanes);
    if (!lanes) return NULL;
#ifdef VECTORS
    char *memory = lanes->memory = malloc((SCRATCH + 8) * sizeof(double));
    if (!memory) {
        free_lanes(lanes);
        return NULL;
    }
    lanes->scratch = (double *)(void *)(memory + 64 - (uintptr_t)memory % 64);
#endif
    return lanes;
}

void free_lanes(struct Lanes *lanes)
{
    if (!lanes) return;
    free(lanes->first);
    free(lanes->at);
    free(lanes->memory);
    free(lanes);
}

void forget_lanes(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    lanes->n = lanes->length = lanes->end = 0;
    lanes->open = lanes->unlike = lanes->waiting = false;
}

#ifdef AUTOGRAD_LANES
static bool more_lanes(struct Lanes *lanes)
{
    size_t max = lanes->max ? 2 * lanes->max : 64;
    size_t *first = realloc(lanes->first, max * sizeof *first);
    if (!first) return false;
    lanes->first = first;
    Entry **at = realloc(lanes->at, max * sizeof *at);
    if (!at) return false;
    lanes->at = at;
    lanes->max = max;
    return true;
}
#endif

void tape_lane(Tape *t)
{
#ifdef AUTOGRAD_LANES
    struct Lanes *lanes = t->lanes;
    if (!t->fused || (lanes->n > 0 && !lanes->waiting)) return;
    tape_end_lanes(t);
    if (lanes->n == lanes->max && !more_lanes(lanes)) {
        lanes->unlike = true;
        return;
    }
    lanes->first[lanes->n++] = t->n_entries;
    lanes->open = lanes->waiting = true;
#else
    (void)t;
#endif
}

// The lane that is open ends. Is it like the first one?
void tape_end_lanes(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    if (!lanes->open) return;
    size_t first = lanes->first[lanes->n - 1], length = t->n_entries - first, k = 0;
    const Entry *a = t->entries + lanes->first[0], *b = t->entries + first;
    lanes->open = false;
    if (lanes->n == 1) {
        lanes->length = length;
        return;
    }
    while (k < length && k < lanes->length && a[k].op == b[k].op) k++;
    if (k < length || k < lanes->length) lanes->unlike = true;
}

/* ------------------------------------------------------------------------------------------------
 * The two walks.
 */
// Entry k of n lanes; a single entry is entry 0 of one lane.
static void forward_all(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    Op op = lanes[0][k].op;
    const FastOperation *fast = fast_operation(op);
    if (fast->forward_lanes && fast->forward_lanes(t, lanes, n, k)) return;
    bool (*faster)(Entry *) = fast->forward;
    void (*plain)(Entry *) = operations[op].forward;
    for (size_t lane = 0; lane < n && !faster; lane++) plain(&lanes[lane][k]);
    for (size_t lane = 0; lane < n && faster; lane++) {
        if (!faster(&lanes[lane][k])) plain(&lanes[lane][k]);
    }
}

static void backward_all(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    Op op = lanes[0][k].op;
    const FastOperation *fast = fast_operation(op);
    if (fast->backward_lanes && fast->backward_lanes(t, lanes, n, k)) return;
    bool (*faster)(const Tape *, Entry *) = fast->backward;
    void (*plain)(const Tape *, const Entry *) = operations[op].backward;
    for (size_t lane = n; lane-- > 0 && !faster;) plain(t, &lanes[lane][k]);
    for (size_t lane = n; lane-- > 0 && faster;) {
        if (!faster(t, &lanes[lane][k])) plain(t, &lanes[lane][k]);
    }
}

// Where the lanes are, now that no entry moves any more.
static Entry *const *find_lanes(const Tape *t)
{
    struct Lanes *lanes = t->lanes;
    for (size_t lane = 0; lane < lanes->n; lane++) {
        lanes->at[lane] = t->entries + lanes->first[lane];
    }
    return lanes->at;
}

void compute_lanes(Tape *t)
{
    tape_end_lanes(t);
    struct Lanes *lanes = t->lanes;
    size_t n = lanes->n, length = lanes->length;
    lanes->waiting = false;
    if (lanes->unlike || n < 2) {
        forget_lanes(t);
        return;
    }
    Entry *const *at = find_lanes(t);
    for (size_t k = 0; k < length; k++) forward_all(t, at, n, k);
    for (size_t lane = 1; lane < n; lane++) {  // then what is between two lanes
        for (Entry *e = at[lane - 1] + length; e < at[lane]; e++) forward_all(t, &e, 1, 0);
    }
    t->n_computed = lanes->end = lanes->first[n - 1] + length;
}

size_t walk_lanes_back(const Tape *t)
{
    size_t n = t->lanes->n, length = t->lanes->length;
    Entry *const *at = find_lanes(t);
    for (size_t lane = n; lane-- > 1;) {
        for (Entry *e = at[lane]; e > at[lane - 1] + length;) {
            e--;
            backward_all(t, &e, 1, 0);
        }
    }
    for (size_t k = length; k-- > 0;) backward_all(t, at, n, k);
    return t->lanes->first[0];
}
