/* what_if.c: what would be if a value were another, or a head silent. All that follows on the tape
 * is computed again, and then once more as it was.
 */
#include "views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const Place *all[64];  // these vectors are zero, whatever made them
    size_t n;
} silent;

// Computes an entry again, and all after it.
static void compute_from(const Entry *first)
{
    const Tape *tape = &watched.model->tape;
    for (const Entry *e = first; e < tape->entries + tape->n_entries; e++) {
        *e->out = atom(e).value;
        for (size_t i = 0; i < silent.n; i++) {
            const Place *p = silent.all[i];
            if (e->out >= p->at && e->out < p->at + p->n) *e->out = 0;
        }
    }
}

static double result_with(double *value, double number, const double *result)
{
    const Tape *tape = &watched.model->tape;
    const Entry *made = maker(value);
    *value = number;
    compute_from(made ? made + 1 : tape->entries + tape->kept_entries);
    return *result;
}

static bool adam_has_moved(void)
{
    if (phase() == MOVED)
        print("Adam has moved the parameters since: ask where adam() begins, or before.\n");
    return phase() == MOVED;
}

// A value is moved a little to both sides: what a result does then is its derivative, whatever
// backward() says.
static void show_difference(double *value, const double *result, const char *what,
                            const char *source, double derivative)
{
    double before = *value, h = 1e-5;
    double up = result_with(value, before + h, result);
    double down = result_with(value, before - h, result), slope = (up - down) / (2 * h);
    result_with(value, before, result);
    bool agree = fabs(slope - derivative) <= 1e-8 + 1e-4 * fabs(slope);
    print("%s = %.*g\n", value_name(value), watched.digits, before);
    print("  %s is 0.00001 more    %.15g\n", what, up);
    print("  %s is 0.00001 less    %.15g\n", what, down);
    print("  their difference over 0.00002            %.*g\n", watched.digits, slope);
    print("  %-40s %.*g\n", source, watched.digits, derivative);
    print(agree ? "  They agree.\n" : "  THEY DIFFER.\n");
}

// The derivative of one value with respect to another, by the local derivatives between the two.
static double derivative(const double *of, const double *with_respect_to)
{
    const Tape *tape = &watched.model->tape;
    double *sums = calloc(n_numbers(), sizeof *sums);
    if (!sums) abort();
    sums[value_number(of)] = 1;
    for (const Entry *e = maker(of); e && e >= tape->entries; e--) {
        double g = sums[value_number(e->out)];
        if (g == 0 || e->out == with_respect_to) continue;
        const double *b = second_operand(e);
        sums[value_number(e->a)] += atom(e).derivative[0] * g;
        if (b) sums[value_number(b)] += atom(e).derivative[1] * g;
    }
    double found = sums[value_number(with_respect_to)];
    free(sums);
    return found;
}

// How one value changes another.
static void show_local(const char *from, const char *to)
{
    double *a = find_value(from, NONE, NONE), *b = a ? find_value(to, NONE, NONE) : NULL;
    if (!b || adam_has_moved()) return;
    const Entry *made_a = maker(a), *made_b = maker(b);
    if (!made_b || (made_a && made_a >= made_b)) {
        print("%s was not made from %s.\n", value_name(b), value_name(a));
        return;
    }
    print("%s = %.*g\n", value_name(b), watched.digits, *b);
    show_difference(a, b, "the second, if the first", "by the local derivatives on the way",
                    derivative(b, a));
}

// How a value changes the loss, or another value.
void show_nudge(const Question *q)
{
    const Place *loss = find_place("loss", LATEST);
    if (q->from)
        show_local(q->from, q->to);
    else if (loss && phase() == GRADIENTS)
        show_difference(q->value, loss->at, "the loss, if it", "its gradient, by backward()",
                        gradient_of(q->value));
    else
        print("There is no loss with all its gradients here: ask where adam() begins, `tbreak "
              "adam`.\n");
}

// What the model would predict if a head's output were zero at one position, or at all of them.
void show_silence(const Question *q)
{
    bool all = q->number[1] == ALL;
    const Place *out = asked_of_head(q, "head_out");
    const Place *logits = out ? need_place("logits", out->position) : NULL;
    if (!logits || adam_has_moved()) return;
    const Place *loss = find_place("loss", LATEST), *probs = find_place("probs", logits->position);
    if (!loss) loss = find_place("document_loss", LATEST);
    double *before = malloc(2 * logits->n * sizeof *before), *after = before + logits->n;
    if (!before) abort();
    double loss_before = loss ? *loss->at : 0;
    find_probs(logits, probs, before);
    for (const Place *p = notes.all + notes.n; p-- > notes.all && silent.n < 64;) {
        bool same = p->head == out->head && p->layer == out->layer;
        if (!same || strcmp(p->name, out->name) != 0) continue;
        if (all || p->position == out->position) silent.all[silent.n++] = p;
    }
    const Entry *first = silent.all[silent.n - 1]->from;
    compute_from(first);
    find_probs(logits, probs, after);
    double loss_after = loss ? *loss->at : 0;
    silent.n = 0;
    compute_from(first);
    print("after position %d (%s), if head %d were silent %s\n", out->position,
          text_at(out->position), out->head, all ? "at every position" : "there");
    head_of("           ", "as it is", "silent", NULL);
    show_ranking(before, logits, 2, (const double *const[]){before, after});
    if (loss) print("  the loss   ");
    if (loss) numbers(2, loss_before, loss_after);
    print("Nothing is changed: the program goes on with its own numbers.\n");
    free(before);
}
