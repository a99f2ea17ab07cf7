/* What support/heads.c reads off a tape, from a tape made by hand: it stands at the end of memory, and nothing behind it is
 * read.
 */
#define _XOPEN_SOURCE 700
#include "../../support/heads.c"
#include "../test.h"

#include <sys/mman.h>

int main(void)
{
    // a layer of two heads, four positions; between their entries are others
    double weights[8][4] = {{1},
                            {1},
                            {0.25, 0.75},
                            {1, 0},
                            {0.5, 0.125, 0.375},
                            {0.125, 0.625, 0.25},
                            {0.25, 0.25, 0.25, 0.25},
                            {0, 0.5, 0, 0.5}};
    enum { N = 14 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), k = 0, at = 1, n_found = 0;
    void *memory;
    if (posix_memalign(&memory, page, 3 * page) != 0) return 1;
    Entry *entries = (Entry *)(void *)((char *)memory + 2 * page) - N;
    for (size_t i = 0; i < N; i++) {
        entries[i] = (Entry){.op = i % 2 ? OP_LINEAR : OP_ADD};
        if (i == 0 || i % 3 == 0) continue;
        if (k < 8)
            entries[i] =
                (Entry){.op = OP_WEIGHTED_SUM, .n = (uint32_t)(k / 2 + 1), .a = weights[k]};
        k++;
    }
    entries[0].op = OP_WEIGHTED_SUM;  // before the mark
    mprotect((char *)memory + 2 * page, page, PROT_NONE);
    Model model = {.n_layer = 1, .n_head = 2, .tape = {.entries = entries, .n_entries = N}};
    model.tape.kept_entries = 1;
    for (const Entry *e; (e = next_attention(&model.tape, &at)); n_found++) {
        check(e->a == weights[n_found], "weighted sum %zu is found", n_found);
    }
    check_size("all of them", 8, n_found);
    check(!next_attention(&model.tape, &at), "and after the last there is none");
    HeadStats stats[2] = {{0}};
    add_attention(&model, stats);
    const double right[2][5] = {
        // self, previous, first, elsewhere; entropy
        {1 + 0.75 + 0.375 + 0.25, 0.25 + 0.125 + 0.25, 0.5 + 0.25, 0.25,
         0.25 * 2 + 0.75 * 0.41503749927884381 + 0.5 + 0.375 + 0.375 * 1.4150374992788439 + 2},
        {1 + 0 + 0.25 + 0.5, 1 + 0.625 + 0, 0.125 + 0, 0.5,
         0.375 + 0.625 * 0.67807190511263771 + 0.5 + 1},
    };
    for (size_t h = 0; h < 2; h++) {
        const HeadStats *s = &stats[h];
        const double seen[] = {s->self, s->previous, s->first, s->elsewhere, s->entropy};
        check_all_near("shares and entropy", right[h], seen, 5, 1e-13);
    }
    mprotect(memory, 3 * page, PROT_READ | PROT_WRITE);
    free(memory);
    return finish();
}
