/* safetensors.c: reads model files without trusting them, and writes them. */
#define _XOPEN_SOURCE 700
#include "safetensors.h"
#include "files.h"
#include "json.h"
#include "text.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------
 * Numbers, as little-endian bytes.
 */
static uint64_t decode_word(const unsigned char *bytes, uint64_t width)
{
    uint64_t word = 0;
    for (uint64_t i = width; i-- > 0;) word = word << 8 | bytes[i];
    return word;
}

static const unsigned char *encode_word(uint64_t word, unsigned char bytes[8])
{
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(word >> 8 * i);
    return bytes;
}

static double decode_number(const unsigned char *bytes, uint64_t width)
{
    uint64_t word = decode_word(bytes, width);
    uint32_t half = (uint32_t)word;
    double f64;
    float f32;
    memcpy(&f64, &word, sizeof f64);
    memcpy(&f32, &half, sizeof f32);
    return width == 4 ? (double)f32 : f64;
}

static const unsigned char *encode_number(double number, unsigned char bytes[8])
{
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    return encode_word(word, bytes);
}

/* ------------------------------------------------------------------------------------------------
 * The header.
 */
static void parse_metadata(Header *header, Json *json)
{
    json_mark(json, '{', "an object of strings");
    while (json_next(json, header->n_metadata == 0, '}')) {
        const char *name = json_key(json);
        header->metadata[header->n_metadata++] = (Pair){name, json_string(json)};
    }
}

// {"dtype": "F64", "shape": [27, 16], "data_offsets": [0, 3456]}, each key once, in any order.
static void parse_tensor(Tensor *tensor, const char *name, Json *json)
{
    enum { DTYPE, SHAPE, OFFSETS };
    bool seen[3] = {false};
    size_t n_seen = 0;
    uint64_t offsets[2] = {0};
    json_mark(json, '{', "an object");
    for (; json_next(json, n_seen == 0, '}'); n_seen++) {
        int key = find_name("dtype|shape|data_offsets", json_key(json));
        if (key < 0 || seen[key]) {
            json_expect(json, "dtype, shape and data_offsets before this, once each");
            break;
        }
        seen[key] = true;
        if (key == DTYPE) tensor->dtype = json_string(json);
        if (key == SHAPE) tensor->n_dims = json_list(json, tensor->shape, 8);
        if (key == OFFSETS && json_list(json, offsets, 2) < 2) json_expect(json, "two offsets");
    }
    if (n_seen < 3) json_expect(json, "dtype, shape and data_offsets before this");
    tensor->name = name;
    tensor->begin = offsets[0];
    tensor->end = offsets[1];
}

static void parse_header(Header *header, Json *json)
{
    bool has_metadata = false;
    if (*json->at != '{') json_expect(json, "an object");  // not even a space may come first
    json_mark(json, '{', "an object");
    for (bool first = true; json_next(json, first, '}'); first = false) {
        const char *name = json_key(json);
        if (strcmp(name, "__metadata__") == 0) {
            if (has_metadata) json_expect(json, "no second __metadata__");
            parse_metadata(header, json);
            has_metadata = true;
        } else {
            parse_tensor(&header->tensors[header->n_tensors++], name, json);
        }
    }
    json_space(json);
    if (json->at < json->end) json_expect(json, "the end of the header");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Sorts tensors or pairs. Returns a name that is there twice, or NULL.
static const char *sort_by_name(void *array, size_t n, size_t size)
{
    qsort(array, n, size, by_name);
    for (char *at = array; n > 1; n--, at += size) {
        if (by_name(at, at + size) == 0) return *(const char **)at;
    }
    return NULL;
}

static int by_place(const void *a, const void *b)
{
    const Tensor *s = a, *t = b;
    if (s->begin != t->begin) return s->begin < t->begin ? -1 : 1;
    return s->end < t->end ? -1 : s->end > t->end;
}

Tensor *find_tensor(const Header *header, const char *name)
{
    return bsearch(&name, header->tensors, header->n_tensors, sizeof *header->tensors, by_name);
}

const char *find_metadata(const Header *header, const char *name)
{
    const Pair *found =
        bsearch(&name, header->metadata, header->n_metadata, sizeof *found, by_name);
    return found ? found->value : NULL;
}

// The shape fits the offsets, and the data start where the last tensor ended.
static bool check_tensor(const Header *header, Tensor *t)
{
    const char *path = header->path, *name = t->name;
    int dtype = find_name("F64|F32", t->dtype);
    if (dtype < 0) {
        return fail("%s: tensor %s: its dtype is %s, not F64 or F32", path, name, t->dtype);
    }
    uint64_t bytes = t->width = dtype == 0 ? 8 : 4;
    for (size_t k = 0; k < t->n_dims; k++) {
        if (t->shape[k] && bytes > UINT64_MAX / t->shape[k]) {
            return fail("%s: tensor %s: its shape is too large", path, name);
        }
        bytes *= t->shape[k];
    }
    if (t->end < t->begin || t->end - t->begin != bytes) {
        return fail("%s: tensor %s: its offsets do not fit its shape", path, name);
    }
    return t->begin == header->data_size ||
           fail("%s: tensor %s: %s before its data", path, name,
                t->begin > header->data_size ? "a gap" : "an overlap");
}

// Checks all tensors in the order of their data, then sorts them by name.
static bool check_tensors(Header *header)
{
    if (header->n_tensors == 0) return fail("%s: it holds no tensors", header->path);
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_place);
    for (size_t i = 0; i < header->n_tensors; i++) {
        if (!check_tensor(header, &header->tensors[i])) return false;
        header->data_size = header->tensors[i].end;
    }
    const char *twice = sort_by_name(header->tensors, header->n_tensors, sizeof *header->tensors);
    return !twice || fail("%s: two tensors named %s", header->path, twice);
}

