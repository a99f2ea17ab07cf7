/* microgpt: a GPT trained and sampled with nothing but C.
 *
 * It is the program microgpt.py, step by step and to the byte: the same names from the same seed. This first part is
 * the whole algorithm, in the order of the Python program:
 *
 *   documents, tokenizer, parameters, model, training, inference
 *
 * and it stands on autograd.h, which is the page to read before it. What surrounds the algorithm comes after it:
 *
 *   random numbers, reading documents, memory, views for the debugger, command line
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
    char text[512];
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
    uint32_t *text;      // the memory of all tokens
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
    for (size_t i = 0; i < all->n; i++) {
        for (size_t k = 0; k < all->docs[i].length; k++) {
            n_codes = all->docs[i].tokens[k] < n_codes ? n_codes : (size_t)all->docs[i].tokens[k] + 1;
        }
    }
    uint32_t *token_of = calloc(n_codes, sizeof *token_of);
    tokenizer->uchars = calloc(n_codes, sizeof *tokenizer->uchars);
    if (!token_of || !tokenizer->uchars) {
        free(token_of);
        return false;
    }
    for (size_t i = 0; i < all->n; i++) {
        for (size_t k = 0; k < all->docs[i].length; k++) {
            token_of[all->docs[i].tokens[k]] = 1;
        }
    }
    for (size_t code = 0; code < n_codes; code++) {
        if (token_of[code]) {
            token_of[code] = (uint32_t)tokenizer->BOS;
            tokenizer->uchars[tokenizer->BOS++] = (uint32_t)code;
        }
    }
    for (size_t i = 0; i < all->n; i++) {
        for (size_t k = 0; k < all->docs[i].length; k++) {
            all->docs[i].tokens[k] = token_of[all->docs[i].tokens[k]];
        }
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
        v_linear(tape, keys[li] + pos_id * n_embd, x, layer->attn_wk);       // k, appended to the layer's keys
        v_linear(tape, values[li] + pos_id * n_embd, x, layer->attn_wv);     // v, appended to the layer's values
        size_t seen = pos_id + 1;                                            // positions in the cache, this one too
        double *x_attn = v_new(tape, n_embd);                // 123: where the heads' outputs will stand in a row
        for (size_t h = 0; h < n_head; h++) {                // 124: head after head,
            size_t hs = h * head_dim;                        // 125: which starts at this index:
            double *q_h = q + hs;                            // 126: its slice of the query,
            double *k_h = keys[li] + hs;                     // 127: of each cached key (the t-th at k_h + t*n_embd),
            double *v_h = values[li] + hs;                   // 128: of each cached value (likewise)
            double *attn_logits = v_dots(tape, q_h, k_h, seen, n_embd, head_dim,   // 129: query dot key, for each key,
                                         1 / sqrt((double)head_dim));              //      over the root of head_dim
            double *attn_weights = softmax(tape, attn_logits, seen);               // 130: as shares of attention
            double *head_out = x_attn + hs;                                        // 132: the head's place in the row
            v_weighted_sum(tape, head_out, attn_weights, v_h, seen, n_embd, head_dim);   // 131: the values it looked at
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
    double *losses = NULL;                                           // their sum so far
    for (size_t pos_id = 0; pos_id < n; pos_id++) {
        uint32_t token_id = tokens[pos_id], target_id = tokens[pos_id + 1];
        double *logits = gpt(model, token_id, pos_id, model->keys, model->values);
        double *probs = softmax(tape, logits, model->vocab_size);
        double *loss_t = v_neg(tape, v_log(tape, probs + target_id, 1), 1);
        losses = losses ? v_add(tape, losses, loss_t, 1) : loss_t;
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

static bool train(Model *model, const Tokenizer *tokenizer, const Documents *all, const Options *o, Error *error)
{
    for (uint64_t step = 0; step < o->steps; step++) {
        size_t n = take_document(model, tokenizer, all->docs[step % all->n]);
        double loss = train_step(model, n, step, o);
        if (!isfinite(loss)) {
            return fail(error, FAILED, "step %llu: the loss is not finite (%g); a smaller --lr may help",
                        (unsigned long long)step + 1, loss);
        }
        if (!o->quiet && !say(error, "step %4llu / %4llu | loss %.4f%c", (unsigned long long)step + 1,
                              (unsigned long long)o->steps, loss, o->recipe == RECIPE_LESSON ? '\n' : '\r')) {
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

// One sample, of at most block_size tokens, into model->tokens. Returns its length. The cache stands before the mark.
static size_t sample(Model *model, const Tokenizer *tokenizer, Random *random, double temperature,
                     const uint32_t *prompt, size_t prompt_length)
{
    Tape *tape = &model->tape;
    size_t length = 0, token_id = tokenizer->BOS;
    for (size_t pos_id = 0; pos_id < model->block_size; pos_id++) {
        tape_drop(tape);
        double *logits = gpt(model, token_id, pos_id, model->keys, model->values);
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
    tape->recording = tape->atomic;        // nothing will be differentiated, but atoms are there to be looked at
    for (uint64_t i = 0; i < o->samples; i++) {
        size_t length = sample(model, tokenizer, random, o->temperature, prompt, prompt_length);
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
    static const struct { unsigned char mask, lead; uint32_t least; } forms[] = {
        {0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000},
    };
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
    uint32_t *start = all->text, *end = all->text;     // the line being read
    size_t line = 1, used = 1;
    for (size_t i = 0; i <= n; i += used) {
        int32_t code = i < n ? decode_utf8(s + i, n - i, &used) : '\n';
        if (code == '\r') {
            used = i + 1 < n && s[i + 1] == '\n' ? 2 : 1;
            code = '\n';
        }
        if (code < 0) {
            return fail(error, FAILED, "%s:%zu: not valid UTF-8", name, line);
        }
        if (code == 0) {
            return fail(error, FAILED, "%s:%zu: a zero byte: this is not a text file", name, line);
        }
        if (code != '\n') {
            *end++ = (uint32_t)code;
            continue;
        }
        uint32_t *last = end;
        while (start < last && is_space(*start)) {
            start++;
        }
        while (start < last && is_space(last[-1])) {
            last--;
        }
        if (start < last) {
            size_t length = (size_t)(last - start);
            all->docs[all->n++] = (Document){start, length};
            all->longest = length > all->longest ? length : all->longest;
        }
        start = end;
        line++;
    }
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
 * Views for the debugger: what one can ask of a run that stands still, in the build that `make debug` makes. Each is a
 * function that any debugger can call; .gdbinit and .lldbinit give them short names. All they need is on the tape,
 * which in this build has a line for every single + and *: so the algorithm above is as it always is.
 *
 * Where a view takes a position, LATEST is the one that gpt() was called for last.
 */
