/* lanes.c: what a program does to many inputs is computed side by side.
 *
 * A program that does the same to many inputs (here: to the positions of a document) records the
 * same entries again and again. Between tape_lane() and tape_end_lanes() they are only recorded.
 * compute_lanes() then computes entry 1 of all lanes, entry 2 of all lanes, and so on, and after
 * these what was recorded between the lanes; walk_lanes_back() does the same from the end. What
 * the lanes have in common, such as a matrix, is then fetched once for many of them.
 *
 * Lanes whose operations differ are computed in the order of the tape, and so are lanes for which
 * there is no memory. A tape has one group of lanes at a time: after tape_compute(), tape_lane()
 * does nothing until tape_mark() or tape_drop(). Without -DAUTOGRAD_LANES it never does anything.
 */
#include "fast.h"

#include <assert.h>
#include <stdlib.h>

struct Lanes *new_lanes(void)
{
    struct Lanes *lanes = calloc(1, sizeof *lanes);
    if (!lanes) return NULL;
#ifdef VECTORS
    char *memory = lanes->memory = malloc((SHARED_SCRATCH + 8) * sizeof(double));
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
    // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
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
 * Threads share lanes in runs of neighbors.
 */
enum { MAX_PARTS = 64 };

typedef struct {
    const Tape *t;
    Entry *const *lanes;
    size_t k, n, cuts[MAX_PARTS + 1];
    LanesPart *part;
} SharedLanes;

static void do_lanes(void *context, size_t part, size_t n_parts, double *scratch)
{
    const SharedLanes *shared = context;
    size_t first = shared->cuts[part], n = shared->cuts[part + 1] - first;
    assert(n > 0 && shared->cuts[0] == 0 && shared->cuts[n_parts] == shared->n);
    shared->part(shared->t, shared->lanes + first, n, shared->k, scratch);
}

// About as many multiply-adds as take the time of one entry.
static size_t work_of(const Entry *e)
{
    bool slow = e->op == OP_SOFTMAX || e->op == OP_EXP || e->op == OP_LOG || e->op == OP_POW;
    size_t values = e->length > 0 ? (size_t)e->n * e->length : e->n;
    return values * (slow ? 16 : e->length > 0 ? 2 : 4) + 64;
}

// The second operand of each operation: none, as many values as the first has, one value, or rows.
// Without a row here, lanes of a new operation are not cut apart.
typedef enum { UNKNOWN, NOTHING, AS_MANY, ONE, IN_ROWS } Second;
static const Second second[N_OPS] = {
    [OP_ADD] = AS_MANY,       [OP_MUL] = AS_MANY,          [OP_POW] = NOTHING,
    [OP_LOG] = NOTHING,       [OP_EXP] = NOTHING,          [OP_RELU] = NOTHING,
    [OP_ADD_CONST] = NOTHING, [OP_MUL_CONST] = NOTHING,    [OP_COPY] = NOTHING,
    [OP_MUL_SCALAR] = ONE,    [OP_SUM] = NOTHING,          [OP_DOT] = AS_MANY,
    [OP_ROW_DOTS] = IN_ROWS,  [OP_WEIGHTED_SUM] = IN_ROWS, [OP_SOFTMAX] = NOTHING,
    [OP_RMSNORM] = NOTHING,
};

// The operands of an entry lie between low and high; so do their gradients, a chunk further on.
// false: what the operation reads is not known here.
static bool find_operands(const Entry *e, const double **low, const double **high)
{
    Second kind = second[e->op];
    size_t n_a = e->op == OP_ROW_DOTS ? e->length : e->n;
    size_t n_b = !e->b ? 0 : kind == AS_MANY ? e->n : kind == ONE ? 1 : 0;
    if (kind == IN_ROWS) n_b = (size_t)(e->n - 1) * e->stride + e->length;
    *low = n_b > 0 && e->b < e->a ? e->b : e->a;
    *high = n_b > 0 && e->b + n_b > e->a + n_a ? e->b + n_b : e->a + n_a;
    return kind != UNKNOWN;
}

// Cuts lanes into up to max parts; with `apart`, only where all operands of the lanes after a cut
// lie behind those of the lanes before it. Lanes whose operands are in another order stay together.
static size_t cut_lanes(Entry *const *lanes, size_t n, size_t k, bool apart, size_t *cuts,
                        size_t max)
{
    size_t n_parts = 0, next = 0;
    const double *low = NULL, *high = NULL, *before = NULL, *end = NULL;
    Slope slope = lanes[0][k].n < lanes[n - 1][k].n ? RISING : EVEN;
    for (size_t lane = 0; lane < n; lane++) {
        if (apart) {
            if (!find_operands(&lanes[lane][k], &low, &high) || low < before) return 1;
        }
        if (lane >= next && (lane == 0 || low >= end)) {
            cuts[n_parts++] = lane;
            next = cut_by_work(n, max, n_parts, slope);
        }
        before = low;
        end = high > end ? high : end;
    }
    cuts[n_parts] = n;
    return n_parts;
}

bool share_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k, bool apart,
                 LanesPart *part)
{
    if (n_threads < 2 || n < 2) return false;
    size_t max = parts_of(n * work_of(&lanes[n / 2][k]));
    if (max < 2) return false;
    SharedLanes shared = {.t = t, .lanes = lanes, .k = k, .n = n, .part = part};
    max = max < MAX_PARTS ? max : MAX_PARTS;
    size_t n_parts = cut_lanes(lanes, n, k, apart, shared.cuts, max < n ? max : n);
    if (n_parts < 2) return false;
    share(do_lanes, &shared, n_parts, t->lanes->scratch);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * The two walks.
 */
// Entry k of n lanes; a single entry is entry 0 of one lane.
static void forward_some(const Tape *t, Entry *const *lanes, size_t n, size_t k, double *unused)
{
    Op op = lanes[0][k].op;
    bool (*faster)(Entry *) = fast_operation(op)->forward;
    void (*plain)(Entry *) = operations[op].forward;
    (void)t, (void)unused;
    for (size_t lane = 0; lane < n; lane++) {
        Entry *e = &lanes[lane][k];
        if (!faster || !faster(e)) plain(e);
    }
}

static void backward_some(const Tape *t, Entry *const *lanes, size_t n, size_t k, double *unused)
{
    Op op = lanes[0][k].op;
    bool (*faster)(const Tape *, Entry *) = fast_operation(op)->backward;
    void (*plain)(const Tape *, const Entry *) = operations[op].backward;
    (void)unused;
    for (size_t lane = n; lane-- > 0;) {
        Entry *e = &lanes[lane][k];
        if (!faster || !faster(t, e)) plain(t, e);
    }
}

static void forward_all(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    const FastOperation *fast = fast_operation(lanes[0][k].op);
    if (fast->forward_lanes && fast->forward_lanes(t, lanes, n, k)) return;
    if (share_lanes(t, lanes, n, k, false, forward_some)) return;
    forward_some(t, lanes, n, k, NULL);
}

static void backward_all(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    const FastOperation *fast = fast_operation(lanes[0][k].op);
    if (fast->backward_lanes && fast->backward_lanes(t, lanes, n, k)) return;
    if (share_lanes(t, lanes, n, k, true, backward_some)) return;
    backward_some(t, lanes, n, k, NULL);
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
