/* places.c: what is on the tape, by name. The notes of notes.c become vectors: a name, which is read
 * from the source, and the values that the operation returned. Nothing is assumed about gpt(): what
 * a view shows is what the program did.
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Watched watched = {.digits = 6, .depth = 3};

void watch(const Model *model, const Tokenizer *tokenizer)
{
    watched.run = (Run *)(void *)((char *)(uintptr_t)model - offsetof(Run, model));
    watched.model = &watched.run->model;
    watched.tokenizer = tokenizer;
}

void *more_room(void *all, size_t *room, size_t size)
{
    *room = *room ? 2 * *room : 256;
    all = realloc(all, *room * size);
    if (!all) abort();
    return all;
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
    size_t k = chunk_of(value);
    if (k == NOWHERE) abort();
    return k * watched.model->tape.chunk_size + (size_t)(value - watched.model->tape.chunks[k]);
}

size_t n_numbers(void)
{
    return (watched.model->tape.this_chunk + 1) * watched.model->tape.chunk_size;
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

// The second operand of an entry, or NULL. In an atom with a constant, the constant may be in its place.
double *second_operand(const Entry *e)
{
    bool constant = e->op == OP_POW || e->op == OP_ADD_CONST || e->op == OP_MUL_CONST;
    return !constant && e->b && on_tape(e->b) ? e->b : NULL;
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
typedef struct {
    int owner, maker,
        used;  // its place, the entry that made it, the note that used it, each plus 1
} Value;

static struct {
    Place *all;  // [n]
    size_t n, room;
    int *of_note;   // [notes.n] the place of a note, or NONE
    Value *values;  // [n_numbers]
} places;

size_t n_places(void) { return places.n; }
const Place *place(size_t i) { return &places.all[i]; }

// Adds a vector. Its values are its own, unless they are part of one that gpt() has a name for.
static int add_place(Place new)
{
    if (places.n == places.room) {
        places.all = more_room(places.all, &places.room, sizeof *places.all);
    }
    places.all[places.n++] = new;
    for (size_t k = 0; k < new.n && !new.pointer; k++) {
        int *owner = &places.values[value_number(new.at + k)].owner;
        if (*owner == 0 || new.outer == NONE) *owner = (int)places.n;
    }
    return (int)places.n - 1;
}

// How many neighbors a note returned, counted from its result: those that its entries made, and
// did not use up themselves.
static size_t count_results(const Note *note)
{
    const Entry *entries = watched.model->tape.entries;
    size_t n = 0;
    int stamp = (int)(note - notes.all) + 1;
    for (size_t i = note->first; i < note->end; i++) {
        const double *b = second_operand(&entries[i]);
        places.values[value_number(entries[i].a)].used = stamp;
        if (b) places.values[value_number(b)].used = stamp;
    }
    for (; on_tape(note->result + n); n++) {
        const Value *v = &places.values[value_number(note->result + n)];
        bool made = v->maker > (int)note->first && v->maker <= (int)note->end;
        if (!made || v->used == stamp) break;
    }
    return n;
}

// How many neighbors a pointer leads to: what the entries after it read there, one after another; in
// a matrix, its row.
static size_t count_slice(const Note *note)
{
    const Tape *tape = &watched.model->tape;
    const double *to = note->result;
    size_t n = 0, end = note->first + 4096;
    for (const Note *next = note + 1; next < notes.all + notes.n; next++) {
        if (next->line == note->line && next->first < end) end = next->first;  // the next head's
    }
    if (!on_tape(to)) return 0;
    const Matrix *w = matrix_of(to);
    if (w) return w->cols - (size_t)(to - w->data) % w->cols;
    for (size_t i = note->first; i < end && i < tape->n_entries; i++) {
        n += tape->entries[i].a == to + n || second_operand(&tape->entries[i]) == to + n;
    }
    if (n == 0) n = note->loops[2] == NOWHERE ? 1 : watched.model->head_dim;
    const Place *of = place_of(to);
    size_t rest = of ? of->n - (size_t)(to - of->at) : n;
    return n < rest ? n : rest;
}

static int number_or_none(size_t number) { return number == NOWHERE ? NONE : (int)number; }

static void add_vector_of(const Note *note)
{
    Entry *entries = watched.model->tape.entries;
    int *number = &places.of_note[note - notes.all];
    const Note *outermost = note;
    while (outermost->outer != NONE) outermost = &notes.all[outermost->outer];
    Place new = {.line = statement_start(note->line),
                 .function = note->function,
                 .outer = note->outer == NONE ? NONE : places.of_note[note->outer],
                 .inner = note->outer != NONE,
                 .pointer = note->pointer,
                 .position = number_or_none(outermost->loops[0]),
                 .layer = number_or_none(outermost->loops[1]),
                 .head = number_or_none(outermost->loops[2]),
                 .at = note->result};
    *number = NONE;
    bool named = name_in_source(note->line, new.name, &new.meaning);
    bool returned = !new.inner &&strncmp(source_line(new.line), "return ", 7) == 0;
    if (!named && returned) snprintf(new.name, sizeof new.name, "%s", note->function);
    if (!note->result || note->argument || !(named || returned)) return;
    if (new.inner &&new.outer == NONE && notes.all[note->outer].result) return;
    new.n = note->n_leaves;
    if (!new.n) new.n = note->pointer ? count_slice(note) : count_results(note);
    if (!note->pointer) new.from = entries + note->first;
    if (!note->pointer) new.to = note->n_leaves ? new.from : entries + note->end;
    if (new.n) *number = add_place(new);
}

// While sampling, what is left of a position before: its key and its value in a layer.
static void add_cached(size_t layer, int position)
{
    const Model *model = watched.model;
    const size_t at = (size_t)position * model->n_embd;
    double *rows[] = {model->keys[layer] + at, model->values[layer] + at};
    for (int i = 0; i < 2; i++) {
        add_place((Place){.name = {"kv"[i]},
                          .meaning = "",
                          .function = "gpt",
                          .layer = (int)layer,
                          .head = NONE,
                          .position = position,
                          .outer = NONE,
                          .at = rows[i],
                          .n = model->n_embd});
    }
}

// Finds every vector there is. False where there is no model yet: prints why.
bool survey(void)
{
    const Model *model = watched.model;
    const Tape *tape = model ? &model->tape : NULL;
    if (!model) print("There is no model yet: stop in train(), or later.\n");
    if (tape && tape->fused)
        print("This command works with whole vectors: ask in training, or while sampling.\n");
    if (!model || tape->fused) return false;
    notes.now = find_phase();
    read_source();
    if (source.n == 0) {
        print("microgpt.c has the names, and it cannot be read: start the debugger in the "
              "project's folder.\n");
    }
    free(places.values);
    free(places.of_note);
    places.values = calloc(n_numbers(), sizeof *places.values);
    places.of_note = malloc((notes.n + 1) * sizeof *places.of_note);
    if (!places.values || !places.of_note) abort();
    places.n = 0;
    for (size_t i = 0; i < tape->n_entries; i++) {
        places.values[value_number(tape->entries[i].out)].maker = (int)i + 1;
    }
    for (int t = 0; sampling() && t < latest_position(); t++) {
        for (size_t layer = 0; layer < model->n_layer; layer++) add_cached(layer, t);
    }
    bool current = notes.tape == tape && !notes_are_old();
    for (size_t i = 0; current && i < notes.n; i++) add_vector_of(&notes.all[i]);
    return true;
}

const Entry *maker(const double *value)
{
    int i = places.values[value_number(value)].maker;
    return i ? &watched.model->tape.entries[i - 1] : NULL;
}

// The line of the source that recorded an entry; 0 if no note says so.
int line_that_made(const Entry *entry)
{
    size_t i = (size_t)(entry - watched.model->tape.entries);
    for (size_t k = notes.n; k-- > 0;) {
        const Note *note = &notes.all[k];
        bool over = note->outer == NONE && !note->argument && !note->pointer && note->n_leaves == 0;
        if (over && note->first <= i && (!note->result || i < note->end)) return note->line;
    }
    return 0;
}

// Takes "layerN." and "headN." off the front of a name.
static const char *skip_prefix(const char *name, int *layer, int *head)
{
    int length = 0;
    if (sscanf(name, "layer%d.%n", layer, &length) == 1 && length) name += length;
    length = 0;
    if (sscanf(name, "head%d.%n", head, &length) == 1 && length) name += length;
    return name;
}

// The vector of that name, which may begin with layerN. and headN.; NULL if it is not there. Without
// headN. it is the latest of all heads. What a call made for itself is OUTER.NAME; the name alone is
// the latest one.
const Place *find_place(const char *name, int position)
{
    int layer = watched.layer, head = NONE;
    name = skip_prefix(name, &layer, &head);
    const char *dot = strchr(name, '.');
    size_t length = dot ? (size_t)(dot - name) : 0;
    for (size_t i = places.n; i-- > 0;) {
        const Place *p = &places.all[i], *outer = p->outer == NONE ? NULL : place((size_t)p->outer);
        if (strcmp(p->name, dot ? dot + 1 : name) != 0) continue;
        if (dot && (!outer || strlen(outer->name) != length)) continue;
        if (dot && strncmp(outer->name, name, length) != 0) continue;
        if (p->layer != NONE && p->layer != layer) continue;
        if (head != NONE && p->head != head) continue;
        if (position == LATEST || p->position == position) return p;
    }
    return NULL;
}

// The matrix that a parameter is in; NULL if it is no parameter.
const Matrix *matrix_of(const double *value)
{
    const Model *model = watched.model;
    for (size_t i = 0; i < model->n_matrices && is_parameter(value); i++) {
        const Matrix *w = &model->state_dict[i];
        if (value >= w->data && value < w->data + w->rows * w->cols) return w;
    }
    return NULL;
}

const Matrix *find_matrix(const char *name)
{
    const Model *model = watched.model;
    for (size_t k = 0; k < model->n_matrices; k++) {
        if (strcmp(model->state_dict[k].name, name) == 0) return &model->state_dict[k];
    }
    return NULL;
}

// Does a line of the source make a vector of this name, or set a pointer? Then it may still come.
static bool will_be_made(const char *name)
{
    int layer, head;
    char given[40];
    const char *meaning, *only = skip_prefix(name, &layer, &head), *last = strrchr(only, '.');
    read_source();
    for (int line = 1; line <= source.n; line++) {
        if (statement_start(line) != line || !name_in_source(line, given, &meaning)) continue;
        if (strcmp(given, last ? last + 1 : only) != 0) continue;
        bool makes = strncmp(source_line(line), "double *", 8) == 0;
        for (int k = line; !makes; k++) {
            makes = strstr(source_line(k), "tape") != NULL;
            if (ends_statement(k) || k >= source.n) break;
        }
        if (makes) return true;
    }
    return false;
}

// Like find_place(), but prints why there is none, or that it is from an earlier position.
const Place *need_place(const char *name, int position)
{
    const Place *found = find_place(name, position);
    if (!found && find_matrix(name)) {
        print("%s is a matrix: `row %s I` shows a row of it.\n", name, name);
    } else if (!found && !will_be_made(name)) {
        print("%s: no line of microgpt.c makes a vector of this name; `vec` lists them.\n", name);
    } else if (!found && position != LATEST) {
        print("%s at position %d: not there yet, or no such position.\n", name, position);
    } else if (!found) {
        print("%s: not there yet: step on. `vec` lists what is there.\n", name);
    } else if (position == LATEST && found->position != NONE &&
               found->position < latest_position()) {
        print("(Position %d has not come to %s yet. This is position %d.)\n", latest_position(),
              found->name, found->position);
    }
    return found;
}

/* ------------------------------------------------------------------------
 * Names for people.
 */
