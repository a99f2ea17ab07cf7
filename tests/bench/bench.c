/* bench: how fast training and sampling are, as a table. `make bench` builds and runs it.
 *
 * Every measurement is a process of its own, so that its peak of memory is its own. All of them run
 * in turn, several rounds, and the best of each counts: a noisy machine disturbs some rounds, not
 * the best. How noisy it was is in the last lines.
 */
#define _DEFAULT_SOURCE  // wait4
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/run/job.h"
#include "../../support/base/processors.h"
#include "../../support/engine/tiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *name;
    uint64_t n_layer, n_embd, n_head, block_size;
    bool long_documents;  // names joined to lines that fill the block
    uint64_t batch;
} Case;

static const Case cases[] = {
    {"default: n_embd 16", 1, 16, 4, 16, false, 1},
    {"n_embd 32", 1, 32, 4, 16, false, 1},
    {"n_embd 64", 1, 64, 4, 16, false, 1},
    {"n_embd 128", 1, 128, 4, 16, false, 1},
    {"n_embd 16, 4 layers", 4, 16, 4, 16, false, 1},
    {"n_embd 64, block 64", 1, 64, 4, 64, true, 1},
    {"n_embd 64, 2 layers, block 128", 2, 64, 4, 128, true, 1},
    {"n_embd 128, block 128", 1, 128, 4, 128, true, 1},
    {"n_embd 128, 4 layers, block 128", 4, 128, 4, 128, true, 1},
    {"n_embd 256, block 128", 1, 256, 8, 128, true, 1},
    {"n_embd 256, 4 layers, block 128", 4, 256, 8, 128, true, 1},

    {"batch 1", 1, 16, 4, 16, false, 1},
    {"batch 4", 1, 16, 4, 16, false, 4},
    {"batch 16", 1, 16, 4, 16, false, 16},
    {"batch 64", 1, 16, 4, 16, false, 64},
    {"n_embd 32, batch 1", 1, 32, 4, 16, false, 1},
    {"n_embd 32, batch 16", 1, 32, 4, 16, false, 16},
    {"n_embd 64, batch 1", 1, 64, 4, 16, false, 1},
    {"n_embd 64, batch 16", 1, 64, 4, 16, false, 16},
    {"n_embd 128, batch 1", 1, 128, 4, 16, false, 1},
    {"n_embd 128, batch 16", 1, 128, 4, 16, false, 16},

    {"n_embd 64", 2, 64, 4, 128, true, 1},
    {"n_embd 128", 2, 128, 4, 128, true, 1},
    {"n_embd 256", 2, 256, 4, 128, true, 1},
    {"n_embd 512", 2, 512, 4, 128, true, 1},

    {"block 32", 1, 64, 4, 32, true, 1},
    {"block 64", 1, 64, 4, 64, true, 1},
    {"block 128", 1, 64, 4, 128, true, 1},
    {"block 256", 1, 64, 4, 256, true, 1},
    {"block 512", 1, 64, 4, 512, true, 1},
    {"block 1024", 1, 64, 4, 1024, true, 1},
};
enum {
    N_SIZES = 11,
    BY_BATCH = N_SIZES,
    BY_WIDTH = BY_BATCH + 10,
    BY_BLOCK = BY_WIDTH + 4,
    N_CASES = BY_BLOCK + 6
};
_Static_assert(sizeof cases / sizeof cases[0] == N_CASES, "a row for each case");

typedef struct {
    double microseconds, tokens, entries, values, multiply_adds;  // per step
    double parameters, names_per_second;
    long kilobytes;
} Result;

// Seconds on a clock that never goes back.
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifdef VECTORS
typedef double Wide __attribute__((vector_size(WIDE * sizeof(double))));
#else  // where there are no vectors, numbers do as well
#define WIDE 1
typedef double Wide;
#endif

