/* page.c: a model as one HTML file. The shipped page computes everything it shows. It is put
 * together from its parts, unchanged, in the order in which index.html names them; where it names
 * model.js come the model file, its log and some documents, as JSON. They are escaped: nothing in
 * them can end the JSON, or the script around it.
 */
#define _XOPEN_SOURCE 700
#include "../base/json.h"
#include "job.h"

// With more than this, a browser would no longer answer.
enum { MAX_PARAMS = 1000000, MAX_BLOCK = 1024, MAX_POINTS = 1000, MAX_TEXT = 32768 };
// Losses for the page to compare its own with: of so many documents, and so much work.
enum { MAX_LOSSES = 8, MAX_WORK = 50000000 };

// A file of the shipped page. The caller frees it, also after a failure.
static bool read_shipped(const char *argv0, const char *file, unsigned char **bytes, size_t *n)
{
    char shipped[300], name[4200];
    snprintf(shipped, sizeof shipped, "page/%s", file);
    int from = open_shipped(argv0, shipped, name, sizeof name);
    if (from < 0) return fail_errno(name);
    bool ok = read_all(from, bytes, n, name);
    close(from);
    return ok;
}

// Is this matrix one that the page knows, with the shape that it has there?
static bool knows_matrix(const Model *model, const Matrix *w)
{
    size_t d = model->n_embd, vocab_size = model->vocab_size;
    const Matrix known[] = {
        {"wte", vocab_size, d, NULL},
        {"lm_head", vocab_size, d, NULL},
        {"wpe", model->block_size, d, NULL},
        {".attn_wq", d, d, NULL},
        {".attn_wk", d, d, NULL},
        {".attn_wv", d, d, NULL},
        {".attn_wo", d, d, NULL},
        {".mlp_fc1", 4 * d, d, NULL},
        {".mlp_fc2", d, 4 * d, NULL},
    };
    const char *of_layer = strrchr(w->name, '.'), *name = of_layer ? of_layer : w->name;
    size_t i = 0, n = sizeof known / sizeof known[0];
    while (i < n && strcmp(known[i].name, name) != 0) i++;
    return i < n && w->rows == known[i].rows && w->cols == known[i].cols;
}

// Can the page compute the model that this program computes from the file? It knows these settings,
// these activations and these matrices. What else differs, it finds by the losses.
static bool can_compute(const Job *job)
{
    const char *path = job->o.arguments[0];
    const Model *model = &job->run.model;
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        char key[64];
        if (!(option->stored & OF_MODEL)) continue;
        metadata_key(option, key, sizeof key);
        const char *value = find_metadata(&job->checkpoint.header, key);
        bool known = find_name("n_layer|n_embd|n_head|block_size|activation", key) >= 0;
        if (value && strcmp(key, "activation") == 0) known = find_name("relu|relu2", value) >= 0;
        if (value && !known) {
            return fail("%s: the page cannot compute it: unknown: %s %s", path, key, value);
        }
    }
    for (size_t i = 0; i < model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i];
        if (knows_matrix(model, w)) continue;
        return fail("%s: the page cannot compute it: unknown: tensor %s, %zu x %zu", path, w->name,
                    w->rows, w->cols);
    }
    return true;
}

// The model is loaded, so its file is valid: its bytes go in as they are.
static bool read_model(Job *job)
{
    const char *path = job->o.arguments[0];
    const Model *model = &job->run.model;
    Page *page = &job->page;
    if (model->num_params > MAX_PARAMS) {
        return fail("%s: too large for a page: %" PRIu64 " parameters; the limit is %d", path,
                    model->num_params, MAX_PARAMS);
    }
    if (model->block_size > MAX_BLOCK) {
        return fail("%s: block too long for a page: %zu positions; the limit is %d", path,
                    model->block_size, MAX_BLOCK);
    }
    return can_compute(job) && read_prompt(&job->run, "the word", job->o.arguments[1]) &&
           (!job->o.log || read_losses(&page->log, job->o.log)) &&
           read_again(&job->checkpoint, &page->model, &page->n_model);
}

static void say_text(const char *name, const char *text)
{
    say(",\n\"%s\":\"", name);
    put_text(&standard_output, text, true);
    say("\"");
}

// Bytes in base64: three become four characters, and = fills up the last four.
static void say_bytes(const char *name, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    say(",\n\"%s\":\"", name);
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t three = (uint32_t)bytes[i] << 16;
        if (left > 1) three |= (uint32_t)bytes[i + 1] << 8;
        if (left > 2) three |= bytes[i + 2];
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63], '=', '='};
        if (left > 1) four[2] = digits[three >> 6 & 63];
        if (left > 2) four[3] = digits[three & 63];
        put_bytes(&standard_output, four, sizeof four);
    }
    say("\"");
}

// The losses as a curve: the mean of each stretch; and those of the documents held out, by step.
static void say_losses(const Losses *log)
{
    size_t n = log->n, points = n < MAX_POINTS ? n : MAX_POINTS;
    say(",\n\"log\":{\"first\":%" PRIu64 ",\"steps\":%zu,\"points\":[", log->first, n);
    for (size_t i = 0; i < points; i++) {
        size_t from = i * n / points, to = (i + 1) * n / points;
        double sum = 0;
        for (size_t k = from; k < to; k++) sum += log->list[k];
        say("%s%.4g", i ? "," : "", sum / (double)(to - from));
    }
    say("],\"held\":[");
    const char *comma = "";
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(log->held_out[i])) continue;
        say("%s[%" PRIu64 ",%.4g]", comma, log->first + i, log->held_out[i]);
        comma = ",";
    }
    say("]}");
}

