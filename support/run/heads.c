/* heads.c: what the attention heads do. Attention is read off the tape: a weighted sum of values
 * there is one head at one position, and addresses say which. Its first operand holds the weights,
 * one per position looked at.
 */
#define _XOPEN_SOURCE 700
#include "../base/signals.h"
#include "job.h"
#include "../engine/threads.h"

#include <assert.h>
#include <inttypes.h>
#include <locale.h>

// Heads are read off whole entries of these operations, on a scalar tape, too.
#define READ_OFF ((uint64_t)1 << OP_WEIGHTED_SUM | (uint64_t)1 << OP_LINEAR)

// Which of the n rows of a layer's cached values this address is in; n: in none.
static size_t row_of(const Model *model, size_t li, size_t n, const double *address)
{
    uintptr_t start = (uintptr_t)model->values[li], at = (uintptr_t)address;
    size_t row = model->n_embd * sizeof *address;
    return at >= start && at - start < n * row ? (size_t)(at - start) / row : n;
}

// The layer whose attn_wo this entry applies; n_layer: none.
static size_t layer_mixed_by(const Model *model, const Entry *e)
{
    size_t li = 0;
    while (li < model->n_layer && !(e->op == OP_LINEAR && e->b == model->layers[li].attn_wo->data))
        li++;
    return li;
}

// Is entry `at` a head at one of n positions? It is a weighted sum of rows of a layer's values, up
// to the position, and attn_wo reads its result in the place of this head. Called for each entry in
// turn: found->query is the position whose value was made last.
bool read_attention(const Model *model, size_t n, size_t at, Attention *found)
{
    const Entry *e = &model->tape.entries[at], *end = model->tape.entries + model->tape.n_entries;
    for (size_t li = 0; li < model->n_layer; li++) {
        size_t row = row_of(model, li, n, e->out);
        if (row < n) found->query = row;
    }
    if (e->op != OP_WEIGHTED_SUM || e->stride != model->n_embd) return false;
    const double *out = e->out;  // copied to where attn_wo reads it
    for (const Entry *user = e + 1; user < end; user++) {
        size_t li = layer_mixed_by(model, user);
        if (li == model->n_layer) {
            if (user->a == out) out = user->out;
            continue;
        }
        size_t place = (size_t)((uintptr_t)out - (uintptr_t)user->a) / sizeof *out;
        if (place >= model->n_embd) continue;
        size_t first = row_of(model, li, n, e->b), query = found->query;
        *found = (Attention){e, li, place / model->head_dim, query, first};
        return first + e->n <= query + 1;
    }
    return false;
}

// Adds what each head looks at in a document of n positions.
static void add_attention(const Model *model, size_t n, HeadStats *stats)
{
    Attention attention = {0};
    for (size_t at = model->tape.kept_entries; at < model->tape.n_entries; at++) {
        if (!read_attention(model, n, at, &attention)) continue;
        HeadStats *head = &stats[attention.layer * model->n_head + attention.head];
        head->n_positions++;
        for (size_t i = 0; i < attention.sum->n; i++) {
            double weight = attention.sum->a[i];
            double *share = &head->elsewhere;
            size_t key = attention.first + i;
            if (key == 0) share = &head->first;
            if (key + 1 == attention.query) share = &head->previous;
            if (key == attention.query) share = &head->self;
            *share += weight;
            head->entropy -= weight > 0 ? weight * log2(weight) : 0;
        }
    }
}

// A document that a thread runs, on a tape of its own.
typedef struct {
    Model *model, copy;  // the first runs on the model itself, the others on their copies
    const Document *doc;
    size_t n_tokens;
    double loss;
} Evaluation;

static void run_document(void *context, size_t i, size_t n_parts)
{
    Evaluation *evaluation = (Evaluation *)context + i;
    (void)n_parts;
    tape_drop(&evaluation->model->tape);
    evaluation->n_tokens = take_document(evaluation->model, evaluation->doc);
    double *loss = document_loss(evaluation->model, evaluation->n_tokens);
    tape_compute(&evaluation->model->tape);
    evaluation->loss = *loss;
}

enum { MOST = 64 };  // documents at the same time

