/* How the debugger's views come to know the values of gpt() by name. Only the build that `make debug` makes has this.
 *
 * Each operation called in gpt(), or around it, leaves a note: in which line of the source it was called, at which
 * position, in which layer and head, and how long the tape was then. What the tape has gained by the next note is what
 * that line of the source made. Its name is in the source, where views.c reads it. So the algorithm hands out no names,
 * and a line that is new in gpt() has its name at once.
 */
#include "../../autograd.h"

typedef struct {
    const char *function;
    int line;                          // of the source
    size_t pos_id, li, h;              // NOWHERE: it is in no such loop
    size_t n_lines, n_values;          // of the tape, before it
} Note;

// Before an operation, after it, and before gpt().
static void note(const Tape *tape, const char *function, int line, size_t pos_id, size_t li, size_t h);
static double *made(double *result);
static void note_position(const Tape *tape, size_t pos_id);

// What a note finds where the function has no such variable of its own, which would hide this one.
#define NOWHERE SIZE_MAX
static const size_t pos_id = NOWHERE, li = NOWHERE, h = NOWHERE;
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wshadow"
#endif

// A macro that is named like an operation puts the two around it.
#define NOTED(tape, call) made((note(tape, __func__, __LINE__, pos_id, li, h), call))
#define v_new(tape, ...) NOTED(tape, v_new(tape, __VA_ARGS__))
#define v_value(tape, ...) NOTED(tape, v_value(tape, __VA_ARGS__))
#define v_add(tape, ...) NOTED(tape, v_add(tape, __VA_ARGS__))
#define v_mul(tape, ...) NOTED(tape, v_mul(tape, __VA_ARGS__))
#define v_pow(tape, ...) NOTED(tape, v_pow(tape, __VA_ARGS__))
#define v_log(tape, ...) NOTED(tape, v_log(tape, __VA_ARGS__))
#define v_exp(tape, ...) NOTED(tape, v_exp(tape, __VA_ARGS__))
#define v_relu(tape, ...) NOTED(tape, v_relu(tape, __VA_ARGS__))
#define v_plus(tape, ...) NOTED(tape, v_plus(tape, __VA_ARGS__))
#define v_times(tape, ...) NOTED(tape, v_times(tape, __VA_ARGS__))
#define v_neg(tape, ...) NOTED(tape, v_neg(tape, __VA_ARGS__))
#define v_sub(tape, ...) NOTED(tape, v_sub(tape, __VA_ARGS__))
#define v_div(tape, ...) NOTED(tape, v_div(tape, __VA_ARGS__))
#define v_scale(tape, ...) NOTED(tape, v_scale(tape, __VA_ARGS__))
#define v_sum(tape, ...) NOTED(tape, v_sum(tape, __VA_ARGS__))
#define v_dot(tape, ...) NOTED(tape, v_dot(tape, __VA_ARGS__))
#define v_dots(tape, ...) NOTED(tape, v_dots(tape, __VA_ARGS__))
#define v_weighted_sum(tape, ...) NOTED(tape, v_weighted_sum(tape, __VA_ARGS__))
#define v_linear(tape, ...) NOTED(tape, v_linear(tape, __VA_ARGS__))

// The same for those that microgpt.c defines itself. Their first argument is tape, or model, where they are called; where
// they are defined it begins with the word Tape, or Model, and all stays as it is.
#define linear(tape, ...) IS_##tape, linear, (tape, __VA_ARGS__))
#define softmax(tape, ...) IS_##tape, softmax, (tape, __VA_ARGS__))
#define rmsnorm(tape, ...) IS_##tape, rmsnorm, (tape, __VA_ARGS__))
#define gpt(model, ...) IS_##model, gpt, (model, __VA_ARGS__))
#define IS_tape CALLED(0
#define IS_Tape DEFINED(0
#define IS_model GPT_CALLED(0
#define IS_Model DEFINED(0
#define CALLED(no, function, arguments) NOTED(tape, function arguments)
#define DEFINED(no, function, arguments) function arguments
#define GPT_CALLED(no, function, arguments) (note_position(&model->tape, pos_id), function arguments)
