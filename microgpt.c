/* microgpt: a GPT trained and sampled with nothing but C.
 *
 * It is the program microgpt.py, step by step and to the byte: the same
 * names from the same seed. This first part is the whole algorithm, in the
 * order of the Python program, from the documents to the story. The page to
 * read before it is autograd.h; what surrounds it comes after it.
 */
#define _XOPEN_SOURCE 700
#include "autograd.h"
#ifdef MICROGPT_DEBUG
#include "tests/debugger/names.h"  // so that the debugger knows the names
#endif

#include <math.h>
#include <stdio.h>
#include <string.h>

// The names that the algorithm uses from further down. Where one of them
// returns false, it has noted what went wrong, and the run ends.
typedef struct Random Random;   // Python's random numbers
typedef struct Run Run;         // all that a run works with
static void say(const char *format, ...);   // as printf, to standard output
static bool check_scores(Run *run, const double *scores);  // all finite?
static void random_seed(Random *rng, uint64_t seed);
static double random_gauss(Random *rng, double mean, double std);
static size_t random_below(Random *rng, size_t n);    // 0 to n - 1
static size_t random_choice(Random *rng, const double *weights, size_t n);
static size_t argmax(const double *p, size_t n);
static bool read_documents(Run *run);      // into run->docs
static bool read_checkpoint(Run *run);     // with --resume: a saved run
static bool encode_documents(Run *run, size_t n);     // the first n
static bool new_parameters(Run *run);      // memory for the whole model
static bool begin_training(Run *run);      // checks; opens the files
static bool after_step(Run *run, uint64_t step, double loss);   // reports
static bool end_training(Run *run, bool ok);          // saves; reports
static bool after_sample(Run *run, uint64_t i, size_t length);  // prints

// The settings of a run. Their defaults, those of the Python program and
// those of the lesson, are in recipes[], further down.
typedef struct {
    uint64_t seed;                  // where the random numbers start
    uint64_t n_layer, n_embd, n_head, block_size;
    int activation, schedule;
    double init_std;                // how far initial parameters spread
    bool zero_outputs;              // attn_wo, mlp_fc2 start at zero
    uint64_t steps, batch, holdout; // batch: documents per step
    double lr, beta1, beta2;        // Adam's rates
    uint64_t samples;
    double temperature;
} Config;

enum { RELU, RELU2 };               // as --activation lists them
enum { LINEAR, COSINE };            // as --schedule lists them

/* ------------------------------------------------------------------------
 * Documents: the text to learn from, one document per line, shuffled.
 */
typedef struct {
    uint32_t *tokens;    // [length] its characters, once encoded its tokens
    size_t length;
    size_t line;         // of the file, for messages
} Document;

typedef struct {
    Document *list;      // [n]
    size_t n, longest;
    uint32_t *text;      // [n_text] all documents, one after another
    size_t n_text;
} Documents;

