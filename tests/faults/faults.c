/* Faults on demand: stands between the program and the C library, counts the calls that can fail, and lets one of them
 * fail. tests/faults/helpers.sh links it with -Wl,--wrap=CALL for each WRAP below; the tests judge what happens.
 *
 *   FAULT='write 3 ENOSPC'   the third call of write fails with this error
 *   FAULT='read 2 SHORT'     the second read gives half of what it could
 *   FAULT='any 4 SIGNAL'     SIGTERM comes with the fourth call of those below that is of the system
 *   FAULT='read 1 DRIBBLE'   from the first read on, each gives at most three bytes, and every other is interrupted
 *   FAULT_STAYS=1            and so does, from then on, every such call, and every one that writes: the disk is gone; or,
 *                            if the call takes memory, every one that does: there is none left
 *   FAULT_NO_LINKS=1         a disk without hard links
 *   FAULT_COUNTS=FILE        at the end, a line "CALL N" for every call goes to FILE
 *   FAULT_HAPPENED=FILE      in this file are, once the fault is injected, the steps that were done before it
 *   FAULT_TERMINAL=1         standard output passes for a terminal, so that every line is a write of its own
 *
 * What goes to standard error is left alone, so that the program can say what went wrong. Whatever happens, a new file is
 * private while it is written; when it takes its final name it has been flushed to disk, as has the log; and then its
 * folder is: if not, the status is 96.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

// Up to realloc they take memory, from open on they are of the system, and from write on they change it.
// clang-format off
#define CALLS(X) X(malloc) X(calloc) X(realloc) X(vsnprintf) X(pthread_create) X(open) X(read) X(write) X(close) \
    X(fsync) X(rename) X(link) X(ftruncate) X(lseek) X(fchmod) X(fchown) X(poll) X(sigprocmask) X(open_folder) \
    X(fsync_folder)
#define ERRORS(X) X(ENOMEM) X(EIO) X(EINTR) X(ENOSPC) X(EACCES) X(EMFILE) X(EEXIST) X(EINVAL) X(EAGAIN) X(EPERM) X(EBUSY)
#define NUMBER(call) OF_##call,
#define NAME(call) #call,
#define ERROR(name) {#name, name},
// clang-format on
enum { CALLS(NUMBER) N_CALLS };
static const char *const names[N_CALLS] = {CALLS(NAME)};
enum { SHORT = -1, DRIBBLE = -2, SIGNAL = -3 };
static const struct {
    const char *name;
    int number;
} kinds[] = {ERRORS(ERROR){"SHORT", SHORT}, {"DRIBBLE", DRIBBLE}, {"SIGNAL", SIGNAL}};

static long counts[N_CALLS], of_the_system, at;
static unsigned long long steps;
static int call = -1, kind;
static bool happened, over;  // over: the program has ended, and what counts its lines may write

static int part = -1;                  // the new file: its last descriptor
static bool written, renamed, logged;  // since it, its folder or the log was last flushed to disk

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static void note_that_it_happened(void)
{
    static bool done;
    const char *name = getenv("FAULT_HAPPENED");
    FILE *file = name && !done ? fopen(name, "w") : NULL;
    done = true;
    if (file) {
        fprintf(file, "%llu\n", steps);
        fclose(file);
    }
}

static void broken(const char *file, const char *promise)
{
    fprintf(stderr, "%s is not %s\n", file, promise);
    _exit(96);
}

static void write_counts(void)
{
    const char *name = getenv("FAULT_COUNTS");
    FILE *file = name ? fopen(name, "w") : NULL;
    over = true;
    if (file) fprintf(file, "any %ld\n", of_the_system);
    for (int i = 0; file && i < N_CALLS; i++) fprintf(file, "%s %ld\n", names[i], counts[i]);
    if (file) fclose(file);
    if (renamed) broken("the name of a file", "flushed to disk");
}

static void set_up(void)
{
    static bool done;
    char call_name[32], kind_name[16];
    if (done) return;
    done = true;
    atexit(write_counts);
    if (!is_set("FAULT")) return;
    bool known = sscanf(getenv("FAULT"), "%31s %ld %15s", call_name, &at, kind_name) == 3;
    for (int i = 0; known && i < N_CALLS; i++) call = strcmp(names[i], call_name) == 0 ? i : call;
    for (size_t i = 0; known && i < sizeof kinds / sizeof kinds[0]; i++) {
        kind = strcmp(kinds[i].name, kind_name) == 0 ? kinds[i].number : kind;
    }
    if ((call < 0) != (kind == SIGNAL) || !kind) {
        fprintf(stderr, "FAULT: not understood\n");
        exit(99);
    }
}

// Counts a call. True: it fails, and errno is set.
static bool fails(int which)
{
    set_up();
    long n = __atomic_add_fetch(&counts[which], 1, __ATOMIC_SEQ_CST);
    if (which >= OF_open && ++of_the_system == at && kind == SIGNAL) {
        note_that_it_happened();
        kill(getpid(), SIGTERM);
    }
    bool writes = which >= OF_write && call != OF_pthread_create;
    bool gone = call <= OF_realloc ? which <= OF_realloc : which == call || writes;
    bool again = happened && gone && is_set("FAULT_STAYS");
    if (over || kind < 0 || !(again || (which == call && n == at))) return false;
    happened = true;
    note_that_it_happened();
    errno = kind;
    return true;
}

// Counts a read or a write of *n bytes, which may become fewer. True: it fails, and errno is set.
static bool fails_or_shrinks(int which, size_t *n)
{
    bool failed = fails(which);
    if (which == call && kind == SHORT && counts[which] == at) {
        note_that_it_happened();
        *n = (*n + 1) / 2;  // of one byte, one
    }
    if (which == call && kind == DRIBBLE && counts[which] >= at) {
        note_that_it_happened();
        *n = *n < 3 ? *n : 3;
        errno = EINTR;
        failed = counts[which] % 2 == 0;
    }
    return failed;
}

// A call that either fails, with this result, or is made.
#define WRAP(type, name, parameters, arguments, failure)                                           \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters { return fails(OF_##name) ? failure : __real_##name arguments; }
WRAP(void *, malloc, (size_t n), (n), NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), NULL)
WRAP(int, vsnprintf, (char *text, size_t room, const char *format, va_list args),
     (text, room, format, args), -1)
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *how, void *(*start)(void *), void *argument),
     (thread, how, start, argument), EAGAIN)
WRAP(int, ftruncate, (int file, off_t n), (file, n), -1)
WRAP(off_t, lseek, (int file, off_t n, int whence), (file, n, whence), -1)
WRAP(int, fchmod, (int file, mode_t mode), (file, mode), -1)
WRAP(int, fchown, (int file, uid_t owner, gid_t group), (file, owner, group), -1)
WRAP(int, poll, (struct pollfd * files, nfds_t n, int milliseconds), (files, n, milliseconds), -1)
WRAP(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old), -1)

#define REAL(type, name, parameters)                                                               \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters
REAL(bool, after_step, (void *run, uint64_t step, double loss))
{
    steps = step + 1;
    return __real_after_step(run, step, loss);
}

REAL(int, isatty, (int file))
{
    return is_set("FAULT_TERMINAL") && file == STDOUT_FILENO ? 1 : __real_isatty(file);
}

REAL(int, open, (const char *name, int flags, ...))
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
    bool failed = fails(flags & O_DIRECTORY ? OF_open_folder : OF_open);
    if (flags & O_DIRECTORY && failed) renamed = false;  // no way to flush it
    int file = failed ? -1 : __real_open(name, flags, mode);
    if (flags & O_EXCL && file >= 0) part = file;
    return file;
}

REAL(ssize_t, read, (int file, void *bytes, size_t n))
{
    return fails_or_shrinks(OF_read, &n) ? -1 : __real_read(file, bytes, n);
}

REAL(ssize_t, write, (int file, const void *bytes, size_t n))
{
    struct stat info = {0};
    if (file != STDERR_FILENO && fails_or_shrinks(OF_write, &n)) return -1;
    if (file == part && fstat(file, &info) == 0 && info.st_mode & 077) broken("it", "private");
    written = written || file == part;
    logged = logged || (file > STDERR_FILENO && file != part);
    return __real_write(file, bytes, n);
}

// The file is closed all the same, as Linux does it.
REAL(int, close, (int file))
{
    int done = __real_close(file);
    if (file == part) part = -1;
    return fails(OF_close) ? -1 : done;
}

REAL(int, fsync, (int file))
{
    struct stat info;
    bool folder = fstat(file, &info) == 0 && S_ISDIR(info.st_mode);
    if (folder) renamed = false;
    if (!folder && file != part) logged = false;
    if (fails(folder ? OF_fsync_folder : OF_fsync)) return -1;
    if (file == part) written = false;
    return __real_fsync(file);
}

static void check_flushed(const char *from)
{
    size_t n = strlen(from);
    bool is_part = n > 5 && strcmp(from + n - 5, ".part") == 0;
    if (is_part && written) broken(from, "flushed to disk");
    if (is_part && logged) broken("the log, which is behind the model,", "flushed to disk");
    renamed = renamed || is_part;
}

REAL(int, rename, (const char *from, const char *to))
{
    if (fails(OF_rename)) return -1;
    check_flushed(from);
    return __real_rename(from, to);
}

REAL(int, link, (const char *from, const char *to))
{
    if (fails(OF_link)) return -1;
    check_flushed(from);
    errno = EPERM;
    return is_set("FAULT_NO_LINKS") ? -1 : __real_link(from, to);
}
