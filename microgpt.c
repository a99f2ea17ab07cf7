/* microgpt: a GPT trained and sampled with nothing but C.
 *
 * It is the program microgpt.py, step by step and to the byte: the same names from the same seed. This first part is
 * the whole algorithm, in the order of the Python program:
 *
 *   documents, tokenizer, parameters, model, training, inference
 *
 * and it stands on autograd.h, which is the page to read before it. What surrounds the algorithm comes after it:
 *
 *   random numbers, reading documents, memory, options, model files, long runs, the heads, commands, command line
 */
#define _XOPEN_SOURCE 700
#include "autograd.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define VERSION "1.0.0"

/* ------------------------------------------------------------------------------------------------------------------
 * Before the algorithm, the few names that it uses of the rest of the program. A reader may skip them.
 */

// What went wrong, until main() says it. fail() fills it in and returns false.
typedef struct {
    int status;
    char text[8192];     // room for the longest file name and what is wrong with it
} Error;

enum { DONE = 0, FAILED = 1, USAGE = 2, INTERRUPTED = 130 };

#ifdef __GNUC__
#define PRINTF_LIKE(f, args) __attribute__((format(printf, f, args)))
#else
#define PRINTF_LIKE(f, args)
#endif
static void set_error(Error *error, int status, const char *format, ...) PRINTF_LIKE(3, 4);
#define fail(...) (set_error(__VA_ARGS__), false)
static bool say(Error *error, const char *format, ...) PRINTF_LIKE(2, 3);   // printf; false if it could not be written
static bool say_tokens(Error *error, const uint32_t *uchars, const uint32_t *tokens, size_t n);
static bool all_finite(const double *a, size_t n);

// Python's random numbers.
typedef struct {
    uint32_t words[624];
    size_t used;
    double gauss_next;
    bool has_gauss;
} Random;

static void random_seed(Random *random, uint64_t seed);
static double random_uniform(Random *random);                        // from 0 up to, not including, 1
static double random_gauss(Random *random, double mu, double sigma);
static size_t random_below(Random *random, size_t n);
static size_t random_choice(Random *random, const double *weights, size_t n);

// What a run is made of. The names and defaults are those of the command line, further down.
typedef struct {
    const struct Command *command;
    const char *arguments[2];      // what the command line gives beside options
    size_t n_arguments;
    uint64_t given;                // bit i: the command line gives options[i]
    const char *data, *prompt, *save, *resume, *log;
    int recipe, activation, schedule;
    uint64_t steps, seed, n_layer, n_embd, n_head, block_size, samples, save_every, docs;
    uint64_t step, fingerprint;    // of the run and the documents, in model files only
    double lr, beta1, beta2, init_std, temperature;
    bool quiet, tsv, help, version, manual;
} Options;

enum { RECIPE_MICROGPT, RECIPE_LESSON };
enum { RELU, RELU2 };
enum { LINEAR, COSINE };

#define EPS_ADAM 1e-8

// What happens beside the training, after every step of it: the step's line, progress, the log, a save, an interrupt.
typedef struct Run Run;
static bool after_step(Run *run, uint64_t step, double loss, Error *error);

/* ------------------------------------------------------------------------------------------------------------------
 * Documents: the text to learn from, one document a line, in random order.
 */
typedef struct {
    uint32_t *tokens;    // [length] the characters, as numbers
    size_t length;
    size_t line;         // of the file, for messages
} Document;

typedef struct {
    Document *docs;      // [n]
    size_t n, longest;
    uint32_t *text;      // [n_text] the tokens of all documents
    size_t n_text;
} Documents;

