/* What the heads see, computed a second time: from the numbers in model files, by the plain model and with nothing of the
 * program's own code. The program is run as a user runs it, with --tsv, and its figures are compared.
 */
#define _XOPEN_SOURCE 700
#include "plain_model.h"

#include <sys/wait.h>

#define FOLDER "tests/build/heads"

static const double NEAR = 1e-12;

// Runs ./microgpt with these arguments. Returns what it prints, in memory of the caller's.
static char *run_program(const char *arguments, int *status)
{
    char command[1024];
    const char *wrapper = getenv("MICROGPT_WRAPPER");
    snprintf(command, sizeof command, "%s ./microgpt %s", wrapper ? wrapper : "", arguments);
    fflush(stdout);
    FILE *pipe = popen(command, "r");
    size_t n;
    char *text = read_stream(pipe, &n);
    *status = pipe ? pclose(pipe) : -1;
    return text;
}

// The same, if it ends as it should.
static char *output_of(const char *arguments)
{
    int status;
    char *text = run_program(arguments, &status);
    if (status != 0) {
        check(false, "%s: expected status 0, saw %d", arguments, status);
    }
    return text;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The checks.
 */

// The maps of one word: every entry, in order, and no other.
static void check_word(const char *name, const char *path, const PlainModel *f, const char *word)
{
    char arguments[512], what[256], *line;
    snprintf(arguments, sizeof arguments, "heads %s '%s' --tsv", path, word);
    snprintf(what, sizeof what, "%s, '%s'", name, word);
    char *text = output_of(arguments), *rest = text;
    uint32_t tokens[MOST + 1];
    size_t n = tokens_of(f, word, tokens), entries = 0, misplaced = 0, n_off = 0, n_bad = 0,
           n_spelt = 0;
    plain_loss(f, tokens, n);
    double farthest = 0, farthest_sum = 0;

    line = strtok_r(rest, "\n", &rest);
    check(line && strcmp(line, "layer\thead\tquery\tkey\tweight") == 0, "%s: the header row%s%s",
          what, line ? ": " : ": none", line ? line : "");
    for (size_t li = 0; li < f->n_layer; li++) {
        for (size_t h = 0; h < f->n_head; h++) {
            for (size_t query = 0; query < n; query++) {
                double sum = 0;
                for (size_t key = 0; key <= query; key++) {
                    size_t at[4] = {0};
                    double weight = -1;
                    char behind = 0, again[160];
                    line = strtok_r(rest, "\n", &rest);
                    int found = line ? sscanf(line, "%zu\t%zu\t%zu\t%zu\t%lf%c", &at[0], &at[1],
                                              &at[2], &at[3], &weight, &behind)
                                     : 0;
                    snprintf(again, sizeof again, "%zu\t%zu\t%zu\t%zu\t%.17g", li, h, query, key,
                             weight);
                    misplaced +=
                        found != 5 || at[0] != li || at[1] != h || at[2] != query || at[3] != key;
                    n_spelt += !line || strcmp(line, again) != 0;
                    n_bad += !(weight >= 0 && weight <= 1);
                    n_off += !(fabs(weight - weights[li][h][query][key]) <= NEAR);
                    farthest = fmax(farthest, fabs(weight - weights[li][h][query][key]));
                    sum += weight;
                    entries++;
                }
                farthest_sum = fmax(farthest_sum, fabs(sum - 1));
            }
        }
    }
    line = strtok_r(rest, "\n", &rest);
    check(!misplaced && !line,
          "%s: %zu entries, in order, no key after its query: %zu misplaced, then %s", what,
          entries, misplaced, line ? line : "nothing");
    check(!n_spelt, "%s: tabs and %%.17g: %zu entries otherwise", what, n_spelt);
    check(!n_bad, "%s: shares from 0 to 1: %zu outside", what, n_bad);
    check(!n_off, "%s: the weights of plain loops: %zu of %zu apart, at most by %.3g", what, n_off,
          entries, farthest);
    check(farthest_sum <= NEAR, "%s: every row sums to 1: at most %.3g apart", what, farthest_sum);
    free(text);
}

static double loss_by_eval(const char *path, const char *docs, size_t n_docs)
{
    char arguments[512];
    double loss = NAN;
    snprintf(arguments, sizeof arguments, "eval %s --data %s --docs %zu", path, docs, n_docs);
    char *text = output_of(arguments), *line = strstr(text, "\nloss ");
    if (!line || sscanf(line, "\nloss %lf", &loss) != 1) {
        check(false, "%s: expected a loss, saw %.60s", arguments, text);
    }
    free(text);
    return loss;
}

// The table of all heads, over the first documents of a file.
static void check_table(const char *name, const char *path, const PlainModel *f, const char *docs,
                        size_t n_docs)
{
    char arguments[512], what[256], *line;
    size_t n_bytes, n_tokens = 0;
    static double views[4][MOST][5];  // self, previous, first, elsewhere, entropy
    memset(views, 0, sizeof views);
    char *list = read_file(docs, &n_bytes), *rest = list;
    double loss = 0;
    for (size_t d = 0; d < n_docs && (line = strtok_r(rest, "\n", &rest)); d++) {
        uint32_t tokens[MOST + 1];
        size_t n = tokens_of(f, line, tokens);
        loss += plain_loss(f, tokens, n);
        n_tokens += n;
        for (size_t li = 0; li < f->n_layer; li++) {
            for (size_t h = 0; h < f->n_head; h++) {
                for (size_t query = 0; query < n; query++) {
                    const double *w = weights[li][h][query];
                    double named = w[query];
                    views[li][h][0] += w[query];
                    if (query >= 1) {
                        views[li][h][1] += w[query - 1];
                        named += w[query - 1];
                    }
                    if (query >= 2) {
                        views[li][h][2] += w[0];
                        named += w[0];
                    }
                    views[li][h][3] += 1 - named;
                    for (size_t key = 0; key <= query; key++) {
                        views[li][h][4] -= w[key] * log(w[key]) / log(2);
                    }
                }
            }
        }
    }
    free(list);
    loss /= (double)n_tokens;

    snprintf(arguments, sizeof arguments, "heads %s --tsv --docs %zu --data %s", path, n_docs,
             docs);
    char *text = output_of(arguments);
    rest = text;
    line = strtok_r(rest, "\n", &rest);
    check(
        line &&
            strcmp(line,
                   "layer\thead\tself\tprevious\tfirst\telsewhere\tentropy\tloss\tloss_without") ==
                0,
        "%s, %zu documents: the header row: %s", name, n_docs, line ? line : "none");
    double eval = loss_by_eval(path, docs, n_docs), expected[7], seen[7];
    snprintf(what, sizeof what, "%s, %zu documents: the loss that eval gives", name, n_docs);
    check_near(what, loss, eval, NEAR);
    for (size_t li = 0; li < f->n_layer; li++) {
        for (size_t h = 0; h < f->n_head; h++) {
            size_t at[2] = {SIZE_MAX, SIZE_MAX};
            char behind = 0, again[512];
            line = strtok_r(rest, "\n", &rest);
            int found = line ? sscanf(line, "%zu\t%zu\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf%c", &at[0],
                                      &at[1], &seen[0], &seen[1], &seen[2], &seen[3], &seen[4],
                                      &seen[5], &seen[6], &behind)
                             : 0;
            if (found != 9 || at[0] != li || at[1] != h) {
                check(false, "%s: expected the row of layer %zu head %zu, saw %s", name, li, h,
                      line ? line : "none");
                free(text);
                return;
            }
            snprintf(again, sizeof again,
                     "%zu\t%zu\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g", li, h, seen[0],
                     seen[1], seen[2], seen[3], seen[4], seen[5], seen[6]);
            check(strcmp(line, again) == 0, "%s, layer %zu head %zu: tabs and %%.17g: %s", name, li,
                  h, line);

            // The same model with this head's columns of attn_wo set to zero, in a file.
            size_t head_dim = f->n_embd / f->n_head;
            char *bytes = room_for(f->n_bytes);
            memcpy(bytes, f->bytes, f->n_bytes);
            for (size_t row = 0; row < f->n_embd; row++) {
                memset(bytes + f->wo[li].at + 8 * (row * f->n_embd + h * head_dim), 0,
                       8 * head_dim);
            }
            write_file(FOLDER "/silenced", bytes, f->n_bytes);
            free(bytes);
            for (size_t i = 0; i < 5; i++) {
                expected[i] = views[li][h][i] / (double)n_tokens;
            }
            expected[5] = eval;
            expected[6] = loss_by_eval(FOLDER "/silenced", docs, n_docs);
            static const char *const columns[] = {"self",    "previous", "first",       "elsewhere",
                                                  "entropy", "loss",     "loss_without"};
            for (size_t i = 0; i < 7; i++) {
                snprintf(what, sizeof what, "%s, layer %zu head %zu: %s", name, li, h, columns[i]);
                check_near(what, expected[i], seen[i], NEAR);
            }
            snprintf(what, sizeof what, "%s, layer %zu head %zu: the shares sum to 1", name, li, h);
            check_near(what, 1, seen[0] + seen[1] + seen[2] + seen[3], NEAR);
            check(expected[6] != eval, "%s, layer %zu head %zu: silencing it changes the loss",
                  name, li, h);
        }
    }
    line = strtok_r(rest, "\n", &rest);
    check(!line, "%s: no row after the last: %s", name, line ? line : "none");
    free(text);
}

// Each document's summed loss, and how many tokens it has.
static size_t plain_losses(const PlainModel *f, const char *docs, size_t n_docs, double *losses,
                           double *n_tokens)
{
    size_t n_bytes, d = 0;
    char *list = read_file(docs, &n_bytes), *rest = list, *line;
    for (; d < n_docs && (line = strtok_r(rest, "\n", &rest)); d++) {
        uint32_t tokens[MOST + 1];
        size_t n = tokens_of(f, line, tokens);
        losses[d] = plain_loss(f, tokens, n);
        n_tokens[d] = (double)n;
    }
    free(list);
    return d;
}

// The standard error of sum(x) / sum(t), for documents that are a sample of many.
static double error_of_ratio(const double *x, const double *t, size_t n)
{
    double sum = 0, tokens = 0, variance = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        tokens += t[i];
    }
    for (size_t i = 0; i < n; i++) {
        variance += pow(x[i] - t[i] * sum / tokens, 2) / ((double)n - 1);
    }
    return sqrt(variance / (double)n) / (tokens / (double)n);
}

