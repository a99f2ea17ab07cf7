/* memory.c: the memory of a model, all of it taken before the first step.
 *
 * Parameters are counted exactly, by laying them out without memory. What a step or a sample puts
 * on the tape is estimated; the tape grows if a changed model needs more. A model that cannot fit
 * is refused before it takes anything.
 */
#define _XOPEN_SOURCE 700
#include "../engine/faster.h"
#include "job.h"

bool fits_memory(double bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    double memory = pages > 0 && page > 0 ? (double)pages * (double)page : 1e300;
    return bytes <= memory && bytes < (double)SIZE_MAX / 4;
}

bool size_model(Model *model, const Config *config, size_t vocab_size)
{
    *model = (Model){
        .n_layer = (size_t)config->n_layer,
        .n_embd = (size_t)config->n_embd,
        .n_head = (size_t)config->n_head,
        .head_dim = (size_t)(config->n_embd / config->n_head),
        .block_size = (size_t)config->block_size,
        .vocab_size = vocab_size,
        .BOS = (uint32_t)vocab_size - 1,
        .activation = config->activation,
        .layers = calloc((size_t)config->n_layer, sizeof *model->layers),
    };
    if (!model->layers) return no_memory();
    lay_out_parameters(model);  // without a state_dict: it counts
    return true;
}

// Without a state_dict it only counts, and returns NULL: memory is taken once the size is known.
Matrix *add_matrix(Model *model, const char *prefix, const char *name, size_t nout, size_t nin)
{
    size_t i = model->n_matrices++;
    uint64_t start = model->num_params;
    model->num_params += (uint64_t)nout * nin;
    if (!model->state_dict) return NULL;
    Matrix *w = &model->state_dict[i];
    *w = (Matrix){.rows = nout, .cols = nin, .data = model->params + start};
    snprintf(w->name, sizeof w->name, "%s%s", prefix, name);
    return w;
}

// Values that gpt() and softmax() make at a position that looks back at `seen`, and a few more. An
// estimate: whoever changes gpt() need not change it.
static double position_values(const Model *model, double seen)
{
    double layers = (double)model->n_layer, heads = (double)model->n_head;
    double width = (double)model->n_embd, wide = model->activation == RELU2 ? 26 : 22;
    double per_layer = wide * width + 2 * heads * (seen + 8);
    return layers * per_layer + 2 * width + 3 * (double)model->vocab_size + 32;
}

// Values on the tape beside the parameters: for a step with `batch` documents of this many
// positions, or for a sample if that takes more. Keys and values of each position are cached.
static double tape_values(const Model *model, double batch, double positions)
{
    double block = (double)model->block_size, seen = positions / 2 + 1;
    double cached = 2 * (double)model->n_layer * (double)(model->n_embd + 4);
    double document = positions * (position_values(model, seen) + cached + 1) + 32;
    return fmax(batch * document, position_values(model, block) + cached * block);
}

// Bytes in all. A value has a gradient; a parameter has Adam's two running means, too.
static double bytes_needed(Model sizes, double batch, double positions)
{
    lay_out_parameters(&sizes);
    double per_position = (double)sizes.n_layer * (16 + 4 * (double)sizes.n_head) + 16;
    double entries = batch * positions * per_position;
    double values = 2 * (double)sizes.num_params + tape_values(&sizes, batch, positions);
    return values * 2 * sizeof(double) + entries * sizeof(Entry);
}

// Does the model fit in memory? If not, the message names the part that takes most of it. A part
// takes what the model would not need without it.
static bool model_fits(const Model *model, double batch, double positions)
{
    static const char *const what[] = {
        "the layers: --n-embd, --n-layer",
        "the different characters: --n-embd",
        "the block: --block-size",
        "the documents of a step: --batch, --block-size",
    };
    double all = bytes_needed(*model, batch, positions), parts[4];
    if (fits_memory(all)) return true;
    for (size_t i = 0; i < 4; i++) {
        Model less = *model;
        if (i == 0) less.n_layer = 0;
        if (i == 1) less.vocab_size = 0;
        if (i == 2) less.block_size = 0;
        parts[i] = all - bytes_needed(less, i == 3 ? 0 : batch, positions);
    }
    return fail("not enough memory: a model of %.0f parameters needs %.1f GB, most of it for %s",
                (double)model->num_params, all / 1e9, what[argmax(parts, 4)]);
}

