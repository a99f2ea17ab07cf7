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
 *
 * A scalar tape records every single + and * as an entry. A fused tape
 * records one entry for a whole call, say a dot product; it computes what
 * the atoms would, up to rounding. This header and autograd.c are a library
 * by themselves: cc program.c autograd.c -lm.
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
    Op op;                    // what was done
    uint32_t n;               // the count of values, or rows, it loops over
    double *out;              // the result
    double *a;                // the first operand
    double *b;                // the second operand, or NULL
    double c;                 // the constant; rmsnorm: forward's scale
    uint32_t length, stride;  // b as n rows: how long, how far apart
} Entry;

// The tape: the entries, and all values, in chunks. Both grow as needed.
typedef struct Tape {
    Entry *entries;                 // [n_entries] what was done, in order
    size_t n_entries, max_entries;  // count; capacity
    double *chunk;  // [2 * chunk_size] new values, then their gradients
    size_t n_values, chunk_size;  // count of values in it; capacity
    double **chunks;              // [n_chunks] full ones, chunk, spare ones
    size_t n_chunks, this_chunk;  // chunk is chunks[this_chunk]
    size_t kept_entries, kept_values, kept_chunk;  // as of tape_mark()
    uint64_t fused;  // bit op: a call of op is one entry; 0: a scalar tape
    void (*out_of_memory)(void);  // it cannot grow; must not return
    // for speed alone; see the end of this file
    const struct Faster *faster;  // NULL: none
    struct Lanes *lanes;          // their memory
    bool waiting;                 // entries are not computed yet
} Tape;

// Starts an empty tape, fused, for vectors of up to max_vector values.
bool tape_init(Tape *t, size_t max_vector);  // false: not enough memory
#define FUSED UINT64_MAX                     // t->fused = 0 makes it scalar
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
double *ag_input(Tape *t, const double *data, size_t n);  // a copy of data
// x[0], x[1] ... = draw(context), for parameters that start at random
void ag_fill(double *x, size_t n, double (*draw)(void *), void *context);
void ag_clear_grad(Tape *t, double *x, size_t n);  // gradients become 0

// Every operation returns new values; ag_sum(t, a, 1) alone returns a. With
// `out`, the result goes there: into an ag_vector(), each value once.
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
// rows[i*n + j] + b[j], for i < n_rows and j < n: a bias
double *ag_add_to_rows(Tape *t, double *rows, double *b, size_t n_rows,
                       size_t n);
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
// One entry each, also on a scalar tape. linear(), softmax() and rmsnorm()
// in microgpt.c define them with atoms.
double *ag_linear(Tape *t, double *x, const Matrix *w);  // x dot w's row i
double *ag_softmax(Tape *t, double *a, size_t n);  // e^a[i] / sum_k e^a[k]
#define RMSNORM_EPS 1e-5
// a[i] / sqrt(mean square + RMSNORM_EPS)
double *ag_rmsnorm(Tape *t, double *a, size_t n);

// Is a call of op recorded as one entry, or as its atoms?
static inline bool one_entry(const Tape *t, Op op)
{
    return t->fused >> op & 1;
}

// One row per Op: its name, the extent of its result and operands, how it
// computes out, how gradients flow back. Extents: 0 values; n; length; or n
// rows, (n - 1) * stride + length.
typedef enum { NO_VALUES, N_VALUES, A_ROW, N_ROWS } Extent;
typedef struct {
    const char *name;
    Extent out, a, b;
    void (*forward)(Entry *e);
    void (*backward)(const Tape *t, const Entry *e);
} OpRules;
extern const OpRules operations[N_OPS];
// bit op: its backward is not the derivative, on purpose
extern const uint64_t no_derivative;

/* ------------------------------------------------------------------------
 * For speed alone. Skip it: without it, results agree up to rounding.
 *
 * A program may install faster versions of what autograd.c defines, in
 * t->faster, right after tape_init(): support/engine/ has some. They
 * may put off the computing: while t->waiting is set, entries are recorded,
 * and their values are ready after tape_compute().
 */
typedef struct Faster {
    bool (*forward)(Entry *e);  // computes e; false: not done
    // Goes back through entry *i, and perhaps on to an earlier one; then it
    // sets *i to that. false: not done.
    bool (*backward)(Tape *t, size_t *i);
    bool (*clear)(double *values, size_t n);  // all become 0; or not done
    void (*compute)(Tape *t);                 // all that is waiting
    void (*forget)(Tape *t);  // entries are dropped, or kept for good
    void (*free)(Tape *t);    // t->lanes
} Faster;

void tape_compute(Tape *t);         // value() and backward() call it
double *value(Tape *t, double *x);  // x, computed

#endif
