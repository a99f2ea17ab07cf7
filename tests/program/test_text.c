/* support/base/text.c: UTF-8 and the kinds of characters, for every code point there is; lines; the hash.
 */
#define _XOPEN_SOURCE 700
#include "../../support/base/output.h"
#include "../../support/base/text.h"
#include "../test.h"

/* ------------------------------------------------------------------------------------------------------------------
 * Characters.
 */
// UTF-8 as its table of bits defines it.
static size_t right_bytes(uint32_t code, unsigned char *s)
{
    size_t n = code <= 0x7f ? 1 : code <= 0x7ff ? 2 : code <= 0xffff ? 3 : 4;
    static const unsigned char lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = 0; i < n; i++) {
        s[i] = (unsigned char)((i ? 0x80 : lead[n]) + (code >> 6 * (n - 1 - i)) % (i ? 64 : 128));
    }
    return n;
}

static bool is_surrogate(uint32_t code) { return code / 0x800 == 0xd800 / 0x800; }

static void check_every_code(void)
{
    size_t n_encoded = 0, n_decoded = 0, n_cut = 0, n_refused = 0, n_odd = 0;
    for (uint32_t code = 0; code < 0x110000; code++) {
        unsigned char right[5] = "", ours[5] = "";
        size_t n = right_bytes(code, right), used = 0;
        n_encoded += encode_utf8(code, (char *)ours) == n && memcmp(ours, right, 5) == 0;
        int32_t back = decode_utf8(right, n, &used);
        n_decoded += is_surrogate(code) ? back == -1 : back == (int32_t)code && used == n;
        n_cut += n == 1 || decode_utf8(right, n - 1, &used) == -1;
    }
    check_size("every code point is encoded", 0x110000, n_encoded);
    check_size("and decoded, unless it is a surrogate", 0x110000, n_decoded);
    check_size("but not without its last byte", 0x110000, n_cut);
    static bool valid[0x10000];  // which two bytes are a character
    for (uint32_t code = 0x80; code < 0x800; code++) {
        unsigned char c[4];
        right_bytes(code, c);
        valid[c[0] << 8 | c[1]] = true;
    }
    for (uint32_t pair = 0x8000; pair < 0x10000; pair++) {
        const unsigned char c[] = {(unsigned char)(pair >> 8), (unsigned char)pair};
        size_t used = 0;
        n_odd += (decode_utf8(c, 2, &used) != -1) != valid[pair];
    }
    check_size("pairs of bytes that are taken for what they are not", 0, n_odd);
    for (uint32_t code = 0x110000; code < 0x140000; code++) {
        unsigned char bytes[4];
        size_t used;
        n_refused += decode_utf8(bytes, right_bytes(code, bytes), &used) == -1;
    }
    check_size("those above are refused", 0x140000 - 0x110000, n_refused);
}