// The standard errors in the table for people, to the digits it has.
static void check_errors(const char *name, const char *path, const PlainModel *f, const char *docs)
{
    enum { DOCS = 50 };
    double losses[DOCS], without[DOCS], n_tokens[DOCS], seen = NAN;
    char arguments[512], what[256];
    size_t n = plain_losses(f, docs, DOCS, losses, n_tokens);
    snprintf(arguments, sizeof arguments, "heads %s --docs %d --data %s", path, DOCS, docs);
    char *text = output_of(arguments), *line = strstr(text, "standard error ");
    if (line) {
        sscanf(line, "standard error %lf", &seen);
    }
    snprintf(what, sizeof what, "%s: the standard error of the loss", name);
    check_near(what, error_of_ratio(losses, n_tokens, n), seen, 0.5001e-4);
    char *rest = text;
    strtok_r(rest, "\n", &rest);
    for (size_t h = 0; h < f->n_layer * f->n_head; h++) {
        size_t li = h / f->n_head, head_dim = f->n_embd / f->n_head;
        double figure[4] = {NAN, NAN, NAN, NAN};
        line = strtok_r(rest, "\n", &rest);
        if (line) {
            sscanf(line, "%*u %*u %*f%% %*f%% %*f%% %*f%% %*f %lf %lf %lf", &figure[0], &figure[1],
                   &figure[2]);
        }
        PlainModel silenced = open_model(path);
        for (size_t i = 0; i < f->n_embd * f->n_embd; i++) {
            bool of_head = i % f->n_embd / head_dim == h % f->n_head;
            silenced.wo[li].data[i] *= of_head ? 0 : 1;
        }
        plain_losses(&silenced, docs, DOCS, without, n_tokens);
        close_model(&silenced);
        for (size_t i = 0; i < n; i++) {
            without[i] -= losses[i];
        }
        snprintf(what, sizeof what, "%s: the standard error of what head %zu changes", name, h);
        check_near(what, error_of_ratio(without, n_tokens, n), figure[2], 0.5001e-4);
    }
    free(text);
}

