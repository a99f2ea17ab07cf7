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
    size_t n_leaves;                   // how many leaves it makes: 0 if it is no leaf
    double *result;                    // NULL: it is still at work
} Note;

// Before an operation, after it, and before gpt(). A note is of the line that called it, not of the lines inside it.
static void note_operation(const Tape *tape, const char *operation, Note noted);
static double *made(double *result);
static void note_position(const Tape *tape, size_t pos_id);

// What a note finds where the function has no such variable of its own, which would hide this one.
#define NOWHERE SIZE_MAX
static const size_t pos_id = NOWHERE, li = NOWHERE, h = NOWHERE;
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wshadow"
#endif

// A macro that is named like an operation puts the two around it.
#define NOTED(tape, operation, leaves, call) made((note_operation(tape, #operation, (Note){ \
    __func__, __LINE__, pos_id, li, h, (tape)->n_lines, (tape)->n_values, leaves, NULL}), call))
#define ag_vector(tape, n) NOTED(tape, ag_vector, n, ag_vector(tape, n))
#define ag_scalar(tape, data) NOTED(tape, ag_scalar, 1, ag_scalar(tape, data))
#define ag_add(tape, ...) NOTED(tape, ag_add, 0, ag_add(tape, __VA_ARGS__))
#define ag_mul(tape, ...) NOTED(tape, ag_mul, 0, ag_mul(tape, __VA_ARGS__))
#define ag_pow(tape, ...) NOTED(tape, ag_pow, 0, ag_pow(tape, __VA_ARGS__))
#define ag_log(tape, ...) NOTED(tape, ag_log, 0, ag_log(tape, __VA_ARGS__))
#define ag_exp(tape, ...) NOTED(tape, ag_exp, 0, ag_exp(tape, __VA_ARGS__))
#define ag_relu(tape, ...) NOTED(tape, ag_relu, 0, ag_relu(tape, __VA_ARGS__))
#define ag_add_const(tape, ...) NOTED(tape, ag_add_const, 0, ag_add_const(tape, __VA_ARGS__))
#define ag_mul_const(tape, ...) NOTED(tape, ag_mul_const, 0, ag_mul_const(tape, __VA_ARGS__))
#define ag_copy(tape, ...) NOTED(tape, ag_copy, 0, ag_copy(tape, __VA_ARGS__))
#define ag_neg(tape, ...) NOTED(tape, ag_neg, 0, ag_neg(tape, __VA_ARGS__))
#define ag_sub(tape, ...) NOTED(tape, ag_sub, 0, ag_sub(tape, __VA_ARGS__))
#define ag_div(tape, ...) NOTED(tape, ag_div, 0, ag_div(tape, __VA_ARGS__))
#define ag_mul_scalar(tape, ...) NOTED(tape, ag_mul_scalar, 0, ag_mul_scalar(tape, __VA_ARGS__))
#define ag_sum(tape, ...) NOTED(tape, ag_sum, 0, ag_sum(tape, __VA_ARGS__))
#define ag_dot(tape, ...) NOTED(tape, ag_dot, 0, ag_dot(tape, __VA_ARGS__))
#define ag_row_dots(tape, ...) NOTED(tape, ag_row_dots, 0, ag_row_dots(tape, __VA_ARGS__))
#define ag_weighted_sum(tape, ...) NOTED(tape, ag_weighted_sum, 0, ag_weighted_sum(tape, __VA_ARGS__))
#define ag_linear(tape, ...) NOTED(tape, ag_linear, 0, ag_linear(tape, __VA_ARGS__))
#define ag_softmax(tape, ...) NOTED(tape, ag_softmax, 0, ag_softmax(tape, __VA_ARGS__))
#define ag_rmsnorm(tape, ...) NOTED(tape, ag_rmsnorm, 0, ag_rmsnorm(tape, __VA_ARGS__))

// The same for those that microgpt.c defines itself. Their first argument is tape, or model, where they are called;
// where they are defined it begins with the word Tape, or Model, and all stays as it is.
#define linear_into(tape, ...) IS_##tape, linear_into, (tape, __VA_ARGS__))
#define linear(tape, ...) IS_##tape, linear, (tape, __VA_ARGS__))
#define softmax(tape, ...) IS_##tape, softmax, (tape, __VA_ARGS__))
#define rmsnorm(tape, ...) IS_##tape, rmsnorm, (tape, __VA_ARGS__))
#define gpt(model, ...) IS_##model, gpt, (model, __VA_ARGS__))
#define IS_tape CALLED(0
#define IS_Tape DEFINED(0
#define IS_model GPT_CALLED(0
#define IS_Model DEFINED(0
#define CALLED(no, function, arguments) NOTED(tape, function, 0, function arguments)
#define DEFINED(no, function, arguments) function arguments
#define GPT_CALLED(no, function, arguments) (note_position(&model->tape, pos_id), function arguments)