// The longest document, as far as the model reads it.
static double longest(const Run *run)
{
    return fmin((double)run->docs.longest + 1, (double)run->model.block_size);
}

// What every copy of a model has for itself: a cache, the tokens of a document, a tape.
static bool new_workspace(Model *model, size_t room, bool scalar)
{
    Tape *tape = &model->tape;
    *tape = (Tape){0};
    model->keys = calloc(model->n_layer, sizeof *model->keys);
    model->values = calloc(model->n_layer, sizeof *model->values);
    model->tokens = calloc(model->block_size + 1, sizeof *model->tokens);
    if (!model->keys || !model->values || !model->tokens || !tape_init(tape, room)) return false;
    tape->fused = scalar ? 0 : in_use.fused;
    return scalar || install_faster(tape);
}

// Takes the memory of the parameters, and of a tape for this many documents.
static bool new_parameters(Model *model, const Run *run, double batch)
{
    size_t n = (size_t)model->num_params;
    model->state_dict = calloc(model->n_matrices, sizeof *model->state_dict);
    size_t room = n + (size_t)tape_values(model, batch, longest(run));
    bool ok = new_workspace(model, room, run->job->o.scalar);
    if (!ok || !model->state_dict) return no_memory();
    model->tape.out_of_memory = out_of_memory;
    model->params = ag_vector(&model->tape, n);
    lay_out_parameters(model);
    tape_mark(&model->tape);  // the parameters stay
    return true;
}

bool new_model(Run *run)
{
    Model *model = &run->model;
    double batch = (double)run->config->batch;
    if (!size_model(model, run->config, run->tokenizer.vocab_size)) return false;
    if (!model_fits(model, batch, longest(run))) return false;
    size_t n = (size_t)model->num_params;
    if (n_batch_parts(run, n) > 0) batch = 0;  // the parts have tapes of their own
    model->m = calloc(n, sizeof *model->m);
    model->v = calloc(n, sizeof *model->v);
    if (!model->m || !model->v) return no_memory();
    if (!new_parameters(model, run, batch)) return false;
    // Touch these pages here: that is quicker than when threads read them before they write.
    memset(model->m, 0, n * sizeof *model->m);
    memset(model->v, 0, n * sizeof *model->v);
    memset(grad(&model->tape, model->params), 0, n * sizeof *model->params);
    return true;
}

bool copy_model(Model *copy, const Run *run, uint64_t batch)
{
    return size_model(copy, run->config, run->tokenizer.vocab_size) &&
           new_parameters(copy, run, (double)batch);
}

bool share_model(Model *copy, const Model *model)
{
    *copy = *model;
    size_t room = model->tape.chunk_size - (size_t)model->num_params;
    bool ok = new_workspace(copy, room, !model->tape.faster);
    copy->tape.fused = model->tape.fused;
    copy->tape.out_of_memory = model->tape.out_of_memory;
    if (!ok) free_workspace(copy);
    return ok;
}

void free_workspace(Model *copy)
{
    free(copy->keys);
    free(copy->values);
    free(copy->tokens);
    tape_free(&copy->tape);
}

void free_model(Model *model)
{
    free(model->state_dict);
    free(model->layers);
    free(model->m);
    free(model->v);
    free_workspace(model);
}

bool new_tokenizer(Tokenizer *tokenizer)
{
    *tokenizer = (Tokenizer){
        .uchars = calloc(N_CODES, sizeof *tokenizer->uchars),
        .token_of = calloc(N_CODES, sizeof *tokenizer->token_of),
    };
    return (tokenizer->uchars && tokenizer->token_of) || no_memory();
}

void free_tokenizer(Tokenizer *tokenizer)
{
    free(tokenizer->uchars);
    free(tokenizer->token_of);
    *tokenizer = (Tokenizer){0};
}
