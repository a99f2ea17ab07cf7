/* commands.c: what each command does, from its options to its exit status; and its Job. */
#define _XOPEN_SOURCE 700
#include "command_line.h"
#include "../base/signals.h"
#include "job.h"
#include "../base/processors.h"
#include "../engine/threads.h"

static Job the_job;  // too large for small stacks

static void free_job(Job *job)
{
    Run *run = &job->run;
    close_checkpoint(&job->checkpoint);
    free(run->docs.list);
    free(run->docs.text);
    free_tokenizer(&run->tokenizer);
    free_model(&run->model);
    free_batch(&job->batch);
    free(job->samples.prompt.tokens);
    free(job->samples.known);
    free(job->maps);
    free(job->stats);
    free(job->losses);
    free(job->page.model);
    free(job->page.log.list);
    free(job->page.log.held_out);
    set_threads(1, 1);
}

// With --save, the steps before this one are saved.
void out_of_memory(void)
{
    Job *job = &the_job;
    end_alone();
    fail_stopped(job, "not enough memory");
    if (job->progress.show_bar) show("\r\033[J");
    exit(report(false));
}

// The documents that training kept out, if these are its documents, become a list of their own, in
// their order.
static bool find_held_out(Job *job)
{
    const Config *config = &job->checkpoint.options.config;
    if (!config->holdout || config->holdout >= job->run.docs.n || !has_its_documents(job)) {
        return true;
    }
    random_seed(&job->rng, config->seed);
    shuffle(&job->run.docs, &job->rng);
    return hold_out(job, (size_t)config->holdout);
}

enum { DRAWN = 1000 };  // documents, where --docs does not take the first

// Draws distinct documents to measure: of those that training kept out, if there are some.
static bool draw_documents(Job *job)
{
    const Config *config = &job->checkpoint.options.config;
    Documents *pool = &job->run.docs;
    if (!find_held_out(job)) return false;
    if (job->held_out.n) pool = &job->held_out;
    if (!was_given(&job->o, CONFIG(seed))) job->o.config.seed = config->seed;
    random_seed(&job->rng, job->o.config.seed);
    shuffle(pool, &job->rng);
    job->measured = (Documents){.list = pool->list, .n = keep_distinct(job, pool, DRAWN)};
    return job->measured.n > 0;
}

// Measures the documents that training kept out, in their order.
static bool select_held_out(Job *job)
{
    const char *path = job->o.arguments[0];
    uint64_t n = job->checkpoint.options.config.holdout;
    if (!n) return usage("--holdout: %s was trained without --holdout", path);
    if (!find_held_out(job)) return false;
    if (!job->held_out.list) {
        return usage("--holdout: %s: not the documents that %s was trained on", data_name(&job->o),
                     path);
    }
    job->measured = job->held_out;
    return job->measured.n ||
           fail("--holdout: nothing to measure: all %" PRIu64 " documents held out are also in "
                "the training data",
                n);
}

// A model and the documents to measure it by: all of them, at most --docs N, or some of them.
static bool load_with_documents(Job *job, bool draw)
{
    const Options *o = &job->o;
    if (!read_texts(job) || !load_model(job, o->arguments[0]) || !check_source(job)) return false;
    job->measured = job->run.docs;
    if (o->only_held_out && !select_held_out(job)) return false;
    if (draw && !draw_documents(job)) return false;
    if (o->docs && o->docs < job->measured.n) job->measured.n = (size_t)o->docs;
    bool most = o->command->bit == EVAL && job->checkpoint.options.config.holdout;
    if (most && !o->only_held_out && !o->quiet && has_its_documents(job)) {
        note("%s was trained on most of these documents; --holdout takes only the others",
             o->arguments[0]);
    }
    return encode_documents(job, &job->measured);
}

// The story. A resumed run takes its options from the file before it begins.
static bool run_train(Job *job)
{
    const Options *o = &job->o;
    bool ready = !o->resume || (open_checkpoint(&job->checkpoint, o->resume) &&
                                take_options(&job->o, &job->checkpoint));
    if (!ready || !microgpt(&job->run)) return false;
    if (job->progress.show_bar && o->config.samples) {
        show("samples that are in the training data: %" PRIu64 " of %" PRIu64 "\n",
             job->samples.n_known, o->config.samples);
    }
    return true;
}

// The documents in the model's tokens. Those with other characters are none of its samples.
static bool know_data(Job *job)
{
    Documents *docs = &job->run.docs;
    size_t n = 0;
    for (size_t i = 0; i < docs->n; i++) {
        Document doc = docs->list[i];
        size_t encoded = encode(&job->run.tokenizer, doc.tokens, doc.length);
        if (encoded == doc.length) docs->list[n++] = doc;
    }
    return know_documents(job, n, job->o.config.samples);
}

