/* What the table of operations says of each: a name of its own, its extents, and that its backward is the derivative. */
#include "../../autograd.h"
#include "../test.h"

enum { ROOM = 64, AT = 8, ROWS = 3, LENGTH = 5, STRIDE = 9 };

// Values of out, a and b, each with room around them; their gradients are a chunk further on.
static double values[6][ROOM];
static const Tape t = {.chunk_size = 3 * ROOM};

// The count of values that an extent means.
static size_t count(Extent extent)
{
    static const size_t counts[] = {0, ROWS, LENGTH, (ROWS - 1) * STRIDE + LENGTH};
    _Static_assert(N_VALUES == 1 && A_ROW == 2 && N_ROWS == 3, "in this order");
    return counts[extent];
}

static Entry entry_of(Op k)
{
    const OpRules *rules = &operations[k];
    bool in_rows = rules->b == N_ROWS;
    Entry e = {.op = k, .n = ROWS, .out = values[0] + AT, .a = values[1] + AT, .c = 1.5};
    e.b = rules->b ? values[2] + AT : NULL;
    e.length = in_rows ? LENGTH : 0;
    e.stride = in_rows ? STRIDE : 0;
    memset(values, 0, sizeof values);
    for (size_t i = 0; i < ROOM; i++) {
        values[1][i] = 0.5 + 0.01 * (double)i;
        values[2][i] = 0.7 + 0.01 * (double)(i * i);
    }
    return e;
}

// Are the first and the last of n numbers other than 0, and the two beside them 0?
static bool spans(const double *x, size_t n)
{
    bool inner = n == 0 || (fpclassify(x[0]) != FP_ZERO && fpclassify(x[n - 1]) != FP_ZERO);
    return inner && fpclassify(x[-1]) == FP_ZERO && fpclassify(x[n]) == FP_ZERO;
}

// The sum of all results, weighed.
static double weighed(Entry *e, size_t n)
{
    double sum = 0;
    operations[e->op].forward(e);
    for (size_t i = 0; i < n; i++) sum += (1 + 0.1 * (double)(i * i)) * e->out[i];
    return sum;
}

// Forward fills its extent and no more, so does backward; and differences of results say the same.
static void test_operation(Op k)
{
    const OpRules *rules = &operations[k];
    Entry e = entry_of(k);
    size_t n_out = count(rules->out), n_in[2] = {count(rules->a), count(rules->b)};
    weighed(&e, n_out);
    check(n_out > 0 && spans(e.out, n_out), "%s: forward fills its extent", rules->name);
    for (size_t i = 0; i < n_out; i++) grad(&t, e.out)[i] = 1 + 0.1 * (double)(i * i);
    rules->backward(&t, &e);
    double worst = 0;
    for (size_t o = 0; o < 2; o++) {
        double *x = values[1 + o] + AT;
        check(spans(grad(&t, x), n_in[o]), "%s: backward fills that of operand %zu", rules->name,
              o);
        for (size_t i = 0; i < n_in[o]; i++) {
            double results[5], was = x[i], h = 1e-4;
            for (int step = 0; step < 5; step++) {
                x[i] = was + (step - 2) * h;
                results[step] = weighed(&e, n_out);
            }
            x[i] = was;
            double slope = (results[0] - results[4] + 8 * (results[3] - results[1])) / (12 * h);
            worst = fmax(worst, fabs(slope - grad(&t, x)[i]));
        }
    }
    bool on_purpose = no_derivative >> k & 1;
    check(on_purpose || worst <= 1e-8, "%s: differences and backward, apart by %g", rules->name,
          worst);
    for (Op other = 0; other < k; other++) {
        if (strcmp(rules->name, operations[other].name) == 0) check(false, "two %s", rules->name);
    }
}

int main(void)
{
    check(no_derivative >> N_OPS == 0, "no_derivative has bits of operations alone");
    for (Op k = 0; k < N_OPS; k++) test_operation(k);
    return finish();
}