// From the end, as Python's shuffle does it: the draws must be the same.
static void shuffle(Documents *docs, Random *rng)
{
    for (size_t i = docs->n - 1; i > 0; i--) {
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
enum { N_CODES = 0x110000 };    // Unicode code points

typedef struct {
    uint32_t *uchars;    // [BOS] the character of each token
    uint32_t *token_of;  // [N_CODES] each character's token + 1, or 0
    size_t BOS, vocab_size;
} Tokenizer;

static bool new_tokenizer(Tokenizer *tokenizer);     // its memory

// The characters that occur in the documents, each once, in order.
static void find_characters(Tokenizer *tokenizer, const Documents *docs)
{
    uint32_t last = 0;
    for (size_t i = 0; i < docs->n_text; i++) {
        tokenizer->token_of[docs->text[i]] = 1;
        last = docs->text[i] > last ? docs->text[i] : last;
    }
    size_t n = 0;
    for (uint32_t code = 0; code <= last; code++) {
        if (tokenizer->token_of[code]) {
            tokenizer->uchars[n++] = code;
            tokenizer->token_of[code] = (uint32_t)n;   // the token, plus 1
        }
    }
    tokenizer->BOS = n;
    tokenizer->vocab_size = n + 1;
}

// Characters become tokens. Returns how many: all n, unless one is unknown.
static size_t encode(const Tokenizer *tokenizer, uint32_t *text, size_t n)
{
    size_t i = 0;
    for (; i < n && tokenizer->token_of[text[i]]; i++) {
        text[i] = tokenizer->token_of[text[i]] - 1;
    }
    return i;
}

/* ------------------------------------------------------------------------
 * Parameters: what the model knows, at first random numbers. Their names
 * and order are those of Python's state_dict.
 */
typedef struct {
    Matrix *attn_wq, *attn_wk, *attn_wv, *attn_wo;   // [n_embd][n_embd]
    Matrix *mlp_fc1;                                 // [4 * n_embd][n_embd]
    Matrix *mlp_fc2;                                 // [n_embd][4 * n_embd]
} Layer;

typedef struct {
    size_t n_layer, n_embd, n_head, head_dim, block_size, vocab_size;
    int activation;
    Matrix *state_dict;      // [n_matrices] all of the following, in order
    size_t n_matrices;
    Matrix *wte;             // [vocab_size][n_embd] what each token is
    Matrix *wpe;             // [block_size][n_embd] what each position is
    Matrix *lm_head;         // [vocab_size][n_embd] scores of each token
    Layer *layers;           // [n_layer]
    double *params;          // [num_params] the numbers in all of these
    size_t num_params;
    double *m, *v;           // [num_params] Adam's memory
    uint64_t steps_done;     // how often Adam has moved the parameters
    double **keys, **values; // [n_layer] the cache: [positions][n_embd]
    uint32_t *tokens;        // [block_size + 1] the document, or the sample
    Tape tape;
} Model;

// The next matrix of the state dict.
static Matrix *matrix(Model *model, const char *prefix, const char *name,
                      size_t nout, size_t nin)
{
    Matrix *w = &model->state_dict[model->n_matrices++];
    double *data = model->params + model->num_params;
    *w = (Matrix){.rows = nout, .cols = nin, .data = data};
    snprintf(w->name, sizeof w->name, "%s%s", prefix, name);
    model->num_params += nout * nin;
    return w;
}

// Gives every matrix its name, its shape and its place in params.
static void lay_out_parameters(Model *model)
{
    size_t n_embd = model->n_embd, vocab_size = model->vocab_size;
    model->wte = matrix(model, "", "wte", vocab_size, n_embd);
    model->wpe = matrix(model, "", "wpe", model->block_size, n_embd);
    model->lm_head = matrix(model, "", "lm_head", vocab_size, n_embd);
    for (size_t li = 0; li < model->n_layer; li++) {
        Layer *layer = &model->layers[li];
        char pre[32];
        snprintf(pre, sizeof pre, "layer%zu.", li);
        layer->attn_wq = matrix(model, pre, "attn_wq", n_embd, n_embd);
        layer->attn_wk = matrix(model, pre, "attn_wk", n_embd, n_embd);
        layer->attn_wv = matrix(model, pre, "attn_wv", n_embd, n_embd);
        layer->attn_wo = matrix(model, pre, "attn_wo", n_embd, n_embd);
        layer->mlp_fc1 = matrix(model, pre, "mlp_fc1", 4 * n_embd, n_embd);
        layer->mlp_fc2 = matrix(model, pre, "mlp_fc2", n_embd, 4 * n_embd);
    }
}

// Normally distributed, with standard deviation init_std. In the lesson's
// recipe attn_wo and mlp_fc2, whose outputs are added to x, start at zero:
// a layer then adds nothing at first. Random numbers are drawn anyway.
static void init_parameters(Model *model, Random *rng, const Config *config)
{
    for (size_t i = 0; i < model->n_matrices; i++) {
        Matrix *w = &model->state_dict[i];
        bool output = strstr(w->name, "_wo") || strstr(w->name, "_fc2");
        double std = output && config->zero_outputs ? 0 : config->init_std;
        for (size_t k = 0; k < w->rows * w->cols; k++) {
            w->data[k] = random_gauss(rng, 0, std);
        }
    }
}

/* ------------------------------------------------------------------------
 * Model: a token and its position go in; a score for every token that may
 * come next, the logits, comes out. First its three building blocks, each
 * by its definition; a fused tape records one line instead.
 */
// linear: each output is the dot product of the input with one row of w.
static double *linear_into(Tape *tape, double *out, double *x, Matrix *w)
{
    if (tape->fused) {
        return ag_linear(tape, out, x, w);     // the loop below as one line
    }
    for (size_t i = 0; i < w->rows; i++) {
        ag_dot(tape, out + i, w->data + i * w->cols, x, w->cols);
    }
    return out;
}

static double *linear(Tape *tape, double *x, Matrix *w)
{
    return linear_into(tape, ag_vector(tape, w->rows), x, w);
}

// softmax: scores become probabilities, positive, and they sum to 1. The
// largest score is subtracted first, so that no exponential overflows.
static double *softmax(Tape *tape, double *logits, size_t n)
{
    if (tape->fused) {
        return ag_softmax(tape, logits, n);     // the same as one line
    }
    double max_val = ag_max(tape, logits, n);   // a number, not a value
    double *exps = ag_exp(tape, ag_add_const(tape, logits, -max_val, n), n);
    double *total = ag_sum(tape, exps, n);
    return ag_mul_scalar(tape, exps, ag_pow(tape, total, -1, 1), n);
}

// rmsnorm: scaled so that the mean of the squares is 1, or nearly so.
static double *rmsnorm(Tape *tape, double *x, size_t n)
{
    double eps = 1e-5;
    if (tape->fused) {
        return ag_rmsnorm(tape, x, eps, n);     // the same as one line
    }
    double *squares = ag_dot(tape, ag_vector(tape, 1), x, x, n);
    double *ms = ag_mul_const(tape, squares, 1 / (double)n, 1);
    double *scale = ag_pow(tape, ag_add_const(tape, ms, eps, 1), -0.5, 1);
    return ag_mul_scalar(tape, x, scale, n);
}

// The cache of keys and values, empty: room for so many positions.
static void new_cache(Model *model, size_t positions)
{
    size_t room = positions * model->n_embd;
    for (size_t li = 0; li < model->n_layer; li++) {
        model->keys[li] = ag_vector(&model->tape, room);
        model->values[li] = ag_vector(&model->tape, room);
    }
}

// The model itself. In its comments, `emb:` is the debugger's name for the
// value made on that line; a number is a line of the lesson's Python.
static double *gpt(Model *model, size_t token_id, size_t pos_id)
{
    Tape *tape = &model->tape;
    double **keys = model->keys, **values = model->values;
    size_t n_embd = model->n_embd, n_head = model->n_head;
    size_t head_dim = model->head_dim, seen = pos_id + 1;

    // the token's embedding, a row of wte, and the position's, a row of wpe
    double *tok_emb = model->wte->data + token_id * n_embd;
    double *pos_emb = model->wpe->data + pos_id * n_embd;
    double *x = ag_add(tape, tok_emb, pos_emb, n_embd);  // emb: their sum
    x = rmsnorm(tape, x, n_embd);                        // emb_norm: scaled

    for (size_t li = 0; li < model->n_layer; li++) {
        Layer *layer = &model->layers[li];

        // 1) Multi-head attention: this position looks back at all those
        // seen, itself included. Its key and value are row pos_id of the
        // layer's cache, n_embd wide.
        double *x_residual = x;
        x = rmsnorm(tape, x, n_embd);         // x_norm: attention reads it
        double *q = linear(tape, x, layer->attn_wq);
        double *k = keys[li] + pos_id * n_embd;
        double *v = values[li] + pos_id * n_embd;
        linear_into(tape, k, x, layer->attn_wk);
        linear_into(tape, v, x, layer->attn_wv);
        double *x_attn = ag_vector(tape, n_embd);  // 123: all heads' output
        for (size_t h = 0; h < n_head; h++) {      // 124: for each head
            size_t hs = h * head_dim;              // 125: where it starts
            double *q_h = q + hs;                  // 126: its slice of q
            double *k_h = keys[li] + hs;           // 127: of every key
            double *v_h = values[li] + hs;         // 128: of every value
            // 129: how well the query fits each key: scaled dot products
            double *attn_logits =
                ag_row_dots(tape, q_h, k_h, seen, n_embd, head_dim,
                            1 / sqrt((double)head_dim));
            // 130: the same as shares, which add up to 1
            double *attn_weights = softmax(tape, attn_logits, seen);
            // 131: the sum of the values, each weighted by its share
            double *head_out = ag_weighted_sum(tape, attn_weights, v_h,
                                               seen, n_embd, head_dim);
            // 132: appended to the output of the heads before
            ag_copy(tape, x_attn + hs, head_out, head_dim);
        }
        x = linear(tape, x_attn, layer->attn_wo);  // 133: x_wo: mixed
        x = ag_add(tape, x, x_residual, n_embd);   // x_mid: residual added

        // 2) MLP: each position thinks for itself
        size_t n_hidden = layer->mlp_fc1->rows;    // four times n_embd
        x_residual = x;
        x = rmsnorm(tape, x, n_embd);              // mid_norm: scaled
        x = linear(tape, x, layer->mlp_fc1);       // fc1: four times wider
        x = ag_relu(tape, x, n_hidden);            // act: what is positive
        if (model->activation == RELU2) {
            x = ag_pow(tape, x, 2, n_hidden);      // act: squared
        }
        x = linear(tape, x, layer->mlp_fc2);       // fc2: as wide as before
        x = ag_add(tape, x, x_residual, n_embd);   // x_out: residual added
    }
    return linear(tape, x, model->lm_head);        // logits: the scores
}

/* ------------------------------------------------------------------------
 * Training: one document per step, or a batch of them. The loss is how
 * surprised the model is by each next token, on average; backward finds how
 * every parameter changes it; Adam moves them all a little the other way.
 */
// BOS, the document, BOS: into model->tokens, cut to what fits the block.
// Returns how many there are to predict.
static size_t take_document(Model *model, const Document *doc)
{
    size_t n = doc->length + 1;
    uint32_t BOS = (uint32_t)model->vocab_size - 1;    // the last token
    n = n < model->block_size ? n : model->block_size;
    model->tokens[0] = BOS;
    for (size_t i = 0; i < n; i++) {
        model->tokens[i + 1] = i < doc->length ? doc->tokens[i] : BOS;
    }
    return n;
}

// The mean loss over the n predictions in model->tokens.
static double *document_loss(Model *model, size_t n)
{
    Tape *tape = &model->tape;
    new_cache(model, n);
    double *losses = ag_vector(tape, n);
    for (size_t pos_id = 0; pos_id < n; pos_id++) {
        tape_lane(tape);          // for speed alone: positions side by side
        uint32_t token_id = model->tokens[pos_id];
        uint32_t target_id = model->tokens[pos_id + 1];
        double *logits = gpt(model, token_id, pos_id);
        double *probs = softmax(tape, logits, model->vocab_size);
        double *logprob = ag_log(tape, probs + target_id, 1);
        double *loss_t = ag_neg(tape, logprob, 1);
        ag_copy(tape, losses + pos_id, loss_t, 1);
    }
    tape_end_lanes(tape);
    return ag_mul_const(tape, ag_sum(tape, losses, n), 1 / (double)n, 1);
}

// The rate falls from lr to 0, linearly or along half a cosine.
static double learning_rate(const Config *config, uint64_t step)
{
    double pi = 3.141592653589793, lr = config->lr;
    double done = (double)step / (double)config->steps;
    return config->schedule == COSINE ? lr * 0.5 * (1 + cos(pi * done))
                                      : lr * (1 - done);
}

// Adam: each parameter moves against the running mean of its gradient,
// divided by the root of the running mean of the gradient's square. Both
// means start at zero, so at first they are too small; the corrections make
// up for that.
static void adam(Model *model, double lr, double beta1, double beta2)
{
    double *p = model->params, *g = grad(&model->tape, p), eps = 1e-8;
    double *m = model->m, *v = model->v, t = (double)model->steps_done + 1;
    double correct1 = 1 - pow(beta1, t), correct2 = 1 - pow(beta2, t);
    size_t i = ag_adam(p, g, m, v, model->num_params, lr, beta1, beta2, eps,
                       correct1, correct2);   // the first i, only faster
    for (; i < model->num_params; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        double m_hat = m[i] / correct1, v_hat = v[i] / correct2;
        p[i] -= lr * m_hat / (sqrt(v_hat) + eps);
        g[i] = 0;
    }
    model->steps_done++;
}

// One step: forward, backward, and a small move of every parameter. Returns
// the loss: the mean of the losses of the step's documents.
static double train_step(Model *model, const Documents *docs,
                         const Config *config, uint64_t step)
{
    Tape *tape = &model->tape;
    tape_drop(tape);
    double *sum = ag_scalar(tape, 0);
    for (uint64_t i = 0; i < config->batch; i++) {
        uint64_t next = step * config->batch + i;
        uint64_t id = next % (docs->n - config->holdout);
        size_t n = take_document(model, &docs->list[id]);
        sum = ag_add(tape, sum, document_loss(model, n), 1);
    }
    double *loss = ag_mul_const(tape, sum, 1 / (double)config->batch, 1);
    backward(tape, loss);
    adam(model, learning_rate(config, step), config->beta1, config->beta2);
    return *loss;
}

struct Run {
    const Config *config;
    Documents docs;
    Tokenizer tokenizer;
    Model model;
    Random *rng;
    Document prompt;     // what every sample begins with
    bool resumed;        // tokenizer and parameters come from a file
    uint64_t skipped;    // samples that --new did not print
    struct Job *job;     // the command that it is a part of
};

static bool train(Run *run)
{
    Model *model = &run->model;
    const Config *config = run->config;
    for (uint64_t step = model->steps_done; step < config->steps; step++) {
        double loss = train_step(model, &run->docs, config, step);
        if (!after_step(run, step, loss)) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------
 * Inference: starting from BOS, a next token is drawn again and again,
 * until BOS is drawn or the block is full. A temperature below 1 makes the
 * likely still likelier, one above 1 evens them out; 0 takes the likeliest.
 */
// One sample, which begins with the prompt, into model->tokens.
static bool sample(Run *run, size_t *length)
{
    Model *model = &run->model;
    Tape *tape = &model->tape;
    const Document *prompt = &run->prompt;
    size_t vocab_size = model->vocab_size;
    size_t BOS = run->tokenizer.BOS, token_id = BOS;
    double temperature = run->config->temperature;
    double sharpen = temperature > 0 ? 1 / temperature : 1;
    *length = 0;
    for (size_t pos_id = 0; pos_id < model->block_size; pos_id++) {
        tape_drop(tape);
        double *logits = gpt(model, token_id, pos_id);
        double *scores = ag_mul_const(tape, logits, sharpen, vocab_size);
        if (!check_scores(run, scores)) return false;
        double *probs = softmax(tape, scores, vocab_size);
        token_id = pos_id < prompt->length ? prompt->tokens[pos_id] :
                   temperature <= 0 ? argmax(probs, vocab_size) :
                   random_choice(run->rng, probs, vocab_size);
        if (token_id == BOS) break;
        model->tokens[(*length)++] = (uint32_t)token_id;
    }
    return true;
}

static bool infer(Run *run)
{
    size_t n;
    tape_drop(&run->model.tape);
    new_cache(&run->model, run->model.block_size);
    tape_mark(&run->model.tape);     // so that tape_drop() keeps the cache
    for (uint64_t i = 0; i < run->config->samples + run->skipped; i++) {
        if (!sample(run, &n) || !after_sample(run, i, n)) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------
 * The story: the whole program, in the order of microgpt.py.
 */
static bool microgpt(Run *run)
{
    if (!read_documents(run) || !read_checkpoint(run)) return false;
    random_seed(run->rng, run->config->seed);
    shuffle(&run->docs, run->rng);
    if (!run->resumed) {
        if (!new_tokenizer(&run->tokenizer)) return false;
        find_characters(&run->tokenizer, &run->docs);
        if (!new_parameters(run)) return false;
        init_parameters(&run->model, run->rng, run->config);
    }
    if (!encode_documents(run, run->docs.n)) return false;
    if (!begin_training(run)) return false;    // before anything is said
    say("num docs: %zu\n", run->docs.n);
    say("vocab size: %zu\n", run->tokenizer.vocab_size);
    say("num params: %zu\n", run->model.num_params);
    bool trained = train(run);
    return end_training(run, trained) && infer(run);
}

/* ==================================================================================================================
 * That was the algorithm. From here on: what surrounds it.
 *
 *   errors and output, what a command works with, random numbers, reading documents, memory, the build for the
 *   debugger, options, model files, long runs, the heads, the page, what the story asks for, commands, command line
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define VERSION "1.1.0"

/* ------------------------------------------------------------------------------------------------------------------
 * Errors and output. What went wrong is kept, as in errno, until main() says it: fail() and usage() set it, and are
 * false. The last one counts.
 */
enum { DONE = 0, FAILED = 1, USAGE = 2, INTERRUPTED = 130, PIPE_CLOSED = 128 + SIGPIPE };
static struct { int status; char text[8192]; } failure;    // room for the longest file name and what is wrong with it

#ifdef __GNUC__
#define PRINTF_LIKE(f, args) __attribute__((format(printf, f, args)))
#else
#define PRINTF_LIKE(f, args)
#endif
#define fail_as(...) (set_failure(__VA_ARGS__), false)
#define fail(...) fail_as(FAILED, __VA_ARGS__)     // the work failed
#define usage(...) fail_as(USAGE, __VA_ARGS__)     // the command line is wrong
// A remark on standard error, cleaned up as a failure is.
#define note(...) (set_failure(FAILED, __VA_ARGS__), fprintf(stderr, "microgpt: note: %s\n", failure.text))

// One line, whatever is quoted in it. Of a text that is too long, the middle is left out: the end says what is wrong.
PRINTF_LIKE(2, 3) static void set_failure(int status, const char *format, ...)
{
    char *text = failure.text, *whole = NULL;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    failure.status = status;
    int n = vsnprintf(text, sizeof failure.text, format, args);
    if (n >= (int)sizeof failure.text && (whole = malloc((size_t)n + 1))) {
        size_t half = sizeof failure.text / 2;
        vsnprintf(whole, (size_t)n + 1, format, again);
        snprintf(text + half - 5, half + 5, " ... %s", whole + (size_t)n + 1 - half);
        free(whole);
    }
    va_end(again);
    va_end(args);
    for (unsigned char *c = (unsigned char *)text; *c; c++) {      // what a terminal would obey: also U+0080 to U+009F
        if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) *c = c[1] = '?';
        *c = *c < ' ' || *c == 0x7f ? '?' : *c;
    }
}

// A file that is written. What is put into it is collected, and goes out in large pieces. A short write goes on from
// where it stopped; one that has to wait, waits. The first failure is remembered in error, and nothing more is written:
// so it is enough to ask for it now and then.
typedef struct {
    int file, error;     // a descriptor; errno
    bool by_line;        // people are reading: every line goes out at once
    size_t n;
    char bytes[1 << 16];
} Output;

static Output standard_output = {.file = STDOUT_FILENO};
static bool dies_of_sigpipe;                        // SIGPIPE was not ignored from the start
static volatile sig_atomic_t interrupted;          // a signal has asked the run to end

// Whoever reads the output may be slow. An interrupted run gives them a second more, and writes only what a pipe that
// is ready takes without waiting.
static bool flush(Output *out)
{
    for (size_t done = 0; done < out->n && !out->error;) {
        int ready = poll(&(struct pollfd){.fd = out->file, .events = POLLOUT}, 1, 1000);
        if (ready == 0 && interrupted) out->error = EINTR;
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        size_t n = interrupted && out->n - done > PIPE_BUF ? PIPE_BUF : out->n - done;
        ssize_t written = write(out->file, out->bytes + done, n);
        done += written > 0 ? (size_t)written : 0;
        out->error = written < 0 && errno != EINTR && errno != EAGAIN ? errno : 0;
    }
    out->n = 0;
    return !out->error;
}

static void put_bytes(Output *out, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n && (out->n < sizeof out->bytes || flush(out)); i++) {
        out->bytes[out->n++] = ((const char *)bytes)[i];
    }
    if (out->by_line && out->n && out->bytes[out->n - 1] == '\n') flush(out);
}

static void put_text(Output *out, const char *format, va_list args)
{
    static char text[sizeof out->bytes];
    int n = vsnprintf(text, sizeof text, format, args);
    bool fits = n >= 0 && (size_t)n < sizeof text;
    if (!fits && flush(out)) out->error = EOVERFLOW;
    put_bytes(out, text, fits ? (size_t)n : 0);
}

PRINTF_LIKE(2, 3) static void put(Output *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_text(out, format, args);
    va_end(args);
}

PRINTF_LIKE(1, 2) static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_text(&standard_output, format, args);
    va_end(args);
}

// A reader that has gone away is not an error: the run ends as SIGPIPE would have ended it, unless that was ignored.
static bool output_ok(void)
{
    int reason = standard_output.error;
    if (interrupted) return fail_as(INTERRUPTED, "interrupted");
    if (reason == EPIPE && dies_of_sigpipe) return fail_as(PIPE_CLOSED, "%s", "");
    return !reason || fail("standard output: %s", strerror(reason));
}

static bool no_memory(void) { return fail("not enough memory"); }

// A call to the system failed, with errno, over the file of this name.
static bool fail_errno(const char *name) { return fail("%s: %s", name, strerror(errno)); }

static bool all_finite(const double *a, size_t n)
{
    size_t i = 0;
    while (i < n && isfinite(a[i])) i++;
    return i == n;
}

/* ------------------------------------------------------------------------------------------------------------------
 * What a command works with. The Run, in part one, is what the algorithm sees; a Job is the command around it; and its
 * Progress is what a long run shows, logs and saves.
 */
enum { N_WORDS = 624 };
struct Random {
    uint32_t words[N_WORDS];
    size_t used;
    double gauss_next;
    bool has_gauss;
};

// What the command line asks for. The names and defaults are in the table of options, further down.
typedef struct {
    const struct Command *command;
    const char *arguments[2];      // what the command line gives beside options
    size_t n_arguments;
    uint64_t given;                // bit i: the command line gives options[i]
    const char *data, *prompt, *save, *resume, *log;
    int recipe;
    Config config;
    uint64_t save_every, docs;
    uint64_t step, fingerprint;    // of the run and the documents, in model files only
    bool new, quiet, tsv, help, version;
} Options;

// What a model file stores beside the model.
typedef struct {
    Options options;               // those that the table of options marks as stored
    Random random;                 // where the random numbers were
    bool has_random;
    char missing[64];              // the first thing that a resume needs and the file lacks, or nothing
} Checkpoint;

// Where a model goes.
typedef struct {
    const char *name;              // as the user gave it
    char path[PATH_MAX], folder[PATH_MAX];         // with symbolic links followed
    char part[PATH_MAX + 64];      // the name while the file is not whole
    int reserve;                   // a descriptor for the first save, taken before the first step; or -1
} Target;

#define POINTS 256                 // of the loss curve, at most

// A long run, as it goes on.
typedef struct {
    Target target;                 // name: NULL if nothing is to be saved
    Output *log;                   // NULL if there is none
    bool show_lines, show_bar;     // a line for each step? a progress bar?
    bool plain, color;             // ASCII alone? colors?
    uint64_t steps_before, steps;  // that were done when the run began; all that there are to do
    uint64_t curve_start;          // steps before the curve; of a resumed run, its log may know some of the first
    double began, last_draw, last_flush;
    double smooth, smooth_weight;  // running mean of the loss, and how much of it is there
    double last_sum, last_n;       // of the losses of the last steps
    struct { double sum, n; } curve[POINTS];
} Progress;

// What a head does, on average.
typedef struct {
    double self, previous, first, elsewhere;     // shares of the attention; of two that fit, the one named first
    double entropy;                              // bits: 0 for one position alone, log2(n) for n alike
    double loss;                                 // of the model without this head
} HeadStats;

// The page that `microgpt page` writes, before the model is in it.
typedef struct {
    unsigned char *text;           // [n] the shipped page
    size_t n, place;               // where the model goes
    double *losses;                // [n_losses] that are in the log of the run
    size_t n_losses;
    uint64_t first;                // the step of the first of them
} Page;

// A command: all of it, freed in one place.
typedef struct Job {
    Run run;
    Options o;
    const char *argv0;
    Random rng;
    Checkpoint checkpoint;
    Progress progress;
    bool numbered;                 // samples: those after training are, as in Python
    uint64_t *known;               // samples: hashes of what they are compared with, [n_slots]
    size_t n_slots;                // a power of two
    uint64_t n_samples;            // samples: so many are done
    uint64_t n_known, known_in_a_row;    // samples that were known; how many of them since the last one that was not
    const double **weights;        // heads: what each looked at in one word, [position][layer][head]
    HeadStats *stats;              // heads: what each does over a file
    Page page;
} Job;

/* ------------------------------------------------------------------------------------------------------------------
 * Random numbers: the Mersenne Twister MT19937, seeded and read as Python's random module does it.
 */
static void random_seed(Random *rng, uint64_t seed)
{
    uint32_t *w = rng->words, key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    size_t n_key = key[1] ? 2 : 1, n = N_WORDS;
    w[0] = 19650218;
    for (size_t k = 1; k < n; k++) w[k] = 1812433253 * (w[k - 1] ^ (w[k - 1] >> 30)) + (uint32_t)k;
    for (size_t k = 0; k < 2 * n - 1; k++) {         // first the key goes in, then all is mixed once more
        size_t i = k % (n - 1) + 1, j = k % n_key;
        w[i] ^= (w[i - 1] ^ (w[i - 1] >> 30)) * (k < n ? 1664525 : 1566083941);
        w[i] += k < n ? key[j] + (uint32_t)j : -(uint32_t)i;
        if (i == n - 1) w[0] = w[i];
    }
    w[0] = 0x80000000;
    rng->used = n;
    rng->has_gauss = false;
}

static uint32_t random_word(Random *rng)
{
    uint32_t *w = rng->words;
    if (rng->used == N_WORDS) {
        for (size_t k = 0; k < N_WORDS; k++) {
            uint32_t y = (w[k] & 0x80000000) | (w[(k + 1) % N_WORDS] & 0x7fffffff);
            w[k] = w[(k + 397) % N_WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0df : 0);
        }
        rng->used = 0;
    }
    uint32_t y = w[rng->used++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return y ^ (y >> 18);
}

static double random_uniform(Random *rng)
{
    uint32_t a = random_word(rng) >> 5, b = random_word(rng) >> 6;
    return (a * 67108864.0 + b) / 9007199254740992.0;
}

static double random_gauss(Random *rng, double mean, double std)
{
    double z = rng->gauss_next;
    if (!rng->has_gauss) {
        double x = random_uniform(rng) * 6.283185307179586;
        double r = sqrt(-2.0 * log(1.0 - random_uniform(rng)));
        z = cos(x) * r;
        rng->gauss_next = sin(x) * r;
    }
    rng->has_gauss = !rng->has_gauss;
    return mean + z * std;
}

// Uniform from 0 to n - 1, for n below 2^32: as many bits as n has, drawn again until they are less than n.
static size_t random_below(Random *rng, size_t n)
{
    size_t bits = 0, r = n;
    while (n >> bits) bits++;
    while (r >= n) r = random_word(rng) >> (32 - bits);
    return r;
}

// The first index whose running sum of weights is above a uniform share of their total.
static size_t random_choice(Random *rng, const double *weights, size_t n)
{
    double total = 0, sum = weights[0];
    for (size_t k = 0; k < n; k++) total += weights[k];
    double u = random_uniform(rng) * total;
    size_t i = 0;
    while (sum <= u && i < n - 1) sum += weights[++i];
    return i;
}

// The index of the largest, the first of them if there are several.
static size_t argmax(const double *p, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) best = p[i] > p[best] ? i : best;
    return best;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Reading documents: UTF-8, a document a line. Lines end as in Python's text files (LF, CR LF or CR), and what Python
 * calls white space is taken off at both ends.
 */
// The first byte of a code point of 1 to 4 bytes, before bits of it go in.
static const unsigned char utf8_leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

// One code point from s, of which n bytes are left; its length goes to *used. -1: not UTF-8.
static int32_t decode_utf8(const unsigned char *s, size_t n, size_t *used)
{
    static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000};        // less is to be written in fewer bytes
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length > n || (s[0] & 0xc0) == 0x80) return -1;
    uint32_t code = s[0] - utf8_leads[length];
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return -1;
        code = code << 6 | (s[i] & 0x3f);
    }
    *used = length;
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < min[length] || surrogate || code >= N_CODES ? -1 : (int32_t)code;
}

static size_t encode_utf8(uint32_t code, char out[4])
{
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(utf8_leads[length] | code);
    return length;
}

// What a terminal would obey instead of showing it.
static bool is_control(uint32_t code) { return code < ' ' || (code >= 0x7f && code < 0xa0); }

static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

// Opens a file, again if a signal came in between. One that must be new is private at first. -1: it cannot be opened.
static int open_file(const char *name, int flags)
{
    int file;
    do {
        file = open(name, flags | O_CLOEXEC, flags & O_EXCL ? 0600 : 0666);
    } while (file < 0 && errno == EINTR);
    return file;
}

// Up to n bytes of an open file, fewer only at its end; reads again and waits as needed. -1: it cannot be read.
static ssize_t read_up_to(int file, void *bytes, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(file, (char *)bytes + done, n - done);
        if (got < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = file, .events = POLLIN}, 1, -1);
        } else if (got == 0 || (got < 0 && errno != EINTR)) {
            return got < 0 ? -1 : (ssize_t)done;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

// All bytes of an open file, and a zero after them, into memory that the caller frees.
static bool read_all(int file, unsigned char **bytes, size_t *n, const char *name)
{
    *bytes = NULL;
    *n = 0;
    for (size_t room = 0; *n == room;) {
        room = room ? 2 * room : 1 << 16;
        unsigned char *more = realloc(*bytes, room);
        if (!more) return no_memory();
        *bytes = more;
        ssize_t got = read_up_to(file, *bytes + *n, room - *n);
        if (got < 0) return fail_errno(name);
        *n += (size_t)got;
    }
    (*bytes)[*n] = '\0';
    return true;
}

// The documents in the text s. Their tokens are still code points.
static bool split_documents(const unsigned char *s, size_t n, Documents *docs, const char *name)
{
    size_t n_lines = 1, line = 1, used = 1;
    for (size_t i = 0; i < n; i++) n_lines += s[i] == '\n' || s[i] == '\r';
    docs->text = calloc(n + 1, sizeof *docs->text);
    docs->list = calloc(n_lines, sizeof *docs->list);
    if (!docs->text || !docs->list) return no_memory();
    uint32_t *start = docs->text, *end = start;         // the document being read
    for (size_t i = 0; i <= n; i += used) {
        int32_t code = i < n ? decode_utf8(s + i, n - i, &used) : '\n';
        if (code == '\n' && i > 0 && s[i - 1] == '\r') continue;           // CR has ended the line
        if (code == 0) return fail("%s:%zu: a zero byte: this is not a text file", name, line);
        if (code < 0) return fail("%s:%zu: not valid UTF-8; from Latin-1: iconv -f ISO-8859-1 -t UTF-8", name, line);
        if (code != '\n' && code != '\r') {
            if (start < end || !is_space((uint32_t)code)) *end++ = (uint32_t)code;
            continue;
        }
        while (start < end && is_space(end[-1])) end--;
        size_t length = (size_t)(end - start);
        docs->list[docs->n] = (Document){start, length, line++};
        docs->n += length > 0;                          // a blank line is no document
        docs->longest = length > docs->longest ? length : docs->longest;
        start = end;
    }
    docs->n_text = (size_t)(end - docs->text);
    if (docs->n == 0) return fail("%s: no documents: %s", name, n ? "every line is blank" : "the file is empty");
    return docs->n < UINT32_MAX || fail("%s: too many documents: %zu", name, docs->n);
}

// The folder of the running program, with a slash, or an empty string.
static void program_folder(const char *argv0, char *folder, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", folder, room - 1);
    if (n < 0) n = snprintf(folder, room, "%s", argv0);
    folder[n < (ssize_t)room ? n : 0] = '\0';
    char *slash = strrchr(folder, '/');
    folder[slash ? slash - folder + 1 : 0] = '\0';
}

#ifndef DATADIR
#define DATADIR "data"             // an installed program is told where that is
#endif

// A file that the program ships with: in data/ beside it, or where `make install` puts it. Its path goes to `name`.
static int open_shipped(const char *argv0, const char *shipped, char *name, size_t room)
{
    char folder[4096];
    program_folder(argv0, folder, sizeof folder);
    snprintf(name, room, "%sdata/%s", folder, shipped);
    if (!*folder) snprintf(name, room, "%s/%s", DATADIR, shipped);
    int file = open_file(name, O_RDONLY);
    if (file >= 0 || errno != ENOENT || !*folder) return file;
    snprintf(name, room, "%s../share/microgpt/%s", folder, shipped);
    return open_file(name, O_RDONLY);
}

// What messages call the file of the documents.
static const char *data_name(const Options *o)
{
    return !o->data ? "the shipped names" : strcmp(o->data, "-") == 0 ? "standard input" : o->data;
}

static struct stat data_file;                      // where the documents came from

static bool read_documents(Run *run)
{
    const Options *o = &run->job->o;
    char name[4200];
    snprintf(name, sizeof name, "%s", data_name(o));
    int file = !o->data ? open_shipped(run->job->argv0, "names.txt", name, sizeof name)
               : strcmp(o->data, "-") == 0 ? STDIN_FILENO : open_file(o->data, O_RDONLY);
    const char *hint = o->data ? "" : "; to use other documents: --data FILE";
    if (file < 0) return fail("%s: %s%s", name, strerror(errno), hint);
    unsigned char *bytes = NULL;
    size_t n = 0;
    bool ok = (fstat(file, &data_file) == 0 || fail_errno(name)) && read_all(file, &bytes, &n, name) &&
              split_documents(bytes, n, &run->docs, name);
    free(bytes);
    if (file != STDIN_FILENO) close(file);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Memory: all of it is taken before the first step. How much that is, is counted: what the model does at the last
 * position, where it does most, is written once on a tape that only counts. So gpt() and document_loss() can change
 * without a word here.
 */
static void free_model(Model *model)
{
    free(model->state_dict);
    free(model->layers);
    free(model->m);
    free(model->v);
    free(model->keys);
    free(model->values);
    free(model->tokens);
    tape_free(&model->tape);
}

// wte, wpe, lm_head, and those of the layers: a Layer holds nothing but pointers to matrices.
static uint64_t count_matrices(uint64_t n_layer) { return 3 + n_layer * (sizeof(Layer) / sizeof(Matrix *)); }

enum { LAYER_SQUARES = 12 };       // n_embd * n_embd numbers in a layer: 4 of attn_*, 4 each of mlp_fc1 and mlp_fc2

// How many parameters a model has at least: sizes that are out of reach are refused before they are multiplied.
static double min_parameters(const Model *model)
{
    double E = (double)model->n_embd, L = (double)model->n_layer;
    return (2 * (double)model->vocab_size + (double)model->block_size) * E + LAYER_SQUARES * L * E * E;
}

static bool fits_memory(double bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    double memory = pages > 0 && page > 0 ? (double)pages * (double)page : 1e300;
    return bytes <= memory && bytes < (double)SIZE_MAX / 4;
}

// Whether a model of so many bytes, `cache` of them to sample and `step` for a step, fits in memory. If not, says how
// much it needs, and which option takes most of it.
static bool model_fits(const Model *model, double bytes, double cache, double step)
{
    if (fits_memory(bytes)) return true;
    double E = (double)model->n_embd, row = 4 * sizeof(double) * E;
    double parts[] = {row * LAYER_SQUARES * E * (double)model->n_layer, row * 2 * (double)model->vocab_size,
                      row * (double)model->block_size + cache, step};
    static const char *const what[] = {"the layers: --n-embd, --n-layer", "the different characters: --n-embd",
                                       "the block: --block-size", "the documents of a step: --batch, --block-size"};
    return fail("not enough memory: a model of %.0f parameters needs %.1f GB, most of it for %s", min_parameters(model),
                bytes / 1e9, what[argmax(parts, 4)]);
}

// A tape with room for so much, or (0) one that only counts. It begins with the parameters.
static bool new_tape(Model *model, double values, double lines, double lanes, bool fused)
{
    if (!tape_init(&model->tape, (size_t)values, (size_t)lines, (size_t)lanes)) return false;
    model->tape.fused = fused;
    model->n_matrices = model->num_params = 0;
    model->params = model->tape.data;
    lay_out_parameters(model);
    ag_vector(&model->tape, model->num_params);
    tape_mark(&model->tape);
    return true;
}

// How much of the tape one position takes, the last of so many, and the cache for all of them.
typedef struct { double values, lines, cache; } PositionCost;

static PositionCost count_position(Model *model, size_t positions)
{
    Tape *tape = &model->tape;
    size_t vocab_size = model->vocab_size;
    tape_drop(tape);
    new_cache(model, positions);
    size_t before = tape->n_values, cache = before - tape->first_value;
    softmax(tape, ag_mul_const(tape, gpt(model, 0, positions - 1), 1, vocab_size), vocab_size);
    return (PositionCost){(double)(tape->n_values - before), (double)tape->n_lines, (double)cache};
}

// The same in training, where the loss is added: a whole document of one position, less the model at that position.
static PositionCost count_training(Model *model, size_t positions)
{
    Tape *tape = &model->tape;
    PositionCost cost = count_position(model, positions), first = count_position(model, 1);
    tape_drop(tape);
    document_loss(model, 1);
    cost.values += fmax((double)(tape->n_values - tape->first_value) - (first.values + first.cache), 0);
    cost.lines += fmax((double)tape->n_lines - first.lines, 0);
    return cost;
}

// Memory for a model of the sizes in *model, and for training it on batches of documents of up to `longest` characters.
static bool new_model(Model *model, size_t longest, uint64_t batch, bool fused)
{
    double value = 2 * sizeof(double);             // with its gradient; a parameter has Adam's memory, too
    if (!model_fits(model, 2 * value * min_parameters(model), 0, 0)) return false;
    size_t block_size = model->block_size, positions = longest + 1 < block_size ? longest + 1 : block_size;
    model->state_dict = calloc((size_t)count_matrices(model->n_layer), sizeof *model->state_dict);
    model->layers = calloc(model->n_layer, sizeof *model->layers);
    model->keys = calloc(model->n_layer, sizeof *model->keys);
    model->values = calloc(model->n_layer, sizeof *model->values);
    model->tokens = calloc(block_size + 1, sizeof *model->tokens);
    bool all = model->state_dict && model->layers && model->keys && model->values && model->tokens;
    if (!all || !new_tape(model, 0, 0, 0, fused)) return no_memory();
    PositionCost step = count_training(model, positions), sampling = count_position(model, block_size);
    double lanes = (double)batch * (double)positions, params = (double)model->tape.first_value;
    double spare = 16;                             // for the few values that train_step() and sample() add themselves
    double training = lanes * (step.values + spare + 1) + (double)batch * (step.cache + spare);
    double inference = sampling.values + sampling.cache + 2 * spare;
    double values = params + fmax(training, inference);
    double lines = fmax((lanes + (double)batch) * (step.lines + spare), sampling.lines + spare);
    double tables = lines * sizeof(Line) + lanes * sizeof(Line *);
    double bytes = (values + params) * value + tables;
    tape_free(&model->tape);
    if (!model_fits(model, bytes, inference * value, training * value + tables)) return false;
    model->m = calloc(model->num_params, sizeof *model->m);
    model->v = calloc(model->num_params, sizeof *model->v);
    return (model->m && model->v && new_tape(model, values, lines, lanes, fused)) || no_memory();
}

// Memory for the characters of a tokenizer, of which there are none yet.
static bool new_tokenizer(Tokenizer *tokenizer)
{
    *tokenizer = (Tokenizer){.uchars = calloc(N_CODES, sizeof *tokenizer->uchars),
                             .token_of = calloc(N_CODES, sizeof *tokenizer->token_of)};
    return (tokenizer->uchars && tokenizer->token_of) || no_memory();
}

static void free_tokenizer(Tokenizer *tokenizer)
{
    free(tokenizer->uchars);
    free(tokenizer->token_of);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The build for the debugger: every single + and * is a line of the tape, and there are views of a stopped run.
 */
#ifdef MICROGPT_DEBUG
enum { FUSED_TAPE = false };
#include "tests/debugger/views.c"
#else
enum { FUSED_TAPE = true };
#define watch(model, tokenizer) ((void)0)
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * Options: one table of all of them. The command line, the help and the model files are made from it.
 */
enum { TRAIN = 1, SAMPLE = 2, EVAL = 4, HEADS = 8, PAGE = 16 };        // commands
enum { RECIPE_MICROGPT, RECIPE_LESSON };                               // as --recipe lists them
typedef enum { FLAG, TEXT, NAME, COUNT, POSITIVE, SIZE, UINT64, REAL, FRACTION } Kind;      // whole numbers before REAL

static const struct { double min, max; } ranges[] = {
    [COUNT] = {0, 9007199254740992.0}, [POSITIVE] = {1, 9007199254740992.0}, [SIZE] = {1, 1048576},
    [UINT64] = {0, 18446744073709551615.0}, [REAL] = {0, 1e300}, [FRACTION] = {0, 0.9999999999999999},
};

// Whether a model file stores the option: as a property of the model, or (under a name that begins with train.) of the
// run that trains it. A resumed run takes over what the file stores; only what is FREE may then be given another value.
// What is OPTIONAL, older files lack: then it has its default. A new option is to be that, or they cannot be resumed.
typedef enum { NOT_STORED, OF_MODEL, OF_RUN, OF_RUN_OPTIONAL, OF_RUN_FREE } Stored;

typedef struct {
    const char *name, *argument;   // of a NAME, the names there are: "relu|relu2"
    char letter;
    unsigned commands;             // that take it; 0: only model files have it
    Kind kind;
    Stored stored;
    size_t offset;                 // of its field in Options
    const char *help;
} Option;

#define FIELD(name) offsetof(Options, name)
#define CONFIG(name) FIELD(config.name)

static const Option options[] = {
    {"data", "FILE", 0, TRAIN | EVAL | HEADS, TEXT, NOT_STORED, FIELD(data),
     "documents, one a line, UTF-8; - is standard input (default: the shipped names)"},
    {"new", NULL, 0, SAMPLE, FLAG, NOT_STORED, FIELD(new), "only names that are not in the data, each once"},
    {"data", "FILE", 0, SAMPLE, TEXT, NOT_STORED, FIELD(data), "what --new compares with (default: the shipped names)"},
    {"docs", "N", 0, EVAL, POSITIVE, NOT_STORED, FIELD(docs), "only the first N documents (default: all)"},
    {"docs", "N", 0, HEADS, POSITIVE, NOT_STORED, FIELD(docs), "only the first N documents (default: 1000)"},
    {"tsv", NULL, 0, HEADS, FLAG, NOT_STORED, FIELD(tsv), "tab-separated values, in full precision"},
    {"recipe", "microgpt|lesson", 0, TRAIN, NAME, OF_RUN, FIELD(recipe), "sets the defaults of the other options"},
    {"steps", "N", 0, TRAIN, COUNT, OF_RUN_FREE, CONFIG(steps), "training steps"},
    {"batch", "N", 0, TRAIN, SIZE, OF_RUN_OPTIONAL, CONFIG(batch), "documents a step"},
    {"holdout", "N", 0, TRAIN, COUNT, OF_RUN_OPTIONAL, CONFIG(holdout),
     "the last N documents are not trained on; their loss is printed"},
    {"seed", "N", 0, TRAIN, UINT64, OF_RUN, CONFIG(seed), "where the random numbers start"},
    {"seed", "N", 0, SAMPLE, UINT64, NOT_STORED, CONFIG(seed),
     "where the random numbers start (default: where training left them)"},
    {"n-layer", "N", 0, TRAIN, SIZE, OF_MODEL, CONFIG(n_layer), "layers"},
    {"n-embd", "N", 0, TRAIN, SIZE, OF_MODEL, CONFIG(n_embd), "width of the model, a multiple of --n-head"},
    {"n-head", "N", 0, TRAIN, SIZE, OF_MODEL, CONFIG(n_head), "attention heads in a layer"},
    {"block-size", "N", 0, TRAIN, SIZE, OF_MODEL, CONFIG(block_size), "characters of a document that are used"},
    {"lr", "X", 0, TRAIN, REAL, OF_RUN_FREE, CONFIG(lr), "learning rate at the first step"},
    {"beta1", "X", 0, TRAIN, FRACTION, OF_RUN_FREE, CONFIG(beta1), "Adam: share of the gradients' mean that is kept"},
    {"beta2", "X", 0, TRAIN, FRACTION, OF_RUN_FREE, CONFIG(beta2), "Adam: the same for their squares"},
    {"init-std", "X", 0, TRAIN, REAL, OF_RUN, CONFIG(init_std), "spread of the parameters at the start"},
    {"activation", "relu|relu2", 0, TRAIN, NAME, OF_MODEL, CONFIG(activation), "in the MLP; relu2 is relu squared"},
    {"schedule", "linear|cosine", 0, TRAIN, NAME, OF_RUN_FREE, CONFIG(schedule), "how the learning rate falls to 0"},
    {"samples", "N", 0, TRAIN | SAMPLE, COUNT, NOT_STORED, CONFIG(samples), "names to print"},
    {"temperature", "X", 0, TRAIN | SAMPLE, REAL, NOT_STORED, CONFIG(temperature), "0 takes the likeliest character"},
    {"prompt", "TEXT", 0, TRAIN | SAMPLE, TEXT, NOT_STORED, FIELD(prompt), "how every name begins"},
    {"save", "FILE", 0, TRAIN, TEXT, NOT_STORED, FIELD(save), "write the model file at the end, and on an interrupt"},
    {"save-every", "N", 0, TRAIN, POSITIVE, NOT_STORED, FIELD(save_every), "and every N steps (default: only then)"},
    {"resume", "FILE", 0, TRAIN, TEXT, NOT_STORED, FIELD(resume),
     "go on with the run that wrote this model file, with its options"},
    {"log", "FILE", 0, TRAIN, TEXT, NOT_STORED, FIELD(log), "write step,loss,lr of every step as CSV"},
    {"log", "FILE", 0, PAGE, TEXT, NOT_STORED, FIELD(log), "the CSV of its run, to show its loss curve"},
    {"quiet", NULL, 'q', ~0u, FLAG, NOT_STORED, FIELD(quiet), "no progress, no step lines, no notes"},
    {"help", NULL, 'h', ~0u, FLAG, NOT_STORED, FIELD(help), "print this and exit"},
    {"version", NULL, 0, ~0u, FLAG, NOT_STORED, FIELD(version), "print the version and exit"},
    {"step", NULL, 0, 0, COUNT, OF_RUN, FIELD(step), NULL},
    {"fingerprint", NULL, 0, 0, UINT64, OF_RUN, FIELD(fingerprint), NULL},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };
_Static_assert(N_OPTIONS <= 64, "Options.given has a bit for each");

static const Options recipes[] = {
    [RECIPE_MICROGPT] = {.recipe = RECIPE_MICROGPT, .config = {
        .steps = 1000, .batch = 1, .seed = 42, .n_layer = 1, .n_embd = 16, .n_head = 4, .block_size = 16,
        .lr = 0.01, .beta1 = 0.85, .beta2 = 0.99, .init_std = 0.08, .activation = RELU, .schedule = LINEAR,
        .samples = 20, .temperature = 0.5}},
    [RECIPE_LESSON] = {.recipe = RECIPE_LESSON, .config = {
        .steps = 500, .batch = 1, .seed = 42, .n_layer = 1, .n_embd = 16, .n_head = 4, .block_size = 8,
        .lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .init_std = 0.02, .zero_outputs = true, .activation = RELU2,
        .schedule = COSINE, .samples = 20, .temperature = 0.5}},
};

// The position of value in names, which are separated by |; -1 if it is none of them.
static int find_name(const char *names, const char *value)
{
    for (int i = 0; *names; i++) {
        size_t length = strcspn(names, "|");
        if (strncmp(names, value, length) == 0 && !value[length]) return i;
        names += length + (names[length] == '|');
    }
    return -1;
}

// Checks an option's value, and sets its field.
static bool set_option(Options *o, const Option *option, const char *value)
{
    char *field = (char *)o + option->offset, *end = NULL;
    double min = ranges[option->kind].min, max = ranges[option->kind].max;
    errno = 0;
    if (option->kind == FLAG) {
        *(bool *)field = !value || *value;         // a model file has "1" or nothing
    } else if (option->kind == TEXT) {
        *(const char **)field = value;
    } else if (option->kind == NAME) {
        int i = find_name(option->argument, value);
        if (i < 0) return usage("--%s %s: not one of %s", option->name, value, option->argument);
        *(int *)field = i;
    } else if (option->kind < REAL) {
        uint64_t n = strtoull(value, &end, 10), limit = option->kind == UINT64 ? UINT64_MAX : (uint64_t)max;
        bool whole = *value && !*end && !value[strspn(value, "-0123456789")];
        bool in_range = errno != ERANGE && !(*value == '-' && n) && (double)n >= min && n <= limit;
        if (!whole) return usage("--%s %s: not a whole number", option->name, value);
        if (!in_range) return usage("--%s %s: out of range: %.0f to %" PRIu64, option->name, value, min, limit);
        *(uint64_t *)field = n;
    } else {
        double x = strtod(value, &end);
        bool number = *value && !*end && !value[strspn(value, "+-.0123456789eE")];
        bool in_range = isfinite(x) && x >= min && x <= max;
        if (!number) return usage("--%s %s: not a number", option->name, value);
        if (!in_range) return usage("--%s %s: out of range: %.16g to %.16g", option->name, value, min, max);
        *(double *)field = x;
    }
    return true;
}

// An option's value in o, as text: of a number, as many digits as it takes to give the same number again.
static void option_text(const Option *option, const Options *o, char *text, size_t room)
{
    const char *field = (const char *)o + option->offset;
    text[0] = '\0';
    if (option->kind >= REAL) {
        double x = *(const double *)field;
        int digits = 1;
        do {
            snprintf(text, room, "%.*g", digits, x);
        } while (digits++ < 17 && (strtod(text, NULL) < x || strtod(text, NULL) > x));
    } else if (option->kind > NAME) {
        snprintf(text, room, "%" PRIu64, *(const uint64_t *)field);
    } else if (option->kind == FLAG && *(const bool *)field) {
        snprintf(text, room, "1");
    } else if (option->kind == NAME) {
        const char *names = option->argument;
        for (int i = *(const int *)field; i > 0; i--) names += strcspn(names, "|") + 1;
        snprintf(text, room, "%.*s", (int)strcspn(names, "|"), names);
    }
}

static bool was_given(const Options *o, size_t offset)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (options[i].offset == offset && o->given >> i & 1) return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Model files: safetensors. Eight bytes give the length of a header, the header is JSON, and after it come the
 * numbers of all tensors, without gaps. First the reading: a file may come from anyone, so all that it says is checked
 * before it is used.
 */
#define MAX_HEADER 100000000       // bytes: the format's own limit
#define STORED_ROOM 144            // for an option as a member of the metadata
#define N_RANDOM (N_WORDS + 3)     // numbers in train.random: the words, how many are used, the gauss cache
#define CHECKSUM "fnv1a64:%016" PRIx64             // as it is in the metadata: the hash FNV-1a of all numbers
#define FNV_START 14695981039346656037u
#define FNV_PRIME 1099511628211u
static const char *const prefixes[] = {"", "train.m.", "train.v."};        // of a matrix: its numbers, Adam's m and v

// A place in the header. Strings are decoded in place, which never makes them longer. The first thing that is wrong is
// remembered, and the text is made to end there: so it is enough to ask for it once there is nothing more to read.
typedef struct {
    char *at, *end;                // at the end there is a zero
    const char *expected;          // what should have been there instead; NULL: nothing is wrong
} Json;

static void json_expect(Json *json, const char *expected)
{
    if (json->expected) return;
    json->expected = expected;
    json->end = json->at;
    *json->end = '\0';
}

static void json_space(Json *json) { json->at += strspn(json->at, " \t\n\r"); }

// Reads a mark, if it is the next. If it is not, that is wrong, unless `expected` is NULL.
static bool json_mark(Json *json, char mark, const char *expected)
{
    json_space(json);
    bool next = *json->at == mark;
    json->at += next;
    if (!next && expected) json_expect(json, expected);
    return next;
}

// Comes before every member of an object or a list: whether there is one more. If not, the closing mark is read.
static bool json_next(Json *json, bool first, char close)
{
    if (json_mark(json, close, NULL)) return false;
    if (!first) json_mark(json, ',', "a comma");
    return !json->expected;
}

// Four hexadecimal digits; -1: they are not.
static int32_t json_hex(Json *json)
{
    char digits[5] = "";
    size_t n = strspn(strncpy(digits, json->at, 4), "0123456789abcdefABCDEF");
    json->at += n;
    return n == 4 ? (int32_t)strtol(digits, NULL, 16) : -1;
}

// What follows a backslash. Code points above 0xffff are two escapes, a high and a low surrogate. -1: wrong.
static int32_t json_escape(Json *json)
{
    static const char marks[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    char c = *json->at;
    json->at += json->at < json->end;
    if (c && strchr(marks, c)) return codes[strchr(marks, c) - marks];
    int32_t code = c == 'u' ? json_hex(json) : -1;
    if (code < 0xd800 || code > 0xdfff) return code;
    if (code > 0xdbff || strncmp(json->at, "\\u", 2) != 0) return -1;
    json->at += 2;
    int32_t low = json_hex(json);
    return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static const char *json_string(Json *json)
{
    json_mark(json, '"', "a string");
    char *start = json->at, *to = start;
    while (!json->expected) {
        size_t used = 0;
        int32_t code = decode_utf8((unsigned char *)json->at, (size_t)(json->end - json->at), &used);
        if (code < 0x20) {
            json_expect(json, json->at < json->end ? "valid UTF-8 without control characters" : "the end of a string");
            break;
        }
        json->at += used;
        if (code == '"') break;
        if (code == '\\' && (code = json_escape(json)) <= 0) {
            json_expect(json, "a valid escape");
            break;
        }
        to += encode_utf8((uint32_t)code, to);
    }
    *to = '\0';
    return start;
}

static const char *json_key(Json *json)
{
    const char *key = json_string(json);
    json_mark(json, ':', "a colon");
    return key;
}

// A whole number that fits 64 bits.
static uint64_t json_number(Json *json)
{
    json_space(json);
    const char *start = json->at;
    uint64_t number = 0;
    for (; *json->at >= '0' && *json->at <= '9'; json->at++) {
        uint64_t digit = (uint64_t)(*json->at - '0');
        if (number > (UINT64_MAX - digit) / 10 || (json->at > start && *start == '0')) {
            json_expect(json, "a whole number of 64 bits");
            break;
        }
        number = number * 10 + digit;
    }
    if (json->at == start) json_expect(json, "a whole number");
    return number;
}

// A list of up to `max` whole numbers. Returns how many there are.
static size_t json_list(Json *json, uint64_t *list, size_t max)
{
    size_t n = 0;
    bool more;
    json_mark(json, '[', "a list of numbers");
    while ((more = json_next(json, n == 0, ']')) && n < max) list[n++] = json_number(json);
    if (more) json_expect(json, "a shorter list");
    return n;
}

typedef struct {
    const char *name;              // first, as in a Pair: by_name() compares both
    const char *dtype;
    uint64_t shape[8];
    size_t n_dims;
    uint64_t width;                // bytes of a number
    uint64_t begin, end;           // the bytes, counted from the end of the header
    double *to;                    // where the numbers go; NULL: nowhere
} Tensor;

typedef struct { const char *name, *value; } Pair;

typedef struct {
    const char *path;
    char *bytes;                   // the header, which all names and strings point into
    Tensor *tensors;               // [n_tensors]
    Pair *metadata;                // [n_metadata]
    size_t n_tensors, n_metadata;
    uint64_t data_size;            // bytes of all tensors together
} Header;

static void parse_metadata(Header *header, Json *json)
{
    json_mark(json, '{', "an object of strings");
    while (json_next(json, header->n_metadata == 0, '}')) {
        const char *name = json_key(json);
        header->metadata[header->n_metadata++] = (Pair){name, json_string(json)};
    }
}

// {"dtype": "F64", "shape": [27, 16], "data_offsets": [0, 3456]}, each of the three once, in any order.
static void parse_tensor(Tensor *tensor, const char *name, Json *json)
{
    enum { DTYPE, SHAPE, OFFSETS };
    bool seen[3] = {false};
    size_t n_seen = 0;
    uint64_t offsets[2] = {0};
    json_mark(json, '{', "an object");
    for (; json_next(json, n_seen == 0, '}'); n_seen++) {
        int key = find_name("dtype|shape|data_offsets", json_key(json));
        if (key < 0 || seen[key]) {
            json_expect(json, "dtype, shape and data_offsets before this, once each");
            break;
        }
        seen[key] = true;
        if (key == DTYPE) tensor->dtype = json_string(json);
        if (key == SHAPE) tensor->n_dims = json_list(json, tensor->shape, 8);
        if (key == OFFSETS && json_list(json, offsets, 2) < 2) json_expect(json, "two offsets");
    }
    if (n_seen < 3) json_expect(json, "dtype, shape and data_offsets before this");
    tensor->name = name;
    tensor->begin = offsets[0];
    tensor->end = offsets[1];
}

static void parse_header(Header *header, Json *json)
{
    bool has_metadata = false;
    if (*json->at != '{') json_expect(json, "an object");      // not even a space may come before it
    json_mark(json, '{', "an object");
    for (bool first = true; json_next(json, first, '}'); first = false) {
        const char *name = json_key(json);
        if (strcmp(name, "__metadata__") == 0) {
            if (has_metadata) json_expect(json, "no second __metadata__");
            parse_metadata(header, json);
            has_metadata = true;
        } else {
            parse_tensor(&header->tensors[header->n_tensors++], name, json);
        }
    }
    json_space(json);
    if (json->at < json->end) json_expect(json, "the end of the header");
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

// Sorts tensors or pairs. Returns a name that is there twice, or NULL.
static const char *sort_by_name(void *array, size_t n, size_t size)
{
    qsort(array, n, size, by_name);
    for (char *at = array; n > 1; n--, at += size) {
        if (by_name(at, at + size) == 0) return *(const char **)at;
    }
    return NULL;
}

static int by_place(const void *a, const void *b)
{
    const Tensor *s = a, *t = b;
    return s->begin != t->begin ? (s->begin < t->begin ? -1 : 1) : s->end < t->end ? -1 : s->end > t->end;
}

// The tensor, or the metadata, of this name; NULL: there is none.
static Tensor *find_tensor(const Header *header, const char *name)
{
    return bsearch(&name, header->tensors, header->n_tensors, sizeof *header->tensors, by_name);
}

static const char *find_metadata(const Header *header, const char *name)
{
    const Pair *found = bsearch(&name, header->metadata, header->n_metadata, sizeof *found, by_name);
    return found ? found->value : NULL;
}

// Shapes, types and offsets: each tensor's bytes are as many as its shape says, and all of them together are the data,
// one after the other. The tensors are put in the order of their names.
static bool check_tensors(Header *header)
{
    static const char *const dtypes[] = {          // [bytes of a number]
        [8] = "F64|I64|U64", [4] = "F32|I32|U32", [2] = "F16|BF16|I16|U16", [1] = "I8|U8|BOOL",
    };
    if (header->n_tensors == 0) return fail("%s: it holds no tensors", header->path);
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_place);
    for (size_t i = 0; i < header->n_tensors; i++) {
        Tensor *t = &header->tensors[i];
        t->width = 8;
        while (t->width && find_name(dtypes[t->width], t->dtype) < 0) t->width /= 2;
        if (!t->width) return fail("%s: tensor %s: no such dtype: %s", header->path, t->name, t->dtype);
        uint64_t bytes = t->width;
        for (size_t k = 0; k < t->n_dims; k++) {
            if (t->shape[k] && bytes > UINT64_MAX / t->shape[k]) {
                return fail("%s: tensor %s: its shape is too large", header->path, t->name);
            }
            bytes *= t->shape[k];
        }
        if (t->end < t->begin || t->end - t->begin != bytes) {
            return fail("%s: tensor %s: its offsets do not fit its shape", header->path, t->name);
        }
        if (t->begin != header->data_size) {
            return fail("%s: tensor %s: %s before its data", header->path, t->name,
                        t->begin > header->data_size ? "a gap" : "an overlap");
        }
        header->data_size = t->end;
    }
    const char *twice = sort_by_name(header->tensors, header->n_tensors, sizeof *header->tensors);
    return !twice || fail("%s: two tensors named %s", header->path, twice);
}

// A whole number, from little-endian bytes.
static uint64_t decode_word(const unsigned char *bytes, uint64_t width)
{
    uint64_t word = 0;
    for (uint64_t i = width; i-- > 0;) word = word << 8 | bytes[i];
    return word;
}

// So many bytes of the file, which must not end before them.
static bool read_bytes(int file, void *bytes, size_t n, const Header *header, const char *if_it_ends)
{
    ssize_t got = read_up_to(file, bytes, n);
    return got == (ssize_t)n || fail("%s: %s", header->path, got < 0 ? strerror(errno) : if_it_ends);
}

// The header, read and checked as far as it can be without knowing what the model should look like.
static bool read_header(int file, Header *header)
{
    unsigned char length_bytes[8];
    struct stat info;
    bool regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    if (!read_bytes(file, length_bytes, 8, header, "not a model file: too short for a header")) return false;
    uint64_t length = decode_word(length_bytes, 8), size = regular ? (uint64_t)info.st_size : UINT64_MAX;
    if (length < 2 || length > MAX_HEADER || length > size - 8) {
        return fail("%s: not a model file: the header's length cannot be right", header->path);
    }
    header->bytes = calloc((size_t)length + 1, 1);
    header->tensors = calloc((size_t)length / 40 + 1, sizeof *header->tensors);     // each has so many bytes, or more
    header->metadata = calloc((size_t)length / 5 + 1, sizeof *header->metadata);
    if (!header->bytes || !header->tensors || !header->metadata) return no_memory();
    if (!read_bytes(file, header->bytes, (size_t)length, header, "it ends within the header")) return false;
    Json json = {.at = header->bytes, .end = header->bytes + length};
    parse_header(header, &json);
    if (json.expected) {
        return fail("%s: header, byte %td: expected %s", header->path, json.at - header->bytes, json.expected);
    }
    const char *twice = sort_by_name(header->metadata, header->n_metadata, sizeof *header->metadata);
    if (twice) return fail("%s: metadata: %s is there twice", header->path, twice);
    return check_tensors(header) &&
           (!regular || size - 8 - length == header->data_size ||
            fail("%s: %" PRIu64 " bytes of data, but the header describes %" PRIu64, header->path, size - 8 - length,
                 header->data_size));
}

// The characters of the vocabulary, each once. A line's end can be none of them, as no document holds one.
static bool read_vocab(const Header *header, const char *vocab, Tokenizer *tokenizer)
{
    size_t n = strlen(vocab), used = 0;
    bool ok = n > 0;
    if (!new_tokenizer(tokenizer)) return false;
    for (size_t i = 0; ok && i < n; i += used) {
        uint32_t code = (uint32_t)decode_utf8((const unsigned char *)vocab + i, n - i, &used);
        ok = code != '\n' && code != '\r' && !tokenizer->token_of[code];
        tokenizer->uchars[tokenizer->BOS++] = code;
        tokenizer->token_of[code] = (uint32_t)tokenizer->BOS;
    }
    tokenizer->vocab_size = tokenizer->BOS + 1;
    return ok || fail("%s: metadata: vocab is not a row of different characters", header->path);
}

// An option's key in the metadata: n_embd, train.init_std.
static void metadata_key(const Option *option, char *key, size_t room)
{
    snprintf(key, room, "%s%s", option->stored == OF_MODEL ? "" : "train.", option->name);
    for (; *key; key++) *key = *key == '-' ? '_' : *key;
}

// An option as a member of the metadata, after a comma; "" if it is not stored.
static const char *stored_text(const Option *option, const Options *o, char text[STORED_ROOM])
{
    char key[64], value[64];
    metadata_key(option, key, sizeof key);
    option_text(option, o, value, sizeof value);
    snprintf(text, STORED_ROOM, ",\"%s\":\"%s\"", key, value);
    return option->stored ? text : "";
}

static void note_missing(Checkpoint *checkpoint, const char *what)
{
    if (!checkpoint->missing[0]) snprintf(checkpoint->missing, sizeof checkpoint->missing, "%s", what);
}

// The configuration of the model, and what is stored of the run.
static bool read_metadata(const Header *header, Checkpoint *checkpoint, Tokenizer *tokenizer)
{
    Options *o = &checkpoint->options;
    *o = recipes[RECIPE_MICROGPT];
    const char *format = find_metadata(header, "format"), *vocab = find_metadata(header, "vocab");
    if (!format || strcmp(format, "microgpt") != 0) {
        return fail("%s: not a model of this program: metadata: format is not microgpt", header->path);
    }
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        char key[64];
        if (!option->stored) continue;
        metadata_key(option, key, sizeof key);
        const char *value = find_metadata(header, key);
        if (!value && option->stored == OF_MODEL) return fail("%s: metadata: %s is missing", header->path, key);
        if (!value && option->stored != OF_RUN_OPTIONAL) note_missing(checkpoint, key);
        if (value && !set_option(o, option, value)) {
            return fail("%s: metadata: %s is not valid: %s", header->path, key, value);
        }
    }
    if (o->config.n_embd % o->config.n_head) {
        return fail("%s: metadata: n_embd is not a multiple of n_head", header->path);
    }
    if (!vocab) return fail("%s: metadata: vocab is missing", header->path);
    return read_vocab(header, vocab, tokenizer);
}

// Says where a tensor's numbers go. It must be there, in its shape; only what a resume alone needs may be missing.
static bool place_tensor(const Header *header, const char *prefix, const Matrix *w, double *to, Checkpoint *checkpoint)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", prefix, w->name);
    Tensor *t = find_tensor(header, name);
    if (!t) {
        note_missing(checkpoint, name);
        return strncmp(name, "train.", 6) == 0 || fail("%s: tensor %s is missing", header->path, name);
    }
    bool fits = t->n_dims == (w->cols ? 2 : 1) && t->shape[0] == w->rows && t->shape[1] == w->cols;
    if (!fits) return fail("%s: tensor %s: its shape does not fit the configuration", header->path, name);
    t->to = to;
    return find_name("F64|F32", t->dtype) >= 0 ||
           fail("%s: tensor %s: its dtype is %s, not F64 or F32", header->path, name, t->dtype);
}

static double decode_number(const unsigned char *bytes, uint64_t width)
{
    union { uint64_t word; double number; } f64 = {decode_word(bytes, width)};
    union { uint32_t word; float number; } f32 = {(uint32_t)f64.word};
    return width == 4 ? (double)f32.number : f64.number;
}

// The hash FNV-1a of bytes, after those whose hash is given.
static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * FNV_PRIME;
    return hash;
}

// The data, in the order of the file. It must fit the checksum, if there is one, and the file must end after it.
static bool read_data(int file, Header *header)
{
    static unsigned char bytes[1 << 14];           // room for whole numbers, whatever their width
    char checksum[32];
    const char *expected = find_metadata(header, "checksum");
    uint64_t hash = FNV_START;
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_place);
    for (size_t i = 0; i < header->n_tensors; i++) {
        Tensor *t = &header->tensors[i];
        if (!t->to && strncmp(t->name, "train.", 6) != 0) {
            return fail("%s: tensor %s: the model has none of this name", header->path, t->name);
        }
        double *to = t->to;
        for (uint64_t at = t->begin, n; at < t->end; at += n) {
            n = t->end - at < sizeof bytes ? t->end - at : sizeof bytes;
            if (!read_bytes(file, bytes, (size_t)n, header, "it ends within the data")) return false;
            hash = hash_bytes(hash, bytes, (size_t)n);
            for (uint64_t k = 0; to && k < n; k += t->width, to++) {
                *to = decode_number(bytes + k, t->width);
                if (!isfinite(*to)) {
                    return fail("%s: tensor %s: number %td is not finite", header->path, t->name, to - t->to + 1);
                }
            }
        }
    }
    snprintf(checksum, sizeof checksum, CHECKSUM, hash);
    if (expected && strcmp(expected, checksum) != 0) {
        return fail("%s: damaged: the numbers do not fit the checksum; if they were changed on purpose, remove "
                    "checksum from the metadata", header->path);
    }
    ssize_t more = read_up_to(file, bytes, 1);
    return more == 0 || fail("%s: %s", header->path, more < 0 ? strerror(errno) : "it goes on after the data");
}

// The random generator, to and from the numbers of train.random.
static void pack_random(const Random *random, double *numbers)
{
    for (size_t i = 0; i < N_WORDS; i++) numbers[i] = random->words[i];
    numbers[N_WORDS] = (double)random->used;
    numbers[N_WORDS + 1] = random->has_gauss;
    numbers[N_WORDS + 2] = random->has_gauss ? random->gauss_next : 0;
}

static bool unpack_random(Random *random, const double *numbers)
{
    for (size_t i = 0; i < 626; i++) {
        double x = numbers[i], max = i < N_WORDS ? 4294967295.0 : i == N_WORDS ? N_WORDS : 1;
        if (x < 0 || x > max || x != floor(x)) return false;
    }
    const double *rest = numbers + N_WORDS;
    *random = (Random){.used = (size_t)rest[0], .has_gauss = rest[1] > 0, .gauss_next = rest[2]};
    for (size_t i = 0; i < N_WORDS; i++) random->words[i] = (uint32_t)numbers[i];
    return true;
}

// A model of the sizes that the configuration says, without memory yet.
static Model sized_model(const Config *config, size_t vocab_size)
{
    return (Model){.n_layer = (size_t)config->n_layer, .n_embd = (size_t)config->n_embd,
                   .n_head = (size_t)config->n_head, .head_dim = (size_t)(config->n_embd / config->n_head),
                   .block_size = (size_t)config->block_size, .vocab_size = vocab_size,
                   .activation = config->activation};
}

// The model, its tokenizer and what else is stored, from an open file.
static bool read_model(int file, Header *header, size_t longest, Run *run, Checkpoint *checkpoint)
{
    const Options *o = &checkpoint->options;
    Model *model = &run->model;
    if (!read_header(file, header) || !read_metadata(header, checkpoint, &run->tokenizer)) return false;
    // Memory is taken only for a model whose numbers the file could hold.
    *model = sized_model(&o->config, run->tokenizer.vocab_size);
    if (min_parameters(model) * 4 > (double)header->data_size ||
        count_matrices(o->config.n_layer) > header->n_tensors) {
        return fail("%s: the tensors are too few or too small for the configuration", header->path);
    }
    if (!new_model(model, longest, run->resumed ? o->config.batch : 1, FUSED_TAPE)) return false;
    model->steps_done = o->step;

    double numbers[N_RANDOM] = {0}, *const vectors[] = {model->params, model->m, model->v};
    Matrix train_random = {.name = "train.random", .rows = N_RANDOM};
    Tensor *random = find_tensor(header, train_random.name);
    if (!place_tensor(header, "", &train_random, numbers, checkpoint)) return false;
    bool exact = random && random->width == 8;     // in fewer bits its words would not be what they were
    for (size_t i = 0; i < model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i];
        for (size_t p = 0; p < 3; p++) {
            double *to = vectors[p] + (w->data - model->params);
            if (!place_tensor(header, prefixes[p], w, to, checkpoint)) return false;
        }
    }
    if (!read_data(file, header)) return false;
    if (random && !exact) note_missing(checkpoint, "train.random in F64");
    checkpoint->has_random = exact;
    return !exact || unpack_random(&checkpoint->random, numbers) ||
           fail("%s: tensor train.random: not the state of the random generator", header->path);
}

