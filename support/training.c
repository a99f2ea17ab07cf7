/* training.c: what happens around the steps of a run. Options and files are checked before the
 * first step. An interrupt, a full disk, a loss that is not finite or a lack of memory ends the
 * run; with --save, no finished step is lost.
 */
#define _XOPEN_SOURCE 700
#include "job.h"
#ifdef MICROGPT_DEBUG
#include "debugger/views.h"  // watch()
#endif

#define REDRAW_SECONDS 0.05
#define FLUSH_SECONDS 0.25  // a row of the log waits no longer

const char *data_name(const Options *o)
{
    if (!o->data) return "the shipped names";
    return strcmp(o->data, "-") == 0 ? "standard input" : o->data;
}

// Called once the documents are encoded.
void note_documents(const Run *run, size_t n)
{
    const Options *o = &run->job->o;
    size_t n_cut = 0, longest = 0;
    if (o->quiet) return;
    for (size_t i = 0; i < n; i++) {
        size_t length = run->docs.list[i].length;
        n_cut += length >= run->model.block_size;
        longest = length > longest ? length : longest;
    }
    if (run->tokenizer.uchars[run->docs.text[0]] == 0xfeff) {
        note("%s: begins with a byte-order mark, counted as a character; tail -c +4 removes it",
             data_name(o));
    }
    if (n_cut) {
        note("%s: %zu of %zu documents %s cut to the block of %zu; --block-size %zu keeps %s whole",
             data_name(o), n_cut, n, n_cut == 1 ? "is" : "are", run->model.block_size, longest + 1,
             n_cut == 1 ? "it" : "them");
    }
}

// Does this standard stream go to this file?
static bool is_stream(const char *name, int stream)
{
    struct stat info;
    return fstat(stream, &info) == 0 && is_file(name, &info);
}

// Opens what the run writes, and checks that no file is meant to be two things.
static bool begin_progress(Job *job)
{
    static const char two_things[] =
        "%s: one file cannot be two of --data, --save, --log, --resume, "
        "standard output and standard error";
    const Options *o = &job->o;
    const struct stat *data = &job->data_file;
    Progress *progress = &job->progress;
    set_up_progress(progress, o, job->run.model.steps_done);
    if (is_file(o->save, data) || same_file(o->save, o->log) || is_stream(o->save, STDOUT_FILENO) ||
        is_stream(o->save, STDERR_FILENO)) {
        return usage(two_things, o->save);
    }
    if (is_file(o->log, data) || same_file(o->log, o->resume) || is_stream(o->log, STDERR_FILENO)) {
        return usage(two_things, o->log);
    }
    if (o->save && !can_save(&progress->target, o, &job->run)) return false;
    if (o->log && !open_log(progress, o)) return false;
    if (same_file(o->save, o->log)) {  // two names of a file that was not there before
        unlink(progress->target.path);
        return usage(two_things, o->save);
    }
    progress->training = true;
    progress->saved = UINT64_MAX;
    running = 1;
    return true;
}

// Called once all checks have passed.
static void note_run(const Run *run)
{
    const Options *o = &run->job->o;
    const Target *target = &run->job->progress.target;
    uint64_t steps = run->config->steps;
    note_documents(run, run->docs.n);
    if (o->quiet) return;
    if (o->resume && run->model.steps_done == steps) {
        note("%s: this run has finished its %" PRIu64 " steps; --steps %" PRIu64 " continues it",
             o->resume, steps, steps + 1000);
    }
    if (target->keep) note("%s: replacing another run's model, kept as %s~", o->save, target->path);
}

bool begin_training(Run *run)
{
    Job *job = run->job;
    uint64_t holdout = run->config->holdout;
    size_t n = run->docs.n;
    if (job->o.resume && !resume_run(job)) return false;
    if (!new_batch(run)) return false;
    if (holdout >= n) {
        return usage("--holdout %" PRIu64 ": nothing is left to train on: there are %zu documents",
                     holdout, n);
    }
#ifdef MICROGPT_DEBUG
    watch(&run->model, &run->tokenizer);
#endif
    job->samples.numbered = true;
    if (!read_prompt(run, "--prompt", job->o.prompt) || !begin_progress(job)) return false;
    note_run(run);
    const uint32_t *uchars = run->tokenizer.uchars;
    if (holdout) return hold_out(job, (size_t)holdout, uchars);
    return !job->progress.show_bar || know_documents(job, n, 0, uchars);
}

// With --save, saves the run, unless this step is saved already. The log is flushed first: it never
// lags behind the model.
static bool save_run(Job *job)
{
    Progress *progress = &job->progress;
    uint64_t step = job->run.model.steps_done;
    flush_log(progress);
    if (!job->o.save || progress->saved == step) return true;
    if (!save_model(&progress->target, &job->o, &job->run)) return false;
    progress->saved = step;
    return true;
}

static bool has_new_steps(const Job *job)
{
    return job->progress.training && job->run.model.steps_done > job->progress.steps_before;
}

// Appends a word of a command line, quoted for a shell where it must be.
static void append_word(char *text, size_t room, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";
    const char *quote = !*word || word[strspn(word, plain)] ? "'" : "";
    size_t n = strlen(text);
    n += (size_t)snprintf(text + n, room - n, " %s", quote);
    for (; *word && n + 8 < room; word++) {
        n += (size_t)snprintf(text + n, room - n, *word == '\'' ? "'\\''" : "%c", *word);
    }
    snprintf(text + n, room - n, "%s", quote);
}

