/* What a debugger should show in the first training step, computed by the fast engine: one line "KEY NUMBER" each.
 *
 *   figures N_LAYER N_EMBD N_HEAD
 *
 * In the fast engine's tape one entry is a whole vector, and the entries of a position come in a fixed order. So nothing
 * here rests on the atoms, or on how the views find their vectors.
 */
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/run/job.h"
#include <stdlib.h>

static void figures(const char *key, size_t layer, size_t position, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) printf("%s:%zu:%zu %.17g\n", key, layer, position, x[i]);
}

// Two vectors side by side, as before and after an operation.
static void both(const char *key, size_t layer, size_t position, const Entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        figures(key, layer, position, e->a + i, 1);
        figures(key, layer, position, e->out + i, 1);
    }
}

// One entry that is no norm: what it is in the model, by its operation and its matrix.
static void entry(const Model *model, const Entry *e, size_t layer, size_t head, size_t position)
{
    char key[64];
    const Matrix *w = model->state_dict;
    if (e->op == OP_LINEAR) {
        while (w->data != e->b) w++;
        const char *name = strchr(w->name, '.') ? strchr(w->name, '.') + 1 : "logits";
        figures(name, layer, position, e->out, w->rows);
        snprintf(key, sizeof key, "around_%s", name);
        if (w->rows == w->cols) both(key, layer, position, e, w->rows);
    } else if (e->op == OP_SOFTMAX && e[-1].op == OP_LINEAR) {
        double likeliest = 0;
        for (size_t i = 0; i < e->n; i++) likeliest = fmax(likeliest, e->out[i]);
        figures("top_prob", 0, position, &likeliest, 1);
    } else if (e->op == OP_ROW_DOTS || e->op == OP_SOFTMAX) {
        const char *name = e->op == OP_SOFTMAX ? "attn_weights" : "attn_logits";
        snprintf(key, sizeof key, "%s:%zu", name, head);
        figures(key, layer, position, e->out, e->n);
    } else if (e->op == OP_WEIGHTED_SUM) {
        snprintf(key, sizeof key, "head_out:%zu", head);
        figures(key, layer, position, e->out, model->head_dim);
    }
}

static void walk(const Model *model)
{
    const Tape *tape = &model->tape;
    size_t layer = 0, head = 0, n_norms = 0, position = SIZE_MAX;
    const double *wpe = model->wpe->data, *end = wpe + model->block_size * model->n_embd;
    for (const Entry *e = tape->entries; e < tape->entries + tape->n_entries; e++) {
        if (e->op == OP_ADD && e->b >= wpe && e->b < end) {
            position++;
            layer = head = n_norms = 0;
        } else if (e->op == OP_RMSNORM) {
            layer = n_norms ? (n_norms - 1) / 2 : 0;
            n_norms++;
            head = 0;
            both("rmsnorm", layer, position, e, model->n_embd);
        }
        entry(model, e, layer, head, position);
        if (e->op == OP_WEIGHTED_SUM) head++;
    }
}

int main(int argc, char **argv)
{
    static Job job;
    Run *run = &job.run;
    if (argc != 4) return 2;
    job.o = default_options(RECIPE_MICROGPT);
    job.o.scalar = false;
    job.o.data = "data/names.txt";
    job.o.config.n_layer = strtoul(argv[1], NULL, 10);
    job.o.config.n_embd = strtoul(argv[2], NULL, 10);
    job.o.config.n_head = strtoul(argv[3], NULL, 10);
    *run = (Run){.config = &job.o.config, .rng = &job.rng, .job = &job};
    const Config *config = run->config;
    Model *model = &run->model;
    if (!read_documents(run)) return report(false);
    random_seed(run->rng, config->seed);
    shuffle(&run->docs, run->rng);
    find_characters(&run->tokenizer, &run->docs);
    encode(&run->tokenizer, run->docs.text, run->docs.n_text);
    if (!new_model(run)) return report(false);
    init_parameters(model, run->rng, config);

    Tape *tape = &model->tape;
    size_t n = take_document(model, &run->docs.list[0]), k = 3 * model->n_embd + 5;
    for (size_t i = 0; i < n; i++) printf("token %u\n", model->tokens[i]);
    double *loss = document_loss(model, n), *p = model->layers[0].attn_wo->data + k;
    tape_compute(tape);
    walk(model);
    backward(tape, loss);
    figures("wte_grad", 0, 24, grad(tape, model->wte->data + 24 * model->n_embd), model->n_embd);
    printf("loss %.17g\nparam_before %.17g\ngrad %.17g\n", *loss, *p, *grad(tape, p));
    adam(model, config, learning_rate(config, 0));
    printf("param_after %.17g\n", *p);
    return 0;
}