#ifndef MICROGPT_DEBUG
enum { ATOMIC = false };
#define watch(model, tokenizer) ((void)0)
#else
enum { ATOMIC = true };
enum { LATEST = -1, NONE = -1 };
#define print(...) fprintf(stderr, __VA_ARGS__)      // beside the program's output, never in it

static struct {
    Model *model;
    const Tokenizer *tokenizer;
    int layer;           // the one whose heads and vectors are shown
    int digits;          // of every number shown
} watched = {.digits = 6};

static void watch(Model *model, const Tokenizer *tokenizer)
{
    watched.model = model;
    watched.tokenizer = tokenizer;
}

// The vectors of the forward pass, in the order in which gpt() makes them.
static const struct { const char *name, *meaning; } vectors[] = {
    {"tok_emb", "the token's embedding, a row of wte"},
    {"pos_emb", "the position's embedding, a row of wpe"},
    {"emb", "their sum"},
    {"emb_norm", "after the first rmsnorm"},
    {"x", "what enters the layer, and is kept as x_residual"},
    {"x_norm", "x after rmsnorm, what attention reads"},
    {"q", "the query"},
    {"k", "the key, in the cache"},
    {"v", "the value, in the cache"},
    {"head0.attn_logits", "a head's scores, one for each position in the cache"},
    {"head0.attn_weights", "the same as shares of attention"},
    {"head0.head_out", "the head's output, a slice of x_attn"},
    {"x_attn", "the outputs of all heads in a row"},
    {"x_wo", "x_attn after wo"},
    {"x_mid", "x_wo plus x: after the first residual connection"},
    {"mid_norm", "x_mid after rmsnorm, what the MLP reads"},
    {"fc1", "after the MLP's first matrix"},
    {"act", "after the activation"},
    {"fc2", "after the MLP's second matrix"},
    {"x_out", "fc2 plus x_mid: what leaves the layer"},
    {"logits", "a score for every token that may come next"},
    {"probs", "the same as probabilities"},
    {"loss_t", "the loss at this position"},
    {"losses", "the sum of the losses so far"},
    {"loss", "the mean loss over the document"},
};

// Where one of them is in memory.
typedef struct {
    const char *name;
    int layer, head, position;       // NONE: it belongs to none
    double *at;          // [n]
    size_t n;
} Place;

static struct { Place *all; size_t n, room; int position; } places;

static void add_place(const char *name, int layer, int head, int position, double *at, size_t n)
{
    if (at && places.n == places.room) {
        places.room = places.room ? 2 * places.room : 256;
        Place *more = realloc(places.all, places.room * sizeof *more);
        if (!more) {
            abort();
        }
        places.all = more;
    }
    if (at) {
        places.all[places.n++] = (Place){name, layer, head, position, at, n};
    }
}

// The lines of the tape that one position made.
typedef struct {
    const Line *from, *to;
} Span;

// The n neighbours that `op` made of a[0..n), or NULL if they are not all there yet. A square is not meant.
static double *made_of(Span span, Op op, const double *a, size_t n)
{
    double *first = NULL;
    for (const Line *l = span.from; a && l < span.to; l++) {
        if (l->op != op || l->a == l->b) {
            continue;
        }
        if (!first && l->a == a) {
            first = l->out;
        }
        if (first && l->a == a + n - 1) {
            return first;
        }
    }
    return NULL;
}

// The sum of the n products that begins with a * b, or NULL.
static double *sum_of(Span span, const double *a, const double *b, size_t n)
{
    for (const Line *l = span.from; a && b && l < span.to; l++) {
        if (l->op == OP_MUL && l->a == a && l->b == b) {
            return 2 * (n - 1) < (size_t)(span.to - l) ? l[2 * (n - 1)].out : NULL;
        }
    }
    return NULL;
}

static double *linear_of(Span span, const Matrix *w, const double *x)
{
    double *last = sum_of(span, w->data + (w->rows - 1) * w->cols, x, w->cols);
    return last ? sum_of(span, w->data, x, w->cols) : NULL;
}

static double *softmax_of(Span span, const double *logits, size_t n)
{
    return made_of(span, OP_MUL, made_of(span, OP_EXP, made_of(span, OP_PLUS, logits, n), n), n);
}

// What gpt() has made of the heads of one layer so far.
static double *survey_heads(Span span, int li, int position, double *q)
{
    const Model *model = watched.model;
    size_t head_dim = model->head_dim, seen = (size_t)position + 1, n_done = 0;
    double *x_attn = NULL;
    for (size_t h = 0; h < model->n_head && q; h++) {
        size_t hs = h * head_dim;
        double *k_h = model->keys[li] + hs, *v_h = model->values[li] + hs;
        double *attn_logits = made_of(span, OP_TIMES, sum_of(span, q + hs, k_h, head_dim), seen);
        double *attn_weights = softmax_of(span, attn_logits, seen);
        double *last = sum_of(span, attn_weights, v_h + head_dim - 1, seen);
        double *head_out = last ? sum_of(span, attn_weights, v_h, seen) : NULL;
        x_attn = h == 0 ? head_out : x_attn;
        n_done += head_out != NULL;
        add_place("attn_logits", li, (int)h, position, attn_logits, seen);
        add_place("attn_weights", li, (int)h, position, attn_weights, seen);
        add_place("head_out", li, (int)h, position, head_out, head_dim);
    }
    return n_done == model->n_head ? x_attn : NULL;
}

