/* Which lanes are computed side by side, and what lanes give that must not be: those in which an entry reads what another lane
 * makes at the same or a later entry. Each is held against the same entries without lanes: to the last bit where they are
 * computed in the order of the tape. And lanes for which there is no memory.
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

enum { N = 4, LANES = 5, PARAMETERS = 2 * N * (LANES + 1) };

// What lanes have in common: p is made before the mark, places after it.
typedef struct {
    Tape *t;
    double *p, *places, *terms;
    bool marked;
} Group;

typedef double *Lane(const Group *g, size_t s, double *before);

static double *own_place(const Group *g, size_t s) { return g->places + s * N; }
static double *next_place(const Group *g, size_t s) { return g->places + (s + 1) * N; }

// Each returns what the next lane is given as `before`; the first is given the first of the places.
static double *same_entry(const Group *g, size_t s, double *before)
{
    return ag_mul(g->t, before, g->p + s * N, N);
}
static double *later_entry(const Group *g, size_t s, double *before)
{
    return ag_relu(g->t, ag_add(g->t, before, g->p + s * N, N), N);
}
static double *earlier_entry(const Group *g, size_t s, double *before)
{
    double *x = ag_mul(g->t, g->p + s * N, g->p, N);
    ag_add(g->t, x, before, N);
    return x;
}
static double *place_of_same(const Group *g, size_t s, double *before)
{
    ag_copy(g->t, next_place(g, s), own_place(g, s), N);
    return before;
}
static double *place_of_same_dot(const Group *g, size_t s, double *before)
{
    ag_dot(g->t, g->places + N + s, g->places + s, g->p, N);
    return before;
}
static double *place_of_later(const Group *g, size_t s, double *before)
{
    double *x = ag_mul(g->t, own_place(g, s), g->p + s * N, N);
    ag_copy(g->t, next_place(g, s), ag_exp(g->t, x, N), N);
    return before;
}
static double *place_of_earlier(const Group *g, size_t s, double *before)
{
    ag_copy(g->t, next_place(g, s), ag_mul(g->t, g->p + s * N, g->p, N), N);
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

static const struct {
    const char *what;
    Lane *lane;
    bool together;
} cases[] = {
    {"nothing of another lane", own_alone, true},
    {"what the lane before makes at the same entry", same_entry, false},
    {"what the lane before makes at a later entry", later_entry, false},
    {"what the lane before makes at an earlier entry", earlier_entry, true},
    {"a place that the same entry fills", place_of_same, false},
    {"places that the same dot product fills", place_of_same_dot, false},
    {"a place that a later entry fills", place_of_later, false},
    {"places that an earlier entry fills", place_of_earlier, true},
    {"parameters that a later entry fills", parameters_written, false},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

// A pass: result, gradients of the parameters and of the places. Returns how many lanes were together.
static size_t pass(size_t room, Lane *lane, bool marked, double *seen)
{
    Tape t;
    bool ok = tape_init(&t, room) && install_faster(&t);
    if (!ok) exit(1);
    Group g = {.t = &t, .marked = marked, .p = ag_vector(&t, PARAMETERS)};
    for (size_t i = 0; i < PARAMETERS; i++) g.p[i] = sin((double)(i + 1));
    ag_clear_grad(&t, g.p, PARAMETERS);
    tape_mark(&t);
    g.terms = ag_vector(&t, LANES);
    g.places = ag_vector(&t, N * (LANES + 1));
    for (size_t i = 0; i < N * (LANES + 1); i++) g.places[i] = i < N ? cos((double)i) : 0;
    double *before = g.places;
    for (size_t s = 0; s < LANES; s++) {
        if (marked) tape_lane(&t);
        before = lane(&g, s, before);
        double *last = t.entries[t.n_entries - 1].out;
        ag_copy(&t, g.terms + s, ag_mul(&t, last, g.p + 1, 1), 1);
    }
    tape_end_lanes(&t);
    double *sum = ag_sum(&t, g.terms, LANES);
    seen[0] = *value(&t, sum);
    size_t together = t.lanes->end > 0 ? t.lanes->n : 0;
    backward(&t, sum);
    memcpy(seen + 1, grad(&t, g.p), PARAMETERS * sizeof *seen);
    memcpy(seen + 1 + PARAMETERS, grad(&t, g.places), N * sizeof *seen);
    tape_free(&t);
    return together;
}

enum { SEEN = 1 + PARAMETERS + N };

// In one chunk, and in chunks so small that a lane lies in several.
static void test_cases(void)
{
    for (size_t i = 0; i < N_CASES; i++) {
        for (size_t room = 1000; room >= PARAMETERS; room -= 1000 - PARAMETERS) {
            double want[SEEN], seen[SEEN];
            char what[100];
            pass(room, cases[i].lane, false, want);
            size_t together = pass(room, cases[i].lane, true, seen);
            snprintf(what, sizeof what, "%s, %s: ", cases[i].what,
                     room == 1000 ? "one chunk" : "many");
            check(want[0] < 0 || want[0] > 0, "%sa result", what);
            if (together) {
                check_all_near(what, want, seen, SEEN, 1e-13);
            } else {
                check_same_bits(what, want, seen, SEEN);
            }
            size_t expected = have_faster && cases[i].together ? LANES : 0;
            if (room == 1000) check_size("lanes together", expected, together);
            if (!cases[i].together) check_size("in any chunks", 0, together);
            if (room == PARAMETERS) break;
        }
    }
}

// Wherever memory for the lists is refused, the numbers are those without lanes.
static void test_no_memory(void)
{
    size_t n_refused = 0;
    for (size_t i = 0; i < N_CASES; i++) {
        double want[SEEN], seen[SEEN];
        pass(1000, cases[i].lane, false, want);
        for (int left = 0; left < 8; left++) {
            reallocs_left = left;
            size_t together = pass(1000, cases[i].lane, true, seen);
            bool refused = reallocs_left == 0;
            reallocs_left = -1;
            n_refused += refused;
            if (together) {
                check_all_near("memory that is enough", want, seen, SEEN, 1e-13);
            } else {
                check_same_bits("memory refused: in the order of the tape", want, seen, SEEN);
            }
        }
    }
    check(n_refused > 0 || !have_faster, "memory was refused %zu times", n_refused);
}

/* ------------------------------------------------------------------------------------------------
 * Lanes of any operations, whose operands come from anywhere that is already made.
 */
