/* autograd: derivatives by bookkeeping, one scalar at a time.
 *
 * A value is one number, its data, with a second number beside it, its gradient: the derivative of the final result
 * with respect to that value. Every operation below computes its data and writes one line on a tape: what was done, to
 * which values, giving which. Calculus says how a small change of an operand changes the result of one line (the local
 * derivative). The chain rule says that along a path local derivatives multiply, and where paths meet they add. So
 * backward() sets the gradient of the result to 1 and reads the tape from the last line to the first; each line adds
 * to the gradient of each operand the gradient of its output times the local derivative. That is all.
 *
 * A value is held by a pointer to its data: *x is the number, *grad(t, x) its gradient. Values made together are
 * neighbours, so a vector is such a pointer too (x[i], grad(t, x)[i]) and a slice of it is x + start. An operation on
 * n neighbours is n scalar operations. In gdb, p x[0]@16 and p grad(t, x)[0]@16 show a vector of sixteen; in lldb,
 * parray 16 x.
 */
#ifndef AUTOGRAD_H
#define AUTOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    // the atoms: everything else is made of these
    OP_ADD, OP_MUL, OP_POW, OP_LOG, OP_EXP, OP_RELU, OP_ADD_CONST, OP_MUL_CONST, OP_COPY,
    // many atoms as one line
    OP_MUL_SCALAR, OP_SUM, OP_DOT, OP_ROW_DOTS, OP_WEIGHTED_SUM, OP_LINEAR, OP_SOFTMAX, OP_RMSNORM,
    N_OPS
} Op;

// A matrix of values, row after row. The name is for people and files.
typedef struct {
    char name[40];
    size_t rows, cols;
    double *data;        // [rows][cols]
} Matrix;

// One line of the tape: out = op(a, b).
typedef struct {
    Op op;               // what was done
    uint32_t n;          // to how many values, or rows of values, at once
    double *out;         // the result
    double *a;           // the first operand
    union {
        double *b;       // the second operand, if there is one
        Matrix *w;       // linear: the matrix
    };
    double c;            // the constant, if there is one
    uint32_t length, stride;   // where b is rows: how long one is, and how far it is from one to the next
} Line;

// The tape, with the memory of all values. It is taken once, at the start, so that no operation can fail.
typedef struct {
    double *data;        // [2][max_values] the data of every value, then the gradient of every value
    size_t n_values, max_values;
    Line *lines;         // [max_lines] what was done, in order
    size_t n_lines, max_lines;
    size_t first_value, first_line;   // the mark: what was made before it outlives tape_drop()
    bool fused;          // one line for many atoms; if not, each + and * is a line, for people who want to see it
    bool counting;       // nothing is stored or computed: only counted, to find out how much memory is needed
    void *memory;        // what data lies in

    // For speed alone: see tape_lane() below.
    Line **lanes;        // [max_lanes] where each lane begins
    size_t n_lanes, max_lanes, lane_length;
    bool in_lane, ragged, pending;    // a lane is being written; lanes are not alike; lines are not yet computed
} Tape;

// Memory for so many values, lines and lanes. false: there is not enough. All zero: a tape that only counts.
bool tape_init(Tape *t, size_t max_values, size_t max_lines, size_t max_lanes);
void tape_free(Tape *t);
void tape_mark(Tape *t);                    // keep what was made so far (the parameters)
void tape_drop(Tape *t);                    // forget, in one move, everything made after the mark
void backward(Tape *t, double *result);     // all gradients; those of values made before the mark accumulate

// The gradient of a value, or of the first of several neighbours.
static inline double *grad(const Tape *t, double *x)
{
    return x + t->max_values;
}

// Leaves: values that no operation made. A tape without room aborts the program. n is at least 1 everywhere.
double *ag_vector(Tape *t, size_t n);       // n neighbours, to be filled in
double *ag_scalar(Tape *t, double data);    // one value

// Not a value but a plain number: the largest of n. What is still pending is computed first.
double ag_max(Tape *t, const double *a, size_t n);

