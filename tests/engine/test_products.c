/* Many lanes at once: products with a matrix, dots with rows and sums of rows, of all shapes,
 * against plain loops. Beside everything that is used lies what is not a number, and no gradient
 * may get there.
 */
// also built with -DAUTOGRAD_PLAIN
// also built with -DAUTOGRAD_TILE=2
// also built with -DAUTOGRAD_TILE=3 only with ALL=1
// also built with -DAUTOGRAD_TILE=4 only with ALL=1
#include "../../support/engine/faster.h"
#include "../test.h"

enum { MAX = 130 };  // lanes

static Tape t;

// n numbers, with others beside them that are not numbers; `gap` of these, not to be the same
// distance each time.
static double *numbers(size_t n, size_t gap)
{
    double *all = ag_vector(&t, n + 2 * gap + 8);
    for (size_t i = 0; i < n + 2 * gap + 8; i++) {
        all[i] = i >= gap && i < gap + n ? any_number() : NAN;
    }
    return all + gap;
}

static double *copy(const double *a, size_t n)
{
    double *b = malloc((n + 1) * sizeof *b);
    if (!b) {
        exit(1);
    }
    memcpy(b, a, n * sizeof *b);
    return b;
}

// A case: what is done, to how many lanes, with how many rows of what length; rows that lie
// `stride` from one another.
typedef enum { LINEAR, DOTS, SUMS, N_KINDS } Kind;
typedef enum {
    ALL,
    CAUSAL,
    GROWING,
    SHRINKING,
    DOCUMENTS,
    N_VIEWS
} View;  // of the rows, how many a lane sees

static const char *const kinds[N_KINDS] = {"linear", "dots", "weighted sum"};
static const char *const views[N_VIEWS] = {"all rows", "one row more each", "more and more rows",
                                           "fewer and fewer rows", "rows of three documents"};

typedef struct {
    Kind kind;
    View view;
    size_t lanes, rows, cols, stride;
} Case;

static size_t rows_of_lane(const Case *c, size_t s)
{
    switch (c->view) {
    case CAUSAL: return s + 1 < c->rows ? s + 1 : c->rows;
    case GROWING: return 1 + (c->rows - 1) * (s / 3 * 3) / c->lanes;
    case SHRINKING: return 1 + (c->rows - 1) * (c->lanes - 1 - s) / c->lanes;
    case DOCUMENTS: return s % (c->lanes / 3 + 1) < c->rows ? s % (c->lanes / 3 + 1) + 1 : c->rows;
    default: return c->rows;
    }
}

static const double *differs(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(distance(a[i], b[i]) <= 1e-12)) {
            return &a[i];
        }
    }
    return NULL;
}

// Only what was given may have a gradient.
static bool nothing_beside(void)
{
    for (size_t k = 0; k <= t.this_chunk; k++) {
        size_t n = k == t.this_chunk ? t.n_values : t.chunk_size;
        for (double *x = t.chunks[k]; x < t.chunks[k] + n; x++) {
            if (isnan(*x) && *grad(&t, x) != 0) return false;
        }
    }
    return true;
}

