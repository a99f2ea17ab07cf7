/* notes.c: what is on the tape, by name.
 *
 * names.h takes a note of every operation that microgpt.c calls. Here the notes become vectors: a
 * name, which is read from the source, and the values that the operation returned. Nothing is
 * assumed about gpt(): what a view shows is what the program did.
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOWHERE SIZE_MAX

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
 * The source, which has the names.
 */
static struct {
    char *text;
    char **lines;
    int n;
} source;

// A whole file without its last byte, which ends a line; NULL if it cannot be read, or is empty.
static char *read_text(const char *name)
{
    unsigned char *bytes = NULL;
    size_t n = 0;
    int file = open_file(name, O_RDONLY);
    if (file < 0) return NULL;
    bool ok = read_all(file, &bytes, &n, name) && n > 0;
    if (ok) bytes[n - 1] = '\0';
    close(file);
    return ok ? (char *)bytes : NULL;
}

static void read_source(void)
{
    if (!source.text) source.text = read_text("microgpt.c");
    if (!source.text || source.lines) return;
    source.lines = malloc((strlen(source.text) + 1) * sizeof *source.lines);
    for (char *s = source.text; s && source.lines; s = strchr(s, '\n')) {
        if (s > source.text) *s++ = '\0';
        source.lines[source.n++] = s;
    }
}

// A line of microgpt.c, counted from 1, without its indentation. "" if it cannot be read.
const char *source_line(int line)
{
    read_source();
    if (line < 1 || line > source.n) return "";
    return source.lines[line - 1] + strspn(source.lines[line - 1], " ");
}

// The first line with a text in a function's definition; 0 if there is none.
int line_of(const char *function, const char *text)
{
    enum { OUTSIDE, HEADER, BODY } where = OUTSIDE;
    char start[64];
    snprintf(start, sizeof start, "%s(", function);
    read_source();
    for (int i = 0; i < source.n; i++) {
        const char *line = source.lines[i], *at = line[0] == ' ' ? NULL : strstr(line, start);
        size_t length = strlen(line);
        if (where == OUTSIDE && at && at > line && strchr(" *", at[-1])) where = HEADER;
        if (where == HEADER && length > 0 && line[length - 1] == ';') where = OUTSIDE;
        if (where == HEADER && line[0] == '{') where = BODY;
        if (where == BODY && strstr(line, text)) return i + 1;
        if (where == BODY && line[0] == '}') where = OUTSIDE;
    }
    return 0;
}

// The identifier that a text begins with; NULL if it does not.
static const char *identifier(const char *text, size_t *length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    *length = strchr("0123456789", text[0]) ? 0 : strspn(text, letters);
    return *length ? text : NULL;
}

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_comment(int line) { return begins_with(source_line(line), "// "); }

// Can a statement begin after this line? It ends one, or is empty, or a comment, or a condition.
static bool ends_statement(int line)
{
    const char *text = source_line(line), *comment = strstr(text, "// ");
    size_t n = comment ? (size_t)(comment - text) : strlen(text);
    while (n > 0 && text[n - 1] == ' ') n--;
    bool head =
        begins_with(text, "if (") || begins_with(text, "for (") || begins_with(text, "while (");
    return n == 0 || strchr(";{}", text[n - 1]) || (head && text[n - 1] == ')');
}

// Where the statement begins that a line is part of.
int statement_start(int line)
{
    while (line > 1 && !ends_statement(line - 1)) line--;
    return line;
}

// The line that declares a pointer, in the function around a line; 0 if there is none.
int declared_at(const char *name, int line)
{
    char text[80];
    snprintf(text, sizeof text, "*%s =", name);
    read_source();
    if (line < 1 || line > source.n) return 0;
    while (line > 1 && source.lines[line - 1][0] != '{') line--;
    for (; line < source.n && source.lines[line - 1][0] != '}'; line++) {
        if (strstr(source.lines[line - 1], text)) return line;
    }
    return 0;
}

// The comment on a statement, whole: beside its first line, or the lines above it.
void print_comment(int line, const char *indent)
{
    const char *beside = strstr(source_line(line), "// ");
    int first = line;
    if (beside) print("%s%s\n", indent, beside);
    while (!beside && is_comment(first - 1)) first--;
    for (; first < line; first++) print("%s%s\n", indent, source_line(first));
}

// The code of a statement, its lines joined and without comments.
void print_statement(int line, const char *indent)
{
    print("%s", indent);
    for (bool more = true, first = true; more && line < source.n; line++, first = false) {
        const char *text = source_line(line), *beside = strstr(text, "// ");
        int length = (int)(beside ? (size_t)(beside - text) : strlen(text));
        while (length > 0 && text[length - 1] == ' ') length--;
        print("%s%.*s", first ? "" : " ", length, text);
        more = !ends_statement(line);
    }
    print("\n");
}

