/* The program itself, to which the signal number SIGNAL comes once, at the moment that SIGNAL_AT
 * names: "step N", "save N" (while the N-th save is flushed to disk), "evaluation N" (of the documents
 * held out), "sample" or "message" (the last words, and what is left of standard output).
 */
#define _XOPEN_SOURCE 700
#include "../../autograd.h"
#include "../../support/run/job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The moment, for the n-th time.
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

static void backward_then(Tape *tape, double *result)
{
    static int n;
    moment("step", ++n);
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
    static int n;
    struct stat info;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode)) moment("save", ++n);
    return fsync(file);
}

#define backward backward_then
#define after_sample after_sample_then
#define report report_then
#include "../../microgpt.c"
#define mean_loss mean_loss_then
#include "../../support/run/holdout.c"
#define fsync fsync_then
#include "../../support/base/files.c"
