/* The maps, the table and the findings of support/run/maps.c, character by character: weights and figures that are known, on
 * screens of many kinds.
 */
#define _XOPEN_SOURCE 700
#include <wchar.h>

// In place of the system's, which differ: -1 for what is not shown, 0 for marks and joiners, 2 for wide characters.
static int known_width(wchar_t code)
{
    if (code < ' ' || (code >= 0x7f && code < 0xa0)) return -1;
    if ((code >= 0x300 && code < 0x370) || (code >= 0x200b && code <= 0x200f)) return 0;
    return code >= 0x2e80 && code < 0xa000 ? 2 : 1;
}

#define wcwidth known_width
#include "../../support/run/maps.c"
#include "../test.h"

#include <fcntl.h>

#define FILE_NAME "tests/build/maps.seen"

// What was printed since the last call, with ~ for an escape.
static const char *seen(void)
{
    static char text[1 << 14];
    flush(&standard_output);
    lseek(standard_output.file, 0, SEEK_SET);
    ssize_t n = read(standard_output.file, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    for (char *at = text; *at; at++) {
        if (*at == '\033') *at = '~';
    }
    if (ftruncate(standard_output.file, 0) != 0) return "a file that cannot be cut";
    lseek(standard_output.file, 0, SEEK_SET);
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

static void terminal(const char *locale, const char *columns)
{
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", locale, 1);
    setenv("COLUMNS", columns, 1);
    setenv("NO_COLOR", "", 1);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Cells and labels.
 */
static void check_cells(const char *what, int paint, size_t width, const char *want)
{
    static const double weights[] = {0,    0.0499, 0.05,   0.1499, 0.15,  0.2999, 0.3,
                                     0.4,  0.4999, 0.5,    0.55,   0.649, 0.65,   0.8,
                                     0.85, 0.949,  0.9949, 0.995,  1};
    bool colors = paint > BLOCKS;
    Terminal screen = {colors, colors, colors, .unicode = paint > DIGITS};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        say_cell(screen, weights[i], false, width);
        say(i % 6 == 5 ? "|\n" : "|");
        if (width > 1) say_cell(screen, weights[i], true, width);
        if (width > 1) say("|");
    }
    say("\n");
    check_seen(what, want);
}

static void check_all_cells(void)
{
    check_cells("a digit", DIGITS, 1,
                ".|.|1|1|2|3|\n"
                "3|4|5|5|6|6|\n"
                "7|8|9|9|9|9|\n"
                "9|\n");
    check_cells("three columns of digits", DIGITS, 3,
                " . | 0%| . | 5%| 1 | 5%| 1 |15%| 2 |15%| 3 |\n"
                "30%| 3 |30%| 4 |40%| 5 |50%| 5 |50%| 6 |55%| 6 |\n"
                "65%| 7 |65%| 8 |80%| 9 |85%| 9 |95%| 9 |99%| 9 |\n"
                "100| 9 |100|\n");
    check_cells("a block", BLOCKS, 1,
                "·|·|░|░|▒|▒|\n"
                "▓|▓|▓|█|█|█|\n"
                "█|█|█|█|█|█|\n"
                "█|\n");
    check_cells("two columns of blocks", BLOCKS, 2,
                "· |· |· |· |░░|░░|░░|░░|▒▒|▒▒|▒▒|\n"
                "▒▒|▓▓|▓▓|▓▓|▓▓|▓▓|▓▓|██|██|██|██|██|\n"
                "██|██|██|██|██|██|██|██|██|██|██|██|\n"
                "██|██|██|\n");
    check_cells("three columns of blocks", BLOCKS, 3,
                " · | 0%| · | 5%|░░░| 5%|░░░|15%|▒▒▒|15%|▒▒▒|\n"
                "30%|▓▓▓|30%|▓▓▓|40%|▓▓▓|50%|███|50%|███|55%|███|\n"
                "65%|███|65%|███|80%|███|85%|███|95%|███|99%|███|\n"
                "100|███|100|\n");
    check_cells(
        "a color", COLORS, 1,
        "~[48;5;234;38;5;255m ~[0m|~[48;5;234;38;5;255m ~[0m|~[48;5;236;38;5;255m "
        "~[0m|~[48;5;236;38;5;255m ~[0m|~[48;5;17;38;5;255m ~[0m|~[48;5;18;38;5;255m ~[0m|\n"
        "~[48;5;18;38;5;255m ~[0m|~[48;5;19;38;5;255m ~[0m|~[48;5;26;38;5;255m "
        "~[0m|~[48;5;26;38;5;255m ~[0m|~[48;5;32;38;5;16m ~[0m|~[48;5;32;38;5;16m ~[0m|\n"
        "~[48;5;38;38;5;16m ~[0m|~[48;5;44;38;5;16m ~[0m|~[48;5;50;38;5;16m "
        "~[0m|~[48;5;50;38;5;16m ~[0m|~[48;5;87;38;5;16m ~[0m|~[48;5;87;38;5;16m ~[0m|\n"
        "~[48;5;87;38;5;16m ~[0m|\n");
}

// A model of two layers with two heads, and a word of odd characters.
static uint32_t uchars[] = {'a',    ' ',    0x3000, 0x01,   0x7f,   0x301,  0x674e, 0x200a,
                            0x200b, 0x200f, 0x2010, 0x2029, 0x202a, 0x202e, 0x202f, 0x205f,
                            0x2060, 0x206f, 0x2070, 0xe9,   'b',    'c'};
enum { N_CHARS = sizeof uchars / sizeof *uchars };
static uint32_t tokens[N_CHARS + 1];
static Run run = {.tokenizer = {.uchars = uchars, .BOS = N_CHARS},
                  .model = {.n_layer = 2, .n_head = 2}};

static void check_labels(const char *what, int paint, const char *want)
{
    Terminal screen = {.unicode = paint > DIGITS};
    for (uint32_t i = 0; i < N_CHARS; i++) tokens[i + 1] = i;
    for (size_t i = 0; i <= N_CHARS; i++) {
        Label label = position_label(&run, screen, i);
        say("%s %d, ", label.text, label.columns);
    }
    check_seen(what, want);
}

static void check_centers(void)
{
    for (size_t width = 1; width <= 4; width++) {
        for (int columns = 0; columns <= 2 && columns <= (int)width; columns++) {
            say_label((Label){{"\0x\0y"[2 * (columns > 1) + (columns == 1)]}, columns}, width);
            say("|");
        }
    }
    check_seen("labels in the middle", " |x|  |x ||   | x | |    | x  |  |");
}

/* ------------------------------------------------------------------------------------------------------------------
 * Maps.
 */
static void check_map(const char *what, const char *locale, const char *columns, uint32_t third,
                      size_t n, const char *want)
{
    // a triangle for each head, rows one after another
    static const double rows[4][10] = {
        {1, 0.25, 0.75, 0.1, 0.2, 0.7, 0.04, 0.06, 0.5, 0.4},
        {1, 0.5, 0.5, 0.34, 0.33, 0.33, 0.01, 0.98, 0.01, 0},
        {1, 1, 0, 0, 1, 0, 0, 0, 1, 0},
        {1, 0.45, 0.55, 0.2, 0.2, 0.6, 0.1, 0.2, 0.3, 0.4},
    };
    double maps[40];
    for (size_t h = 0; h < 4; h++) {
        for (size_t row = 0; row < 4; row++) {
            memcpy(maps + map_row(4, row, h), rows[h] + row * (row + 1) / 2,
                   (row + 1) * sizeof *maps);
        }
    }
    tokens[1] = 0;
    tokens[2] = third;
    tokens[3] = N_CHARS - 1;
    terminal(locale, columns);
    draw_maps(&run, maps, n);
    check_seen(what, want);
}

// A long word, whose positions look at all others alike, but a little more at themselves.
static void check_long_map(const char *what, const char *columns, size_t n, const char *want)
{
    static double rows[16][16];
    static double maps[4 * 16 * 17 / 2];
    for (size_t row = 0; row < 16; row++) {
        for (size_t key = 0; key <= row; key++) {
            rows[row][key] = (key == row ? 2 : 1) / (double)(row + 2);
        }
        for (size_t h = 0; h < 4; h++) {
            memcpy(maps + map_row(4, row, h), rows[row], (row + 1) * sizeof *maps);
        }
        tokens[row] = 0;
    }
    tokens[n] = 6;  // the next position is wide, but not there
    terminal("C", columns);
    draw_maps(&run, maps, n);
    check_seen(what, want);
}

static void check_maps(void)
{
    check_map("maps in ASCII", "C", "80", 20, 4,
              "layer 0 head 0     layer 0 head 1     layer 1 head 0     layer 1 head 1\n"
              "   ^  a  b  c         ^  a  b  c         ^  a  b  c         ^  a  b  c \n"
              "^ 100              ^ 100              ^ 100              ^ 100\n"
              "a  3 75%           a 50% 5            a 100 .            a  5 55%\n"
              "b  1  2 70%        b 34% 3  3         b  . 100 .         b  2  2 60%\n"
              "c  .  1 50% 4      c  . 98% .  .      c  .  . 100 .      c  1  2  3 40%\n"
              "\n"
              "Rows look at columns; ^ is the start. The strongest of a row in percent, the\n"
              "  others in tenths (. under 5%).\n");
    check_map("maps in blocks, as wide as two of them", "C.UTF-8", "35", 20, 4,
              "layer 0 head 0     layer 0 head 1\n"
              "   ^  a  b  c         ^  a  b  c \n"
              "^ 100              ^ 100\n"
              "a ▒▒▒75%           a 50%███\n"
              "b ░░░▒▒▒70%        b 34%▓▓▓▓▓▓\n"
              "c  · ░░░50%▓▓▓     c  · 98% ·  · \n"
              "\n"
              "layer 1 head 0     layer 1 head 1\n"
              "   ^  a  b  c         ^  a  b  c \n"
              "^ 100              ^ 100\n"
              "a 100 ·            a ▓▓▓55%\n"
              "b  · 100 ·         b ▒▒▒▒▒▒60%\n"
              "c  ·  · 100 ·      c ░░░▒▒▒▓▓▓40%\n"
              "\n"
              "Rows look at columns; ^ is the\n"
              "  start. The strongest of a row in\n"
              "  percent, the others as · under\n"
              "  5%, ░ under 15%, ▒ under 30%, ▓\n"
              "  under 50%, █ above.\n");
    check_map("one column less: one by one", "C.UTF-8", "34", 20, 4,
              "layer 0 head 0\n"
              "   ^  a  b  c \n"
              "^ 100\n"
              "a ▒▒▒75%\n"
              "b ░░░▒▒▒70%\n"
              "c  · ░░░50%▓▓▓\n"
              "\n"
              "layer 0 head 1\n"
              "   ^  a  b  c \n"
              "^ 100\n"
              "a 50%███\n"
              "b 34%▓▓▓▓▓▓\n"
              "c  · 98% ·  · \n"
              "\n"
              "layer 1 head 0\n"
              "   ^  a  b  c \n"
              "^ 100\n"
              "a 100 · \n"
              "b  · 100 · \n"
              "c  ·  · 100 · \n"
              "\n"
              "layer 1 head 1\n"
              "   ^  a  b  c \n"
              "^ 100\n"
              "a ▓▓▓55%\n"
              "b ▒▒▒▒▒▒60%\n"
              "c ░░░▒▒▒▓▓▓40%\n"
              "\n"
              "Rows look at columns; ^ is the\n"
              "  start. The strongest of a row in\n"
              "  percent, the others as · under\n"
              "  5%, ░ under 15%, ▒ under 30%, ▓\n"
              "  under 50%, █ above.\n");
    check_map("as narrow as cells with percentages get", "C", "14", 20, 4,
              "layer 0 head 0\n"
              "   ^  a  b  c \n"
              "^ 100\n"
              "a  3 75%\n"
              "b  1  2 70%\n"
              "c  .  1 50% 4 \n"
              "\n"
              "layer 0 head 1\n"
              "   ^  a  b  c \n"
              "^ 100\n"
              "a 50% 5 \n"
              "b 34% 3  3 \n"
              "c  . 98% .  . \n"
              "\n"
              "layer 1 head 0\n"
              "   ^  a  b  c \n"
              "^ 100\n"
              "a 100 . \n"
              "b  . 100 . \n"
              "c  .  . 100 . \n"
              "\n"
              "layer 1 head 1\n"
              "   ^  a  b  c \n"
              "^ 100\n"
              "a  5 55%\n"
              "b  2  2 60%\n"
              "c  1  2  3 40%\n"
              "\n"
              "Rows look at\n"
              "  columns; ^\n"
              "  is the\n"
              "  start. The\n"
              "  strongest of\n"
              "  a row in\n"
              "  percent, the\n"
              "  others in\n"
              "  tenths (.\n"
              "  under 5%).\n");
    check_map("one column less: narrow cells", "C", "13", 20, 4,
              "layer 0 head 0\n"
              "  ^abc\n"
              "^ 9    100%\n"
              "a 38    75%\n"
              "b 127   70%\n"
              "c .154  50%\n"
              "\n"
              "layer 0 head 1\n"
              "  ^abc\n"
              "^ 9    100%\n"
              "a 55    50%\n"
              "b 333   34%\n"
              "c .9..  98%\n"
              "\n"
              "layer 1 head 0\n"
              "  ^abc\n"
              "^ 9    100%\n"
              "a 9.   100%\n"
              "b .9.  100%\n"
              "c ..9. 100%\n"
              "\n"
              "layer 1 head 1\n"
              "  ^abc\n"
              "^ 9    100%\n"
              "a 56    55%\n"
              "b 226   60%\n"
              "c 1234  40%\n"
              "\n"
              "Rows look at\n"
              "  columns; ^\n"
              "  is the\n"
              "  start. The\n"
              "  strongest\n"
              "  of a row in\n"
              "  percent,\n"
              "  the others\n"
              "  in tenths\n"
              "  (. under\n"
              "  5%).\n");
    check_map("wide characters, narrow cells", "C.UTF-8", "14", 6, 4,
              "layer 0 head 0\n"
              "   ^ a 李c \n"
              "^  ██       100%\n"
              "a  ▒▒██      75%\n"
              "李 ░░▒▒██    70%\n"
              "c  · ░░██▓▓  50%\n"
              "\n"
              "layer 0 head 1\n"
              "   ^ a 李c \n"
              "^  ██       100%\n"
              "a  ████      50%\n"
              "李 ▓▓▓▓▓▓    34%\n"
              "c  · ██· ·   98%\n"
              "\n"
              "layer 1 head 0\n"
              "   ^ a 李c \n"
              "^  ██       100%\n"
              "a  ██·      100%\n"
              "李 · ██·    100%\n"
              "c  · · ██·  100%\n"
              "\n"
              "layer 1 head 1\n"
              "   ^ a 李c \n"
              "^  ██       100%\n"
              "a  ▓▓██      55%\n"
              "李 ▒▒▒▒██    60%\n"
              "c  ░░▒▒▓▓▓▓  40%\n"
              "\n"
              "Rows look at\n"
              "  columns; ^\n"
              "  is the\n"
              "  start. The\n"
              "  strongest of\n"
              "  a row in\n"
              "  percent, the\n"
              "  others as ·\n"
              "  under 5%, ░\n"
              "  under 15%, ▒\n"
              "  under 30%, ▓\n"
              "  under 50%, █\n"
              "  above.\n");
    check_long_map("narrow cells, as wide as two maps", "49", 16,
                   "layer 0 head 0            layer 0 head 1\n"
                   "  ^aaaaaaaaaaaaaaa          ^aaaaaaaaaaaaaaa\n"
                   "^ 9                100%   ^ 9                100%\n"
                   "a 37                67%   a 37                67%\n"
                   "a 335               50%   a 335               50%\n"
                   "a 2224              40%   a 2224              40%\n"
                   "a 22223             33%   a 22223             33%\n"
                   "a 111113            29%   a 111113            29%\n"
                   "a 1111113           25%   a 1111113           25%\n"
                   "a 11111112          22%   a 11111112          22%\n"
                   "a 111111112         20%   a 111111112         20%\n"
                   "a 1111111112        18%   a 1111111112        18%\n"
                   "a 11111111112       17%   a 11111111112       17%\n"
                   "a 111111111112      15%   a 111111111112      15%\n"
                   "a 1111111111111     14%   a 1111111111111     14%\n"
                   "a 11111111111111    13%   a 11111111111111    13%\n"
                   "a 111111111111111   12%   a 111111111111111   12%\n"
                   "a 1111111111111111  12%   a 1111111111111111  12%\n"
                   "\n"
                   "layer 1 head 0            layer 1 head 1\n"
                   "  ^aaaaaaaaaaaaaaa          ^aaaaaaaaaaaaaaa\n"
                   "^ 9                100%   ^ 9                100%\n"
                   "a 37                67%   a 37                67%\n"
                   "a 335               50%   a 335               50%\n"
                   "a 2224              40%   a 2224              40%\n"
                   "a 22223             33%   a 22223             33%\n"
                   "a 111113            29%   a 111113            29%\n"
                   "a 1111113           25%   a 1111113           25%\n"
                   "a 11111112          22%   a 11111112          22%\n"
                   "a 111111112         20%   a 111111112         20%\n"
                   "a 1111111112        18%   a 1111111112        18%\n"
                   "a 11111111112       17%   a 11111111112       17%\n"
                   "a 111111111112      15%   a 111111111112      15%\n"
                   "a 1111111111111     14%   a 1111111111111     14%\n"
                   "a 11111111111111    13%   a 11111111111111    13%\n"
                   "a 111111111111111   12%   a 111111111111111   12%\n"
                   "a 1111111111111111  12%   a 1111111111111111  12%\n"
                   "\n"
                   "Rows look at columns; ^ is the start. The\n"
                   "  strongest of a row in percent, the others in\n"
                   "  tenths (. under 5%).\n");
    check_long_map("wide cells, as wide as two maps", "37", 5,
                   "layer 0 head 0      layer 0 head 1\n"
                   "   ^  a  a  a  a       ^  a  a  a  a \n"
                   "^ 100               ^ 100\n"
                   "a  3 67%            a  3 67%\n"
                   "a  3  3 50%         a  3  3 50%\n"
                   "a  2  2  2 40%      a  2  2  2 40%\n"
                   "a  2  2  2  2 33%   a  2  2  2  2 33%\n"
                   "\n"
                   "layer 1 head 0      layer 1 head 1\n"
                   "   ^  a  a  a  a       ^  a  a  a  a \n"
                   "^ 100               ^ 100\n"
                   "a  3 67%            a  3 67%\n"
                   "a  3  3 50%         a  3  3 50%\n"
                   "a  2  2  2 40%      a  2  2  2 40%\n"
                   "a  2  2  2  2 33%   a  2  2  2  2 33%\n"
                   "\n"
                   "Rows look at columns; ^ is the start.\n"
                   "  The strongest of a row in percent,\n"
                   "  the others in tenths (. under 5%).\n");
    check_map("one position", "C", "40", 20, 1,
              "layer 0 head 0     layer 0 head 1\n"
              "   ^                  ^ \n"
              "^ 100              ^ 100\n"
              "\n"
              "layer 1 head 0     layer 1 head 1\n"
              "   ^                  ^ \n"
              "^ 100              ^ 100\n"
              "\n"
              "Rows look at columns; ^ is the start.\n"
              "  The strongest of a row in percent, the\n"
              "  others in tenths (. under 5%).\n");
}

/* ------------------------------------------------------------------------------------------------------------------
 * The table, and what stands out in it.
 */
static HeadStats stats[4] = {
    {0.5, 0.25, 0.125, 0.125, 1.5, 2.5045, 0.0012, 0},
    {0.51, 0.3, 0.1, 0.09, 0.25, 2.4949, 0.00125, 0},
    {0.1, 0.55, 0.3, 0.05, 1, 3.5, 0.1, 0},
    {0.05, 0.15, 0.75, 0.05, 0.75, 2.501, HUGE_VAL, 0},
};

static void check_stats(void)
{
    terminal("C", "80");
    say_stats(&run.model, stats, 2.5, 0.0125);
    check_seen("the table",
               "layer head   self previous  first elsewhere entropy without  change  error\n"
               "    0    0  50.0%    25.0%  12.5%     12.5%    1.50  2.5045 +0.0045 0.0012\n"
               "    0    1  51.0%    30.0%  10.0%      9.0%    0.25  2.4949 -0.0051 0.0013\n"
               "    1    0  10.0%    55.0%  30.0%      5.0%    1.00  3.5000 +1.0000 0.1000 #####\n"
               "    1    1   5.0%    15.0%  75.0%      5.0%    0.75  2.5010 +0.0010    inf\n"
               "\n"
               "The loss with all heads: 2.5000, standard error 0.0125\n");
    terminal("C.UTF-8", "79");
    say_stats(&run.model, stats, 2.5, 0.0125);
    check_seen("the table on a narrow screen",
               "layer 0 head 0: self 50.0%, previous 25.0%, first 12.5%, elsewhere 12.5%,\n"
               "  entropy 1.50, without 2.5045, change +0.0045, error 0.0012\n"
               "layer 0 head 1: self 51.0%, previous 30.0%, first 10.0%, elsewhere 9.0%,\n"
               "  entropy 0.25, without 2.4949, change -0.0051, error 0.0013\n"
               "layer 1 head 0: self 10.0%, previous 55.0%, first 30.0%, elsewhere 5.0%,\n"
               "  entropy 1.00, without 3.5000, change +1.0000, error 0.1000 █████\n"
               "layer 1 head 1: self 5.0%, previous 15.0%, first 75.0%, elsewhere 5.0%, entropy\n"
               "  0.75, without 2.5010, change +0.0010, error inf\n"
               "\n"
               "The loss with all heads: 2.5000, standard error 0.0125\n");
    terminal("C.UTF-8", "100");
    say_stats(&run.model, (HeadStats[4]){{.loss = 2}, {.loss = 2}, {.loss = 2}, {.loss = 2}}, 2, 0);
    check_seen("heads that make no difference",
               "layer head   self previous  first elsewhere entropy without  change  error\n"
               "    0    0   0.0%     0.0%   0.0%      0.0%    0.00  2.0000 +0.0000 0.0000\n"
               "    0    1   0.0%     0.0%   0.0%      0.0%    0.00  2.0000 +0.0000 0.0000\n"
               "    1    0   0.0%     0.0%   0.0%      0.0%    0.00  2.0000 +0.0000 0.0000\n"
               "    1    1   0.0%     0.0%   0.0%      0.0%    0.00  2.0000 +0.0000 0.0000\n"
               "\n"
               "The loss with all heads: 2.0000, standard error 0.0000\n");
    say_stats(&run.model, (HeadStats[4]){{.loss = 1}, {.loss = 2}, {.loss = 2}, {.loss = 3.1}}, 2,
              0);
    check_seen("heads that make some",
               "layer head   self previous  first elsewhere entropy without  change  error\n"
               "    0    0   0.0%     0.0%   0.0%      0.0%    0.00  1.0000 -1.0000 0.0000 █████\n"
               "    0    1   0.0%     0.0%   0.0%      0.0%    0.00  2.0000 +0.0000 0.0000\n"
               "    1    0   0.0%     0.0%   0.0%      0.0%    0.00  2.0000 +0.0000 0.0000\n"
               "    1    1   0.0%     0.0%   0.0%      0.0%    0.00  3.1000 +1.1000 0.0000 █████\n"
               "\n"
               "The loss with all heads: 2.0000, standard error 0.0000\n");
}

static void check_findings(void)
{
    terminal("C", "80");
    say_findings(&run.model, stats, 2.5);
    check_seen("what stands out",
               "\n"
               "What stands out:\n"
               "- Layer 0 head 0 hardly matters: without it the loss changes by +0.0045.\n"
               "- Layer 0 head 1 looks at its own position more than half of the time: 51.0%.\n"
               "- Layer 0 head 1 is in the way: without it the loss is lower, by 0.0051.\n"
               "- Layer 1 head 0 looks back one character more than half of the time: 55.0%.\n"
               "- Layer 1 head 1 looks at the first position more than half of the time: 75.0%.\n"
               "- Layer 1 head 1 hardly matters: without it the loss changes by +0.0010.\n");
    const HeadStats at_the_edge = {0.5, 0.5, 0.5, 0, 1, 2, 0, 0};
    HeadStats edge[4] = {at_the_edge, at_the_edge, at_the_edge, at_the_edge};
    edge[0].loss = 2.0078125;  // by 1/128: above what hardly matters
    edge[1].loss = 1.9921875;
    edge[2].loss = 2.00390625;
    edge[3].loss = 1.99609375;
    say_findings(&run.model, edge, 2);
    check_seen("what is at the edge",
               "\n"
               "What stands out:\n"
               "- Layer 0 head 1 is in the way: without it the loss is lower, by 0.0078.\n"
               "- Layer 1 head 0 hardly matters: without it the loss changes by +0.0039.\n"
               "- Layer 1 head 1 hardly matters: without it the loss changes by -0.0039.\n");
    edge[0].loss = 0.005;
    edge[1].loss = -0.005;
    say_findings(&run.model, edge, 0);
    check_seen("what is exactly there",
               "\n"
               "What stands out:\n"
               "- Layer 0 head 1 is in the way: without it the loss is lower, by 0.0050.\n");
    for (size_t h = 0; h < 4; h++) edge[h].loss = 3;
    say_findings(&run.model, edge, 2);
    check_seen("nothing stands out", "");
}

int main(void)
{
    standard_output.file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    run.model.tokens = tokens;
    check_all_cells();
    check_labels("labels in ASCII", DIGITS,
                 "^ 1, a 1, _ 1, _ 1, ? 1, ? 1, ◌́ 1, 李 2, _ 1, ◌ 1, ? 1, ‐ 1, _ 1, ? 1, ? 1, _ 1, "
                 "_ 1,  1,  1, ⁰ 1, é 1, b 1, c 1, ");
    check_labels("labels in Unicode", BLOCKS,
                 "^ 1, a 1, ␣ 1, ␣ 1, ? 1, ? 1, ◌́ 1, 李 2, ␣ 1, ◌ 1, ? 1, ‐ 1, ␣ 1, ? 1, ? 1, ␣ 1, "
                 "␣ 1,  1,  1, ⁰ 1, é 1, b 1, c 1, ");
    check_centers();
    check_maps();
    check_stats();
    check_findings();
    return finish();
}