/* ------------------------------------------------------------------------------------------------------------------
 * What is said in words: exactly what the figures carry. Models are made for it.
 */

// The words that go with the table, from its figures.
static void expected_words(char *figures, char *words, size_t room)
{
    char *rest = figures, *line = strtok_r(rest, "\n", &rest);
    size_t n = 0;
    words[0] = '\0';
    while ((line = strtok_r(rest, "\n", &rest))) {
        unsigned layer, head;
        double self, previous, first, elsewhere, entropy, loss, without;
        if (sscanf(line, "%u %u %lf %lf %lf %lf %lf %lf %lf", &layer, &head, &self, &previous,
                   &first, &elsewhere, &entropy, &loss, &without) != 9) {
            continue;
        }
        const struct {
            bool said;
            const char *format;
            double figure;
        } all[] = {
            {previous > 0.5, "looks back one character more than half of the time: %.1f%%.\n",
             100 * previous},
            {self > 0.5, "looks at its own position more than half of the time: %.1f%%.\n",
             100 * self},
            {first > 0.5, "looks at the first position more than half of the time: %.1f%%.\n",
             100 * first},
            {fabs(without - loss) < 0.005,
             "hardly matters: without it the loss changes by %+.4f.\n", without - loss},
            {without - loss <= -0.005, "is in the way: without it the loss is lower, by %.4f.\n",
             loss - without},
        };
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            if (all[i].said) {
                n += (size_t)snprintf(words + n, room - n, "%s- Layer %u head %u ",
                                      n ? "" : "\nWhat stands out:\n", layer, head);
                n += (size_t)snprintf(words + n, room - n, all[i].format, all[i].figure);
            }
        }
    }
}

