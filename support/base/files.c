/* files.c: shipped files, signals, and atomic saves. */
#define _XOPEN_SOURCE 700
#include "files.h"
#include "text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef st_mtime  // where it is a part of st_mtim
#define NANOSECONDS(info) (info).st_mtim.tv_nsec
#else
#define NANOSECONDS(info) 0
#endif

// The first program of this name along PATH, as a shell finds it; else the name itself.
static int find_in_path(const char *argv0, char *path, size_t room)
{
    const char *folders = strchr(argv0, '/') ? NULL : getenv("PATH");
    for (size_t n; folders; folders = folders[n] ? folders + n + 1 : NULL) {
        n = strcspn(folders, ":");
        int length = snprintf(path, room, "%.*s/%s", n ? (int)n : 1, n ? folders : ".", argv0);
        if (length > 0 && length < (int)room && access(path, X_OK) == 0) return length;
    }
    return snprintf(path, room, "%s", argv0);
}

void program_folder(const char *argv0, char *folder, size_t room)
{
    char real[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", folder, room - 1);
    if (n < 0) {
        n = find_in_path(argv0, folder, room);
        if (n < (ssize_t)room && realpath(folder, real)) n = snprintf(folder, room, "%s", real);
    }
    folder[n < (ssize_t)room ? n : 0] = '\0';
    char *slash = strrchr(folder, '/');
    folder[slash ? slash - folder + 1 : 0] = '\0';
}

// Looks in data/ beside the program, then where `make install` puts files. `name` becomes the path.
int open_shipped(const char *argv0, const char *shipped, char *name, size_t room)
{
    char folder[4096];
    program_folder(argv0, folder, sizeof folder);
    snprintf(name, room, "%sdata/%s", folder, shipped);
    int file = open_file(name, O_RDONLY);
    if (file >= 0 || errno != ENOENT) return file;
    snprintf(name, room, "%s../share/microgpt/%s", folder, shipped);
    return open_file(name, O_RDONLY);
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool is_same(const char *name, const struct stat *file)
{
    struct stat info;
    return name && stat(name, &info) == 0 && info.st_dev == file->st_dev &&
           info.st_ino == file->st_ino;
}

bool is_file(const char *name, const struct stat *file)
{
    return S_ISREG(file->st_mode) && is_same(name, file);
}

bool is_unchanged(const char *name, const struct stat *file)
{
    struct stat info;
    return name && stat(name, &info) == 0 && info.st_dev == file->st_dev &&
           info.st_ino == file->st_ino && info.st_size == file->st_size &&
           info.st_mtime == file->st_mtime && NANOSECONDS(info) == NANOSECONDS(*file);
}

// The folder of a name.
static bool find_folder(const char *name, struct stat *folder)
{
    char path[PATH_MAX];
    size_t length = (size_t)(base_name(name) - name);
    if (length + 1 >= sizeof path) return false;
    snprintf(path, sizeof path, "%.*s.", (int)length, name);
    return stat(path, folder) == 0;
}

bool same_file(const char *a, const char *b)
{
    struct stat info, other;
    if (!a || !b) return false;
    if (stat(b, &info) == 0) return is_file(a, &info);
    return stat(a, &info) < 0 && strcmp(base_name(a), base_name(b)) == 0 && find_folder(a, &info) &&
           find_folder(b, &other) && info.st_dev == other.st_dev && info.st_ino == other.st_ino;
}

/* ------------------------------------------------------------------------------------------------
 * Signals. The handler reads only flags, and a name that does not change while its flag is set.
 */
volatile sig_atomic_t running;
static sigset_t handled, usual_mask;      // the signals that on_signal() takes; not held
static volatile sig_atomic_t unfinished;  // a file of this name is being written:
static char unfinished_name[PATH_MAX + 300];

// The first signal lets the step finish and the model be saved. What comes within a second of it is
// the same wish: timeout(1) sends two. A later one ends the program at once; but not SIGXCPU, which
// comes again by itself.
static void on_signal(int number)
{
    static const char message[] = "microgpt: interrupted again, after more than a second: ended\n";
    struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};
    bool again = overdue() && number != SIGXCPU;
    if (running && !again) {
        interrupt();
        return;
    }
    if (unfinished) unlink(unfinished_name);
    if (again && poll(&err, 1, 0) == 1) (void)!write(err.fd, message, sizeof message - 1);
    _exit(INTERRUPTED);
}

// Without SA_RESTART: a signal interrupts a call that waits. Signals that are ignored at the start
// stay ignored, as under nohup.
void handle_signals(void)
{
    static const int signals[] = {SIGINT,  SIGHUP,  SIGTERM, SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM};
    struct sigaction ours = {.sa_handler = on_signal}, now;
    sigemptyset(&handled);
    ours.sa_mask = handled;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &now) != 0 || now.sa_handler == SIG_IGN) continue;
        sigaction(signals[i], &ours, NULL);
        sigaddset(&handled, signals[i]);
    }
}

static void hold_signals(void) { sigprocmask(SIG_BLOCK, &handled, &usual_mask); }
static void release_signals(void) { sigprocmask(SIG_SETMASK, &usual_mask, NULL); }

/* ------------------------------------------------------------------------------------------------
 * Saves.
 */
