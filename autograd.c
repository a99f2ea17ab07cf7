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
    if (!t->counting && t->n_lines == t->max_lines) {
        abort();
    }
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
    if (!t->pending && !t->counting) {
        lines_forward(&l, 1, 0);
    }
    return out;
}

// An atom on n neighbours: one line, or n lines where every one is to be seen.
static double *atoms(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    if (fused(t)) {
        return end_line(t, begin_line(t, op, out, n, a, b, c));
    }
    for (size_t i = 0; i < n; i++) {
        end_line(t, begin_line(t, op, out + i, 1, a + i, b ? b + i : NULL, c));
    }
    return out;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The atoms. Forward: the data of out from the data of a and b. Backward: to the gradients of a and b is added the
 * gradient of out times the local derivative.
 */

// a + b. Local derivatives: 1 and 1.
static void add_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] + l->b[i];
    }
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
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] * l->b[i];
    }
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
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = log(l->a[i]);
    }
}

static void log_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += 1 / l->a[i] * g[i];
    }
}

// e^a. Local derivative: e^a, which is out.
static void exp_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = exp(l->a[i]);
    }
}

static void exp_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->out[i] * g[i];
    }
}

// the larger of a and 0. Local derivative: 1 where a is positive, else 0.
static void relu_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] > 0 ? l->a[i] : 0;
    }
}

static void relu_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->a[i] > 0 ? g[i] : 0;
    }
}

// a + c. Local derivative: 1.
static void add_const_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] + l->c;
    }
}

static void add_const_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += g[i];
    }
}

// a * c. Local derivative: c.
static void mul_const_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] * l->c;
    }
}

static void mul_const_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->c * g[i];
    }
}

// a, in another place. Local derivative: 1, as of a + c, whose backward serves here, too.
static void copy_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i];
    }
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
        for (size_t i = 0; i < n; i++) {
            atoms(t, OP_MUL, out + i, 1, a + i, s, 0);
        }
        return out;
    }
    return end_line(t, begin_line(t, OP_MUL_SCALAR, out, n, a, s, 0));
}

static void mul_scalar_forward(Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] * *l->b;
    }
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
        for (size_t i = 1; i < n; i++) {
            sum = ag_add(t, sum, a + i, 1);
        }
        return sum;
    }
    return end_line(t, begin_line(t, OP_SUM, ag_vector(t, 1), n, a, NULL, 0));
}

static void sum_forward(Line *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++) {
        sum += l->a[i];
    }
    *l->out = sum;
}

static void sum_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += *g;
    }
}

// a[0]*b[0] + a[1]*b[1] + ... Local derivatives: b[i] and a[i].
double *ag_dot(Tape *t, double *out, double *a, double *b, size_t n)
{
    if (!fused(t)) {
        return sum_of_products(t, out, a, b, 1, n);
    }
    return end_line(t, begin_line(t, OP_DOT, out, n, a, b, 0));
}

// These two are what the sums of products below are made of, once they are one line.
static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void add_scaled(double *y, double c, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += c * x[i];
    }
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
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = dot(l->a, l->b + i * l->stride, l->length) * l->c;
    }
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
    for (size_t i = 0; i < l->n; i++) {
        add_scaled(l->out, l->a[i], l->b + i * l->stride, l->length);
    }
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
    for (size_t i = 0; i < w->rows; i++) {
        l->out[i] = dot(l->a, w->data + i * w->cols, w->cols);
    }
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
    for (size_t i = 1; i < n; i++) {
        max = a[i] > max ? a[i] : max;
    }
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
    for (size_t i = 0; i < l->n; i++) {
        out[i] *= 1 / total;
    }
}

static void softmax_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), mean = dot(g, l->out, l->n);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->out[i] * (g[i] - mean);
    }
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
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] * scale;
    }
    l->c = scale;
}

static void rmsnorm_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), scale = l->c;
    double mean = dot(g, l->out, l->n) / (double)l->n;
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += scale * (g[i] - mean * l->out[i]);
    }
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
    for (size_t s = 0; s < n; s++) {
        operations[op].forward(&lanes[s][k]);
    }
}

