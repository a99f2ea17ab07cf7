/* Any bytes as a model file: it is refused in one line, or it is a model, with sizes within the limits and finite
 * numbers, that can be sampled and evaluated.
 */
#define _XOPEN_SOURCE 700
#include "../../support/run/job.h"
#include "fuzz.h"

static void check_model(Job *job)
{
    Run *run = &job->run;
    Model *model = &run->model;
    const Checkpoint *checkpoint = &job->checkpoint;
    const Tokenizer *tokenizer = &run->tokenizer;
    PROMISE(model->n_layer > 0 && model->n_embd > 0 && model->n_head > 0 && model->block_size > 0);
    PROMISE((double)model->n_layer <= ranges[SIZE].max &&
            (double)model->n_embd <= ranges[SIZE].max);
    PROMISE((double)model->n_head <= ranges[SIZE].max &&
            (double)model->block_size <= ranges[SIZE].max);
    PROMISE(model->head_dim * model->n_head == model->n_embd);
    PROMISE(model->vocab_size == tokenizer->vocab_size &&
            tokenizer->BOS + 1 == tokenizer->vocab_size);
    PROMISE(model->n_matrices == 3 + 6 * model->n_layer);
    size_t n = (size_t)model->num_params;
    PROMISE(all_finite(model->params, n) && all_finite(model->m, n) && all_finite(model->v, n));
    for (size_t i = 0; i < tokenizer->BOS; i++) {
        char bytes[4];
        size_t used = 0, length = encode_utf8(tokenizer->uchars[i], bytes);
        PROMISE(decode_utf8((const unsigned char *)bytes, length, &used) ==
                (int32_t)tokenizer->uchars[i]);
    }
    PROMISE(!checkpoint->has_random || checkpoint->random.used <= 624);
    uint64_t end = 0;  // the tensors are in the order of their data
    for (size_t i = 0; i < checkpoint->header.n_tensors; i++) {
        const Tensor *t = &checkpoint->header.tensors[i];
        bool is_random = strcmp(t->name, "train.random") == 0;
        PROMISE(t->begin == end);
        PROMISE(!is_random || !checkpoint->has_random || t->width == 8);  // F32 rounds its words
        end = t->end;
    }

    // It works: a document of one character, and a sample. Their numbers may be too large, but nothing else happens.
    uint32_t token = 0;
    Document doc = {.tokens = &token, .length = 1};
    random_seed(&job->rng, 1);
    if (checkpoint->has_random) job->rng = checkpoint->random;
    tape_drop(&model->tape);
    document_loss(model, take_document(model, &doc));
    tape_compute(&model->tape);
    standard_output.n = 0;
    bool ok = read_prompt(run, "--prompt", NULL) && infer(run);
    check_failure(ok);
    PROMISE(!ok || (standard_output.n > 0 && standard_output.bytes[standard_output.n - 1] == '\n'));
    standard_output.n = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const path = "fuzz.model";
    FILE *file = fopen(path, "wb");
    PROMISE(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    static Job job;  // too large for small stacks
    job = (Job){.o = {.config = {.temperature = 0.5, .samples = 1, .batch = 1}}};
    job.run = (Run){.config = &job.o.config, .rng = &job.rng, .job = &job, .docs = {.longest = 1}};
    bool ok = load_model(&job, path);
    check_failure(ok);
    if (ok) check_model(&job);
    close_checkpoint(&job.checkpoint);
    free(job.samples.prompt.tokens);
    free_tokenizer(&job.run.tokenizer);
    free_model(&job.run.model);
    return 0;
}
