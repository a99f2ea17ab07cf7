/* The pool of threads: every part is done once, by whoever is there; with more threads than processors, with threads that
 * do not start, and with shared work within shared work. And how many processors there are.
 */
// also built with -DAUTOGRAD_PLAIN only with ALL=1
#define _GNU_SOURCE
#include "../test.h"

#include "../../support/base/processors.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static size_t may_start = SIZE_MAX;  // threads, before pthread_create() fails
static sigset_t blocked;             // in the last thread that was started

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                  void *argument)
{
    if (may_start == 0) return 11;
    may_start--;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    return pthread_create(thread, attributes, start, argument);
}

#define pthread_create create
#include "../../support/engine/threads.c"
#undef pthread_create
#include "../../support/engine/lanes.c"

#ifdef THREADS
enum { MANY = 1 };
#else
enum { MANY = 0 };
#endif

enum { MOST_PARTS = 200 };

typedef struct {
    unsigned char done[MOST_PARTS];
    bool nested;
    size_t n_parts;
    double sum[MOST_PARTS];
} Work;

static double own_scratch[SHARED_SCRATCH];

// Some arithmetic in the scratch memory: no other thread may use the same.
static void one_part(void *context, size_t part, size_t n_parts, double *scratch)
{
    Work *work = context;
    work->done[part]++;
    if (work->n_parts != n_parts) work->done[part] = 100;
    for (size_t i = 0; i < 100; i++) scratch[SHARED_SCRATCH - 1 - i] = (double)(part + i);
    for (size_t i = 0; i < 100; i++) work->sum[part] += scratch[SHARED_SCRATCH - 1 - i];
    if (work->nested) {
        Work inner = {.n_parts = 7};
        share(one_part, &inner, 7, scratch);
        for (size_t i = 0; i < 7; i++)
            if (inner.done[i] != 1) work->done[part] = 2;
    }
}

// Shares work of 1 to 200 parts; returns how many parts were not done exactly once, and right.
static size_t wrong_parts(size_t rounds, bool nested)
{
    size_t wrong = 0;
    for (size_t round = 0; round < rounds; round++) {
        size_t n = round * 37 % MOST_PARTS + 1;
        Work work = {.nested = nested, .n_parts = n};
        share(one_part, &work, n, own_scratch);
        for (size_t i = 0; i < MOST_PARTS; i++) {
            double sum = i < n ? 100 * (double)i + 4950 : 0;
            wrong += work.done[i] != (i < n) || work.sum[i] < sum || work.sum[i] > sum;
        }
        if (round % 100 == 99) usleep(1000);  // long enough for them to fall asleep
    }
    return wrong;
}

static void test_counts(void)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 16, 64};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t processors = 1; processors <= 64; processors *= 4) {
            char what[100];
            set_threads(counts[i], processors);
            snprintf(what, sizeof what, "%zu threads, %zu processors: parts that are wrong",
                     counts[i], processors);
            check_size(what, 0, wrong_parts(500, false) + wrong_parts(100, true));
            check_size("all are there", MANY && counts[i] > 1 ? counts[i] : 1, n_threads);
        }
    }
    set_threads(1, 1);
    check_size("stopped: one is left", 1, n_threads);
    check_size("it does everything", 0, wrong_parts(10, true));
}

static void test_failures(void)
{
    for (size_t n = 0; MANY && n < 5; n++) {
        char what[100];
        set_threads(5, 5);
        may_start = n;
        snprintf(what, sizeof what, "%zu of 4 start: parts that are wrong", n);
        check_size(what, 0, wrong_parts(500, true));
        check_size("threads", n + 1, n_threads);
        check_size("missing", 4 - n, missing_threads);
        may_start = SIZE_MAX;
    }
    set_threads(2, 2);
    check_size("none is missing before they start", 0, missing_threads);
    wrong_parts(10, false);
    check(!MANY || sigismember(&blocked, SIGINT) == 1, "signals are blocked in the others");
    sigset_t here;
    pthread_sigmask(SIG_BLOCK, NULL, &here);
    check(sigismember(&here, SIGINT) == 0, "and not in the first");
    set_threads(1, 1);
}

