/* lanes.c: what a program does to many inputs is computed side by side.
 *
 * A program that does the same to many inputs (here: to the positions of a document) records the
 * same entries again and again. Between tape_lane() and tape_end_lanes() they are only recorded.
 * compute() then computes entry 1 of all lanes, entry 2 of all lanes, and so on, and after these
 * what was recorded between the lanes and after them; walk_back() does the same from the end. What
 * the lanes have in common, such as a matrix, is then fetched once for many of them.
 *
 * That is not the order of the tape. The numbers are the same if all lanes have the same
 * operations, and if what entry k of a lane reads is written by entries before k alone, and not by
 * a later lane. Lanes for which this does not hold, or for which there is no memory, are unlike:
 * they are computed in the order of the tape. Operations are compared every time. What is read and
 * written is looked at the first ALL_TIMES times, then every SOME_TIMES-th time: it takes a tenth of
 * a small step, and a program does not change it without another operation, as a rule. Once lanes are
 * computed, tape_lane() does nothing until tape_mark() or tape_drop(). Without -DAUTOGRAD_LANES it
 * never does anything.
 */
#include "fast.h"

#include <assert.h>
#include <stdlib.h>

bool use_lanes = true;
enum { ALL_TIMES = 256, SOME_TIMES = 16 };

static void free_lanes(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    if (!lanes) return;
    free(lanes->first);
    free(lanes->at);
    free(lanes->own);
    free(lanes->outsides);
    free(lanes->memory);
    free(lanes);
    t->lanes = NULL;
}

static void forget_lanes(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    lanes->n = lanes->length = lanes->end = 0;
    lanes->n_outsides = 0;
    lanes->open = lanes->unlike = t->waiting = false;
}

/* ------------------------------------------------------------------------------------------------
 * Recording. Values are made in the order of the tape. So the place of a value says who made it:
 * what is before the mark are parameters, then come the vectors that lanes have in common, then the
 * values of each lane.
 */
static size_t place_now(const Tape *t) { return t->this_chunk * t->chunk_size + t->n_values; }

static inline size_t place_of(const Tape *t, const double *x)
{
    size_t now = ((uintptr_t)x - (uintptr_t)t->chunk) / sizeof *x;
    if (now < t->chunk_size) return t->this_chunk * t->chunk_size + now;
    for (size_t k = t->this_chunk; k-- > 0;) {
        size_t at = ((uintptr_t)x - (uintptr_t)t->chunks[k]) / sizeof *x;
        if (at < t->chunk_size) return k * t->chunk_size + at;
    }
    return 0;  // on no chunk: a parameter on another tape
}

// The count of values that are meant by an extent.
static inline size_t extent_of(const Entry *e, Extent extent)
{
    switch (extent) {
    case NO_VALUES: return 0;
    case ONE_VALUE: return 1;
    case N_VALUES: return e->n;
    case A_ROW: return e->length;
    case N_ROWS: return (size_t)(e->n - 1) * e->stride + e->length;
    }
    return 0;
}

#ifdef AUTOGRAD_LANES
// A list with room for one more than n.
static void *with_room(void *list, size_t n, size_t *max, size_t size)
{
    if (n < *max) return list;
    size_t larger = *max ? 2 * *max : 64;
    void *moved = realloc(list, larger * size);
    if (moved) *max = larger;
    return moved;
}

static bool more_lanes(struct Lanes *lanes)
{
    size_t max[2] = {lanes->max, lanes->max};
    size_t *first = with_room(lanes->first, lanes->n, &max[0], sizeof *first);
    if (first) lanes->first = first;
    Span *own = first ? with_room(lanes->own, lanes->n, &max[1], sizeof *own) : NULL;
    if (own) lanes->own = own;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
    Entry **at = own ? with_room(lanes->at, lanes->n, &lanes->max, sizeof *at) : NULL;
    if (at) lanes->at = at;
    return at != NULL;
}

// Notes an operand that is neither the lane's own nor a parameter. Lanes that are alike have the
// same ones.
static bool is_outside(struct Lanes *lanes, size_t k, Operand operand)
{
    size_t i = lanes->next++;
    if (lanes->n > 1) {
        const Outside *like = &lanes->outsides[i];
        return i < lanes->n_outsides && like->k == k && like->operand == operand;
    }
    Outside *list = with_room(lanes->outsides, i, &lanes->max_outsides, sizeof *list);
    if (!list) return false;
    lanes->outsides = list;
    lanes->outsides[lanes->n_outsides++] = (Outside){.k = k, .operand = operand};
    return true;
}

