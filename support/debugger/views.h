/* views.h: what one can ask of a run that has stopped, in the build that make microgpt-debug makes.
 *
 * watch() is called where training begins. notes.c knows what is on the tape by name; views.c shows
 * it; graph.c draws it; tour.c walks through it. commands.gdb and commands.lldb give the views short names.
 */
#ifndef VIEWS_H
#define VIEWS_H

#include "../model.h"

void watch(const Model *model, const Tokenizer *tokenizer);  // both are part of a Run

// What the debuggers' commands call. Where a view takes a position, LATEST is the one that gpt()
// was called for last. A value is a name with numbers, -1 where they are left out: "logits" 5 3 is
// element 5 at position 3. "logits[5]@3" is the same in one word.
enum { LATEST = -1, NONE = -1 };

void show_begin(void);
void show_views(void);
void show_document(void);
void show_here(void);                            // the vectors of the call that is under way
void show_pointer(const char *name, double *x);  // one variable of the debugger's frame
void show_before(int line);                      // of microgpt.c: what follows is about this place
void show_vectors(void);
void show_vector(const char *name, int position);
void show_row(const char *name, int i);
void show_values(double *x, size_t n);
void show_around(const char *operation, int position);
void show_head(int head, int position);
void show_cache(int position);
void show_attention(int head, int position);
void show_landing(int head, int position);
void show_silence(int head, int position);
void show_top(int position);
void show_draw(void);
void show_map(void);
void show_tape(void);
void show_parameter(const char *name, int row, int column);
void show_moves(const char *name, int row, int column);
void show_value(double *value);
void show_value_named(const char *name, int i, int j);
void show_users_at(double *value);
void show_users(const char *name, int i, int j);
void show_nudge_at(double *value);
void show_nudge(const char *name, int i, int j);
void show_local(const char *of, const char *with_respect_to);
void show_graph_at(double *value);
void show_graph(const char *name, int i, int j);
void show_layer(int layer);
void show_digits(int digits);
void show_depth(int depth);
double *watch_gradient(const char *name, int row, int column);
void show_gain(void);
int is_value_name(const char *name, const void *pc);
int means_name(const char *name, const void *pc);  // says so, if it does not
void refuse_name(const char *name);
int is_number(const char *text);
int line_of(const char *function, const char *text);

// The walk.
int stop_line(int stop);               // the line of microgpt.c where it is
const char *stop_condition(int stop);  // when to stop there, in C
int stop_is_same(int stop);            // is it where the one before it is?
int n_stops(void);
int stop_is_done(int stop);  // has its statement run?
int draws_the_end(void);
double *watch_first_gain(void);
void show_stop(int stop);
int has_more(int stop);
void show_more(int stop);

/* ------------------------------------------------------------------------
 * What the files of the debugger ask of each other.
 */
// A vector: its name, and where it is.
typedef struct {
    char name[40];
    const char *meaning;        // what the source says of it
    int line;                   // of the source
    int layer, head, position;  // NONE: it belongs to none
    int outer;                  // the vector that it was made for, in places(); or NONE
    bool inner;                 // a call in gpt() made it for itself
    double *at;                 // [n]
    size_t n;
    const Entry *from, *to;  // the entries that made it; NULL: it is not on the tape
} Place;

typedef struct {
    Model *model;
    const Tokenizer *tokenizer;
    Run *run;
    int layer;         // the one whose heads and vectors are shown
    int digits;        // of every number shown
    int depth;         // of a graph, in operations
    double *gradient;  // the one that `watchgrad` watches
    double gained;     // what it was at the last stop
} Watched;
extern Watched watched;

// What Adam found when it was called.
typedef struct {
    uint64_t step;
    double lr, beta1, beta2, weight_decay;
    double *p, *g, *m, *v;  // [num_params] before it moved them; NULL: there was no such step
} Moved;

typedef enum { FORWARD, BACKWARD, GRADIENTS, MOVED } Phase;

// notes.c
bool survey(void);          // finds every vector; false: nothing to show, and said so
Phase phase(void);          // as survey() found it
bool adam_is_called(void);  // in this step
bool sampling(void);
int latest_position(void);
const Moved *moved(int before);  // the latest step, or the one before it; NULL if there was none
const Random *draws_from(void);  // the random numbers as they were before the latest sample's draw
size_t n_places(void);
const Place *place(size_t i);
const Place *find_place(const char *name, int position);
const Place *need_place(const char *name, int position);  // says so, if there is none
const Place *place_of(const double *value);
const Place *operand_of(const Place *place);  // the first vector that it was made from
bool on_tape(const double *value);
bool is_parameter(const double *value);
size_t value_number(const double *value);
size_t n_numbers(void);               // all value numbers are below
double data_of(const double *value);  // its data, as it was when the tape was recorded
const Entry *maker(const double *value);
int line_that_made(const Entry *entry);
const char *value_name(const double *value);  // of the last few that were asked for
const char *place_name(const Place *place);
bool has_name(const double *value);
double *find_value(const char *name, int i, int j);
double *find_parameter(const char *name, int row, int column);
const Matrix *find_matrix(const char *name);
const char *source_line(int line);
int statement_start(int line);
int declared_at(const char *name, int line);         // of a pointer, in the function around a line
void print_statement(int line, const char *indent);  // the code, without its comment
void print_comment(int line, const char *indent);
const char *comment_on(int line);
const char *token_text(size_t token);
size_t token_at(int position);
const char *text_at(int position);                      // the text of that token
void *more_room(void *all, size_t *room, size_t size);  // of an array of things of this size

// views.c
PRINTF_LIKE(1, 2) void print(const char *format, ...);
void number(double x);
bool gradients_known(void);
double gradient_of(double *value);
double local_derivative(const Entry *e, bool second);
void print_entry(const Entry *e);
enum { WIDTH = 79 };

// tour.c: the walk without a debugger.
void walk_note(const char *function, int line, const size_t loops[3], bool done);
void walk_backward(void);
void walk_adam(void);
void draw_if_asked(void);  // graph.c: MICROGPT_GRAPH=FILE

#endif
