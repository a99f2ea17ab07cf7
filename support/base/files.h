/* files.h: files that are read, files that the program ships, and files it saves.
 *
 * Saves are atomic: written beside the final name, flushed to disk, then renamed over it. Where
 * there is no room, the model goes to the working directory, TMPDIR or /tmp. At that moment, a save
 * replaces only what this run has put there, or was told to continue: anything else is kept under
 * the name with a ~ behind it or, if that is taken, the new file stays beside it.
 */
#ifndef FILES_H
#define FILES_H

#include "output.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

// Reading.
int open_file(const char *name, int flags);           // -1: errno says why
ssize_t read_up_to(int file, void *bytes, size_t n);  // fewer only at the end; -1: errno
bool read_all(int file, unsigned char **bytes, size_t *n, const char *name);  // caller frees

// Shipped files.
int open_shipped(const char *argv0, const char *shipped, char *name, size_t room);  // or -1

const char *base_name(const char *path);  // without the folder

// Is `name` this file? This regular file? And not changed since? Do two names lead to the same one,
// or would they, once there is one? NULL leads nowhere.
bool is_same(const char *name, const struct stat *file);
bool is_file(const char *name, const struct stat *file);
bool is_unchanged(const char *name, const struct stat *file);
bool same_file(const char *a, const char *b);

// Where a model goes.
typedef struct {
    const char *name;                 // as the user gave it
    char path[PATH_MAX];              // with symbolic links followed
    char kept[PATH_MAX + 1];          // path~, for a file there that is not of this run
    char unfinished[PATH_MAX + 300];  // the name while the file is not whole
    int reserve;                      // a descriptor kept for the first save; or -1
    struct stat ours, old;  // what may be replaced: under path, under kept; zeros: nothing
    bool keeps;             // another run's model is under path, and users know
    bool surprised;         // the latest save kept a file that came during the run
    int error;              // why the latest save is not under its name; or 0
} Target;

// Can a file be written under this name? Asked before any work is done; changes nothing.
bool find_target(Target *target, const char *name);
bool keep_other(Target *target);  // what is there now is to be kept, in place of an older kept file

// A save: begin_save(), put() the contents, end_save(). If end_save() returns false, there was no
// room: try the next place, until begin_save() has none. A whole file that cannot take its final
// name stays where it is. If target->error is set, the save has failed.
bool begin_save(Target *target, Output *out, int place);  // 0: beside the final name
bool end_save(Target *target, Output *out, int place);

#endif
