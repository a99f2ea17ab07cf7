/* bench: how fast training and sampling are, as tables. `make bench` builds and runs it.
 *
 *   bench NAMES PROGRAM [ROUNDS]
 *
 * A measurement is a run of the program: its time less that of the same run with a single step, and
 * its peak of memory. All of them run in turn, several rounds, and the best of each counts: a noisy
 * machine disturbs some rounds, not the best. How noisy it was is in the last lines.
 */
#define _DEFAULT_SOURCE  // wait4
#include "../../support/base/processors.h"
#include "../../support/engine/tiles.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *name;
    size_t n_layer, n_embd, n_head, block_size, batch;  // names; with longer blocks, full lines
} Case;

static const Case cases[] = {
    {"default: n_embd 16", 1, 16, 4, 16, 1},
    {"n_embd 32", 1, 32, 4, 16, 1},
    {"n_embd 64", 1, 64, 4, 16, 1},
    {"n_embd 128", 1, 128, 4, 16, 1},
    {"n_embd 16, 4 layers", 4, 16, 4, 16, 1},
    {"n_embd 64, block 64", 1, 64, 4, 64, 1},
    {"n_embd 64, 2 layers, block 128", 2, 64, 4, 128, 1},
    {"n_embd 128, block 128", 1, 128, 4, 128, 1},
    {"n_embd 128, 4 layers, block 128", 4, 128, 4, 128, 1},
    {"n_embd 256, block 128", 1, 256, 8, 128, 1},
    {"n_embd 256, 4 layers, block 128", 4, 256, 8, 128, 1},

    {"batch 1", 1, 16, 4, 16, 1},
    {"batch 4", 1, 16, 4, 16, 4},
    {"batch 16", 1, 16, 4, 16, 16},
    {"batch 64", 1, 16, 4, 16, 64},
    {"n_embd 32, batch 1", 1, 32, 4, 16, 1},
    {"n_embd 32, batch 16", 1, 32, 4, 16, 16},
    {"n_embd 64, batch 1", 1, 64, 4, 16, 1},
    {"n_embd 64, batch 16", 1, 64, 4, 16, 16},
    {"n_embd 128, batch 1", 1, 128, 4, 16, 1},
    {"n_embd 128, batch 16", 1, 128, 4, 16, 16},

    {"n_embd 64", 2, 64, 4, 128, 1},
    {"n_embd 128", 2, 128, 4, 128, 1},
    {"n_embd 256", 2, 256, 4, 128, 1},
    {"n_embd 512", 2, 512, 4, 128, 1},

    {"block 32", 1, 64, 4, 32, 1},
    {"block 64", 1, 64, 4, 64, 1},
    {"block 128", 1, 64, 4, 128, 1},
    {"block 256", 1, 64, 4, 256, 1},
    {"block 512", 1, 64, 4, 512, 1},
    {"block 1024", 1, 64, 4, 1024, 1},
};
enum { BY_BATCH = 11, BY_WIDTH = 21, BY_BLOCK = 25, N_CASES = 31 };  // where each table begins
_Static_assert(sizeof cases / sizeof cases[0] == N_CASES, "a row for each case");

// Three runs: with one step, with many, and with one step and many samples.
enum { ONE, MANY, SAMPLES, N_RUNS };

typedef struct {
    double tokens, multiply_adds, parameters;  // of a step, of a step, of the model
    double seconds[N_RUNS];                    // the best of each run
    double slowest;                            // of the runs with many steps
    double microseconds, names_per_second;     // of a step
    long kilobytes;
} Result;

enum { MAX_LINE = 1100 };
static const char long_lines[] = ".build/bench.txt";  // names joined to lines longer than any block
static const char *names_file, *program;
static double n_of_length[MAX_LINE];  // how many names of this length there are

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifdef VECTORS
typedef double TileVec __attribute__((vector_size(TILE_VEC * sizeof(double))));
#else  // where there are no vectors, numbers do as well
#define TILE_VEC 1
typedef double TileVec;
#endif

