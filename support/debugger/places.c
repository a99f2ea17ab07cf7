/* places.c: what is on the tape, by name. survey() makes vectors of the notes, each with the values
 * that a call returned: it comes before every view. Nothing is assumed about gpt(): what a view
 * shows is what the program did.
 */
#include "views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Watched watched = {.digits = 6, .depth = 3};

void watch(Run *run)
{
    watched.run = run;
    watched.model = &run->model;
    watched.tokenizer = &run->tokenizer;
    walk_begin();
}

/* ------------------------------------------------------------------------
 * Where the program is.
 */
const Moved *moved(int before) { return notes.moved[before].p ? &notes.moved[before] : NULL; }

// Has adam() moved anything yet since it was called?
static bool has_moved(void)
{
    const Model *model = watched.model;
    size_t bytes = (size_t)model->num_params * sizeof(double);
    return memcmp(model->params, notes.moved[0].p, bytes) != 0 ||
           memcmp(grad(&model->tape, model->params), notes.moved[0].g, bytes) != 0;
}

static Phase find_phase(void)
{
    if (notes.n == 0 || notes_are_old() || notes.tape != &watched.model->tape) return FORWARD;
    if (notes.phase == BACKWARD) return *grad(notes.tape, notes.result) == 1 ? BACKWARD : FORWARD;
    return notes.phase == MOVED && !has_moved() ? GRADIENTS : notes.phase;
}

Phase phase(void) { return notes.now; }

// The position that gpt() was called for last, since the tape was dropped; NONE if it was not.
int latest_position(void)
{
    if (!watched.model || notes.position == NOWHERE) return NONE;
    return watched.model->tape.n_entries >= notes.position_entries ? (int)notes.position : NONE;
}

// Are there gradients? While backward() is under way, they are sums so far.
bool gradients_known(void) { return !sampling() && phase() != FORWARD; }

// The gradient of a value. Adam clears those of the parameters; what it found is remembered.
double gradient_of(double *value)
{
    const Model *model = watched.model;
    if (is_parameter(value) && phase() == MOVED) return moved(0)->g[value - model->params];
    return *grad(&model->tape, value);
}

/* ------------------------------------------------------------------------
 * Values by number: through the chunks of the tape, one after another.
 */
static size_t chunk_of(const double *value)
{
    static size_t last;
    const Tape *tape = &watched.model->tape;
    size_t n = tape->this_chunk + 1;
    for (size_t i = 0; i < n; i++) {
        size_t k = (last + i) % n;
        size_t room = k == tape->this_chunk ? tape->n_values : tape->chunk_size;
        if (value >= tape->chunks[k] && value < tape->chunks[k] + room) return last = k;
    }
    return NOWHERE;
}

bool on_tape(const double *value) { return chunk_of(value) != NOWHERE; }

size_t value_number(const double *value)
{
    const Tape *tape = &watched.model->tape;
    size_t k = chunk_of(value);
    if (k == NOWHERE) abort();
    return k * tape->chunk_size + (size_t)(value - tape->chunks[k]);
}

size_t n_numbers(void)
{
    const Tape *tape = &watched.model->tape;
    return (tape->this_chunk + 1) * tape->chunk_size;
}

bool is_parameter(const double *value)
{
    const Model *model = watched.model;
    return value >= model->params && value < model->params + model->num_params;
}

double data_of(const double *value)
{
    bool old = phase() == MOVED && is_parameter(value);
    return old ? notes.moved[0].p[value - watched.model->params] : *value;
}

// Samples are made with the cache before the mark.
bool sampling(void)
{
    const Tape *tape = &watched.model->tape;
    const double *cache = watched.model->keys[0];
    size_t k = cache ? chunk_of(cache) : NOWHERE;
    if (k == NOWHERE) return false;
    return k < tape->kept_chunk || cache < tape->chunks[tape->kept_chunk] + tape->kept_values;
}

/* ------------------------------------------------------------------------
 * The vectors that the notes lead to.
 */
