/* check.c: the model as it is, whole: its loss, all gradients and a step of Adam, in several ways.
 * The proof when a command begins compares some of them in a model as small as can be. `microgpt
 * check` compares all, as a table: entries, lanes and threads at the sizes of its options, parts,
 * Adam and differences in small models.
 *
 * A trial has a job of its own; what it switches off in in_use and use_lanes is on again after it.
 */
#define _XOPEN_SOURCE 700
#include "prove.h"
#include "../engine/faster.h"
#include "../engine/threads.h"

enum { MOST_DOCS = 16, VOCAB = 7 };

// A job with a model and documents of its own, and its loss.
typedef struct {
    Job job;
    Document docs[MOST_DOCS];
    uint32_t tokens[MOST_DOCS];  // all documents begin with the first of them
    double loss;
} Trial;

// Documents of 0 to `longest` tokens, and parameters at random.
static bool begin_trial(Trial *trial, const Options *o, size_t longest)
{
    Job *job = &trial->job;
    *trial = (Trial){.job = {.o = *o}};
    Run *run = &job->run;
    *run = (Run){.config = &job->o.config, .rng = &job->rng, .job = job};
    run->docs = (Documents){.list = trial->docs, .n = MOST_DOCS, .longest = longest};
    run->tokenizer.vocab_size = VOCAB;
    for (size_t i = 0; i < MOST_DOCS; i++) {
        trial->tokens[i] = (uint32_t)(i * 5 % (VOCAB - 1));
        trial->docs[i] = (Document){.tokens = trial->tokens, .length = (i * 3 + 1) % (longest + 1)};
    }
    if (!new_model(run)) return false;
    restart_draws(5);
    for (uint64_t i = 0; i < run->model.num_params; i++) {
        run->model.params[i] = 0.5 * draw(NULL);
        run->model.m[i] = 0.1 * draw(NULL);
        run->model.v[i] = 0.1 * fabs(draw(NULL));
    }
    return new_batch(run);
}

// It can be ended twice: nothing that is freed stays there.
static void end_trial(Trial *trial)
{
    free_batch(&trial->job.batch);
    free_model(&trial->job.run.model);
    trial->job = (Job){.o = trial->job.o};
}

static double *loss_of(Run *run)
{
    tape_drop(&run->model.tape);
    double *loss = fast_batch(run, 0);
    return loss ? loss : share_of_loss(run, &run->model, 0, run->config->batch);
}

static void go_back(Trial *trial)
{
    Run *run = &trial->job.run;
    double *loss = loss_of(run);
    trial->loss = *value(&run->model.tape, loss);
    backward(&run->model.tape, loss);
}

/* ------------------------------------------------------------------------------------------------
 * The ways to compute a model, each beside one that is closer to its definition.
 */
// PLAIN: entries, but nothing of the fast engine.
typedef enum { ATOMS, PLAIN, ENTRIES, LANES, THREADS, PARTS, ADAM } Way;

static bool run_way(Trial *trial, const Options *o, size_t longest, Way way)
{
    const bool parts = in_use.parts, lanes = use_lanes;
    Options ours = *o;
    ours.scalar = way <= PLAIN;
    use_lanes = lanes && way >= LANES;
    in_use.parts = parts && way == PARTS;
    if (way == THREADS) set_threads(3, 3);
    bool ok = begin_trial(trial, &ours, longest);
    if (way == PLAIN) trial->job.run.model.tape.fused = in_use.fused;
    if (ok) go_back(trial);
    in_use.parts = parts;
    use_lanes = lanes;
    return ok;
}

static Difference values, gradients;  // of the latest two trials
static double larger_difference(void) { return fmax(relative(values), relative(gradients)); }

// Compares the losses and the gradients; of ADAM, what a step moves. false: no memory.
static bool compare_ways(const Options *o, size_t longest, Way beside, Way way)
{
    static Trial trials[2];
    bool ok = run_way(&trials[0], o, longest, beside) && run_way(&trials[1], o, longest, way);
    Model *a = &trials[0].job.run.model, *b = &trials[1].job.run.model;
    size_t n = (size_t)a->num_params;
    values = gradients = (Difference){0, 0};
    if (ok) {
        compare(&values, &trials[0].loss, &trials[1].loss, 1);
        compare(&gradients, grad(&a->tape, a->params), grad(&b->tape, b->params), n);
    }
    if (ok && way == ADAM) {
        const bool usual = in_use.adam;
        in_use.adam = false;
        adam(a, &o->config, learning_rate(&o->config, 0));
        in_use.adam = usual;
        adam(b, &o->config, learning_rate(&o->config, 0));
        compare(&values, a->params, b->params, n);
        compare(&values, a->m, b->m, n);
        compare(&values, a->v, b->v, n);
    }
    end_trial(&trials[0]);
    end_trial(&trials[1]);
    return ok;
}