// The machine's own peak, in multiply-adds per second: as many independent ones as it can keep in
// flight. They differ: of those that are the same, a compiler would compute one.
static double peak(void)
{
    enum { IN_FLIGHT = 10, TIMES = 20000 };
    TileVec a[IN_FLIGHT];
    double best = 0, sum = 0;
    memcpy(&a[0], (double[8]){1}, sizeof a[0]);
    for (int k = 1; k < IN_FLIGHT; k++) a[k] = a[0] + k;
    for (int round = 0; round < 40; round++) {
        double start = now();
        for (int i = 0; i < TIMES; i++) {
            for (int k = 0; k < IN_FLIGHT; k++) a[k] = a[k] * 0.999999 + 1e-6;
        }
        best = fmax(best, (double)IN_FLIGHT * TILE_VEC * TIMES / (now() - start));
    }
    for (int k = 1; k < IN_FLIGHT; k++) a[0] += a[k];
    double all[TILE_VEC];
    memcpy(all, &a[0], sizeof all);
    for (size_t i = 0; i < TILE_VEC; i++) sum += all[i];
    return isfinite(sum) ? best : 0;
}

// Counts the names by length, and joins them to long lines.
static bool read_names(void)
{
    FILE *names = fopen(names_file, "r"), *lines = fopen(long_lines, "w");
    char name[256];
    size_t length = 0;
    while (names && lines && fgets(name, sizeof name, names)) {
        size_t n = strcspn(name, "\n");
        n_of_length[n]++;
        length += n + 1;
        fprintf(lines, "%.*s%c", (int)n, name, length < MAX_LINE ? ' ' : '\n');
        if (length >= MAX_LINE) length = 0;
    }
    if (names) fclose(names);
    return lines && fclose(lines) == 0 && names;
}

// Runs the program. Returns its seconds.
static double run(const char *options, double steps, double samples, long *kilobytes)
{
    char command[4096];
    snprintf(command, sizeof command, "exec '%s' -q %s --steps %.0f --samples %.0f >/dev/null 2>&1",
             program, options, steps, samples);
    struct rusage usage = {0};
    int status = 1;
    double start = now();
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    bool ok = child > 0 && wait4(child, &status, 0, &usage) == child && status == 0;
    if (kilobytes) *kilobytes = usage.ru_maxrss;
    double seconds = now() - start;
    if (ok) return seconds;
    fprintf(stderr, "bench: failed: %s\n", command);
    exit(1);
}

// Counts the tokens and the multiply-adds of a mean step: forward once, backward once for each factor.
static Result count(const Case *c)
{
    bool full = c->block_size > 16;
    double E = (double)c->n_embd, L = (double)c->n_layer, V = full ? 28 : 27, docs = 0;
    Result r = {.parameters = (2 * V + (double)c->block_size + 12 * L * E) * E};
    for (size_t length = 0; length < MAX_LINE; length++) {
        size_t n = full ? c->block_size : length + 1;
        double weight = full ? length == 0 : n_of_length[length];
        double T = (double)(n < c->block_size ? n : c->block_size);
        docs += weight;
        r.tokens += weight * T;
        r.multiply_adds += weight * 3 * (V * E + L * (12 * E * E + E * (T + 1))) * T;
    }
    r.tokens *= (double)c->batch / docs;
    r.multiply_adds *= (double)c->batch / docs;
    return r;
}

