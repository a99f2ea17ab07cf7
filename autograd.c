/* autograd.c: the operations of autograd.h, value beside derivative.
 *
 * The tape; recording; the atoms; what is made of atoms; the table of
 * operations; the two walks over the tape. support/ has faster versions of
 * some of this; what they compute is defined here.
 */
#include "autograd.h"
// defines: BLOCK, vector_in_next_chunk(), more_entries(), clear(); for
// speed alone: forget_lanes(), waiting(), lanes_...(), fast_...()
#include "support/fast.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------
 * The tape. A chunk of its memory holds values, then their gradients. No
 * vector spans two chunks. support/chunks.c starts, grows and frees it all.
 */
void tape_mark(Tape *t)
{
    tape_compute(t);
    forget_lanes(t);
    t->kept_entries = t->n_entries;
    t->kept_values = t->n_values;
    t->kept_chunk = t->this_chunk;
}

void tape_drop(Tape *t)
{
    forget_lanes(t);
    t->n_entries = t->n_computed = t->kept_entries;
    t->n_values = t->kept_values;
    t->this_chunk = t->kept_chunk;
    t->chunk = t->chunks[t->this_chunk];
}

static size_t round_up(size_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

// A vector starts at a multiple of BLOCK values and takes whole blocks, for
// the fast loops; single values are packed. Fast loops may read one block
// past the end of a vector, so the last block of a chunk stays unused.
double *ag_vector(Tape *t, size_t n)
{
    size_t end = t->chunk_size - BLOCK, room = n > 1 ? round_up(n) : n;
    size_t at = n > 1 ? round_up(t->n_values) : t->n_values;
    if (at + room > end) return vector_in_next_chunk(t, n);
    t->n_values = at + room;
    return t->chunk + at;
}

double *ag_scalar(Tape *t, double data)
{
    double *value = ag_vector(t, 1);
    *value = data;
    return value;
}

/* ------------------------------------------------------------------------
 * Recording: record() writes an entry, finish() computes it.
 */
// Field by field: a compiler may build a whole Entry elsewhere and copy it.
static inline Entry *record(Tape *t, Op op, double *out, double *a,
                            double *b, double c, size_t n)
{
    if (t->n_entries == t->max_entries) more_entries(t);
    Entry *e = &t->entries[t->n_entries++];
    e->op = op;
    e->n = (uint32_t)n;
    e->out = out;
    e->a = a;
    e->b = b;
    e->c = c;
    e->length = 0;
    e->stride = 0;
    return e;
}

// Computes e, unless lanes put that off.
static double *finish(Tape *t, const Entry *e)
{
    if (!waiting(t)) tape_compute(t);
    return e->out;
}

// One entry per atom.
static double *each_atom(Tape *t, Op op, double *out, double *a, double *b,
                         double c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        finish(t, record(t, op, out + i, a + i, b ? b + i : NULL, c, 1));
    return out;
}

// An atom on n neighbors: one entry, or n if the tape is not fused. Writes
// to out, or to new values if out is NULL.
static inline double *atoms(Tape *t, Op op, double *out, double *a,
                            double *b, double c, size_t n)
{
    if (!out) out = ag_vector(t, n);
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
static void add_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] + e->b[i];
}
static void add_backward(const Tape *t, const Entry *e)
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
static void mul_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] * e->b[i];
}
static void mul_backward(const Tape *t, const Entry *e)
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
static void pow_forward(Entry *e)
{
    double *a = e->a, c = e->c;
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = c == 2 ? a[i] * a[i] : pow(a[i], c);
}
static void pow_backward(const Tape *t, const Entry *e)
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
static void log_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = log(e->a[i]);
}
static void log_backward(const Tape *t, const Entry *e)
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
static void exp_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = exp(e->a[i]);
}
static void exp_backward(const Tape *t, const Entry *e)
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
static void relu_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] > 0 ? e->a[i] : 0;
}
static void relu_backward(const Tape *t, const Entry *e)
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
static void add_const_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] + e->c;
}
static void add_const_backward(const Tape *t, const Entry *e)
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
static void mul_const_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] * e->c;
}
static void mul_const_backward(const Tape *t, const Entry *e)
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
static void copy_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i];
}

