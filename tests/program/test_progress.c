/* The bar and the curve of support/run/progress.c, character by character, at many widths: what a terminal shows of a run whose
 * figures are known.
 */
#define _XOPEN_SOURCE 700
#include "../../support/run/progress.c"
#include "../test.h"

#include <fcntl.h>

#define FILE_NAME "tests/build/progress.seen"

// What was written to standard error since the last call, with ~ for an escape and < for a carriage return.
static const char *seen(void)
{
    static char text[8192];
    flush(&standard_error);
    lseek(standard_error.file, 0, SEEK_SET);
    ssize_t n = read(standard_error.file, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    for (char *at = text; *at; at++) {
        if (*at == '\033') *at = '~';
        if (*at == '\r') *at = '<';
    }
    if (ftruncate(standard_error.file, 0) != 0) return "a file that cannot be cut";
    lseek(standard_error.file, 0, SEEK_SET);
    return text;
}

static void check_seen(const char *what, const char *want)
{
    const char *saw = seen();
    if (strcmp(want, saw) == 0) {
        check(true, "%s", what);
    } else {
        check(false, "%s: expected '%s', saw '%s'", what, want, saw);
    }
}

static void check_clock(void)
{
    for (int i = 0; i < 5; i++) {
        struct timespec before, after;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &before);
        double now = seconds();
        clock_gettime(CLOCK_MONOTONIC, &after);
        double low = (double)before.tv_sec + (double)before.tv_nsec / 1e9;
        double high = (double)after.tv_sec + (double)after.tv_nsec / 1e9;
        check(now > low - 1e-6 && now < high + 1e-6, "the clock: expected %.9f to %.9f, saw %.9f",
              low, high, now);
    }
}

static void check_times(void)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0:00"},         {0.4, "0:00"},         {0.5, "0:01"},
                 {9, "0:09"},         {59.4, "0:59"},        {59.5, "1:00"},
                 {600, "10:00"},      {3599.4, "59:59"},     {3600, "1:00:00"},
                 {3661, "1:01:01"},   {359999, "99:59:59"},  {360000, "4 days"},
                 {431999, "4 days"},  {432000, "5 days"},    {999999999, "11574 days"},
                 {1e9, "11574 days"}, {1e300, "11574 days"}, {HUGE_VAL, "11574 days"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        time_text(cases[i].seconds, text, sizeof text);
        check(strcmp(text, cases[i].text) == 0, "%g seconds: expected %s, saw %s", cases[i].seconds,
              cases[i].text, text);
    }
}

static void terminal(const char *locale, const char *columns, const char *no_color)
{
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", locale, 1);
    setenv("COLUMNS", columns, 1);
    setenv("NO_COLOR", no_color, 1);
}

// A run of 1000 steps, of which 200 were done before, after so many steps and seconds.
static void draw(uint64_t done, double seconds_ago)
{
    Progress progress = {.steps = 1000, .steps_before = 200, .began = 50};
    progress.smooth = 1.5;
    progress.smooth_weight = 0.5;
    draw_bar(&progress, done, 50 + seconds_ago);
}

