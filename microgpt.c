/* microgpt: a GPT, trained and sampled with nothing but C.
 *
 * A port of microgpt.py: same seed, same bytes. This file and autograd.c
 * are the algorithm, this one in the order of the Python program;
 * microgpt(), near the end, runs it. Read autograd.h first. support/ adds
 * what a program needs: files, options, progress. support/run/model.h has
 * the types used here, and lists the calls between this file and support/.
 */
#define _XOPEN_SOURCE 700  // for M_PI
// defines: Tape, Matrix, grad(), ag_add() and all other operations
#include "autograd.h"
// defines: Model, Run, and the calls to and from support/; through its own
// includes also Config, Documents, Random, say()
#include "support/run/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------
 * Settings: what a run is told, unless the command line says otherwise.
 */
const Config recipes[] = {
    [RECIPE_MICROGPT] =
        {
            .n_layer = 1,      // layers: rounds of attention and MLP
            .n_embd = 16,      // width: numbers per token
            .block_size = 16,  // the most tokens it looks back at
            .n_head = 4,       // attention heads per layer
            .init_std = 0.08,  // spread of the initial parameters
            .activation = RELU,
            .steps = 1000,
            .batch = 1,  // documents per step
            .lr = 0.01,  // how far a step goes at first
            .beta1 = 0.85,
            .beta2 = 0.99,
            .schedule = LINEAR,  // how lr falls to 0
            .seed = 42,
            .samples = 20,
            .temperature = 0.5,
        },
    [RECIPE_LESSON] =
        {
            .n_layer = 1,
            .n_embd = 16,
            .block_size = 8,
            .n_head = 4,
            .init_std = 0.02,
            .zero_outputs = true,  // attn_wo and mlp_fc2 start at zero
            .activation = RELU2,   // squared
            .steps = 500,
            .batch = 1,
            .lr = 0.01,
            .beta1 = 0.9,
            .beta2 = 0.95,
            .schedule = COSINE,
            .seed = 42,
            .samples = 20,
            .temperature = 0.5,
        },
};

/* ------------------------------------------------------------------------
 * Documents: the text to learn from, one document per line, shuffled.
 */
// Swaps from the end, as Python's shuffle does, to draw the same numbers.
void shuffle(Documents *docs, Random *rng)
{
    for (size_t i = docs->n; i-- > 1;) {
        size_t j = random_below(rng, i + 1);
        Document swapped = docs->list[i];
        docs->list[i] = docs->list[j];
        docs->list[j] = swapped;
    }
}

/* ------------------------------------------------------------------------
 * Tokenizer: every character that occurs gets a number, in code-point
 * order. One more number, BOS, marks where a document begins and ends.
 */
static void find_characters(Tokenizer *tokenizer, const Documents *docs)
{
    uint32_t last = 0;
    for (size_t i = 0; i < docs->n_text; i++) {
        tokenizer->token_of[docs->text[i]] = 1;  // it occurs
        if (docs->text[i] > last) last = docs->text[i];
    }
    size_t n = 0;
    for (uint32_t code = 0; code <= last; code++) {
        if (tokenizer->token_of[code]) {
            tokenizer->uchars[n++] = code;
            tokenizer->token_of[code] = (uint32_t)n;  // the token, plus 1
        }
    }
    tokenizer->BOS = n;
    tokenizer->vocab_size = n + 1;
}

// Replaces characters with tokens, in place, up to the first unknown one.
// Returns how many were replaced.
size_t encode(const Tokenizer *tokenizer, uint32_t *text, size_t n)
{
    size_t i = 0;
    for (; i < n && tokenizer->token_of[text[i]]; i++)
        text[i] = tokenizer->token_of[text[i]] - 1;
    return i;
}

/* ------------------------------------------------------------------------
 * Parameters: what the model knows; random numbers at first. Names and
 * order match Python's state_dict.
 */
