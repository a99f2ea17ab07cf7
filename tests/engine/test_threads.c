/* The pool of threads: every part is done once, by whoever is there; with more threads than processors, with threads that
 * do not start, and with shared work within shared work. And which lanes are cut apart for them.
 */
// also built with -DAUTOGRAD_PLAIN only with ALL=1
#define _GNU_SOURCE
#include "../test.h"

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
} Work;

static void one_part(void *context, size_t part, size_t n_parts)
{
    Work *work = context, inner = {.n_parts = 7};
    work->done[part] = (unsigned char)(work->done[part] + (work->n_parts == n_parts ? 1 : 100));
    if (!work->nested) return;
    share(one_part, &inner, 7);
    for (size_t i = 0; i < 7; i++)
        if (inner.done[i] != 1) work->done[part] = 100;
}

// Shares work of 1 to 200 parts; returns how many parts were not done exactly once.
static size_t wrong_parts(size_t rounds, bool nested)
{
    size_t wrong = 0;
    for (size_t round = 0; round < rounds; round++) {
        size_t n = round * 37 % MOST_PARTS + 1;
        Work work = {.nested = nested, .n_parts = n};
        share(one_part, &work, n);
        for (size_t i = 0; i < MOST_PARTS; i++) wrong += work.done[i] != (i < n);
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

// Lanes are cut only where what they read is apart.
static void test_cuts(void)
{
    static double values[64];
    static const struct {
        const char *what;
        size_t at[6];  // of the lanes, where the four values are that they read
        size_t parts;
    } cases[] = {
        {"apart", {0, 4, 8, 12, 16, 20}, 3},  {"the same", {0, 0, 0, 0, 0, 0}, 1},
        {"pairs", {0, 0, 8, 8, 16, 16}, 3},   {"one value in common", {0, 4, 7, 12, 16, 20}, 3},
        {"halves", {0, 2, 4, 20, 22, 24}, 2}, {"back and forth", {0, 4, 8, 4, 16, 20}, 1},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const size_t *at = cases[i / 2].at;
        Entry entries[6], *lanes[6];
        size_t cuts[7] = {0};
        for (size_t lane = 0; lane < 6; lane++) {
            double *x = values + at[lane];
            entries[lane] = (Entry){.op = i % 2 ? OP_LINEAR : OP_EXP, .n = i % 2 ? 1 : 4, .a = x};
            if (i % 2) entries[lane].length = 2, entries[lane].b = x + 2;
            lanes[lane] = &entries[lane];
        }
        size_t n = cut_lanes(lanes, 6, 0, cuts, 3);
        check_size(cases[i / 2].what, cases[i / 2].parts, n);
        for (size_t part = 1; part < n; part++) {
            check(at[cuts[part]] >= at[cuts[part] - 1] + 4, "cut before lane %zu", cuts[part]);
        }
    }
}

int main(void)
{
    test_cuts();
    test_counts();
    test_failures();
    return finish();
}
