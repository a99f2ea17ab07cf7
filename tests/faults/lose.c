/* Ways to run the program that a shell has none for. tests/faults/test_lose.sh uses them.
 *
 *   lose default COMMAND...          with every signal as it is by default, which a shell's background job has not
 *   lose nonblock COMMAND...         with a standard output that does not wait
 *   lose leave COMMAND...            whose reader leaves in the moment of an interrupt, as tee does; the same status
 *   lose flip FILE BIT OUT           a copy of FILE with this bit of its numbers flipped
 *   lose forget FILE OUT             a copy of FILE whose metadata has no checksum
 *   lose twice N FOLDER COMMAND...   two signals at random moments, N times, to a run that saves in FOLDER/m and has begun
 *                                    once FOLDER/log is there: after each of them the status is 0 or 130, the file is
 *                                    whole, and nothing is left beside it
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "lose: %s: %s\n", what, strerror(errno));
    exit(99);
}

static void default_signals(void)
{
    static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGXFSZ,
                                  SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        signal(signals[i], SIG_DFL);
    }
}

static void run(char **command)
{
    execvp(command[0], command);
    fail(command[0]);
}

static void wait_ms(double ms)
{
    struct timespec time = {(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000};
    nanosleep(&time, NULL);
}

// As a shell counts it.
static int status_of(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) < 0) {
        fail("waitpid");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int leave(char **command)
{
    int ends[2];
    char byte;
    if (pipe(ends) < 0) {
        fail("pipe");
    }
    pid_t child = fork();
    if (child == 0) {
        default_signals();
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        run(command);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1) {  // it has begun to print
        fail("read");
    }
    kill(child, SIGINT);
    close(ends[0]);
    return status_of(child);
}

// Copies a model file; changes a bit of the data, or the header.
static int change(const char *name, long bit, const char *to)
{
    static char bytes[1 << 22];
    FILE *file = fopen(name, "rb"), *copy = fopen(to, "wb");
    size_t n = file ? fread(bytes, 1, sizeof bytes - 1, file) : 0, header = 0;
    for (size_t i = 8; i-- > 0;) {
        header = header << 8 | (unsigned char)bytes[i];
    }
    if (!copy || n < 8 || header > n - 8) {
        fail(name);
    }
    if (bit >= 0) {
        size_t at = (size_t)bit % (8 * (n - 8 - header));
        bytes[8 + header + at / 8] = (char)(bytes[8 + header + at / 8] ^ 1 << at % 8);
    } else {
        char *checksum = strstr(bytes + 8, "\"checksum\":"),
             *end = checksum ? strchr(checksum, ',') : NULL;
        if (!end) {
            fail("no checksum");
        }
        memset(checksum, ' ', (size_t)(end - checksum) + 1);
    }
    return fwrite(bytes, 1, n, copy) == n && fclose(copy) == 0 ? 0 : 99;
}

static double any(void) { return (double)rand() / RAND_MAX; }

static int twice(long n, const char *folder, char **command)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    long counts[2] = {0}, said = 0;
    char model[4096], err[4096], begun[4096];
    snprintf(model, sizeof model, "%s/m", folder);
    snprintf(begun, sizeof begun, "%s/log", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    srand((unsigned)time(NULL));
    for (long i = 0; i < n; i++) {
        unlink(begun);
        pid_t child = fork();
        if (child == 0) {
            default_signals();
            if (!freopen("/dev/null", "w", stdout) || !freopen(err, "w", stderr)) {
                fail(err);
            }
            run(command);
        }
        for (int k = 0; k < 20000 && access(begun, F_OK) != 0; k++) {
            wait_ms(0.5);
        }
        wait_ms(any() * 100);
        kill(child, signals[rand() % 3]);
        wait_ms(rand() % 3 ? any() * 4 : 0);
        kill(child, signals[rand() % 3]);
        int status = status_of(child);
        if (status != 0 && status != 130) {
            printf("not ok - double signal %ld: expected status 0 or 130, saw %d\n", i + 1, status);
            return 1;
        }
        counts[status == 130]++;
        FILE *file = fopen(err, "r");
        said += file && fgetc(file) != EOF;
        if (file) {
            fclose(file);
        }
        DIR *entries = opendir(folder);
        for (struct dirent *entry; entries && (entry = readdir(entries));) {
            if (strstr(entry->d_name, ".part")) {
                printf("not ok - double signal %ld: expected nothing beside the file, saw %s\n",
                       i + 1, entry->d_name);
                return 1;
            }
        }
        closedir(entries);
        pid_t reader = fork();
        if (reader == 0) {
            if (!freopen("/dev/null", "w", stderr)) {
                exit(98);
            }
            execl(command[0], command[0], "sample", model, "--samples", "0", (char *)NULL);
            fail(command[0]);
        }
        if (access(model, F_OK) == 0 ? status_of(reader) != 0 : status_of(reader) == 0) {
            printf("not ok - double signal %ld: expected a whole file, saw another\n", i + 1);
            return 1;
        }
    }
    printf("ok - %ld double signals: the file is whole, nothing beside it; %ld ended as 130 (%ld "
           "of them with a word), "
           "%ld were done\n",
           n, counts[1], said, counts[0]);
    return 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[1] : "";
    if (strcmp(how, "default") == 0) {
        default_signals();
        run(argv + 2);
    } else if (strcmp(how, "nonblock") == 0) {
        if (fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK) < 0) {
            fail("fcntl");
        }
        run(argv + 2);
    } else if (strcmp(how, "leave") == 0) {
        return leave(argv + 2);
    } else if (strcmp(how, "flip") == 0 && argc == 5) {
        return change(argv[2], atol(argv[3]), argv[4]);
    } else if (strcmp(how, "forget") == 0 && argc == 4) {
        return change(argv[2], -1, argv[3]);
    } else if (strcmp(how, "twice") == 0 && argc > 4) {
        return twice(atol(argv[2]), argv[3], argv + 4);
    }
    fprintf(stderr, "lose: not understood\n");
    return 99;
}