// A token as a reader knows it.
const char *token_text(size_t token)
{
    static char texts[4][8];
    static size_t turn;
    if (token >= watched.tokenizer->BOS) return "BOS";
    char *text = texts[turn++ % 4];
    size_t length = encode_utf8(watched.tokenizer->uchars[token], text);
    text[length] = '\0';
    return text;
}

// What stands at a position. In a sample the tokens begin after BOS.
size_t token_at(int position)
{
    const Model *model = watched.model;
    if (!sampling()) return model->tokens[position];
    return position ? model->tokens[position - 1] : watched.tokenizer->BOS;
}

const char *text_at(int position) { return token_text(token_at(position)); }

// The vector that a value is in; NULL if it is in none.
const Place *place_of(const double *value)
{
    int owner = on_tape(value) ? places.values[value_number(value)].owner : 0;
    return owner ? &places.all[owner - 1] : NULL;
}

// The first vector that another was made from; NULL if it was made from parameters alone.
const Place *operand_of(const Place *p)
{
    for (const Entry *e = p->from; e < p->to; e++) {
        for (int second = 0; second < 2; second++) {
            const double *operand = second ? second_operand(e) : e->a;
            const Place *from = operand ? place_of(operand) : NULL;
            bool inside = from && from->from && from->from >= p->from && from->to <= p->to;
            if (from && from != p && (!inside || from->from == from->to)) return from;
        }
    }
    return NULL;
}