// A round of one case: a tenth of a second of training, or four steps, and of sampling. Where other
// programs made the long run as short as the one before it, both are run again.
static void measure(const Case *c, size_t threads, Result *best)
{
    char options[1024];
    Result r = count(c);
    double steps = 4 + floor(1e9 / r.multiply_adds), names = 1 + floor(5e8 / r.multiply_adds);
    snprintf(options, sizeof options,
             "--data '%s' --n-layer %zu --n-embd %zu --n-head %zu --block-size %zu --batch %zu "
             "--threads %zu --lr %g",
             c->block_size > 16 ? long_lines : names_file, c->n_layer, c->n_embd, c->n_head,
             c->block_size, c->batch, threads, c->n_embd > 256 ? 1e-4 : 0.01);
    for (int i = 0; i < 9 && r.seconds[MANY] <= r.seconds[ONE]; i++) {
        r.seconds[ONE] = run(options, 1, 0, NULL);
        r.seconds[MANY] = run(options, 1 + steps, 0, &r.kilobytes);
    }
    r.seconds[SAMPLES] = run(options, 1, names, NULL);
    r.slowest = fmax(best->slowest, r.seconds[MANY]);
    for (int k = 0; k < N_RUNS; k++) {
        if (best->tokens > 0) r.seconds[k] = fmin(r.seconds[k], best->seconds[k]);
    }
    enum { SHORTEST_US = 100 };  // no less can be told
    r.microseconds = fmax(1e6 * (r.seconds[MANY] - r.seconds[ONE]), SHORTEST_US) / steps;
    r.names_per_second = names / fmax(r.seconds[SAMPLES] - r.seconds[ONE], 1e-6 * SHORTEST_US);
    *best = r;
}

// NumPy's product of matrices on one thread, in multiply-adds per second; not a number where there is no NumPy.
static double dgemm(void)
{
    FILE *pipe = popen("for python in python3 /usr/bin/python3; do "
                       "$python tests/bench/openblas.py 2>/dev/null && exit; done",
                       "r");
    double rate = NAN;
    if (pipe && fscanf(pipe, "%lf", &rate) != 1) rate = NAN;
    if (pipe) pclose(pipe);
    return 1e9 * rate;
}

// A share in percent, or a dash where it is not known.
static const char *percent(char text[16], double share)
{
    snprintf(text, 16, isnan(share) ? "-" : "%.1f", 100 * share);
    return text;
}

static double ns_per_token(Result r) { return 1e3 * r.microseconds / r.tokens; }
static double rate(Result r) { return 1e6 * r.multiply_adds / r.microseconds; }

static void print_sizes(const Result *best, double most, double theirs)
{
    printf("%-31s %11s %10s %13s %7s %8s %9s %8s\n", "training, one thread", "us per step",
           "tokens", "ps per token", "percent", "percent", "peak of", "names");
    printf("%-31s %11s %10s %13s %7s %8s %9s %8s\n", "", "", "per second", "and parameter",
           "of peak", "of dgemm", "memory", "per s");
    for (size_t i = 0; i < BY_BATCH; i++) {
        Result r = best[i];
        char of_peak[16], of_dgemm[16];
        printf("%-31s %11.2f %10.0f %13.0f %7s %8s %6.1f MB %8.0f\n", cases[i].name, r.microseconds,
               1e9 / ns_per_token(r), 1e3 * ns_per_token(r) / r.parameters,
               percent(of_peak, rate(r) / most), percent(of_dgemm, rate(r) / theirs),
               (double)r.kilobytes / 1024, r.names_per_second);
    }
}

// The same work on one thread and on all. A step of a batch has several documents.
static void print_threads(const Result *one, const Result *all, size_t threads, double theirs)
{
    char heading[32];
    snprintf(heading, sizeof heading, "%zu threads", threads);
    printf("\n%-31s %12s %12s %9s %11s %13s %9s\n", "training, us per document", "1 thread",
           heading, "speed-up", "speed-up", "of batch 1,", "percent");
    printf("%-31s %12s %12s %9s %11s %13s %9s\n", "", "", "", "", "per thread", "1 thread",
           "of dgemms");
    for (size_t i = 0; i < BY_WIDTH; i++) {
        double batch = (double)cases[i].batch, before = one[i].microseconds / batch;
        double after = all[i].microseconds / batch, times = before / after;
        size_t alone = i < BY_BATCH ? i : i < BY_BATCH + 4 ? BY_BATCH : i - (i - BY_BATCH) % 2;
        char of_dgemm[16];
        printf("%-31s %12.2f %12.2f %9.2f %9.0f %% %13.2f %9s\n", cases[i].name, before, after,
               times, 100 * times / (double)threads, after / one[alone].microseconds,
               percent(of_dgemm, rate(all[i]) / (double)threads / theirs));
    }
}

