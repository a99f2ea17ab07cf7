/* progress.c: what a terminal shows while a run goes on, on standard error: a progress bar with the
 * smoothed loss.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

#include <time.h>

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// No bar where standard error is not a terminal, where standard output goes to another program, or
// where people see the rows of a log there.
void set_up_progress(Progress *progress, const Options *o, uint64_t steps_done)
{
    Terminal terminal = terminal_of(STDERR_FILENO);
    struct stat out;
    bool piped = fstat(STDOUT_FILENO, &out) != 0 || S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode);
    bool can = !o->quiet && !piped && terminal.is_terminal && terminal.draws;
    bool seen = isatty(STDOUT_FILENO);
    progress->show_lines = !o->quiet && !(can && seen);
    progress->show_bar = can && !(seen && o->log && is_same(o->log, &out));
    progress->steps_before = progress->curve_start = steps_done;
    progress->steps = o->config.steps;
    progress->measured = UINT64_MAX;
    progress->began = progress->last_draw = progress->last_flush = seconds();
}

static void time_text(double s, char *text, size_t room)
{
    unsigned t = s < 1e9 ? (unsigned)(s + 0.5) : 1000000000;
    snprintf(text, room, "%u:%02u", t / 60, t % 60);
    if (t >= 3600) snprintf(text, room, "%u:%02u:%02u", t / 3600, t / 60 % 60, t % 60);
    if (t >= 100 * 3600) snprintf(text, room, "%u days", t / 86400);
}

enum { STEPS, LOSS, HELD_OUT, SPEED, TIME_LEFT, N_FIGURES };
typedef char Figures[N_FIGURES][64];

// The figures beside the bar that fit into a line, most important first; the others become "".
// Returns how many columns they take, with two between neighbors.
static size_t find_figures(Figures figures, const Progress *progress, uint64_t done, double now,
                           size_t columns)
{
    static const size_t importance[N_FIGURES] = {STEPS, LOSS, HELD_OUT, TIME_LEFT, SPEED};
    double rate = (double)(done - progress->steps_before) / (now - progress->began);
    char left[32];
    size_t used = 0, room = sizeof figures[0];
    time_text((double)(progress->steps - done) / rate, left, sizeof left);
    snprintf(figures[STEPS], room, "%" PRIu64 "/%" PRIu64, done, progress->steps);
    snprintf(figures[LOSS], room, "loss %.2f", progress->smooth / progress->smooth_weight);
    snprintf(figures[HELD_OUT], progress->any_held ? room : 1, "held out %.2f",
             progress->held_loss);
    snprintf(figures[SPEED], room, rate < 10 ? "%.1f steps/s" : "%.0f steps/s", rate);
    snprintf(figures[TIME_LEFT], room, "%s left", left);
    if (strlen(figures[STEPS]) + 2 + strlen(figures[LOSS]) > columns) {
        snprintf(figures[STEPS], room, "%.0f%%", 100 * (double)done / (double)progress->steps);
    }
    for (size_t k = 0; k < N_FIGURES; k++) {
        char *figure = figures[importance[k]];
        size_t length = strlen(figure) + (used ? 2 : 0);
        if (used + length > columns) *figure = '\0';
        used += *figure ? length : 0;
    }
    return used;
}

// One line, whatever the width: the most important figures that fit, and a bar in the rest. The
// cursor returns to its start: if the terminal shrinks and breaks the line, the next draw covers
// all of it. If it shrinks while this is drawn, the line must not wrap: ?7 turns that off and on.
void draw_bar(const Progress *progress, uint64_t done, double now)
{
    Terminal terminal = terminal_of(STDERR_FILENO);
    Output *out = &standard_error;
    Figures figures;
    size_t columns = terminal.columns - 1;  // one more, and the line would wrap
    size_t room = columns - find_figures(figures, progress, done, now, columns);
    size_t cells = room < 10 ? 0 : room > 42 ? 40 : room - 2;
    size_t full = (size_t)((double)done / (double)progress->steps * (double)cells);
    const char *on = terminal.unicode ? "\u2501" : "#", *off = terminal.unicode ? "\u2500" : ".";
    put(out, "\033[?7l\r%s", cells && terminal.color ? "\033[36m" : "");
    for (size_t i = 0; i < cells; i++) {
        bool dim = i == full && terminal.color;
        put(out, "%s%s", dim ? "\033[0;2m" : "", i < full ? on : off);
    }
    put(out, "%s", cells ? (terminal.color ? "\033[0m  " : "  ") : "");
    const char *between = "";
    for (size_t i = 0; i < N_FIGURES; i++) {
        if (!*figures[i]) continue;
        put(out, "%s%s", between, figures[i]);
        between = "  ";
    }
    show("\033[J\r\033[?7h");
}