// The same way that gpt() and document_loss() go, along the lines that they left. What is not there yet is NULL, and so
// is all that comes after it.
static void survey_position(Span span, int position, double **losses)
{
    const Model *model = watched.model;
    size_t E = model->n_embd, V = model->vocab_size;
    add_place("tok_emb", NONE, NONE, position, span.from->a, E);
    add_place("pos_emb", NONE, NONE, position, span.from->b, E);
    double *emb = (size_t)(span.to - span.from) >= E ? span.from->out : NULL, *x = made_of(span, OP_MUL, emb, E);
    add_place("emb", NONE, NONE, position, emb, E);
    add_place("emb_norm", NONE, NONE, position, x, E);
    for (int li = 0; (size_t)li < model->n_layer; li++) {
        const Layer *layer = &model->layers[li];
        add_place("x", li, NONE, position, x, E);
        double *x_norm = made_of(span, OP_MUL, x, E), *q = linear_of(span, layer->attn_wq, x_norm);
        add_place("x_norm", li, NONE, position, x_norm, E);
        add_place("q", li, NONE, position, q, E);
        add_place("k", li, NONE, position, linear_of(span, layer->attn_wk, x_norm), E);
        add_place("v", li, NONE, position, linear_of(span, layer->attn_wv, x_norm), E);
        double *x_attn = survey_heads(span, li, position, q), *x_wo = linear_of(span, layer->attn_wo, x_attn);
        add_place("x_attn", li, NONE, position, x_attn, E);
        add_place("x_wo", li, NONE, position, x_wo, E);
        double *x_mid = made_of(span, OP_ADD, x_wo, E), *mid_norm = made_of(span, OP_MUL, x_mid, E);
        add_place("x_mid", li, NONE, position, x_mid, E);
        add_place("mid_norm", li, NONE, position, mid_norm, E);
        double *fc1 = linear_of(span, layer->mlp_fc1, mid_norm), *act = made_of(span, OP_RELU, fc1, 4 * E);
        act = model->activation == RELU2 ? made_of(span, OP_POW, act, 4 * E) : act;
        double *fc2 = linear_of(span, layer->mlp_fc2, act);
        x = made_of(span, OP_ADD, fc2, E);
        add_place("fc1", li, NONE, position, fc1, 4 * E);
        add_place("act", li, NONE, position, act, 4 * E);
        add_place("fc2", li, NONE, position, fc2, E);
        add_place("x_out", li, NONE, position, x, E);
    }
    double *logits = linear_of(span, model->lm_head, x), *probs = softmax_of(span, logits, V);
    if (!probs) {                                  // at a temperature
        probs = softmax_of(span, made_of(span, OP_TIMES, logits, V), V);
    }
    add_place("logits", NONE, NONE, position, logits, V);
    add_place("probs", NONE, NONE, position, probs, V);
    double *target = probs ? probs + model->tokens[position + 1] : NULL;
    double *loss_t = made_of(span, OP_TIMES, made_of(span, OP_LOG, target, 1), 1);
    add_place("loss_t", NONE, NONE, position, loss_t, 1);
    *losses = position == 0 ? loss_t : loss_t ? made_of(span, OP_ADD, *losses, 1) : NULL;
    add_place("losses", NONE, NONE, position, *losses, 1);
    add_place("loss", NONE, NONE, NONE, made_of(span, OP_TIMES, *losses, 1), 1);
}

// Samples are made with the cache before the mark, and forget each position's lines before the next.
static bool sampling(void)
{
    const Tape *tape = &watched.model->tape;
    return watched.model->keys[0] && watched.model->keys[0] < tape->data + tape->first_value;
}

// Finds every vector that there is. A position begins where a row of wte and one of wpe are added. False, with a word
// to the learner, where there is no model yet.
static bool survey(void)
{
    if (!watched.model) {
        print("There is no model yet: stop at train_step, or later.\n");
        return false;
    }
    const Model *model = watched.model;
    const Line *lines = model->tape.lines, *end = lines + model->tape.n_lines;
    const double *wpe = model->wpe->data, *wpe_end = wpe + model->block_size * model->n_embd;
    double *losses = NULL;
    places.n = 0;
    places.position = NONE;
    for (const Line *l = lines, *next = l; l < end; l = next) {
        bool begins = l->op == OP_ADD && l->b >= wpe && l->b < wpe_end;
        next = begins ? l + model->n_embd : l + 1;
        if (!begins) {
            continue;
        }
        while (next < end && !(next->op == OP_ADD && next->b >= wpe && next->b < wpe_end)) {
            next++;
        }
        next = next < end ? next : end;
        places.position = (int)((size_t)(l->b - wpe) / model->n_embd);
        for (int t = 0; sampling() && t < places.position; t++) {
            for (int li = 0; (size_t)li < model->n_layer; li++) {
                add_place("k", li, NONE, t, model->keys[li] + (size_t)t * model->n_embd, model->n_embd);
                add_place("v", li, NONE, t, model->values[li] + (size_t)t * model->n_embd, model->n_embd);
            }
        }
        survey_position((Span){l, next}, places.position, &losses);
    }
    return true;
}

// The vector of that name, which may begin with layerN. and headN.; NULL if it is not there.
static const Place *find_place(const char *name, int position)
{
    int layer = watched.layer, head = NONE, used = 0;
    if (sscanf(name, "layer%d.%n", &layer, &used) == 1 && used) {
        name += used;
    }
    used = 0;
    if (sscanf(name, "head%d.%n", &head, &used) == 1 && used) {
        name += used;
    }
    for (size_t i = places.n; i-- > 0;) {
        const Place *p = &places.all[i];
        if (strcmp(p->name, name) == 0 && (p->layer == NONE || p->layer == layer) && p->head == head &&
            (position == LATEST || p->position == position)) {
            return p;
        }
    }
    return NULL;
}

