/* text.h: text that comes in. Documents, the UTF-8 they are written in, and a hash to tell texts
 * apart.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The text to learn from: one document per line. In the shipped file a document is a name.
typedef struct {
    uint32_t *tokens;  // [length] its characters at first; once encoded, its tokens
    size_t length;
    size_t line;  // its line in the file, for messages
} Document;

typedef struct {
    Document *list;  // [n] in the order of the file; the story shuffles it
    size_t n, longest;
    uint32_t *text;  // [n_text] all documents, one after another
    size_t n_text;
    bool had_mark;  // the file begins with a byte-order mark, which is skipped
} Documents;

// Splits a text of n bytes. The caller frees docs->list and docs->text, also after a failure.
bool split_documents(const unsigned char *s, size_t n, Documents *docs, const char *name);

enum { N_CODES = 0x110000 };  // Unicode code points

int32_t decode_utf8(const unsigned char *s, size_t n, size_t *used);  // s: [n]; -1: not UTF-8
size_t encode_utf8(uint32_t code, char out[4]);                       // returns how many bytes
bool is_control(uint32_t code);  // a terminal obeys it, or changes the direction of text
bool is_space(uint32_t code);    // white space, as Python defines it

int find_name(const char *names, const char *value);  // index in "relu|relu2"; -1: not there

// The hash FNV-1a. It starts at FNV_START; each call continues it.
#define FNV_START 14695981039346656037u
#define FNV_PRIME 1099511628211u
uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, size_t n);
uint64_t hash_text(uint64_t hash, const Document *text);
uint64_t fingerprint(const Documents *docs);  // of all documents, before they are encoded

#endif