static const char anything[] = "";

// must_say: a part of the words, or `anything`, or NULL for no word at all.
static void check_words(const char *name, const char *path, const char *must_say)
{
    char arguments[512], expected[8192];
    snprintf(arguments, sizeof arguments, "heads %s --docs 50 --tsv", path);
    char *figures = output_of(arguments);
    expected_words(figures, expected, sizeof expected);
    snprintf(arguments, sizeof arguments, "heads %s --docs 50", path);
    char *text = output_of(arguments), *words = strstr(text, "The loss with all heads: ");
    for (int i = 0; i < 2 && words; i++) {  // that line, and which documents
        words = strchr(words, '\n');
        words = words ? words + 1 : NULL;
    }
    words = words ? words : text;
    bool same = strcmp(words, expected) == 0;
    check(same, "%s: the words are those that the figures carry%s%s%s%s", name,
          same ? "" : ": expected ", same ? "" : expected, same ? "" : ", saw ", same ? "" : words);
    if (must_say != anything) {
        check(must_say ? strstr(words, must_say) != NULL : !*words, "%s: it says '%s': %s", name,
              must_say ? must_say : "nothing",
              must_say && strstr(words, must_say) ? must_say : words);
    }
    free(figures);
    free(text);
}

static void put(PlainModel *f, Tensor t, size_t row, size_t col, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    for (size_t i = 0; i < 8; i++) {
        f->bytes[t.at + 8 * (row * t.cols + col) + i] = (char)(bits >> 8 * i & 0xff);
    }
}

static void fill(PlainModel *f, Tensor t, double x)
{
    for (size_t i = 0; i < t.rows * t.cols; i++) {
        put(f, t, i / t.cols, i % t.cols, x);
    }
}

static void scale(PlainModel *f, Tensor t, double by)
{
    for (size_t i = 0; i < t.rows * t.cols; i++) {
        put(f, t, i / t.cols, i % t.cols, by * t.data[i]);
    }
}

// ./microgpt with these arguments, the last of which joins its two outputs, ends with status 1 and this line.
static void check_error(const char *arguments, const char *expected)
{
    int status;
    char *text = run_program(arguments, &status);
    check(strcmp(text, expected) == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1, "%s: %s",
          arguments, text);
    free(text);
}

