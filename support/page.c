/* page.c: a model as one HTML file. The shipped page computes everything it shows; the model file,
 * its log and some documents are inserted at one place, as JSON. They are escaped: nothing in them
 * can end the JSON, or the script around it.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

// With more than this, a browser would no longer answer.
enum { MAX_PARAMS = 1000000, MAX_BLOCK = 1024, MAX_POINTS = 1000, MAX_TEXT = 32768 };

#define PLACE "THE MODEL"  // in the shipped page: the JSON goes here

// The shipped page, and where in it the model goes.
static bool read_html(Page *page, const char *argv0)
{
    char name[4200];
    int file = open_shipped(argv0, "page.html", name, sizeof name);
    if (file < 0) return fail_errno(name);
    bool ok = read_all(file, &page->html, &page->n_html, name);
    close(file);
    const char *text = (char *)page->html, *place = ok ? strstr(text, PLACE) : NULL;
    if (place) page->place = (size_t)(place - text);
    return ok && (place || fail("%s: not a page template: it has no place for the model", name));
}

// The model is loaded, so its file is valid: its bytes go in as they are.
bool read_page(Job *job)
{
    const char *path = job->o.arguments[0];
    const Model *model = &job->run.model;
    Page *page = &job->page;
    int file = job->checkpoint.file;
    if (model->num_params > MAX_PARAMS) {
        return fail("%s: too large for a page: %" PRIu64 " parameters; the limit is %d", path,
                    model->num_params, MAX_PARAMS);
    }
    if (model->block_size > MAX_BLOCK) {
        return fail("%s: block too long for a page: %zu positions; the limit is %d", path,
                    model->block_size, MAX_BLOCK);
    }
    if (!read_prompt(&job->run, "the word", job->o.arguments[1])) return false;
    if (!read_html(page, job->argv[0])) return false;
    if (job->o.log && !read_losses(&page->log, job->o.log)) return false;
    if (lseek(file, 0, SEEK_SET) < 0) return fail_errno(path);
    return read_all(file, &page->model, &page->n_model, path);
}

static void say_character(uint32_t code)
{
    if (code > 0xffff) {  // an escape has 16 bits: two of them
        say("\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
            (unsigned)(0xdc00 + (code & 0x3ff)));
    } else {
        bool plain = code >= ' ' && code < 0x7f && !strchr("\"\\<>&'", (int)code);
        say(plain ? "%c" : "\\u%04x", (int)code);
    }
}

// A text in UTF-8 as a member of the JSON. A byte that is not UTF-8 becomes U+FFFD.
static void say_text(const char *name, const char *text)
{
    size_t n = strlen(text), used = 0;
    say(",\n\"%s\":\"", name);
    for (size_t i = 0; i < n; i += used) {
        int32_t code = decode_utf8((const unsigned char *)text + i, n - i, &used);
        if (code < 0) used = 1;
        say_character(code < 0 ? 0xfffd : (uint32_t)code);
    }
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

// The losses as a curve: the mean of each stretch.
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
    say_text("data", job->o.data ? base_name(data_name(&job->o)) : "names.txt");
    say(",\n\"documents\":\"");
    for (size_t i = 0; i < docs->n; i++) {
        const Document *doc = &docs->list[i];
        size_t bytes = 1;
        char utf8[4];
        for (size_t k = 0; k < doc->length; k++) bytes += encode_utf8(doc->tokens[k], utf8);
        if (bytes > room) break;
        room -= bytes;
        if (i) say("\\n");
        for (size_t k = 0; k < doc->length; k++) say_character(doc->tokens[k]);
    }
    bool own = job->o.fingerprint == trained->fingerprint;
    say("\",\n\"n_documents\":%zu,\n\"own\":%s", docs->n, own ? "true" : "false");
}

// A style or a script being written, without the spaces and newlines that it does not need.
typedef struct {
    const char *signs;        // no space is needed beside these
    const char *goes_on;      // no newline is needed after these
    char open[64];            // open quotes, and a { for each hole in a `text ${like this}`
    unsigned char last, gap;  // the last byte, and the space or newline after it
} Code;

static bool is_one_of(const char *set, unsigned char c) { return c && strchr(set, c); }

// Is the gap before c needed? A newline is, unless it only broke a long line.
static bool needs_gap(const Code *code, unsigned char c)
{
    if (code->gap == '\n')
        return !is_one_of(code->goes_on, code->last) && !is_one_of("?:&|.)]{}", c);
    bool twice = is_one_of("+-", code->last) && is_one_of("+-", c);  // a - -b
    return twice || (!is_one_of(code->signs, code->last) && !is_one_of(code->signs, c));
}

// Writes a line of code. Texts in quotes stay as they are.
static void say_code(Code *code, const unsigned char *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t depth = strlen(code->open), length = 1;
        unsigned char c = line[i], next = i + 1 < n ? line[i + 1] : 0, quote = 0;
        if (depth && code->open[depth - 1] != '{') quote = (unsigned char)code->open[depth - 1];
        bool is_comment = !quote && c == '/' && next == '/';
        if (!quote && (c == ' ' || c == '\n' || is_comment)) {
            if (code->gap != '\n') code->gap = is_comment ? '\n' : c;
            if (is_comment) return;
            continue;
        }
        if (code->gap && needs_gap(code, c)) put_bytes(&standard_output, &code->gap, 1);
        code->gap = 0;
        bool makes_hole = quote == '`' && c == '$' && next == '{';
        bool opens = makes_hole || (!quote && (is_one_of("\"'`", c) || (depth && c == '{')));
        if (opens && depth + 1 < sizeof code->open) {
            code->open[depth] = makes_hole ? '{' : (char)c;
            code->open[depth + 1] = 0;
        } else if (depth && c == (quote ? quote : '}')) {
            code->open[depth - 1] = 0;
        }
        if (next && (makes_hole || (quote && c == '\\'))) length = 2;
        put_bytes(&standard_output, line + i, length);
        i += length - 1;
        code->last = line[i];
    }
}

// A part of the shipped page, without indentation, blank lines and comments.
static void say_html(const unsigned char *html, size_t n)
{
    static const Code style = {.signs = ",;:{}>!", .goes_on = ",;:{"};
    static const Code script = {.signs = ",;:{}<>!=?&|+-*/%()[]", .goes_on = ",([{=?:&|"};
    Code code = {.signs = NULL};
    for (size_t i = 0, next; i < n; i = next) {
        while (i < n && html[i] == ' ') i++;
        const unsigned char *line = html + i, *newline = memchr(line, '\n', n - i);
        next = newline ? (size_t)(newline - html) + 1 : n;
        bool is_comment = next - i > 2 && line[0] == '/' && (line[1] == '/' || line[1] == '*');
        const char *text = (const char *)line;
        if (is_comment || *line == '\n') continue;
        if (code.signs && strncmp(text, "</s", 3) == 0) {
            if (code.gap) put_bytes(&standard_output, &code.gap, 1);
            code.signs = NULL;
        }
        if (code.signs)
            say_code(&code, line, next - i);
        else
            put_bytes(&standard_output, line, next - i);
        if (strncmp(text, "<style>", 7) == 0) code = style;
        if (strncmp(text, "<script>", 8) == 0) code = script;
    }
}

void say_page(Job *job, bool with_documents)
{
    const Options *o = &job->o;
    const Page *page = &job->page;
    size_t end = page->place + strlen(PLACE);
    say_html(page->html, page->place);
    say("{\"version\":\"%s\"", VERSION);
    say_text("file", base_name(o->arguments[0]));
    if (o->n_arguments == 2) say_text("word", o->arguments[1]);
    say_bytes("model", page->model, page->n_model);
    if (page->log.list) say_losses(&page->log);
    if (with_documents) say_documents(job);
    say("}");
    say_html(page->html + end, page->n_html - end);
}
