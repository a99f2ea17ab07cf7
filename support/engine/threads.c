/* threads.c: a pool of threads, so that all cores share the work of a step.
 *
 * share() cuts nothing and decides nothing: it is given parts that can be done in any order, at the
 * same time, and it does them all. Which thread does a part makes no difference to its bits, so the
 * number of threads makes none.
 *
 *   claiming   One number, `ticket`, says which work it is, and which of its parts are left: from
 *              `front` to `back`. Whoever moves one of these by one has a part. The thread that
 *              shares takes parts from the front, the others from the back: so with two threads,
 *              neighbors stay in the cache of one processor from work to work. Nobody waits for a
 *              thread that has no part: if the others are late, this thread does everything itself.
 *   ending     Each part that is done raises `done`. The work stays in place until all are.
 *   waiting    A thread without a part looks for one for some microseconds, then sleeps. New work
 *              wakes sleepers, but never so many that more threads are awake than processors, and
 *              not for small work, which has no more parts than threads. A worker that is very late
 *              has lost its processor to another program: then this thread works alone for eight
 *              times as long as it had to wait.
 *
 * Threads start when work is shared for the first time: a model that is too small for that never
 * has any. If some cannot be started, those that run do it all. Signals go to the main thread. Part
 * of a part may be more shared work: the thread that meets it does it alone.
 *
 * Built with -DAUTOGRAD_LANES where there are POSIX threads, and vectors: GCC or clang, optimized,
 * true doubles, no -DAUTOGRAD_PLAIN (see private.h). Elsewhere share() is a plain loop.
 */
#define _XOPEN_SOURCE 700
#include "threads.h"

#include "private.h"

#include <assert.h>

size_t n_threads = 1, missing_threads;

#ifdef THREADS
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#ifdef AUTOGRAD_HELGRIND  // helgrind knows locks; what the atomics order it must be told
#include <valgrind/helgrind.h>
#else
#define ANNOTATE_HAPPENS_BEFORE(at) (void)0
#define ANNOTATE_HAPPENS_AFTER(at) (void)0
#define VALGRIND_HG_DISABLE_CHECKING(at, n) (void)0
#endif

#define LATE 2e-4  // seconds that the others may take longer than this thread took
const bool have_threads = true;
enum { SPINS = 4000, STACK = 2 * 1024 * 1024 };

static struct Pool {
    _Alignas(64) atomic_uint_fast64_t ticket;  // which work, and the parts that are left
    _Alignas(64) atomic_size_t done;           // parts
    _Alignas(64) atomic_size_t awake;          // workers
    atomic_int stop, busy;                     // as bool, which some machines cannot exchange
    // Protected by `busy` alone: a thread that finds it set shares nothing and changes none of it.
    Part *part;  // the work
    void *context;
    size_t n_parts;
    size_t n_workers, limit;  // limit: of workers that are awake
    bool started;
    double alone_until;  // a time: until then, nothing is shared
    pthread_t *workers;  // [n_workers]
    // Guarded by the mutex.
    size_t calls;  // that no worker has answered yet
    pthread_mutex_t mutex;
    pthread_cond_t called;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .called = PTHREAD_COND_INITIALIZER};

// Waits a moment, the i-th time. If this processor has other work, it goes first.
static void spin(int i)
{
    if (i % 32 == 31) sched_yield();
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

// A ticket: 32 bits of the number of the work, 16 of front, 16 of back.
#define FRONT ((uint_fast64_t)1 << 16)
static size_t front_of(uint_fast64_t ticket) { return ticket >> 16 & UINT16_MAX; }
static size_t back_of(uint_fast64_t ticket) { return ticket & UINT16_MAX; }

// Does parts as long as there are any. Was there one?
static bool do_parts(bool from_front)
{
    bool any = false;
    uint_fast64_t ticket = atomic_load(&pool.ticket);
    while (front_of(ticket) < back_of(ticket)) {
        uint_fast64_t next = from_front ? ticket + FRONT : ticket - 1;
        if (!atomic_compare_exchange_weak(&pool.ticket, &ticket, next)) continue;
        ANNOTATE_HAPPENS_AFTER(&pool.ticket);
        size_t part = from_front ? front_of(ticket) : back_of(next);
        assert(part < pool.n_parts);
        pool.part(pool.context, part, pool.n_parts);
        ANNOTATE_HAPPENS_BEFORE(&pool.done);
        atomic_fetch_add(&pool.done, 1);
        any = true;
        ticket = atomic_load(&pool.ticket);
    }
    return any;
}

// Sleeps until called, then does parts until there have been none for a while. It looks once more
// after it has left `awake`: share() may have counted on it just before.
static void *work(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&pool.mutex);
        while (pool.calls == 0) pthread_cond_wait(&pool.called, &pool.mutex);
        pool.calls--;
        pthread_mutex_unlock(&pool.mutex);
        if (atomic_load(&pool.stop)) return unused;
        for (bool more = true; more;) {
            for (int i = 0; i < SPINS; i++) {
                if (do_parts(false)) i = 0;
                spin(i);
            }
            atomic_fetch_sub(&pool.awake, 1);
            uint_fast64_t ticket = atomic_load(&pool.ticket);
            more = front_of(ticket) < back_of(ticket);
            if (more) atomic_fetch_add(&pool.awake, 1);
        }
    }
}