static void free_header(Header *header)
{
    free(header->bytes);
    free(header->tensors);
    free(header->metadata);
}

// Loads a model file, for work on documents of up to `longest` characters.
static bool load_model(Job *job, const char *path, size_t longest)
{
    Header header = {.path = path};
    int file = open_file(path, O_RDONLY);
    if (file < 0) return fail_errno(path);
    bool ok = read_model(file, &header, longest, &job->run, &job->checkpoint);
    free_header(&header);
    close(file);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Writing model files. A file appears whole or not at all: it is written beside its final name, flushed to disk, and
 * then takes that name in one move. A run can be interrupted while it writes, too.
 */
static sigset_t handled;                           // the signals that on_signal() takes
static volatile sig_atomic_t running;              // there is work to lose: the first signal lets a step finish
static char *volatile unfinished;                  // the file that is being written, if there is one

static void on_signal(int signal_number)
{
    (void)signal_number;
    if (interrupted || !running) {
        if (unfinished) unlink(unfinished);
        _exit(INTERRUPTED);
    }
    interrupted = 1;
}

// A signal interrupts a call that waits, so no SA_RESTART. What was ignored from the start stays so, as under nohup.
static void handle_signals(void)
{
    static const int signals[] = {SIGINT, SIGHUP, SIGTERM};
    struct sigaction ours = {.sa_handler = on_signal}, before;
    sigemptyset(&handled);
    ours.sa_mask = handled;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &before) != 0 || before.sa_handler == SIG_IGN) continue;
        sigaction(signals[i], &ours, NULL);
        sigaddset(&handled, signals[i]);
    }
}

