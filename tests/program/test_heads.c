/* What the heads see, computed a second time: from the numbers in model files, by the plain model and with nothing of the
 * program's own code. The program is run as a user runs it, with --tsv, and its figures are compared.
 */
#define _XOPEN_SOURCE 700
#include "plain_model.h"

#define FOLDER "tests/build/heads"

static const double NEAR = 1e-12;

static char *next_line(char **rest) { return strtok_r(*rest, "\n", rest); }

// The number behind the beginning of a line, in full precision. NAN: the line is another.
static double number_after(const char *begin, const char *line)
{
    char again[200];
    size_t n = strlen(begin);
    double x = line && strncmp(line, begin, n) == 0 ? strtod(line + n, NULL) : NAN;
    snprintf(again, sizeof again, "%s%.17g", begin, x);
    return line && strcmp(again, line) == 0 ? x : NAN;
}

static char *heads_of(const char *path, const char *options)
{
    char arguments[512];
    snprintf(arguments, sizeof arguments, "heads %s %s", path, options);
    return output_of(arguments);
}

// The maps of one word: every entry, in order, and no other; each row sums to 1.
static void check_word(const char *name, const char *path, const PlainModel *f, const char *word)
{
    char options[256], begin[100];
    snprintf(options, sizeof options, "'%s' --tsv", word);
    char *text = heads_of(path, options), *rest = text, *line = next_line(&rest);
    uint32_t tokens[MOST + 1];
    size_t n = tokens_of(f, word, tokens), entries = 0;
    double apart = 0, sums = 0;
    bool ok = line && strcmp(line, "layer\thead\tquery\tkey\tweight") == 0;
    plain_loss(f, tokens, n);
    for (size_t row = 0; row < f->n_layer * f->n_head * n; row++) {
        size_t li = row / n / f->n_head, h = row / n % f->n_head, query = row % n;
        double sum = 0;
        for (size_t key = 0; key <= query; key++, entries++) {
            snprintf(begin, sizeof begin, "%zu\t%zu\t%zu\t%zu\t", li, h, query, key);
            double weight = number_after(begin, next_line(&rest));
            apart = fmax(apart, distance(weights[li][h][query][key], weight));
            sum += weight;
        }
        sums = fmax(sums, fabs(sum - 1));
    }
    check(ok && !next_line(&rest) && apart <= NEAR && sums <= NEAR,
          "%s, '%s': %zu weights, in order: %.3g from those of plain loops, sums %.3g from 1", name,
          word, entries, apart, sums);
    free(text);
}

static double loss_by_eval(const char *path, const char *docs, size_t n_docs)
{
    char arguments[512];
    double loss = NAN;
    snprintf(arguments, sizeof arguments, "eval %s --data %s --docs %zu", path, docs, n_docs);
    char *text = output_of(arguments), *line = strstr(text, "\nloss ");
    if (line) sscanf(line, "\nloss %lf", &loss);
    free(text);
    return loss;
}

enum { MOST_DOCS = 50 };

// What the plain model computes over documents.
typedef struct {
    double looks[MOST_LAYERS][MOST][5];  // of a head: self, previous, first, elsewhere, entropy
    double losses[MOST_DOCS], n_tokens[MOST_DOCS];  // of each document, losses summed
    double loss;                                    // of a token
    size_t n_docs;
} Overview;

