/* prove.c: does what runs agree with what one reads?
 *
 * The atoms in microgpt.c define what the program computes; then come the plain functions of
 * autograd.c; then whatever is there for speed alone. When a command that computes begins, each
 * fast way is held against its definition, on small inputs. One that differs is not used in this
 * run, and a note says so. Each backward is held against differences of its forward; one that is
 * no derivative is used all the same, since it is the definition, with a note. `microgpt check`
 * does all of this as a table, and more that takes longer, at the sizes of its options.
 */
#define _XOPEN_SOURCE 700
#include "../engine/faster.h"
#include "job.h"
#include "../engine/threads.h"

#include <assert.h>
#include <float.h>
#include <stdarg.h>

#define SAME 1e-9        // of the largest value: rounding alone stays below
#define DERIVATIVE 1e-6  // the same for central differences

InUse in_use = {.fused = FUSED, .adam = true, .parts = true};

static struct {
    bool table;      // print a row for each comparison, and notes at the end
    size_t n_wrong;  // comparisons that differ
} proof;

// One comparison. `what` is its row of the table; the rest is the note: two functions and where
// they are, and what runs.
PRINTF_LIKE(4, 5)
static bool agrees(double difference, double limit, const char *what, const char *format, ...)
{
    char text[512];
    bool ok = difference <= limit;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (proof.table) say("%-58s %8.1e  %s\n", what, difference, ok ? "ok" : "differs");
    if (proof.table && !ok) say("    %s\n", text);
    if (!proof.table && !ok) note("%s", text);
    proof.n_wrong += !ok;
    return ok;
}

/* ------------------------------------------------------------------------------------------------
 * Two tapes on which the same is recorded, and how far apart they are.
 */
enum { ROOM = 4000, MOST_VECTORS = 128 };

static struct {
    uint64_t random;
    double *vectors[2][MOST_VECTORS];  // what is compared, of each tape
    size_t lengths[MOST_VECTORS], n[2];
    size_t results[2][MOST_VECTORS], n_results[2];  // which of these are results
    double values, gradients;                       // the largest differences, of the largest value
} pair;

// Up to 1.2 on both sides, but not near 0.
static double draw(void *unused)
{
    (void)unused;
    pair.random = pair.random * 6364136223846793005u + 1442695040888963407u;
    double x = (double)(int32_t)(pair.random >> 32) / 0x1p31;
    return x + copysign(0.2, x);
}

// What is compared: an operand, which is filled, or a result.
static double *watched(size_t tape, double *x, size_t n)
{
    if (pair.n[tape] == MOST_VECTORS) return x;
    pair.lengths[pair.n[tape]] = n;
    pair.vectors[tape][pair.n[tape]++] = x;
    return x;
}

static double *operand(Tape *t, size_t tape, size_t n)
{
    double *x = ag_vector(t, n);
    ag_fill(x, n, draw, NULL);
    return watched(tape, x, n);
}

static double *result(size_t tape, double *x, size_t n)
{
    if (pair.n_results[tape] < MOST_VECTORS)
        pair.results[tape][pair.n_results[tape]++] = pair.n[tape];
    return watched(tape, x, n);
}

// Adds to the largest difference of two vectors, and to their largest value.
static void compare(const double *a, const double *b, size_t n, double *difference, double *largest)
{
    for (size_t i = 0; i < n; i++) {
        double apart = fabs(a[i] - b[i]), size = fabs(a[i]);
        bool same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));  // also if they are infinite
        if (size > *largest && size <= DBL_MAX) *largest = size;
        if (!same && !(apart <= *difference)) *difference = isnan(apart) ? INFINITY : apart;
    }
}

static void compare_tapes(const Tape *t)
{
    double values = 0, value = 1e-300, gradients = 0, gradient = 1e-300;
    for (size_t i = 0; i < pair.n[0]; i++) {
        double *a = pair.vectors[0][i], *b = pair.vectors[1][i];
        compare(a, b, pair.lengths[i], &values, &value);
        compare(grad(&t[0], a), grad(&t[1], b), pair.lengths[i], &gradients, &gradient);
    }
    pair.values = fmax(pair.values, values / value);
    pair.gradients = fmax(pair.gradients, gradients / gradient);
}

