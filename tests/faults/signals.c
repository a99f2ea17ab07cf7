/* Every signal, at every moment of a run that saves, with standard output and standard error free,
 * full and stuck: how the run ends, and whether its model is whole.
 *
 *   signals PROGRAM FOLDER      PROGRAM is signal_at.c; a table, and "ok" or "not ok" for every row
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 20, SAVE_EVERY = 7 };

static const struct {
    const char *name;
    int number;
    bool ends;  // asks the run to end; else it goes on
} signals[] = {
    {"INT", SIGINT, true},    {"TERM", SIGTERM, true}, {"HUP", SIGHUP, true},
    {"QUIT", SIGQUIT, true},  {"USR1", SIGUSR1, true}, {"USR2", SIGUSR2, true},
    {"XCPU", SIGXCPU, true},  {"ALRM", SIGALRM, true}, {"XFSZ", SIGXFSZ, false},
    {"PIPE", SIGPIPE, false},
};

static const struct {
    const char *name, *at;
    int step;  // of the model that a run leaves which ends there
} states[] = {
    {"the first step", "step 1", 1},
    {"a step", "step 5", 5},
    {"a save on the way", "save 1", 7},
    {"the last save", "save 3", STEPS},
    {"held-out documents", "evaluation 9", 9},
    {"the last of these", "evaluation 20", STEPS},
    {"sampling", "sample", STEPS},
    {"the last message", "message", STEPS},
};

enum { FREE, FULL, STUCK, N_OUTPUTS };

static int fail(const char *what)
{
    fprintf(stderr, "signals: %s: %s\n", what, strerror(errno));
    exit(99);
}

// Where standard output and standard error go. A stuck pipe is full, and nobody reads it.
static int open_output(int output)
{
    int ends[2];
    if (output != STUCK) {
        return open(output == FREE ? "/dev/null" : "/dev/full", O_WRONLY);
    }
    if (pipe(ends) < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0) fail("pipe");
    while (write(ends[1], "x", 1) == 1) continue;
    fcntl(ends[1], F_SETFL, 0);
    return ends[1];  // the other end stays open
}

static pid_t start(const char *program, const char *model, int signal_number, const char *at,
                   int output)
{
    pid_t child = fork();
    if (child) return child;
    char number[16], steps[16], every[16];
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        signal(signals[i].number, SIG_DFL);
    }
    snprintf(number, sizeof number, "%d", signal_number);
    snprintf(steps, sizeof steps, "%d", STEPS);
    snprintf(every, sizeof every, "%d", SAVE_EVERY);
    setenv("SIGNAL", number, 1);
    setenv("SIGNAL_AT", at, 1);
    int file = open_output(output);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) exit(98);
    execl(program, program, "--n-embd", "8", "--n-head", "2", "--steps", steps, "--save", model,
          "--save-every", every, "--holdout", "100", "-q", (char *)NULL);
    exit(97);
}

// Its status as a shell counts it, and how long it took: it ends, or after so many seconds TERM ends
// it, which counts as -1; or it does not end at all, -2.
static int status_in(pid_t child, double seconds, double *took)
{
    const double tick = 0.005;
    int status;
    bool told = false;
    for (*took = 0; *took < seconds + 4; *took += tick) {
        if (waitpid(child, &status, WNOHANG) == child) {
            int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            return told && code == 130 ? -1 : code;
        }
        if (*took > seconds && !told) {
            kill(child, SIGTERM);
            told = true;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)(tick * 1e9)}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -2;
}

// The step of a model that the program can read; -1: none.
static int step_of(const char *program, const char *model)
{
    static char bytes[1 << 16];
    double took;
    FILE *file = fopen(model, "rb");
    size_t n = file ? fread(bytes + 8, 1, sizeof bytes - 9, file) : 0;
    if (file) fclose(file);
    bytes[8 + n] = '\0';
    const char *step = n > 8 ? strstr(bytes + 16, "\"train.step\":\"") : NULL;
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "sample", model, "--samples", "0", (char *)NULL);
        exit(97);
    }
    return status_in(child, 5, &took) == 0 && step ? atoi(step + 14) : -1;
}

// Nothing is left in the folder but the model. The folder is then empty.
static bool clear(const char *folder)
{
    bool only = true;
    char name[4096];
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        only = only && strcmp(entry->d_name, "m") == 0;
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        unlink(name);
    }
    return entries && closedir(entries) == 0 && only;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 99;
    const char *program = argv[1], *folder = argv[2];
    char model[4096];
    int failures = 0, cells = 0;
    snprintf(model, sizeof model, "%s/m", folder);
    printf("%-6s %-20s %20s %20s %20s\n", "signal", "during", "free", "full", "stuck");
    for (size_t s = 0; s < sizeof signals / sizeof signals[0]; s++) {
        for (size_t m = 0; m < sizeof states / sizeof states[0]; m++) {
            char row[256] = "";
            bool right = true;
            for (int output = FREE; output < N_OUTPUTS; output++) {
                double took;
                bool ends = signals[s].ends;
                int goes_on = output == FREE ? 0 : output == FULL ? 1 : -1;
                int want = ends ? 130 : goes_on, step = ends ? states[m].step : STEPS;
                int status = status_in(
                    start(program, model, signals[s].number, states[m].at, output), 3, &took);
                int saved = step_of(program, model);
                bool only = clear(folder);
                right = right && status == want && saved == step && only && took < 6;
                size_t n = strlen(row);
                char text[32];
                snprintf(text, sizeof text, status == -1 ? "on" : "%d", status);
                snprintf(row + n, sizeof row - n, " %6s, step %2d, %.1fs", text, saved, took);
                cells++;
            }
            printf("%-6s %-20s%s\n", signals[s].name, states[m].name, row);
            printf("%s - SIG%s during %s\n", right ? "ok" : "not ok", signals[s].name,
                   states[m].name);
            failures += !right;
        }
    }
    printf("%d cells tried\n", cells);
    return failures > 0;
}
