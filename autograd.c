/* autograd.c: the operations of autograd.h, value beside derivative.
 *
 * The tape and its memory; recording; the atoms; what is made of atoms; the
 * table of operations; the walk back.
 */
#include "autograd.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "-ffast-math changes sums and drops checks for infinities"
#endif
#if defined __GNUC__ && defined __OPTIMIZE__
#define INLINE inline __attribute__((always_inline))
#else
#define INLINE inline
#endif

/* ------------------------------------------------------------------------
 * The tape. A chunk of its memory holds values, then their gradients. No
 * vector spans two chunks. Nothing is given back before tape_free(). If
 * memory runs out in the middle, t->out_of_memory() must not return; the
 * tape can still be dropped and used again.
 */
enum {
    BLOCK = 4,  // vectors start at, and take, a multiple of this
    LINE = 64   // bytes in a cache line
};

static size_t round_up(size_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

// Adds a chunk. It starts at a cache line; the pointer that calloc()
// returned is stored in front of it.
static bool new_chunk(Tape *t)
{
    size_t n = t->n_chunks + 1, bytes = 2 * t->chunk_size * sizeof(double);
    double **chunks = realloc(t->chunks, n * sizeof *chunks);
    if (!chunks) return false;
    t->chunks = chunks;
    char *memory = calloc(1, bytes + 2 * LINE);
    if (!memory) return false;
    void *start = memory + 2 * LINE - (uintptr_t)memory % LINE;
    ((void **)start)[-1] = memory;
    t->chunks[t->n_chunks++] = start;
    return true;
}

static bool more_entries(Tape *t)
{
    size_t max = t->max_entries ? 2 * t->max_entries : 1024;
    if (max > SIZE_MAX / sizeof(Entry)) return false;
    Entry *entries = realloc(t->entries, max * sizeof *entries);
    if (!entries) return false;
    t->entries = entries;
    t->max_entries = max;
    return true;
}

static void out_of_memory(const Tape *t)
{
    if (t->out_of_memory) t->out_of_memory();
    abort();
}

// A value and its gradient are an odd number of cache lines apart, so that
// they do not compete for one place in the cache.
bool tape_init(Tape *t, size_t max_vector)
{
    *t = (Tape){.fused = FUSED};
    if (max_vector > SIZE_MAX / 64) return false;
    size_t lines = (max_vector + 2 * BLOCK) * sizeof(double) / LINE + 1;
    t->chunk_size = (lines | 1) * LINE / sizeof(double);
    if (!new_chunk(t) || !more_entries(t)) {
        tape_free(t);
        return false;
    }
    t->chunk = t->chunks[0];
    return true;
}

void tape_free(Tape *t)
{
    if (t->faster) t->faster->free(t);
    for (size_t i = 0; i < t->n_chunks; i++)
        free(((void **)(void *)t->chunks[i])[-1]);
    free(t->chunks);
    free(t->entries);
    *t = (Tape){0};
}

void tape_mark(Tape *t)
{
    tape_compute(t);
    if (t->faster) t->faster->forget(t);
    t->kept_entries = t->n_entries;
    t->kept_values = t->n_values;
    t->kept_chunk = t->this_chunk;
}

void tape_drop(Tape *t)
{
    if (t->faster) t->faster->forget(t);
    t->n_entries = t->kept_entries;
    t->n_values = t->kept_values;
    t->this_chunk = t->kept_chunk;
    t->chunk = t->chunks[t->this_chunk];
}

// Is x a value of this tape?
static bool on_tape(const Tape *t, const double *x)
{
    for (size_t k = 0; k <= t->this_chunk; k++) {
        uintptr_t at = (uintptr_t)x - (uintptr_t)t->chunks[k];
        if (at < t->chunk_size * sizeof *x) return true;
    }
    return false;
}

static void next_chunk(Tape *t, size_t n)
{
    assert(n <= t->chunk_size - BLOCK && "at most max_vector values");
    if (n > t->chunk_size - BLOCK) abort();
    if (t->this_chunk + 1 == t->n_chunks && !new_chunk(t)) out_of_memory(t);
    t->chunk = t->chunks[++t->this_chunk];
}

// A vector starts at a multiple of BLOCK values and takes whole blocks, for
// fast loops; single values are packed. Fast loops may read one block past
// the end of a vector, so the last block of a chunk stays unused.
static INLINE double *vector(Tape *t, size_t n)
{
    size_t end = t->chunk_size - BLOCK, room = n > 1 ? round_up(n) : n;
    size_t at = n > 1 ? round_up(t->n_values) : t->n_values;
    if (at + room > end) {
        next_chunk(t, n);
        at = 0;
    }
    t->n_values = at + room;
    return t->chunk + at;
}

double *ag_vector(Tape *t, size_t n)
{
    return vector(t, n);
}

double *ag_scalar(Tape *t, double data)
{
    return ag_input(t, &data, 1);
}

double *ag_input(Tape *t, const double *data, size_t n)
{
    return memcpy(vector(t, n), data, n * sizeof *data);
}

void ag_fill(double *x, size_t n, double (*draw)(void *), void *context)
{
    for (size_t i = 0; i < n; i++)
        x[i] = draw(context);
}

void ag_clear_grad(Tape *t, double *x, size_t n)
{
    memset(grad(t, x), 0, n * sizeof *x);
}

/* ------------------------------------------------------------------------
 * Recording: record() writes an entry, finish() computes it.
 */
static inline Entry *record(Tape *t, Op op, double *out, double *a,
                            double *b, double c, size_t n)
{
    if (t->n_entries == t->max_entries && !more_entries(t))
        out_of_memory(t);
    Entry *e = &t->entries[t->n_entries++];
    *e = (Entry){op, (uint32_t)n, out, a, b, c, 0, 0};
    return e;
}

static inline double *finish(const Tape *t, Entry *e)
{
    // for speed alone, skip both lines
    if (t->waiting) return e->out;
    if (t->faster && t->faster->forward(e)) return e->out;
    operations[e->op].forward(e);
    return e->out;
}

// Where b is rows.
static inline double *finish_rows(const Tape *t, Entry *e, size_t stride,
                                  size_t length)
{
    e->stride = (uint32_t)stride;
    e->length = (uint32_t)length;
    return finish(t, e);
}

static INLINE void do_entry(const Tape *t, Entry *e, bool forward);

// One entry per atom.
static INLINE double *each_atom(Tape *t, Op op, double *out, double *a,
                                double *b, double c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        do_entry(t, record(t, op, out + i, a + i, b ? b + i : b, c, 1),
                 true);
    return out;
}

// An atom on n neighbors: one entry, or n if the tape is scalar. Writes
// to out, or to new values if out is NULL.
static INLINE double *atoms(Tape *t, Op op, double *out, double *a,
                            double *b, double c, size_t n)
{
    if (!out) out = vector(t, n);
    if (!t->fused) return each_atom(t, op, out, a, b, c, n);
    return finish(t, record(t, op, out, a, b, c, n));
}

/* ------------------------------------------------------------------------
 * The atoms. Forward computes out from a and b. Backward adds to the
 * gradients of a and b: the gradient of out times the local derivative.
 */
// a + b. Local derivatives: 1 and 1.
double *ag_add(Tape *t, double *a, double *b, size_t n)
{
    return atoms(t, OP_ADD, NULL, a, b, 0, n);
}
static inline void add_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] + e->b[i];
}
static inline void add_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a), *gb = grad(t, e->b);
    for (size_t i = 0; i < e->n; i++) {
        ga[i] += g[i];
        gb[i] += g[i];
    }
}

