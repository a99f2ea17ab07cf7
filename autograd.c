/* autograd.c: the operations of autograd.h, each with its value and its local derivatives side by side.
 *
 *   the tape        memory, the mark, one line
 *   the atoms       value and derivative of each
 *   made of atoms   each by its definition, then as one line
 *   the walks       forward from the first line to the last, backward from the last to the first
 *   ==== the same, faster: vectors, products of matrices, many inputs at once, Adam
 */
#include "autograd.h"

#if defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__
#error "-ffast-math, which is a part of -Ofast, drops the checks for numbers that are not finite: build without it"
#endif

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------------
 * The tape.
 */
#define BLOCK 4          // vectors begin at, and have room for, a multiple of so many values

static size_t round_up(size_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

bool tape_init(Tape *t, size_t max_values, size_t max_lines, size_t max_lanes)
{
    *t = (Tape){.counting = max_values == 0};
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
    t->first_value = t->n_values;
    t->first_line = t->n_lines;
}

void tape_drop(Tape *t)
{
    t->n_values = t->first_value;
    t->n_lines = t->first_line;
    t->n_lanes = 0;
    t->in_lane = t->ragged = t->pending = false;
}

double *ag_vector(Tape *t, size_t n)
{
    size_t at = n > 1 ? round_up(t->n_values) : t->n_values;
    size_t room = n > 1 ? round_up(n) : n;
    if (t->counting) {
        size_t most = SIZE_MAX / 2 + 1 - BLOCK;        // whole blocks, so that rounding does not go beyond it
        t->n_values = room < most - at ? at + room : most;
        return t->data;                                // a place that nobody will look at
    }
    if (room > t->max_values - BLOCK - at) {
        abort();         // the caller has not reserved what it uses: a mistake in the program, not in its input
    }
    t->n_values = at + room;
    return t->data + at;
}

double *ag_scalar(Tape *t, double data)
{
    double *value = ag_vector(t, 1);
    *value = data;
    return value;
}

// Does what line k of n lanes says; a single line is line 0 of one lane. See the walks.
static void lines_forward(Line *const *lanes, size_t n, size_t k);

// Writes one line; end_line() then does what it says, unless that is to wait for tape_compute().
static inline Line *begin_line(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    if (!t->counting && t->n_lines == t->max_lines) abort();
    Line *l = &t->lines[t->counting ? 0 : t->n_lines];
    t->n_lines++;
    l->op = op;
    l->n = (uint32_t)n;
    l->out = out;
    l->a = a;
    l->b = b;
    l->c = c;
    return l;
}

static inline double *end_line(const Tape *t, Line *l)
{
    double *out = l->out;
    if (!t->pending && !t->counting) lines_forward(&l, 1, 0);
    return out;
}

static double *each_atom(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    for (size_t i = 0; i < n; i++) {
        end_line(t, begin_line(t, op, out + i, 1, a + i, b ? b + i : NULL, c));
    }
    return out;
}

// An atom on n neighbours: one line, or n lines where every one is to be seen.
static inline double *atoms(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    return fused(t) ? end_line(t, begin_line(t, op, out, n, a, b, c)) : each_atom(t, op, out, n, a, b, c);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The atoms. Forward: the data of out from the data of a and b. Backward: to the gradients of a and b is added the
 * gradient of out times the local derivative.
 */

// a + b. Local derivatives: 1 and 1.
static void add_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] + l->b[i];
}

static void add_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), *gb = grad(t, l->b);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += g[i];
        gb[i] += g[i];
    }
}

// a * b. Local derivatives: b and a.
static void mul_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] * l->b[i];
}

static void mul_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), *gb = grad(t, l->b);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->b[i] * g[i];
        gb[i] += l->a[i] * g[i];
    }
}

// a^c. Local derivative: c * a^(c-1). Squares are common, and need no library.
static void pow_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->c == 2 ? l->a[i] * l->a[i] : pow(l->a[i], l->c);
    }
}

static void pow_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->c * (l->c == 2 ? l->a[i] : pow(l->a[i], l->c - 1)) * g[i];
    }
}

// log a. Local derivative: 1 / a.
static void log_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = log(l->a[i]);
}

static void log_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += 1 / l->a[i] * g[i];
}

// e^a. Local derivative: e^a, which is out.
static void exp_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = exp(l->a[i]);
}

static void exp_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += l->out[i] * g[i];
}

// the larger of a and 0. Local derivative: 1 where a is positive, else 0.
static void relu_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] > 0 ? l->a[i] : 0;
}

static void relu_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += l->a[i] > 0 ? g[i] : 0;
}

// a + c. Local derivative: 1.
static void add_const_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] + l->c;
}

static void add_const_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += g[i];
}

// a * c. Local derivative: c.
static void mul_const_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] * l->c;
}

static void mul_const_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) ga[i] += l->c * g[i];
}

// a, in another place. Local derivative: 1, as of a + c, whose backward serves here, too.
static void copy_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i];
}

double *ag_add(Tape *t, double *a, double *b, size_t n) { return atoms(t, OP_ADD, ag_vector(t, n), n, a, b, 0); }
double *ag_mul(Tape *t, double *a, double *b, size_t n) { return atoms(t, OP_MUL, ag_vector(t, n), n, a, b, 0); }
double *ag_pow(Tape *t, double *a, double c, size_t n) { return atoms(t, OP_POW, ag_vector(t, n), n, a, NULL, c); }
double *ag_log(Tape *t, double *a, size_t n) { return atoms(t, OP_LOG, ag_vector(t, n), n, a, NULL, 0); }
double *ag_exp(Tape *t, double *a, size_t n) { return atoms(t, OP_EXP, ag_vector(t, n), n, a, NULL, 0); }
double *ag_relu(Tape *t, double *a, size_t n) { return atoms(t, OP_RELU, ag_vector(t, n), n, a, NULL, 0); }

double *ag_add_const(Tape *t, double *a, double c, size_t n)
{
    return atoms(t, OP_ADD_CONST, ag_vector(t, n), n, a, NULL, c);
}

double *ag_mul_const(Tape *t, double *a, double c, size_t n)
{
    return atoms(t, OP_MUL_CONST, ag_vector(t, n), n, a, NULL, c);
}

