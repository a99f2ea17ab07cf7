/* The model a second time: model files read by a reader of their own, and the loss and the attention computed from their
 * numbers with plain loops. It shares nothing with the program; the tests compare the two.
 */
#ifndef PLAIN_MODEL_H
#define PLAIN_MODEL_H

#include "../test.h"

#include <sys/wait.h>

enum { MOST = 64, MOST_LAYERS = 4, MOST_TOKENS = 257 };  // MOST: positions, and numbers in a vector

// Without this the test cannot go on.
static inline void need(bool ok, const char *what, const char *expected, const char *saw)
{
    if (ok) return;
    printf("not ok - %s: expected %s, saw %.90s\n", what, expected, saw);
    exit(1);
}

static inline void *room_for(size_t n)
{
    void *memory = calloc(n ? n : 1, 1);
    need(memory, "memory", "some", "none");
    return memory;
}

// All that can be read, up to four megabytes, and a zero after it.
static inline char *read_stream(FILE *file, size_t *n)
{
    size_t room = 1 << 22;
    char *bytes = room_for(room);
    *n = file ? fread(bytes, 1, room - 1, file) : 0;
    return bytes;
}

static inline char *read_file(const char *name, size_t *n)
{
    FILE *file = fopen(name, "rb");
    need(file, name, "a file", "none");
    char *bytes = read_stream(file, n);
    fclose(file);
    return bytes;
}

static inline void write_file(const char *name, const char *bytes, size_t n)
{
    FILE *file = fopen(name, "wb");
    bool ok = file && fwrite(bytes, 1, n, file) == n;
    need(file && fclose(file) == 0 && ok, name, "to write it", "a failure");
}

// Runs ./microgpt with these arguments. Returns what it prints, in memory of the caller's.
static inline char *run_program(const char *arguments, int *status)
{
    char command[1024];
    const char *wrapper = getenv("MICROGPT_WRAPPER");
    snprintf(command, sizeof command, "%s ./microgpt %s", wrapper ? wrapper : "", arguments);
    fflush(stdout);
    FILE *pipe = popen(command, "r");
    size_t n;
    char *text = read_stream(pipe, &n);
    int ended = pipe ? pclose(pipe) : -1;
    *status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 256;
    return text;
}

// The same, if it ends as it should.
static inline char *output_of(const char *arguments)
{
    int status;
    char *text = run_program(arguments, &status);
    if (status != 0) check(false, "%s: expected status 0, saw %d", arguments, status);
    return text;
}

// A text with ' in place of double quotes, and ` in place of '. Returns `quoted`, which has room for it.
static inline const char *with_quotes(const char *text, char *quoted, size_t room)
{
    snprintf(quoted, room, "%s", text);
    for (char *at = quoted; *at; at++) *at = *at == '\'' ? '"' : *at == '`' ? '\'' : *at;
    return quoted;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Model files, as far as the program writes them.
 */
typedef struct {
    size_t rows, cols, at;  // at: the place of its first byte in the file
    double *data;
} Tensor;

typedef struct {
    char *bytes;      // the whole file
    double *numbers;  // behind its header
    size_t n_bytes, n_header, n_numbers, n_layer, n_embd, n_head, block_size, n_vocab;
    bool squared;  // the activation: relu squared
    uint32_t vocab[MOST_TOKENS];
    Tensor wte, wpe, lm_head, wq[MOST_LAYERS], wk[MOST_LAYERS], wv[MOST_LAYERS], wo[MOST_LAYERS],
        fc1[MOST_LAYERS], fc2[MOST_LAYERS];
} PlainModel;

static inline uint64_t little_endian(const char *bytes)
{
    uint64_t x = 0;
    for (size_t i = 8; i-- > 0;) x = x << 8 | (unsigned char)bytes[i];
    return x;
}

// Where the value of this name begins in the header.
static inline const char *value_of(const PlainModel *m, const char *name)
{
    char key[96];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = strstr(m->bytes + 8, key);
    need(found, name, "its value in the header", "none");
    return found + strlen(key);
}

static inline size_t size_of(const PlainModel *m, const char *name)
{
    return strtoul(value_of(m, name) + 1, NULL, 10);
}

// A tensor of a layer, or, where there is no such layer, of none.
static inline Tensor tensor(PlainModel *m, size_t layer, const char *name)
{
    char key[64] = "";
    Tensor t = {0};
    size_t begin = 0, end = 0;
    if (layer < MOST_LAYERS) snprintf(key, sizeof key, "layer%zu.", layer);
    snprintf(key + strlen(key), sizeof key - strlen(key), "%s", name);
    const char *text = value_of(m, key);
    int n = sscanf(text, "{\"dtype\":\"F64\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}",
                   &t.rows, &t.cols, &begin, &end);
    bool fits = end - begin == 8 * t.rows * t.cols && 8 + m->n_header + end <= m->n_bytes;
    need(n == 4 && fits, key, "F64, a shape, and a place for it", text);
    t.at = 8 + m->n_header + begin;
    t.data = m->numbers + begin / 8;
    m->n_numbers += t.rows * t.cols;
    return t;
}

// The code point at *text, which then is at the next one.
static inline uint32_t next_code(const char **text)
{
    const unsigned char *s = (const unsigned char *)*text;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) code = code << 6 | (s[i] & 0x3fu);
    *text += n;
    return code;
}