static const Place *need_place(const char *name, int position)
{
    const Place *place = find_place(name, position);
    if (!place && position == LATEST) {
        print("%s: there is none yet: step on, or see `vec` for the names there are.\n", name);
    } else if (!place) {
        print("%s at position %d: there is none yet, or no such position; see `vec` for the names.\n", name, position);
    }
    return place;
}

// A token as a reader knows it.
static const char *token_text(size_t token)
{
    static char text[8];
    if (token >= watched.tokenizer->BOS) {
        return "BOS";
    }
    size_t length = encode_utf8(watched.tokenizer->uchars[token], text);
    text[length] = '\0';
    return text;
}

// What stands at a position: in a sample the tokens begin after BOS.
static size_t token_at(int position)
{
    const Model *model = watched.model;
    return !sampling() ? model->tokens[position] : position ? model->tokens[position - 1] : watched.tokenizer->BOS;
}

// The name of a value, as a parameter or as an element of a vector. False if it has none: then it is called v and its
// number on the tape.
static bool name_value(const double *value, char name[96])
{
    const Model *model = watched.model;
    for (size_t i = 0; i < model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i];
        if (value >= w->data && value < w->data + w->rows * w->cols) {
            size_t k = (size_t)(value - w->data);
            snprintf(name, 96, "%s[%zu][%zu]", w->name, k / w->cols, k % w->cols);
            return true;
        }
    }
    for (size_t i = places.n; i-- > 0;) {          // of a slice and its whole, the whole comes later
        const Place *p = &places.all[i];
        if (value >= p->at && value < p->at + p->n) {
            char layer[24] = "", head[24] = "", index[24] = "";
            if (p->layer != NONE && model->n_layer > 1) {
                snprintf(layer, sizeof layer, "layer%d.", p->layer);
            }
            if (p->head != NONE) {
                snprintf(head, sizeof head, "head%d.", p->head);
            }
            if (p->n > 1) {
                snprintf(index, sizeof index, "[%td]", value - p->at);
            }
            int length = snprintf(name, 96, "%s%s%s%s", layer, head, p->name, index);
            if (p->position != NONE) {
                snprintf(name + length, 96 - (size_t)length, " at %d", p->position);
            }
            return true;
        }
    }
    snprintf(name, 96, "v%td", value - model->tape.data);
    return false;
}

static bool has_name(const double *value)
{
    char name[96];
    return name_value(value, name);
}

// The name, in memory that the next call but three uses again.
static const char *value_name(const double *value)
{
    static char names[4][96];
    static size_t turn;
    char *name = names[turn++ % 4];
    name_value(value, name);
    return name;
}

static bool on_tape(const double *value)
{
    const Tape *tape = &watched.model->tape;
    return value >= tape->data && value < tape->data + tape->n_values;
}

// A value by its name: "logits" 5 and the position, "layer0.attn_wo" 3 5, "v1234". NULL if there is none.
static double *find_value(const char *name, int i, int j)
{
    Model *model = watched.model;
    for (size_t k = 0; k < model->n_matrices; k++) {
        const Matrix *w = &model->state_dict[k];
        if (strcmp(w->name, name) == 0) {
            bool inside = i >= 0 && (size_t)i < w->rows && j >= 0 && (size_t)j < w->cols;
            if (!inside) {
                print("%s has %zu rows and %zu columns, counted from 0.\n", name, w->rows, w->cols);
            }
            return inside ? w->data + (size_t)i * w->cols + (size_t)j : NULL;
        }
    }
    size_t number = 0;
    int used = 0;
    if (sscanf(name, "v%zu%n", &number, &used) == 1 && !name[used] && number < model->tape.n_values) {
        return model->tape.data + number;
    }
    const Place *place = need_place(name, j);
    i = place && place->n == 1 && i < 0 ? 0 : i;
    if (place && (i < 0 || (size_t)i >= place->n)) {
        print("%s has %zu elements, counted from 0.\n", name, place->n);
        return NULL;
    }
    return place ? place->at + i : NULL;
}

// Whether a debugger's user gave a name, or an expression of C. Called by the commands.
int is_value_name(const char *name)
{
    Model *model = watched.model;
    for (size_t k = 0; model && k < model->n_matrices; k++) {
        if (strcmp(model->state_dict[k].name, name) == 0) {
            return true;
        }
    }
    const char *last = strrchr(name, '.');
    last = last ? last + 1 : name;
    for (size_t k = 0; k < sizeof vectors / sizeof vectors[0]; k++) {
        const char *dot = strchr(vectors[k].name, '.');
        if (strcmp(dot ? dot + 1 : vectors[k].name, last) == 0) {
            return true;
        }
    }
    return name[0] == 'v' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1);
}

// A number in its column, and the column's heading.
static void number(double x)
{
    print(" %*.*g", watched.digits + 7, watched.digits, x);
}

static void heading(const char *text)
{
    print(" %*s", watched.digits + 7, text);
}

// Whether backward() has come by: only then does the chain rule hold at the last position's logarithm. What else may
// stand in the gradients is left from the step before.
static bool gradients_known(void)
{
    const Place *loss = find_place("loss", LATEST), *probs = find_place("probs", LATEST);
    if (!loss || sampling()) {
        return false;
    }
    const Tape *tape = &watched.model->tape;
    double *target = probs->at + watched.model->tokens[probs->position + 1];
    double *logarithm = made_of((Span){tape->lines, tape->lines + tape->n_lines}, OP_LOG, target, 1);
    return *grad(tape, target) != 0 && *grad(tape, target) == 1 / *target * *grad(tape, logarithm);
}

