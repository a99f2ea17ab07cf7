/* autograd.c: the operations of autograd.h, each with its value and its local derivatives side by side.
 *
 *   vectors      several numbers at a time, or one
 *   kernels      the loops in which the time goes
 *   tape         the memory, the mark, one line
 *   operations   forward and backward of each, next to each other
 *   walks        over the lines: forward from the first to the last, backward from the last to the first
 *   Adam         the step that parameters take against their gradients
 */
#include "autograd.h"

#if defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__
#error "-ffast-math, which is a part of -Ofast, drops the checks for numbers that are not finite: build without it"
#endif

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// A function that is kept out of those that call it, which stay short that way; and one that becomes a part of each of
// them, because it is shorter where it is known what it is called with.
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define APART __attribute__((noinline))
#define WITHIN inline __attribute__((always_inline))
#else
#define APART
#define WITHIN inline
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * Vectors. All loops below are written for vectors of LANES numbers. With GCC's and clang's vector types these are as
 * wide as the machine's; in plain C11, and with -DAUTOGRAD_PLAIN, a vector is one double and every loop is a scalar
 * loop. Memory is in whole vectors (see v_new), so a loop may look past n to the end of its last vector; first() then
 * keeps what lies there out of sums, and first_or() out of the way: single values, and slices, have neighbours there.
 */
#if defined(__GNUC__) && FLT_EVAL_METHOD == 0 && !defined(AUTOGRAD_PLAIN)
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
static inline Vec first(Vec v, size_t n)
{
    return (Vec)((Bits)v & lanes_before(n));
}

// the first n lanes of v, and of other behind them
static inline Vec first_or(Vec v, size_t n, Vec other)
{
    Bits keep = lanes_before(n);
    return (Vec)(((Bits)v & keep) | ((Bits)other & ~keep));
}

static inline Vec where_positive(Vec x, Vec v)
{
    return (Vec)((Bits)v & (Bits)(x > 0));
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
#else
#define LANES 1
typedef double Vec;
#define ZERO 0.0

static inline Vec load(const double *p) { return *p; }
static inline void store(double *p, Vec v) { *p = v; }
static inline Vec first(Vec v, size_t n) { (void)n; return v; }
static inline Vec first_or(Vec v, size_t n, Vec other) { (void)n; (void)other; return v; }
static inline Vec where_positive(Vec x, Vec v) { return x > 0 ? v : 0; }
static inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }
static inline double lane_sum(Vec v) { return v; }
static inline double lane_max(Vec v) { return v; }
static inline void lane_sums(double *s, Vec a, Vec b, Vec c, Vec d) { s[0] = a; s[1] = b; s[2] = c; s[3] = d; }
static inline Vec exponential(Vec x) { return exp(x); }
#endif

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
        max = larger(first_or(load(a + i), n - i, max), max);
    }
    return lane_max(max);
}

// the sum of a[i] * b[i], even and odd vectors apart, so that no addition waits for the one before
static inline double dot(const double *a, const double *b, size_t n)
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
        odd += first(load(a + i) * load(b + i), n - i);
    }
    return lane_sum(even + odd);
}

// y[i] += c * x[i]
static inline void add_scaled(double *y, double c, const double *x, size_t n)
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
        store(y + i, load(y + i) + first(c * load(x + i), n - i));
    }
}

// s[k] = row k of w dot x, for four rows at once, so that each piece of x is loaded once for four sums. From the
// (n+1)-th row on, the n-th is taken instead.
static WITHIN void dot_rows(double *restrict s, const double *restrict w, size_t stride, const double *restrict x,
                            size_t n, size_t cols)
{
    const double *w0 = w, *w1 = n > 1 ? w0 + stride : w0;
    const double *w2 = n > 2 ? w1 + stride : w1, *w3 = n > 3 ? w2 + stride : w2;
    Vec xi = load(x), s0 = load(w0) * xi, s1 = load(w1) * xi, s2 = load(w2) * xi, s3 = load(w3) * xi;
    if (cols < LANES) {
        s0 = first(s0, cols), s1 = first(s1, cols), s2 = first(s2, cols), s3 = first(s3, cols);
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
        s0 += first(load(w0 + i) * xi, cols - i);
        s1 += first(load(w1 + i) * xi, cols - i);
        s2 += first(load(w2 + i) * xi, cols - i);
        s3 += first(load(w3 + i) * xi, cols - i);
    }
    lane_sums(s, s0, s1, s2, s3);
}

