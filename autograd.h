/* autograd: derivatives by bookkeeping, one scalar at a time.
 *
 * A value is two numbers: its data, and its gradient, the derivative of the
 * final result with respect to that value. Every operation below computes
 * its result and records an entry on a tape: the operation, its operands,
 * its result. Calculus gives each entry a local derivative per operand: how
 * much the result changes per small change of the operand. The chain
 * rule says that local derivatives multiply along a path and add up where
 * paths meet. So backward() sets the gradient of the final result to 1 and
 * reads the tape from the last entry to the first. Each entry multiplies
 * the gradient of its result by the local derivative of each operand, and
 * adds the product to the gradient of that operand. That is all.
 *
 * A value is passed around as a pointer: *x is its data, *grad(t, x) its
 * gradient. Values made together are neighbors in memory, so a pointer to
 * the first is a vector: x[i], grad(t, x)[i]; and x + start is a slice. An
 * operation on n neighbors is n scalar operations. In gdb, p x[0]@16 shows
 * sixteen of them; in lldb, parray 16 x.
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

// A matrix of values, row after row.
typedef struct {
    char name[40];  // for people and files
    size_t rows, cols;
    double *data;  // [rows][cols]
} Matrix;

// One entry of the tape: out = op(a, b).
typedef struct {
    Op op;        // what was done
    uint32_t n;   // how many values, or rows, it loops over
    double *out;  // the result
    double *a;    // the first operand
    union {
        double *b;  // the second operand, if there is one
        Matrix *w;  // linear: the matrix
    };
    double c;                 // the constant; rmsnorm: forward's scale
    uint32_t length, stride;  // b as rows: how long, how far apart
} Entry;

// The tape: the entries, and all values, in chunks. Both grow as needed.
typedef struct {
    Entry *entries;                 // [n_entries] what was done, in order
    size_t n_entries, max_entries;  // how many; room for how many
    size_t n_computed;              // the first so many have their values
    double *chunk;  // [2 * chunk_size] new values, then their gradients
    size_t n_values, chunk_size;  // values in it; values it has room for
    double **chunks;              // [n_chunks] full ones, chunk, spare ones
    size_t n_chunks, this_chunk;  // chunk is chunks[this_chunk]
    size_t kept_entries, kept_values, kept_chunk;  // as of tape_mark()
    bool fused;                   // one entry per call, or (false) per atom
    void (*out_of_memory)(void);  // it cannot grow; must not return
    struct Lanes *lanes;  // for speed alone: see the end of this file
} Tape;

// Starts an empty tape, fused, for vectors of up to max_vector values.
bool tape_init(Tape *t, size_t max_vector);  // false: not enough memory
void tape_free(Tape *t);
void tape_mark(Tape *t);  // keep what was made so far
void tape_drop(Tape *t);  // forget everything made after the mark

// Walks back to the mark. Gradients of values made after it start at 0;
// older values keep theirs, and this adds to them. An entry that does not
// lead to the result adds 0 times its derivative: NaN if that is infinite.
void backward(Tape *t, double *result);

// The gradient of a value, or of the first of several neighbors.
static inline double *grad(const Tape *t, double *x)
{
    return x + t->chunk_size;
}

// Leaves: values that no operation makes. Here and below, 1 <= n < 2^32.
double *ag_vector(Tape *t, size_t n);     // n neighbors, to be filled in
double *ag_scalar(Tape *t, double data);  // one value

// Operations return new values, but ag_sum() of one value may return it.
// With `out`, the result goes there: into an ag_vector(), each value once.
// The atoms, on n neighbors. Result i is:
double *ag_add(Tape *t, double *a, double *b, size_t n);  // a[i] + b[i]
double *ag_mul(Tape *t, double *a, double *b, size_t n);  // a[i] * b[i]
double *ag_pow(Tape *t, double *a, double c, size_t n);   // a[i]^c
double *ag_log(Tape *t, double *a, size_t n);             // log a[i]
double *ag_exp(Tape *t, double *a, size_t n);             // e^a[i]
double *ag_relu(Tape *t, double *a, size_t n);            // max(a[i], 0)
double *ag_add_const(Tape *t, double *a, double c, size_t n);  // a[i] + c
double *ag_mul_const(Tape *t, double *a, double c, size_t n);  // a[i] * c
double *ag_copy(Tape *t, double *out, double *a, size_t n);  // a[i], to out

// Made of the atoms.
double *ag_neg(Tape *t, double *a, size_t n);             // -a[i]
double *ag_sub(Tape *t, double *a, double *b, size_t n);  // a[i] - b[i]
double *ag_div(Tape *t, double *a, double *b, size_t n);  // a[i] / b[i]
double *ag_sum(Tape *t, double *a, size_t n);  // a[0] + ... + a[n-1]
// a[i] * s, where s is one value
double *ag_mul_scalar(Tape *t, double *a, double *s, size_t n);
// a[0]*b[0] + ... + a[n-1]*b[n-1], to out
double *ag_dot(Tape *t, double *out, double *a, double *b, size_t n);
// out[i] = sum_j query[j] * keys[i*stride + j] * scale, over j < length
double *ag_row_dots(Tape *t, double *query, double *keys, size_t n_keys,
                    size_t stride, size_t length, double scale);
// out[j] = sum_i weights[i] * rows[i*stride + j], for each j < length
double *ag_weighted_sum(Tape *t, double *weights, double *rows,
                        size_t n_rows, size_t stride, size_t length);

double ag_max(Tape *t, const double *a, size_t n);  // a number: no gradient

// One entry each, for a fused tape only. linear(), softmax() and rmsnorm()
// in microgpt.c define them with atoms.

// x dot row i of w, to out[i]
double *ag_linear(Tape *t, double *out, double *x, Matrix *w);
double *ag_softmax(Tape *t, double *a, size_t n);  // e^a[i] / sum_k e^a[k]
#define RMSNORM_EPS 1e-5
// a[i] / sqrt(mean square + RMSNORM_EPS)
double *ag_rmsnorm(Tape *t, double *a, size_t n);

// One row per Op: its name, how it computes out, how gradients flow back.
typedef struct {
    const char *name;
    void (*forward)(Entry *e);
    void (*backward)(const Tape *t, const Entry *e);
} OpRules;
extern const OpRules operations[N_OPS];

/* ------------------------------------------------------------------------
 * For speed alone. A program that repeats the same operations on many
 * inputs calls tape_lane() before each input; the entries of one input are
 * a lane. With -DAUTOGRAD_LANES, which make sets, lanes of a fused tape are
 * recorded first and computed later, side by side: entry 1 of every lane,
 * entry 2 of every lane, and so on. So entry 3 of a lane may use entries 1
 * and 2 of any lane, every leaf, and results from before the first lane,
 * but not from between lanes. Values are ready after tape_compute(), which
 * backward() calls. In every other build they are ready at once.
 */
void tape_lane(Tape *t);       // starts the next lane
void tape_end_lanes(Tape *t);  // ends the last one
void tape_compute(Tape *t);    // computes all that is only recorded

#endif