// Goes back as backward() does, from random gradients of all results.
static void go_back(Tape *t, size_t tape)
{
    tape_compute(t);
    assert(t->this_chunk == 0 && t->n_entries <= t->max_entries);
    ag_clear_grad(t, t->chunk, t->n_values);
    for (size_t i = 0; i < pair.n_results[tape]; i++) {
        size_t k = pair.results[tape][i];
        ag_fill(grad(t, pair.vectors[tape][k]), pair.lengths[k], draw, NULL);
    }
    for (size_t i = t->n_entries; i-- > t->kept_entries;) {
        if (t->faster && t->faster->backward(t, &i)) continue;
        operations[t->entries[i].op].backward(t, &t->entries[i]);
    }
}

static void start(Tape *t, size_t tape)
{
    tape_drop(t);
    pair.n[tape] = pair.n_results[tape] = 0;
    pair.random = 1;
}

/* ------------------------------------------------------------------------------------------------
 * Fast versions of an operation, and its plain one.
 */
typedef struct {
    size_t n, length, lanes;
    bool growing;  // each lane has a row more than the lane before, as in attention
} Shape;

static size_t extent_of(Extent extent, const Entry *e)
{
    return extent == NO_VALUES  ? 0
           : extent == N_VALUES ? e->n
           : extent == A_ROW    ? e->length
                                : (size_t)(e->n - 1) * e->stride + e->length;
}

// Records an entry of any operation.
static Entry *push(Tape *t, Entry e)
{
    Entry *at = &t->entries[t->n_entries++];
    *at = e;
    if (!t->waiting && !(t->faster && t->faster->forward(at))) operations[e.op].forward(at);
    return at;
}

// Each lane records an entry twice, so that the second one adds to gradients that are there.
static void record_lanes(Tape *t, size_t tape, Op op, const Shape *shape)
{
    const OpRules *rules = &operations[op];
    Entry e = {.op = op, .n = (uint32_t)(shape->n + (shape->growing ? shape->lanes - 1 : 0))};
    e.length = (uint32_t)shape->length;
    e.stride = (uint32_t)(shape->length + 4 * shape->growing);
    e.c = op == OP_POW ? 2 : 0.7;
    start(t, tape);
    if (rules->b == N_ROWS) e.b = operand(t, tape, extent_of(N_ROWS, &e));
    for (size_t lane = 0; lane < shape->lanes; lane++) {
        tape_lane(t);
        if (shape->growing) e.n = (uint32_t)(shape->n + lane);
        e.a = operand(t, tape, extent_of(rules->a, &e));
        if (rules->b != N_ROWS && rules->b) {
            e.b = operand(t, tape, extent_of(rules->b, &e));
        }
        for (size_t k = 0; k < 2; k++) {
            e.out =
                result(tape, ag_vector(t, extent_of(rules->out, &e)), extent_of(rules->out, &e));
            push(t, e);
        }
    }
    tape_end_lanes(t);
    tape_compute(t);
    go_back(t, tape);
}

// Tries shapes from one lane, or many, on both tapes.
static void try_shapes(Tape *t, Op op, const Shape *shapes, size_t n, bool lanes)
{
    pair.values = pair.gradients = 0;
    for (size_t i = 0; i < n; i++) {
        if (lanes != (shapes[i].lanes > 1)) continue;
        if (shapes[i].growing && operations[op].b != N_ROWS) continue;
        if (shapes[i].growing && op == OP_LINEAR) continue;
        for (size_t tape = 0; tape < 2; tape++) record_lanes(&t[tape], tape, op, &shapes[i]);
        compare_tapes(t);
    }
}

// Prints "linear_forward": the name of an operation's function.
static const char *function_of(Op op, const char *direction)
{
    static char names[4][64];
    static size_t next;
    char *name = names[next++ % 4];
    snprintf(name, sizeof names[0], "%s_%s", operations[op].name, direction);
    for (char *c = name; *c; c++) *c = *c == ' ' ? '_' : *c;
    return name;
}