// The name of a vector, in memory that the next call but three uses again.
const char *place_name(const Place *p)
{
    static char names[4][160];
    static size_t turn;
    char *name = names[turn++ % 4], layer[24] = "", head[24] = "";
    const Place *outer = p->outer == NONE ? NULL : place((size_t)p->outer);
    if (p->layer != NONE && watched.model->n_layer > 1) {
        snprintf(layer, sizeof layer, "layer%d.", p->layer);
    }
    if (p->head != NONE) snprintf(head, sizeof head, "head%d.", p->head);
    snprintf(name, 160, "%s%s%s%s%s", layer, head, outer ? outer->name : "", outer ? "." : "",
             p->name);
    return name;
}

// A value in no vector is called v and its number, with what was done, if that is short.
static void name_without_place(const double *value, char name[224])
{
    const Entry *e = maker(value);
    const Place *p = e ? place_of(e->a) : NULL;
    char operand[64] = "", done[128] = "";
    int n = snprintf(name, 224, "v%zu", value_number(value));
    if (!p || second_operand(e)) return;
    snprintf(operand, sizeof operand, p->n > 1 ? "%s[%td]" : "%s", p->name, e->a - p->at);
    name_atom(e, operand, "", done, sizeof done);
    snprintf(name + n, 224 - (size_t)n, " (%s)", done);
}