// Gives every matrix its name and its shape. add_matrix() gives it the next
// numbers of params.
void lay_out_parameters(Model *model)
{
    size_t n_embd = model->n_embd, n_mlp = 4 * n_embd;
    size_t vocab_size = model->vocab_size;
    model->n_matrices = 0;
    model->num_params = 0;
    model->wte = add_matrix(model, "", "wte", vocab_size, n_embd);
    model->wpe = add_matrix(model, "", "wpe", model->block_size, n_embd);
    model->lm_head = add_matrix(model, "", "lm_head", vocab_size, n_embd);
    for (size_t li = 0; li < model->n_layer; li++) {
        Layer *layer = &model->layers[li];
        char pre[32];  // "layer0."
        snprintf(pre, sizeof pre, "layer%zu.", li);
        layer->attn_wq = add_matrix(model, pre, "attn_wq", n_embd, n_embd);
        layer->attn_wk = add_matrix(model, pre, "attn_wk", n_embd, n_embd);
        layer->attn_wv = add_matrix(model, pre, "attn_wv", n_embd, n_embd);
        layer->attn_wo = add_matrix(model, pre, "attn_wo", n_embd, n_embd);
        layer->mlp_fc1 = add_matrix(model, pre, "mlp_fc1", n_mlp, n_embd);
        layer->mlp_fc2 = add_matrix(model, pre, "mlp_fc2", n_embd, n_mlp);
    }
}

static void fill_with_zeros(Matrix *w)
{
    memset(w->data, 0, w->rows * w->cols * sizeof *w->data);
}

// Draws every parameter from a normal distribution. With zero_outputs, the
// matrices whose output is added to x start at zero, so that a layer adds
// nothing at first. They are drawn anyway, then cleared, so that all other
// random numbers stay the same.
static void init_parameters(Model *model, Random *rng, const Config *config)
{
    for (uint64_t i = 0; i < model->num_params; i++)
        model->params[i] = random_gauss(rng, 0, config->init_std);
    if (!config->zero_outputs) return;
    for (size_t li = 0; li < model->n_layer; li++) {
        fill_with_zeros(model->layers[li].attn_wo);
        fill_with_zeros(model->layers[li].mlp_fc2);
    }
}

/* ------------------------------------------------------------------------
 * Model: a token and its position go in; the logits come out, a score for
 * every token that may come next. First, its three building blocks, made of
 * atoms. Skip the lines that ask for one_entry(), they are for speed alone:
 * one entry of the tape stands for the atoms below it. It is used only if
 * it is proven, when a command begins, to give the same numbers.
 */
// linear: out[i] = sum_j w[i][j] * x[j].
double *linear(Tape *tape, double *x, Matrix *w)
{
    if (one_entry(tape, OP_LINEAR)) return ag_linear(tape, x, w);
    double *out = ag_vector(tape, w->rows);
    for (size_t i = 0; i < w->rows; i++)
        ag_dot(tape, out + i, w->data + i * w->cols, x, w->cols);
    return out;
}

// softmax: turns scores into probabilities, positive and summing to 1. The
// largest score is subtracted first, so that no exponential overflows.
double *softmax(Tape *tape, double *logits, size_t n)
{
    if (one_entry(tape, OP_SOFTMAX)) return ag_softmax(tape, logits, n);
    double max_val = ag_max(tape, logits, n);  // a number: no gradient
    double *exps = ag_exp(tape, ag_add_const(tape, logits, -max_val, n), n);
    double *total = ag_sum(tape, exps, n);
    return ag_mul_scalar(tape, exps, ag_pow(tape, total, -1, 1), n);
}

// rmsnorm: scales x so that the mean of its squares is 1, or nearly so.
double *rmsnorm(Tape *tape, double *x, size_t n)
{
    if (one_entry(tape, OP_RMSNORM)) return ag_rmsnorm(tape, x, n);
    double *sum_of_squares = ag_dot(tape, ag_vector(tape, 1), x, x, n);
    double *ms = ag_mul_const(tape, sum_of_squares, 1 / (double)n, 1);
    double *ms_eps = ag_add_const(tape, ms, RMSNORM_EPS, 1);
    double *scale = ag_pow(tape, ms_eps, -0.5, 1);
    return ag_mul_scalar(tape, x, scale, n);
}

