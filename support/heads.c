/* heads.c: what the attention heads do. Attention is read off the tape: every weighted sum there is
 * one head at one position. Its first operand holds the weights, one per position looked at.
 */
#define _XOPEN_SOURCE 700
#include "job.h"
#include "threads.h"

// The next weighted sum from entry *at on, or NULL. Its layer, head and position follow from how
// many came before it.
static const Entry *next_attention(const Tape *tape, size_t *at)
{
    while (*at < tape->n_entries && tape->entries[*at].op != OP_WEIGHTED_SUM) ++*at;
    return *at < tape->n_entries ? &tape->entries[(*at)++] : NULL;
}

// Adds what each head looked at in the latest document.
static void add_attention(const Model *model, HeadStats *stats)
{
    size_t n_heads = model->n_layer * model->n_head, at = model->tape.kept_entries, k = 0;
    for (const Entry *attention; (attention = next_attention(&model->tape, &at)); k++) {
        HeadStats *head = &stats[k % n_heads];
        size_t query = k / n_heads;
        for (size_t key = 0; key < attention->n; key++) {
            double weight = attention->a[key];
            double *share = &head->elsewhere;
            if (key == 0) share = &head->first;
            if (key + 1 == query) share = &head->previous;
            if (key == query) share = &head->self;
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

static void run_document(void *context, size_t i, double *unused)
{
    Evaluation *evaluation = (Evaluation *)context + i;
    (void)unused;
    tape_drop(&evaluation->model->tape);
    evaluation->n_tokens = take_document(evaluation->model, evaluation->doc);
    double *loss = document_loss(evaluation->model, evaluation->n_tokens);
    tape_compute(&evaluation->model->tape);
    evaluation->loss = *loss;
}

enum { MOST = 64 };  // documents at the same time

// The mean loss over the documents' *n_tokens tokens; an interrupt ends it. Losses are added in the
// order of the documents, so the number of threads does not matter. stats may be NULL, and each,
// where the sum of a document's losses goes.
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
            share(run_document, evaluations, k, NULL);
        }
        double loss = evaluation->loss * (double)evaluation->n_tokens;
        sum += loss;
        if (each) each[i] = loss;
        *n_tokens += evaluation->n_tokens;
        if (stats) add_attention(evaluation->model, stats);
    }
    while (n > 1) free_workspace(&evaluations[--n].copy);
    return sum / (double)*n_tokens;
}

// The standard error of a mean over tokens, where the documents are a sample of more like them: each
// has a sum over its tokens, here less that of another model.
double error_of_mean(const Model *model, const Document *docs, size_t n_docs, const double *each,
                     const double *other)
{
    double n = (double)n_docs, tokens = 0, sum = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++) {
        double mean = pass ? sum / tokens : 0;
        for (size_t i = 0; i < n_docs; i++) {
            double t = fmin((double)docs[i].length + 1, (double)model->block_size);
            double x = each[i] - (other ? other[i] : 0);
            if (!pass) tokens += t;
            if (!pass) sum += x;
            squares += pass ? (x - mean * t) * (x - mean * t) : 0;
        }
    }
    return n > 1 ? sqrt(squares * n / (n - 1)) / tokens : HUGE_VAL;
}

// The loss with one head silenced, by setting its columns of attn_wo to zero. Adam's m, which only
// training needs, holds the matrix meanwhile.
static double loss_without(Model *model, const Document *docs, size_t n_docs, size_t h)
{
    Matrix *wo = model->layers[h / model->n_head].attn_wo;
    double *backup = model->m, *columns = wo->data + h % model->n_head * model->head_dim;
    size_t bytes = wo->rows * wo->cols * sizeof *backup, n_tokens;
    memcpy(backup, wo->data, bytes);
    for (size_t row = 0; row < wo->rows; row++) {
        memset(columns + row * wo->cols, 0, model->head_dim * sizeof *columns);
    }
    double loss = mean_loss(model, docs, n_docs, &n_tokens, NULL, NULL);
    memcpy(wo->data, backup, bytes);
    return loss;
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

bool show_heads(Job *job, size_t n_docs)
{
    const char *path = job->o.arguments[0];
    Model *model = &job->run.model;
    const Document *docs = job->run.docs.list;
    size_t n_heads = model->n_layer * model->n_head, n_tokens;
    HeadStats *stats = job->stats = calloc(n_heads, sizeof *stats);
    if (!stats) return no_memory();
    model->tape.fused = true;  // heads are read off whole entries, in every build
    double loss = mean_loss(model, docs, n_docs, &n_tokens, stats, NULL), tokens = (double)n_tokens;
    if (!isfinite(loss)) return fail("%s: the loss is not finite", path);
    for (size_t h = 0; h < n_heads; h++) {
        stats[h].self /= tokens;
        stats[h].previous /= tokens;
        stats[h].first /= tokens;
        stats[h].elsewhere /= tokens;
        stats[h].entropy /= tokens;
        stats[h].loss = loss_without(model, docs, n_docs, h);
        if (!isfinite(stats[h].loss)) {
            return fail("%s: the loss without layer %zu head %zu is not finite", path,
                        h / model->n_head, h % model->n_head);
        }
    }
    if (job->o.tsv) {
        say_stats_values(model, stats, loss);
    } else {
        say_stats(model, stats, loss);
        say_findings(model, stats, loss);
    }
    return true;
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
            say("%zu\t%zu\t%zu\t%zu\t%.17g\n", h / model->n_head, h % model->n_head, query, key,
                w[key]);
        }
    }
}

bool show_word(Job *job)
{
    Run *run = &job->run;
    Model *model = &run->model;
    model->tape.fused = true;  // heads are read off whole entries, in every build
    size_t n_heads = model->n_layer * model->n_head, at = model->tape.kept_entries, n = 0;
    mean_loss(model, &job->samples.prompt, 1, &n, NULL, NULL);
    // NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): there is one position at least
    job->weights = malloc(n_heads * n * sizeof *job->weights);
    if (!job->weights) return no_memory();
    for (size_t k = 0; k < n_heads * n; k++) {
        const Entry *attention = next_attention(&model->tape, &at);
        bool finite = attention && all_finite(attention->a, k / n_heads + 1);
        if (!finite) return fail("%s: the attention is not finite", job->o.arguments[0]);
        job->weights[k] = attention->a;
    }
    if (job->o.tsv) {
        say_map_values(model, job->weights, n);
    } else {
        draw_maps(run, job->weights, n);
    }
    return true;
}