// Is the lane that ends like the first one? Nearly all of its operands are its own, in the chunk
// where it begins, or parameters, in the first chunk.
static bool is_like(Tape *t)
{
    struct Lanes *lanes = t->lanes;
    size_t first = lanes->first[lanes->n - 1], length = t->n_entries - first, size = t->chunk_size;
    const Entry *begin = t->entries + first, *like = t->entries + lanes->first[0];
    if (lanes->n == 1) lanes->length = length;
    if (length != lanes->length) return false;
    if (!lanes->look) {
        for (size_t k = 0; k < length; k++) {
            if (begin[k].op != like[k].op) return false;
        }
        return true;
    }
    size_t place = lanes->own[lanes->n - 1].begin;
    uintptr_t own = (uintptr_t)(t->chunks[place / size] + place % size);
    uintptr_t own_bytes = (size - place % size) * sizeof(double);
    uintptr_t parameters = (uintptr_t)t->chunks[0];
    uintptr_t bytes = (lanes->mark < size ? lanes->mark : size) * sizeof(double);
    lanes->next = 0;
#define OUTSIDE(x) ((x)-own >= own_bytes && (x)-parameters >= bytes)
    for (const Entry *e = begin, *end = e + length; e < end; e++, like++) {
        uintptr_t out = (uintptr_t)e->out, a = (uintptr_t)e->a, b = (uintptr_t)e->b;
        if (e->op != like->op) return false;
        if (OUTSIDE(a) && !is_outside(lanes, (size_t)(e - begin), A)) return false;
        if (b && OUTSIDE(b) && !is_outside(lanes, (size_t)(e - begin), B)) return false;
        if (out - own >= own_bytes && !is_outside(lanes, (size_t)(e - begin), OUT)) return false;
    }
#undef OUTSIDE
    return lanes->next == lanes->n_outsides;
}

/* ------------------------------------------------------------------------------------------------
 * What lanes read outside of their own values must be there in time. Before any of it is computed,
 * all lanes are looked at together, group by group: what the lanes of a group have in common, such
 * as a cache, was made right before them.
 */
static inline bool meet(Span a, Span b) { return a.begin < b.end && b.begin < a.end; }

static inline Span span_of(const Tape *t, const Entry *e, Operand operand)
{
    const OpRules *rules = &operations[e->op];
    const double *x = operand == OUT ? e->out : operand == A ? e->a : e->b;
    Extent extent = operand == OUT ? rules->out : operand == A ? rules->a : rules->b;
    size_t begin = place_of(t, x);
    return (Span){begin, begin + extent_of(e, extent)};
}

// Is what entry k of a lane reads elsewhere made by an entry before k of other lanes, if at all?
static bool made_before(const Tape *t, size_t k, Span what)
{
    const struct Lanes *lanes = t->lanes;
    for (size_t lane = 0; lane < lanes->n; lane++) {
        size_t next = lane + 1 < lanes->n ? lanes->first[lane + 1] : t->n_entries;
        for (size_t i = lanes->first[lane] + k; i < next; i++) {
            if (meet(span_of(t, &t->entries[i], OUT), what)) return false;
        }
    }
    return true;
}