static void lines_backward(const Tape *t, Line *const *lanes, size_t n, size_t k)
{
    Op op = lanes[0][k].op;
    if (faster[op].backward) {
        faster[op].backward(t, lanes, n, k);
        return;
    }
    for (size_t s = n; s-- > 0;) {
        operations[op].backward(t, &lanes[s][k]);
    }
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
    if (!t->in_lane) {
        return;
    }
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
        if (t->n_lanes == t->max_lanes) {
            abort();
        }
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

// Is line k of a lane the same as that of the lane before? Of a product with a matrix, the operands of all lanes are
// taken together; so they must be distinct, and come after what the lanes before have made of theirs.
static bool lines_are_alike(const Line *l, const Line *before)
{
    return l->op == before->op && (l->op != OP_LINEAR || (l->w == before->w && l->a >= before->a + l->w->cols &&
                                                          l->a >= before->out + l->w->rows));
}

static bool lanes_are_alike(const Tape *t)
{
    for (size_t s = 1; s < t->n_lanes; s++) {
        for (size_t k = 0; k < t->lane_length; k++) {
            if (!lines_are_alike(&t->lanes[s][k], &t->lanes[s - 1][k])) {
                return false;
            }
        }
    }
    return t->n_lanes > 1 && !t->ragged;
}

void tape_compute(Tape *t)
{
    if (!t->pending) {
        return;
    }
    end_lane(t);
    t->pending = false;
    Line *l = t->lanes[0], *end = t->lines + t->n_lines;
    t->n_lanes = lanes_are_alike(t) ? t->n_lanes : 0;
    for (size_t k = 0; t->n_lanes > 0 && k < t->lane_length; k++) {
        lines_forward(t->lanes, t->n_lanes, k);
    }
    for (size_t s = 0; s <= t->n_lanes; s++) {         // then what comes before, between and after the lanes
        Line *next = s < t->n_lanes ? t->lanes[s] : end;
        for (; l < next; l++) {
            lines_forward(&l, 1, 0);
        }
        l += s < t->n_lanes ? t->lane_length : 0;
    }
}

// Backward through the lines before `end` that tape_compute() took care of, in the reverse order; but not if `end` is
// among the lanes. Returns where it stopped.
static Line *lanes_backward(const Tape *t, Line *end)
{
    if (t->n_lanes == 0 || end < t->lanes[t->n_lanes - 1] + t->lane_length) {
        return end;
    }
    for (size_t s = t->n_lanes; s-- > 0; end = t->lanes[s]) {
        while (end > t->lanes[s] + t->lane_length) {
            end--;
            lines_backward(t, &end, 1, 0);
        }
    }
    for (size_t k = t->lane_length; k-- > 0;) {
        lines_backward(t, t->lanes, t->n_lanes, k);
    }
    return t->lanes[0];
}

/* ------------------------------------------------------------------------------------------------------------------
 * Vectors, as wide as the machine's, with GCC's and clang's vector types. Elsewhere, in builds without optimization and
 * with -DAUTOGRAD_PLAIN, the plain loops of the first half do all the work. Memory is in whole vectors (see
 * ag_vector()), so a loop may look past n to the end of its last vector; keep_first() then keeps what is there out of
 * sums, and blend_first() leaves it as it is: single values, and slices, have neighbours there.
 */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && FLT_EVAL_METHOD == 0 && !defined(AUTOGRAD_PLAIN)

// A function that is kept out of those that call it, which stay short that way; and one that becomes a part of each of
// them, because it is shorter where it is known what it is called with.
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

#ifdef __AVX__
#define LANES 4
#else
#define LANES 2
#endif
#if defined(__clang__) || __GNUC__ >= 12
#define HAS_SHUFFLE
#endif
typedef double Vec __attribute__((vector_size(LANES * sizeof(double))));
typedef uint64_t Bits __attribute__((vector_size(LANES * sizeof(double))));
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

// ones in the first n lanes, of which there are LANES at most
static inline Bits lanes_before(size_t n)
{
#if LANES == 4
    static const uint64_t ones[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0, 0, 0};
#else
    static const uint64_t ones[] = {UINT64_MAX, UINT64_MAX, 0, 0};
#endif
    Bits keep;
    memcpy(&keep, ones + LANES - n, sizeof keep);
    return keep;
}

// the first n lanes of v, and zero in the others
static inline Vec keep_first(Vec v, size_t n)
{
    return (Vec)((Bits)v & lanes_before(n));
}

// the first n lanes of v, then those of other
static inline Vec blend_first(Vec v, size_t n, Vec other)
{
    Bits keep = lanes_before(n);
    return (Vec)(((Bits)v & keep) | ((Bits)other & ~keep));
}

static inline Vec larger(Vec a, Vec b)
{
    for (int k = 0; k < LANES; k++) {
        a[k] = a[k] > b[k] ? a[k] : b[k];
    }
    return a;
}

static inline double lane_sum(Vec v)
{
#if LANES == 4 && defined(HAS_SHUFFLE)
    Vec half = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
    return half[0] + half[1];
#elif LANES == 4
    return (v[0] + v[2]) + (v[1] + v[3]);
#else
    return v[0] + v[1];
#endif
}

static inline double lane_max(Vec v)
{
    double a = v[0] > v[1] ? v[0] : v[1];
#if LANES == 4
    double b = v[2] > v[3] ? v[2] : v[3];
    a = a > b ? a : b;
#endif
    return a;
}

// s[0..3] = the lane sums of four vectors
static inline void lane_sums(double *s, Vec a, Vec b, Vec c, Vec d)
{
#if LANES == 4 && defined(HAS_SHUFFLE)
    Vec ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    Vec cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
    store(s, __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
#else
    s[0] = lane_sum(a);
    s[1] = lane_sum(b);
    s[2] = lane_sum(c);
    s[3] = lane_sum(d);
#endif
}

static inline Vec square_root(Vec v)
{
    for (int k = 0; k < LANES; k++) {
        v[k] = sqrt(v[k]);
    }
    return v;
}

// the square roots of two vectors, to the seven digits of single precision; of less than 1e-37, as if it were that, and
// of more than 3e38, infinite
static inline void rough_roots(Vec *a, Vec *b)
{
    typedef float Floats __attribute__((vector_size(2 * LANES * sizeof(float))));
    Floats f = {0};
    for (int k = 0; k < LANES; k++) {
        f[k] = (float)(*a)[k];
        f[LANES + k] = (float)(*b)[k];
    }
    f += 1e-37f;
    for (int k = 0; k < 2 * LANES; k++) {
        f[k] = sqrtf(f[k]);
    }
    for (int k = 0; k < LANES; k++) {
        (*a)[k] = (double)f[k];
        (*b)[k] = (double)f[LANES + k];
    }
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
 * Kernels.
 */

// the largest of n values; vectors are loaded just as they were stored, because a load across two stores would wait
static inline double largest(const double *a, size_t n)
{
    Vec max = ZERO + a[0];
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        max = larger(load(a + i), max);
    }
    if (i < n) {
        max = larger(blend_first(load(a + i), n - i, max), max);
    }
    return lane_max(max);
}

// the sum of a[i] * b[i], even and odd vectors apart, so that no addition waits for the one before
static inline double fast_dot(const double *a, const double *b, size_t n)
{
    Vec even = ZERO, odd = ZERO;
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        even += load(a + i) * load(b + i);
        odd += load(a + i + LANES) * load(b + i + LANES);
    }
    for (; i + LANES <= n; i += LANES) {
        even += load(a + i) * load(b + i);
    }
    if (i < n) {
        odd += keep_first(load(a + i) * load(b + i), n - i);
    }
    return lane_sum(even + odd);
}

// y[i] += c * x[i]
static inline void fast_add_scaled(double *y, double c, const double *x, size_t n)
{
    if (n == 1) {
        *y += c * *x;
        return;
    }
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        store(y + i, load(y + i) + c * load(x + i));
    }
    if (i < n) {
        store(y + i, load(y + i) + keep_first(c * load(x + i), n - i));
    }
}

