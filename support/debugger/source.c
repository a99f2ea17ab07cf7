/* source.c: the lines of microgpt.c, as the script `note` has put them behind its copy. They have
 * the names of what gpt() makes: nothing here is assumed about that file, and a line that is new
 * has its name at once.
 */
#include "views.h"

#include <string.h>

// A line, counted from 1. An empty one, if there is none.
const Line *source_line(int line)
{
    static const Line none = {"", "", "", 0, "", "", false};
    return line > 0 && line <= notes.n_lines ? &notes.lines[line - 1] : &none;
}

// The line where the statement of a line starts.
const Line *statement_of(int line) { return source_line(source_line(line)->starts); }

// The first line with a text in a function; 0 if there is none.
int line_of(const char *function, const char *text)
{
    for (int i = 1; source_line(i)->starts; i++) {
        const Line *line = source_line(i);
        if (strcmp(line->function, function) == 0 && strstr(line->code, text)) return i;
    }
    return 0;
}

// The line that gives a vector this name, or sets a pointer; an empty one, if none does.
const Line *line_that_names(const char *name)
{
    int i = 1;
    while (source_line(i)->starts && strcmp(source_line(i)->name, name) != 0) i++;
    return source_line(i);
}

// The code of a statement, its lines joined and without comments.
void print_statement(int line)
{
    print("    ");
    for (int i = line; source_line(i)->starts == line && line; i++) {
        print("%s%s", i > line ? " " : "", source_line(i)->code);
    }
    print("\n");
}

// The same, with its comment: beside its first line, or the lines above it.
void print_lines(int line)
{
    print_statement(line);
    int first = line, end = line;
    if (*source_line(line)->comment) end++;
    while (end == line && *source_line(first - 1)->comment && !*source_line(first - 1)->code)
        first--;
    for (; first < end; first++) print("    %s\n", source_line(first)->comment);
}