// Signals wait from here on, or no longer.
static void hold_signals(bool held) { sigprocmask(held ? SIG_BLOCK : SIG_UNBLOCK, &handled, NULL); }

// Opens the file beside the final one; a long name is cut, between characters, so that the suffix fits. -1: it cannot.
static int open_part(Target *target)
{
    const char *slash = strrchr(target->path, '/'), *base = slash ? slash + 1 : target->path;
    size_t length = strlen(base), used = length < 200 ? length : 200;
    while (used < length && ((unsigned char)base[used] & 0xc0) == 0x80) used--;
    int fd = -1, folder = (int)(base - target->path), prefix = folder + (int)used;
    snprintf(target->folder, sizeof target->folder, "%.*s.", folder, target->path);
    hold_signals(true);
    for (unsigned i = 0; fd < 0 && i < 100 && (i == 0 || errno == EEXIST); i++) {
        sprintf(target->part, "%.*s.%ld-%u.part", prefix, target->path, (long)getpid(), i);
        fd = open_file(target->part, O_WRONLY | O_CREAT | O_EXCL);
    }
    unfinished = fd >= 0 ? target->part : NULL;
    hold_signals(false);                           // which leaves errno alone
    return fd;
}

// The new file gets the mode, the group and the owner of the file that it replaces, as far as that is permitted. It is
// no failure of the save if it is not; but another group gets nothing.
static void take_mode(const Target *target, int fd)
{
    struct stat old;
    mode_t mask = umask(0);
    umask(mask);
    mode_t mode = 0666 & ~mask;
    if (stat(target->path, &old) == 0) {
        mode = old.st_mode & 0777;
        if (fchown(fd, old.st_uid, old.st_gid) < 0 && fchown(fd, (uid_t)-1, old.st_gid) < 0) mode &= 0707;
    }
    fchmod(fd, mode);
}