// The comment on a statement, beside its first line or above it, without the number of the
// lesson's line; NULL if there is none.
const char *comment_on(int line)
{
    const char *comment = strstr(source_line(line), "// ");
    if (!comment && is_comment(line - 1)) {
        while (is_comment(line - 2)) line--;
        comment = source_line(line - 1);
    }
    if (!comment) return NULL;
    comment += 3;
    size_t digits = strspn(comment, "0123456789");
    return digits && comment[digits] == ':' ? comment + digits + 2 : comment;
}

// The name of what a statement makes, and what is said of it. It is what its comment begins with,
// before a colon; or else what it assigns to; or else, where it assigns nothing, what it names
// after the tape. False if it has none.
static bool name_in_source(int line, char name[40], const char **meaning)
{
    line = statement_start(line);
    const char *text = source_line(line), *comment = comment_on(line), *given = NULL;
    const char *beside = strstr(text, "// "), *equals = strstr(text, " = ");
    const char *end = text + strlen(text);
    if (!equals && end - text > 2 && strcmp(end - 2, " =") == 0) equals = end - 2;
    if (beside && equals > beside) equals = NULL;
    const char *into = equals ? NULL : strstr(text, "(tape, ");
    size_t length = 0;
    *meaning = comment ? comment : "";
    if (comment && identifier(comment, &length) && comment[length] == ':') {
        given = comment;
        *meaning = comment + length + 1 + strspn(comment + length + 1, " ");
    } else if (equals) {
        const char *start = equals;
        while (start > text && start[-1] != ' ' && start[-1] != '*') start--;
        given = identifier(start, &length) && start + length == equals ? start : NULL;
    } else if (into && strncmp(text, "return", 6) != 0) {
        given = identifier(into + 7, &length);
        if (given && given[length] != ',') given = NULL;
    }
    if (given) snprintf(name, 40, "%.*s", (int)length, given);
    return given != NULL;
}

/* ------------------------------------------------------------------------
 * The notes.
 */
typedef struct {
    const char *operation, *function;  // what was called, and where
    int line;                          // of the source
    size_t loops[3];                   // pos_id, li, h; NOWHERE: it is in no such loop
    size_t first, end;                 // the entries of the tape that it recorded
    size_t n_leaves;                   // how many leaves it makes; 0: it is no leaf
    int outer;                         // the note of the call that this one is part of, or NONE
    bool argument;                     // of another call in the same line
    double *result;                    // NULL: it is still at work
} Note;

enum { MAX_OPEN = 16 };
static struct {
    Note *all;
    size_t n, room;
    size_t open[MAX_OPEN];  // the calls that have not returned yet
    size_t n_open;
    size_t position;          // what gpt() was called for last
    size_t position_entries;  // how long the tape was then
    Phase phase, now;         // as noted; as survey() found it
    double *result;           // what backward() starts from
    const Tape *tape;
    Moved moved[2];
    Random random;  // before the latest draw
} notes = {.position = NOWHERE};

// Has the tape been dropped since the last note?
static bool notes_are_old(void)
{
    return notes.n > 0 && notes.tape->n_entries < notes.all[notes.n - 1].first;
}

void note_begin(const Tape *tape, const char *operation, const char *function, int line,
                size_t n_leaves, const size_t loops[3])
{
    if (notes.tape != tape || notes_are_old()) {
        notes.n = notes.n_open = 0;
        notes.phase = FORWARD;
        notes.tape = tape;
    }
    if (notes.n_open == MAX_OPEN) notes.n_open = 0;  // a run that ran out of memory left them
    if (notes.n == notes.room) {
        notes.all = more_room(notes.all, &notes.room, sizeof *notes.all);
    }
    Note note = {.operation = operation,
                 .function = function,
                 .line = line,
                 .outer = NONE,
                 .first = tape->n_entries,
                 .n_leaves = n_leaves};
    memcpy(note.loops, loops, sizeof note.loops);
    for (size_t i = notes.n_open; i-- > 0 && note.outer == NONE;) {
        const Note *open = &notes.all[notes.open[i]];
        if (strcmp(open->operation, function) == 0) note.outer = (int)notes.open[i];
        bool beside = strcmp(open->function, function) == 0;
        if (beside && statement_start(open->line) == statement_start(line)) note.argument = true;
    }
    if (note.outer == NONE && !note.argument) walk_note(function, line, loops, false);
    notes.open[notes.n_open++] = notes.n;
    notes.all[notes.n++] = note;
}

