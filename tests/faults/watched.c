/* The program itself, which says on standard error what mode the first file that it writes has while it is written. */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t watched_write(int file, const void *bytes, size_t n)
{
    struct stat info;
    static int seen;
    if (!seen && file > STDERR_FILENO && fstat(file, &info) == 0) {
        seen = 1;
        fprintf(stderr, "while it is written: %o\n", (unsigned)(info.st_mode & 0777));
    }
    return write(file, bytes, n);
}

#define write watched_write
#include "../../support/base/output.c"
