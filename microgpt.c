/* microgpt: a GPT trained and sampled with nothing but C.
 *
 * It is the program microgpt.py, step by step and to the byte: the same names from the same seed. This first part is
 * the whole algorithm, in the order of the Python program:
 *
 *   documents, tokenizer, parameters, model, training, inference
 *
 * and it stands on autograd.h, which is the page to read before it. What surrounds the algorithm comes after it:
 *
 *   random numbers, reading documents, memory, command line
 */
#define _POSIX_C_SOURCE 200809L
#include "autograd.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION "1.0.0"

// What went wrong, until main() says it. fail() fills it in and is false.
typedef struct {
    int status;
    char text[8192];     // room for the longest file name and what is wrong with it
} Error;

enum { DONE = 0, FAILED = 1, USAGE = 2 };

#ifdef __GNUC__
#define PRINTF_LIKE(f, args) __attribute__((format(printf, f, args)))
#else
#define PRINTF_LIKE(f, args)
#endif
static bool fail(Error *error, int status, const char *format, ...) PRINTF_LIKE(3, 4);
static bool say(Error *error, const char *format, ...) PRINTF_LIKE(2, 3);   // printf, or a full disk
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
    const char *data, *prompt;
    int recipe, activation, schedule;
    uint64_t steps, seed, n_layer, n_embd, n_head, block_size, samples;
    double lr, beta1, beta2, init_std, temperature;
    bool quiet, help, version;
} Options;

enum { RECIPE_MICROGPT, RECIPE_LESSON };
enum { RELU, RELU2 };
enum { LINEAR, COSINE };

#define EPS_ADAM 1e-8

/* ------------------------------------------------------------------------------------------------------------------
 * Documents: the text to learn from, one document a line, in random order.
 */
