/* The program itself, to which signals come at exact moments:
 *
 *   STOP_AT=N                     SIGINT during step N of this run, counted from 1; STOP_BY_TERM: SIGTERM
 *   STOP_TWICE                    and a second one right behind it, SIGTERM; STOP_BY_XCPU: SIGXCPU
 *   STOP_IN_SAVE=N                N times SIGINT when the model file is first flushed to disk
 *   STOP_LATER                    the second one more than a second after the first
 *   SIGNAL=NUMBER SIGNAL_AT=...   this signal, once: at "step N", "save N" (while the N-th save is flushed to
 *                                 disk), "evaluation N" (of the documents held out), "sample", or "message"
 *   APPEARS=FILE                  somebody writes into FILE at each save, just before the model takes its name
 */
#define _XOPEN_SOURCE 700
#include "../../autograd.h"
#include "../../support/run/job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// The moment SIGNAL_AT, for the n-th time.
static void moment(const char *name, int n)
{
    char now[32];
    const char *at = getenv("SIGNAL_AT"), *number = getenv("SIGNAL");
    snprintf(now, sizeof now, n ? "%s %d" : "%s", name, n);
    if (at && number && strcmp(at, now) == 0) {
        unsetenv("SIGNAL_AT");
        raise(atoi(number));
    }
}

static void wait_if_later(void)
{
    struct timespec left = {.tv_sec = 1, .tv_nsec = 10000000};
    while (getenv("STOP_LATER") && nanosleep(&left, &left) < 0) continue;
}

static void backward_then(Tape *tape, double *result)
{
    static int step;
    const char *stop_at = getenv("STOP_AT");
    moment("step", ++step);
    if (stop_at && step == atoi(stop_at)) {
        raise(getenv("STOP_BY_TERM") ? SIGTERM : SIGINT);
        if (getenv("STOP_TWICE")) {
            wait_if_later();
            raise(getenv("STOP_BY_XCPU") ? SIGXCPU : SIGTERM);
        }
    }
    backward(tape, result);
}

static bool after_sample_then(Run *run, size_t length, uint64_t *done)
{
    moment("sample", 0);
    return after_sample(run, length, done);
}

static int report_then(bool ok)
{
    moment("message", 0);
    return report(ok);
}

static double mean_loss_then(Model *model, const Document *docs, size_t n, size_t *n_tokens,
                             HeadStats *stats, double *each)
{
    static int calls;
    moment("evaluation", ++calls);
    return mean_loss(model, docs, n, n_tokens, stats, each);
}

static int fsync_then(int file)
{
    static int saves;
    struct stat info;
    if (fstat(file, &info) < 0 || !S_ISREG(info.st_mode)) return fsync(file);
    const char *in_save = getenv("STOP_IN_SAVE"), *appears = getenv("APPEARS");
    moment("save", ++saves);
    for (int left = saves == 1 && in_save ? atoi(in_save) : 0; left > 0; left--) {
        raise(SIGINT);
        wait_if_later();
    }
    FILE *other = appears ? fopen(appears, "w") : NULL;
    if (other) {
        fprintf(other, "text %d\n", saves);
        fclose(other);
    }
    return fsync(file);
}

#ifdef BEFORE_EXIT  // what counts the lines that are reached, which _exit() would not let write
void BEFORE_EXIT(void);
#define _exit(status) (BEFORE_EXIT(), _exit(status))
#endif
#define backward backward_then
#define after_sample after_sample_then
#define report report_then
#include "../../microgpt.c"
#undef backward
#undef after_sample
#undef report
#define mean_loss mean_loss_then
#include "../../support/run/holdout.c"
#undef mean_loss
#define fsync fsync_then
#include "../../support/base/files.c"