static void prove_fast(Tape *t, Op op)
{
    static const Shape shapes[] = {
        {3, 7, 1, false},   {6, 16, 1, false}, {16, 16, 3, false},
        {5, 17, 13, false}, {1, 8, 14, true},  {1, 132, 12, false},
    };
    FastOperation all = fast_operations[op], *fast = &fast_operations[op];
    char what[96];
    for (size_t lanes = 0; lanes < 2; lanes++) {
        bool any =
            lanes ? fast->forward_lanes || fast->backward_lanes : fast->forward || fast->backward;
        if (!any) continue;
        try_shapes(t, op, shapes, sizeof shapes / sizeof shapes[0], lanes);
        for (size_t back = 0; back < 2; back++) {
            const char *name = function_of(op, back ? "backward" : "forward");
            const char *fast_name = all.names[2 * lanes + back];
            snprintf(what, sizeof what, "%s and %s", name, fast_name);
            if (agrees(back ? pair.gradients : pair.values, SAME, what,
                       "%s() in autograd.c and %s() in %s differ; running %s()", name, fast_name,
                       all.file, name))
                continue;
            if (back && lanes) fast->backward_lanes = NULL;
            if (back && !lanes) fast->backward = NULL;
            if (!back && lanes) fast->forward_lanes = NULL;
            if (!back && !lanes) fast->forward = NULL;
            if (!back) break;  // other values have other gradients
        }
    }
}

/* ------------------------------------------------------------------------------------------------
 * One entry per call, and the atoms that define it.
 */
enum { ROWS = 5 };

static void call_linear(Tape *t, size_t tape, size_t n)
{
    double *x = operand(t, tape, n);
    Matrix w = {.rows = ROWS, .cols = n, .data = operand(t, tape, ROWS * n)};
    result(tape, linear(t, x, &w), ROWS);
}

static void call_softmax(Tape *t, size_t tape, size_t n)
{
    double *x = operand(t, tape, n);
    result(tape, softmax(t, x, n), n);
}

static void call_rmsnorm(Tape *t, size_t tape, size_t n)
{
    double *x = operand(t, tape, n);
    for (size_t i = 0; n % 2 && i < n; i++) x[i] *= 0.01;  // so that RMSNORM_EPS counts
    result(tape, rmsnorm(t, x, n), n);
}

static void call_row_dots(Tape *t, size_t tape, size_t n)
{
    double *rows = operand(t, tape, ROWS * (n + 1));
    double *x = operand(t, tape, n);
    result(tape, ag_row_dots(t, x, rows, ROWS, n + 1, n, 0.7), ROWS);
}

static void call_weighted_sum(Tape *t, size_t tape, size_t n)
{
    double *rows = operand(t, tape, ROWS * (n + 1));
    double *x = operand(t, tape, ROWS);
    result(tape, ag_weighted_sum(t, x, rows, ROWS, n + 1, n), n);
}

// t[0] is scalar, t[1] fused.
static void prove_calls(Tape *t)
{
    static const struct {
        Op op;
        const char *name, *file;
        void (*call)(Tape *t, size_t tape, size_t n);
    } calls[] = {
        {OP_LINEAR, "linear", "microgpt.c", call_linear},
        {OP_SOFTMAX, "softmax", "microgpt.c", call_softmax},
        {OP_RMSNORM, "rmsnorm", "microgpt.c", call_rmsnorm},
        {OP_ROW_DOTS, "ag_row_dots", "autograd.c", call_row_dots},
        {OP_WEIGHTED_SUM, "ag_weighted_sum", "autograd.c", call_weighted_sum},
    };
    static const size_t sizes[] = {1, 4, 16, 27};
    char what[96];
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        pair.values = pair.gradients = 0;
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            for (size_t tape = 0; tape < 2; tape++) {
                start(&t[tape], tape);
                calls[i].call(&t[tape], tape, sizes[k]);
                go_back(&t[tape], tape);
            }
            compare_tapes(t);
        }
        bool forward = pair.values > SAME;
        snprintf(what, sizeof what, "%s: one entry and its atoms", calls[i].name);
        if (!agrees(fmax(pair.values, pair.gradients), SAME, what,
                    "%s() in %s and %s() in autograd.c differ; running the atoms", calls[i].name,
                    calls[i].file, function_of(calls[i].op, forward ? "forward" : "backward")))
            in_use.fused &= ~((uint64_t)1 << calls[i].op);
    }
}

