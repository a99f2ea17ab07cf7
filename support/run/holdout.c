/* holdout.c: documents that are not trained on. Their loss, measured now and then, tells learning
 * from memorizing. When it is measured, and on which documents, follows from counts alone: a
 * resumed run measures the same. No random number is drawn.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

enum { TIMES = 20, SAMPLE_DOCS = 500 };  // measurements in a run; documents of all but the last

// The last n_held documents are held out. Those that are also among the others do not count: they
// go to the end.
bool hold_out(Job *job, size_t n_held)
{
    Documents *docs = &job->run.docs, *held_out = &job->held_out;
    size_t n_trained = docs->n - n_held;
    *held_out = (Documents){.list = docs->list + n_trained};
    free(job->losses);
    job->losses = calloc(n_held, sizeof *job->losses);
    if (!job->losses) return no_memory();
    if (!know_documents(job, n_trained, 0)) return false;
    for (size_t i = n_trained; i < docs->n; i++) {
        Document doc = docs->list[i];
        if (is_known(&job->samples, &doc, false)) continue;
        docs->list[i] = held_out->list[held_out->n];
        held_out->list[held_out->n++] = doc;
    }
    if (held_out->n < n_held && !job->o.quiet) {
        note("%zu of the %zu documents held out are also in the training data and are left out",
             n_held - held_out->n, n_held);
    }
    return true;
}

bool is_measured_after(const Job *job, uint64_t done)
{
    uint64_t steps = job->o.config.steps;
    return done && job->held_out.n && done * TIMES / steps > (done - 1) * TIMES / steps;
}

// After the last step the loss is that of all documents held out, otherwise that of a sample: they
// have been shuffled. false: it was interrupted, or the loss is not finite.
bool measure_held_out(Run *run)
{
    Job *job = run->job;
    Progress *progress = &job->progress;
    uint64_t done = run->model.steps_done;
    size_t n = job->held_out.n, n_tokens;
    if (done < run->config->steps && n > SAMPLE_DOCS) n = SAMPLE_DOCS;
    const Document *docs = job->held_out.list;
    double *each = job->losses;
    double loss = mean_loss(&run->model, docs, n, &n_tokens, NULL, each);
    if (!isfinite(loss)) return false;
    progress->held_error = error_of_mean(&run->model, docs, n, each);
    progress->measured = done;
    add_held_out(progress, done, loss);
    return true;
}

// Has the loss risen since it was lowest, by more than luck explains? The lowest is that of a
// sample, so its standard error counts.
static void note_lowest(Run *run)
{
    const Job *job = run->job;
    const Progress *progress = &job->progress;
    const Documents *docs = &run->docs;
    size_t n = job->held_out.n, n_trained = docs->n - (size_t)run->config->holdout, n_tokens;
    size_t n_sample = n_trained < SAMPLE_DOCS ? n_trained : SAMPLE_DOCS;
    double error = progress->held_error * (n > SAMPLE_DOCS ? sqrt((double)n / SAMPLE_DOCS) : 1);
    double trained = mean_loss(&run->model, docs->list, n_sample, &n_tokens, NULL, NULL);
    double rise = progress->held_loss - progress->lowest, gap = progress->held_loss - trained;
    const char *side = gap < 0 ? "below" : "above";
    uint64_t step = progress->lowest_step;
    if (isnan(trained)) return;  // interrupted
    if (rise > 2 * error) {
        note("held out: lowest at step %" PRIu64
             " (loss %.2f); since then it has risen by %.2f, to "
             "%.2f %s the training loss: the model memorizes; try --steps %" PRIu64,
             step, progress->lowest, rise, fabs(gap), side, step);
    } else if (rise > 0 && n > 1) {
        note("held out: %.2f %s the training loss; lowest at step %" PRIu64 ", but within two "
             "standard errors (%.2f) of the last",
             fabs(gap), side, step, 2 * error);
    } else {
        note("held out: %.2f %s the training loss%s", fabs(gap), side,
             rise > 0 ? "; one document is too few to say more" : "; lowest at the end");
    }
}

// After the run: the loss of all documents held out.
bool say_held_out(Run *run, const char *new_line)
{
    const Job *job = run->job;
    uint64_t holdout = run->config->holdout;
    bool done = job->progress.measured == run->model.steps_done;
    if (!holdout) return true;
    if (!job->held_out.n) {
        say("%sheld out: 0 docs: all %" PRIu64 " are also training documents\n", new_line, holdout);
        return true;
    }
    if (!done && !measure_held_out(run)) {
        return output_ok() && fail("the loss of the documents held out is not finite");
    }
    say("%sheld out: %zu docs, loss %.4f\n", new_line, job->held_out.n, job->progress.held_loss);
    if (!job->o.quiet) note_lowest(run);
    return output_ok();
}