// Nothing is written after it was read: not by a later lane, and not by the same or a later entry
// of another. What lanes read or write in common is widened, lane by lane, to what all of them do.
static bool group_in_time(const Tape *t, size_t begin, size_t end)
{
    const struct Lanes *lanes = t->lanes;
    Outside *list = lanes->outsides;
    size_t n = lanes->n_outsides, mark = lanes->mark;
    Span common = {begin > 0 ? lanes->own[begin - 1].end : mark, lanes->own[begin].begin};
    for (size_t i = 0; i < n; i++) list[i].all = (Span){SIZE_MAX, 0};
    for (size_t lane = begin; lane < end; lane++) {
        for (size_t i = 0; i < n; i++) {
            Outside *o = &list[i];
            Span span = span_of(t, &t->entries[lanes->first[lane] + o->k], o->operand);
            bool in_common = span.begin >= common.begin && span.end <= common.end;
            if (o->operand == OUT && !in_common) return false;
            for (size_t j = 0; o->operand == OUT && j < n; j++) {
                if (list[j].operand != OUT && meet(list[j].all, span)) return false;
            }
            if (span.begin < mark) continue;  // a parameter
            if (!in_common && !made_before(t, o->k, span)) return false;
            if (!in_common) continue;
            if (span.begin < o->all.begin) o->all.begin = span.begin;
            if (span.end > o->all.end) o->all.end = span.end;
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i; list[i].operand != OUT && j < n; j++) {
            if (list[j].operand == OUT && meet(list[i].all, list[j].all)) return false;
        }
        size_t between = begin > 0 ? lanes->first[begin - 1] + lanes->length : lanes->first[begin];
        for (; between < lanes->first[begin]; between++) {  // computed after all lanes
            if (meet(span_of(t, &t->entries[between], OUT), list[i].all)) return false;
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
    for (size_t lane = 1; out < lanes->n_outsides && lane < lanes->n; lane++) {
        const Entry *e = &t->entries[lanes->first[lane] + lanes->outsides[out].k];
        if (place_of(t, e->out) < lanes->own[lane - 1].end) continue;
        if (!group_in_time(t, begin, lane)) return false;
        begin = lane;
    }
    return group_in_time(t, begin, lanes->n);
}
#endif

// The lane that is open ends.
void tape_end_lanes(Tape *t)
{
#ifdef AUTOGRAD_LANES
    if (!t->faster || !t->lanes->open) return;
    t->lanes->open = false;
    t->lanes->own[t->lanes->n - 1].end = place_now(t);
    if (!t->lanes->unlike) t->lanes->unlike = !is_like(t);
#else
    (void)t;
#endif
}

void tape_lane(Tape *t)
{
#ifdef AUTOGRAD_LANES
    struct Lanes *lanes = t->lanes;
    if (!t->faster || !use_lanes || (lanes->n > 0 && !t->waiting)) return;
    tape_end_lanes(t);
    if (!more_lanes(lanes)) {
        lanes->unlike = true;
        return;
    }
    if (lanes->n == 0) lanes->look = lanes->times < ALL_TIMES || lanes->times % SOME_TIMES == 0;
    if (lanes->n == 0) lanes->times++;
    lanes->mark = t->kept_chunk * t->chunk_size + t->kept_values;
    lanes->own[lanes->n].begin = place_now(t);
    lanes->first[lanes->n++] = t->n_entries;
    lanes->open = t->waiting = true;
#else
    (void)t, (void)place_now, (void)place_of;
#endif
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
    (void)n_parts;
    shared->part(shared->t, shared->lanes + first, n, shared->k, scratch);
}

// About as many multiply-adds as take the time of one entry.
static size_t work_of(const Entry *e)
{
    bool slow = e->op == OP_SOFTMAX || e->op == OP_EXP || e->op == OP_LOG || e->op == OP_POW;
    size_t values = e->length > 0 ? (size_t)e->n * e->length : e->n;
    return values * (slow ? 16 : e->length > 0 ? 2 : 4) + 64;
}

// The operands of an entry lie between low and high; so do their gradients, a chunk further on.
static void find_operands(const Entry *e, const double **low, const double **high)
{
    size_t n_a = extent_of(e, operations[e->op].a), n_b = extent_of(e, operations[e->op].b);
    *low = n_b > 0 && e->b < e->a ? e->b : e->a;
    *high = n_b > 0 && e->b + n_b > e->a + n_a ? e->b + n_b : e->a + n_a;
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
        if (apart) find_operands(&lanes[lane][k], &low, &high);
        if (low < before) return 1;
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

typedef struct {
    double *values;
    size_t n;
} Values;

static void clear_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Values *all = context;
    size_t begin = cut(all->n, n_parts, part), end = cut(all->n, n_parts, part + 1);
    (void)unused;
    memset(all->values + begin, 0, (end - begin) * sizeof *all->values);
}

static bool clear(double *values, size_t n)
{
    size_t n_parts = parts_of(n);
    if (n_parts > 1) share(clear_part, &(Values){values, n}, n_parts, NULL);
    return n_parts > 1;
}

/* ------------------------------------------------------------------------------------------------
 * The two walks.
 */
// Entry k of n lanes; a single entry is entry 0 of one lane.
static void forward_some(const Tape *t, Entry *const *lanes, size_t n, size_t k, double *unused)
{
    Op op = lanes[0][k].op;
    bool (*faster)(Entry *) = fast_operations[op].forward;
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
    bool (*faster)(const Tape *, Entry *) = fast_operations[op].backward;
    void (*plain)(const Tape *, const Entry *) = operations[op].backward;
    (void)unused;
    for (size_t lane = n; lane-- > 0;) {
        Entry *e = &lanes[lane][k];
        if (!faster || !faster(t, e)) plain(t, e);
    }
}

static void forward_all(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    const FastOperation *fast = &fast_operations[lanes[0][k].op];
    if (fast->forward_lanes && fast->forward_lanes(t, lanes, n, k)) return;
    if (share_lanes(t, lanes, n, k, false, forward_some)) return;
    forward_some(t, lanes, n, k, NULL);
}

static void backward_all(const Tape *t, Entry *const *lanes, size_t n, size_t k)
{
    const FastOperation *fast = &fast_operations[lanes[0][k].op];
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

static bool forward_one(Entry *e)
{
    bool (*faster)(Entry *) = fast_operations[e->op].forward;
    return faster && faster(e);
}

// The entries from number i to `end`, in the order of the tape.
static void compute_some(Tape *t, size_t i, size_t end)
{
    for (; i < end; i++) {
        Entry *e = &t->entries[i];
        if (!forward_one(e)) operations[e->op].forward(e);
    }
}

static void compute(Tape *t)
{
    tape_end_lanes(t);
    struct Lanes *lanes = t->lanes;
    size_t n = lanes->n, length = lanes->length;
    t->waiting = false;
#ifdef AUTOGRAD_LANES
    if (!lanes->unlike && n > 1 && lanes->look) lanes->unlike = !in_time(t);
#endif
    if (lanes->unlike || n < 2) {
        compute_some(t, lanes->first[0], t->n_entries);
        return;
    }
    Entry *const *at = find_lanes(t);
    for (size_t k = 0; k < length; k++) forward_all(t, at, n, k);
    for (size_t lane = 1; lane < n; lane++) {  // then what is between two lanes
        compute_some(t, lanes->first[lane - 1] + length, lanes->first[lane]);
    }
    lanes->end = lanes->first[n - 1] + length;
    compute_some(t, lanes->end, t->n_entries);
}

static void walk_back(Tape *t)
{
    size_t n = t->lanes->n, length = t->lanes->length;
    Entry *const *at = find_lanes(t);
    for (size_t lane = n; lane-- > 1;) {
        for (Entry *e = at[lane]; e > at[lane - 1] + length;) {
            e--;
            backward_some(t, &e, 1, 0, NULL);
        }
    }
    for (size_t k = length; k-- > 0;) backward_all(t, at, n, k);
}

// If entry i is the last of the lanes: goes back through all of them, and sets i to their first.
static bool backward_one(Tape *t, size_t *i)
{
    if (*i + 1 == t->lanes->end) {
        walk_back(t);
        *i = t->lanes->first[0];
        return true;
    }
    Entry *e = &t->entries[*i];
    bool (*faster)(const Tape *, Entry *) = fast_operations[e->op].backward;
    return faster && faster(t, e);
}

/* ------------------------------------------------------------------------------------------------
 * Installing.
 */
static const Faster faster = {forward_one, backward_one, clear, compute, forget_lanes, free_lanes};

#ifdef AUTOGRAD_LANES
const bool have_faster = true;
#else
const bool have_faster = false;
#endif

bool install_faster(Tape *t)
{
    struct Lanes *lanes = calloc(1, sizeof *lanes);
    if (!lanes) return false;
    t->lanes = lanes;
    t->faster = &faster;
#ifdef VECTORS
    char *memory = lanes->memory = malloc((SHARED_SCRATCH + 8) * sizeof(double));
    if (!memory) return false;
    lanes->scratch = (double *)(void *)(memory + 64 - (uintptr_t)memory % 64);
#endif
    return true;
}
