/* What support/engine/softmax.c keeps to itself: its exponential, which no test would miss where it fails, because softmax() then
 * follows the definition, slowly.
 */
#include "../../support/engine/softmax.c"
#include "../test.h"

#ifdef VECTORS
static void check_exponential(void)
{
    double worst = 0, worst_at = 0;
    size_t n_apart = 0, n_tried = 0;
    for (double x = 0; x > -708; x -= 0.00390625 * 1.7) {
        Vec all = vec_exp(ZERO + x);
        double right = exp(x), error = fabs(all[0] - right) / right;
        if (!(error <= worst)) worst = error, worst_at = x;
        for (int k = 1; k < VEC; k++) n_apart += !(all[k] >= all[0] && all[k] <= all[0]);
        n_tried++;
    }
    check(worst <= 1e-15, "e^x for %zu x: expected all within 1e-15 of exp(), saw %g at %g",
          n_tried, worst, worst_at);
    check_size("places in a vector that differ", 0, n_apart);
    check(vec_exp(ZERO)[0] == 1, "e^0 is 1");
    for (int k = 0; k < VEC; k++) {
        Vec x = ZERO - 1;
        x[k] = -708;
        Vec low = vec_exp(x);
        x[k] = NAN;
        Vec none = vec_exp(x);
        x[k] = -INFINITY;
        Vec least = vec_exp(x);
        size_t n_nan = 0;
        for (int i = 0; i < VEC; i++) n_nan += isnan(low[i]) && isnan(none[i]) && isnan(least[i]);
        check(n_nan == 1 && isnan(low[k]), "e^-708 and below, at %d: not a number there alone", k);
    }
}
#endif

int main(void)
{
#ifdef VECTORS
    check_exponential();
#else
    printf("skip - the exponential: this build has no vectors\n");
#endif
    return finish();
}