// One that differs is not used; of threads, the note says how. false: no memory.
static bool prove_way(const Options *o, size_t longest, Way way)
{
    static const struct {
        Way beside;
        const char *what, *note;
    } ways[] = {
        [ENTRIES] = {ATOMS, "one entry per call, and atoms",
                     "gpt() in microgpt.c as atoms and as entries of autograd.c differ; running "
                     "the atoms"},
        [LANES] = {ENTRIES, "positions side by side, and one after another",
                   "the order of the tape and lanes in support/engine/lanes.c differ; running the "
                   "order of the tape"},
        [THREADS] = {LANES, "three threads, and one",
                     "one thread and share() in support/engine/threads.c differ; try --threads 1"},
        [PARTS] = {LANES, "a batch in parts, and on one tape",
                   "share_of_loss() in microgpt.c and fast_batch() in support/run/batch.c differ; "
                   "running one tape"},
        [ADAM] = {LANES, "adam: its loop and the fast version",
                  "adam() in microgpt.c and move_parameters() in support/engine/adam.c differ; "
                  "running adam()"},
    };
    if (!compare_ways(o, longest, ways[way].beside, way)) return false;
    if (agrees(larger_difference(), SAME, ways[way].what, "%s", ways[way].note)) return true;
    if (way == ENTRIES) in_use.fused = 0;
    if (way == LANES) use_lanes = false;
    if (way == PARTS) in_use.parts = false;
    if (way == ADAM) in_use.adam = false;
    return true;
}

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

// If entries and atoms differ, or for the table, one operation after another is an entry.
bool prove_entries(const Options *o)
{
    static const struct {
        Op op;
        const char *name, *file;
    } calls[] = {
        {OP_LINEAR, "linear", "microgpt.c"},
        {OP_SOFTMAX, "softmax", "microgpt.c"},
        {OP_RMSNORM, "rmsnorm", "microgpt.c"},
        {OP_ROW_DOTS, "ag_row_dots", "autograd.c"},
        {OP_WEIGHTED_SUM, "ag_weighted_sum", "autograd.c"},
    };
    Options small = small_options(o, 1, 3);
    uint64_t trusted = FUSED;
    small.config.batch = 1;
    if (!compare_ways(&small, 2, ATOMS, PLAIN)) return false;
    bool same = larger_difference() <= SAME;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0] && (!same || proof.table); i++) {
        uint64_t bit = (uint64_t)1 << calls[i].op;
        char what[96];
        in_use.fused = bit;
        if (!compare_ways(&small, 2, ATOMS, PLAIN)) return false;
        const char *direction = relative(values) > SAME ? "forward" : "backward";
        snprintf(what, sizeof what, "%s: one entry and its atoms", calls[i].name);
        if (!agrees(larger_difference(), SAME, what,
                    "%s() in %s and %s() in autograd.c differ; running the atoms", calls[i].name,
                    calls[i].file, function_of(calls[i].op, direction)))
            trusted &= ~bit;
    }
    in_use.fused = trusted;
    return true;
}

bool prove_small(const Options *o)
{
    Options batch = small_options(o, 1, 2), one = batch;
    one.config.batch = 1;
    return prove_way(&batch, 2, PARTS) && prove_way(&one, 2, ADAM);
}

/* ------------------------------------------------------------------------------------------------
 * The command.
 */
// The gradients of one matrix, and differences of the loss. Returns how far they are apart.
static double gradient_error(Trial *trial, const Matrix *w)
{
    Run *run = &trial->job.run;
    Tape *tape = &run->model.tape;
    double *g = grad(tape, w->data), h = 1e-5, worst = 0, largest = 1e-300;
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        double old = w->data[i];
        w->data[i] = old + h;
        double above = *value(tape, loss_of(run));
        w->data[i] = old - h;
        double difference = (above - *value(tape, loss_of(run))) / (2 * h);
        w->data[i] = old;
        worst = fmax(worst, fabs(difference - g[i]));
        largest = fmax(largest, fabs(difference));
    }
    return worst / largest;
}

static bool check_gradients(const Options *o)
{
    static Trial trial;
    Options whole = *o;
    whole.config.batch = 7;  // too few for parts, which would add to the gradients compared
    bool ok = begin_trial(&trial, &whole, 2);
    if (ok) go_back(&trial);
    for (size_t k = 0; ok && k < trial.job.run.model.n_matrices; k++) {
        const Matrix *w = &trial.job.run.model.state_dict[k];
        char what[96];
        snprintf(what, sizeof what, "gradients of %s, and differences", w->name);
        agrees(gradient_error(&trial, w), DERIVATIVE, what,
               "gradients of %s are not what differences of the loss say: an operation above, or "
               "backward() in autograd.c, is wrong",
               w->name);
    }
    end_trial(&trial);
    return ok;
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
    bool fast = have_faster && !o->scalar, ok = prove_entries(o) && prove_operations(fast);
    for (Way way = ENTRIES; ok && fast && way <= THREADS; way++) {
        ok = prove_way(&full, longest, way);
    }
    ok = ok && (!fast || (prove_way(&few, 2, PARTS) && prove_way(&few, 2, ADAM)));
    if (!ok || !check_gradients(&few)) return no_memory();
    return proof.n_wrong == 0 || fail("check: %zu comparisons differ", proof.n_wrong);
}
