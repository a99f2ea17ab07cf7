/* The model: its parameters, gradients and losses against the figures in tests/reference, fused against atomic, and
 * against numerical derivatives; and that the memory reserved for a model is enough. */
// takes long
// also built with -DAUTOGRAD_PLAIN only with ALL=1
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/engine/fast.h"
#include "../../support/run/job.h"
#include "../test.h"

#include <fcntl.h>
#include <unistd.h>

// A run as the program does it, up to the first step.
typedef struct {
    Options o;
    Run work;
    Random random;
} Trial;

static Job job;

// What is atomic has an entry for each + and *.
static bool make_model(Trial *run, bool atomic)
{
    run->work.config = &run->o.config;
    run->work.rng = &run->random;
    run->work.job = &job;
    job.o.scalar = atomic;
    return new_model(&run->work);
}

static bool start_run(Trial *run, int recipe, uint64_t batch, bool atomic)
{
    *run = (Trial){.o = default_options(recipe)};
    run->o.config.batch = batch;
    random_seed(&run->random, run->o.config.seed);
    unsigned char *text = NULL;
    size_t n = 0;
    int file = open_file("data/names.txt", O_RDONLY);
    bool ok = file >= 0 && read_all(file, &text, &n, "data/names.txt") &&
              split_documents(text, n, &run->work.docs, "data/names.txt") &&
              new_tokenizer(&run->work.tokenizer);
    close(file);
    free(text);
    if (!ok) {
        check(false, "the shipped names: expected to read them, saw: %s", failure.text);
        return false;
    }
    Documents *docs = &run->work.docs;
    shuffle(docs, &run->random);
    find_characters(&run->work.tokenizer, docs);
    if (encode(&run->work.tokenizer, docs->text, docs->n_text) < docs->n_text ||
        !make_model(run, atomic)) {
        check(false, "a model: expected memory for it, saw: %s", failure.text);
        return false;
    }
    init_parameters(&run->work.model, &run->random, &run->o.config);
    return true;
}

static void end_trial(Trial *run)
{
    free_tokenizer(&run->work.tokenizer);
    free(run->work.docs.list);
    free(run->work.docs.text);
    free_model(&run->work.model);
}

// The loss of a step, with the gradients of all parameters.
static double forward_backward(Trial *run, uint64_t step)
{
    Model *model = &run->work.model;
    tape_drop(&model->tape);
    size_t n = take_document(model, &run->work.docs.list[step % run->work.docs.n]);
    double *loss = document_loss(model, n);
    backward(&model->tape, loss);
    return *loss;
}

static void update(Trial *run, uint64_t step)
{
    adam(&run->work.model, &run->o.config, learning_rate(&run->o.config, step));
}

// A whole step, as train() does it.
static double train_step(Run *work, uint64_t step)
{
    const Config *config = work->config;
    double *loss = step_loss(work, step);
    backward(&work->model.tape, loss);
    adam(&work->model, config, learning_rate(config, step));
    return *loss;
}

// A parameter that gets no gradient any more. Its means fade to zero, and are never so small that a
// processor is slow with them; it stays where Adam, as adam() defines it, leaves it.
static void test_fading(void)
{
    enum { N = 64, STEPS = 6000 };
    double p[N], g[N], m[N] = {0}, v[N] = {0}, want[N], want_m[N] = {0}, want_v[N] = {0};
    AdamRates rates = {.lr = 0.01, .beta1 = 0.85, .beta2 = 0.85, .eps = 1e-8};
    size_t n_tiny = 0, n_left = 0;
    for (size_t i = 0; i < N; i++) want[i] = p[i] = sin((double)i);
    for (size_t t = 1; t <= STEPS; t++) {
        rates.correct1 = rates.correct2 = 1 - pow(0.85, (double)t);
        for (size_t i = 0; i < N; i++) {
            g[i] = t == 1 ? cos((double)i) : 0;
            want_m[i] = 0.85 * want_m[i] + (1 - 0.85) * g[i];
            want_v[i] = 0.85 * want_v[i] + (1 - 0.85) * g[i] * g[i];
            want[i] -=
                0.01 * (want_m[i] / rates.correct1) / (sqrt(want_v[i] / rates.correct2) + 1e-8);
        }
        if (move_parameters(p, g, m, v, N, &rates) != N) return;  // not in this build
        for (size_t i = 0; i < N; i++) {
            n_tiny += fpclassify(m[i]) == FP_SUBNORMAL || fpclassify(v[i]) == FP_SUBNORMAL;
            n_left += t == STEPS && (fpclassify(m[i]) != FP_ZERO || fpclassify(v[i]) != FP_ZERO);
        }
    }
    check_all_near("without gradients: parameters", want, p, N, 1e-12);
    check_size("means that are too small to be quick", 0, n_tiny);
    check_size("means that are left", 0, n_left);
    m[3] = v[3] = NAN;
    g[5] = INFINITY;
    move_parameters(p, g, m, v, N, &rates);
    check(isnan(p[3]) && !isfinite(p[5]), "what is not a number is not lost");
}