static void check_bars(void)
{
    static const struct {
        const char *columns;
        uint64_t done;
        double seconds;
        const char *want;
    } cases[] = {
        {"5", 600, 4, "<60%~[J<"},
        {"18", 600, 4, "<60%  loss 3.00~[J<"},
        {"19", 600, 4, "<60%  loss 3.00~[J<"},
        {"20", 600, 4, "<600/1000  loss 3.00~[J<"},
        {"30", 600, 4, "<####....  600/1000  loss 3.00~[J<"},
        {"41", 600, 4, "<####....  600/1000  loss 3.00  0:04 left~[J<"},
        {"43", 600, 4, "<######....  600/1000  loss 3.00  0:04 left~[J<"},
        {"44", 600, 4, "<600/1000  loss 3.00  100 steps/s  0:04 left~[J<"},
        {"53", 600, 4, "<600/1000  loss 3.00  100 steps/s  0:04 left~[J<"},
        {"55", 600, 4, "<#####....  600/1000  loss 3.00  100 steps/s  0:04 left~[J<"},
        {"80", 600, 4,
         "<####################..............  600/1000  loss 3.00  100 steps/s  0:04 left~[J<"},
        {"85", 600, 4,
         "<#######################................  600/1000  loss 3.00  100 steps/s  0:04 "
         "left~[J<"},
        {"86", 600, 4,
         "<########################................  600/1000  loss 3.00  100 steps/s  0:04 "
         "left~[J<"},
        {"87", 600, 4,
         "<########################................  600/1000  loss 3.00  100 steps/s  0:04 "
         "left~[J<"},
        {"200", 600, 4,
         "<########################................  600/1000  loss 3.00  100 steps/s  0:04 "
         "left~[J<"},
        {"100", 220, 2,
         "<########................................  220/1000  loss 3.00  10 steps/s  1:18 "
         "left~[J<"},
        {"100", 219, 2,
         "<########................................  219/1000  loss 3.00  9.5 steps/s  1:22 "
         "left~[J<"},
        {"100", 220, 2.02,
         "<########................................  220/1000  loss 3.00  9.9 steps/s  1:19 "
         "left~[J<"},
        {"100", 1000, 4,
         "<########################################  1000/1000  loss 3.00  200 steps/s  0:00 "
         "left~[J<"},
        {"100", 201, 30,
         "<########................................  201/1000  loss 3.00  0.0 steps/s  6:39:30 "
         "left~[J<"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[80];
        terminal("C", cases[i].columns, "1");
        draw(cases[i].done, cases[i].seconds);
        snprintf(what, sizeof what, "%s columns, %" PRIu64 " steps, %g seconds", cases[i].columns,
                 cases[i].done, cases[i].seconds);
        check_seen(what, cases[i].want);
    }
}

static void check_looks(void)
{
    terminal("C", "60", "");
    draw(600, 4);
    check_seen("in color",
               "<~[36m########~[0;2m......~[0m  600/1000  loss 3.00  100 steps/s  0:04 left~[J<");
    terminal("C.UTF-8", "60", "1");
    draw(600, 4);
    check_seen("in Unicode", "<━━━━━━━━──────  600/1000  loss 3.00  100 steps/s  0:04 left~[J<");
    terminal("C.UTF-8", "60", "");
    draw(1000, 4);
    check_seen("in both, at the end",
               "<~[36m━━━━━━━━━━━━━~[0m  1000/1000  loss 3.00  200 steps/s  0:00 left~[J<");
    terminal("C", "30", "");
    draw(300, 4);
    check_seen("in color, eight cells", "<~[36m##~[0;2m......~[0m  300/1000  loss 3.00~[J<");
    terminal("C", "29", "");
    draw(300, 4);
    check_seen("in color, without cells", "<300/1000  loss 3.00~[J<");
}

// A run of so many steps, of which some were done before and some more are in the curve.
static void draw_run(uint64_t steps, uint64_t start, uint64_t before, double scale, double took)
{
    static Progress progress;
    progress = (Progress){.steps = steps, .steps_before = before, .curve_start = start};
    for (uint64_t step = start; step < steps; step++) {
        double x = (double)(step - start) / (double)(steps - start);
        add_to_curve(&progress, step, scale * (1 + 2 * exp(-5 * x) + 0.2 * sin(40 * x)));
    }
    draw_curve(&progress, took);
    check(progress.last_n <= 100 && progress.last_n <= (double)(steps - start) &&
              (progress.last_n >= 100 || progress.last_n >= (double)(steps - start)),
          "%" PRIu64 " steps: the last %g", steps - start, progress.last_n);
}

static void check_curves(void)
{
    terminal("C", "51", "1");
    draw_run(1000, 0, 0, 1, 9.994);
    check_seen("1000 steps in ASCII", "loss over 1000 steps, in 9.99 s\n"
                                      "   2.97 |'.                                      \n"
                                      "        |  '                                     \n"
                                      "        |   '.                                   \n"
                                      "        |     ''''.                              \n"
                                      "        |          '.'''.   ...    .             \n"
                                      "   0.89 |                '''   '.'' ''..''''...''\n"
                                      "         1                                   1000\n");
    terminal("C.UTF-8", "51", "1");
    draw_run(1000, 0, 0, 1, 10);
    check_seen("1000 steps in Braille", "loss over 1000 steps, in 10 s\n"
                                        "   2.99 ┤⠉⠢⡀                                     \n"
                                        "        │  ⠑⡄                                    \n"
                                        "        │   ⠘⢄ ⢀⡀                                \n"
                                        "        │     ⠉⠁⠈⠑⢄                              \n"
                                        "        │          ⠓⠤⠒⠉⠑⠢⡀  ⣀⠤⡀    ⣀⡀           ⢀\n"
                                        "   0.87 ┤                ⠈⠒⠉  ⠈⠒⠤⠔⠊ ⠈⠢⢄⡠⠔⠉⠉⠒⢄⣀⠔⠊⠁\n"
                                        "         1                                   1000\n");
    terminal("C.UTF-8", "80", "");
    draw_run(500, 100, 300, 100, 3);
    check_seen(
        "steps 101 to 500 in color, the last 200 new",
        "loss over 400 steps, the last 200 in 3.00 s\n"
        " 299.27 ┤~[36m⠉⠒⠤⡀                                                            ~[0m\n"
        "        │~[36m   ⠈⠢⡀                                                          ~[0m\n"
        "        │~[36m     ⠈⠢⣀  ⢀⣀⡀                                                   ~[0m\n"
        "        │~[36m        ⠉⠉⠁ ⠈⠑⠢⡀                                                ~[0m\n"
        "        │~[36m               ⠈⠒⠤⠤⠔⠒⠉⠉⠑⠢⣀    ⣀⡠⠤⢄⡀      ⢀⣀⣀        ⣀⡀        ⢀⣀~[0m\n"
        "  85.80 ┤~[36m                          ⠉⠒⠒⠉    ⠈⠑⠢⠤⠤⠒⠊⠁  ⠉⠒⠤⣀⡠⠤⠒⠉ ⠈⠑⠢⢄⣀⣀⠤⠒⠉⠁ ~[0m\n"
        "         101                                                          500\n");
    terminal("C", "60", "1");
    draw_run(200, 0, 0, 1, 3);
    check_seen("as wide as the screen",
               "loss over 200 steps, in 3.00 s\n"
               "   2.98 |'..                                              \n"
               "        |   .                                             \n"
               "        |    '.  ..                                       \n"
               "        |      ''  '.                                     \n"
               "        |            ''.''''.   ....     ..      .       .\n"
               "   0.87 |                    '''    ''.''  ''..'' ''...'' \n"
               "         1                                             200\n");
    terminal("C", "200", "1");
    draw_run(101, 0, 0, 1, 3);
    check_seen("101 steps, as wide as it gets",
               "loss over 101 steps, in 3.00 s\n"
               "   3.00 |''..                                                            \n"
               "        |    '.                                                          \n"
               "        |      '.   ..                                                   \n"
               "        |        '''  ''.                                                \n"
               "        |                ''..'''''..   ......     ....       ...       ..\n"
               "   0.86 |                           '''      ''.''    ''...''   ''...''  \n"
               "         1                                                            101\n");
    draw_run(9, 0, 0, 1e6, 3);
    check_seen("nine steps", "loss over 9 steps, in 3.00 s\n"
                             "3000000 |'        \n"
                             "        |         \n"
                             "        | .       \n"
                             "        |  '      \n"
                             "        |   '  .  \n"
                             "855405. |    '' '.\n"
                             "         1       9\n");
    terminal("C.UTF-8", "17", "1");
    draw_run(256, 0, 0, 1, 3);
    check_seen("the narrowest", "loss over 256 st\n"
                                "   2.78 ┤⢱     \n"
                                "        │⢸     \n"
                                "        │⠸⡀    \n"
                                "        │ ⢱    \n"
                                "        │ ⠸⢄   \n"
                                "   0.99 ┤  ⠘⠱⠤⡠\n"
                                "         1  256\n");
    terminal("C.UTF-8", "16", "1");
    draw_run(256, 0, 0, 1, 3);
    check_seen("too narrow", "");
    terminal("C.UTF-8", "40", "1");
    draw_run(2, 0, 0, 1, 3);
    check_seen("two steps", "loss over 2 steps, in 3.00 s\n"
                            "   3.00 ┤⢱\n"
                            "        │⢸\n"
                            "        │⢸\n"
                            "        │⢸\n"
                            "        │⢸\n"
                            "   1.35 ┤⢸\n"
                            "         1 2\n");
    draw_run(1, 0, 0, 1, 3);
    check_seen("one step: no curve", "");
    draw_run(300, 0, 0, 0, 3);
    check_seen("a level line", "loss over 300 steps, in 3.00 s\n"
                               "   0.00 ┤                             \n"
                               "        │                             \n"
                               "        │                             \n"
                               "        │                             \n"
                               "        │                             \n"
                               "   0.00 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀\n"
                               "         1                         300\n");
    draw_run(12345678, 12345600, 12345600, 1, 3);
    check_seen("large numbers", "loss over 78 steps, in 3.00 s\n"
                                "   3.00 ┤⠉⢢                           \n"
                                "        │  ⢣                          \n"
                                "        │  ⠈⢆ ⣀                       \n"
                                "        │    ⠉ ⠑⡄                     \n"
                                "        │       ⠘⠤⠒⠉⠢⡀ ⡠⢄   ⣀⡀   ⡀   ⢀\n"
                                "   0.85 ┤            ⠑⠊  ⠑⠤⠊ ⠘⢄⡠⠊⠈⠢⣀⠔⠁\n"
                                "         12345601             12345678\n");
}

static void check_odd_curves(void)
{
    double y[6] = {0, 0, 0, 0, 0, 7};
    Progress progress = {.steps = 10};
    for (uint64_t step = 0; step < 10; step++) add_to_curve(&progress, step, (double)step);
    smooth_curve(&progress, 10, y, 5);
    check_all_near("ten steps in five columns, and no sixth",
                   (double[]){0.5, 2.5, 4.5, 6.5, 8.5, 7}, y, 6, 0);
    terminal("C", "40", "1");
    const double extremes[][2] = {{1.7e308, -1.7e308}, {INFINITY, 1}, {-INFINITY, INFINITY}};
    for (size_t i = 0; i < 3; i++) {
        progress = (Progress){.steps = 2};
        add_to_curve(&progress, 0, extremes[i][0]);
        add_to_curve(&progress, 1, extremes[i][1]);
        draw_curve(&progress, 3);
        check_seen("losses too far apart: no curve", "");
    }
}

static void check_mean(void)
{
    Progress progress = {.steps = 102};
    add_to_curve(&progress, 0, 1);
    add_to_curve(&progress, 1, 3);
    check_near("the smoothed loss", 0.01 * 0.99 + 0.01 * 3, progress.smooth, 1e-15);
    check_near("how much of it is there", 1 - 0.99 * 0.99, progress.smooth_weight, 1e-15);
    add_to_curve(&progress, 2, 5);
    check_near("the last 100 of 102 steps: how many yet", 1, progress.last_n, 0);
    check_near("the last 100 of 102 steps: their sum", 5, progress.last_sum, 0);
}

// A loss that falls from 3 to 1 over 40 steps; held out it falls to 2, and rises again.
static void check_held_out(void)
{
    static Progress progress;
    progress = (Progress){.steps = 40, .began = 50};
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
               "<####################....................  20/40  "
               "loss 1.93  held out 2.50  5.0 steps/s  0:04 left~[J<");
    terminal("C", "40", "1");
    draw_bar(&progress, 20, 54);
    check_seen("where there is no room for all", "<20/40  loss 1.93  held out 2.50~[J<");
    terminal("C", "80", "1");
    draw_curve(&progress, 1);
    check_seen("and in the curve", "loss over 40 steps, in 1.00 s; o: held out\n"
                                   "   3.00 |''....   o                              \n"
                                   "        |      '''....                          o\n"
                                   "        |             '''....                    \n"
                                   "        |                   o'''....             \n"
                                   "        |                           '''....      \n"
                                   "   1.03 |                                  '''...\n"
                                   "         1                                     40\n");
    terminal("C", "80", "");
    draw_curve(&progress, 1);
    check(strstr(seen(), "|~[36m                   ~[33mo~[36m'''....             ~[0m\n"),
          "and in color");
}

int main(void)
{
    standard_error.file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    check_clock();
    check_times();
    check_bars();
    check_looks();
    check_curves();
    check_odd_curves();
    check_mean();
    check_held_out();
    return finish();
}
