/* adam.h: a step of Adam, as adam() in microgpt.c up to rounding, but faster. */
#ifndef ADAM_H
#define ADAM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    double lr, beta1, beta2, eps, correct1, correct2, weight_decay;
} AdamRates;

// For the first of n parameters p with gradients g; returns their count. 0: nothing is done.
size_t move_parameters(double *p, double *g, double *m, double *v, size_t n,
                       const AdamRates *rates);

#endif
