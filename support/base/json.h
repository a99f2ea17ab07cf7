/* json.h: JSON, read and written.
 *
 * What is read may come from anyone. Strings are decoded in place. The first error sticks, and the
 * text ends there: check `expected` once, at the end.
 */
#ifndef JSON_H
#define JSON_H

#include "output.h"

#include <stdint.h>

typedef struct {
    char *at, *end;        // what is left; *end is a zero
    const char *expected;  // what should be at `at` instead; NULL: no error
} Json;

void json_expect(Json *json, const char *expected);  // an error, unless there was one before
void json_space(Json *json);                         // skips white space
bool json_mark(Json *json, char mark, const char *expected);  // NULL: it may be missing
bool json_next(Json *json, bool first, char close);           // is there another member?
const char *json_string(Json *json);
const char *json_key(Json *json);                          // a string and a colon
size_t json_list(Json *json, uint64_t *list, size_t max);  // list: [max]; returns how many

// Writes characters, or UTF-8, as they stand between the quotes of a string; with `plain`, as ASCII
// that cannot end a script of a page. A byte that is not UTF-8 becomes U+FFFD.
void put_characters(Output *out, const uint32_t *codes, size_t n, bool plain);
void put_text(Output *out, const char *text, bool plain);

#endif
