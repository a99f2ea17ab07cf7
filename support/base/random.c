/* random.c: the Mersenne Twister MT19937, seeded and read as Python's random module does it. */
#define _XOPEN_SOURCE 700
#include "random.h"

#include <math.h>

void random_seed(Random *rng, uint64_t seed)
{
    uint32_t *w = rng->words, key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    size_t n_key = key[1] ? 2 : 1, n = N_WORDS;
    w[0] = 19650218;
    for (size_t k = 1; k < n; k++) w[k] = 1812433253 * (w[k - 1] ^ (w[k - 1] >> 30)) + (uint32_t)k;
    for (size_t k = 0; k < 2 * n - 1; k++) {  // n rounds mix in the key, the others stir
        size_t i = k % (n - 1) + 1, j = k % n_key;
        w[i] ^= (w[i - 1] ^ (w[i - 1] >> 30)) * (k < n ? 1664525 : 1566083941);
        w[i] += k < n ? key[j] + (uint32_t)j : -(uint32_t)i;
        if (i == n - 1) w[0] = w[i];
    }
    w[0] = 0x80000000;
    rng->used = n;
    rng->has_gauss = false;
}

uint32_t random_word(Random *rng)
{
    uint32_t *w = rng->words;
    if (rng->used == N_WORDS) {
        for (size_t k = 0; k < N_WORDS; k++) {
            uint32_t y = (w[k] & 0x80000000) | (w[(k + 1) % N_WORDS] & 0x7fffffff);
            w[k] = w[(k + 397) % N_WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0df : 0);
        }
        rng->used = 0;
    }
    uint32_t y = w[rng->used++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return y ^ (y >> 18);
}

double random_uniform(Random *rng)
{
    uint32_t a = random_word(rng) >> 5, b = random_word(rng) >> 6;
    return (a * 67108864.0 + b) / 9007199254740992.0;  // 53 bits: (a * 2^26 + b) / 2^53
}

double random_gauss(Random *rng, double mean, double std)
{
    double z = rng->gauss_next;
    if (!rng->has_gauss) {
        double x = random_uniform(rng) * (2 * M_PI);
        double r = sqrt(-2.0 * log(1.0 - random_uniform(rng)));
        z = cos(x) * r;
        rng->gauss_next = sin(x) * r;
    }
    rng->has_gauss = !rng->has_gauss;
    return mean + z * std;
}

// Draws as many bits as n has, again and again until they are less than n.
size_t random_below(Random *rng, size_t n)
{
    size_t bits = 1, r = n;
    while (n >> bits) bits++;
    while (r >= n) r = random_word(rng) >> (32 - bits);
    return r;
}

// The first index whose running sum of weights exceeds a uniform share of their total.
size_t random_choice(Random *rng, const double *weights, size_t n)
{
    double total = 0, sum = weights[0];
    for (size_t k = 0; k < n; k++) total += weights[k];
    double u = random_uniform(rng) * total;
    size_t i = 0;
    while (sum <= u && i < n - 1) sum += weights[++i];
    return i;
}

size_t argmax(const double *p, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) best = p[i] > p[best] ? i : best;
    return best;
}

void random_to_numbers(const Random *rng, double *numbers)
{
    for (size_t i = 0; i < N_WORDS; i++) numbers[i] = rng->words[i];
    numbers[N_WORDS] = (double)rng->used;
    numbers[N_WORDS + 1] = rng->has_gauss;
    numbers[N_WORDS + 2] = rng->has_gauss ? rng->gauss_next : 0;
}

bool random_from_numbers(Random *rng, const double *numbers)
{
    for (size_t i = 0; i < N_WORDS + 2; i++) {
        double x = numbers[i], max = i < N_WORDS ? 4294967295.0 : i == N_WORDS ? N_WORDS : 1;
        if (x < 0 || x > max || x != floor(x)) return false;
    }
    const double *rest = numbers + N_WORDS;
    *rng = (Random){.used = (size_t)rest[0], .has_gauss = rest[1] > 0, .gauss_next = rest[2]};
    for (size_t i = 0; i < N_WORDS; i++) rng->words[i] = (uint32_t)numbers[i];
    return true;
}
