/* Random numbers: every figure of tests/reference/python-random.txt, Python's own for these seeds. */
#define _XOPEN_SOURCE 700
#include "../../support/run/model.h"
#include "../test.h"

enum { MOST = 16 };

// Compares a row of figures with what the generator gives after the seed.
static void check_row(const char *seed, const char *row, char *figures)
{
    static const double weights[] = {1, 2, 3, 4, 0.5};
    char what[1100];
    double expected[MOST], seen[MOST];
    size_t n = 0;
    for (char *word = strtok(figures, " \n"); word && n < MOST; word = strtok(NULL, " \n")) {
        expected[n++] = strtod(word, NULL);
    }
    Random random;
    // Python takes the seed without its sign.
    random_seed(&random, strtoull(seed + (*seed == '-'), NULL, 10));
    Document docs[MOST];
    Documents all = {.list = docs, .n = n};
    for (size_t i = 0; i < n; i++) {
        docs[i] = (Document){NULL, i, 0};
    }
    if (strncmp(row, "shuffle", 7) == 0) shuffle(&all, &random);
    for (size_t i = 0; i < n; i++) {
        seen[i] = strncmp(row, "shuffle", 7) == 0          ? (double)docs[i].length
                  : strncmp(row, "random", 6) == 0         ? random_uniform(&random)
                  : strncmp(row, "getrandbits32", 13) == 0 ? random_word(&random)
                  : strncmp(row, "gauss(0,0.08)", 13) == 0 ? random_gauss(&random, 0, 0.08)
                  : strncmp(row, "choices(range(5),weights=[1,2,3,4,0.5]", 38) == 0
                      ? (double)random_choice(&random, weights, 5)
                      : NAN;
    }
    snprintf(what, sizeof what, "seed %s: %s", seed, row);
    check(n > 0, "%s: there are figures", what);
    check_same_bits(what, expected, seen, n);
}

int main(void)
{
    FILE *file = fopen("tests/reference/python-random.txt", "r");
    char line[1024], seed[32] = "";
    size_t n_seeds = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "seed %31s", seed) == 1) {
            n_seeds++;
        } else if (line[0] != '#' && strchr(line, ' ')) {
            char *figures = strchr(line, ' ');
            *figures++ = '\0';
            check_row(seed, line, figures);
        }
    }
    if (file) fclose(file);
    check_size("seeds in the file of figures", 7, n_seeds);

    // Seeding again forgets everything, the second gauss of a pair too.
    Random a, b;
    random_seed(&a, 5);
    random_gauss(&a, 0, 1);
    random_seed(&a, 5);
    random_seed(&b, 5);
    check_near("the same seed starts anew", random_gauss(&b, 0, 1), random_gauss(&a, 0, 1), 0);

    // Many words: the state is stirred several times. Python: seed(1), the 10,000th random().
    random_seed(&a, 1);
    for (int i = 0; i < 9999; i++) random_uniform(&a);
    check_near("seed 1: the 10000th random", 0.9874776281441546, random_uniform(&a), 0);

    // Weights of zero are never drawn; a single weight always is.
    double one[] = {0, 0, 3, 0}, only[] = {0.25};
    size_t wrong = 0;
    for (int i = 0; i < 1000; i++) {
        wrong += random_choice(&a, one, 4) != 2;
        wrong += random_choice(&a, only, 1) != 0;
    }
    check_size("choices with one possible outcome: wrong ones", 0, wrong);

    // The lowest number there is, 0, does not draw a weight of 0 either.
    a = (Random){.used = 0};
    check_size("choices when the number drawn is 0", 1, random_choice(&a, (double[]){0, 1, 1}, 3));
    return finish();
}