// Makes an empty cache of keys and values for this many positions.
void new_cache(Model *model, size_t positions)
{
    size_t room = positions * model->n_embd;
    for (size_t li = 0; li < model->n_layer; li++) {
        model->keys[li] = ag_vector(&model->tape, room);
        model->values[li] = ag_vector(&model->tape, room);
    }
}

// The model itself. A word before a colon, as in `emb:`, names the value
// made on that line; the debugger reads it there. A number before a colon
// is a line of the Python program in "Multi-Head Attention", lesson 6 of
// part 3 of https://iamkhalid2.github.io/microgpt-course by iamkhalid2.
double *gpt(Model *model, size_t token_id, size_t pos_id)
{
    Tape *tape = &model->tape;
    double **keys = model->keys, **values = model->values;
    size_t n_embd = model->n_embd, n_head = model->n_head;
    size_t head_dim = model->head_dim;
    size_t seen = pos_id + 1;  // positions to look at, this one included

    // a token's embedding is a row of wte, a position's a row of wpe
    double *tok_emb = model->wte->data + token_id * n_embd;
    double *pos_emb = model->wpe->data + pos_id * n_embd;
    double *x = ag_add(tape, tok_emb, pos_emb, n_embd);  // emb: their sum
    x = rmsnorm(tape, x, n_embd);                        // emb_norm: scaled

    for (size_t li = 0; li < model->n_layer; li++) {
        Layer *layer = &model->layers[li];

        // 1) Multi-head attention: this position looks at every position
        // so far, itself included. Its key and value become row pos_id of
        // the layer's cache; a row is n_embd wide.
        double *x_residual = x;
        x = rmsnorm(tape, x, n_embd);  // x_norm: attention reads it
        double *q = linear(tape, x, layer->attn_wq);
        double *k = linear(tape, x, layer->attn_wk);
        double *v = linear(tape, x, layer->attn_wv);
        ag_copy(tape, keys[li] + pos_id * n_embd, k, n_embd);
        ag_copy(tape, values[li] + pos_id * n_embd, v, n_embd);
        double *x_attn = ag_vector(tape, n_embd);  // 123: all heads' output
        for (size_t h = 0; h < n_head; h++) {      // 124: for each head
            size_t hs = h * head_dim;              // 125: where it starts
            double *q_h = q + hs;                  // 126: its slice of q
            double *k_h = keys[li] + hs;           // 127: of each key
            double *v_h = values[li] + hs;         // 128: of each value
            // 129: how well the query matches each key so far:
            // attn_logits[t] = sum_j q_h[j] * k_h[t][j] / sqrt(head_dim)
            double *attn_logits =
                ag_row_dots(tape, q_h, k_h, seen, n_embd, head_dim,
                            1 / sqrt((double)head_dim));
            // 130: the scores as shares that add up to 1
            double *attn_weights = softmax(tape, attn_logits, seen);
            // 131: the values, mixed by these shares:
            // head_out[j] = sum_t attn_weights[t] * v_h[t][j]
            double *head_out = ag_weighted_sum(tape, attn_weights, v_h,
                                               seen, n_embd, head_dim);
            // 132: appended to the output of the earlier heads
            ag_copy(tape, x_attn + hs, head_out, head_dim);
        }
        // 133: the heads' outputs, mixed
        x = linear(tape, x_attn, layer->attn_wo);  // x_wo: n_embd wide
        x = ag_add(tape, x, x_residual, n_embd);   // x_mid: residual added

        // 2) MLP: each position thinks for itself
        size_t n_mlp = layer->mlp_fc1->rows;  // four times n_embd
        x_residual = x;
        x = rmsnorm(tape, x, n_embd);         // mid_norm: scaled
        x = linear(tape, x, layer->mlp_fc1);  // fc1: four times wider
        x = ag_relu(tape, x, n_mlp);          // act: negatives become 0
        if (model->activation == RELU2)
            x = ag_pow(tape, x, 2, n_mlp);        // act2: squared
        x = linear(tape, x, layer->mlp_fc2);      // fc2: n_embd wide again
        x = ag_add(tape, x, x_residual, n_embd);  // x_out: residual added
    }
    return linear(tape, x, model->lm_head);  // logits: the scores
}

