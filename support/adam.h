/* adam.h: a step of Adam, as adam() in microgpt.c up to rounding, but faster. */
#ifndef ADAM_H
#define ADAM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    double lr, beta1, beta2, eps, correct1, correct2, weight_decay;
} AdamRates;

// For n parameters p with gradients g. false: nothing is done, use the definition.
bool fast_adam(double *p, double *g, double *m, double *v, size_t n, const AdamRates *rates);

#endif