typedef struct {
    uint32_t *tokens;    // [length] the characters, as numbers
    size_t length;
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
 * Tokenizer: every character that occurs gets a number, in the order of their code points. One more number, BOS, marks
 * where a document begins and ends.
 */
typedef struct {
    uint32_t *uchars;    // [BOS] the character of each token
    size_t BOS, vocab_size;
} Tokenizer;

// Finds the characters of the documents, then replaces each by its token. Linear in the text: one look-up table from
// code points to tokens, no search.
static bool tokenize(Documents *all, Tokenizer *tokenizer)
{
    size_t n_codes = 0;
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
            token_of[code] = (uint32_t)tokenizer->BOS;
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

static double *gpt(Model *model, size_t token_id, size_t pos_id, double **keys, double **values)
{
    Tape *tape = &model->tape;
    size_t n_embd = model->n_embd, n_head = model->n_head, head_dim = model->head_dim;

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
            double *attn_logits = v_dots(tape, q_h, k_h, seen, n_embd, head_dim, 1 / sqrt((double)head_dim));
                                                             // 129: query dot key, over the root of head_dim
            double *attn_weights = softmax(tape, attn_logits, seen);   // 130: as shares of its attention
            double *head_out = x_attn + hs;                            // 132: its place in the row, at which lands
            v_weighted_sum(tape, head_out, attn_weights, v_h, seen, n_embd, head_dim);   // 131: what it looked at
        }
        x = linear(tape, x_attn, layer->attn_wo);            // 133: the heads' outputs, mixed
        x = v_add(tape, x, x_residual, n_embd);

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
        tape_strand(tape);                                           // every position does the same
        uint32_t token_id = tokens[pos_id], target_id = tokens[pos_id + 1];
        double *logits = gpt(model, token_id, pos_id, model->keys, model->values);
        double *probs = softmax(tape, logits, model->vocab_size);
        double *loss_t = v_neg(tape, v_log(tape, probs + target_id, 1), 1);
        losses = v_add(tape, losses, loss_t, 1);
    }
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

static bool train(Model *model, const Tokenizer *tokenizer, const Documents *all, const Options *o, Error *error)
{
    Tape *tape = &model->tape;
    for (uint64_t step = 0; step < o->steps; step++) {
        tape_drop(tape);
        size_t n = take_document(model, tokenizer, all->docs[step % all->n]);
        double *loss = document_loss(model, model->tokens, n);
        if (!isfinite(*loss)) {
            return fail(error, FAILED, "step %llu: the loss is not finite (%g); a smaller --lr may help",
                        (unsigned long long)step + 1, *loss);
        }
        backward(tape, loss);
        adam(model->params, grad(tape, model->params), model->m, model->v, model->num_params, step,
             learning_rate(o, step), o->beta1, o->beta2, EPS_ADAM);
        if (!o->quiet && !say(error, "step %4llu / %4llu | loss %.4f%c", (unsigned long long)step + 1,
                              (unsigned long long)o->steps, *loss, o->recipe == RECIPE_LESSON ? '\n' : '\r')) {
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

// One sample, of at most block_size tokens, into model->tokens. Returns its length, or SIZE_MAX if the scores are
// not finite. The cache stands before the mark.
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
                      const uint32_t *prompt, size_t prompt_length, Error *error)
{
    Tape *tape = &model->tape;
    tape_drop(tape);
    new_cache(model, model->block_size);
    tape_mark(tape);                       // the cache is used again for every sample
    tape->recording = false;               // nothing will be differentiated
    for (uint64_t i = 0; i < o->samples; i++) {
        size_t length = sample(model, tokenizer, random, o->temperature, prompt, prompt_length);
        if (length == SIZE_MAX) {
            return fail(error, FAILED, "sample %llu: the scores are not finite; a smaller --lr may help",
                        (unsigned long long)i + 1);
        }
        if (!say(error, "sample %2llu: ", (unsigned long long)i + 1) ||
            !say_tokens(error, tokenizer->uchars, model->tokens, length)) {
            return false;
        }
    }
    return true;
}

/* ==================================================================================================================
 * That was the algorithm. From here on: what it stands on.
 */

static bool fail(Error *error, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error->status = status;
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    for (char *c = error->text; *c; c++) {       // one line, whatever is quoted in it
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    }
    return false;
}

static bool say(Error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool ok = vprintf(format, args) >= 0;
    va_end(args);
    return ok || fail(error, FAILED, "standard output: %s", strerror(errno));
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

// All bytes of a stream, into memory of the caller's.
static bool read_all(FILE *file, unsigned char **bytes, size_t *n, Error *error, const char *name)
{
    size_t room = 0;
    *bytes = NULL;
    *n = 0;
    for (;;) {
        if (*n == room) {
            room = room ? 2 * room : 1 << 16;
            unsigned char *more = realloc(*bytes, room);
            if (!more) {
                return no_memory(error);
            }
            *bytes = more;
        }
        size_t got = fread(*bytes + *n, 1, room - *n, file);
        *n += got;
        if (got == 0) {
            return ferror(file) ? fail(error, FAILED, "%s: %s", name, strerror(errno)) : true;
        }
    }
}

// The documents in the text s. Their tokens are still code points.
static bool split_documents(const unsigned char *s, size_t n, Documents *all, Error *error, const char *name)
{
    size_t n_lines = 1;
    for (size_t i = 0; i < n; i++) {
        n_lines += s[i] == '\n' || s[i] == '\r';
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
            all->docs[all->n++] = (Document){start, length};
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

// The shipped names: in data/ beside the program, or where `make install` puts them.
static FILE *open_shipped_names(const char *argv0, char *name, size_t room)
{
    char folder[4096];
    program_folder(argv0, folder, sizeof folder);
    static const char *const places[] = {"data/names.txt", "../share/microgpt/names.txt"};
    FILE *file = NULL;
    for (size_t i = 0; !file && i < 2; i++) {
        snprintf(name, room, "%s%s", folder, places[i]);
        file = fopen(name, "rb");
    }
    return file;
}

static bool read_documents(const Options *o, const char *argv0, Documents *all, Error *error)
{
    char name[4200];
    FILE *file = NULL;
    if (!o->data) {
        file = open_shipped_names(argv0, name, sizeof name);
    } else if (strcmp(o->data, "-") == 0) {
        snprintf(name, sizeof name, "standard input");
        file = stdin;
    } else {
        snprintf(name, sizeof name, "%s", o->data);
        file = fopen(o->data, "rb");
    }
    if (!file) {
        return fail(error, FAILED, "%s: %s", name, strerror(errno));
    }
    unsigned char *bytes = NULL;
    size_t n = 0;
    bool ok = read_all(file, &bytes, &n, error, name) && split_documents(bytes, n, all, error, name);
    free(bytes);
    if (file != stdin) {
        fclose(file);
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
    double lines = atomic ? step : P * (8 + L * (14 + 3 * (double)model->n_head)) + 8;
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
 * Commands.
 */

// The tokens of the prompt, into memory of the caller's.
static bool read_prompt(const Options *o, const Tokenizer *tokenizer, uint32_t **prompt, size_t *length, Error *error)
{
    const char *text = o->prompt ? o->prompt : "";
    size_t n = strlen(text), used = 0;
    *length = 0;
    *prompt = malloc((n + 1) * sizeof **prompt);
    if (!*prompt) {
        return no_memory(error);
    }
    for (size_t i = 0; i < n; i += used) {
        int32_t code = decode_utf8((const unsigned char *)text + i, n - i, &used);
        if (code < 0) {
            return fail(error, USAGE, "--prompt: not valid UTF-8");
        }
        size_t low = 0, high = tokenizer->BOS;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (tokenizer->uchars[middle] < (uint32_t)code) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low == tokenizer->BOS || tokenizer->uchars[low] != (uint32_t)code) {
            return fail(error, USAGE, "--prompt %s: the model does not know the character %.*s", text, (int)used, text + i);
        }
        (*prompt)[(*length)++] = (uint32_t)low;
    }
    if (*length >= o->block_size) {
        return fail(error, USAGE, "--prompt %s: too long: it must leave room in the block of %llu", text,
                    (unsigned long long)o->block_size);
    }
    return true;
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

// The whole main job: documents, tokenizer, parameters, training, inference.
static bool run_train(const Options *o, const char *argv0, Error *error)
{
    Documents all = {0};
    Tokenizer tokenizer = {0};
    Model model = {.n_layer = (size_t)o->n_layer, .n_embd = (size_t)o->n_embd, .n_head = (size_t)o->n_head,
                   .head_dim = (size_t)(o->n_embd / o->n_head), .block_size = (size_t)o->block_size,
                   .activation = o->activation};
    Random random;
    uint32_t *prompt = NULL;
    size_t prompt_length = 0;

    random_seed(&random, o->seed);
    bool ok = read_documents(o, argv0, &all, error);
    if (ok) {
        shuffle(&all, &random);
        ok = tokenize(&all, &tokenizer) || no_memory(error);
    }
    ok = ok && read_prompt(o, &tokenizer, &prompt, &prompt_length, error);
    model.vocab_size = tokenizer.vocab_size;
    ok = ok && new_model(&model, all.longest, false, error);
    if (ok) {
        init_parameters(&model, &random, o->init_std, o->recipe == RECIPE_LESSON);
    }
    ok = ok && say(error, "num docs: %zu\nvocab size: %zu\nnum params: %zu\n", all.n, tokenizer.vocab_size,
                   model.num_params);
    ok = ok && train(&model, &tokenizer, &all, o, error);
    ok = ok && (all_finite(model.params, model.num_params) || fail(error, FAILED, "a parameter is no longer finite"));
    ok = ok && say(error, "\n--- inference%s ---\n", o->recipe == RECIPE_LESSON ? "" : " (new, hallucinated names)");
    ok = ok && inference(&model, &tokenizer, &random, o, prompt, prompt_length, error);

    free(prompt);
    free(tokenizer.uchars);
    free(all.docs);
    free(all.text);
    free_model(&model);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Command line: one table of commands, one of options. All that a user can give is checked here.
 */
enum { TRAIN = 1 };

typedef struct Command {
    const char *name, *arguments, *summary;
    unsigned bit;                  // marks its options in the table below
    size_t least, most;            // how many arguments it takes
    bool (*run)(const Options *o, const char *argv0, Error *error);
} Command;

static const Command commands[] = {
    {"train", "[OPTION]...", "train, then print samples; the default", TRAIN, 0, 0, run_train},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

typedef enum { FLAG, NUMBER, REAL, TEXT, NAME } Kind;

typedef struct {
    const char *name, *argument;   // of a NAME, the names there are: "relu|relu2"
    char letter;
    unsigned commands;             // that take it
    Kind kind;
    size_t offset;                 // of its field in Options
    double least, most;            // of a NUMBER or REAL
    const char *help;
} Option;

#define FIELD(name) offsetof(Options, name)
#define SIZE_MOST 1048576.0
#define COUNT_MOST 9007199254740992.0
#define SEED_MOST 18446744073709551615.0
#define REAL_MOST 1e300
#define BETA_MOST 0.9999999999999999

static const Option options[] = {
    {"data", "FILE", 0, TRAIN, TEXT, FIELD(data), 0, 0,
     "documents, one a line, UTF-8; - is standard input (default: the shipped names)"},
    {"recipe", "microgpt|lesson", 0, TRAIN, NAME, FIELD(recipe), 0, 0, "sets the defaults of the other options"},
    {"steps", "N", 0, TRAIN, NUMBER, FIELD(steps), 0, COUNT_MOST, "training steps, one document each"},
    {"seed", "N", 0, TRAIN, NUMBER, FIELD(seed), 0, SEED_MOST, "where the random numbers start"},
    {"n-layer", "N", 0, TRAIN, NUMBER, FIELD(n_layer), 1, SIZE_MOST, "layers"},
    {"n-embd", "N", 0, TRAIN, NUMBER, FIELD(n_embd), 1, SIZE_MOST, "width of the model, a multiple of --n-head"},
    {"n-head", "N", 0, TRAIN, NUMBER, FIELD(n_head), 1, SIZE_MOST, "attention heads in a layer"},
    {"block-size", "N", 0, TRAIN, NUMBER, FIELD(block_size), 1, SIZE_MOST, "characters of a document that are used"},
    {"lr", "X", 0, TRAIN, REAL, FIELD(lr), 0, REAL_MOST, "learning rate at the first step"},
    {"beta1", "X", 0, TRAIN, REAL, FIELD(beta1), 0, BETA_MOST, "Adam: share of the gradients' mean that is kept"},
    {"beta2", "X", 0, TRAIN, REAL, FIELD(beta2), 0, BETA_MOST, "Adam: the same for their squares"},
    {"init-std", "X", 0, TRAIN, REAL, FIELD(init_std), 0, REAL_MOST, "spread of the parameters at the start"},
    {"activation", "relu|relu2", 0, TRAIN, NAME, FIELD(activation), 0, 0, "in the MLP; relu2 is relu squared"},
    {"schedule", "linear|cosine", 0, TRAIN, NAME, FIELD(schedule), 0, 0, "how the learning rate falls to 0"},
    {"samples", "N", 0, TRAIN, NUMBER, FIELD(samples), 0, COUNT_MOST, "names to print"},
    {"temperature", "X", 0, TRAIN, REAL, FIELD(temperature), 0, REAL_MOST, "0 takes the likeliest character"},
    {"prompt", "TEXT", 0, TRAIN, TEXT, FIELD(prompt), 0, 0, "how every name begins"},
    {"quiet", NULL, 'q', TRAIN, FLAG, FIELD(quiet), 0, 0, "no progress, no step lines"},
    {"help", NULL, 0, ~0u, FLAG, FIELD(help), 0, 0, "print this and exit"},
    {"version", NULL, 0, ~0u, FLAG, FIELD(version), 0, 0, "print the version and exit"},
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
        if (errno == ERANGE || (double)n < option->least || (double)n > option->most) {
            unsigned long long most = option->most < SEED_MOST ? (unsigned long long)option->most : UINT64_MAX;
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

// The option that `--name` or `--name=value` gives: by its name, or by the beginning of one name only.
static const Option *find_option(const Command *command, const char *argument, Error *error)
{
    size_t length = strcspn(argument, "="), n_found = 0;
    const Option *found = NULL;
    for (size_t i = 0; length && i < N_OPTIONS; i++) {
        if ((options[i].commands & command->bit) && strncmp(options[i].name, argument, length) == 0) {
            found = &options[i];
            n_found++;
            if (options[i].name[length] == '\0') {
                return found;
            }
        }
    }
    if (n_found != 1) {
        fail(error, USAGE, "--%.*s: %s; see microgpt %s --help", (int)length, argument,
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
    fail(error, USAGE, "%s: no such option; see microgpt %s --help", argument, command->name);
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
    if (!read_arguments(o, argc - first, argv + first, NULL, error) || o->help || o->version) {
        return error->status == DONE;
    }
    if (o->n_arguments < command->least) {
        return fail(error, USAGE, "%s: an argument is missing; see microgpt %s --help", command->name, command->name);
    }
    if (o->temperature < 1e-200) {     // scores divided by less would overflow; only the likeliest has a chance anyway
        o->temperature = 0;
    }
    if (o->n_embd % o->n_head) {
        return fail(error, USAGE, "--n-embd %llu is not a multiple of --n-head %llu", (unsigned long long)o->n_embd,
                    (unsigned long long)o->n_head);
    }
    return true;
}

// An option's default in a recipe, as text.
static void default_text(const Option *option, const Options *recipe, char *text, size_t room)
{
    const char *field = (const char *)recipe + option->offset;
    text[0] = '\0';
    if (option->kind == NUMBER) {
        snprintf(text, room, "%llu", (unsigned long long)*(const uint64_t *)field);
    } else if (option->kind == REAL) {
        snprintf(text, room, "%g", *(const double *)field);
    } else if (option->kind == NAME) {
        const char *names = option->argument;
        for (int i = *(const int *)field; i > 0; i--) {
            names += strcspn(names, "|") + 1;
        }
        snprintf(text, room, "%.*s", (int)strcspn(names, "|"), names);
    }
}

static bool print_help(const Command *command, Error *error)
{
    bool ok = say(error, "Usage:\n");
    for (size_t i = 0; ok && i < N_COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "microgpt %s %s", commands[i].name, commands[i].arguments);
        ok = say(error, "  %-38s %s\n", left, commands[i].summary);
    }
    ok = ok && say(error, "\nOptions of %s:\n", command->name);
    for (size_t i = 0; ok && i < N_OPTIONS; i++) {
        const Option *option = &options[i];
        char left[64], letter[8] = "    ", a[32], b[32];
        if (!(option->commands & command->bit)) {
            continue;
        }
        if (option->letter) {
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        }
        snprintf(left, sizeof left, "%s--%s %s", letter, option->name, option->argument ? option->argument : "");
        default_text(option, &recipes[RECIPE_MICROGPT], a, sizeof a);
        default_text(option, &recipes[RECIPE_LESSON], b, sizeof b);
        bool differ = strcmp(a, b) != 0 && option->offset != FIELD(recipe);
        ok = say(error, "  %-31s %s%s%s%s%s%s\n", left, option->help, *a ? " (" : "", a,
                 differ ? "; lesson: " : "", differ ? b : "", *a ? ")" : "");
    }
    return ok;
}

#ifndef MICROGPT_NO_MAIN
int main(int argc, char **argv)
{
    Options o;
    Error error = {0};
    bool ok = parse_command_line(&o, argc, argv, &error);
    if (ok && o.help) {
        ok = print_help(o.command, &error);
    } else if (ok && o.version) {
        ok = say(&error, "microgpt %s\n", VERSION);
    } else if (ok) {
        ok = o.command->run(&o, argv[0], &error);
    }
    if (ok && fflush(stdout)) {
        ok = fail(&error, FAILED, "standard output: %s", strerror(errno));
    }
    if (!ok) {
        fprintf(stderr, "microgpt: %s\n", error.text);
    }
    return error.status;
}
#endif