typedef enum { OWN, PARAMETER, PLACE, LANE_BEFORE, N_SOURCES } Source;
enum { LENGTH = 7 };

static size_t any(size_t n) { return (size_t)((any_number() + 1) / 2 * (double)n) % n; }

typedef struct {
    int op;
    Source source[2];
    size_t from[2], back[2];  // which entry; how many lanes back
} Step;

static double *operand(const Group *g, const Step *step, int i, size_t s,
                       double *made[LANES][LENGTH])
{
    size_t from = step->from[i], back = step->back[i];
    switch (step->source[i]) {
    case OWN: return made[s][from];
    case PLACE: return g->places + (from * (LANES + 1) + (s + 1 > back ? s + 1 - back : 0)) * N;
    case LANE_BEFORE: return s > 0 ? made[s - 1][from] : g->places + LENGTH * (LANES + 1) * N;
    default: return g->p + (s + from) % LANES * N;
    }
}

static size_t any_pass(const Step *steps, size_t length, bool marked, double *seen)
{
    enum { PLACES = (LENGTH * (LANES + 1) + 1) * N };
    Tape t;
    bool ok = tape_init(&t, 4000) && install_faster(&t);
    if (!ok) exit(1);
    double *made[LANES][LENGTH];
    Group g = {.t = &t, .p = ag_vector(&t, PARAMETERS)};
    for (size_t i = 0; i < PARAMETERS; i++) g.p[i] = sin((double)(i + 1));
    ag_clear_grad(&t, g.p, PARAMETERS);
    tape_mark(&t);
    g.places = ag_vector(&t, PLACES);
    for (size_t i = 0; i < PLACES; i++) g.places[i] = cos((double)i);
    g.terms = ag_vector(&t, LANES * LENGTH);
    for (size_t s = 0; s < LANES; s++) {
        if (marked) tape_lane(&t);
        for (size_t k = 0; k < length; k++) {
            double *a = operand(&g, &steps[k], 0, s, made), *b = operand(&g, &steps[k], 1, s, made);
            double *place = g.places + (k * (LANES + 1) + s + 1) * N;
            made[s][k] = steps[k].op == 0   ? ag_mul(&t, a, b, N)
                         : steps[k].op == 1 ? ag_mul_const(&t, a, 0.5, N)
                         : steps[k].op == 2 ? ag_row_dots(&t, a, b, 1, N, N, 0.3)
                         : steps[k].op == 3 ? ag_softmax(&t, a, N)
                                            : ag_copy(&t, place, a, N);
            if (steps[k].op == 2) made[s][k] = ag_mul_const(&t, made[s][k], 1, 1);
        }
        ag_copy(&t, g.terms + s, ag_sum(&t, made[s][length - 1], steps[length - 1].op == 2 ? 1 : N),
                1);
    }
    tape_end_lanes(&t);
    double *sum = ag_sum(&t, g.terms, LANES);
    tape_compute(&t);
    size_t together = t.lanes->end > 0 ? t.lanes->n : 0;
    backward(&t, sum);
    seen[0] = *sum;
    memcpy(seen + 1, grad(&t, g.p), PARAMETERS * sizeof *seen);
    memcpy(seen + 1 + PARAMETERS, grad(&t, g.places), N * sizeof *seen);
    tape_free(&t);
    return together;
}

