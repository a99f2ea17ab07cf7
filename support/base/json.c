/* json.c: objects, lists of whole numbers, and strings with all their escapes; strings written. */
#define _XOPEN_SOURCE 700
#include "json.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

void json_expect(Json *json, const char *expected)
{
    if (json->expected) return;
    json->expected = expected;
    json->end = json->at;
    *json->end = '\0';
}

void json_space(Json *json) { json->at += strspn(json->at, " \t\n\r"); }

// Reads a mark if it comes next. If it does not, that is an error, unless `expected` is NULL.
bool json_mark(Json *json, char mark, const char *expected)
{
    json_space(json);
    bool next = *json->at == mark;
    json->at += next;
    if (!next && expected) json_expect(json, expected);
    return next;
}

// Call it before every member of an object or a list. At the end it reads the closing mark.
bool json_next(Json *json, bool first, char close)
{
    if (json_mark(json, close, NULL)) return false;
    if (!first) json_mark(json, ',', "a comma");
    return !json->expected;
}

// Four hexadecimal digits; -1: something else.
static int32_t json_hex(Json *json)
{
    char digits[5] = "";
    size_t n = strspn(strncpy(digits, json->at, 4), "0123456789abcdefABCDEF");
    json->at += n;
    return n == 4 ? (int32_t)strtol(digits, NULL, 16) : -1;
}

// The code point after a backslash. Above 0xffff it takes two escapes, a high and a low surrogate.
// -1: not valid.
static int32_t json_escape(Json *json)
{
    static const char marks[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    char c = *json->at;
    json->at += json->at < json->end;
    if (c && strchr(marks, c)) return codes[strchr(marks, c) - marks];
    int32_t code = c == 'u' ? json_hex(json) : -1;
    if (code < 0xd800 || code > 0xdfff) return code;
    if (code > 0xdbff || strncmp(json->at, "\\u", 2) != 0) return -1;
    json->at += 2;
    int32_t low = json_hex(json);
    return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

// Decoding in place never makes a string longer.
const char *json_string(Json *json)
{
    json_mark(json, '"', "a string");
    char *start = json->at, *to = start;
    while (!json->expected) {
        size_t used = 0, left = (size_t)(json->end - json->at);
        int32_t code = decode_utf8((unsigned char *)json->at, left, &used);
        if (code < 0x20) {
            json_expect(json,
                        left ? "valid UTF-8 without control characters" : "the end of a string");
            break;
        }
        json->at += used;
        if (code == '"') break;
        if (code == '\\' && (code = json_escape(json)) <= 0) {
            json_expect(json, "a valid escape");
            break;
        }
        to += encode_utf8((uint32_t)code, to);
    }
    *to = '\0';
    return start;
}

const char *json_key(Json *json)
{
    const char *key = json_string(json);
    json_mark(json, ':', "a colon");
    return key;
}

static uint64_t json_number(Json *json)
{
    json_space(json);
    const char *start = json->at;
    uint64_t number = 0;
    for (; *json->at >= '0' && *json->at <= '9'; json->at++) {
        uint64_t digit = (uint64_t)(*json->at - '0');
        if (number > (UINT64_MAX - digit) / 10 || (json->at > start && *start == '0')) {
            json_expect(json, "a whole number of 64 bits");
            break;
        }
        number = number * 10 + digit;
    }
    if (json->at == start) json_expect(json, "a whole number");
    return number;
}

size_t json_list(Json *json, uint64_t *list, size_t max)
{
    size_t n = 0;
    bool more;
    json_mark(json, '[', "a list of numbers");
    while ((more = json_next(json, n == 0, ']')) && n < max) list[n++] = json_number(json);
    if (more) json_expect(json, "a shorter list");
    return n;
}

void put_characters(Output *out, const uint32_t *codes, size_t n, bool plain)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t code = codes[i];
        char bytes[4];
        bool escaped = code < 0x20 || (plain && (code >= 0x7f || strchr("\"\\<>&'", (int)code)));
        if (escaped && code > 0xffff) {  // an escape has 16 bits: two of them
            put(out, "\\u%04x", (unsigned)(0xd7c0 + (code >> 10)));
            code = 0xdc00 + (code & 0x3ff);
        }
        if (escaped) {
            put(out, "\\u%04x", (unsigned)code);
        } else {
            put(out, "%s%.*s", code == '"' || code == '\\' ? "\\" : "",
                (int)encode_utf8(code, bytes), bytes);
        }
    }
}

void put_text(Output *out, const char *text, bool plain)
{
    for (size_t n = strlen(text), used = 0; n > 0; text += used, n -= used) {
        int32_t code = decode_utf8((const unsigned char *)text, n, &used);
        uint32_t character = code < 0 ? 0xfffd : (uint32_t)code;
        if (code < 0) used = 1;
        put_characters(out, &character, 1, plain);
    }
}
