/* views.h: what one can ask of a run that has stopped, in the build that make microgpt-debug makes.
 *
 * notes.c takes notes while the program runs; source.c reads names in microgpt.c; places.c puts both
 * together: every vector by name. views.c shows them, graph.c draws them, tour.c walks through them.
 * commands.c has the table of commands, from which gdb's, lldb's and the guide's are made.
 */
#ifndef VIEWS_H
#define VIEWS_H

#include "../run/model.h"

void watch(const Model *model, const Tokenizer *tokenizer);  // both are part of a Run

// What a debugger calls: a command as it is typed, like command("attn 1 3", 0). pc is where the
// program is, or NULL. Returns 1, and does nothing, if a VALUE is no name but an expression of C:
// then command_at() takes the pointer that it stands for. answer() says so instead.
int command(const char *line, const void *pc);
void command_at(const char *name, double *value, int n);
void answer(const char *line, const void *pc);

// In the views, LATEST is the position that gpt() was called for last; ALL means all of them.
enum { LATEST = -1, NONE = -1, ALL = -2, WIDTH = 79 };

typedef enum { FORWARD, BACKWARD, GRADIENTS, MOVED } Phase;

// A vector: its name, and where it is.
typedef struct {
    char name[40];
    const char *meaning;        // what the source says of it
    const char *function;       // of microgpt.c
    int line;                   // of the source
    int layer, head, position;  // NONE: it belongs to none
    int outer;                  // the vector that it was made for, in places(); or NONE
    bool inner;                 // a call in gpt() made it for itself
    bool pointer;               // a name for a slice of another vector
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
    double *p, *g, *m, *v;  // [num_params] before it moved them; NULL: there was no such step
} Moved;

typedef struct {
    const char *operation, *function;  // what was called, and where
    int line;                          // of the source
    size_t loops[3];                   // pos_id, li, h; NOWHERE: it is in no such loop
    size_t first, end;                 // the entries of the tape that it recorded
    size_t n_leaves;                   // how many leaves it makes; 0: it is no leaf
    int outer;                         // the note of the call that this one is part of, or NONE
    bool argument;                     // of another call in the same line
    bool pointer;                      // no call: a pointer is set
    double *result;                    // NULL: it is still at work
} Note;

#define NOWHERE SIZE_MAX
enum { MAX_OPEN = 16 };
typedef struct {
    const char *name;
    void (*at)(void);
} Function;

typedef struct {
    Note *all;  // [n]
    size_t n, room;
    size_t open[MAX_OPEN];  // the calls that have not returned yet
    size_t n_open;
    size_t position;          // what gpt() was called for last
    size_t position_entries;  // how long the tape was then
    Phase phase, now;         // as noted; as survey() found it
    double *result;           // what backward() starts from
    const Tape *tape;
    Moved moved[2];             // the latest step, and the one before it
    Random random;              // before the latest draw
    const Function *functions;  // of microgpt.c, up to one without a name
} Notes;
extern Notes notes;
bool notes_are_old(void);

// source.c
typedef struct {
    char *text;
    char **lines;  // [n]
    int n;
} Source;
extern Source source;
char *read_text(const char *name);
void read_source(void);
const char *source_line(int line);
int line_of(const char *function, const char *text);
bool ends_statement(int line);
int statement_start(int line);
bool name_in_source(int line, char name[40], const char **meaning);
void print_statement(int line, const char *indent);  // the code, without its comment
void print_comment(int line, const char *indent);
const char *comment_on(int line);

// places.c
bool survey(void);  // finds every vector; false: nothing to show, and said so
Phase phase(void);  // as survey() found it
bool sampling(void);
int latest_position(void);
const Moved *moved(int before);  // the latest step, or the one before it; NULL if there was none
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
double *second_operand(const Entry *e);
const Entry *maker(const double *value);
int line_that_made(const Entry *entry);
const char *function_at(const void *pc);      // the one of microgpt.c; NULL: it is elsewhere
const char *value_name(const double *value);  // of the last few that were asked for
const char *place_name(const Place *place);
bool has_name(const double *value);
int is_value_name(const char *name, const void *pc);
double *find_value(const char *name, int i, int j);
double *find_parameter(const char *name, int row, int column);
const Matrix *find_matrix(const char *name);
const Matrix *matrix_of(const double *value);
const char *token_text(size_t token);
size_t token_at(int position);
const char *text_at(int position);                      // the text of that token
void *more_room(void *all, size_t *room, size_t size);  // of an array of things of this size

// views.c
PRINTF_LIKE(1, 2) void print(const char *format, ...);
void number(double x);
void row_of(const char *label, int n, ...);  // a row of a table: n numbers
void head_of(const char *label, ...);        // its headings, up to a NULL
bool gradients_known(void);
double gradient_of(double *value);
// An entry as an atom: the words before and after its first operand; its value; how much that changes
// per small change of each operand; and its constant.
typedef struct {
    const char *before, *after;
    double value, derivative[2], c;
} Atom;
Atom atom(const Entry *e);
void name_atom(const Entry *e, const char *a, const char *b, char text[], size_t room);
void show_document(void), show_map(void), show_tape(void), show_draw(void);
void show_here(const void *pc);
void show_vector(const char *name, int position), show_row(const char *name, int i);
void show_around(const char *operation, int position), show_biggest(const char *what, int n);
void show_cache(int position), show_top(int position), show_layer(int layer),
    show_digits(int digits);
void show_head(int head, int position), show_attention(int head, int position);
void show_landing(int head, int position), show_silence(int head, int position);
void show_parameter(const char *name, int row, int column);
void show_moves(const char *name, int row, int column);
void show_value(double *value), show_users(double *value), show_nudge(double *value);
void show_local(const char *of, const char *with_respect_to), show_values(double *x, int n);
extern const char *const head_slices[];  // q_h, k_h, v_h; NULL ends it
void show_head_slice(int head, const char *name, int position);
double *watch_gradient(const char *name, int row, int column);
void show_gain(void);

// graph.c
void show_graph(double *value);
void show_depth(int depth);
void draw_if_asked(void);  // MICROGPT_GRAPH=FILE

// tour.c: the walk. notes.c asks it at every note.
bool walk_is_due(bool at_adam);
void walk_sees(const Note *note);
void walk_arrive(void);
int walk_to(int stop);
int walk_stays(void);
void show_more(void);
int walk_number(void);
int n_stops(void);

#endif
