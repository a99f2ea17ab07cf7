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

enum { N = 4, LANES = 5, LENGTH = 7, SLOTS = LENGTH * (LANES + 1) * N };
enum { PARAMETERS = LANES * N + SLOTS, SEEN = 1 + PARAMETERS + N };

// What the lanes of a group have in common. Entries fill slots, one for each entry and lane, of places
// and of parameters; the slot before the first lane's has a value from the start.
typedef struct {
    Tape *t;
    double *p, *stored;  // before the mark: [LANES][N], [LENGTH][LANES + 1][N]
    double *places;      // after it: [LENGTH][LANES + 1][N]
    double *between;     // what is made after the first lane, by none: [N]
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
    g.stored = g.p + LANES * N;
    for (size_t i = 0; i < PARAMETERS; i++) g.p[i] = sin((double)(i + 1));
    ag_clear_grad(t, g.p, PARAMETERS);
    tape_mark(t);
    return g;
}

static void new_places(Group *g)
{
    g->places = ag_vector(g->t, SLOTS + N);
    g->between = g->places + SLOTS;
    for (size_t i = 0; i < SLOTS + N; i++) g->places[i] = cos((double)i);
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

// The same numbers: to the last bit, if nothing was together.
static bool same(const double *want, const double *seen, size_t together)
{
    char text[128];
    return together ? all_near(want, seen, SEEN, 1e-12, text, sizeof text)
                    : memcmp(want, seen, SEEN * sizeof *seen) == 0;
}

/* ------------------------------------------------------------------------------------------------
 * Groups of lanes of any operations, whose operands come from anywhere that is already made.
 */
typedef enum { OWN, PARAMETER, STORED, PLACE, LANE_BEFORE, BETWEEN, N_SOURCES } Source;
typedef enum { MUL, MUL_CONST, DOT, SOFTMAX, LINEAR, COPY, STORE, N_KINDS } Kind;

// from: which entry; back: of the lanes that fill a slot, how many back from the next.
typedef struct {
    Kind kind;
    Source source[2];
    size_t from[2], back[2];
} Step;

// How lanes differ: in the third, MUL_CONST stands for MUL; or the last has an entry more.
typedef enum { ALIKE, ANOTHER_KIND, ONE_MORE, N_WAYS_TO_DIFFER } Differ;

typedef struct {
    Step steps[LENGTH];
    size_t length, room;  // room: values in a chunk
    Differ differ;
} Program;

static size_t any(size_t n) { return (size_t)((any_number() + 1) / 2 * (double)n) % n; }

static double *slot(double *slots, size_t k, size_t lane)
{
    return slots + (k * (LANES + 1) + lane) * N;
}

static double *operand(const Group *g, const Step *step, int i, size_t s,
                       double *made[LANES][LENGTH])
{
    size_t from = step->from[i], at = s + 2 - smaller(s + 2, step->back[i]);
    at = at < LANES ? at : LANES;
    switch (step->source[i]) {
    case OWN: return made[s][from];
    case STORED: return slot(g->stored, from, at);
    case PLACE: return slot(g->places, from, at);
    case LANE_BEFORE: return s > 0 ? made[s - 1][from] : g->between;
    case BETWEEN: return g->between;
    default: return g->p + (s + from) % LANES * N;
    }
}

static double *do_step(const Group *g, const Program *program, size_t k, size_t s,
                       double *made[LANES][LENGTH])
{
    const Step *step = &program->steps[k];
    double *a = operand(g, step, 0, s, made), *b = operand(g, step, 1, s, made);
    const Matrix w = {.rows = N, .cols = N, .data = g->p};
    bool another = program->differ == ANOTHER_KIND && s == 2;
    switch (step->kind) {
    case MUL: return another ? ag_mul_const(g->t, a, 0.5, N) : ag_mul(g->t, a, b, N);
    case MUL_CONST: return ag_mul_const(g->t, a, 0.5, N);
    case DOT: return ag_row_dots(g->t, a, b, 1, N, N, 0.3);
    case SOFTMAX: return ag_softmax(g->t, a, N);
    case LINEAR: return ag_linear(g->t, a, &w);
    case STORE: return ag_copy(g->t, slot(g->stored, k, s + 1), a, N);
    default: return ag_copy(g->t, slot(g->places, k, s + 1), a, N);
    }
}

static size_t run(const Program *program, bool marked, double *seen)
{
    size_t length = program->length;
    Tape t = new_tape(program->room);
    Group g = new_group(&t);
    double *made[LANES][LENGTH], *sum = ag_scalar(&t, 0);
    bool scalar = program->steps[length - 1].kind == DOT;
    for (size_t group = 0; group < 1 + length % 2; group++) {
        new_places(&g);
        double *terms = ag_vector(&t, LANES);
        for (size_t s = 0; s < LANES; s++) {
            if (marked) tape_lane(&t);
            for (size_t k = 0; k < length; k++) made[s][k] = do_step(&g, program, k, s, made);
            double *last = ag_sum(&t, made[s][length - 1], scalar ? 1 : N);
            ag_copy(&t, terms + s, ag_mul_const(&t, last, 0.9, 1), 1);
            if (program->differ == ONE_MORE && s + 1 == LANES) ag_mul_const(&t, g.p, 0.5, N);
            if (s > 0 || length % 3) continue;
            tape_end_lanes(&t);  // what follows belongs to no lane
            ag_copy(&t, g.between, g.p, N);
        }
        tape_end_lanes(&t);
        sum = ag_add(&t, sum, ag_sum(&t, terms, LANES), 1);
    }
    return end_pass(&g, sum, seen);
}

// One value is no vector: it is no operand of what follows. Every other program has chunks so small that
// a lane lies in several.
static Program any_program(void)
{
    Program program = {.length = 1 + any(LENGTH), .room = any(2) ? 4000 : PARAMETERS};
    if (any(4) == 0) program.differ = (Differ)any(N_WAYS_TO_DIFFER);
    for (size_t k = 0; k < program.length; k++) {
        Step *step = &program.steps[k];
        step->kind = (Kind)any(N_KINDS);
        for (int i = 0; i < 2; i++) {
            step->source[i] = (Source)any(N_SOURCES);
            step->from[i] = any(LENGTH);
            step->back[i] = any(4);
            if (step->source[i] != OWN && step->source[i] != LANE_BEFORE) continue;
            step->from[i] %= k > 0 ? k : 1;
            if (k == 0 || program.steps[step->from[i]].kind == DOT) step->source[i] = PARAMETER;
        }
    }
    return program;
}

static bool fills_places(const Program *program)
{
    size_t k = 0;
    while (k < program->length && program->steps[k].kind != COPY) k++;
    return k < program->length;
}

static void test_any(void)
{
    size_t n_together = 0, n_filled = 0, n_apart = 0;
    for (size_t round = 0; round < 20000; round++) {
        const Program program = any_program();
        double want[SEEN], seen[SEEN];
        run(&program, false, want);
        size_t together = run(&program, true, seen);
        n_together += together > 0;
        n_filled += together > 0 && fills_places(&program);
        n_apart += together == 0;
        if (!same(want, seen, together)) check(false, "program %zu: other numbers", round);
        bool unlike = program.differ == ONE_MORE;
        if (unlike && together) check(false, "program %zu: unlike lanes are together", round);
    }
    check(n_apart > 1000 && ((n_together > 1000 && n_filled > 100) || !have_faster),
          "%zu were side by side (%zu filled places), %zu in the order of the tape", n_together,
          n_filled, n_apart);
}

// Wherever memory for the lists is refused, the numbers are those without lanes.
static void test_no_memory(void)
{
    size_t n_refused = 0, n_wrong = 0;
    for (size_t i = 0; i < 100; i++) {
        const Program program = any_program();
        double want[SEEN], seen[SEEN];
        run(&program, false, want);
        for (int left = 0; left < 8; left++) {
            reallocs_left = left;
            size_t together = run(&program, true, seen);
            n_refused += reallocs_left == 0;
            reallocs_left = -1;
            n_wrong += !same(want, seen, together);
        }
    }
    check(n_refused > 0 || !have_faster, "memory was refused %zu times", n_refused);
    check_size("numbers that differ then", 0, n_wrong);
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
    test_any();
    test_no_memory();
    test_waiting();
    return finish();
}