// y[s][j] = c * (row j of w dot x[s]), or that added to y[s][j], for n pairs of x and y. Rows are fetched once for all.
static WITHIN void multiply(double *const *y, const double *w, size_t stride, double *const *x, size_t n, size_t rows,
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
            store(to + k, LANES < 4 && k + LANES <= rows - j ? new : first_or(new, rows - j - k, old));
        }
    }
}

// The same for rows of any length. Where the length is known, multiply() needs no loop for it.
static APART void multiply_any(double *const *y, const double *w, size_t stride, double *const *x, size_t n,
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
            store(x[s] + i, cols - i < LANES ? first_or(sum, cols - i, old) : sum);
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
                add_scaled(w + k * cols + i, y[s][k], x[s] + i, cols - i);
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * The tape.
 */
#define BLOCK 4          // runs of values start at, and have room for, a multiple of so many: whole vectors

static size_t whole_blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

bool tape_init(Tape *t, size_t max_values, size_t max_lines)
{
    *t = (Tape){.recording = true};
    if (max_values > SIZE_MAX / 64 || max_lines > SIZE_MAX / 2 / sizeof(Line)) {
        return false;
    }
    t->max_values = whole_blocks(max_values) + BLOCK;      // a loop over whole vectors may look one block too far
    t->max_lines = max_lines;
    t->memory = calloc(2 * t->max_values + 8, sizeof(double));
    t->lines = malloc((max_lines + 1) * sizeof(Line));
    if (!t->memory || !t->lines) {
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
    *t = (Tape){0};
}

void tape_mark(Tape *t)
{
    tape_join(t);
    t->n_strands = 0;
    t->first_value = t->n_values;
    t->first_line = t->n_lines;
}

void tape_drop(Tape *t)
{
    t->n_values = t->first_value;
    t->n_lines = t->first_line;
    t->n_strands = 0;
    t->uneven = t->deferred = false;
}

void tape_strand(Tape *t)
{
    if (!t->recording || t->atomic || (t->n_strands > 0 && !t->deferred)) {
        return;          // these are to be computed at once, line by line
    }
    if (t->n_strands == 0) {
        t->strand_start = t->n_lines;
        t->deferred = true;
    } else if (t->n_strands == 1) {
        t->strand_length = t->n_lines - t->strand_start;
    } else if (t->n_lines != t->strand_start + t->n_strands * t->strand_length) {
        t->uneven = true;
    }
    t->n_strands++;
}

double *v_new(Tape *t, size_t n)
{
    size_t at = n > 1 ? whole_blocks(t->n_values) : t->n_values;
    size_t room = n > 1 ? whole_blocks(n) : n;
    if (room > t->max_values - BLOCK - at) {
        abort();         // the caller has not reserved what it uses: a mistake in the program, not in its input
    }
    t->n_values = at + room;
    return t->data + at;
}

double *v_value(Tape *t, double data)
{
    double *v = v_new(t, 1);
    *v = data;
    return v;
}

static inline Line *record(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    Line *line = &t->unrecorded;
    if (t->recording) {
        if (t->n_lines == t->max_lines) {
            abort();
        }
        line = &t->lines[t->n_lines++];
    }
    line->op = op;
    line->n = (uint32_t)n;
    line->out = out;
    line->a = a;
    line->b = b;
    line->c = c;
    return line;
}

// What a line says is done at once, unless it is in a strand: then tape_join() does it.
static APART void lines_forward(Line *l, size_t n, size_t apart);

static inline double *compute(Tape *t, Line *line)
{
    if (t->deferred && !t->recording) {
        tape_join(t);    // a line that is not kept cannot wait
    }
    if (!t->deferred) {
        lines_forward(line, 1, 0);
    }
    return line->out;
}

// An atom on n neighbours: one line, or n lines where every one is to be seen.
static double *atoms(Tape *t, Op op, double *out, size_t n, double *a, double *b, double c)
{
    if (!t->atomic) {
        return compute(t, record(t, op, out, n, a, b, c));
    }
    lines_forward(&(Line){.op = op, .n = (uint32_t)n, .out = out, .a = a, .b = b, .c = c}, 1, 0);
    for (size_t i = 0; i < n; i++) {
        record(t, op, out + i, 1, a + i, b ? b + i : NULL, c);
    }
    return out;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The atoms. Forward: the data of out from the data of a and b. Backward: into the gradients of a and b, the gradient
 * of out times the local derivative.
 */

// a + b. Local derivatives: 1 and 1.
static inline void add_forward(const Line *l)
{
    size_t n = l->n, i = 0;
    if (n == 1) {
        *l->out = *l->a + *l->b;
        return;
    }
    for (; i + LANES <= n; i += LANES) {
        store(l->out + i, load(l->a + i) + load(l->b + i));
    }
    if (i < n) {
        store(l->out + i, first_or(load(l->a + i) + load(l->b + i), n - i, load(l->out + i)));
    }
}

static inline void add_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), *gb = grad(t, l->b);
    size_t n = l->n, i = 0;
    if (n == 1) {
        *ga += *g;
        *gb += *g;
        return;
    }
    for (; i + LANES <= n; i += LANES) {
        store(ga + i, load(ga + i) + load(g + i));
        store(gb + i, load(gb + i) + load(g + i));
    }
    if (i < n) {
        store(ga + i, load(ga + i) + first(load(g + i), n - i));
        store(gb + i, load(gb + i) + first(load(g + i), n - i));
    }
}

// a * b. Local derivatives: b and a.
static inline void mul_forward(const Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] * l->b[i];
    }
}

