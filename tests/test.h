/* Checks for the tests in C: one line each, "ok - WHAT" or "not ok - WHAT: expected X, saw Y". A test returns finish(). */
#ifndef TEST_H
#define TEST_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_failed;

static inline int finish(void) { return n_failed ? 1 : 0; }

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static inline void
check(bool ok, const char *format, ...)  // the text: what, and if not ok what was seen
{
    va_list args;
    va_start(args, format);
    printf(ok ? "ok - " : "not ok - ");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    n_failed += !ok;
}

static inline void check_size(const char *what, size_t expected, size_t seen)
{
    if (expected == seen) {
        check(true, "%s", what);
    } else {
        check(false, "%s: expected %zu, saw %zu", what, expected, seen);
    }
}

// ALL=1: everything is wanted, also what takes long.
static inline bool all_of_it(void)
{
    const char *all = getenv("ALL");
    return all && *all;
}

// How far apart two numbers are; 0 if they are the same infinity or both not a number. Large ones relative to their size.
static inline double distance(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b))) return 0;
    double d = fabs(a - b) / fmax(1, fmax(fabs(a), fabs(b)));
    return isnan(d) ? INFINITY : d;
}

// n numbers within a tolerance. If one is not, the first of these is shown.
static inline bool all_near(const double *expected, const double *seen, size_t n, double tolerance,
                            char *text, size_t room)
{
    for (size_t i = 0; i < n; i++) {
        if (!(distance(expected[i], seen[i]) <= tolerance)) {
            snprintf(text, room, "[%zu of %zu]: expected %.17g, saw %.17g", i, n, expected[i],
                     seen[i]);
            return false;
        }
    }
    return true;
}

static inline void check_all_near(const char *what, const double *expected, const double *seen,
                                  size_t n, double tolerance)
{
    char text[128] = "";
    bool ok = all_near(expected, seen, n, tolerance, text, sizeof text);
    check(ok, "%s%s", what, text);
}

static inline void check_near(const char *what, double expected, double seen, double tolerance)
{
    check_all_near(what, &expected, &seen, 1, tolerance);
}

// n numbers, to the last bit.
static inline void check_same_bits(const char *what, const double *expected, const double *seen,
                                   size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&expected[i], &seen[i], sizeof(double)) != 0) {
            check(false, "%s[%zu of %zu]: expected %.17g (%a), saw %.17g (%a)", what, i, n,
                  expected[i], expected[i], seen[i], seen[i]);
            return;
        }
    }
    check(true, "%s", what);
}

// The numbers in a file, one a line, in memory of the caller's. A file that is missing ends the test.
static inline double *read_numbers(const char *name, size_t *n)
{
    FILE *file = fopen(name, "r");
    double *numbers = NULL, x;
    *n = 0;
    while (file && fscanf(file, "%lf", &x) == 1) {
        if (*n % 1024 == 0) numbers = realloc(numbers, (*n + 1024) * sizeof *numbers);
        if (!numbers) break;
        numbers[(*n)++] = x;
    }
    if (!file || !numbers) {
        printf("not ok - %s: expected numbers, saw none\n", name);
        exit(1);
    }
    fclose(file);
    return numbers;
}

// Numbers for tests: spread over -1..1, the same at every run.
static inline double any_number(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 4503599627370496.0 - 1;
}

#endif
