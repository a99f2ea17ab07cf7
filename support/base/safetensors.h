/* safetensors.h: the format of model files. Eight bytes give the length of a header, the header
 * is JSON, and the numbers of all tensors follow without gaps.
 *
 * A file may come from anyone: everything it says is checked before it is used.
 */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include "output.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_HEADER = 100000000 };        // bytes: the format's own limit
#define CHECKSUM "fnv1a64:%016" PRIx64  // in the metadata: the hash of all numbers

typedef struct {
    const char *name;   // first, as in a Pair: both are sorted by it
    const char *dtype;  // F64 or F32
    uint64_t shape[8];  // [n_dims]
    size_t n_dims;
    uint64_t width;       // bytes of a number
    uint64_t begin, end;  // its bytes, counted from the end of the header
    double *to;           // where read_data() puts its numbers; NULL: nowhere
} Tensor;

typedef struct {
    const char *name, *value;
} Pair;

typedef struct {
    const char *path;  // for messages
    char *bytes;       // the header, which all names and strings point into
    Tensor *tensors;   // [n_tensors]
    Pair *metadata;    // [n_metadata]
    size_t n_tensors, n_metadata;
    uint64_t data_size;  // bytes of all tensors together
} Header;

// Reading: the header, then find what you need and set `to`, then the data.
bool read_header(int file, Header *header);  // free_header() it, also after a failure
Tensor *find_tensor(const Header *header, const char *name);        // or NULL
const char *find_metadata(const Header *header, const char *name);  // or NULL
bool read_data(int file, Header *header);  // after it, find_tensor() no longer works
void free_header(Header *header);

// Writing: the length of the header, the header, the numbers.
size_t put_tensor(Output *out, const char *prefix, const char *name, size_t rows, size_t cols,
                  size_t begin);  // ",\"wte\":{...}"; cols 0: a vector; returns its end
uint64_t hash_numbers(uint64_t hash, const double *a, size_t n);  // a: [n]
void put_length(Output *out, size_t length);
void put_numbers(Output *out, const double *a, size_t n);  // a: [n]

#endif