// Its place, the entry that made it, the note that used it, each plus 1.
typedef struct {
    int owner, maker, used;
} Value;

static Value *values;  // [n_numbers()]

// How many neighbors a note returned, counted from its result: those that its entries made, and
// did not use up themselves.
static size_t count_results(const Place *note)
{
    const Entry *entries = watched.model->tape.entries;
    size_t n = 0;
    int stamp = (int)(note - notes.all) + 1;
    for (size_t i = note->first; i < note->end; i++) {
        const double *b = second_operand(&entries[i]);
        values[value_number(entries[i].a)].used = stamp;
        if (b) values[value_number(b)].used = stamp;
    }
    for (; on_tape(note->at + n); n++) {
        const Value *v = &values[value_number(note->at + n)];
        bool made = v->maker > (int)note->first && v->maker <= (int)note->end;
        if (!made || v->used == stamp) break;
    }
    return n;
}

// How many neighbors a pointer leads to: what the entries after it read there, one after another;
// in a matrix, its row.
static size_t count_slice(const Place *note)
{
    const Tape *tape = &watched.model->tape;
    const double *to = note->at;
    size_t n = 0, end = note->first + 4096;
    for (const Place *next = note + 1; next < notes.all + notes.n; next++) {
        if (next->line == note->line && next->first < end) end = next->first;  // the next head's
    }
    if (!on_tape(to)) return 0;
    const Matrix *w = matrix_of(to);
    if (w) return w->cols - (size_t)(to - w->data) % w->cols;
    for (size_t i = note->first; i < end && i < tape->n_entries; i++) {
        n += uses(&tape->entries[i], to + n);
    }
    if (n == 0) n = note->head == NONE ? 1 : watched.model->head_dim;
    const Place *of = place_of(to);
    size_t rest = of ? of->n - (size_t)(to - of->at) : n;
    return n < rest ? n : rest;
}

// Is a note a vector? Then it gets its name, and owns its values, unless they are part of one that
// gpt() has a name for.
static void find_vector(Place *note)
{
    const Entry *entries = watched.model->tape.entries;
    const char *name = note->line->name;
    const Place *outer = note->outer == NONE ? NULL : &notes.all[note->outer];
    bool returned = outer && strcmp(name, note->line->function) == 0;
    bool nameless_outer = outer && outer->at && !*outer->name;
    note->name = "";
    note->n = 0;
    note->from = note->pointer ? NULL : entries + note->first;
    note->to = note->pointer ? NULL : note->n_leaves ? note->from : entries + note->end;
    if (!*name || !note->at || note->argument || returned || nameless_outer) return;
    note->n = note->n_leaves  ? note->n_leaves
              : note->pointer ? count_slice(note)
                              : count_results(note);
    if (note->n) note->name = name;
    for (size_t k = 0; k < note->n && !note->pointer; k++) {
        int *owner = &values[value_number(note->at + k)].owner;
        if (*owner == 0 || !outer) *owner = (int)(note - notes.all) + 1;
    }
}

// Finds every vector there is. False where there is no model yet: prints why.
bool survey(void)
{
    const Tape *tape = watched.model ? &watched.model->tape : NULL;
    if (!tape || tape->fused) {
        print(tape ? "This command works with whole vectors: ask in training, or while sampling.\n"
                   : "There is no model yet: stop in train(), or later.\n");
        return false;
    }
    notes.now = find_phase();
    free(values);
    values = calloc(n_numbers(), sizeof *values);
    if (!values) abort();
    for (size_t i = 0; i < tape->n_entries; i++) {
        values[value_number(tape->entries[i].out)].maker = (int)i + 1;
    }
    if (notes.tape != tape || notes_are_old()) forget_notes();
    for (size_t i = 0; i < notes.n; i++) find_vector(&notes.all[i]);
    return true;
}

const Entry *maker(const double *value)
{
    int i = values[value_number(value)].maker;
    return i ? &watched.model->tape.entries[i - 1] : NULL;
}

