/* Builds without NDEBUG stop where a program breaks a rule of the tape, with a line that says which. A process of its own
 * breaks it.
 */
#undef NDEBUG
#define finish finish_entry
#include "../../autograd.c"
#undef finish
#include "../test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static Tape t;
static double elsewhere[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static double *two(void) { return ag_input(&t, elsewhere, 2); }

static void good(void)
{
    double *a = two();
    Matrix w = {.rows = 1, .cols = 2, .data = two()};
    ag_add(&t, ag_relu(&t, ag_vector(&t, 100), 1), ag_linear(&t, a, &w), 1);
}
static void first_operand(void) { ag_relu(&t, elsewhere, 1); }
static void second_operand(void) { ag_add(&t, two(), elsewhere, 2); }
static void matrix(void)
{
    ag_linear(&t, two(), &(Matrix){.rows = 2, .cols = 2, .data = elsewhere});
}
static void other_tape(void)
{
    static Tape other;
    if (!tape_init(&other, 100)) _exit(2);
    ag_exp(&t, ag_input(&other, elsewhere, 2), 2);
}
static void too_long(void) { ag_vector(&t, 1000); }

// How the process ends, and the last of what it says on standard error.
static int end_of(void (*mistake)(void), char *said, size_t room)
{
    int ends[2], status = 0;
    if (pipe(ends) != 0) return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (!tape_init(&t, 100)) _exit(2);
        mistake();
        double *result = ag_scalar(&t, 1);
        backward(&t, ag_add(&t, result, result, 1));
        _exit(0);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], said, room - 1);
    said[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

int main(void)
{
    static const struct {
        const char *what;
        void (*mistake)(void);
        const char *line;
    } cases[] = {
        {"the first operand is no value of the tape", first_operand, "values of this tape"},
        {"the second is none", second_operand, "b is, too"},
        {"a matrix is none", matrix, "b is, too"},
        {"a value of another tape", other_tape, "values of this tape"},
        {"a vector longer than the tape allows", too_long, "at most max_vector values"},
    };
    char said[1000];
    int status = end_of(good, said, sizeof said);
    check(status == 0 && !*said, "without a mistake: expected the end and no word, saw %d, %s",
          status, said);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        status = end_of(cases[i].mistake, said, sizeof said);
        check(status > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
                  strstr(said, cases[i].line),
              "%s: expected an abort and \"%s\", saw %d, %s", cases[i].what, cases[i].line, status,
              said);
    }
    return finish();
}
