/* Many lanes at once: products with a matrix, dots with rows and sums of rows, of all shapes, against plain loops. Beside
 * everything that is used lies what is not a number, and no gradient may get there.
 */
// also built with -DAUTOGRAD_PLAIN
#include "../../support/engine/faster.h"
#include "../test.h"

enum { MAX = 130, DOCUMENTS = 3 };  // lanes

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

// What is done, to how many lanes, with how many rows of what length, `stride` apart; and how many
// of the rows a lane sees.
typedef enum { LINEAR, DOTS, SUMS } Kind;
typedef enum { ALL, CAUSAL, GROWING, SHRINKING, OF_DOCUMENTS, N_VIEWS } View;
static const char *const kinds[] = {"linear", "dots", "weighted sum"};
static const char *const views[] = {"all rows", "one row more each", "more and more rows",
                                    "fewer and fewer rows", "rows of three documents"};
typedef struct {
    Kind kind;
    View view;
    size_t lanes, rows, cols, stride;
} Case;

static size_t document_of(const Case *c, size_t s)
{
    return c->view == OF_DOCUMENTS ? s / (c->lanes / DOCUMENTS + 1) : 0;
}

static size_t rows_of_lane(const Case *c, size_t s)
{
    size_t seen = c->rows;
    if (c->view == CAUSAL) seen = s + 1;
    if (c->view == GROWING) seen = 1 + (c->rows - 1) * (s / 3 * 3) / c->lanes;
    if (c->view == SHRINKING) seen = 1 + (c->rows - 1) * (c->lanes - 1 - s) / c->lanes;
    if (c->view == OF_DOCUMENTS) seen = s % (c->lanes / DOCUMENTS + 1) + 1;
    return seen < c->rows ? seen : c->rows;
}

// A lane: n_out results from n_in inputs, and the gradients that both have from elsewhere.
typedef struct {
    size_t n_in, n_out;
    double *in, *out, *of_out, *of_in;  // [n_in], [n_out], [n_out], [n_in]
    const double *rows;
} LaneOfCase;

static void record(const Case *c, LaneOfCase *lane, double *rows, size_t s, double *losses)
{
    size_t seen = rows_of_lane(c, s);
    Matrix w = {.name = "w", .rows = c->rows, .cols = c->cols, .data = rows};
    lane->rows = rows;
    lane->n_in = c->kind == SUMS ? seen : c->cols;
    lane->n_out = c->kind == SUMS ? c->cols : seen;
    lane->in = numbers(lane->n_in, s % 7);
    lane->of_out = numbers(lane->n_out, s % 3);
    lane->of_in = numbers(lane->n_in, s % 5);
    tape_lane(&t);
    lane->out = c->kind == LINEAR ? ag_linear(&t, lane->in, &w)
                : c->kind == DOTS ? ag_row_dots(&t, lane->in, rows, seen, c->stride, c->cols, 0.7)
                                  : ag_weighted_sum(&t, lane->in, rows, seen, c->stride, c->cols);
    ag_dot(&t, losses, lane->out, lane->of_out, lane->n_out);
    ag_dot(&t, losses + 1, lane->in, lane->of_in, lane->n_in);  // its gradients are there first
}

