/* The model at many sizes, on documents of random tokens: its gradients against differences of its losses; the products and
 * sums that it records as atoms; the memory that is taken for it; and that no number which is not finite is saved.
 */
// also built with -DAUTOGRAD_PLAIN only with ALL=1
#define _XOPEN_SOURCE 700
#include "../../support/run/job.h"
#include "../test.h"

#include <inttypes.h>

typedef struct {
    size_t n_layer, n_embd, n_head, block_size, vocab_size, longest;
    int activation;
} Sizes;

static Job job;
static Model *const model = &job.run.model;

// A model with random parameters, and in its tokens a document as long as the longest. Returns how many follow another.
static size_t new_trial(Sizes s, bool atomic)
{
    static uint32_t text[2000], uchars[20000];
    job = (Job){.o = default_options(RECIPE_MICROGPT)};
    job.o.config.n_layer = s.n_layer;
    job.o.config.n_embd = s.n_embd;
    job.o.config.n_head = s.n_head;
    job.o.config.block_size = s.block_size;
    job.o.config.activation = s.activation;
    job.o.scalar = atomic;
    job.run = (Run){.config = &job.o.config, .rng = &job.rng, .job = &job};
    job.run.tokenizer =
        (Tokenizer){.uchars = uchars, .BOS = s.vocab_size - 1, .vocab_size = s.vocab_size};
    job.run.docs.longest = s.longest;
    random_seed(&job.rng, 11);
    if (!new_model(&job.run)) {
        check(false, "a model: expected memory for it, saw: %s", failure.text);
        exit(finish());
    }
    for (size_t i = 0; i < model->num_params; i++) {
        model->params[i] = random_gauss(&job.rng, 0, 0.4);
    }
    for (size_t i = 0; i < s.longest; i++) {
        text[i] = (uint32_t)(random_below(&job.rng, s.vocab_size) % (s.vocab_size - 1));
    }
    return take_document(model, &(Document){text, s.longest, 1});
}

static double loss_at(size_t n)
{
    tape_drop(&model->tape);
    double *loss = document_loss(model, n);
    tape_compute(&model->tape);
    return *loss;
}

// The derivative by a parameter as differences of losses give it, to the fourth order.
static double difference(size_t n, double *p)
{
    const double h = 1e-4, was = *p;
    double f[4];
    for (int i = 0; i < 4; i++) {
        *p = was + h * (double[]){-2, -1, 1, 2}[i];
        f[i] = loss_at(n);
    }
    *p = was;
    return (f[0] - f[3] + 8 * (f[2] - f[1])) / (12 * h);
}

// Five parameters of each matrix; of the first, in rows of tokens that are there.
static void check_gradients(Sizes s)
{
    size_t n = new_trial(s, false), wrong = 0;
    tape_drop(&model->tape);
    backward(&model->tape, document_loss(model, n));
    double *gradients = malloc(model->num_params * sizeof *gradients);
    if (!gradients) exit(1);
    memcpy(gradients, grad(&model->tape, model->params), model->num_params * sizeof *gradients);
    for (size_t i = 0; i < 5 * model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i / 5];
        size_t size = w->rows * w->cols, k = i % 5;
        size_t at = k == 4  ? size - 1
                    : i < 3 ? model->tokens[k] * s.n_embd + k % s.n_embd
                            : random_below(&job.rng, size + 1) % size;
        double expected = difference(n, w->data + at);
        double seen = gradients[w->data - model->params + (ptrdiff_t)at];
        if (fabs(expected - seen) <= 1e-6 * fmax(fabs(expected), 1e-4)) continue;
        check(false, "%s[%zu]: expected the gradient %.12g, saw %.12g", w->name, at, expected,
              seen);
        wrong++;
    }
    check(!wrong,
          "%zu layers of %zu in %zu heads: gradients that are not differences of losses: %zu",
          s.n_layer, s.n_embd, s.n_head, wrong);
    free(gradients);
    free_model(model);
}