// a * b. Local derivatives: b and a.
double *ag_mul(Tape *t, double *a, double *b, size_t n)
{
    return atoms(t, OP_MUL, NULL, a, b, 0, n);
}
static inline void mul_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] * e->b[i];
}
static inline void mul_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a), *gb = grad(t, e->b);
    for (size_t i = 0; i < e->n; i++) {
        ga[i] += e->b[i] * g[i];
        gb[i] += e->a[i] * g[i];
    }
}

// a^c. Local derivative: c * a^(c-1). Squares (relu2) do without pow().
double *ag_pow(Tape *t, double *a, double c, size_t n)
{
    return atoms(t, OP_POW, NULL, a, NULL, c, n);
}
static inline void pow_forward(Entry *e)
{
    double *a = e->a, c = e->c;
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = c == 2 ? a[i] * a[i] : pow(a[i], c);
}
static inline void pow_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a), *a = e->a, c = e->c;
    for (size_t i = 0; i < e->n; i++)
        ga[i] += c * (c == 2 ? a[i] : pow(a[i], c - 1)) * g[i];
}

// log a. Local derivative: 1 / a.
double *ag_log(Tape *t, double *a, size_t n)
{
    return atoms(t, OP_LOG, NULL, a, NULL, 0, n);
}
static inline void log_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = log(e->a[i]);
}
static inline void log_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++)
        ga[i] += 1 / e->a[i] * g[i];
}

