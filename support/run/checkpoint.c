/* checkpoint.c: model files, to and from a Run.
 *
 * A file may come from anyone. Its header is checked first, and memory is taken only for a model
 * whose numbers the file could hold. Names that begin with "train." are for a resume; a file
 * without them is still a model.
 */
#define _XOPEN_SOURCE 700
#include "../base/json.h"
#include "job.h"

#include <errno.h>
#include <fcntl.h>

static const char *const prefixes[] = {"", "train.m.", "train.v."};  // a matrix; Adam's means

// The characters of the vocabulary, each once. Documents hold no line ends, so it has none.
static bool read_vocab(Checkpoint *checkpoint, const char *vocab)
{
    Tokenizer *tokenizer = &checkpoint->tokenizer;
    size_t n = strlen(vocab), used = 0;
    bool ok = n > 0;
    if (!new_tokenizer(tokenizer)) return false;
    for (size_t i = 0; ok && i < n; i += used) {
        uint32_t code = (uint32_t)decode_utf8((const unsigned char *)vocab + i, n - i, &used);
        ok = code != '\n' && code != '\r' && !tokenizer->token_of[code];
        tokenizer->uchars[tokenizer->BOS++] = code;
        tokenizer->token_of[code] = (uint32_t)tokenizer->BOS;
    }
    tokenizer->vocab_size = tokenizer->BOS + 1;
    return ok || fail("%s: metadata: vocab is not a list of distinct characters",
                      checkpoint->header.path);
}

static void note_missing(Checkpoint *checkpoint, const char *what)
{
    if (checkpoint->missing[0]) return;
    snprintf(checkpoint->missing, sizeof checkpoint->missing, "%s", what);
}

// Reads the configuration of the model and the stored options of its run.
static bool read_metadata(Checkpoint *checkpoint)
{
    const Header *header = &checkpoint->header;
    Options *o = &checkpoint->options;
    *o = default_options(RECIPE_MICROGPT);
    const char *format = find_metadata(header, "format"), *vocab = find_metadata(header, "vocab");
    if (!format || strcmp(format, "microgpt") != 0) {
        return fail("%s: not a model of this program: metadata: format is not microgpt",
                    header->path);
    }
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        char key[64];
        if (!option->stored) continue;
        metadata_key(option, key, sizeof key);
        const char *value = find_metadata(header, key);
        if (!value && option->stored & OF_MODEL && !(option->stored & OPTIONAL)) {
            return fail("%s: metadata: %s is missing", header->path, key);
        }
        if (!value && !(option->stored & OPTIONAL)) note_missing(checkpoint, key);
        if (value && set_option(o, option, value)) {
            return fail("%s: metadata: %s is not valid: %s", header->path, key, value);
        }
    }
    if (!check_options(o, header->path)) return false;
    if (!vocab) return fail("%s: metadata: vocab is missing", header->path);
    return read_vocab(checkpoint, vocab);
}

// Could the file hold the model that it describes? A number takes at least four bytes.
static bool check_sizes(const Checkpoint *checkpoint)
{
    const Header *header = &checkpoint->header;
    const Config *config = &checkpoint->options.config;
    bool few = config->n_layer >= header->n_tensors;
    Model sizes = {0};
    if (!few && !size_model(&sizes, config, checkpoint->tokenizer.vocab_size)) return false;
    free(sizes.layers);
    few = few || sizes.num_params > header->data_size / 4 || sizes.n_matrices > header->n_tensors;
    return !few ||
           fail("%s: the tensors are too few or too small for the configuration", header->path);
}

bool open_checkpoint(Checkpoint *checkpoint, const char *path)
{
    int file = open_file(path, O_RDONLY);
    if (file < 0) return fail_errno(path);
    *checkpoint = (Checkpoint){.file = file, .header = {.path = path}};
    return (fstat(file, &checkpoint->info) == 0 || fail_errno(path)) &&
           read_header(file, &checkpoint->header) && read_metadata(checkpoint) &&
           check_sizes(checkpoint);
}

void close_checkpoint(Checkpoint *checkpoint)
{
    if (!checkpoint->header.path) return;
    close(checkpoint->file);
    free_header(&checkpoint->header);
    free_tokenizer(&checkpoint->tokenizer);
    checkpoint->header = (Header){0};
}

