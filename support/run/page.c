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

static bool append(Page *page, const void *bytes, size_t n)
{
    unsigned char *html = n ? realloc(page->html, page->n_html + n) : page->html;
    if (n && !html) return no_memory();
    if (n) memcpy(html + page->n_html, bytes, n);
    page->html = html;
    page->n_html += n;
    return true;
}

// A file of the shipped page. The caller frees it.
static bool read_part(const char *argv0, const char *part, unsigned char **bytes, size_t *n)
{
    char shipped[300], name[4200];
    snprintf(shipped, sizeof shipped, "page/%s", part);
    int file = open_shipped(argv0, shipped, name, sizeof name);
    if (file < 0) return fail_errno(name);
    bool ok = read_all(file, bytes, n, name);
    close(file);
    return ok;
}

// Adds a part between two lines; or, of the model, its place.
static bool add_part(Page *page, const char *argv0, const char *part, const char *open,
                     const char *end)
{
    unsigned char *bytes = NULL;
    size_t n = 0;
    bool ok = append(page, open, strlen(open));
    if (strcmp(part, "model.js") == 0) {
        page->place = page->n_html;
    } else {
        ok = ok && read_part(argv0, part, &bytes, &n);
    }
    ok = ok && append(page, bytes, n) && append(page, end, strlen(end));
    free(bytes);
    return ok;
}

// Adds a line of index.html, or the part that it names.
static bool add_line(Page *page, const char *argv0, const char *line, size_t n)
{
    static const char *const kinds[][4] = {
        {"<link rel=\"stylesheet\" href=\"", "\">\n", "<style>\n", "</style>\n"},
        {"<script src=\"", "\"></script>\n", "<script>\n", "</script>\n"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t before = strlen(kinds[i][0]), after = strlen(kinds[i][1]);
        char part[256];
        if (n <= before + after || n >= sizeof part || strncmp(line, kinds[i][0], before) != 0 ||
            strncmp(line + n - after, kinds[i][1], after) != 0) {
            continue;
        }
        snprintf(part, sizeof part, "%.*s", (int)(n - before - after), line + before);
        return add_part(page, argv0, part, kinds[i][2], kinds[i][3]);
    }
    return append(page, line, n);
}

static bool read_html(Page *page, const char *argv0)
{
    unsigned char *index = NULL;
    size_t n = 0;
    bool ok = read_part(argv0, "index.html", &index, &n);
    for (size_t i = 0, next; ok && i < n; i = next) {
        const unsigned char *newline = memchr(index + i, '\n', n - i);
        next = newline ? (size_t)(newline - index) + 1 : n;
        ok = add_line(page, argv0, (char *)index + i, next - i);
    }
    free(index);
    return ok && (page->place || fail("index.html: not a page: it does not name model.js"));
}

// Is this matrix one that the page knows, with the shape that it has there?
static bool knows_matrix(const Model *model, const Matrix *w)
{
    static const struct {
        const char *name;
        size_t rows, cols;  // in units of n_embd
    } of_layer[] = {{"attn_wq", 1, 1}, {"attn_wk", 1, 1}, {"attn_wv", 1, 1},
                    {"attn_wo", 1, 1}, {"mlp_fc1", 4, 1}, {"mlp_fc2", 1, 4}};
    const char *name = strrchr(w->name, '.');
    size_t d = model->n_embd;
    if (!name) {
        size_t rows = strcmp(w->name, "wpe") == 0 ? model->block_size : model->vocab_size;
        return find_name("wte|wpe|lm_head", w->name) >= 0 && w->rows == rows && w->cols == d;
    }
    for (size_t i = 0; i < sizeof of_layer / sizeof of_layer[0]; i++) {
        if (strcmp(name + 1, of_layer[i].name) == 0) {
            return w->rows == of_layer[i].rows * d && w->cols == of_layer[i].cols * d;
        }
    }
    return false;
}

// Can the page compute the model that this program computes from the file? It knows these settings,
// these activations and these matrices. What else differs, it finds by the losses.
static bool can_compute(const Job *job)
{
    const char *path = job->o.arguments[0];
    const Model *model = &job->run.model;
    const Header *header = &job->checkpoint.header;
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        char key[64];
        metadata_key(option, key, sizeof key);
        if (option->stored & OF_MODEL && find_metadata(header, key) &&
            find_name("n_layer|n_embd|n_head|block_size|activation", key) < 0) {
            return fail("%s: the page cannot compute it: it does not know %s", path, key);
        }
    }
    const char *activation = find_metadata(header, "activation");
    if (activation && find_name("relu|relu2", activation) < 0) {
        return fail("%s: the page cannot compute it: it does not know the activation %s", path,
                    activation);
    }
    for (size_t i = 0; i < model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i];
        if (knows_matrix(model, w)) continue;
        return fail("%s: the page cannot compute it: it does not know the tensor %s, %zu x %zu",
                    path, w->name, w->rows, w->cols);
    }
    return true;
}

// The model is loaded, so its file is valid: its bytes go in as they are.
bool read_page(Job *job)
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
    if (!can_compute(job)) return false;
    if (!read_prompt(&job->run, "the word", job->o.arguments[1])) return false;
    if (!read_html(page, job->argv[0])) return false;
    if (job->o.log && !read_losses(&page->log, job->o.log)) return false;
    return read_again(&job->checkpoint, &page->model, &page->n_model);
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
    const Options *trained = &job->checkpoint.options;
    size_t room = MAX_TEXT;
    random_seed(&job->rng, trained->config.seed);
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
    bool own = job->o.fingerprint == trained->fingerprint;
    say("\",\n\"n_documents\":%zu,\n\"own\":%s", docs->n, own ? "true" : "false");
}

// A document and its loss, which the page compares with its own. Returns the work that takes.
static double say_loss(Job *job, const Document *doc, const char *comma)
{
    Model *model = &job->run.model;
    const uint32_t *uchars = job->run.tokenizer.uchars;
    size_t n = 0;
    double loss = mean_loss(model, doc, 1, &n, NULL, NULL);
    say("%s[\"", comma);
    for (size_t i = 0; i < doc->length; i++)
        put_characters(&standard_output, &uchars[doc->tokens[i]], 1, true);
    if (isfinite(loss))
        say("\",%.17g]", loss);
    else
        say("\",null]");
    return (double)n * (double)model->num_params;
}

// The losses of the first documents that the model knows; without any, of the word, or of the
// first characters of the vocabulary.
static void say_compared(Job *job, bool with_documents)
{
    const Run *run = &job->run;
    double work = 0, params = (double)run->model.num_params;
    size_t n = 0, block_size = run->model.block_size;
    say(",\n\"losses\":[");
    for (size_t i = 0; with_documents && i < run->docs.n && n < MAX_LOSSES && work < MAX_WORK;
         i++) {
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

void say_page(Job *job, bool with_documents)
{
    const Options *o = &job->o;
    const Page *page = &job->page;
    put_bytes(&standard_output, page->html, page->place);
    say("const FROM_PROGRAM = {\"version\":\"%s\"", VERSION);
    say_text("file", base_name(o->arguments[0]));
    if (o->n_arguments == 2) say_text("word", o->arguments[1]);
    say_bytes("model", page->model, page->n_model);
    if (page->log.list) say_losses(&page->log);
    if (with_documents) say_documents(job);
    say_compared(job, with_documents);
    say("};\n");
    put_bytes(&standard_output, page->html + page->place, page->n_html - page->place);
}