static inline void mul_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), *gb = grad(t, l->b);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->b[i] * g[i];
        gb[i] += l->a[i] * g[i];
    }
}

// a^c. Local derivative: c * a^(c-1). Squares are common, and need no library.
static inline void pow_forward(const Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->c == 2 ? l->a[i] * l->a[i] : pow(l->a[i], l->c);
    }
}

static inline void pow_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->c * (l->c == 2 ? l->a[i] : pow(l->a[i], l->c - 1)) * g[i];
    }
}

// log a. Local derivative: 1 / a.
static inline void log_forward(const Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = log(l->a[i]);
    }
}

static inline void log_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += 1 / l->a[i] * g[i];
    }
}

// e^a. Local derivative: e^a, which is out.
static inline void exp_forward(const Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = exp(l->a[i]);
    }
}

static inline void exp_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += l->out[i] * g[i];
    }
}

// the larger of a and 0. Local derivative: 1 where a is positive, else 0.
static inline void relu_forward(const Line *l)
{
    size_t n = l->n, i = 0;
    for (; i + LANES <= n; i += LANES) {
        store(l->out + i, where_positive(load(l->a + i), load(l->a + i)));
    }
    if (i < n) {
        store(l->out + i, first_or(where_positive(load(l->a + i), load(l->a + i)), n - i, load(l->out + i)));
    }
}

static inline void relu_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    size_t n = l->n, i = 0;
    for (; i + LANES <= n; i += LANES) {
        store(ga + i, load(ga + i) + where_positive(load(l->a + i), load(g + i)));
    }
    if (i < n) {
        store(ga + i, load(ga + i) + first(where_positive(load(l->a + i), load(g + i)), n - i));
    }
}

// a + c. Local derivative: 1.
static inline void plus_forward(const Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] + l->c;
    }
}

static inline void plus_backward(const Tape *t, const Line *l)
{
    add_scaled(grad(t, l->a), 1, grad(t, l->out), l->n);
}

// a * c. Local derivative: c.
static inline void times_forward(const Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] * l->c;
    }
}

static inline void times_backward(const Tape *t, const Line *l)
{
    add_scaled(grad(t, l->a), l->c, grad(t, l->out), l->n);
}

double *v_add(Tape *t, double *a, double *b, size_t n) { return atoms(t, OP_ADD, v_new(t, n), n, a, b, 0); }
double *v_mul(Tape *t, double *a, double *b, size_t n) { return atoms(t, OP_MUL, v_new(t, n), n, a, b, 0); }
double *v_pow(Tape *t, double *a, double c, size_t n) { return atoms(t, OP_POW, v_new(t, n), n, a, NULL, c); }
double *v_log(Tape *t, double *a, size_t n) { return atoms(t, OP_LOG, v_new(t, n), n, a, NULL, 0); }
double *v_exp(Tape *t, double *a, size_t n) { return atoms(t, OP_EXP, v_new(t, n), n, a, NULL, 0); }
double *v_relu(Tape *t, double *a, size_t n) { return atoms(t, OP_RELU, v_new(t, n), n, a, NULL, 0); }
double *v_plus(Tape *t, double *a, double c, size_t n) { return atoms(t, OP_PLUS, v_new(t, n), n, a, NULL, c); }
double *v_times(Tape *t, double *a, double c, size_t n) { return atoms(t, OP_TIMES, v_new(t, n), n, a, NULL, c); }