// The line of the statement that recorded an entry; 0 if no note says so.
int line_that_made(const Entry *entry)
{
    size_t i = (size_t)(entry - watched.model->tape.entries);
    for (size_t k = notes.n; k-- > 0;) {
        const Place *note = &notes.all[k];
        bool over = note->outer == NONE && !note->argument && !note->pointer && note->n_leaves == 0;
        if (over && note->first <= i && (!note->at || i < note->end)) return note->line->starts;
    }
    return 0;
}

// The vector of that name, which may begin with layerN. and headN.; NULL if it is not there.
// Without headN. it is the latest of all heads. What a call made for itself is OUTER.NAME; the name
// alone is the latest one.
const Place *find_place(const char *name, int position)
{
    int layer = watched.layer, head = NONE;
    name = skip_prefix(name, &layer, &head);
    for (const Place *p = notes.all + notes.n; p-- > notes.all;) {
        char full[84];
        snprintf(full, sizeof full, "%s.%s", p->outer == NONE ? "" : notes.all[p->outer].name,
                 p->name);
        if (strcmp(strchr(name, '.') ? full : p->name, name) != 0) continue;
        if (p->layer != NONE && p->layer != layer) continue;
        if (head != NONE && p->head != head) continue;
        if (position == LATEST || p->position == position) return p;
    }
    return NULL;
}

const Matrix *find_matrix(const char *name)
{
    const Model *model = watched.model;
    const Matrix *w = model->state_dict, *end = w + model->n_matrices;
    while (w < end && strcmp(w->name, name) != 0) w++;
    return w < end ? w : NULL;
}

// The matrix that a parameter is in; NULL if it is no parameter.
const Matrix *matrix_of(const double *value)
{
    if (!is_parameter(value)) return NULL;
    const Matrix *w = watched.model->state_dict;
    while (value < w->data || value >= w->data + w->rows * w->cols) w++;
    return w;
}

// Like find_place(), but prints why there is none, or that it is from an earlier position.
const Place *need_place(const char *name, int position)
{
    const Place *found = find_place(name, position);
    bool given = position != LATEST;
    if (found && !given && found->position != NONE && found->position < latest_position())
        print("(Position %d has not come to %s yet. This is position %d.)\n", latest_position(),
              found->name, found->position);
    if (found) return found;
    if (find_matrix(name))
        print("%s is a matrix: `row %s I` shows a row of it.\n", name, name);
    else if (!line_of_vector(name)->starts)
        print("%s: no line of microgpt.c makes a vector of this name; `vec` lists them.\n", name);
    else if (given)
        print("%s at position %d: not there yet, or no such position.\n", name, position);
    else
        print("%s: not there yet: step on. `vec` lists what is there.\n", name);
    return NULL;
}

// The vector that a value is in; NULL if it is in none.
const Place *place_of(const double *value)
{
    int owner = on_tape(value) ? values[value_number(value)].owner : 0;
    return owner ? &notes.all[owner - 1] : NULL;
}

// The vector that an operand of an entry of p is in; NULL if it is in none, or in one that p's call
// has made for itself.
const Place *place_read(const Place *p, const double *operand)
{
    const Place *of = place_of(operand);
    bool own = of && of->from < of->to && of->from >= p->from && of->to <= p->to;
    return own || of == p ? NULL : of;
}

// The first vector that another was made from; NULL if it was made from parameters alone.
const Place *operand_of(const Place *p)
{
    const Place *found = NULL;
    for (const Entry *e = p->from; e < p->to && !found; e++) {
        found = place_read(p, e->a);
        if (!found) found = place_read(p, second_operand(e));
    }
    return found;
}

// The function of microgpt.c that the program is in; NULL: it is elsewhere. The functions of that
// file are neighbors, and main() is the last.
const char *function_at(const void *pc)
{
    const Function *last = NULL;
    for (const Function *f = notes.functions; pc && f && f->name; f++) {
        if ((uintptr_t)f->at <= (uintptr_t)pc && (!last || (uintptr_t)f->at > (uintptr_t)last->at))
            last = f;
    }
    return last && strcmp(last->name, "main") != 0 ? last->name : NULL;
}