// Finds out, before any work is done, whether a model can be written under this name. Touches nothing that is there.
static bool find_target(Target *target, const char *name)
{
    struct stat info;
    target->name = name;
    bool there = realpath(name, target->path);
    if (there && (stat(target->path, &info) < 0 || access(target->path, W_OK) < 0)) return fail_errno(name);
    if (there && !S_ISREG(info.st_mode)) return fail("%s: not a regular file", name);
    if (!there && (errno != ENOENT || !*name)) return fail_errno(name);
    if (!there && lstat(name, &info) == 0) return fail("%s: a link that leads nowhere", name);
    if (!there) snprintf(target->path, sizeof target->path, "%s", name);
    target->reserve = open_part(target);
    if (target->reserve < 0) return fail_errno(name);
    dup2(STDERR_FILENO, target->reserve);          // closes the file and keeps the descriptor
    unlink(target->part);
    unfinished = NULL;
    return true;
}

// The header, which the caller frees: the configuration, what is stored of the run, and a line for every tensor.
static bool new_header(Options o, uint64_t step, const Run *run, uint64_t hash, char **header, size_t *length)
{
    const Model *model = &run->model;
    char pair[STORED_ROOM];
    FILE *out = open_memstream(header, length);
    if (!out) return no_memory();
    o.step = step;
    fprintf(out, "{\"__metadata__\":{\"format\":\"microgpt\",\"checksum\":\"" CHECKSUM "\"", hash);
    for (size_t i = 0; i < N_OPTIONS; i++) fputs(stored_text(&options[i], &o, pair), out);
    fprintf(out, ",\"vocab\":\"");
    for (size_t i = 0; i < run->tokenizer.BOS; i++) {
        uint32_t code = run->tokenizer.uchars[i];
        char bytes[4];
        if (code < 0x20) {
            fprintf(out, "\\u%04x", (unsigned)code);
        } else {
            fprintf(out, "%s%.*s", code == '"' || code == '\\' ? "\\" : "", (int)encode_utf8(code, bytes), bytes);
        }
    }
    fprintf(out, "\"}");
    size_t at = 0;
    for (size_t p = 0; p < 3; p++) {
        for (size_t i = 0; i < model->n_matrices; i++) {
            const Matrix *w = &model->state_dict[i];
            size_t end = at + 8 * w->rows * w->cols;
            fprintf(out, ",\"%s%s\":{\"dtype\":\"F64\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}", prefixes[p],
                    w->name, w->rows, w->cols, at, end);
            at = end;
        }
    }
    fprintf(out, ",\"train.random\":{\"dtype\":\"F64\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}}", N_RANDOM, at,
            at + 8 * N_RANDOM);
    fprintf(out, "%*s", (int)((8 - ftell(out) % 8) % 8), "");      // the numbers begin at a multiple of eight
    bool error = ferror(out), ok = fclose(out) == 0 && !error;
    if (ok && *length <= MAX_HEADER) return true;
    free(*header);
    return fail(ok ? "%s: too many layers for a model file" : "%s: not enough memory", o.save);
}

// Whether the model can be saved, as far as that can be known before the first step.
static bool can_save(Target *target, const Options *o, const Run *run)
{
    size_t length;
    char *header;
    if (!find_target(target, o->save) || !new_header(*o, o->config.steps, run, 0, &header, &length)) return false;
    free(header);
    return true;
}

static const unsigned char *encode_word(uint64_t word, unsigned char bytes[8])
{
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(word >> 8 * i);
    return bytes;
}

static const unsigned char *encode_number(double number, unsigned char bytes[8])
{
    union { double number; uint64_t word; } f64 = {number};
    return encode_word(f64.word, bytes);
}

// Writes the model, and what a resume needs. If the finished file cannot take its final name, it stays where it is.
static bool save_model(Target *target, const Options *o, const Run *run)
{
    static Output out;
    const Model *model = &run->model;
    unsigned char bytes[8];
    double numbers[N_RANDOM];
    pack_random(run->rng, numbers);
    const double *const parts[] = {model->params, model->m, model->v, numbers};
    const size_t sizes[] = {model->num_params, model->num_params, model->num_params, N_RANDOM};
    uint64_t hash = FNV_START;
    for (size_t p = 0; p < 4; p++) {
        if (!all_finite(parts[p], sizes[p])) {
            return fail("%s: not saved: a parameter is no longer finite", target->name);
        }
        for (size_t i = 0; i < sizes[p]; i++) hash = hash_bytes(hash, encode_number(parts[p][i], bytes), 8);
    }
    size_t length;
    char *header;
    if (!new_header(*o, model->steps_done, run, hash, &header, &length)) return false;
    if (target->reserve >= 0) close(target->reserve);
    target->reserve = -1;
    out.file = open_part(target);
    out.error = out.file < 0 ? errno : 0;
    put_bytes(&out, encode_word(length, bytes), 8);
    put_bytes(&out, header, length);
    for (size_t p = 0; p < 4; p++) {
        for (size_t i = 0; i < sizes[p]; i++) put_bytes(&out, encode_number(parts[p][i], bytes), 8);
    }
    free(header);
    flush(&out);
    if (out.file >= 0) take_mode(target, out.file);
    while (!out.error && fsync(out.file) < 0) out.error = errno == EINTR ? 0 : errno;
    if (out.file >= 0 && close(out.file) < 0 && !out.error) out.error = errno;
    hold_signals(true);
    bool whole = !out.error, renamed = whole && rename(target->part, target->path) == 0;
    out.error = whole ? errno : out.error;
    if (!whole && out.file >= 0) unlink(target->part);
    unfinished = NULL;
    // The new name, too, is to outlast a power failure. Where a folder cannot be flushed, that is the best there is.
    int folder = open_file(target->folder, O_RDONLY | O_DIRECTORY);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
    if (!interrupted) hold_signals(false);         // otherwise it was the last save: nothing may cut off its message
    return renamed || fail(whole ? "%s: not saved under this name: %s; the model is in %s" : "%s: not saved: %s",
                           target->name, strerror(out.error), target->part);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Long runs: the step's line, progress on a terminal, the log, a save now and then, an interrupt.
 */
#define REDRAW_SECONDS 0.05
#define FLUSH_SECONDS 0.25         // that a row of the log may wait
#define LAST_STEPS 100             // whose mean loss is told at the end

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// How wide the terminal is that an open file leads to, or `otherwise` if nobody knows.
static size_t terminal_columns(int file, size_t otherwise)
{
    (void)file;
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col) return size.ws_col;
#endif
    return otherwise;
}

// Whether the terminal shows more than ASCII, as far as the environment tells.
static bool shows_unicode(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = "", *term = getenv("TERM");
    for (size_t i = 0; !*locale && i < 3; i++) {
        const char *value = getenv(names[i]);
        locale = value ? value : "";
    }
    bool utf8 = strstr(locale, "UTF-8") || strstr(locale, "utf8") || strstr(locale, "utf-8") || strstr(locale, "UTF8");
    return utf8 && term && strcmp(term, "linux") != 0 && strcmp(term, "dumb") != 0;
}

// The bar is for people: nothing of it where standard error is no terminal, or standard output a pipe.
static void set_up_progress(Progress *progress, const Options *o, uint64_t steps_done)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    struct stat out;
    bool piped = fstat(STDOUT_FILENO, &out) != 0 || S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode);
    progress->show_bar = !o->quiet && !piped && isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    progress->show_lines = !o->quiet && !(progress->show_bar && isatty(STDOUT_FILENO));
    progress->plain = !shows_unicode();
    progress->color = !(no_color && *no_color);
    progress->steps_before = progress->curve_start = steps_done;
    progress->steps = o->config.steps;
    progress->began = progress->last_draw = progress->last_flush = seconds();
}

// How many points the curve of so many steps has.
static size_t curve_points(uint64_t steps) { return steps < POINTS ? (size_t)steps : POINTS; }

static void add_to_curve(Progress *progress, uint64_t step, double loss)
{
    uint64_t steps = progress->steps - progress->curve_start;
    size_t i = (size_t)((step - progress->curve_start) * curve_points(steps) / steps);
    progress->curve[i].sum += loss;
    progress->curve[i].n++;
    if (progress->steps - step <= LAST_STEPS) {
        progress->last_sum += loss;
        progress->last_n++;
    }
    progress->smooth = 0.99 * progress->smooth + 0.01 * loss;
    progress->smooth_weight = 0.99 * progress->smooth_weight + 0.01;
}

// Seconds as people read them.
static void time_text(double s, char *text, size_t room)
{
    unsigned t = s < 1e9 ? (unsigned)(s + 0.5) : 1000000000;
    if (t < 3600) {
        snprintf(text, room, "%u:%02u", t / 60, t % 60);
    } else if (t < 100 * 3600) {
        snprintf(text, room, "%u:%02u:%02u", t / 3600, t / 60 % 60, t % 60);
    } else {
        snprintf(text, room, "%u days", t / 86400);
    }
}

// One line, whatever the width: the most important figures that fit, and a bar in what is left. now is after began.
// The cursor goes back to its beginning: if the terminal shrinks and breaks the line, the next is drawn over all of it.
static void draw_bar(const Progress *progress, uint64_t done, double now)
{
    size_t columns = terminal_columns(STDERR_FILENO, 80) - 1, used = 0;        // with one more the line would wrap
    double rate = (double)(done - progress->steps_before) / (now - progress->began);
    char parts[4][64], left[32];
    time_text((double)(progress->steps - done) / rate, left, sizeof left);
    snprintf(parts[0], sizeof parts[0], "%" PRIu64 "/%" PRIu64, done, progress->steps);
    snprintf(parts[1], sizeof parts[1], "loss %.2f", progress->smooth / progress->smooth_weight);
    snprintf(parts[2], sizeof parts[2], rate < 10 ? "%.1f steps/s" : "%.0f steps/s", rate);
    snprintf(parts[3], sizeof parts[3], "%s left", left);
    if (strlen(parts[0]) + 2 + strlen(parts[1]) > columns) {
        snprintf(parts[0], sizeof parts[0], "%.0f%%", 100 * (double)done / (double)progress->steps);
    }
    static const size_t importance[] = {0, 1, 3, 2};
    bool fits[4];
    for (size_t k = 0; k < 4; k++) {
        size_t i = importance[k], length = strlen(parts[i]) + (used ? 2 : 0);
        fits[i] = used + length <= columns;
        used += fits[i] ? length : 0;
    }

    // A bar's mark takes up to three bytes, and one or two colors are switched on and off.
    char text[512] = "\r", *at = text + 1;
    size_t room = columns - used, cells = room < 10 ? 0 : room > 42 ? 40 : room - 2;
    size_t full = (size_t)((double)done / (double)progress->steps * (double)cells);
    at += sprintf(at, "%s", cells && progress->color ? "\033[36m" : "");
    for (size_t i = 0; i < cells; i++) {
        at += sprintf(at, "%s%s", i == full && progress->color ? "\033[0;2m" : "",
                      progress->plain ? (i < full ? "#" : ".") : (i < full ? "\u2501" : "\u2500"));
    }
    at += sprintf(at, "%s", cells ? (progress->color ? "\033[0m  " : "  ") : "");
    for (size_t i = 0, n = 0; i < 4; i++) {
        if (fits[i]) at += sprintf(at, "%s%s", n++ ? "  " : "", parts[i]);
    }
    at += sprintf(at, "\033[J\r");
    fwrite(text, 1, (size_t)(at - text), stderr);
}