// The machine's own peak: as many independent multiply-adds as it can keep in flight. In multiply-adds per second.
static double peak(void)
{
    // Ten numbers that differ: of those that are the same, a compiler would compute one.
    Wide a0, a1, a2, a3, a4;
    memcpy(&a0, (double[8]){1}, sizeof a0);
    a1 = a0 + 1, a2 = a0 + 2, a3 = a0 + 3, a4 = a0 + 4;
    Wide a5 = a0 + 5, a6 = a0 + 6, a7 = a0 + 7, a8 = a0 + 8, a9 = a0 + 9;
    const double m = 0.999999, c = 1e-6;
    double best = 0;
    for (int round = 0; round < 40; round++) {
        double start = now();
        const int times = 20000;
        for (int i = 0; i < times; i++) {
            a0 = a0 * m + c;
            a1 = a1 * m + c;
            a2 = a2 * m + c;
            a3 = a3 * m + c;
            a4 = a4 * m + c;
            a5 = a5 * m + c;
            a6 = a6 * m + c;
            a7 = a7 * m + c;
            a8 = a8 * m + c;
            a9 = a9 * m + c;
        }
        double rate = 10.0 * WIDE * times / (now() - start);
        best = rate > best ? rate : best;
    }
    a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9;
    double all[WIDE], sum = 0;
    memcpy(all, &a0, sizeof all);
    for (size_t i = 0; i < WIDE; i++) sum += all[i];
    return isfinite(sum) ? best : 0;
}

// Names joined by spaces to lines that are longer than the block.
static void join_names(unsigned char *text, size_t n, size_t block_size)
{
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        length++;
        if (text[i] == '\n' && length <= block_size) {
            text[i] = ' ';
        } else if (text[i] == '\n') {
            length = 0;
        }
    }
}

// Multiply-adds that a token at position pos_id costs: forward once, backward once for each factor.
static double token_work(const Model *model, size_t pos_id)
{
    double E = (double)model->n_embd, L = (double)model->n_layer, V = (double)model->vocab_size;
    return 3 * (V * E + L * (12 * E * E + 2 * E * (double)(pos_id + 1)));
}

static bool measure(const Case *bench, const char *names, size_t threads, Result *result)
{
    static Job job;  // no lines, no bar, no log, nothing to save
    job.o = default_options(RECIPE_MICROGPT);
    Config *config = &job.o.config;
    Random random;
    Run work = {.config = config, .rng = &random, .job = &job};
    Documents *all = &work.docs;
    Model *model = &work.model;
    int file = open_file(names, O_RDONLY);
    unsigned char *text = NULL;
    size_t n_text = 0;
    if (file < 0 || !read_all(file, &text, &n_text, names)) {
        return fail("%s: %s", names, strerror(errno));
    }
    close(file);
    if (bench->long_documents) {
        join_names(text, n_text, (size_t)bench->block_size);
    }
    random_seed(&random, 42);
    if (!split_documents(text, n_text, all, names) || !new_tokenizer(&work.tokenizer)) {
        return false;
    }
    free(text);
    shuffle(all, &random);
    find_characters(&work.tokenizer, all);
    config->n_layer = bench->n_layer;
    config->n_embd = bench->n_embd;
    config->n_head = bench->n_head;
    config->block_size = bench->block_size;
    config->batch = bench->batch;
    config->lr =
        bench->n_embd > 256 ? 1e-4 : config->lr;  // with more, so wide a model is soon infinite
    encode(&work.tokenizer, all->text, all->n_text);
    if (!new_model(&work) || !new_batch(&work)) return false;
    init_parameters(model, &random, config);
    job.o.quiet = true;
    set_threads(threads, threads);

    // About a tenth of a second of training, whatever the size, after one step that finds its memory.
    config->steps = 1;
    if (!train(&work)) {
        return false;
    }
    double products = 0, tokens = 0,
           expected = bench->long_documents ? (double)model->block_size : 7;
    double work_expected =
        token_work(model, (size_t)expected / 2) * expected * (double)config->batch;
    uint64_t steps = 1 + (uint64_t)(1e9 / work_expected);
    for (uint64_t i = config->batch; i < (steps + 1) * config->batch; i++) {
        size_t n = take_document(model, &all->list[i % all->n]);
        for (size_t pos_id = 0; pos_id < n; pos_id++) {
            products += token_work(model, pos_id);
        }
        tokens += (double)n;
    }
    config->steps += steps;
    double start = now();
    if (!train(&work)) {
        return false;
    }
    double seconds = now() - start, n_steps = (double)steps;
    *result = (Result){.microseconds = 1e6 * seconds / n_steps,
                       .tokens = tokens / n_steps,
                       .multiply_adds = products / n_steps,
                       .entries = (double)model->tape.n_entries,
                       .values = (double)model->tape.n_values,
                       .parameters = (double)model->num_params};

    // Names, drawn as `--samples` draws them.
    tape_drop(&model->tape);
    new_cache(model, model->block_size);
    tape_mark(&model->tape);
    double n_names = 0;
    for (start = now(); now() - start < 0.02; n_names++) {
        sample(&work);
    }
    result->names_per_second = n_names / (now() - start);
    set_threads(1, 1);
    free_model(model);
    free_batch(&job.batch);
    free_tokenizer(&work.tokenizer);
    free(all->list);
    free(all->text);
    return true;
}