// How the time grows with the width and with the block, and how it would as the multiply-adds do.
static void print_growth(const Result *best)
{
    printf("\n%-34s %11s %12s %14s %12s %13s\n", "width: 2 layers, block 128, full", "parameters",
           "us per token", "ps per token", "the same,", "multiply-adds,");
    printf("%-34s %11s %12s %14s %12s %14s\n", "", "", "", "and parameter", "row 1 = 1",
           "row 1 = 1");
    for (size_t i = BY_WIDTH; i < BY_BLOCK; i++) {
        Result r = best[i], first = best[BY_WIDTH];
        double ps = 1e3 * ns_per_token(r) / r.parameters;
        double work = r.multiply_adds / r.tokens / r.parameters;
        printf("%-34s %11.0f %12.2f %14.0f %12.2f %14.2f\n", cases[i].name, r.parameters,
               1e-3 * ns_per_token(r), ps, ps / (1e3 * ns_per_token(first) / first.parameters),
               work / (first.multiply_adds / first.tokens / first.parameters));
    }
    printf("\n%-34s %12s %12s %14s\n", "block: n_embd 64, 1 layer, full", "us per token",
           "the same,", "multiply-adds,");
    printf("%-34s %12s %12s %14s\n", "", "", "row 1 = 1", "row 1 = 1");
    for (size_t i = BY_BLOCK; i < N_CASES; i++) {
        Result r = best[i], first = best[BY_BLOCK];
        printf("%-34s %12.2f %12.2f %14.2f\n", cases[i].name, 1e-3 * ns_per_token(r),
               ns_per_token(r) / ns_per_token(first),
               r.multiply_adds / r.tokens / (first.multiply_adds / first.tokens));
    }
    printf(
        "\nOne thread. Multiply-adds are those of matrices and of causal attention, per token and\n"
        "parameter in the first table, per token in the second.\n");
}

static void print_machine(double most, double theirs, double start, int rounds, double noise)
{
    printf("\nThis machine's peak: %.1f billion multiply-adds per second and thread, %d at a time, "
           "double precision.\n",
           most / 1e9, TILE_VEC);
    if (isnan(theirs)) {
        printf("Beside dgemm: skipped, no Python here has NumPy.\n");
    } else {
        printf("NumPy's dgemm: %.1f billion multiply-adds per second on one thread; of dgemms: "
               "of as many as threads.\n",
               theirs / 1e9);
    }
    printf("Start-up (--steps 0 --samples 0): %.1f ms. Best of %d rounds.\n", 1e3 * start, rounds);
    printf("Noise: in the median row, the slowest round took %.2f times as long as the best.\n",
           noise);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static Result best[2][N_CASES];
    double start = 1e9, noise[N_CASES], most = 0, theirs = NAN;
    size_t threads = processors();
    const int rounds = argc > 3 ? atoi(argv[3]) : 7;
    if (argc < 3) return 2;
    names_file = argv[1];
    program = argv[2];
    if (!read_names()) return 1;
    for (int round = 0; round < rounds; round++) {
        most = fmax(most, peak());
        theirs = fmax(theirs, dgemm());  // the other, if one is not a number
        start = fmin(start, run("", 0, 0, NULL));
        for (size_t i = 0; i < N_CASES; i++) {
            measure(&cases[i], 1, &best[0][i]);
            if (i < BY_WIDTH) measure(&cases[i], threads, &best[1][i]);
        }
    }
    print_sizes(best[0], most, theirs);
    print_threads(best[0], best[1], threads, theirs);
    print_growth(best[0]);
    for (size_t i = 0; i < N_CASES; i++) noise[i] = best[0][i].slowest / best[0][i].seconds[MANY];
    qsort(noise, N_CASES, sizeof noise[0], by_size);
    print_machine(most, theirs, start, rounds, noise[N_CASES / 2]);
    return 0;
}
