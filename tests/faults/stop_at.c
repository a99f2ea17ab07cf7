/* The program itself, with signals at exact moments: SIGINT comes during step STOP_AT of this run, counted from 1, or
 * SIGTERM if STOP_BY_TERM is set; with STOP_TWICE a second signal right behind it, with STOP_LATER after more than a
 * second; it is SIGTERM, or SIGXCPU if STOP_BY_XCPU is set. With STOP_IN_SAVE=N, N signals come when the model file is
 * first flushed to disk, as far apart. With APPEARS=FILE, somebody writes into FILE at each save, just before the model
 * takes its name.
 */
#define _XOPEN_SOURCE 700
#include "../../autograd.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef BEFORE_EXIT  // what counts the lines that are reached, which _exit() would not let write
void BEFORE_EXIT(void);
#define _exit(status) (BEFORE_EXIT(), _exit(status))
#endif
static void interrupted_backward(Tape *t, double *result);
static int interrupted_fsync(int file);
#define backward interrupted_backward
#include "../../microgpt.c"
#undef backward
#define fsync interrupted_fsync
#include "../../support/base/files.c"
#undef fsync

static void wait_longer(void)
{
    struct timespec left = {.tv_sec = 1, .tv_nsec = 10000000};
    while (nanosleep(&left, &left) < 0) continue;
}

static void appear(const char *name, int file)
{
    static int n;
    struct stat info;
    FILE *other =
        name && fstat(file, &info) == 0 && S_ISREG(info.st_mode) ? fopen(name, "w") : NULL;
    if (!other) return;
    fprintf(other, "text %d\n", ++n);
    fclose(other);
}

static int interrupted_fsync(int file)
{
    static long left = -1;
    const char *in_save = getenv("STOP_IN_SAVE");
    left = left < 0 && in_save ? atol(in_save) : left;
    for (; left > 0; left--) {
        raise(SIGINT);
        if (getenv("STOP_LATER")) wait_longer();
    }
    appear(getenv("APPEARS"), file);
    return fsync(file);
}

static void interrupted_backward(Tape *t, double *result)
{
    static long calls;
    const char *stop_at = getenv("STOP_AT");
    if (stop_at && ++calls == atol(stop_at)) {
        raise(getenv("STOP_BY_TERM") ? SIGTERM : SIGINT);
        if (getenv("STOP_TWICE")) {
            if (getenv("STOP_LATER")) wait_longer();
            raise(getenv("STOP_BY_XCPU") ? SIGXCPU : SIGTERM);
        }
    }
    backward(t, result);
}