double *v_neg(Tape *t, double *a, size_t n) { return v_times(t, a, -1, n); }
double *v_sub(Tape *t, double *a, double *b, size_t n) { return v_add(t, a, v_neg(t, b, n), n); }
double *v_div(Tape *t, double *a, double *b, size_t n) { return v_mul(t, a, v_pow(t, b, -1, n), n); }

/* ------------------------------------------------------------------------------------------------------------------
 * Many atoms in one line. The function "..._of_atoms" is the definition; the line computes the same in one go.
 */

// out = a[0]*b[0] + a[1]*b[1] + ... atom by atom: the definition of every sum of products below.
static void sum_of_products(Tape *t, double *out, double *a, size_t a_step, double *b, size_t b_step, size_t n)
{
    double *sum = atoms(t, OP_MUL, n == 1 ? out : v_new(t, 1), 1, a, b, 0);
    for (size_t i = 1; i < n; i++) {
        double *product = v_mul(t, a + i * a_step, b + i * b_step, 1);
        sum = atoms(t, OP_ADD, i == n - 1 ? out : v_new(t, 1), 1, sum, product, 0);
    }
}

// a[i] * s. Local derivatives: s, and for s all of the a[i].
static APART double *scale_of_atoms(Tape *t, double *a, double *s, size_t n)
{
    double *out = v_new(t, n);
    for (size_t i = 0; i < n; i++) {
        atoms(t, OP_MUL, out + i, 1, a + i, s, 0);
    }
    return out;
}

double *v_scale(Tape *t, double *a, double *s, size_t n)
{
    return t->atomic ? scale_of_atoms(t, a, s, n) : compute(t, record(t, OP_SCALE, v_new(t, n), n, a, s, 0));
}

static inline void scale_forward(const Line *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->out[i] = l->a[i] * *l->b;
    }
}

static inline void scale_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out);
    add_scaled(grad(t, l->a), *l->b, g, l->n);
    *grad(t, l->b) += dot(g, l->a, l->n);
}

// a[0] + a[1] + ... Local derivatives: 1.
static APART double *sum_of_atoms(Tape *t, double *a, size_t n)
{
    double *sum = a;
    for (size_t i = 1; i < n; i++) {
        sum = v_add(t, sum, a + i, 1);
    }
    return sum;
}

double *v_sum(Tape *t, double *a, size_t n)
{
    return t->atomic ? sum_of_atoms(t, a, n) : compute(t, record(t, OP_SUM, v_new(t, 1), n, a, NULL, 0));
}

static inline void sum_forward(const Line *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++) {
        sum += l->a[i];
    }
    *l->out = sum;
}

static inline void sum_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    for (size_t i = 0; i < l->n; i++) {
        ga[i] += *g;
    }
}

// a[0]*b[0] + a[1]*b[1] + ... Local derivatives: b[i] and a[i].
static APART double *dot_of_atoms(Tape *t, double *a, double *b, size_t n)
{
    double *out = v_new(t, 1);
    sum_of_products(t, out, a, 1, b, 1, n);
    return out;
}

double *v_dot(Tape *t, double *a, double *b, size_t n)
{
    return t->atomic ? dot_of_atoms(t, a, b, n) : compute(t, record(t, OP_DOT, v_new(t, 1), n, a, b, 0));
}

static inline void dot_forward(const Line *l)
{
    *l->out = dot(l->a, l->b, l->n);
}

static inline void dot_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out);
    add_scaled(grad(t, l->a), *g, l->b, l->n);
    add_scaled(grad(t, l->b), *g, l->a, l->n);
}

// e^(a[i] - max) / total, where the total is the sum of all e^(a[i] - max). The maximum changes nothing but the size of
// the exponentials, which could overflow without it. Of the local derivatives, that of out[i] with respect to a[k] is
// -out[i]*out[k], plus out[i] where i is k.
static APART double *softmax_of_atoms(Tape *t, double *a, size_t n)
{
    double *exps = v_exp(t, v_plus(t, a, -largest(a, n), n), n);
    double *total = v_sum(t, exps, n);
    return v_scale(t, exps, v_pow(t, total, -1, 1), n);
}

double *v_softmax(Tape *t, double *a, size_t n)
{
    return t->atomic ? softmax_of_atoms(t, a, n) : compute(t, record(t, OP_SOFTMAX, v_new(t, n), n, a, NULL, 0));
}