/* ------------------------------------------------------------------------
 * Training: one document per step, or a batch of them. The loss says how
 * surprised the model is by each next token, on average. backward() finds
 * how the loss changes with every parameter, and Adam moves each parameter
 * a little the other way.
 */
// Puts BOS, the document, BOS into model->tokens, cut to fit the block.
// Returns how many tokens there are to predict.
size_t take_document(Model *model, const Document *doc)
{
    uint32_t BOS = model->BOS;
    size_t n = doc->length + 1;  // all tokens but the first are predicted
    if (n > model->block_size) n = model->block_size;
    model->tokens[0] = BOS;
    for (size_t i = 0; i < n; i++)
        model->tokens[i + 1] = i < doc->length ? doc->tokens[i] : BOS;
    return n;
}

// The mean loss over the n predictions in model->tokens.
double *document_loss(Model *model, size_t n)
{
    Tape *tape = &model->tape;
    new_cache(model, n);
    double *losses = ag_vector(tape, n);
    for (size_t pos_id = 0; pos_id < n; pos_id++) {
        tape_lane(tape);  // for speed alone: positions side by side; skip
        size_t token_id = model->tokens[pos_id];
        size_t target_id = model->tokens[pos_id + 1];
        double *logits = gpt(model, token_id, pos_id);
        double *probs = softmax(tape, logits, model->vocab_size);
        double *logprob = ag_log(tape, probs + target_id, 1);
        double *loss_t = ag_neg(tape, logprob, 1);
        ag_copy(tape, losses + pos_id, loss_t, 1);
    }
    tape_end_lanes(tape);  // for speed alone, too
    return ag_mul_const(tape, ag_sum(tape, losses, n), 1 / (double)n, 1);
}

// What n training documents add to the mean loss of a batch, from number
// `first` on, wrapping around at the end. `model` is run->model or a copy.
double *share_of_loss(const Run *run, Model *model, uint64_t first,
                      uint64_t n)
{
    Tape *tape = &model->tape;
    uint64_t n_train = run->docs.n - run->config->holdout;
    double *sum = ag_scalar(tape, 0);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t id = (first + i) % n_train;
        size_t n_predicted = take_document(model, &run->docs.list[id]);
        sum = ag_add(tape, sum, document_loss(model, n_predicted), 1);
    }
    return ag_mul_const(tape, sum, 1 / (double)run->config->batch, 1);
}

// The mean loss over the documents of a step: the next `batch` of them.
static double *step_loss(Run *run, uint64_t step)
{
    uint64_t batch = run->config->batch, first = step * batch;
    tape_drop(&run->model.tape);  // forget the previous step
    // For speed alone, skip it: a small model runs the batch in parts, each
    // on a copy, and collects their gradients. NULL: not in parts.
    double *loss = fast_batch(run, first);
    return loss ? loss : share_of_loss(run, &run->model, first, batch);
}

// The rate falls from lr to 0, linearly or along half a cosine.
double learning_rate(const Config *config, uint64_t step)
{
    double done = (double)step / (double)config->steps;
    if (config->schedule == COSINE)
        return config->lr * 0.5 * (1 + cos(M_PI * done));
    return config->lr * (1 - done);
}