static void shuffle(Documents *all, Random *random)
{
    for (size_t i = all->n - 1; i > 0; i--) {
        size_t j = random_below(random, i + 1);
        Document swapped = all->docs[i];
        all->docs[i] = all->docs[j];
        all->docs[j] = swapped;
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Tokenizer: every character that occurs gets a number, in code-point order. One more number, BOS, marks where a
 * document begins and ends.
 */
typedef struct {
    uint32_t *uchars;    // [BOS] the character of each token
    size_t BOS, vocab_size;
} Tokenizer;

// Finds the characters of the documents, then replaces each by its token. Linear in the text: one look-up table from
// code points to tokens, no search.
static bool tokenize(Documents *all, Tokenizer *tokenizer)
{
    size_t n_codes = 1;
    for (size_t i = 0; i < all->n_text; i++) {
        n_codes = all->text[i] < n_codes ? n_codes : (size_t)all->text[i] + 1;
    }
    uint32_t *token_of = calloc(n_codes, sizeof *token_of);
    tokenizer->uchars = calloc(n_codes, sizeof *tokenizer->uchars);
    if (!token_of || !tokenizer->uchars) {
        free(token_of);
        return false;
    }
    for (size_t i = 0; i < all->n_text; i++) {
        token_of[all->text[i]] = 1;
    }
    for (size_t code = 0; code < n_codes; code++) {
        if (token_of[code]) {
            token_of[code] = (uint32_t)tokenizer->BOS;       // which counts the characters found so far
            tokenizer->uchars[tokenizer->BOS++] = (uint32_t)code;
        }
    }
    for (size_t i = 0; i < all->n_text; i++) {
        all->text[i] = token_of[all->text[i]];
    }
    tokenizer->vocab_size = tokenizer->BOS + 1;
    free(token_of);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Parameters: what the model knows, at first random numbers. Their names and order are those of the state dict.
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
    Matrix *lm_head;         // [vocab_size][n_embd] how a state votes for each next token
    Layer *layers;           // [n_layer]
    double *params;          // [num_params] the numbers in all of these, one after another
    size_t num_params;
    double *m, *v;           // [num_params] Adam's memory
    uint64_t steps_done;     // how often Adam has moved the parameters
    double **keys, **values; // [n_layer] the cache: for each layer [positions][n_embd]
    uint32_t *tokens;        // [block_size + 1] the document in work, or the sample
    Tape tape;
} Model;

static Matrix *matrix(Model *model, const char *prefix, const char *name, size_t nout, size_t nin)
{
    Matrix *w = &model->state_dict[model->n_matrices++];
    snprintf(w->name, sizeof w->name, "%s%s", prefix, name);
    w->rows = nout;
    w->cols = nin;
    w->data = model->params + model->num_params;
    model->num_params += nout * nin;
    return w;
}

// Gives every matrix its name, its shape and its place among the parameters.
static void lay_out_parameters(Model *model)
{
    size_t n_embd = model->n_embd;
    model->wte = matrix(model, "", "wte", model->vocab_size, n_embd);
    model->wpe = matrix(model, "", "wpe", model->block_size, n_embd);
    model->lm_head = matrix(model, "", "lm_head", model->vocab_size, n_embd);
    for (size_t i = 0; i < model->n_layer; i++) {
        Layer *layer = &model->layers[i];
        char prefix[32];
        snprintf(prefix, sizeof prefix, "layer%zu.", i);
        layer->attn_wq = matrix(model, prefix, "attn_wq", n_embd, n_embd);
        layer->attn_wk = matrix(model, prefix, "attn_wk", n_embd, n_embd);
        layer->attn_wv = matrix(model, prefix, "attn_wv", n_embd, n_embd);
        layer->attn_wo = matrix(model, prefix, "attn_wo", n_embd, n_embd);
        layer->mlp_fc1 = matrix(model, prefix, "mlp_fc1", 4 * n_embd, n_embd);
        layer->mlp_fc2 = matrix(model, prefix, "mlp_fc2", n_embd, 4 * n_embd);
    }
}

// Random numbers with the spread std. In the lesson's recipe the matrices that a layer ends with start at zero, so that
// the layer at first adds nothing; they draw their random numbers all the same.
static void init_parameters(Model *model, Random *random, double std, bool zero_outputs)
{
    for (size_t i = 0; i < model->n_matrices; i++) {
        Matrix *w = &model->state_dict[i];
        bool output = strstr(w->name, ".attn_wo") || strstr(w->name, ".mlp_fc2");
        for (size_t k = 0; k < w->rows * w->cols; k++) {
            w->data[k] = random_gauss(random, 0, output && zero_outputs ? 0 : std);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Model: from a token and its position, and from what was kept of the positions before, to a score for every token
 * that may come next. The three functions first are one line of the tape each; the single steps that they stand for
 * are beside their namesakes in autograd.c.
 */

// linear: each output is the dot product of the input with one row of w.
static double *linear(Tape *tape, double *x, Matrix *w)
{
    return v_linear(tape, v_new(tape, w->rows), x, w);
}

// softmax: scores become probabilities, positive and with the sum 1: e^logit over the sum of all e^logit.
static double *softmax(Tape *tape, double *logits, size_t n)
{
    return v_softmax(tape, logits, n);
}

// rmsnorm: the vector is scaled to the size 1, in the sense of the root of the mean of its squares.
static double *rmsnorm(Tape *tape, double *x, size_t n)
{
    return v_rmsnorm(tape, x, 1e-5, n);
}

// The cache of keys and values, empty: room for so many positions of every layer.
static void new_cache(Model *model, size_t positions)
{
    for (size_t li = 0; li < model->n_layer; li++) {
        model->keys[li] = v_new(&model->tape, positions * model->n_embd);
        model->values[li] = v_new(&model->tape, positions * model->n_embd);
    }
}

// The model itself: a token at a position goes in, a score for every possible next token (the logits) comes out. The
// keys and values of every layer grow by this position's; those of the positions before it are what attention looks at.
static double *gpt(Model *model, size_t token_id, size_t pos_id, double **keys, double **values)
{
    Tape *tape = &model->tape;
    size_t n_embd = model->n_embd, n_head = model->n_head, head_dim = model->head_dim;
    double scale = 1 / sqrt((double)head_dim);

    // the token's embedding and the position's, added
    double *tok_emb = model->wte->data + token_id * n_embd;
    double *pos_emb = model->wpe->data + pos_id * n_embd;
    double *x = v_add(tape, tok_emb, pos_emb, n_embd);
    x = rmsnorm(tape, x, n_embd);

    for (size_t li = 0; li < model->n_layer; li++) {
        Layer *layer = &model->layers[li];

        // 1) Multi-head attention: positions look back at one another. The numbers are the lesson's lines.
        double *x_residual = x;
        x = rmsnorm(tape, x, n_embd);
        double *q = linear(tape, x, layer->attn_wq);
        double *k = keys[li] + pos_id * n_embd, *v = values[li] + pos_id * n_embd;    // the next place in the cache
        v_linear(tape, k, x, layer->attn_wk);
        v_linear(tape, v, x, layer->attn_wv);
        size_t seen = pos_id + 1;                            // positions in the cache, this one included
        double *x_attn = v_new(tape, n_embd);                // 123: where the heads' outputs will stand in a row
        for (size_t h = 0; h < n_head; h++) {                // 124: head after head:
            size_t hs = h * head_dim;                        // 125: where its slices start,
            double *q_h = q + hs;                            // 126: its slice of the query,
            double *k_h = keys[li] + hs;                     // 127: of each cached key, the t-th at k_h + t * n_embd,
            double *v_h = values[li] + hs;                   // 128: and of each cached value, likewise
            double *attn_logits = v_dots(tape, q_h, k_h, seen, n_embd, head_dim, scale);   // 129: query dot key, scaled
            double *attn_weights = softmax(tape, attn_logits, seen);   // 130: as shares of its attention
            double *head_out = x_attn + hs;                            // 132: its place in the row, to be filled with
            v_weighted_sum(tape, head_out, attn_weights, v_h, seen, n_embd, head_dim);   // 131: the values, weighted
        }
        x = linear(tape, x_attn, layer->attn_wo);            // 133: the heads' outputs, mixed
        x = v_add(tape, x, x_residual, n_embd);              // and added to what was there: the residual connection

        // 2) MLP: each position thinks for itself
        x_residual = x;
        x = rmsnorm(tape, x, n_embd);
        x = linear(tape, x, layer->mlp_fc1);
        x = v_relu(tape, x, 4 * n_embd);
        if (model->activation == RELU2) {
            x = v_pow(tape, x, 2, 4 * n_embd);
        }
        x = linear(tape, x, layer->mlp_fc2);
        x = v_add(tape, x, x_residual, n_embd);
    }
    return linear(tape, x, model->lm_head);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Training: one document a step. The loss is how surprised the model is by each next token, on average; backward
 * finds how every parameter changes it; Adam moves them all a little the other way.
 */

// The mean loss over the first n predictions in tokens[0..n].
static double *document_loss(Model *model, const uint32_t *tokens, size_t n)
{
    Tape *tape = &model->tape;
    new_cache(model, n);
    double *losses = v_value(tape, 0);                               // their sum so far
    for (size_t pos_id = 0; pos_id < n; pos_id++) {
        tape_strand(tape);                                           // for speed alone: positions side by side
        uint32_t token_id = tokens[pos_id], target_id = tokens[pos_id + 1];
        double *logits = gpt(model, token_id, pos_id, model->keys, model->values);
        double *probs = softmax(tape, logits, model->vocab_size);
        double *loss_t = v_neg(tape, v_log(tape, probs + target_id, 1), 1);
        losses = v_add(tape, losses, loss_t, 1);
    }
    tape_join(tape);
    return v_times(tape, losses, 1 / (double)n, 1);
}

// BOS, the document, BOS: into model->tokens, cut to what fits the block. Returns how many there are to predict.
static size_t take_document(Model *model, const Tokenizer *tokenizer, Document doc)
{
    size_t n = doc.length + 1 < model->block_size ? doc.length + 1 : model->block_size;
    model->tokens[0] = (uint32_t)tokenizer->BOS;
    for (size_t i = 1; i <= n; i++) {
        model->tokens[i] = i <= doc.length ? doc.tokens[i - 1] : (uint32_t)tokenizer->BOS;
    }
    return n;
}

static double learning_rate(const Options *o, uint64_t step)
{
    double done = (double)step / (double)o->steps;
    return o->schedule == COSINE ? o->lr * 0.5 * (1 + cos(3.141592653589793 * done)) : o->lr * (1 - done);
}

// One step, on the n predictions in model->tokens: forward, backward, and a small move of every parameter. Returns the
// loss.
static double train_step(Model *model, size_t n, uint64_t step, const Options *o)
{
    Tape *tape = &model->tape;
    tape_drop(tape);
    double *loss = document_loss(model, model->tokens, n);
    backward(tape, loss);
    adam(model->params, grad(tape, model->params), model->m, model->v, model->num_params, step,
         learning_rate(o, step), o->beta1, o->beta2, EPS_ADAM);
    return *loss;
}

static bool train(Model *model, const Tokenizer *tokenizer, const Documents *all, const Options *o, Run *run,
                  Error *error)
{
    for (uint64_t step = model->steps_done; step < o->steps; step++) {
        size_t n = take_document(model, tokenizer, all->docs[step % all->n]);
        double loss = train_step(model, n, step, o);
        if (!isfinite(loss)) {
            return fail(error, FAILED, "step %llu: the loss is not finite (%s); a smaller --lr or --init-std may help",
                        (unsigned long long)step + 1, isnan(loss) ? "not a number" : "infinite");
        }
        model->steps_done = step + 1;
        if (!after_step(run, step, loss, error)) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Inference: starting from BOS, a next token is drawn again and again, until BOS is drawn or the block is full. The
 * temperature, above 0, makes the likely still likelier (below 1) or evens them out (above 1). At 0 the likeliest is
 * taken.
 */

// One sample, of at most block_size tokens, into model->tokens. The cache stands before the mark, so that tape_drop()
// leaves it alone. Returns the sample's length, or SIZE_MAX if the scores are not finite.
static size_t sample(Model *model, const Tokenizer *tokenizer, Random *random, double temperature,
                     const uint32_t *prompt, size_t prompt_length)
{
    Tape *tape = &model->tape;
    size_t length = 0, token_id = tokenizer->BOS;
    for (size_t pos_id = 0; pos_id < model->block_size; pos_id++) {
        tape_drop(tape);
        double *logits = gpt(model, token_id, pos_id, model->keys, model->values);
        if (!all_finite(logits, model->vocab_size)) {
            return SIZE_MAX;
        }
        if (pos_id < prompt_length) {
            token_id = prompt[pos_id];
        } else if (temperature == 0) {
            token_id = 0;
            for (size_t i = 1; i < model->vocab_size; i++) {
                token_id = logits[i] > logits[token_id] ? i : token_id;
            }
        } else {
            double *scaled = v_times(tape, logits, 1 / temperature, model->vocab_size);
            token_id = random_choice(random, softmax(tape, scaled, model->vocab_size), model->vocab_size);
        }
        if (token_id == tokenizer->BOS) {
            break;
        }
        model->tokens[length++] = (uint32_t)token_id;
    }
    return length;
}

static bool inference(Model *model, const Tokenizer *tokenizer, Random *random, const Options *o,
                      const uint32_t *prompt, size_t prompt_length, bool numbered, Error *error)
{
    Tape *tape = &model->tape;
    tape_drop(tape);
    new_cache(model, model->block_size);
    tape_mark(tape);                       // the cache is used again for every sample
    tape->recording = tape->atomic;        // nothing will be differentiated, but atoms are there to be looked at
    for (uint64_t i = 0; i < o->samples; i++) {
        size_t length = sample(model, tokenizer, random, o->temperature, prompt, prompt_length);
        if (length == SIZE_MAX) {
            return fail(error, FAILED, "sample %llu: the scores are not finite; a smaller --lr may help",
                        (unsigned long long)i + 1);
        }
        if ((numbered && !say(error, "sample %2llu: ", (unsigned long long)i + 1)) ||
            !say_tokens(error, tokenizer->uchars, model->tokens, length)) {
            return false;
        }
    }
    return true;
}

/* ==================================================================================================================
 * That was the algorithm. From here on: what surrounds it.
 */

static void set_error(Error *error, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error->status = status;
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    for (char *c = error->text; *c; c++) {       // one line, whatever is quoted in it
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    }
}

// A file that is written. What is put into it is collected, and goes out in large pieces. A short write goes on from
// where it stopped, an interrupted one starts again. The first failure is kept in error, and nothing more is written.
typedef struct {
    int file;
    int error;           // errno
    bool by_line;        // people are reading: every line goes out at once
    size_t n;
    char bytes[1 << 16];
} Output;

static bool flush(Output *out)
{
    for (size_t done = 0; done < out->n && !out->error;) {
        ssize_t written = write(out->file, out->bytes + done, out->n - done);
        done += written > 0 ? (size_t)written : 0;
        out->error = written < 0 && errno != EINTR ? errno : 0;
    }
    out->n = 0;
    return !out->error;
}

static bool put(Output *out, const char *format, ...) PRINTF_LIKE(2, 3);

static bool put_text(Output *out, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(out->bytes + out->n, sizeof out->bytes - out->n, format, args);
    if (n >= 0 && (size_t)n >= sizeof out->bytes - out->n && flush(out)) {
        n = vsnprintf(out->bytes, sizeof out->bytes, format, again);
    }
    va_end(again);
    if (!out->error && (n < 0 || (size_t)n >= sizeof out->bytes - out->n)) {
        out->error = EOVERFLOW;                    // one text that is longer than all of bytes
    }
    out->n += out->error ? 0 : (size_t)n;
    return out->by_line && out->n && out->bytes[out->n - 1] == '\n' ? flush(out) : !out->error;
}

static bool put(Output *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool ok = put_text(out, format, args);
    va_end(args);
    return ok;
}

static bool put_bytes(Output *out, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n && (out->n < sizeof out->bytes || flush(out));) {
        size_t room = sizeof out->bytes - out->n, piece = n - done < room ? n - done : room;
        memcpy(out->bytes + out->n, (const char *)bytes + done, piece);
        out->n += piece;
        done += piece;
    }
    return !out->error;
}

static Output standard_output = {.file = STDOUT_FILENO};

static bool say_now(Error *error)
{
    return flush(&standard_output) || fail(error, FAILED, "standard output: %s", strerror(standard_output.error));
}

static bool say(Error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool ok = put_text(&standard_output, format, args);
    va_end(args);
    return ok || say_now(error);
}

static bool no_memory(Error *error)
{
    return fail(error, FAILED, "not enough memory");
}

/* ------------------------------------------------------------------------------------------------------------------
 * Random numbers: the Mersenne Twister MT19937, seeded and read as Python's random module does it.
 */
static void random_seed(Random *random, uint64_t seed)
{
    uint32_t *w = random->words;
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    size_t n_key = key[1] ? 2 : 1, n = 624, i = 1, j = 0;
    w[0] = 19650218;
    for (size_t k = 1; k < n; k++) {
        w[k] = 1812433253 * (w[k - 1] ^ (w[k - 1] >> 30)) + (uint32_t)k;
    }
    for (size_t k = 0; k < n; k++) {
        w[i] = (w[i] ^ ((w[i - 1] ^ (w[i - 1] >> 30)) * 1664525)) + key[j] + (uint32_t)j;
        j = (j + 1) % n_key;
        if (++i == n) {
            w[0] = w[n - 1];
            i = 1;
        }
    }
    for (size_t k = 1; k < n; k++) {
        w[i] = (w[i] ^ ((w[i - 1] ^ (w[i - 1] >> 30)) * 1566083941)) - (uint32_t)i;
        if (++i == n) {
            w[0] = w[n - 1];
            i = 1;
        }
    }
    w[0] = 0x80000000;
    random->used = n;
    random->has_gauss = false;
}

static uint32_t random_word(Random *random)
{
    uint32_t *w = random->words;
    if (random->used == 624) {
        for (size_t k = 0; k < 624; k++) {
            uint32_t y = (w[k] & 0x80000000) | (w[(k + 1) % 624] & 0x7fffffff);
            w[k] = w[(k + 397) % 624] ^ (y >> 1) ^ (y & 1 ? 0x9908b0df : 0);
        }
        random->used = 0;
    }
    uint32_t y = w[random->used++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return y ^ (y >> 18);
}

static double random_uniform(Random *random)
{
    uint32_t a = random_word(random) >> 5, b = random_word(random) >> 6;
    return (a * 67108864.0 + b) / 9007199254740992.0;
}

static double random_gauss(Random *random, double mu, double sigma)
{
    double z = random->gauss_next;
    if (!random->has_gauss) {
        double x = random_uniform(random) * 6.283185307179586;
        double r = sqrt(-2.0 * log(1.0 - random_uniform(random)));
        z = cos(x) * r;
        random->gauss_next = sin(x) * r;
    }
    random->has_gauss = !random->has_gauss;
    return mu + z * sigma;
}

// Uniform from 0 to n - 1, for n below 2^32: as many bits as n has, drawn again until they are less than n.
static size_t random_below(Random *random, size_t n)
{
    int bits = 0;
    while (n >> bits) {
        bits++;
    }
    uint32_t r;
    do {
        r = random_word(random) >> (32 - bits);
    } while (r >= n);
    return r;
}

// The first index whose running sum of weights is above a uniform share of their total.
static size_t random_choice(Random *random, const double *weights, size_t n)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        total += weights[i];
    }
    double u = random_uniform(random) * total;
    for (size_t i = 0; i < n - 1; i++) {
        sum += weights[i];
        if (sum > u) {
            return i;
        }
    }
    return n - 1;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Reading documents: UTF-8, a document a line. Lines end as in Python's text files (LF, CR LF or CR), and what Python
 * calls white space is taken off at both ends.
 */

// One code point from s, of which n bytes are left; its length goes to *used. -1: not UTF-8.
static int32_t decode_utf8(const unsigned char *s, size_t n, size_t *used)
{
    static const struct { unsigned char mask, lead; uint32_t least; } forms[] = {   // of 1, 2, 3 and 4 bytes
        {0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000},
    };
    if (s[0] < 0x80) {
        *used = 1;
        return s[0];
    }
    for (size_t length = 1; length <= 4 && length <= n; length++) {
        if ((s[0] & forms[length - 1].mask) != forms[length - 1].lead) {
            continue;
        }
        uint32_t code = s[0] & (unsigned char)~forms[length - 1].mask;
        for (size_t i = 1; i < length; i++) {
            if ((s[i] & 0xc0) != 0x80) {
                return -1;
            }
            code = code << 6 | (s[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        *used = length;
        return code < forms[length - 1].least || surrogate || code > 0x10ffff ? -1 : (int32_t)code;
    }
    return -1;
}

static size_t encode_utf8(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3f));
    }
    out[0] = (char)(leads[length] | code);
    return length;
}

// The characters of n tokens, and the end of the line.
static bool say_tokens(Error *error, const uint32_t *uchars, const uint32_t *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char bytes[4];
        size_t length = encode_utf8(uchars[tokens[i]], bytes);
        if (!say(error, "%.*s", (int)length, bytes)) {
            return false;
        }
    }
    return say(error, "\n");
}

static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

// Opens a file, and tries again where a signal came in between. -1: it cannot be opened.
static int open_file(const char *name, int flags)
{
    int file;
    do {
        file = open(name, flags | O_CLOEXEC, 0666);
    } while (file < 0 && errno == EINTR);
    return file;
}

// Up to n bytes of an open file: fewer only at its end. -1: it cannot be read. A short read goes on, and an interrupted
// one starts again.
static ssize_t read_up_to(int file, void *bytes, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(file, (char *)bytes + done, n - done);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return got < 0 ? -1 : (ssize_t)done;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

// All bytes of an open file, into memory of the caller's.
static bool read_all(int file, unsigned char **bytes, size_t *n, Error *error, const char *name)
{
    size_t room = 0;
    *bytes = NULL;
    *n = 0;
    while (*n == room) {
        room = room ? 2 * room : 1 << 16;
        unsigned char *more = realloc(*bytes, room);
        if (!more) {
            return no_memory(error);
        }
        *bytes = more;
        ssize_t got = read_up_to(file, *bytes + *n, room - *n);
        if (got < 0) {
            return fail(error, FAILED, "%s: %s", name, strerror(errno));
        }
        *n += (size_t)got;
    }
    return true;
}

// The documents in the text s. Their tokens are still code points.
static bool split_documents(const unsigned char *s, size_t n, Documents *all, Error *error, const char *name)
{
    size_t n_lines = 1;
    for (size_t i = 0; i < n; i++) {
        n_lines += s[i] == '\n' || s[i] == '\r';
    }
    if (n >= SIZE_MAX / sizeof *all->text || n_lines > SIZE_MAX / sizeof *all->docs) {
        return no_memory(error);
    }
    all->text = malloc((n + 1) * sizeof *all->text);
    all->docs = malloc(n_lines * sizeof *all->docs);
    if (!all->text || !all->docs) {
        return no_memory(error);
    }
    uint32_t *start = all->text, *end = start;         // the document being read
    size_t line = 1, used = 1;
    for (size_t i = 0; i <= n; i += used) {
        int32_t code = i < n ? decode_utf8(s + i, n - i, &used) : '\n';
        if (code == '\r') {
            used = i + 1 < n && s[i + 1] == '\n' ? 2 : 1;
            code = '\n';
        }
        if (code <= 0) {
            return fail(error, FAILED, "%s:%zu: %s", name, line,
                        code ? "not valid UTF-8" : "a zero byte: this is not a text file");
        }
        if (code != '\n') {
            if (start < end || !is_space((uint32_t)code)) {
                *end++ = (uint32_t)code;
            }
            continue;
        }
        while (start < end && is_space(end[-1])) {
            end--;
        }
        if (start < end) {
            size_t length = (size_t)(end - start);
            all->docs[all->n++] = (Document){start, length, line};
            all->longest = length > all->longest ? length : all->longest;
        }
        start = end;
        line++;
    }
    all->n_text = (size_t)(end - all->text);
    if (all->n == 0) {
        return fail(error, FAILED, "%s: no documents: %s", name, n ? "every line is blank" : "the file is empty");
    }
    return all->n < UINT32_MAX || fail(error, FAILED, "%s: too many documents: %zu", name, all->n);
}

// The folder of the running program, with a slash, or an empty string.
static void program_folder(const char *argv0, char *folder, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", folder, room - 1);
    if (n < 0) {
        n = snprintf(folder, room, "%s", strchr(argv0, '/') ? argv0 : "");
        n = n < (ssize_t)room ? n : 0;
    }
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    folder[slash ? slash - folder + 1 : 0] = '\0';
}

// A file that ships with the program: in data/ beside it, or where `make install` puts it. Its name goes to `name`.
static int open_shipped(const char *argv0, const char *file_name, char *name, size_t room)
{
    char folder[4096];
    program_folder(argv0, folder, sizeof folder);
    static const char *const places[] = {"data/", "../share/microgpt/"};
    int file = -1;
    for (size_t i = 0; file < 0 && i < 2 && (i == 0 || errno == ENOENT); i++) {
        snprintf(name, room, "%s%s%s", folder, places[i], file_name);
        file = open_file(name, O_RDONLY);
    }
    return file;
}

// What messages call the documents' file.
static const char *data_name(const Options *o)
{
    return !o->data ? "the shipped names" : strcmp(o->data, "-") == 0 ? "standard input" : o->data;
}

static bool read_documents(const Options *o, const char *argv0, Documents *all, Error *error)
{
    char name[4200];
    int file = -1;
    if (!o->data) {
        file = open_shipped(argv0, "names.txt", name, sizeof name);
    } else {
        snprintf(name, sizeof name, "%s", data_name(o));
        file = strcmp(o->data, "-") == 0 ? STDIN_FILENO : open_file(o->data, O_RDONLY);
    }
    if (file < 0) {
        return fail(error, FAILED, "%s: %s", name, strerror(errno));
    }
    unsigned char *bytes = NULL;
    size_t n = 0;
    bool ok = read_all(file, &bytes, &n, error, name) && split_documents(bytes, n, all, error, name);
    free(bytes);
    if (file != STDIN_FILENO) {
        close(file);
    }
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Memory: all of it is taken before the first step, once it is known how much the run needs.
 */

// The most values that one pass over so many positions makes, each position's lines still there or dropped. A run of n
// values takes up to n + 8 places on the tape, for it starts and ends at a whole vector.
static double values_needed(const Model *model, double positions, bool dropped, bool atomic)
{
    double E = (double)model->n_embd, H = (double)model->n_head, L = (double)model->n_layer;
    double V = (double)model->vocab_size, P = positions, run = 8;
    double cache = 2 * L * (P * E + run);
    double layer = 15 * E + 3 * 4 * E + 16 * run, scores = 2, outside = 3 * E + 4 * V + 16 * run;
    if (atomic) {            // one value for each single + and *
        layer += 24 * E * E + 8 * E;
        scores = 8 + 4 * E / H;
        outside += 2 * V * E + 4 * V + 3 * E;
    }
    double heads = H * (dropped ? scores * P + 8 * run : scores * P * (P + 1) / 2 + 8 * run * P);
    return cache + (dropped ? 1 : P) * (outside + L * layer) + L * heads;
}

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

// Memory for a model of the sizes that are set in *model, and for training it on documents of up to `longest`.
static bool new_model(Model *model, size_t longest, bool atomic, Error *error)
{
    double E = (double)model->n_embd, L = (double)model->n_layer, V = (double)model->vocab_size;
    double B = (double)model->block_size, P = (double)longest + 1 < B ? (double)longest + 1 : B;
    double params = (2 * V + B) * E + 12 * L * E * E;
    double step = values_needed(model, P, false, atomic), sampling = values_needed(model, B, true, atomic);
    double values = params + (step > sampling ? step : sampling);
    double lines = atomic ? values : P * (8 + L * (14 + 3 * (double)model->n_head)) + 8;
    double bytes = values * 2 * sizeof(double) + lines * sizeof(Line) + params * 2 * sizeof(double) + 4 * B;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    double memory = pages > 0 && page > 0 ? (double)pages * (double)page : 1e300;
    if (bytes > memory || bytes > (double)SIZE_MAX / 4) {
        return fail(error, FAILED, "not enough memory: a model of %.0f parameters needs %.1f GB", params, bytes / 1e9);
    }

    size_t n = (size_t)params;
    model->state_dict = calloc(3 + 6 * model->n_layer, sizeof *model->state_dict);
    model->layers = calloc(model->n_layer, sizeof *model->layers);
    model->m = calloc(n, sizeof *model->m);
    model->v = calloc(n, sizeof *model->v);
    model->keys = calloc(model->n_layer, sizeof *model->keys);
    model->values = calloc(model->n_layer, sizeof *model->values);
    model->tokens = calloc(model->block_size + 1, sizeof *model->tokens);
    if (!model->state_dict || !model->layers || !model->m || !model->v || !model->keys || !model->values ||
        !model->tokens || !tape_init(&model->tape, (size_t)values, (size_t)lines)) {
        return no_memory(error);
    }
    model->tape.atomic = atomic;
    model->params = v_new(&model->tape, n);
    tape_mark(&model->tape);
    lay_out_parameters(model);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The build for the debugger: every single + and * is a line of the tape, and there are views of a run that stands
 * still. In other builds there is nothing of it.
 */
#ifdef MICROGPT_DEBUG
enum { ATOMIC = true };
#include "tests/views.c"
#else
enum { ATOMIC = false };
#define watch(model, tokenizer) ((void)0)
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * Options: one table of all of them. The command line, the help, the manual page and the model files are made from it.
 */
enum { TRAIN = 1, SAMPLE = 2, EVAL = 4, HEADS = 8, PAGE = 16 };

typedef enum { FLAG, NUMBER, REAL, TEXT, NAME } Kind;

// Whether a model file keeps the option: as a property of the model, or (under a name that begins with train.) of the
// run that trains it. A resumed run takes over what the file keeps; only what is FREE may then be given another value.
typedef enum { NOT_KEPT, OF_MODEL, OF_RUN, OF_RUN_FREE } Kept;

typedef struct {
    const char *name, *argument;   // of a NAME, the names there are: "relu|relu2"
    char letter;
    unsigned commands;             // that take it; 0: only model files have it
    Kind kind;
    Kept kept;
    size_t offset;                 // of its field in Options
    double least, most;            // of a NUMBER or REAL
    const char *help;              // NULL: the option is not for users
} Option;

#define FIELD(name) offsetof(Options, name)
#define SIZE_MOST 1048576.0
#define COUNT_MOST 9007199254740992.0
#define WORD_MOST 18446744073709551615.0
#define REAL_MOST 1e300
#define BETA_MOST 0.9999999999999999

static const Option options[] = {
    {"data", "FILE", 0, TRAIN | EVAL | HEADS, TEXT, NOT_KEPT, FIELD(data), 0, 0,
     "documents, one a line, UTF-8; - is standard input (default: the shipped names)"},
    {"docs", "N", 0, EVAL, NUMBER, NOT_KEPT, FIELD(docs), 1, COUNT_MOST,
     "only the first N documents (default: all)"},
    {"docs", "N", 0, HEADS, NUMBER, NOT_KEPT, FIELD(docs), 1, COUNT_MOST,
     "only the first N documents (default: 1000)"},
    {"tsv", NULL, 0, HEADS, FLAG, NOT_KEPT, FIELD(tsv), 0, 0, "tab-separated values, in full precision"},
    {"recipe", "microgpt|lesson", 0, TRAIN, NAME, OF_RUN, FIELD(recipe), 0, 0,
     "sets the defaults of the other options"},
    {"steps", "N", 0, TRAIN, NUMBER, OF_RUN_FREE, FIELD(steps), 0, COUNT_MOST, "training steps, one document each"},
    {"seed", "N", 0, TRAIN, NUMBER, OF_RUN, FIELD(seed), 0, WORD_MOST, "where the random numbers start"},
    {"seed", "N", 0, SAMPLE, NUMBER, NOT_KEPT, FIELD(seed), 0, WORD_MOST,
     "where the random numbers start (default: where training left them)"},
    {"n-layer", "N", 0, TRAIN, NUMBER, OF_MODEL, FIELD(n_layer), 1, SIZE_MOST, "layers"},
    {"n-embd", "N", 0, TRAIN, NUMBER, OF_MODEL, FIELD(n_embd), 1, SIZE_MOST,
     "width of the model, a multiple of --n-head"},
    {"n-head", "N", 0, TRAIN, NUMBER, OF_MODEL, FIELD(n_head), 1, SIZE_MOST, "attention heads in a layer"},
    {"block-size", "N", 0, TRAIN, NUMBER, OF_MODEL, FIELD(block_size), 1, SIZE_MOST,
     "characters of a document that are used"},
    {"lr", "X", 0, TRAIN, REAL, OF_RUN_FREE, FIELD(lr), 0, REAL_MOST, "learning rate at the first step"},
    {"beta1", "X", 0, TRAIN, REAL, OF_RUN_FREE, FIELD(beta1), 0, BETA_MOST,
     "Adam: share of the gradients' mean that is kept"},
    {"beta2", "X", 0, TRAIN, REAL, OF_RUN_FREE, FIELD(beta2), 0, BETA_MOST, "Adam: the same for their squares"},
    {"init-std", "X", 0, TRAIN, REAL, OF_RUN, FIELD(init_std), 0, REAL_MOST,
     "spread of the parameters at the start"},
    {"activation", "relu|relu2", 0, TRAIN, NAME, OF_MODEL, FIELD(activation), 0, 0,
     "in the MLP; relu2 is relu squared"},
    {"schedule", "linear|cosine", 0, TRAIN, NAME, OF_RUN_FREE, FIELD(schedule), 0, 0,
     "how the learning rate falls to 0"},
    {"samples", "N", 0, TRAIN | SAMPLE, NUMBER, NOT_KEPT, FIELD(samples), 0, COUNT_MOST, "names to print"},
    {"temperature", "X", 0, TRAIN | SAMPLE, REAL, NOT_KEPT, FIELD(temperature), 0, REAL_MOST,
     "0 takes the likeliest character"},
    {"prompt", "TEXT", 0, TRAIN | SAMPLE, TEXT, NOT_KEPT, FIELD(prompt), 0, 0, "how every name begins"},
    {"save", "FILE", 0, TRAIN, TEXT, NOT_KEPT, FIELD(save), 0, 0,
     "write the model file at the end, and on an interrupt"},
    {"save-every", "N", 0, TRAIN, NUMBER, NOT_KEPT, FIELD(save_every), 1, COUNT_MOST,
     "and every N steps (default: only then)"},
    {"resume", "FILE", 0, TRAIN, TEXT, NOT_KEPT, FIELD(resume), 0, 0,
     "go on with the run that wrote this model file, with its options"},
    {"log", "FILE", 0, TRAIN, TEXT, NOT_KEPT, FIELD(log), 0, 0, "write step,loss,lr of every step as CSV"},
    {"log", "FILE", 0, PAGE, TEXT, NOT_KEPT, FIELD(log), 0, 0, "the CSV of its run: the page shows the loss curve"},
    {"quiet", NULL, 'q', TRAIN | PAGE, FLAG, NOT_KEPT, FIELD(quiet), 0, 0, "no progress, no step lines"},
    {"help", NULL, 'h', ~0u, FLAG, NOT_KEPT, FIELD(help), 0, 0, "print this and exit"},
    {"version", NULL, 0, ~0u, FLAG, NOT_KEPT, FIELD(version), 0, 0, "print the version and exit"},
    {"manual-page", NULL, 0, ~0u, FLAG, NOT_KEPT, FIELD(manual), 0, 0, NULL},
    {"step", NULL, 0, 0, NUMBER, OF_RUN, FIELD(step), 0, COUNT_MOST, NULL},
    {"fingerprint", NULL, 0, 0, NUMBER, OF_RUN, FIELD(fingerprint), 0, WORD_MOST, NULL},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

static const Options recipes[] = {
    [RECIPE_MICROGPT] = {.recipe = RECIPE_MICROGPT, .steps = 1000, .seed = 42, .n_layer = 1, .n_embd = 16, .n_head = 4,
                         .block_size = 16, .lr = 0.01, .beta1 = 0.85, .beta2 = 0.99, .init_std = 0.08,
                         .activation = RELU, .schedule = LINEAR, .samples = 20, .temperature = 0.5},
    [RECIPE_LESSON] = {.recipe = RECIPE_LESSON, .steps = 500, .seed = 42, .n_layer = 1, .n_embd = 16, .n_head = 4,
                       .block_size = 8, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .init_std = 0.02,
                       .activation = RELU2, .schedule = COSINE, .samples = 20, .temperature = 0.5},
};

// The position of value in names, which are separated by |; -1 if it is none of them.
static int find_name(const char *names, const char *value)
{
    size_t n = strlen(value);
    for (int i = 0; *names; i++) {
        size_t length = strcspn(names, "|");
        if (length == n && memcmp(names, value, n) == 0) {
            return i;
        }
        names += length + (names[length] == '|');
    }
    return -1;
}

// Checks an option's value, and sets its field.
static bool set_option(Options *o, const Option *option, const char *value, Error *error)
{
    char *field = (char *)o + option->offset, *end = NULL;
    errno = 0;
    switch (option->kind) {
    case FLAG:
        *(bool *)field = true;
        return true;
    case TEXT:
        *(const char **)field = value;
        return true;
    case NAME: {
        int i = find_name(option->argument, value);
        if (i < 0) {
            return fail(error, USAGE, "--%s %s: not one of %s", option->name, value, option->argument);
        }
        *(int *)field = i;
        return true;
    }
    case NUMBER: {
        unsigned long long n = strtoull(value, &end, 10);
        if (*value == '\0' || strspn(value, "0123456789") != strlen(value)) {
            return fail(error, USAGE, "--%s %s: not a whole number", option->name, value);
        }
        unsigned long long most = option->most < WORD_MOST ? (unsigned long long)option->most : UINT64_MAX;
        if (errno == ERANGE || (double)n < option->least || n > most) {
            return fail(error, USAGE, "--%s %s: out of range: %.0f to %llu", option->name, value, option->least, most);
        }
        *(uint64_t *)field = n;
        return true;
    }
    case REAL: {
        double x = strtod(value, &end);
        if (*value == '\0' || *end || strspn(value, "+-.0123456789eE") != strlen(value)) {
            return fail(error, USAGE, "--%s %s: not a number", option->name, value);
        }
        if (!isfinite(x) || x < option->least || x > option->most) {
            return fail(error, USAGE, "--%s %s: out of range: %.16g to %.16g", option->name, value, option->least,
                        option->most);
        }
        *(double *)field = x;
        return true;
    }
    }
    return false;
}

// An option's value in o, as text: of a number, as many digits as it takes to give the same number again.
static void option_text(const Option *option, const Options *o, char *text, size_t room)
{
    const char *field = (const char *)o + option->offset;
    text[0] = '\0';
    if (option->kind == NUMBER) {
        snprintf(text, room, "%llu", (unsigned long long)*(const uint64_t *)field);
    } else if (option->kind == REAL) {
        double x = *(const double *)field;
        int digits = 1;
        do {
            snprintf(text, room, "%.*g", digits, x);
        } while (digits++ < 17 && (strtod(text, NULL) < x || strtod(text, NULL) > x));
    } else if (option->kind == NAME) {
        const char *names = option->argument;
        for (int i = *(const int *)field; i > 0; i--) {
            names += strcspn(names, "|") + 1;
        }
        snprintf(text, room, "%.*s", (int)strcspn(names, "|"), names);
    }
}

static bool was_given(const Options *o, size_t offset)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (options[i].offset == offset && o->given >> i & 1) {
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Model files: safetensors. Eight bytes give the length of a header, the header is JSON, and behind it stand the
 * numbers of all tensors, without gaps. First the reading: a file may come from anyone, so all that it says is checked
 * before it is used.
 */
#define HEADER_MOST 100000000      // bytes: the format's own limit
#define N_RANDOM 627               // numbers in train.random: the words, how many are used, the gauss cache

// A place in the header. Strings are decoded where they stand, which never makes them longer.
typedef struct {
    unsigned char *at, *end;
    const char *expected;          // once something is wrong: what should stand there
} Json;

static bool json_expect(Json *json, const char *expected)
{
    json->expected = expected;
    return false;
}

static void json_space(Json *json)
{
    while (json->at < json->end && *json->at && strchr(" \t\n\r", *json->at)) {
        json->at++;
    }
}

static bool json_mark(Json *json, unsigned char mark, const char *expected)
{
    json_space(json);
    if (json->at == json->end || *json->at != mark) {
        return json_expect(json, expected);
    }
    json->at++;
    return true;
}

// Stands before every member of an object or a list; there is one more, or the closing mark is read.
static bool json_more(Json *json, bool first, unsigned char close, bool *more)
{
    json_space(json);
    *more = json->at == json->end || *json->at != close;
    json->at += !*more;
    return first || !*more || json_mark(json, ',', "a comma");
}

// Four hexadecimal digits; -1: they are not.
static int32_t json_hex(Json *json)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = json->at < json->end && *json->at ? strchr(digits, *json->at) : NULL;
        if (!digit) {
            return -1;
        }
        code = code << 4 | (int32_t)(digit - digits < 16 ? digit - digits : digit - digits - 6);
        json->at++;
    }
    return code;
}

// What stands behind a backslash. Code points above 0xffff are two escapes, a high and a low surrogate. -1: wrong.
static int32_t json_escape(Json *json)
{
    static const char marks[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    unsigned char c = json->at < json->end ? *json->at++ : 0;
    if (c && strchr(marks, c)) {
        return codes[strchr(marks, c) - marks];
    }
    int32_t code = c == 'u' ? json_hex(json) : -1;
    if (code < 0xd800 || code > 0xdfff) {
        return code;
    }
    if (code > 0xdbff || json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u') {
        return -1;
    }
    json->at += 2;
    int32_t low = json_hex(json);
    return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static bool json_string(Json *json, const char **string)
{
    if (!json_mark(json, '"', "a string")) {
        return false;
    }
    unsigned char *to = json->at;
    *string = (const char *)to;
    for (;;) {
        size_t used = 0;
        int32_t code = json->at < json->end ? decode_utf8(json->at, (size_t)(json->end - json->at), &used) : -1;
        if (code < 0x20) {
            return json_expect(json, json->at < json->end ? "valid UTF-8 without control characters"
                                                          : "the end of a string");
        }
        json->at += used;
        if (code == '"') {
            *to = '\0';
            return true;
        }
        if (code == '\\' && (code = json_escape(json)) <= 0) {
            return json_expect(json, "a valid escape");
        }
        to += encode_utf8((uint32_t)code, (char *)to);
    }
}

// A whole number that fits 64 bits.
static bool json_number(Json *json, uint64_t *number)
{
    json_space(json);
    const unsigned char *start = json->at;
    *number = 0;
    for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++) {
        uint64_t digit = (uint64_t)(*json->at - '0');
        if (*number > (UINT64_MAX - digit) / 10 || (json->at > start && *start == '0')) {
            return json_expect(json, "a whole number of 64 bits");
        }
        *number = *number * 10 + digit;
    }
    return json->at > start || json_expect(json, "a whole number");
}

typedef struct {
    const char *name;
    const char *dtype;
    uint64_t shape[8], n_dims;
    uint64_t n, width;             // how many numbers, of how many bytes each
    uint64_t begin, end;           // the bytes, counted from the end of the header
    double *to;                    // where the numbers go; NULL: nowhere
} Tensor;

typedef struct {
    const char *key, *value;
} Pair;

typedef struct {
    const char *path;
    unsigned char *bytes;          // the header, which all names and strings point into
    Tensor *tensors;               // [n_tensors]
    Pair *metadata;                // [n_metadata]
    size_t n_tensors, n_metadata;
} Header;

// What a model file keeps beside the model.
typedef struct {
    Options options;               // those that the table marks as kept
    Random random;                 // where the random numbers stood
    bool has_random;
    char missing[64];              // the first thing that a resume needs and the file lacks, or nothing
} Checkpoint;

// A name from a file, safe to print.
typedef struct { char text[48]; } Shown;

static Shown shown(const char *name)
{
    Shown s;
    size_t n = 0;
    for (; n < sizeof s.text - 1 && name[n]; n++) {
        s.text[n] = (char)(name[n] >= ' ' && name[n] <= '~' ? name[n] : '?');
    }
    s.text[n] = '\0';
    return s;
}

// Room for one more element behind n: the array doubles when n is a power of two. NULL: not enough memory.
static void *grown(void *array, size_t n, size_t size)
{
    return n & (n - 1) ? array : realloc(array, (n ? 2 * n : 1) * size);
}

static bool parse_metadata(Header *header, Json *json, Error *error)
{
    bool more = true;
    for (bool ok = json_mark(json, '{', "an object of strings"); ok;) {
        ok = json_more(json, header->n_metadata == 0, '}', &more);
        if (!ok || !more) {
            return ok;
        }
        Pair *pairs = grown(header->metadata, header->n_metadata, sizeof *pairs);
        if (!pairs) {
            return no_memory(error);
        }
        header->metadata = pairs;
        Pair *pair = &pairs[header->n_metadata++];
        ok = json_string(json, &pair->key) && json_mark(json, ':', "a colon") && json_string(json, &pair->value);
    }
    return false;
}

// A list of up to `most` whole numbers.
static bool parse_list(Json *json, uint64_t *list, uint64_t *n, uint64_t most)
{
    bool more = true;
    *n = 0;
    for (bool ok = json_mark(json, '[', "a list of numbers"); ok;) {
        ok = json_more(json, *n == 0, ']', &more);
        if (!ok || !more) {
            return ok;
        }
        ok = *n < most ? json_number(json, &list[(*n)++]) : json_expect(json, "a shorter list");
    }
    return false;
}

// {"dtype": "F64", "shape": [27, 16], "data_offsets": [0, 3456]}, each of the three once, in any order.
static bool parse_tensor(Json *json, Tensor *tensor)
{
    uint64_t offsets[2], n_offsets = 0;
    bool more = true, has_shape = false;
    if (!json_mark(json, '{', "an object")) {
        return false;
    }
    for (bool first = true;; first = false) {
        const char *key;
        if (!json_more(json, first, '}', &more)) {
            return false;
        }
        if (!more) {
            break;
        }
        if (!json_string(json, &key) || !json_mark(json, ':', "a colon")) {
            return false;
        }
        bool ok = false;
        if (strcmp(key, "dtype") == 0 && !tensor->dtype) {
            ok = json_string(json, &tensor->dtype);
        } else if (strcmp(key, "shape") == 0 && !has_shape) {
            ok = has_shape = parse_list(json, tensor->shape, &tensor->n_dims, 8);
        } else if (strcmp(key, "data_offsets") == 0 && !n_offsets) {
            ok = parse_list(json, offsets, &n_offsets, 2) && (n_offsets == 2 || json_expect(json, "two offsets"));
        } else {
            json_expect(json, "dtype, shape and data_offsets before this, once each");
        }
        if (!ok) {
            return false;
        }
    }
    if (!tensor->dtype || !has_shape || !n_offsets) {
        return json_expect(json, "dtype, shape and data_offsets before this");
    }
    tensor->begin = offsets[0];
    tensor->end = offsets[1];
    return true;
}

static bool parse_header(Header *header, Json *json, Error *error)
{
    bool more = true, has_metadata = false;
    if (json->at == json->end || *json->at != '{') {
        return json_expect(json, "an object");
    }
    json->at++;
    for (bool first = true;; first = false) {
        Tensor *tensors = grown(header->tensors, header->n_tensors, sizeof *tensors), tensor = {0};
        if (!tensors) {
            return no_memory(error);
        }
        header->tensors = tensors;
        if (!json_more(json, first, '}', &more)) {
            return false;
        }
        if (!more) {
            break;
        }
        if (!json_string(json, &tensor.name) || !json_mark(json, ':', "a colon")) {
            return false;
        }
        if (strcmp(tensor.name, "__metadata__") == 0) {
            if (has_metadata || !parse_metadata(header, json, error)) {
                return has_metadata ? json_expect(json, "no second __metadata__") : false;
            }
            has_metadata = true;
        } else if (parse_tensor(json, &tensor)) {
            header->tensors[header->n_tensors++] = tensor;
        } else {
            return false;
        }
    }
    json_space(json);
    return json->at == json->end || json_expect(json, "the end of the header");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Tensor *)a)->name, ((const Tensor *)b)->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const Pair *)a)->key, ((const Pair *)b)->key);
}

static int by_place(const void *a, const void *b)
{
    const Tensor *s = a, *t = b;
    return s->begin != t->begin ? (s->begin < t->begin ? -1 : 1) : s->end < t->end ? -1 : s->end > t->end;
}

// The tensor of this name; NULL: there is none.
static Tensor *find_tensor(const Header *header, const char *name)
{
    Tensor key = {.name = name};
    return bsearch(&key, header->tensors, header->n_tensors, sizeof key, by_name);
}

static const char *find_metadata(const Header *header, const char *key)
{
    Pair pair = {key, NULL}, *found = NULL;
    if (header->n_metadata) {
        found = bsearch(&pair, header->metadata, header->n_metadata, sizeof pair, by_key);
    }
    return found ? found->value : NULL;
}

// Shapes, types and offsets: each tensor's bytes are as many as its shape says, and all of them together are the data,
// one behind the other. The tensors are put in the order of their names.
static bool check_tensors(Header *header, uint64_t *data_size, Error *error)
{
    static const struct { const char *name; uint64_t width; } dtypes[] = {
        {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"U64", 8}, {"I32", 4}, {"U32", 4}, {"I16", 2},
        {"U16", 2}, {"I8", 1}, {"U8", 1}, {"BOOL", 1},
    };
    *data_size = 0;
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_place);
    for (size_t i = 0; i < header->n_tensors; i++) {
        Tensor *t = &header->tensors[i];
        for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
            t->width = strcmp(t->dtype, dtypes[k].name) == 0 ? dtypes[k].width : t->width;
        }
        if (!t->width) {
            return fail(error, FAILED, "%s: tensor %s: no such dtype: %s", header->path, shown(t->name).text,
                        shown(t->dtype).text);
        }
        uint64_t bytes = t->width;
        for (size_t k = 0; k < t->n_dims; k++) {
            if (t->shape[k] && bytes > UINT64_MAX / t->shape[k]) {
                return fail(error, FAILED, "%s: tensor %s: its shape is too large", header->path, shown(t->name).text);
            }
            bytes *= t->shape[k];
        }
        t->n = bytes / t->width;
        if (t->end < t->begin || t->end - t->begin != bytes) {
            return fail(error, FAILED, "%s: tensor %s: its offsets do not fit its shape", header->path,
                        shown(t->name).text);
        }
        if (t->begin != *data_size) {
            return fail(error, FAILED, "%s: tensor %s: %s before its data", header->path, shown(t->name).text,
                        t->begin > *data_size ? "a gap" : "an overlap");
        }
        *data_size = t->end;
    }
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_name);
    for (size_t i = 1; i < header->n_tensors; i++) {
        if (by_name(&header->tensors[i - 1], &header->tensors[i]) == 0) {
            return fail(error, FAILED, "%s: two tensors named %s", header->path, shown(header->tensors[i].name).text);
        }
    }
    return true;
}

// The header, read and checked as far as it can be without knowing what the model should look like.
static bool read_header(int file, Header *header, uint64_t *data_size, Error *error)
{
    unsigned char length_bytes[8] = {0};
    struct stat info;
    uint64_t length = 0, size = UINT64_MAX;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
        size = (uint64_t)info.st_size;
    }
    ssize_t got = read_up_to(file, length_bytes, 8);
    if (got < 0) {
        return fail(error, FAILED, "%s: %s", header->path, strerror(errno));
    }
    for (size_t i = 8; i-- > 0;) {
        length = length << 8 | length_bytes[i];
    }
    if (got < 8 || length < 2 || length > HEADER_MOST || length > size - 8) {
        return fail(error, FAILED, "%s: not a model file: %s", header->path,
                    got < 8 ? "too short for a header" : "the header's length cannot be right");
    }
    header->bytes = calloc((size_t)length, 1);
    if (!header->bytes) {
        return no_memory(error);
    }
    got = read_up_to(file, header->bytes, (size_t)length);
    if (got != (ssize_t)length) {
        return fail(error, FAILED, "%s: %s", header->path, got < 0 ? strerror(errno) : "it ends within the header");
    }
    Json json = {header->bytes, header->bytes + length, NULL};
    if (!parse_header(header, &json, error)) {
        return error->status ? false
                             : fail(error, FAILED, "%s: header, byte %zu: expected %s", header->path,
                                    (size_t)(json.at - header->bytes), json.expected);
    }
    if (header->n_metadata) {
        qsort(header->metadata, header->n_metadata, sizeof *header->metadata, by_key);
    }
    for (size_t i = 1; i < header->n_metadata; i++) {
        if (by_key(&header->metadata[i - 1], &header->metadata[i]) == 0) {
            return fail(error, FAILED, "%s: metadata: %s stands there twice", header->path,
                        shown(header->metadata[i].key).text);
        }
    }
    if (!check_tensors(header, data_size, error)) {
        return false;
    }
    if (size != UINT64_MAX && size - 8 - length != *data_size) {
        return fail(error, FAILED, "%s: %llu bytes of data, but the header describes %llu", header->path,
                    (unsigned long long)(size - 8 - length), (unsigned long long)*data_size);
    }
    return true;
}

// The token of each code point, plus one; 0 where there is none. NULL: not enough memory.
enum { N_CODES = 0x110000 };

static uint32_t *token_table(const Tokenizer *tokenizer)
{
    uint32_t *token_of = calloc(N_CODES, sizeof *token_of);
    for (size_t i = 0; token_of && i < tokenizer->BOS; i++) {
        token_of[tokenizer->uchars[i]] = (uint32_t)i + 1;
    }
    return token_of;
}

// The characters of the vocabulary, each once. A line's end can be none of them, as no document holds one.
static bool read_vocab(const Header *header, const char *vocab, Tokenizer *tokenizer, Error *error)
{
    size_t n = strlen(vocab), used = 0;
    tokenizer->uchars = malloc((n + 1) * sizeof *tokenizer->uchars);
    if (!tokenizer->uchars) {
        return no_memory(error);
    }
    bool ok = n > 0;
    for (size_t i = 0; i < n; i += used) {
        int32_t code = decode_utf8((const unsigned char *)vocab + i, n - i, &used);
        tokenizer->uchars[tokenizer->BOS++] = (uint32_t)code;
        ok = ok && code != '\n' && code != '\r';
    }
    tokenizer->vocab_size = tokenizer->BOS + 1;
    uint32_t *token_of = token_table(tokenizer);
    if (!token_of) {
        return no_memory(error);
    }
    for (size_t i = 0; i < tokenizer->BOS; i++) {
        ok = ok && token_of[tokenizer->uchars[i]] == i + 1;
    }
    free(token_of);
    return ok || fail(error, FAILED, "%s: metadata: vocab is not a row of different characters", header->path);
}

// An option's key in the metadata: n_embd, train.init_std.
static void metadata_key(const Option *option, char *key, size_t room)
{
    snprintf(key, room, "%s%s", option->kept == OF_MODEL ? "" : "train.", option->name);
    for (; *key; key++) {
        *key = *key == '-' ? '_' : *key;
    }
}

static void note_missing(Checkpoint *checkpoint, const char *what)
{
    if (!checkpoint->missing[0]) {
        snprintf(checkpoint->missing, sizeof checkpoint->missing, "%s", what);
    }
}

// The configuration of the model, and what is kept of the run.
static bool read_metadata(const Header *header, Checkpoint *checkpoint, Tokenizer *tokenizer, Error *error)
{
    Options *o = &checkpoint->options;
    *o = recipes[RECIPE_MICROGPT];
    const char *format = find_metadata(header, "format"), *vocab = find_metadata(header, "vocab");
    if (!format || strcmp(format, "microgpt") != 0) {
        return fail(error, FAILED, "%s: not a model of this program: metadata: format is not microgpt", header->path);
    }
    for (size_t i = 0; i < N_OPTIONS; i++) {
        char key[64];
        metadata_key(&options[i], key, sizeof key);
        const char *value = options[i].kept ? find_metadata(header, key) : NULL;
        Error reason = {0};
        if (options[i].kept == OF_MODEL && !value) {
            return fail(error, FAILED, "%s: metadata: %s is missing", header->path, key);
        }
        if (options[i].kept && !value) {
            note_missing(checkpoint, key);
        }
        if (value && !set_option(o, &options[i], value, &reason)) {
            return fail(error, FAILED, "%s: metadata: %s is not valid: %s", header->path, key, shown(value).text);
        }
    }
    if (o->n_embd % o->n_head) {
        return fail(error, FAILED, "%s: metadata: n_embd is not a multiple of n_head", header->path);
    }
    if (!vocab) {
        return fail(error, FAILED, "%s: metadata: vocab is missing", header->path);
    }
    return read_vocab(header, vocab, tokenizer, error);
}

// Says where a tensor's numbers go. Without it, or in another shape, there is no model; but what only a resume needs
// may be missing.
static bool place_tensor(const Header *header, const char *prefix, const Matrix *w, double *to,
                         Checkpoint *checkpoint, Error *error)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", prefix, w->name);
    Tensor *t = find_tensor(header, name);
    if (!t) {
        note_missing(checkpoint, name);
        return strncmp(name, "train.", 6) == 0 || fail(error, FAILED, "%s: tensor %s is missing", header->path, name);
    }
    bool fits = w->cols ? t->n_dims == 2 && t->shape[0] == w->rows && t->shape[1] == w->cols
                        : t->n_dims == 1 && t->shape[0] == w->rows;
    if (!fits) {
        return fail(error, FAILED, "%s: tensor %s: its shape does not fit the configuration", header->path, name);
    }
    if (strcmp(t->dtype, "F64") != 0 && strcmp(t->dtype, "F32") != 0) {
        return fail(error, FAILED, "%s: tensor %s: its dtype is %s, not F64 or F32", header->path, name, t->dtype);
    }
    t->to = to;
    return true;
}