// Runs one case in a process of its own.
static bool measure_apart(const Case *bench, const char *names, size_t threads, Result *result)
{
    int ends[2];
    if (pipe(ends)) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        Result own = {0};
        bool ok = measure(bench, names, threads, &own);
        if (!ok) report(false);
        _exit(ok && write(ends[1], &own, sizeof own) == (ssize_t)sizeof own ? 0 : 1);
    }
    close(ends[1]);
    bool ok = child > 0 && read(ends[0], result, sizeof *result) == (ssize_t)sizeof *result;
    close(ends[0]);
    int status = 0;
    struct rusage usage = {0};
    ok = ok && wait4(child, &status, 0, &usage) == child && status == 0;
    result->kilobytes = usage.ru_maxrss;
    return ok;
}

// How long the program takes to do nothing: seconds for `microgpt --steps 0 --samples 0`.
static double start_up(const char *program)
{
    double start = now();
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execl(program, program, "--steps", "0", "--samples", "0", (char *)NULL);
        _exit(1);
    }
    int status = 1;
    bool ok = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    return ok ? now() - start : NAN;
}

// NumPy's product of matrices on one thread, in multiply-adds per second; not a number where there is no NumPy.
static double dgemm(void)
{
    FILE *pipe = popen("for python in python3 /usr/bin/python3; do "
                       "$python tests/bench/dgemm.py 2>/dev/null && exit; done",
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

static double nanoseconds_per_token(Result r) { return 1e3 * r.microseconds / r.tokens; }

// How the time grows with the width and with the block, on one thread, and how it would if it grew
// as the count of multiply-adds.
static void print_growth(const Result *best)
{
    printf("\n%-34s %11s %12s %14s %12s %13s\n", "width: 2 layers, block 128, full", "parameters",
           "us per token", "ps per token", "the same,", "multiply-adds,");
    printf("%-34s %11s %12s %14s %12s %14s\n", "", "", "", "and parameter", "row 1 = 1",
           "row 1 = 1");
    for (size_t i = BY_WIDTH; i < BY_BLOCK; i++) {
        Result r = best[i], first = best[BY_WIDTH];
        double ns = nanoseconds_per_token(r), ps = 1e3 * ns / r.parameters;
        double work = r.multiply_adds / r.tokens / r.parameters;
        printf("%-34s %11.0f %12.2f %14.0f %12.2f %14.2f\n", cases[i].name, r.parameters, 1e-3 * ns,
               ps, ps / (1e3 * nanoseconds_per_token(first) / first.parameters),
               work / (first.multiply_adds / first.tokens / first.parameters));
    }
    printf("\n%-34s %12s %17s %12s %14s\n", "block: n_embd 64, 1 layer, full", "us per token",
           "more ns for each", "the same,", "multiply-adds,");
    printf("%-34s %12s %17s %12s %14s\n", "", "", "position it sees", "row 1 = 1", "row 1 = 1");
    for (size_t i = BY_BLOCK; i < N_CASES; i++) {
        Result r = best[i], first = best[BY_BLOCK];
        double ns = nanoseconds_per_token(r), more = 0;
        if (i > BY_BLOCK) {  // a token sees half of the block, on average
            more = ns - nanoseconds_per_token(best[i - 1]);
            more /= 0.5 * (r.tokens - best[i - 1].tokens);
        }
        char slope[16] = "";
        if (i > BY_BLOCK) snprintf(slope, sizeof slope, "%.2f", more);
        printf("%-34s %12.2f %17s %12.2f %14.2f\n", cases[i].name, 1e-3 * ns, slope,
               ns / nanoseconds_per_token(first),
               r.multiply_adds / r.tokens / (first.multiply_adds / first.tokens));
    }
    printf(
        "\nOne thread. Multiply-adds are those of matrices and of causal attention, per token and\n"
        "parameter in the first table, per token in the second.\n");
}

static void print_sizes(const Result *best, double most, double theirs)
{
    printf("%-31s %11s %10s %13s %7s %8s %7s %8s %9s %8s\n", "training, one thread", "us per step",
           "tokens", "ps per token", "percent", "percent", "entries", "values", "peak of", "names");
    printf("%-31s %11s %10s %13s %7s %8s %7s %8s %9s %8s\n", "", "", "per second", "and parameter",
           "of peak", "of dgemm", "per step", "per step", "memory", "per s");
    for (size_t i = 0; i < N_SIZES; i++) {
        Result r = best[i];
        double rate = 1e6 * r.multiply_adds / r.microseconds;
        char of_peak[16], of_dgemm[16];
        printf("%-31s %11.2f %10.0f %13.0f %7s %8s %7.0f %8.0f %6.1f MB %8.0f\n", cases[i].name,
               r.microseconds, 1e6 * r.tokens / r.microseconds,
               1e6 * r.microseconds / r.tokens / r.parameters, percent(of_peak, rate / most),
               percent(of_dgemm, rate / theirs), r.entries, r.values, (double)r.kilobytes / 1024,
               r.names_per_second);
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
        double rate = 1e6 * all[i].multiply_adds / all[i].microseconds / (double)threads;
        char of_dgemm[16];
        printf("%-31s %12.2f %12.2f %9.2f %9.0f %% %13.2f %9s\n", cases[i].name, before, after,
               times, 100 * times / (double)threads, after / one[alone].microseconds,
               percent(of_dgemm, rate / theirs));
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const char *names = argc > 1 ? argv[1] : "data/names.txt";
    const char *program = argc > 2 ? argv[2] : "./microgpt";
    const int rounds = argc > 3 && atoi(argv[3]) > 0 ? atoi(argv[3]) : 7;
    size_t threads = processors();
    static Result best[2][N_CASES];
    static double worst[N_CASES];
    double start = 1e9, most = 0, theirs = NAN;
    for (int round = 0; round < rounds; round++) {
        double rate = peak(), seconds = start_up(program);
        most = rate > most ? rate : most;
        theirs = fmax(theirs, dgemm());  // the other, if one is not a number
        start = seconds < start ? seconds : start;
        for (size_t i = 0; i < N_CASES; i++) {
            for (size_t k = 0; k < (i < BY_WIDTH ? 2 : 1); k++) {
                Result result, *r = &best[k][i];
                if (!measure_apart(&cases[i], names, k ? threads : 1, &result)) return 1;
                if (round == 0) *r = result;
                r->microseconds = fmin(r->microseconds, result.microseconds);
                r->names_per_second = fmax(r->names_per_second, result.names_per_second);
                if (k == 0) worst[i] = fmax(worst[i], result.microseconds);
            }
        }
    }
    print_sizes(best[0], most, theirs);
    print_threads(best[0], best[1], threads, theirs);
    print_growth(best[0]);
    for (size_t i = 0; i < N_CASES; i++) worst[i] /= best[0][i].microseconds;
    qsort(worst, N_CASES, sizeof worst[0], by_size);
    printf("\nThis machine's peak: %.1f billion multiply-adds per second and thread, %d at a time, "
           "double precision.\n",
           most / 1e9, WIDE);
    if (isnan(theirs)) {
        printf("Beside dgemm: skipped, no Python here has NumPy.\n");
    } else {
        printf(
            "NumPy's dgemm: %.1f billion multiply-adds per second on one thread; of dgemms: of as "
            "many as threads.\n",
            theirs / 1e9);
    }
    printf("Start-up (--steps 0 --samples 0): %.1f ms. Best of %d rounds.\n", 1e3 * start, rounds);
    printf("Noise: in the median row, the slowest round took %.2f times as long as the best.\n",
           worst[N_CASES / 2]);
    return 0;
}