// Heads that do one thing: a position is a vector of zeros and a 1, and the query of each asks for one of them.
static void check_made_models(void)
{
    const char *path = FOLDER "/made";
    free(output_of("train -q --samples 0 --n-head 1 --save " FOLDER "/one"));
    free(output_of("train -q --samples 0 --save " FOLDER "/four"));
    static const struct {
        const char *name, *must_say;
    } looks[] = {
        {"a head that looks back one",
         "head 0 looks back one character more than half of the time: "},
        {"a head that looks at itself",
         "head 0 looks at its own position more than half of the time: 100.0%."},
        {"a head that looks at the start",
         "head 0 looks at the first position more than half of the time: "},
    };
    static const double strengths[] = {16, 0.8, 0.6, 0.45, 0.35, 0.25};
    for (size_t i_made = 0; i_made < 18; i_made++) {
        size_t kind = i_made / 6;
        double strength = strengths[i_made % 6];
        PlainModel f = open_model(FOLDER "/one");
        fill(&f, f.wte, 0);
        fill(&f, f.wpe, 0);
        fill(&f, f.wq[0], 0);
        fill(&f, f.wk[0], 0);
        for (size_t i = 0; i < f.n_embd; i++) {
            put(&f, f.wpe, i, i, 1);
            put(&f, f.wk[0], i, i, 1);
            if (kind != 0 || i > 0) {
                put(&f, f.wq[0], kind == 0 ? i - 1 : kind == 1 ? i : 0, i, strength);
            }
        }
        write_file(path, f.bytes, f.n_bytes);
        check_words(looks[kind].name, path, strength > 2 ? looks[kind].must_say : anything);
        close_model(&f);
    }
    PlainModel f = open_model(FOLDER "/four");
    fill(&f, f.wo[0], 0);
    write_file(path, f.bytes, f.n_bytes);
    check_words("attn_wo of zeros", path,
                "Layer 0 head 3 hardly matters: without it the loss changes by +0.0000.");
    fill(&f, f.wq[0], 0);
    write_file(path, f.bytes, f.n_bytes);
    check_words("queries of zeros", path, "hardly matters");
    scale(&f, f.wo[0], -20);
    scale(&f, f.wq[0], 1);
    write_file(path, f.bytes, f.n_bytes);
    check_words("heads that say the opposite", path,
                "is in the way: without it the loss is lower, by ");
    close_model(&f);

    // Nothing stands out: a head that looks everywhere alike, and knows that an a and the end come often.
    f = open_model(FOLDER "/one");
    Tensor zeros[] = {f.wte, f.wpe, f.lm_head, f.wq[0], f.wv[0], f.wo[0], f.fc2[0]};
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        fill(&f, zeros[i], 0);
    }
    for (size_t token = 0; token < f.wte.rows; token++) {
        put(&f, f.wte, token, 0, 1);
    }
    put(&f, f.wv[0], 0, 0, 1);
    put(&f, f.wo[0], 1, 0, 1);
    put(&f, f.lm_head, 0, 1, 0.4);
    put(&f, f.lm_head, f.n_vocab, 1, 0.4);
    write_file(path, f.bytes, f.n_bytes);
    check_words("a head of use, without a favourite", path, NULL);

    // A character and BOS are all but certain with a head, and all but impossible without it.
    for (size_t i = 0; i < 2; i++) {
        put(&f, f.lm_head, i * f.n_vocab, 0, -1000);
        put(&f, f.lm_head, i * f.n_vocab, 1, 10000);
    }
    write_file(path, f.bytes, f.n_bytes);
    write_file(FOLDER "/a", "a\n", 2);
    check_error("heads " FOLDER "/made --data " FOLDER "/a 2>&1",
                "microgpt: " FOLDER "/made: the loss without layer 0 head 0 is not finite\n");

    // Numbers so large that a query is infinite.
    fill(&f, f.wq[0], 1e308);
    write_file(path, f.bytes, f.n_bytes);
    check_error("heads " FOLDER "/made maria 2>&1",
                "microgpt: " FOLDER "/made: the attention is not finite\n");
    check_error("heads " FOLDER "/made maria --tsv 2>&1",
                "microgpt: " FOLDER "/made: the attention is not finite\n");
    check_error("heads " FOLDER "/made maria --votes 2>&1",
                "microgpt: " FOLDER
                "/made: the votes do not add up to the logits: not finite, or gpt() adds more\n");
    check_error("heads " FOLDER "/made 2>&1",
                "microgpt: " FOLDER "/made: the loss is not finite\n");
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
        for (size_t k = 0; k < V; k++) {
            u -= f->lm_head.data[k * E + j] / (double)V;
        }
        sum += u * (w ? w->data[j * w->cols + col] : emb_norms[col][j]);
    }
    return sum;
}

