/* A step of Adam, many parameters at a time, against the formula: all sizes up to 70, several steps, gradients and rates of
 * every size. After the last parameter nothing changes. What move_parameters() leaves is for the formula, as in adam().
 */
// also built with -DAUTOGRAD_PLAIN
#include "../../support/engine/private.h"
#include "../test.h"

enum { ROOM = 80, STEPS = 6 };

typedef struct {
    double scale, lr, beta1, beta2, eps, weight_decay;  // scale: of the gradients
} Case;

typedef struct {
    double p[ROOM], g[ROOM], m[ROOM], v[ROOM];
} Parameters;

static void formula(Parameters *all, size_t i, const AdamRates *r)
{
    double *p = &all->p[i], g = all->g[i];
    all->m[i] = r->beta1 * all->m[i] + (1 - r->beta1) * g;
    all->v[i] = r->beta2 * all->v[i] + (1 - r->beta2) * g * g;
    double root = sqrt(all->v[i] / r->correct2);
    *p -= r->lr * (all->m[i] / r->correct1) / (root + r->eps) + r->lr * r->weight_decay * *p;
    all->g[i] = 0;
}

static AdamRates rates_of(const Case *c, int step)
{
    AdamRates r = {.lr = c->lr, .beta1 = c->beta1, .beta2 = c->beta2, .eps = c->eps};
    r.correct1 = 1 - pow(c->beta1, step + 1);
    r.correct2 = 1 - pow(c->beta2, step + 1);
    r.weight_decay = c->weight_decay;
    return r;
}

// Sums of large gradients, and of giant steps, may cancel: the scale is theirs.
static bool same(const Parameters *want, const Parameters *seen, double scale, double lr)
{
    for (size_t i = 0; i < ROOM; i++) {
        double size = fmax(scale, 1), m = fabs(want->m[i] - seen->m[i]);
        double v = fabs(want->v[i] - seen->v[i]), g = fabs(want->g[i] - seen->g[i]);
        if (!(distance(want->p[i], seen->p[i]) <= 1e-12 * fmax(1, lr))) return false;
        if (!(m <= 1e-12 * size && v <= 1e-12 * size * size && g <= 0)) return false;
    }
    return true;
}

static bool agrees(const Case *c, size_t n)
{
    Parameters want, seen;
    for (size_t i = 0; i < ROOM; i++) {
        want.p[i] = any_number();
        want.m[i] = want.v[i] = i < n ? 0 : 9;
    }
    seen = want;
    for (int step = 0; step < STEPS; step++) {
        AdamRates r = rates_of(c, step);
        for (size_t i = 0; i < ROOM; i++) {
            double kind = any_number(), g = any_number() * (kind > 0.8 ? 1e-9 : c->scale);
            want.g[i] = seen.g[i] = i >= n ? 9 : kind < -0.8 ? 0 : g;
        }
        for (size_t i = 0; i < n; i++) formula(&want, i, &r);
        size_t n_moved = move_parameters(seen.p, seen.g, seen.m, seen.v, n, &r);
        for (size_t i = n_moved; i < n; i++) formula(&seen, i, &r);
        if (n_moved > n || !same(&want, &seen, c->scale, c->lr)) {
            check(false, "%zu parameters, scale %g, lr %g, betas %g %g, eps %g, decay %g, step %d",
                  n, c->scale, c->lr, c->beta1, c->beta2, c->eps, c->weight_decay, step);
            return false;
        }
    }
    return true;
}

static void test_cases(void)
{
    static const Case cases[] = {
        {1, 0.01, 0.85, 0.99, 1e-8, 0},
        {1, 0.01, 0.85, 0.99, 1e-8, 0.3},
        {1, 0.01, 0.4, 0.4, 1e-8, 0.3},
        {1, 0, 0.9, 0.95, 1e-8, 0},
        {1, 1e-200, 0.9, 0.95, 1e-8, 0},
        {1, 1e9, 0.5, 0.999, 1e-8, 0},
        {1, 0.1, 0, 0, 1e-8, 0},
        {1, 0.1, 0.6, 0, 1e-8, 0},
        {1, 0.1, 0.5, 0.5, 1e-8, 0},
        {1, 0.1, 0.9, 0.95, 0, 0},
        {1, 0.1, 0.9, 0.95, 1e-300, 0},
        {1, 0.1, 0.9, 0.95, 1e-15, 0},
        {1, 0.1, 0.9, 0.95, 1e3, 0},
        {1, 1, 0.9, 0.999999, 1e-8, 0},
        {1, 1, 0.9, 0.999999999999, 1e-8, 0},
        {1, 1, 0.9, 0.9, 1e-14, 0},
        {1, 1, 0.9, 0.9, 1e-20, 0},
    };
    static const double scales[] = {1,    1e-30, 1e-25, 1e-20, 1e-19, 1e-18, 1e-17, 1e-14, 1e-10,
                                    1e-6, 1e9,   1e17,  1e18,  1e19,  1e20,  1e60,  1e100, 1e140};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t k = 0; ok && k < sizeof scales / sizeof scales[0]; k++) {
            Case c = cases[i];
            c.scale = scales[k];
            for (size_t n = 1; ok && n <= 70; n += i > 1 && k > 0 ? 9 : 1) ok = agrees(&c, n);
        }
    }
    check(ok, "1 to 70 parameters, gradients of every size; rates, betas and eps at their limits");
}

// Parameters that no gradient reaches stay where they are, however large the rate; -0 stays -0.
static void test_still(void)
{
    static const double lr[] = {0.01, 1e9, 1e70, 1e80, 1e155, 1e200, 1e250, 1e300};
    for (size_t i = 0; i < sizeof lr / sizeof lr[0]; i++) {
        Parameters all = {.p = {0}};
        double expected[ROOM];
        AdamRates r = rates_of(&(Case){0, lr[i], 0.85, 0.99, 1e-8, 0}, 0);
        for (size_t k = 0; k < ROOM; k++) expected[k] = all.p[k] = k % 2 ? any_number() : -0.0;
        move_parameters(all.p, all.g, all.m, all.v, ROOM, &r);
        check_same_bits("without gradients nothing moves", expected, all.p, ROOM);
    }
}

static void test_infinite(void)
{
    Parameters all = {.p = {0}};
    AdamRates r = rates_of(&(Case){0, 0.01, 0.9, 0.99, 1e-8, 0}, 0);
    for (size_t i = 0; i < ROOM; i++) all.g[i] = i == 3 ? INFINITY : i == 9 ? NAN : 1;
    size_t n = move_parameters(all.p, all.g, all.m, all.v, ROOM, &r), n_zero = 0;
    for (size_t i = 0; i < n; i++) n_zero += fpclassify(all.g[i]) == FP_ZERO;
    check_size("all gradients become zero, infinite ones too", n, n_zero);
    check_near("beside an infinite gradient", n ? -0.01 : 0, all.p[2], 1e-9);
#ifdef VECTORS
    check_size("of 70 parameters it leaves less than four vectors", 70 / (4 * VEC) * (4 * VEC),
               move_parameters(all.p, all.g, all.m, all.v, 70, &r));
#else
    check_size("a plain build moves none", 0, n);
#endif
    r.eps = 0;
    check_size("without eps, none", 0, move_parameters(all.p, all.g, all.m, all.v, 70, &r));
}

int main(void)
{
    test_cases();
    test_still();
    test_infinite();
    return finish();
}
