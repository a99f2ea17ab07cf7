/* log.c: the log of a run, a CSV file with the step, loss and learning rate of every step, in full
 * precision. A resumed run continues its own log. A file that is not a log is never overwritten.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

#include <fcntl.h>

#define LOG_HEADING "step,loss,lr\n"

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

// Reads the rows of an open log, up to step `last`. The steps must follow each other; the last line
// may be incomplete. *end becomes the offset after the rows.
static bool read_rows(Losses *log, int file, const char *name, uint64_t last, size_t *end)
{
    unsigned char *text = NULL, *newline;
    size_t n = 0;
    *end = strlen(LOG_HEADING);
    bool ok = read_all(file, &text, &n, name) &&
              (strncmp((char *)text, LOG_HEADING, *end) == 0 ||
               fail("%s: not a log of a run: it does not begin with step,loss,lr", name));
    if (ok) log->list = calloc(n / 4 + 1, sizeof *log->list);  // a row takes four bytes or more
    if (ok && !log->list) ok = no_memory();
    while (ok && (newline = memchr(text + *end, '\n', n - *end))) {
        char *at = (char *)text + *end;
        uint64_t step = *at >= '0' && *at <= '9' ? strtoull(at, &at, 10) : 0;
        double loss = read_field(&at), lr = read_field(&at);
        if (log->n == 0) log->first = step;
        if (step > last) break;
        ok = (isfinite(loss) && isfinite(lr) && at == (char *)newline && step &&
              step == log->first + log->n) ||
             fail("%s:%zu: not the step,loss,lr of the next step", name, log->n + 2);
        if (ok) log->list[log->n++] = loss;
        *end = (size_t)(newline - text) + 1;
    }
    free(text);
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
// again. Earlier ones go into the curve.
static bool continue_log(Progress *progress, const Options *o, int file)
{
    Losses log = {0};
    uint64_t done = progress->steps_before;
    size_t end;
    bool ok =
        read_rows(&log, file, o->log, done, &end) &&
        (belongs(&log, done, o->loss) ||
         fail("%s: not the log of the run in %s, up to step %" PRIu64 "; give another --log FILE",
              o->log, o->resume, done));
    if (ok && log.n) progress->curve_start = log.first - 1;
    for (size_t i = 0; ok && progress->show_bar && i < log.n; i++) {
        add_to_curve(progress, log.first - 1 + i, log.list[i]);
    }
    free(log.list);
    bool cut = ok && ftruncate(file, (off_t)end) == 0 && lseek(file, (off_t)end, SEEK_SET) >= 0;
    return cut || (ok && fail_errno(o->log));
}

// A log on a disk is locked: two runs cannot write it at once.
bool open_log(Progress *progress, const Options *o)
{
    static Output log;
    struct stat info;
    if (fstat(STDOUT_FILENO, &info) == 0 && is_same(o->log, &info)) {
        progress->log = &standard_output;  // rows among what is printed; no bar between them
        progress->show_bar = progress->show_bar && !isatty(STDOUT_FILENO);
        return true;
    }
    bool old = stat(o->log, &info) == 0 && S_ISREG(info.st_mode);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    log.file = open_file(o->log, old ? O_RDWR : O_WRONLY | O_CREAT);
    if (log.file < 0 || fstat(log.file, &info) < 0) return fail_errno(o->log);
    progress->log = &log;
    if (S_ISREG(info.st_mode) && fcntl(log.file, F_SETLK, &lock) < 0 &&
        (errno == EAGAIN || errno == EACCES)) {
        return fail("%s: another run is writing to it", o->log);
    }
    if (old && info.st_size > 0) return continue_log(progress, o, log.file);
    put(&log, LOG_HEADING);
    return true;
}

void log_step(Progress *progress, uint64_t done, double loss, double lr)
{
    Output *log = progress->log;
    if (log == &standard_output && done == progress->steps_before + 1) put(log, LOG_HEADING);
    put(log, "%" PRIu64 ",%.17g,%.17g\n", done, loss, lr);
}

// Flushes to the disk, if the log is on one.
void flush_log(Progress *progress)
{
    Output *log = progress->log;
    if (log) flush(log);
    if (!log || log == &standard_output || fsync(log->file) == 0) return;
    if (!log->error && errno != EINVAL && errno != EINTR) log->error = errno;
}

bool close_log(Progress *progress, const Options *o)
{
    Output *log = progress->log;
    if (!log) return true;
    flush(log);
    if (log != &standard_output && close(log->file) < 0 && !log->error) log->error = errno;
    return !log->error || fail("%s: %s", o->log, strerror(log->error));
}

// The sum must be finite: the page shows means.
bool read_losses(Losses *losses, const char *name)
{
    double sum = 0;
    size_t end;
    int file = open_file(name, O_RDONLY);
    if (file < 0) return fail_errno(name);
    bool ok = read_rows(losses, file, name, UINT64_MAX, &end);
    close(file);
    for (size_t i = 0; ok && i < losses->n; i++) sum += fabs(losses->list[i]);
    if (ok && !isfinite(sum)) return fail("%s: losses too large to plot", name);
    return ok && (losses->n || fail("%s: not a log of a run: no step in it", name));
}