// Where exponential() gives up, the C library decides.
static APART void softmax_by_libm(double *out, const double *a, double max, size_t n)
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

static inline void softmax_forward(const Line *l)
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
        Vec e = exponential(n - i < LANES ? first_or(x, n - i, ZERO - 100) : x);   // e^-100 is lost in a sum above 1
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

static inline void softmax_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), mean = dot(g, l->out, l->n);
    size_t n = l->n, i = 0;
    for (; i + LANES <= n; i += LANES) {
        store(ga + i, load(ga + i) + load(l->out + i) * (load(g + i) - mean));
    }
    if (i < n) {
        store(ga + i, load(ga + i) + first(load(l->out + i) * (load(g + i) - mean), n - i));
    }
}

// a[i] * scale, where scale = (mean of the squares + eps)^-0.5. Of the local derivatives, that of out[i] with respect
// to a[k] is -out[i]*out[k] * scale/n, plus scale where i is k.
static APART double *rmsnorm_of_atoms(Tape *t, double *a, double eps, size_t n)
{
    double *ms = v_times(t, v_dot(t, a, a, n), 1 / (double)n, 1);
    double *scale = v_pow(t, v_plus(t, ms, eps, 1), -0.5, 1);
    return v_scale(t, a, scale, n);
}

double *v_rmsnorm(Tape *t, double *a, double eps, size_t n)
{
    return t->atomic ? rmsnorm_of_atoms(t, a, eps, n) : compute(t, record(t, OP_RMSNORM, v_new(t, n), n, a, NULL, eps));
}

// The line's constant is at first eps, then the scale.
static inline void rmsnorm_forward(Line *l)
{
    size_t n = l->n, i = 0;
    double per_n = 1 / (double)n, scale = 1 / sqrt(dot(l->a, l->a, n) * per_n + l->c);
    for (; i + LANES <= n; i += LANES) {
        store(l->out + i, load(l->a + i) * scale);
    }
    if (i < n) {
        store(l->out + i, first_or(load(l->a + i) * scale, n - i, load(l->out + i)));
    }
    l->c = scale;
}

static inline void rmsnorm_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a), scale = l->c;
    double per_n = 1 / (double)l->n, mean = dot(g, l->out, l->n) * per_n;
    size_t n = l->n, i = 0;
    for (; i + LANES <= n; i += LANES) {
        store(ga + i, load(ga + i) + scale * (load(g + i) - mean * load(l->out + i)));
    }
    if (i < n) {
        store(ga + i, load(ga + i) + first(scale * (load(g + i) - mean * load(l->out + i)), n - i));
    }
}

// (a dot row i of b) * c. Local derivatives: row i times c, and a times c.
static APART double *dots_of_atoms(Tape *t, double *a, double *b, size_t n, size_t stride, size_t m, double c)
{
    double *dots = v_new(t, n);
    for (size_t i = 0; i < n; i++) {
        sum_of_products(t, dots + i, a, 1, b + i * stride, 1, m);
    }
    return v_times(t, dots, c, n);
}

double *v_dots(Tape *t, double *a, double *b, size_t n, size_t stride, size_t m, double c)
{
    if (t->atomic) {
        return dots_of_atoms(t, a, b, n, stride, m, c);
    }
    Line *line = record(t, OP_DOTS, v_new(t, n), n, a, b, c);
    line->m = (uint32_t)m;
    line->stride = (uint32_t)stride;
    return compute(t, line);
}

static inline void dots_forward(const Line *l)
{
    double *out = l->out, *a = l->a;
    if (l->m == LANES) {
        multiply(&out, l->b, l->stride, &a, 1, l->n, LANES, l->c, false);
    } else {
        multiply_any(&out, l->b, l->stride, &a, 1, l->n, l->m, l->c, false);
    }
}

static inline void dots_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out);
    size_t m = l->m, stride = l->stride;
    for (size_t j = 0; j < m; j += LANES) {
        double *b = l->b + j, *gb = grad(t, b), *ga = grad(t, l->a) + j;
        Vec ca = l->c * load(l->a + j), sum = ZERO;
        bool whole = m - j >= LANES;
        for (size_t i = 0; i < l->n; i++, b += stride, gb += stride) {
            sum += g[i] * load(b);
            store(gb, load(gb) + (whole ? g[i] * ca : first(g[i] * ca, m - j)));
        }
        store(ga, load(ga) + (whole ? l->c * sum : first(l->c * sum, m - j)));
    }
}