// s[k] = row k of w dot x, for four rows at once, so that each piece of x is loaded once for four sums. From the
// (n+1)-th row on, the n-th is taken instead.
static ALWAYS_INLINE void dot_rows(double *restrict s, const double *restrict w, size_t stride, const double *restrict x,
                            size_t n, size_t cols)
{
    const double *w0 = w, *w1 = n > 1 ? w0 + stride : w0;
    const double *w2 = n > 2 ? w1 + stride : w1, *w3 = n > 3 ? w2 + stride : w2;
    Vec xi = load(x), s0 = load(w0) * xi, s1 = load(w1) * xi, s2 = load(w2) * xi, s3 = load(w3) * xi;
    if (cols < LANES) {
        s0 = keep_first(s0, cols), s1 = keep_first(s1, cols), s2 = keep_first(s2, cols), s3 = keep_first(s3, cols);
    }
    size_t i = LANES;
    for (; i + LANES <= cols; i += LANES) {
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
    lane_sums(s, s0, s1, s2, s3);
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
            for (size_t k = 0; k < 4; k += LANES) {
                store(to + k, add ? load(to + k) + c * load(sums + k) : c * load(sums + k));
            }
        }
    }
    for (size_t s = 0; j < rows && s < n; s++) {
        double *to = y[s] + j;
        dot_rows(sums, w + j * stride, stride, x[s], rows - j, cols);
        for (size_t k = 0; k < rows - j; k += LANES) {
            Vec old = load(to + k), new = add ? old + c * load(sums + k) : c * load(sums + k);
            store(to + k, LANES < 4 && k + LANES <= rows - j ? new : blend_first(new, rows - j - k, old));
        }
    }
}