// Reads n bytes. The file must not end before them.
static bool read_bytes(int file, void *bytes, size_t n, const Header *header,
                       const char *if_it_ends)
{
    ssize_t got = read_up_to(file, bytes, n);
    return got == (ssize_t)n ||
           fail("%s: %s", header->path, got < 0 ? strerror(errno) : if_it_ends);
}

// Checks everything that can be checked without knowing the model.
bool read_header(int file, Header *header)
{
    unsigned char word[8];
    struct stat info;
    bool regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    if (!read_bytes(file, word, 8, header, "not a model file: too short for a header"))
        return false;
    uint64_t length = decode_word(word, 8), size = regular ? (uint64_t)info.st_size : UINT64_MAX;
    if (length < 2 || length > MAX_HEADER || length > size - 8) {
        bool text = true;
        for (size_t i = 0; i < 8; i++) text = text && (word[i] >= ' ' || is_space(word[i]));
        return fail("%s: not a model file%s", header->path,
                    text ? ", but a text; to train on it: --data FILE"
                         : ": the length of its header is impossible");
    }
    size_t n = (size_t)length;
    header->bytes = calloc(n + 1, 1);
    header->tensors = calloc(n / 40 + 1, sizeof *header->tensors);  // one takes 40 bytes or more
    header->metadata = calloc(n / 5 + 1, sizeof *header->metadata);
    if (!header->bytes || !header->tensors || !header->metadata) return no_memory();
    if (!read_bytes(file, header->bytes, n, header, "it ends within the header")) return false;
    Json json = {.at = header->bytes, .end = header->bytes + n};
    parse_header(header, &json);
    if (json.expected) {
        return fail("%s: header, byte %td: expected %s", header->path, json.at - header->bytes,
                    json.expected);
    }
    const char *twice =
        sort_by_name(header->metadata, header->n_metadata, sizeof *header->metadata);
    if (twice) return fail("%s: metadata: %s appears twice", header->path, twice);
    if (!check_tensors(header)) return false;
    return !regular || size - 8 - length == header->data_size ||
           fail("%s: %" PRIu64 " bytes of data, but the header describes %" PRIu64, header->path,
                size - 8 - length, header->data_size);
}

void free_header(Header *header)
{
    free(header->bytes);
    free(header->tensors);
    free(header->metadata);
}

/* ------------------------------------------------------------------------------------------------
 * The data.
 */
// Reads the numbers of one tensor and continues the hash.
static bool read_tensor(int file, const Header *header, const Tensor *t, uint64_t *hash)
{
    static unsigned char bytes[1 << 14];  // holds whole numbers, whatever their width
    double *to = t->to;
    for (uint64_t at = t->begin, n; at < t->end; at += n) {
        n = t->end - at < sizeof bytes ? t->end - at : sizeof bytes;
        if (!read_bytes(file, bytes, (size_t)n, header, "it ends within the data")) return false;
        *hash = hash_bytes(*hash, bytes, (size_t)n);
        for (uint64_t k = 0; to && k < n; k += t->width, to++) {
            *to = decode_number(bytes + k, t->width);
            if (!isfinite(*to)) {
                return fail("%s: tensor %s: number %td is not finite", header->path, t->name,
                            to - t->to + 1);
            }
        }
    }
    return true;
}

// Reads the data in the order of the file. Only tensors of the run, "train.", may have no place.
// The checksum must fit, if there is one, and the file must end after the data.
bool read_data(int file, Header *header)
{
    char checksum[32], more;
    const char *expected = find_metadata(header, "checksum");
    uint64_t hash = FNV_START;
    qsort(header->tensors, header->n_tensors, sizeof *header->tensors, by_place);
    for (size_t i = 0; i < header->n_tensors; i++) {
        const Tensor *t = &header->tensors[i];
        if (!t->to && strncmp(t->name, "train.", 6) != 0) {
            return fail("%s: tensor %s: the model has none of this name", header->path, t->name);
        }
        if (!read_tensor(file, header, t, &hash)) return false;
    }
    snprintf(checksum, sizeof checksum, CHECKSUM, hash);
    if (expected && strcmp(expected, checksum) != 0) {
        return fail("%s: damaged: the numbers do not match the checksum; if they were changed on "
                    "purpose, remove checksum from the metadata",
                    header->path);
    }
    ssize_t got = read_up_to(file, &more, 1);
    return got == 0 ||
           fail("%s: %s", header->path, got < 0 ? strerror(errno) : "extra bytes after the data");
}

/* ------------------------------------------------------------------------------------------------
 * Writing.
 */
size_t put_tensor(Output *out, const char *prefix, const char *name, size_t rows, size_t cols,
                  size_t begin)
{
    size_t end = begin + 8 * rows * (cols ? cols : 1);
    put(out, ",\"%s%s\":{\"dtype\":\"F64\",\"shape\":[%zu", prefix, name, rows);
    if (cols) put(out, ",%zu", cols);
    put(out, "],\"data_offsets\":[%zu,%zu]}", begin, end);
    return end;
}

uint64_t hash_numbers(uint64_t hash, const double *a, size_t n)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < n; i++) hash = hash_bytes(hash, encode_number(a[i], bytes), 8);
    return hash;
}

void put_length(Output *out, size_t length)
{
    unsigned char bytes[8];
    put_bytes(out, encode_word(length, bytes), 8);
}

void put_numbers(Output *out, const double *a, size_t n)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < n; i++) put_bytes(out, encode_number(a[i], bytes), 8);
}