// Sets where a tensor's numbers go. Only those that a resume needs may be missing.
static bool place_tensor(Checkpoint *checkpoint, const char *prefix, const Matrix *w, double *to)
{
    const char *path = checkpoint->header.path;
    char name[64];
    snprintf(name, sizeof name, "%s%s", prefix, w->name);
    Tensor *t = find_tensor(&checkpoint->header, name);
    if (!t) {
        note_missing(checkpoint, name);
        return strncmp(name, "train.", 6) == 0 || fail("%s: tensor %s is missing", path, name);
    }
    size_t n_dims = w->cols ? 2 : 1;
    if (t->n_dims != n_dims || t->shape[0] != w->rows || t->shape[1] != w->cols) {
        return fail("%s: tensor %s: its shape does not fit the configuration", path, name);
    }
    t->to = to;
    return true;
}

static bool read_tensors(Checkpoint *checkpoint, Model *model)
{
    Header *header = &checkpoint->header;
    Matrix train_random = {.name = "train.random", .rows = N_RANDOM};
    double numbers[N_RANDOM] = {0};
    double *const vectors[] = {model->params, model->m, model->v};
    const Tensor *random = find_tensor(header, train_random.name);
    bool exact = random && random->width == 8;  // F32 would round its words
    if (!place_tensor(checkpoint, "", &train_random, numbers)) return false;
    for (size_t i = 0; i < model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i];
        for (size_t p = 0; p < 3; p++) {
            double *to = vectors[p] + (w->data - model->params);
            if (!place_tensor(checkpoint, prefixes[p], w, to)) return false;
        }
    }
    if (!read_data(checkpoint->file, header)) return false;
    if (random && !exact) note_missing(checkpoint, "train.random in F64");
    model->steps_done = checkpoint->options.step;
    checkpoint->has_random = exact;
    return !exact || random_from_numbers(&checkpoint->random, numbers) ||
           fail("%s: tensor train.random: not the state of the random generator", header->path);
}

bool load_model(Job *job, const char *path)
{
    Checkpoint *checkpoint = &job->checkpoint;
    Run *run = &job->run;
    if (!open_checkpoint(checkpoint, path)) return false;
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        if (option->stored & OF_MODEL) copy_option(&job->o, &checkpoint->options, option);
    }
    run->tokenizer = checkpoint->tokenizer;
    checkpoint->tokenizer = (Tokenizer){0};
    return new_model(run) && read_tensors(checkpoint, &run->model);
}

bool read_again(Checkpoint *checkpoint, unsigned char **bytes, size_t *n)
{
    const char *path = checkpoint->header.path;
    if (lseek(checkpoint->file, 0, SEEK_SET) < 0) return fail_errno(path);
    return read_all(checkpoint->file, bytes, n, path);
}

static bool check_missing(const Checkpoint *checkpoint)
{
    return !checkpoint->missing[0] || fail("%s: a model that cannot be resumed: it has no %s",
                                           checkpoint->header.path, checkpoint->missing);
}

// A resumed run keeps the options of its file, except those that may change and are given.
bool take_options(Options *o, const Checkpoint *checkpoint)
{
    if (!check_missing(checkpoint)) return false;
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        bool given = o->given >> (option - options) & 1;
        if (option->stored && !given) copy_option(o, &checkpoint->options, option);
        if (!option->stored || !given || option->stored & FREE) continue;
        char ours[64], theirs[64];
        option_text(option, o, ours, sizeof ours);
        option_text(option, &checkpoint->options, theirs, sizeof theirs);
        if (strcmp(ours, theirs) == 0) continue;
        return usage("--%s %s: the run in %s has %s", option->name, ours, o->resume, theirs);
    }
    return o->config.steps >= o->step ||
           usage("--steps %" PRIu64 ": the run in %s has done %" PRIu64, o->config.steps, o->resume,
                 o->step);
}

// The same documents give the same vocabulary; a file that says otherwise is not of this run.
bool resume_run(Job *job)
{
    Checkpoint *checkpoint = &job->checkpoint;
    Run *run = &job->run;
    const Tokenizer *ours = &run->tokenizer, *theirs = &checkpoint->tokenizer;
    bool same = checkpoint->options.fingerprint == job->o.fingerprint && ours->BOS == theirs->BOS &&
                memcmp(ours->uchars, theirs->uchars, ours->BOS * sizeof *ours->uchars) == 0;
    const char *data = find_metadata(&checkpoint->header, "train.data");
    if (!same) {
        return fail("%s: not the documents that %s was trained on%s%s", data_name(&job->o),
                    job->o.resume, data ? ": " : "", data ? data : "");
    }
    if (!read_tensors(checkpoint, &run->model) || !check_missing(checkpoint)) return false;
    job->rng = checkpoint->random;
    close_checkpoint(checkpoint);
    return true;
}