// The same for rows of any length. Where the length is known, multiply() needs no loop for it.
static NOINLINE void multiply_any(double *const *y, const double *w, size_t stride, double *const *x, size_t n,
                               size_t rows, size_t cols, double c, bool add)
{
    multiply(y, w, stride, x, n, rows, cols, c, add);
}

// A tile: DOWN rows of ACROSS vectors, as many as there are registers for. Sums in a tile do not wait for one another.
#ifndef AUTOGRAD_TILE
#if defined(__AVX512VL__) || defined(__aarch64__)
#define AUTOGRAD_TILE 4
#else
#define AUTOGRAD_TILE 2
#endif
#endif
enum { ACROSS = 4, DOWN = AUTOGRAD_TILE, COLUMNS = ACROSS * LANES };

static inline void load_tile(Vec tile[DOWN][ACROSS], double *const rows[DOWN])
{
    for (int k = 0; k < DOWN; k++) {
        for (int i = 0; i < ACROSS; i++) {
            tile[k][i] = load(rows[k] + i * LANES);
        }
    }
}

static inline void store_tile(Vec tile[DOWN][ACROSS], double *const rows[DOWN])
{
    for (int k = 0; k < DOWN; k++) {
        for (int i = 0; i < ACROSS; i++) {
            store(rows[k] + i * LANES, tile[k][i]);
        }
    }
}

// Adds the vectors at x to every row, c[k] times to row k.
static inline void add_to_tile(Vec tile[DOWN][ACROSS], const double c[DOWN], const double *x)
{
    Vec xi[ACROSS];
    for (int i = 0; i < ACROSS; i++) {
        xi[i] = load(x + i * LANES);
    }
    for (int k = 0; k < DOWN; k++) {
        for (int i = 0; i < ACROSS; i++) {
            tile[k][i] += c[k] * xi[i];
        }
    }
}