// The loss curve, six lines high: in Braille, which has two by four dots to a character, or in ASCII.
static void draw_curve(const Progress *progress, double took)
{
    enum { ROWS = 6, WIDEST = 64 };
    uint64_t all = progress->steps - progress->curve_start, now = progress->steps - progress->steps_before;
    size_t columns = terminal_columns(STDERR_FILENO, 80) - 1, points = curve_points(all);
    size_t across = progress->plain ? 1 : 2, up = progress->plain ? 2 : 4;
    if (columns < 16 || points < 2) return;
    size_t room = across * (columns - 10 < WIDEST ? columns - 10 : WIDEST);
    size_t n = room < points ? room : points, width = (n + across - 1) / across;

    // The points that fall into one column, averaged; then each column with its neighbours, for a quieter line.
    double mean[2 * WIDEST] = {0}, y[2 * WIDEST] = {0}, low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        double sum = 0, count = 0;
        for (size_t k = i * points / n; k < (i + 1) * points / n; k++) {
            sum += progress->curve[k].sum;
            count += progress->curve[k].n;
        }
        mean[i] = count > 0 ? sum / count : i ? mean[i - 1] : 0;       // a log may have gaps
    }
    for (size_t i = 0; i < n; i++) {
        size_t reach = i < n / 40 ? i : n / 40, count = 0;
        for (size_t k = i - reach; k <= i + reach && k < n; k++, count++) y[i] += mean[k];
        y[i] /= (double)count;
        low = y[i] < low ? y[i] : low;
        high = y[i] > high ? y[i] : high;
    }

    // Bits of a Braille character, from the lower left dot up, then the right column; in ASCII, a low or a high dot.
    static const unsigned char dots[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
    unsigned char cells[ROWS][WIDEST] = {{0}};
    for (size_t i = 0, before = 0; i < n; i++) {
        size_t level = high > low ? (size_t)((y[i] - low) / (high - low) * (double)(ROWS * up - 1) + 0.5) : 0;
        before = i && !progress->plain ? before : level;
        for (size_t k = level < before ? level : before; k <= (level < before ? before : level); k++) {
            if (k == level || k != before) cells[k / up][i / across] |= dots[i % across][k % up];
        }
        before = level;
    }
    char title[96], last_part[48] = "";
    if (now < all) snprintf(last_part, sizeof last_part, "the last %" PRIu64 " ", now);
    snprintf(title, sizeof title, "loss over %" PRIu64 " steps, %sin %.*f s", all, last_part, took < 10 ? 2 : 0, took);
    fprintf(stderr, "%.*s\n", (int)columns, title);
    for (size_t row = ROWS; row-- > 0;) {
        char label[32] = "";
        if (row == ROWS - 1 || row == 0) snprintf(label, sizeof label, "%.2f", row ? high : low);
        fprintf(stderr, "%7.7s %s%s", label, progress->plain ? "|" : row == ROWS - 1 || row == 0 ? "\u2524" : "\u2502",
                progress->color ? "\033[36m" : "");
        for (size_t i = 0; i < width; i++) {
            char bytes[4];
            uint32_t cell = cells[row][i], ascii = cell == dots[0][0] ? '.' : '\'';
            uint32_t code = !cell ? ' ' : progress->plain ? ascii : 0x2800 + cell;
            fprintf(stderr, "%.*s", (int)encode_utf8(code, bytes), bytes);
        }
        fprintf(stderr, "%s\n", progress->color ? "\033[0m" : "");
    }
    int used = fprintf(stderr, "%9s%" PRIu64 " ", "", progress->curve_start + 1), left = 9 + (int)width - used;
    fprintf(stderr, "%*" PRIu64 "\n", left > 0 ? left : 0, progress->steps);
}

#define LOG_HEADING "step,loss,lr\n"

// All of a log that is open. What else it must be, `wanted` says.
static bool read_log(int file, const char *name, const char *wanted, unsigned char **text, size_t *n)
{
    return read_all(file, text, n, name) &&
           (strncmp((char *)*text, LOG_HEADING, strlen(LOG_HEADING)) == 0 ||
            fail("%s: not a log %s: it does not begin with step,loss,lr", name, wanted));
}

// The step of a row, and its loss, which is not finite if there is none. What comes after them goes to *end.
static uint64_t read_row(const unsigned char *row, double *loss, char **end)
{
    uint64_t step = strtoull((const char *)row, end, 10);
    *loss = **end == ',' && (*end)[1] != ',' ? strtod(*end + 1, end) : NAN;
    return step;
}

// The log of a resumed run goes on after the last step that the model file knows; later rows are cut off, as the same
// steps will be done again. A file that is not such a log is left alone.
static bool open_log(Progress *progress, const Options *o)
{
    struct stat info, out;
    static Output log;
    bool there = stat(o->log, &info) == 0;
    if (there && fstat(STDOUT_FILENO, &out) == 0 && info.st_dev == out.st_dev && info.st_ino == out.st_ino) {
        progress->log = &standard_output;          // rows among what is printed anyway, in order; on a terminal, alone
        progress->show_bar = progress->show_bar && !isatty(STDOUT_FILENO);
        return true;
    }
    bool old = o->resume && there && S_ISREG(info.st_mode) && info.st_size > 0;
    log.file = open_file(o->log, old ? O_RDWR : O_WRONLY | O_CREAT | O_TRUNC);
    if (log.file < 0) return fail_errno(o->log);
    progress->log = &log;
    if (!old) {
        put(&log, LOG_HEADING);
        return true;
    }
    unsigned char *text = NULL, *newline;
    char *rest;
    size_t n = 0, end = strlen(LOG_HEADING);
    bool ok = read_log(log.file, o->log, "that can be continued", &text, &n);
    while (ok && (newline = memchr(text + end, '\n', n - end))) {
        double loss;
        *newline = '\0';
        uint64_t step = read_row(text + end, &loss, &rest);
        if (step > progress->steps_before) break;
        if (progress->show_bar && step && isfinite(loss)) {
            if (progress->curve_start == progress->steps_before) progress->curve_start = step - 1;
            if (step > progress->curve_start) add_to_curve(progress, step - 1, loss);
        }
        end = (size_t)(newline - text) + 1;
    }
    free(text);
    return ok && ((ftruncate(log.file, (off_t)end) == 0 && lseek(log.file, (off_t)end, SEEK_SET) >= 0) ||
                  fail_errno(o->log));
}

static void update_progress(Progress *progress, uint64_t done)
{
    double now = seconds();
    if (progress->show_bar && now - progress->last_draw > REDRAW_SECONDS) {
        progress->last_draw = now;
        draw_bar(progress, done, now);
    }
    if (progress->log && now - progress->last_flush > FLUSH_SECONDS) {
        progress->last_flush = now;
        flush(progress->log);
    }
}

// If the run is to be saved, saves it. The log does not lag the model file, unless it takes no more.
static bool save_run(Job *job)
{
    if (job->progress.log) flush(job->progress.log);
    return !job->o.save || save_model(&job->progress.target, &job->o, &job->run);
}

// The run ends early, by a signal or because its output takes no more: what became of it. False always.
static bool fail_stopped(const Job *job)
{
    const Options *o = &job->o;
    const Output *log = job->progress.log;
    hold_signals(true);                            // nothing is left to lose but this message
    if (!interrupted && standard_output.error && !o->save) return output_ok();
    const Output *failed = interrupted ? NULL : log && log->error ? log : &standard_output;
    bool closed = failed == &standard_output && failed->error == EPIPE && dies_of_sigpipe;
    char reason[PATH_MAX + 256] = "", where[PATH_MAX + 16] = "not saved, as --save was not given";
    if (failed) {
        const char *name = failed == log ? o->log : "standard output";
        snprintf(reason, sizeof reason, "%s: %s; ", name, strerror(failed->error));
    }
    if (o->save) snprintf(where, sizeof where, "saved in %s", o->save);
    return fail_as(interrupted ? INTERRUPTED : closed ? PIPE_CLOSED : FAILED,
                   "%sinterrupted after step %" PRIu64 " of %" PRIu64 "; %s", reason, job->run.model.steps_done,
                   o->config.steps, where);
}

static bool after_step(Run *run, uint64_t step, double loss)
{
    Job *job = run->job;
    Progress *progress = &job->progress;
    Output *log = progress->log;
    uint64_t done = step + 1, save_every = job->o.save_every, steps = run->config->steps;
    char line_end = job->o.recipe == RECIPE_LESSON ? '\n' : '\r';
    if (!isfinite(loss)) {
        return fail("step %" PRIu64 ": the loss is not finite (%s); a smaller --lr or --init-std may help", done,
                    isnan(loss) ? "not a number" : "infinite");
    }
    if (progress->show_lines) say("step %4" PRIu64 " / %4" PRIu64 " | loss %.4f%c", done, steps, loss, line_end);
    if (log == &standard_output && step == progress->steps_before) say(LOG_HEADING);
    if (log) put(log, "%" PRIu64 ",%.17g,%.17g\n", done, loss, learning_rate(run->config, step));
    if (progress->show_bar) add_to_curve(progress, step, loss);
    if (progress->show_bar || log) update_progress(progress, done);
    if (interrupted || standard_output.error || (log && log->error)) return save_run(job) && fail_stopped(job);
    return !save_every || done % save_every || done == steps || save_run(job);
}

static bool is_file(const char *name, const struct stat *file)
{
    struct stat info;
    return name && stat(name, &info) == 0 && S_ISREG(info.st_mode) && info.st_dev == file->st_dev &&
           info.st_ino == file->st_ino;
}

// Whether two names lead to the same file.
static bool same_file(const char *a, const char *b)
{
    struct stat info;
    return b && stat(b, &info) == 0 && is_file(a, &info);
}

// Before the first step. What can be found wrong at once is found here, and not after an hour.
static bool begin_progress(Job *job)
{
    static const char two_things[] = "%s: it cannot be two things at once: --data, --save, --log and --resume";
    const Options *o = &job->o;
    Progress *progress = &job->progress;
    set_up_progress(progress, o, job->run.model.steps_done);
    if (is_file(o->save, &data_file) || same_file(o->save, o->log)) return usage(two_things, o->save);
    if (is_file(o->log, &data_file) || same_file(o->log, o->resume)) return usage(two_things, o->log);
    if (o->save && !can_save(&progress->target, o, &job->run)) return false;
    if (o->log && !open_log(progress, o)) return false;
    if (same_file(o->save, o->log)) {                    // two names of a file that was not there before
        unlink(progress->target.path);
        return usage(two_things, o->save);
    }
    running = 1;
    return true;
}

// After the last step; or, with ok false, after a failure or an interrupt.
static bool end_progress(Job *job, bool ok)
{
    Progress *progress = &job->progress;
    Output *log = progress->log;
    if (progress->show_bar) fputs("\r\033[J", stderr);
    double took = seconds() - progress->began;
    ok = ok && save_run(job) && (!interrupted || fail_stopped(job));
    if (log) {
        flush(log);
        if (log != &standard_output && close(log->file) < 0 && !log->error) log->error = errno;
        if (ok && log->error) ok = fail("%s: %s", job->o.log, strerror(log->error));
    }
    if (progress->show_bar && ok) {
        draw_curve(progress, took);
        double n = progress->last_n;
        if (n > 0) fprintf(stderr, "mean loss of the last %.0f steps: %.4f\n", n, progress->last_sum / n);
    }
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------------
 * What the heads see. Attention is read off the tape: every weighted sum there is one head at one position, and its
 * first operand is the weights, one for each position that was looked at.
 */
// The next weighted sum from *line on, or NULL. Its layer, head and position follow from how many came before.
static const Line *next_attention(const Tape *tape, size_t *line)
{
    while (*line < tape->n_lines && tape->lines[*line].op != OP_WEIGHTED_SUM) ++*line;
    return *line < tape->n_lines ? &tape->lines[(*line)++] : NULL;
}

// Adds up what each head looked at in the document that was just run.
static void add_attention(const Model *model, HeadStats *stats)
{
    size_t n_heads = model->n_layer * model->n_head, line = model->tape.first_line, k = 0;
    for (const Line *attention; (attention = next_attention(&model->tape, &line)); k++) {
        HeadStats *head = &stats[k % n_heads];
        size_t query = k / n_heads;
        for (size_t key = 0; key < attention->n; key++) {
            double weight = attention->a[key];
            double *share = key == query ? &head->self : key + 1 == query ? &head->previous
                          : key == 0 ? &head->first : &head->elsewhere;
            *share += weight;
            head->entropy -= weight > 0 ? weight * log2(weight) : 0;
        }
    }
}

// The mean loss over the documents' *n_tokens tokens. Unless it is NULL, what each head looked at is added to `stats`.
static double mean_loss(Model *model, const Document *docs, size_t n_docs, size_t *n_tokens, HeadStats *stats)
{
    double sum = 0;
    *n_tokens = 0;
    for (size_t i = 0; i < n_docs; i++) {
        tape_drop(&model->tape);
        size_t n = take_document(model, &docs[i]);
        double *loss = document_loss(model, n);
        tape_compute(&model->tape);
        sum += *loss * (double)n;
        *n_tokens += n;
        if (stats) add_attention(model, stats);
    }
    return sum / (double)*n_tokens;
}

// The loss with one head silenced: its columns of attn_wo, which are all that its output meets, are set to zero. The
// matrix is kept in Adam's memory, which only training needs.
static double loss_without(Model *model, const Document *docs, size_t n_docs, size_t layer, size_t head)
{
    Matrix *wo = model->layers[layer].attn_wo;
    double *backup = model->m;
    size_t bytes = wo->rows * wo->cols * sizeof *backup, n_tokens;
    memcpy(backup, wo->data, bytes);
    for (size_t row = 0; row < wo->rows; row++) {
        memset(wo->data + row * wo->cols + head * model->head_dim, 0, model->head_dim * sizeof *backup);
    }
    double loss = mean_loss(model, docs, n_docs, &n_tokens, NULL);
    memcpy(wo->data, backup, bytes);
    return loss;
}

// How wide the views are, and whether they are drawn with digits, block characters, or colors.
typedef struct { size_t width; enum { DIGITS, BLOCKS, COLORS } paint; } Screen;

static Screen screen_of_output(void)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR"), *columns = getenv("COLUMNS");
    bool draws = isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    size_t wished = columns ? strtoul(columns, NULL, 10) : 0;
    if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "");          // for wcwidth() alone
    return (Screen){.width = terminal_columns(STDOUT_FILENO, wished > 0 && wished < 10000 ? wished : 80),
                    .paint = draws && !(no_color && *no_color) ? COLORS : shows_unicode() ? BLOCKS : DIGITS};
}

// A text, broken between words where the screen ends; what follows on is indented.
PRINTF_LIKE(2, 3) static void say_wrapped(Screen screen, const char *format, ...)
{
    char whole[512] = "", *text = whole;
    size_t column = 0;
    va_list args;
    va_start(args, format);
    if (vsnprintf(whole, sizeof whole, format, args) < 0) standard_output.error = EOVERFLOW;
    va_end(args);
    while (*text) {
        size_t bytes = strcspn(text, " "), columns = 0;
        for (size_t i = 0; i < bytes; i++) columns += ((unsigned char)text[i] & 0xc0) != 0x80;
        bool first = text == whole, fits = first || column + 1 + columns <= screen.width;
        say("%s%.*s", first ? "" : fits ? " " : "\n  ", (int)bytes, text);
        column = (first ? 0 : fits ? column + 1 : 2) + columns;
        text += bytes + (text[bytes] == ' ');
    }
    say("\n");
}

// What is shown for position i, and how many columns it takes. ^ is the start; what cannot be seen is made visible.
typedef struct { char text[8]; int columns; } Label;

