/* training.c: what happens around the steps of a run. Options and files are checked before the
 * first step. An interrupt, a full disk, a loss that is not finite or a lack of memory ends the
 * run; with --save, no finished step is lost.
 */
#define _XOPEN_SOURCE 700
#include "../base/signals.h"
#include "command_line.h"
#include "job.h"
#ifdef MICROGPT_DEBUG
#include "../debugger/views.h"  // watch()
#endif

#define REDRAW_SECONDS 0.05
#define FLUSH_SECONDS 0.25  // a row of the log waits no longer

enum { MANY_PASSES = 20 };  // with more, and no weight decay, most lists are memorized

// Checks that no file is meant to be two things. What --save and --log write, and FILE~ of each,
// are nothing else. Two may be one: a model that is resumed and saved; the log and standard output.
static bool check_files(const Job *job)
{
    enum { SAVE, KEPT_MODEL, LOG, KEPT_LOG, N_WRITTEN };
    const Options *o = &job->o;
    const char *const names[] = {o->save, o->save, o->log, o->log};
    char written[N_WRITTEN][PATH_MAX + 1] = {""};
    struct stat out = {0}, err = {0};
    fstat(STDOUT_FILENO, &out);
    fstat(STDERR_FILENO, &err);
    for (int i = 0; i < N_WRITTEN; i++) {
        bool kept = i == KEPT_MODEL || i == KEPT_LOG;
        char path[PATH_MAX], *name = written[i];
        if (!names[i]) continue;
        snprintf(name, PATH_MAX, "%s", kept && realpath(names[i], path) ? path : names[i]);
        if (kept) strcat(name, "~");
        bool twice = is_file(name, &job->data_file) || is_file(name, &err) ||
                     (i != LOG && is_file(name, &out)) || (i != SAVE && same_file(name, o->resume));
        for (int k = 0; k < i; k++) twice = twice || same_file(name, written[k]);
        if (twice) {
            return usage("%s: one file cannot be two of --data, --save and its FILE~, --log and "
                         "its FILE~, --resume, standard output and standard error",
                         name);
        }
    }
    return true;
}

static bool begin_progress(Job *job)
{
    const Options *o = &job->o;
    set_up_progress(&job->progress, o, job->run.model.steps_done);
    if (!check_files(job)) return false;
    if (o->save && !can_save(&job->save.target, job)) return false;
    if (o->log && !open_log(job)) return false;
    if (o->log && !check_files(job)) {  // a link led the log to a name that was free
        char path[PATH_MAX];
        struct stat info;
        if (realpath(o->log, path) && stat(path, &info) == 0 && !info.st_size) unlink(path);
        return false;
    }
    job->save.training = true;
    job->save.saved = UINT64_MAX;
    running = 1;
    return true;
}

// Called once all checks have passed.
static void note_run(const Run *run)
{
    const Options *o = &run->job->o;
    const Target *target = &run->job->save.target;
    uint64_t steps = run->config->steps;
    note_documents(run, &run->docs);
    if (o->quiet) return;
    bool many = o->data && run->model.steps_done < steps && passes(run) > MANY_PASSES;
    if (many && !run->config->holdout && run->config->weight_decay <= 0) {
        note("%s; that often, a model memorizes them: try fewer --steps, or --holdout N to see",
             passes_text(run));
    }
    if (o->resume && run->model.steps_done == steps) {
        note("%s: this run has finished its %" PRIu64 " steps; --steps %" PRIu64 " continues it",
             o->resume, steps, steps + 1000);
    }
    if (target->keeps) note("%s: replacing another run's model, kept as %s", o->save, target->kept);
    const char *kept = run->job->log.kept;
    if (kept) note("%s: replacing another run's log, kept as %s", o->log, kept);
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
    watch(run);
#endif
    job->samples.numbered = true;
    if (!read_prompt(run, "--prompt", job->o.prompt) || !begin_progress(job)) return false;
    note_run(run);
    if (holdout && !hold_out(job, (size_t)holdout)) return false;
    if (!holdout && job->progress.show_bar && !know_documents(job, n, 0)) return false;
    if (job->log.row_is_open) {
        if (is_measured_after(job, run->model.steps_done)) measure_held_out(run);
        end_row(job, run->model.steps_done);
    }
    return true;
}