// x[s][i] += y[s][0] * w[0][i] + y[s][1] * w[1][i] + ..., for n pairs of x and y and one matrix: its rows, each times
// its y, summed. A tile holds a piece of several x while all rows are added, so that the matrix is read less often.
static inline void add_rows(double *const *x, const double *w, double *const *y, size_t n, size_t rows, size_t cols)
{
    double spare[COLUMNS] = {0};           // takes what a tile has too much, where fewer x are left than it has rows
    size_t i = 0;
    for (; i + COLUMNS <= cols; i += COLUMNS) {
        for (size_t s = 0; s < n; s += DOWN) {
            double *to[DOWN];
            const double *from[DOWN];
            for (size_t k = 0; k < DOWN; k++) {
                to[k] = s + k < n ? x[s + k] + i : spare;
                from[k] = s + k < n ? y[s + k] : y[s];
            }
            Vec tile[DOWN][ACROSS];
            load_tile(tile, to);
            size_t j = 0;
            do {
                double c[DOWN];
                for (size_t k = 0; k < DOWN; k++) {
                    c[k] = from[k][j];
                }
                add_to_tile(tile, c, w + j * cols + i);
            } while (++j < rows);
            store_tile(tile, to);
        }
    }
    for (; i < cols; i += LANES) {
        for (size_t s = 0; s < n; s++) {
            Vec old = load(x[s] + i), sum = old;
            for (size_t j = 0; j < rows; j++) {
                sum += y[s][j] * load(w + j * cols + i);
            }
            store(x[s] + i, cols - i < LANES ? blend_first(sum, cols - i, old) : sum);
        }
    }
}

// w[j][i] += y[0][j] * x[0][i] + y[1][j] * x[1][i] + ... + y[n-1][j] * x[n-1][i]. A tile holds a piece of w while all n
// products are added.
static inline void add_products(double *w, double *const *y, double *const *x, size_t n, size_t rows, size_t cols)
{
    double spare[COLUMNS] = {0};
    for (size_t j = 0; j < rows; j += DOWN) {
        size_t i = 0;
        for (; i + COLUMNS <= cols; i += COLUMNS) {
            double *to[DOWN];
            for (size_t k = 0; k < DOWN; k++) {
                to[k] = j + k < rows ? w + (j + k) * cols + i : spare;
            }
            Vec tile[DOWN][ACROSS];
            load_tile(tile, to);
            size_t s = 0;
            do {
                add_to_tile(tile, y[s] + j, x[s] + i);
            } while (++s < n);
            store_tile(tile, to);
        }
        for (size_t k = j; i < cols && k < j + DOWN && k < rows; k++) {
            for (size_t s = 0; s < n; s++) {
                fast_add_scaled(w + k * cols + i, y[s][k], x[s] + i, cols - i);
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
    for (size_t i = 0; i < n; i++) {
        out[i] *= 1 / total;
    }
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
    for (size_t i = 0; i < n; i += LANES) {
        Vec x = load(a + i) - max;
        Vec e = exponential(n - i < LANES ? blend_first(x, n - i, ZERO - 100) : x);   // e^-100 is lost in a sum above 1
        store(out + i, e);
        sum += e;
    }
    double total = lane_sum(sum), share = 1 / total;
    for (size_t i = 0; i < n; i += LANES) {
        store(out + i, load(out + i) * share);
    }
    if (total != total) {
        softmax_by_libm(out, a, max, n);
    }
}

static inline void fast_softmax_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), mean = fast_dot(g, l->out, l->n);
    size_t n = l->n, i = 0;
    for (; i + LANES <= n; i += LANES) {
        store(ga + i, load(ga + i) + load(l->out + i) * (load(g + i) - mean));
    }
    if (i < n) {
        store(ga + i, load(ga + i) + keep_first(load(l->out + i) * (load(g + i) - mean), n - i));
    }
}

static inline void fast_rmsnorm_forward(Line *l)
{
    size_t n = l->n, i = 0;
    double per_n = 1 / (double)n, scale = 1 / sqrt(fast_dot(l->a, l->a, n) * per_n + l->c);
    for (; i + LANES <= n; i += LANES) {
        store(l->out + i, load(l->a + i) * scale);
    }
    if (i < n) {
        store(l->out + i, blend_first(load(l->a + i) * scale, n - i, load(l->out + i)));
    }
    l->c = scale;
}

static inline void fast_rmsnorm_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), scale = l->c;
    double per_n = 1 / (double)l->n, mean = fast_dot(g, l->out, l->n) * per_n;
    size_t n = l->n, i = 0;
    for (; i + LANES <= n; i += LANES) {
        store(ga + i, load(ga + i) + scale * (load(g + i) - mean * load(l->out + i)));
    }
    if (i < n) {
        store(ga + i, load(ga + i) + keep_first(scale * (load(g + i) - mean * load(l->out + i)), n - i));
    }
}