// a[0] * row 0 of b + a[1] * row 1 of b + ... Local derivatives: row i, and a[i].
static APART double *weighted_sum_of_atoms(Tape *t, double *out, double *a, double *b, size_t n, size_t stride,
                                           size_t m)
{
    for (size_t j = 0; j < m; j++) {
        sum_of_products(t, out + j, a, 1, b + j, stride, n);
    }
    return out;
}

double *v_weighted_sum(Tape *t, double *out, double *a, double *b, size_t n, size_t stride, size_t m)
{
    if (t->atomic) {
        return weighted_sum_of_atoms(t, out, a, b, n, stride, m);
    }
    Line *line = record(t, OP_WEIGHTED_SUM, out, n, a, b, 0);
    line->m = (uint32_t)m;
    line->stride = (uint32_t)stride;
    return compute(t, line);
}

static inline void weighted_sum_forward(const Line *l)
{
    double *out = l->out, *a = l->a;
    size_t n = l->n, m = l->m, stride = l->stride;
    for (size_t j = 0; j < m; j += LANES) {
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
        store(out + j, m - j < LANES ? first_or(even + odd, m - j, load(out + j)) : even + odd);
    }
}

static inline void weighted_sum_backward(const Tape *t, const Line *l)
{
    double *g = grad(t, l->out), *ga = grad(t, l->a);
    size_t n = l->n, m = l->m, stride = l->stride;
    if (m == LANES) {
        multiply(&ga, l->b, stride, &g, 1, n, LANES, 1, true);
    } else {
        multiply_any(&ga, l->b, stride, &g, 1, n, m, 1, true);
    }
    for (size_t j = 0; j < m; j += LANES) {
        double *gb = grad(t, l->b) + j;
        Vec gj = load(g + j);
        bool whole = m - j >= LANES;
        for (size_t i = 0; i < n; i++, gb += stride) {
            store(gb, load(gb) + (whole ? l->a[i] * gj : first(l->a[i] * gj, m - j)));
        }
    }
}

// x dot row j of w. Local derivatives: row j, and x.
static APART double *linear_of_atoms(Tape *t, double *out, double *x, Matrix *w)
{
    for (size_t j = 0; j < w->rows; j++) {
        sum_of_products(t, out + j, w->data + j * w->cols, 1, x, 1, w->cols);
    }
    return out;
}

double *v_linear(Tape *t, double *out, double *x, Matrix *w)
{
    if (t->atomic) {
        return linear_of_atoms(t, out, x, w);
    }
    Line *line = record(t, OP_LINEAR, out, w->rows, x, NULL, 0);
    line->w = w;
    return compute(t, line);
}

// Both for n lines that use the same matrix and lie `apart`: so the matrix and its gradients, which are much larger
// than all else, are gone through once for up to 32 lines. Rows of 16 and of 64 are those of the default model; where
// the length is known, loops over it need not be counted.
static void linear_forward(const Line *l, size_t n, size_t apart)
{
    const Matrix *w = l->w;
    while (n > 0) {
        double *x[32], *y[32];
        size_t k = 0;
        for (; k < n && k < 32; k++, l += apart) {
            x[k] = l->a;
            y[k] = l->out;
        }
        if (w->cols == 16) {
            multiply(y, w->data, 16, x, k, w->rows, 16, 1, false);
        } else if (w->cols == 64) {
            multiply(y, w->data, 64, x, k, w->rows, 64, 1, false);
        } else {
            multiply_any(y, w->data, w->cols, x, k, w->rows, w->cols, 1, false);
        }
        n -= k;
    }
}