static Label label_of(const Run *run, Screen screen, size_t i)
{
    uint32_t code = i ? run->tokenizer.uchars[run->model.tokens[i]] : '^';
    if (is_space(code)) code = screen.paint == DIGITS ? '_' : 0x2423;      // an open box
    if (is_control(code)) code = '?';
    int columns = wcwidth((wchar_t)code);
    Label label = {"", columns > 0 ? columns : 1};
    if (columns == 0) strcpy(label.text, "\u25cc");                // a mark that goes onto the character before it
    bool steers = (code >= 0x200b && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
                  (code >= 0x2060 && code <= 0x206f);              // joins or turns the text around it
    if (!steers) encode_utf8(code, label.text + strlen(label.text));
    return label;
}

static void say_label(Label label, size_t width)
{
    int left = ((int)width - label.columns) / 2, right = (int)width - label.columns - left;
    say("%*s%s%*s", left, "", label.text, right, "");
}

// One entry of a map. The strongest of its row says its percentage, where a cell is wide enough.
static void say_cell(Screen screen, double weight, bool strongest, size_t width)
{
    static const int ramp[] = {234, 236, 17, 18, 19, 26, 32, 38, 44, 50, 87};
    int tenths = (int)(weight * 10 + 0.5);
    bool faint = weight < 0.05, colors = screen.paint == COLORS;
    if (colors) say("\033[48;5;%d;38;5;%dm", ramp[tenths], tenths > 5 ? 16 : 255);
    if (strongest && width == 3) {
        say(weight < 0.995 ? "%2.0f%%" : "%.0f", 100 * weight);
    } else if (colors) {
        say("%*s", (int)width, "");
    } else if (screen.paint == DIGITS) {
        say_label((Label){{faint ? '.' : (char)('0' + (tenths < 9 ? tenths : 9))}, 1}, width);
    } else if (faint) {
        say_label((Label){"·", 1}, width);
    } else {
        const char *block = weight < 0.15 ? "░" : weight < 0.3 ? "▒" : weight < 0.5 ? "▓" : "█";
        for (size_t i = 0; i < width; i++) say("%s", block);
    }
    if (colors) say("\033[0m");
}

// The maps of n positions, as many side by side as fit. Where a row of cells with percentages is too wide, the cells
// are as narrow as the labels, and the percentage of the strongest comes after the row.
static void draw_maps(const Run *run, const double *const *weights, size_t n, Screen screen)
{
    const Model *model = &run->model;
    size_t n_heads = model->n_layer * model->n_head, widest = 1;
    for (size_t i = 0; i < n; i++) widest = label_of(run, screen, i).columns > 1 ? 2 : widest;
    size_t margin = widest + 1, cell = margin + 3 * n <= screen.width ? 3 : widest;
    size_t one = margin + cell * n + (cell < 3 ? 5 : 0), gap = 3;
    one = one < 16 ? 16 : one;                                     // room for the title
    size_t fit = (screen.width + gap) / (one + gap), abreast = fit ? fit : 1;
    for (size_t from = 0; from < n_heads; from += abreast) {
        size_t to = from + abreast < n_heads ? from + abreast : n_heads;
        for (size_t h = from; h < to; h++) {
            char title[64];
            snprintf(title, sizeof title, "layer %zu head %zu", h / model->n_head, h % model->n_head);
            say("%-*s", h + 1 < to ? (int)(one + gap) : 0, title);
        }
        for (size_t row = 0; row <= n; row++) {                    // row 0: the labels of the columns
            say("\n");
            for (size_t h = from; h < to; h++) {
                // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): the tape has weights for each of them
                const double *w = row ? weights[(row - 1) * n_heads + h] : NULL;
                size_t strongest = argmax(w, row), used = margin + cell * (row ? row : n);
                say_label(row ? label_of(run, screen, row - 1) : (Label){"", 0}, widest);
                say(" ");
                for (size_t key = 0; !row && key < n; key++) say_label(label_of(run, screen, key), cell);
                for (size_t key = 0; key < row; key++) say_cell(screen, w[key], key == strongest, cell);
                if (row && cell < 3) {
                    say("%*s %3.0f%%", (int)(cell * (n - row)), "", 100 * w[strongest]);
                    used = margin + cell * n + 5;
                }
                if (h + 1 < to) say("%*s", (int)(one + gap - used), "");
            }
        }
        say("\n\n");
    }
    static const char *const others[] = {
        [DIGITS] = "the others in tenths (. under 5%)",
        [BLOCKS] = "the others as · under 5%, ░ under 15%, ▒ under 30%, ▓ under 50%, █ above",
        [COLORS] = "the others in shades, brighter for more",
    };
    say_wrapped(screen, "Rows look at columns; ^ is the start. The strongest of a row in percent, %s.",
                others[screen.paint]);
}

static void say_map_values(const Model *model, const double *const *weights, size_t n)
{
    size_t n_heads = model->n_layer * model->n_head;
    say("layer\thead\tquery\tkey\tweight\n");
    for (size_t k = 0; k < n_heads * n; k++) {
        size_t h = k / n, query = k % n;
        // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): as in draw_maps()
        const double *w = weights[query * n_heads + h];
        for (size_t key = 0; key <= query; key++) {
            say("%zu\t%zu\t%zu\t%zu\t%.17g\n", h / model->n_head, h % model->n_head, query, key, w[key]);
        }
    }
}

// One row a head; on a narrow screen, a few lines a head.
static void say_stats(const Model *model, const HeadStats *stats, double loss, Screen screen)
{
    size_t n_heads = model->n_layer * model->n_head;
    bool wide = screen.width >= 80;
    const Screen row = {.width = wide ? SIZE_MAX : screen.width};          // in a table it is not broken
    double max = 0;
    for (size_t h = 0; h < n_heads; h++) max = fmax(max, fabs(stats[h].loss - loss));
    if (wide) say("layer head   self previous  first elsewhere entropy loss_without  change\n");
    for (size_t h = 0; h < n_heads; h++) {
        HeadStats head = stats[h];
        double change = head.loss - loss;
        int marks = max > 0 ? (int)(7 * fabs(change) / max + 0.5) : 0;
        bool blocks = shows_unicode();                                     // of three bytes each
        say_wrapped(row, wide ? "%5zu %4zu %5.1f%% %7.1f%% %5.1f%% %8.1f%% %7.2f %12.4f %+7.4f%s%.*s"
                              : "layer %zu head %zu: self %.1f%%, previous %.1f%%, first %.1f%%, elsewhere %.1f%%, "
                                "entropy %.2f, loss_without %.4f, change %+.4f%s%.*s",
                    h / model->n_head, h % model->n_head, 100 * head.self, 100 * head.previous, 100 * head.first,
                    100 * head.elsewhere, head.entropy, head.loss, change, marks ? " " : "",
                    blocks ? 3 * marks : marks, blocks ? "███████" : "#######");
    }
    say("\n");
    say_wrapped(screen, "The loss with all heads: %.4f", loss);
}

// What stands out, in words, and only if the numbers support it.
static void say_findings(const Model *model, const HeadStats *stats, double loss, Screen screen)
{
    bool any = false;
    for (size_t h = 0; h < model->n_layer * model->n_head; h++) {
        HeadStats head = stats[h];
        double change = head.loss - loss;
        const struct { bool holds; const char *text; double figure; } findings[] = {
            {head.previous > 0.5, "looks back one character more than half of the time: %.1f%%.", 100 * head.previous},
            {head.self > 0.5, "looks at its own position more than half of the time: %.1f%%.", 100 * head.self},
            {head.first > 0.5, "looks at the first position more than half of the time: %.1f%%.", 100 * head.first},
            {fabs(change) < 0.005, "hardly matters: without it the loss changes by %+.4f.", change},
            {change <= -0.005, "is in the way: without it the loss is lower, by %.4f.", -change},
        };
        for (size_t i = 0; i < sizeof findings / sizeof findings[0]; i++) {
            if (!findings[i].holds) continue;
            char text[128];
            snprintf(text, sizeof text, findings[i].text, findings[i].figure);
            say("%s", any ? "" : "\nWhat stands out:\n");
            say_wrapped(screen, "- Layer %zu head %zu %s", h / model->n_head, h % model->n_head, text);
            any = true;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Page: the model as one HTML file. All that it shows, it computes itself: data/page.html is the whole of it but for
 * the model, which goes in at one place as JSON. Nothing in there can end the JSON, or the script that holds it.
 */
#define PAGE_PARAMS 1000000        // a page of more would be larger than 32 MB, and a browser would no longer answer
#define PAGE_POINTS 1000           // of the loss curve, at most
#define PAGE_MARK "THE MODEL"      // stands where it goes

static bool read_page(Page *page, const char *argv0)
{
    char name[4200];
    int file = open_shipped(argv0, "page.html", name, sizeof name);
    if (file < 0) return fail_errno(name);
    bool ok = read_all(file, &page->text, &page->n, name);
    close(file);
    const char *text = (char *)page->text, *place = ok ? strstr(text, PAGE_MARK) : NULL;
    page->place = place ? (size_t)(place - text) : 0;
    return ok && (place || fail("%s: no place for the model in it", name));
}

// The losses in a log, one a step, without a gap. After its last line there may be a part of one.
static bool read_losses(Page *page, const char *name)
{
    unsigned char *text = NULL, *newline;
    size_t n = 0, at = strlen(LOG_HEADING);
    int file = open_file(name, O_RDONLY);
    if (file < 0) return fail_errno(name);
    bool ok = read_log(file, name, "of a run", &text, &n);
    close(file);
    if (ok) page->losses = malloc(n / 4 * sizeof *page->losses); // a line has four characters at the least
    if (ok && !page->losses) ok = no_memory();
    while (ok && (newline = memchr(text + at, '\n', n - at))) {
        char *end;
        double loss;
        uint64_t step = read_row(text + at, &loss, &end);
        page->first = page->n_losses ? page->first : step;
        ok = (*end == ',' && end <= (char *)newline && isfinite(loss) && step == page->first + page->n_losses) ||
             fail("%s:%zu: not the step,loss,lr of the next step", name, page->n_losses + 2);
        if (ok) page->losses[page->n_losses++] = loss;
        at = (size_t)(newline - text) + 1;
    }
    free(text);
    return ok && (page->n_losses || fail("%s: not a log of a run: no step in it", name));
}

static void say_character(uint32_t code)
{
    if (code > 0xffff) {                                 // an escape has 16 bits: two of them
        say("\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)), (unsigned)(0xdc00 + (code & 0x3ff)));
    } else {
        bool plain = code >= ' ' && code < 0x7f && !strchr("\"\\<>&'", (int)code);
        say(plain ? "%c" : "\\u%04x", (int)code);
    }
}

// A text in UTF-8 as a string of JSON; a byte that is not UTF-8 becomes the character that stands for such bytes.
static void say_string(const char *name, const char *text)
{
    size_t n = strlen(text), used = 0;
    say(",\n\"%s\":\"", name);
    for (size_t i = 0; i < n; i += used) {
        int32_t code = decode_utf8((const unsigned char *)text + i, n - i, &used);
        used = code < 0 ? 1 : used;
        say_character(code < 0 ? 0xfffd : (uint32_t)code);
    }
    say("\"");
}

// Numbers as base64 of their little-endian bytes: three bytes are four characters, and = fills up the last four.
static void say_numbers(const char *name, const double *a, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    say(",\n\"%s\":\"", name);
    for (size_t i = 0; i < 8 * n; i += 3) {
        size_t here = 8 * n - i < 3 ? 8 * n - i : 3;
        uint32_t three = 0;
        for (size_t k = 0; k < here; k++) {
            uint64_t bits;
            memcpy(&bits, &a[(i + k) / 8], sizeof bits);
            three |= (uint32_t)(bits >> 8 * ((i + k) % 8) & 0xff) << 8 * (2 - k);
        }
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63], here > 1 ? digits[three >> 6 & 63] : '=',
                        here > 2 ? digits[three & 63] : '='};
        put_bytes(&standard_output, four, sizeof four);
    }
    say("\"");
}

// The losses as a curve of so many points: the least, the mean and the largest of each stretch.
static void say_losses(const Page *page)
{
    size_t n = page->n_losses, points = n < PAGE_POINTS ? n : PAGE_POINTS;
    say(",\n\"log\":{\"first\":%" PRIu64 ",\"steps\":%zu,\"points\":[", page->first, n);
    for (size_t i = 0; i < points; i++) {
        size_t from = i * n / points, to = (i + 1) * n / points;
        double low = page->losses[from], high = low, sum = 0;
        for (size_t k = from; k < to; k++) {
            low = fmin(low, page->losses[k]);
            high = fmax(high, page->losses[k]);
            sum += page->losses[k];
        }
        say("%s[%.4g,%.4g,%.4g]", i ? "," : "", low, sum / (double)(to - from), high);
    }
    say("]}");
}

// The model as JSON: what its file says of it, the names and shapes of its matrices, their numbers, Adam's memory.
static void say_model(const Options *o, const Run *run, const Checkpoint *checkpoint)
{
    const Model *model = &run->model;
    const char *slash = strrchr(o->arguments[0], '/');
    char pair[STORED_ROOM];
    say("{\"version\":\"%s\"", VERSION);
    say_string("file", slash ? slash + 1 : o->arguments[0]);
    if (o->n_arguments == 2) say_string("word", o->arguments[1]);
    say(",\n\"missing\":\"%s\",\n\"metadata\":{\"vocab\":\"", checkpoint->missing);
    for (size_t i = 0; i < run->tokenizer.BOS; i++) say_character(run->tokenizer.uchars[i]);
    say("\"");
    for (size_t i = 0; i < N_OPTIONS; i++) say("%s", stored_text(&options[i], &checkpoint->options, pair));
    say("},\n\"state_dict\":[");
    for (size_t i = 0; i < model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i];
        say("%s{\"name\":\"%s\",\"rows\":%zu,\"cols\":%zu}", i ? "," : "", w->name, w->rows, w->cols);
    }
    say("]");
    say_numbers("params", model->params, model->num_params);
    say_numbers("m", model->m, model->num_params);
    say_numbers("v", model->v, model->num_params);
}

/* ------------------------------------------------------------------------------------------------------------------
 * What the story asks for: from the command line, and from the files that it names.
 */
// The tokens of a text that the command line gives as `what`, if it does. After the start they must fit the block.
static bool read_prompt(Run *run, const char *what, const char *text)
{
    Document *prompt = &run->prompt;
    size_t n = text ? strlen(text) : 0, used = 0, block_size = run->model.block_size;
    *prompt = (Document){.tokens = malloc((n + 1) * sizeof *prompt->tokens)};
    if (!prompt->tokens) return no_memory();
    for (size_t i = 0; i < n; i += used) {
        int32_t code = decode_utf8((const unsigned char *)text + i, n - i, &used);
        if (code < 0) return usage("%s: not valid UTF-8", what);
        prompt->tokens[prompt->length] = (uint32_t)code;
        if (encode(&run->tokenizer, prompt->tokens + prompt->length, 1) == 0) {
            return usage("%s %s: the model does not know the character %.*s", what, text, (int)used, text + i);
        }
        prompt->length++;
    }
    return prompt->length < block_size ||
           usage("%s %s: too long: the model's block holds the start and %zu characters", what, text, block_size - 1);
}

// Goes on with the hash FNV-1a: a text's length, then its characters. Unless uchars is NULL, it is made of tokens.
static uint64_t hash_text(uint64_t hash, const Document *text, const uint32_t *uchars)
{
    const uint32_t *tokens = text->tokens;
    hash = (hash ^ text->length) * FNV_PRIME;
    for (size_t i = 0; i < text->length; i++) hash = (hash ^ (uchars ? uchars[tokens[i]] : tokens[i])) * FNV_PRIME;
    return hash;
}

// A hash of all documents, to notice when they are not the same.
static uint64_t fingerprint(const Documents *docs)
{
    uint64_t hash = FNV_START;
    for (size_t i = 0; i < docs->n; i++) hash = hash_text(hash, &docs->list[i], NULL);
    return hash;
}

// Whether a text is known; if not, with `add`, it is from here on. The set is a table of hashes, at most half full.
static bool is_known(Job *job, const Document *text, const uint32_t *uchars, bool add)
{
    uint64_t hash = hash_text(FNV_START, text, uchars);
    hash += !hash;                                       // 0 is a free place
    size_t i = (size_t)hash & (job->n_slots - 1);
    while (job->known[i] && job->known[i] != hash) i = (i + 1) & (job->n_slots - 1);
    bool known = job->known[i];
    if (add) job->known[i] = hash;
    return known;
}

// The first n documents are known, and there is room for more texts.
static bool know_documents(Job *job, size_t n, uint64_t more, const uint32_t *uchars)
{
    double texts = (double)n + (double)more;
    if (!fits_memory(4 * sizeof *job->known * texts)) return no_memory();
    for (job->n_slots = 2; (double)job->n_slots < 2 * texts;) job->n_slots *= 2;
    job->known = calloc(job->n_slots, sizeof *job->known);
    for (size_t i = 0; job->known && i < n; i++) is_known(job, &job->run.docs.list[i], uchars, true);
    return job->known || no_memory();
}

// The options of a resumed run: those that the file stores, except where another value is given and may be.
static bool resume_options(Options *o, const Checkpoint *checkpoint)
{
    if (checkpoint->missing[0]) {
        return fail("%s: a model that cannot be resumed: it has no %s", o->resume, checkpoint->missing);
    }
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        char ours[64], theirs[64];
        if (!option->stored) continue;
        option_text(option, o, ours, sizeof ours);
        option_text(option, &checkpoint->options, theirs, sizeof theirs);
        bool given = o->given >> (option - options) & 1;
        if (given && option->stored != OF_RUN_FREE && strcmp(ours, theirs) != 0) {
            return usage("--%s %s: the run in %s has %s", option->name, ours, o->resume, theirs);
        }
        if (!given) set_option(o, option, theirs);         // which was checked when the file was read
    }
    return o->config.steps >= o->step ||
           usage("--steps %" PRIu64 ": the run in %s has done %" PRIu64, o->config.steps, o->resume, o->step);
}

// The run to go on with, if there is one: its options hold, and its documents must be the same.
static bool read_checkpoint(Run *run)
{
    Job *job = run->job;
    Options *o = &job->o;
    uint64_t hash = o->save || o->resume ? fingerprint(&run->docs) : 0;
    o->fingerprint = hash;
    run->resumed = o->resume;
    if (!o->resume) return true;
    return load_model(job, o->resume, run->docs.longest) && resume_options(o, &job->checkpoint) &&
           (o->fingerprint == hash || fail("%s: not the documents that %s was trained on", data_name(o), o->resume));
}

// The first n documents become tokens.
static bool encode_documents(Run *run, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        Document *doc = &run->docs.list[i];
        size_t done = encode(&run->tokenizer, doc->tokens, doc->length);
        if (done == doc->length) continue;
        char bytes[4];
        uint32_t unknown = doc->tokens[done];
        int length = is_control(unknown) ? 0 : (int)encode_utf8(unknown, bytes);
        return fail("%s:%zu: the model does not know the character %.*s%sU+%04X", data_name(&run->job->o), doc->line,
                    length, bytes, length ? ", " : "", (unsigned)unknown);
    }
    return true;
}

static bool new_parameters(Run *run)
{
    run->model = sized_model(run->config, run->tokenizer.vocab_size);
    return new_model(&run->model, run->docs.longest, run->config->batch, FUSED_TAPE);
}

// What people may want to know of the first n documents, once nothing is wrong any more.
static void note_documents(const Run *run, size_t n)
{
    const Options *o = &run->job->o;
    size_t n_cut = 0, longest = 0;
    if (o->quiet) return;
    for (size_t i = 0; i < n; i++) {
        size_t length = run->docs.list[i].length;
        n_cut += length >= run->model.block_size;
        longest = length > longest ? length : longest;
    }
    if (run->tokenizer.uchars[run->docs.text[0]] == 0xfeff) {
        note("%s: it begins with a byte-order mark, which is a character like any other; tail -c +4 takes it off",
             data_name(o));
    }
    if (n_cut) {
        note("%s: %zu of %zu documents are cut to the block of %zu; to keep them whole, train with --block-size %zu",
             data_name(o), n_cut, n, run->model.block_size, longest + 1);
    }
}