double *note_end(double *result)
{
    Note *note = notes.n_open ? &notes.all[notes.open[--notes.n_open]] : NULL;
    if (!note) return result;
    note->end = notes.tape->n_entries;
    note->result = result;
    if (strcmp(note->function, "sample") == 0 && watched.run) notes.random = *watched.run->rng;
    if (note->outer == NONE && !note->argument) {
        walk_note(note->function, note->line, note->loops, true);
    }
    return result;
}

void note_position(const Tape *tape, size_t position)
{
    notes.position = position;
    notes.position_entries = tape->n_entries;
}

// Until backward() has cleared all gradients and set this one to 1, it is no number that it sets.
void note_backward(const Tape *tape, double *result)
{
    walk_backward();
    notes.phase = BACKWARD;
    notes.result = result;
    *grad(tape, result) = NAN;
}

void note_end_of_backward(void)
{
    notes.phase = GRADIENTS;
    draw_if_asked();
}

void note_adam(const Config *config, double lr)
{
    if (!watched.model) return;
    walk_adam();
    const Model *model = watched.model;
    size_t n = (size_t)model->num_params, bytes = n * sizeof(double);
    Moved *now = &notes.moved[0], old = notes.moved[1];
    notes.moved[1] = *now;
    *now = old;
    if (!now->p) now->p = malloc(4 * bytes);
    if (!now->p) abort();
    now->g = now->p + n;
    now->m = now->g + n;
    now->v = now->m + n;
    memcpy(now->p, model->params, bytes);
    memcpy(now->g, grad(&model->tape, model->params), bytes);
    memcpy(now->m, model->m, bytes);
    memcpy(now->v, model->v, bytes);
    now->step = model->steps_done;
    now->lr = lr;
    now->beta1 = config->beta1;
    now->beta2 = config->beta2;
    now->weight_decay = config->weight_decay;
    notes.phase = MOVED;
}

const Moved *moved(int before) { return notes.moved[before].p ? &notes.moved[before] : NULL; }

const Random *draws_from(void) { return &notes.random; }

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
bool adam_is_called(void) { return notes.phase == MOVED; }

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
static struct {
    Place *all;
    size_t n, room;
    int *of_note;  // [notes.room] the place of a note, or NONE
    size_t notes_room;
    int *owner;            // [n_numbers] the place of a value, plus 1
    size_t *maker;         // [n_numbers] the entry that made it, plus 1
    unsigned char *marks;  // [n_numbers] of the entries of one note
    size_t numbers_room;
    const Tape *tape;  // for which this was found, and how long it was
    size_t n_entries, n_notes, n_values;
} places;

size_t n_places(void) { return places.n; }
const Place *place(size_t i) { return &places.all[i]; }

static int add_place(Place new)
{
    if (places.n == places.room) {
        places.all = more_room(places.all, &places.room, sizeof *places.all);
    }
    places.all[places.n] = new;
    return (int)places.n++;
}

static int number_or_none(size_t number) { return number == NOWHERE ? NONE : (int)number; }

// How many neighbors a note returned, counted from its result: those that its entries made, and
// did not use up themselves.
static size_t count_results(const Note *note)
{
    enum { MADE = 1, USED = 2 };
    const Entry *entries = watched.model->tape.entries;
    size_t n = 0;
    for (size_t i = note->first; i < note->end; i++) {
        const Entry *e = &entries[i];
        places.marks[value_number(e->out)] |= MADE;
        places.marks[value_number(e->a)] |= USED;
        if (e->b) places.marks[value_number(e->b)] |= USED;
    }
    while (on_tape(note->result + n) && places.marks[value_number(note->result + n)] == MADE) n++;
    for (size_t i = note->first; i < note->end; i++) {
        const Entry *e = &entries[i];
        places.marks[value_number(e->out)] = places.marks[value_number(e->a)] = 0;
        if (e->b) places.marks[value_number(e->b)] = 0;
    }
    return n;
}

static void make_room(void)
{
    if (places.numbers_room < n_numbers()) {
        places.numbers_room = n_numbers();
        free(places.owner);
        free(places.maker);
        free(places.marks);
        places.owner = malloc(places.numbers_room * sizeof *places.owner);
        places.maker = malloc(places.numbers_room * sizeof *places.maker);
        places.marks = calloc(places.numbers_room, 1);
        if (!places.owner || !places.maker || !places.marks) abort();
    }
    if (places.notes_room < notes.room) {
        places.notes_room = notes.room;
        free(places.of_note);
        places.of_note = malloc(places.notes_room * sizeof *places.of_note);
        if (!places.of_note) abort();
    }
    memset(places.owner, 0, places.numbers_room * sizeof *places.owner);
    memset(places.maker, 0, places.numbers_room * sizeof *places.maker);
}