static inline PlainModel open_model(const char *name)
{
    PlainModel m = {0};
    m.bytes = read_file(name, &m.n_bytes);
    m.n_header = m.n_bytes < 8 ? 0 : (size_t)little_endian(m.bytes);
    char *checksum = m.n_bytes < 8 ? NULL : strstr(m.bytes + 8, "\"checksum\":");
    if (checksum) {  // who opens it may change the numbers on purpose
        memset(checksum, ' ', (size_t)(strchr(checksum, ',') - checksum) + 1);
    }
    m.numbers = room_for(m.n_bytes);
    for (size_t at = 8 + m.n_header, i = 0; at + 8 <= m.n_bytes; at += 8, i++) {
        uint64_t x = little_endian(m.bytes + at);
        memcpy(&m.numbers[i], &x, sizeof x);
    }
    m.n_layer = size_of(&m, "n_layer");
    m.n_embd = size_of(&m, "n_embd");
    m.n_head = size_of(&m, "n_head");
    m.block_size = size_of(&m, "block_size");
    m.squared = strncmp(value_of(&m, "activation"), "\"relu2\"", 7) == 0;
    bool small = m.n_layer <= MOST_LAYERS && m.n_embd <= MOST && m.block_size <= MOST;
    need(small, name, "a small model", "a larger one");
    for (const char *text = value_of(&m, "vocab") + 1;
         *text != '"' && m.n_vocab < MOST_TOKENS - 1;) {
        text += *text == '\\';  // a quote or a backslash: ours have no other escape
        m.vocab[m.n_vocab++] = next_code(&text);
    }
    m.wte = tensor(&m, SIZE_MAX, "wte");
    m.wpe = tensor(&m, SIZE_MAX, "wpe");
    m.lm_head = tensor(&m, SIZE_MAX, "lm_head");
    for (size_t li = 0; li < m.n_layer; li++) {
        m.wq[li] = tensor(&m, li, "attn_wq");
        m.wk[li] = tensor(&m, li, "attn_wk");
        m.wv[li] = tensor(&m, li, "attn_wv");
        m.wo[li] = tensor(&m, li, "attn_wo");
        m.fc1[li] = tensor(&m, li, "mlp_fc1");
        m.fc2[li] = tensor(&m, li, "mlp_fc2");
    }
    return m;
}