// One number, from little-endian bytes.
static double decode_number(const unsigned char *bytes, uint64_t width)
{
    uint64_t bits = 0;
    for (uint64_t i = width; i-- > 0;) {
        bits = bits << 8 | bytes[i];
    }
    if (width == 4) {
        uint32_t bits32 = (uint32_t)bits;
        float x;
        memcpy(&x, &bits32, sizeof x);
        return (double)x;
    }
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The data, in the order of the file. Behind it the file ends.
static bool read_data(int file, Header *header, Error *error)
{
    unsigned char bytes[1 << 14];
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_place);
    for (size_t i = 0; i < header->n_tensors; i++) {
        Tensor *t = &header->tensors[i];
        if (!t->to && strncmp(t->name, "train.", 6) != 0) {
            return fail(error, FAILED, "%s: tensor %s: the model has none of this name", header->path,
                        shown(t->name).text);
        }
        for (uint64_t done = 0; done < t->n;) {
            uint64_t n = sizeof bytes / t->width < t->n - done ? sizeof bytes / t->width : t->n - done;
            ssize_t size = (ssize_t)(n * t->width), got = read_up_to(file, bytes, (size_t)size);
            if (got != size) {
                return fail(error, FAILED, "%s: %s", header->path,
                            got < 0 ? strerror(errno) : "it ends within the data");
            }
            for (uint64_t k = 0; t->to && k < n; k++, done++) {
                t->to[done] = decode_number(bytes + k * t->width, t->width);
                if (!isfinite(t->to[done])) {
                    return fail(error, FAILED, "%s: tensor %s: number %llu is not finite", header->path,
                                shown(t->name).text, (unsigned long long)done + 1);
                }
            }
            done += t->to ? 0 : n;
        }
    }
    ssize_t more = read_up_to(file, bytes, 1);
    return more == 0 || fail(error, FAILED, "%s: %s", header->path,
                             more < 0 ? strerror(errno) : "it goes on behind the data");
}