// e^a. Local derivative: e^a, which is out.
double *ag_exp(Tape *t, double *a, size_t n)
{
    return atoms(t, OP_EXP, NULL, a, NULL, 0, n);
}
static inline void exp_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = exp(e->a[i]);
}
static inline void exp_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++)
        ga[i] += e->out[i] * g[i];
}

// max(a, 0). Local derivative: 1 where a is positive, else 0.
double *ag_relu(Tape *t, double *a, size_t n)
{
    return atoms(t, OP_RELU, NULL, a, NULL, 0, n);
}
static inline void relu_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] > 0 ? e->a[i] : 0;
}
static inline void relu_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++)
        ga[i] += e->a[i] > 0 ? g[i] : 0;
}

// a + c. Local derivative: 1.
double *ag_add_const(Tape *t, double *a, double c, size_t n)
{
    return atoms(t, OP_ADD_CONST, NULL, a, NULL, c, n);
}
static inline void add_const_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] + e->c;
}
static inline void add_const_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++)
        ga[i] += g[i];
}

// a * c. Local derivative: c.
double *ag_mul_const(Tape *t, double *a, double c, size_t n)
{
    return atoms(t, OP_MUL_CONST, NULL, a, NULL, c, n);
}
static inline void mul_const_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] * e->c;
}
static inline void mul_const_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++)
        ga[i] += e->c * g[i];
}

// a, copied to out. Local derivative: 1, so add_const_backward() serves.
double *ag_copy(Tape *t, double *out, double *a, size_t n)
{
    return atoms(t, OP_COPY, out, a, NULL, 0, n);
}
static inline void copy_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i];
}

/* ------------------------------------------------------------------------
 * Made of atoms. A scalar tape records the atoms; they are the definition.
 * A fused tape records one entry, whose forward and backward compute what
 * the atoms would, up to rounding. linear, softmax and rmsnorm are here as
 * entries only: microgpt.c has their definitions.
 */
double *ag_neg(Tape *t, double *a, size_t n)
{
    return ag_mul_const(t, a, -1, n);
}

double *ag_sub(Tape *t, double *a, double *b, size_t n)
{
    return ag_add(t, a, ag_neg(t, b, n), n);
}

double *ag_div(Tape *t, double *a, double *b, size_t n)
{
    return ag_mul(t, a, ag_pow(t, b, -1, n), n);
}

