/* softmax.c: softmax, a vector at a time.
 *
 * It promises what softmax_forward() and softmax_backward() in autograd.c define. Sums are taken in
 * another order and exponentials by another series, so last bits differ. A softmax of infinities
 * and the like is left to the definition.
 *
 * Vectors are loaded just as they were stored, because a load across two stores would wait.
 */
#include "private.h"

#ifdef VECTORS

static inline Vec vec_max(Vec a, Vec b)
{
    for (int k = 0; k < VEC; k++) a[k] = a[k] > b[k] ? a[k] : b[k];
    return a;
}

// e^x = 2^k * e^r, with k the integer nearest to x / ln 2: then |r| < 0.35, and the series needs
// terms up to r^12. Adding 1.5 * 2^52 rounds x / ln 2 to k and leaves k in the low bits, from where
// it is shifted into the exponent. Where x is too small for that, or not a number, the result is
// not a number. x must not be positive.
static inline Vec vec_exp(Vec x)
{
    const double log2_e = 0x1.71547652b82fep0, rounder = 0x1.8p52;
    const double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b39p-40;
    Vec shifted = x * log2_e + rounder, k = shifted - rounder;
    Vec r = (x - k * ln2_high) - k * ln2_low, r2 = r * r, r4 = r2 * r2;
    Vec p0 = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    Vec p4 = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    Vec p8 = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    Vec p12 = ZERO + 1.0 / 479001600;
    Bits e = (Bits)(p0 + r4 * (p4 + r4 * (p8 + r4 * p12))) + ((Bits)shifted << 52);
    return (Vec)(e | ~(Bits)(x > -708));
}

// Where vec_exp() gives up, the definition decides. It also decides on one value alone, whose
// neighbors are not its own.
bool fast_softmax_forward(Entry *e)
{
    double *out = e->out, *a = e->a;
    size_t n = e->n, whole = n / VEC * VEC;
    if (n == 1) return false;
    Vec maxima = ZERO + a[0], sum = ZERO;
    for (size_t i = 0; i < whole; i += VEC) maxima = vec_max(load(a + i), maxima);
    if (whole < n) maxima = vec_max(blend_first(load(a + whole), n - whole, maxima), maxima);
    double max = maxima[0];
    for (int k = 1; k < VEC; k++) max = maxima[k] > max ? maxima[k] : max;
    for (size_t i = 0; i < n; i += VEC) {
        Vec x = load(a + i) - max;
        if (n - i < VEC) x = blend_first(x, n - i, ZERO - 100);  // e^-100 is lost in a sum above 1
        Vec exps = vec_exp(x);
        store(out + i, exps);
        sum += exps;
    }
    double total = vec_sum(sum), share = 1 / total;
    for (size_t i = 0; i < n; i += VEC) store(out + i, load(out + i) * share);
    return !isnan(total);
}

bool fast_softmax_backward(const Tape *t, Entry *e)
{
    double *out = e->out, *g = grad(t, out), *ga = grad(t, e->a);
    Vec sum = ZERO;
    for (size_t i = 0, n = e->n; i < n; i += VEC) {
        Vec product = load(g + i) * load(out + i);
        sum += n - i < VEC ? blend_first(product, n - i, ZERO) : product;
    }
    double mean = vec_sum(sum);  // of g, weighted by out
    for (size_t i = 0, n = e->n; i < n; i += VEC) {
        Vec old = load(ga + i), new = old + load(out + i) * (load(g + i) - mean);
        store(ga + i, n - i < VEC ? blend_first(new, n - i, old) : new);
    }
    return true;
}

#endif