// The random generator, to and from the numbers of train.random.
static void pack_random(const Random *random, double *numbers)
{
    for (size_t i = 0; i < 624; i++) {
        numbers[i] = random->words[i];
    }
    numbers[624] = (double)random->used;
    numbers[625] = random->has_gauss;
    numbers[626] = random->has_gauss ? random->gauss_next : 0;
}

static bool unpack_random(Random *random, const double *numbers)
{
    bool ok = true;
    for (size_t i = 0; i < 626; i++) {
        double most = i < 624 ? 4294967295.0 : i == 624 ? 624 : 1;
        ok = ok && numbers[i] >= 0 && numbers[i] <= most && numbers[i] == floor(numbers[i]);
    }
    for (size_t i = 0; ok && i < 624; i++) {
        random->words[i] = (uint32_t)numbers[i];
    }
    if (ok) {
        random->used = (size_t)numbers[624];
        random->has_gauss = numbers[625] > 0;
        random->gauss_next = numbers[626];
    }
    return ok;
}

// A model of the sizes that the options say, without memory as yet.
static Model sized_model(const Options *o, size_t vocab_size)
{
    return (Model){.n_layer = (size_t)o->n_layer, .n_embd = (size_t)o->n_embd, .n_head = (size_t)o->n_head,
                   .head_dim = (size_t)(o->n_embd / o->n_head), .block_size = (size_t)o->block_size,
                   .vocab_size = vocab_size, .activation = o->activation};
}

// The model, its tokenizer and what else is kept, from an open file.
static bool read_model(int file, Header *header, size_t longest, Model *model, Tokenizer *tokenizer,
                       Checkpoint *checkpoint, Error *error)
{
    uint64_t data_size = 0;
    if (!read_header(file, header, &data_size, error) || !read_metadata(header, checkpoint, tokenizer, error)) {
        return false;
    }
    // Memory is taken only for a model whose numbers the file could hold.
    const Options *o = &checkpoint->options;
    double E = (double)o->n_embd, params = (2 * (double)tokenizer->vocab_size + (double)o->block_size) * E +
                                           12 * (double)o->n_layer * E * E;
    if (params * 4 > (double)data_size || 3 + 6 * o->n_layer > header->n_tensors) {
        return fail(error, FAILED, "%s: the tensors are too few or too small for the configuration", header->path);
    }
    *model = sized_model(o, tokenizer->vocab_size);
    if (!new_model(model, longest, ATOMIC, error)) {
        return false;
    }
    model->steps_done = o->step;

    double numbers[N_RANDOM] = {0};
    Matrix train_random = {.name = "train.random", .rows = N_RANDOM};
    Tensor *random = find_tensor(header, train_random.name);
    if (!place_tensor(header, "", &train_random, numbers, checkpoint, error)) {
        return false;
    }
    bool exact = random && random->width == 8;     // in fewer bits its words would not be what they were
    for (size_t i = 0; i < model->n_matrices; i++) {
        Matrix *w = &model->state_dict[i];
        ptrdiff_t at = w->data - model->params;
        if (!place_tensor(header, "", w, w->data, checkpoint, error) ||
            !place_tensor(header, "train.m.", w, model->m + at, checkpoint, error) ||
            !place_tensor(header, "train.v.", w, model->v + at, checkpoint, error)) {
            return false;
        }
    }
    if (!read_data(file, header, error)) {
        return false;
    }
    checkpoint->has_random = exact && unpack_random(&checkpoint->random, numbers);
    if (exact && !checkpoint->has_random) {
        return fail(error, FAILED, "%s: tensor train.random: not the state of the random generator", header->path);
    }
    if (random && !exact) {
        note_missing(checkpoint, "train.random in F64");
    }
    return true;
}

// Loads a model file, for work on documents of up to `longest` characters. The caller frees model and tokenizer.
static bool load_model(const char *path, size_t longest, Model *model, Tokenizer *tokenizer, Checkpoint *checkpoint,
                       Error *error)
{
    Header header = {.path = path};
    int file = open_file(path, O_RDONLY);
    bool ok = file >= 0 ? read_model(file, &header, longest, model, tokenizer, checkpoint, error)
                        : fail(error, FAILED, "%s: %s", path, strerror(errno));
    free(header.bytes);
    free(header.tensors);
    free(header.metadata);
    if (file >= 0) {
        close(file);
    }
    return ok;
}