static void check_kinds(void)
{
    static const uint32_t spaces[] = {
        0x09,   0x0a,   0x0b,   0x0c,   0x0d,   0x1c,   0x1d,   0x1e,   0x1f,   0x20,
        0x85,   0xa0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
        0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
    static const uint32_t turns_text[] = {0x61c,  0x200e, 0x200f, 0x202a, 0x202b, 0x202c,
                                          0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069};
    size_t next = 0, wrong = 0, wrong_control = 0, turn = 0;
    for (uint32_t code = 0; code < 0x110000; code++) {
        bool space = next < sizeof spaces / sizeof *spaces && spaces[next] == code;
        next += space;
        wrong += is_space(code) != space;
        bool turns = turn < sizeof turns_text / sizeof *turns_text && turns_text[turn] == code;
        turn += turns;
        wrong_control +=
            is_control(code) != (code <= 0x1f || (code >= 0x7f && code <= 0x9f) || turns);
    }
    check_size("white space that is none, or the reverse", 0, wrong);
    check_size("all of Python's white space is tried", sizeof spaces / sizeof *spaces, next);
    check_size("control characters that are none, or the reverse", 0, wrong_control);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Lines.
 */
// A text of n bytes, and its documents: their lines, lengths and characters, one after another.
static void check_split(const char *what, const char *text, size_t n, const char *want)
{
    Documents docs = {0};
    char saw[256] = "", *at = saw;
    unsigned char *copy = malloc(n ? n : 1);  // so that a sanitizer sees what is read behind it
    if (!copy) exit(1);
    memcpy(copy, text, n);
    if (split_documents(copy, n, &docs, "text")) {
        at += sprintf(at, "%zu, longest %zu, in all %zu:", docs.n, docs.longest, docs.n_text);
        for (size_t i = 0; i < docs.n; i++) {
            at += sprintf(at, " %zu ", docs.list[i].line);
            for (size_t k = 0; k < docs.list[i].length; k++) {
                at += sprintf(at, "%c", (char)docs.list[i].tokens[k]);
            }
        }
    } else {
        sprintf(saw, "%.200s", failure.text);
    }
    check(strcmp(saw, want) == 0, "%s: expected '%s', saw '%s'", what, want, saw);
    free(copy);
    free(docs.list);
    free(docs.text);
}

static void check_lines(void)
{
#define SPLIT(what, text, want) check_split(what, text, sizeof text - 1, want)
#define NOT_UTF8 ": not valid UTF-8; to convert from "
#define LATIN1 "Latin-1: iconv -f ISO-8859-1 -t UTF-8"
#define UTF16 "UTF-16: iconv -f UTF-16 -t UTF-8"
    SPLIT("one document", "a", "1, longest 1, in all 1: 1 a");
    SPLIT("three ends of lines", "a\nbc\r\nd\re", "4, longest 2, in all 5: 1 a 2 bc 3 d 4 e");
    SPLIT("blank lines are counted, and are no documents", "\n\r\n \na\n\n\r\rbc\n",
          "2, longest 2, in all 3: 4 a 8 bc");
    SPLIT("a line feed first, after a return first", "\r\n\na", "1, longest 1, in all 1: 3 a");
    SPLIT("white space inside stays", " a b \n\tc\t", "2, longest 3, in all 4: 1 a b 2 c");
    SPLIT("the longest is the first", "abc\nd", "2, longest 3, in all 4: 1 abc 2 d");
    SPLIT("nothing", "", "text: no documents: the file is empty");
    SPLIT("one line end", "\r", "text: no documents: every line is blank");
    SPLIT("a zero first", "\0", "text:1: a zero byte: this is not a text file");
    SPLIT("a zero later", "a\n\0", "text:2: a zero byte: this is not a text file");
    SPLIT("the mark of UTF-16, alone", "\377\376", "text:1" NOT_UTF8 UTF16);
    SPLIT("the mark of UTF-16, high bytes first", "\376\377\0a", "text:1" NOT_UTF8 UTF16);
    SPLIT("half a mark", "\377", "text:1" NOT_UTF8 LATIN1);
    SPLIT("the same half twice", "\377\377", "text:1" NOT_UTF8 LATIN1);
    SPLIT("four bytes, cut by the end", "a\360\237\230", "text:1" NOT_UTF8 LATIN1);
    SPLIT("a mark that is not at the start", "a\n\377\376", "text:2" NOT_UTF8 LATIN1);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The hash. Model files keep it, so it must stay what it is.
 */
static void check_hash(void)
{
    check(hash_bytes(FNV_START, (const unsigned char *)"", 0) == 0xcbf29ce484222325u &&
              hash_bytes(FNV_START, (const unsigned char *)"a", 1) == 0xaf63dc4c8601ec8cu &&
              hash_bytes(FNV_START, (const unsigned char *)"foobar", 6) == 0x85944171f73967e8u,
          "FNV-1a of three texts");
    uint32_t text[] = {'a', 0x1f600, 'c'};
    const Document plain = {.tokens = text, .length = 3};
    uint64_t right = FNV_START;
    const uint64_t parts[] = {3, 'a', 0x1f600, 'c'};
    for (size_t i = 0; i < 4; i++) right = (right ^ parts[i]) * 1099511628211u;
    check(hash_text(FNV_START, &plain) == right, "a text: its length, then its characters");
    Documents docs = {.list = (Document[]){plain, {.tokens = text + 1, .length = 1}}, .n = 2};
    right = (right ^ 1) * 1099511628211u;
    right = (right ^ 0x1f600) * 1099511628211u;
    check(fingerprint(&docs) == right, "two documents, one after the other");
}

int main(void)
{
    check_every_code();
    check_kinds();
    check_lines();
    check_hash();
    return finish();
}