/* ------------------------------------------------------------------------------------------------
 * Derivatives, and central differences.
 */
// The weighted sum of an entry's results.
static double weighted_result(Entry *e, size_t n_out, const double *weights)
{
    double sum = 0;
    operations[e->op].forward(e);
    for (size_t i = 0; i < n_out; i++) sum += weights[i] * e->out[i];
    return sum;
}

// What backward adds to the n gradients of an operand, and what differences say.
static double derivative_error(const Tape *t, Entry *e, double *operand, size_t n,
                               const double *weights, size_t n_out, double *expected, double *added)
{
    double worst = 0, largest = 1e-3, h = 1e-5;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(grad(t, operand)[i]));
    for (size_t i = 0; i < n; i++) {
        double old = operand[i], g = grad(t, operand)[i];
        operand[i] = old + h;
        double above = weighted_result(e, n_out, weights);
        operand[i] = old - h;
        double below = weighted_result(e, n_out, weights), difference = (above - below) / (2 * h);
        operand[i] = old;
        double error = fabs(difference - g) / fmax(largest, fabs(difference));
        if (!(error <= worst)) {
            worst = isnan(error) ? INFINITY : error;
            *expected = difference;
            *added = g;
        }
    }
    return worst;
}

// One shape, with operands of both signs or, where that gives no finite numbers, positive ones.
static bool try_derivative(Tape *t, Op op, const Shape *shape, bool positive)
{
    const OpRules *rules = &operations[op];
    Entry e = {.op = op, .n = (uint32_t)shape->n, .length = (uint32_t)shape->length};
    e.stride = (uint32_t)shape->length + 1;
    e.c = positive ? -0.5 : op == OP_POW ? 2 : 0.7;
    start(t, 0);
    size_t n[3] = {extent_of(rules->out, &e), extent_of(rules->a, &e), extent_of(rules->b, &e)};
    double *operands[3];
    for (size_t i = 0; i < 3; i++) {
        operands[i] = ag_vector(t, n[i] ? n[i] : 1);
        ag_fill(operands[i], n[i], draw, NULL);
        for (size_t k = 0; positive && k < n[i]; k++) operands[i][k] = fabs(operands[i][k]);
        ag_clear_grad(t, operands[i], n[i]);
    }
    double *weights = ag_vector(t, n[0]);
    ag_fill(weights, n[0], draw, NULL);
    e.out = operands[0];
    e.a = operands[1];
    e.b = n[2] ? operands[2] : NULL;
    if (!isfinite(weighted_result(&e, n[0], weights))) return false;
    memcpy(grad(t, e.out), weights, n[0] * sizeof *weights);
    rules->backward(t, &e);
    for (size_t i = 1; i < 3; i++) {
        double expected = 0, added = 0,
               error = derivative_error(t, &e, operands[i], n[i], weights, n[0], &expected, &added);
        char what[96];
        if (!n[i]) continue;
        snprintf(what, sizeof what, "%s and differences, operand %c, n = %zu",
                 function_of(op, "backward"), i == 1 ? 'a' : 'b', shape->n);
        if (!agrees(error, DERIVATIVE, what,
                    "%s() in autograd.c is not the derivative of %s(): operand %c: expected %.6g, "
                    "it added %.6g; %s",
                    function_of(op, "backward"), function_of(op, "forward"), i == 1 ? 'a' : 'b',
                    expected, added,
                    in_use.fused >> op & 1 ? "it runs all the same" : "the atoms run"))
            return true;
    }
    return true;
}