// With --save, saves the run, unless this step is saved already. The log is flushed first: it never
// lags behind the model.
static bool save_run(Job *job)
{
    Save *save = &job->save;
    uint64_t step = job->run.model.steps_done;
    flush_log(job);
    if (!job->o.save || save->saved == step) return true;
    if (!save_model(&save->target, &job->o, &job->run)) return false;
    save->saved = step;
    if (save->target.surprised && !job->o.quiet) {
        if (job->progress.show_bar) show("\r\033[J");
        note("%s: another file was there at the end, kept as %s", job->o.save, save->target.kept);
    }
    return true;
}

static bool has_new_steps(const Job *job)
{
    return job->save.training && job->run.model.steps_done > job->progress.steps_before;
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
        const Output *log = job->log.out, *failed = log && log->error ? log : &standard_output;
        const char *name = failed == log ? o->log : "standard output";
        snprintf(why, sizeof why, "%s: %s; ", name, strerror(failed->error));
        bool closed = failed == &standard_output && failed->error == EPIPE && dies_of_sigpipe;
        status = closed ? PIPE_CLOSED : FAILED;
    }
    set_failure(status, "%sinterrupted after step %" PRIu64 " of %" PRIu64 "; %s%s%s", why,
                job->run.model.steps_done, o->config.steps,
                o->save ? "saved in " : "not saved: --save was not given", o->save ? o->save : "",
                o->save ? "; to continue:" : "");
    if (o->save) failure.command = command_to_continue(o, job->argc, job->argv);
    return false;
}

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

static void update_progress(Job *job, uint64_t done)
{
    Progress *progress = &job->progress;
    double now = seconds();
    if (progress->show_bar && now - progress->last_draw > REDRAW_SECONDS) {
        progress->last_draw = now;
        draw_bar(progress, done, now);
    }
    if (job->log.out && now - progress->last_flush > FLUSH_SECONDS) {
        progress->last_flush = now;
        flush(job->log.out);
    }
}

// Has a signal come, or does an output take no more?
static bool must_stop(const Job *job)
{
    return interrupted || standard_output.error || (job->log.out && job->log.out->error);
}

bool after_step(Run *run, uint64_t step, double loss)
{
    Job *job = run->job;
    Progress *progress = &job->progress;
    bool logs = job->log.out;
    uint64_t done = step + 1, save_every = job->o.save_every, steps = run->config->steps;
    char line_end = job->o.recipe == RECIPE_LESSON ? '\n' : '\r';
    if (progress->show_lines) {
        say("step %4" PRIu64 " / %4" PRIu64 " | loss %.4f%c", done, steps, loss, line_end);
    }
    if (is_measured_after(job, done)) measure_held_out(run);
    if (logs) log_step(job, done, loss, learning_rate(run->config, step));
    if (progress->show_bar) add_to_curve(progress, step, loss);
    job->o.loss = loss;
    bool stop = must_stop(job);  // saving comes before a slow terminal
    if (!stop && (progress->show_bar || logs)) update_progress(job, done);
    bool save = save_every && done % save_every == 0 && done < steps && !stop;
    if (save && !save_run(job)) return false;
    return !(stop || must_stop(job)) || fail_stopped(job, NULL);
}

// ok: the last step is done; otherwise the run has failed or was interrupted.
static bool end_progress(Job *job, bool ok)
{
    Progress *progress = &job->progress;
    double took = seconds() - progress->began;
    ok = ok && save_run(job);
    job->save.training = false;
    ok = ok && (!interrupted || fail_stopped(job, NULL));
    if (progress->show_bar) show("\r\033[J");
    if (ok) {
        ok = close_log(job);
    } else if (job->log.out) {
        flush(job->log.out);
    }
    if (progress->show_bar && ok) {
        draw_curve(progress, took);
        double n = progress->last_n;
        if (n > 0) show("mean loss of the last %.0f steps: %.4f\n", n, progress->last_sum / n);
        show("%s\n", passes_text(&job->run));
    }
    return ok;
}

bool end_training(Run *run, bool trained)
{
    const Model *model = &run->model;
    const Options *o = &run->job->o;
    bool lesson = o->recipe == RECIPE_LESSON;
    if (trained && !all_finite(model->params, (size_t)model->num_params)) {
        trained = fail("a parameter is no longer finite");
    }
    if (!end_progress(run->job, trained)) return false;
    const char *new_line = run->job->progress.show_lines && !lesson ? "\n" : "";
    if (!output_ok() || !say_held_out(run, new_line)) return false;
    const char *kind = lesson ? "" : " (new, hallucinated names)";
    if (!o->quiet || o->config.samples) say("\n--- inference%s ---\n", kind);
    return true;
}