// The configuration, the run, all tensors; padded, so that numbers start at 8 * n.
static void put_header(Output *out, Options o, const Run *run, uint64_t hash)
{
    const Model *model = &run->model;
    char source[PATH_MAX];
    size_t at = 0;
    data_source(&o, source, sizeof source);
    o.step = model->steps_done;
    put(out, "{\"__metadata__\":{\"format\":\"microgpt\",\"checksum\":\"" CHECKSUM "\"", hash);
    for (const Option *option = options; option < options + N_OPTIONS; option++) {
        char key[64], value[64];
        if (!option->stored) continue;
        metadata_key(option, key, sizeof key);
        option_text(option, &o, value, sizeof value);
        put(out, ",\"%s\":\"%s\"", key, value);
    }
    put(out, ",\"train.data\":\"");
    put_text(out, source, false);
    put(out, "\",\"vocab\":\"");
    put_characters(out, run->tokenizer.uchars, run->tokenizer.BOS, false);
    put(out, "\"}");
    for (size_t p = 0; p < 3; p++) {
        for (size_t i = 0; i < model->n_matrices; i++) {
            const Matrix *w = &model->state_dict[i];
            at = put_tensor(out, prefixes[p], w->name, w->rows, w->cols, at);
        }
    }
    put_tensor(out, "", "train.random", N_RANDOM, 0, at);
    size_t start = out->file < 0 ? 8 : 0;  // the length, which is counted or already written
    put(out, "}%*s", (int)((8 - (start + out->total + 1) % 8) % 8), "");
}

// The length of the header, without memory for it.
static size_t header_length(const Options *o, const Run *run, uint64_t hash)
{
    static Output counted;
    counted.file = -1;
    counted.n = counted.total = 0;
    put_header(&counted, *o, run, hash);
    return counted.total;
}

// May this file be replaced? Only if it is a model, empty, or not there.
static bool is_replaceable(const char *path, bool *model)
{
    static Checkpoint other;
    struct stat info;
    bool there = stat(path, &info) == 0;
    *model = there && info.st_size > 0;
    if (there && !S_ISREG(info.st_mode)) return fail("%s: not a regular file", path);
    bool ok = !*model || open_checkpoint(&other, path);
    close_checkpoint(&other);
    return ok || fail("%s; --save replaces only models", failure.text);
}

// Checks before the first step that the model can be saved. The model of another run is kept as
// path~, which may replace an earlier one.
bool can_save(Target *target, const Job *job)
{
    const Options *o = &job->o;
    bool resumed = is_unchanged(o->save, &job->checkpoint.info), other = false, earlier;
    if (!resumed && !is_replaceable(o->save, &other)) return false;
    if (!find_target(target, o->save)) return false;
    if (other && !(is_replaceable(target->kept, &earlier) && keep_other(target))) return false;
    enum { GROWTH = 64 };  // digits of later steps and losses
    return header_length(o, &job->run, 0) <= MAX_HEADER - GROWTH ||
           fail("%s: too many layers for a model file", o->save);
}

// Writes the model and what a resume needs. Takes no memory: there may be none left.
bool save_model(Target *target, const Options *o, const Run *run)
{
    static Output out;
    const Model *model = &run->model;
    double numbers[N_RANDOM];
    size_t n = (size_t)model->num_params;
    random_to_numbers(run->rng, numbers);
    const double *const parts[] = {model->params, model->m, model->v, numbers};
    const size_t sizes[] = {n, n, n, N_RANDOM};
    uint64_t hash = FNV_START;
    for (size_t p = 0; p < 4; p++) {
        if (!all_finite(parts[p], sizes[p])) {
            return fail("%s: not saved: a parameter is no longer finite", target->name);
        }
        hash = hash_numbers(hash, parts[p], sizes[p]);
    }
    bool whole = false;
    for (int place = 0; !whole && begin_save(target, &out, place); place++) {
        size_t length = header_length(o, run, hash);
        put_length(&out, length);
        put_header(&out, *o, run, hash);
        if (out.total != 8 + length && !out.error) out.error = EOVERFLOW;  // formatting failed
        for (size_t p = 0; p < 4; p++) put_numbers(&out, parts[p], sizes[p]);
        whole = end_save(target, &out, place);
    }
    return !target->error;
}