static void look_over(const PlainModel *f, const char *docs, size_t n_docs, Overview *o)
{
    size_t n_bytes, n_tokens = 0;
    char *list = read_file(docs, &n_bytes), *rest = list, *line;
    memset(o, 0, sizeof *o);
    for (; o->n_docs < n_docs && (line = next_line(&rest)); o->n_docs++) {
        uint32_t tokens[MOST + 1];
        size_t n = tokens_of(f, line, tokens);
        o->losses[o->n_docs] = plain_loss(f, tokens, n);
        o->n_tokens[o->n_docs] = (double)n;
        o->loss += o->losses[o->n_docs];
        n_tokens += n;
        for (size_t row = 0; row < f->n_layer * f->n_head * n; row++) {
            size_t li = row / n / f->n_head, h = row / n % f->n_head, query = row % n;
            const double *w = weights[li][h][query];
            for (size_t key = 0; key <= query; key++) {
                size_t kind = key == query ? 0 : key + 1 == query ? 1 : key == 0 ? 2 : 3;
                o->looks[li][h][kind] += w[key];
                o->looks[li][h][4] -= w[key] * log(w[key]) / log(2);
            }
        }
    }
    free(list);
    for (size_t i = 0; i < f->n_layer * f->n_head * 5; i++) {
        o->looks[i / 5 / f->n_head][i / 5 % f->n_head][i % 5] /= (double)n_tokens;
    }
    o->loss /= (double)n_tokens;
}

// The loss by eval of the same model with a head's columns of attn_wo set to zero.
static double loss_without(const PlainModel *f, size_t li, size_t h, const char *docs,
                           size_t n_docs)
{
    size_t head_dim = f->n_embd / f->n_head;
    char *bytes = room_for(f->n_bytes);
    memcpy(bytes, f->bytes, f->n_bytes);
    for (size_t row = 0; row < f->n_embd; row++) {
        memset(bytes + f->wo[li].at + 8 * (row * f->n_embd + h * head_dim), 0, 8 * head_dim);
    }
    write_file(FOLDER "/silenced", bytes, f->n_bytes);
    free(bytes);
    return loss_by_eval(FOLDER "/silenced", docs, n_docs);
}

// The table of all heads, over the first documents of a file.
static void check_table(const char *name, const char *path, const PlainModel *f, const char *docs,
                        size_t n_docs)
{
    static Overview o;
    static const char *const columns[] = {"self",    "previous", "first",       "elsewhere",
                                          "entropy", "loss",     "loss_without"};
    char options[256], what[256];
    look_over(f, docs, n_docs, &o);
    snprintf(options, sizeof options, "--tsv --docs %zu --data %s", n_docs, docs);
    char *text = heads_of(path, options), *rest = text, *line = next_line(&rest);
    check(line && strcmp(line, "layer\thead\tself\tprevious\tfirst\telsewhere\tentropy\tloss\t"
                               "loss_without") == 0,
          "%s, %zu documents: the header row: %s", name, n_docs, line ? line : "none");
    for (size_t h = 0; h < f->n_layer * f->n_head; h++) {
        size_t li = h / f->n_head, head = h % f->n_head, at = 0;
        const double *v = o.looks[li][head], without = loss_without(f, li, head, docs, n_docs);
        const double expected[] = {v[0], v[1], v[2], v[3], v[4], o.loss, without};
        char begin[64], field[64], *fields = next_line(&rest);
        snprintf(begin, sizeof begin, "%zu\t%zu\t", li, head);
        if (!fields || strncmp(fields, begin, strlen(begin)) != 0) {
            check(false, "%s: expected a row %s, saw %s", name, begin, fields ? fields : "none");
            break;
        }
        for (fields += strlen(begin); at < 7 && sscanf(fields, "%63[^\t]", field) == 1; at++) {
            snprintf(what, sizeof what, "%s, layer %zu head %zu: %s", name, li, head, columns[at]);
            check_near(what, expected[at], number_after("", field), NEAR);
            fields += strlen(field) + (fields[strlen(field)] == '\t');
        }
        check(at == 7 && !*fields && without != o.loss,
              "%s, layer %zu head %zu: seven figures, and silencing it changes the loss", name, li,
              head);
    }
    check(!next_line(&rest), "%s: no row after the last", name);
    free(text);
}

// The standard error of sum(x) / sum(t), for documents that are a sample of many.
static double error_of_ratio(const double *x, const double *t, size_t n)
{
    double sum = 0, tokens = 0, variance = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        tokens += t[i];
    }
    for (size_t i = 0; i < n; i++) variance += pow(x[i] - t[i] * sum / tokens, 2) / ((double)n - 1);
    return sqrt(variance / (double)n) / (tokens / (double)n);
}

