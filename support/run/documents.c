/* documents.c: where the documents come from, and what users are told about them. The name of the
 * shipped list is here alone.
 *
 * Documents are characters until encode() has replaced them with tokens; what compares them with a
 * model file's fingerprint must come before.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

#include <fcntl.h>

static const char shipped[] = "names.txt";

const char *data_name(const Options *o)
{
    if (!o->data) return "the shipped names";
    return strcmp(o->data, "-") == 0 ? "standard input" : o->data;
}

void data_source(const Options *o, char *text, size_t room)
{
    bool input = o->data && strcmp(o->data, "-") == 0;
    const char *folder = !o->data ? "data/" : input ? "/dev/" : "";
    snprintf(text, room, "%s%s", folder, !o->data ? shipped : input ? "stdin" : base_name(o->data));
}

bool read_texts(Job *job)
{
    const Options *o = &job->o;
    char name[4200];
    int file = STDIN_FILENO;
    snprintf(name, sizeof name, "%s", data_name(o));
    if (!o->data) {
        file = open_shipped(job->argv[0], shipped, name, sizeof name);
    } else if (strcmp(o->data, "-") != 0) {
        file = open_file(o->data, O_RDONLY);
    }
    const char *hint = o->data ? "" : "; to use other documents: --data FILE";
    if (file < 0) return fail("%s: %s%s", name, strerror(errno), hint);
    unsigned char *bytes = NULL;
    size_t n = 0;
    bool ok = (fstat(file, &job->data_file) == 0 || fail_errno(name)) &&
              read_all(file, &bytes, &n, name) && split_documents(bytes, n, &job->run.docs, name);
    free(bytes);
    if (file != STDIN_FILENO) close(file);
    return ok;
}

// Takes the tokenizer's memory, too: nothing else in the story can fail before new_model().
bool read_documents(Run *run)
{
    Job *job = run->job;
    if (!read_texts(job) || !new_tokenizer(&run->tokenizer)) return false;
    if (job->o.save || job->o.resume) job->o.fingerprint = fingerprint(&run->docs);
    return true;
}

bool has_its_documents(const Job *job)
{
    return fingerprint(&job->run.docs) == job->checkpoint.options.fingerprint;
}

// Without --data, the model must be trained on the shipped names, as far as its file says.
bool check_source(Job *job)
{
    const Header *header = &job->checkpoint.header;
    const char *data = find_metadata(header, "train.data");
    bool says = data && find_metadata(header, "train.fingerprint");
    return job->o.data || !says || has_its_documents(job) ||
           usage("%s: trained on %s, not on the shipped names; --data FILE is needed", header->path,
                 data);
}

bool encode_documents(Job *job, const Documents *docs)
{
    for (size_t i = 0; i < docs->n; i++) {
        const Document *doc = &docs->list[i];
        size_t done = encode(&job->run.tokenizer, doc->tokens, doc->length);
        if (done == doc->length) continue;
        char bytes[4];
        uint32_t unknown = doc->tokens[done];
        int length = is_control(unknown) ? 0 : (int)encode_utf8(unknown, bytes);
        return fail("%s:%zu: the model does not know the character %.*s%sU+%04X",
                    data_name(&job->o), doc->line, length, bytes, length ? ", " : "",
                    (unsigned)unknown);
    }
    note_documents(&job->run, docs);
    return true;
}

void note_documents(const Run *run, const Documents *docs)
{
    const Options *o = &run->job->o;
    size_t n_cut = 0, longest = 0, n = docs->n;
    if (o->quiet && !o->data) return;
    for (size_t i = 0; i < n; i++) {
        size_t length = docs->list[i].length;
        n_cut += length >= run->model.block_size;
        longest = length > longest ? length : longest;
    }
    if (run->docs.had_mark && !o->quiet) {
        note("%s: begins with a byte-order mark, which is skipped", data_name(o));
    }
    if (n_cut) {
        note("%s: %zu of %zu documents %s cut to the block of %zu; --block-size %zu keeps %s whole",
             data_name(o), n_cut, n, n_cut == 1 ? "is" : "are", run->model.block_size, longest + 1,
             n_cut == 1 ? "it" : "them");
    }
}

// How often the run sees its documents.
double passes(const Run *run)
{
    const Config *config = run->config;
    double n = (double)(run->docs.n - config->holdout);
    return (double)config->steps * (double)config->batch / n;
}

const char *passes_text(const Run *run)
{
    static char text[160];
    double times = passes(run), shown = times < 9.95 ? rint(10 * times) / 10 : rint(times);
    uint64_t n = run->docs.n - run->config->holdout, steps = run->config->steps;
    if (times < 1) {
        snprintf(text, sizeof text, "%" PRIu64 " steps: %" PRIu64 " of %" PRIu64 " documents",
                 steps, steps * run->config->batch, n);
    } else {
        snprintf(text, sizeof text,
                 "%" PRIu64 " steps: each of the %" PRIu64 " documents about %.15g times", steps, n,
                 shown);
    }
    return text;
}