// Adam: each parameter moves against the running mean of its gradient,
// divided by the root of the running mean of the gradient's square. Both
// means start at zero, so they are too small at first; the corrections make
// up for that. Weight decay pulls each parameter a little towards 0. The
// gradient is cleared for the next step.
void adam(Model *model, const Config *config, double lr)
{
    double *p = model->params, *g = grad(&model->tape, p);
    double *m = model->m, *v = model->v;
    double beta1 = config->beta1, beta2 = config->beta2, eps = 1e-8;
    double weight_decay = config->weight_decay;
    double t = (double)++model->steps_done;  // from 1 on
    double correct1 = 1 - pow(beta1, t), correct2 = 1 - pow(beta2, t);
    // For speed alone, skip it: moves the first i parameters like the loop.
    size_t i = fast_adam(model, config, lr);
    for (; i < (size_t)model->num_params; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        double m_hat = m[i] / correct1, v_hat = v[i] / correct2;
        p[i] -= lr * m_hat / (sqrt(v_hat) + eps) + lr * weight_decay * p[i];
        g[i] = 0;
    }
}

// Each step goes forward, then backward, then moves every parameter a bit.
static bool train(Run *run)
{
    Model *model = &run->model;
    const Config *config = run->config;
    for (uint64_t step = model->steps_done; step < config->steps; step++) {
        double *loss = step_loss(run, step);
        // value(): it may still wait to be computed; later, *loss will do
        if (!check_loss(run, step, *value(&model->tape, loss)))
            return false;
        backward(&model->tape, loss);
        adam(model, config, learning_rate(config, step));
        if (!after_step(run, step, *loss)) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------
 * Inference: starting from BOS, draw the next token again and again, until
 * BOS is drawn or the block is full. A temperature below 1 makes likely
 * tokens even more likely; above 1, it evens them out.
 */
// Puts one sample into model->tokens. Returns its length.
static size_t sample(Run *run)
{
    Model *model = &run->model;
    Tape *tape = &model->tape;
    size_t vocab_size = model->vocab_size, BOS = model->BOS;
    double temperature = run->config->temperature;
    size_t token_id = BOS, length = 0;
    for (size_t pos_id = 0; pos_id < model->block_size; pos_id++) {
        tape_drop(tape);  // keeps the cache: see infer()
        double *logits = gpt(model, token_id, pos_id);
        double *scores =
            ag_mul_const(tape, logits, 1 / temperature, vocab_size);
        double *probs = softmax(tape, scores, vocab_size);
        token_id = choose_token(run, probs, pos_id);
        if (token_id == BOS) break;
        model->tokens[length++] = (uint32_t)token_id;
    }
    return length;
}

// Draws all samples. One cache serves them all: it is made before the mark,
// so tape_drop() keeps it, and each sample overwrites the keys and values
// of the last. That is safe only because backward() is not called.
bool infer(Run *run)
{
    Tape *tape = &run->model.tape;
    tape_drop(tape);
    new_cache(&run->model, run->model.block_size);
    tape_mark(tape);
    uint64_t done = 0;  // after_sample() counts; --new skips known names
    while (done < run->config->samples) {
        size_t length = sample(run);
        if (!after_sample(run, length, &done)) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------
 * The story: the whole program, in the order of microgpt.py. Whatever
 * returns false has recorded the error; the story ends there.
 */
bool microgpt(Run *run)
{
    const Config *config = run->config;
    Documents *docs = &run->docs;
    if (!read_documents(run)) return false;
    random_seed(run->rng, config->seed);
    shuffle(docs, run->rng);
    find_characters(&run->tokenizer, docs);
    encode(&run->tokenizer, docs->text, docs->n_text);  // all documents
    if (!new_model(run)) return false;
    init_parameters(&run->model, run->rng, config);
    if (!begin_training(run)) return false;
    say("num docs: %zu\n", docs->n);
    say("vocab size: %zu\n", run->tokenizer.vocab_size);
    say("num params: %" PRIu64 "\n", run->model.num_params);
    bool trained = train(run);
    return end_training(run, trained) && infer(run);
}

// run_command() calls microgpt() to train; other commands are in support/.
int main(int argc, char **argv)
{
    bool ok = read_command_line(argc, argv) && run_command();
    return report(ok);
}