// The votes for one character at one position, in the order of the program.
static size_t plain_votes(const PlainModel *f, size_t position, size_t id, char (*names)[64],
                          double *votes)
{
    size_t n = 0, head_dim = f->n_embd / f->n_head;
    sprintf(names[n], "%zu\t%zu\tself\t\t\t\t", position, id);
    votes[n++] = read_through(f, NULL, position, id);
    for (size_t li = 0; li < f->n_layer; li++) {
        double through[MOST];
        for (size_t c = 0; c < f->n_embd; c++) {
            through[c] = read_through(f, &f->wo[li], c, id);
        }
        for (size_t k = 0; k < f->n_head * (position + 1); k++) {
            size_t h = k / (position + 1), t = k % (position + 1);
            sprintf(names[n], "%zu\t%zu\thead\t%zu\t%zu\t%zu\t", position, id, li, h, t);
            votes[n] = 0;
            for (size_t c = h * head_dim; c < (h + 1) * head_dim; c++) {
                votes[n] += weights[li][h][position][t] * through[c] * value_rows[li][t][c];
            }
            n++;
        }
        for (size_t k = 0; k < 4 * f->n_embd; k++) {
            double act = acts[li][position][k];
            sprintf(names[n], "%zu\t%zu\tunit\t%zu\t%zu\t\t", position, id, li, k);
            votes[n++] = act > 0 ? act * read_through(f, &f->fc2[li], k, id) : 0;
        }
    }
    return n;
}

// The five likeliest characters, likeliest first, and the true one if it is another. Returns how many.
static size_t voted_for(const PlainModel *f, size_t position, size_t target, size_t ids[6])
{
    size_t n = 0;
    bool target_in = false;
    for (; n < 5 && n <= f->n_vocab; n++) {
        size_t best = SIZE_MAX;
        for (size_t k = 0; k <= f->n_vocab; k++) {
            bool taken = false;
            for (size_t i = 0; i < n; i++) {
                taken = taken || ids[i] == k;
            }
            if (!taken && (best == SIZE_MAX || logits[position][k] > logits[position][best])) {
                best = k;
            }
        }
        ids[n] = best;
        target_in = target_in || best == target;
    }
    if (!target_in) {
        ids[n++] = target;
    }
    return n;
}

// Differences, the largest of some words.
typedef struct {
    double vote, sum;
    size_t n_rows, n_sums;
} Apart;

// All votes in a word. False: a row is not where it should be, or not there; that is reported.
static bool compare_votes(const char *name, const char *path, const PlainModel *f, const char *word,
                          Apart *apart)
{
    static char row_names[1 + MOST_LAYERS * (MOST * MOST + 4 * MOST)][64];
    static double votes[1 + MOST_LAYERS * (MOST * MOST + 4 * MOST)];
    char arguments[512];
    uint32_t tokens[MOST + 1];
    snprintf(arguments, sizeof arguments, "heads %s '%s' --votes --tsv", path, word);
    char *text = output_of(arguments), *rest = text, *line = strtok_r(rest, "\n", &rest);
    bool ok = line && strcmp(line, "position\tid\tkind\tlayer\tindex\tlooks_at\tvote") == 0;
    size_t n = tokens_of(f, word, tokens), ids[6];
    plain_loss(f, tokens, n);
    for (size_t p = 0; ok && p < n; p++) {
        double mean = 0;
        for (size_t k = 0; k <= f->n_vocab; k++) {
            mean += logits[p][k] / (double)(f->n_vocab + 1);
        }
        size_t n_ids = voted_for(f, p, tokens[p + 1], ids);
        for (size_t i = 0; ok && i < n_ids; i++) {
            size_t n_votes = plain_votes(f, p, ids[i], row_names, votes);
            double sum = 0;
            for (size_t k = 0; ok && k < n_votes; k++) {
                char again[160] = "";
                size_t length = strlen(row_names[k]);
                line = strtok_r(rest, "\n", &rest);
                ok = line && strncmp(line, row_names[k], length) == 0;
                double vote = ok ? strtod(line + length, NULL) : NAN;
                snprintf(again, sizeof again, "%s%.17g", row_names[k], vote);
                ok = ok && strcmp(line, again) == 0;
                sum += vote;
                apart->vote = fmax(apart->vote, distance(votes[k], vote));
                apart->n_rows++;
            }
            apart->sum = fmax(apart->sum, distance(logits[p][ids[i]] - mean, sum));
            apart->n_sums++;
        }
    }
    if (ok) {
        line = strtok_r(rest, "\n", &rest);
    }
    if (!ok || line) {
        check(false, "%s, '%s': the rows of the votes, in order: saw %s", name, word,
              line ? line : "none");
    }
    free(text);
    return ok && !line;
}

