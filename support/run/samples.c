/* samples.c: chooses the tokens of a sample, and prints it. With --new, a sample that is known or
 * empty is neither printed nor counted.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

enum { MAX_TRIES = 1000 };  // known samples in a row, before --new gives up

// The tokens of a text that the command line calls `what`. With the start they must fit the block.
bool read_prompt(Run *run, const char *what, const char *text)
{
    Document *prompt = &run->job->samples.prompt;
    size_t n = text ? strlen(text) : 0, used = 0, block_size = run->model.block_size;
    *prompt = (Document){.tokens = malloc((n + 1) * sizeof *prompt->tokens)};
    if (!prompt->tokens) return no_memory();
    for (size_t i = 0; i < n; i += used) {
        int32_t code = decode_utf8((const unsigned char *)text + i, n - i, &used);
        if (code < 0) return usage("%s: not valid UTF-8", what);
        prompt->tokens[prompt->length] = (uint32_t)code;
        if (encode(&run->tokenizer, prompt->tokens + prompt->length, 1) == 0) {
            return usage("%s %s: the model does not know the character %.*s", what, text, (int)used,
                         text + i);
        }
        prompt->length++;
    }
    return prompt->length < block_size ||
           usage("%s %s: too long: the model's block has room for %zu characters", what, text,
                 block_size - 1);
}

// The set is a table of hashes, at most half full.
bool is_known(Samples *samples, const Document *text, bool add)
{
    uint64_t hash = hash_text(FNV_START, text);
    if (!hash) hash = 1;  // 0 is a free slot
    size_t last = samples->n_slots - 1, i = (size_t)hash & last;
    while (samples->known[i] && samples->known[i] != hash) i = (i + 1) & last;
    bool known = samples->known[i];
    if (add) samples->known[i] = hash;
    return known;
}

// Puts the first n documents into the set, with room for more texts.
bool know_documents(Job *job, size_t n, uint64_t more)
{
    Samples *samples = &job->samples;
    double texts = (double)n + (double)more;
    if (!fits_memory(4 * sizeof *samples->known * texts)) return no_memory();
    for (samples->n_slots = 2; (double)samples->n_slots < 2 * texts;) samples->n_slots *= 2;
    free(samples->known);
    samples->known = calloc(samples->n_slots, sizeof *samples->known);
    if (!samples->known) return no_memory();
    for (size_t i = 0; i < n; i++) is_known(samples, &job->run.docs.list[i], true);
    return true;
}

// Moves the documents that differ from all before them to the front, until there are n of them.
// Returns how many there are.
size_t keep_distinct(Job *job, Documents *docs, size_t n)
{
    size_t kept = 0;
    if (!know_documents(job, 0, docs->n)) return 0;
    for (size_t i = 0; i < docs->n && kept < n; i++) {
        Document doc = docs->list[i];
        if (is_known(&job->samples, &doc, true)) continue;
        docs->list[i] = docs->list[kept];
        docs->list[kept++] = doc;
    }
    return kept;
}

// If the probabilities are not finite, the sample ends, and after_sample() reports it.
size_t choose_token(Run *run, const double *probs, size_t pos_id)
{
    Samples *samples = &run->job->samples;
    size_t vocab_size = run->model.vocab_size;
    if (!all_finite(probs, vocab_size)) {
        samples->failed = true;
        return run->tokenizer.BOS;
    }
    if (pos_id < samples->prompt.length) return samples->prompt.tokens[pos_id];
    if (run->job->o.greedy) return argmax(probs, vocab_size);
    return random_choice(run->rng, probs, vocab_size);
}

static void end_line(Samples *samples)
{
    say("\n");
    samples->column = 0;
}

// The name alone. People see no control characters.
static void say_name(const Run *run, size_t length)
{
    for (size_t k = 0; k < length; k++) {
        char bytes[4];
        uint32_t code = run->tokenizer.uchars[run->model.tokens[k]];
        bool hidden = standard_output.by_line && is_control(code);  // people are reading
        say("%.*s", (int)encode_utf8(hidden ? '?' : code, bytes), bytes);
    }
}

enum { CELL = 19 };  // columns of a terminal: four cells fit into 80

// After training, samples are numbered. On a terminal they stand side by side, each in as many
// cells as it takes.
static void say_sample(const Run *run, size_t length, uint64_t number)
{
    Samples *samples = &run->job->samples;
    bool side_by_side = samples->numbered && standard_output.by_line;
    if (side_by_side) {
        char text[32];
        size_t used = (size_t)snprintf(text, sizeof text, "%2" PRIu64 " ", number) + length;
        size_t column = samples->column, start = column ? (column / CELL + 1) * CELL : 0;
        bool breaks = start && start + used > terminal_of(STDOUT_FILENO).columns;
        say("%s%*s%s", breaks ? "\n" : "", breaks ? 0 : (int)(start - column), "", text);
        samples->column = used + (breaks ? 0 : start);
    } else if (samples->numbered) {
        say("sample %2" PRIu64 ": ", number);
    }
    say_name(run, length);
    if (side_by_side && number < run->config->samples) {
        flush(&standard_output);
    } else {
        end_line(samples);
    }
}

bool after_sample(Run *run, size_t length, uint64_t *done)
{
    Samples *samples = &run->job->samples;
    const Document name = {.tokens = run->model.tokens, .length = length};
    bool only_new = run->job->o.new;
    bool known = only_new && length == 0;
    samples->n_drawn++;
    if (samples->failed) {
        if (samples->column) end_line(samples);
        return fail("sample %" PRIu64 ": the scores are not finite; a smaller --lr may help",
                    samples->n_drawn);
    }
    if (!known && samples->known) known = is_known(samples, &name, only_new);
    samples->n_known += known;
    samples->known_in_a_row = known ? samples->known_in_a_row + 1 : 0;
    if (known && only_new) {
        return samples->known_in_a_row < MAX_TRIES ||
               fail("no more new names: %" PRIu64 " of %" PRIu64 " found, and then none in %d "
                    "samples; a higher --temperature may help",
                    *done, run->config->samples, MAX_TRIES);
    }
    ++*done;
    say_sample(run, length, *done);
    bool ok = output_ok();
    if (!ok && samples->column) end_line(samples);
    return ok;
}