// Replaces the code points of the first n documents by the tokens of a model.
static bool encode_documents(Documents *all, size_t n, const Tokenizer *tokenizer, const char *name, Error *error)
{
    uint32_t *token_of = token_table(tokenizer), unknown = 0;
    if (!token_of) {
        return no_memory(error);
    }
    size_t line = 0;
    for (size_t i = 0; !line && i < n; i++) {
        for (size_t k = 0; !line && k < all->docs[i].length; k++) {
            uint32_t *token = &all->docs[i].tokens[k];
            if (token_of[*token]) {
                *token = token_of[*token] - 1;
            } else {
                line = all->docs[i].line;
                unknown = *token;
            }
        }
    }
    free(token_of);
    if (line) {
        char bytes[4];
        bool control = unknown < 0x20 || (unknown >= 0x7f && unknown < 0xa0);
        int length = control ? 0 : (int)encode_utf8(unknown, bytes);
        return fail(error, FAILED, "%s:%zu: the model does not know the character %.*s%sU+%04X", name, line, length,
                    bytes, length ? ", " : "", (unsigned)unknown);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Writing model files. A file appears whole or not at all: it is written beside its final name, flushed to disk, and
 * then takes that name in one move. A run can be interrupted while it writes, too.
 */
static volatile sig_atomic_t interrupted;          // a signal has asked the run to end
static char *volatile unfinished;                  // the file that is being written, if there is one

// The first signal lets the run finish its step. The second one does not wait.
static void on_signal(int signal_number)
{
    (void)signal_number;
    if (interrupted) {
        if (unfinished) {
            unlink(unfinished);
        }
        _exit(INTERRUPTED);
    }
    interrupted = 1;
}

static void handle_signals(bool ours)
{
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = ours ? on_signal : SIG_DFL;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

// Where a model goes.
typedef struct {
    const char *name;              // as the user gave it
    char *path, *folder;           // with symbolic links followed
    char *part;                    // the name while the file is not whole
} Target;

static void free_target(Target *target)
{
    free(target->path);
    free(target->folder);
    free(target->part);
}

// Opens the file beside the final one. -1: it cannot be.
static int open_part(Target *target)
{
    int fd = -1;
    for (unsigned i = 0; fd < 0 && i < 100; i++) {
        sprintf(target->part, "%s.%ld-%u.part", target->path, (long)getpid(), i);
        fd = open_file(target->part, O_WRONLY | O_CREAT | O_EXCL);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    struct stat old;
    if (fd >= 0 && stat(target->path, &old) == 0 && fchmod(fd, old.st_mode & 0777) < 0) {
        close(fd);
        unlink(target->part);
        return -1;
    }
    unfinished = fd >= 0 ? target->part : NULL;
    return fd;
}

// Finds out, before any work is done, whether a model can be written under this name. Touches nothing that is there.
static bool find_target(Target *target, const char *name, Error *error)
{
    struct stat info;
    target->name = name;
    errno = ENOENT;
    target->path = *name ? realpath(name, NULL) : NULL;
    if (target->path) {
        if (stat(target->path, &info) < 0 || access(target->path, W_OK) < 0) {
            return fail(error, FAILED, "%s: %s", name, strerror(errno));
        }
        if (!S_ISREG(info.st_mode)) {
            return fail(error, FAILED, "%s: not a regular file", name);
        }
    } else if (errno != ENOENT || !*name) {
        return fail(error, FAILED, "%s: %s", name, strerror(errno));
    } else if (lstat(name, &info) == 0) {
        return fail(error, FAILED, "%s: a link that leads nowhere", name);
    } else {
        target->path = strdup(name);
    }
    target->folder = target->path ? strdup(target->path) : NULL;
    target->part = target->path ? malloc(strlen(target->path) + 64) : NULL;
    if (!target->folder || !target->part) {
        return no_memory(error);
    }
    char *slash = strrchr(target->folder, '/');
    if (!slash) {
        strcpy(target->folder, ".");               // of at least one character, as the name of a file is
    } else {
        slash[slash == target->folder] = '\0';
    }
    int fd = open_part(target);
    if (fd < 0) {
        return fail(error, FAILED, "%s: %s", name, strerror(errno));
    }
    close(fd);
    unlink(target->part);
    unfinished = NULL;
    return true;
}

static void write_string(FILE *out, const uint32_t *codes, size_t n)
{
    putc('"', out);
    for (size_t i = 0; i < n; i++) {
        char bytes[4];
        if (codes[i] < 0x20) {
            fprintf(out, "\\u%04x", (unsigned)codes[i]);
        } else {
            fprintf(out, "%s%.*s", codes[i] == '"' || codes[i] == '\\' ? "\\" : "",
                    (int)encode_utf8(codes[i], bytes), bytes);
        }
    }
    putc('"', out);
}

// The header: the configuration, what is kept of the run, and a line for every tensor. Spaces at its end let the
// numbers begin at a multiple of eight.
static void write_header(FILE *out, const Options *o, const Model *model, const Tokenizer *tokenizer)
{
    fprintf(out, "{\"__metadata__\":{\"format\":\"microgpt\"");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (options[i].kept) {
            char key[64], value[64];
            metadata_key(&options[i], key, sizeof key);
            option_text(&options[i], o, value, sizeof value);
            fprintf(out, ",\"%s\":\"%s\"", key, value);
        }
    }
    fprintf(out, ",\"vocab\":");
    write_string(out, tokenizer->uchars, tokenizer->BOS);
    fprintf(out, "}");
    static const char *const prefixes[] = {"", "train.m.", "train.v."};
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
    fprintf(out, "%*s", (int)((8 - ftell(out) % 8) % 8), "");
}

static bool write_word(Output *out, uint64_t bits)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(bits >> 8 * i);
    }
    return put_bytes(out, bytes, 8);
}

static bool write_numbers(Output *out, const double *a, size_t n)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &a[i], sizeof bits);
        ok = write_word(out, bits);
    }
    return ok;
}

static bool all_finite(const double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i])) {
            return false;
        }
    }
    return true;
}

// Writes the model, and what a resume needs, to its target.
static bool save_model(Target *target, const Options *o, const Model *model, const Tokenizer *tokenizer,
                       const Random *random, Error *error)
{
    size_t n = model->num_params, length = 0;
    if (!all_finite(model->params, n) || !all_finite(model->m, n) || !all_finite(model->v, n)) {
        return fail(error, FAILED, "%s: not saved: a parameter is no longer finite", target->name);
    }
    Options kept = *o;
    kept.step = model->steps_done;
    double numbers[N_RANDOM];
    pack_random(random, numbers);

    char *header = NULL;
    FILE *text = open_memstream(&header, &length);
    bool ok = text != NULL;
    if (ok) {
        write_header(text, &kept, model, tokenizer);
        ok = !ferror(text);
        ok = fclose(text) == 0 && ok;
    }
    if (!ok || length > HEADER_MOST) {
        free(header);
        return ok ? fail(error, FAILED, "%s: too many layers for a model file", target->name) : no_memory(error);
    }

    int fd = open_part(target);
    Output out = {.file = fd};
    ok = fd >= 0 && write_word(&out, length) && put_bytes(&out, header, length) &&
         write_numbers(&out, model->params, n) && write_numbers(&out, model->m, n) &&
         write_numbers(&out, model->v, n) && write_numbers(&out, numbers, N_RANDOM) && flush(&out) && fsync(fd) == 0;
    int reason = out.error ? out.error : errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        reason = errno;
    }
    if (ok && rename(target->part, target->path) != 0) {
        ok = false;
        reason = errno;
    }
    if (!ok && fd >= 0) {
        unlink(target->part);
    }
    unfinished = NULL;
    free(header);
    if (!ok) {
        return fail(error, FAILED, "%s: not saved: %s", target->name, strerror(reason));
    }
    // The new name, too, is to outlast a power failure; where folders cannot be flushed, that is the best there is.
    int folder = open_file(target->folder, O_RDONLY | O_DIRECTORY);
    ok = folder >= 0 && (fsync(folder) == 0 || errno == EINVAL);
    reason = errno;
    if (folder >= 0) {
        close(folder);
    }
    return ok || fail(error, FAILED, "%s: its folder: %s", target->name, strerror(reason));
}

/* ------------------------------------------------------------------------------------------------------------------
 * Long runs: the step's line, progress on a terminal, the log, a save now and then, an interrupt.
 */
#define LOOKS 0.05                 // seconds between two looks at the clock, and so between two drawings
#define FLUSHES 0.25               // seconds that a row of the log may wait
#define POINTS 256                 // of the loss curve, at most

struct Run {
    const Options *o;
    const Model *model;
    const Tokenizer *tokenizer;
    const Random *random;
    Target target;                 // name: NULL if nothing is to be saved
    Output log;                    // the file: -1 if there is none
    bool lines, bar;               // a line for each step? a progress bar?
    bool plain, color;             // ASCII alone? colors?
    uint64_t first;                // steps that were done when the run began
    uint64_t looked, next_look;    // steps at which the clock was, and will be, looked at
    double began, last_look, last_flush;
    double smooth, weight;         // running mean of the loss, and how much of it is there
    size_t n_points;               // of the curve
    struct { double sum, n; } curve[POINTS];
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Columns of the terminal that can be written without a wrap; with room for a ^C behind them, if there is any.
static size_t terminal_columns(void)
{
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col > 12 ? size.ws_col - 3u : size.ws_col - 1u;
    }
#endif
    return 77;
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
    return utf8 && term && strcmp(term, "linux") != 0;
}

// The bar is for people: nothing of it where standard error is no terminal, or standard output a pipe.
static void set_up_progress(Run *run)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    struct stat out;
    bool piped = fstat(STDOUT_FILENO, &out) != 0 || S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode);
    run->bar = !run->o->quiet && !piped && isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    run->lines = !run->o->quiet && !(run->bar && isatty(STDOUT_FILENO));
    run->plain = !shows_unicode();
    run->color = !(no_color && *no_color);
    run->first = run->model->steps_done;
    uint64_t todo = run->o->steps - run->first;
    run->n_points = todo < POINTS ? (size_t)todo : POINTS;
    run->looked = run->first;
    run->next_look = run->first + 1;
    run->began = run->last_look = run->last_flush = seconds();
}

static void add_to_curve(Run *run, uint64_t step, double loss)
{
    size_t i = (size_t)((step - run->first) * run->n_points / (run->o->steps - run->first));
    run->curve[i].sum += loss;
    run->curve[i].n++;
    run->smooth = 0.99 * run->smooth + 0.01 * loss;
    run->weight = 0.99 * run->weight + 0.01;
}

// Seconds as people read them.
static void time_text(double s, char *text, size_t room)
{
    unsigned long long t = s < 1e9 ? (unsigned long long)(s + 0.5) : 1000000000;
    if (t < 3600) {
        snprintf(text, room, "%llu:%02llu", t / 60, t % 60);
    } else if (t < 100 * 3600) {
        snprintf(text, room, "%llu:%02llu:%02llu", t / 3600, t / 60 % 60, t % 60);
    } else {
        snprintf(text, room, "%llu days", t / 86400);
    }
}

// One line, whatever the width: the most important figures that fit, and a bar in what is left. Some time has passed.
static void draw_bar(const Run *run, uint64_t done, double now)
{
    const Options *o = run->o;
    size_t columns = terminal_columns(), used = 0;
    double rate = (double)(done - run->first) / (now - run->began);
    char parts[4][64], left[32];
    time_text((double)(o->steps - done) / rate, left, sizeof left);
    snprintf(parts[0], sizeof parts[0], "%llu/%llu", (unsigned long long)done, (unsigned long long)o->steps);
    snprintf(parts[1], sizeof parts[1], "loss %.2f", run->smooth / run->weight);
    snprintf(parts[2], sizeof parts[2], rate < 10 ? "%.1f steps/s" : "%.0f steps/s", rate);
    snprintf(parts[3], sizeof parts[3], "%s left", left);
    if (strlen(parts[0]) + 2 + strlen(parts[1]) > columns) {
        snprintf(parts[0], sizeof parts[0], "%.0f%%", 100 * (double)done / (double)o->steps);
    }
    static const size_t importance[] = {0, 1, 3, 2};
    bool fits[4] = {false};
    for (size_t k = 0; k < 4; k++) {
        size_t i = importance[k], length = strlen(parts[i]) + (used ? 2 : 0);
        fits[i] = used + length <= columns;
        used += fits[i] ? length : 0;
    }

    // A bar's mark takes up to three bytes, and one or two colors are switched on and off.
    char text[512], *at = text;
    at += sprintf(at, "\r");
    size_t cells = columns - used > 2 ? columns - used - 2 : 0;
    cells = cells < 8 ? 0 : cells > 40 ? 40 : cells;
    size_t full = (size_t)((double)done / (double)o->steps * (double)cells);
    at += sprintf(at, "%s", cells && run->color ? "\033[36m" : "");
    for (size_t i = 0; i < cells; i++) {
        at += sprintf(at, "%s%s", i == full && run->color ? "\033[0;2m" : "",
                      run->plain ? (i < full ? "#" : ".") : (i < full ? "\u2501" : "\u2500"));
    }
    at += sprintf(at, "%s", cells ? (run->color ? "\033[0m  " : "  ") : "");
    for (size_t i = 0, n = 0; i < 4; i++) {
        if (fits[i]) {
            at += sprintf(at, "%s%s", n++ ? "  " : "", parts[i]);
        }
    }
    at += sprintf(at, "\033[K");
    fwrite(text, 1, (size_t)(at - text), stderr);
}

// The loss curve, six lines high: in Braille, which has two by four dots to a character, or in ASCII.
static void draw_curve(const Run *run, double took)
{
    enum { ROWS = 6, WIDEST = 64 };
    size_t columns = terminal_columns(), across = run->plain ? 1 : 2, up = run->plain ? 2 : 4;
    if (columns < 16 || run->n_points < 2) {
        return;
    }
    size_t width = columns - 10 < WIDEST ? columns - 10 : WIDEST;
    width = width * across > run->n_points ? (run->n_points + across - 1) / across : width;
    size_t n = width * across < run->n_points ? width * across : run->n_points;

    // The points that fall into one column, averaged; then each column with its neighbours, for a quieter line.
    double mean[2 * WIDEST], y[2 * WIDEST], low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        double sum = 0, count = 0;
        for (size_t k = i * run->n_points / n; k < (i + 1) * run->n_points / n; k++) {
            sum += run->curve[k].sum;
            count += run->curve[k].n;
        }
        mean[i] = sum / count;
    }
    for (size_t i = 0; i < n; i++) {
        size_t reach = i < n / 40 ? i : n / 40, count = 0;
        y[i] = 0;
        for (size_t k = i - reach; k <= i + reach && k < n; k++, count++) {
            y[i] += mean[k];
        }
        y[i] /= (double)count;
        low = y[i] < low ? y[i] : low;
        high = y[i] > high ? y[i] : high;
    }

    // Bits of a Braille character, from the lower left dot up, then the right column; in ASCII, a low or a high dot.
    static const unsigned char dots[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
    unsigned char cells[ROWS][WIDEST] = {{0}};
    size_t before = 0;
    for (size_t i = 0; i < n; i++) {
        size_t level = high > low ? (size_t)((y[i] - low) / (high - low) * (double)(ROWS * up - 1) + 0.5) : 0;
        before = i ? before : level;
        for (size_t k = level < before ? level : before; k <= (level < before ? before : level); k++) {
            if (k == level || (k != before && !run->plain)) {
                cells[k / up][i / across] |= dots[i % across][k % up];
            }
        }
        before = level;
    }
    char title[96];
    snprintf(title, sizeof title, took < 10 ? "loss over %llu steps, in %.2f s" : "loss over %llu steps, in %.0f s",
             (unsigned long long)(run->o->steps - run->first), took);
    fprintf(stderr, "%.*s\n", (int)columns, title);
    for (size_t row = ROWS; row-- > 0;) {
        char label[32] = "";
        if (row == ROWS - 1 || row == 0) {
            snprintf(label, sizeof label, "%.2f", row ? high : low);
        }
        fprintf(stderr, "%7.7s %s%s", label, run->plain ? "|" : row == ROWS - 1 || row == 0 ? "\u2524" : "\u2502",
                run->color ? "\033[36m" : "");
        for (size_t i = 0; i < width; i++) {
            char bytes[4];
            unsigned char cell = cells[row][i];
            if (run->plain || !cell) {
                fputc(!cell ? ' ' : cell == dots[0][0] ? '.' : '\'', stderr);
            } else {
                fprintf(stderr, "%.*s", (int)encode_utf8(0x2800u + cell, bytes), bytes);
            }
        }
        fprintf(stderr, "%s\n", run->color ? "\033[0m" : "");
    }
    char first[32], last[32];
    snprintf(first, sizeof first, "%llu", (unsigned long long)run->first + 1);
    snprintf(last, sizeof last, "%llu", (unsigned long long)run->o->steps);
    int gap = (int)width - (int)strlen(first) - (int)strlen(last);
    fprintf(stderr, "%9s%s%*s%s\n", "", first, gap > 1 ? gap : 1, "", last);
}

static bool log_failed(const Run *run, Error *error)
{
    return fail(error, FAILED, "%s: %s", run->o->log, strerror(run->log.error ? run->log.error : errno));
}