static void test_any(void)
{
    size_t n_together = 0, n_apart = 0;
    for (size_t round = 0; round < 20000; round++) {
        Step steps[LENGTH];
        size_t length = 1 + any(LENGTH);
        bool scalar[LENGTH];
        for (size_t k = 0; k < length; k++) {
            steps[k].op = (int)any(5);
            scalar[k] = steps[k].op == 2;
            for (int i = 0; i < 2; i++) {
                Step *step = &steps[k];
                step->source[i] = (Source)any(N_SOURCES);
                step->from[i] = any(LENGTH);
                step->back[i] = 1 + any(2);
                size_t most = step->source[i] == OWN ? k : length;
                if (step->source[i] == OWN || step->source[i] == LANE_BEFORE) {
                    step->from[i] = most ? any(most) : 0;
                    bool whole = most && (step->from[i] < k ? !scalar[step->from[i]] : false);
                    if (!whole) step->source[i] = PARAMETER;  // one value is no vector
                }
            }
        }
        double want[SEEN], seen[SEEN];
        char text[128] = "";
        any_pass(steps, length, false, want);
        size_t together = any_pass(steps, length, true, seen);
        n_together += together > 0;
        n_apart += together == 0;
        bool ok = together ? all_near(want, seen, SEEN, 1e-12, text, sizeof text)
                           : memcmp(want, seen, sizeof seen) == 0;
        if (!ok) {
            check(false,
                  "program %zu of %zu entries, %zu lanes together: expected the same, saw others%s",
                  round, length, together, text);
            for (size_t k = 0; k < length; k++) {
                printf("# %zu: op %d, a %d %zu %zu, b %d %zu %zu\n", k, steps[k].op,
                       steps[k].source[0], steps[k].from[0], steps[k].back[0], steps[k].source[1],
                       steps[k].from[1], steps[k].back[1]);
            }
            return;
        }
    }
    check(n_apart > 1000 && (n_together > 1000 || !have_faster),
          "any programs: the same numbers, %zu side by side, %zu in the order of the tape",
          n_together, n_apart);
}

int main(void)
{
    test_cases();
    test_no_memory();
    test_any();
    return finish();
}
