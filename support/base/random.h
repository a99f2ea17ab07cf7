/* random.h: Python's random numbers. The same seed gives the same numbers as Python's random
 * module, to the last bit.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { N_WORDS = 624 };

typedef struct Random {
    uint32_t words[N_WORDS];
    size_t used;        // words drawn since they were last stirred
    double gauss_next;  // the second of a pair of normal numbers
    bool has_gauss;     // it is still to be drawn
} Random;

void random_seed(Random *rng, uint64_t seed);
uint32_t random_word(Random *rng);                                   // 32 random bits
double random_uniform(Random *rng);                                  // 0 <= x < 1
double random_gauss(Random *rng, double mean, double std);           // normally distributed
size_t random_below(Random *rng, size_t n);                          // 0 to n - 1, for n < 2^32
size_t random_choice(Random *rng, const double *weights, size_t n);  // weights: [n]
size_t argmax(const double *p, size_t n);  // p: [n]; the first of the largest

// The state, as numbers: words, words used, the second normal number. false: these are none.
enum { N_RANDOM = N_WORDS + 3 };
void random_to_numbers(const Random *rng, double *numbers);
bool random_from_numbers(Random *rng, const double *numbers);

#endif