// As many documents as fit, in the shuffled order of training.
static void say_documents(Job *job)
{
    Documents *docs = &job->run.docs;
    size_t room = MAX_TEXT;
    random_seed(&job->rng, job->checkpoint.options.config.seed);
    shuffle(docs, &job->rng);
    char source[PATH_MAX];
    data_source(&job->o, source, sizeof source);
    say_text("data", base_name(source));
    say(",\n\"documents\":\"");
    for (size_t i = 0; i < docs->n; i++) {
        const Document *doc = &docs->list[i];
        size_t bytes = 1;
        char utf8[4];
        for (size_t k = 0; k < doc->length; k++) bytes += encode_utf8(doc->tokens[k], utf8);
        if (bytes > room) break;
        room -= bytes;
        if (i) say("\\n");
        put_characters(&standard_output, doc->tokens, doc->length, true);
    }
    say("\",\n\"n_documents\":%zu,\n\"own\":%s", docs->n, job->page.own ? "true" : "false");
}

// A document and its loss, which the page compares with its own. Returns the work that takes.
static double say_loss(Job *job, const Document *doc, const char *comma)
{
    Model *model = &job->run.model;
    const uint32_t *uchars = job->run.tokenizer.uchars;
    size_t n = 0;
    double loss = mean_loss(model, doc, 1, &n, NULL, NULL);
    say("%s[\"", comma);
    for (size_t i = 0; i < doc->length; i++) {
        put_characters(&standard_output, &uchars[doc->tokens[i]], 1, true);
    }
    say(isfinite(loss) ? "\",%.17g]" : "\",null]", loss);
    return (double)n * (double)model->num_params;
}

// The losses of the first documents that the model knows; without any, of the word, or of the
// first characters of the vocabulary.
static void say_compared(Job *job)
{
    const Run *run = &job->run;
    double work = 0, params = (double)run->model.num_params;
    size_t n = 0, block_size = run->model.block_size;
    say(",\n\"losses\":[");
    size_t n_docs = job->page.has_documents ? run->docs.n : 0;
    for (size_t i = 0; i < n_docs && n < MAX_LOSSES && work < MAX_WORK; i++) {
        Document *doc = &run->docs.list[i];
        size_t positions = doc->length < block_size ? doc->length + 1 : block_size;
        if ((double)positions * params > MAX_WORK) continue;
        if (encode(&run->tokenizer, doc->tokens, doc->length) < doc->length) continue;
        work += say_loss(job, doc, n++ ? "," : "");
    }
    if (!n) {
        uint32_t first[] = {0, 1, 2, 3, 4, 5, 6, 7};
        size_t most = sizeof first / sizeof first[0];
        if (most > run->tokenizer.BOS) most = run->tokenizer.BOS;
        Document word = {.tokens = first, .length = most};
        say_loss(job, job->samples.prompt.length ? &job->samples.prompt : &word, "");
    }
    say("]");
}

static void say_model(Job *job)
{
    const Options *o = &job->o;
    const Page *page = &job->page;
    say("const FROM_PROGRAM = {\"version\":\"%s\"", VERSION);
    say_text("file", base_name(o->arguments[0]));
    if (o->n_arguments == 2) say_text("word", o->arguments[1]);
    say_bytes("model", page->model, page->n_model);
    if (page->log.list) say_losses(&page->log);
    if (page->has_documents) say_documents(job);
    say_compared(job);
    say("};\n");
}

/* ------------------------------------------------------------------------------------------------
 * The page around it.
 */
// Puts a line of index.html or, between two lines, the file that it names.
static bool put_line(Output *out, Job *job, const char *line, size_t n)
{
    static const char *const kinds[][3] = {
        {"<link rel=\"stylesheet\" href=\"%255[^\"]\">%n", "<style>\n", "</style>\n"},
        {"<script src=\"%255[^\"]\"></script>%n", "<script>\n", "</script>\n"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char file[256];
        unsigned char *bytes = NULL;
        size_t n_bytes = 0;
        int end = 0;
        if (sscanf(line, kinds[i][0], file, &end) != 1 || (size_t)end + 1 != n) continue;
        bool model = strcmp(file, "model.js") == 0;
        bool ok = model || read_shipped(job->argv[0], file, &bytes, &n_bytes);
        put(out, "%s", kinds[i][1]);
        if (ok) put_bytes(out, bytes, n_bytes);
        if (model && out == &standard_output) say_model(job);
        put(out, "%s", kinds[i][2]);
        free(bytes);
        job->page.names_model |= model;
        return ok;
    }
    put_bytes(out, line, n);
    return true;
}

static bool put_page(Output *out, Job *job)
{
    unsigned char *index = NULL;
    size_t n = 0;
    bool ok = read_shipped(job->argv[0], "index.html", &index, &n);
    for (size_t i = 0, next; ok && i < n; i = next) {
        const unsigned char *newline = memchr(index + i, '\n', n - i);
        next = newline ? (size_t)(newline - index) + 1 : n;
        ok = put_line(out, job, (char *)index + i, next - i);
    }
    free(index);
    return ok &&
           (job->page.names_model || fail("index.html: not a page: it does not name model.js"));
}

// The page is put together twice: first to see whether all of its files are there.
bool show_page(Job *job)
{
    static Output nowhere = {.file = -1};
    if (!read_model(job) || !put_page(&nowhere, job)) return false;
    job->page.own = has_its_documents(job);
    job->page.has_documents = job->o.data || job->page.own;
    return put_page(&standard_output, job);
}