// Computes one case on the tape and in plain loops. Returns what is not the same, or NULL.
static const char *wrong(const Case *c)
{
    size_t documents = c->view == DOCUMENTS ? 3 : 1, size = (c->rows - 1) * c->stride + c->cols;
    double *rows[3], *x[MAX], *y[MAX], *weights[MAX], *others[MAX], *out[MAX];
    tape_drop(&t);
    for (size_t d = 0; d < documents; d++) {
        rows[d] = numbers(size, 4);
    }
    Matrix w = {.name = "w", .rows = c->rows, .cols = c->cols, .data = rows[0]};
    double *losses = ag_vector(&t, 2 * c->lanes);
    for (size_t s = 0; s < c->lanes; s++) {
        size_t seen = rows_of_lane(c, s), d = documents == 1 ? 0 : s / (c->lanes / 3 + 1);
        size_t n_out = c->kind == SUMS ? c->cols : seen, n_in = c->kind == SUMS ? seen : c->cols;
        double *in = numbers(n_in, s % 7);
        weights[s] = numbers(n_out, s % 3);
        others[s] = numbers(n_in, s % 5);
        tape_lane(&t);
        out[s] = c->kind == DOTS   ? ag_row_dots(&t, in, rows[d], seen, c->stride, c->cols, 0.7)
                 : c->kind == SUMS ? ag_weighted_sum(&t, in, rows[d], seen, c->stride, c->cols)
                                   : ag_linear(&t, in, &w);
        ag_dot(&t, losses + 2 * s, out[s], weights[s], n_out);
        ag_dot(&t, losses + 2 * s + 1, in, others[s],
               n_in);  // a second use: its gradients are there first
        x[s] = c->kind == SUMS ? out[s] : in;
        y[s] = c->kind == SUMS ? in : out[s];
    }
    tape_end_lanes(&t);
    backward(&t, ag_sum(&t, losses, 2 * c->lanes));

    const char *what = NULL;
    double scale = c->kind == DOTS ? 0.7 : 1, *expected = calloc(3 * size + 4096, sizeof *expected);
    if (!expected) {
        exit(1);
    }
    for (size_t s = 0; s < c->lanes; s++) {
        size_t seen = rows_of_lane(c, s), d = documents == 1 ? 0 : s / (c->lanes / 3 + 1);
        double *to = copy(out[s], c->kind == SUMS ? c->cols : seen);
        double *gin = copy(others[s], c->kind == SUMS ? seen : c->cols);
        memset(to, 0, (c->kind == SUMS ? c->cols : seen) * sizeof *to);
        for (size_t j = 0; j < seen; j++) {
            const double *row = rows[d] + j * c->stride;
            double *grow = expected + d * size + j * c->stride;
            for (size_t i = 0; i < c->cols; i++) {
                if (c->kind == SUMS) {
                    to[i] += y[s][j] * row[i];
                    gin[j] += weights[s][i] * row[i];
                    grow[i] += y[s][j] * weights[s][i];
                } else {
                    to[j] += scale * x[s][i] * row[i];
                    gin[i] += scale * weights[s][j] * row[i];
                    grow[i] += scale * weights[s][j] * x[s][i];
                }
            }
        }
        if (differs(to, out[s], c->kind == SUMS ? c->cols : seen)) {
            what = "results";
        } else if (differs(gin, grad(&t, c->kind == SUMS ? y[s] : x[s]),
                           c->kind == SUMS ? seen : c->cols)) {
            what = "gradients of inputs";
        }
        free(to);
        free(gin);
    }
    for (size_t d = 0; d < documents && !what; d++) {
        what = differs(expected + d * size, grad(&t, rows[d]), size) ? "gradients of rows" : NULL;
    }
    free(expected);
    return what ? what : nothing_beside() ? NULL : "gradients beside what was used";
}

static void test(Kind kind, View view)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 27, 32, 48, 63, 65};
    static const size_t lanes[] = {1,  2,  3,  4,  5,  6,  7,  8,  11,  12, 13,
                                   16, 19, 24, 31, 32, 33, 40, 64, 127, 130};
    enum { N_SIZES = sizeof sizes / sizeof sizes[0], N_LANES = sizeof lanes / sizeof lanes[0] };
    size_t done = 0;
    for (size_t i = 0; i < N_SIZES; i++) {
        for (size_t j = 0; j < N_SIZES; j++) {
            for (size_t k = (i + j) % 3; k < N_LANES; k += 3) {
                Case c = {kind,     view,     lanes[k],
                          sizes[i], sizes[j], sizes[j] + (kind == LINEAR ? 0 : (i + k) % 5)};
                const char *what = wrong(&c);
                if (what) {
                    check(false,
                          "%s, %zu lanes, %zu rows of %zu, %zu apart, %s: expected the same as in "
                          "plain loops, "
                          "saw other %s",
                          kinds[kind], c.lanes, c.rows, c.cols, c.stride, views[view], what);
                    return;
                }
                done++;
            }
        }
    }
    check(true, "%s, %s: %zu shapes of 1 to %zu rows of 1 to %zu, 1 to %zu lanes", kinds[kind],
          views[view], done, sizes[N_SIZES - 1], sizes[N_SIZES - 1], lanes[N_LANES - 1]);
}

// Longer than any block of the kernels, in each direction.
static void test_large(void)
{
    static const Case cases[] = {
        {LINEAR, ALL, 130, 300, 16, 16},     {LINEAR, ALL, 20, 16, 300, 300},
        {LINEAR, ALL, 130, 143, 150, 150},   {LINEAR, ALL, 3, 200, 144, 144},
        {DOTS, CAUSAL, 130, 130, 40, 160},   {SUMS, CAUSAL, 130, 130, 40, 160},
        {DOTS, GROWING, 130, 290, 140, 141}, {SUMS, GROWING, 130, 290, 140, 141}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Case *c = &cases[i];
        const char *what = wrong(c);
        check(
            !what,
            "%s, %zu lanes, %zu rows of %zu, %s: expected the same as in plain loops, saw other %s",
            kinds[c->kind], c->lanes, c->rows, c->cols, views[c->view], what ? what : "nothing");
    }
}

// With so much room per chunk: enough for a case, or so little that its lanes are in many.
static void test_all(size_t chunk)
{
    if (!tape_init(&t, chunk) || !install_faster(&t)) {
        check(false, "memory for the tape: expected some, saw none");
        return;
    }
    tape_mark(&t);
    test(LINEAR, ALL);
    for (int view = ALL; view < N_VIEWS; view++) {
        test(DOTS, (View)view);
        test(SUMS, (View)view);
    }
    test_large();
    tape_free(&t);
}

int main(void)
{
    test_all(1 << 19);
    test_all(50000);
    return finish();
}
