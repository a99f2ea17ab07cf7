/* attention.c: the views of the heads, and of the cache that they read. */
#include "views.h"

#include <stdio.h>

const char *const head_slices[] = {"q_h", "k_h", "v_h", NULL};

static const Place *head_place(int head, const char *name, int position, bool need)
{
    char full[64];
    snprintf(full, sizeof full, "head%d.%s", head, name);
    return need ? need_place(full, position) : find_place(full, position);
}

// What a question about a head is about: its vector of this name. NULL, and says so, if it has
// none.
const Place *asked_of_head(const Question *q, const char *name)
{
    int head = q->number[0], position = q->number[1];
    bool ok = head >= 0 && (size_t)head < watched.model->n_head;
    if (!ok) print("There are %zu heads, counted from 0.\n", watched.model->n_head);
    return ok ? head_place(head, name, position == ALL ? LATEST : position, true) : NULL;
}

// A view of a head at a position: its first line.
static void show_title(const Place *p, const char *what)
{
    print("layer %d, head %d at position %d (%s)%s\n", p->layer, p->head, p->position,
          text_at(p->position), what);
}

// A pointer of a head into other vectors: one row, or as many as it has looked at.
void show_head_slice(int head, const char *name, int position)
{
    const Place *p = head_place(head, name, position, false), *of = p ? place_of(p->at) : NULL;
    for (int t = of ? of->position : 0; of && t <= p->position; t++) {
        const Place *row = find_place(of->name, t);
        if (!row) continue;
        print("  %s %3d %-4s", name, t, text_at(t));
        size_t start = (size_t)(p->at - of->at), end = start + p->n;
        for (size_t i = start; i < end; i++) number(row->at[i]);
        print("  %s[%zu..%zu]\n", row->name, start, end - 1);
    }
}

// What one head reads: its slice of the query, of each key and of each value.
void show_head(const Question *q)
{
    const Place *p = asked_of_head(q, "q_h");
    if (!p) return;
    show_title(p, " reads");
    for (const char *const *name = head_slices; *name; name++) {
        show_head_slice(p->head, *name, p->position);
    }
}

static void show_cached(int position)
{
    const Place *k = need_place("k", position), *v = k ? need_place("v", position) : NULL;
    if (!v) return;
    print("position %d (%s): the key at %p, the value at %p\n", position, text_at(position),
          (void *)k->at, (void *)v->at);
    side_by_side(2, (const Place *[]){k, v}, (const char *[]){"key", "value"}, k->n);
}

// The cache of keys and values: how full it is, where it lies, the beginning of each; or one
// position.
void show_cache(const Question *q)
{
    int n = 0;
    if (q->number[0] >= 0) {
        show_cached(q->number[0]);
        return;
    }
    const Place *k0 = find_place("k", 0), *v0 = find_place("v", 0);
    while (find_place("k", n) && find_place("v", n)) n++;
    print("layer %d: %d position%s in the cache\n", watched.layer, n, n == 1 ? "" : "s");
    if (!n) return;
    print("the keys lie at %p, the values at %p, and from there\n", (void *)k0->at, (void *)v0->at);
    head_of("  t         at", "key[0]", "key[1]", "value[0]", "value[1]", NULL);
    size_t next = watched.model->n_embd > 1;
    for (int t = 0; t < n; t++) {
        const double *k = find_place("k", t)->at, *v = find_place("v", t)->at;
        print("  %3d %-4s +%5td", t, text_at(t), k - k0->at);
        numbers(4, k[0], k[next], v[0], v[next]);
    }
}

// The position that a head's logit belongs to: of the key that its query was multiplied with. NONE
// if it was made in another way.
int position_looked_at(const Place *p, size_t i)
{
    const Place *logits = head_place(p->head, "attn_logits", p->position, false);
    const Entry *e = logits && i < logits->n ? maker(logits->at + i) : NULL;
    while (e && e->op != OP_MUL) e = maker(e->a);
    const Place *key = e ? place_of(second_operand(e)) : NULL;
    return key ? key->position : NONE;
}

// What a head looks at: its logits and weights beside the characters they belong to.
void show_attention(const Question *q)
{
    const Place *logits = asked_of_head(q, "attn_logits");
    if (!logits) return;
    const Place *weights = head_place(logits->head, "attn_weights", logits->position, false);
    if (weights && weights->n != logits->n) weights = NULL;  // not those of these logits
    show_title(logits, " looks at");
    head_of("  t       ", "logit", weights ? "weight" : NULL, NULL);
    for (size_t t = 0; t < logits->n; t++) {
        int at = position_looked_at(logits, t);
        if (at == NONE)
            print("    ?  ?    ");
        else
            print("  %3d  %-4s ", at, text_at(at));
        number(logits->at[t]);
        double weight = weights ? weights->at[t] : 0;
        if (weights) number(weight);
        if (weight > 0 && weight <= 1) {
            print("  %.*s", (int)(weight * 36 + 0.5), "####################################");
        }
        print("\n");
    }
    if (!weights) print("  The weights are not there yet: step on.\n");
}

// Where a head's output stands in the row of all outputs: the entries that copied it.
void show_landing(const Question *q)
{
    const Place *out = asked_of_head(q, "head_out");
    if (!out) return;
    bool any = false;
    const Tape *tape = &watched.model->tape;
    show_title(out, "");
    for (const Entry *e = out->to; e < tape->entries + tape->n_entries; e++) {
        if (e->op != OP_COPY || e->a < out->at || e->a >= out->at + out->n) continue;
        const Place *row = place_of(e->out);
        print("  head %d: head_out[%td] -> %s[%td]", out->head, e->a - out->at,
              row ? row->name : "?", row ? e->out - row->at : 0);
        data_and_grad(e->out);
        print("\n");
        any = true;
    }
    if (!any) print("  It has not been copied yet: step on.\n");
}