// The log of a resumed run goes on behind the last step that the model file knows; later rows are cut off, as the same
// steps will be done again. A file that is not such a log is left alone.
static bool open_log(Run *run, Error *error)
{
    struct stat info;
    static const char heading[] = "step,loss,lr\n";
    const char *name = run->o->log;
    bool old = run->o->resume && stat(name, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    run->log.file = open_file(name, old ? O_RDWR : O_WRONLY | O_CREAT | O_TRUNC);
    if (run->log.file < 0 || !old) {
        return (run->log.file >= 0 && put(&run->log, "%s", heading)) || log_failed(run, error);
    }
    unsigned char *text = NULL;
    size_t n = 0, end = sizeof heading - 1;
    bool ok = read_all(run->log.file, &text, &n, error, name);
    if (ok && (n < end || memcmp(text, heading, end) != 0)) {
        ok = fail(error, FAILED, "%s: not a log that can be continued: it does not begin with step,loss,lr", name);
    }
    while (ok && end < n) {
        unsigned char *line = text + end, *newline = memchr(line, '\n', n - end);
        if (!newline) {
            break;
        }
        *newline = '\0';
        if (strtoull((const char *)line, NULL, 10) > run->first) {
            break;
        }
        end = (size_t)(newline - text) + 1;
    }
    free(text);
    return ok && ((ftruncate(run->log.file, (off_t)end) == 0 && lseek(run->log.file, (off_t)end, SEEK_SET) >= 0) ||
                  log_failed(run, error));
}

// Now and then, the clock is looked at: so seldom that it costs nothing.
static bool look_at_clock(Run *run, uint64_t done, Error *error)
{
    double now = seconds(), took = now - run->last_look + 1e-9;
    double steps = (double)(done - run->looked), next = steps * LOOKS / took;
    next = next < 2 * steps ? next : 2 * steps;
    run->next_look = done + (next > 1 ? (uint64_t)next : 1);
    run->looked = done;
    run->last_look = now;
    if (run->bar && now - run->began > LOOKS) {
        draw_bar(run, done, now);
    }
    if (run->log.file >= 0 && now - run->last_flush > FLUSHES) {
        run->last_flush = now;
        return flush(&run->log) || log_failed(run, error);
    }
    return true;
}

// If the run is to be saved, saves it. The log is never behind the model file.
static bool save_run(Run *run, Error *error)
{
    if (!run->target.path) {
        return true;
    }
    if (run->log.file >= 0 && !flush(&run->log)) {
        return log_failed(run, error);
    }
    return save_model(&run->target, run->o, run->model, run->tokenizer, run->random, error);
}

static bool stop_run(Run *run, Error *error)
{
    if (!save_run(run, error)) {
        return false;
    }
    return fail(error, INTERRUPTED, "interrupted after step %llu of %llu; %s%s",
                (unsigned long long)run->model->steps_done, (unsigned long long)run->o->steps,
                run->o->save ? "saved in " : "not saved, as --save was not given", run->o->save ? run->o->save : "");
}

static bool after_step(Run *run, uint64_t step, double loss, Error *error)
{
    const Options *o = run->o;
    uint64_t done = step + 1;
    if (run->lines && !say(error, "step %4llu / %4llu | loss %.4f%c", (unsigned long long)done,
                           (unsigned long long)o->steps, loss, o->recipe == RECIPE_LESSON ? '\n' : '\r')) {
        return false;
    }
    if (run->log.file >= 0 && !put(&run->log, "%llu,%.17g,%.17g\n", (unsigned long long)done, loss,
                                   learning_rate(o, step))) {
        return log_failed(run, error);
    }
    if (run->bar) {
        add_to_curve(run, step, loss);
    }
    if (done >= run->next_look && (run->bar || run->log.file >= 0) && !look_at_clock(run, done, error)) {
        return false;
    }
    if (interrupted) {
        return stop_run(run, error);
    }
    return !o->save_every || done % o->save_every || done == o->steps || save_run(run, error);
}

// Before the first step. What can be found wrong at once is found here, and not after an hour.
// Whether two names lead to the same file. One that is not there yet is only itself.
static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return a && b && (strcmp(a, b) == 0 || (stat(a, &first) == 0 && stat(b, &second) == 0 && S_ISREG(first.st_mode) &&
                                            first.st_dev == second.st_dev && first.st_ino == second.st_ino));
}

static bool begin_run(Run *run, Error *error)
{
    const Options *o = run->o;
    if (same_file(o->save, o->data) || same_file(o->log, o->data) || same_file(o->save, o->log) ||
        same_file(o->log, o->resume)) {
        return fail(error, USAGE, "%s: it cannot be two things at once: --data, --save, --log and --resume", o->save &&
                    (same_file(o->save, o->data) || same_file(o->save, o->log)) ? o->save : o->log);
    }
    set_up_progress(run);
    if ((run->o->save && !find_target(&run->target, run->o->save, error)) ||
        (run->o->log && !open_log(run, error))) {
        return false;
    }
    handle_signals(true);
    return true;
}

// After the last step; or, with ok false, after a failure or an interrupt.
static bool end_run(Run *run, bool ok, Error *error)
{
    if (run->bar) {
        fputs("\r\033[K", stderr);
    }
    double took = seconds() - run->began;
    ok = ok && save_run(run, error);
    ok = ok && (!interrupted || stop_run(run, error));
    if (run->log.file >= 0) {
        bool written = flush(&run->log);
        ok = ((close(run->log.file) == 0 && written) || !ok || log_failed(run, error)) && ok;
    }
    if (run->bar && ok) {
        draw_curve(run, took);
    }
    handle_signals(false);
    free_target(&run->target);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------------
 * What the heads see. Attention is read off the tape: every weighted sum there is one head at one position, and its
 * first operand is the weights, one for each position that was looked at.
 */
typedef struct {
    double self, previous, first, elsewhere;     // shares of the attention; of two that fit, the one named first
    double entropy;                              // bits: 0 for one position alone, log2(n) for n alike
    double loss;                                 // of the model without this head
} HeadView;

// The i-th weighted sum after the mark: which layer, head and position (query) it belongs to follows from i.
static const Line *next_look(const Tape *tape, size_t *line)
{
    while (*line < tape->n_lines && tape->lines[*line].op != OP_WEIGHTED_SUM) {
        ++*line;
    }
    return *line < tape->n_lines ? &tape->lines[(*line)++] : NULL;
}

// The mean loss over the tokens of the first n documents, of which there are *n_tokens. Unless `views` is NULL, it
// takes what each head looked at.
static double mean_loss(Model *model, const Tokenizer *tokenizer, const Documents *all, size_t n_docs,
                        size_t *n_tokens, HeadView *views)
{
    Tape *tape = &model->tape;
    double sum = 0;
    size_t n_heads = model->n_layer * model->n_head;
    *n_tokens = 0;
    tape->recording = views;
    for (size_t i = 0; i < n_docs; i++) {
        tape_drop(tape);
        size_t n = take_document(model, tokenizer, all->docs[i]);
        sum += *document_loss(model, model->tokens, n) * (double)n;
        *n_tokens += n;
        const Line *look;
        for (size_t line = tape->first_line, k = 0; views && (look = next_look(tape, &line)); k++) {
            HeadView *view = &views[k % n_heads];
            size_t query = k / n_heads;
            for (size_t key = 0; key <= query; key++) {
                double weight = look->a[key];
                double *share = key == query ? &view->self : key + 1 == query ? &view->previous
                              : key == 0 ? &view->first : &view->elsewhere;
                *share += weight;
                view->entropy -= weight > 0 ? weight * log2(weight) : 0;
            }
        }
    }
    double tokens = (double)*n_tokens;
    for (size_t k = 0; views && k < n_heads; k++) {
        views[k].self /= tokens;
        views[k].previous /= tokens;
        views[k].first /= tokens;
        views[k].elsewhere /= tokens;
        views[k].entropy /= tokens;
    }
    return sum / tokens;
}

// The loss with one head silenced. Its slice of x_attn meets only its columns of attn_wo, so setting those to zero is
// the same as setting the slice to zero.
static double loss_without(Model *model, const Tokenizer *tokenizer, const Documents *all, size_t n_docs, size_t layer,
                           size_t head, double *kept)
{
    Matrix *wo = model->layers[layer].attn_wo;
    memcpy(kept, wo->data, wo->rows * wo->cols * sizeof *kept);
    for (size_t row = 0; row < wo->rows; row++) {
        memset(wo->data + row * wo->cols + head * model->head_dim, 0, model->head_dim * sizeof *kept);
    }
    size_t n_tokens;
    double loss = mean_loss(model, tokenizer, all, n_docs, &n_tokens, NULL);
    memcpy(wo->data, kept, wo->rows * wo->cols * sizeof *kept);
    return loss;
}

// The weights of the n positions that were just run, [position][layer][head] of them; false if one is not finite.
static bool take_looks(const Model *model, size_t n, const double **weights)
{
    const Line *look;
    size_t n_heads = model->n_layer * model->n_head;
    for (size_t line = model->tape.first_line, k = 0; k < n_heads * n && (look = next_look(&model->tape, &line)); k++) {
        weights[k] = look->a;
        if (!all_finite(look->a, k / n_heads + 1)) {
            return false;
        }
    }
    return true;
}

// How the views are drawn: in colors, with block characters, or with digits.
typedef enum { DIGITS, BLOCKS, COLORS } Paint;

typedef struct {
    size_t width;                // columns there are
    Paint paint;
} Screen;

static Screen screen_of_output(void)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR"), *columns = getenv("COLUMNS");
    bool dumb = term && strcmp(term, "dumb") == 0, terminal = isatty(STDOUT_FILENO);
    if (!setlocale(LC_CTYPE, "C.UTF-8")) {               // for wcwidth() alone
        setlocale(LC_CTYPE, "");
    }
    unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
    Screen screen = {width > 0 && width < 10000 ? (size_t)width : 80, DIGITS};
    if (terminal && term && *term && !dumb && !(no_color && *no_color)) {
        screen.paint = COLORS;
    } else if (!dumb && shows_unicode()) {
        screen.paint = BLOCKS;
    }
#ifdef TIOCGWINSZ
    struct winsize size;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) {
        screen.width = size.ws_col;
    }
#endif
    return screen;
}

// A text, broken between words where the screen ends; what follows on is indented.
static bool say_wrapped(Error *error, Screen screen, const char *text)
{
    bool ok = true;
    size_t column = 0;
    while (ok && *text) {
        size_t bytes = strcspn(text, " "), columns = 0;
        for (size_t i = 0; i < bytes; i++) {
            columns += ((unsigned char)text[i] & 0xc0) != 0x80;
        }
        bool fits = !column || column + 1 + columns <= screen.width;
        ok = say(error, "%s%.*s", !column ? "" : fits ? " " : "\n  ", (int)bytes, text);
        column = (!column ? 0 : fits ? column + 1 : 2) + columns;
        text += bytes + (text[bytes] == ' ');
    }
    return ok && say(error, "\n");
}

// What stands for position i, and how many columns it takes. ^ is the start; what cannot be seen is made visible.
typedef struct {
    char text[8];
    int columns;
} Label;

static Label label_of(const Model *model, const Tokenizer *tokenizer, Screen screen, size_t i)
{
    uint32_t code = i ? tokenizer->uchars[model->tokens[i]] : '^';
    Label label = {"", 1};
    if (is_space(code)) {
        strcpy(label.text, screen.paint == DIGITS ? "_" : "\u2423");
    } else if (code < ' ' || (code >= 0x7f && code < 0xa0)) {      // a terminal would obey it
        strcpy(label.text, "?");
    } else {
        int columns = wcwidth((wchar_t)code);
        label.columns = columns > 0 ? columns : 1;
        if (columns == 0) {                                        // a mark that goes onto the character before it
            strcpy(label.text, "\u25cc");
        }
        bool steers = (code >= 0x200b && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
                      (code >= 0x2060 && code <= 0x206f);          // joins or turns the text around it
        if (!steers) {
            encode_utf8(code, label.text + strlen(label.text));
        }
    }
    return label;
}

static bool say_label(Error *error, Label label, size_t width)
{
    int left = ((int)width - label.columns) / 2, right = (int)width - label.columns - left;
    return say(error, "%*s%s%*s", left, "", label.text, right, "");
}

// One entry of a map. The strongest of its row says its percentage, where a cell is wide enough.
static bool say_cell(Error *error, Screen screen, double weight, bool strongest, size_t width)
{
    static const char *const blocks[] = {"\u00b7", "░", "▒", "▓", "█"};
    static const int ramp[] = {234, 236, 17, 18, 19, 26, 32, 38, 44, 50, 87};
    int tenths = (int)(weight * 10 + 0.5);
    bool faint = weight < 0.05;
    char text[16] = "";
    if (strongest && width == 3) {
        snprintf(text, sizeof text, weight < 0.995 ? "%2.0f%%" : "%.0f", 100 * weight);
    } else if (screen.paint == COLORS) {
        snprintf(text, sizeof text, "%*s", (int)width, "");
    } else if (screen.paint == DIGITS) {
        snprintf(text, sizeof text, "%*c%*s", width < 3 ? 1 : 2, faint ? '.' : '0' + (tenths < 9 ? tenths : 9),
                 width > 1 ? 1 : 0, "");
    } else if (faint) {
        snprintf(text, sizeof text, "%s%s%s", width < 3 ? "" : " ", blocks[0], width > 1 ? " " : "");
    } else {
        for (size_t i = 0; i < width; i++) {
            strcat(text, blocks[weight < 0.15 ? 1 : weight < 0.3 ? 2 : weight < 0.5 ? 3 : 4]);
        }
    }
    if (screen.paint != COLORS) {
        return say(error, "%s", text);
    }
    return say(error, "\033[48;5;%d;38;5;%dm%s\033[0m", ramp[tenths], tenths > 5 ? 16 : 255, text);
}

// The maps of n positions, as many side by side as fit. Where a row of cells with percentages is too wide, the cells
// are as narrow as the labels, and the percentage of the strongest stands behind the row.
static bool draw_maps(const Model *model, const Tokenizer *tokenizer, const double *const *weights, size_t n,
                      Screen screen, Error *error)
{
    size_t n_heads = model->n_layer * model->n_head, widest = 1;
    for (size_t i = 0; i < n; i++) {
        widest = label_of(model, tokenizer, screen, i).columns > 1 ? 2 : widest;
    }
    size_t margin = widest + 1, cell = margin + 3 * n <= screen.width ? 3 : widest;
    size_t one = margin + cell * n + (cell < 3 ? 5 : 0), gap = 3;
    one = one < 16 ? 16 : one;                                     // room for the title
    size_t abreast = (screen.width + gap) / (one + gap);
    abreast = abreast < 1 ? 1 : abreast;
    bool ok = true;
    for (size_t from = 0; ok && from < n_heads; from += abreast) {
        size_t to = from + abreast < n_heads ? from + abreast : n_heads;
        for (size_t h = from; ok && h < to; h++) {
            char title[64];
            snprintf(title, sizeof title, "layer %zu head %zu", h / model->n_head, h % model->n_head);
            ok = say(error, "%-*s", h + 1 < to ? (int)(one + gap) : 0, title);
        }
        for (size_t row = 0; ok && row <= n; row++) {              // row 0: the labels of the columns
            ok = say(error, "\n");
            for (size_t h = from; ok && h < to; h++) {
                // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): the tape has a look for each of them
                const double *w = row ? weights[(row - 1) * n_heads + h] : NULL;
                size_t strongest = 0, used = margin + cell * (row ? row : n);
                for (size_t key = 1; key < row; key++) {
                    strongest = w[key] > w[strongest] ? key : strongest;
                }
                ok = row ? say_label(error, label_of(model, tokenizer, screen, row - 1), widest) && say(error, " ")
                         : say(error, "%*s", (int)margin, "");
                for (size_t key = 0; ok && key < (row ? row : n); key++) {
                    ok = row ? say_cell(error, screen, w[key], key == strongest, cell)
                             : say_label(error, label_of(model, tokenizer, screen, key), cell);
                }
                if (ok && row && cell < 3) {
                    ok = say(error, "%*s %3.0f%%", (int)(cell * (n - row)), "", 100 * w[strongest]);
                    used = margin + cell * n + 5;
                }
                if (ok && h + 1 < to) {
                    ok = say(error, "%*s", (int)(one + gap - used), "");
                }
            }
        }
        ok = ok && say(error, "\n\n");
    }
    static const char *const others[] = {
        [DIGITS] = "the others in tenths (. under 5%)",
        [BLOCKS] = "the others as \u00b7 under 5%, ░ under 15%, ▒ under 30%, ▓ under 50%, █ above",
        [COLORS] = "the others in shades, brighter for more",
    };
    char legend[256];
    snprintf(legend, sizeof legend, "Rows look at columns; ^ is the start. The strongest of a row in percent, %s.",
             others[screen.paint]);
    return ok && say_wrapped(error, screen, legend);
}

static bool say_map_values(const Model *model, const double *const *weights, size_t n, Error *error)
{
    size_t n_heads = model->n_layer * model->n_head;
    bool ok = say(error, "layer\thead\tquery\tkey\tweight\n");
    for (size_t h = 0; ok && h < n_heads; h++) {
        for (size_t query = 0; ok && query < n; query++) {
            for (size_t key = 0; ok && key <= query; key++) {
                ok = say(error, "%zu\t%zu\t%zu\t%zu\t%.17g\n", h / model->n_head, h % model->n_head, query, key,
                         weights[query * n_heads + h][key]);
            }
        }
    }
    return ok;
}

// One row a head; on a narrow screen, a few lines a head.
static bool say_views(const Model *model, const HeadView *views, double loss, Screen screen, Error *error)
{
    size_t n_heads = model->n_layer * model->n_head;
    bool wide = screen.width >= 79;
    double most = 0;
    for (size_t h = 0; h < n_heads; h++) {
        most = fmax(most, fabs(views[h].loss - loss));
    }
    bool ok = !wide || say(error, "layer head itself before  first elsewhere entropy loss without  change\n");
    for (size_t h = 0; ok && h < n_heads; h++) {
        HeadView v = views[h];
        double change = v.loss - loss;
        char bar[40] = "", text[512];
        for (int i = 0; most > 0 && i < (int)(8 * fabs(change) / most + 0.5); i++) {
            strcat(bar, shows_unicode() && screen.paint != DIGITS ? "█" : "#");
        }
        snprintf(text, sizeof text, wide ? "%5zu %4zu %5.1f%% %5.1f%% %5.1f%% %8.1f%% %7.2f %12.4f %+7.4f%s%s\n"
                                         : "layer %zu head %zu: itself %.1f%%, before %.1f%%, first %.1f%%, elsewhere "
                                           "%.1f%%, entropy %.2f, loss without %.4f, change %+.4f%s%s",
                 h / model->n_head, h % model->n_head, 100 * v.self, 100 * v.previous, 100 * v.first,
                 100 * v.elsewhere, v.entropy, v.loss, change, *bar ? " " : "", bar);
        ok = wide ? say(error, "%s", text) : say_wrapped(error, screen, text);
    }
    char text[64];
    snprintf(text, sizeof text, "The loss with all heads: %.4f", loss);
    return ok && say(error, "\n") && say_wrapped(error, screen, text);
}

// What stands out, in words, and only if the numbers carry it.
static bool say_findings(const Model *model, const HeadView *views, double loss, Screen screen, Error *error)
{
    bool ok = true, any = false;
    for (size_t h = 0; ok && h < model->n_layer * model->n_head; h++) {
        HeadView v = views[h];
        double change = v.loss - loss;
        const struct { bool carried; const char *text; double figure; } findings[] = {
            {v.previous > 0.5, "looks back one character more than half of the time: %.1f%%.", 100 * v.previous},
            {v.self > 0.5, "looks at its own position more than half of the time: %.1f%%.", 100 * v.self},
            {v.first > 0.5, "looks at the first position more than half of the time: %.1f%%.", 100 * v.first},
            {fabs(change) < 0.005, "hardly matters: without it the loss changes by %+.4f.", change},
            {change <= -0.005, "is in the way: without it the loss is lower, by %.4f.", -change},
        };
        for (size_t i = 0; ok && i < sizeof findings / sizeof findings[0]; i++) {
            if (findings[i].carried) {
                char text[192];
                int n = snprintf(text, sizeof text, "- Layer %zu head %zu ", h / model->n_head, h % model->n_head);
                snprintf(text + n, sizeof text - (size_t)n, findings[i].text, findings[i].figure);
                ok = (any || say(error, "\nWhat stands out:\n")) && say_wrapped(error, screen, text);
                any = true;
            }
        }
    }
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Page: the model as one HTML file. All that it shows, it computes itself: data/page.html is the whole of it but for
 * the model, which goes in at one place as JSON. Nothing in there can end the JSON, or the script that holds it.
 */
#define PAGE_PARAMS 1000000        // more of them would be a page of 32 MB, and a browser that no longer answers
#define PAGE_POINTS 1000           // of the loss curve

static void put_character(Output *out, uint32_t code)
{
    if (code > 0xffff) {                                 // JSON has 16 bits for an escape: two of them
        put(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)), (unsigned)(0xdc00 + (code & 0x3ff)));
    } else {
        bool plain = code >= ' ' && code < 0x7f && !strchr("\"\\<>&'", (int)code);
        put(out, plain ? "%c" : "\\u%04x", (int)code);
    }
}