// The atoms, on n neighbours. The i-th result is
double *ag_add(Tape *t, double *a, double *b, size_t n);          // a[i] + b[i]
double *ag_mul(Tape *t, double *a, double *b, size_t n);          // a[i] * b[i]
double *ag_pow(Tape *t, double *a, double c, size_t n);           // a[i] to the power c
double *ag_log(Tape *t, double *a, size_t n);                     // the natural logarithm of a[i]
double *ag_exp(Tape *t, double *a, size_t n);                     // e to the power a[i]
double *ag_relu(Tape *t, double *a, size_t n);                    // a[i] if it is positive, else 0
double *ag_add_const(Tape *t, double *a, double c, size_t n);     // a[i] + c, where c is not a value but a constant
double *ag_mul_const(Tape *t, double *a, double c, size_t n);     // a[i] * c
double *ag_copy(Tape *t, double *out, double *a, size_t n);       // a[i], put into out[i]: a place in another vector

// Made of the atoms.
double *ag_neg(Tape *t, double *a, size_t n);                     // -a[i], as a[i] * -1
double *ag_sub(Tape *t, double *a, double *b, size_t n);          // a[i] - b[i], as a[i] + -b[i]
double *ag_div(Tape *t, double *a, double *b, size_t n);          // a[i] / b[i], as a[i] * b[i] to the power -1
double *ag_mul_scalar(Tape *t, double *a, double *s, size_t n);   // a[i] * s, where s is one value
double *ag_sum(Tape *t, double *a, size_t n);                     // a[0] + a[1] + ... + a[n-1]
double *ag_dot(Tape *t, double *out, double *a, double *b, size_t n);   // a[0]*b[0] + ... + a[n-1]*b[n-1], into out
double *ag_row_dots(Tape *t, double *query, double *keys, size_t n_keys, size_t stride, size_t length, double scale);
        // (query dot key i) * scale, where key i is the `length` values from keys + i * stride on
double *ag_weighted_sum(Tape *t, double *weights, double *rows, size_t n_rows, size_t stride, size_t length);
        // weights[0] * row 0 + weights[1] * row 1 + ..., element by element

// One line in place of a whole definition. A program states what it means by atoms, and where the tape is fused, this
// line stands in for it: microgpt.c does so in linear(), softmax() and rmsnorm().
double *ag_linear(Tape *t, double *out, double *x, Matrix *w);    // x dot row i of w, into out[i]; w is not copied
double *ag_softmax(Tape *t, double *a, size_t n);                 // e^a[i] / (e^a[0] + ... + e^a[n-1])
double *ag_rmsnorm(Tape *t, double *a, double eps, size_t n);     // a[i] / sqrt(mean of the squares + eps)

// What is behind a line's op: a name, what it computes, how its gradients flow back, how many values it makes.
typedef enum { MAKES_N, MAKES_ONE, MAKES_LENGTH } Makes;   // the line's n, one, its length
typedef struct {
    const char *name;
    void (*forward)(Line *l);
    void (*backward)(const Tape *t, const Line *l);
    Makes makes;
} Operation;

extern const Operation operations[N_OPS];

/* ------------------------------------------------------------------------------------------------------------------
 * The rest is here for speed alone. Without it the same is computed, only slower.
 *
 * To do the same to many inputs, call tape_lane() before each of them and tape_end_lanes() after the last. In builds
 * with optimization, lines are then written but not yet computed. tape_compute(), which backward() calls, takes all
 * lanes side by side: line 1 of every lane, line 2 of every lane, and so on; then what was written outside the lanes.
 * So line k of a lane may use, of other lanes, only what lines before k made, and nothing that is made outside the
 * lanes after the first of them. Lanes that are not alike are computed in plain order. What tape_compute() has taken
 * side by side is one group: until tape_mark() or tape_drop(), tape_lane() then does nothing.
 */
void tape_lane(Tape *t);
void tape_end_lanes(Tape *t);
void tape_compute(Tape *t);

// A step of Adam for the first of n parameters p with gradients g, as adam() in microgpt.c defines it; the gradients
// are set to zero. Returns how many it has moved: perhaps none, the rest being left to the definition.
size_t ag_adam(double *p, double *g, double *m, double *v, size_t n, double lr, double beta1, double beta2, double eps,
               double correct1, double correct2);

#if defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__
#error "-ffast-math, which is a part of -Ofast, drops the checks for numbers that are not finite: build without it"
#endif

#endif
