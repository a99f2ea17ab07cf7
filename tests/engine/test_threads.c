/* The pool of threads: every part is done once, by whoever is there; with more threads than processors, with threads that
 * do not start, and with shared work within shared work. And how many processors there are.
 */
// also built with -DAUTOGRAD_PLAIN only with ALL=1
#define _GNU_SOURCE
#include "../test.h"

#include "../../support/processors.h"

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
#include "../../support/threads.c"
#undef pthread_create

#ifdef THREADS
enum { MANY = 1 };
#else
enum { MANY = 0 };
#endif

enum { MOST_PARTS = 200 };

typedef struct {
    unsigned char done[MOST_PARTS];
    bool no_scratch, nested;
    double sum[MOST_PARTS];
} Work;

static double own_scratch[SHARED_SCRATCH];

// Some arithmetic in the scratch memory: no other thread may use the same.
static void one_part(void *context, size_t part, double *scratch)
{
    Work *work = context;
    work->done[part]++;
    for (size_t i = 0; i < 100; i++) scratch[SHARED_SCRATCH - 1 - i] = (double)(part + i);
    for (size_t i = 0; i < 100; i++) work->sum[part] += scratch[SHARED_SCRATCH - 1 - i];
    if (work->nested) {
        Work inner = {.nested = false};
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
        Work work = {.nested = nested};
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

int main(void)
{
    test_counts();
    test_failures();
    test_processors();
    return finish();
}