static void own_values(int i)
{
    const Place *p = &places.all[i];
    for (size_t k = 0; k < p->n; k++) {
        int *owner = &places.owner[value_number(p->at + k)];
        if (*owner == 0 || p->outer == NONE) *owner = i + 1;
    }
}

static void add_note(size_t i)
{
    const Note *note = &notes.all[i];
    Tape *tape = &watched.model->tape;
    Place new = {.line = statement_start(note->line),
                 .outer = NONE,
                 .inner = note->outer != NONE,
                 .position = number_or_none(note->loops[0]),
                 .layer = number_or_none(note->loops[1]),
                 .head = number_or_none(note->loops[2])};
    places.of_note[i] = NONE;
    if (note->outer != NONE) new.outer = places.of_note[note->outer];
    bool open = !note->result || note->argument;
    if (open || !name_in_source(note->line, new.name, &new.meaning)) return;
    if (note->outer != NONE && new.outer == NONE) {  // inside a call that is still under way
        const Note *outer = &notes.all[note->outer];
        if (outer->result) return;
        new.position = number_or_none(outer->loops[0]);
        new.layer = number_or_none(outer->loops[1]);
        new.head = number_or_none(outer->loops[2]);
    } else if (new.outer != NONE) {
        const Place *outer = &places.all[new.outer];
        new.position = outer->position;
        new.layer = outer->layer;
        new.head = outer->head;
    }
    new.at = note->result;
    new.from = tape->entries + note->first;
    new.to = tape->entries + note->end;
    new.n = note->n_leaves ? note->n_leaves : count_results(note);
    if (note->n_leaves) new.to = new.from;
    if (new.n == 0) return;
    places.of_note[i] = add_place(new);
    own_values(places.of_note[i]);
}

// Finds every vector that there is. False, with a word to the learner, where there is no model yet.
bool survey(void)
{
    if (!watched.model) {
        print("There is no model yet: stop in train(), or later.\n");
        return false;
    }
    Model *model = watched.model;
    Tape *tape = &model->tape;
    if (tape->fused) {
        print("This command works with whole vectors: ask in training, or while sampling.\n");
        return false;
    }
    notes.now = find_phase();
    read_source();
    if (source.n == 0) {
        print("microgpt.c has the names, and it cannot be read: start the debugger in the "
              "project's folder.\n");
    }
    make_room();
    places.n = 0;
    for (size_t i = 0; i < tape->n_entries; i++) {
        places.maker[value_number(tape->entries[i].out)] = i + 1;
    }
    int last = latest_position();
    for (int t = 0; sampling() && t < last; t++) {  // what is left of the positions before
        for (size_t layer = 0; layer < model->n_layer; layer++) {
            size_t at = (size_t)t * model->n_embd;
            Place k = {
                "k",           "",   0,   (int)layer, NONE, t, NONE, false, model->keys[layer] + at,
                model->n_embd, NULL, NULL};
            Place v = k;
            v.name[0] = 'v';
            v.at = model->values[layer] + at;
            own_values(add_place(k));
            own_values(add_place(v));
        }
    }
    if (notes.tape == tape && !notes_are_old()) {
        for (size_t i = 0; i < notes.n; i++) add_note(i);
    }
    return true;
}

const Entry *maker(const double *value)
{
    size_t i = places.maker[value_number(value)];
    return i ? &watched.model->tape.entries[i - 1] : NULL;
}