// Names of the list, with 1 to 4 layers and both recipes; with ALL=1, a thousand each.
static void check_votes(void)
{
    size_t n_bytes;
    const char *path = FOLDER "/voters";
    for (size_t i = 0; i < 8; i++) {
        char arguments[256], what[64], *line;
        snprintf(what, sizeof what, "votes, %zu layers, %s", i / 2 + 1,
                 i % 2 ? "lesson" : "microgpt");
        snprintf(
            arguments, sizeof arguments,
            "train -q --samples 0 --steps 300 --n-layer %zu --recipe %s --block-size 16 --save %s",
            i / 2 + 1, i % 2 ? "lesson" : "microgpt", path);
        free(output_of(arguments));
        PlainModel f = open_model(path);
        char *list = read_file("data/names.txt", &n_bytes), *rest = list;
        size_t n_names = 0, every = all_of_it() ? 32 : 1600;
        Apart apart = {0};
        for (size_t d = 0; (line = strtok_r(rest, "\n", &rest)); d++) {
            if (d % every != 7 || strlen(line) > 15) continue;
            if (!compare_votes(what, path, &f, line, &apart)) break;
            n_names++;
        }
        check(n_names >= 32000 / every, "%s: %zu names, %zu votes", what, n_names, apart.n_rows);
        check(apart.vote <= NEAR, "%s: the votes of plain loops: at most %.3g apart", what,
              apart.vote);
        check(apart.sum <= NEAR, "%s: %zu sums, each the logit less the mean: at most %.3g apart",
              what, apart.n_sums, apart.sum);
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
        const char *name, *options, *docs, *words[4];
    } models[] = {
        {"default", "", FOLDER "/names", {"maria", "abdulrahmanabdu", "z", ""}},
        {"2 layers of 12 in 3 heads, block 8",
         "--n-layer 2 --n-embd 12 --n-head 3 --block-size 8",
         FOLDER "/names",
         {"maria", "abdulla", "anna", "x"}},
        {"3 layers, trained for longer",
         "--n-layer 3 --steps 3000 --lr 0.02",
         FOLDER "/names",
         {"alexandra", "kaia", "", "q"}},
        {"1 head", "--n-head 1", FOLDER "/names", {"jessica", "oo", "", "m"}},
        {"16 heads", "--n-head 16", FOLDER "/names", {"benjamin", "aaaaaaaaaaaaaaa", "", "x"}},
        {"relu squared", "--activation relu2", FOLDER "/names", {"olivia", "bob", "", "i"}},
        {"the lesson's recipe", "--recipe lesson", FOLDER "/names", {"sophia", "ava", "", "n"}},
        {"Unicode",
         "--steps 200 --block-size 10 --data " FOLDER "/unicode",
         FOLDER "/unicode",
         {"zo\303\253", "\345\261\261\347\224\260", "z\342\202\254\360\237\230\200", "ana maria"}},
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char arguments[512];
        const char *path = FOLDER "/model";
        snprintf(arguments, sizeof arguments, "train -q --samples 0 --save %s %s", path,
                 models[i].options);
        free(output_of(arguments));
        PlainModel f = open_model(path);
        for (size_t w = 0; w < 4; w++) {
            check_word(models[i].name, path, &f, models[i].words[w]);
            Apart apart = {0};
            compare_votes(models[i].name, path, &f, models[i].words[w], &apart);
            check(apart.vote <= NEAR && apart.sum <= NEAR,
                  "%s, '%s': its votes: %.3g, sums %.3g apart", models[i].name, models[i].words[w],
                  apart.vote, apart.sum);
        }
        check_table(models[i].name, path, &f, models[i].docs,
                    i + 1 < sizeof models / sizeof models[0] ? 50 : 5);
        if (models[i].docs[strlen(FOLDER) + 1] == 'n') {
            check_errors(models[i].name, path, &f, models[i].docs);
            check_words(models[i].name, path, anything);
        }
        close_model(&f);
    }
    check_made_models();
    check_votes();
    return finish();
}
