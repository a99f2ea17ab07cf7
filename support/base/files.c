/* files.c: reading, shipped files, and atomic saves. */
#define _XOPEN_SOURCE 700
#include "files.h"
#include "signals.h"
#include "text.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef st_mtime  // where it is a part of st_mtim
#define NANOSECONDS(info) (info).st_mtim.tv_nsec
#else
#define NANOSECONDS(info) 0
#endif

// Tries again if a signal comes in between. A file that must be new is private at first.
int open_file(const char *name, int flags)
{
    int file;
    do {
        file = open(name, flags | O_CLOEXEC, flags & O_EXCL ? 0600 : 0666);
    } while (file < 0 && errno == EINTR);
    return file;
}

ssize_t read_up_to(int file, void *bytes, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(file, (char *)bytes + done, n - done);
        if (got == 0) break;
        if (got > 0) {
            done += (size_t)got;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = file, .events = POLLIN}, 1, -1);
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return (ssize_t)done;
}

// A zero follows the bytes.
bool read_all(int file, unsigned char **bytes, size_t *n, const char *name)
{
    *bytes = NULL;
    *n = 0;
    for (size_t room = 0; *n == room;) {
        room = room ? 2 * room : 1 << 16;
        unsigned char *more = realloc(*bytes, room);
        if (!more) return no_memory();
        *bytes = more;
        ssize_t got = read_up_to(file, *bytes + *n, room - *n);
        if (got < 0) return fail_errno(name);
        *n += (size_t)got;
    }
    (*bytes)[*n] = '\0';
    return true;
}

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

// The folder that the program is in, with a slash, or "".
static void program_folder(const char *argv0, char *folder, size_t room)
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
    return is_same(name, file) && stat(name, &info) == 0 && info.st_size == file->st_size &&
           info.st_mtime == file->st_mtime && NANOSECONDS(info) == NANOSECONDS(*file);
}

// The folder of a file, as "folder/." or ".".
static void folder_of(const char *name, char folder[PATH_MAX + 300])
{
    snprintf(folder, PATH_MAX + 300, "%.*s.", (int)(base_name(name) - name), name);
}

bool same_file(const char *a, const char *b)
{
    struct stat info;
    char folders[2][PATH_MAX + 300];
    if (!a || !b) return false;
    if (stat(b, &info) == 0) return is_file(a, &info);
    if (stat(a, &info) == 0 || strcmp(base_name(a), base_name(b)) != 0) return false;
    folder_of(a, folders[0]);
    folder_of(b, folders[1]);
    return stat(folders[0], &info) == 0 && is_same(folders[1], &info);
}

/* ------------------------------------------------------------------------------------------------
 * Saves.
 */
// Opens a new file in a folder (NULL: beside the final one), under a name that nobody can foresee.
// A long name is cut between characters, so that the suffix fits. -1: errno says why.
static int open_unfinished(Target *target, const char *folder)
{
    const char *base = base_name(target->path);
    size_t length = strlen(base), used = length < 200 ? length : 200;
    while (used < length && ((unsigned char)base[used] & 0xc0) == 0x80) used--;
    int fd = -1, beside = (int)(base - target->path);
    hold_signals();
    for (int i = 0; fd < 0 && i < 100 && (i == 0 || errno == EEXIST); i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(target->unfinished, sizeof target->unfinished, "%.*s%s%.*s.%lx%lx.part",
                 folder ? PATH_MAX : beside, folder ? folder : target->path, folder ? "/" : "",
                 (int)used, base, (unsigned long)now.tv_nsec, (unsigned long)getpid());
        fd = open_file(target->unfinished, O_WRONLY | O_CREAT | O_EXCL);
    }
    remove_if_ended(fd >= 0 ? target->unfinished : NULL);
    release_signals();
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
    target->reserve = open_unfinished(target, NULL);
    if (target->reserve < 0) return fail_errno(name);
    dup2(STDERR_FILENO, target->reserve);  // closes the file, keeps the descriptor
    unlink(target->unfinished);
    remove_if_ended(NULL);
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
    out->n = out->total = 0;
    out->file = open_unfinished(target, folders[place]);
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
    const char *new = target->unfinished, *path = target->path;
    target->surprised = false;
    if (is_unchanged(path, &target->ours)) return rename(new, path) == 0;
    if (link(new, path) == 0) {
        unlink(new);
        return true;
    }
    bool there = lstat(path, &info) == 0;
    if (there && !put_aside(target)) return false;
    target->surprised = there && !target->keeps;
    if (rename(new, path) == 0) return true;
    int error = errno;
    if (there && rename(target->kept, path) == 0) unlink(target->kept);  // if both are links
    errno = error;
    return false;
}

// Best effort: a new name must survive a power failure, too.
static void flush_folder(const char *name)
{
    char folder[PATH_MAX + 300];
    folder_of(name, folder);
    int file = open_file(folder, O_RDONLY | O_DIRECTORY);
    if (file < 0) return;
    fsync(file);
    close(file);
}

bool end_save(Target *target, Output *out, int place)
{
    struct stat info = {0};
    flush(out);
    if (out->file >= 0) take_mode(target, out->file);
    while (!out->error && fsync(out->file) < 0) out->error = errno == EINTR ? 0 : errno;
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
    if (!whole && out->file >= 0) unlink(target->unfinished);
    remove_if_ended(NULL);
    flush_folder(target->unfinished);
    release_signals();
    if (named) return true;
    set_failure(FAILED, "%s: not saved%s: %s%s%s", target->name,
                whole && place == 0 ? " under this name" : "", strerror(target->error),
                whole ? "; the model is in " : "", whole ? target->unfinished : "");
    return whole;
}