static bool begin_training(Run *run)
{
    Job *job = run->job;
    uint64_t holdout = run->config->holdout;
    size_t n = run->docs.n;
    if (holdout >= n) {
        return usage("--holdout %" PRIu64 ": nothing is left to train on: there are %zu documents", holdout, n);
    }
    if (run->resumed) job->rng = job->checkpoint.random;
    watch(&run->model, &run->tokenizer);
    job->numbered = true;
    if (!read_prompt(run, "--prompt", job->o.prompt) || !begin_progress(job)) return false;
    note_documents(run, n);
    return !job->progress.show_bar || know_documents(job, n - (size_t)holdout, 0, run->tokenizer.uchars);
}

static bool end_training(Run *run, bool ok)
{
    ok = ok && (all_finite(run->model.params, run->model.num_params) || fail("a parameter is no longer finite"));
    const Options *o = &run->job->o;
    bool lesson = o->recipe == RECIPE_LESSON;
    size_t holdout = (size_t)run->config->holdout, n_tokens;
    if (!end_progress(run->job, ok)) return false;
    if (holdout) {
        double loss = mean_loss(&run->model, run->docs.list + run->docs.n - holdout, holdout, &n_tokens, NULL);
        if (!isfinite(loss)) return fail("the loss of the documents held out is not finite");
        say("%sheld out: %zu docs, loss %.4f\n", run->job->progress.show_lines && !lesson ? "\n" : "", holdout, loss);
    }
    const char *kind = lesson ? "" : " (new, hallucinated names)";
    if (!o->quiet || o->config.samples) say("\n--- inference%s ---\n", kind);
    return true;
}

#define MAX_TRIES 1000             // samples in a row that are not new, before --new gives up

static bool check_scores(Run *run, const double *scores)
{
    return all_finite(scores, run->model.vocab_size) ||
           fail("sample %" PRIu64 ": the scores are not finite; a smaller --lr may help", run->job->n_samples + 1);
}

// With --new a sample that is known is not printed, and one more is drawn in its place.
static bool after_sample(Run *run, uint64_t i, size_t length)
{
    Job *job = run->job;
    const Document name = {.tokens = run->model.tokens, .length = length};
    job->n_samples = i + 1;
    bool known = job->o.new && !length;                  // a sample without a character is no name
    known = known || (job->known && is_known(job, &name, run->tokenizer.uchars, job->o.new));
    job->n_known += known;
    job->known_in_a_row = known ? job->known_in_a_row + 1 : 0;
    if (known && job->o.new) {
        run->skipped++;
        return job->known_in_a_row < MAX_TRIES ||
               fail("no more new names: %" PRIu64 " of %" PRIu64 " found, and then none in %d samples; a higher "
                    "--temperature may help", i + 1 - job->n_known, run->config->samples, MAX_TRIES);
    }
    if (job->numbered) say("sample %2" PRIu64 ": ", i + 1);
    for (size_t k = 0; k < length; k++) {
        char bytes[4];
        uint32_t code = run->tokenizer.uchars[run->model.tokens[k]];
        bool hidden = standard_output.by_line && is_control(code);         // people are reading
        say("%.*s", (int)encode_utf8(hidden ? '?' : code, bytes), bytes);
    }
    say("\n");
    return output_ok();
}

/* ------------------------------------------------------------------------------------------------------------------
 * Commands.
 */
static void free_job(Job *job)
{
    Run *run = &job->run;
    free(run->prompt.tokens);
    free(run->docs.list);
    free(run->docs.text);
    free_tokenizer(&run->tokenizer);
    free_model(&run->model);
    free(job->known);
    free(job->weights);
    free(job->stats);
    free(job->page.text);
    free(job->page.losses);
}

// Trains and samples: part one, then a line for people.
static bool run_train(Job *job)
{
    bool ok = microgpt(&job->run);
    if (ok && job->progress.show_bar && job->o.config.samples) {
        fprintf(stderr, "samples that are in the training data: %" PRIu64 " of %" PRIu64 "\n", job->n_known,
                job->o.config.samples);
    }
    return ok;
}

// Samples alone, from a model file. Where the file tells where training's random numbers were at the end, and no other
// seed is asked for, they go on from there: the names are those that training printed.
static bool run_sample(Job *job)
{
    const Options *o = &job->o;
    const Checkpoint *checkpoint = &job->checkpoint;
    Run *run = &job->run;
    if (!load_model(job, o->arguments[0], 0) || !read_prompt(run, "--prompt", o->prompt)) return false;
    if (o->new && !(read_documents(run) && know_documents(job, run->docs.n, o->config.samples, NULL))) return false;
    random_seed(&job->rng, o->config.seed);
    bool same = !was_given(o, CONFIG(seed)) || o->config.seed == checkpoint->options.config.seed;
    if (checkpoint->has_random && same) job->rng = checkpoint->random;
    return infer(run);
}

// The model and the documents to judge it by: the first *n of them, at most `max` if the command line does not say.
static bool load_with_documents(Job *job, size_t max, size_t *n)
{
    Run *run = &job->run;
    if (!read_documents(run) || !load_model(job, job->o.arguments[0], run->docs.longest)) return false;
    uint64_t docs = job->o.docs ? job->o.docs : max;
    *n = docs < run->docs.n ? (size_t)docs : run->docs.n;
    if (!encode_documents(run, *n)) return false;
    note_documents(run, *n);
    return true;
}

// How surprised a saved model is by documents, token by token.
static bool run_eval(Job *job)
{
    size_t n_docs = 0, n_tokens = 0;
    if (!load_with_documents(job, SIZE_MAX, &n_docs)) return false;
    double loss = mean_loss(&job->run.model, job->run.docs.list, n_docs, &n_tokens, NULL);
    if (!isfinite(exp(loss))) {
        return fail("%s: the %s is not finite", job->o.arguments[0], isfinite(loss) ? "perplexity" : "loss");
    }
    say("docs %zu\ntokens %zu\nloss %.17g\nbits per character %.17g\nperplexity %.17g\n", n_docs, n_tokens, loss,
        loss / log(2), exp(loss));
    return true;
}

// `heads MODEL WORD`: the maps of one word.
static bool show_word(Job *job)
{
    const char *path = job->o.arguments[0], *text = job->o.arguments[1];
    Run *run = &job->run;
    Model *model = &run->model;
    if (job->o.data || job->o.docs) return usage("--data and --docs go with heads MODEL, not with a word");
    if (!load_model(job, path, strlen(text)) || !read_prompt(run, "the word", text)) return false;
    model->tape.fused = true;                           // heads are read off whole lines, in every build
    size_t n_heads = model->n_layer * model->n_head, line = model->tape.first_line, n = 0;
    mean_loss(model, &run->prompt, 1, &n, NULL);
    // NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): there is at least one position, the start
    job->weights = malloc(n_heads * n * sizeof *job->weights);
    if (!job->weights) return no_memory();
    for (size_t k = 0; k < n_heads * n; k++) {
        const Line *attention = next_attention(&model->tape, &line);
        bool finite = attention && all_finite(attention->a, k / n_heads + 1);
        if (!finite) return fail("%s: the attention is not finite", path);
        job->weights[k] = attention->a;
    }
    if (job->o.tsv) {
        say_map_values(model, job->weights, n);
    } else {
        draw_maps(run, job->weights, n, screen_of_output());
    }
    return true;
}

// `heads MODEL`: what every head does over a file of documents.
static bool show_heads(Job *job)
{
    Run *run = &job->run;
    Model *model = &run->model;
    size_t n_docs = 0, n_tokens = 0;
    if (!load_with_documents(job, 1000, &n_docs)) return false;
    size_t n_heads = model->n_layer * model->n_head;
    HeadStats *stats = job->stats = calloc(n_heads, sizeof *stats);
    if (!stats) return no_memory();
    model->tape.fused = true;                           // heads are read off whole lines, in every build
    double loss = mean_loss(model, run->docs.list, n_docs, &n_tokens, stats), tokens = (double)n_tokens;
    if (!isfinite(loss)) return fail("%s: the loss is not finite", job->o.arguments[0]);
    for (size_t h = 0; h < n_heads; h++) {
        size_t layer = h / model->n_head, head = h % model->n_head;
        stats[h].self /= tokens;
        stats[h].previous /= tokens;
        stats[h].first /= tokens;
        stats[h].elsewhere /= tokens;
        stats[h].entropy /= tokens;
        stats[h].loss = loss_without(model, run->docs.list, n_docs, layer, head);
        if (!isfinite(stats[h].loss)) {
            return fail("%s: the loss without layer %zu head %zu is not finite", job->o.arguments[0], layer, head);
        }
    }
    if (job->o.tsv) {
        say("layer\thead\tself\tprevious\tfirst\telsewhere\tentropy\tloss\tloss_without\n");
        for (size_t h = 0; h < n_heads; h++) {
            HeadStats s = stats[h];
            say("%zu\t%zu\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\n", h / model->n_head,
                h % model->n_head, s.self, s.previous, s.first, s.elsewhere, s.entropy, loss, s.loss);
        }
    } else {
        Screen screen = screen_of_output();
        say_stats(model, stats, loss, screen);
        say_findings(model, stats, loss, screen);
    }
    return true;
}

static bool run_heads(Job *job) { return job->o.n_arguments == 2 ? show_word(job) : show_heads(job); }

// The model as a page, to look at in a browser.
static bool run_page(Job *job)
{
    const char *path = job->o.arguments[0];
    Run *run = &job->run;
    Page *page = &job->page;
    if (isatty(STDOUT_FILENO)) {
        return usage("page: it is a file for a browser; redirect it, as in microgpt page %s > page.html", path);
    }
    if (!load_model(job, path, 0)) return false;
    if (run->model.num_params > PAGE_PARAMS) {
        return fail("%s: too large for a page: %zu parameters, and the limit is %d", path, run->model.num_params,
                    PAGE_PARAMS);
    }
    if (!read_prompt(run, "the word", job->o.arguments[1]) || !read_page(page, job->argv0)) return false;
    if (job->o.log && !read_losses(page, job->o.log)) return false;
    size_t end = page->place + strlen(PAGE_MARK);
    put_bytes(&standard_output, page->text, page->place);
    say_model(&job->o, run, &job->checkpoint);
    if (page->n_losses) say_losses(page);
    say("}");
    put_bytes(&standard_output, page->text + end, page->n - end);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Command line: one table of commands. All that a user can give is checked here.
 */
typedef struct Command {
    const char *name, *arguments, *summary;
    unsigned bit;                  // marks its options in the table of options
    size_t min, max;               // how many arguments it takes
    bool (*run)(Job *job);
} Command;

static const Command commands[] = {
    {"train", "[OPTION]...", "train, then print samples; the default", TRAIN, 0, 0, run_train},
    {"sample", "MODEL [OPTION]...", "print samples from a saved model", SAMPLE, 1, 1, run_sample},
    {"eval", "MODEL [OPTION]...", "mean loss of a saved model over documents", EVAL, 1, 1, run_eval},
    {"heads", "MODEL [OPTION]... [WORD]", "what each attention head looks at", HEADS, 1, 2, run_heads},
    {"page", "MODEL [OPTION]... [WORD]", "the model as one HTML page", PAGE, 1, 2, run_page},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

// Whether a word is nearly a name: all but two characters or fewer, in one place, are the same.
static bool is_similar(const char *name, const char *word, size_t n)
{
    size_t length = strlen(name), same = 0, last = 0;
    while (same < n && same < length && word[same] == name[same]) same++;
    while (same + last < n && same + last < length && word[n - 1 - last] == name[length - 1 - last]) last++;
    size_t longer = n > length ? n : length;
    return longer - same - last <= 2 && 2 * (same + last) >= longer;
}

// An argument that nobody asked for, after this command or (NULL) instead of one. A file may be one to train on.
static bool unexpected(const char *argument, const Command *command)
{
    const char *problem = command ? "one argument too many" : "no such command";
    bool train = !command || command->bit == TRAIN, file = strpbrk(argument, "./") || access(argument, F_OK) == 0;
    if (train && file) return usage("%s: %s; to train on it: --data %s", argument, problem, argument);
    return usage("%s: %s; see microgpt %s%s--help", argument, problem, command ? command->name : "",
                 command ? " " : "");
}

// The option that `-q`, `--name` or `--name=value` gives: by its letter, its name, or the beginning of one name only.
static const Option *find_option(const Command *command, const char *argument)
{
    bool letter = argument[1] != '-';
    const char *name = argument + 2, *near = NULL;
    size_t length = letter ? 0 : strcspn(name, "="), n_found = 0;
    const Option *found = NULL;
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        if (!(option->commands & command->bit)) continue;
        if (letter && argument[1] == option->letter && !*name) return option;
        if (!length) continue;
        if (strncmp(option->name, name, length) == 0) {
            if (option->name[length] == '\0') return option;
            found = option;
            n_found++;
        }
        if (is_similar(option->name, name, length)) near = option->name;
    }
    if (n_found == 1) return found;
    bool hint = near && !n_found;
    set_failure(USAGE, "%.*s: %s; %s%s%s microgpt %s --help", letter ? INT_MAX : (int)length + 2, argument,
                n_found ? "the beginning of more than one option" : "no such option", hint ? "did you mean --" : "",
                hint ? near : "", hint ? "? See" : "see", command->name);
    return NULL;
}

// Reads the arguments after the command, in order, over the recipe's options. With `only`, sets that option alone.
static bool read_arguments(Options *o, int argc, char **argv, const char *only)
{
    const Command *command = o->command;
    bool options_over = false;
    *o = recipes[o->recipe];
    o->command = command;
    for (int i = 0; i < argc; i++) {
        const char *argument = argv[i];
        if (options_over || argument[0] != '-' || !argument[1]) {
            if (o->n_arguments == command->max) return unexpected(argument, command);
            o->arguments[o->n_arguments++] = argument;
            continue;
        }
        options_over = strcmp(argument, "--") == 0;
        if (options_over) continue;
        const Option *option = find_option(command, argument);
        if (!option) return false;
        const char *value = argument[1] == '-' ? strchr(argument, '=') : NULL;
        bool flag = option->kind == FLAG, last = i + 1 == argc;
        if (flag && value) return usage("--%s takes no value", option->name);
        if (!flag && !value && last) return usage("--%s needs a value: %s", option->name, option->argument);
        value = flag ? NULL : value ? value + 1 : argv[++i];
        if ((!only || strcmp(only, option->name) == 0) && !set_option(o, option, value)) return false;
        o->given |= (uint64_t)1 << (option - options);
    }
    return true;
}

// The whole command line: the command, then the recipe's options, then those given, wherever the recipe is.
static bool parse_command_line(Options *o, int argc, char **argv)
{
    const Command *command = commands, *end = commands + N_COMMANDS;
    bool named = argc > 1 && argv[1][0] != '-';
    int first = named ? 2 : 1;
    while (named && command < end && strcmp(argv[1], command->name) != 0) command++;
    if (command == end) return unexpected(argv[1], NULL);
    *o = (Options){.command = command, .recipe = RECIPE_MICROGPT};
    if (!read_arguments(o, argc - first, argv + first, "recipe")) return false;
    if (!read_arguments(o, argc - first, argv + first, NULL)) return false;
    if (o->help || o->version) return true;
    if (o->n_arguments < command->min) {
        return usage("%s: an argument is missing; see microgpt %s --help", command->name, command->name);
    }
    if (o->config.temperature < 1e-200) o->config.temperature = 0;     // scores divided by less would overflow
    if (o->save_every && !o->save) return usage("--save-every: needs --save FILE, too");
    if (command->bit == SAMPLE && o->data && !o->new) return usage("--data: needs --new, too");
    return o->resume || o->config.n_embd % o->config.n_head == 0 ||    // a resumed run takes its sizes from the file
           usage("--n-embd %" PRIu64 " is not a multiple of --n-head %" PRIu64, o->config.n_embd, o->config.n_head);
}

// What an option's default is, in both recipes if they differ, " (1000; lesson: 500)"; nothing if its help tells it.
static void default_text(const Option *option, char *text, size_t room)
{
    char a[32], b[32];
    option_text(option, &recipes[RECIPE_MICROGPT], a, sizeof a);
    option_text(option, &recipes[RECIPE_LESSON], b, sizeof b);
    bool differ = strcmp(a, b) != 0 && option->offset != FIELD(recipe);
    bool none = !*a || strstr(option->help, "(default: ");
    snprintf(text, none ? 1 : room, " (%s%s%s)", a, differ ? "; lesson: " : "", differ ? b : "");
}

static void print_help(const Command *command)
{
    say("Usage:\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "microgpt %s %s", commands[i].name, commands[i].arguments);
        say("  %-39s %s\n", left, commands[i].summary);
    }
    say("\nOptions of %s:\n", command->name);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const Option *option = &options[i];
        char left[64], letter[8] = "    ", value[80];
        if (!(option->commands & command->bit)) continue;
        if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "%s--%s %s", letter, option->name, option->argument ? option->argument : "");
        default_text(option, value, sizeof value);
        say("  %-31s %s%s\n", left, option->help, value);
    }
}

#ifndef MICROGPT_NO_MAIN
int main(int argc, char **argv)
{
    static Job job;                                      // too large for small stacks
    for (int fd = 0; fd <= 2; fd++) {      // what is closed stays unusable, and no file of ours takes its place
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
    dies_of_sigpipe = signal(SIGPIPE, SIG_IGN) != SIG_IGN;
    signal(SIGXFSZ, SIG_IGN);                            // a file that grows too large is an error of the write
    standard_output.by_line = isatty(STDOUT_FILENO);
    Options *o = &job.o;
    bool ok = parse_command_line(o, argc, argv);
    job.argv0 = argv[0];
    job.run = (Run){.config = &o->config, .rng = &job.rng, .job = &job};
    if (ok && o->help) {
        print_help(o->command);
    } else if (ok && o->version) {
        say("microgpt %s\n", VERSION);
    } else if (ok) {
        if (o->command->bit == TRAIN) handle_signals();
        ok = o->command->run(&job);
        free_job(&job);
    }
    flush(&standard_output);
    ok = ok && output_ok();
    if (!ok && *failure.text) fprintf(stderr, "microgpt: %s\n", failure.text);
    if (!ok && failure.status == PIPE_CLOSED) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return ok ? DONE : failure.status;
}
#endif
