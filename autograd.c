/* autograd.c: the operations of autograd.h, each with its value and its local derivatives side by side.
 *
 * The tape; the atoms; what is made of atoms; the walks, forward and backward. Then, after a ruler, the same, faster:
 * many inputs at once, vectors, products of matrices, Adam.
 */
#include "autograd.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * The tape.
 */
#define BLOCK 4          // vectors begin at, and have room for, a multiple of so many values

static size_t round_up(size_t n) { return (n + BLOCK - 1) / BLOCK * BLOCK; }

bool tape_init(Tape *t, size_t max_values, size_t max_lines, size_t max_lanes)
{
    *t = (Tape){.fused = true, .counting = max_values == 0, .pending = max_values == 0};
    if (max_values > SIZE_MAX / 64 || max_lines > SIZE_MAX / 2 / sizeof(Line) || max_lanes > max_lines) {
        return false;
    }
    t->max_values = round_up(max_values) + BLOCK;          // a loop over whole vectors may look one block too far
    t->max_lines = max_lines;
    t->max_lanes = max_lanes;
    t->memory = calloc(2 * t->max_values + 8, sizeof(double));
    t->lines = malloc((max_lines + 1) * sizeof(Line));
    t->lanes = malloc((max_lanes + 1) * sizeof(Line *));
    if (!t->memory || !t->lines || !t->lanes) {
        tape_free(t);
        return false;
    }
    t->data = (double *)(((uintptr_t)t->memory + 63) / 64 * 64);   // whole cache lines
    return true;
}

void tape_free(Tape *t)
{
    free(t->memory);
    free(t->lines);
    free(t->lanes);
    *t = (Tape){0};
}

void tape_mark(Tape *t)
{
    tape_compute(t);
    t->n_lanes = 0;
    t->ragged = false;
    t->first_value = t->n_values;
    t->first_line = t->n_lines;
}

void tape_drop(Tape *t)
{
    t->n_values = t->first_value;
    t->n_lines = t->first_line;
    t->n_lanes = 0;
    t->in_lane = t->ragged = false;
    t->pending = t->counting;
}

double *ag_vector(Tape *t, size_t n)
{
    size_t at = n > 1 ? round_up(t->n_values) : t->n_values;
    size_t room = n > 1 ? round_up(n) : n;
    if (at + room <= t->max_values - BLOCK) {
        t->n_values = at + room;
        return t->data + at;
    }
    if (!t->counting) abort();   // the caller has not reserved what it uses: a mistake in the program, not in its input
    size_t limit = SIZE_MAX / 2 + 1 - BLOCK;           // whole blocks, so that rounding does not go beyond it
    t->n_values = room < limit - at ? at + room : limit;
    return t->data;                                    // a place that nobody will look at
}

double *ag_scalar(Tape *t, double data)
{
    double *value = ag_vector(t, 1);
    *value = data;
    return value;
}

// Does what a line says. See the walks.
static NOINLINE void line_forward(Line *l);

// Writes one line; end_line() then does what it says, unless that is to wait for tape_compute().
static inline Line *begin_line(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    bool room = t->n_lines < t->max_lines;             // a tape that counts has none, and writes over the same line
    if (!room && !t->counting) abort();
    Line *l = t->lines + (room ? t->n_lines : 0);
    t->n_lines++;
    *l = (Line){.op = op, .n = (uint32_t)n, .out = out, .a = a, .b = b, .c = c};
    return l;
}

static inline double *end_line(const Tape *t, Line *l)
{
    if (!t->pending) line_forward(l);
    return l->out;
}

static NOINLINE double *each_atom(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    for (size_t i = 0; i < n; i++) end_line(t, begin_line(t, op, out + i, 1, a + i, b ? b + i : NULL, c));
    return out;
}

// An atom on n neighbours, into out or (NULL) new values: one line, or n lines where every one is to be seen.
static inline double *atoms(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    out = out ? out : ag_vector(t, n);
    if (t->fused) return end_line(t, begin_line(t, op, out, n, a, b, c));
    return each_atom(t, op, out, n, a, b, c);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The atoms. Forward: the data of out from the data of a and b. Backward: to the gradients of a and b is added the
 * gradient of out times the local derivative.
 */

// a + b. Local derivatives: 1 and 1.
double *ag_add(Tape *t, double *a, double *b, size_t n) { return atoms(t, OP_ADD, NULL, n, a, b, 0); }
static void add_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] + l->b[i]; }
static void add_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), *gb = grad(t, l->b);
    for (size_t i = 0; i < l->n; i++) ga[i] += g[i];
    for (size_t i = 0; i < l->n; i++) gb[i] += g[i];
}

// a * b. Local derivatives: b and a.
double *ag_mul(Tape *t, double *a, double *b, size_t n) { return atoms(t, OP_MUL, NULL, n, a, b, 0); }
static void mul_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] * l->b[i]; }
static void mul_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), *gb = grad(t, l->b);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->b[i] * g[i];
        gb[i] += l->a[i] * g[i];
    }
}

// a^c. Local derivative: c * a^(c-1). c == 2 is common, and needs no pow().
double *ag_pow(Tape *t, double *a, double c, size_t n) { return atoms(t, OP_POW, NULL, n, a, NULL, c); }
static void pow_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->c == 2 ? l->a[i] * l->a[i] : pow(l->a[i], l->c);
}

static void pow_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += l->c * (l->c == 2 ? l->a[i] : pow(l->a[i], l->c - 1)) * g[i];
}

// log a. Local derivative: 1 / a.
double *ag_log(Tape *t, double *a, size_t n) { return atoms(t, OP_LOG, NULL, n, a, NULL, 0); }
static void log_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = log(l->a[i]); }
static void log_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += 1 / l->a[i] * g[i];
}

// e^a. Local derivative: e^a, which is out.
double *ag_exp(Tape *t, double *a, size_t n) { return atoms(t, OP_EXP, NULL, n, a, NULL, 0); }
static void exp_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = exp(l->a[i]); }
static void exp_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += l->out[i] * g[i];
}

// the larger of a and 0. Local derivative: 1 where a is positive, else 0.
double *ag_relu(Tape *t, double *a, size_t n) { return atoms(t, OP_RELU, NULL, n, a, NULL, 0); }
static void relu_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] > 0 ? l->a[i] : 0; }
static void relu_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += l->a[i] > 0 ? g[i] : 0;
}

// a + c. Local derivative: 1.
double *ag_add_const(Tape *t, double *a, double c, size_t n) { return atoms(t, OP_ADD_CONST, NULL, n, a, NULL, c); }
static void add_const_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] + l->c; }
static void add_const_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += g[i];
}

// a * c. Local derivative: c.
double *ag_mul_const(Tape *t, double *a, double c, size_t n) { return atoms(t, OP_MUL_CONST, NULL, n, a, NULL, c); }
static void mul_const_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] * l->c; }
static void mul_const_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += l->c * g[i];
}