// What stands beside the values: gradients, and what Adam remembers.
static bool name_beside(const double *x, char name[224])
{
    const Model *model = watched.model;
    const double *values[] = {x - model->tape.chunk_size, model->params + (x - model->m),
                              model->params + (x - model->v)};
    static const char *const kinds[] = {"the gradient of", "Adam's m of", "Adam's v of"};
    for (int i = 0; i < 3; i++) {
        if (i ? !is_parameter(values[i]) : !on_tape(values[i])) continue;
        snprintf(name, 224, "%s %.200s", kinds[i], value_name(values[i]));
        return true;
    }
    return false;
}

// The name of a value, as a parameter or as an element of a vector. False if it has none: then it
// is called v and its number.
static bool name_value(const double *value, char name[224])
{
    const Matrix *w = matrix_of(value);
    if (w) {
        size_t k = (size_t)(value - w->data);
        snprintf(name, 224, "%s[%zu][%zu]", w->name, k / w->cols, k % w->cols);
        return true;
    }
    const Place *p = place_of(value);
    if (!p) {
        if (on_tape(value))
            name_without_place(value, name);
        else if (!name_beside(value, name))
            snprintf(name, 224, "?");
        return false;
    }
    char index[24] = "", at[24] = "";
    if (p->n > 1) snprintf(index, sizeof index, "[%td]", value - p->at);
    if (p->position != NONE) snprintf(at, sizeof at, "@%d", p->position);
    snprintf(name, 224, "%s%s%s", place_name(p), index, at);
    return true;
}

