/* faster.h: the fast engine, as programs see it. It computes what autograd.c defines. */
#ifndef FASTER_H
#define FASTER_H

#include "../autograd.h"

// Does this build have it? Only where -DAUTOGRAD_LANES is set, as make does.
extern const bool have_faster;
// Installs it on a tape that is empty. false: not enough memory.
bool install_faster(Tape *t);

#endif
