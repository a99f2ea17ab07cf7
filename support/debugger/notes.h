/* notes.h: how the debugger knows the values of gpt() by name.
 *
 * The debugging build compiles a copy of microgpt.c in which the script `note` has put a macro of
 * this file around each call of a function that makes values: a call reads `name(tape, `, a
 * definition `name(Tape *`. A note says in which line of the source the call is, in which of the
 * loops, what it recorded on the tape, and what it returned. The line gives that result its name,
 * so that a line or an operation that is new has its name at once.
 */
#define _XOPEN_SOURCE 700  // as microgpt.c has it: the system's headers are read here
#include "views.h"

void note_begin(const Tape *tape, const char *operation, int line, const size_t loops[3]);
double *note_end(double *result);
double *note_pointer(int line, const size_t loops[3], double *to);
double *note_leaves(double *result, size_t n);
void note_position(const Tape *tape, size_t position);
void note_backward(const Tape *tape, double *result);
void note_end_of_backward(void);
void note_adam(void);
void note_choice(void);
void note_source(const Function functions[], const Line lines[]);
extern const Function microgpt_functions[];
extern const Line microgpt_lines[];

// The loops that a call is in: pos_id, li and h, or NOWHERE. Where a function has no such variable,
// the name stands for a function, declared here and nowhere defined: no debugger finds it.
void pos_id(void), li(void), h(void);
// clang-format off
#define LOOP(i) _Generic(i, int: (size_t)(i), unsigned: (size_t)(i), long: (size_t)(i), \
    unsigned long: (size_t)(i), long long: (size_t)(i), unsigned long long: (size_t)(i), default: NOWHERE)
// clang-format on
#define LOOPS                                                                                      \
    (const size_t[]) { LOOP(pos_id), LOOP(li), LOOP(h) }

#define NOTE(name, tape, ...)                                                                      \
    note_end((note_begin(tape, #name, __LINE__, LOOPS), name(tape, __VA_ARGS__)))
#define LEAVES(tape, n) note_leaves(NOTE(ag_vector, tape, n), n)
#define POINTER(to) note_pointer(__LINE__, LOOPS, to)
#define GPT(model, token, position)                                                                \
    (note_position(&(model)->tape, position), gpt(model, token, position))
#define BACKWARD(tape, result)                                                                     \
    (note_backward(tape, result), backward(tape, result), note_end_of_backward())
