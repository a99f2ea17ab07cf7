/* What support/run/heads.c reads off a tape, from a tape made by hand: it stands at the end of memory, and nothing behind it is
 * read. Two heads; the first looks at all positions so far, the second at two of them.
 */
#define _XOPEN_SOURCE 700
#include "../../support/run/heads.c"
#include "../test.h"

#include <sys/mman.h>

enum { N = 4, WIDTH = 4, PER_POSITION = 7, ENTRIES = 1 + N * PER_POSITION };
static const double weights[2][N][4] = {
    {{1}, {0.25, 0.75}, {0.5, 0.125, 0.375}, {0.25, 0.25, 0.25, 0.25}},
    {{1}, {1, 0}, {0.625, 0.375}, {0, 1}},
};
static double values[N * WIDTH], outs[N][2][2], x_attns[N][WIDTH];
static double wv_data[1], wo_data[1];
static Matrix wv = {.data = wv_data}, wo = {.data = wo_data};

// One position as gpt() records it: its value; each head, and a copy of its output; attn_wo.
static void record_position(Entry *e, size_t p)
{
    *e++ = (Entry){.op = OP_ADD};
    *e++ = (Entry){.op = OP_LINEAR, .b = wv_data, .out = values + p * WIDTH};
    for (size_t h = 0; h < 2; h++) {
        size_t first = h && p > 1 ? p - 1 : 0;
        *e++ = (Entry){.op = OP_WEIGHTED_SUM,
                       .n = (uint32_t)(p + 1 - first),
                       .a = (double *)weights[h][p],
                       .b = values + first * WIDTH + 2 * h,
                       .out = outs[p][h],
                       .stride = WIDTH,
                       .length = 2};
        *e++ = (Entry){.op = OP_COPY, .a = outs[p][h], .out = x_attns[p] + 2 * h};
    }
    *e = (Entry){.op = OP_LINEAR, .b = wo_data, .a = x_attns[p]};
}

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n_found = 0;
    void *memory;
    if (posix_memalign(&memory, page, 3 * page) != 0) return 1;
    Entry *entries = (Entry *)(void *)((char *)memory + 2 * page) - ENTRIES;
    record_position(entries, 0);
    for (size_t p = 0; p < N; p++) record_position(entries + 1 + p * PER_POSITION, p);
    entries[0] = entries[3];  // before the mark
    mprotect((char *)memory + 2 * page, page, PROT_NONE);
    double *rows[] = {values};
    Layer layer = {.attn_wv = &wv, .attn_wo = &wo};
    Model model = {.n_layer = 1, .n_head = 2, .n_embd = WIDTH, .head_dim = 2, .layers = &layer};
    model.values = rows;
    model.tape = (Tape){.entries = entries, .n_entries = ENTRIES, .kept_entries = 1};
    Attention found = {0};
    for (size_t at = 1; at < ENTRIES; at++) {
        if (!read_attention(&model, N, at, &found)) continue;
        size_t h = n_found % 2, p = n_found / 2;
        check(found.sum->a == weights[h][p] && found.layer == 0 && found.head == h &&
                  found.query == p && found.first == (h && p > 1 ? p - 1 : 0),
              "weighted sum %zu is found, and where it looks", n_found);
        n_found++;
    }
    check_size("all of them", 8, n_found);
    HeadStats stats[2] = {{0}};
    add_attention(&model, N, stats);
    const double right[2][5] = {
        // self, previous, first, elsewhere; entropy
        {1 + 0.75 + 0.375 + 0.25, 0.25 + 0.125 + 0.25, 0.5 + 0.25, 0.25,
         0.25 * 2 + 0.75 * 0.41503749927884381 + 0.5 + 0.375 + 0.375 * 1.4150374992788439 + 2},
        {1 + 0 + 0.375 + 1, 1 + 0.625 + 0, 0, 0,
         0.375 * 1.4150374992788439 + 0.625 * 0.67807190511263771},
    };
    for (size_t h = 0; h < 2; h++) {
        const HeadStats *s = &stats[h];
        const double seen[] = {s->self, s->previous, s->first, s->elsewhere, s->entropy};
        check_all_near("shares and entropy", right[h], seen, 5, 1e-13);
        check_size("positions", N, s->n_positions);
    }

    // What is not a head: rows after the position, rows that are not values, another stride, no attn_wo.
    Entry right_one = entries[ENTRIES - 5];
    const Entry wrong[] = {
        {.op = OP_WEIGHTED_SUM, .n = 5, .stride = WIDTH, .b = right_one.b},
        {.op = OP_WEIGHTED_SUM, .n = 2, .stride = WIDTH, .b = x_attns[0]},
        {.op = OP_WEIGHTED_SUM, .n = 2, .stride = WIDTH / 2, .b = right_one.b},
        {.op = OP_ADD, .n = 4, .stride = WIDTH, .b = right_one.b},
        {.op = OP_WEIGHTED_SUM, .n = 2, .stride = WIDTH, .b = right_one.b, .out = values},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Entry *e = &entries[ENTRIES - 5];
        *e = wrong[i];
        if (!e->out) e->out = right_one.out;
        found.query = N - 1;
        check(!read_attention(&model, N, ENTRIES - 5, &found), "no head: %zu", i);
        *e = right_one;
    }
    found.query = N - 1;
    check(read_attention(&model, N, ENTRIES - 5, &found), "and the right one is a head");
    mprotect(memory, 3 * page, PROT_READ | PROT_WRITE);
    free(memory);
    return finish();
}
