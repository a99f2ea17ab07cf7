/* log.c: the log of a run, a CSV file with the step, loss and learning rate of every step, in full
 * precision. With documents held out, a fourth column has their loss where it was measured. A
 * resumed run continues its own log. Another run's log is kept as FILE~, and a file that is not a
 * log is never overwritten.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

#include <fcntl.h>

#define LOG_HEADING "step,loss,lr"
#define HELD_HEADING ",held_out"

// The decimal number after a comma, and what is after it. NAN: there is none.
static double read_field(char **at)
{
    size_t n = **at == ',' ? strspn(*at + 1, "0123456789.e+-") : 0;
    char *end = *at;
    double number = n ? strtod(*at + 1, &end) : NAN;
    bool whole = n && end == *at + 1 + n;
    *at = end;
    return whole ? number : NAN;
}

// The heading, with or without the last column. *end becomes the offset after it.
static bool read_heading(Losses *log, const char *text, const char *name, size_t *end)
{
    size_t n = strlen(LOG_HEADING), more = strlen(HELD_HEADING);
    bool ok = strncmp(text, LOG_HEADING, n) == 0;
    log->has_held_out = ok && strncmp(text + n, HELD_HEADING, more) == 0;
    *end = n + (log->has_held_out ? more : 0) + 1;
    return (ok && text[*end - 1] == '\n') ||
           fail("%s: not a log of a run: it does not begin with " LOG_HEADING, name);
}

// Adds a row: what is after its step, up to `newline`.
static bool read_row(Losses *log, char *at, const char *newline)
{
    double loss = read_field(&at), lr = read_field(&at), held_out = NAN;
    bool empty = log->has_held_out && at[0] == ',' && at + 1 == newline;
    if (log->has_held_out && !empty) held_out = read_field(&at);
    if (!isfinite(loss) || !isfinite(lr) || at + empty != newline) return false;
    if (log->has_held_out && !empty && !isfinite(held_out)) return false;
    log->held_out[log->n] = held_out;
    log->list[log->n++] = loss;
    return true;
}

static void free_losses(Losses *log)
{
    free(log->list);
    free(log->held_out);
}

// Reads the rows of an open log, up to step `last`. The steps must follow each other; the last line
// may be incomplete. *end becomes the offset after the rows.
static bool read_rows(Losses *log, int file, const char *name, uint64_t last, size_t *end)
{
    unsigned char *text = NULL, *newline;
    size_t n = 0;
    bool ok = read_all(file, &text, &n, name) && read_heading(log, (char *)text, name, end);
    if (ok) log->list = calloc(n / 4 + 1, sizeof *log->list);  // a row takes four bytes or more
    if (ok) log->held_out = calloc(n / 4 + 1, sizeof *log->held_out);
    if (ok && !(log->list && log->held_out)) ok = no_memory();
    while (ok && (newline = memchr(text + *end, '\n', n - *end))) {
        char *at = (char *)text + *end;
        uint64_t step = *at >= '0' && *at <= '9' ? strtoull(at, &at, 10) : 0;
        if (log->n == 0) log->first = step;
        if (step > last) break;
        ok = (step && step == log->first + log->n && read_row(log, at, (char *)newline)) ||
             fail("%s:%zu: not the step,loss,lr of the next step", name, log->n + 2);
        *end = (size_t)(newline - text) + 1;
    }
    free(text);
    return ok;
}

// Reads a whole log.
static bool read_log(Losses *log, const char *name)
{
    size_t end;
    int file = open_file(name, O_RDONLY);
    if (file < 0) return fail_errno(name);
    bool ok = read_rows(log, file, name, UINT64_MAX, &end);
    close(file);
    return ok;
}

// Does the log belong to the run, up to this step? Its last loss must be that in the model file;
// older model files have none. A log without rows, or a run without steps, has nothing to lose.
static bool belongs(const Losses *log, uint64_t done, double loss)
{
    if (!done || !log->first) return true;
    if (!log->n || log->first + log->n - 1 != done) return false;
    double last = log->list[log->n - 1];
    return !(loss > 0) || !(last < loss || last > loss);
}

// Continues after the last step of the model file. Later rows are cut off, as their steps are done
// again. Earlier ones go into the curve. If an interrupt left the last row without a loss held out,
// it stays open.
static bool continue_log(Job *job, const Losses *log, size_t end)
{
    const Options *o = &job->o;
    Progress *progress = &job->progress;
    uint64_t done = progress->steps_before;
    int file = job->log.out->file;
    if (!belongs(log, done, o->loss)) {
        return fail("%s: not the log of the run in %s, up to step %" PRIu64
                    "; give another --log FILE",
                    o->log, o->resume, done);
    }
    if (log->n) progress->curve_start = log->first - 1;
    for (size_t i = 0; i < log->n; i++) {
        uint64_t step = log->first - 1 + i;
        if (progress->show_bar) add_to_curve(progress, step, log->list[i]);
        if (isfinite(log->held_out[i])) add_held_out(progress, step + 1, log->held_out[i]);
    }
    job->log.has_held_out = log->has_held_out;
    job->log.row_is_open = log->n && log->has_held_out && !isfinite(log->held_out[log->n - 1]);
    end -= job->log.row_is_open;
    bool cut = ftruncate(file, (off_t)end) == 0 && lseek(file, (off_t)end, SEEK_SET) >= 0;
    return cut || fail_errno(o->log);
}

// Gives another run's log the name FILE~, and opens a new one. FILE~ must be a log, or not there.
static bool keep_log(Log *log, const char *name)
{
    static char kept[PATH_MAX + 2];
    char path[PATH_MAX];
    Losses before = {0};
    if (!realpath(name, path)) return fail_errno(name);
    snprintf(kept, sizeof kept, "%s~", path);
    bool ok = (access(kept, F_OK) < 0 && errno == ENOENT) || read_log(&before, kept);
    free_losses(&before);
    if (!ok) return false;
    if (rename(path, kept) < 0) return fail_errno(kept);
    int file = open_file(path, O_WRONLY | O_CREAT);
    if (file < 0) {
        set_failure(FAILED, "%s: %s", name, strerror(errno));
        rename(kept, path);
        return false;
    }
    struct stat old;
    if (fstat(log->out->file, &old) == 0) fchmod(file, old.st_mode & 0777);
    close(log->out->file);
    log->out->file = file;
    log->kept = kept;
    return true;
}

// A log on a disk is locked: two runs cannot write it at once.
static bool lock_log(const Output *log, const char *name)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat info;
    if (fstat(log->file, &info) < 0) return fail_errno(name);
    if (!S_ISREG(info.st_mode)) return true;
    bool locked = fcntl(log->file, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
    return (locked && is_same(name, &info)) || fail("%s: another run is writing to it", name);
}

static void put_heading(const Log *log)
{
    put(log->out, LOG_HEADING "%s\n", log->has_held_out ? HELD_HEADING : "");
}

bool open_log(Job *job)
{
    static Output out;
    Log *log = &job->log;
    const char *name = job->o.log;
    uint64_t done = job->progress.steps_before;
    struct stat info;
    *log = (Log){.out = &standard_output, .has_held_out = job->o.config.holdout};
    if (fstat(STDOUT_FILENO, &info) == 0 && is_same(name, &info)) return true;
    bool old = stat(name, &info) == 0 && S_ISREG(info.st_mode);
    log->out = &out;
    out.file = open_file(name, old ? O_RDWR : O_WRONLY | O_CREAT);
    if (out.file < 0) return fail_errno(name);
    if (!lock_log(&out, name)) return false;
    if (old && fstat(out.file, &info) == 0 && info.st_size > 0) {
        Losses losses = {0};
        size_t end;
        bool ok = read_rows(&losses, out.file, name, done, &end);
        bool other = ok && !done && losses.first;
        if (ok && !other) ok = continue_log(job, &losses, end);
        free_losses(&losses);
        if (!ok || !other) return ok;
        if (!keep_log(log, name) || !lock_log(&out, name)) return false;
    }
    put_heading(log);
    return true;
}

// The last column of a row: the loss held out, if it was measured after that step.
void end_row(Job *job, uint64_t done)
{
    const Progress *progress = &job->progress;
    if (progress->measured == done) put(job->log.out, "%.17g", progress->held_loss);
    put(job->log.out, "\n");
}

void log_step(Job *job, uint64_t done, double loss, double lr)
{
    const Log *log = &job->log;
    if (log->out == &standard_output && done == job->progress.steps_before + 1) put_heading(log);
    put(log->out, "%" PRIu64 ",%.17g,%.17g%s", done, loss, lr, log->has_held_out ? "," : "\n");
    if (log->has_held_out) end_row(job, done);
}

// Flushes to the disk, if the log is on one.
void flush_log(Job *job)
{
    Output *out = job->log.out;
    if (out) flush(out);
    if (!out || out == &standard_output || fsync(out->file) == 0) return;
    if (!out->error && errno != EINVAL && errno != EINTR) out->error = errno;
}

bool close_log(Job *job)
{
    Output *out = job->log.out;
    if (!out) return true;
    flush(out);
    if (out != &standard_output && close(out->file) < 0 && !out->error) out->error = errno;
    return !out->error || fail("%s: %s", job->o.log, strerror(out->error));
}

// The sum must be finite: the page shows means.
bool read_losses(Losses *losses, const char *name)
{
    double sum = 0;
    if (!read_log(losses, name)) return false;
    for (size_t i = 0; i < losses->n; i++) sum += fabs(losses->list[i]);
    if (!isfinite(sum)) return fail("%s: losses too large to plot", name);
    return losses->n || fail("%s: not a log of a run: no step in it", name);
}
