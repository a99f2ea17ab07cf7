/* Any bytes as a model file: it is refused in one line, or it is a model, with sizes within the limits and finite
 * numbers, that can be sampled and evaluated.
 */
#include "fuzz.h"

static void check_model(Run *work, const Checkpoint *checkpoint)
{
    Model *model = &work->model;
    const Tokenizer *tokenizer = &work->tokenizer;
    PROMISE(model->n_layer > 0 && model->n_embd > 0 && model->n_head > 0 && model->block_size > 0);
    PROMISE((double)model->n_layer <= ranges[SIZE].max && (double)model->n_embd <= ranges[SIZE].max);
    PROMISE((double)model->n_head <= ranges[SIZE].max && (double)model->block_size <= ranges[SIZE].max);
    PROMISE(model->head_dim * model->n_head == model->n_embd);
    PROMISE(model->vocab_size == tokenizer->vocab_size && tokenizer->BOS + 1 == tokenizer->vocab_size);
    PROMISE(model->n_matrices == 3 + 6 * model->n_layer);
    PROMISE(all_finite(model->params, model->num_params));
    PROMISE(all_finite(model->m, model->num_params) && all_finite(model->v, model->num_params));
    for (size_t i = 0; i < tokenizer->BOS; i++) {
        char bytes[4];
        size_t used = 0, length = encode_utf8(tokenizer->uchars[i], bytes);
        PROMISE(decode_utf8((const unsigned char *)bytes, length, &used) == (int32_t)tokenizer->uchars[i]);
    }
    PROMISE(!checkpoint->has_random || checkpoint->random.used <= 624);

    // It works: a document of one character, and a sample. Their numbers may be too large, but nothing else happens.
    uint32_t token = 0;
    Document doc = {.tokens = &token, .length = 1};
    Random random;
    random_seed(&random, 1);
    if (checkpoint->has_random) {
        random = checkpoint->random;
    }
    tape_drop(&model->tape);
    document_loss(model, take_document(model, &doc));
    tape_compute(&model->tape);
    tape_drop(&model->tape);
    new_cache(model, model->block_size);
    tape_mark(&model->tape);
    static Job job;                                      // too large for small stacks
    Config config = {.temperature = 0.5};
    size_t length = 0;
    work->config = &config;
    work->rng = &random;
    work->job = &job;
    check_failure(sample(work, &length));
    PROMISE(length <= model->block_size);
    for (size_t i = 0; i < length; i++) {
        PROMISE(model->tokens[i] < tokenizer->BOS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *stream;
    stream = stream ? stream : tmpfile();
    PROMISE(stream);
    int file = fileno(stream);
    PROMISE(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
    PROMISE(write(file, data, size) == (ssize_t)size && lseek(file, 0, SEEK_SET) == 0);

    Header header = {.path = "input"};
    Run work = {0};
    Checkpoint checkpoint = {0};
    bool ok = read_model(file, &header, 1, &work, &checkpoint);
    check_failure(ok);
    if (ok) {
        check_model(&work, &checkpoint);
    }
    free_header(&header);
    free_tokenizer(&work.tokenizer);
    free_model(&work.model);
    return 0;
}