static inline void close_model(PlainModel *m)
{
    free(m->numbers);
    free(m->bytes);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The model, with plain loops.
 */
// Of the last tokens that were run: [layer][head][query][key], and what else a position computes.
static double weights[MOST_LAYERS][MOST][MOST][MOST], value_rows[MOST_LAYERS][MOST][MOST];
static double emb_norms[MOST][MOST], acts[MOST_LAYERS][MOST][4 * MOST], logits[MOST][MOST_TOKENS];

static inline double plain_dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static inline void times(double *out, const Tensor *w, const double *x)
{
    for (size_t i = 0; i < w->rows; i++) out[i] = plain_dot(w->data + i * w->cols, x, w->cols);
}

static inline void normalize(double *out, const double *x, size_t n)
{
    double scale = 1 / sqrt(plain_dot(x, x, n) / (double)n + 1e-5);
    for (size_t i = 0; i < n; i++) out[i] = x[i] * scale;
}

static inline void to_shares(double *x, size_t n)
{
    double most = x[0], sum = 0;
    for (size_t i = 1; i < n; i++) most = fmax(most, x[i]);
    for (size_t i = 0; i < n; i++) {
        x[i] = exp(x[i] - most);
        sum += x[i];
    }
    for (size_t i = 0; i < n; i++) x[i] /= sum;
}

// The heads of a layer at position p: from its query and the keys and values so far to their outputs.
static inline void plain_heads(const PlainModel *m, size_t li, size_t p, const double *q,
                               double k[MOST][MOST], double *out)
{
    size_t d = m->n_embd / m->n_head;
    for (size_t h = 0; h < m->n_head; h++) {
        double *w = weights[li][h][p];
        for (size_t t = 0; t <= p; t++) {
            w[t] = plain_dot(q + h * d, k[t] + h * d, d) / sqrt((double)d);
        }
        to_shares(w, p + 1);
        for (size_t i = h * d; i < (h + 1) * d; i++) {
            out[i] = 0;
            for (size_t t = 0; t <= p; t++) out[i] += w[t] * value_rows[li][t][i];
        }
    }
}

// Runs n tokens, and returns the sum of the losses of those that follow each.
static inline double plain_loss(const PlainModel *m, const uint32_t *tokens, size_t n)
{
    static double k[MOST_LAYERS][MOST][MOST];
    size_t E = m->n_embd;
    double loss = 0;
    for (size_t p = 0; p < n; p++) {
        double x[MOST], y[MOST], q[MOST], heads[MOST], shares[MOST_TOKENS];
        for (size_t i = 0; i < E; i++) {
            y[i] = m->wte.data[tokens[p] * E + i] + m->wpe.data[p * E + i];
        }
        normalize(x, y, E);
        memcpy(emb_norms[p], x, E * sizeof *x);
        for (size_t li = 0; li < m->n_layer; li++) {
            double *wide = acts[li][p];
            normalize(y, x, E);
            times(q, &m->wq[li], y);
            times(k[li][p], &m->wk[li], y);
            times(value_rows[li][p], &m->wv[li], y);
            plain_heads(m, li, p, q, k[li], heads);
            times(y, &m->wo[li], heads);
            for (size_t i = 0; i < E; i++) x[i] += y[i];
            normalize(y, x, E);
            times(wide, &m->fc1[li], y);
            for (size_t i = 0; i < 4 * E; i++) {
                wide[i] = fmax(wide[i], 0);
                wide[i] *= m->squared ? wide[i] : 1;
            }
            times(y, &m->fc2[li], wide);
            for (size_t i = 0; i < E; i++) x[i] += y[i];
        }
        times(logits[p], &m->lm_head, x);
        memcpy(shares, logits[p], (m->n_vocab + 1) * sizeof *shares);
        to_shares(shares, m->n_vocab + 1);
        loss -= log(shares[tokens[p + 1]]);
    }
    return loss;
}

// Start, the word, end, cut to the block. Returns how many of them are followed by another.
static inline size_t tokens_of(const PlainModel *m, const char *word, uint32_t tokens[MOST + 1])
{
    size_t n = 0;
    tokens[n++] = (uint32_t)m->n_vocab;
    while (*word && n <= m->block_size) {
        uint32_t code = next_code(&word), token = 0;
        while (token < m->n_vocab && m->vocab[token] != code) token++;
        tokens[n++] = token;
    }
    if (n <= m->block_size) tokens[n++] = (uint32_t)m->n_vocab;
    return n - 1;
}

#endif
