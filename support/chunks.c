/* chunks.c: the memory of the tape, and how it grows.
 *
 * tape_init() takes the first chunk of values and the first entries; vector_in_next_chunk() and
 * more_entries() take more. If memory runs out, the two do not return: they call
 * t->out_of_memory(), or abort if it is NULL. The tape can still be dropped and used again. Nothing
 * is given back before tape_free().
 */
#include "fast.h"

#include <stdlib.h>

enum { LINE = 64 };  // bytes in a cache line

// A chunk starts at a cache line. The pointer that calloc() returned is stored in front of it.
static bool new_chunk(Tape *t)
{
    double **chunks = realloc(t->chunks, (t->n_chunks + 1) * sizeof *chunks);
    if (!chunks) return false;
    t->chunks = chunks;
    char *memory = calloc(1, 2 * t->chunk_size * sizeof(double) + 2 * LINE);
    if (!memory) return false;
    void **data = (void **)(void *)(memory + 2 * LINE - (uintptr_t)memory % LINE);
    data[-1] = memory;
    t->chunks[t->n_chunks++] = (double *)(void *)data;
    return true;
}

static bool new_entries(Tape *t)
{
    size_t max = t->max_entries ? 2 * t->max_entries : 1024;
    if (max > SIZE_MAX / sizeof(Entry)) return false;
    Entry *entries = realloc(t->entries, max * sizeof *entries);
    if (!entries) return false;
    t->entries = entries;
    t->max_entries = max;
    return true;
}

static void out_of_memory(const Tape *t)
{
    if (t->out_of_memory) t->out_of_memory();
    abort();
}

double *vector_in_next_chunk(Tape *t, size_t n)
{
    if (n > t->chunk_size - BLOCK) abort();  // a mistake in the program, not in its input
    if (t->this_chunk + 1 == t->n_chunks && !new_chunk(t)) out_of_memory(t);
    t->chunk = t->chunks[++t->this_chunk];
    t->n_values = 0;
    return ag_vector(t, n);
}

void more_entries(Tape *t)
{
    if (!new_entries(t)) out_of_memory(t);
}

// A value and its gradient are an odd number of cache lines apart, so that they do not compete for
// one place in the cache.
bool tape_init(Tape *t, size_t max_vector)
{
    *t = (Tape){.fused = true};
    if (max_vector > SIZE_MAX / 64) return false;
    size_t lines = (max_vector + 2 * BLOCK) * sizeof(double) / LINE + 1;
    t->chunk_size = (lines | 1) * LINE / sizeof(double);
    t->lanes = new_lanes();
    if (!t->lanes || !new_chunk(t) || !new_entries(t)) {
        tape_free(t);
        return false;
    }
    t->chunk = t->chunks[0];
    return true;
}

void tape_free(Tape *t)
{
    for (size_t i = 0; i < t->n_chunks; i++) free(((void **)(void *)t->chunks[i])[-1]);
    free(t->chunks);
    free(t->entries);
    free_lanes(t->lanes);
    *t = (Tape){0};
}

// Threads share the zeros.
typedef struct {
    double *values;
    size_t n;
} Values;

static void clear_part(void *context, size_t part, size_t n_parts, double *unused)
{
    const Values *all = context;
    size_t begin = cut(all->n, n_parts, part), end = cut(all->n, n_parts, part + 1);
    (void)unused;
    memset(all->values + begin, 0, (end - begin) * sizeof *all->values);
}

void clear(double *values, size_t n) { share(clear_part, &(Values){values, n}, parts_of(n), NULL); }
