/* adam.c: a step of Adam, four vectors at a time.
 *
 * One division serves all four vectors: it gives the reciprocal of the product of their
 * denominators, and multiplying that by the other three gives each its own. Where the product is
 * too large, or not a number, each vector is divided by its own denominator. The definition is
 * adam() in microgpt.c. Last bits differ from it.
 *
 * move_parameters() moves n parameters, rounded down to whole groups of four vectors; the rest is
 * left to adam(). It moves none in plain builds, none if the rate or eps is out of range, and none
 * if a beta is below 0.5, where m + (1 - beta) * (g - m) would lose digits. Threads share the
 * parameters. Means that fade below 2^-1000 become zero.
 */
#include "private.h"

#ifdef VECTORS
enum { FOURS = 4 * VEC };

typedef struct {
    double *p, *g, *m, *v;
    size_t n;
    double rate, eps, weight1, weight2, decay;
} Step;

// Means fade when gradients stay zero, as those of a rare character do. Numbers below the smallest
// normal one are slow on many processors, and would never reach zero: they are zero before that.
static ALWAYS_INLINE Vec without_traces(Vec x)
{
    const double trace = 0x1p-1000;
    return (Vec)((Bits)x & ~((Bits)(x <= trace) & (Bits)(x >= -trace)));
}

static void move_part(void *context, size_t part, size_t n_parts)
{
    const Step *step = context;
    double *p = step->p, *g = step->g, *m = step->m, *v = step->v;
    double rate = step->rate, eps = step->eps, weight1 = step->weight1, weight2 = step->weight2;
    double decay = step->decay;
    size_t i = cut(step->n / FOURS, n_parts, part) * FOURS;
    size_t end = cut(step->n / FOURS, n_parts, part + 1) * FOURS;
    for (size_t j = i; decay > 0 && j < end; j++) p[j] -= decay * p[j];
    for (; i < end; i += FOURS) {
        Vec mean[4], denom[4];
        for (size_t k = 0; k < 4; k++) {
            size_t j = i + k * VEC;
            Vec gj = load(g + j), mj = load(m + j), vj = load(v + j);
            Vec square = without_traces(vj + weight2 * (gj * gj - vj)), root = square;
            for (int r = 0; r < VEC; r++) root[r] = sqrt(root[r]);
            mean[k] = without_traces(mj + weight1 * (gj - mj));
            denom[k] = root + eps;
            store(m + j, mean[k]);
            store(v + j, square);
            store(g + j, ZERO);
        }
        Vec denom01 = denom[0] * denom[1], denom23 = denom[2] * denom[3], all = denom01 * denom23;
        Vec inverse = rate / all, inverse01 = inverse * denom23, inverse23 = inverse * denom01;
        Vec move[4] = {inverse01 * denom[1], inverse01 * denom[0], inverse23 * denom[3],
                       inverse23 * denom[2]};
        for (size_t k = 0; k < 4; k++) {
            if (!(vec_sum(all) < 1e200)) move[k] = rate / denom[k];
            store(p + i + k * VEC, load(p + i + k * VEC) - mean[k] * move[k]);
        }
    }
}
#endif

size_t move_parameters(double *p, double *g, double *m, double *v, size_t n, const AdamRates *rates)
{
#ifdef VECTORS
    double beta1 = rates->beta1, beta2 = rates->beta2, root2 = sqrt(rates->correct2);
    double rate = rates->lr * root2 / rates->correct1, eps = rates->eps * root2;
    if (!(rate >= 1e-100 && rate <= 1e150 && eps >= 1e-15 && beta1 >= 0.5 && beta2 >= 0.5)) {
        return 0;
    }
    Step step = {p, g, m, v, n, rate, eps, 1 - beta1, 1 - beta2, rates->lr * rates->weight_decay};
    share(move_part, &step, parts_of(4 * n));
    return n / FOURS * FOURS;
#else
    (void)p, (void)g, (void)m, (void)v, (void)n, (void)rates;
    return 0;
#endif
}
