/* files.h: files that the program ships, files it saves, and the signals that may come meanwhile.
 *
 * Saves are atomic: written beside the final name, flushed to disk, then renamed over it. A
 * signal lets a running step finish; a second one ends the program and leaves no partial file.
 */
#ifndef FILES_H
#define FILES_H

#include "output.h"

#include <limits.h>

struct stat;

// Shipped files.
void program_folder(const char *argv0, char *folder, size_t room);  // with a slash, or ""
int open_shipped(const char *argv0, const char *shipped, char *name, size_t room);  // or -1

// Is `name` this regular file? Do two names lead to the same regular file? NULL leads nowhere.
bool is_file(const char *name, const struct stat *file);
bool same_file(const char *a, const char *b);

// Signals.
extern volatile sig_atomic_t running;  // there is work to lose: the first signal lets it finish
void handle_signals(void);             // SIGINT, SIGHUP, SIGTERM, unless ignored at the start
void hold_signals(bool held);          // they wait from here on; or they no longer do

// Where a model goes.
typedef struct {
    const char *name;                       // as the user gave it
    char path[PATH_MAX], folder[PATH_MAX];  // with symbolic links followed
    char part[PATH_MAX + 64];               // the name while the file is not whole
    int reserve;                            // a descriptor kept for the first save; or -1
} Target;

// Can a file be written under this name? Asked before any work is done; changes nothing.
bool find_target(Target *target, const char *name);

// A save: begin, put into `out` what belongs in the file, end. Errors are reported by end_save().
// If the finished file cannot take its final name, it stays where it is, and the message says so.
void begin_save(Target *target, Output *out);
bool end_save(Target *target, Output *out);

#endif