// a[0] * b[0] + a[1] * b[stride] + ... by atoms; the last writes to out.
static double *sum_of_products(Tape *t, double *out, double *a, double *b,
                               size_t stride, size_t n)
{
    double *sum = atoms(t, OP_MUL, n == 1 ? out : NULL, a, b, 0, 1);
    for (size_t i = 1; i < n; i++) {
        double *bi = b + i * stride, *place = i == n - 1 ? out : NULL;
        double *product = atoms(t, OP_MUL, NULL, a + i, bi, 0, 1);
        sum = atoms(t, OP_ADD, place, sum, product, 0, 1);
    }
    return out;
}

// y += c * x, the inner loop of most products below.
static inline void add_scaled(double *restrict y, double c,
                              const double *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += c * x[i];
}

// The dot product in four sums, so that the processor adds to one while it
// waits for another.
static inline double dot(const double *a, const double *b, size_t n)
{
    double sums[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += a[i + k] * b[i + k];
    double sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

// a[0] * b[0] + a[1] * b[1] + ..., as an entry: row dots of one row.
double *ag_dot(Tape *t, double *out, double *a, double *b, size_t n)
{
    if (!one_entry(t, OP_ROW_DOTS))
        return sum_of_products(t, out, a, b, 1, n);
    return finish_rows(t, record(t, OP_ROW_DOTS, out, a, b, 1, 1), n, n);
}

// These are atoms on every tape.
double *ag_sum(Tape *t, double *a, size_t n)
{
    double *sum = a;
    for (size_t i = 1; i < n; i++)
        sum = ag_add(t, sum, a + i, 1);
    return sum;
}

double *ag_mul_scalar(Tape *t, double *a, double *s, size_t n)
{
    double *out = vector(t, n);
    for (size_t i = 0; i < n; i++)
        atoms(t, OP_MUL, out + i, a + i, s, 0, 1);
    return out;
}

double *ag_add_to_rows(Tape *t, double *rows, double *b, size_t n_rows,
                       size_t n)
{
    double *out = vector(t, n_rows * n);
    for (size_t i = 0; i < n_rows; i++)
        atoms(t, OP_ADD, out + i * n, rows + i * n, b, 0, n);
    return out;
}

// (query dot key i) * scale. Local derivatives: key i * scale, and
// query * scale.
double *ag_row_dots(Tape *t, double *query, double *keys, size_t n_keys,
                    size_t stride, size_t length, double scale)
{
    double *out = vector(t, n_keys);
    if (one_entry(t, OP_ROW_DOTS)) {
        Entry *e = record(t, OP_ROW_DOTS, out, query, keys, scale, n_keys);
        return finish_rows(t, e, stride, length);
    }
    for (size_t i = 0; i < n_keys; i++)
        sum_of_products(t, out + i, query, keys + i * stride, 1, length);
    return ag_mul_const(t, out, scale, n_keys);
}
static void row_dots_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = dot(e->a, e->b + i * e->stride, e->length) * e->c;
}
static void row_dots_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out);
    for (size_t i = 0; i < e->n; i++) {
        double *key = e->b + i * e->stride;
        add_scaled(grad(t, e->a), g[i] * e->c, key, e->length);
        add_scaled(grad(t, key), g[i] * e->c, e->a, e->length);
    }
}

// weights[0] * row 0 + weights[1] * row 1 + ... Local derivatives: row i,
// and weights[i].
double *ag_weighted_sum(Tape *t, double *weights, double *rows,
                        size_t n_rows, size_t stride, size_t length)
{
    double *out = vector(t, length);
    if (one_entry(t, OP_WEIGHTED_SUM)) {
        Entry *e =
            record(t, OP_WEIGHTED_SUM, out, weights, rows, 0, n_rows);
        return finish_rows(t, e, stride, length);
    }
    for (size_t j = 0; j < length; j++)
        sum_of_products(t, out + j, weights, rows + j, stride, n_rows);
    return out;
}
static void weighted_sum_forward(Entry *e)
{
    memset(e->out, 0, e->length * sizeof *e->out);
    for (size_t i = 0; i < e->n; i++)
        add_scaled(e->out, e->a[i], e->b + i * e->stride, e->length);
}
static void weighted_sum_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++) {
        double *row = e->b + i * e->stride;
        ga[i] += dot(g, row, e->length);
        add_scaled(grad(t, row), e->a[i], g, e->length);
    }
}

