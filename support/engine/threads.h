/* threads.h: work that is cut into parts, and the threads that share it. See threads.c. */
#ifndef THREADS_H
#define THREADS_H

#include <stdbool.h>
#include <stddef.h>

// Does part number `part` of n_parts. It asks nobody else how many parts there are: n_threads may
// become smaller when threads start.
typedef void Part(void *context, size_t part, size_t n_parts);

extern const bool have_threads;  // does this build have any?
extern size_t n_threads;         // how many there are, this one included; 1: nothing is shared
extern size_t missing_threads;   // how many could not be started

// Sets the number of threads. No more of them work at a time than there are processors. Running
// ones end first; new ones start with the first shared work. 0 counts as 1.
void set_threads(size_t n, size_t n_processors);
// Does all parts and returns. Nobody is woken for work that has no more parts than threads.
void share(Part *part, void *context, size_t n_parts);
// Before exit(): returns to the first thread that calls it, and to no other.
void end_alone(void);
// Wakes threads for work that has few parts, but is worth it.
void wake_threads(size_t n_parts);

#endif
