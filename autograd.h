/* autograd: derivatives by bookkeeping, one scalar at a time.
 *
 * A value is a number, its data, with a second number beside it, its
 * gradient: the derivative of the final result with respect to that value.
 * Every operation below computes its result and records one entry on a
 * tape: what was done, to which values, giving which. Calculus says how a
 * small change of an operand changes the result of one entry: the local
 * derivative. The chain rule says that local derivatives multiply along a
 * path and add up where paths meet. So backward() sets the gradient of the
 * result to 1 and reads the tape from the last entry to the first; each
 * entry adds to the gradient of each operand the gradient of its result
 * times the local derivative. That is all.
 *
 * A pointer to its data stands for a value: *x is the number, *grad(t, x)
 * its gradient. Values made together are neighbors, so a vector is such a
 * pointer, too: x[i], grad(t, x)[i]; and x + start is a slice of it. An
 * operation on n neighbors is n scalar operations. In gdb, p x[0]@16 and
 * p grad(t, x)[0]@16 show a vector of sixteen; in lldb, parray 16 x.
 */
#ifndef AUTOGRAD_H
#define AUTOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    // the atoms: everything else is made of these
    OP_ADD,
    OP_MUL,
    OP_POW,
    OP_LOG,
    OP_EXP,
    OP_RELU,
    OP_ADD_CONST,
    OP_MUL_CONST,
    OP_COPY,
    // many atoms as one entry
    OP_MUL_SCALAR,
    OP_SUM,
    OP_DOT,
    OP_ROW_DOTS,
    OP_WEIGHTED_SUM,
    OP_LINEAR,
    OP_SOFTMAX,
    OP_RMSNORM,
    N_OPS
} Op;

// A matrix of values, row after row. The name is for people and files.
typedef struct {
    char name[40];
    size_t rows, cols;
    double *data;  // [rows][cols]
} Matrix;

// One entry of the tape: out = op(a, b).
typedef struct {
    Op op;        // what was done
    uint32_t n;   // to how many values, or rows of values
    double *out;  // the result
    double *a;    // the first operand
    union {
        double *b;  // the second operand, if there is one
        Matrix *w;  // linear: the matrix
    };
    double c;                 // the constant, if there is one
    uint32_t length, stride;  // b as rows: values in one, from one to next
} Entry;

// The tape: the entries, and the memory of all values. Both grow as needed.
typedef struct {
    Entry *entries;  // [n_entries] what was done, in order
    size_t n_entries, n_computed, max_entries;  // recorded, computed, room
    double *data;  // [chunk_size] values; their gradients come next
    size_t n_values, chunk_size;  // values in use in it; its room
    double **chunks;  // [n_chunks] full ones, this one, spare ones
    size_t n_chunks, this_chunk;
    size_t kept_entries, kept_values, kept_chunk;  // by tape_mark()
    bool fused;               // record a dot, a sum, ... as one entry?
    void (*no_memory)(void);  // called when it cannot grow; never returns
    struct Lanes *lanes;      // for speed alone: see the end of this page
} Tape;

bool tape_init(Tape *t, size_t chunk_size);  // false: not enough memory
void tape_free(Tape *t);
void tape_mark(Tape *t);  // keep what was made so far
void tape_drop(Tape *t);  // forget everything made after the mark

// Finds the gradients of a result: sets those of values made after the
// mark, adds to those of values made before it. An entry without a part in
// the result adds 0 times its derivative: NaN, if that is infinite.
void backward(Tape *t, double *result);

// The gradient of a value, or of the first of several neighbors.
static inline double *grad(const Tape *t, double *x)
{
    return x + t->chunk_size;
}

// Leaves: values that no operation makes. n is at least 1 throughout; here
// at most the chunk_size of tape_init().
double *ag_vector(Tape *t, size_t n);     // n neighbors, to be filled in
double *ag_scalar(Tape *t, double data);  // one value

// An operation makes new values. Where it takes `out`, the result goes
// there, into values of ag_vector(), each of which is written only once.

// The atoms, on n neighbors. The i-th result is
double *ag_add(Tape *t, double *a, double *b, size_t n);  // a[i] + b[i]
double *ag_mul(Tape *t, double *a, double *b, size_t n);  // a[i] * b[i]
double *ag_pow(Tape *t, double *a, double c, size_t n);   // a[i]^c
double *ag_log(Tape *t, double *a, size_t n);             // log a[i]
double *ag_exp(Tape *t, double *a, size_t n);             // e^a[i]
double *ag_relu(Tape *t, double *a, size_t n);            // max(a[i], 0)
double *ag_add_const(Tape *t, double *a, double c, size_t n);  // a[i] + c
double *ag_mul_const(Tape *t, double *a, double c, size_t n);  // a[i] * c
double *ag_copy(Tape *t, double *out, double *a, size_t n);  // a[i], in out

// Made of the atoms.
double *ag_neg(Tape *t, double *a, size_t n);             // -a[i]
double *ag_sub(Tape *t, double *a, double *b, size_t n);  // a[i] - b[i]
double *ag_div(Tape *t, double *a, double *b, size_t n);  // a[i] / b[i]
double *ag_sum(Tape *t, double *a, size_t n);  // a[0] + ... + a[n-1]
// a[i] * s, where s is one value
double *ag_mul_scalar(Tape *t, double *a, double *s, size_t n);
// a[0]*b[0] + ... + a[n-1]*b[n-1], put into out
double *ag_dot(Tape *t, double *out, double *a, double *b, size_t n);
// sum_j query[j] * keys[i*stride + j] * scale, j < length
double *ag_row_dots(Tape *t, double *query, double *keys, size_t n_keys,
                    size_t stride, size_t length, double scale);
// sum_i weights[i] * rows[i*stride + j], for each j < length
double *ag_weighted_sum(Tape *t, double *weights, double *rows,
                        size_t n_rows, size_t stride, size_t length);

double ag_max(Tape *t, const double *a, size_t n);  // a number, not a value

// One entry for a whole definition: microgpt.c defines linear(), softmax()
// and rmsnorm() by atoms; on a fused tape, these stand in.

// x dot row i of w, into out[i]
double *ag_linear(Tape *t, double *out, double *x, Matrix *w);
// e^a[i] / (e^a[0] + ... + e^a[n-1])
double *ag_softmax(Tape *t, double *a, size_t n);
// a[i] / sqrt(mean of the squares + eps)
double *ag_rmsnorm(Tape *t, double *a, double eps, size_t n);

// What is behind an op: its name, its value, how gradients flow back.
typedef struct {
    const char *name;
    void (*forward)(Entry *e);
    void (*backward)(const Tape *t, const Entry *e);
} Operation;
extern const Operation operations[N_OPS];

/* ------------------------------------------------------------------------
 * For speed alone: without it the same is computed, only slower. A program
 * that does the same to many inputs calls tape_lane() before each of them;
 * the entries of one input are a lane. Built with -DAUTOGRAD_LANES, as make
 * does, lanes are recorded first and computed later, side by side: entry 1
 * of each, entry 2 of each, and so on. Entry k of a lane may use what
 * entries before k of other lanes made, and nothing made outside the lanes
 * after the first of them. Numbers are there after tape_compute(), which
 * backward() calls. In every other build a number is there at once.
 */
void tape_lane(Tape *t);
void tape_end_lanes(Tape *t);
void tape_compute(Tape *t);

#endif