// x dot row i of w. Local derivatives: row i, and x.
double *ag_linear(Tape *t, double *x, const Matrix *w)
{
    double *out = vector(t, w->rows);
    Entry *e = record(t, OP_LINEAR, out, x, w->data, 0, w->rows);
    return finish_rows(t, e, w->cols, w->cols);
}
static void linear_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = dot(e->a, e->b + i * e->stride, e->length);
}
static void linear_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *gx = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++) {
        double *row = e->b + i * e->stride;
        add_scaled(gx, g[i], row, e->length);
        add_scaled(grad(t, row), g[i], e->a, e->length);
    }
}

static double max_of(const double *a, size_t n)
{
    double max = a[0];
    for (size_t i = 1; i < n; i++)
        max = a[i] > max ? a[i] : max;
    return max;
}

double ag_max(Tape *t, const double *a, size_t n)
{
    tape_compute(t);  // with lanes, a may be waiting
    return max_of(a, n);
}

// e^(a[i] - max) / total, with total the sum of all e^(a[i] - max). The
// maximum cancels out; without it the exponentials could overflow. Local
// derivatives: d out[i] / d a[k] = -out[i] * out[k], plus out[i] if i = k.
// Times g[i], summed over i: out[k] * (g[k] - sum of g[i] * out[i]).
double *ag_softmax(Tape *t, double *a, size_t n)
{
    return finish(t, record(t, OP_SOFTMAX, vector(t, n), a, NULL, 0, n));
}
static void softmax_forward(Entry *e)
{
    double *out = e->out, max = max_of(e->a, e->n), total = 0;
    for (size_t i = 0; i < e->n; i++) {
        out[i] = exp(e->a[i] - max);
        total += out[i];
    }
    for (size_t i = 0; i < e->n; i++)
        out[i] *= 1 / total;  // softmax() in microgpt.c rounds like this
}
static void softmax_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    double mean = dot(g, e->out, e->n);  // of g, weighted by out
    for (size_t i = 0; i < e->n; i++)
        ga[i] += e->out[i] * (g[i] - mean);
}

// a[i] * scale, with scale = (mean square + RMSNORM_EPS)^-0.5. Local
// derivatives: d out[i] / d a[k] = -out[i] * out[k] * scale / n, plus scale
// if i = k. Summed as for softmax: scale * (g[k] - out[k] * mean(g * out)).
double *ag_rmsnorm(Tape *t, double *a, size_t n)
{
    return finish(t, record(t, OP_RMSNORM, vector(t, n), a, NULL, 0, n));
}
static void rmsnorm_forward(Entry *e)
{
    double ms = dot(e->a, e->a, e->n) / (double)e->n;  // mean square
    double scale = 1 / sqrt(ms + RMSNORM_EPS);
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] * scale;
    e->c = scale;  // for backward
}
static void rmsnorm_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a), scale = e->c;
    double mean = dot(g, e->out, e->n) / (double)e->n;  // of g * out
    for (size_t i = 0; i < e->n; i++)
        ga[i] += scale * (g[i] - mean * e->out[i]);
}

/* ------------------------------------------------------------------------
 * The table of operations, and the walk back.
 */
const uint64_t no_derivative = 0;  // bit op

