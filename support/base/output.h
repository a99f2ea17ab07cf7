/* output.h: errors, text that goes out, and the terminal it goes to. Like all of support/base/, it
 * knows no model, and includes nothing from outside this folder.
 *
 * A function that fails records the error and returns false; report() prints it, in one line.
 * All output goes through an Output. It reports every byte that it could not write. A second after
 * a signal has asked the run to end, it stops waiting for readers.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifdef __GNUC__
#define PRINTF_LIKE(f, args) __attribute__((format(printf, f, args)))
#else
#define PRINTF_LIKE(f, args)
#endif

// Exit statuses. PIPE_CLOSED is what a shell reports for a program that SIGPIPE ended.
enum { DONE = 0, FAILED = 1, USAGE = 2, INTERRUPTED = 130, PIPE_CLOSED = 141 };

// fail() and usage() record an error and return false; the latest wins.
#define fail(...) fail_as(FAILED, __VA_ARGS__)  // the work failed
#define usage(...) fail_as(USAGE, __VA_ARGS__)  // the command line is wrong
#define fail_as(...) (set_failure(__VA_ARGS__), false)
PRINTF_LIKE(2, 3) void set_failure(int status, const char *format, ...);
#define no_memory() fail("not enough memory")
#define fail_errno(name) fail("%s: %s", name, strerror(errno))  // a file, and what errno says

enum { MESSAGE_ROOM = 8192 };  // for the longest file name and its problem
typedef struct {
    int status;               // DONE: nothing has failed
    char text[MESSAGE_ROOM];  // one line, without control characters
    const char *command;      // to type next; on a terminal it gets a line of its own. NULL: none
} Failure;
extern Failure failure;

// A file being written. Buffered. The first error sticks, and nothing more is written after it:
// checking `error` now and then is enough.
typedef struct {
    int file, error;  // a descriptor, or -1: bytes are only counted; errno, or 0
    bool by_line;     // people are reading: flush at each newline
    size_t n, total;  // bytes waiting; bytes put so far
    char bytes[1 << 16];
} Output;
extern Output standard_output, standard_error;

void put_bytes(Output *out, const void *bytes, size_t n);
PRINTF_LIKE(2, 3) void put(Output *out, const char *format, ...);
bool flush(Output *out);  // false: out->error says why
#define say(...) put(&standard_output, __VA_ARGS__)
#define show(...) (put(&standard_error, __VA_ARGS__), flush(&standard_error))  // at once
// A line of text, from this column on, broken between words: no line is wider than `width`, and all
// but the first are indented.
PRINTF_LIKE(4, 5)
void say_wrapped(size_t width, size_t column, size_t indent, const char *format, ...);
#define say_sentence(width, ...) say_wrapped(width, 0, 2, __VA_ARGS__)
PRINTF_LIKE(1, 2) void note(const char *format, ...);  // "microgpt: note: ...", on one line

bool mask_controls(char *text);  // each becomes '?'; were there any?

void start_output(void);  // once, before any other call
bool output_ok(void);     // fails if interrupted, or if standard output takes no more
int report(bool ok);      // flushes, prints the error if not ok, returns the exit status

extern bool dies_of_sigpipe;  // SIGPIPE was not ignored from the start

// What an open file leads to, from TERM, NO_COLOR, COLUMNS, the locale and the file itself.
typedef struct {
    bool is_terminal;
    bool draws;      // TERM is set and not dumb: it can move the cursor
    bool color;      // NO_COLOR does not forbid it
    bool unicode;    // it shows more than ASCII
    size_t columns;  // its width; 80 if nobody knows
} Terminal;
Terminal terminal_of(int file);

bool all_finite(const double *a, size_t n);  // a: [n]

#endif