double *ag_copy(Tape *t, double *out, double *a, size_t n) { return atoms(t, OP_COPY, out, n, a, NULL, 0); }

/* ------------------------------------------------------------------------------------------------------------------
 * Made of atoms. Some are only that. Of the others the first half of the function is the definition, atom by atom;
 * otherwise one line says the same, and its forward and backward compute at once what the atoms would. Of linear,
 * softmax and rmsnorm only the one line is here: the definitions are in microgpt.c.
 */
double *ag_neg(Tape *t, double *a, size_t n) { return ag_mul_const(t, a, -1, n); }
double *ag_sub(Tape *t, double *a, double *b, size_t n) { return ag_add(t, a, ag_neg(t, b, n), n); }
double *ag_div(Tape *t, double *a, double *b, size_t n) { return ag_mul(t, a, ag_pow(t, b, -1, n), n); }

// out = a[0]*b[0] + a[1]*b[1] + ... atom by atom: the definition of every sum of products below.
static double *sum_of_products(Tape *t, double *out, double *a, double *b, size_t b_stride, size_t n)
{
    double *sum = atoms(t, OP_MUL, n == 1 ? out : ag_vector(t, 1), 1, a, b, 0);
    for (size_t i = 1; i < n; i++) {
        double *product = ag_mul(t, a + i, b + i * b_stride, 1);
        sum = atoms(t, OP_ADD, i == n - 1 ? out : ag_vector(t, 1), 1, sum, product, 0);
    }
    return out;
}

// a[i] * s. Local derivatives: s, and for s all of the a[i].
double *ag_mul_scalar(Tape *t, double *a, double *s, size_t n)
{
    double *out = ag_vector(t, n);
    if (!fused(t)) {
        for (size_t i = 0; i < n; i++) atoms(t, OP_MUL, out + i, 1, a + i, s, 0);
        return out;
    }
    return end_line(t, begin_line(t, OP_MUL_SCALAR, out, n, a, s, 0));
}

static void mul_scalar_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->a[i] * *l->b;
}

static void mul_scalar_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), sum = 0;
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += *l->b * g[i];
        sum += l->a[i] * g[i];
    }
    *grad(t, l->b) += sum;
}

// a[0] + a[1] + ... Local derivatives: 1.
double *ag_sum(Tape *t, double *a, size_t n)
{
    if (!fused(t)) {
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
    if (!fused(t)) return sum_of_products(t, out, a, b, 1, n);
    return end_line(t, begin_line(t, OP_DOT, out, n, a, b, 0));
}

// These two are what the sums of products below are made of, once they are one line.
static inline double dot(const double *a, const double *b, size_t n)
{
    double sums[4] = {0, 0, 0, 0};                     // so that no addition waits for the one before
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < 4; k++) sums[k] += a[i + k] * b[i + k];
    }
    double sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static inline void add_scaled(double *restrict y, double c, const double *restrict x, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < 4; k++) y[i + k] += c * x[i + k];
    }
    for (; i < n; i++) y[i] += c * x[i];
}

