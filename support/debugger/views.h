/* views.h: what one can ask of a run that has stopped, in the build that make microgpt-debug makes.
 *
 * notes.c takes a note of every vector while the program runs; the script `note` has read its name
 * in microgpt.c; places.c finds it again, by name or by a value. commands.c has the table of
 * commands, from which gdb's, lldb's and the guide's are made. A command asks a View; tour.c walks
 * through them.
 */
#ifndef VIEWS_H
#define VIEWS_H

#include "../run/model.h"

void watch(Run *run);

// What a debugger calls: a command as it is typed, like command("attn 1 3", 0). pc is where the
// program is, or NULL. Returns 1, and does nothing, if a VALUE is no name but an expression of C:
// then command_at() takes the pointer that it stands for. answer() says so instead.
int command(const char *line, const void *pc);
void command_at(const char *name, double *value, int n);
void answer(const char *line, const void *pc);

// In the views, LATEST is the position that gpt() was called for last; ALL means all of them.
enum { LATEST = -1, NONE = -1, ALL = -2 };

// A question: the words of a command, as the table says what they are.
typedef struct {
    const char *name;       // NAME, OP or WHAT
    const char *from, *to;  // VALUE B, if B is given
    int number[2];          // the numbers, in their order; LATEST: not given
    double *value;          // VALUE or EXPR
    const void *pc;
} Question;
typedef void View(const Question *q);

typedef enum { FORWARD, BACKWARD, GRADIENTS, MOVED } Phase;

// What the script `note` knows of microgpt.c: its functions, and its lines.
typedef struct {
    const char *name;
    void (*at)(void);
} Function;
typedef struct {
    const char *code, *comment;  // without indentation
    const char *function;        // that it is in
    int starts;                  // the line where its statement starts; 0: there is no such line
    const char *name, *meaning;  // of what the statement makes; "" if it has none
    bool of_engine;              // autograd.c, too, has a variable of this name
} Line;

// A place: the note of a call that makes values, or of a pointer that is set to some. It becomes a
// vector, which has a name, once survey() has found how many values there are.
typedef struct {
    const Line *line;           // where the statement starts
    const char *operation;      // what was called
    int layer, head, position;  // the loops that it is in; NONE: not in this one
    int outer;                  // the note of the call in gpt() that this one is part of, or NONE
    bool argument;              // of another call in the same statement
    bool pointer;               // no call: a name for a slice of another vector
    size_t first, end;          // the entries of the tape that it recorded
    size_t n_leaves;            // how many leaves it makes; 0: it is no leaf
    double *at;                 // [n] what it returned; NULL: it is still at work
    const char *name;           // found by survey(), and the rest: "" if it is no vector
    size_t n;
    const Entry *from, *to;  // NULL: it is a pointer
} Place;

typedef struct {
    Model *model;
    const Tokenizer *tokenizer;
    Run *run;
    int layer;   // the one whose heads and vectors are shown
    int digits;  // of every number shown
    int depth;   // of a graph, in operations
} Watched;
extern Watched watched;

// What Adam found when it was called.
typedef struct {
    uint64_t step;
    double *p, *g, *m, *v;  // [num_params] before it moved them; NULL: there was no such step
} Moved;

#define NOWHERE SIZE_MAX
enum { MAX_OPEN = 16 };
typedef struct {
    Place *all;  // [n]
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
    const Line *lines;          // [n_lines]
    int n_lines;
} Notes;
extern Notes notes;
bool notes_are_old(void);
void forget_notes(void);

// source.c: lines are counted from 1
const Line *source_line(int line);
const Line *statement_of(int line);
const Line *line_that_names(const char *name);
int line_of(const char *function, const char *text);
void print_statement(int line);  // the code, without its comment
void print_lines(int line);      // and with it

