/* What people see, character by character, where all figures are known: maps, the table of heads and its findings, the
 * bar and the curve of a run; and the rules below them: messages, what a terminal can do.
 */
#define _XOPEN_SOURCE 700
#include "../../support/run/job.h"
#include "../test.h"

#include <fcntl.h>
#include <inttypes.h>

#define FILE_NAME "tests/build/screens.seen"

// What was printed since the last call, with ~ for an escape and < for a carriage return. Both streams go to one file.
static const char *seen(void)
{
    static char text[1 << 14];
    flush(&standard_output);
    flush(&standard_error);
    lseek(standard_output.file, 0, SEEK_SET);
    ssize_t n = read(standard_output.file, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    for (char *at = text; *at; at++) *at = *at == '\033' ? '~' : *at == '\r' ? '<' : *at;
    if (ftruncate(standard_output.file, 0) != 0) return "a file that cannot be cut";
    lseek(standard_output.file, 0, SEEK_SET);
    return text;
}

static void check_text(const char *what, const char *want, const char *saw)
{
    if (strcmp(want, saw) == 0) {
        check(true, "%s", what);
    } else {
        check(false, "%s: expected '%.999s', saw '%.999s'", what, want, saw);
    }
}

static void check_seen(const char *what, const char *want) { check_text(what, want, seen()); }

static void terminal(const char *locale, const char *columns, const char *no_color)
{
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", locale, 1);
    setenv("COLUMNS", columns, 1);
    setenv("NO_COLOR", no_color, 1);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Heads.
 */
// Two layers with two heads, and the word "abc".
static uint32_t uchars[] = {'a', 'b', 'c', ' ', 0x01, 0x202e, 0x200b, 0xe9},
                tokens[] = {8, 0, 1, 2, 3, 4, 5, 6, 7};
static const Run run = {.tokenizer = {.uchars = uchars, .BOS = 8},
                        .model = {.n_layer = 2, .n_head = 2, .tokens = tokens}};

static void draw_word(const char *locale, const char *columns)
{
    // a triangle for each head, rows one after another
    static const double rows[4][10] = {
        {1, 0.25, 0.75, 0.1, 0.2, 0.7, 0.04, 0.06, 0.5, 0.4},
        {1, 0.5, 0.5, 0.34, 0.33, 0.33, 0.01, 0.98, 0.01, 0},
        {1, 1, 0, 0, 1, 0, 0, 0, 1, 0},
        {1, 0.45, 0.55, 0.2, 0.2, 0.6, 0.1, 0.2, 0.3, 0.4},
    };
    double maps[40];
    for (size_t i = 0; i < 16; i++) {
        size_t h = i / 4, row = i % 4;
        memcpy(maps + map_row(4, row, h), rows[h] + row * (row + 1) / 2, (row + 1) * sizeof *maps);
    }
    terminal(locale, columns, "");
    draw_maps(&run, maps, 4);
}

static void check_maps(void)
{
    draw_word("C", "80");
    check_seen("maps in ASCII",
               "layer 0 head 0     layer 0 head 1     layer 1 head 0     layer 1 head 1\n"
               "   ^  a  b  c         ^  a  b  c         ^  a  b  c         ^  a  b  c \n"
               "^ 100              ^ 100              ^ 100              ^ 100\n"
               "a  3 75%           a 50% 5            a 100 .            a  5 55%\n"
               "b  1  2 70%        b 34% 3  3         b  . 100 .         b  2  2 60%\n"
               "c  .  1 50% 4      c  . 98% .  .      c  .  . 100 .      c  1  2  3 40%\n"
               "\n"
               "Rows look at columns; ^ is the start. The strongest of a row in percent, the\n"
               "  others in tenths (. under 5%).\n");
    draw_word("C.UTF-8", "35");
    check(strstr(seen(), "a 100 ·            a ▓▓▓55%\n"
                         "b  · 100 ·         b ▒▒▒▒▒▒60%\n"
                         "c  ·  · 100 ·      c ░░░▒▒▒▓▓▓40%\n"),
          "maps in blocks, two side by side");
    draw_word("C", "13");
    check(strstr(seen(), "layer 0 head 1\n"
                         "  ^abc\n"
                         "^ 9    100%\n"
                         "a 55    50%\n"
                         "b 333   34%\n"
                         "c .9..  98%\n"),
          "narrow cells, with the percentage behind the row");
    for (size_t i = 4; i < 9; i++) {
        for (int unicode = 0; unicode < 2; unicode++) {
            say("%s,", position_label(&run, (Terminal){.unicode = unicode}, i).text);
        }
    }
    check_seen("labels of a space, a control character, what turns text, what joins it, a letter",
               "_,␣,?,?,?,?,,,é,é,");
}

static void check_table(void)
{
    static const HeadStats stats[4] = {
        {0.5, 0.25, 0.125, 0.125, 1.5, 2.5045, 0.0012, 0},
        {0.51, 0.3, 0.1, 0.09, 0.25, 2.4949, 0.00125, 0},
        {0.1, 0.55, 0.3, 0.05, 1, 3.5, 0.1, 0},
        {0.05, 0.15, 0.75, 0.05, 0.75, 2.501, HUGE_VAL, 0},
    };
    terminal("C", "80", "");
    say_stats(&run.model, stats, 2.5, 0.0125);
    say_findings(&run.model, stats, 2.5);
    check_seen("the table, and what stands out",
               "layer head   self previous  first elsewhere entropy without  change  error\n"
               "    0    0  50.0%    25.0%  12.5%     12.5%    1.50  2.5045 +0.0045 0.0012\n"
               "    0    1  51.0%    30.0%  10.0%      9.0%    0.25  2.4949 -0.0051 0.0013\n"
               "    1    0  10.0%    55.0%  30.0%      5.0%    1.00  3.5000 +1.0000 0.1000 #####\n"
               "    1    1   5.0%    15.0%  75.0%      5.0%    0.75  2.5010 +0.0010    inf\n"
               "\n"
               "The loss with all heads: 2.5000, standard error 0.0125\n"
               "\n"
               "What stands out:\n"
               "- Layer 0 head 0 hardly matters: without it the loss changes by +0.0045.\n"
               "- Layer 0 head 1 looks at its own position more than half of the time: 51.0%.\n"
               "- Layer 0 head 1 is in the way: without it the loss is lower, by 0.0051.\n"
               "- Layer 1 head 0 looks back one character more than half of the time: 55.0%.\n"
               "- Layer 1 head 1 looks at the first position more than half of the time: 75.0%.\n"
               "- Layer 1 head 1 hardly matters: without it the loss changes by +0.0010.\n");
    terminal("C.UTF-8", "79", "");
    say_stats(&run.model, stats, 2.5, 0.0125);
    check(strstr(seen(),
                 "\nlayer 1 head 0: self 10.0%, previous 55.0%, first 30.0%, elsewhere 5.0%,\n"
                 "  entropy 1.00, without 3.5000, change +1.0000, error 0.1000 █████\n"),
          "the table on a narrow screen");
    const HeadStats even = {0.5, 0.5, 0.5, 0, 1, 3, 0, 0};
    say_findings(&run.model, (HeadStats[]){even, even, even, even}, 2);
    check_seen("nothing stands out", "");
}

/* ------------------------------------------------------------------------------------------------------------------
 * A run.
 */
// A run of 1000 steps, of which 200 were done before, after so many steps and seconds.
static void check_bars(void)
{
    static const struct {
        const char *locale, *columns, *no_color;
        uint64_t done;
        double seconds;
        const char *want;
    } cases[] = {
        {"C", "5", "1", 600, 4, "~[?7l<60%~[J<~[?7h"},
        {"C", "20", "1", 600, 4, "~[?7l<600/1000  loss 3.00~[J<~[?7h"},
        {"C", "30", "1", 600, 4, "~[?7l<####....  600/1000  loss 3.00~[J<~[?7h"},
        {"C", "44", "1", 600, 4, "~[?7l<600/1000  loss 3.00  100 steps/s  0:04 left~[J<~[?7h"},
        {"C", "100", "1", 219, 2,
         "~[?7l<########................................  219/1000  loss 3.00  9.5 steps/s  1:22 "
         "left~[J<~[?7h"},
        {"C", "40", "1", 201, 1e3, "~[?7l<201/1000  loss 3.00  9 days left~[J<~[?7h"},
        {"C", "60", "", 600, 4,
         "~[?7l<~[36m########~[0;2m......~[0m  600/1000  loss 3.00  100 steps/s  0:04 "
         "left~[J<~[?7h"},
        {"C.UTF-8", "60", "", 1000, 4,
         "~[?7l<~[36m━━━━━━━━━━━━━~[0m  1000/1000  loss 3.00  200 steps/s  0:00 left~[J<~[?7h"},
    };
    const Progress progress = {
        .steps = 1000, .steps_before = 200, .began = 50, .smooth = 1.5, .smooth_weight = 0.5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[80];
        terminal(cases[i].locale, cases[i].columns, cases[i].no_color);
        draw_bar(&progress, cases[i].done, 50 + cases[i].seconds);
        snprintf(what, sizeof what, "the bar: %s columns, %" PRIu64 " steps, %g seconds",
                 cases[i].columns, cases[i].done, cases[i].seconds);
        check_seen(what, cases[i].want);
    }
}

// Steps from `start` on, of which some were done before; the loss falls and swings.
static void draw_run(uint64_t start, uint64_t before, uint64_t steps, double scale, double took)
{
    static Progress progress;
    progress = (Progress){.steps = steps, .steps_before = before, .curve_start = start};
    for (uint64_t step = start; step < steps; step++) {
        double x = (double)(step - start) / (double)(steps - start);
        add_to_curve(&progress, step, scale * (1 + 2 * exp(-5 * x) + 0.2 * sin(40 * x)));
    }
    draw_curve(&progress, took);
}

static void check_curves(void)
{
    terminal("C", "51", "1");
    draw_run(0, 0, 1000, 1, 9.994);
    check_seen("a curve in ASCII", "loss over 1000 steps, in 9.99 s\n"
                                   "   2.97 |'.                                      \n"
                                   "        |  '                                     \n"
                                   "        |   '.                                   \n"
                                   "        |     ''''.                              \n"
                                   "        |          '.'''.   ...    .             \n"
                                   "   0.89 |                '''   '.'' ''..''''...''\n"
                                   "         1                                   1000\n");
    terminal("C.UTF-8", "80", "");
    draw_run(100, 300, 500, 100, 10);
    check_seen(
        "a curve in Braille and color: steps 101 to 500, the last 200 new",
        "loss over 400 steps, the last 200 in 10 s\n"
        " 299.27 ┤~[36m⠉⠒⠤⡀                                                            ~[0m\n"
        "        │~[36m   ⠈⠢⡀                                                          ~[0m\n"
        "        │~[36m     ⠈⠢⣀  ⢀⣀⡀                                                   ~[0m\n"
        "        │~[36m        ⠉⠉⠁ ⠈⠑⠢⡀                                                ~[0m\n"
        "        │~[36m               ⠈⠒⠤⠤⠔⠒⠉⠉⠑⠢⣀    ⣀⡠⠤⢄⡀      ⢀⣀⣀        ⣀⡀        ⢀⣀~[0m\n"
        "  85.80 ┤~[36m                          ⠉⠒⠒⠉    ⠈⠑⠢⠤⠤⠒⠊⠁  ⠉⠒⠤⣀⡠⠤⠒⠉ ⠈⠑⠢⢄⣀⣀⠤⠒⠉⠁ ~[0m\n"
        "         101                                                          500\n");
    terminal("C.UTF-8", "16", "1");
    draw_run(0, 0, 256, 1, 3);
    terminal("C.UTF-8", "40", "1");
    draw_run(0, 0, 1, 1, 3);
    draw_run(0, 0, 2, INFINITY, 3);
    check_seen("too narrow, one step, losses that are not finite: no curve", "");
}

// A loss that falls from 3 to 1 over 40 steps; held out it falls to 2, and rises again.
static void check_held_out(void)
{
    static Progress progress = {.steps = 40, .began = 50};
    for (uint64_t step = 0; step < 40; step++) {
        add_to_curve(&progress, step, 3 - 2 * (double)step / 39);
        if (step == 9) add_held_out(&progress, 10, 3);
        if (step == 19) add_held_out(&progress, 20, 2);
        if (step == 39) add_held_out(&progress, 40, 2.5);
    }
    check(progress.lowest_step == 20 && fabs(progress.lowest - 2) < 1e-12,
          "the lowest: expected 2 after step 20, saw %g after step %" PRIu64, progress.lowest,
          progress.lowest_step);
    terminal("C", "110", "1");
    draw_bar(&progress, 20, 54);
    check_seen("the loss held out in the bar",
               "~[?7l<####################....................  20/40  "
               "loss 1.93  held out 2.50  5.0 steps/s  0:04 left~[J<~[?7h");
    draw_curve(&progress, 1);
    check_seen("and in the curve", "loss over 40 steps, in 1.00 s; o: held out\n"
                                   "   3.00 |''....   o                              \n"
                                   "        |      '''....                          o\n"
                                   "        |             '''....                    \n"
                                   "        |                   o'''....             \n"
                                   "        |                           '''....      \n"
                                   "   1.03 |                                  '''...\n"
                                   "         1                                     40\n");
}

/* ------------------------------------------------------------------------------------------------------------------
 * Messages, terminals.
 */
static void check_messages(void)
{
    set_failure(FAILED, "%s",
                "a\nb\tc\033d\177e\302\233f\342\200\256g\330\234 ~\303\200\342\200\247");
    check_text("what a terminal would obey", "a?b?c?d?e??f???g?? ~\303\200\342\200\247",
               failure.text);
}

static void check_terminals(void)
{
    static const struct {
        const char *term, *all, *type, *lang, *no_color, *columns, *want;
    } cases[] = {
        {NULL, NULL, NULL, NULL, NULL, NULL, "color 80"},
        {"xterm", NULL, NULL, NULL, NULL, NULL, "draws color 80"},
        {"", NULL, NULL, NULL, NULL, NULL, "color 80"},
        {"linux", "C.UTF-8", NULL, NULL, NULL, NULL, "draws color 80"},
        {"xterm", NULL, NULL, NULL, "1", NULL, "draws 80"},
        {"xterm", NULL, NULL, "en_US.utf-8", "", NULL, "draws color unicode 80"},
        {"xterm", NULL, "en_US.UTF8", "C", NULL, NULL, "draws color unicode 80"},
        {"xterm", NULL, "C", "C.utf8", NULL, NULL, "draws color 80"},
        {"xterm", "C.utf8", "C", NULL, NULL, NULL, "draws color unicode 80"},
        {"xterm", "", "", "C.UTF-8", NULL, NULL, "draws color unicode 80"},
        {NULL, NULL, NULL, NULL, NULL, "1", "color 1"},
        {NULL, NULL, NULL, NULL, NULL, "9999", "color 9999"},
        {NULL, NULL, NULL, NULL, NULL, "0", "color 80"},
        {NULL, NULL, NULL, NULL, NULL, "10000", "color 80"},
        {NULL, NULL, NULL, NULL, NULL, "0x20", "color 80"},
    };
    static const char *const names[] = {"TERM", "LC_ALL",   "LC_CTYPE",
                                        "LANG", "NO_COLOR", "COLUMNS"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const values[] = {cases[i].term, cases[i].all,      cases[i].type,
                                      cases[i].lang, cases[i].no_color, cases[i].columns};
        char saw[80], what[32];
        for (size_t k = 0; k < 6; k++) {
            unsetenv(names[k]);
            if (values[k]) setenv(names[k], values[k], 1);
        }
        Terminal t = terminal_of(standard_output.file);
        snprintf(saw, sizeof saw, "%s%s%s%s%zu", t.is_terminal ? "terminal " : "",
                 t.draws ? "draws " : "", t.color ? "color " : "", t.unicode ? "unicode " : "",
                 t.columns);
        snprintf(what, sizeof what, "terminal %zu", i);
        check_text(what, cases[i].want, saw);
    }
}

int main(void)
{
    standard_output.file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    standard_error.file = standard_output.file;
    check_maps();
    check_table();
    check_bars();
    check_curves();
    check_held_out();
    check_messages();
    check_terminals();
    return finish();
}
