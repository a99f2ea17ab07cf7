/* The program itself, with signals at exact moments: SIGINT comes during step STOP_AT of this run, counted from 1, or
 * SIGTERM if STOP_BY_TERM is set; and with STOP_TWICE a second signal right behind it.
 */
#define _XOPEN_SOURCE 700
#include "../autograd.h"

static void interrupted_backward(Tape *t, double *result);
#define backward interrupted_backward
#include "../microgpt.c"
#undef backward

static void interrupted_backward(Tape *t, double *result)
{
    static long calls;
    const char *stop_at = getenv("STOP_AT");
    if (stop_at && ++calls == atol(stop_at)) {
        raise(getenv("STOP_BY_TERM") ? SIGTERM : SIGINT);
        if (getenv("STOP_TWICE")) {
            raise(SIGTERM);
        }
    }
    backward(t, result);
}