// A value, and its gradient if there is one; the headings of the two.
static void data_and_grad(double *value, bool known)
{
    number(*value);
    if (known) {
        number(*grad(&watched.model->tape, value));
    }
}

static void headings(const char *data, bool known)
{
    heading(data);
    if (known) {
        heading("grad");
    }
}

// What the i-th element of a vector belongs to.
static void element_label(const Place *p, size_t i)
{
    static const char *const of_tokens[] = {"logits", "probs"}, *const of_heads[] = {"q", "k", "v", "x_attn"};
    for (size_t k = 0; k < 2; k++) {
        if (strcmp(p->name, of_tokens[k]) == 0) {
            print("  %s", token_text(i));
        }
    }
    for (size_t k = 0; k < 4; k++) {
        if (strcmp(p->name, of_heads[k]) == 0) {
            print("  head %zu", i / watched.model->head_dim);
        }
    }
    if (strncmp(p->name, "attn_", 5) == 0) {       // logits and weights
        print("  %s", token_text(token_at((int)i)));
    }
    print("\n");
}

// The list that a debugger begins with: the commands of .gdbinit and .lldbinit.
void show_views(void)
{
    static const char *const views[][2] = {
        {"doc", "the document, its tokens, and what is to be predicted"},
        {"vec NAME [POS]", "a vector with data and gradient; vec alone lists the names"},
        {"around OP [POS]", "vectors before and after rmsnorm, wq, wo, residual, fc1, softmax ..."},
        {"head H [POS]", "one head's slice of q, and of each k and v"},
        {"cache [POS]", "the cache of keys and values, or one position of it"},
        {"attn H [POS]", "one head's logits and weights beside their characters"},
        {"lands H [POS]", "where a head's output lands in x_attn"},
        {"top5 [POS]", "the five likeliest next characters"},
        {"param NAME ROW COL", "a parameter: value, gradient, Adam's m and v"},
        {"moves NAME ROW COL", "how Adam moves it; to be asked where adam() begins"},
        {"explain VALUE", "what made a value, from what, and who used it"},
        {"users VALUE", "who used a value, with local derivatives"},
        {"look EXPR [N]", "N values from a pointer on: data, gradient, name"},
        {"tape", "the tape, counted by operation"},
        {"layer L", "which layer to show; at first 0"},
        {"digits N", "how many digits to show; at first 6"},
        {"views", "this list; help COMMAND says more"},
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        print("  %-20s %s\n", views[i][0], views[i][1]);
    }
    print("POS is a position; without it, the latest. VALUE is  logits 5 [POS],  layer0.attn_wo 3 5,  loss,  v123\n"
          "(a value that has no name), or C without spaces, like  &logits[5].\n");
}

// The document in work, or the sample, and its tokens.
void show_document(void)
{
    if (!survey()) {
        return;
    }
    const Model *model = watched.model;
    size_t n = 1;
    if (sampling()) {
        n = (size_t)(places.position + 1);
        print("The sample so far, as gpt() has seen it: ");
        for (size_t i = 1; i < n; i++) {
            print("%s", token_text(token_at((int)i)));
        }
        print("\n  position  token\n");
        for (size_t i = 0; i < n; i++) {
            print("  %8zu  %5zu  %s\n", i, token_at((int)i), token_text(token_at((int)i)));
        }
        return;
    }
    if (model->tokens[0] != watched.tokenizer->BOS) {
        print("No document has been taken yet: stop at train_step, or later.\n");
        return;
    }
    while (n < model->block_size && model->tokens[n] != watched.tokenizer->BOS) {
        n++;
    }
    print("The document: ");
    for (size_t i = 1; i <= n && model->tokens[i] != watched.tokenizer->BOS; i++) {
        print("%s", token_text(model->tokens[i]));
    }
    print("\n  position  token         to predict\n");
    for (size_t i = 0; i < n; i++) {
        print("  %8zu  %5u  %-5s", i, model->tokens[i], token_text(model->tokens[i]));
        print("  %5u  %s\n", model->tokens[i + 1], token_text(model->tokens[i + 1]));
    }
}

// The names of all vectors.
void show_vectors(void)
{
    if (!survey()) {
        return;
    }
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const Place *p = find_place(vectors[i].name, LATEST);
        print("  %-20s %-58s", vectors[i].name, vectors[i].meaning);
        if (p) {
            print(p->position == NONE ? " [%zu]\n" : " [%zu] at %d\n", p->n, p->position);
        } else {
            print(" not yet\n");
        }
    }
}

// One vector, with data and gradient.
void show_vector(const char *name, int position)
{
    const Place *p = survey() ? need_place(name, position) : NULL;
    if (!p) {
        return;
    }
    bool known = gradients_known();
    print("%s", name);
    if (p->position != NONE) {
        print(" at position %d (%s)", p->position, token_text(token_at(p->position)));
    }
    print("\n    i");
    headings("data", known);
    print("\n");
    for (size_t i = 0; i < p->n; i++) {
        print("  %3zu", i);
        data_and_grad(p->at + i, known);
        element_label(p, i);
    }
}

// n neighbours, wherever they are: what they are, with data and gradient.
void show_values(double *x, size_t n)
{
    if (!survey()) {
        return;
    }
    bool known = gradients_known();
    for (size_t i = 0; i < n; i++) {
        if (!on_tape(x + i)) {
            print("This is no value of the tape: a value is a pointer to its data, like logits or &logits[5].\n");
            return;
        }
        data_and_grad(x + i, known);
        print("  %s\n", value_name(x + i));
    }
}

