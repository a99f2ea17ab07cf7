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
    static const char *const states[] = {[FORWARD] = "  (no backward() on this tape yet)",
                                         [BACKWARD] = "  so far: backward() is under way",
                                         [GRADIENTS] = "",
                                         [MOVED] = "  before adam() cleared it"};
    print("  gradient");
    number(gradient_of(p));
    print("%s\n", states[gradients_known() ? phase() : FORWARD]);
    print("  Adam's m");
    numbers(1, model->m[k]);
    print("  Adam's v");
    numbers(1, model->v[k]);
}

bool close_to(double a, double b) { return fabs(a - b) <= 1e-12 + 1e-9 * fabs(b); }

// How Adam moves one parameter, number by number. Where adam() is not Adam, those from M to DECAY are
// not known.
enum {
    STEP,
    GRADIENT,
    M,
    NEW_M,
    M_HAT,
    V,
    NEW_V,
    V_HAT,
    RATE,
    MOVE,
    DECAY,
    BEFORE,
    AFTER,
    N_NUMBERS
};
typedef struct {
    double x[N_NUMBERS];
} Move;

static const char *const move_rows[N_NUMBERS] = {
    [STEP] = "step",
    [GRADIENT] = "gradient",
    [M] = "m was",
    [NEW_M] = "m = beta1 * m + (1 - beta1) * gradient",
    [M_HAT] = "m_hat = m / (1 - beta1^(step + 1))",
    [V] = "v was",
    [NEW_V] = "v = beta2 * v + (1 - beta2) * gradient^2",
    [V_HAT] = "v_hat = v / (1 - beta2^(step + 1))",
    [RATE] = "learning rate",
    [MOVE] = "move = -lr * m_hat / (sqrt(v_hat) + eps)",
    [DECAY] = "decay = -lr * weight_decay * value",
    [BEFORE] = "value before",
    [AFTER] = "value after",
};

static Move find_move(const Moved *found, size_t k)
{
    const Config *config = watched.run->config;
    double t = (double)found->step + 1, beta1 = config->beta1, beta2 = config->beta2;
    Move move;
    double *x = move.x;
    x[STEP] = (double)found->step;
    x[GRADIENT] = found->g[k];
    x[M] = found->m[k];
    x[NEW_M] = beta1 * x[M] + (1 - beta1) * x[GRADIENT];
    x[M_HAT] = x[NEW_M] / (1 - pow(beta1, t));
    x[V] = found->v[k];
    x[NEW_V] = beta2 * x[V] + (1 - beta2) * x[GRADIENT] * x[GRADIENT];
    x[V_HAT] = x[NEW_V] / (1 - pow(beta2, t));
    x[RATE] = learning_rate(config, found->step);
    x[MOVE] = -x[RATE] * x[M_HAT] / (sqrt(x[V_HAT]) + 1e-8);
    x[BEFORE] = found->p[k];
    x[DECAY] = -x[RATE] * config->weight_decay * x[BEFORE];
    x[AFTER] = x[BEFORE] + x[MOVE] + x[DECAY];
    return move;
}

// The same for a step that is over. Says whether Adam would have made the same numbers.
static Move find_past_move(const Moved *found, const Moved *after, size_t k, bool *adam)
{
    Move move = find_move(found, k);
    *adam = *adam && close_to(move.x[NEW_M], after->m[k]) && close_to(move.x[NEW_V], after->v[k]) &&
            close_to(move.x[AFTER], after->p[k]);
    move.x[AFTER] = after->p[k];
    return move;
}

// What Adam would find now.
static Moved moved_now(void)
{
    const Model *model = watched.model;
    double *p = model->params;
    return (Moved){model->steps_done, p, grad(&model->tape, p), model->m, model->v};
}

// What Adam is about to do, where the gradients are there; or what it did. And the step before.
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
    Move old = {{0}}, new;
    if (before) old = find_past_move(before, latest, k, &adam);
    new = coming ? find_move(latest, k) : find_past_move(latest, &now, k, &adam);
    print("%s: %s in step %.0f, counted from 0%s\n", value_name(p),
          coming ? "what Adam is about to do" : "what Adam did", new.x[STEP],
          before ? "; before it, the step before" : "");
    if (!adam) print("  adam() is not Adam: here is what was, and what came of it.\n");
    for (int i = 0; i < N_NUMBERS; i++) {
        bool of_adam = (i >= M && i <= DECAY) || (i == AFTER && coming);
        if (of_adam && !adam) continue;
        if (i == DECAY && watched.run->config->weight_decay == 0) continue;
        print("  %-41s", move_rows[i]);
        if (before) number(old.x[i]);
        numbers(1, new.x[i]);
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
        double change = after ? now.p[k] - found->p[k] : move.x[MOVE] + move.x[DECAY];
        x[k] = moves ? change : found->g[k];
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
