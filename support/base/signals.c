/* signals.c: the handler of signals. It reads only flags, the time of the first signal, which is
 * set before its flag, and a name that does not change while its flag is set.
 */
#define _XOPEN_SOURCE 700
#include "signals.h"
#include "output.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t running, interrupted;
static struct timespec interrupted_at;
static sigset_t handled, usual_mask;      // what on_signal() takes; the mask before hold_signals()
static volatile sig_atomic_t unfinished;  // a file of this name is being written:
static char unfinished_name[PATH_MAX + 300];

bool overdue(void)
{
    struct timespec now;
    if (!interrupted) return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t seconds = now.tv_sec - interrupted_at.tv_sec;
    return seconds > 1 || (seconds == 1 && now.tv_nsec >= interrupted_at.tv_nsec);
}

// SIGXCPU comes again by itself: it never ends the program at once.
static void on_signal(int number)
{
    static const char message[] = "microgpt: interrupted again, after more than a second: ended\n";
    struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};
    bool again = overdue() && number != SIGXCPU;
    if (running && !again) {
        if (!interrupted) clock_gettime(CLOCK_MONOTONIC, &interrupted_at);
        interrupted = 1;
        return;
    }
    if (unfinished) unlink(unfinished_name);
    if (again && poll(&err, 1, 0) == 1) (void)!write(err.fd, message, sizeof message - 1);
    _exit(INTERRUPTED);
}

// Without SA_RESTART: a signal interrupts a call that waits. Signals that are ignored at the start
// stay ignored, as under nohup.
void handle_signals(void)
{
    static const int signals[] = {SIGINT,  SIGHUP,  SIGTERM, SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM};
    struct sigaction ours = {.sa_handler = on_signal}, now;
    sigemptyset(&handled);
    ours.sa_mask = handled;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &now) != 0 || now.sa_handler == SIG_IGN) continue;
        sigaction(signals[i], &ours, NULL);
        sigaddset(&handled, signals[i]);
    }
}

void hold_signals(void) { sigprocmask(SIG_BLOCK, &handled, &usual_mask); }

void release_signals(void) { sigprocmask(SIG_SETMASK, &usual_mask, NULL); }

void remove_if_ended(const char *name)
{
    unfinished = 0;
    if (name) snprintf(unfinished_name, sizeof unfinished_name, "%s", name);
    unfinished = name != NULL;
}