/* ------------------------------------------------------------------------
 * Made of atoms. A tape that is not fused records the atoms; they are the
 * definition. A fused tape records one entry, whose forward and backward
 * compute what the atoms would, up to rounding. linear, softmax and rmsnorm
 * are here as entries only: microgpt.c has their definitions.
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
        double *product = ag_mul(t, a + i, b + i * stride, 1);
        double *place = i == n - 1 ? out : NULL;
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
// waits for another. dot() in support/softmax.c takes the same order.
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

// a[i] * s. Local derivatives: s for a[i], and a[i] for s.
double *ag_mul_scalar(Tape *t, double *a, double *s, size_t n)
{
    double *out = ag_vector(t, n);
    if (t->fused)
        return finish(t, record(t, OP_MUL_SCALAR, out, a, s, 0, n));
    for (size_t i = 0; i < n; i++)
        atoms(t, OP_MUL, out + i, a + i, s, 0, 1);
    return out;
}
static void mul_scalar_forward(Entry *e)
{
    double s = *e->b;
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = e->a[i] * s;
}
static void mul_scalar_backward(const Tape *t, const Entry *e)
{
    add_scaled(grad(t, e->a), *e->b, grad(t, e->out), e->n);
    *grad(t, e->b) += dot(e->a, grad(t, e->out), e->n);
}

// a[0] + a[1] + ... Local derivatives: 1.
double *ag_sum(Tape *t, double *a, size_t n)
{
    if (t->fused) {
        double *out = ag_vector(t, 1);
        return finish(t, record(t, OP_SUM, out, a, NULL, 0, n));
    }
    double *sum = a;
    for (size_t i = 1; i < n; i++)
        sum = ag_add(t, sum, a + i, 1);
    return sum;
}
static void sum_forward(Entry *e)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++)
        sum += e->a[i];
    *e->out = sum;
}
static void sum_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++)
        ga[i] += *g;
}

// a[0] * b[0] + a[1] * b[1] + ... Local derivatives: b[i] and a[i].
double *ag_dot(Tape *t, double *out, double *a, double *b, size_t n)
{
    if (t->fused) return finish(t, record(t, OP_DOT, out, a, b, 0, n));
    return sum_of_products(t, out, a, b, 1, n);
}
static void dot_forward(Entry *e)
{
    *e->out = dot(e->a, e->b, e->n);
}
static void dot_backward(const Tape *t, const Entry *e)
{
    double g = *grad(t, e->out);
    add_scaled(grad(t, e->a), g, e->b, e->n);
    add_scaled(grad(t, e->b), g, e->a, e->n);
}

// (query dot key i) * scale. Local derivatives: key i * scale, and
// query * scale.
double *ag_row_dots(Tape *t, double *query, double *keys, size_t n_keys,
                    size_t stride, size_t length, double scale)
{
    double *out = ag_vector(t, n_keys);
    if (t->fused) {
        Entry *e = record(t, OP_ROW_DOTS, out, query, keys, scale, n_keys);
        e->length = (uint32_t)length;
        e->stride = (uint32_t)stride;
        return finish(t, e);
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
    double *out = ag_vector(t, length);
    if (t->fused) {
        Entry *e =
            record(t, OP_WEIGHTED_SUM, out, weights, rows, 0, n_rows);
        e->length = (uint32_t)length;
        e->stride = (uint32_t)stride;
        return finish(t, e);
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
double *ag_linear(Tape *t, double *out, double *x, Matrix *w)
{
    Entry *e = record(t, OP_LINEAR, out, x, NULL, 0, w->rows);
    e->w = w;
    return finish(t, e);
}
static void linear_forward(Entry *e)
{
    const Matrix *w = e->w;
    for (size_t i = 0; i < w->rows; i++)
        e->out[i] = dot(e->a, w->data + i * w->cols, w->cols);
}
static void linear_backward(const Tape *t, const Entry *e)
{
    const Matrix *w = e->w;
    double *g = grad(t, e->out), *gx = grad(t, e->a);
    for (size_t i = 0; i < w->rows; i++) {
        double *row = w->data + i * w->cols;
        add_scaled(gx, g[i], row, w->cols);
        add_scaled(grad(t, row), g[i], e->a, w->cols);
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
    tape_compute(t);  // with lanes, a may not be ready before this
    return max_of(a, n);
}

// e^(a[i] - max) / total, with total the sum of all e^(a[i] - max). The
// maximum cancels out; without it the exponentials could overflow. Local
// derivatives: d out[i] / d a[k] = -out[i] * out[k], plus out[i] if i = k.
// Times g[i], summed over i: out[k] * (g[k] - sum of g[i] * out[i]).
double *ag_softmax(Tape *t, double *a, size_t n)
{
    double *out = ag_vector(t, n);
    return finish(t, record(t, OP_SOFTMAX, out, a, NULL, 0, n));
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
    double *out = ag_vector(t, n);
    return finish(t, record(t, OP_RMSNORM, out, a, NULL, 0, n));
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
 * The table of operations.
 */