static inline void fast_row_dots_forward(const Line *l)
{
    double *out = l->out, *a = l->a;
    if (l->length == LANES) {
        multiply(&out, l->b, l->stride, &a, 1, l->n, LANES, l->c, false);
    } else {
        multiply_any(&out, l->b, l->stride, &a, 1, l->n, l->length, l->c, false);
    }
}

static inline void fast_row_dots_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out);
    size_t length = l->length, stride = l->stride;
    for (size_t j = 0; j < length; j += LANES) {
        double *b = l->b + j, *gb = grad(t, b), *ga = grad(t, l->a) + j;
        Vec ca = l->c * load(l->a + j), sum = ZERO;
        bool whole = length - j >= LANES;
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
    for (size_t j = 0; j < length; j += LANES) {
        Vec even = ZERO, odd = ZERO;
        const double *bi = l->b + j;
        size_t i = 0;
        for (; i + 2 <= n; i += 2, bi += 2 * stride) {
            even += a[i] * load(bi);
            odd += a[i + 1] * load(bi + stride);
        }
        if (i < n) {
            even += a[i] * load(bi);
        }
        store(out + j, length - j < LANES ? blend_first(even + odd, length - j, load(out + j)) : even + odd);
    }
}

static inline void fast_weighted_sum_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    size_t n = l->n, length = l->length, stride = l->stride;
    if (length == LANES) {
        multiply(&ga, l->b, stride, &g, 1, n, LANES, 1, true);
    } else {
        multiply_any(&ga, l->b, stride, &g, 1, n, length, 1, true);
    }
    for (size_t j = 0; j < length; j += LANES) {
        double *gb = grad(t, l->b) + j;
        Vec gj = load(g + j);
        bool whole = length - j >= LANES;
        for (size_t i = 0; i < n; i++, gb += stride) {
            store(gb, load(gb) + (whole ? l->a[i] * gj : keep_first(l->a[i] * gj, length - j)));
        }
    }
}


static void linear_forward_lanes(Line *const *lanes, size_t n, size_t k)
{
    const Matrix *w = lanes[0][k].w;
    for (size_t s = 0; s < n;) {
        double *x[32], *y[32];
        size_t i = 0;
        for (; s < n && i < 32; i++, s++) {
            x[i] = lanes[s][k].a;
            y[i] = lanes[s][k].out;
        }
        if (w->cols == 16) {
            multiply(y, w->data, 16, x, i, w->rows, 16, 1, false);
        } else if (w->cols == 64) {
            multiply(y, w->data, 64, x, i, w->rows, 64, 1, false);
        } else {
            multiply_any(y, w->data, w->cols, x, i, w->rows, w->cols, 1, false);
        }
    }
}

static void linear_backward_lanes(const Tape *t, Line *const *lanes, size_t n, size_t k)
{
    Matrix *w = lanes[0][k].w;
    for (size_t s = 0; s < n;) {
        double *x[32], *gx[32], *g[32], *gw = grad(t, w->data);
        size_t i = 0;
        for (; s < n && i < 32; i++, s++) {
            x[i] = lanes[s][k].a;
            gx[i] = grad(t, x[i]);
            g[i] = grad(t, lanes[s][k].out);
        }
        if (w->cols == 16) {
            add_rows(gx, w->data, g, i, w->rows, 16);
            add_products(gw, g, x, i, w->rows, 16);
        } else {
            add_rows(gx, w->data, g, i, w->rows, w->cols);
            add_products(gw, g, x, i, w->rows, w->cols);
        }
    }
}

#define EACH_LANE(name)                                                                                        \
    static void name##_forward_lanes(Line *const *lanes, size_t n, size_t k)                                  \
    {                                                                                                          \
        for (size_t s = 0; s < n; s++) {                                                                       \
            fast_##name##_forward(&lanes[s][k]);                                                               \
        }                                                                                                      \
    }                                                                                                          \
    static void name##_backward_lanes(const Tape *t, Line *const *lanes, size_t n, size_t k)                  \
    {                                                                                                          \
        for (size_t s = n; s-- > 0;) {                                                                         \
            fast_##name##_backward(t, &lanes[s][k]);                                                           \
        }                                                                                                      \
    }
