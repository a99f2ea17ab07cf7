/* Lanes give the numbers of the tape's order, to the last bit where they are computed in it: where an entry reads what
 * another lane makes, where lanes differ, where there is no memory for them. And they are computed side by side where they can be.
 */
// also built with -DAUTOGRAD_PLAIN
#include <stdlib.h>

static int reallocs_left = -1;  // before realloc() fails; below 0: it does not

static void *our_realloc(void *memory, size_t size)
{
    if (reallocs_left == 0) return NULL;
    reallocs_left -= reallocs_left > 0;
    return realloc(memory, size);
}

#define realloc our_realloc
#include "../../support/engine/lanes.c"
#undef realloc
#include "../test.h"

enum { N = 4, LANES = 5, LENGTH = 7, PARAMETERS = 2 * N * (LANES + 1) };
enum { PLACES = (LENGTH * (LANES + 1) + 1) * N, SEEN = 1 + PARAMETERS + N };

// What the lanes of a group have in common: p is made before the mark, places after it.
typedef struct {
    Tape *t;
    double *p, *places;  // [PARAMETERS], [PLACES]
} Group;

static Tape new_tape(size_t room)
{
    Tape t;
    if (!tape_init(&t, room) || !install_faster(&t)) exit(1);
    return t;
}

static Group new_group(Tape *t)
{
    Group g = {.t = t, .p = ag_vector(t, PARAMETERS)};
    for (size_t i = 0; i < PARAMETERS; i++) g.p[i] = sin((double)(i + 1));
    ag_clear_grad(t, g.p, PARAMETERS);
    tape_mark(t);
    return g;
}

static double *new_places(Tape *t)
{
    double *places = ag_vector(t, PLACES);
    for (size_t i = 0; i < PLACES; i++) places[i] = cos((double)i);
    return places;
}

// Goes back from a sum. What it is, and its gradients, go to `seen`. Returns the count of lanes that
// were together.
static size_t end_pass(const Group *g, double *sum, double *seen)
{
    Tape *t = g->t;
    seen[0] = *value(t, sum);
    size_t together = t->lanes->end > 0 ? t->lanes->n : 0;
    backward(t, sum);
    memcpy(seen + 1, grad(t, g->p), PARAMETERS * sizeof *seen);
    memcpy(seen + 1 + PARAMETERS, grad(t, g->places), N * sizeof *seen);
    tape_free(t);
    return together;
}

/* ------------------------------------------------------------------------------------------------
 * What may be read, and what not. Each returns what the next lane is given as `before`; the first is
 * given the first of the places.
 */
typedef double *LaneOf(const Group *g, size_t s, double *before);

static double *made_before(const Group *g, size_t s, double *before)
{
    return ag_mul(g->t, before, g->p + s * N, N);
}
static double *place_of_earlier(const Group *g, size_t s, double *before)
{
    ag_copy(g->t, g->places + (s + 1) * N, ag_mul(g->t, g->p + s * N, g->p, N), N);
    ag_row_dots(g->t, g->p, g->places, s + 2, N, N, 0.5);
    return before;
}
static double *parameters_written(const Group *g, size_t s, double *before)
{
    double *out = g->p + PARAMETERS / 2;
    ag_copy(g->t, out + (s + 1) * N, ag_mul(g->t, out + s * N, g->p, N), N);
    return before;
}
static double *own_alone(const Group *g, size_t s, double *before)
{
    ag_exp(g->t, ag_mul(g->t, g->p + s * N, g->p, N), N);
    return before;
}
static double *another_operation(const Group *g, size_t s, double *before)
{
    s == 2 ? ag_exp(g->t, g->p + s, N) : ag_relu(g->t, g->p + s, N);
    return before;
}
static double *last_one_longer(const Group *g, size_t s, double *before)
{
    for (size_t i = 0; i < (s + 1 == LANES ? 2 : 1); i++) ag_relu(g->t, g->p + s, N);
    return before;
}