// Compares n numbers with the file of one recipe.
static void compare(const char *recipe, const char *kind, const double *seen, size_t n,
                    double tolerance)
{
    char name[100], what[100];
    size_t n_expected;
    snprintf(name, sizeof name, "tests/reference/%s-names2018.%s", recipe, kind);
    double *expected = read_numbers(name, &n_expected);
    snprintf(what, sizeof what, "%s: %s", recipe, kind);
    if (n != n_expected) {
        check_size(what, n_expected, n);
    } else if (tolerance == 0) {
        check_same_bits(what, expected, seen, n);
    } else {
        check_all_near(what, expected, seen, n, tolerance);
    }
    free(expected);
}

static void test_reference(int recipe, const char *name)
{
    Trial run;
    if (!start_run(&run, recipe, 1, false)) {
        return;
    }
    compare(name, "params-step0", run.work.model.params, run.work.model.num_params, 0);
    double *losses = calloc(run.o.config.steps, sizeof *losses);
    for (uint64_t step = 0; losses && step < run.o.config.steps; step++) {
        losses[step] = forward_backward(&run, step);
        if (step == 0) {
            compare(name, "grads-step1", grad(&run.work.model.tape, run.work.model.params),
                    run.work.model.num_params, 1e-12);
        }
        update(&run, step);
    }
    compare(name, "losses", losses, run.o.config.steps, 1e-12);
    free(losses);
    end_trial(&run);
}

