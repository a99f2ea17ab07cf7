/* What support/run/memory.c says that a model needs, compared with what a step of it takes: enough, and not much more. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long n_pages, page_size;

static long our_sysconf(int name) { return name == _SC_PAGESIZE ? page_size : n_pages; }

// Memory with a fence behind it.
enum { FENCE = 64, MOST = 64 };
static struct {
    unsigned char *bytes;
    size_t n;
} taken[MOST];
static size_t n_taken;

static void *fenced_calloc(size_t n, size_t size)
{
    unsigned char *bytes = calloc(1, n * size + FENCE);
    if (!bytes || n_taken == MOST) return bytes;
    memset(bytes + n * size, 0xab, FENCE);
    taken[n_taken].bytes = bytes;
    taken[n_taken++].n = n * size;
    return bytes;
}

static size_t broken_fences(void)
{
    size_t broken = 0;
    for (; n_taken > 0; n_taken--) {
        for (size_t i = 0; i < FENCE; i++)
            broken += taken[n_taken - 1].bytes[taken[n_taken - 1].n + i] != 0xab;
    }
    return broken;
}

#define sysconf our_sysconf
#define calloc fenced_calloc
#include "../../support/run/memory.c"
#undef sysconf
#undef calloc
#include "../test.h"

static Job job;

static void check_fits(void)
{
    n_pages = 1000;
    page_size = 4096;
    check(fits_memory(4096000) && !fits_memory(4096001), "the memory of a machine, to the byte");
    n_pages = -1;
    double most = (double)SIZE_MAX / 4;
    check(fits_memory(0.999 * most) && !fits_memory(most), "a quarter of the addresses, if nobody "
                                                           "knows the memory");
    n_pages = 1000;
    page_size = -1;
    check(fits_memory(4096001), "pages of a size that nobody knows");
    page_size = 0;
    check(fits_memory(4096001), "pages of no size");
    n_pages = 0, page_size = 4096;
    check(fits_memory(4096001), "no pages");
    n_pages = 1, page_size = 1;
    check(fits_memory(1) && !fits_memory(2), "a page of a byte");
    n_pages = 1L << 24;
    page_size = 4096;
}

typedef struct {
    uint64_t n_layer, n_embd, n_head, block_size, batch;
    size_t vocab_size, longest;
    int activation;
} Sizes;

// Trains on documents of one kind for a step. Its need is between what it takes, and `most` times as much.
static void check_need(Sizes s, double most)
{
    Config config = recipes[RECIPE_MICROGPT];
    config.n_layer = s.n_layer;
    config.n_embd = s.n_embd;
    config.n_head = s.n_head;
    config.block_size = s.block_size;
    config.batch = s.batch;
    config.activation = s.activation;
    Run run = {.config = &config, .job = &job, .tokenizer = {.vocab_size = s.vocab_size}};
    run.docs.longest = s.longest;
    if (!new_model(&run)) {
        check(false, "a model: expected memory, saw %s", failure.text);
        return;
    }
    Model *model = &run.model;
    Tape *tape = &model->tape;
    uint32_t *text = calloc(s.longest + 1, sizeof *text);
    const Document doc = {.tokens = text, .length = s.longest};
    size_t n = take_document(model, &doc);
    for (uint64_t i = 0; i < s.batch; i++) document_loss(model, n);
    double took = 32 * (double)model->num_params + (double)(tape->n_entries * sizeof(Entry)) +
                  16 * (double)(tape->n_values - tape->kept_values);
    double need = bytes_needed(*model, (double)s.batch, (double)n);
    check(tape->n_chunks == 1 && need >= took && need <= most * took,
          "%zu layers, width %zu, %zu heads, %zu of block %zu, batch %zu, %zu tokens: it took %.0f "
          "bytes "
          "of %.0f: 1 to %g",
          (size_t)s.n_layer, (size_t)s.n_embd, (size_t)s.n_head, n, (size_t)s.block_size,
          (size_t)s.batch, s.vocab_size, took, need, need / took);
    check_size("writes behind what was taken", 0, broken_fences());
    free(text);
    free_model(model);
}

int main(void)
{
    check_fits();
    check_need((Sizes){1, 16, 4, 16, 1, 27, 15, RELU}, 1.2);
    check_need((Sizes){1, 256, 1, 4, 1, 27, 15, RELU}, 1.01);
    check_need((Sizes){1, 256, 1, 64, 1, 27, 63, RELU}, 1.04);
    check_need((Sizes){1, 256, 1, 64, 1, 27, 63, RELU2}, 1.04);
    check_need((Sizes){1, 64, 64, 128, 1, 27, 200, RELU}, 1.1);
    check_need((Sizes){4, 64, 2, 32, 9, 27, 31, RELU}, 1.17);
    check_need((Sizes){1, 16, 1, 64, 1, 20000, 63, RELU}, 1.35);
    check_need((Sizes){64, 4, 1, 32, 1, 27, 31, RELU}, 1.32);
    check_need((Sizes){64, 64, 16, 32, 1, 27, 31, RELU}, 1.1);
    check_need((Sizes){1, 64, 4, 1024, 1, 27, 2, RELU}, 1.62);
    check_need((Sizes){1, 64, 4, 4, 99, 27, 2, RELU}, 1.21);
    check_need((Sizes){1, 64, 64, 8, 1, 27, 7, RELU}, 1.08);
    check_need((Sizes){9, 8, 8, 2, 1, 27, 1, RELU}, 1.16);
    return finish();
}