static void test_processors(void)
{
    check(processors() >= 1, "there is a processor");
#ifdef __linux__
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
    check_size("a process that may use one processor", 1, processors());
    set_threads(4, 4);
    check_size("four threads on one processor: parts that are wrong", 0, wrong_parts(300, true));
    set_threads(1, 1);
    sched_setaffinity(0, sizeof all, &all);
    check(processors() <= (size_t)CPU_COUNT(&all), "no more than it may use");
#endif
}

// Which values an entry reads, so that threads whose entries have some in common are kept apart.
static void test_operands(void)
{
    static double values[200];
    double *x = values + 20, *far = values + 90;
    static const struct {
        Op op;
        uint32_t n, length, stride;
        size_t n_a, n_b;  // of a from x on, and of b
    } cases[] = {
        {OP_ADD, 8, 0, 0, 8, 8},
        {OP_MUL, 1, 0, 0, 1, 1},
        {OP_ROW_DOTS, 1, 8, 8, 8, 8},
        {OP_LINEAR, 5, 8, 8, 8, 40},
        {OP_ROW_DOTS, 3, 4, 10, 4, 24},
        {OP_ROW_DOTS, 7, 4, 4, 4, 28},
        {OP_WEIGHTED_SUM, 3, 8, 10, 3, 28},
        {OP_WEIGHTED_SUM, 1, 8, 8, 1, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n_a = cases[i].n_a, n_b = cases[i].n_b;
        Entry e = {.op = cases[i].op, .n = cases[i].n, .a = x, .length = cases[i].length};
        e.stride = cases[i].stride;
        const double *low = NULL, *high = NULL;
        e.b = far;
        find_operands(&e, &low, &high);
        check(low == x && high == far + n_b, "operands of case %zu, b behind a: saw %td to %td", i,
              low - values, high - values);
        e.b = values + 1;
        find_operands(&e, &low, &high);
        const double *end = 1 + n_b > 20 + n_a ? values + 1 + n_b : x + n_a;
        check(low == values + 1 && high == end, "operands of case %zu, b before a: saw %td to %td",
              i, low - values, high - values);
        if (e.length > 0) continue;
        e.op = OP_EXP, e.b = NULL;
        find_operands(&e, &low, &high);
        check(low == x && high == x + n_a, "operands of case %zu, no b: saw %td to %td", i,
              low - values, high - values);
    }
}

// Where lanes can be cut: between any two, or only where what they read is apart.
static void test_cuts(void)
{
    static double values[64];
    static const struct {
        const char *what;
        size_t at[6];  // of the lanes, where the four values are that they read
        size_t apart, anyhow;
    } cases[] = {
        {"apart", {0, 4, 8, 12, 16, 20}, 3, 3},
        {"the same", {0, 0, 0, 0, 0, 0}, 1, 3},
        {"pairs", {0, 0, 8, 8, 16, 16}, 3, 3},
        {"one value in common", {0, 4, 7, 12, 16, 20}, 3, 3},
        {"halves", {0, 2, 4, 20, 22, 24}, 2, 3},
        {"back and forth", {0, 4, 8, 4, 16, 20}, 1, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Entry entries[6], *lanes[6];
        for (size_t lane = 0; lane < 6; lane++) {
            entries[lane] = (Entry){.op = OP_EXP, .n = 4, .a = values + cases[i].at[lane]};
            lanes[lane] = &entries[lane];
        }
        size_t cuts[7] = {0};
        check_size(cases[i].what, cases[i].anyhow, cut_lanes(lanes, 6, 0, false, cuts, 3));
        size_t n = cut_lanes(lanes, 6, 0, true, cuts, 3);
        check_size("with threads kept apart", cases[i].apart, n);
        for (size_t part = 1; part < n; part++) {
            size_t at = cuts[part];
            check(cases[i].at[at] >= cases[i].at[at - 1] + 4, "%s: a cut before lane %zu",
                  cases[i].what, at);
        }
        check(n == 1 || cuts[n] == 6, "%s: the last part ends with the last lane", cases[i].what);
    }
}

int main(void)
{
    test_operands();
    test_cuts();
    test_counts();
    test_failures();
    test_processors();
    return finish();
}
