/* output.c: one line per error, buffered output that cannot hang, and the terminal. */
#define _XOPEN_SOURCE 700
#include "output.h"
#include "signals.h"
#include "text.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 50  // for a reader, before the time is looked at again

Failure failure;
Output standard_output = {.file = STDOUT_FILENO};
Output standard_error = {.file = STDERR_FILENO};
bool dies_of_sigpipe;
static char formatted[sizeof standard_output.bytes];  // what is put, or said, at the moment

bool mask_controls(char *text)
{
    bool any = false;
    size_t used = 1, left = strlen(text);
    for (char *c = text; left > 0; c += used, left -= used) {
        int32_t code = decode_utf8((unsigned char *)c, left, &used);
        if (code < 0) used = 1;
        bool control = code >= 0 && is_control((uint32_t)code);
        if (control) memset(c, '?', used);
        any = any || control;
    }
    return any;
}

// Formats one line, whatever it quotes. If it is too long, the middle is left out: the beginning
// names the file, and the end gives the reason.
static void compose(char text[MESSAGE_ROOM], const char *format, va_list args)
{
    if (vsnprintf(formatted, sizeof formatted, format, args) < 0) formatted[0] = '\0';
    size_t length = strlen(formatted), half = MESSAGE_ROOM / 2 - sizeof " ... ";
    if (length < MESSAGE_ROOM) {
        strcpy(text, formatted);
    } else {
        snprintf(text, MESSAGE_ROOM, "%.*s ... %s", (int)half, formatted,
                 formatted + length - half);
    }
    mask_controls(text);
}

void set_failure(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    compose(failure.text, format, args);
    va_end(args);
    failure.status = status;
    failure.command = NULL;
}

static bool on_disk(int file)
{
    struct stat info;
    return fstat(file, &info) == 0 && S_ISREG(info.st_mode);
}

// A short write continues where it stopped. A reader may be slow, and is waited for, but not once
// the end of the run is overdue: so no write is larger than what a pipe that is ready takes without
// waiting. A file on a disk is written to its end.
bool flush(Output *out)
{
    bool disk = out->n && on_disk(out->file);
    for (size_t done = 0; done < out->n && out->file >= 0 && !out->error;) {
        struct pollfd file = {.fd = out->file, .events = POLLOUT};
        size_t left = out->n - done, most = disk || left < PIPE_BUF ? left : PIPE_BUF;
        int ready = poll(&file, 1, overdue() ? 0 : WAIT_MS);
        bool waits = ready == 0 || (ready < 0 && errno == EINTR);
        ssize_t written = waits ? -1 : write(out->file, out->bytes + done, most);
        if (written >= 0) {
            done += (size_t)written;
        } else if (!waits && errno != EINTR && errno != EAGAIN) {
            out->error = errno;
        } else if (!disk && overdue()) {
            out->error = EINTR;
        }
    }
    out->n = 0;
    return !out->error;
}

void put_bytes(Output *out, const void *bytes, size_t n)
{
    out->total += n;
    for (size_t i = 0; i < n && (out->n < sizeof out->bytes || flush(out)); i++) {
        out->bytes[out->n++] = ((const char *)bytes)[i];
    }
    if (out->by_line && out->n && out->bytes[out->n - 1] == '\n') flush(out);
}

void put(Output *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(formatted, sizeof formatted, format, args);
    va_end(args);
    bool fits = n >= 0 && (size_t)n < sizeof formatted;
    if (!fits && flush(out)) out->error = EOVERFLOW;
    put_bytes(out, formatted, fits ? (size_t)n : 0);
}

void say_wrapped(size_t width, size_t column, size_t indent, const char *format, ...)
{
    char text[512] = "";
    va_list args;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0) standard_output.error = EOVERFLOW;
    va_end(args);
    for (const char *word = text; *word;) {
        size_t bytes = strcspn(word, " "), columns = 0;
        for (size_t i = 0; i < bytes; i++) columns += ((unsigned char)word[i] & 0xc0) != 0x80;
        bool first = word == text, breaks = !first && column + 1 + columns > width;
        say("%s%*s%.*s", breaks ? "\n" : "", breaks ? (int)indent : !first, "", (int)bytes, word);
        column = (breaks ? indent : column + !first) + columns;
        word += bytes + (word[bytes] == ' ');
    }
    say("\n");
}

void note(const char *format, ...)
{
    char text[MESSAGE_ROOM];
    va_list args;
    va_start(args, format);
    compose(text, format, args);
    va_end(args);
    show("microgpt: note: %s\n", text);
}

// A standard stream that is closed stays unusable: no file of ours takes its number. A write to a
// closed pipe, or to a file that grows too large, becomes an error of the write.
void start_output(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
    dies_of_sigpipe = signal(SIGPIPE, SIG_IGN) != SIG_IGN;
    signal(SIGXFSZ, SIG_IGN);
    standard_output.by_line = isatty(STDOUT_FILENO);
}

// A reader that has gone away is not an error: the run ends as SIGPIPE would have ended it, unless
// that was ignored.
bool output_ok(void)
{
    int reason = standard_output.error;
    if (interrupted) return fail_as(INTERRUPTED, "interrupted");
    if (reason == EPIPE && dies_of_sigpipe) return fail_as(PIPE_CLOSED, "%s", "");
    return !reason || fail("standard output: %s", strerror(reason));
}

int report(bool ok)
{
    flush(&standard_output);
    ok = ok && output_ok();
    if (!ok && *failure.text) {
        const char *command = failure.command, *between = isatty(STDERR_FILENO) ? "\n" : " ";
        show("microgpt: %s%s%s\n", failure.text, command ? between : "", command ? command : "");
    }
    if (!ok && failure.status == PIPE_CLOSED) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return ok ? DONE : failure.status;
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

Terminal terminal_of(int file)
{
    const char *term = environment("TERM"), *locale = environment("LC_ALL");
    if (!*locale) locale = environment("LC_CTYPE");
    if (!*locale) locale = environment("LANG");
    bool utf8 = strstr(locale, "UTF-8") || strstr(locale, "utf-8") || strstr(locale, "UTF8") ||
                strstr(locale, "utf8");
    bool draws = *term && strcmp(term, "dumb") != 0;
    size_t columns = strtoul(environment("COLUMNS"), NULL, 10);
    if (columns < 1 || columns > 9999) columns = 80;
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col) columns = size.ws_col;
#endif
    return (Terminal){.is_terminal = isatty(file),
                      .draws = draws,
                      .color = !*environment("NO_COLOR"),
                      .unicode = utf8 && draws && strcmp(term, "linux") != 0,
                      .columns = columns};
}

bool all_finite(const double *a, size_t n)
{
    size_t i = 0;
    while (i < n && isfinite(a[i])) i++;
    return i == n;
}