// Opens a new file in a folder (NULL: beside the final one), under a name that nobody can foresee.
// A long name is cut between characters, so that the suffix fits. -1: errno says why.
static int open_part(Target *target, const char *folder)
{
    const char *base = base_name(target->path);
    size_t length = strlen(base), used = length < 200 ? length : 200;
    while (used < length && ((unsigned char)base[used] & 0xc0) == 0x80) used--;
    int fd = -1, beside = (int)(base - target->path);
    hold_signals();
    for (int i = 0; fd < 0 && i < 100 && (i == 0 || errno == EEXIST); i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        const uint64_t seeds[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(),
                                  (uint64_t)(uintptr_t)&now};
        uint64_t any = hash_bytes(FNV_START, (const unsigned char *)seeds, sizeof seeds) >> 16;
        snprintf(target->part, sizeof target->part, "%.*s%s%.*s.%012" PRIx64 ".part",
                 folder ? PATH_MAX : beside, folder ? folder : target->path, folder ? "/" : "",
                 (int)used, base, any);
        fd = open_file(target->part, O_WRONLY | O_CREAT | O_EXCL);
    }
    strcpy(unfinished_name, target->part);
    unfinished = fd >= 0;
    release_signals();  // which leaves errno alone
    return fd;
}

// The new file gets the mode, group and owner of the one it replaces. Best effort. If the group
// cannot be kept, it loses access.
static void take_mode(const Target *target, int fd)
{
    struct stat old;
    mode_t mask = umask(0);
    umask(mask);
    mode_t mode = 0666 & ~mask;
    if (stat(target->path, &old) == 0) {
        mode = old.st_mode & 0777;
        bool kept =
            fchown(fd, old.st_uid, old.st_gid) == 0 || fchown(fd, (uid_t)-1, old.st_gid) == 0;
        if (!kept) mode &= 0707;
    }
    fchmod(fd, mode);
}

bool find_target(Target *target, const char *name)
{
    struct stat info;
    target->name = name;
    bool there = realpath(name, target->path);
    if (there && (stat(target->path, &info) < 0 || access(target->path, W_OK) < 0)) {
        return fail_errno(name);
    }
    if (there && !S_ISREG(info.st_mode)) return fail("%s: not a regular file", name);
    if (!there && (errno != ENOENT || !*name)) return fail_errno(name);
    if (!there && lstat(name, &info) == 0) return fail("%s: a broken symbolic link", name);
    if (!there) snprintf(target->path, sizeof target->path, "%s", name);
    if (there) target->ours = info;
    snprintf(target->kept, sizeof target->kept, "%s~", target->path);
    target->reserve = open_part(target, NULL);
    if (target->reserve < 0) return fail_errno(name);
    dup2(STDERR_FILENO, target->reserve);  // closes the file, keeps the descriptor
    unlink(target->part);
    unfinished = 0;
    return true;
}

bool keep_other(Target *target)
{
    target->keeps = true;
    target->ours = (struct stat){0};
    if (lstat(target->kept, &target->old) < 0 && errno != ENOENT) return fail_errno(target->kept);
    return !S_ISLNK(target->old.st_mode) || fail("%s: a symbolic link", target->kept);
}

bool begin_save(Target *target, Output *out, int place)
{
    const char *temporary = getenv("TMPDIR");
    const char *const folders[] = {NULL, ".", temporary && *temporary ? temporary : "/tmp", "/tmp"};
    if (place == sizeof folders / sizeof folders[0]) return false;
    if (target->reserve >= 0) close(target->reserve);
    target->reserve = -1;
    out->n = 0;
    out->file = open_part(target, folders[place]);
    out->error = out->file < 0 ? errno : 0;
    return true;
}

// What is under the final name, and not of this run, gets the name with a ~. Only the file that was
// kept before this run, and that users know will go, is replaced.
static bool put_aside(const Target *target)
{
    struct stat info;
    if (link(target->path, target->kept) == 0) return true;
    bool taken = lstat(target->kept, &info) == 0 && !is_unchanged(target->kept, &target->old);
    errno = taken ? EEXIST : errno;
    return !taken && rename(target->path, target->kept) == 0;
}

// The new file takes the final name. What is there now decides: link() replaces nothing, even if it
// came a moment ago. There are disks without links.
static bool take_name(Target *target)
{
    struct stat info;
    const char *part = target->part, *path = target->path;
    target->surprised = false;
    if (is_unchanged(path, &target->ours)) return rename(part, path) == 0;
    if (link(part, path) == 0) {
        unlink(part);
        return true;
    }
    bool there = lstat(path, &info) == 0;
    if (there && !put_aside(target)) return false;
    target->surprised = there && !target->keeps;
    if (rename(part, path) == 0) return true;
    int error = errno;
    if (there && rename(target->kept, path) == 0) unlink(target->kept);  // if both are links
    errno = error;
    return false;
}

bool end_save(Target *target, Output *out, int place)
{
    flush(out);
    if (out->file >= 0) take_mode(target, out->file);
    while (!out->error && fsync(out->file) < 0) out->error = errno == EINTR ? 0 : errno;
    struct stat info = {0};
    if (out->file >= 0) fstat(out->file, &info);
    if (out->file >= 0 && close(out->file) < 0 && !out->error) out->error = errno;
    hold_signals();
    bool whole = !out->error, named = whole && place == 0 && take_name(target);
    if (place == 0) target->error = named ? 0 : whole ? errno : out->error;
    if (named) {
        target->ours = info;
        target->old = (struct stat){0};
        target->keeps = false;
    }
    if (!whole && out->file >= 0) unlink(target->part);
    unfinished = 0;
    // Best effort: the new name must survive a power failure, too.
    char name[sizeof target->part];
    snprintf(name, sizeof name, "%.*s.", (int)(base_name(target->part) - target->part),
             target->part);
    int folder = open_file(name, O_RDONLY | O_DIRECTORY);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
    release_signals();
    if (named) return true;
    set_failure(FAILED, "%s: not saved%s: %s%s%s", target->name,
                whole && place == 0 ? " under this name" : "", strerror(target->error),
                whole ? "; the model is in " : "", whole ? target->part : "");
    return whole;
}