// Each + and each * of the definition is on the tape, once.
static void check_atoms(Sizes s)
{
    size_t n = new_trial(s, true), muls = 0, adds = 0, e = s.n_embd, d = e / s.n_head;
    size_t v = s.vocab_size, norms = 1 + 2 * s.n_layer, heads = s.n_layer * s.n_head;
    for (size_t seen = 1; seen <= n; seen++) {
        muls += norms * 2 * e + s.n_layer * 12 * e * e + v * e;  // squares and scale; matrices
        adds += norms * (e - 1) + s.n_layer * (12 * e * e - 9 * e) + v * (e - 1);
        muls += heads * (seen * d + seen + d * seen);  // scores, shares, a weighted sum
        adds += heads * (seen * (d - 1) + (seen - 1) + d * (seen - 1));
        adds += e + s.n_layer * 2 * e;  // two embeddings, two residuals
        muls += v;                      // the shares of the characters
        adds += v - 1;
    }
    loss_at(n);
    const Tape *tape = &model->tape;
    for (size_t i = tape->kept_entries; i < tape->n_entries; i++) {
        muls -= tape->entries[i].op == OP_MUL ? tape->entries[i].n : 0;
        adds -= tape->entries[i].op == OP_ADD ? tape->entries[i].n : 0;
    }
    check(muls == 0 && adds + n - 1 == 0, "width %zu, atoms: %td products and %td sums missing", e,
          (ptrdiff_t)muls, (ptrdiff_t)(adds + n - 1));
    free_model(model);
}

// What is taken before the first step suffices for a step and for a sample, and is not much more than that.
static void check_memory(Sizes s)
{
    size_t n = new_trial(s, false);
    backward(&model->tape, document_loss(model, n));
    size_t used = model->tape.n_values, taken = model->tape.chunk_size;
    tape_drop(&model->tape);
    new_cache(model, s.block_size);
    tape_mark(&model->tape);
    for (size_t i = 0; i < s.block_size; i++) {
        softmax(&model->tape, gpt(model, 0, i), s.vocab_size);
        used = model->tape.n_values > used ? model->tape.n_values : used;
        tape_drop(&model->tape);
    }
    check(
        model->tape.n_chunks == 1 && taken <= 100 + 2 * used,
        "%zu layers of %zu in %zu heads, block %zu, %zu tokens: room for %zu values, %zu used, %zu "
        "chunks",
        s.n_layer, s.n_embd, s.n_head, s.block_size, s.vocab_size, taken, used,
        model->tape.n_chunks);
    free_model(model);
}

// A model is saved if all of its numbers are finite, those of Adam's memory, too.
static void check_saves(void)
{
    static const char path[] = "tests/build/model.safetensors";
    static Target target;
    new_trial((Sizes){1, 4, 2, 8, 3, 2, RELU}, false);
    remove(path);
    if (!find_target(&target, path)) check(false, "%s: %s", path, failure.text);
    double *numbers[] = {model->params, model->m, model->v};
    for (size_t i = 0; i < 3; i++) {
        double *last = numbers[i] + model->num_params - 1, was = *last;
        *last = i ? INFINITY : NAN;
        bool saved = save_model(&target, &job.o, &job.run);
        check(!saved && strstr(failure.text, ": not saved: a parameter is no longer finite") &&
                  access(path, F_OK) != 0,
              "a number that is not finite, place %zu: %s", i, failure.text);
        *last = was;
    }
    check(save_model(&target, &job.o, &job.run) && access(path, F_OK) == 0,
          "otherwise it is saved");
    free_model(model);
}

int main(void)
{
    static const Sizes sizes[] = {
        {2, 12, 3, 9, 27, 7, RELU},  {2, 10, 5, 9, 31, 7, RELU2}, {2, 6, 6, 9, 5, 7, RELU},
        {2, 16, 4, 9, 27, 7, RELU},  {2, 7, 1, 9, 40, 7, RELU2},  {3, 1, 1, 9, 3, 7, RELU2},
        {2, 21, 3, 9, 300, 7, RELU},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_gradients(sizes[i]);
    check_atoms((Sizes){1, 16, 4, 6, 27, 8, RELU});
    check_atoms((Sizes){2, 6, 1, 6, 5, 8, RELU2});
    static const Sizes memory[] = {
        {1, 16, 4, 16, 27, 15, RELU},    {1, 1, 1, 1, 2, 1, RELU},
        {3, 12, 12, 40, 5, 60, RELU2},   {1, 256, 1, 64, 27, 63, RELU},
        {1, 64, 64, 128, 27, 200, RELU}, {64, 4, 1, 32, 27, 31, RELU},
        {1, 16, 1, 64, 20000, 63, RELU}, {1, 64, 4, 1024, 27, 2, RELU},
        {9, 8, 8, 2, 27, 1, RELU},       {1, 33, 11, 17, 3, 3, RELU2},
    };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) check_memory(memory[i]);
    check_saves();
    return finish();
}