EACH_LANE(softmax)
EACH_LANE(rmsnorm)
EACH_LANE(row_dots)
EACH_LANE(weighted_sum)

static const FastOperation faster[N_OPS] = {
    [OP_LINEAR] = {linear_forward_lanes, linear_backward_lanes},
    [OP_ROW_DOTS] = {row_dots_forward_lanes, row_dots_backward_lanes},
    [OP_WEIGHTED_SUM] = {weighted_sum_forward_lanes, weighted_sum_backward_lanes},
    [OP_SOFTMAX] = {softmax_forward_lanes, softmax_backward_lanes},
    [OP_RMSNORM] = {rmsnorm_forward_lanes, rmsnorm_backward_lanes},
};

/* ------------------------------------------------------------------------------------------------------------------
 * Adam, several parameters at a time.
 */

// The same for four vectors at a time, because roots and divisions cost more than all the rest. The move is a fraction.
// Of the first two vectors it is m / (root + eps). Of the other two the root is only known roughly, as r. One step of
// Newton's gives the missing digits: (r*r + v) / (2*r); so m / (root + eps) is 2*r*m / (r*r + v + 2*r*eps). There v is
// scaled up, so that what single precision cannot tell from zero is far below eps. In this way the unit for roots and
// those for products share the work. Then one division serves all four: it gives the reciprocal of the product of the
// four denominators, and multiplying it by the other three gives each its own. Returns how many parameters it has
// moved; it stops early where numbers are too large for this, and does nothing where the rate or eps is out of range,
// or where the means forget so fast that the shorter way to write them loses digits.
size_t ag_adam(double *p, double *g, double *m, double *v, size_t n, double lr, double beta1, double beta2, double eps,
               double correct1, double correct2)
{
    const double scale = 0x1p60, root_scale = 0x1p30;
    double root2 = sqrt(correct2), rate = lr * root2 / correct1;
    double new1 = 1 - beta1, new2 = 1 - beta2;
    eps *= root2;
    size_t i = 0;
    if (rate < 1e-100 || rate > 1e150 || eps < 1e-15 || beta1 < 0.5 || beta2 < 0.5) {
        return 0;
    }
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        Vec mean[4] = {ZERO}, square[4] = {ZERO};
        for (size_t k = 0; k < 4; k++) {
            size_t j = i + k * LANES;
            square[k] = load(v + j) + new2 * (load(g + j) * load(g + j) - load(v + j));
            mean[k] = load(m + j) + new1 * (load(g + j) - load(m + j));
        }
        Vec v2 = square[2] * scale, v3 = square[3] * scale, r2 = v2, r3 = v3;
        rough_roots(&r2, &r3);
        Vec d0 = square_root(square[0]) + eps, d2 = r2 * (r2 + 2 * root_scale * eps) + v2;
        Vec d1 = square_root(square[1]) + eps, d3 = r3 * (r3 + 2 * root_scale * eps) + v3;
        Vec d01 = d0 * d1, d23 = d2 * d3, all = d01 * d23;
        if (!(lane_sum(all) < 1e200)) {
            break;
        }
        for (size_t k = 0; k < 4; k++) {
            size_t j = i + k * LANES;
            store(m + j, mean[k]);
            store(v + j, square[k]);
            store(g + j, ZERO);
        }
        Vec share = rate / all, share01 = share * d23, share23 = 2 * root_scale * share * d01;
        store(p + i, load(p + i) - mean[0] * d1 * share01);
        store(p + i + LANES, load(p + i + LANES) - mean[1] * d0 * share01);
        store(p + i + 2 * LANES, load(p + i + 2 * LANES) - mean[2] * r2 * d3 * share23);
        store(p + i + 3 * LANES, load(p + i + 3 * LANES) - mean[3] * r3 * d2 * share23);
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
