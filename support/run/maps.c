/* maps.c: the results of heads.c, drawn for people: maps of a word, a table of heads, and what
 * stands out in it. Everything fits the screen, in colors, blocks or digits.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

#include <wchar.h>

typedef enum { DIGITS, BLOCKS, COLORS } Paint;

static Paint paint_of(Terminal screen)
{
    if (screen.is_terminal && screen.draws && screen.color) return COLORS;
    return screen.unicode ? BLOCKS : DIGITS;
}

// ^ is the start. Invisible characters get a visible sign.
Label token_label(const Run *run, Terminal screen, size_t token)
{
    uint32_t code = token < run->tokenizer.BOS ? run->tokenizer.uchars[token] : '^';
    if (is_space(code)) code = paint_of(screen) == DIGITS ? '_' : 0x2423;  // an open box
    if (is_control(code)) code = '?';
    int columns = wcwidth((wchar_t)code);
    Label label = {"", columns > 0 ? columns : 1};
    if (columns == 0) strcpy(label.text, "\u25cc");  // a mark goes onto the character before it
    bool steers = (code >= 0x200b && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
                  (code >= 0x2060 && code <= 0x206f);  // joins or turns the text around it
    if (!steers) encode_utf8(code, label.text + strlen(label.text));
    return label;
}

Label position_label(const Run *run, Terminal screen, size_t i)
{
    return token_label(run, screen, i ? run->model.tokens[i] : run->tokenizer.BOS);
}

void say_label(Label label, size_t width)
{
    int left = ((int)width - label.columns) / 2, right = (int)width - label.columns - left;
    say("%*s%s%*s", left, "", label.text, right, "");
}

// One weight. The strongest of its row shows its percentage, where a cell is wide enough.
static void say_cell(Terminal screen, double weight, bool strongest, size_t width)
{
    static const int ramp[] = {234, 236, 17, 18, 19, 26, 32, 38, 44, 50, 87};
    int tenths = (int)(weight * 10 + 0.5);
    bool faint = weight < 0.05, colors = paint_of(screen) == COLORS;
    if (colors) say("\033[48;5;%d;38;5;%dm", ramp[tenths], tenths > 5 ? 16 : 255);
    if (strongest && width == 3) {
        say(weight < 0.995 ? "%2.0f%%" : "%.0f", 100 * weight);
    } else if (colors) {
        say("%*s", (int)width, "");
    } else if (paint_of(screen) == DIGITS) {
        say_label((Label){{faint ? '.' : (char)('0' + (tenths < 9 ? tenths : 9))}, 1}, width);
    } else if (faint) {
        say_label((Label){"·", 1}, width);
    } else {
        const char *block = weight < 0.15 ? "░" : weight < 0.3 ? "▒" : weight < 0.5 ? "▓" : "█";
        for (size_t i = 0; i < width; i++) say("%s", block);
    }
    if (colors) say("\033[0m");
}

// The sizes of a map, in columns.
typedef struct {
    size_t n;                 // positions
    size_t label, cell, one;  // a label, a cell, a whole map
} Layout;

// Where a row of cells with percentages is too wide, cells are as narrow as the labels, and the
// percentage of the strongest comes after the row.
static Layout lay_out_maps(const Run *run, Terminal screen, size_t n)
{
    Layout map = {.n = n, .label = 1};
    for (size_t i = 0; i < n; i++) {
        if (position_label(run, screen, i).columns > 1) map.label = 2;
    }
    map.cell = map.label + 1 + 3 * n <= screen.columns ? 3 : map.label;
    map.one = map.label + 1 + map.cell * n + (map.cell < 3 ? 5 : 0);
    if (map.one < 16) map.one = 16;  // room for the title
    return map;
}

// One row of one map; row 0 labels the columns. Returns how many columns it took.
static size_t say_row(const Run *run, Terminal screen, Layout map, size_t row, const double *w)
{
    size_t strongest = argmax(w, row);
    say_label(row ? position_label(run, screen, row - 1) : (Label){"", 0}, map.label);
    say(" ");
    for (size_t key = 0; !row && key < map.n; key++) {
        say_label(position_label(run, screen, key), map.cell);
    }
    for (size_t key = 0; key < row; key++) say_cell(screen, w[key], key == strongest, map.cell);
    if (!row || map.cell == 3) return map.label + 1 + map.cell * (row ? row : map.n);
    say("%*s %3.0f%%", (int)(map.cell * (map.n - row)), "", 100 * w[strongest]);
    return map.label + 1 + map.cell * map.n + 5;
}

// The maps of n positions, as many side by side as fit.
void draw_maps(const Run *run, const double *maps, size_t n)
{
    const Model *model = &run->model;
    Terminal screen = terminal_of(STDOUT_FILENO);
    Layout map = lay_out_maps(run, screen, n);
    size_t n_heads = model->n_layer * model->n_head, gap = 3;
    size_t fit = (screen.columns + gap) / (map.one + gap), abreast = fit ? fit : 1;
    for (size_t from = 0; from < n_heads; from += abreast) {
        size_t to = from + abreast < n_heads ? from + abreast : n_heads;
        for (size_t h = from; h < to; h++) {
            char title[64];
            snprintf(title, sizeof title, "layer %zu head %zu", h / model->n_head,
                     h % model->n_head);
            say("%-*s", h + 1 < to ? (int)(map.one + gap) : 0, title);
        }
        for (size_t row = 0; row <= n; row++) {
            say("\n");
            for (size_t h = from; h < to; h++) {
                const double *w = row ? maps + map_row(n_heads, row - 1, h) : NULL;
                size_t used = say_row(run, screen, map, row, w);
                if (h + 1 < to) say("%*s", (int)(map.one + gap - used), "");
            }
        }
        say("\n\n");
    }
    static const char *const others[] = {
        [DIGITS] = "the others in tenths (. under 5%)",
        [BLOCKS] = "the others as · under 5%, ░ under 15%, ▒ under 30%, ▓ under 50%, █ above",
        [COLORS] = "the others in shades, brighter for more",
    };
    say_sentence(screen.columns,
                 "Rows look at columns; ^ is the start. The strongest of a row in percent, %s.",
                 others[paint_of(screen)]);
}

// One row per head; on a narrow screen, a few lines per head.
void say_stats(const Model *model, const HeadStats *stats, double loss, double error)
{
    Terminal screen = terminal_of(STDOUT_FILENO);
    size_t n_heads = model->n_layer * model->n_head;
    bool wide = screen.columns >= 80;
    double max = 0;
    for (size_t h = 0; h < n_heads; h++) max = fmax(max, fabs(stats[h].loss - loss));
    if (wide) say("layer head   self previous  first elsewhere entropy without  change  error\n");
    for (size_t h = 0; h < n_heads; h++) {
        const HeadStats *head = &stats[h];
        double change = head->loss - loss;
        int marks = max > 0 ? (int)(5 * fabs(change) / max + 0.5) : 0;
        say_sentence(
            wide ? SIZE_MAX : screen.columns,  // a table's row is not broken
            wide ? "%5zu %4zu %5.1f%% %7.1f%% %5.1f%% %8.1f%% %7.2f %7.4f %+7.4f %6.4f%s%.*s"
                 : "layer %zu head %zu: self %.1f%%, previous %.1f%%, first %.1f%%, "
                   "elsewhere %.1f%%, entropy %.2f, without %.4f, change %+.4f, error %.4f%s%.*s",
            h / model->n_head, h % model->n_head, 100 * head->self, 100 * head->previous,
            100 * head->first, 100 * head->elsewhere, head->entropy, head->loss, change,
            head->error, marks ? " " : "", screen.unicode ? 3 * marks : marks,  // bytes
            screen.unicode ? "█████" : "#####");
    }
    say("\n");
    say_sentence(screen.columns, "The loss with all heads: %.4f, standard error %.4f", loss, error);
}

// What stands out, in words, and only if the numbers support it.
void say_findings(const Model *model, const HeadStats *stats, double loss)
{
    Terminal screen = terminal_of(STDOUT_FILENO);
    bool any = false;
    for (size_t h = 0; h < model->n_layer * model->n_head; h++) {
        const HeadStats *head = &stats[h];
        double change = head->loss - loss;
        const struct {
            bool holds;
            const char *text;
            double figure;
        } findings[] = {
            {head->previous > 0.5, "looks back one character more than half of the time: %.1f%%.",
             100 * head->previous},
            {head->self > 0.5, "looks at its own position more than half of the time: %.1f%%.",
             100 * head->self},
            {head->first > 0.5, "looks at the first position more than half of the time: %.1f%%.",
             100 * head->first},
            {fabs(change) < 0.005, "hardly matters: without it the loss changes by %+.4f.", change},
            {change <= -0.005, "is in the way: without it the loss is lower, by %.4f.", -change},
        };
        for (size_t i = 0; i < sizeof findings / sizeof findings[0]; i++) {
            if (!findings[i].holds) continue;
            char text[128];
            snprintf(text, sizeof text, findings[i].text, findings[i].figure);
            say("%s", any ? "" : "\nWhat stands out:\n");
            say_sentence(screen.columns, "- Layer %zu head %zu %s", h / model->n_head,
                         h % model->n_head, text);
            any = true;
        }
    }
}
