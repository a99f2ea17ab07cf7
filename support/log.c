/* log.c: the log of a run, a CSV file with step, loss and learning rate of every step in full
 * precision. A resumed run continues its log; a page shows it. A file that is not a log is left
 * alone.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_HEADING "step,loss,lr\n"

// All of an open log. `wanted` says what it must be good for, in the message.
static bool read_log(int file, const char *name, const char *wanted, unsigned char **text,
                     size_t *n)
{
    return read_all(file, text, n, name) &&
           (strncmp((char *)*text, LOG_HEADING, strlen(LOG_HEADING)) == 0 ||
            fail("%s: not a log %s: it does not begin with step,loss,lr", name, wanted));
}

// The step of a row, and its loss: NAN if there is none. *end is what comes after them.
static uint64_t read_row(const unsigned char *row, double *loss, char **end)
{
    uint64_t step = strtoull((const char *)row, end, 10);
    *loss = **end == ',' && (*end)[1] != ',' ? strtod(*end + 1, end) : NAN;
    return step;
}

// Continues after the last step that the model file knows. Later rows are cut off: the same steps
// will be done again. The curve gets what the earlier ones tell.
static bool continue_log(Progress *progress, const char *name, int file)
{
    unsigned char *text = NULL, *newline;
    char *rest;
    size_t n = 0, end = strlen(LOG_HEADING);
    bool ok = read_log(file, name, "that can be continued", &text, &n);
    while (ok && (newline = memchr(text + end, '\n', n - end))) {
        double loss;
        *newline = '\0';
        uint64_t step = read_row(text + end, &loss, &rest);
        if (step > progress->steps_before) break;
        if (progress->show_bar && step && isfinite(loss)) {
            if (progress->curve_start == progress->steps_before) progress->curve_start = step - 1;
            if (step > progress->curve_start) add_to_curve(progress, step - 1, loss);
        }
        end = (size_t)(newline - text) + 1;
    }
    free(text);
    bool cut = ok && ftruncate(file, (off_t)end) == 0 && lseek(file, (off_t)end, SEEK_SET) >= 0;
    return cut || (ok && fail_errno(name));
}

bool open_log(Progress *progress, const Options *o)
{
    struct stat info, out;
    static Output log;
    bool there = stat(o->log, &info) == 0;
    if (there && fstat(STDOUT_FILENO, &out) == 0 && info.st_dev == out.st_dev &&
        info.st_ino == out.st_ino) {  // rows among what is printed, in order; no bar between them
        progress->log = &standard_output;
        progress->show_bar = progress->show_bar && !isatty(STDOUT_FILENO);
        return true;
    }
    bool old = o->resume && there && S_ISREG(info.st_mode) && info.st_size > 0;
    log.file = open_file(o->log, old ? O_RDWR : O_WRONLY | O_CREAT | O_TRUNC);
    if (log.file < 0) return fail_errno(o->log);
    progress->log = &log;
    if (old) return continue_log(progress, o->log, log.file);
    put(&log, LOG_HEADING);
    return true;
}

void log_step(Progress *progress, uint64_t done, double loss, double lr)
{
    Output *log = progress->log;
    if (log == &standard_output && done == progress->steps_before + 1) put(log, LOG_HEADING);
    put(log, "%" PRIu64 ",%.17g,%.17g\n", done, loss, lr);
}

bool close_log(Progress *progress, const Options *o)
{
    Output *log = progress->log;
    if (!log) return true;
    flush(log);
    if (log != &standard_output && close(log->file) < 0 && !log->error) log->error = errno;
    return !log->error || fail("%s: %s", o->log, strerror(log->error));
}

// The last line may be cut off. The sum must be finite, or no mean of them could be shown.
bool read_losses(Page *page, const char *name)
{
    unsigned char *text = NULL, *newline;
    size_t n = 0, at = strlen(LOG_HEADING);
    double sum = 0;
    int file = open_file(name, O_RDONLY);
    if (file < 0) return fail_errno(name);
    bool ok = read_log(file, name, "of a run", &text, &n);
    close(file);
    if (ok) page->losses = malloc(n / 4 * sizeof *page->losses);  // a row takes four bytes or more
    if (ok && !page->losses) ok = no_memory();
    while (ok && (newline = memchr(text + at, '\n', n - at))) {
        char *end;
        double loss;
        uint64_t step = read_row(text + at, &loss, &end);
        if (page->n_losses == 0) page->first = step;
        sum += fabs(loss);
        ok = (*end == ',' && end <= (char *)newline && isfinite(loss) &&
              step == page->first + page->n_losses) ||
             fail("%s:%zu: not the step,loss,lr of the next step", name, page->n_losses + 2);
        ok = ok && (isfinite(sum) || fail("%s: losses too large for a curve", name));
        if (ok) page->losses[page->n_losses++] = loss;
        at = (size_t)(newline - text) + 1;
    }
    free(text);
    return ok && (page->n_losses || fail("%s: not a log of a run: no step in it", name));
}