static void dot_forward(Line *l)
{
    *l->out = dot(l->a, l->b, l->n);
}

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
    if (!fused(t)) {
        for (size_t i = 0; i < n_keys; i++) {
            sum_of_products(t, out + i, query, keys + i * stride, 1, length);
        }
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
    if (!fused(t)) {
        for (size_t j = 0; j < length; j++) {
            sum_of_products(t, out + j, weights, rows + j, stride, n_rows);
        }
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

// e^(a[i] - max) / total, where total is the sum of all e^(a[i] - max). Subtracting the maximum changes nothing but the
// size of the exponentials, which could overflow without it. Local derivatives: d out[i] / d a[k] is -out[i]*out[k],
// plus out[i] where i is k.
double *ag_softmax(Tape *t, double *a, size_t n)
{
    return end_line(t, begin_line(t, OP_SOFTMAX, ag_vector(t, n), n, a, NULL, 0));
}

static double max_of(const double *a, size_t n)
{
    double max = a[0];
    for (size_t i = 1; i < n; i++) max = a[i] > max ? a[i] : max;
    return max;
}

double ag_max(const Tape *t, const double *a, size_t n)
{
    return t->counting ? 0 : max_of(a, n);
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
 * The walks over the lines.
 */
const Operation operations[N_OPS] = {
    [OP_ADD] = {"add", add_forward, add_backward},
    [OP_MUL] = {"mul", mul_forward, mul_backward},
    [OP_POW] = {"pow", pow_forward, pow_backward},
    [OP_LOG] = {"log", log_forward, log_backward},
    [OP_EXP] = {"exp", exp_forward, exp_backward},
    [OP_RELU] = {"relu", relu_forward, relu_backward},
    [OP_ADD_CONST] = {"add const", add_const_forward, add_const_backward},
    [OP_MUL_CONST] = {"mul const", mul_const_forward, mul_const_backward},
    [OP_COPY] = {"copy", copy_forward, add_const_backward},
    [OP_MUL_SCALAR] = {"mul scalar", mul_scalar_forward, mul_scalar_backward},
    [OP_SUM] = {"sum", sum_forward, sum_backward},
    [OP_DOT] = {"dot", dot_forward, dot_backward},
    [OP_ROW_DOTS] = {"row dots", row_dots_forward, row_dots_backward},
    [OP_WEIGHTED_SUM] = {"weighted sum", weighted_sum_forward, weighted_sum_backward},
    [OP_LINEAR] = {"linear", linear_forward, linear_backward},
    [OP_SOFTMAX] = {"softmax", softmax_forward, softmax_backward},
    [OP_RMSNORM] = {"rmsnorm", rmsnorm_forward, rmsnorm_backward},
};

// Line k of n lanes at once, where the second half of this file has a faster way to do it; else NULL. A single line is
// line 0 of one lane.
typedef struct {
    void (*forward)(Line *const *lanes, size_t n, size_t k);
    void (*backward)(const Tape *t, Line *const *lanes, size_t n, size_t k);
} FastOperation;

static const FastOperation faster[N_OPS];

static void lines_forward(Line *const *lanes, size_t n, size_t k)
{
    Op op = lanes[0][k].op;
    if (faster[op].forward) {
        faster[op].forward(lanes, n, k);
        return;
    }
    for (size_t s = 0; s < n; s++) operations[op].forward(&lanes[s][k]);
}

static void lines_backward(const Tape *t, Line *const *lanes, size_t n, size_t k)
{
    Op op = lanes[0][k].op;
    if (faster[op].backward) {
        faster[op].backward(t, lanes, n, k);
        return;
    }
    for (size_t s = n; s-- > 0;) operations[op].backward(t, &lanes[s][k]);
}

// Is x one of the values that a line made?
static bool is_output_of(const Line *l, const double *x)
{
    size_t n = l->op == OP_SUM || l->op == OP_DOT ? 1 : l->op == OP_WEIGHTED_SUM ? l->length : l->n;
    return x >= l->out && x < l->out + n;
}

static Line *lanes_backward(const Tape *t, Line *end);

void backward(Tape *t, double *result)
{
    tape_compute(t);
    memset(grad(t, t->data + t->first_value), 0, (t->n_values - t->first_value) * sizeof(double));
    *grad(t, result) = 1;
    Line *first = t->lines + t->first_line, *l = t->lines + t->n_lines;
    while (l > first && !is_output_of(l - 1, result)) {
        l--;                                           // lines after the result have no part in it
    }
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
 * once for many lanes. Without optimization every line is computed when it is written, for whoever steps through it.
 */
static void end_lane(Tape *t)
{
    if (!t->in_lane) return;
    size_t length = (size_t)(t->lines + t->n_lines - t->lanes[t->n_lanes - 1]);
    t->ragged = t->ragged || (t->n_lanes > 1 && length != t->lane_length);
    t->lane_length = length;
    t->in_lane = false;
}

void tape_lane(Tape *t)
{
#ifdef __OPTIMIZE__
    if (t->counting) {
        t->n_lanes++;
    } else if (!t->atomic && (t->pending || t->n_lanes == 0)) {
        end_lane(t);
        if (t->n_lanes == t->max_lanes) abort();
        t->lanes[t->n_lanes++] = t->lines + t->n_lines;
        t->in_lane = t->pending = true;
    }
#else
    (void)t;
#endif
}

void tape_end_lanes(Tape *t)
{
    end_lane(t);
}

// Is line k of a lane the same as that of the lane before? Where lanes are taken together as one product, their
// operands must be distinct, and come after what the lanes before have made of theirs. Short rows never are.
static inline bool lines_are_alike(const Line *l, const Line *before)
{
    if (l->op != before->op) return false;
    if (l->op == OP_LINEAR) {
        return l->w == before->w && l->a >= before->a + l->w->cols && l->a > before->out;
    }
    bool rows = (l->op == OP_ROW_DOTS || l->op == OP_WEIGHTED_SUM) && l->length > BLOCK;
    return !rows || (l->a >= before->a + (l->op == OP_ROW_DOTS ? l->length : before->n) && l->a > before->out);
}

static bool lanes_are_alike(const Tape *t)
{
    if (t->ragged || t->n_lanes < 2) return false;
    for (size_t s = 1; s < t->n_lanes; s++) {
        for (size_t k = 0; k < t->lane_length; k++) {
            if (!lines_are_alike(&t->lanes[s][k], &t->lanes[s - 1][k])) return false;
        }
    }
    return true;
}

void tape_compute(Tape *t)
{
    if (!t->pending) return;
    end_lane(t);
    t->pending = false;
    Line *l = t->lanes[0], *end = t->lines + t->n_lines;
    t->n_lanes = lanes_are_alike(t) ? t->n_lanes : 0;
    for (size_t k = 0; t->n_lanes > 0 && k < t->lane_length; k++) {
        lines_forward(t->lanes, t->n_lanes, k);
    }
    for (size_t s = 0; s <= t->n_lanes; s++) {         // then what comes before, between and after the lanes
        Line *next = s < t->n_lanes ? t->lanes[s] : end;
        for (; l < next; l++) lines_forward(&l, 1, 0);
        l += s < t->n_lanes ? t->lane_length : 0;
    }
}

// Backward through the lines before `end` that tape_compute() took care of, in the reverse order; but not if `end` is
// among the lanes. Returns where it stopped.
static Line *lanes_backward(const Tape *t, Line *end)
{
    if (t->n_lanes == 0 || end < t->lanes[t->n_lanes - 1] + t->lane_length) return end;
    for (size_t s = t->n_lanes; s-- > 0; end = t->lanes[s]) {
        while (end > t->lanes[s] + t->lane_length) {
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
 * ag_vector()), so a loop may look past n to the end of its last vector; keep_first() then keeps what is there out of
 * sums, and blend_first() leaves it as it is: single values, and slices, have neighbours there.
 */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && FLT_EVAL_METHOD == 0 && !defined(AUTOGRAD_PLAIN)

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

#ifdef __AVX__
#define VEC 4
#else
#define VEC 2
#endif
#if defined(__clang__) || __GNUC__ >= 12
#define HAS_SHUFFLE
#endif
typedef double Vec __attribute__((vector_size(VEC * sizeof(double))));
typedef uint64_t Bits __attribute__((vector_size(VEC * sizeof(double))));
#define ZERO ((Vec){0})

static inline Vec load(const double *p)
{
    Vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(double *p, Vec v)
{
    memcpy(p, &v, sizeof v);
}

// a load that the compiler neither moves nor repeats
static inline Vec load_once(const double *p)
{
    typedef Vec Anywhere __attribute__((aligned(8), may_alias));
    return *(const volatile Anywhere *)p;
}

// all bits of the first n numbers, of which there are VEC at most
static inline Bits first_ones(size_t n)
{
#if VEC == 4
    static const uint64_t ones[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0, 0, 0};
#else
    static const uint64_t ones[] = {UINT64_MAX, UINT64_MAX, 0, 0};
#endif
    Bits keep;
    memcpy(&keep, ones + VEC - n, sizeof keep);
    return keep;
}

// the first n numbers of v, and zero after them
static inline Vec keep_first(Vec v, size_t n)
{
    return (Vec)((Bits)v & first_ones(n));
}

// the first n numbers of v, then those of other
static inline Vec blend_first(Vec v, size_t n, Vec other)
{
    Bits keep = first_ones(n);
    return (Vec)(((Bits)v & keep) | ((Bits)other & ~keep));
}

static inline Vec larger(Vec a, Vec b)
{
    for (int k = 0; k < VEC; k++) a[k] = a[k] > b[k] ? a[k] : b[k];
    return a;
}

static inline double vec_sum(Vec v)
{
#if VEC == 4 && defined(HAS_SHUFFLE)
    Vec half = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
    return half[0] + half[1];
#elif VEC == 4
    return (v[0] + v[2]) + (v[1] + v[3]);
#else
    return v[0] + v[1];
#endif
}

static inline double vec_max(Vec v)
{
    double a = v[0] > v[1] ? v[0] : v[1];
#if VEC == 4
    double b = v[2] > v[3] ? v[2] : v[3];
    a = a > b ? a : b;
#endif
    return a;
}

// s[0..3] = the sums of four vectors
static inline void vec_sums(double *s, Vec a, Vec b, Vec c, Vec d)
{
#if VEC == 4 && defined(HAS_SHUFFLE)
    Vec ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    Vec cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
    store(s, __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
#else
    s[0] = vec_sum(a);
    s[1] = vec_sum(b);
    s[2] = vec_sum(c);
    s[3] = vec_sum(d);
#endif
}

static inline Vec square_root(Vec v)
{
    for (int k = 0; k < VEC; k++) v[k] = sqrt(v[k]);
    return v;
}

// e^x = 2^k * e^r, with k the integer nearest to x / ln 2: then |r| < 0.35, and the series needs terms up to r^12.
// Adding 1.5 * 2^52 rounds x / ln 2 to k and leaves k in the low bits, from where it is shifted into the exponent.
// Where x is too small for that, or not a number, the result is not a number. x must not be positive.
static inline Vec exponential(Vec x)
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
 * Small kernels.
 */

// the largest of n values; vectors are loaded just as they were stored, because a load across two stores would wait
static inline double largest(const double *a, size_t n)
{
    Vec max = ZERO + a[0];
    size_t i = 0;
    for (; i + VEC <= n; i += VEC) max = larger(load(a + i), max);
    if (i < n) max = larger(blend_first(load(a + i), n - i, max), max);
    return vec_max(max);
}

// s[k] = row k of w dot x, for four rows at once, so that each piece of x is loaded once for four sums. From the
// (n+1)-th row on, the n-th is taken instead.
static ALWAYS_INLINE void dot_rows(double *restrict s, const double *restrict w, size_t stride, const double *restrict x,
                            size_t n, size_t cols)
{
    const double *w0 = w, *w1 = n > 1 ? w0 + stride : w0;
    const double *w2 = n > 2 ? w1 + stride : w1, *w3 = n > 3 ? w2 + stride : w2;
    Vec xi = load(x), s0 = load(w0) * xi, s1 = load(w1) * xi, s2 = load(w2) * xi, s3 = load(w3) * xi;
    if (cols < VEC) {
        s0 = keep_first(s0, cols), s1 = keep_first(s1, cols), s2 = keep_first(s2, cols), s3 = keep_first(s3, cols);
    }
    size_t i = VEC;
    for (; i + VEC <= cols; i += VEC) {
        xi = load(x + i);
        s0 += load(w0 + i) * xi;
        s1 += load(w1 + i) * xi;
        s2 += load(w2 + i) * xi;
        s3 += load(w3 + i) * xi;
    }
    if (i < cols) {
        xi = load(x + i);
        s0 += keep_first(load(w0 + i) * xi, cols - i);
        s1 += keep_first(load(w1 + i) * xi, cols - i);
        s2 += keep_first(load(w2 + i) * xi, cols - i);
        s3 += keep_first(load(w3 + i) * xi, cols - i);
    }
    vec_sums(s, s0, s1, s2, s3);
}

// y[s][j] = c * (row j of w dot x[s]), or that added to y[s][j], for n pairs of x and y. Rows are fetched once for all.
static ALWAYS_INLINE void multiply(double *const *y, const double *w, size_t stride, double *const *x, size_t n, size_t rows,
                            size_t cols, double c, bool add)
{
    double sums[4];
    size_t j = 0;
    for (; j + 4 <= rows; j += 4) {
        for (size_t s = 0; s < n; s++) {
            double *to = y[s] + j;
            dot_rows(sums, w + j * stride, stride, x[s], 4, cols);
            for (size_t k = 0; k < 4; k += VEC) {
                store(to + k, add ? load(to + k) + c * load(sums + k) : c * load(sums + k));
            }
        }
    }
    for (size_t s = 0; j < rows && s < n; s++) {
        double *to = y[s] + j;
        dot_rows(sums, w + j * stride, stride, x[s], rows - j, cols);
        for (size_t k = 0; k < rows - j; k += VEC) {
            Vec old = load(to + k), new = add ? old + c * load(sums + k) : c * load(sums + k);
            store(to + k, VEC < 4 && k + VEC <= rows - j ? new : blend_first(new, rows - j - k, old));
        }
    }
}

// The same for rows of any length. Where the length is known, multiply() needs no loop for it.
static NOINLINE void multiply_any(double *const *y, const double *w, size_t stride, double *const *x, size_t n,
                               size_t rows, size_t cols, double c, bool add)
{
    multiply(y, w, stride, x, n, rows, cols, c, add);
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
 * Outputs, y(lane, j) = sum of x(lane, k) * w(j, k), and gradients of inputs, x(lane, j) = sum of y(lane, k) * w(k, j),
 * differ in how the panel is copied. For gradients of weights, w(r, j) = sum of y(k, r) * x(k, j), k is the lane: of
 * many lanes y is crossed first, so that lanes are neighbours; of a few, tile_of_rows() takes it as it lies.
 */
#ifndef AUTOGRAD_TILE
#if defined(__AVX512VL__) || defined(__aarch64__)
#define AUTOGRAD_TILE 4                      // rows of a tile: as many as there are registers for
#else
#define AUTOGRAD_TILE 3
#endif
#endif
enum { ACROSS = 4, DOWN = AUTOGRAD_TILE, WIDTH = ACROSS * VEC, DEPTH = 128, PANELS = 8 };
enum { FEW_LANES = 12, MAX_LANES = 128, MAX_ROWS = 96 };

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

static ALWAYS_INLINE void load_tile(Vec sums[DOWN][ACROSS], double *const *rows, size_t down, bool add)
{
    for (size_t r = 0; r < down; r++) {
        for (size_t i = 0; i < ACROSS; i++) sums[r][i] = add ? load(rows[r] + i * VEC) : ZERO;
    }
}

static ALWAYS_INLINE void store_tile(Vec sums[DOWN][ACROSS], double *const *rows, size_t down)
{
    for (size_t r = 0; r < down; r++) {
        for (size_t i = 0; i < ACROSS; i++) store(rows[r] + i * VEC, sums[r][i]);
    }
}

// One step of k. Each vector of b is loaded once, right where it is used: else the compiler runs out of registers.
static ALWAYS_INLINE void add_to_tile(Vec sums[DOWN][ACROSS], const double *a, const double *b, size_t down)
{
    for (size_t i = 0; i < ACROSS; i++) {
        Vec bi = load_once(b + i * VEC);
        for (size_t r = 0; r < down; r++) sums[r][i] += a[r] * bi;
    }
}

// Has the next tile's row on its way before it is needed.
static inline void fetch(const double *row)
{
    for (size_t j = 0; j < WIDTH; j += 8) __builtin_prefetch(row + j, 1);
}

// How many of n rows the next tile takes: DOWN, or one less, so that none but a single row has a tile of its own.
static inline size_t tile_rows(size_t n)
{
    return n == DOWN + 1 || n == DOWN - 1 ? DOWN - 1 : n >= DOWN ? DOWN : 1;
}

// Tiles whose rows are n lanes: c[s][j] (from zero, or added to) the sum over k < depth of a[s][k] * b[k * step + j].
static ALWAYS_INLINE void tile_of_lanes(double *const *c, size_t c_at, double *const *a, size_t a_at, const double *b,
                                 size_t step, size_t depth, bool add, size_t down)
{
    Vec sums[DOWN][ACROSS];
    double *to[DOWN], *from[DOWN];
    for (size_t r = 0; r < down; r++) {
        to[r] = c[r] + c_at;
        from[r] = a[r] + a_at;
    }
    load_tile(sums, to, down, add);
    size_t k = 0;
    do {
        double ak[DOWN];
        for (size_t r = 0; r < down; r++) ak[r] = from[r][k];
        add_to_tile(sums, ak, b, down);
        b += step;
    } while (++k < depth);
    store_tile(sums, to, down);
}

static NOINLINE void add_lanes(double *const *c, size_t c_at, double *const *a, size_t a_at, size_t n, const double *b,
                            size_t step, size_t depth, bool add)
{
    for (size_t s = 0, down; s < n; s += down) {
        down = tile_rows(n - s);
        for (size_t r = s + down; n >= FEW_LANES && r < n && r < s + down + DOWN; r++) {
            fetch(c[r] + c_at);
        }
        if (down == DOWN) {
            tile_of_lanes(c + s, c_at, a + s, a_at, b, step, depth, add, DOWN);
        } else if (down == DOWN - 1) {
            tile_of_lanes(c + s, c_at, a + s, a_at, b, step, depth, add, DOWN - 1);
        } else {
            tile_of_lanes(c + s, c_at, a + s, a_at, b, step, depth, add, 1);
        }
    }
}

// Tiles whose rows are n rows of w: c[r * c_step + j] += the sum over k < depth of a[k][at + r] * b[k][j].
static ALWAYS_INLINE void tile_of_rows(double *c, size_t c_step, double *const *a, size_t at, const double *const *b,
                                size_t depth, size_t down)
{
    Vec sums[DOWN][ACROSS];
    double *to[DOWN];
    for (size_t r = 0; r < down; r++) to[r] = c + r * c_step;
    load_tile(sums, to, down, true);
    size_t k = 0;
    do {
        add_to_tile(sums, a[k] + at, b[k], down);
    } while (++k < depth);
    store_tile(sums, to, down);
}

static NOINLINE void add_rows(double *c, size_t c_step, size_t n, double *const *a, size_t at, const double *const *b,
                           size_t depth)
{
    for (size_t r = 0, down; r < n; r += down, c += down * c_step) {
        down = tile_rows(n - r);
        for (size_t next = down; depth >= FEW_LANES && r + next < n && next < down + DOWN; next++) {
            fetch(c + next * c_step);
        }
        if (down == DOWN) {
            tile_of_rows(c, c_step, a, at + r, b, depth, DOWN);
        } else if (down == DOWN - 1) {
            tile_of_rows(c, c_step, a, at + r, b, depth, DOWN - 1);
        } else {
            tile_of_rows(c, c_step, a, at + r, b, depth, 1);
        }
    }
}

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// to[j] = c * from[j], and zero from j = width on
static inline void pack_row(double *to, const double *from, size_t width, double c)
{
    if (width == WIDTH) {
        for (size_t j = 0; j < WIDTH; j += VEC) store(to + j, c * load(from + j));
    } else {
        for (size_t j = 0; j < WIDTH; j++) to[j] = j < width ? c * from[j] : 0;
    }
}

// panel[k][j] = c * w(k, j), and zero from j = width on
static NOINLINE void pack(double *panel, const double *w, size_t stride, size_t depth, size_t width, double c)
{
    for (size_t k = 0; k < depth; k++) pack_row(panel + k * WIDTH, w + k * stride, width, c);
}

// to[i * step + k] = c * from k[i] for i, k < 4: rows become columns
static inline void cross(double *to, size_t step, const double *from0, const double *from1, const double *from2,
                         const double *from3, double c)
{
#if VEC == 4 && defined(HAS_SHUFFLE)
    Vec r0 = c * load(from0), r1 = c * load(from1), r2 = c * load(from2), r3 = c * load(from3);
    Vec even01 = __builtin_shufflevector(r0, r1, 0, 4, 2, 6), odd01 = __builtin_shufflevector(r0, r1, 1, 5, 3, 7);
    Vec even23 = __builtin_shufflevector(r2, r3, 0, 4, 2, 6), odd23 = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
    store(to, __builtin_shufflevector(even01, even23, 0, 1, 4, 5));
    store(to + step, __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5));
    store(to + 2 * step, __builtin_shufflevector(even01, even23, 2, 3, 6, 7));
    store(to + 3 * step, __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7));
#else
    for (size_t i = 0; i < 4; i++) {
        to[i * step] = c * from0[i];
        to[i * step + 1] = c * from1[i];
        to[i * step + 2] = c * from2[i];
        to[i * step + 3] = c * from3[i];
    }
#endif
}

// panel[k][j] = c * w(j, k), and zero from j = width on
static NOINLINE void pack_crossed(double *panel, const double *w, size_t stride, size_t depth, size_t width, double c)
{
    size_t k = 0;
    for (; k + 4 <= depth && width == WIDTH; k += 4) {
        for (size_t j = 0; j < WIDTH; j += 4) {
            const double *from = w + j * stride + k;
            cross(panel + k * WIDTH + j, WIDTH, from, from + stride, from + 2 * stride, from + 3 * stride, c);
        }
    }
    for (; k < depth; k++) {
        for (size_t j = 0; j < WIDTH; j++) {
            panel[k * WIDTH + j] = j < width ? c * w[j * stride + k] : 0;
        }
    }
}

// Forward, into y, or added to it: the outputs. Backward, added to x: what the gradients of y make of w.
static NOINLINE void multiply_lanes(const Product *l, bool forward, bool add)
{
    _Alignas(64) double panel[DEPTH * WIDTH];
    double spares[DOWN][WIDTH], *spare[DOWN];                // for tiles of which only a part is there
    for (size_t r = 0; r < DOWN; r++) spare[r] = spares[r];
    size_t rows = l->rows[l->n - 1], n_k = forward ? l->cols : rows, n_j = forward ? rows : l->cols;
    double *const *from = forward ? l->x : l->y, *const *to = forward ? l->y : l->x;
    for (size_t k0 = 0; k0 < n_k; k0 += DEPTH) {
        size_t depth = smaller(n_k - k0, DEPTH);
        for (size_t j0 = 0; j0 < n_j; j0 += WIDTH) {
            size_t width = smaller(n_j - j0, WIDTH), step = WIDTH, s = 0, down = 0;
            const double *b = panel;
            if (forward) {
                pack_crossed(panel, l->w + j0 * l->stride + k0, l->stride, depth, width, l->c);
            } else if (width == WIDTH && l->c == 1 && (l->n < FEW_LANES || depth * l->stride <= DEPTH * WIDTH)) {
                b = l->w + k0 * l->stride + j0;              // small enough to stay in the cache as it is
                step = l->stride;
            } else {
                pack(panel, l->w + k0 * l->stride + j0, l->stride, depth, width, l->c);
            }
            while (l->rows[s] <= (forward ? j0 : k0)) {
                s++;                                         // sees none of these rows
            }
            bool start = add || k0 > 0;
            if (width == WIDTH && l->rows[s] == rows) {      // all lanes see all rows
                add_lanes(to + s, j0, from + s, k0, l->n - s, b, step, depth, start);
                continue;
            }
            for (; s < l->n; s += down) {
                down = tile_rows(l->n - s);
                // Of the lanes of a tile, the first sees the fewest rows.
                size_t common = forward ? depth : smaller(depth, l->rows[s] - k0);
                if (width == WIDTH && (!forward || l->rows[s] >= j0 + WIDTH)) {
                    add_lanes(to + s, j0, from + s, k0, down, b, step, common, start);
                } else {
                    add_lanes(spare, 0, from + s, k0, down, b, step, common, false);
                    for (size_t r = 0; r < down; r++) {
                        size_t there = forward ? smaller(width, l->rows[s + r] - j0) : width;
                        for (size_t j = 0; j < there; j++) {
                            to[s + r][j0 + j] = (start ? to[s + r][j0 + j] : 0) + spare[r][j];
                        }
                    }
                }
                for (size_t r = 1; !forward && r < down; r++) {
                    for (size_t k = common; k < smaller(depth, l->rows[s + r] - k0); k++) {
                        add_scaled(to[s + r] + j0, from[s + r][k0 + k], b + k * step, width);
                    }
                }
            }
        }
    }
}

// a[j][s] = y of lane s, from row `at` on, for n rows and the lanes that see them: so that lanes are neighbours
static void cross_lanes(double *const *a, const Product *l, size_t at, size_t n)
{
    for (size_t s = 0; s < l->n; s += 4) {
        size_t seen = l->rows[s] > at ? smaller(n, l->rows[s] - at) : 0, j = 0;
        for (; s + 4 <= l->n && j + 4 <= seen; j += 4) {
            double *const *y = l->y + s;
            cross(a[j] + s, MAX_LANES, y[0] + at + j, y[1] + at + j, y[2] + at + j, y[3] + at + j, 1);
        }
        for (size_t r = s; r < l->n && r < s + 4; r++) {
            for (size_t k = j; k < n && at + k < l->rows[r]; k++) a[k][r] = l->y[r][at + k];
        }
    }
}

// Added to w: of each lane, y times x. Here w holds gradients, and the rows of tiles are its rows.
static NOINLINE void add_outer_products(const Product *l)
{
    static _Alignas(64) double panels[PANELS][MAX_LANES * WIDTH], crossed[MAX_ROWS][MAX_LANES];   // too large for stacks
    double spares[DOWN][WIDTH], *spare[DOWN], *a[MAX_ROWS], *c[MAX_ROWS];
    for (size_t r = 0; r < DOWN; r++) spare[r] = spares[r];
    for (size_t r = 0; r < MAX_ROWS; r++) a[r] = crossed[r];
    size_t rows = l->rows[l->n - 1];
    for (size_t i0 = 0; i0 < l->cols; i0 += PANELS * WIDTH) {
        size_t cols = smaller(l->cols - i0, PANELS * WIDTH);
        for (size_t s = 0; s < l->n; s++) {
            for (size_t i = 0; i < cols; i += WIDTH) {
                pack_row(panels[i / WIDTH] + s * WIDTH, l->x[s] + i0 + i, smaller(cols - i, WIDTH), l->c);
            }
        }
        for (size_t j0 = 0; j0 < rows; j0 += MAX_ROWS) {
            size_t n = smaller(rows - j0, MAX_ROWS);
            cross_lanes(a, l, j0, n);
            for (size_t r = 0; r < n; r++) c[r] = l->w + (j0 + r) * l->stride;
            for (size_t i = 0; i < cols; i += WIDTH) {
                size_t width = smaller(cols - i, WIDTH), at = i0 + i, first = 0, down = 0;
                const double *b = panels[i / WIDTH];
                if (width == WIDTH && l->rows[0] == rows) {  // all lanes see all rows
                    add_lanes(c, at, a, 0, n, b, WIDTH, l->n, true);
                    continue;
                }
                for (size_t j = 0; j < n; j += down) {
                    down = tile_rows(n - j);
                    for (; l->rows[first] < j0 + j + down; first++) {    // lanes that do not see all rows of the tile
                        for (size_t r = j; j0 + r < l->rows[first]; r++) {
                            add_scaled(c[r] + at, a[r][first], b + first * WIDTH, width);
                        }
                    }
                    if (width == WIDTH) {
                        add_lanes(c + j, at, a + j, first, down, b + first * WIDTH, WIDTH, l->n - first, true);
                    } else {
                        add_lanes(spare, 0, a + j, first, down, b + first * WIDTH, WIDTH, l->n - first, false);
                        for (size_t r = 0; r < down; r++) {
                            add_scaled(c[j + r] + at, 1, spare[r], width);
                        }
                    }
                }
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * The operations with them: what takes the place of their namesakes above.
 */

// Where exponential() gives up, the C library decides.
static NOINLINE void softmax_by_libm(double *out, const double *a, double max, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = exp(a[i] - max);
        total += out[i];
    }
    for (size_t i = 0; i < n; i++) out[i] *= 1 / total;
}

static inline void fast_softmax_forward(const Line *l)
{
    double *out = l->out, *a = l->a, max = largest(a, l->n);
    size_t n = l->n;
    if (n == 1) {
        *out = *a - max + 1;             // one score has all of the share, if it is a number
        return;
    }
    Vec sum = ZERO;
    for (size_t i = 0; i < n; i += VEC) {
        Vec x = load(a + i) - max;
        Vec e = exponential(n - i < VEC ? blend_first(x, n - i, ZERO - 100) : x);   // e^-100 is lost in a sum above 1
        store(out + i, e);
        sum += e;
    }
    double total = vec_sum(sum), share = 1 / total;
    for (size_t i = 0; i < n; i += VEC) store(out + i, load(out + i) * share);
    if (total != total) softmax_by_libm(out, a, max, n);
}

static inline void fast_row_dots_forward(const Line *l)
{
    double *out = l->out, *a = l->a;
    if (l->length == VEC) {
        multiply(&out, l->b, l->stride, &a, 1, l->n, VEC, l->c, false);
    } else {
        multiply_any(&out, l->b, l->stride, &a, 1, l->n, l->length, l->c, false);
    }
}

static inline void fast_row_dots_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out);
    size_t length = l->length, stride = l->stride;
    for (size_t j = 0; j < length; j += VEC) {
        double *b = l->b + j, *gb = grad(t, b), *ga = grad(t, l->a) + j;
        Vec ca = l->c * load(l->a + j), sum = ZERO;
        bool whole = length - j >= VEC;
        for (size_t i = 0; i < l->n; i++, b += stride, gb += stride) {
            sum += g[i] * load(b);
            store(gb, load(gb) + (whole ? g[i] * ca : keep_first(g[i] * ca, length - j)));
        }
        store(ga, load(ga) + (whole ? l->c * sum : keep_first(l->c * sum, length - j)));
    }
}

static inline void fast_weighted_sum_forward(const Line *l)
{
    double *out = l->out, *a = l->a;
    size_t n = l->n, length = l->length, stride = l->stride;
    for (size_t j = 0; j < length; j += VEC) {
        Vec even = ZERO, odd = ZERO;
        const double *bi = l->b + j;
        size_t i = 0;
        for (; i + 2 <= n; i += 2, bi += 2 * stride) {
            even += a[i] * load(bi);
            odd += a[i + 1] * load(bi + stride);
        }
        if (i < n) even += a[i] * load(bi);
        store(out + j, length - j < VEC ? blend_first(even + odd, length - j, load(out + j)) : even + odd);
    }
}

static inline void fast_weighted_sum_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    size_t n = l->n, length = l->length, stride = l->stride;
    if (length == VEC) {
        multiply(&ga, l->b, stride, &g, 1, n, VEC, 1, true);
    } else {
        multiply_any(&ga, l->b, stride, &g, 1, n, length, 1, true);
    }
    for (size_t j = 0; j < length; j += VEC) {
        double *gb = grad(t, l->b) + j;
        Vec gj = load(g + j);
        bool whole = length - j >= VEC;
        for (size_t i = 0; i < n; i++, gb += stride) {
            store(gb, load(gb) + (whole ? l->a[i] * gj : keep_first(l->a[i] * gj, length - j)));
        }
    }
}

// The first of n lanes whose lines use the same rows, as one product. A weighted sum goes from y to x, the others from
// x to y. Returns how many there are.
static size_t take_lanes(Product *p, Line *const *lanes, size_t n, size_t k)
{
    const Line *first = &lanes[0][k], *l = first;
    bool matrix = l->op == OP_LINEAR, sums = l->op == OP_WEIGHTED_SUM;
    p->w = matrix ? l->w->data : l->b;
    p->stride = matrix ? l->w->cols : l->stride;
    p->cols = matrix ? l->w->cols : l->length;
    p->c = matrix || sums ? 1 : l->c;
    size_t s = 0;
    do {
        p->x[s] = sums ? l->out : l->a;
        p->y[s] = sums ? l->a : l->out;
        p->rows[s] = l->n;
        l = ++s < n ? &lanes[s][k] : l;
    } while (s < n && s < MAX_LANES && l->b == first->b &&
             (matrix || (l->n >= p->rows[s - 1] && l->length == first->length && l->stride == first->stride &&
                         l->c == first->c && l->b + (l->n - 1) * l->stride + l->length <= first->out)));
    return p->n = s;
}

static void to_gradients(const Tape *t, double **values, size_t n)
{
    for (size_t s = 0; s < n; s++) values[s] = grad(t, values[s]);
}

// Few lanes are not worth a panel: rows are multiplied where they are. Those of 16 and of 64 are the default model's,
// and where the length is known, loops over it need not be counted.
static void linear_forward_lanes(Line *const *lanes, size_t n, size_t k)
{
    Product p;
    for (; n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, lanes, n, k);
        if (p.n >= FEW_LANES) {
            multiply_lanes(&p, true, false);
        } else if (p.cols == 16) {
            multiply(p.y, p.w, 16, p.x, p.n, p.rows[0], 16, 1, false);
        } else if (p.cols == 64) {
            multiply(p.y, p.w, 64, p.x, p.n, p.rows[0], 64, 1, false);
        } else {
            multiply_any(p.y, p.w, p.cols, p.x, p.n, p.rows[0], p.cols, 1, false);
        }
    }
}

// The gradients of a product: of the rows first, then of what was multiplied by them.
static void product_backward(const Tape *t, Product *p, bool sums)
{
    double *w = p->w;
    to_gradients(t, sums ? p->x : p->y, p->n);
    p->w = grad(t, w);
    add_outer_products(p);
    to_gradients(t, sums ? p->y : p->x, p->n);
    p->w = w;
    multiply_lanes(p, sums, true);
}

static void linear_backward_lanes(const Tape *t, Line *const *lanes, size_t n, size_t k)
{
    Product p;
    for (; n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, lanes, n, k);
        if (p.n >= FEW_LANES || p.cols % WIDTH) {
            product_backward(t, &p, false);
            continue;
        }
        const double *x[FEW_LANES];
        for (size_t s = 0; s < p.n; s++) {
            x[s] = p.x[s];
            p.x[s] = grad(t, p.x[s]);
            p.y[s] = grad(t, p.y[s]);
        }
        for (size_t i = 0; i < p.cols; i += WIDTH) {
            add_rows(grad(t, p.w) + i, p.cols, p.rows[0], p.y, 0, x, p.n);
            add_lanes(p.x, i, p.y, 0, p.n, p.w + i, p.cols, p.rows[0], true);
            for (size_t s = 0; s < p.n; s++) x[s] += WIDTH;
        }
    }
}

// Short rows, and few of them, are not worth a product.
static bool are_small(Line *const *lanes, size_t n, size_t k)
{
    return n * lanes[0][k].length < 32 * WIDTH || lanes[0][k].length <= VEC;
}

static void rows_forward_lanes(Line *const *lanes, size_t n, size_t k)
{
    Product p;
    bool sums = lanes[0][k].op == OP_WEIGHTED_SUM, small = are_small(lanes, n, k);
    for (size_t s = 0; small && s < n; s++) {
        (sums ? fast_weighted_sum_forward : fast_row_dots_forward)(&lanes[s][k]);
    }
    for (; !small && n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, lanes, n, k);
        multiply_lanes(&p, !sums, false);
    }
}

static void rows_backward_lanes(const Tape *t, Line *const *lanes, size_t n, size_t k)
{
    Product p;
    bool sums = lanes[0][k].op == OP_WEIGHTED_SUM, small = are_small(lanes, n, k);
    for (size_t s = n; small && s-- > 0;) {
        (sums ? fast_weighted_sum_backward : fast_row_dots_backward)(t, &lanes[s][k]);
    }
    for (; !small && n > 0; n -= p.n, lanes += p.n) {
        take_lanes(&p, lanes, n, k);
        product_backward(t, &p, sums);
    }
}

static void softmax_forward_lanes(Line *const *lanes, size_t n, size_t k)
{
    for (size_t s = 0; s < n; s++) fast_softmax_forward(&lanes[s][k]);
}

static const FastOperation faster[N_OPS] = {
    [OP_LINEAR] = {linear_forward_lanes, linear_backward_lanes},
    [OP_ROW_DOTS] = {rows_forward_lanes, rows_backward_lanes},
    [OP_WEIGHTED_SUM] = {rows_forward_lanes, rows_backward_lanes},
    [OP_SOFTMAX] = {softmax_forward_lanes, NULL},
};

/* ------------------------------------------------------------------------------------------------------------------
 * Adam, several parameters at a time.
 */

// adam() of microgpt.c for four vectors at a time, because roots and divisions cost more than all the rest: one division serves all
// four. It gives the reciprocal of the product of their denominators, and multiplying that by the other three gives each
// its own. Returns how many parameters it has moved: it stops where numbers are too large to be multiplied, or are not
// numbers, and does nothing where the rate or eps is out of range, or where the means forget so fast that the shorter
// way to write them loses digits.
size_t ag_adam(double *p, double *g, double *m, double *v, size_t n, double lr, double beta1, double beta2, double eps,
               double correct1, double correct2)
{
    double root2 = sqrt(correct2), rate = lr * root2 / correct1;
    double new1 = 1 - beta1, new2 = 1 - beta2;
    eps *= root2;
    size_t i = 0;
    if (rate < 1e-100 || rate > 1e150 || eps < 1e-15 || beta1 < 0.5 || beta2 < 0.5) return 0;
    for (; i + 4 * VEC <= n; i += 4 * VEC) {
        Vec mean[4], square[4], below[4];
        for (size_t k = 0; k < 4; k++) {
            Vec gk = load(g + i + k * VEC), mk = load(m + i + k * VEC), vk = load(v + i + k * VEC);
            mean[k] = mk + new1 * (gk - mk);
            square[k] = vk + new2 * (gk * gk - vk);
            below[k] = square_root(square[k]) + eps;
        }
        Vec below01 = below[0] * below[1], below23 = below[2] * below[3], all = below01 * below23;
        if (!(vec_sum(all) < 1e200)) break;
        Vec share = rate / all, share01 = share * below23, share23 = share * below01;
        Vec move[4] = {share01 * below[1], share01 * below[0], share23 * below[3], share23 * below[2]};
        for (size_t k = 0; k < 4; k++) {
            size_t j = i + k * VEC;
            store(p + j, load(p + j) - mean[k] * move[k]);
            store(m + j, mean[k]);
            store(v + j, square[k]);
            store(g + j, ZERO);
        }
    }
    return i;
}

#else
static const FastOperation faster[N_OPS] = {{NULL, NULL}};

size_t ag_adam(double *p, double *g, double *m, double *v, size_t n, double lr, double beta1, double beta2, double eps,
               double correct1, double correct2)
{
    (void)p, (void)g, (void)m, (void)v, (void)n, (void)lr, (void)beta1, (void)beta2, (void)eps, (void)correct1;
    (void)correct2;
    return 0;
}
#endif
