/* autograd: derivatives by bookkeeping, one scalar at a time.
 *
 * A value is one number, its data, with a second number beside it, its gradient: the derivative of the final result
 * with respect to that value. Every operation below computes its data at once (only between tape_strand() and
 * tape_join() a little later) and writes one line on a tape: what was done, to which values, giving which. Calculus
 * says how a small change of an operand changes the result of one line (the local derivative). The chain rule says that
 * along a path local derivatives multiply, and where paths meet they add. So backward() sets the gradient of the result
 * to 1 and reads the tape from the last line to the first; each line adds to the gradient of each operand the gradient
 * of what it made times the local derivative. That is all.
 *
 * A value is held by a pointer to its data: *x is the number, *grad(t, x) its gradient. Values made together are
 * neighbours, so a vector is such a pointer too (x[i], grad(t, x)[i]) and a slice of it is x + start. An operation on n
 * neighbours is n scalar operations. In a debugger, x[0]@16 and grad(t, x)[0]@16 show a vector of sixteen.
 */
#ifndef AUTOGRAD_H
#define AUTOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    // the atoms: everything else is made of these
    OP_ADD, OP_MUL, OP_POW, OP_LOG, OP_EXP, OP_RELU, OP_PLUS, OP_TIMES,
    // many atoms written as one line
    OP_SCALE, OP_SUM, OP_DOT, OP_DOTS, OP_WEIGHTED_SUM, OP_LINEAR, OP_SOFTMAX, OP_RMSNORM,
    N_OPS
} Op;

extern const char *const op_names[N_OPS];

// A matrix of values, row after row. The name is for people and files.
typedef struct {
    char name[40];
    size_t rows, cols;
    double *data;        // [rows][cols]
} Matrix;

// One line of the tape.
typedef struct {
    Op op;               // what was done
    uint32_t n;          // to how many values, or rows of values, at once
    double *out;         // what it made
    double *a;           // the first operand
    union {
        double *b;       // the second operand, if there is one
        Matrix *w;       // linear: the matrix
    };
    double c;            // the constant, if there is one
    uint32_t m, stride;  // where b is rows: their length, and how far it is from one to the next
} Line;

// The tape, with the memory of all values. It is taken once, at the start, so that no operation can fail.
typedef struct {
    double *data;        // [2][max_values] the data of every value, then the gradient of every value
    size_t n_values, max_values;
    Line *lines;         // [max_lines] what was done, in order
    size_t n_lines, max_lines;
    size_t first_value, first_line;   // the mark: what was made before it outlives tape_drop()
    size_t n_strands, strand_start, strand_length;   // strands that are alike, one behind the other
    bool uneven;         // they are not alike
    bool deferred;       // their lines are written, but not yet computed
    bool recording;      // off: compute, but write no lines
    bool atomic;         // on: every single + and * is a line of its own
    Line unrecorded;     // where a line goes that is not kept
    void *memory;
} Tape;

bool tape_init(Tape *t, size_t max_values, size_t max_lines);   // false: not enough memory
void tape_free(Tape *t);
void tape_mark(Tape *t);                    // keep what was made so far (the parameters)
void tape_drop(Tape *t);                    // forget, in one move, everything made after the mark
void backward(Tape *t, double *result);     // the gradients; of values made before the mark, added to what was there

// For speed alone, where the same is done to many inputs: tape_strand() before each of them, tape_join() after the
// last. In between lines are written, but not computed, so nothing may be read yet. Then line 1 of all strands is
// computed, line 2 of all, and so on: of other strands line k may use only what was made by their lines before k, or by
// line k of the strand before it. Strands that turn out not to be alike are computed in plain order.
void tape_strand(Tape *t);
void tape_join(Tape *t);

// The gradient of a value, or of the first of several neighbours.
static inline double *grad(const Tape *t, double *x)
{
    return x + t->max_values;
}

// Leaves: values that no operation made. More than the tape has room for ends the program. In all of this n is at
// least 1.
double *v_new(Tape *t, size_t n);           // n neighbours, to be filled in
double *v_value(Tape *t, double data);      // one value

// The atoms, on n neighbours. The i-th result is
double *v_add(Tape *t, double *a, double *b, size_t n);      // a[i] + b[i]
double *v_mul(Tape *t, double *a, double *b, size_t n);      // a[i] * b[i]
double *v_pow(Tape *t, double *a, double c, size_t n);       // a[i] to the power c
double *v_log(Tape *t, double *a, size_t n);                 // the natural logarithm of a[i]
double *v_exp(Tape *t, double *a, size_t n);                 // e to the power a[i]
double *v_relu(Tape *t, double *a, size_t n);                // a[i] if it is positive, else 0
double *v_plus(Tape *t, double *a, double c, size_t n);      // a[i] + c, where c is not a value but a constant
double *v_times(Tape *t, double *a, double c, size_t n);     // a[i] * c

// Made of the atoms.
double *v_neg(Tape *t, double *a, size_t n);                 // -a[i], as a[i] * -1
double *v_sub(Tape *t, double *a, double *b, size_t n);      // a[i] - b[i], as a[i] + -b[i]
double *v_div(Tape *t, double *a, double *b, size_t n);      // a[i] / b[i], as a[i] * b[i] to the power -1

// Many atoms in one line. Each is defined by the loop of atoms that stands beside it in autograd.c.
double *v_scale(Tape *t, double *a, double *s, size_t n);    // a[i] * s, where s is one value
double *v_sum(Tape *t, double *a, size_t n);                 // a[0] + a[1] + ... + a[n-1]
double *v_dot(Tape *t, double *a, double *b, size_t n);      // a[0]*b[0] + a[1]*b[1] + ... + a[n-1]*b[n-1]
double *v_softmax(Tape *t, double *a, size_t n);             // e^a[i] / (e^a[0] + ... + e^a[n-1])
double *v_rmsnorm(Tape *t, double *a, double eps, size_t n); // a[i] / sqrt(mean of the squares + eps)

// Sums of products over n rows of length m: b[0..m), b[stride..stride+m), ...
double *v_dots(Tape *t, double *a, double *b, size_t n, size_t stride, size_t m, double c);
                                                             // the i-th result: (a dot row i) * c
// These two put their results where they are told, which may be a slice of a larger vector; they return it.
double *v_weighted_sum(Tape *t, double *out, double *a, double *b, size_t n, size_t stride, size_t m);
                                                             // a[0] * row 0 + a[1] * row 1 + ...: m results
double *v_linear(Tape *t, double *out, double *x, Matrix *w);   // the i-th result: x dot row i of w, which is kept
                                                                // as a pointer, until backward()

// One step of Adam for n parameters p with gradients g: m and v are the running means of the gradient and of its
// square, step counts from 0. The gradients are set to zero for the next pass.
void adam(double *p, double *g, double *m, double *v, size_t n, uint64_t step, double lr, double beta1, double beta2,
          double eps);

#endif