// places.c
bool survey(void);  // finds every vector; false: nothing to show, and said so
Phase phase(void);  // as survey() found it
bool sampling(void);
int latest_position(void);
const Moved *moved(int before);  // the latest step, or the one before it; NULL if there was none
const Place *find_place(const char *name, int position);
const Place *need_place(const char *name, int position);  // says so, if there is none
const Place *place_of(const double *value);
const Place *place_read(const Place *by, const double *operand);
const Place *operand_of(const Place *place);  // the first vector that it was made from
bool on_tape(const double *value);
bool is_parameter(const double *value);
size_t value_number(const double *value);
size_t n_numbers(void);               // all value numbers are below
double data_of(const double *value);  // its data, as it was when the tape was recorded
bool gradients_known(void);           // while backward() is under way, they are sums so far
double gradient_of(double *value);
const Entry *maker(const double *value);
int line_that_made(const Entry *entry);
const char *function_at(const void *pc);  // the one of microgpt.c; NULL: it is elsewhere
const Matrix *find_matrix(const char *name);
const Matrix *matrix_of(const double *value);

// names.c: texts are in memory that a later call uses again
const char *value_name(const double *value);
const char *place_name(const Place *place);
bool has_name(const double *value);
bool is_value_name(const char *name, const void *pc);
double *find_value(const char *name, int i, int j);
double *find_parameter(const char *name, int row, int column);
const Line *line_of_vector(const char *name);
const char *skip_prefix(const char *name, int *layer, int *head);
const char *token_text(size_t token);
size_t token_at(int position);
const char *text_at(int position);  // the text of that token

// atoms.c
typedef struct {
    const char *before, *after;  // the words around the first operand
    double value;
    double derivative[2];  // how much the value changes per small change of each operand
    double c;              // the constant, as it is written
} Atom;
Atom atom(const Entry *e);
double *second_operand(const Entry *e);                        // or NULL
bool uses(const Entry *e, const double *value);                // is it an operand, once or twice?
double local_derivative(const Entry *e, const double *value);  // the sum, if it is both
void name_atom(const Entry *e, const char *a, const char *b, char text[], size_t room);

// print.c
PRINTF_LIKE(1, 2) void print(const char *format, ...);
void number(double x);
void heading(const char *text);
void numbers(int n, ...);              // the rest of a row: n numbers
void head_of(const char *label, ...);  // a heading row: all up to a NULL
void data_and_grad(double *value);
void headings(const char *data);  // of the two
// The first rows of n vectors, each below its heading, with data and gradient.
void side_by_side(int n, const Place *const places[], const char *const names[], size_t rows);

// The views, and what they share with others.
View show_document, show_map, show_here, show_vector, show_row, show_around, show_values, show_tape;
View show_head, show_cache, show_attention, show_landing;  // attention.c
const Place *asked_of_head(const Question *q, const char *name);
extern const char *const head_slices[];  // q_h, k_h, v_h; NULL ends it
void show_head_slice(int head, const char *name, int position);
int position_looked_at(const Place *p, size_t i);
View show_top, show_draw;  // predictions.c
void find_probs(const Place *logits, const Place *probs, double *p);
void show_ranking(const double *p, const Place *logits, int n_columns,
                  const double *const column[]);
size_t rank(const double *size, size_t n, size_t best[], size_t most);
View show_parameter, show_moves, show_biggest;  // parameters.c
bool close_to(double a, double b);
View show_origin, show_users;  // origins.c
double *watch_gradient(const char *name, int row, int column);
void show_gain(void);
View show_nudge, show_silence;  // what_if.c
View show_graph;                // graph.c
// The values that a value was made from. A sum without a name in between is taken as one.
enum { MAX_TERMS = 4 };
typedef struct {
    const Entry *entry;  // NULL: a leaf
    size_t n;
    const double *terms[MAX_TERMS];  // the first of n
} Made;
Made made_from(const double *value);
void draw_if_asked(void);  // MICROGPT_GRAPH=FILE

// tour.c: the walk. watch() begins it, and notes.c asks it at every note.
void walk_begin(void);
bool walk_is_due(bool at_adam);
void walk_sees(const Place *note);
void walk_arrive(void);
int walk_to(int stop);
int walk_stays(void);
void show_more(void);
int walk_number(void);
int n_stops(void);

#endif
