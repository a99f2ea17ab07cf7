/* What a debugger should show in the first training step, computed by the fast engine: one line "KEY NUMBER" each.
 *
 *   figures FILE N_LAYER N_EMBD N_HEAD
 *
 * In the fast engine's tape one entry is a whole vector, and the entries of a position come in a fixed order. So nothing
 * here rests on the atoms, or on how the views find their vectors.
 */
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/run/job.h"
#include <fcntl.h>
#include <stdlib.h>

static void figures(const char *key, size_t layer, size_t position, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) printf("%s:%zu:%zu %.17g\n", key, layer, position, x[i]);
}

// Two vectors side by side, as before and after an operation.
static void both(const char *key, size_t layer, size_t position, const double *x, const double *y,
                 size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%s:%zu:%zu %.17g\n%s:%zu:%zu %.17g\n", key, layer, position, x[i], key, layer,
               position, y[i]);
    }
}

static void top5(size_t position, const double *probs, size_t n)
{
    bool taken[256] = {false};
    for (int rank = 0; rank < 5; rank++) {
        size_t best = 256;
        for (size_t i = 0; i < n && i < 256; i++) {
            if (!taken[i] && (best == 256 || probs[i] > probs[best])) best = i;
        }
        taken[best] = true;
        printf("top_token:%zu %zu\ntop_prob:%zu %.17g\n", position, best, position, probs[best]);
    }
}

// The matrix that an entry multiplies with.
static const Matrix *matrix_of(const Model *model, const Entry *e)
{
    const Matrix *w = model->state_dict;
    while (w->data != e->b) w++;
    return w;
}

static void walk(const Model *model)
{
    const Tape *tape = &model->tape;
    size_t E = model->n_embd, V = model->vocab_size, layer = 0, head = 0, n_norms = 0,
           position = SIZE_MAX;
    for (const Entry *e = tape->entries; e < tape->entries + tape->n_entries; e++) {
        char key[64];
        if (e->op == OP_ADD && e->b >= model->wpe->data &&
            e->b < model->wpe->data + model->block_size * E) {
            position++;
            layer = head = n_norms = 0;
            figures("emb", 0, position, e->out, E);
        } else if (e->op == OP_RMSNORM) {
            layer = n_norms ? (n_norms - 1) / 2 : 0;
            n_norms++;
            head = 0;
            both("rmsnorm", layer, position, e->a, e->out, E);
        } else if (e->op == OP_LINEAR && e->b != model->lm_head->data) {
            const Matrix *w = matrix_of(model, e);
            const char *name = strchr(w->name, '.') + 1;
            figures(name, layer, position, e->out, w->rows);
            if (w->rows == w->cols) {
                snprintf(key, sizeof key, "around_%s", name);
                both(key, layer, position, e->a, e->out, E);
            }
        } else if (e->op == OP_LINEAR) {
            figures("x_out", 0, position, e->a, E);
            figures("logits", 0, position, e->out, V);
        } else if (e->op == OP_SOFTMAX && e[-1].op == OP_LINEAR) {
            figures("probs", 0, position, e->out, V);
            top5(position, e->out, V);
        } else if (e->op == OP_ROW_DOTS) {
            snprintf(key, sizeof key, "attn_logits:%zu", head);
            figures(key, layer, position, e->out, e->n);
        } else if (e->op == OP_SOFTMAX) {
            snprintf(key, sizeof key, "attn_weights:%zu", head);
            figures(key, layer, position, e->out, e->n);
        } else if (e->op == OP_WEIGHTED_SUM) {
            snprintf(key, sizeof key, "head_out:%zu", head++);
            figures(key, layer, position, e->out, model->head_dim);
        }
    }
}

int main(int argc, char **argv)
{
    static Job job;
    Run *run = &job.run;
    if (argc != 5) return 2;
    job.o = default_options(RECIPE_MICROGPT);
    job.o.scalar = false;
    job.o.config.n_layer = strtoul(argv[2], NULL, 10);
    job.o.config.n_embd = strtoul(argv[3], NULL, 10);
    job.o.config.n_head = strtoul(argv[4], NULL, 10);
    *run = (Run){.config = &job.o.config, .rng = &job.rng, .job = &job};
    const Config *config = run->config;
    Model *model = &run->model;
    random_seed(run->rng, config->seed);
    unsigned char *bytes = NULL;
    size_t n_bytes = 0;
    int file = open_file(argv[1], O_RDONLY);
    bool ok = file >= 0 && read_all(file, &bytes, &n_bytes, argv[1]) &&
              new_tokenizer(&run->tokenizer) &&
              split_documents(bytes, n_bytes, &run->docs, argv[1]);
    if (ok) {
        shuffle(&run->docs, run->rng);
        find_characters(&run->tokenizer, &run->docs);
        encode(&run->tokenizer, run->docs.text, run->docs.n_text);
    }
    if (!ok || !new_model(run)) {
        fprintf(stderr, "%s\n", failure.text);
        return 1;
    }
    init_parameters(model, run->rng, config);

    Tape *tape = &model->tape;
    size_t n = take_document(model, &run->docs.list[0]), k = 3 * model->n_embd + 5;
    for (size_t i = 0; i < n; i++) printf("token %u\n", model->tokens[i]);
    double *loss = document_loss(model, n), *p = model->layers[0].attn_wo->data + k;
    tape_compute(tape);
    size_t at = (size_t)(p - model->params);
    walk(model);
    backward(tape, loss);
    figures("lm_head", 0, 5, model->lm_head->data + 5 * model->n_embd, model->n_embd);
    figures("wte", 0, 24, model->wte->data + 24 * model->n_embd, model->n_embd);
    figures("wte_grad", 0, 24, grad(tape, model->wte->data + 24 * model->n_embd), model->n_embd);
    printf("loss %.17g\nparam_before %.17g\ngrad %.17g\n", *loss, *p, *grad(tape, p));
    adam(model, config, learning_rate(config, 0));
    printf("param_after %.17g\nm %.17g\nv %.17g\n", *p, model->m[at], model->v[at]);
    free(bytes);
    free(run->docs.list);
    free(run->docs.text);
    free_tokenizer(&run->tokenizer);
    free_model(model);
    return 0;
}
