/* What a debugger should show in the first training step, computed by the fast engine: one line "KEY NUMBER" each.
 *
 *   figures FILE N_LAYER N_EMBD N_HEAD
 *
 * In the fast engine's tape one line is a whole vector, and the lines of a position come in a fixed order. So nothing
 * here rests on the atoms, or on how the views find their vectors.
 */
#define MICROGPT_NO_MAIN
#include "../../microgpt.c"

static void figures(const char *key, size_t layer, size_t position, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%s:%zu:%zu %.17g\n", key, layer, position, x[i]);
    }
}

// Two vectors side by side, as before and after an operation.
static void both(const char *key, size_t layer, size_t position, const double *x, const double *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%s:%zu:%zu %.17g\n%s:%zu:%zu %.17g\n", key, layer, position, x[i], key, layer, position, y[i]);
    }
}

static void top5(size_t position, const double *probs, size_t n)
{
    bool taken[256] = {false};
    for (int rank = 0; rank < 5; rank++) {
        size_t best = 256;
        for (size_t i = 0; i < n && i < 256; i++) {
            best = !taken[i] && (best == 256 || probs[i] > probs[best]) ? i : best;
        }
        taken[best] = true;
        printf("top_token:%zu %zu\ntop_prob:%zu %.17g\n", position, best, position, probs[best]);
    }
}

static void walk(const Model *model)
{
    const Tape *tape = &model->tape;
    size_t E = model->n_embd, V = model->vocab_size, layer = 0, head = 0, n_norms = 0, position = SIZE_MAX;
    for (const Line *l = tape->lines; l < tape->lines + tape->n_lines; l++) {
        char key[64];
        if (l->op == OP_ADD && l->b >= model->wpe->data && l->b < model->wpe->data + model->block_size * E) {
            position++;
            layer = head = n_norms = 0;
            figures("emb", 0, position, l->out, E);
        } else if (l->op == OP_RMSNORM) {
            layer = n_norms ? (n_norms - 1) / 2 : 0;
            n_norms++;
            head = 0;
            both("rmsnorm", layer, position, l->a, l->out, E);
        } else if (l->op == OP_LINEAR && l->w != model->lm_head) {
            const char *name = strchr(l->w->name, '.') + 1;
            figures(name, layer, position, l->out, l->w->rows);
            if (l->w->rows == l->w->cols) {
                snprintf(key, sizeof key, "around_%s", name);
                both(key, layer, position, l->a, l->out, E);
            }
        } else if (l->op == OP_LINEAR) {
            figures("x_out", 0, position, l->a, E);
            figures("logits", 0, position, l->out, V);
        } else if (l->op == OP_SOFTMAX && l[-1].op == OP_LINEAR) {
            figures("probs", 0, position, l->out, V);
            top5(position, l->out, V);
        } else if (l->op == OP_ROW_DOTS) {
            snprintf(key, sizeof key, "attn_logits:%zu", head);
            figures(key, layer, position, l->out, l->n);
        } else if (l->op == OP_SOFTMAX) {
            snprintf(key, sizeof key, "attn_weights:%zu", head);
            figures(key, layer, position, l->out, l->n);
        } else if (l->op == OP_WEIGHTED_SUM) {
            snprintf(key, sizeof key, "head_out:%zu", head++);
            figures(key, layer, position, l->out, model->head_dim);
        }
    }
}

int main(int argc, char **argv)
{
    static Job job;
    Tokenizer tokenizer = {0};
    Random rng;
    Run work = {.job = &job};
    Options o = recipes[RECIPE_MICROGPT];
    if (argc != 5) {
        return 2;
    }
    o.data = argv[1];
    o.config.n_layer = strtoul(argv[2], NULL, 10);
    o.config.n_embd = strtoul(argv[3], NULL, 10);
    o.config.n_head = strtoul(argv[4], NULL, 10);
    Model model = {0};
    random_seed(&rng, o.config.seed);
    job.o = o;
    job.argv0 = argv[0];
    bool ok = read_documents(&work) && new_tokenizer(&tokenizer);
    Documents all = work.docs;
    if (ok) {
        shuffle(&all, &rng);
        find_characters(&tokenizer, &all);
        ok = encode(&tokenizer, all.text, all.n_text) == all.n_text;
        model = sized_model(&o.config, tokenizer.vocab_size);
    }
    if (!ok || !new_model(&model, all.longest, 1, true)) {
        fprintf(stderr, "%s\n", failure.text);
        return 1;
    }
    init_parameters(&model, &rng, &o.config);

    Tape *tape = &model.tape;
    size_t n = take_document(&model, &all.list[0]), k = 3 * model.n_embd + 5;
    for (size_t i = 0; i < n; i++) {
        printf("token %u\n", model.tokens[i]);
    }
    double *loss = document_loss(&model, n), *p = model.layers[0].attn_wo->data + k;
    tape_compute(tape);
    size_t at = (size_t)(p - model.params);
    walk(&model);
    backward(tape, loss);
    figures("lm_head", 0, 5, model.lm_head->data + 5 * model.n_embd, model.n_embd);
    printf("loss %.17g\nparam_before %.17g\ngrad %.17g\n", *loss, *p, *grad(tape, p));
    adam(&model, learning_rate(&o.config, 0), o.config.beta1, o.config.beta2);
    printf("param_after %.17g\nm %.17g\nv %.17g\n", *p, model.m[at], model.v[at]);
    free(all.list);
    free(all.text);
    free_tokenizer(&tokenizer);
    free_model(&model);
    return 0;
}
