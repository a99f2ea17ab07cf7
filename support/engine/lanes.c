/* lanes.c: computes side by side what a program does to many inputs.
 *
 * Between tape_lane() and tape_end_lanes(), entries are only recorded. compute() then computes
 * entry 1 of all lanes, entry 2 of all lanes, and so on, and after these what was recorded between
 * the lanes and after them; walk_back() does the same from the end. What the lanes have in common,
 * such as a matrix, is then fetched once for many of them.
 *
 * That is not the order of the tape. The numbers are the same if
 *
 *   - all lanes have the same operations, and
 *   - what a lane reads and did not make is a parameter, or in a vector that was made before its
 *     group of lanes, such as a cache, and is filled by earlier entries of this lane or of lanes
 *     before it.
 *
 * Lanes for which this does not hold, or for which there is no memory, are unlike: they are
 * computed in the order of the tape. Operations are compared every time. Operands are checked the
 * first ALL_TIMES times, then every SOME_TIMES-th time: the check takes a tenth of a small step,
 * and a program rarely changes its operands without its operations. Once lanes are computed,
 * tape_lane() does nothing until tape_mark() or tape_drop().
 */
#include "private.h"

#include <assert.h>
#include <stdlib.h>

#ifdef AUTOGRAD_LANES
const bool have_faster = true;
#else
const bool have_faster = false;
#endif
bool use_lanes = true;
enum { ALL_TIMES = 256, SOME_TIMES = 16, MAX_PARTS = 64 };

static void free_lanes(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    free(lanes->lane);
    free(lanes->at);
    free(lanes->outsides);
    free(lanes);
    t->lanes = NULL;
}

static void forget_lanes(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    lanes->n = lanes->length = lanes->end = lanes->n_outsides = 0;
    lanes->open = lanes->unlike = t->waiting = false;
}

/* ------------------------------------------------------------------------------------------------
 * Recording. Values are made in the order of the tape. So the place of a value says who made it:
 * what is before the mark are parameters, then come the vectors that lanes have in common, then the
 * values of each lane.
 */
static size_t place_now(const Tape *t) { return t->this_chunk * t->chunk_size + t->n_values; }

static size_t place_of(const Tape *t, const double *x)
{
    for (size_t k = t->this_chunk + 1; k-- > 0;) {
        size_t at = ((uintptr_t)x - (uintptr_t)t->chunks[k]) / sizeof *x;
        if (at < t->chunk_size) return k * t->chunk_size + at;
    }
    return 0;  // on no chunk: a parameter on another tape
}

static bool more_lanes(struct Lanes *lanes)
{
    if (lanes->n < lanes->max) return true;
    size_t max = lanes->max ? 2 * lanes->max : 64;
    Lane *lane = realloc(lanes->lane, max * sizeof *lane);
    if (lane) lanes->lane = lane;
    Entry **at = lane ? realloc(lanes->at, max * sizeof(Entry *)) : NULL;
    if (!at) return false;
    lanes->at = at;
    lanes->max = max;
    return true;
}

// Notes an operand that is neither the lane's own nor a parameter. false: the first lane has none
// there, or no memory.
static bool note_outside(struct Lanes *lanes, size_t k, Operand operand)
{
    size_t i = lanes->next++;
    if (lanes->n > 1) {
        const Outside *like = &lanes->outsides[i];
        return i < lanes->n_outsides && like->k == k && like->operand == operand;
    }
    if (i == lanes->max_outsides) {
        size_t max = i ? 2 * i : 64;
        Outside *list = realloc(lanes->outsides, max * sizeof *list);
        if (!list) return false;
        lanes->outsides = list;
        lanes->max_outsides = max;
    }
    lanes->outsides[lanes->n_outsides++] = (Outside){.k = k, .operand = operand};
    return true;
}

// Compares the lane that ends with the first one. false: they are not alike, or no memory. Nearly
// all operands are its own, in the chunk where it begins, or parameters, in the first chunk.
static bool compare_lane(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    const Lane *lane = &lanes->lane[lanes->n - 1];
    size_t length = t->n_entries - lane->first, size = t->chunk_size, offset = lane->begin % size;
    uintptr_t own = (uintptr_t)(t->chunks[lane->begin / size] + offset);
    uintptr_t own_bytes = (size - offset) * sizeof(double);
    uintptr_t parameters = (uintptr_t)t->chunks[0];
    uintptr_t bytes = smaller(lanes->mark, size) * sizeof(double);
    const Entry *e = t->entries + lane->first, *like = t->entries + lanes->lane[0].first;
    if (lanes->n == 1) lanes->length = length;
    if (length != lanes->length) return false;
    lanes->next = 0;
    for (size_t k = 0; k < length; k++, e++, like++) {
        if (e->op != like->op) return false;
        if (!lanes->look) continue;
        uintptr_t out = (uintptr_t)e->out, a = (uintptr_t)e->a, b = (uintptr_t)e->b;
        bool a_is_in = a - own < own_bytes || a - parameters < bytes;
        if (!a_is_in && !note_outside(lanes, k, A)) return false;
        bool b_is_in = !b || b - own < own_bytes || b - parameters < bytes;
        if (!b_is_in && !note_outside(lanes, k, B)) return false;
        if (out - own >= own_bytes && !note_outside(lanes, k, OUT)) return false;
    }
    return lanes->next == lanes->n_outsides;
}