// Signals are blocked while workers start, so they inherit that.
static void start(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pool.started = true;
    VALGRIND_HG_DISABLE_CHECKING(&pool, offsetof(struct Pool, part));
    pool.workers = calloc(n_threads - 1, sizeof *pool.workers);
    if (pool.workers && pthread_attr_init(&attributes) == 0) {
        pthread_attr_setstacksize(&attributes, STACK);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        for (; pool.n_workers + 1 < n_threads; pool.n_workers++) {
            pthread_t *worker = &pool.workers[pool.n_workers];
            if (pthread_create(worker, &attributes, work, NULL) != 0) break;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    missing_threads = n_threads - 1 - pool.n_workers;
    n_threads = pool.n_workers + 1;
    if (pool.limit > pool.n_workers) pool.limit = pool.n_workers;
}

// Calls n workers, but no more than there are processors for. A worker that is called counts as
// awake: it is called once, however long it takes to come.
static void call(size_t n)
{
    if (atomic_load(&pool.awake) >= pool.limit) return;
    pthread_mutex_lock(&pool.mutex);
    for (; n > 0 && atomic_load(&pool.awake) < pool.limit; n--) {
        pool.calls++;
        atomic_fetch_add(&pool.awake, 1);
        pthread_cond_signal(&pool.called);
    }
    pthread_mutex_unlock(&pool.mutex);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// own: seconds that this thread has worked
static void wait_until_done(double own)
{
    const struct timespec nap = {.tv_nsec = 50000};
    double start = seconds();
    int i = 0;
    while (i < SPINS && atomic_load(&pool.done) < pool.n_parts) spin(i++);
    while (atomic_load(&pool.done) < pool.n_parts) nanosleep(&nap, NULL);
    double late = seconds() - start;
    if (late > own + LATE) pool.alone_until = start + 9 * late;
}

// Is this work better done by this thread alone?
static bool alone(size_t n_parts)
{
    if (n_threads == 1 || n_parts == 1 || n_parts > UINT16_MAX) return true;
    if (n_parts <= n_threads && atomic_load(&pool.awake) == 0) return true;
    if (!pool.started) start();
    return pool.alone_until > 0 && seconds() < pool.alone_until;
}

void share(Part *part, void *context, size_t n_parts)
{
    if (alone(n_parts) || atomic_exchange(&pool.busy, true)) {
        for (size_t i = 0; i < n_parts; i++) part(context, i, n_parts);
        return;
    }
    pool.part = part;
    pool.context = context;
    pool.n_parts = n_parts;
    atomic_store(&pool.done, 0);
    ANNOTATE_HAPPENS_BEFORE(&pool.ticket);
    atomic_store(&pool.ticket, ((atomic_load(&pool.ticket) >> 32) + 1) << 32 | n_parts);
    if (n_parts > n_threads) call(n_parts - 1);
    double start = seconds();
    do_parts(true);
    if (atomic_load(&pool.done) < n_parts) wait_until_done(seconds() - start);
    ANNOTATE_HAPPENS_AFTER(&pool.done);
    atomic_store(&pool.busy, false);
}

void end_alone(void)
{
    static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&ending);  // for good
}

void wake_threads(size_t n_parts)
{
    if (n_threads > 1 && !pool.started) start();
    if (n_threads > 1) call(n_parts - 1);
}

void set_threads(size_t n, size_t n_processors)
{
    atomic_store(&pool.stop, true);
    pthread_mutex_lock(&pool.mutex);
    pool.calls = pool.n_workers;
    pthread_cond_broadcast(&pool.called);
    pthread_mutex_unlock(&pool.mutex);
    while (pool.n_workers > 0) pthread_join(pool.workers[--pool.n_workers], NULL);
    free(pool.workers);
    pool.workers = NULL;
    pool.started = false;
    pool.calls = missing_threads = 0;
    pool.alone_until = 0;
    atomic_store(&pool.awake, 0);
    atomic_store(&pool.stop, false);
    n_threads = n > 1 ? n : 1;
    pool.limit = (n_processors < n_threads ? n_processors : n_threads) - 1;
}

#else
const bool have_threads = false;

void share(Part *part, void *context, size_t n_parts)
{
    for (size_t i = 0; i < n_parts; i++) part(context, i, n_parts);
}

void end_alone(void) {}

void wake_threads(size_t n_parts) { (void)n_parts; }

void set_threads(size_t n, size_t n_processors) { (void)n, (void)n_processors; }
#endif