static void linear_backward(const Tape *t, const Line *l, size_t n, size_t apart)
{
    Matrix *w = l->w;
    while (n > 0) {
        double *x[32], *gx[32], *g[32], *gw = grad(t, w->data);
        size_t k = 0;
        for (; k < n && k < 32; k++, l += apart) {
            x[k] = l->a;
            gx[k] = grad(t, l->a);
            g[k] = grad(t, l->out);
        }
        if (w->cols == 16) {
            add_rows(gx, w->data, g, k, w->rows, 16);
            add_products(gw, g, x, k, w->rows, 16);
        } else {
            add_rows(gx, w->data, g, k, w->rows, w->cols);
            add_products(gw, g, x, k, w->rows, w->cols);
        }
        n -= k;
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Forward and backward: the walks over the lines.
 *
 * A program that does the same to many inputs (here: to the positions of a document) writes the same lines again and
 * again. If it says so (tape_strand() and tape_join() in autograd.h), they are read side by side: line 1 of all
 * strands, then line 2 of all strands; backward the same from the end. What they have in common, such as a matrix, is
 * then fetched once for many strands.
 */
const char *const op_names[N_OPS] = {
    [OP_ADD] = "add", [OP_MUL] = "mul", [OP_POW] = "pow", [OP_LOG] = "log", [OP_EXP] = "exp", [OP_RELU] = "relu",
    [OP_PLUS] = "plus", [OP_TIMES] = "times", [OP_SCALE] = "scale", [OP_SUM] = "sum", [OP_DOT] = "dot",
    [OP_DOTS] = "dots", [OP_WEIGHTED_SUM] = "weighted sum", [OP_LINEAR] = "linear", [OP_SOFTMAX] = "softmax",
    [OP_RMSNORM] = "rmsnorm",
};

// n lines of the same operation that lie `apart`: the first of them first.
static APART void lines_forward(Line *l, size_t n, size_t apart)
{
#define EACH(forward) for (; n > 0; n--, l += apart) { forward(l); } break
    switch (l->op) {
    case OP_ADD: EACH(add_forward);
    case OP_MUL: EACH(mul_forward);
    case OP_POW: EACH(pow_forward);
    case OP_LOG: EACH(log_forward);
    case OP_EXP: EACH(exp_forward);
    case OP_RELU: EACH(relu_forward);
    case OP_PLUS: EACH(plus_forward);
    case OP_TIMES: EACH(times_forward);
    case OP_SCALE: EACH(scale_forward);
    case OP_SUM: EACH(sum_forward);
    case OP_DOT: EACH(dot_forward);
    case OP_DOTS: EACH(dots_forward);
    case OP_WEIGHTED_SUM: EACH(weighted_sum_forward);
    case OP_LINEAR: linear_forward(l, n, apart); break;
    case OP_SOFTMAX: EACH(softmax_forward);
    case OP_RMSNORM: EACH(rmsnorm_forward);
    case N_OPS: break;
    }
#undef EACH
}

// Is x one of the values that a line made?
static inline bool made(const Line *l, const double *x)
{
    size_t n = l->op == OP_SUM || l->op == OP_DOT ? 1 : l->op == OP_WEIGHTED_SUM ? l->m : l->n;
    return x >= l->out && x < l->out + n;
}

// The same backward: the last of them first.
static APART void lines_backward(const Tape *t, const Line *l, size_t n, size_t apart)
{
#define EACH(backward) for (l += n * apart; n > 0; n--) { l -= apart; backward(t, l); } break
    switch (l->op) {
    case OP_ADD: EACH(add_backward);
    case OP_MUL: EACH(mul_backward);
    case OP_POW: EACH(pow_backward);
    case OP_LOG: EACH(log_backward);
    case OP_EXP: EACH(exp_backward);
    case OP_RELU: EACH(relu_backward);
    case OP_PLUS: EACH(plus_backward);
    case OP_TIMES: EACH(times_backward);
    case OP_SCALE: EACH(scale_backward);
    case OP_SUM: EACH(sum_backward);
    case OP_DOT: EACH(dot_backward);
    case OP_DOTS: EACH(dots_backward);
    case OP_WEIGHTED_SUM: EACH(weighted_sum_backward);
    case OP_LINEAR: linear_backward(t, l, n, apart); break;
    case OP_SOFTMAX: EACH(softmax_backward);
    case OP_RMSNORM: EACH(rmsnorm_backward);
    case N_OPS: break;
    }
#undef EACH
}

// Is line k of a strand the same as that of the strand before? Of a product with a matrix, the operands of all strands
// are taken together; so they must be apart, and behind what the strands before have made of theirs.
static inline bool lines_are_alike(const Line *l, const Line *before)
{
    return l->op == before->op && (l->op != OP_LINEAR || (l->w == before->w && l->a >= before->a + l->w->cols &&
                                                          l->a >= before->out + l->w->rows));
}

static bool strands_are_alike(const Tape *t)
{
    size_t length = t->strand_length, n = t->n_strands;
    if (t->uneven || n < 2 || t->n_lines != t->strand_start + n * length) {
        return false;
    }
    for (const Line *l = &t->lines[t->strand_start + length]; l < &t->lines[t->n_lines]; l++) {
        if (!lines_are_alike(l, l - length)) {
            return false;
        }
    }
    return true;
}

void tape_join(Tape *t)
{
    if (!t->deferred) {
        return;
    }
    t->deferred = false;
    t->uneven = !strands_are_alike(t);
    Line *l = &t->lines[t->strand_start];
    if (!t->uneven) {
        for (size_t k = 0; k < t->strand_length; k++) {
            lines_forward(l + k, t->n_strands, t->strand_length);
        }
    } else {
        for (; l < t->lines + t->n_lines; l++) {
            lines_forward(l, 1, 0);
        }
    }
}

void backward(Tape *t, double *result)
{
    tape_join(t);
    memset(grad(t, t->data + t->first_value), 0, (t->n_values - t->first_value) * sizeof(double));
    *grad(t, result) = 1;
    size_t i = t->n_lines, strands_end = t->strand_start + t->n_strands * t->strand_length;
    while (i > t->first_line && !made(&t->lines[i - 1], result)) {
        i--;                                           // lines after the result have no part in it
    }
    if (t->n_strands > 0 && !t->uneven && i >= strands_end) {
        while (i > strands_end) {
            lines_backward(t, &t->lines[--i], 1, 0);
        }
        for (size_t k = t->strand_length; k-- > 0;) {
            lines_backward(t, &t->lines[t->strand_start + k], t->n_strands, t->strand_length);
        }
        i = t->strand_start;
    }
    while (i > t->first_line) {
        lines_backward(t, &t->lines[--i], 1, 0);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Adam: each parameter moves against the running mean of its gradient, measured by the root of the running mean of the
 * gradient's square. Both means start at zero; the corrections undo what that takes from them in the first steps.
 */
typedef struct {
    double lr, beta1, beta2, eps, correct1, correct2;
} AdamStep;

static APART void adam_each(double *p, double *g, double *m, double *v, size_t n, const AdamStep *s)
{
    for (size_t i = 0; i < n; i++) {
        m[i] = s->beta1 * m[i] + (1 - s->beta1) * g[i];
        v[i] = s->beta2 * v[i] + (1 - s->beta2) * g[i] * g[i];
        double m_hat = m[i] * s->correct1, v_hat = v[i] * s->correct2;
        p[i] -= s->lr * m_hat / (sqrt(v_hat) + s->eps);
        g[i] = 0;
    }
}

#if LANES > 1
// The same for four vectors at a time, because roots and divisions cost more than all the rest. The move is a fraction.
// Of the first two vectors it is m / (root + eps). Of the other two the root is only known roughly, as r. One step of
// Newton's gives the missing digits: (r*r + v) / (2*r); so m / (root + eps) is 2*r*m / (r*r + v + 2*r*eps). There v is
// scaled up, so that what single precision cannot tell from zero is far below eps. In this way the unit for roots and
// those for products share the work. Then one division serves all four: it gives the reciprocal of the product of the
// four denominators, and multiplying it by the other three gives each its own. Returns how many parameters it has
// moved; it stops early where numbers are too large for this, and does nothing where the rate or eps is out of range,
// or where the means forget so fast that the shorter way to write them loses digits.
static APART size_t adam_fast(double *p, double *g, double *m, double *v, size_t n, const AdamStep *s)
{
    const double scale = 0x1p60, root_scale = 0x1p30;
    double root2 = sqrt(s->correct2), rate = s->lr * s->correct1 / root2, eps = s->eps / root2;
    double new1 = 1 - s->beta1, new2 = 1 - s->beta2;
    size_t i = 0;
    if (rate < 1e-100 || rate > 1e150 || eps < 1e-15 || s->beta1 < 0.5 || s->beta2 < 0.5) {
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
static size_t adam_fast(double *p, double *g, double *m, double *v, size_t n, const AdamStep *s)
{
    (void)p, (void)g, (void)m, (void)v, (void)n, (void)s;
    return 0;
}
#endif

void adam(double *p, double *g, double *m, double *v, size_t n, uint64_t step, double lr, double beta1, double beta2,
          double eps)
{
    AdamStep s = {.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps,
                  .correct1 = 1 / (1 - pow(beta1, (double)step + 1)),
                  .correct2 = 1 / (1 - pow(beta2, (double)step + 1))};
    size_t i = 0;
    while (i < n) {
        i += adam_fast(p + i, g + i, m + i, v + i, n - i, &s);
        size_t rest = n - i < 4 * LANES ? n - i : 4 * LANES;
        adam_each(p + i, g + i, m + i, v + i, rest, &s);
        i += rest;
    }
}