/* ------------------------------------------------------------------------------------------------
 * What lanes read outside of their own values must be there in time. Before any of it is computed,
 * all lanes are looked at together, group by group.
 */
static bool meet(Span a, Span b) { return a.begin < b.end && b.begin < a.end; }

static Span span_of(const Tape *t, const Entry *e, Operand operand)
{
    const OpRules *rules = &operations[e->op];
    const double *x = operand == OUT ? e->out : operand == A ? e->a : e->b;
    Extent extent = operand == OUT ? rules->out : operand == A ? rules->a : rules->b;
    size_t begin = place_of(t, x);
    return (Span){begin, begin + extent_of(e, extent)};
}

static bool is_read(const struct Lanes *lanes, Span span)
{
    for (size_t i = 0; i < lanes->n_outsides; i++) {
        const Outside *o = &lanes->outsides[i];
        if (o->operand != OUT && meet(o->all, span)) return true;
    }
    return false;
}

// Does the lane stay within its group's common vectors, and write nothing that an earlier lane
// reads? Widens the spans of the group by those of this lane.
static bool lane_in_time(const Tape *t, const Lane *lane, Span common)
{
    struct Lanes *lanes = t->lanes;
    for (size_t i = 0; i < lanes->n_outsides; i++) {
        Outside *o = &lanes->outsides[i];
        Span span = span_of(t, &t->entries[lane->first + o->k], o->operand);
        if (o->operand != OUT && span.begin < lanes->mark) continue;  // a parameter
        if (span.begin < common.begin || span.end > common.end) return false;
        if (o->operand == OUT && is_read(lanes, span)) return false;
        if (span.begin < o->all.begin) o->all.begin = span.begin;
        if (span.end > o->all.end) o->all.end = span.end;
    }
    return true;
}

// Are the lanes from `begin` to `end`, a group, in time? Nothing is written after it was read, by
// the same or a later entry of a lane, or by the entries between lanes, which come after them all.
static bool group_in_time(const Tape *t, size_t begin, size_t end)
{
    const struct Lanes *lanes = t->lanes;
    const Lane *lane = lanes->lane;
    Outside *list = lanes->outsides;
    Span common = {begin > 0 ? lane[begin - 1].end : lanes->mark, lane[begin].begin};
    for (size_t i = 0; i < lanes->n_outsides; i++) list[i].all = (Span){SIZE_MAX, 0};
    for (size_t i = begin; i < end; i++) {
        if (!lane_in_time(t, &lane[i], common)) return false;
    }
    for (size_t i = 0; i < lanes->n_outsides; i++) {
        for (size_t j = i; list[i].operand != OUT && j < lanes->n_outsides; j++) {
            if (list[j].operand == OUT && meet(list[i].all, list[j].all)) return false;
        }
    }
    for (size_t i = begin > 0 ? begin : 1; i < end; i++) {
        for (size_t k = lane[i - 1].first + lanes->length; k < lane[i].first; k++) {
            if (is_read(lanes, span_of(t, &t->entries[k], OUT))) return false;
        }
    }
    return true;
}

// A group begins where the first thing that a lane writes in common was made after the last lane.
static bool in_time(const Tape *t)
{
    const struct Lanes *lanes = t->lanes;
    size_t begin = 0, out = 0;
    while (out < lanes->n_outsides && lanes->outsides[out].operand != OUT) out++;
    for (size_t i = 1; out < lanes->n_outsides && i < lanes->n; i++) {
        const Entry *e = &t->entries[lanes->lane[i].first + lanes->outsides[out].k];
        if (place_of(t, e->out) < lanes->lane[i - 1].end) continue;
        if (!group_in_time(t, begin, i)) return false;
        begin = i;
    }
    return group_in_time(t, begin, lanes->n);
}