// The whole model fused and atomic, side by side: every gradient of the first step, and every loss.
static void test_both_ways(int recipe, const char *name)
{
    Trial whole, atomic;
    char what[100], text[128] = "";
    if (!start_run(&whole, recipe, 1, false) || !start_run(&atomic, recipe, 1, true)) {
        return;
    }
    bool ok = true;
    uint64_t steps = all_of_it() ? whole.o.config.steps : 50;
    for (uint64_t step = 0; ok && step < steps; step++) {
        double a = forward_backward(&whole, step), b = forward_backward(&atomic, step);
        if (step == 0) {
            snprintf(what, sizeof what, "%s, fused and atomic: gradients of step 1", name);
            check_all_near(what, grad(&atomic.work.model.tape, atomic.work.model.params),
                           grad(&whole.work.model.tape, whole.work.model.params),
                           whole.work.model.num_params, 1e-12);
            check(atomic.work.model.tape.n_entries > 20 * whole.work.model.tape.n_entries,
                  "%s, atomic: an entry for each + and *: %zu "
                  "entries, fused %zu",
                  name, atomic.work.model.tape.n_entries, whole.work.model.tape.n_entries);
        }
        ok = all_near(&b, &a, 1, 1e-12, text, sizeof text);
        if (!ok) {
            check(false, "%s, fused and atomic: loss of step %llu %s", name,
                  (unsigned long long)step + 1, text);
        }
        update(&whole, step);
        update(&atomic, step);
    }
    if (ok) {
        check(true, "%s, fused and atomic: the losses of %llu steps", name,
              (unsigned long long)steps);
    }
    end_trial(&whole);
    end_trial(&atomic);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Models of other sizes, on documents of random tokens.
 */
static bool small_model(Trial *run, size_t n_layer, size_t n_embd, size_t n_head, size_t block_size,
                        size_t vocab_size, int activation, size_t longest, uint64_t batch,
                        bool atomic)
{
    *run = (Trial){.o = {.config = {.n_layer = n_layer,
                                    .n_embd = n_embd,
                                    .n_head = n_head,
                                    .block_size = block_size,
                                    .activation = activation,
                                    .steps = 10,
                                    .batch = batch,
                                    .beta1 = 0.9,
                                    .beta2 = 0.9,
                                    .temperature = 1e3}}};
    run->work.tokenizer = (Tokenizer){.BOS = vocab_size - 1, .vocab_size = vocab_size};
    run->work.docs.longest = longest;
    random_seed(&run->random, 11);
    if (!make_model(run, atomic)) {
        check(false, "a small model: expected memory for it, saw: %s", failure.text);
        return false;
    }
    init_parameters(&run->work.model, &run->random, &(Config){.init_std = 0.4});
    return true;
}

// A document that is as long as any: what the program would put into model->tokens.
static size_t any_document(Trial *run, size_t length)
{
    uint32_t *tokens = calloc(length + 1, sizeof *tokens);
    for (size_t i = 0; i < length && tokens; i++) {
        tokens[i] = (uint32_t)random_below(&run->random, run->work.model.vocab_size) %
                    (uint32_t)run->work.tokenizer.BOS;
    }
    size_t n = take_document(&run->work.model, &(Document){tokens, length, 1});
    free(tokens);
    return n;
}

static double loss_at(Trial *run, size_t n)
{
    tape_drop(&run->work.model.tape);
    double *loss = document_loss(&run->work.model, n);
    tape_compute(&run->work.model.tape);
    return *loss;
}

// How many atoms of each kind a document takes, counted from the definition of the model.
static void test_atoms(size_t n_layer, size_t n_embd, size_t n_head, size_t vocab_size,
                       int activation)
{
    Trial run;
    if (!small_model(&run, n_layer, n_embd, n_head, 6, vocab_size, activation, 8, 1, true)) return;
    size_t n = any_document(&run, 8), want[N_OPS] = {0}, e = n_embd, d = e / n_head, v = vocab_size;
    for (size_t seen = 1; seen <= n; seen++) {
        // rmsnorm: a dot product, times 1 / n, plus eps, a root; then each number times that
        size_t norms = 1 + 2 * n_layer, heads = n_layer * n_head, linear = 4 * e * e + 8 * e * e;
        want[OP_MUL] += norms * 2 * e + n_layer * linear + v * e;
        want[OP_ADD] += norms * (e - 1) + n_layer * (linear - (4 + 4 + 1) * e) + v * (e - 1);
        want[OP_MUL_CONST] += norms;
        want[OP_ADD_CONST] += norms;
        want[OP_POW] += norms;
        // a head: dots and their scale, softmax, a weighted sum, a copy
        want[OP_MUL] += heads * (seen * d + seen + d * seen);
        want[OP_ADD] += heads * (seen * (d - 1) + (seen - 1) + d * (seen - 1));
        want[OP_MUL_CONST] += heads * seen;
        want[OP_ADD_CONST] += heads * seen;
        want[OP_EXP] += heads * seen;
        want[OP_POW] += heads;
        want[OP_COPY] += heads * d + n_layer * 2 * e;  // and the key and the value, to the cache
        // the sum of two embeddings, the residuals, the activation
        want[OP_ADD] += e + n_layer * 2 * e;
        want[OP_RELU] += n_layer * 4 * e;
        want[OP_POW] += activation == RELU2 ? n_layer * 4 * e : 0;
        // softmax, the negative logarithm, which is copied
        want[OP_MUL] += v;
        want[OP_ADD] += v - 1;
        want[OP_ADD_CONST] += v;
        want[OP_EXP] += v;
        want[OP_POW]++;
        want[OP_LOG]++;
        want[OP_MUL_CONST]++;
        want[OP_COPY]++;
    }
    want[OP_ADD] += n - 1;  // the mean
    want[OP_MUL_CONST]++;
    loss_at(&run, n);
    const Tape *tape = &run.work.model.tape;
    for (size_t i = tape->kept_entries; i < tape->n_entries; i++) {
        want[tape->entries[i].op] -= tape->entries[i].n;
    }
    for (size_t op = 0; op < N_OPS; op++) {
        check(want[op] == 0, "width %zu, %zu heads: atoms of the kind %s: %td too many", n_embd,
              n_head, operations[op].name, -(ptrdiff_t)want[op]);
    }
    end_trial(&run);
}

// The derivative by a parameter as differences of losses give it, to the fourth order.
static double difference(Trial *run, size_t n, double *p)
{
    const double h = 1e-4, was = *p;
    double f[4];
    for (int i = 0; i < 4; i++) {
        *p = was + h * (double[]){-2, -1, 1, 2}[i];
        f[i] = loss_at(run, n);
    }
    *p = was;
    return (f[0] - f[3] + 8 * (f[2] - f[1])) / (12 * h);
}

static void test_numerically(size_t n_layer, size_t n_embd, size_t n_head, size_t vocab_size,
                             int activation)
{
    Trial run;
    char what[120];
    double expected[16], seen[16];
    if (!small_model(&run, n_layer, n_embd, n_head, 9, vocab_size, activation, 7, 1, false)) {
        return;
    }
    size_t n = any_document(&run, 7), wrong = 0;
    tape_drop(&run.work.model.tape);
    backward(&run.work.model.tape, document_loss(&run.work.model, n));
    double *gradients = malloc(run.work.model.num_params * sizeof *gradients);
    if (gradients) {
        memcpy(gradients, grad(&run.work.model.tape, run.work.model.params),
               run.work.model.num_params * sizeof *gradients);
    }
    for (size_t i = 0; gradients && i < run.work.model.n_matrices; i++) {
        Matrix *w = &run.work.model.state_dict[i];
        size_t size = w->rows * w->cols, n_probes = 0;
        for (size_t k = 0; k < 5; k++) {
            size_t at = i == 0 && k < 3
                            ? run.work.model.tokens[k] * n_embd + k % n_embd  // of wte, rows in use
                        : k == 4 ? size - 1
                                 : random_below(&run.random, size + 1) % size;
            expected[n_probes] = difference(&run, n, w->data + at);
            seen[n_probes] = gradients[w->data - run.work.model.params + (ptrdiff_t)at];
            n_probes++;
        }
        snprintf(what, sizeof what, "%zu layers of %zu in %zu heads, %s: numerical gradient of %s",
                 n_layer, n_embd, n_head, activation == RELU2 ? "relu2" : "relu", w->name);
        for (size_t k = 0; k < n_probes; k++) {
            double scale = fmax(fabs(expected[k]), 1e-4);
            if (!(fabs(expected[k] - seen[k]) <= 1e-6 * scale)) {
                check(false, "%s: expected %.12g, saw %.12g", what, expected[k], seen[k]);
                wrong++;
            }
        }
    }
    if (!wrong) {
        check(true,
              "%zu layers of %zu in %zu heads, %zu tokens, %s: gradients agree with differences of "
              "losses",
              n_layer, n_embd, n_head, vocab_size, activation == RELU2 ? "relu2" : "relu");
    }
    free(gradients);
    end_trial(&run);
}

// A step on documents as long as the longest, then one sample. Returns how many chunks the tape took.
static size_t chunks_used(const size_t sizes[3], size_t block_size, size_t vocab_size,
                          size_t longest, uint64_t batch, bool atomic, double *loss)
{
    Trial run;
    if (!small_model(&run, sizes[0], sizes[1], sizes[2], block_size, vocab_size, RELU2, longest,
                     batch, atomic)) {
        return 1000;
    }
    Model *model = &run.work.model;
    for (size_t i = 0; i < model->num_params; i++) {
        model->params[i] *= 0.25;  // so that no loss is infinite
    }
    uint32_t tokens[64] = {0};
    Document docs[1] = {{tokens, longest, 1}};
    for (size_t i = 0; i < longest; i++) {
        tokens[i] = (uint32_t)random_below(&run.random, vocab_size - 1);
    }
    run.work.docs = (Documents){.list = docs, .n = 1, .longest = longest};
    *loss = train_step(&run.work, 0);
    size_t n_chunks = model->tape.n_chunks;
    tape_drop(&model->tape);
    new_cache(model, block_size);
    tape_mark(&model->tape);
    check(sample(&run.work) <= block_size && !job.samples.failed, "a sample after it");
    n_chunks = model->tape.n_chunks > n_chunks ? model->tape.n_chunks : n_chunks;
    run.work.docs = (Documents){0};
    end_trial(&run);
    return n_chunks;
}

// What is estimated suffices for the model as it is. Atoms take more: the tape then grows, and gives the same.
static void test_room(void)
{
    static const size_t sizes[][3] = {{1, 1, 1},   {1, 2, 1},   {1, 3, 3}, {2, 5, 1},
                                      {3, 4, 2},   {1, 7, 7},   {2, 6, 3}, {1, 16, 4},
                                      {3, 12, 12}, {1, 33, 11}, {1, 65, 5}};
    static const size_t blocks[] = {1, 2, 3, 8, 17, 40};
    size_t n = 0, apart = 0, k = 0, grown = 0, most = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
            for (size_t longest = 1; longest <= 60; longest = longest * 4 - 1, k++) {
                if (!all_of_it() &&
                    k % 3 != s % 3) {  // a third of them: each size, each block, each length
                    continue;
                }
                size_t vocab = longest == 3 ? 300 : 2 + b;
                double losses[2] = {0, 0};
                for (int atomic = 0; atomic < 2; atomic++, n++) {
                    size_t chunks = chunks_used(sizes[s], blocks[b], vocab, longest, 1 + b % 3,
                                                atomic, &losses[atomic]);
                    grown += !atomic && chunks > 1;
                    most = chunks > most ? chunks : most;
                }
                apart += !(distance(losses[0], losses[1]) <= 1e-12 && isfinite(losses[0]));
            }
        }
    }
    check(
        grown == 0,
        "%zu models of many sizes, fused and atomic: %zu fused ones that outgrow their first chunk",
        n, grown);
    check(most > 3, "atomic ones take up to %zu chunks: expected more than 3", most);
    check_size("of these, fused and atomic losses that differ", 0, apart);
}