bool has_name(const double *value)
{
    char name[224];
    return name_value(value, name);
}

// The name, in memory that the next call but seven uses again.
const char *value_name(const double *value)
{
    static char names[8][224];
    static size_t turn;
    char *name = names[turn++ % 8];
    name_value(value, name);
    return name;
}

// Splits "name[5]@3" and "name[3][5]" into a name and two numbers.
static void split_name(const char *text, char name[64], int *i, int *j)
{
    size_t length = strcspn(text, "[@");
    snprintf(name, 64, "%.*s", (int)length, text);
    const char *at = strchr(text, '@');
    int n = sscanf(text + length, "[%d][%d]", i, j);
    if (n < 2 && at) sscanf(at, "@%d", j);
}

// A value by its name: "logits" 5 and the position, "layer0.attn_wo" 3 5, "logits[5]@3", "v1234".
// NULL if there is none.
double *find_value(const char *text, int i, int j)
{
    Model *model = watched.model;
    char name[64];
    split_name(text, name, &i, &j);
    const Matrix *w = find_matrix(name);
    if (w) {
        bool inside = i >= 0 && (size_t)i < w->rows && j >= 0 && (size_t)j < w->cols;
        if (!inside) {
            print("%s has %zu rows and %zu columns, counted from 0.\n", name, w->rows, w->cols);
        }
        return inside ? w->data + (size_t)i * w->cols + (size_t)j : NULL;
    }
    size_t number = 0;
    int used = 0;
    if (sscanf(name, "v%zu%n", &number, &used) == 1 && !name[used] && number < n_numbers()) {
        double *value =
            model->tape.chunks[number / model->tape.chunk_size] + number % model->tape.chunk_size;
        if (on_tape(value)) return value;
    }
    const Place *p = need_place(name, j);
    if (p && p->n == 1 && i < 0) i = 0;
    if (p && i < 0) {
        print("%s has %zu elements: which one? `%s 0` is the first.\n", name, p->n, name);
        return NULL;
    }
    if (p && (size_t)i >= p->n) {
        print("%s has %zu elements, counted from 0.\n", name, p->n);
        return NULL;
    }
    return p ? p->at + i : NULL;
}

double *find_parameter(const char *name, int row, int column)
{
    char only[64];
    int i = row, j = column;
    split_name(name, only, &i, &j);
    if (find_matrix(only)) return find_value(name, row, column);
    const Model *model = watched.model;
    print("%s is no parameter. The matrices are", name);
    for (size_t k = 0; k < model->n_matrices; k++) print(" %s", model->state_dict[k].name);
    print(".\n");
    return NULL;
}

// Does autograd.c have a variable of this name? There it hides what microgpt.c calls so.
static bool is_variable_of_engine(const char *name)
{
    static char *text;
    if (!text) text = read_text("autograd.c");
    char pointer[80];
    snprintf(pointer, sizeof pointer, "*%s", name);
    size_t length = strlen(pointer);
    for (const char *s = text; s && (s = strstr(s, pointer)); s += length) {
        if (strchr(" ,;)", s[length]) && s > text && strchr(" (", s[-1])) return true;
    }
    return false;
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

// Is it a name (1), rather than an expression of C (0)? Or a name in microgpt.c that autograd.c has for
// a variable, in a function of autograd.c (2)?
int is_value_name(const char *text, const void *pc)
{
    char name[64];
    int i = NONE, j = NONE;
    if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.[]@") !=
        strlen(text))
        return 0;
    if (!watched.model) return 1;
    split_name(text, name, &i, &j);
    if (find_matrix(name)) return 1;
    if (name[0] == 'v' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1)) return 1;
    if (!will_be_made(name)) return 0;
    return pc && !function_at(pc) && is_variable_of_engine(name) ? 2 : 1;
}