void tape_end_lanes(Tape *t)
{
    if (!t->faster || !t->lanes->open) return;
    struct Lanes *lanes = t->lanes;
    lanes->open = false;
    lanes->lane[lanes->n - 1].end = place_now(t);
    if (!lanes->unlike) lanes->unlike = !compare_lane(t);
}

void tape_lane(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    if (!have_faster || !t->faster || !use_lanes || (lanes->n > 0 && !t->waiting)) return;
    tape_end_lanes(t);
    lanes->unlike = lanes->unlike || !more_lanes(lanes);
    if (lanes->unlike) return;
    if (lanes->n == 0) lanes->look = lanes->n_begun < ALL_TIMES || lanes->n_begun % SOME_TIMES == 0;
    lanes->n_begun += lanes->n == 0;
    lanes->mark = t->kept_chunk * t->chunk_size + t->kept_values;
    lanes->lane[lanes->n++] = (Lane){.first = t->n_entries, .begin = place_now(t)};
    lanes->open = t->waiting = true;
}

/* ------------------------------------------------------------------------------------------------
 * Threads share lanes in runs of neighbors.
 */
typedef struct {
    const Tape *t;
    Entry *const *lanes;  // [n]
    size_t k, n, cuts[MAX_PARTS + 1];
    LanesPart *part;
} SharedLanes;

static void do_lanes(void *context, size_t part, size_t n_parts)
{
    const SharedLanes *shared = context;
    size_t first = shared->cuts[part], n = shared->cuts[part + 1] - first;
    assert(n > 0 && shared->cuts[0] == 0 && shared->cuts[n_parts] == shared->n);
    (void)n_parts;
    shared->part(shared->t, shared->lanes + first, n, shared->k);
}

// How many multiply-adds take as long as this entry.
static size_t work_of(const Entry *e)
{
    bool slow = e->op == OP_SOFTMAX || e->op == OP_EXP || e->op == OP_LOG || e->op == OP_POW;
    size_t values = e->length > 0 ? (size_t)e->n * e->length : e->n;
    return values * (slow ? 16 : e->length > 0 ? 2 : 4) + 64;
}

// Cuts lanes into up to max parts, only where all operands of the lanes after a cut lie behind
// those of the lanes before it. So do their gradients, a chunk further on. Lanes whose operands are
// in another order stay together.
static size_t cut_lanes(Entry *const *lanes, size_t n, size_t k, size_t *cuts, size_t max)
{
    const OpRules *rules = &operations[lanes[0][k].op];
    size_t n_parts = 0, next = 0;
    const double *before = NULL, *end = NULL;
    Slope slope = lanes[0][k].n < lanes[n - 1][k].n ? RISING : EVEN;
    for (size_t lane = 0; lane < n; lane++) {
        const Entry *e = &lanes[lane][k];
        const double *low = e->b && e->b < e->a ? e->b : e->a;
        const double *a_end = e->a + extent_of(e, rules->a);
        const double *b_end = e->b ? e->b + extent_of(e, rules->b) : a_end;
        if (low < before) return 1;
        if (lane >= next && (lane == 0 || low >= end)) {
            cuts[n_parts++] = lane;
            next = cut_by_work(n, max, n_parts, slope);
        }
        before = low;
        end = a_end > end ? a_end : end;
        end = b_end > end ? b_end : end;
    }
    cuts[n_parts] = n;
    return n_parts;
}

bool share_lanes(const Tape *t, Entry *const *lanes, size_t n, size_t k, LanesPart *part)
{
    if (n_threads < 2 || n < 2) return false;
    size_t max = smaller(smaller(parts_of(n * work_of(&lanes[n / 2][k])), MAX_PARTS), n);
    if (max < 2) return false;
    SharedLanes shared = {.t = t, .lanes = lanes, .k = k, .n = n, .part = part};
    size_t n_parts = cut_lanes(lanes, n, k, shared.cuts, max);
    if (n_parts < 2) return false;
    share(do_lanes, &shared, n_parts);
    return true;
}

typedef struct {
    double *values;  // [n]
    size_t n;
} Values;

static void clear_part(void *context, size_t part, size_t n_parts)
{
    const Values *all = context;
    size_t begin = cut(all->n, n_parts, part), end = cut(all->n, n_parts, part + 1);
    memset(all->values + begin, 0, (end - begin) * sizeof *all->values);
}

static bool clear(double *values, size_t n)
{
    size_t n_parts = parts_of(n);
    if (n_parts > 1) share(clear_part, &(Values){values, n}, n_parts);
    return n_parts > 1;
}

/* ------------------------------------------------------------------------------------------------
 * All fast versions of operations, and the two walks that use them.
 */
