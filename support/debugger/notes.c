/* notes.c: takes the notes that the macros of notes.h ask for. It is compiled without -g, so that a
 * debugger's `step` goes past it, into the operation.
 */
#include "notes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Notes notes = {.position = NOWHERE};

// Has the tape been dropped since the last note?
bool notes_are_old(void)
{
    return notes.n > 0 && notes.tape->n_entries < notes.all[notes.n - 1].first;
}

void forget_notes(void) { notes.n = notes.n_open = 0; }

// A breakpoint here stops at each stop of the walk. The third caller is in microgpt.c.
void walk_stop(void) {}

// Every place where the walk can stop calls this; a stop is due once its value has been made.
static void walk_on(bool at_adam)
{
    while (walk_is_due(at_adam)) {
        walk_arrive();
        walk_stop();
    }
}

static int number_or_none(size_t number) { return number == NOWHERE ? NONE : (int)number; }

// Adds a note. Those of a tape that has been dropped since are forgotten.
static Place *add_note(int line, const size_t loops[3])
{
    if (notes_are_old()) forget_notes();
    if (notes.n == 0) notes.phase = FORWARD;
    if (notes.n_open == MAX_OPEN) notes.n_open = 0;  // a run that ran out of memory left them
    if (notes.n == notes.room) {
        notes.room = notes.room ? 2 * notes.room : 256;
        notes.all = realloc(notes.all, notes.room * sizeof *notes.all);
        if (!notes.all) abort();
    }
    Place *note = &notes.all[notes.n++];
    *note = (Place){.line = statement_of(line),
                    .operation = "",
                    .position = number_or_none(loops[0]),
                    .layer = number_or_none(loops[1]),
                    .head = number_or_none(loops[2]),
                    .name = "",
                    .outer = NONE,
                    .first = notes.tape ? notes.tape->n_entries : 0};
    return note;
}

void note_begin(const Tape *tape, const char *operation, int line, const size_t loops[3])
{
    if (notes.tape != tape || notes_are_old()) forget_notes();
    notes.tape = tape;
    bool argument = false;
    int outer = NONE;
    const Line *statement = statement_of(line);
    for (size_t i = notes.n_open; i-- > 0 && outer == NONE;) {
        const Place *open = &notes.all[notes.open[i]];
        if (strcmp(open->operation, statement->function) == 0) outer = (int)notes.open[i];
        if (open->line == statement) argument = true;
    }
    if (outer == NONE && !argument) walk_on(false);
    Place *note = add_note(line, loops);
    note->operation = operation;
    note->outer = outer;
    note->argument = argument;
    const Place *in = outer == NONE ? note : &notes.all[outer];
    note->position = in->position;
    note->layer = in->layer;
    note->head = in->head;
    notes.open[notes.n_open++] = notes.n - 1;
}

double *note_end(double *result)
{
    Place *note = notes.n_open ? &notes.all[notes.open[--notes.n_open]] : NULL;
    if (!note) return result;
    note->end = notes.tape->n_entries;
    note->at = result;
    if (note->outer == NONE && !note->argument) walk_sees(note);
    return result;
}

// A call that has just ended has made n leaves.
double *note_leaves(double *result, size_t n)
{
    notes.all[notes.n - 1].n_leaves = n;
    return result;
}

double *note_pointer(int line, const size_t loops[3], double *to)
{
    Place *note = add_note(line, loops);
    note->pointer = true;
    note->end = note->first;
    note->at = to;
    if (to) walk_sees(note);
    return to;
}

void note_source(const Function functions[], const Line lines[])
{
    notes.functions = functions;
    notes.lines = lines;
    while (lines[notes.n_lines].code) notes.n_lines++;
}

// While sampling, what is left of a position before: a row of the cache.
static void note_cached(const char *name, double *cache, size_t position, size_t layer)
{
    Place *row =
        add_note(line_that_names(name)->starts, (const size_t[]){position, layer, NOWHERE});
    row->n_leaves = watched.model->n_embd;
    row->at = cache + position * row->n_leaves;
    row->end = row->first;
}

void note_position(const Tape *tape, size_t position)
{
    walk_on(false);
    notes.position = position;
    notes.position_entries = tape->n_entries;
    if (!watched.model || !sampling()) return;
    for (size_t t = 0; t < position; t++) {
        for (size_t layer = 0; layer < watched.model->n_layer; layer++) {
            note_cached("k", watched.model->keys[layer], t, layer);
            note_cached("v", watched.model->values[layer], t, layer);
        }
    }
}

// Until backward() has cleared all gradients and set this one to 1, it is no number that it sets.
void note_backward(const Tape *tape, double *result)
{
    walk_on(false);
    notes.phase = BACKWARD;
    notes.result = result;
    *grad(tape, result) = NAN;
}

void note_end_of_backward(void)
{
    notes.phase = GRADIENTS;
    draw_if_asked();
}

// Remembers all that Adam is about to change, for this step and the one before.
void note_adam(void)
{
    if (!watched.model) return;
    walk_on(true);
    const Model *model = watched.model;
    size_t n = (size_t)model->num_params, bytes = n * sizeof(double);
    double *p = notes.moved[1].p ? notes.moved[1].p : malloc(4 * bytes);
    if (!p) abort();
    notes.moved[1] = notes.moved[0];
    notes.moved[0] = (Moved){model->steps_done, p, p + n, p + 2 * n, p + 3 * n};
    memcpy(notes.moved[0].p, model->params, bytes);
    memcpy(notes.moved[0].g, grad(&model->tape, model->params), bytes);
    memcpy(notes.moved[0].m, model->m, bytes);
    memcpy(notes.moved[0].v, model->v, bytes);
    notes.phase = MOVED;
}

// Remembers the random numbers as they are before a token is drawn.
void note_choice(void)
{
    if (watched.run) notes.random = *watched.run->rng;
    walk_on(false);
}
