/* print.c: what is shown: on standard output, in lines of at most 79 columns. The program's own
 * output is buffered elsewhere, and does not mix with it within a line.
 */
#include "views.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 79 };

// Puts a line out, and breaks it at spaces if it is too long, unless more digits were asked for.
static void print_broken(const char *line)
{
    for (const char *indent = "";; indent = "      ") {
        size_t column = strlen(indent), cut = 0, end = 0;
        for (; line[end] && (column <= WIDTH || watched.digits > 6); end++) {
            bool word = line[end] == ' ' && end > 0 && line[end - 1] != ' ';
            if (word && column < WIDTH) cut = end;
            column += (line[end] & 0xc0) != 0x80;  // characters, not bytes
        }
        if (!line[end] && (column <= WIDTH || watched.digits > 6)) cut = 0;
        size_t length = cut ? cut : strlen(line);
        while (length > 0 && line[length - 1] == ' ') length--;
        printf("%s%.*s\n", indent, (int)length, line);
        if (!cut) break;
        line += cut + strspn(line + cut, " ");
    }
}

void print(const char *format, ...)
{
    static char text[1024];  // the line so far
    static size_t n;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text + n, sizeof text - n, format, args);
    va_end(args);
    n = length < 0 || n + (size_t)length >= sizeof text ? sizeof text - 1 : n + (size_t)length;
    char *line = text;
    for (char *end = strchr(line, '\n'); end; end = strchr(line, '\n')) {
        *end = '\0';
        print_broken(line);
        line = end + 1;
    }
    n = strlen(line);
    memmove(text, line, n + 1);
    fflush(stdout);
}

// A number in its column, and the column's heading.
void number(double x)
{
    print(" %*.*g", watched.digits + 6, watched.digits, x == 0 ? 0 : x);  // no -0
}

void heading(const char *text) { print(" %*s", watched.digits + 6, text); }

void numbers(int n, ...)
{
    va_list args;
    va_start(args, n);
    while (n-- > 0) number(va_arg(args, double));
    print("\n");
    va_end(args);
}

void head_of(const char *label, ...)
{
    va_list args;
    va_start(args, label);
    print("  %s", label);
    for (const char *text; (text = va_arg(args, const char *));) heading(text);
    print("\n");
    va_end(args);
}

void data_and_grad(double *value)
{
    number(*value);
    if (gradients_known()) number(gradient_of(value));
}

void headings(const char *data)
{
    heading(data);
    if (gradients_known()) heading(phase() == BACKWARD ? "grad so far" : "grad");
}

void side_by_side(int n, const Place *const places[], const char *const names[], size_t rows)
{
    size_t longest = 0;
    print("    i");
    for (int c = 0; c < n; c++) {
        headings(names[c]);
        if (places[c]->n > longest) longest = places[c]->n;
    }
    print("\n");
    for (size_t i = 0; i < rows && i < longest; i++) {
        print("  %3zu", i);
        for (int c = 0; c < n; c++) {
            bool blank = i >= places[c]->n;
            if (!blank) data_and_grad(places[c]->at + i);
            if (blank) heading("");
            if (blank && gradients_known()) heading("");
        }
        print("\n");
    }
}
