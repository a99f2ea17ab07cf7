/* text.c: UTF-8, documents, and the hash of a text.
 *
 * Lines end as in Python's text files (LF, CR LF or CR), and Python's white space is removed at
 * both ends of a document.
 */
#define _XOPEN_SOURCE 700
#include "text.h"
#include "output.h"

#include <stdlib.h>

// [length] The first byte of a code point of 1 to 4 bytes, before its own bits are added.
static const unsigned char utf8_leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

int32_t decode_utf8(const unsigned char *s, size_t n, size_t *used)
{
    static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000};  // less would fit fewer bytes
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length > n || (s[0] & 0xc0) == 0x80) return -1;
    uint32_t code = s[0] - utf8_leads[length];
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return -1;
        code = code << 6 | (s[i] & 0x3f);
    }
    *used = length;
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < min[length] || surrogate || code >= N_CODES ? -1 : (int32_t)code;
}

size_t encode_utf8(uint32_t code, char out[4])
{
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(utf8_leads[length] | code);
    return length;
}

bool is_control(uint32_t code)
{
    bool turns_text = code == 0x61c || code == 0x200e || code == 0x200f ||
                      (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return code < ' ' || (code >= 0x7f && code < 0xa0) || turns_text;
}

bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

int find_name(const char *names, const char *value)
{
    for (int i = 0; *names; i++) {
        size_t length = strcspn(names, "|");
        if (strncmp(names, value, length) == 0 && !value[length]) return i;
        names += length + (names[length] == '|');
    }
    return -1;
}

// What may be done about bytes that are not UTF-8.
static const char *way_to_utf8(const unsigned char *s, size_t n)
{
    if (n > 1 && (s[0] ^ s[1]) == 1 && s[0] >= 0xfe) {  // a byte-order mark
        return "; to convert from UTF-16: iconv -f UTF-16 -t UTF-8";
    }
    size_t i = 0;
    while (i < n && (s[i] >= ' ' || is_space(s[i]))) i++;
    return i < n ? ": this is not a text file"
                 : "; to convert from Latin-1: iconv -f ISO-8859-1 -t UTF-8";
}

bool split_documents(const unsigned char *s, size_t n, Documents *docs, const char *name)
{
    size_t n_lines = 1, line = 1, used = 1;
    for (size_t i = 0; i < n; i++) n_lines += s[i] == '\n' || s[i] == '\r';
    docs->text = calloc(n + 1, sizeof *docs->text);
    docs->list = calloc(n_lines, sizeof *docs->list);
    if (!docs->text || !docs->list) return no_memory();
    uint32_t *start = docs->text, *end = start;  // of the document being read
    docs->had_mark = n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0;
    for (size_t i = docs->had_mark ? 3 : 0; i <= n; i += used) {
        int32_t code = i < n ? decode_utf8(s + i, n - i, &used) : '\n';
        if (code == '\n' && i > 0 && s[i - 1] == '\r') continue;  // CR has ended the line
        if (code == 0) return fail("%s:%zu: a zero byte: this is not a text file", name, line);
        if (code < 0) {
            return fail("%s:%zu: not valid UTF-8%s", name, line, way_to_utf8(s, n));
        }
        if (code != '\n' && code != '\r') {
            if (start < end || !is_space((uint32_t)code)) *end++ = (uint32_t)code;
            continue;
        }
        while (start < end && is_space(end[-1])) end--;
        size_t length = (size_t)(end - start);
        docs->list[docs->n] = (Document){start, length, line++};
        docs->n += length > 0;  // a blank line is no document
        docs->longest = length > docs->longest ? length : docs->longest;
        start = end;
    }
    docs->n_text = (size_t)(end - docs->text);
    if (docs->n == 0) {
        return fail("%s: no documents: %s", name, n ? "every line is blank" : "the file is empty");
    }
    return docs->n < UINT32_MAX || fail("%s: too many documents: %zu", name, docs->n);
}

uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * FNV_PRIME;
    return hash;
}

// Hashes the length, then the characters, or the tokens.
uint64_t hash_text(uint64_t hash, const Document *text)
{
    hash = (hash ^ text->length) * FNV_PRIME;
    for (size_t i = 0; i < text->length; i++) hash = (hash ^ text->tokens[i]) * FNV_PRIME;
    return hash;
}

uint64_t fingerprint(const Documents *docs)
{
    uint64_t hash = FNV_START;
    for (size_t i = 0; i < docs->n; i++) hash = hash_text(hash, &docs->list[i]);
    return hash;
}