static const struct {
    const char *what;
    LaneOf *lane;
    bool together;
} cases[] = {
    {"nothing of another lane", own_alone, true},
    {"places that an earlier entry fills", place_of_earlier, true},
    {"what the lane before makes", made_before, false},
    {"parameters that a later entry fills", parameters_written, false},
    {"another operation in one lane", another_operation, false},
    {"one entry more in the last lane", last_one_longer, false},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static size_t pass(size_t room, LaneOf *lane, bool marked, double *seen)
{
    Tape t = new_tape(room);
    Group g = new_group(&t);
    double *terms = ag_vector(&t, LANES), *before = g.places = new_places(&t);
    for (size_t s = 0; s < LANES; s++) {
        if (marked) tape_lane(&t);
        before = lane(&g, s, before);
        double *last = t.entries[t.n_entries - 1].out;
        ag_copy(&t, terms + s, ag_mul(&t, last, g.p + 1, 1), 1);
    }
    tape_end_lanes(&t);
    return end_pass(&g, ag_sum(&t, terms, LANES), seen);
}

// The same numbers: to the last bit, if nothing was together.
static bool same(const double *want, const double *seen, size_t together)
{
    char text[128];
    return together ? all_near(want, seen, SEEN, 1e-12, text, sizeof text)
                    : memcmp(want, seen, SEEN * sizeof *seen) == 0;
}

// In one chunk, and in chunks so small that a lane lies in several.
static void test_cases(void)
{
    for (size_t i = 0; i < N_CASES; i++) {
        for (size_t room = 2000; room >= PLACES; room -= 2000 - PLACES) {
            double want[SEEN], seen[SEEN];
            pass(room, cases[i].lane, false, want);
            size_t together = pass(room, cases[i].lane, true, seen);
            bool expected = have_faster && cases[i].together;
            check(isfinite(want[0]) && same(want, seen, together), "%s: the same", cases[i].what);
            if (room == 2000 || !expected) check_size("together", expected ? LANES : 0, together);
            if (room == PLACES) break;
        }
    }
}

// Wherever memory for the lists is refused, the numbers are those without lanes.
static void test_no_memory(void)
{
    size_t n_refused = 0, n_wrong = 0;
    for (size_t i = 0; i < N_CASES; i++) {
        double want[SEEN], seen[SEEN];
        pass(2000, cases[i].lane, false, want);
        for (int left = 0; left < 8; left++) {
            reallocs_left = left;
            size_t together = pass(2000, cases[i].lane, true, seen);
            n_refused += reallocs_left == 0;
            reallocs_left = -1;
            n_wrong += !same(want, seen, together);
        }
    }
    check(n_refused > 0 || !have_faster, "memory was refused %zu times", n_refused);
    check_size("numbers that differ then", 0, n_wrong);
}

/* ------------------------------------------------------------------------------------------------
 * Groups of lanes of any operations, whose operands come from anywhere that is already made.
 */
typedef enum { OWN, PARAMETER, PLACE, LANE_BEFORE, BETWEEN, N_SOURCES } Source;
typedef enum { MUL, MUL_CONST, DOT, SOFTMAX, LINEAR, COPY, N_KINDS } Kind;

typedef struct {
    Kind kind;
    Source source[2];
    size_t from[2],
        back[2];  // which entry; of the lanes that fill a place, how many back from the next
} Step;

static size_t any(size_t n) { return (size_t)((any_number() + 1) / 2 * (double)n) % n; }

static double *operand(const Group *g, const Step *step, int i, size_t s,
                       double *made[LANES][LENGTH])
{
    size_t from = step->from[i], at = s + 2 - smaller(s + 2, step->back[i]);
    double *between = g->places + LENGTH * (LANES + 1) * N;
    switch (step->source[i]) {
    case OWN: return made[s][from];
    case PLACE: return g->places + (from * (LANES + 1) + (at < LANES ? at : LANES)) * N;
    case LANE_BEFORE: return s > 0 ? made[s - 1][from] : between;
    case BETWEEN: return between;
    default: return g->p + (s + from) % LANES * N;
    }
}

static double *do_step(const Group *g, const Step *steps, size_t k, size_t s,
                       double *made[LANES][LENGTH])
{
    double *a = operand(g, &steps[k], 0, s, made), *b = operand(g, &steps[k], 1, s, made);
    const Matrix w = {.rows = N, .cols = N, .data = g->p};
    switch (steps[k].kind) {
    case MUL: return ag_mul(g->t, a, b, N);
    case MUL_CONST: return ag_mul_const(g->t, a, 0.5, N);
    case DOT: return ag_row_dots(g->t, a, b, 1, N, N, 0.3);
    case SOFTMAX: return ag_softmax(g->t, a, N);
    case LINEAR: return ag_linear(g->t, a, &w);
    default: return ag_copy(g->t, g->places + (k * (LANES + 1) + s + 1) * N, a, N);
    }
}

static size_t any_pass(const Step *steps, size_t length, bool marked, double *seen)
{
    Tape t = new_tape(4000);
    Group g = new_group(&t);
    double *made[LANES][LENGTH], *sum = ag_scalar(&t, 0);
    bool scalar = steps[length - 1].kind == DOT;
    for (size_t group = 0; group < 1 + length % 2; group++) {
        g.places = new_places(&t);
        double *terms = ag_vector(&t, LANES);
        for (size_t s = 0; s < LANES; s++) {
            if (marked) tape_lane(&t);
            for (size_t k = 0; k < length; k++) made[s][k] = do_step(&g, steps, k, s, made);
            double *last = ag_sum(&t, made[s][length - 1], scalar ? 1 : N);
            ag_copy(&t, terms + s, ag_mul_const(&t, last, 0.9, 1), 1);
            if (s > 0 || length % 3) continue;
            tape_end_lanes(&t);  // what follows belongs to no lane
            ag_copy(&t, g.places + LENGTH * (LANES + 1) * N, g.p, N);
        }
        tape_end_lanes(&t);
        sum = ag_add(&t, sum, ag_sum(&t, terms, LANES), 1);
    }
    return end_pass(&g, sum, seen);
}

// One value is no vector: it is no operand of what follows.
static void any_steps(Step *steps, size_t length)
{
    for (size_t k = 0; k < length; k++) {
        Step *step = &steps[k];
        step->kind = (Kind)any(N_KINDS);
        for (int i = 0; i < 2; i++) {
            step->source[i] = (Source)any(N_SOURCES);
            step->from[i] = any(LENGTH);
            step->back[i] = any(4);
            if (step->source[i] != OWN && step->source[i] != LANE_BEFORE) continue;
            step->from[i] %= k > 0 ? k : 1;
            if (k == 0 || steps[step->from[i]].kind == DOT) step->source[i] = PARAMETER;
        }
    }
}

static void test_any(void)
{
    size_t n_together = 0, n_apart = 0;
    for (size_t round = 0; round < 20000; round++) {
        Step steps[LENGTH];
        size_t length = 1 + any(LENGTH);
        double want[SEEN], seen[SEEN];
        any_steps(steps, length);
        any_pass(steps, length, false, want);
        size_t together = any_pass(steps, length, true, seen);
        n_together += together > 0;
        n_apart += together == 0;
        if (!same(want, seen, together)) check(false, "program %zu: other numbers", round);
    }
    check(n_apart > 1000 && (n_together > 1000 || !have_faster),
          "%zu were side by side, %zu in the order of the tape", n_together, n_apart);
}

/* ------------------------------------------------------------------------------------------------
 * Entries in lanes, and those after them, wait until something is asked for.
 */
static void test_waiting(void)
{
    Tape t = new_tape(1000);
    double *x = ag_input(&t, (double[]){1, 3, 2}, 3), *y = x;
    tape_lane(&t);
    double *in_lane = ag_mul_const(&t, x + 1, 2, 1), *after = ag_mul_const(&t, in_lane, 2, 1);
    x[1] = 5;
    check(value(&t, after) == after && !t.waiting, "value() returns what it is given");
    check_near("in a lane, the values at the time of value() count", have_faster ? 20 : 12, *after,
               0);
    check_near("then nothing waits", *after + 1, *ag_add_const(&t, after, 1, 1), 0);
    tape_drop(&t);
    tape_lane(&t);
    y = ag_exp(&t, ag_input(&t, (double[]){1, 3, 2}, 3), 3);
    check_near("ag_max() in a lane computes what it is asked for", exp(3), ag_max(&t, y, 3), 1e-15);
    tape_drop(&t);
    x = ag_scalar(&t, 3);
    check_near("nothing waits after tape_drop()", 4, *ag_add_const(&t, x, 1, 1), 0);
    for (int i = 0; i < 2; i++) {
        tape_lane(&t);
        y = i ? ag_mul(&t, x, x, 1) : ag_add(&t, x, x, 1);
    }
    tape_mark(&t);
    check_near("nor after tape_mark()", 9, *y, 0);
    for (int i = 0; i < 2; i++) {
        tape_lane(&t);
        y = ag_mul_const(&t, x, 2, 1);
    }
    check_near("lanes after a mark", 6, *value(&t, y), 0);
    check_size("are together, whatever was before", have_faster ? 2 : 0,
               t.lanes->end ? t.lanes->n : 0);
    tape_free(&t);
}

int main(void)
{
    test_cases();
    test_no_memory();
    test_any();
    test_waiting();
    return finish();
}