// Vectors before and after one operation of the model.
void show_around(const char *operation, int position)
{
    static const char *const pairs[][3] = {
        {"rmsnorm", "emb", "emb_norm"}, {"rmsnorm", "x", "x_norm"}, {"rmsnorm", "x_mid", "mid_norm"},
        {"wq", "x_norm", "q"}, {"wk", "x_norm", "k"}, {"wv", "x_norm", "v"}, {"wo", "x_attn", "x_wo"},
        {"residual", "x_wo", "x_mid"}, {"residual", "fc2", "x_out"},
        {"fc1", "mid_norm", "fc1"}, {"activation", "fc1", "act"}, {"fc2", "act", "fc2"},
        {"lm_head", "x_out", "logits"}, {"softmax", "logits", "probs"},
    };
    size_t n_pairs = sizeof pairs / sizeof pairs[0], n_known = 0, n_shown = 0;
    bool known = survey() && gradients_known();
    for (size_t k = 0; watched.model && k < n_pairs; k++) {
        const Place *after = find_place(pairs[k][2], position);
        if (strcmp(pairs[k][0], operation) == 0) {
            n_known++;
            position = position == LATEST && after ? after->position : position;
        }
    }
    for (size_t k = 0; n_known && k < n_pairs; k++) {
        const Place *before = find_place(pairs[k][1], position), *after = find_place(pairs[k][2], position);
        if (strcmp(pairs[k][0], operation) != 0 || !before || !after) {
            continue;
        }
        n_shown++;
        print("%s at position %d (%s): before, %s; after, %s\n    i", operation, position,
              token_text(token_at(position)), before->name, after->name);
        headings("before", known);
        headings("after", known);
        print("\n");
        for (size_t i = 0; i < before->n || i < after->n; i++) {
            print("  %3zu", i);
            if (i < before->n) {
                data_and_grad(before->at + i, known);
            } else {
                headings("", known);
            }
            if (i < after->n) {
                data_and_grad(after->at + i, known);
            }
            print("\n");
        }
    }
    if (watched.model && !n_known) {
        print("%s: not one of", operation);
        for (size_t k = 0; k < n_pairs; k++) {
            if (k == 0 || strcmp(pairs[k][0], pairs[k - 1][0]) != 0) {
                print(" %s", pairs[k][0]);
            }
        }
        print(".\n");
    } else if (watched.model && !n_shown) {
        print("%s: not computed yet, or no such position: step on.\n", operation);
    }
}

static bool is_head(int head)
{
    bool ok = head >= 0 && (size_t)head < watched.model->n_head;
    if (!ok) {
        print("There are %zu heads, counted from 0.\n", watched.model->n_head);
    }
    return ok;
}

// One head's slice of the query, of each key and of each value.
void show_head(int head, int position)
{
    const Place *q = survey() && is_head(head) ? need_place("q", position) : NULL;
    if (!q) {
        return;
    }
    size_t head_dim = watched.model->head_dim, hs = (size_t)head * head_dim;
    print("head %d at position %d (%s): hs = %d * %zu = %zu, so its slices are [%zu] to [%zu]\n", head, q->position,
          token_text(token_at(q->position)), head, head_dim, hs, hs, hs + head_dim - 1);
    for (int kind = 0; kind < 3; kind++) {
        for (int t = kind ? 0 : q->position; t <= q->position; t++) {
            const Place *p = find_place(kind == 0 ? "q" : kind == 1 ? "k" : "v", t);
            if (p) {
                print("  %c_h %3d %-4s", "qkv"[kind], t, token_text(token_at(t)));
                for (size_t i = 0; i < head_dim; i++) {
                    number(p->at[hs + i]);
                }
                print("\n");
            }
        }
    }
}

// The cache of keys and values: how full it is, and one position of it, or the beginning of each.
void show_cache(int position)
{
    if (!survey()) {
        return;
    }
    int n = 0;
    bool known = gradients_known();
    size_t few = watched.model->n_embd < 3 ? watched.model->n_embd : 3;
    while (find_place("k", n) && find_place("v", n)) {
        n++;
    }
    print("layer %d: %d position%s in the cache\n", watched.layer, n, n == 1 ? "" : "s");
    for (int t = 0; t < n && position == LATEST; t++) {
        const Place *k = find_place("k", t), *v = find_place("v", t);
        print("  %3d %-4s key", t, token_text(token_at(t)));
        for (size_t i = 0; i < few; i++) {
            number(k->at[i]);
        }
        print(" ...  value");
        for (size_t i = 0; i < few; i++) {
            number(v->at[i]);
        }
        print(" ...\n");
    }
    const Place *k = position == LATEST ? NULL : need_place("k", position);
    const Place *v = k ? need_place("v", position) : NULL;
    if (!v) {
        return;
    }
    print("position %d (%s)\n    i", position, token_text(token_at(position)));
    headings("key", known);
    headings("value", known);
    print("\n");
    for (size_t i = 0; i < k->n; i++) {
        print("  %3zu", i);
        data_and_grad(k->at + i, known);
        data_and_grad(v->at + i, known);
        print("  head %zu\n", i / watched.model->head_dim);
    }
}

// What a head looks at: its logits and weights beside the characters they belong to.
void show_attention(int head, int position)
{
    char name[48];
    if (!survey() || !is_head(head)) {
        return;
    }
    snprintf(name, sizeof name, "head%d.attn_logits", head);
    const Place *logits = need_place(name, position);
    snprintf(name, sizeof name, "head%d.attn_weights", head);
    const Place *weights = logits ? need_place(name, logits->position) : NULL;
    if (!weights) {
        return;
    }
    print("head %d at position %d (%s) looks at\n    t       ", head, logits->position,
          token_text(token_at(logits->position)));
    heading("logit");
    heading("weight");
    print("\n");
    for (size_t t = 0; t < logits->n; t++) {
        print("  %3zu  %-4s ", t, token_text(token_at((int)t)));
        number(logits->at[t]);
        number(weights->at[t]);
        int width = weights->at[t] > 0 ? (int)(weights->at[t] * 40 + 0.5) : 0;
        print("  %.*s\n", width, "########################################");
    }
}

