/* Texts for people, one function at a time: messages on one line, lines that are broken, what a terminal can do, and names
 * that are nearly right.
 */
#define _XOPEN_SOURCE 700
#include "../../support/command_line.c"
#include "../../support/output.c"
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
    check(strcmp(want, saw) == 0, "%s: expected '%.300s', saw '%.300s'", what, want, saw);
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
    check_failure("control characters of two bytes", "a\302\200\302\237\302\240\303\200\302",
                  "a????\302\240\303\200\302");
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
    say(">");
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
    check_terminals();
    check_finite();
    check_similar();
    return finish();
}