#ifdef VECTORS
#define FAST(f, b, file)                                                                           \
    .forward = f, .backward = b, .names = {#f, #b, "forward_lanes", "backward_lanes"},             \
    .files = {"support/engine/" file, "support/engine/products.c"}
#define WITH_LANES .forward_lanes = forward_lanes, .backward_lanes = backward_lanes
FastOperation fast_operations[N_OPS] = {
    [OP_LINEAR] = {FAST(fast_linear_forward, fast_linear_backward, "products.c"), WITH_LANES},
    [OP_ROW_DOTS] = {FAST(fast_row_dots_forward, fast_row_dots_backward, "kernels.c"), WITH_LANES},
    [OP_WEIGHTED_SUM] = {FAST(fast_weighted_sum_forward, fast_weighted_sum_backward, "kernels.c"),
                         WITH_LANES},
    [OP_SOFTMAX] = {FAST(fast_softmax_forward, fast_softmax_backward, "softmax.c")},
};
#else
FastOperation fast_operations[N_OPS];  // none
#endif

static bool forward_one(Entry *e)
{
    bool (*way)(Entry *) = fast_operations[e->op].forward;
    return way && way(e);
}

static void compute_one(Entry *e)
{
    if (!forward_one(e)) operations[e->op].forward(e);
}

static void forward_some(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    (void)t;
    for (size_t lane = 0; lane < n; lane++) compute_one(&lanes[lane][k]);
}

// Entry k of n lanes; a single entry is entry 0 of one lane.
static void backward_some(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    Op op = lanes[0][k].op;
    bool (*way)(const Tape *, Entry *) = fast_operations[op].backward;
    void (*plain)(const Tape *, const Entry *) = operations[op].backward;
    for (size_t lane = n; lane-- > 0;) {
        Entry *e = &lanes[lane][k];
        if (!way || !way(t, e)) plain(t, e);
    }
}

static void forward_all(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    const FastOperation *fast = &fast_operations[lanes[0][k].op];
    if (fast->forward_lanes && fast->forward_lanes(t, lanes, n, k)) return;
    if (!share_lanes(t, lanes, n, k, forward_some)) forward_some(t, lanes, n, k);
}

static void backward_all(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    const FastOperation *fast = &fast_operations[lanes[0][k].op];
    if (fast->backward_lanes && fast->backward_lanes(t, lanes, n, k)) return;
    if (!share_lanes(t, lanes, n, k, backward_some)) backward_some(t, lanes, n, k);
}

// The entries from number i to `end`, in the order of the tape.
static void compute_some(Tape *t, size_t i, size_t end)
{
    for (; i < end; i++) compute_one(&t->entries[i]);
}

static void compute(Tape *t)
{
    tape_end_lanes(t);
    struct Lanes *lanes = t->lanes;
    const Lane *lane = lanes->lane;
    size_t n = lanes->n, length = lanes->length;
    t->waiting = false;
    if (lanes->unlike || n < 2 || (lanes->look && !in_time(t))) {
        compute_some(t, lane[0].first, t->n_entries);
        return;
    }
    for (size_t i = 0; i < n; i++) lanes->at[i] = t->entries + lane[i].first;  // they move no more
    for (size_t k = 0; k < length; k++) forward_all(t, lanes->at, n, k);
    for (size_t i = 1; i < n; i++) compute_some(t, lane[i - 1].first + length, lane[i].first);
    lanes->end = lane[n - 1].first + length;
    compute_some(t, lanes->end, t->n_entries);
}

static void walk_back(Tape *t)
{
    const struct Lanes *lanes = t->lanes;
    for (size_t i = lanes->n; i-- > 1;) {
        Entry *end = lanes->at[i - 1] + lanes->length;
        for (Entry *e = lanes->at[i]; e-- > end;) backward_some(t, &e, 1, 0);
    }
    for (size_t k = lanes->length; k-- > 0;) backward_all(t, lanes->at, lanes->n, k);
}

// If entry i is the last of the lanes: goes back through all of them, and sets i to their first.
static bool backward_one(Tape *t, size_t *i)
{
    if (*i + 1 == t->lanes->end) {
        walk_back(t);
        *i = t->lanes->lane[0].first;
        return true;
    }
    Entry *e = &t->entries[*i];
    bool (*way)(const Tape *, Entry *) = fast_operations[e->op].backward;
    return way && way(t, e);
}

static const Faster engine = {forward_one, backward_one, clear, compute, forget_lanes, free_lanes};

bool install_faster(Tape *t)
{
    t->lanes = calloc(1, sizeof *t->lanes);
    t->faster = t->lanes ? &engine : NULL;
    return t->faster;
}