// Where the run is saved, and the command that goes on from there: this one, with --resume.
static const char *where_saved(const Job *job)
{
    static char text[MESSAGE_ROOM];
    const Options *o = &job->o;
    if (!o->save) return "not saved: --save was not given";
    snprintf(text, sizeof text, "saved in %s; to continue:", o->save);
    for (int i = 0; i < job->argc; i++) {
        if (strcmp(job->argv[i], "--") != 0) append_word(text, sizeof text, job->argv[i]);
    }
    if (o->resume && strcmp(o->resume, o->save) == 0) return text;
    append_word(text, sizeof text, "--resume");
    append_word(text, sizeof text, o->save);
    return text;
}

// The run ends early: for this reason or, if it is NULL, by a signal or because an output failed.
bool fail_stopped(Job *job, const char *reason)
{
    const Options *o = &job->o;
    char why[PATH_MAX + 256] = "";
    bool new_steps = has_new_steps(job);
    int status = reason ? FAILED : INTERRUPTED;
    if (reason && !new_steps) return fail("%s", reason);
    if (new_steps && !save_run(job)) return false;
    if (reason) {
        snprintf(why, sizeof why, "%s; ", reason);
    } else if (!interrupted) {
        if (standard_output.error && !o->save) return output_ok();
        const Output *log = job->progress.log, *failed = log && log->error ? log : &standard_output;
        const char *name = failed == log ? o->log : "standard output";
        snprintf(why, sizeof why, "%s: %s; ", name, strerror(failed->error));
        bool closed = failed == &standard_output && failed->error == EPIPE && dies_of_sigpipe;
        status = closed ? PIPE_CLOSED : FAILED;
    }
    return fail_as(status, "%sinterrupted after step %" PRIu64 " of %" PRIu64 "; %s", why,
                   job->run.model.steps_done, o->config.steps, where_saved(job));
}

// Called before Adam: if the loss is not finite, the parameters of the step before are still good.
bool check_loss(Run *run, uint64_t step, double loss)
{
    Job *job = run->job;
    const Model *model = &run->model;
    size_t n = (size_t)model->num_params;
    if (isfinite(loss)) return true;
    char saved[PATH_MAX + 64] = "";
    bool good = all_finite(model->params, n) && all_finite(model->m, n) && all_finite(model->v, n);
    if (job->o.save && good && has_new_steps(job)) {
        if (!save_run(job)) return false;
        snprintf(saved, sizeof saved, "; saved in %s, after step %" PRIu64 " of %" PRIu64,
                 job->o.save, model->steps_done, run->config->steps);
    }
    return fail("step %" PRIu64
                ": the loss is not finite (%s); a smaller --lr or --init-std may help%s",
                step + 1, isnan(loss) ? "not a number" : "infinite", saved);
}

static void update_progress(Progress *progress, uint64_t done)
{
    double now = seconds();
    if (progress->show_bar && now - progress->last_draw > REDRAW_SECONDS) {
        progress->last_draw = now;
        draw_bar(progress, done, now);
    }
    if (progress->log && now - progress->last_flush > FLUSH_SECONDS) {
        progress->last_flush = now;
        flush(progress->log);
    }
}

bool after_step(Run *run, uint64_t step, double loss)
{
    Job *job = run->job;
    Progress *progress = &job->progress;
    const Output *log = progress->log;
    uint64_t done = step + 1, save_every = job->o.save_every, steps = run->config->steps;
    char line_end = job->o.recipe == RECIPE_LESSON ? '\n' : '\r';
    if (progress->show_lines) {
        say("step %4" PRIu64 " / %4" PRIu64 " | loss %.4f%c", done, steps, loss, line_end);
    }
    if (log) log_step(progress, done, loss, learning_rate(run->config, step));
    if (progress->show_bar) add_to_curve(progress, step, loss);
    if (progress->show_bar || log) update_progress(progress, done);
    job->o.loss = loss;
    bool ends = interrupted || standard_output.error || (log && log->error);
    bool save = save_every && done % save_every == 0 && done < steps && !ends;
    if (save && !save_run(job)) return false;
    return !(ends || interrupted) || fail_stopped(job, NULL);
}

// ok: the last step is done; otherwise the run has failed or was interrupted.
static bool end_progress(Job *job, bool ok)
{
    Progress *progress = &job->progress;
    if (progress->show_bar) show("\r\033[J");
    double took = seconds() - progress->began;
    ok = ok && save_run(job);
    progress->training = false;
    ok = ok && (!interrupted || fail_stopped(job, NULL));
    if (ok) {
        ok = close_log(progress, &job->o);
    } else if (progress->log) {
        flush(progress->log);
    }
    if (progress->show_bar && ok) {
        draw_curve(progress, took);
        double n = progress->last_n;
        if (n > 0) show("mean loss of the last %.0f steps: %.4f\n", n, progress->last_sum / n);
    }
    return ok;
}

bool end_training(Run *run, bool trained)
{
    const Model *model = &run->model;
    const Options *o = &run->job->o;
    bool lesson = o->recipe == RECIPE_LESSON;
    const Documents *held_out = &run->job->held_out;
    size_t n_tokens;
    if (trained && !all_finite(model->params, (size_t)model->num_params)) {
        trained = fail("a parameter is no longer finite");
    }
    if (!end_progress(run->job, trained)) return false;
    if (held_out->n) {
        double loss = mean_loss(&run->model, held_out->list, held_out->n, &n_tokens, NULL, NULL);
        if (!output_ok()) return false;
        if (!isfinite(loss)) return fail("the loss of the documents held out is not finite");
        const char *new_line = run->job->progress.show_lines && !lesson ? "\n" : "";
        say("%sheld out: %zu docs, loss %.4f\n", new_line, held_out->n, loss);
    }
    const char *kind = lesson ? "" : " (new, hallucinated names)";
    if (!o->quiet || o->config.samples) say("\n--- inference%s ---\n", kind);
    return true;
}