// The same in plain loops. Adds to grad_rows; returns what differs, or NULL.
static const char *check_lane(const Case *c, const LaneOfCase *lane, double *grad_rows)
{
    double out[512] = {0}, grad_in[512], scale = c->kind == DOTS ? 0.7 : 1;
    char text[128];
    memcpy(grad_in, lane->of_in, lane->n_in * sizeof *grad_in);
    for (size_t j = 0; j < (c->kind == SUMS ? lane->n_in : lane->n_out); j++) {
        for (size_t i = 0; i < c->cols; i++) {
            size_t from = c->kind == SUMS ? j : i, to = c->kind == SUMS ? i : j;
            double row = scale * lane->rows[j * c->stride + i];
            out[to] += lane->in[from] * row;
            grad_in[from] += lane->of_out[to] * row;
            grad_rows[j * c->stride + i] += scale * lane->of_out[to] * lane->in[from];
        }
    }
    if (!all_near(out, lane->out, lane->n_out, 1e-12, text, sizeof text)) return "results";
    bool ok = all_near(grad_in, grad(&t, lane->in), lane->n_in, 1e-12, text, sizeof text);
    return ok ? NULL : "gradients of inputs";
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
    static double grad_rows[DOCUMENTS][45000];
    static LaneOfCase lanes[MAX];
    size_t size = (c->rows - 1) * c->stride + c->cols;
    const char *what = NULL;
    char text[128];
    double *rows[DOCUMENTS];
    tape_drop(&t);
    for (size_t d = 0; d < DOCUMENTS; d++) rows[d] = numbers(size, 4);
    double *losses = ag_vector(&t, 2 * c->lanes);
    for (size_t s = 0; s < c->lanes; s++) {
        record(c, &lanes[s], rows[document_of(c, s)], s, losses + 2 * s);
    }
    tape_end_lanes(&t);
    backward(&t, ag_sum(&t, losses, 2 * c->lanes));
    for (size_t d = 0; d < DOCUMENTS; d++) memset(grad_rows[d], 0, size * sizeof(double));
    for (size_t s = 0; s < c->lanes && !what; s++) {
        what = check_lane(c, &lanes[s], grad_rows[document_of(c, s)]);
    }
    for (size_t d = 0; d < DOCUMENTS && !what; d++) {
        bool ok = all_near(grad_rows[d], grad(&t, rows[d]), size, 1e-12, text, sizeof text);
        what = ok ? NULL : "gradients of rows";
    }
    return what ? what : nothing_beside() ? NULL : "gradients beside what was used";
}

static bool right(const Case *c)
{
    const char *what = wrong(c);
    if (what) {
        check(false, "%s, %zu lanes, %zu rows of %zu, %zu apart, %s: saw other %s", kinds[c->kind],
              c->lanes, c->rows, c->cols, c->stride, views[c->view], what);
    }
    return !what;
}

static void test(Kind kind, View view)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 27, 32, 48, 63, 65};
    static const size_t lanes[] = {1,  2,  3,  4,  5,  6,  7,  8,  11,  12, 13,
                                   16, 19, 24, 31, 32, 33, 40, 64, 127, 130};
    enum { N_SIZES = sizeof sizes / sizeof sizes[0], N_LANES = sizeof lanes / sizeof lanes[0] };
    for (size_t i = 0; i < N_SIZES; i++) {
        for (size_t j = 0; j < N_SIZES; j++) {
            for (size_t k = (i + j) % 3; k < N_LANES; k += 3) {
                Case c = {kind, view, lanes[k], sizes[i], sizes[j], sizes[j]};
                if (kind != LINEAR) c.stride += (i + k) % 5;
                if (!right(&c)) return;
            }
        }
    }
    check(true, "%s, %s: 1 to 65 rows of 1 to 65, 1 to 130 lanes", kinds[kind], views[view]);
}

// Longer than any block of the kernels, in each direction.
static void test_large(void)
{
    static const Case cases[] = {
        {LINEAR, ALL, 130, 300, 16, 16},     {LINEAR, ALL, 20, 16, 300, 300},
        {LINEAR, ALL, 130, 143, 150, 150},   {LINEAR, ALL, 3, 200, 144, 144},
        {DOTS, CAUSAL, 130, 130, 40, 160},   {SUMS, CAUSAL, 130, 130, 40, 160},
        {DOTS, GROWING, 130, 290, 140, 141}, {SUMS, GROWING, 130, 290, 140, 141}};
    bool ok = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) ok = right(&cases[i]) && ok;
    check(ok, "rows and columns longer than any block");
}

// With so much room per chunk: enough for a case, or so little that its lanes are in many.
static void test_all(size_t chunk)
{
    if (!tape_init(&t, chunk) || !install_faster(&t)) exit(1);
    tape_mark(&t);
    test(LINEAR, ALL);
    for (View view = ALL; view < N_VIEWS; view++) {
        test(DOTS, view);
        test(SUMS, view);
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