// What does not fit is an error, found before any memory is taken.
static void test_no_room(void)
{
    Trial run;
    static const size_t sizes[][4] = {
        {1, 1048576, 1, 16}, {1048576, 4096, 1, 16}, {1048576, 1048576, 1048576, 1048576}};
    for (size_t i = 0; i < 3; i++) {
        run = (Trial){.o = {.config = {.n_layer = sizes[i][0],
                                       .n_embd = sizes[i][1],
                                       .n_head = sizes[i][2],
                                       .block_size = sizes[i][3],
                                       .batch = 1}}};
        run.work.tokenizer.vocab_size = 27;
        run.work.docs.longest = 1000;
        memset(&failure, 0, sizeof failure);
        bool ok = make_model(&run, i == 1);
        check(!ok && failure.status == FAILED && strstr(failure.text, "not enough memory"),
              "a model of %zu layers of %zu: \"%s\"", sizes[i][0], sizes[i][1], failure.text);
        free_model(&run.work.model);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Wide models, fused and atomic, on documents that fill the block: every gradient and every loss of a few steps. An
 * atomic tape needs 64 bytes for each + and *, so the wider the model, the shorter the block; test_sizes.sh goes on from
 * here, with the fused lines in plain loops.
 */
static void test_wide(size_t n_layer, size_t n_embd, size_t n_head, size_t block_size,
                      uint64_t batch)
{
    enum { STEPS = 3, VOCAB = 27, DOCS = 5 };
    Trial runs[2];
    double losses = 0, gradients = 0;
    for (int atomic = 0; atomic < 2; atomic++) {
        if (!small_model(&runs[atomic], n_layer, n_embd, n_head, block_size, VOCAB, RELU,
                         block_size, batch, atomic)) {
            return;
        }
        for (size_t i = 0; i < runs[atomic].work.model.num_params; i++) {
            runs[atomic].work.model.params[i] *= 0.2;  // as training starts: 0.08
        }
        Documents *docs = &runs[atomic].work.docs;
        *docs = (Documents){.list = calloc(DOCS, sizeof(Document)), .n = DOCS};
        for (size_t i = 0; docs->list && i < DOCS; i++) {
            uint32_t *tokens = calloc(block_size, sizeof *tokens);
            for (size_t k = 0; tokens && k < block_size; k++) {
                tokens[k] = (uint32_t)random_below(&runs[atomic].random, VOCAB - 1);
            }
            docs->list[i] = (Document){tokens, block_size, i + 1};
        }
    }
    for (int atomic = 0; atomic < 2; atomic++) {
        Config *config = &runs[atomic].o.config;
        config->lr = 0.001;
        config->beta1 = 0;  // so that Adam's mean is the gradient itself
        config->beta2 = 0.99;
        config->steps = 1000;
    }
    Model *whole = &runs[0].work.model, *atoms = &runs[1].work.model;
    for (uint64_t step = 0; step < STEPS; step++) {
        double a = train_step(&runs[0].work, step), b = train_step(&runs[1].work, step);
        losses = fmax(losses, fabs(a / b - 1));
        losses = isfinite(a) && isfinite(b) ? losses : INFINITY;
        double largest = 0;
        for (size_t i = 0; i < whole->num_params; i++) {
            largest = fmax(largest, fabs(atoms->m[i]));
        }
        for (size_t i = 0; i < whole->num_params; i++) {
            double d = fabs(whole->m[i] - atoms->m[i]) / largest;
            gradients = d <= gradients ? gradients : isnan(d) ? INFINITY : d;
        }
    }
    check(losses <= 1e-9 && gradients <= 1e-9 && atoms->tape.n_entries > 20 * whole->tape.n_entries,
          "%zu layers of %zu in %zu heads, block %zu, batch %d: %zu atoms, %zu fused entries: "
          "expected losses and gradients "
          "at most 1e-9 apart, saw %.0e and %.0e",
          n_layer, n_embd, n_head, block_size, (int)batch, atoms->tape.n_entries,
          whole->tape.n_entries, losses, gradients);
    for (int atomic = 0; atomic < 2; atomic++) {
        Documents *docs = &runs[atomic].work.docs;
        for (size_t i = 0; docs->list && i < DOCS; i++) {
            free(docs->list[i].tokens);
        }
        end_trial(&runs[atomic]);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Batches: the loss and the gradients of several documents in one step are the means of theirs, one by one.
 */
#ifdef AUTOGRAD_LANES
static size_t lanes_together(const Tape *tape)
{
    return tape->lanes && tape->lanes->end > 0 ? tape->lanes->n : 0;
}
#endif

static void test_batch(uint64_t batch, bool atomic)
{
    Trial run;
    char what[100];
    if (!start_run(&run, RECIPE_MICROGPT, batch, atomic)) {
        return;
    }
    Model *model = &run.work.model;
    double *expected = calloc(model->num_params, sizeof *expected),
           *g = grad(&model->tape, model->params), loss = 0;
    size_t lengths = 0;
    for (uint64_t i = 0; expected && i < batch; i++) {
        memset(g, 0, model->num_params * sizeof *g);
        loss += forward_backward(&run, 2 * batch + i) / (double)batch;
        lengths += run.work.docs.list[2 * batch + i].length != run.work.docs.list[2 * batch].length;
        for (size_t k = 0; k < model->num_params; k++) {
            expected[k] += g[k] / (double)batch;
        }
    }
    check(lengths > 0, "a batch of %d: documents of different lengths", (int)batch);

    // Adam's first step without memory of its own keeps the gradient in its mean.
    memset(g, 0, model->num_params * sizeof *g);
    run.o.config.beta1 = 0;
    check(new_batch(&run.work), "memory for the parts of a batch");
    size_t n_parts = !have_threads || batch < 8 ? 0 : batch < 64 ? (size_t)batch / 4 : 16;
    check_size("its parts", n_parts, job.batch.n);
    double seen = train_step(&run.work, 2);
    snprintf(what, sizeof what, "a batch of %d, %s: the mean of the losses", (int)batch,
             atomic ? "atomic" : "fused");
    check_near(what, loss, seen, 1e-12);
    snprintf(what, sizeof what, "a batch of %d, %s: the means of the gradients", (int)batch,
             atomic ? "atomic" : "fused");
    if (expected) {
        check_all_near(what, expected, model->m, model->num_params, 1e-12);
    }
#ifdef AUTOGRAD_LANES
    size_t lanes = 0;
    for (uint64_t i = 0; i < batch; i++) {
        size_t n = run.work.docs.list[2 * batch + i].length + 1;
        lanes += n < model->block_size ? n : model->block_size;
    }
    size_t seen_lanes = lanes_together(&model->tape);
    for (size_t i = 0; i < job.batch.n; i++) {
        seen_lanes += lanes_together(&job.batch.parts[i].tape);
    }
    check_size("its positions that were taken together", atomic ? 0 : lanes, seen_lanes);
#endif
    free(expected);
    free_batch(&job.batch);
    job.batch = (Batch){0};
    end_trial(&run);
}

// Where there are fewer documents than a batch takes, they come again; what is held out never comes.
static void test_holdout(void)
{
    Trial runs[2];
    double losses[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        if (!start_run(&runs[i], RECIPE_MICROGPT, 7, false)) {
            return;
        }
        runs[i].work.docs.n = i ? 3 : 100;
        runs[i].o.config.holdout = i ? 0 : 97;
        for (uint64_t step = 0; step < 5; step++) {
            losses[i] = train_step(&runs[i].work, step);
        }
    }
    check_same_bits("three documents, and a hundred of which 97 are held out: the same losses",
                    &losses[1], &losses[0], 1);
    end_trial(&runs[0]);
    end_trial(&runs[1]);
}

int main(void)
{
    test_reference(RECIPE_MICROGPT, "microgpt");
    test_reference(RECIPE_LESSON, "lesson");
    test_both_ways(RECIPE_MICROGPT, "microgpt");
    test_both_ways(RECIPE_LESSON, "lesson");
    test_atoms(1, 16, 4, 27, RELU);
    test_atoms(2, 6, 1, 5, RELU2);
    test_numerically(2, 12, 3, 27, RELU);
    test_numerically(2, 10, 5, 31, RELU2);
    test_numerically(2, 6, 6, 5, RELU);
    test_numerically(2, 16, 4, 27, RELU);
    test_numerically(2, 7, 1, 40, RELU2);
    test_numerically(3, 1, 1, 3, RELU2);
    test_numerically(2, 21, 3, 300, RELU);
    for (uint64_t batch = 2; batch <= 5; batch++) {
        test_batch(batch, false);
    }
    test_batch(8, false);
    test_batch(11, false);
    test_batch(70, false);
    test_batch(3, true);
    test_fading();
    test_holdout();
    test_wide(1, 64, 4, 16, 1);
    test_wide(1, 128, 4, 5, 3);
    if (all_of_it()) {  // up to 1.4 GB each
        test_wide(2, 64, 4, 80, 1);
        test_wide(1, 64, 4, 128, 1);
        test_wide(2, 64, 4, 20, 4);
        test_wide(1, 128, 4, 40, 1);
        test_wide(4, 128, 4, 10, 1);
        test_wide(1, 128, 4, 10, 4);
        test_wide(1, 256, 8, 11, 1);
        test_wide(4, 256, 8, 3, 1);
        test_wide(1, 256, 8, 3, 4);
    }
    test_room();
    test_no_room();
    return finish();
}