// a, in another place. Local derivative: 1, as for a + c, so they share a backward.
double *ag_copy(Tape *t, double *out, double *a, size_t n) { return atoms(t, OP_COPY, out, n, a, NULL, 0); }
static void copy_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i]; }

/* ------------------------------------------------------------------------------------------------------------------
 * Made of atoms. neg, sub and div are nothing else. In the others the branch for !t->fused is the definition, atom by
 * atom; the fused branch writes one line, whose forward and backward compute what the atoms would. linear, softmax and
 * rmsnorm have the line only: their definitions are in microgpt.c.
 */
double *ag_neg(Tape *t, double *a, size_t n) { return ag_mul_const(t, a, -1, n); }
double *ag_sub(Tape *t, double *a, double *b, size_t n) { return ag_add(t, a, ag_neg(t, b, n), n); }
double *ag_div(Tape *t, double *a, double *b, size_t n) { return ag_mul(t, a, ag_pow(t, b, -1, n), n); }

// out = a[0]*b[0] + a[1]*b[1] + ... atom by atom: the definition of every sum of products below.
static double *sum_of_products(Tape *t, double *out, double *a, double *b, size_t b_stride, size_t n)
{
    double *sum = atoms(t, OP_MUL, n == 1 ? out : NULL, 1, a, b, 0);
    for (size_t i = 1; i < n; i++) {
        double *product = ag_mul(t, a + i, b + i * b_stride, 1);
        sum = atoms(t, OP_ADD, i == n - 1 ? out : NULL, 1, sum, product, 0);
    }
    return out;
}

// The two loops of the fused lines below: y[i] += c * x[i], and the sum of all a[i] * b[i].
static inline void add_scaled(double *restrict y, double c, const double *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += c * x[i];
}

static inline double dot(const double *a, const double *b, size_t n)
{
    double sums[4] = {0, 0, 0, 0};                     // so that no addition waits for the one before
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < 4; k++) sums[k] += a[i + k] * b[i + k];
    }
    double sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);      // as vec_sum() adds four
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// a[i] * s. Local derivatives: s, and for s all of the a[i].
double *ag_mul_scalar(Tape *t, double *a, double *s, size_t n)
{
    double *out = ag_vector(t, n);
    if (!t->fused) {
        for (size_t i = 0; i < n; i++) atoms(t, OP_MUL, out + i, 1, a + i, s, 0);
        return out;
    }
    return end_line(t, begin_line(t, OP_MUL_SCALAR, out, n, a, s, 0));
}

static void mul_scalar_forward(Line *l) { for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] * *l->b; }
static void mul_scalar_backward(const Tape *t, const Line *l)
{
    add_scaled(grad(t, l->a), *l->b, grad(t, l->out), l->n);
    *grad(t, l->b) += dot(l->a, grad(t, l->out), l->n);
}

// a[0] + a[1] + ... Local derivatives: 1.
double *ag_sum(Tape *t, double *a, size_t n)
{
    if (!t->fused) {
        double *sum = a;
        for (size_t i = 1; i < n; i++) sum = ag_add(t, sum, a + i, 1);
        return sum;
    }
    return end_line(t, begin_line(t, OP_SUM, ag_vector(t, 1), n, a, NULL, 0));
}

static void sum_forward(Line *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++) sum += l->a[i];
    *l->out = sum;
}

static void sum_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += *g;
}

// a[0]*b[0] + a[1]*b[1] + ... Local derivatives: b[i] and a[i].
double *ag_dot(Tape *t, double *out, double *a, double *b, size_t n)
{
    if (!t->fused) return sum_of_products(t, out, a, b, 1, n);
    return end_line(t, begin_line(t, OP_DOT, out, n, a, b, 0));
}

static void dot_forward(Line *l) { *l->out = dot(l->a, l->b, l->n); }
static void dot_backward(const Tape *t, const Line *l)
{
    double g = *grad(t, l->out);
    add_scaled(grad(t, l->a), g, l->b, l->n);
    add_scaled(grad(t, l->b), g, l->a, l->n);
}

// (query dot key i) * scale. Local derivatives: key i times scale, and the query times scale.
double *ag_row_dots(Tape *t, double *query, double *keys, size_t n_keys, size_t stride, size_t length, double scale)
{
    double *out = ag_vector(t, n_keys);
    if (!t->fused) {
        for (size_t i = 0; i < n_keys; i++) sum_of_products(t, out + i, query, keys + i * stride, 1, length);
        return ag_mul_const(t, out, scale, n_keys);
    }
    Line *l = begin_line(t, OP_ROW_DOTS, out, n_keys, query, keys, scale);
    l->length = (uint32_t)length;
    l->stride = (uint32_t)stride;
    return end_line(t, l);
}

static void row_dots_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = dot(l->a, l->b + i * l->stride, l->length) * l->c;
}

static void row_dots_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out);
    for (size_t i = 0; i < l->n; i++) {
        double *key = l->b + i * l->stride;
        add_scaled(grad(t, l->a), g[i] * l->c, key, l->length);
        add_scaled(grad(t, key), g[i] * l->c, l->a, l->length);
    }
}

// weights[0] * row 0 + weights[1] * row 1 + ... Local derivatives: row i, and weights[i].
double *ag_weighted_sum(Tape *t, double *weights, double *rows, size_t n_rows, size_t stride, size_t length)
{
    double *out = ag_vector(t, length);
    if (!t->fused) {
        for (size_t j = 0; j < length; j++) sum_of_products(t, out + j, weights, rows + j, stride, n_rows);
        return out;
    }
    Line *l = begin_line(t, OP_WEIGHTED_SUM, out, n_rows, weights, rows, 0);
    l->length = (uint32_t)length;
    l->stride = (uint32_t)stride;
    return end_line(t, l);
}

static void weighted_sum_forward(Line *l)
{
    memset(l->out, 0, l->length * sizeof *l->out);
    for (size_t i = 0; i < l->n; i++) add_scaled(l->out, l->a[i], l->b + i * l->stride, l->length);
}

static void weighted_sum_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        double *row = l->b + i * l->stride;
        ga[i] += dot(g, row, l->length);
        add_scaled(grad(t, row), l->a[i], g, l->length);
    }
}

// x dot row i of w. Local derivatives: row i, and x.
double *ag_linear(Tape *t, double *out, double *x, Matrix *w)
{
    Line *l = begin_line(t, OP_LINEAR, out, w->rows, x, NULL, 0);
    l->w = w;
    return end_line(t, l);
}

static void linear_forward(Line *l)
{
    const Matrix *w = l->w;
    for (size_t i = 0; i < w->rows; i++) l->out[i] = dot(l->a, w->data + i * w->cols, w->cols);
}

static void linear_backward(const Tape *t, const Line *l)
{
    const Matrix *w = l->w;
    double *g = grad(t, l->out), *gx = grad(t, l->a), *gw = grad(t, w->data);
    for (size_t i = 0; i < w->rows; i++) {
        add_scaled(gx, g[i], w->data + i * w->cols, w->cols);
        add_scaled(gw + i * w->cols, g[i], l->a, w->cols);
    }
}

