/* Faults on demand: stands between the program and the C library, counts the calls that can fail, and lets one of them
 * fail. Linked with -Wl,--wrap=CALL for every CALL below; tests/faults/test_faults.sh does that and judges what happens.
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
 * What goes to standard error is left alone, so that the program can say what went wrong. Whatever happens, a file that
 * takes its final name must have been flushed to disk, as must the log, and then its folder: if not, the status is 96.
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

enum {
    MALLOC,
    CALLOC,
    REALLOC,
    VSNPRINTF,
    PTHREAD_CREATE,
    OPEN,
    READ,
    WRITE,
    CLOSE,
    FSYNC,
    RENAME,
    LINK,
    FTRUNCATE,
    LSEEK,
    FCHMOD,
    FCHOWN,
    POLL,
    SIGPROCMASK,
    OPEN_FOLDER,
    FSYNC_FOLDER,
    N_CALLS
};
static const char *const names[N_CALLS] = {
    "malloc", "calloc", "realloc", "vsnprintf",   "pthread_create", "open",        "read",
    "write",  "close",  "fsync",   "rename",      "link",           "ftruncate",   "lseek",
    "fchmod", "fchown", "poll",    "sigprocmask", "open_folder",    "fsync_folder"};
static const struct {
    const char *name;
    int number;
} errors[] = {
    {"ENOMEM", ENOMEM}, {"EIO", EIO},       {"EINTR", EINTR},   {"ENOSPC", ENOSPC},
    {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"EEXIST", EEXIST}, {"EINVAL", EINVAL},
    {"EAGAIN", EAGAIN}, {"EPERM", EPERM},   {"EBUSY", EBUSY},
};
enum { SHORT = -1, DRIBBLE = -2, SIGNAL = -3 };

static long counts[N_CALLS], of_the_system, at;
static unsigned long long steps;
static int call = -1, kind;
static bool happened, over;  // over: the program has ended, and what counts its lines may write

static int part = -1;                  // the new file: its last descriptor
static bool written, renamed, logged;  // since it, its folder or the log was last flushed to disk

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
bool __real_after_step(void *run, uint64_t step, double loss);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_open(const char *name, int flags, ...);
ssize_t __real_read(int file, void *bytes, size_t n);
ssize_t __real_write(int file, const void *bytes, size_t n);
int __real_close(int file);
int __real_fsync(int file);
int __real_rename(const char *from, const char *to);
int __real_link(const char *from, const char *to);
int __real_ftruncate(int file, off_t n);
off_t __real_lseek(int file, off_t n, int whence);
int __real_fchmod(int file, mode_t mode);
int __real_fchown(int file, uid_t owner, gid_t group);
int __real_poll(struct pollfd *files, nfds_t n, int milliseconds);
int __real_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __real_isatty(int file);
int __real_vsnprintf(char *text, size_t room, const char *format, va_list args);

static void touch(const char *name)
{
    static bool done;
    FILE *file = name && !done ? fopen(name, "w") : NULL;
    done = true;
    if (file) {
        fprintf(file, "%llu\n", steps);
        fclose(file);
    }
}

static void not_flushed(const char *what)
{
    fprintf(stderr, "%s is not flushed to disk\n", what);
    _exit(96);
}

static void write_counts(void)
{
    const char *name = getenv("FAULT_COUNTS");
    FILE *file = name ? fopen(name, "w") : NULL;
    over = true;
    if (file) fprintf(file, "any %ld\n", of_the_system);
    for (int i = 0; file && i < N_CALLS; i++) {
        fprintf(file, "%s %ld\n", names[i], counts[i]);
    }
    if (file) {
        fclose(file);
    }
    if (renamed) not_flushed("the name of a file");
}

static void set_up(void)
{
    static bool done;
    const char *fault = getenv("FAULT");
    char call_name[32], error_name[16];
    if (done) {
        return;
    }
    done = true;
    atexit(write_counts);
    if (!fault || !*fault) {
        return;
    }
    if (sscanf(fault, "%31s %ld %15s", call_name, &at, error_name) != 3) {
        fprintf(stderr, "FAULT: not understood\n");
        exit(99);
    }
    for (int i = 0; i < N_CALLS; i++) {
        call = strcmp(names[i], call_name) == 0 ? i : call;
    }
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        kind = strcmp(errors[i].name, error_name) == 0 ? errors[i].number : kind;
    }
    kind = strcmp(error_name, "SHORT") == 0     ? SHORT
           : strcmp(error_name, "SIGNAL") == 0  ? SIGNAL
           : strcmp(error_name, "DRIBBLE") == 0 ? DRIBBLE
                                                : kind;
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
    const char *stays = getenv("FAULT_STAYS");
    if (which >= OPEN && ++of_the_system == at && kind == SIGNAL) {
        touch(getenv("FAULT_HAPPENED"));
        kill(getpid(), SIGTERM);
    }
    bool memory = call <= REALLOC, writes = which >= WRITE && call != PTHREAD_CREATE;
    bool gone = memory ? which <= REALLOC : which == call || writes;
    bool again = happened && stays && *stays && gone;
    if (over || kind < 0 || !(again || (which == call && n == at))) {
        return false;
    }
    happened = true;
    touch(getenv("FAULT_HAPPENED"));
    errno = kind;
    return true;
}

// Counts a read or a write of *n bytes, which may become fewer. True: it fails, and errno is set.
static bool fails_or_shrinks(int which, size_t *n)
{
    bool failed = fails(which);
    if (which == call && kind == SHORT && counts[which] == at) {
        touch(getenv("FAULT_HAPPENED"));
        *n = (*n + 1) / 2;  // of one byte, one
    }
    if (which == call && kind == DRIBBLE && counts[which] >= at) {
        touch(getenv("FAULT_HAPPENED"));
        *n = *n < 3 ? *n : 3;
        errno = EINTR;
        failed = counts[which] % 2 == 0;
    }
    return failed;
}

bool __wrap_after_step(void *run, uint64_t step, double loss)
{
    steps = step + 1;
    return __real_after_step(run, step, loss);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    return fails(PTHREAD_CREATE) ? EAGAIN
                                 : __real_pthread_create(thread, attributes, start, argument);
}

void *__wrap_malloc(size_t n) { return fails(MALLOC) ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails(CALLOC) ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails(REALLOC) ? NULL : __real_realloc(p, n); }

int __wrap_vsnprintf(char *text, size_t room, const char *format, va_list args)
{
    return fails(VSNPRINTF) ? -1 : __real_vsnprintf(text, room, format, args);
}

int __wrap_open(const char *name, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = (mode_t)va_arg(args, int);
        va_end(args);
    }
    bool failed = fails(flags & O_DIRECTORY ? OPEN_FOLDER : OPEN);
    if (flags & O_DIRECTORY && failed) renamed = false;  // no way to flush it
    int file = failed ? -1 : __real_open(name, flags, mode);
    if (flags & O_EXCL && file >= 0) part = file;
    return file;
}

ssize_t __wrap_read(int file, void *bytes, size_t n)
{
    return fails_or_shrinks(READ, &n) ? -1 : __real_read(file, bytes, n);
}

ssize_t __wrap_write(int file, const void *bytes, size_t n)
{
    if (file != STDERR_FILENO && fails_or_shrinks(WRITE, &n)) return -1;
    written = written || file == part;
    logged = logged || (file > STDERR_FILENO && file != part);
    return __real_write(file, bytes, n);
}

// The file is closed all the same, as Linux does it.
int __wrap_close(int file)
{
    int done = __real_close(file);
    return fails(CLOSE) ? -1 : done;
}

int __wrap_fsync(int file)
{
    struct stat info;
    bool folder = fstat(file, &info) == 0 && S_ISDIR(info.st_mode);
    if (folder) renamed = false;
    if (!folder && file != part) logged = false;
    if (fails(folder ? FSYNC_FOLDER : FSYNC)) return -1;
    if (file == part) written = false;
    return __real_fsync(file);
}

static void check_flushed(const char *from)
{
    size_t n = strlen(from);
    bool is_part = n > 5 && strcmp(from + n - 5, ".part") == 0;
    if (is_part && written) not_flushed(from);
    if (is_part && logged) not_flushed("the log, which is behind the model,");
    renamed = renamed || is_part;
}

int __wrap_rename(const char *from, const char *to)
{
    if (fails(RENAME)) return -1;
    check_flushed(from);
    return __real_rename(from, to);
}
int __wrap_link(const char *from, const char *to)
{
    const char *none = getenv("FAULT_NO_LINKS");
    if (fails(LINK)) return -1;
    check_flushed(from);
    errno = EPERM;
    return none && *none ? -1 : __real_link(from, to);
}
int __wrap_ftruncate(int file, off_t n)
{
    return fails(FTRUNCATE) ? -1 : __real_ftruncate(file, n);
}
off_t __wrap_lseek(int file, off_t n, int whence)
{
    return fails(LSEEK) ? -1 : __real_lseek(file, n, whence);
}
int __wrap_fchmod(int file, mode_t mode) { return fails(FCHMOD) ? -1 : __real_fchmod(file, mode); }

int __wrap_fchown(int file, uid_t owner, gid_t group)
{
    return fails(FCHOWN) ? -1 : __real_fchown(file, owner, group);
}

int __wrap_poll(struct pollfd *files, nfds_t n, int milliseconds)
{
    return fails(POLL) ? -1 : __real_poll(files, n, milliseconds);
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return fails(SIGPROCMASK) ? -1 : __real_sigprocmask(how, set, old);
}

int __wrap_isatty(int file)
{
    const char *terminal = getenv("FAULT_TERMINAL");
    return terminal && *terminal && file == STDOUT_FILENO ? 1 : __real_isatty(file);
}