// The mean loss over the documents' *n_tokens tokens; NAN if a signal ended it. Losses are added in
// the order of the documents, so the number of threads does not matter. stats may be NULL, and
// each, where the sum of a document's losses goes.
double mean_loss(Model *model, const Document *docs, size_t n_docs, size_t *n_tokens,
                 HeadStats *stats, double *each)
{
    static Evaluation evaluations[MOST];
    size_t n = 1, most = n_threads > 1 ? 4 * n_threads : 1;
    double sum = 0;
    evaluations[0].model = model;
    for (; n < most && n < n_docs && n < MOST; n++) {
        evaluations[n].model = &evaluations[n].copy;
        if (!share_model(&evaluations[n].copy, model)) break;
    }
    *n_tokens = 0;
    for (size_t i = 0; i < n_docs && !interrupted; i++) {
        const Evaluation *evaluation = &evaluations[i % n];
        if (evaluation == evaluations) {
            size_t k = 0;
            for (; k < n && i + k < n_docs; k++) evaluations[k].doc = &docs[i + k];
            share(run_document, evaluations, k);
        }
        double loss = evaluation->loss * (double)evaluation->n_tokens;
        sum += loss;
        if (each) each[i] = loss;
        *n_tokens += evaluation->n_tokens;
        if (stats) add_attention(evaluation->model, evaluation->n_tokens, stats);
    }
    while (n > 1) free_workspace(&evaluations[--n].copy);
    return interrupted ? NAN : sum / (double)*n_tokens;
}

// The standard error of a mean over tokens, where the documents are a sample of more like them.
// Each has a sum over its tokens.
double error_of_mean(const Model *model, const Document *docs, size_t n_docs, const double *each)
{
    double n = (double)n_docs, block_size = (double)model->block_size;
    double tokens = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < n_docs; i++) {
        tokens += fmin((double)docs[i].length + 1, block_size);
        sum += each[i];
    }
    for (size_t i = 0; i < n_docs; i++) {
        double rest = each[i] - sum / tokens * fmin((double)docs[i].length + 1, block_size);
        squares += rest * rest;
    }
    return n > 1 ? sqrt(squares * n / (n - 1)) / tokens : HUGE_VAL;
}

// The loss with one head silenced, by setting its columns of attn_wo to zero. backup: [attn_wo].
static double loss_without(Model *model, const Document *docs, size_t n_docs, size_t h,
                           double *each, double *backup)
{
    Matrix *wo = model->layers[h / model->n_head].attn_wo;
    double *columns = wo->data + h % model->n_head * model->head_dim;
    size_t bytes = wo->rows * wo->cols * sizeof *backup, n_tokens;
    memcpy(backup, wo->data, bytes);
    for (size_t row = 0; row < wo->rows; row++) {
        memset(columns + row * wo->cols, 0, model->head_dim * sizeof *columns);
    }
    double loss = mean_loss(model, docs, n_docs, &n_tokens, NULL, each);
    memcpy(wo->data, backup, bytes);
    return loss;
}

static bool no_attention(const char *path)
{
    return fail(
        "%s: gpt() has no head in some place: a weighted sum of rows of its layer's values, "
        "up to its own position",
        path);
}

static void say_stats_values(const Model *model, const HeadStats *stats, double loss)
{
    say("layer\thead\tself\tprevious\tfirst\telsewhere\tentropy\tloss\tloss_without\n");
    for (size_t h = 0; h < model->n_layer * model->n_head; h++) {
        const HeadStats *s = &stats[h];
        say("%zu\t%zu\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\n", h / model->n_head,
            h % model->n_head, s->self, s->previous, s->first, s->elsewhere, s->entropy, loss,
            s->loss);
    }
}

static void say_documents(const Job *job, size_t n_docs)
{
    size_t columns = terminal_of(STDOUT_FILENO).columns;
    if (job->o.docs) {
        say_sentence(columns, "Over the first %zu documents", n_docs);
    } else {
        say_sentence(columns, "Over %zu documents that seed %" PRIu64 " draws%s", n_docs,
                     job->o.config.seed, job->held_out.n ? " from those held out of training" : "");
    }
}