// Unless another seed is given, the random numbers go on from training: the names are those that
// training printed.
static bool run_sample(Job *job)
{
    const Options *o = &job->o;
    const Checkpoint *checkpoint = &job->checkpoint;
    Run *run = &job->run;
    if (!load_model(job, o->arguments[0])) return false;
    if (!read_prompt(run, "--prompt", o->prompt)) return false;
    if (o->new && !(read_texts(job) && check_source(job))) return false;
    bool says = find_metadata(&checkpoint->header, "train.fingerprint");
    if (o->new && o->data && says && !o->quiet && !has_its_documents(job)) {
        note("%s: not the documents that %s was trained on; samples may repeat those", data_name(o),
             o->arguments[0]);
    }
    if (o->new && !know_data(job)) return false;
    uint64_t seed = checkpoint->options.config.seed;
    bool same = !was_given(o, CONFIG(seed)) || o->config.seed == seed;
    random_seed(&job->rng, o->config.seed);
    if (checkpoint->has_random && same) job->rng = checkpoint->random;
    return infer(run);
}

// How surprised a model is by documents, token by token.
static bool run_eval(Job *job)
{
    const Documents *docs = &job->measured;
    size_t n_tokens = 0;
    if (!load_with_documents(job, false)) return false;
    double loss = mean_loss(&job->run.model, docs->list, docs->n, &n_tokens, NULL, NULL);
    if (!isfinite(exp(loss))) {
        return fail("%s: the %s is not finite", job->o.arguments[0],
                    isfinite(loss) ? "perplexity" : "loss");
    }
    int digits = isatty(STDOUT_FILENO) ? 6 : 17;  // people want few, programs all
    say("docs %zu\ntokens %zu\nloss %.*g\n", docs->n, n_tokens, digits, loss);
    say("bits per character %.*g\nperplexity %.*g\n", digits, loss / log(2), digits, exp(loss));
    return true;
}

static bool run_heads(Job *job)
{
    const Options *o = &job->o;
    if (o->votes && o->n_arguments < 2) return usage("--votes needs a word");
    bool seed = was_given(o, CONFIG(seed));
    if (o->docs && seed) return usage("--docs takes the first documents, --seed draws: not both");
    if (o->n_arguments < 2) return load_with_documents(job, !o->docs) && show_heads(job);
    if (o->data || o->docs || seed) {
        return usage("--data, --docs and --seed do not apply to a single word");
    }
    return load_model(job, o->arguments[0]) &&
           read_prompt(&job->run, "the word", o->arguments[1]) && show_word(job);
}

// The page gets documents if --data is given, or if the model was trained on the shipped names.
// They are read first, as for eval: with room for the longest on the tape, the losses are the same.
static bool run_page(Job *job)
{
    const char *path = job->o.arguments[0];
    if (isatty(STDOUT_FILENO)) {
        return usage("page: this prints an HTML file; redirect it: microgpt page %s > "
                     "page.html",
                     path);
    }
    return read_texts(job) && load_model(job, path) && show_page(job);
}

static bool run_check(Job *job) { return check_everything(&job->o); }

bool read_command_line(int argc, char **argv)
{
    Job *job = &the_job;
    start_output();
    job->argc = argc;
    job->argv = argv;
    job->run = (Run){.config = &job->o.config, .rng = &job->rng, .job = job};
    return parse_command_line(&job->o, argc, argv);
}

bool run_command(void)
{
    static bool (*const runs[])(Job * job) = {
        [TRAIN] = run_train, [SAMPLE] = run_sample, [EVAL] = run_eval,
        [HEADS] = run_heads, [PAGE] = run_page,     [CHECK] = run_check,
    };
    Job *job = &the_job;
    const Options *o = &job->o;
    unsigned bit = o->command->bit;
    if (o->help) print_help(o->command);
    if (o->version && !o->help) say("microgpt %s\n", VERSION);
    if (o->version || o->help) return true;
    if (bit == TRAIN) handle_signals();
    if (bit & (TRAIN | EVAL | HEADS)) {
        size_t n = processors();
        set_threads(o->threads ? (size_t)o->threads : n, n);
    }
    bool computes = (bit & (TRAIN | SAMPLE | EVAL | HEADS | PAGE)) != 0;
    bool ok = (!computes || prove(o)) && runs[bit](job);
    if (missing_threads && !o->quiet) {
        note("%zu of %zu threads could not be started; the result is the same", missing_threads,
             missing_threads + n_threads);
    }
    free_job(job);
    return ok;
}