static double max_of(const double *a, size_t n)
{
    double max = a[0];
    for (size_t i = 1; i < n; i++) max = a[i] > max ? a[i] : max;
    return max;
}

double ag_max(Tape *t, const double *a, size_t n)
{
    tape_compute(t);
    return t->counting ? 0 : max_of(a, n);
}

// e^(a[i] - max) / total, where total is the sum of all e^(a[i] - max). Subtracting the maximum changes nothing but the
// size of the exponentials, which could overflow without it. Local derivatives: d out[i] / d a[k] is -out[i]*out[k],
// plus out[i] where i is k.
double *ag_softmax(Tape *t, double *a, size_t n)
{
    return end_line(t, begin_line(t, OP_SOFTMAX, ag_vector(t, n), n, a, NULL, 0));
}

static void softmax_forward(Line *l)
{
    double *out = l->out, max = max_of(l->a, l->n), total = 0;
    for (size_t i = 0; i < l->n; i++) {
        out[i] = exp(l->a[i] - max);
        total += out[i];
    }
    for (size_t i = 0; i < l->n; i++) out[i] *= 1 / total;
}

static void softmax_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), mean = dot(g, l->out, l->n);
    for (size_t i = 0; i < l->n; i++) ga[i] += l->out[i] * (g[i] - mean);
}

// a[i] * scale, where scale = (mean of the squares + eps)^-0.5. Local derivatives: d out[i] / d a[k] is
// -out[i]*out[k] * scale/n, plus scale where i is k. The line's constant is at first eps, then the scale.
double *ag_rmsnorm(Tape *t, double *a, double eps, size_t n)
{
    return end_line(t, begin_line(t, OP_RMSNORM, ag_vector(t, n), n, a, NULL, eps));
}

static void rmsnorm_forward(Line *l)
{
    double scale = 1 / sqrt(dot(l->a, l->a, l->n) / (double)l->n + l->c);
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] * scale;
    l->c = scale;
}

static void rmsnorm_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), scale = l->c;
    double mean = dot(g, l->out, l->n) / (double)l->n;
    for (size_t i = 0; i < l->n; i++) ga[i] += scale * (g[i] - mean * l->out[i]);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The table of operations, and the walks over the lines.
 */
const Operation operations[N_OPS] = {
    [OP_ADD] = {"add", add_forward, add_backward, MAKES_N},
    [OP_MUL] = {"mul", mul_forward, mul_backward, MAKES_N},
    [OP_POW] = {"pow", pow_forward, pow_backward, MAKES_N},
    [OP_LOG] = {"log", log_forward, log_backward, MAKES_N},
    [OP_EXP] = {"exp", exp_forward, exp_backward, MAKES_N},
    [OP_RELU] = {"relu", relu_forward, relu_backward, MAKES_N},
    [OP_ADD_CONST] = {"add const", add_const_forward, add_const_backward, MAKES_N},
    [OP_MUL_CONST] = {"mul const", mul_const_forward, mul_const_backward, MAKES_N},
    [OP_COPY] = {"copy", copy_forward, add_const_backward, MAKES_N},
    [OP_MUL_SCALAR] = {"mul scalar", mul_scalar_forward, mul_scalar_backward, MAKES_N},
    [OP_SUM] = {"sum", sum_forward, sum_backward, MAKES_ONE},
    [OP_DOT] = {"dot", dot_forward, dot_backward, MAKES_ONE},
    [OP_ROW_DOTS] = {"row dots", row_dots_forward, row_dots_backward, MAKES_N},
    [OP_WEIGHTED_SUM] = {"weighted sum", weighted_sum_forward, weighted_sum_backward, MAKES_LENGTH},
    [OP_LINEAR] = {"linear", linear_forward, linear_backward, MAKES_N},
    [OP_SOFTMAX] = {"softmax", softmax_forward, softmax_backward, MAKES_N},
    [OP_RMSNORM] = {"rmsnorm", rmsnorm_forward, rmsnorm_backward, MAKES_N},
};

// Faster ways to do the same, where the second half of this file has one: for a line, and for line k of n lanes at once
// (which returns false where that is not worth it).
typedef struct {
    void (*forward)(Line *l);
    void (*backward)(const Tape *t, const Line *l);
    bool (*forward_lanes)(Line *const *lanes, size_t n, size_t k);
    bool (*backward_lanes)(const Tape *t, Line *const *lanes, size_t n, size_t k);
} FastOperation;

static const FastOperation fast_operations[N_OPS];     // defined further down; all NULL in plain builds

// Line k of n lanes; a single line is line 0 of one lane.
static void lines_forward(Line *const *lanes, size_t n, size_t k)
{
    Op op = lanes[0][k].op;
    const FastOperation *fast = &fast_operations[op];
    if (fast->forward_lanes && fast->forward_lanes(lanes, n, k)) return;
    void (*forward)(Line *) = fast->forward ? fast->forward : operations[op].forward;
    for (size_t lane = 0; lane < n; lane++) forward(&lanes[lane][k]);
}

static void line_forward(Line *l) { lines_forward(&l, 1, 0); }

static void lines_backward(const Tape *t, Line *const *lanes, size_t n, size_t k)
{
    Op op = lanes[0][k].op;
    const FastOperation *fast = &fast_operations[op];
    if (fast->backward_lanes && fast->backward_lanes(t, lanes, n, k)) return;
    void (*back)(const Tape *, const Line *) = fast->backward ? fast->backward : operations[op].backward;
    for (size_t lane = n; lane-- > 0;) back(t, &lanes[lane][k]);
}

// Is x one of the values that a line made?
static bool is_output_of(const Line *l, const double *x)
{
    Makes makes = operations[l->op].makes;
    return x >= l->out && x < l->out + (makes == MAKES_ONE ? 1 : makes == MAKES_LENGTH ? l->length : l->n);
}

static Line *lanes_backward(const Tape *t, Line *end);

void backward(Tape *t, double *result)
{
    tape_compute(t);
    memset(grad(t, t->data + t->first_value), 0, (t->n_values - t->first_value) * sizeof(double));
    *grad(t, result) = 1;
    Line *first = t->lines + t->first_line, *l = t->lines + t->n_lines;
    while (l > first && !is_output_of(l - 1, result)) l--;       // lines after the result have no part in it
    l = lanes_backward(t, l);
    while (l > first) {
        l--;
        lines_backward(t, &l, 1, 0);
    }
}

/* ==================================================================================================================
 * The same, faster. Nothing below computes anything that is not defined above.
 *
 * First, lanes: a program that does the same to many inputs (here: to the positions of a document) writes the same
 * lines again and again. If it says so (tape_lane() in autograd.h), they are read side by side: line 1 of all lanes,
 * then line 2 of all lanes; backward the same from the end. What they have in common, such as a matrix, is then fetched
 * once for many lanes. Without optimization every line is computed when it is written, so that a debugger shows it.
 */