// Where a head's output stands in the row of all outputs.
void show_landing(int head, int position)
{
    char name[48];
    if (!survey() || !is_head(head)) {
        return;
    }
    snprintf(name, sizeof name, "head%d.head_out", head);
    const Place *out = need_place(name, position), *first = out ? need_place("head0.head_out", out->position) : NULL;
    if (!first) {
        return;
    }
    bool known = gradients_known();
    size_t head_dim = watched.model->head_dim;
    print("x_attn at position %d (%s):", out->position, token_text(token_at(out->position)));
    for (size_t h = 0; h < watched.model->n_head; h++) {
        print(h == (size_t)head ? " *[%zu..%zu]*" : " [%zu..%zu]", h * head_dim, (h + 1) * head_dim - 1);
    }
    print("\n");
    for (size_t i = 0; i < out->n; i++) {
        print("  head %d: head_out[%zu] is x_attn[%td]", head, i, out->at + i - first->at);
        data_and_grad(out->at + i, known);
        print("\n");
    }
}

// The likeliest next tokens.
void show_top(int position)
{
    enum { TOP = 5 };
    const Place *logits = survey() ? need_place("logits", position) : NULL;
    if (!logits) {
        return;
    }
    const Place *probs = find_place("probs", logits->position);
    double total = 0, max = largest(logits->at, logits->n);
    for (size_t i = 0; i < logits->n; i++) {
        total += exp(logits->at[i] - max);
    }
    print("after position %d (%s), the likeliest next\n             ", logits->position,
          token_text(token_at(logits->position)));
    heading("logit");
    heading("probability");
    print("\n");
    size_t taken[TOP];
    for (size_t rank = 0; rank < TOP && rank < logits->n; rank++) {
        size_t best = logits->n;
        for (size_t i = 0; i < logits->n; i++) {
            bool out = false;
            for (size_t k = 0; k < rank; k++) {
                out = out || taken[k] == i;
            }
            best = !out && (best == logits->n || logits->at[i] > logits->at[best]) ? i : best;
        }
        taken[rank] = best;
        print("  %zu.  %-4s   ", rank + 1, token_text(best));
        number(logits->at[best]);
        number(probs ? probs->at[best] : exp(logits->at[best] - max) / total);
        print("%s\n", !sampling() && best == watched.model->tokens[logits->position + 1] ? "  comes next" : "");
    }
}

static double *find_parameter(const char *name, int row, int column)
{
    double *p = find_value(name, row, column);
    if (p && p >= watched.model->params + watched.model->num_params) {
        print("%s is no parameter.\n", name);
        return NULL;
    }
    return p;
}

// One parameter, with what Adam remembers of it.
void show_parameter(const char *name, int row, int column)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    if (!p) {
        return;
    }
    size_t k = (size_t)(p - watched.model->params);
    print("%s\n", value_name(p));
    print("  value   ");
    number(*p);
    print("\n  gradient");
    number(*grad(&watched.model->tape, p));
    print("\n  Adam's m");
    number(watched.model->m[k]);
    print("\n  Adam's v");
    number(watched.model->v[k]);
    print("\n");
}

// How Adam is about to move one parameter: to be asked where adam() begins, with its arguments.
void show_adam(const char *name, int row, int column, size_t step, double lr, double beta1, double beta2, double eps)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    if (!p) {
        return;
    }
    size_t k = (size_t)(p - watched.model->params);
    double g = *grad(&watched.model->tape, p), m = watched.model->m[k], v = watched.model->v[k];
    double new_m = beta1 * m + (1 - beta1) * g, new_v = beta2 * v + (1 - beta2) * g * g;
    double m_hat = new_m / (1 - pow(beta1, (double)step + 1)), v_hat = new_v / (1 - pow(beta2, (double)step + 1));
    double move = -lr * m_hat / (sqrt(v_hat) + eps);
    const struct { const char *what; double x; } rows[] = {
        {"gradient", g}, {"m was", m}, {"m = beta1 * m + (1 - beta1) * gradient", new_m},
        {"m_hat = m / (1 - beta1^(step + 1))", m_hat}, {"v was", v},
        {"v = beta2 * v + (1 - beta2) * gradient^2", new_v}, {"v_hat = v / (1 - beta2^(step + 1))", v_hat},
        {"learning rate", lr}, {"move = -lr * m_hat / (sqrt(v_hat) + eps)", move},
        {"value before", *p}, {"value after", *p + move},
    };
    print("%s at step %zu, counted from 0\n", value_name(p), step);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print("  %-42s", rows[i].what);
        number(rows[i].x);
        print("\n");
    }
}

// How small changes of a line's first or second operand change its result.
static double local_derivative(const Line *l, bool second)
{
    switch (l->op) {
    case OP_MUL: return second ? *l->a : *l->b;
    case OP_POW: return l->c * pow(*l->a, l->c - 1);
    case OP_LOG: return 1 / *l->a;
    case OP_EXP: return *l->out;
    case OP_RELU: return *l->a > 0 ? 1 : 0;
    case OP_TIMES: return l->c;
    default: return 1;
    }
}

static void print_line(const Line *l)
{
    const char *a = value_name(l->a);
    switch (l->op) {
    case OP_ADD: print("%s + %s", a, value_name(l->b)); break;
    case OP_MUL: print("%s * %s", a, value_name(l->b)); break;
    case OP_POW: print("%s ^ %g", a, l->c); break;
    case OP_LOG: print("log %s", a); break;
    case OP_EXP: print("e ^ %s", a); break;
    case OP_RELU: print("relu %s", a); break;
    case OP_PLUS: print("%s + %g", a, l->c); break;
    case OP_TIMES: print("%s * %g", a, l->c); break;
    default: print("%s %s", op_names[l->op], a); break;
    }
}

static const Line *maker(const double *value)
{
    const Tape *tape = &watched.model->tape;
    for (size_t i = tape->n_lines; i-- > 0;) {
        if (tape->lines[i].out == value) {
            return &tape->lines[i];
        }
    }
    return NULL;
}