static void prove_derivatives(Tape *t)
{
    static const Shape shapes[] = {{1, 3, 1, false}, {5, 4, 1, false}};
    for (Op op = 0; op < N_OPS; op++) {
        size_t n_wrong = proof.n_wrong;
        if (no_derivative >> op & 1) {
            if (proof.table) say("%-58s %8s  not compared\n", function_of(op, "backward"), "");
            continue;
        }
        for (size_t i = 0; i < 2 && proof.n_wrong == n_wrong; i++) {
            if (try_derivative(t, op, &shapes[i], false)) continue;
            if (try_derivative(t, op, &shapes[i], true)) continue;
            agrees(INFINITY, 0, operations[op].name,
                   "%s() in autograd.c: no operands were found for it; its derivative is not "
                   "compared",
                   function_of(op, "forward"));
        }
    }
}

/* ------------------------------------------------------------------------------------------------
 * Adam.
 */
enum { N_PARAMETERS = 67 };

// Three steps, with gradients of all sizes, as the command's options have it.
static bool take_steps(Model *model, const Config *config)
{
    *model = (Model){.num_params = N_PARAMETERS};
    if (!tape_init(&model->tape, 4 * N_PARAMETERS) || !install_faster(&model->tape)) return false;
    double **vectors[] = {&model->params, &model->m, &model->v};
    pair.random = 3;
    for (size_t i = 0; i < 3; i++) {
        *vectors[i] = ag_vector(&model->tape, N_PARAMETERS);
        ag_fill(*vectors[i], N_PARAMETERS, draw, NULL);
        for (size_t k = 0; i == 2 && k < N_PARAMETERS; k++) model->v[k] = fabs(model->v[k]);
    }
    for (size_t step = 0; step < 3; step++) {
        double *g = grad(&model->tape, model->params);
        for (size_t i = 0; i < N_PARAMETERS; i++) g[i] = draw(NULL) * pow(10, (double)(i % 12) - 8);
        if (step == 1) memset(model->v, 0, N_PARAMETERS * sizeof *g);
        adam(model, config, learning_rate(config, 0));
    }
    return true;
}

static bool prove_adam(const Config *config)
{
    Model models[2];
    double difference = 0, largest = 1e-300;
    in_use.adam = false;
    bool ok = take_steps(&models[0], config);
    in_use.adam = true;
    ok = take_steps(&models[1], config) && ok;
    if (ok) {
        compare(models[0].params, models[1].params, N_PARAMETERS, &difference, &largest);
        compare(models[0].m, models[1].m, N_PARAMETERS, &difference, &largest);
        compare(models[0].v, models[1].v, N_PARAMETERS, &difference, &largest);
        in_use.adam =
            agrees(difference / largest, SAME, "adam: its loop and the fast version",
                   "adam() in microgpt.c and move_parameters() in support/engine/adam.c differ; "
                   "running adam()");
    }
    tape_free(&models[0].tape);
    tape_free(&models[1].tape);
    return ok;
}

/* ------------------------------------------------------------------------------------------------
 * The model as it is, whole: its loss and all gradients, in several ways.
 */
typedef enum { ATOMS, ENTRIES, LANES, THREADS, PARTS, N_WAYS } Way;

enum { MOST_DOCS = 16, VOCAB = 7 };

typedef struct {
    Job job;
    Document docs[MOST_DOCS];
    uint32_t tokens[MOST_DOCS];  // all documents begin with the first of them
    double *results;             // [n] the loss, then the gradients; the caller frees it
    size_t n;
} Trial;

