/* signals.h: signals that ask a run to end. The first one lets the running step finish, and what
 * comes within a second of it is the same wish: timeout(1) sends two. A later one ends the program
 * at once, and leaves no partial file.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

extern volatile sig_atomic_t running;      // there is work to lose: the first signal lets it finish
extern volatile sig_atomic_t interrupted;  // a signal has asked the run to end
bool overdue(void);                        // and that was a second ago

void handle_signals(void);  // those that ask to end, unless ignored at the start
void hold_signals(void);    // until release_signals(), which leaves errno alone
void release_signals(void);
// While signals are held: an end at once removes this file. NULL: it is whole, or gone.
void remove_if_ended(const char *name);

#endif