// A text in UTF-8, as a string; a byte that is not UTF-8 becomes the character that stands for such bytes.
static void put_string(Output *out, const char *text)
{
    size_t n = strlen(text), used = 1;
    put(out, "\"");
    for (size_t i = 0; i < n; i += used) {
        int32_t code = decode_utf8((const unsigned char *)text + i, n - i, &used);
        used = code < 0 ? 1 : used;
        put_character(out, code < 0 ? 0xfffd : (uint32_t)code);
    }
    put(out, "\"");
}

// Numbers as base64 of their little-endian bytes: three bytes are four characters, and = fills up the last four.
static void put_numbers(Output *out, const char *name, const double *a, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    put(out, ",\n\"%s\":\"", name);
    for (size_t i = 0; i < 8 * n; i += 3) {
        size_t here = 8 * n - i < 3 ? 8 * n - i : 3;
        uint32_t three = 0;
        for (size_t k = i; k < i + here; k++) {
            uint64_t bits;
            memcpy(&bits, &a[k / 8], sizeof bits);
            three |= (uint32_t)(bits >> 8 * (k % 8) & 0xff) << 8 * (2 - (k - i));
        }
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63], here > 1 ? digits[three >> 6 & 63] : '=',
                        here > 2 ? digits[three & 63] : '='};
        put_bytes(out, four, 4);
    }
    put(out, "\"");
}

// The losses in a log, one a step, into memory of the caller's.
static bool read_losses(const char *name, double **losses, size_t *n, uint64_t *first, Error *error)
{
    static const char heading[] = "step,loss,lr\n";
    unsigned char *text = NULL;
    size_t length = 0, line = 2;
    int file = open_file(name, O_RDONLY);
    bool ok = file >= 0 ? read_all(file, &text, &length, error, name)
                        : fail(error, FAILED, "%s: %s", name, strerror(errno));
    if (ok && (length < sizeof heading || memcmp(text, heading, sizeof heading - 1) != 0)) {
        ok = fail(error, FAILED, "%s: not a log of a run: %s", name,
                  length == sizeof heading - 1 ? "no step in it" : "it does not begin with step,loss,lr");
    }
    char *at = ok ? (char *)text + sizeof heading - 1 : NULL, *newline;
    while (ok && (newline = memchr(at, '\n', length - (size_t)(at - (char *)text)))) {
        char *end = at;
        uint64_t step = strtoull(at, &end, 10);
        double loss = *end == ',' && end[1] != ',' ? strtod(end + 1, &end) : NAN;
        double *more = grown(*losses, *n, sizeof *more);
        *losses = more ? more : *losses;
        *first = *n ? *first : step;
        ok = more ? (*end == ',' && end < newline && isfinite(loss) && step == *first + *n) ||
                        fail(error, FAILED, "%s:%zu: not the next step's step,loss,lr", name, line)
                  : no_memory(error);
        if (ok) {
            more[(*n)++] = loss;
        }
        at = newline + 1;
        line++;
    }
    free(text);
    if (file >= 0) {
        close(file);
    }
    return ok;
}

// The curve of n losses, of which a page shows PAGE_POINTS at most: the least, the mean and the largest of each stretch.
static void put_curve(Output *out, const double *losses, size_t n, uint64_t first)
{
    size_t points = n < PAGE_POINTS ? n : PAGE_POINTS;
    put(out, ",\n\"log\":{\"first\":%llu,\"steps\":%zu,\"points\":[", (unsigned long long)first, n);
    for (size_t i = 0; i < points; i++) {
        size_t from = i * n / points, to = (i + 1) * n / points;
        double low = losses[from], high = losses[from], sum = 0;
        for (size_t k = from; k < to; k++) {
            low = fmin(low, losses[k]);
            high = fmax(high, losses[k]);
            sum += losses[k];
        }
        put(out, "%s[%.4g,%.4g,%.4g]", i ? "," : "", low, sum / (double)(to - from), high);
    }
    put(out, "]}");
}

// The model as JSON: what its file says of it, the names and shapes of its matrices, their numbers, Adam's memory.
static void put_model(Output *out, const Options *o, const Model *model, const Tokenizer *tokenizer,
                      const Checkpoint *checkpoint)
{
    const char *slash = strrchr(o->arguments[0], '/');
    put(out, "{\"version\":\"%s\",\n\"file\":", VERSION);
    put_string(out, slash ? slash + 1 : o->arguments[0]);
    put(out, ",\n\"word\":");
    if (o->n_arguments == 2) {
        put_string(out, o->arguments[1]);
    } else {
        put(out, "null");
    }
    put(out, ",\n\"missing\":");
    put_string(out, checkpoint->missing);
    put(out, ",\n\"metadata\":{\"vocab\":\"");
    for (size_t i = 0; i < tokenizer->BOS; i++) {
        put_character(out, tokenizer->uchars[i]);
    }
    put(out, "\"");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (options[i].kept) {
            char key[64], value[64];
            metadata_key(&options[i], key, sizeof key);
            option_text(&options[i], &checkpoint->options, value, sizeof value);
            put(out, ",\"%s\":\"%s\"", key, value);
        }
    }
    put(out, "},\n\"state_dict\":[");
    for (size_t i = 0; i < model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i];
        put(out, "%s{\"name\":\"%s\",\"rows\":%zu,\"cols\":%zu}", i ? "," : "", w->name, w->rows, w->cols);
    }
    put(out, "]");
    put_numbers(out, "params", model->params, model->num_params);
    put_numbers(out, "m", model->m, model->num_params);
    put_numbers(out, "v", model->v, model->num_params);
}

// The page on standard output: the shipped one up to the mark, the model, and the rest.
static bool say_page(const Options *o, const char *argv0, const Model *model, const Tokenizer *tokenizer,
                     const Checkpoint *checkpoint, Error *error)
{
    static const char mark[] = "THE MODEL";
    char name[4200];
    unsigned char *page = NULL, *place = NULL;
    size_t n = 0, n_losses = 0;
    double *losses = NULL;
    uint64_t first = 0;
    int file = open_shipped(argv0, "page.html", name, sizeof name);
    bool ok = file >= 0 ? read_all(file, &page, &n, error, name)
                        : fail(error, FAILED, "%s: %s", name, strerror(errno));
    for (size_t i = 0; ok && !place && i + sizeof mark <= n; i++) {
        place = memcmp(page + i, mark, sizeof mark - 1) == 0 ? page + i : NULL;
    }
    ok = ok && (place || fail(error, FAILED, "%s: no place for the model in it", name));
    ok = ok && (!o->log || read_losses(o->log, &losses, &n_losses, &first, error));
    if (ok) {
        Output *out = &standard_output;
        put_bytes(out, page, (size_t)(place - page));
        put_model(out, o, model, tokenizer, checkpoint);
        if (n_losses) {
            put_curve(out, losses, n_losses, first);
        }
        put(out, "}");
        put_bytes(out, place + sizeof mark - 1, n - (size_t)(place - page) - (sizeof mark - 1));
        ok = say_now(error);
    }
    free(page);
    free(losses);
    if (file >= 0) {
        close(file);
    }
    return ok;
}

static bool read_text(const char *what, const char *text, const Tokenizer *tokenizer, size_t block_size,
                      uint32_t **tokens, size_t *length, Error *error);

static bool run_page(const Options *o, const char *argv0, Error *error)
{
    if (isatty(STDOUT_FILENO)) {
        return fail(error, USAGE, "page: it is a file for a browser; redirect it, as in microgpt page %s > page.html",
                    o->arguments[0]);
    }
    Tokenizer tokenizer = {0};
    Model model = {0};
    Checkpoint checkpoint = {0};
    uint32_t *word = NULL;
    size_t length = 0;
    bool ok = load_model(o->arguments[0], 0, &model, &tokenizer, &checkpoint, error) &&
              (model.num_params <= PAGE_PARAMS ||
               fail(error, FAILED, "%s: too large for a page: %zu parameters, and the limit is %d", o->arguments[0],
                    model.num_params, PAGE_PARAMS)) &&
              read_text("the word", o->n_arguments == 2 ? o->arguments[1] : "", &tokenizer, model.block_size, &word,
                        &length, error) &&
              say_page(o, argv0, &model, &tokenizer, &checkpoint, error);
    free(word);
    free(tokenizer.uchars);
    free_model(&model);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Commands.
 */

// The tokens of a text that the command line gives (`what` says as what), into memory of the caller's. With the start
// token before them they must fit the block.
static bool read_text(const char *what, const char *text, const Tokenizer *tokenizer, size_t block_size,
                      uint32_t **tokens, size_t *length, Error *error)
{
    size_t n = strlen(text), used = 0;
    *length = 0;
    *tokens = malloc((n + 1) * sizeof **tokens);
    uint32_t *token_of = n ? token_table(tokenizer) : NULL;
    if (!*tokens || (n && !token_of)) {
        free(token_of);
        return no_memory(error);
    }
    bool ok = true;
    for (size_t i = 0; ok && i < n; i += used) {
        int32_t code = decode_utf8((const unsigned char *)text + i, n - i, &used);
        if (code < 0) {
            ok = fail(error, USAGE, "%s: not valid UTF-8", what);
        } else if (!token_of[code]) {
            ok = fail(error, USAGE, "%s %s: the model does not know the character %.*s", what, text, (int)used,
                      text + i);
        } else {
            (*tokens)[(*length)++] = token_of[code] - 1;
        }
    }
    free(token_of);
    if (ok && *length >= block_size) {
        ok = fail(error, USAGE, "%s %s: too long: the model's block holds the start and %zu characters", what, text,
                  block_size - 1);
    }
    return ok;
}

// A number that documents which differ do not share: the hash FNV-1a of their characters, each document's length first.
static uint64_t fingerprint(const Documents *all)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < all->n; i++) {
        hash = (hash ^ all->docs[i].length) * 1099511628211u;
        for (size_t k = 0; k < all->docs[i].length; k++) {
            hash = (hash ^ all->docs[i].tokens[k]) * 1099511628211u;
        }
    }
    return hash;
}

// The options of a resumed run: those that the file keeps, except where another value is given and may be.
static bool resume_options(Options *o, const Checkpoint *checkpoint, Error *error)
{
    if (checkpoint->missing[0]) {
        return fail(error, FAILED, "%s: a model that cannot be resumed: it has no %s", o->resume, checkpoint->missing);
    }
    for (size_t i = 0; i < N_OPTIONS; i++) {
        char ours[64], theirs[64];
        option_text(&options[i], o, ours, sizeof ours);
        option_text(&options[i], &checkpoint->options, theirs, sizeof theirs);
        bool given = o->given >> i & 1;
        if (given && options[i].kept && options[i].kept != OF_RUN_FREE && strcmp(ours, theirs) != 0) {
            return fail(error, USAGE, "--%s %s: the run in %s has %s", options[i].name, ours, o->resume, theirs);
        }
        if (!given && options[i].kept) {
            set_option(o, &options[i], theirs, error);           // which was checked when the file was read
        }
    }
    return o->steps >= o->step || fail(error, USAGE, "--steps %llu: the run in %s has done %llu",
                                       (unsigned long long)o->steps, o->resume, (unsigned long long)o->step);
}

// A new model, or the one to go on with, and the documents as its tokens. What is random comes in the order of the
// Python program: the documents' order, then the parameters.
static bool prepare(Options *o, Documents *all, Tokenizer *tokenizer, Model *model, Random *random, Error *error)
{
    Checkpoint checkpoint = {0};
    uint64_t print = o->save || o->resume ? fingerprint(all) : 0;
    if (o->resume && (!load_model(o->resume, all->longest, model, tokenizer, &checkpoint, error) ||
                      !resume_options(o, &checkpoint, error))) {
        return false;
    }
    if (o->resume && o->fingerprint != print) {
        return fail(error, FAILED, "%s: not the documents that %s was trained on", data_name(o), o->resume);
    }
    o->fingerprint = print;
    random_seed(random, o->seed);
    shuffle(all, random);
    if (o->resume) {
        *random = checkpoint.random;
        return encode_documents(all, all->n, tokenizer, data_name(o), error);
    }
    if (!tokenize(all, tokenizer)) {
        return no_memory(error);
    }
    *model = sized_model(o, tokenizer->vocab_size);
    if (!new_model(model, all->longest, ATOMIC, error)) {
        return false;
    }
    init_parameters(model, random, o->init_std, o->recipe == RECIPE_LESSON);
    return true;
}

// The whole main job: documents, tokenizer, parameters, training, inference.
static bool run_train(const Options *given, const char *argv0, Error *error)
{
    Options options_of_run = *given, *o = &options_of_run;
    Documents all = {0};
    Tokenizer tokenizer = {0};
    Model model = {0};
    Random random;
    uint32_t *prompt = NULL;
    size_t prompt_length = 0;

    bool ok = read_documents(o, argv0, &all, error) && prepare(o, &all, &tokenizer, &model, &random, error) &&
              read_text("--prompt", o->prompt ? o->prompt : "", &tokenizer, model.block_size, &prompt,
                        &prompt_length, error);
    if (ok) {
        watch(&model, &tokenizer);
        Run run = {.o = o, .log.file = -1, .model = &model, .tokenizer = &tokenizer, .random = &random};
        ok = begin_run(&run, error) &&
             say(error, "num docs: %zu\nvocab size: %zu\nnum params: %zu\n", all.n, tokenizer.vocab_size,
                 model.num_params) &&
             train(&model, &tokenizer, &all, o, &run, error) &&
             (all_finite(model.params, model.num_params) || fail(error, FAILED, "a parameter is no longer finite"));
        ok = end_run(&run, ok, error);
    }
    ok = ok && say(error, "\n--- inference%s ---\n", o->recipe == RECIPE_LESSON ? "" : " (new, hallucinated names)");
    ok = ok && inference(&model, &tokenizer, &random, o, prompt, prompt_length, true, error);

    free(prompt);
    free(tokenizer.uchars);
    free(all.docs);
    free(all.text);
    free_model(&model);
    return ok;
}

// Samples alone, from a model file. Where the file tells how training's random numbers stood at the end, and no other
// seed is asked for, they go on from there: the names are those that training printed.
static bool run_sample(const Options *o, const char *argv0, Error *error)
{
    (void)argv0;
    Tokenizer tokenizer = {0};
    Model model = {0};
    Checkpoint checkpoint = {0};
    Random random;
    uint32_t *prompt = NULL;
    size_t prompt_length = 0;

    bool ok = load_model(o->arguments[0], 0, &model, &tokenizer, &checkpoint, error) &&
              read_text("--prompt", o->prompt ? o->prompt : "", &tokenizer, model.block_size, &prompt,
                        &prompt_length, error);
    random_seed(&random, o->seed);
    if (checkpoint.has_random && (!was_given(o, FIELD(seed)) || o->seed == checkpoint.options.seed)) {
        random = checkpoint.random;
    }
    ok = ok && inference(&model, &tokenizer, &random, o, prompt, prompt_length, false, error);

    free(prompt);
    free(tokenizer.uchars);
    free_model(&model);
    return ok;
}

