/* Runs a command in a way that a shell has none for. tests/faults use it.
 *
 *   lose default COMMAND...     with every signal at its default, which a shell's background job has not
 *   lose nonblock COMMAND...    with a standard output that does not wait
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGXFSZ,
                                  SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM};
    const char *how = argc > 2 ? argv[1] : "";
    bool known = strcmp(how, "default") == 0;
    for (size_t i = 0; known && i < sizeof signals / sizeof signals[0]; i++) {
        signal(signals[i], SIG_DFL);
    }
    if (strcmp(how, "nonblock") == 0) known = fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK) == 0;
    if (known) execvp(argv[2], argv + 2);
    perror("lose");
    return 99;
}