const OpRules operations[N_OPS] = {
    [OP_ADD] = {"add", add_forward, add_backward},
    [OP_MUL] = {"mul", mul_forward, mul_backward},
    [OP_POW] = {"pow", pow_forward, pow_backward},
    [OP_LOG] = {"log", log_forward, log_backward},
    [OP_EXP] = {"exp", exp_forward, exp_backward},
    [OP_RELU] = {"relu", relu_forward, relu_backward},
    [OP_ADD_CONST] = {"add const", add_const_forward, add_const_backward},
    [OP_MUL_CONST] = {"mul const", mul_const_forward, mul_const_backward},
    [OP_COPY] = {"copy", copy_forward, add_const_backward},
    [OP_MUL_SCALAR] = {"mul scalar", mul_scalar_forward,
                       mul_scalar_backward},
    [OP_SUM] = {"sum", sum_forward, sum_backward},
    [OP_DOT] = {"dot", dot_forward, dot_backward},
    [OP_ROW_DOTS] = {"row dots", row_dots_forward, row_dots_backward},
    [OP_WEIGHTED_SUM] = {"weighted sum", weighted_sum_forward,
                         weighted_sum_backward},
    [OP_LINEAR] = {"linear", linear_forward, linear_backward},
    [OP_SOFTMAX] = {"softmax", softmax_forward, softmax_backward},
    [OP_RMSNORM] = {"rmsnorm", rmsnorm_forward, rmsnorm_backward},
};

/* ------------------------------------------------------------------------
 * The two walks: forward over the entries not yet computed, backward from
 * the last entry to the mark.
 */
void tape_compute(Tape *t)
{
    lanes_forward(t);  // for speed alone: what lanes put off, side by side
    for (; t->n_computed < t->n_entries; t->n_computed++) {
        Entry *e = &t->entries[t->n_computed];
        if (fast_forward(e)) continue;  // for speed alone: this entry
        operations[e->op].forward(e);
    }
}

// Zeroes the gradients of all values made after the mark.
static void clear_gradients(const Tape *t)
{
    for (size_t k = t->kept_chunk; k <= t->this_chunk; k++) {
        size_t first = k == t->kept_chunk ? t->kept_values : 0;
        size_t end = k == t->this_chunk ? t->n_values : t->chunk_size;
        clear(grad(t, t->chunks[k] + first), end - first);
    }
}

void backward(Tape *t, double *result)
{
    tape_compute(t);
    clear_gradients(t);
    *grad(t, result) = 1;
    for (size_t i = t->n_entries; i-- > t->kept_entries;) {
        if (lanes_backward(t, &i)) continue;  // for speed alone: moves i
        Entry *e = &t->entries[i];
        if (fast_backward(t, e)) continue;  // for speed alone: this entry
        operations[e->op].backward(t, e);
    }
}
