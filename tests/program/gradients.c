/* gradients N FILE FILE: how far the gradients of the last step are apart in the model files of two runs with --beta1 0,
 * where Adam's mean is the gradient itself. Losses alone would not show a matrix whose gradients are all scaled alike:
 * Adam divides that out. Each is compared as a part of the largest of the N that it is among: of a matrix, not of a row,
 * because there are rows that are 1e-13 in a matrix of tenths: what is left of larger numbers, and their rounding. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    unsigned char *bytes;  // of the numbers
    size_t n;              // numbers: parameters, then both means of Adam
} File;

static uint64_t little_endian(const unsigned char *bytes)
{
    uint64_t bits = 0;
    for (int i = 8; i-- > 0;) bits = bits << 8 | bytes[i];
    return bits;
}

static double number(File file, size_t i)
{
    union {
        uint64_t bits;
        double x;
    } u = {.bits = little_endian(file.bytes + 8 * i)};
    return u.x;
}

static File read_numbers(const char *name)
{
    unsigned char size[8];
    FILE *file = fopen(name, "rb");
    if (!file || fread(size, 1, 8, file) != 8 || fseek(file, 0, SEEK_END)) exit(2);
    long start = 8 + (long)little_endian(size), bytes = ftell(file) - start;
    File read = {bytes > 0 ? malloc((size_t)bytes) : NULL, (size_t)bytes / 8};
    if (!read.bytes || fseek(file, start, SEEK_SET) || fread(read.bytes, 8, read.n, file) != read.n)
        exit(2);
    fclose(file);
    return read;
}

int main(int argc, char **argv)
{
    size_t among = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    if (among == 0) return 2;
    File a = read_numbers(argv[2]), b = read_numbers(argv[3]);
    if (a.n != b.n) return 2;
    double most = 0;
    size_t n = a.n / 3;
    for (size_t i = n; i < 2 * n; i += among) {
        double largest = 0, apart = 0;
        for (size_t k = i; k < i + among && k < 2 * n; k++) {
            double d = fabs(number(a, k) - number(b, k));
            apart = d <= apart ? apart : d;
            largest = fmax(largest, fabs(number(a, k)));
        }
        if (!(apart <= most * largest)) most = apart / largest;
    }
    printf("%zu gradients %.0e\n", n, most);
    free(a.bytes);
    free(b.bytes);
    return most <= 1e-9 ? 0 : 1;
}
