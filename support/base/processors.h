/* processors.h: how many processors this process may use. */
#ifndef PROCESSORS_H
#define PROCESSORS_H

#include <stddef.h>

size_t processors(void);  // 1 where that is unknown

#endif
