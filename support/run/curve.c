/* curve.c: the losses of a run, and the curve of them that a terminal shows at its end.
 *
 * However many steps a run has, it has at most POINTS points: a point is the mean of its steps,
 * each of which was added once.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

enum { LAST_STEPS = 100 };  // their mean loss is shown at the end

static size_t curve_points(uint64_t steps) { return steps < POINTS ? (size_t)steps : POINTS; }

static size_t curve_point(const Progress *progress, uint64_t step)
{
    uint64_t steps = progress->steps - progress->curve_start;
    return (size_t)((step - progress->curve_start) * curve_points(steps) / steps);
}

void add_to_curve(Progress *progress, uint64_t step, double loss)
{
    size_t i = curve_point(progress, step);
    progress->curve_sum[i] += loss;
    progress->curve_n[i]++;
    if (progress->steps - step <= LAST_STEPS) {
        progress->last_sum += loss;
        progress->last_n++;
    }
    progress->smooth = 0.99 * progress->smooth + 0.01 * loss;
    progress->smooth_weight = 0.99 * progress->smooth_weight + 0.01;
}

void add_held_out(Progress *progress, uint64_t done, double loss)
{
    if (done > progress->curve_start) {
        progress->held_curve[curve_point(progress, done - 1)] = loss;
    }
    if (!progress->any_held || loss < progress->lowest) {
        progress->lowest_step = done;
        progress->lowest = loss;
    }
    progress->any_held = true;
    progress->held_loss = loss;
}

enum { CURVE_ROWS = 6, WIDEST = 64 };  // of the curve, in characters

// The curve as n columns: the points that share one are averaged, then each column with its
// neighbors, for a quieter line.
static void smooth_curve(const Progress *progress, size_t points, double *y, size_t n)
{
    double mean[2 * WIDEST] = {0};
    for (size_t i = 0; i < n; i++) {
        double sum = 0, count = 0;
        for (size_t k = i * points / n; k < (i + 1) * points / n; k++) {
            sum += progress->curve_sum[k];
            count += progress->curve_n[k];
        }
        mean[i] = sum / count;
    }
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        size_t reach = i < n / 40 ? i : n / 40, count = 0;
        for (size_t k = i - reach; k <= i + reach && k < n; k++, count++) sum += mean[k];
        y[i] = sum / (double)count;
    }
}

// A curve as characters: in Braille, with two by four dots to each, or in ASCII, with one by two.
typedef struct {
    bool plain;         // ASCII
    size_t across, up;  // dots to a character
    size_t n, width;    // columns of dots, and of characters
    double low, high;
    unsigned char cells[CURVE_ROWS][WIDEST];  // their dots, as bits
    bool held[CURVE_ROWS][WIDEST];            // the loss held out is here
} Curve;

// Bits of a Braille character, from the lower left dot up, then the right column.
static const unsigned char dots[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};

static void include(Curve *curve, double loss)
{
    curve->low = fmin(curve->low, loss);
    curve->high = fmax(curve->high, loss);
}

static size_t level_of(const Curve *curve, double loss)
{
    double range = curve->high - curve->low, share = range > 0 ? (loss - curve->low) / range : 0;
    return (size_t)(share * (double)(CURVE_ROWS * curve->up - 1) + 0.5);
}

// false: the losses cannot be shown.
static bool plot(Curve *curve, const Progress *progress, size_t points)
{
    double y[2 * WIDEST];
    size_t n = curve->n;
    smooth_curve(progress, points, y, n);
    for (size_t i = 0; i < n; i++) include(curve, y[i]);
    for (size_t k = 0; k < points; k++) {
        if (progress->held_curve[k] > 0) include(curve, progress->held_curve[k]);
    }
    if (!isfinite(curve->high - curve->low)) return false;  // a log may say anything
    for (size_t i = 0, before = 0; i < n; i++) {
        size_t level = level_of(curve, y[i]);
        if (i == 0 || curve->plain) before = level;
        size_t from = level < before ? level : before, to = level < before ? before : level;
        for (size_t k = from; k <= to; k++) {  // a steep line has no gaps
            if (k == level || k != before) {
                curve->cells[k / curve->up][i / curve->across] |=
                    dots[i % curve->across][k % curve->up];
            }
        }
        before = level;
    }
    for (size_t k = 0; k < points; k++) {
        double held = progress->held_curve[k];
        if (held > 0) {
            curve->held[level_of(curve, held) / curve->up][k * n / points / curve->across] = true;
        }
    }
    return true;
}

static void show_curve_row(const Curve *curve, size_t row, bool color)
{
    Output *out = &standard_error;
    bool plain = curve->plain, edge = row == CURVE_ROWS - 1 || row == 0;
    const char *on = color ? "\033[36m" : "", *off = color ? "\033[0m" : "";
    char label[32] = "", utf8[4];
    if (edge) snprintf(label, sizeof label, "%.2f", row ? curve->high : curve->low);
    put(out, "%7.7s %s%s", label, plain ? "|" : edge ? "\u2524" : "\u2502", on);
    for (size_t i = 0; i < curve->width; i++) {
        uint32_t cell = curve->cells[row][i], ascii = cell == dots[0][0] ? '.' : '\'';
        if (curve->held[row][i]) {
            put(out, color ? "\033[33mo\033[36m" : "o");
        } else {
            put_bytes(out, utf8, encode_utf8(!cell ? ' ' : plain ? ascii : 0x2800 + cell, utf8));
        }
    }
    show("%s\n", off);
}

// The loss curve, six lines high, and the losses held out as the letter o.
void draw_curve(const Progress *progress, double took)
{
    Terminal terminal = terminal_of(STDERR_FILENO);
    uint64_t all = progress->steps - progress->curve_start;
    uint64_t now = progress->steps - progress->steps_before;
    size_t columns = terminal.columns - 1, points = curve_points(all);
    if (columns < 16 || points < 2) return;
    Curve curve = {.plain = !terminal.unicode, .low = HUGE_VAL, .high = -HUGE_VAL};
    curve.across = curve.plain ? 1 : 2;
    curve.up = curve.plain ? 2 : 4;
    size_t room = curve.across * (columns - 10 < WIDEST ? columns - 10 : WIDEST);
    curve.n = room < points ? room : points;
    curve.width = (curve.n + curve.across - 1) / curve.across;
    if (!plot(&curve, progress, points)) return;

    char title[128], last_part[48] = "", axis[64];
    if (now < all) snprintf(last_part, sizeof last_part, "the last %" PRIu64 " ", now);
    snprintf(title, sizeof title, "loss over %" PRIu64 " steps, %sin %.*f s%s", all, last_part,
             took < 10 ? 2 : 0, took, progress->any_held ? "; o: held out" : "");
    show("%.*s\n", (int)columns, title);
    for (size_t row = CURVE_ROWS; row-- > 0;) show_curve_row(&curve, row, terminal.color);
    int used = snprintf(axis, sizeof axis, "%9s%" PRIu64 " ", "", progress->curve_start + 1);
    int left = 9 + (int)curve.width - used;
    show("%s%*" PRIu64 "\n", axis, left > 0 ? left : 0, progress->steps);
}