void tape_end_lanes(Tape *t)
{
    if (!t->in_lane) return;
    const Line *first = t->lanes[0], *lane = t->lanes[t->n_lanes - 1];
    size_t length = (size_t)(t->lines + t->n_lines - lane), k = 0;
    if (t->n_lanes == 1) t->lane_length = length;
    while (k < length && lane[k].op == first[k].op) k++;
    t->ragged = t->ragged || k < length || length != t->lane_length;
    t->in_lane = false;
}

void tape_lane(Tape *t)
{
#ifdef __OPTIMIZE__
    if (t->counting) {
        t->n_lanes++;
    } else if (t->fused && (t->pending || t->n_lanes == 0)) {
        tape_end_lanes(t);
        if (t->n_lanes == t->max_lanes) abort();
        t->lanes[t->n_lanes++] = t->lines + t->n_lines;
        t->in_lane = t->pending = true;
    }
#else
    (void)t;
#endif
}

void tape_compute(Tape *t)
{
    if (!t->pending || t->counting) return;
    tape_end_lanes(t);
    t->pending = false;
    Line *l = t->lanes[0], *end = t->lines + t->n_lines;
    if (t->ragged || t->n_lanes < 2) t->n_lanes = 0;
    for (size_t k = 0; t->n_lanes > 0 && k < t->lane_length; k++) lines_forward(t->lanes, t->n_lanes, k);
    for (size_t lane = 0; lane <= t->n_lanes; lane++) {  // then what is outside the lanes; all, if there are none
        Line *next = lane < t->n_lanes ? t->lanes[lane] : end;
        for (; l < next; l++) line_forward(l);
        l += lane < t->n_lanes ? t->lane_length : 0;
    }
}

// Backward through the lines before `end` that tape_compute() took care of, in the reverse order; but not if `end` is
// among the lanes. Returns where it stopped.
static Line *lanes_backward(const Tape *t, Line *end)
{
    if (t->n_lanes == 0 || end < t->lanes[t->n_lanes - 1] + t->lane_length) return end;
    for (size_t lane = t->n_lanes; lane-- > 0; end = t->lanes[lane]) {
        while (end > t->lanes[lane] + t->lane_length) {
            end--;
            lines_backward(t, &end, 1, 0);
        }
    }
    for (size_t k = t->lane_length; k-- > 0;) lines_backward(t, t->lanes, t->n_lanes, k);
    return t->lanes[0];
}

/* ------------------------------------------------------------------------------------------------------------------
 * Vectors, as wide as the machine's, with GCC's and clang's vector types. Elsewhere, in builds without optimization and
 * with -DAUTOGRAD_PLAIN, the plain loops of the first half do all the work. Memory is in whole vectors (see
 * ag_vector()), so a loop may look past n to the end of its last vector; blend_first() then keeps what is there out of
 * it: single values, and slices, have neighbours there.
 */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && FLT_EVAL_METHOD == 0 && !defined(AUTOGRAD_PLAIN)

#define ALWAYS_INLINE inline __attribute__((always_inline))

#ifdef __AVX__
#define VEC 4
#else
#define VEC 2
#endif
typedef double Vec __attribute__((vector_size(VEC * sizeof(double))));
typedef uint64_t Bits __attribute__((vector_size(VEC * sizeof(double))));
#define ZERO ((Vec){0})

#if VEC == 4 && (defined(__clang__) || __GNUC__ >= 12)
#define SHUFFLE __builtin_shufflevector
#endif

static inline Vec load(const double *p) { Vec v; memcpy(&v, p, sizeof v); return v; }
static inline void store(double *p, Vec v) { memcpy(p, &v, sizeof v); }

// a load that the compiler neither moves nor repeats
static inline Vec load_once(const double *p)
{
    typedef Vec Anywhere __attribute__((aligned(8), may_alias));
    return *(const volatile Anywhere *)p;
}

// the first n numbers of v, of which there are VEC at most, then those of other
static inline Vec blend_first(Vec v, size_t n, Vec other)
{
    static const uint64_t ones[8] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    Bits keep;
    memcpy(&keep, ones + 4 - n, sizeof keep);
    return (Vec)(((Bits)v & keep) | ((Bits)other & ~keep));
}

static inline Vec vec_max(Vec a, Vec b) { for (int k = 0; k < VEC; k++) a[k] = a[k] > b[k] ? a[k] : b[k]; return a; }
static inline Vec vec_sqrt(Vec v) { for (int k = 0; k < VEC; k++) v[k] = sqrt(v[k]); return v; }
static inline double vec_sum(Vec v) { return VEC == 4 ? (v[0] + v[2 % VEC]) + (v[1] + v[3 % VEC]) : v[0] + v[1]; }

// sums[0..3] = the sums of four vectors
static inline void vec_sums(double *sums, const Vec v[4])
{
#ifdef SHUFFLE
    Vec ab = SHUFFLE(v[0], v[1], 0, 4, 2, 6) + SHUFFLE(v[0], v[1], 1, 5, 3, 7);
    Vec cd = SHUFFLE(v[2], v[3], 0, 4, 2, 6) + SHUFFLE(v[2], v[3], 1, 5, 3, 7);
    store(sums, SHUFFLE(ab, cd, 0, 1, 4, 5) + SHUFFLE(ab, cd, 2, 3, 6, 7));
#else
    for (size_t k = 0; k < 4; k++) sums[k] = vec_sum(v[k]);
#endif
}

// e^x = 2^k * e^r, with k the integer nearest to x / ln 2: then |r| < 0.35, and the series needs terms up to r^12.
// Adding 1.5 * 2^52 rounds x / ln 2 to k and leaves k in the low bits, from where it is shifted into the exponent.
// Where x is too small for that, or not a number, the result is not a number. x must not be positive.
static inline Vec vec_exp(Vec x)
{
    const double log2_e = 0x1.71547652b82fep0, ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b39p-40;
    const double rounder = 0x1.8p52;
    Vec shifted = x * log2_e + rounder, k = shifted - rounder;
    Vec r = (x - k * ln2_high) - k * ln2_low, r2 = r * r, r4 = r2 * r2;
    Vec p0 = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    Vec p4 = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    Vec p8 = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    Vec p12 = ZERO + 1.0 / 479001600;
    Bits e = (Bits)(p0 + r4 * (p4 + r4 * (p8 + r4 * p12))) + ((Bits)shifted << 52);
    return (Vec)(e | ~(Bits)(x > -708));
}

/* ------------------------------------------------------------------------------------------------------------------
 * Rows times vectors, for a few lanes: the rows are used in place, four at a time.
 */

// to[k] = row k of w dot x, so that each piece of x is loaded once for four sums. From the (n+1)-th row on, the n-th is
// taken instead. cols is a multiple of VEC.
static ALWAYS_INLINE void dot_rows(double *restrict to, const double *restrict w, size_t stride,
                                   const double *restrict x, size_t n, size_t cols)
{
    const double *w1 = n > 1 ? w + stride : w, *w2 = n > 2 ? w1 + stride : w1, *w3 = n > 3 ? w2 + stride : w2;
    const double *rows[4] = {w, w1, w2, w3};
    Vec xi = load(x), sums[4];
    for (size_t k = 0; k < 4; k++) sums[k] = load(rows[k]) * xi;
    for (size_t i = VEC; i < cols; i += VEC) {
        xi = load(x + i);
        for (size_t k = 0; k < 4; k++) sums[k] += load(rows[k] + i) * xi;
    }
    vec_sums(to, sums);
}

