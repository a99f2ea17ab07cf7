/* names.h: how the debugger's views come to know the values of gpt() by name.
 *
 * make microgpt-debug compiles microgpt.c with this header in front of it, and with one line more
 * for each function that microgpt.c or autograd.h declares as  double *NAME(Tape *...):
 *
 *     #define NAME(first, ...) CHOOSE(first, CALLED, )(NOTED, NAME, first, __VA_ARGS__)
 *
 * A call of such a function then leaves a note: in which line of the source it is, at which
 * position, in which layer and head, what it has recorded on the tape, and what it returns. The
 * name of that result is in the source, where views.c reads it. So the algorithm hands out no
 * names, and a line that is new in gpt() has its name at once, also where it calls an operation
 * that is new.
 */
#define _XOPEN_SOURCE 700  // as microgpt.c has it: the system's headers are read here
#include "support/model.h"

// Before and after a call. A note belongs to the line that calls, not to the lines inside.
void note_begin(const Tape *tape, const char *operation, const char *function, int line,
                size_t n_leaves, const size_t loops[3]);
double *note_end(double *result);
void note_position(const Tape *tape, size_t position);
void note_backward(const Tape *tape, double *result);
void note_end_of_backward(void);
void note_adam(double lr, double beta1, double beta2, double weight_decay);

// The loops that a call is in: pos_id, li and h, or NOWHERE. Where a function has no such variable,
// the name stands for a function, declared here and nowhere defined: no debugger finds it.
#define NOWHERE SIZE_MAX
void pos_id(void), li(void), h(void);
#define LOOPS                                                                                      \
    (const size_t[]) { LOOP(pos_id), LOOP(li), LOOP(h) }
// clang-format off
#define LOOP(i) _Generic(i, int: (size_t)(i), unsigned: (size_t)(i), \
    long: (size_t)(i), unsigned long: (size_t)(i), \
    long long: (size_t)(i), unsigned long long: (size_t)(i), default: NOWHERE)

// A macro that is named like a function sees its definition, too, and must leave that alone. It
// tells the two apart by the first argument: in a definition it begins with a type. Here the name
// of that type is a macro. It stands for the type, and, read once more as an argument below, for
// the words that make DEFINED of a call.
#define NOTHING()
#define Tape __typeof NOTHING() (Tape)
#define Model __typeof NOTHING() (Model)
#define __typeof(type) , DEFINED, type
#define CHOOSE(...) SECOND(__VA_ARGS__)
#define SECOND(first, second, ...) second
#define DEFINED(how, name, ...) DEFINED_AS(name, __VA_ARGS__)
#define DEFINED_AS(name, no, word, ...) name(__VA_ARGS__)
#define CALLED(how, name, ...) how(name, __VA_ARGS__)
#define NOTED(name, tape, ...) WITH_NOTE(tape, name, 0, name(tape, __VA_ARGS__))
#define WITH_NOTE(tape, name, leaves, call) \
    note_end((note_begin(tape, #name, __func__, __LINE__, leaves, LOOPS), call))

// Leaves, and what is no operation.
#define ag_vector(tape, n) WITH_NOTE(tape, ag_vector, n, ag_vector(tape, n))
#define ag_scalar(tape, data) WITH_NOTE(tape, ag_scalar, 1, ag_scalar(tape, data))
#define gpt(first, ...) CHOOSE(first, CALLED, )(GPT_CALL, gpt, first, __VA_ARGS__)
#define GPT_CALL(name, model, token, position) \
    (note_position(&(model)->tape, position), name(model, token, position))
#define backward(tape, result) \
    (note_backward(tape, result), backward(tape, result), note_end_of_backward())
#define adam(first, ...) CHOOSE(first, CALLED, )(ADAM_CALL, adam, first, __VA_ARGS__)
#define ADAM_CALL(name, model, ...) (note_adam(__VA_ARGS__), name(model, __VA_ARGS__))
// clang-format on
