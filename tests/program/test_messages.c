/* Texts for people, one function at a time: messages on one line, lines that are broken, what a terminal can do, and names
 * that are nearly right.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

// What the system answers while a play is on: to poll, then to write if it is asked; -EIO stands for an error.
typedef struct {
    int ready;
    ssize_t written;
} Answer;
static struct {
    const Answer *next;  // NULL: no play is on
    int disk;            // what fstat says: a regular file, a pipe (0), or an error (-1)
    int wait;            // what poll is to be asked for: 0, or some milliseconds
    size_t n_odd;        // questions that should not be asked
    size_t n, all;       // bytes written; to be written
    char text[1 << 14];
} play;

static int answer(ssize_t result)
{
    if (result < 0) errno = (int)-result;
    return result < 0 ? -1 : (int)result;
}

static int our_poll(struct pollfd *files, nfds_t n, int milliseconds)
{
    if (!play.next) return poll(files, n, milliseconds);
    bool wait = milliseconds == play.wait;
    play.n_odd += n != 1 || files->fd != 7 || files->events != POLLOUT || !wait;
    const Answer *now = play.next;
    bool asks = now->ready != 0 &&
                now->ready != -EINTR;  // then it writes, and the next answer follows that
    play.next += !asks;
    return answer(now->ready);
}

static ssize_t our_write(int file, const void *bytes, size_t n)
{
    if (!play.next) return write(file, bytes, n);
    const Answer *now = play.next++;
    size_t left = play.all - play.n, most = play.disk == 1 || left < PIPE_BUF ? left : PIPE_BUF;
    play.n_odd += file != 7 || now->ready == 0 || now->ready == -EINTR || n != most;
    errno = EIO;  // which says nothing where a write has not failed
    if (now->written < 0) return answer(now->written);
    size_t some = (size_t)now->written < n ? (size_t)now->written : n;
    for (size_t i = 0; i < some; i++) play.text[play.n++] = ((const char *)bytes)[i];
    return (ssize_t)some;
}

static int our_fstat(int file, struct stat *info)
{
    if (!play.next) return fstat(file, info);
    info->st_mode = play.disk == 1 ? S_IFREG : S_IFIFO;
    return play.disk < 0 ? -1 : 0;
}

#define poll our_poll
#define write our_write
#define fstat our_fstat
#include "../../support/run/command_line.c"
#include "../../support/base/output.c"
#undef poll
#undef write
#undef fstat
#include "../test.h"

#define FILE_NAME "tests/build/messages.seen"

// What was printed since the last call.
static const char *seen(void)
{
    static char text[1 << 18];
    flush(&standard_output);
    lseek(standard_output.file, 0, SEEK_SET);
    ssize_t n = read(standard_output.file, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (ftruncate(standard_output.file, 0) != 0) return "a file that cannot be cut";
    lseek(standard_output.file, 0, SEEK_SET);
    return text;
}

static void check_text(const char *what, const char *want, const char *saw)
{
    if (strcmp(want, saw) == 0) {
        check(true, "%s", what);
    } else {
        check(false, "%s: expected '%.300s', saw '%.300s'", what, want, saw);
    }
}

static void check_wrapped(void)
{
    say_wrapped("", 0, 2, 10);
    check_text("no words", "\n", seen());
    say_wrapped("one two three four", 0, 2, 9);
    check_text("broken at the width, or before", "one two\n  three\n  four\n", seen());
    say_wrapped("one two three four", 0, 2, 7);
    check_text("as wide as the width", "one two\n  three\n  four\n", seen());
    say_wrapped("one two three four", 0, 2, 6);
    check_text("a column less", "one\n  two\n  three\n  four\n", seen());
    say_wrapped("one two three four", 4, 4, 11);
    check_text("from a column on", "one two\n    three\n    four\n", seen());
    say_wrapped("one two three four", 4, 1, 10);
    check_text("from a column on, then from another", "one\n two three\n four\n", seen());
    say_wrapped("wider words", 0, 1, 3);
    check_text("words wider than the width", "wider\n words\n", seen());
    say_wrapped("\303\251\303\251 \303\251\303\251 \303\251", 0, 0, 5);
    check_text("characters, not bytes", "\303\251\303\251 \303\251\303\251\n\303\251\n", seen());
    say_wrapped("a  b ", 0, 0, 9);
    check_text("every space", "a  b\n", seen());
}

static void check_failure(const char *what, const char *said, const char *want)
{
    set_failure(FAILED, "%s", said);
    check_text(what, want, failure.text);
}

// A message of n letters, different at every place.
static void letters(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) text[i] = (char)('a' + (i + i / 26) % 26);
    text[n] = '\0';
}

static void check_composed(void)
{
    static char said[20000], want[20000];
    check_failure("control characters", "a\nb\tc\033d\177e\001 ~", "a?b?c?d?e? ~");
    check_failure("control characters of two bytes",
                  "a\302\200\302\237b\302\205c\302\240\303\200\302",
                  "a????b??c\302\240\303\200\302");
    check_failure("overrides of the direction of text",
                  "a\342\200\256b\342\201\246c\342\201\251\330\234d\342\200\252\342\200\247",
                  "a???b???c?????d???\342\200\247");
    size_t half = MESSAGE_ROOM / 2;
    for (size_t n = MESSAGE_ROOM - 2; n <= MESSAGE_ROOM + 2; n++) {
        letters(said, n);
        strcpy(want, said);
        if (n >= MESSAGE_ROOM)
            sprintf(want, "%.*s ... %s", (int)half - 5, said, said + n + 1 - half);
        check_failure("a message that is just short enough, or just too long", said, want);
        check(strlen(failure.text) < MESSAGE_ROOM && strlen(failure.text) >= MESSAGE_ROOM - 2,
              "of %zu bytes, %zu are said", n, strlen(failure.text));
    }
    letters(said, 15000);
    sprintf(want, "%.*s ... %s", (int)half - 5, said, said + 15001 - half);
    check_failure("a message that is much too long", said, want);
}

static void check_put(void)
{
    static char said[sizeof standard_output.bytes + 10], want[2 * sizeof said];
    size_t room = sizeof standard_output.bytes;
    letters(said, room - 1);
    say("<");
    say("%s", said);
    check_size("a full buffer waits", room, standard_output.n);
    say(">");
    check_size("until there is more", 1, standard_output.n);
    say("%s", "");
    snprintf(want, sizeof want, "<%s>", said);
    check_text("as much as fits at once", want, seen());
    check(!standard_output.error, "and no error");
    letters(said, room);
    say("%s", said);
    check(standard_output.error == EOVERFLOW, "more than fits at once: expected %d, saw %d",
          EOVERFLOW, standard_output.error);
    standard_output.error = 0;
    check_text("of which nothing is written", "", seen());
    standard_output.by_line = true;
    say("a line\n");
    check_size("by line: nothing waits after one", 0, standard_output.n);
    say("half a line");
    check_size("and half a line does", 11, standard_output.n);
    standard_output.by_line = false;
    check_text("all of it", "a line\nhalf a line", seen());
}

// A signal came so many milliseconds ago; or, if they are negative, there was none.
static void set_interrupted(int milliseconds)
{
    interrupted = 0;
    if (milliseconds < 0) return;
    interrupt();
    interrupted_at.tv_sec -= milliseconds / 1000;
    interrupted_at.tv_nsec -= milliseconds % 1000 * 1000000;
    if (interrupted_at.tv_nsec >= 0) return;
    interrupted_at.tv_nsec += 1000000000;
    interrupted_at.tv_sec--;
}

// Ten digits, or more, are flushed. What is written, and the error that is left.
static void check_play(const char *what, bool late, int disk, const Answer *answers,
                       const char *want, int error)
{
    static Output out;
    size_t n = strlen(want) > 10 ? strlen(want) : 10;
    out = (Output){.file = 7, .n = n, .bytes = "0123456789"};
    if (n > 10) memcpy(out.bytes, want, n);
    memset(&play, 0, sizeof play);
    play.next = answers;
    play.disk = disk;
    play.all = n;
    play.wait = late ? 0 : WAIT_MS;
    set_interrupted(late ? 1000 : -1);
    bool ok = flush(&out);
    set_interrupted(-1);
    play.next = NULL;
    check(strcmp(play.text, want) == 0 && out.error == error && ok == !error && out.n == 0 &&
              play.n_odd == 0,
          "%s: expected '%s' and error %d, saw '%s', %d, %zu bytes left, %zu odd questions", what,
          want, error, play.text, out.error, out.n, play.n_odd);
}

static void check_flush(void)
{
#define PLAY(what, late, disk, want, error, ...)                                                   \
    check_play(what, late, disk, (const Answer[]){__VA_ARGS__, {1, -ENOTTY}}, want, error)
    const char *all = "0123456789";
    PLAY("at once", false, 0, all, 0, {1, 10});
    PLAY("in pieces", false, 0, all, 0, {1, 3}, {1, 3}, {1, 4});
    PLAY("a piece of nothing", false, 0, all, 0, {1, 0}, {1, 10});
    PLAY("interrupted writes", false, 0, all, 0, {1, -EINTR}, {1, 5}, {1, -EAGAIN}, {1, 5});
    PLAY("an error", false, 0, "01", EIO, {1, 2}, {1, -EIO});
    PLAY("an error later", false, 1, "", ENOSPC, {0, 0}, {1, -ENOSPC});
    PLAY("waits that are interrupted, or end early", false, 0, all, 0, {-EINTR, 0}, {0, 0},
         {1, 10});
    PLAY("no way to wait", false, 0, all, 0, {-ENOMEM, 10});
    PLAY("no way to wait, and an error", false, 0, "", EBADF, {-ENOMEM, -EBADF});
    PLAY("late, and ready", true, 0, all, 0, {1, 10});
    PLAY("late, and not ready", true, 0, "", EINTR, {0, 0});
    PLAY("late, and full", true, 0, "0123", EINTR, {1, 4}, {1, -EAGAIN});
    PLAY("late, and an error", true, 0, "", EIO, {1, -EIO});
    PLAY("late, and of no known kind", true, -1, "", EINTR, {0, 0});
    PLAY("late, and on a disk", true, 1, all, 0, {0, 0}, {-EINTR, 0}, {1, -EINTR}, {1, 10});
    static char large[2 * PIPE_BUF + 2];
    letters(large, 2 * PIPE_BUF + 1);
    PLAY("a pipe gets what fits for certain", false, 0, large, 0, {1, PIPE_BUF}, {1, PIPE_BUF},
         {1, 1});
    PLAY("a disk gets all at once", false, 1, large, 0, {1, 2 * PIPE_BUF + 1});
    const int ago[] = {-1, 0, 900, 1000, 1100, 1900, 5000};
    for (size_t i = 0; i < sizeof ago / sizeof *ago; i++) {
        set_interrupted(ago[i]);
        check(overdue() == (ago[i] >= 1000), "a signal %d ms ago", ago[i]);
    }
    set_interrupted(500);
    interrupt();
    interrupted_at.tv_sec--;
    check(overdue(), "a second signal does not begin a second anew");
    set_interrupted(-1);
}

static void check_terminal(const char *settings, const char *want)
{
    static const char *const names[] = {"TERM", "LC_ALL",   "LC_CTYPE",
                                        "LANG", "NO_COLOR", "COLUMNS"};
    char copy[200], saw[80];
    for (size_t i = 0; i < 6; i++) unsetenv(names[i]);
    snprintf(copy, sizeof copy, "%s", settings);
    for (char *rest = copy, *one; (one = strtok_r(rest, " ", &rest));) {
        char *value = strchr(one, '=');
        *value = '\0';
        setenv(one, value + 1, 1);
    }
    Terminal terminal = terminal_of(standard_output.file);
    snprintf(saw, sizeof saw, "%s%s%s%s%zu", terminal.is_terminal ? "terminal " : "",
             terminal.draws ? "draws " : "", terminal.color ? "color " : "",
             terminal.unicode ? "unicode " : "", terminal.columns);
    check_text(settings, want, saw);
}

static void check_terminals(void)
{
    check_terminal("", "color 80");
    check_terminal("TERM=xterm", "draws color 80");
    check_terminal("TERM=dumb", "color 80");
    check_terminal("TERM=", "color 80");
    check_terminal("TERM=xterm NO_COLOR=1", "draws 80");
    check_terminal("TERM=xterm NO_COLOR=", "draws color 80");
    check_terminal("TERM=xterm LANG=en_US.UTF-8", "draws color unicode 80");
    check_terminal("TERM=xterm LANG=en_US.utf-8", "draws color unicode 80");
    check_terminal("TERM=xterm LC_CTYPE=en_US.UTF8 LANG=C", "draws color unicode 80");
    check_terminal("TERM=xterm LC_CTYPE=C LANG=C.utf8", "draws color 80");
    check_terminal("TERM=xterm LC_ALL=C.utf8 LC_CTYPE=C", "draws color unicode 80");
    check_terminal("TERM=xterm LC_ALL=C LC_CTYPE=C.UTF-8", "draws color 80");
    check_terminal("TERM=xterm LC_ALL= LC_CTYPE= LANG=C.UTF-8", "draws color unicode 80");
    check_terminal("TERM=linux LC_ALL=C.UTF-8", "draws color 80");
    check_terminal("TERM=dumb LC_ALL=C.UTF-8", "color 80");
    check_terminal("COLUMNS=1", "color 1");
    check_terminal("COLUMNS=0", "color 80");
    check_terminal("COLUMNS=9999", "color 9999");
    check_terminal("COLUMNS=10000", "color 80");
    check_terminal("COLUMNS=-1", "color 80");
    check_terminal("COLUMNS=0x20", "color 80");
    check_terminal("COLUMNS=010", "color 10");
}

static void check_finite(void)
{
    const double a[] = {1, -1e308, 0, INFINITY, 2, NAN, -INFINITY};
    check(all_finite(a, 0) && all_finite(a, 3) && !all_finite(a, 4) && !all_finite(a + 3, 1) &&
              all_finite(a + 4, 1) && !all_finite(a + 4, 2) && !all_finite(a + 6, 1),
          "numbers that are all finite, and not");
}

static void check_similar(void)
{
    static const struct {
        const char *name, *word;
        bool similar;
    } cases[] = {
        {"steps", "steps", true},    {"steps", "setps", true},     {"steps", "step", true},
        {"steps", "stepss", true},   {"steps", "stepsxy", true},   {"steps", "stepsxyz", false},
        {"steps", "ste", true},      {"steps", "st", false},       {"steps", "xteps", true},
        {"steps", "xxeps", true},    {"steps", "xxxps", false},    {"steps", "spets", false},
        {"seed", "sed", true},       {"seed", "sd", true},         {"seed", "se", true},
        {"seed", "s", false},        {"seed", "xxed", true},       {"seed", "xeexd", false},
        {"lr", "l", true},           {"lr", "x", false},           {"lr", "lxx", false},
        {"lr", "lrxx", true},        {"lr", "lrxxx", false},       {"data", "date", true},
        {"data", "dxyz", false},     {"log", "lgo", false},        {"log", "lag", true},
        {"log", "lxyg", true},       {"log", "lxyzg", false},      {"n-embd", "n_embd", true},
        {"aaaa", "aaaaaa", true},    {"aaaa", "aa", true},         {"aaaa", "a", false},
        {"samples", "sample", true}, {"samples", "smaples", true}, {"log", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool similar = is_similar(cases[i].name, cases[i].word, strlen(cases[i].word));
        check(similar == cases[i].similar, "%s is %snearly %s", cases[i].word,
              cases[i].similar ? "" : "not ", cases[i].name);
    }
    check(is_similar("steps", "setps=5", 5), "the value of an option is no part of its name");
}

int main(void)
{
    standard_output.file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    check_wrapped();
    check_composed();
    check_put();
    check_flush();
    check_terminals();
    check_finite();
    check_similar();
    return finish();
}