// The line of the source that recorded an entry; 0 if no note says so.
int line_that_made(const Entry *entry)
{
    size_t i = (size_t)(entry - watched.model->tape.entries);
    for (size_t k = notes.n; k-- > 0;) {
        const Note *note = &notes.all[k];
        bool over = note->outer == NONE && !note->argument && note->n_leaves == 0;
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

const Matrix *find_matrix(const char *name)
{
    const Model *model = watched.model;
    for (size_t k = 0; k < model->n_matrices; k++) {
        if (strcmp(model->state_dict[k].name, name) == 0) return &model->state_dict[k];
    }
    return NULL;
}

// Does a line of the source make a vector of this name? Then it may still come. A pointer into
// another vector has a name of C, but none here.
static bool will_be_made(const char *name, int *pointer_line)
{
    int layer, head;
    char given[40];
    const char *meaning, *last = strrchr(skip_prefix(name, &layer, &head), '.');
    last = last ? last + 1 : skip_prefix(name, &layer, &head);
    *pointer_line = 0;
    read_source();
    for (int line = 1; line <= source.n; line++) {
        if (statement_start(line) != line || !name_in_source(line, given, &meaning)) continue;
        if (strcmp(given, last) != 0) continue;
        int end = line;
        while (!ends_statement(end) && end < source.n) end++;
        bool makes = false;
        for (int k = line; k <= end; k++) {
            makes = makes || strstr(source_line(k), "(tape, ") || strstr(source_line(k), "ag_");
        }
        if (makes) return true;
        if (strncmp(source_line(line), "double *", 8) == 0) *pointer_line = line;
    }
    return false;
}

// The same as find_place, with a word where there is none, or where it is of an earlier position
// than one might think.
const Place *need_place(const char *name, int position)
{
    const Place *found = find_place(name, position);
    int line = 0;
    if (!found && find_matrix(name)) {
        print("%s is a matrix: `row %s I` shows a row of it.\n", name, name);
    } else if (!found && !will_be_made(name, &line) && line) {
        print("%s points into another vector (microgpt.c:%d). In that function, `look %s 4` shows "
              "four values.\n",
              name, line, name);
    } else if (!found && !will_be_made(name, &line)) {
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
    int owner = on_tape(value) ? places.owner[value_number(value)] : 0;
    return owner ? &places.all[owner - 1] : NULL;
}

// The first vector that another was made from; NULL if it was made from parameters alone.
const Place *operand_of(const Place *p)
{
    for (const Entry *e = p->from; e < p->to; e++) {
        for (int second = 0; second < 2; second++) {
            const double *operand = second ? e->b : e->a;
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
    char operand[64] = "";
    int n = snprintf(name, 224, "v%zu", value_number(value));
    if (!p || e->b) return;
    snprintf(operand, sizeof operand, p->n > 1 ? "%s[%td]" : "%s", p->name, e->a - p->at);
    size_t room = 224 - (size_t)n;
    if (e->op == OP_POW) snprintf(name + n, room, " (%s ^ %g)", operand, e->c);
    if (e->op == OP_MUL_CONST) snprintf(name + n, room, " (%s * %g)", operand, e->c);
    if (e->op == OP_ADD_CONST) {
        snprintf(name + n, room, " (%s %c %g)", operand, e->c < 0 ? '-' : '+', fabs(e->c));
    }
}

// The name of a value, as a parameter or as an element of a vector. False if it has none: then it
// is called v and its number.
static bool name_value(const double *value, char name[224])
{
    const Model *model = watched.model;
    for (size_t i = 0; i < model->n_matrices && is_parameter(value); i++) {
        const Matrix *w = &model->state_dict[i];
        if (value >= w->data && value < w->data + w->rows * w->cols) {
            size_t k = (size_t)(value - w->data);
            snprintf(name, 224, "%s[%zu][%zu]", w->name, k / w->cols, k % w->cols);
            return true;
        }
    }
    const Place *p = place_of(value);
    if (!p) {
        name_without_place(value, name);
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

// The functions of microgpt.c are neighbors, from the first to main().
void shuffle(Documents *docs, Random *rng);
int main(int argc, char **argv);

static bool in_microgpt(const void *pc)
{
    uintptr_t at = (uintptr_t)pc, first = (uintptr_t)shuffle, last = (uintptr_t)main;
    return at >= first && at < last + 256;
}

// Is it a name (1), rather than an expression of C (0)? Or either of them (2), where autograd.c has a
// variable of this name? Called by the debuggers' commands, with the place where the program is.
int is_value_name(const char *text, const void *pc)
{
    char name[64];
    int i = NONE, j = NONE, line;
    if (!watched.model) return true;
    split_name(text, name, &i, &j);
    if (find_matrix(name)) return true;
    if (name[0] == 'v' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1))
        return true;
    if (!will_be_made(name, &line)) return false;
    return !in_microgpt(pc) && is_variable_of_engine(name) ? 2 : 1;
}

int is_number(const char *text) { return *text && strspn(text, "0123456789") == strlen(text); }

// For a debugger whose commands cannot choose: false where the name would be another thing in C.
int means_name(const char *name, const void *pc)
{
    int line;
    bool hidden = watched.model && !in_microgpt(pc) && is_variable_of_engine(name);
    if (hidden && will_be_made(name, &line)) refuse_name(name);
    return !hidden || !will_be_made(name, &line);
}

void refuse_name(const char *name)
{
    print(
        "%s is a variable here, too: `&%s[0]` means that one. For the name in microgpt.c, go `up` "
        "to a function of that file first.\n",
        name, name);
}