// y[lane][j] = c * (row j of w dot x[lane]), or that added to y[lane][j], for n lanes. Rows are fetched once for all.
static ALWAYS_INLINE void multiply(double *const *y, const double *w, size_t stride, double *const *x, size_t n,
                                   size_t rows, size_t cols, double c, bool add)
{
    double sums[4];
    size_t j = 0;
    for (; j + 4 <= rows; j += 4) {
        for (size_t lane = 0; lane < n; lane++) {
            double *to = y[lane] + j;
            dot_rows(sums, w + j * stride, stride, x[lane], 4, cols);
            for (size_t k = 0; k < 4; k += VEC) {
                store(to + k, add ? load(to + k) + c * load(sums + k) : c * load(sums + k));
            }
        }
    }
    for (size_t lane = 0; j < rows && lane < n; lane++) {
        dot_rows(sums, w + j * stride, stride, x[lane], rows - j, cols);
        for (size_t k = 0; k < rows - j; k += VEC) {
            Vec old = load(y[lane] + j + k), new = add ? old + c * load(sums + k) : c * load(sums + k);
            store(y[lane] + j + k, VEC < 4 && k + VEC <= rows - j ? new : blend_first(new, rows - j - k, old));
        }
    }
}

// The same, with the default model's lengths of rows as constants, so that the compiler unrolls the loops over them.
static ALWAYS_INLINE void multiply_few(double *const *y, const double *w, size_t stride, double *const *x, size_t n,
                                       size_t rows, size_t cols, double c, bool add)
{
    if (cols == VEC) {
        multiply(y, w, stride, x, n, rows, VEC, c, add);
    } else if (cols == 16) {
        multiply(y, w, stride, x, n, rows, 16, c, add);
    } else if (cols == 64) {
        multiply(y, w, stride, x, n, rows, 64, c, add);
    } else {
        multiply(y, w, stride, x, n, rows, cols, c, add);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Products of matrices in their three uses: outputs, gradients of inputs, gradients of weights. Each is a sum over k of
 * a(r, k) * b(k, j), and is computed in the same way:
 *
 *   tile     DOWN rows of ACROSS vectors of sums, which stay in registers while k goes from first to last. For every k
 *            the WIDTH neighbours b(k, j) are added to each row, a(r, k) times. There are enough sums that none waits
 *            for the one before; each load serves several of them; and no sum is taken across a vector.
 *   panel    the WIDTH columns of b, for up to DEPTH values of k, copied to one place. There they stay, in the first
 *            cache, while one tile after another uses them.
 *
 *   outputs                  y(lane, j) = sum of x(lane, k) * w(j, k)     rows and columns change places in the panel
 *   gradients of inputs      x(lane, j) = sum of y(lane, k) * w(k, j)     the panel is w as it is
 *   gradients of weights     w(r, j) = sum of y(k, r) * x(k, j)           k is the lane; y is copied, too
 */
#if !defined(AUTOGRAD_TILE) && (defined(__AVX512VL__) || defined(__aarch64__))
#define AUTOGRAD_TILE 4                      // rows of a tile: as many as there are registers for
#elif !defined(AUTOGRAD_TILE)
#define AUTOGRAD_TILE 3
#endif
enum { ACROSS = 4, DOWN = AUTOGRAD_TILE, WIDTH = ACROSS * VEC, DEPTH = 128, FEW_LANES = 12, MAX_LANES = 128 };

// Products with the same rows w: of each lane y = w x, or gradients of these. A lane sees the first rows[lane] rows,
// and no more than the lane after it does.
typedef struct {
    size_t n;                                // lanes
    double *x[MAX_LANES], *y[MAX_LANES];
    size_t rows[MAX_LANES];
    double *w;
    size_t stride, cols;                     // of w: from row to row, and how much of each is used
    double c;                                // all products are multiplied by it
} Product;

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// The `down` rows of a tile are lanes: then row r is to[r] + to_at, a(r, k) is a[r][a_at + k], and b(k, j) is
// b[k * step + j]. Or they are rows of w: then row r is w + r * step, a(r, k) is a[k][a_at + r], b(k, j) is x[k][j].
typedef enum { OF_LANES, OF_ROWS } TileKind;

// Each row (from zero, or added to) = the sum over k < depth of a(r, k) * b(k, j). A vector of b is loaded once, right
// where it is used: else the compiler runs out of registers.
static ALWAYS_INLINE void tile(TileKind kind, double *const *to, size_t to_at, double *w, double *const *a, size_t a_at,
                               const double *b, size_t step, double *const *x, size_t depth, bool add, size_t down)
{
    Vec sums[DOWN][ACROSS];
    double *row[DOWN], *ar[DOWN];
    for (size_t r = 0; r < down; r++) {
        row[r] = kind == OF_LANES ? to[r] + to_at : w + r * step;
        ar[r] = kind == OF_LANES ? a[r] + a_at : NULL;
        for (size_t i = 0; i < ACROSS; i++) sums[r][i] = add ? load(row[r] + i * VEC) : ZERO;
    }
    size_t k = 0;
    do {
        double ak[DOWN];
        for (size_t r = 0; r < down; r++) ak[r] = kind == OF_LANES ? ar[r][k] : a[k][a_at + r];
        b = kind == OF_LANES ? b : x[k];
        for (size_t i = 0; i < ACROSS; i++) {
            Vec bi = load_once(b + i * VEC);
            for (size_t r = 0; r < down; r++) sums[r][i] += ak[r] * bi;
        }
        if (kind == OF_LANES) b += step;
    } while (++k < depth);
    for (size_t r = 0; r < down; r++) {
        for (size_t i = 0; i < ACROSS; i++) store(row[r] + i * VEC, sums[r][i]);
    }
}

// How many of n rows the next tile takes: DOWN, or one less where that leaves fewer rows alone.
static inline size_t tile_rows(size_t n)
{
    return n == DOWN - 1 || (n > DOWN && n == 2 * (DOWN - 1)) ? DOWN - 1 : n >= DOWN ? DOWN : 1;
}

// n rows, tile after tile. With many lanes, the rows of the next tile are on their way before they are needed.
static ALWAYS_INLINE void tiles(TileKind kind, double *const *to, size_t to_at, double *w, double *const *a,
                                size_t a_at, size_t n, const double *b, size_t step, double *const *x, size_t depth,
                                bool add)
{
    for (size_t r = 0, down; r < n; r += down) {
        down = tile_rows(n - r);
        for (size_t i = r + down; (kind == OF_LANES ? n : depth) >= FEW_LANES && i < n && i < r + down + DOWN; i++) {
            const double *next = kind == OF_LANES ? to[i] + to_at : w + i * step;
            for (size_t j = 0; j < WIDTH; j += 8) __builtin_prefetch(next + j, 1);
        }
        double *const *rows = kind == OF_LANES ? to + r : NULL, *const *ar = kind == OF_LANES ? a + r : a;
        double *wr = kind == OF_LANES ? NULL : w + r * step;
        size_t first = kind == OF_LANES ? a_at : a_at + r;
        if (down == DOWN) {
            tile(kind, rows, to_at, wr, ar, first, b, step, x, depth, add, DOWN);
        } else if (down == DOWN - 1) {
            tile(kind, rows, to_at, wr, ar, first, b, step, x, depth, add, DOWN - 1);
        } else {
            tile(kind, rows, to_at, wr, ar, first, b, step, x, depth, add, 1);
        }
    }
}

static NOINLINE void tiles_of_lanes(double *const *to, size_t to_at, double *const *a, size_t a_at, size_t n,
                                    const double *b, size_t step, size_t depth, bool add)
{
    tiles(OF_LANES, to, to_at, NULL, a, a_at, n, b, step, NULL, depth, add);
}

static NOINLINE void tiles_of_rows(double *w, size_t step, double *const *a, size_t a_at, size_t n, double *const *x,
                                   size_t depth)
{
    tiles(OF_ROWS, NULL, 0, w, a, a_at, n, NULL, step, x, depth, true);
}

// to[j] = c * from[j], and zero from j = n to room
static ALWAYS_INLINE double *pack_row(double *restrict to, const double *restrict from, size_t n, size_t room, double c)
{
    for (size_t j = 0; j < n; j++) to[j] = c * from[j];
    for (size_t j = n; j < room; j++) to[j] = 0;
    return to;
}

// panel[k][j] = c * w(k, j), and zero from j = width on; WIDTH is a constant, where it can be
static NOINLINE void pack(double *panel, const double *w, size_t stride, size_t depth, size_t width, double c)
{
    for (size_t k = 0; k < depth && width == WIDTH; k++) pack_row(panel + k * WIDTH, w + k * stride, WIDTH, WIDTH, c);
    for (size_t k = 0; k < depth && width < WIDTH; k++) pack_row(panel + k * WIDTH, w + k * stride, width, WIDTH, c);
}

// panel[k][j] = c * w(j, k), and zero from j = width on
static NOINLINE void pack_transpose(double *panel, const double *w, size_t stride, size_t depth, size_t width, double c)
{
    size_t k = 0;
#ifdef SHUFFLE
    for (; k + 4 <= depth && width == WIDTH; k += 4) {
        for (size_t j = 0; j < WIDTH; j += 4) {                      // four by four
            const double *from = w + j * stride + k;
            Vec a = c * load(from), b = c * load(from + stride);
            Vec d = c * load(from + 2 * stride), e = c * load(from + 3 * stride);
            Vec even_ab = SHUFFLE(a, b, 0, 4, 2, 6), odd_ab = SHUFFLE(a, b, 1, 5, 3, 7);
            Vec even_de = SHUFFLE(d, e, 0, 4, 2, 6), odd_de = SHUFFLE(d, e, 1, 5, 3, 7);
            store(panel + k * WIDTH + j, SHUFFLE(even_ab, even_de, 0, 1, 4, 5));
            store(panel + (k + 1) * WIDTH + j, SHUFFLE(odd_ab, odd_de, 0, 1, 4, 5));
            store(panel + (k + 2) * WIDTH + j, SHUFFLE(even_ab, even_de, 2, 3, 6, 7));
            store(panel + (k + 3) * WIDTH + j, SHUFFLE(odd_ab, odd_de, 2, 3, 6, 7));
        }
    }
#endif
    for (; k < depth; k++) {
        for (size_t j = 0; j < WIDTH; j++) panel[k * WIDTH + j] = j < width ? c * w[j * stride + k] : 0;
    }
}

// For each lane y = c * w x (to_y), or x = c * (w transposed) y; with `add`, added to what is there.
static NOINLINE void multiply_lanes(const Product *p, bool to_y, bool add)
{
    _Alignas(64) double panel[DEPTH * WIDTH];
    double scratch[DOWN][WIDTH], *scratch_rows[DOWN];      // for tiles of which only a part is there
    for (size_t r = 0; r < DOWN; r++) scratch_rows[r] = scratch[r];
    size_t rows = p->rows[p->n - 1], n_k = to_y ? p->cols : rows, n_j = to_y ? rows : p->cols;
    double *const *from = to_y ? p->x : p->y, *const *to = to_y ? p->y : p->x;
    for (size_t k0 = 0; k0 < n_k; k0 += DEPTH) {
        size_t depth = smaller(n_k - k0, DEPTH);
        for (size_t j0 = 0; j0 < n_j; j0 += WIDTH) {
            size_t width = smaller(n_j - j0, WIDTH), step = WIDTH, lane = 0, down = 0;
            const double *b = panel;
            if (to_y) {
                pack_transpose(panel, p->w + j0 * p->stride + k0, p->stride, depth, width, p->c);
            } else if (width == WIDTH && p->c == 1 && depth * p->stride <= DEPTH * WIDTH) {
                b = p->w + k0 * p->stride + j0;              // small enough to stay in the cache as it is
                step = p->stride;
            } else {
                pack(panel, p->w + k0 * p->stride + j0, p->stride, depth, width, p->c);
            }
            while (p->rows[lane] <= (to_y ? j0 : k0)) lane++;   // skip lanes that see none of these rows
            bool start = add || k0 > 0, all = width == WIDTH && p->rows[lane] == rows;
            for (; lane < p->n; lane += down) {
                down = all ? p->n - lane : tile_rows(p->n - lane);
                // Of the lanes of a tile, the first sees the fewest rows.
                size_t common = to_y ? depth : smaller(depth, p->rows[lane] - k0);
                if (width == WIDTH && (!to_y || p->rows[lane] >= j0 + WIDTH)) {
                    tiles_of_lanes(to + lane, j0, from + lane, k0, down, b, step, common, start);
                } else {
                    tiles_of_lanes(scratch_rows, 0, from + lane, k0, down, b, step, common, false);
                    for (size_t r = 0; r < down; r++) {
                        double *y = to[lane + r] + j0;
                        size_t n_valid = to_y ? smaller(width, p->rows[lane + r] - j0) : width;
                        for (size_t j = 0; j < n_valid; j++) y[j] = (start ? y[j] : 0) + scratch[r][j];
                    }
                }
                for (size_t r = 1; !to_y && !all && r < down; r++) {
                    for (size_t k = common; k < smaller(depth, p->rows[lane + r] - k0); k++) {
                        add_scaled(to[lane + r] + j0, from[lane + r][k0 + k], b + k * step, width);
                    }
                }
            }
        }
    }
}

// w += c * y x^T, for each lane. Here w points to gradients, and the rows of a tile are rows of w. x and y are copied
// to one place first; rows that a lane does not see are zero there.
static NOINLINE void add_outer_products(const Product *p)
{
    enum { COLS = 8 * WIDTH, ROWS = 64, PAD = 8 };           // PAD: so that not all rows meet in the same cache lines
    static _Alignas(64) double x_copy[MAX_LANES][COLS + PAD], y_copy[MAX_LANES][ROWS + PAD];   // too large for stacks
    double scratch[DOWN][WIDTH], *x[MAX_LANES], *y[MAX_LANES];
    size_t rows = p->rows[p->n - 1];
    bool all = p->rows[0] == rows && p->cols % WIDTH == 0;
    for (size_t i0 = 0; i0 < p->cols; i0 += COLS) {
        size_t cols = smaller(p->cols - i0, COLS), whole = (cols + WIDTH - 1) / WIDTH * WIDTH;
        for (size_t lane = 0; lane < p->n; lane++) pack_row(x_copy[lane], p->x[lane] + i0, cols, whole, p->c);
        for (size_t j0 = 0; j0 < rows; j0 += ROWS) {
            size_t n = smaller(rows - j0, ROWS);
            for (size_t lane = 0; lane < p->n; lane++) {
                size_t seen = p->rows[lane] > j0 ? smaller(p->rows[lane] - j0, n) : 0;
                y[lane] = pack_row(y_copy[lane], p->y[lane] + j0, seen, n, 1);
            }
            for (size_t i = 0; i < cols; i += WIDTH) {
                for (size_t lane = 0; lane < p->n; lane++) x[lane] = x_copy[lane] + i;
                for (size_t j = 0, first = 0, down; j < n; j += down) {
                    double *w = p->w + (j0 + j) * p->stride + i0 + i;
                    down = all ? n : tile_rows(n - j);
                    while (p->rows[first] <= j0 + j) first++;        // skip those that see none of them
                    if (i + WIDTH <= cols) {
                        tiles_of_rows(w, p->stride, y + first, j, down, x + first, p->n - first);
                        continue;
                    }
                    memset(scratch, 0, sizeof scratch);
                    tiles_of_rows(scratch[0], WIDTH, y + first, j, down, x + first, p->n - first);
                    for (size_t r = 0; r < down; r++) add_scaled(w + r * p->stride, 1, scratch[r], cols - i);
                }
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * The fast versions of the operations above.
 */

// The largest is found, and the exponentials are taken, a vector at a time; where vec_exp() gives up, the definition
// decides. Vectors are loaded just as they were stored, because a load across two stores would wait.
static void fast_softmax_forward(Line *l)
{
    double *out = l->out, *a = l->a;
    size_t n = l->n, whole = n / VEC * VEC;
    Vec max_vec = ZERO + a[0], sum = ZERO;
    if (n == 1) { softmax_forward(l); return; }             // one value alone has neighbours that are not its own
    for (size_t i = 0; i < whole; i += VEC) max_vec = vec_max(load(a + i), max_vec);
    if (whole < n) max_vec = vec_max(blend_first(load(a + whole), n - whole, max_vec), max_vec);
    double max = max_of((const double *)&max_vec, VEC);
    for (size_t i = 0; i < n; i += VEC) {
        Vec x = load(a + i) - max;
        Vec e = vec_exp(n - i < VEC ? blend_first(x, n - i, ZERO - 100) : x);       // e^-100 is lost in a sum above 1
        store(out + i, e);
        sum += e;
    }
    double total = vec_sum(sum), share = 1 / total;
    for (size_t i = 0; i < n; i += VEC) store(out + i, load(out + i) * share);
    if (isnan(total)) softmax_forward(l);
}

static void fast_softmax_backward(const Tape *t, const Line *l)
{
    double *out = l->out, *g = grad(t, out), *ga = grad(t, l->a), mean = dot(g, out, l->n);
    for (size_t i = 0, n = l->n; i < n; i += VEC) {
        Vec old = load(ga + i), new = old + load(out + i) * (load(g + i) - mean);
        store(ga + i, n - i < VEC ? blend_first(new, n - i, old) : new);
    }
}

static void fast_row_dots_forward(Line *l)
{
    if (l->length % VEC) { row_dots_forward(l); return; }
    multiply_few(&l->out, l->b, l->stride, &l->a, 1, l->n, l->length, l->c, false);
}

static void fast_row_dots_backward(const Tape *t, const Line *l)
{
    if (l->length % VEC) { row_dots_backward(t, l); return; }
    double *g = grad(t, l->out);
    size_t n = l->n, length = l->length, stride = l->stride;
    for (size_t j = 0; j < length; j += VEC) {
        double *b = l->b + j, *gb = grad(t, b), *ga = grad(t, l->a) + j;
        Vec ca = l->c * load(l->a + j), sum = ZERO;
        for (size_t i = 0; i < n; i++, b += stride, gb += stride) {
            sum += g[i] * load(b);
            store(gb, load(gb) + g[i] * ca);
        }
        store(ga, load(ga) + l->c * sum);
    }
}

static void fast_weighted_sum_forward(Line *l)
{
    if (l->length % VEC) { weighted_sum_forward(l); return; }
    double *a = l->a, *out = l->out;
    size_t n = l->n, length = l->length, stride = l->stride;
    for (size_t j = 0; j < length; j += VEC) {
        Vec sum = ZERO;
        const double *b = l->b + j;
        for (size_t i = 0; i < n; i++, b += stride) sum += a[i] * load(b);
        store(out + j, sum);
    }
}

static void fast_weighted_sum_backward(const Tape *t, const Line *l)
{
    if (l->length % VEC) { weighted_sum_backward(t, l); return; }
    double *a = l->a, *g = grad(t, l->out), *ga = grad(t, a);
    size_t n = l->n, length = l->length, stride = l->stride;
    multiply_few(&ga, l->b, stride, &g, 1, n, length, 1, true);
    for (size_t j = 0; j < length; j += VEC) {
        double *gb = grad(t, l->b) + j;
        Vec gj = load(g + j);
        for (size_t i = 0; i < n; i++, gb += stride) store(gb, load(gb) + a[i] * gj);
    }
}

// Can a line be part of one product with that of the lane before? They use the same rows, their operands are distinct,
// and those of the second come after what the first has made.
static inline bool can_join(const Line *l, const Line *before)
{
    if (l->b != before->b || l->a <= before->out) return false;
    if (l->op == OP_LINEAR) return l->a >= before->a + l->w->cols;
    return l->a >= before->a + (l->op == OP_ROW_DOTS ? l->length : before->n) && l->n >= before->n &&
           l->length == before->length && l->stride == before->stride && l->c == before->c &&
           l->b + (l->n - 1) * l->stride + l->length <= before->out;
}

// Gathers line k of as many lanes as can be one product, from the first lane on or (last) from the last one back. A
// weighted sum goes from y to x, the others from x to y.
static void take_lanes(Product *p, Line *const *lanes, size_t n, size_t k, bool last)
{
    for (p->n = 1; p->n < n && p->n < MAX_LANES; p->n++) {
        size_t lane = last ? n - p->n : p->n;
        if (!can_join(&lanes[lane][k], &lanes[lane - 1][k])) break;
    }
    lanes += last ? n - p->n : 0;
    const Line *l = &lanes[0][k];
    bool linear = l->op == OP_LINEAR, weighted = l->op == OP_WEIGHTED_SUM;
    p->w = linear ? l->w->data : l->b;
    p->stride = linear ? l->w->cols : l->stride;
    p->cols = linear ? l->w->cols : l->length;
    p->c = linear || weighted ? 1 : l->c;
    for (size_t lane = 0; lane < p->n; lane++) {
        l = &lanes[lane][k];
        p->x[lane] = weighted ? l->out : l->a;
        p->y[lane] = weighted ? l->a : l->out;
        p->rows[lane] = l->n;
    }
}

// Few lanes are not worth a panel, unless rows end within a vector.
static bool linear_forward_lanes(Line *const *lanes, size_t n, size_t k)
{
    Product p;
    for (; n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, lanes, n, k, false);
        if (p.n < FEW_LANES && p.cols % VEC == 0) {
            multiply_few(p.y, p.w, p.stride, p.x, p.n, p.rows[0], p.cols, 1, false);
        } else {
            multiply_lanes(&p, true, false);
        }
    }
    return true;
}

// The gradients of y = w x for few lanes: all is used in place, as many columns at a time as a tile has.
static void few_lanes_backward(const Tape *t, const Product *p)
{
    double *x[FEW_LANES], *gx[FEW_LANES], *gy[FEW_LANES];
    size_t rows = p->rows[0];
    for (size_t lane = 0; lane < p->n; lane++) {
        gx[lane] = grad(t, p->x[lane]);
        gy[lane] = grad(t, p->y[lane]);
    }
    for (size_t i = 0; i < p->cols; i += WIDTH) {
        for (size_t lane = 0; lane < p->n; lane++) x[lane] = p->x[lane] + i;
        tiles_of_rows(grad(t, p->w + i), p->stride, gy, 0, rows, x, p->n);
    }
    for (size_t k = 0; k < rows; k += DEPTH) {
        const double *w = p->w + k * p->stride;
        size_t depth = smaller(DEPTH, rows - k);
        for (size_t i = 0; i < p->cols; i += WIDTH) tiles_of_lanes(gx, i, gy, k, p->n, w + i, p->stride, depth, true);
    }
}

// The gradients of products: of the rows first, then of what was multiplied by them.
static bool products_backward_lanes(const Tape *t, Line *const *lanes, size_t n, size_t k)
{
    Product p;
    bool linear = lanes[0][k].op == OP_LINEAR, weighted = lanes[0][k].op == OP_WEIGHTED_SUM;
    for (; n > 0; n -= p.n) {
        take_lanes(&p, lanes, n, k, true);
        if (linear && p.n < FEW_LANES && p.cols % WIDTH == 0) {
            few_lanes_backward(t, &p);
            continue;
        }
        double *w = p.w, **in = weighted ? p.y : p.x, **out = weighted ? p.x : p.y;
        for (size_t lane = 0; lane < p.n; lane++) out[lane] = grad(t, out[lane]);
        p.w = grad(t, w);
        add_outer_products(&p);
        for (size_t lane = 0; lane < p.n; lane++) in[lane] = grad(t, in[lane]);
        p.w = w;
        multiply_lanes(&p, weighted, true);
    }
    return true;
}

// Short rows, or few of them, are not worth a product.
static bool too_small(const Line *l, size_t n) { return n * l->length < 32 * WIDTH || l->length <= VEC; }

static bool rows_forward_lanes(Line *const *lanes, size_t n, size_t k)
{
    Product p;
    if (too_small(&lanes[0][k], n)) return false;
    for (; n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, lanes, n, k, false);
        multiply_lanes(&p, lanes[0][k].op == OP_ROW_DOTS, false);
    }
    return true;
}

static bool rows_backward_lanes(const Tape *t, Line *const *lanes, size_t n, size_t k)
{
    return !too_small(&lanes[0][k], n) && products_backward_lanes(t, lanes, n, k);
}

static const FastOperation fast_operations[N_OPS] = {
    [OP_LINEAR] = {NULL, NULL, linear_forward_lanes, products_backward_lanes},
    [OP_ROW_DOTS] = {fast_row_dots_forward, fast_row_dots_backward, rows_forward_lanes, rows_backward_lanes},
    [OP_WEIGHTED_SUM] = {fast_weighted_sum_forward, fast_weighted_sum_backward, rows_forward_lanes,
                         rows_backward_lanes},
    [OP_SOFTMAX] = {fast_softmax_forward, fast_softmax_backward, NULL, NULL},
};
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * Adam, four vectors at a time. One division serves all four: it gives the reciprocal of the product of their
 * denominators, and multiplying that by the other three gives each its own; each is divided by itself where they are
 * too large to be multiplied, or not numbers. Nothing is done where the rate or eps is out of range, or where the means
 * forget so fast that the shorter way to write them loses digits: then the definition, adam() in microgpt.c, does it.
 */
size_t ag_adam(double *p, double *g, double *m, double *v, size_t n, double lr, double beta1, double beta2, double eps,
               double correct1, double correct2)
{
    size_t i = 0;
#ifdef VEC
    double root2 = sqrt(correct2), rate = lr * root2 / correct1, weight1 = 1 - beta1, weight2 = 1 - beta2;
    eps *= root2;
    if (rate < 1e-100 || rate > 1e150 || eps < 1e-15 || beta1 < 0.5 || beta2 < 0.5) return 0;
    for (; i + 4 * VEC <= n; i += 4 * VEC) {
        Vec mean[4], denom[4];
        for (size_t k = 0; k < 4; k++) {
            size_t j = i + k * VEC;
            Vec gj = load(g + j), mj = load(m + j), vj = load(v + j), square = vj + weight2 * (gj * gj - vj);
            mean[k] = mj + weight1 * (gj - mj);
            denom[k] = vec_sqrt(square) + eps;
            store(m + j, mean[k]);
            store(v + j, square);
            store(g + j, ZERO);
        }
        Vec denom01 = denom[0] * denom[1], denom23 = denom[2] * denom[3], all = denom01 * denom23;
        Vec inverse = rate / all, inverse01 = inverse * denom23, inverse23 = inverse * denom01;
        Vec move[4] = {inverse01 * denom[1], inverse01 * denom[0], inverse23 * denom[3], inverse23 * denom[2]};
        for (size_t k = 0; k < 4; k++) {
            if (!(vec_sum(all) < 1e200)) move[k] = rate / denom[k];
            store(p + i + k * VEC, load(p + i + k * VEC) - mean[k] * move[k]);
        }
    }
#else
    (void)p, (void)g, (void)m, (void)v, (void)n, (void)lr, (void)beta1, (void)beta2, (void)eps;
    (void)correct1, (void)correct2;
#endif
    return i;
}