// The first value with a name that a line's result was added up to, or else that result.
static const double *named_after(const Line *l)
{
    const Tape *tape = &watched.model->tape;
    const double *value = l->out;
    bool named = has_name(value);
    for (const Line *k = l + 1; !named && k < tape->lines + tape->n_lines; k++) {
        if (k->op == OP_ADD && (k->a == value || k->b == value)) {
            value = k->out;
            named = has_name(value);
        }
    }
    return named ? value : l->out;
}

// The lines that used a value: each one's local derivative times the gradient of what it made, and the sum of these.
static void print_users(double *value, size_t most)
{
    const Tape *tape = &watched.model->tape;
    bool known = gradients_known();
    size_t n = 0;
    double sum = 0;
    for (const Line *l = tape->lines; l < tape->lines + tape->n_lines; l++) {
        for (int second = 0; second < 2; second++) {
            if ((second ? l->b : l->a) != value) {
                continue;
            }
            double d = local_derivative(l, second), g = *grad(tape, l->out);
            sum += d * g;
            if (n++ >= most) {
                continue;
            }
            const double *whole = named_after(l);
            print("  line %td: %s = ", l - tape->lines, value_name(l->out));
            print_line(l);
            if (whole != l->out) {
                print(", a part of %s", value_name(whole));
            }
            print("\n    local derivative %.*g", watched.digits, d);
            if (known) {
                print(", times the gradient of %s, %.*g, is %.*g", value_name(l->out), watched.digits, g,
                      watched.digits, d * g);
            }
            print("\n");
        }
    }
    if (n > most) {
        print("  and %zu more\n", n - most);
    }
    if (n == 0) {
        print("  not used yet");
    } else {
        print("  used by %zu line%s of the tape", n, n == 1 ? "" : "s");
    }
    if (known && n) {
        print("; the sum is its gradient: %.*g", watched.digits, sum);
    }
    print("\n");
}

// Who used a value.
void show_users_at(double *value)
{
    if (survey() && on_tape(value)) {
        print("%s = %.*g\n", value_name(value), watched.digits, *value);
        print_users(value, 20);
    }
}

// The products that a value is the sum of, or a multiple of the sum of, in the order in which they were added.
static void print_sum(const Line *l)
{
    size_t n = 1;
    l = l->op == OP_TIMES && !has_name(l->a) && maker(l->a) ? maker(l->a) : l;
    const Line *first = l;
    for (; first && first->op == OP_ADD && (first == l || !has_name(first->out)); n++) {
        first = maker(first->a);
    }
    if (n < 3 || !first || first->op != OP_MUL) {
        return;
    }
    print("  %s is the last of %zu additions, which sum up %zu products:\n", value_name(l->out), n - 1, n);
    for (const Line *k = first; k <= l; k++) {
        if (k->op == OP_MUL) {
            print("   ");
            number(*k->a);
            print(" *");
            number(*k->b);
            print(" =");
            number(*k->out);
            print("  ");
            print_line(k);
            print("\n");
        }
    }
}

// Where a value comes from: the operation that made it, its operands, the local derivatives; and who used it.
void show_value(double *value)
{
    if (!survey()) {
        return;
    }
    if (!on_tape(value)) {
        print("This is no value of the tape: a value is a pointer to its data, like loss or &logits[5].\n");
        return;
    }
    const Line *l = maker(value);
    print("%s\n  data", value_name(value));
    number(*value);
    if (gradients_known()) {
        print("\n  grad");
        number(*grad(&watched.model->tape, value));
    }
    print("\n");
    if (!l) {
        print("  no operation made it: it is a %s\n",
              value < watched.model->params + watched.model->num_params ? "parameter" : "leaf");
    } else {
        print("  made by line %td of the tape: ", l - watched.model->tape.lines);
        print_line(l);
        print(" (%s)\n", op_names[l->op]);
        for (int second = 0; second < 2 && (second ? l->b : l->a); second++) {
            double *operand = second ? l->b : l->a;
            print("    operand %s = %.*g, local derivative %.*g\n", value_name(operand), watched.digits, *operand,
                  watched.digits, local_derivative(l, second));
        }
        print_sum(l);
    }
    print_users(value, 4);
}

void show_value_named(const char *name, int i, int j)
{
    double *value = survey() ? find_value(name, i, j) : NULL;
    if (value) {
        show_value(value);
    }
}

void show_users(const char *name, int i, int j)
{
    double *value = survey() ? find_value(name, i, j) : NULL;
    if (value) {
        show_users_at(value);
    }
}

// The tape, counted by operation.
void show_tape(void)
{
    if (!survey()) {
        return;
    }
    const Tape *tape = &watched.model->tape;
    size_t counts[N_OPS] = {0};
    for (size_t i = 0; i < tape->n_lines; i++) {
        counts[tape->lines[i].op]++;
    }
    for (size_t op = 0; op < N_OPS; op++) {
        if (counts[op]) {
            print("  %-8s %8zu\n", op_names[op], counts[op]);
        }
    }
    print("  %-8s %8zu lines, from %d position%s\n", "all", tape->n_lines, places.position + 1,
          places.position == 0 ? "" : "s");
}

// The layer that is looked at, and the digits of every number.
void show_layer(int layer)
{
    if (survey() && layer >= 0 && (size_t)layer < watched.model->n_layer) {
        watched.layer = layer;
    } else if (watched.model) {
        print("Layers are counted from 0, and there %s %zu.\n", watched.model->n_layer == 1 ? "is" : "are",
              watched.model->n_layer);
    }
}

void show_digits(int digits)
{
    watched.digits = digits < 1 ? 1 : digits > 17 ? 17 : digits;
}
#endif

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
    ok = ok && new_model(&model, all.longest, ATOMIC, error);
    if (ok) {
        init_parameters(&model, &random, o->init_std, o->recipe == RECIPE_LESSON);
    }
    watch(&model, &tokenizer);
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
            return fail(error, USAGE, "--%s %s: out of range: %.0f to %.0f", option->name, value, option->least,
                        option->most);
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
