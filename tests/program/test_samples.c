/* The set of texts that support/run/samples.c keeps: what is in it is known, what is not is not, and it is never full. */
#define _XOPEN_SOURCE 700
#include "../../support/run/samples.c"
#include "../test.h"

static Job job;

// Text i: its digits, as characters.
static Document text_of(size_t i, uint32_t *room)
{
    size_t length = 0;
    do {
        room[length++] = '0' + (uint32_t)(i % 10);
    } while (i /= 10);
    return (Document){.tokens = room, .length = length};
}

// A set of n texts with room for more, which come later.
static void check_set(size_t n, size_t more)
{
    static uint32_t characters[5000][8];
    static Document docs[5000];
    Samples *samples = &job.samples;
    uint32_t room[8];
    size_t missing = 0, found = 0;
    for (size_t i = 0; i < n; i++) docs[i] = text_of(i, characters[i]);
    job.run.docs.list = docs;
    bool ok = know_documents(&job, n, more, NULL);
    size_t slots = samples->n_slots, texts = n + more;
    check(ok && (slots & (slots - 1)) == 0 && slots >= 2 * texts && slots <= 8 * texts,
          "%zu texts, and %zu more: %zu slots, a power of two, at least half of them free", n, more,
          slots);
    for (size_t i = n; i < n + 2000; i++) {
        const Document other = text_of(i, room);
        found += is_known(samples, &other, NULL, false);
    }
    for (size_t i = n; i < texts; i++) {
        const Document other = text_of(i, room);
        found += is_known(samples, &other, NULL, true);
    }
    for (size_t i = 0; i < texts; i++) {
        const Document known = text_of(i, room);
        missing += !is_known(samples, &known, NULL, i % 2 == 0);
    }
    size_t used = 0;
    for (size_t i = 0; i < slots; i++) used += samples->known[i] != 0;
    check(
        !missing && !found && used == texts,
        "all of them are in it, once, and nothing else: %zu missing, %zu too many, %zu slots used",
        missing, found, used);
    free(samples->known);
}

static void check_tokens(void)
{
    uint32_t text[] = {'b', 'a'}, tokens[] = {1, 0}, uchars[] = {'a', 'b'};
    Document docs[] = {{.tokens = text, .length = 2}};
    Document coded = {.tokens = tokens, .length = 2};
    job.run.docs.list = docs;
    know_documents(&job, 1, 1, NULL);
    check(is_known(&job.samples, &coded, uchars, false), "a text is the same as tokens");
    tokens[0] = 0;
    check(!is_known(&job.samples, &coded, uchars, false), "and other tokens are another");
    free(job.samples.known);
}

int main(void)
{
    alarm(20);  // a search that does not end
    check_set(0, 1);
    check_set(1, 0);
    check_set(1, 1);
    for (size_t n = 1; n <= 4096; n *= 4) {
        check_set(n, 0);
        check_set(n - 1, 1);
        check_set(n, n + 1);
    }
    check_tokens();
    job.samples = (Samples){0};
    check(!know_documents(&job, 1, (uint64_t)1 << 53, NULL) &&
              strcmp(failure.text, "not enough memory") == 0,
          "more than there is memory for");
    return finish();
}