// The standard errors in the table for people, to the digits it has.
static void check_errors(const char *name, const char *path, const PlainModel *f, const char *docs)
{
    static Overview all, without;
    double seen = NAN;
    char options[256], what[256];
    look_over(f, docs, MOST_DOCS, &all);
    snprintf(options, sizeof options, "--docs %d --data %s", MOST_DOCS, docs);
    char *text = heads_of(path, options), *line = strstr(text, "standard error ");
    if (line) sscanf(line, "standard error %lf", &seen);
    snprintf(what, sizeof what, "%s: the standard error of the loss", name);
    check_near(what, error_of_ratio(all.losses, all.n_tokens, all.n_docs), seen, 0.5001e-4);
    char *rest = text;
    next_line(&rest);
    for (size_t h = 0; h < f->n_layer * f->n_head; h++) {
        size_t li = h / f->n_head, head_dim = f->n_embd / f->n_head;
        double figure = NAN;
        line = next_line(&rest);
        if (line) sscanf(line, "%*u %*u %*f%% %*f%% %*f%% %*f%% %*f %*f %*f %lf", &figure);
        PlainModel silenced = open_model(path);
        for (size_t i = 0; i < f->n_embd * f->n_embd; i++) {
            bool of_head = i % f->n_embd / head_dim == h % f->n_head;
            silenced.wo[li].data[i] *= of_head ? 0 : 1;
        }
        look_over(&silenced, docs, MOST_DOCS, &without);
        close_model(&silenced);
        for (size_t i = 0; i < all.n_docs; i++) without.losses[i] -= all.losses[i];
        snprintf(what, sizeof what, "%s: the standard error of what head %zu changes", name, h);
        check_near(what, error_of_ratio(without.losses, all.n_tokens, all.n_docs), figure,
                   0.5001e-4);
    }
    free(text);
}