// Documents of 0 to `longest` tokens, and parameters at random.
static bool begin_trial(Trial *trial, const Options *o, size_t longest, bool scalar)
{
    Job *job = &trial->job;
    *trial = (Trial){.job = {.o = *o, .out_of_memory = NULL}};
    job->o.scalar = scalar;
    Run *run = &job->run;
    *run = (Run){.config = &job->o.config, .rng = &job->rng, .job = job};
    run->docs = (Documents){.list = trial->docs, .n = MOST_DOCS, .longest = longest};
    run->tokenizer.vocab_size = VOCAB;
    random_seed(&job->rng, 1);
    for (size_t i = 0; i < MOST_DOCS; i++) {
        trial->tokens[i] = (uint32_t)(i * 5 % (VOCAB - 1));
        trial->docs[i] = (Document){.tokens = trial->tokens, .length = (i * 3 + 1) % (longest + 1)};
    }
    if (!new_model(run)) return false;
    pair.random = 5;
    ag_fill(run->model.params, (size_t)run->model.num_params, draw, NULL);
    for (uint64_t i = 0; i < run->model.num_params; i++) run->model.params[i] *= 0.5;
    return new_batch(run);
}

static void end_trial(Trial *trial)
{
    free_batch(&trial->job.batch);
    free_model(&trial->job.run.model);
}

static double *loss_of(Run *run, bool parts)
{
    tape_drop(&run->model.tape);
    double *loss = parts ? fast_batch(run, 0) : NULL;
    return loss ? loss : share_of_loss(run, &run->model, 0, run->config->batch);
}

static bool run_way(Trial *trial, const Options *o, size_t longest, Way way)
{
    bool lanes = use_lanes, parts = in_use.parts;
    use_lanes = lanes && way >= LANES;
    in_use.parts = parts && way == PARTS;
    if (way == THREADS) set_threads(3, 3);
    bool ok = begin_trial(trial, o, longest, way == ATOMS);
    Model *model = &trial->job.run.model;
    trial->n = 1 + (size_t)model->num_params;
    trial->results = ok ? malloc(trial->n * sizeof *trial->results) : NULL;
    if (trial->results) {
        double *loss = loss_of(&trial->job.run, way == PARTS);
        trial->results[0] = *value(&model->tape, loss);
        backward(&model->tape, loss);
        memcpy(trial->results + 1, grad(&model->tape, model->params),
               (trial->n - 1) * sizeof *trial->results);
    }
    end_trial(trial);
    use_lanes = lanes;
    in_use.parts = parts;
    return trial->results != NULL;
}

// The ways to compute a model, each beside one that is closer to its definition.
enum { N_COMPARED = 4 };
static const struct {
    Way way, beside;
    const char *what, *note;
} ways[N_COMPARED] = {
    {ENTRIES, ATOMS, "one entry per call, and atoms",
     "gpt() in microgpt.c as atoms and as entries of autograd.c differ; running the atoms"},
    {LANES, ENTRIES, "positions side by side, and one after another",
     "the order of the tape and lanes in support/engine/lanes.c differ; running the order of the "
     "tape"},
    {THREADS, LANES, "three threads, and one",
     "one thread and share() in support/engine/threads.c differ; try --threads 1"},
    {PARTS, LANES, "a batch in parts, and on one tape",
     "share_of_loss() in microgpt.c and fast_batch() in support/run/batch.c differ; running one "
     "tape"},
};

// The largest difference of the losses, or of the gradients.
static double trial_difference(const Trial *trial, const Trial *beside)
{
    double loss = 0, size = 1e-300, gradients = 0, largest = 1e-300;
    compare(trial->results, beside->results, 1, &loss, &size);
    compare(trial->results + 1, beside->results + 1, trial->n - 1, &gradients, &largest);
    return fmax(loss / size, gradients / largest);
}

// From the first of the ways on. One that differs is not used.
static bool prove_model(const Options *o, size_t longest, size_t first, size_t end)
{
    static Trial trials[N_WAYS];
    bool ok = run_way(&trials[ways[first].beside], o, longest, ways[first].beside);
    for (size_t i = first; ok && i < end; i++) {
        Way way = ways[i].way;
        ok = run_way(&trials[way], o, longest, way);
        if (!ok || agrees(trial_difference(&trials[way], &trials[ways[i].beside]), SAME,
                          ways[i].what, "%s", ways[i].note))
            continue;
        if (way == ENTRIES) in_use.fused = 0;
        if (way == LANES) use_lanes = false;
        if (way == PARTS) in_use.parts = false;
    }
    for (size_t way = 0; way < N_WAYS; way++) {
        free(trials[way].results);
        trials[way].results = NULL;
    }
    return ok;
}