// How surprised a saved model is by documents, token by token.
static bool run_eval(const Options *o, const char *argv0, Error *error)
{
    Documents all = {0};
    Tokenizer tokenizer = {0};
    Model model = {0};
    Checkpoint checkpoint = {0};
    bool ok = read_documents(o, argv0, &all, error) &&
              load_model(o->arguments[0], all.longest, &model, &tokenizer, &checkpoint, error);
    size_t n_docs = o->docs && o->docs < all.n ? (size_t)o->docs : all.n, n_tokens = 0;
    ok = ok && encode_documents(&all, n_docs, &tokenizer, data_name(o), error);
    double loss = ok ? mean_loss(&model, &tokenizer, &all, n_docs, &n_tokens, NULL) : 0;
    ok = ok && (isfinite(loss) || fail(error, FAILED, "%s: the loss is not finite", o->arguments[0]));
    ok = ok && say(error, "docs %zu\ntokens %zu\nloss %.17g\nbits per character %.17g\nperplexity %.17g\n", n_docs,
                   n_tokens, loss, loss / log(2), exp(loss));

    free(tokenizer.uchars);
    free(all.docs);
    free(all.text);
    free_model(&model);
    return ok;
}

// `heads MODEL WORD`: the maps of one word.
static bool show_word(const Options *o, Error *error)
{
    Tokenizer tokenizer = {0};
    Model model = {0};
    Checkpoint checkpoint = {0};
    uint32_t *word = NULL;
    size_t length = 0;
    const double **weights = NULL;
    const char *text = o->arguments[1];
    bool ok = load_model(o->arguments[0], strlen(text), &model, &tokenizer, &checkpoint, error) &&
              read_text("the word", text, &tokenizer, model.block_size, &word, &length, error);
    if (ok) {
        size_t n = length + 1;
        model.tape.atomic = false;                       // heads are read off whole lines, in every build
        take_document(&model, &tokenizer, (Document){.tokens = word, .length = length});
        new_cache(&model, n);
        for (size_t pos_id = 0; pos_id < n; pos_id++) {
            gpt(&model, model.tokens[pos_id], pos_id, model.keys, model.values);
        }
        weights = malloc(model.n_layer * model.n_head * n * sizeof *weights);
        ok = weights || no_memory(error);
        ok = ok && (take_looks(&model, n, weights) ||
                    fail(error, FAILED, "%s: the attention is not finite", o->arguments[0]));
        ok = ok && (o->tsv ? say_map_values(&model, weights, n, error)
                           : draw_maps(&model, &tokenizer, weights, n, screen_of_output(), error));
    }
    free(weights);
    free(word);
    free(tokenizer.uchars);
    free_model(&model);
    return ok;
}

// `heads MODEL`: what every head does over a file of documents.
static bool show_heads(const Options *o, const char *argv0, Error *error)
{
    Documents all = {0};
    Tokenizer tokenizer = {0};
    Model model = {0};
    Checkpoint checkpoint = {0};
    HeadView *views = NULL;
    double *kept = NULL, loss = 0;
    size_t n_heads = 0, n_tokens = 0;
    bool ok = read_documents(o, argv0, &all, error) &&
              load_model(o->arguments[0], all.longest, &model, &tokenizer, &checkpoint, error);
    size_t n_docs = o->docs ? (size_t)o->docs : 1000;
    n_docs = n_docs < all.n ? n_docs : all.n;
    ok = ok && encode_documents(&all, n_docs, &tokenizer, data_name(o), error);
    if (ok) {
        n_heads = model.n_layer * model.n_head;
        views = calloc(n_heads, sizeof *views);
        kept = malloc(model.n_embd * model.n_embd * sizeof *kept);
        ok = (views && kept) || no_memory(error);
    }
    if (ok) {
        model.tape.atomic = false;                       // heads are read off whole lines, in every build
        loss = mean_loss(&model, &tokenizer, &all, n_docs, &n_tokens, views);
        ok = isfinite(loss) || fail(error, FAILED, "%s: the loss is not finite", o->arguments[0]);
        for (size_t h = 0; ok && h < n_heads; h++) {
            size_t layer = h / model.n_head, head = h % model.n_head;
            views[h].loss = loss_without(&model, &tokenizer, &all, n_docs, layer, head, kept);
            ok = isfinite(views[h].loss) || fail(error, FAILED, "%s: the loss without layer %zu head %zu is not finite",
                                                 o->arguments[0], layer, head);
        }
    }
    if (ok && o->tsv) {
        ok = say(error, "layer\thead\tself\tprevious\tfirst\telsewhere\tentropy\tloss\tloss_without\n");
        for (size_t h = 0; ok && h < n_heads; h++) {
            HeadView v = views[h];
            ok = say(error, "%zu\t%zu\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\n", h / model.n_head,
                     h % model.n_head, v.self, v.previous, v.first, v.elsewhere, v.entropy, loss, v.loss);
        }
    } else if (ok) {
        Screen screen = screen_of_output();
        ok = say_views(&model, views, loss, screen, error) && say_findings(&model, views, loss, screen, error);
    }
    free(views);
    free(kept);
    free(tokenizer.uchars);
    free(all.docs);
    free(all.text);
    free_model(&model);
    return ok;
}

static bool run_heads(const Options *o, const char *argv0, Error *error)
{
    if (o->n_arguments == 2 && (o->data || o->docs)) {
        return fail(error, USAGE, "--data and --docs go with heads MODEL, not with a word");
    }
    return o->n_arguments == 2 ? show_word(o, error) : show_heads(o, argv0, error);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Command line: one table of commands. All that a user can give is checked here.
 */
typedef struct Command {
    const char *name, *arguments, *summary;
    unsigned bit;                  // marks its options in the table of options
    size_t least, most;            // how many arguments it takes
    bool (*run)(const Options *o, const char *argv0, Error *error);
} Command;

static const Command commands[] = {
    {"train", "[OPTION]...", "train, then print samples; the default", TRAIN, 0, 0, run_train},
    {"sample", "MODEL [OPTION]...", "print samples from a saved model", SAMPLE, 1, 1, run_sample},
    {"eval", "MODEL [OPTION]...", "mean loss of a saved model over documents", EVAL, 1, 1, run_eval},
    {"heads", "MODEL [OPTION]... [WORD]", "what each attention head looks at", HEADS, 1, 2, run_heads},
    {"page", "MODEL [OPTION]... [WORD]", "the model as one HTML page", PAGE, 1, 2, run_page},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

// The option that `--name` or `--name=value` gives: by its name, or by the beginning of one name only.
static const Option *find_option(const Command *command, const char *argument, Error *error)
{
    size_t length = strcspn(argument, "="), n_found = 0;
    const Option *found = NULL;
    for (size_t i = 0; length && i < N_OPTIONS; i++) {
        if ((options[i].commands & command->bit) && strncmp(options[i].name, argument, length) == 0) {
            if (options[i].name[length] == '\0') {
                return &options[i];
            }
            found = options[i].help ? &options[i] : found;
            n_found += options[i].help != NULL;
        }
    }
    if (n_found != 1) {
        set_error(error, USAGE, "--%.*s: %s; see microgpt %s --help", (int)length, argument,
             n_found ? "the beginning of more than one option" : "no such option", command->name);
        return NULL;
    }
    return found;
}

static const Option *find_letter(const Command *command, const char *argument, Error *error)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if ((options[i].commands & command->bit) && argument[1] == options[i].letter && !argument[2]) {
            return &options[i];
        }
    }
    set_error(error, USAGE, "%s: no such option; see microgpt %s --help", argument, command->name);
    return NULL;
}

// Reads the arguments behind the command, in order. With `only`, sets the option of that name alone.
static bool read_arguments(Options *o, int argc, char **argv, const char *only, Error *error)
{
    bool options_over = false;
    o->n_arguments = 0;
    for (int i = 0; i < argc; i++) {
        const char *argument = argv[i];
        if (options_over || argument[0] != '-' || !argument[1]) {
            if (o->n_arguments == o->command->most) {
                return fail(error, USAGE, "%s: one argument too many; see microgpt %s --help", argument,
                            o->command->name);
            }
            o->arguments[o->n_arguments++] = argument;
            continue;
        }
        if (strcmp(argument, "--") == 0) {
            options_over = true;
            continue;
        }
        const Option *option = argument[1] == '-' ? find_option(o->command, argument + 2, error)
                                                  : find_letter(o->command, argument, error);
        if (!option) {
            return false;
        }
        const char *value = argument[1] == '-' ? strchr(argument, '=') : NULL;
        if (option->kind == FLAG && value) {
            return fail(error, USAGE, "--%s takes no value", option->name);
        }
        if (option->kind != FLAG && !value && i + 1 == argc) {
            return fail(error, USAGE, "--%s needs a value: %s", option->name, option->argument);
        }
        value = option->kind == FLAG ? NULL : value ? value + 1 : argv[++i];
        if ((!only || strcmp(only, option->name) == 0) && !set_option(o, option, value, error)) {
            return false;
        }
        o->given |= (uint64_t)1 << (option - options);
    }
    return true;
}

// The whole command line: the command, then the recipe's options, then those given, wherever the recipe stands.
static bool parse_command_line(Options *o, int argc, char **argv, Error *error)
{
    const Command *command = &commands[0];
    int first = 1;
    if (argc > 1 && argv[1][0] != '-') {
        size_t i = 0;
        while (i < N_COMMANDS && strcmp(argv[1], commands[i].name) != 0) {
            i++;
        }
        if (i == N_COMMANDS) {
            return fail(error, USAGE, "%s: no such command; see microgpt --help", argv[1]);
        }
        command = &commands[i];
        first = 2;
    }
    *o = recipes[RECIPE_MICROGPT];
    o->command = command;
    if (!read_arguments(o, argc - first, argv + first, "recipe", error)) {
        return false;
    }
    *o = recipes[o->recipe];
    o->command = command;
    if (!read_arguments(o, argc - first, argv + first, NULL, error) || o->help || o->version || o->manual) {
        return error->status == DONE;
    }
    if (o->n_arguments < command->least) {
        return fail(error, USAGE, "%s: an argument is missing; see microgpt %s --help", command->name, command->name);
    }
    if (o->temperature < 1e-200) {     // scores divided by less would overflow; only the likeliest has a chance anyway
        o->temperature = 0;
    }
    if (o->save_every && !o->save) {
        return fail(error, USAGE, "--save-every: needs --save FILE, too");
    }
    if (o->n_embd % o->n_head && !o->resume) {           // a resumed run takes its sizes from the file
        return fail(error, USAGE, "--n-embd %llu is not a multiple of --n-head %llu", (unsigned long long)o->n_embd,
                    (unsigned long long)o->n_head);
    }
    return true;
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

static bool print_help(const Command *command, Error *error)
{
    bool ok = say(error, "Usage:\n");
    for (size_t i = 0; ok && i < N_COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "microgpt %s %s", commands[i].name, commands[i].arguments);
        ok = say(error, "  %-39s %s\n", left, commands[i].summary);
    }
    ok = ok && say(error, "\nOptions of %s:\n", command->name);
    for (size_t i = 0; ok && i < N_OPTIONS; i++) {
        const Option *option = &options[i];
        char left[64], letter[8] = "    ", value[80];
        if (!(option->commands & command->bit) || !option->help) {
            continue;
        }
        if (option->letter) {
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        }
        snprintf(left, sizeof left, "%s--%s %s", letter, option->name, option->argument ? option->argument : "");
        default_text(option, value, sizeof value);
        ok = say(error, "  %-31s %s%s\n", left, option->help, value);
    }
    return ok;
}

// A text in the language of manual pages, where a minus is \- and a line must not begin with a dot or a quote.
static bool say_roff(Error *error, const char *text)
{
    bool ok = true;
    for (size_t n; ok && *text; text += n + (text[n] == '-')) {      // no text of the tables has a backslash
        n = strcspn(text, "-");
        ok = say(error, "%.*s%s", (int)n, text, text[n] ? "\\-" : "");
    }
    return ok;
}

// The manual page, from the two tables.
static bool print_manual(Error *error)
{
    bool ok = say(error, ".TH MICROGPT 1 \"\" \"microgpt %s\" \"User Commands\"\n.SH NAME\n"
                         "microgpt \\- train a small GPT on lines of text, and sample from it\n"
                         ".SH SYNOPSIS\n", VERSION);
    for (size_t i = 0; ok && i < N_COMMANDS; i++) {
        ok = say(error, "%s.B microgpt %s\n\\fI%s\\fR\n", i ? ".br\n" : "", i ? commands[i].name : "[train]",
                 commands[i].arguments);
    }
    ok = ok && say(error, "%s",
        ".SH DESCRIPTION\n"
        "Without arguments, microgpt learns from the names that it comes with and prints twenty new ones.\n"
        "Its standard output, where that is no terminal, is to the byte that of the Python program microgpt.py.\n"
        "On a terminal there is a progress bar instead of a line a step, and a picture of the loss at the end.\n");
    for (size_t c = 0; ok && c < N_COMMANDS; c++) {
        ok = say(error, ".SH OPTIONS OF %s\nmicrogpt %s: ", commands[c].name, commands[c].name) &&
             say_roff(error, commands[c].summary) && say(error, ".\n");
        for (size_t i = 0; ok && i < N_OPTIONS; i++) {
            const Option *option = &options[i];
            char value[80];
            if (!(option->commands & commands[c].bit) || !option->help) {
                continue;
            }
            default_text(option, value, sizeof value);
            ok = say(error, ".TP\n") && (!option->letter || say(error, ".BR \\-%c , \" \"", option->letter)) &&
                 say(error, option->letter ? " \\fB\\-\\-" : "\\fB\\-\\-") && say_roff(error, option->name) &&
                 say(error, "\\fR \\fI") && say_roff(error, option->argument ? option->argument : "") &&
                 say(error, "\\fR\n") && say_roff(error, option->help) && say_roff(error, value) && say(error, "\n");
        }
    }
    return ok && say(error, "%s",
        ".SH MODEL FILES\n"
        "A model file is in the format safetensors, with tensors named as in the state dict of the Python program.\n"
        "It is written beside its final name, flushed to disk and then renamed, so that it is always whole.\n"
        "What a resume needs stands in it under names that begin with train.\\&\n"
        ".PP\n"
        "A resumed run takes its options from the file.\n"
        "Steps, lr, beta1, beta2 and schedule may be given anew, and hold from there on; the schedule is then over\n"
        "the new number of steps.\n"
        "The others, if they are given, must be what they were, and the documents must be the same.\n"
        ".SH SIGNALS\n"
        "On SIGINT or SIGTERM training ends after the current step, and the model is saved if \\-\\-save was given.\n"
        "A second signal ends it at once and leaves the last saved file as it is.\n"
        ".SH ENVIRONMENT\n"
        ".TP\n.B NO_COLOR\nif it is set and not empty, progress and heads have no colors.\n"
        ".TP\n.B TERM\ndumb: no progress; heads draws with digits.\n"
        ".TP\n.BR LC_ALL \", \" LC_CTYPE \", \" LANG\n"
        "if the first of them that is set does not name UTF\\-8, progress is in ASCII, and heads draws with digits.\n"
        ".TP\n.B COLUMNS\nhow wide heads draws where standard output is no terminal.\n"
        ".SH EXIT STATUS\n"
        ".TP\n.B 0\ndone\n"
        ".TP\n.B 1\nthe work failed: a file, the data, a loss that is not finite, a full disk, no memory\n"
        ".TP\n.B 2\nthe command line is wrong\n.TP\n.B 130\ninterrupted\n"
        ".SH EXAMPLES\n"
        ".EX\n"
        "microgpt \\-\\-steps 20000 \\-\\-save names.safetensors \\-\\-save\\-every 1000\n"
        "microgpt \\-\\-resume names.safetensors \\-\\-save names.safetensors\n"
        "microgpt sample names.safetensors \\-\\-prompt jo \\-\\-samples 5\n"
        "microgpt eval names.safetensors \\-\\-data names.txt\n"
        "microgpt heads names.safetensors maria\n"
        "microgpt page names.safetensors maria > names.html\n"
        ".EE\n");
}

#ifndef MICROGPT_NO_MAIN
int main(int argc, char **argv)
{
    Options o;
    Error error = {0};
    for (int fd = 0; fd <= 2; fd++) {                    // no file of ours takes the place of one that was closed
        if (fcntl(fd, F_GETFD) < 0) {
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
    standard_output.by_line = isatty(STDOUT_FILENO);
    bool ok = parse_command_line(&o, argc, argv, &error);
    signal(SIGPIPE, SIG_DFL);                            // who reads no more is no error, but the end
    if (ok && o.manual) {
        ok = print_manual(&error);
    } else if (ok && o.help) {
        ok = print_help(o.command, &error);
    } else if (ok && o.version) {
        ok = say(&error, "microgpt %s\n", VERSION);
    } else if (ok) {
        ok = o.command->run(&o, argv[0], &error);
    }
    Error late = {0};
    if (!say_now(&late) && ok) {
        ok = false;
        error = late;
    }
    if (!ok) {
        fprintf(stderr, "microgpt: %s\n", error.text);
    }
    return error.status;
}
#endif
