/* A log that is opened: by one run at a time, whatever an earlier call has left in errno. */
#define _XOPEN_SOURCE 700
#include "../../support/run/log.c"
#include "../test.h"

#include <sys/wait.h>

#define FILE_NAME "tests/build/log.csv"

static const Options options_of_log = {.log = FILE_NAME};

static void write_log(const char *text)
{
    FILE *file = fopen(FILE_NAME, "w");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

// Opens the log and closes it again; on failure, what is said.
static const char *open_and_close(int error)
{
    Progress progress = {0};
    failure.text[0] = '\0';
    errno = error;
    bool ok = open_log(&progress, &options_of_log);
    if (ok) close_log(&progress, &options_of_log);
    return failure.text;
}

int main(void)
{
    static const int errors[] = {0, EAGAIN, EACCES, ENOENT};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        write_log("");
        const char *said = open_and_close(errors[i]);
        check(!*said, "an empty log, with errno %d: expected no word, saw '%s'", errors[i], said);
    }
    int ready[2], done[2];
    char byte = 0;
    if (pipe(ready) != 0 || pipe(done) != 0) return 1;
    fflush(stdout);
    pid_t other = fork();
    if (other == 0) {
        Progress progress = {0};
        bool ok = open_log(&progress, &options_of_log) && write(ready[1], "", 1) == 1;
        close(done[1]);
        _exit(!ok || read(done[0], &byte, 1) != 0);
    }
    bool locked = read(ready[0], &byte, 1) == 1;
    const char *said = open_and_close(0);
    check(locked && strcmp(said, FILE_NAME ": another run is writing to it") == 0,
          "a log that another run is writing: expected that, saw '%s'", said);
    close(done[1]);
    waitpid(other, NULL, 0);
    check(!*open_and_close(0), "and once it has ended: expected no word, saw '%s'", failure.text);
    return finish();
}
