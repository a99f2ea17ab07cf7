/* batch.c: what microgpt.c asks for speed alone.
 *
 * A batch in parts, each a few documents on a tape of its own. A part is a copy of the model. It
 * records, computes and goes back by itself, so threads can take one each and have nothing in
 * common until their gradients are added up. That is done in the order of the parts. What the parts
 * are depends on the batch and the model, not on the threads: the result is the same to the last
 * bit for every number of threads. Only for small models. In larger ones a single entry of the tape
 * is work enough for all threads, and the copies would take much memory.
 *
 * And a step of Adam, many parameters at a time.
 */
#define _XOPEN_SOURCE 700
#include "job.h"
#include "../engine/threads.h"

enum { PART = 4, MOST_PARTS = 16, SMALL_MODEL = 1 << 14 };  // documents; parts; parameters

size_t n_batch_parts(const Run *run, uint64_t num_params)
{
    uint64_t n = run->config->batch / PART;
    if (run->job->o.scalar || !in_use.parts || !have_threads || n < 2 || num_params > SMALL_MODEL)
        return 0;
    return n < MOST_PARTS ? (size_t)n : MOST_PARTS;
}

bool new_batch(Run *run)
{
    Batch *batch = &run->job->batch;
    size_t n = n_batch_parts(run, run->model.num_params);
    if (n == 0) return true;
    uint64_t most = run->config->batch / n + 1;  // documents in a part
    batch->parts = calloc(n, sizeof *batch->parts);
    batch->losses = calloc(n, sizeof *batch->losses);
    if (!batch->parts || !batch->losses) return no_memory();
    while (batch->n < n) {
        if (!copy_model(&batch->parts[batch->n++], run, most)) return false;
    }
    return true;
}

void free_batch(Batch *batch)
{
    while (batch->n > 0) free_model(&batch->parts[--batch->n]);
    free(batch->parts);
    free(batch->losses);
}

// What the threads share in a step.
typedef struct {
    Run *run;
    uint64_t first;  // document of the step
} BatchStep;

static void run_part(void *context, size_t i, size_t n_parts)
{
    const BatchStep *step = context;
    Run *run = step->run;
    Batch *batch = &run->job->batch;
    Model *part = &batch->parts[i];
    Tape *tape = &part->tape;
    uint64_t size = run->config->batch;
    uint64_t begin = size * i / n_parts, end = size * (i + 1) / n_parts;
    memcpy(part->params, run->model.params, (size_t)part->num_params * sizeof *part->params);
    tape_drop(tape);
    double *loss = share_of_loss(run, part, step->first + begin, end - begin);
    backward(tape, loss);
    batch->losses[i] = *loss;
}

static void collect_gradients(Run *run)
{
    Batch *batch = &run->job->batch;
    size_t n = (size_t)run->model.num_params;
    double *g = grad(&run->model.tape, run->model.params);
    for (size_t i = 0; i < batch->n; i++) {
        Model *part = &batch->parts[i];
        double *more = grad(&part->tape, part->params);
        for (size_t k = 0; k < n; k++) g[k] += more[k];
        memset(more, 0, n * sizeof *more);
    }
}

double *fast_batch(Run *run, uint64_t first)
{
    Batch *batch = &run->job->batch;
    if (batch->n == 0) return NULL;
    wake_threads(batch->n);
    share(run_part, &(BatchStep){run, first}, batch->n);
    collect_gradients(run);
    double *loss = ag_scalar(&run->model.tape, 0);
    for (size_t i = 0; i < batch->n; i++) *loss += batch->losses[i];
    return loss;
}

size_t fast_adam(Model *model, const Config *config, double lr)
{
    if (!in_use.adam || !model->tape.faster) return 0;
    double *p = model->params, t = (double)model->steps_done;
    AdamRates rates = {
        .lr = lr,
        .beta1 = config->beta1,
        .beta2 = config->beta2,
        .weight_decay = config->weight_decay,
        .eps = 1e-8,
        .correct1 = 1 - pow(config->beta1, t),
        .correct2 = 1 - pow(config->beta2, t),
    };
    double *g = grad(&model->tape, p);
    return move_parameters(p, g, model->m, model->v, (size_t)model->num_params, &rates);
}