const OpRules operations[N_OPS] = {
    // name, extents of out, a and b, forward, backward
    [OP_ADD] = {"add", N_VALUES, N_VALUES, N_VALUES, add_forward,
                add_backward},
    [OP_MUL] = {"mul", N_VALUES, N_VALUES, N_VALUES, mul_forward,
                mul_backward},
    [OP_POW] = {"pow", N_VALUES, N_VALUES, NO_VALUES, pow_forward,
                pow_backward},
    [OP_LOG] = {"log", N_VALUES, N_VALUES, NO_VALUES, log_forward,
                log_backward},
    [OP_EXP] = {"exp", N_VALUES, N_VALUES, NO_VALUES, exp_forward,
                exp_backward},
    [OP_RELU] = {"relu", N_VALUES, N_VALUES, NO_VALUES, relu_forward,
                 relu_backward},
    [OP_ADD_CONST] = {"add const", N_VALUES, N_VALUES, NO_VALUES,
                      add_const_forward, add_const_backward},
    [OP_MUL_CONST] = {"mul const", N_VALUES, N_VALUES, NO_VALUES,
                      mul_const_forward, mul_const_backward},
    [OP_COPY] = {"copy", N_VALUES, N_VALUES, NO_VALUES, copy_forward,
                 add_const_backward},
    [OP_ROW_DOTS] = {"row dots", N_VALUES, A_ROW, N_ROWS, row_dots_forward,
                     row_dots_backward},
    [OP_WEIGHTED_SUM] = {"weighted sum", A_ROW, N_VALUES, N_ROWS,
                         weighted_sum_forward, weighted_sum_backward},
    [OP_LINEAR] = {"linear", N_VALUES, A_ROW, N_ROWS, linear_forward,
                   linear_backward},
    [OP_SOFTMAX] = {"softmax", N_VALUES, N_VALUES, NO_VALUES,
                    softmax_forward, softmax_backward},
    [OP_RMSNORM] = {"rmsnorm", N_VALUES, N_VALUES, NO_VALUES,
                    rmsnorm_forward, rmsnorm_backward},
};

// What the table says of an entry. A scalar tape is nearly all atoms of
// one value, so this is its speed: told that n is 1, and which row it is,
// the compiler leaves no loop and no call.
static INLINE void do_entry(const Tape *t, Entry *e, bool forward)
{
#define ATOM(op)                                                           \
    case op:                                                               \
        forward ? operations[op].forward(&atom)                            \
                : operations[op].backward(t, &atom);                       \
        break
    Entry atom = {.n = 1, .out = e->out, .a = e->a, .b = e->b, .c = e->c};
    switch (e->n == 1 ? e->op : N_OPS) {
        ATOM(OP_ADD);
        ATOM(OP_MUL);
        ATOM(OP_POW);
        ATOM(OP_LOG);
        ATOM(OP_EXP);
        ATOM(OP_RELU);
        ATOM(OP_ADD_CONST);
        ATOM(OP_MUL_CONST);
        ATOM(OP_COPY);
    default:
        forward ? operations[e->op].forward(e)
                : operations[e->op].backward(t, e);
    }
#undef ATOM
}

void tape_compute(Tape *t)
{
    if (t->waiting) t->faster->compute(t);
}

double *value(Tape *t, double *x)
{
    tape_compute(t);
    return x;
}

// Zeroes the gradients of all values made after the mark.
static void clear_gradients(Tape *t)
{
    for (size_t k = t->kept_chunk; k <= t->this_chunk; k++) {
        size_t first = k == t->kept_chunk ? t->kept_values : 0;
        size_t end = k == t->this_chunk ? t->n_values : t->chunk_size;
        double *x = t->chunks[k] + first;
        bool done = t->faster && t->faster->clear(grad(t, x), end - first);
        if (!done) ag_clear_grad(t, x, end - first);
    }
}

void backward(Tape *t, double *result)
{
    tape_compute(t);
    clear_gradients(t);
    *grad(t, result) = 1;
    for (size_t i = t->n_entries; i-- > t->kept_entries;) {
        if (t->faster && t->faster->backward(t, &i)) continue;  // for speed
        Entry *e = &t->entries[i];
        assert(on_tape(t, e->a) && "the operands are values of this tape");
        assert((!operations[e->op].b || on_tape(t, e->b)) && "b is, too");
        (void)on_tape;
        do_entry(t, e, false);
    }
}
