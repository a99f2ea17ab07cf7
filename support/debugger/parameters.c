/* parameters.c: the views of the parameters, and of how Adam moves them. */
#include "views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One parameter, with what Adam remembers of it.
void show_parameter(const Question *q)
{
    const Model *model = watched.model;
    double *p = find_parameter(q->name, q->number[0], q->number[1]);
    if (!p) return;
    size_t k = (size_t)(p - model->params);
    print("%s\n  value   ", value_name(p));
    numbers(1, *p);
    print("  gradient");
    number(gradient_of(p));
    print(!gradients_known()    ? "  (no backward() on this tape yet)\n"
          : phase() == BACKWARD ? "  so far: backward() is under way\n"
          : phase() == MOVED    ? "  before adam() cleared it\n"
                                : "\n");
    print("  Adam's m");
    numbers(1, model->m[k]);
    print("  Adam's v");
    numbers(1, model->v[k]);
}

bool close_to(double a, double b) { return fabs(a - b) <= 1e-12 + 1e-9 * fabs(b); }

// How Adam moves one parameter, and what each number of it is.
typedef struct {
    double step, gradient, m, new_m, m_hat, v, new_v, v_hat, rate, move, decay, before, after;
} Move;

static const struct {
    const char *what;
    size_t at;
    bool adam;  // only where adam() is Adam
} move_rows[] = {
    {"step", offsetof(Move, step), false},
    {"gradient", offsetof(Move, gradient), false},
    {"m was", offsetof(Move, m), true},
    {"m = beta1 * m + (1 - beta1) * gradient", offsetof(Move, new_m), true},
    {"m_hat = m / (1 - beta1^(step + 1))", offsetof(Move, m_hat), true},
    {"v was", offsetof(Move, v), true},
    {"v = beta2 * v + (1 - beta2) * gradient^2", offsetof(Move, new_v), true},
    {"v_hat = v / (1 - beta2^(step + 1))", offsetof(Move, v_hat), true},
    {"learning rate", offsetof(Move, rate), true},
    {"move = -lr * m_hat / (sqrt(v_hat) + eps)", offsetof(Move, move), true},
    {"decay = -lr * weight_decay * value", offsetof(Move, decay), true},
    {"value before", offsetof(Move, before), false},
    {"value after", offsetof(Move, after), false},
};

static Move find_move(const Moved *found, size_t k)
{
    const Config *config = watched.run->config;
    double t = (double)found->step + 1, beta1 = config->beta1, beta2 = config->beta2;
    Move x = {.step = (double)found->step,
              .gradient = found->g[k],
              .m = found->m[k],
              .v = found->v[k],
              .rate = learning_rate(config, found->step),
              .before = found->p[k]};
    x.new_m = beta1 * x.m + (1 - beta1) * x.gradient;
    x.m_hat = x.new_m / (1 - pow(beta1, t));
    x.new_v = beta2 * x.v + (1 - beta2) * x.gradient * x.gradient;
    x.v_hat = x.new_v / (1 - pow(beta2, t));
    x.move = -x.rate * x.m_hat / (sqrt(x.v_hat) + 1e-8);
    x.decay = -x.rate * config->weight_decay * x.before;
    x.after = x.before + x.move + x.decay;
    return x;
}

// The same for a step that is over. Says whether Adam would have made the same numbers.
static Move find_past_move(const Moved *found, const Moved *after, size_t k, bool *adam)
{
    Move x = find_move(found, k);
    *adam = *adam && close_to(x.new_m, after->m[k]) && close_to(x.new_v, after->v[k]) &&
            close_to(x.after, after->p[k]);
    x.after = after->p[k];
    return x;
}

// What Adam would find now.
static Moved moved_now(void)
{
    const Model *model = watched.model;
    double *p = model->params;
    return (Moved){model->steps_done, p, grad(&model->tape, p), model->m, model->v};
}

// What Adam is about to do, where the gradients are there; or what it did. And the step before.
// Where adam() is not Adam, only what was, and what came of it.
void show_moves(const Question *q)
{
    double *p = find_parameter(q->name, q->number[0], q->number[1]);
    if (!p) return;
    Moved now = moved_now();
    size_t k = (size_t)(p - now.p);
    bool coming = phase() == GRADIENTS, early = coming && notes.phase != MOVED, adam = true;
    const Moved *latest = early ? &now : moved(0), *before = moved(early ? 0 : 1);
    if (!latest) {
        print("Adam has not moved anything yet, and there is no gradient: ask where adam() begins, "
              "`tbreak adam`.\n");
        return;
    }
    Move x[2];
    if (before) x[0] = find_past_move(before, latest, k, &adam);
    x[1] = coming ? find_move(latest, k) : find_past_move(latest, &now, k, &adam);
    print("%s: %s in step %.0f, counted from 0%s\n", value_name(p),
          coming ? "what Adam is about to do" : "what Adam did", x[1].step,
          before ? "; before it, the step before" : "");
    if (!adam) print("  adam() is not Adam: here is what was, and what came of it.\n");
    for (size_t i = 0; i < sizeof move_rows / sizeof move_rows[0]; i++) {
        size_t at = move_rows[i].at;
        bool no_decay = watched.run->config->weight_decay == 0 && at == offsetof(Move, decay);
        bool unknown = move_rows[i].adam || (at == offsetof(Move, after) && coming);
        if (no_decay || (!adam && unknown)) continue;
        print("  %-41s", move_rows[i].what);
        for (int n = before ? 0 : 1; n < 2; n++) number(*(double *)((char *)&x[n] + at));
        print("\n");
    }
}

// The parameters that move most in a step, or have the largest gradients, by name.
void show_biggest(const Question *q)
{
    bool moves = strcmp(q->name, "moves") == 0, after = phase() == MOVED;
    Moved now = moved_now();
    const Moved *found = after ? moved(0) : &now;
    if ((!moves && strcmp(q->name, "gradients") != 0) || !(after || phase() == GRADIENTS)) {
        print("biggest moves, biggest gradients: ask where adam() begins, or after it.\n");
        return;
    }
    size_t n = watched.model->num_params, best[18], most = sizeof best / sizeof best[0];
    if (q->number[0] < (int)most) most = q->number[0] < 0 ? 5 : (size_t)q->number[0];
    double *x = malloc(2 * n * sizeof *x), *size = x + n;
    if (!x) abort();
    for (size_t k = 0; k < n; k++) {
        Move move = find_move(found, k);
        x[k] = !moves ? move.gradient : after ? now.p[k] - found->p[k] : move.move + move.decay;
        size[k] = fabs(x[k]);
    }
    most = rank(size, n, best, most);
    print("the biggest %s in step %d, counted from 0%s\n", q->name, (int)found->step,
          moves && !after ? ": what Adam is about to do" : "");
    head_of("                              ", moves ? "move" : "gradient",
            moves ? "gradient" : NULL, NULL);
    for (size_t i = 0; i < most; i++) {
        print("  %2zu.  %-25s", i + 1, value_name(now.p + best[i]));
        numbers(moves ? 2 : 1, x[best[i]], found->g[best[i]]);
    }
    free(x);
}