// A query whose product with its own key overflows: each view ends with status 1 and a line that says what is not finite.
static void check_not_finite(void)
{
    static const char *const cases[][2] = {
        {"maria", "the attention is not finite"},
        {"maria --tsv", "the attention is not finite"},
        {"maria --votes", "the votes do not add up to the logits: not finite, or gpt() adds more"},
        {"", "the loss is not finite"},
    };
    free(output_of("-q --samples 0 --save " FOLDER "/made"));
    PlainModel f = open_model(FOLDER "/made");
    const Tensor large[] = {f.wq[0], f.wk[0]};
    for (size_t i = 0; i < 2; i++) {
        memset(f.bytes + large[i].at, 0x7f, 8 * large[i].rows * large[i].cols);
    }
    write_file(FOLDER "/made", f.bytes, f.n_bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[256], expected[256];
        int status;
        snprintf(arguments, sizeof arguments, "heads " FOLDER "/made %s 2>&1", cases[i][0]);
        snprintf(expected, sizeof expected, "microgpt: " FOLDER "/made: %s\n", cases[i][1]);
        char *text = run_program(arguments, &status);
        check(strcmp(text, expected) == 0 && status == 1, "%s: %s", arguments, text);
        free(text);
    }
    close_model(&f);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The votes: each of them, and their sums.
 */

// u . w[:, col], with u the row of lm_head for a character, less the mean row.
static double read_through(const PlainModel *f, const Tensor *w, size_t col, size_t id)
{
    size_t V = f->n_vocab + 1, E = f->n_embd;
    double sum = 0;
    for (size_t j = 0; j < E; j++) {
        double u = f->lm_head.data[id * E + j];
        for (size_t k = 0; k < V; k++) u -= f->lm_head.data[k * E + j] / (double)V;
        sum += u * (w ? w->data[j * w->cols + col] : emb_norms[col][j]);
    }
    return sum;
}

// The rows of --votes --tsv as they are read: how far each is from what it should be, and what they add up to.
typedef struct {
    char *rest;
    double sum, apart;
    size_t n;
} Votes;

static void take_vote(Votes *v, const char *begin, double expected)
{
    double vote = number_after(begin, next_line(&v->rest));
    v->sum += vote;
    v->apart = fmax(v->apart, distance(expected, vote));
    v->n++;
}

// All votes for one character at one position.
static void take_votes(Votes *v, const PlainModel *f, size_t position, size_t id)
{
    size_t head_dim = f->n_embd / f->n_head;
    char begin[100];
    snprintf(begin, sizeof begin, "%zu\t%zu\tself\t\t\t\t", position, id);
    v->sum = 0;
    take_vote(v, begin, read_through(f, NULL, position, id));
    for (size_t li = 0; li < f->n_layer; li++) {
        double through[MOST];
        for (size_t c = 0; c < f->n_embd; c++) through[c] = read_through(f, &f->wo[li], c, id);
        for (size_t k = 0; k < f->n_head * (position + 1); k++) {
            size_t h = k / (position + 1), t = k % (position + 1);
            double vote = 0;
            for (size_t c = h * head_dim; c < (h + 1) * head_dim; c++) {
                vote += weights[li][h][position][t] * through[c] * value_rows[li][t][c];
            }
            snprintf(begin, sizeof begin, "%zu\t%zu\thead\t%zu\t%zu\t%zu\t", position, id, li, h,
                     t);
            take_vote(v, begin, vote);
        }
        for (size_t k = 0; k < 4 * f->n_embd; k++) {
            double act = acts[li][position][k];
            snprintf(begin, sizeof begin, "%zu\t%zu\tunit\t%zu\t%zu\t\t", position, id, li, k);
            take_vote(v, begin, act > 0 ? act * read_through(f, &f->fc2[li], k, id) : 0);
        }
    }
}

// The five likeliest characters, likeliest first, and the true one if it is another. Returns how many.
static size_t voted_for(const PlainModel *f, size_t position, size_t target, size_t ids[6])
{
    size_t n = 0;
    bool taken[MOST_TOKENS] = {false};
    for (; n < 5 && n <= f->n_vocab; n++) {
        size_t best = SIZE_MAX;
        for (size_t k = 0; k <= f->n_vocab; k++) {
            if (taken[k]) continue;
            if (best == SIZE_MAX || logits[position][k] > logits[position][best]) best = k;
        }
        taken[best] = true;
        ids[n] = best;
    }
    if (!taken[target]) ids[n++] = target;
    return n;
}

// All votes in a word, and their sums, each the logit less the mean. Returns how far they are apart, and counts them.
static double votes_apart(const char *path, const PlainModel *f, const char *word, size_t *n_votes)
{
    char options[256];
    uint32_t tokens[MOST + 1];
    snprintf(options, sizeof options, "'%s' --votes --tsv", word);
    char *text = heads_of(path, options);
    Votes v = {.rest = text};
    char *line = next_line(&v.rest);
    bool ok = line && strcmp(line, "position\tid\tkind\tlayer\tindex\tlooks_at\tvote") == 0;
    size_t n = tokens_of(f, word, tokens), ids[6];
    plain_loss(f, tokens, n);
    for (size_t p = 0; p < n; p++) {
        double mean = 0;
        for (size_t k = 0; k <= f->n_vocab; k++) mean += logits[p][k] / (double)(f->n_vocab + 1);
        size_t n_ids = voted_for(f, p, tokens[p + 1], ids);
        for (size_t i = 0; i < n_ids; i++) {
            take_votes(&v, f, p, ids[i]);
            v.apart = fmax(v.apart, distance(logits[p][ids[i]] - mean, v.sum));
        }
    }
    ok = ok && !next_line(&v.rest);
    free(text);
    *n_votes += v.n;
    return ok ? v.apart : INFINITY;
}

// A thousand names, in models of 1 to 4 layers, by both recipes.
static void check_many_votes(void)
{
    size_t n_bytes;
    const char *path = FOLDER "/voters";
    for (size_t i = 0; i < 8; i++) {
        char arguments[256], *line;
        const char *recipe = i % 2 ? "lesson" : "microgpt";
        snprintf(arguments, sizeof arguments,
                 "-q --samples 0 --steps 300 --n-layer %zu --recipe %s --block-size 16 --save %s",
                 i / 2 + 1, recipe, path);
        free(output_of(arguments));
        PlainModel f = open_model(path);
        char *list = read_file("data/names.txt", &n_bytes), *rest = list;
        size_t n_names = 0, n_votes = 0;
        double apart = 0;
        for (size_t d = 0; (line = next_line(&rest)); d++) {
            if (d % 32 != 7 || strlen(line) > 15) continue;
            apart = fmax(apart, votes_apart(path, &f, line, &n_votes));
            n_names++;
        }
        check(apart <= NEAR && n_names >= 1000,
              "%zu layers, %s: %zu votes in %zu names, and their sums: at most %.3g apart",
              i / 2 + 1, recipe, n_votes, n_names, apart);
        free(list);
        close_model(&f);
    }
}

int main(void)
{
    if (system("rm -rf " FOLDER " && mkdir -p " FOLDER) != 0 ||
        system("awk 'NR % 500 == 7' data/names.txt >" FOLDER "/names") != 0) {
        check(false, "a folder for files: expected to make it, saw a failure");
        return finish();
    }
    static const char unicode[] =
        "zo\303\253\njos\303\251\n\345\261\261\347\224\260\nz\342\202\254\360\237\230\200\n"
        "jose\314\201\nana maria\nabcdefghijklmnopqrstuvwxyz\n";
    write_file(FOLDER "/unicode", unicode, strlen(unicode));
    static const struct {
        const char *options, *words[3];
    } models[] = {
        {"--steps 1000", {"maria", "abdulrahmanabdu", ""}},
        {"--n-layer 2 --n-embd 12 --n-head 3 --block-size 8", {"abdulla", "anna", "x"}},
        {"--n-layer 3 --steps 3000 --lr 0.02", {"alexandra", "kaia", "q"}},
        {"--n-head 1 --activation relu2", {"jessica", "oo", ""}},
        {"--n-head 16", {"benjamin", "aaaaaaaaaaaaaaa", "x"}},
        {"--recipe lesson", {"sophia", "ava", "n"}},
        {"--recipe lesson --n-layer 4", {"abigail", "mia", ""}},
        {"--steps 200 --block-size 10 --data " FOLDER "/unicode",
         {"zo\303\253", "z\342\202\254\360\237\230\200", "ana maria"}},
    };
    enum { N_MODELS = sizeof models / sizeof models[0] };
    for (size_t i = 0; i < N_MODELS; i++) {
        char arguments[512];
        const char *path = FOLDER "/model", *name = models[i].options;
        bool of_names = i + 1 < N_MODELS;
        snprintf(arguments, sizeof arguments, "-q --samples 0 --save %s %s", path, name);
        free(output_of(arguments));
        PlainModel f = open_model(path);
        for (size_t w = 0; w < 3; w++) {
            size_t n_votes = 0;
            check_word(name, path, &f, models[i].words[w]);
            double apart = votes_apart(path, &f, models[i].words[w], &n_votes);
            check(apart <= NEAR, "%s, '%s': %zu votes: at most %.3g apart", name,
                  models[i].words[w], n_votes, apart);
        }
        check_table(name, path, &f, of_names ? FOLDER "/names" : FOLDER "/unicode",
                    of_names ? MOST_DOCS : 5);
        if (of_names) check_errors(name, path, &f, FOLDER "/names");
        close_model(&f);
    }
    check_not_finite();
    if (all_of_it()) check_many_votes();
    return finish();
}