bool show_heads(Job *job)
{
    const char *path = job->o.arguments[0];
    Model *model = &job->run.model;
    const Document *docs = job->measured.list;
    size_t n_docs = job->measured.n, n_heads = model->n_layer * model->n_head, n_tokens;
    HeadStats *stats = job->stats = calloc(n_heads, sizeof *stats);
    free(job->losses);
    size_t in_wo = model->n_embd * model->n_embd;
    double *each = job->losses = calloc(2 * n_docs + in_wo, sizeof *each);
    if (!stats || !each) return no_memory();
    double *more = each + n_docs;  // what the losses are without a head, then the difference
    model->tape.fused |= READ_OFF;
    double loss = mean_loss(model, docs, n_docs, &n_tokens, stats, each), tokens = (double)n_tokens;
    if (!isfinite(loss)) return fail("%s: the loss is not finite", path);
    for (size_t h = 0; h < n_heads; h++) {
        if (stats[h].n_positions != n_tokens) return no_attention(path);
        stats[h].self /= tokens;
        stats[h].previous /= tokens;
        stats[h].first /= tokens;
        stats[h].elsewhere /= tokens;
        stats[h].entropy /= tokens;
        stats[h].loss = loss_without(model, docs, n_docs, h, more, more + n_docs);
        for (size_t i = 0; i < n_docs; i++) more[i] -= each[i];
        stats[h].error = error_of_mean(model, docs, n_docs, more);
        if (!isfinite(stats[h].loss)) {
            return fail("%s: the loss without layer %zu head %zu is not finite", path,
                        h / model->n_head, h % model->n_head);
        }
    }
    if (job->o.tsv) {
        say_stats_values(model, stats, loss);
    } else {
        say_stats(model, stats, loss, error_of_mean(model, docs, n_docs, each));
        say_documents(job, n_docs);
        say_findings(model, stats, loss);
    }
    return true;
}

// Where a row of the maps begins: the one of head h at position `query`, query + 1 weights long.
size_t map_row(size_t n_heads, size_t query, size_t h)
{
    return n_heads * (query * (query + 1) / 2) + h * (query + 1);
}

static void say_map_values(const Model *model, const double *maps, size_t n)
{
    size_t n_heads = model->n_layer * model->n_head;
    say("layer\thead\tquery\tkey\tweight\n");
    for (size_t k = 0; k < n_heads * n; k++) {
        size_t h = k / n, query = k % n;
        const double *w = maps + map_row(n_heads, query, h);
        for (size_t key = 0; key <= query; key++) {
            say("%zu\t%zu\t%zu\t%zu\t%.17g\n", h / model->n_head, h % model->n_head, query, key,
                w[key]);
        }
    }
}

// Reads the maps of n positions off the tape. What a head does not look at is 0.
static bool read_maps(Job *job, size_t n)
{
    const Model *model = &job->run.model;
    size_t n_heads = model->n_layer * model->n_head, n_found = 0;
    Attention attention = {0};
    assert(n >= 1 && n_heads >= 1);
    job->maps = calloc(map_row(n_heads, n, 0), sizeof *job->maps);
    if (!job->maps) return no_memory();
    for (size_t at = model->tape.kept_entries; at < model->tape.n_entries; at++) {
        if (!read_attention(model, n, at, &attention)) continue;
        const Entry *sum = attention.sum;
        size_t h = attention.layer * model->n_head + attention.head;
        memcpy(job->maps + map_row(n_heads, attention.query, h) + attention.first, sum->a,
               sum->n * sizeof *sum->a);
        n_found++;
        if (!all_finite(sum->a, sum->n)) {
            return fail("%s: the attention is not finite", job->o.arguments[0]);
        }
    }
    return n_found == n_heads * n || no_attention(job->o.arguments[0]);
}

bool show_word(Job *job)
{
    Run *run = &job->run;
    run->model.tape.fused |= READ_OFF;
    size_t n = 0;
    if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "");  // for wcwidth() alone
    mean_loss(&run->model, &job->samples.prompt, 1, &n, NULL, NULL);
    if (job->o.votes) return show_votes(job, n);
    if (!read_maps(job, n)) return false;
    if (job->o.tsv) {
        say_map_values(&run->model, job->maps, n);
    } else {
        draw_maps(run, job->maps, n);
    }
    return true;
}