// The same model, but as small as can be.
static Options small_options(const Options *o, uint64_t n_layer, uint64_t n_head)
{
    Options small = *o;
    small.config.n_layer = n_layer;
    small.config.n_head = n_head;
    small.config.n_embd = 2 * n_head;
    small.config.block_size = 3;
    small.config.batch = 8;
    small.config.holdout = 0;
    return small;
}

// Every gradient of a model, and differences of its loss, matrix by matrix.
static bool check_gradients(const Options *o)
{
    static Trial trial;
    bool ok = begin_trial(&trial, o, 2, o->scalar);
    Run *run = &trial.job.run;
    Model *model = &run->model;
    for (size_t k = 0; ok && k < model->n_matrices; k++) {
        const Matrix *w = &model->state_dict[k];
        double *g = grad(&model->tape, w->data), h = 1e-5, worst = 0, largest = 1e-300;
        memset(grad(&model->tape, model->params), 0, (size_t)model->num_params * sizeof *g);
        backward(&model->tape, loss_of(run, false));
        for (size_t i = 0; i < w->rows * w->cols; i++) {
            double old = w->data[i], gradient = g[i];
            w->data[i] = old + h;
            double above = *value(&model->tape, loss_of(run, false));
            w->data[i] = old - h;
            double difference = (above - *value(&model->tape, loss_of(run, false))) / (2 * h);
            w->data[i] = old;
            worst = fmax(worst, fabs(difference - gradient));
            largest = fmax(largest, fabs(difference));
        }
        char what[96];
        snprintf(what, sizeof what, "gradients of %s, and differences", w->name);
        agrees(worst / largest, DERIVATIVE, what,
               "gradients of %s are not what differences of the loss say: an operation above, or "
               "backward() in autograd.c, is wrong",
               w->name);
    }
    end_trial(&trial);
    return ok;
}

/* ------------------------------------------------------------------------------------------------
 * The proof when a command begins, and the command `check`.
 */
static bool prove_parts(const Options *o, bool fast)
{
    Tape tapes[2] = {{0}, {0}};
    bool ok = tape_init(&tapes[0], ROOM) && tape_init(&tapes[1], ROOM);
    if (ok) {
        tapes[0].fused = 0;
        prove_calls(tapes);
        prove_derivatives(tapes);
        tapes[0].fused = FUSED;
        tape_drop(&tapes[1]);
        ok = install_faster(&tapes[1]);
    }
    for (Op op = 0; ok && fast && op < N_OPS; op++) prove_fast(tapes, op);
    tape_free(&tapes[0]);
    tape_free(&tapes[1]);
    return ok && (!fast || prove_adam(&o->config));
}

bool prove(const Options *o)
{
    Options small = small_options(o, 1, 2);
    if (!have_faster || o->scalar) return true;
    return (prove_parts(o, true) && prove_model(&small, 2, N_COMPARED - 1, N_COMPARED)) ||
           no_memory();
}

// The model in full, with as many positions as atoms leave room for.
bool check_everything(const Options *o)
{
    Options full = *o, few = small_options(o, o->config.n_layer > 1 ? 2 : 1, 4);
    Model sizes;
    full.config.batch = 2;
    full.config.holdout = 0;
    if (!size_model(&sizes, &full.config, VOCAB)) return false;
    size_t longest = 1 + 2000000 / (size_t)sizes.num_params;
    free_model(&sizes);
    if (longest > 11) longest = 11;
    proof.table = true;
    say("%-58s %8s\n", "what is compared", "differ by");
    bool fast = have_faster && !o->scalar;
    bool ok = prove_parts(o, fast);
    if (ok && fast) ok = prove_model(&full, longest, 0, N_COMPARED - 1);
    if (ok && fast) ok = prove_model(&few, 2, N_COMPARED - 1, N_COMPARED);
    if (!ok || !check_gradients(&few)) return no_memory();
    return proof.n_wrong == 0 || fail("check: %zu comparisons differ", proof.n_wrong);
}
