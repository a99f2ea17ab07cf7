/* source.c: microgpt.c as text. It has the names of what gpt() makes: nothing here is assumed about
 * the lines of that file, and a line that is new has its name at once.
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char *text;
    char **lines;  // [n]
    int n;
} source;

// A whole file without its last byte, which ends a line; NULL if it cannot be read, or is empty.
char *read_text(const char *name)
{
    unsigned char *bytes = NULL;
    size_t n = 0;
    int file = open_file(name, O_RDONLY);
    if (file < 0) return NULL;
    bool ok = read_all(file, &bytes, &n, name) && n > 0;
    if (ok) bytes[n - 1] = '\0';
    close(file);
    return ok ? (char *)bytes : NULL;
}

static void read_source(void)
{
    if (!source.text) source.text = read_text("microgpt.c");
    if (!source.text || source.lines) return;
    source.lines = malloc((strlen(source.text) + 1) * sizeof *source.lines);
    for (char *s = source.text; s && source.lines; s = strchr(s, '\n')) {
        if (s > source.text) *s++ = '\0';
        source.lines[source.n++] = s;
    }
}

int n_lines(void)
{
    read_source();
    return source.n;
}

// A line of microgpt.c, counted from 1, without its indentation. "" if it cannot be read.
const char *source_line(int line)
{
    read_source();
    if (line < 1 || line > source.n) return "";
    return source.lines[line - 1] + strspn(source.lines[line - 1], " ");
}

// The first line with a text in a function's definition; 0 if there is none.
int line_of(const char *function, const char *text)
{
    enum { OUTSIDE, HEADER, BODY } where = OUTSIDE;
    char start[64];
    snprintf(start, sizeof start, "%s(", function);
    read_source();
    for (int i = 0; i < source.n; i++) {
        const char *line = source.lines[i], *at = line[0] == ' ' ? NULL : strstr(line, start);
        size_t length = strlen(line);
        if (where == OUTSIDE && at && at > line && strchr(" *", at[-1])) where = HEADER;
        if (where == HEADER && length > 0 && line[length - 1] == ';') where = OUTSIDE;
        if (where == HEADER && line[0] == '{') where = BODY;
        if (where == BODY && strstr(line, text)) return i + 1;
        if (where == BODY && line[0] == '}') where = OUTSIDE;
    }
    return 0;
}

// The identifier that a text begins with; NULL if it does not.
static const char *identifier(const char *text, size_t *length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    *length = strchr("0123456789", text[0]) ? 0 : strspn(text, letters);
    return *length ? text : NULL;
}

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_comment(int line) { return begins_with(source_line(line), "// "); }

// Can a statement begin after this line? It ends one, or is empty, or a comment, or a condition.
bool ends_statement(int line)
{
    const char *text = source_line(line), *comment = strstr(text, "// ");
    size_t n = comment ? (size_t)(comment - text) : strlen(text);
    while (n > 0 && text[n - 1] == ' ') n--;
    bool head =
        begins_with(text, "if (") || begins_with(text, "for (") || begins_with(text, "while (");
    return n == 0 || strchr(";{}", text[n - 1]) || (head && text[n - 1] == ')');
}

// Where the statement begins that a line is part of.
int statement_start(int line)
{
    while (line > 1 && !ends_statement(line - 1)) line--;
    return line;
}

// The comment on a statement, whole: beside its first line, or the lines above it.
void print_comment(int line, const char *indent)
{
    const char *beside = strstr(source_line(line), "// ");
    int first = line;
    if (beside) print("%s%s\n", indent, beside);
    while (!beside && is_comment(first - 1)) first--;
    for (; first < line; first++) print("%s%s\n", indent, source_line(first));
}

// The code of a statement, its lines joined and without comments.
void print_statement(int line, const char *indent)
{
    print("%s", indent);
    for (bool more = true, first = true; more && line < source.n; line++, first = false) {
        const char *text = source_line(line), *beside = strstr(text, "// ");
        int length = (int)(beside ? (size_t)(beside - text) : strlen(text));
        while (length > 0 && text[length - 1] == ' ') length--;
        print("%s%.*s", first ? "" : " ", length, text);
        more = !ends_statement(line);
    }
    print("\n");
}

// The comment on a statement, beside its first line or above it, without the number of the
// lesson's line; NULL if there is none.
const char *comment_on(int line)
{
    const char *comment = strstr(source_line(line), "// ");
    if (!comment && is_comment(line - 1)) {
        while (is_comment(line - 2)) line--;
        comment = source_line(line - 1);
    }
    if (!comment) return NULL;
    comment += 3;
    size_t digits = strspn(comment, "0123456789");
    return digits && comment[digits] == ':' ? comment + digits + 2 : comment;
}

// The name of what a statement makes, and what is said of it. It is what its comment begins with,
// before a colon; or else what it assigns to; or else, where it assigns nothing, what it names
// after the tape, or, if that is a place in an array, what is copied there. False if it has none.
bool name_in_source(int line, char name[40], const char **meaning)
{
    line = statement_start(line);
    const char *text = source_line(line), *comment = comment_on(line), *given = NULL;
    const char *beside = strstr(text, "// "), *equals = strstr(text, " = ");
    const char *end = text + strlen(text);
    if (!equals && end - text > 2 && strcmp(end - 2, " =") == 0) equals = end - 2;
    if (beside && equals > beside) equals = NULL;
    const char *into = equals ? NULL : strstr(text, "(tape, ");
    size_t length = 0;
    *meaning = comment ? comment : "";
    if (comment && identifier(comment, &length) && comment[length] == ':') {
        given = comment;
        *meaning = comment + length + 1 + strspn(comment + length + 1, " ");
    } else if (equals) {
        const char *start = equals;
        while (start > text && start[-1] != ' ' && start[-1] != '*') start--;
        given = identifier(start, &length) && start + length == equals ? start : NULL;
    } else if (into && !strstr(text, "return ")) {
        given = identifier(into + 7, &length);
        const char *next = given ? strstr(given, ", ") : NULL;
        if (given && given[length] == '[') given = next ? identifier(next + 2, &length) : NULL;
        if (given && given[length] != ',') given = NULL;
    }
    if (given) snprintf(name, 40, "%.*s", (int)length, given);
    return given != NULL;
}
