/* What the fuzz targets share. A target is one entry, LLVMFuzzerTestOneInput, linked with the whole
 * program: it feeds bytes from outside to a part of it and stops at the first broken promise. With
 * libFuzzer that entry is all there is; with FUZZ_MAIN there is also a main (fuzz_main.c) that needs
 * nothing but a C compiler.
 */
#include "../../support/base/files.h"
#include "../../support/base/output.h"
#include "../../support/base/text.h"

#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A promise of the program. If it is broken, the caller keeps the input that broke it.
#define PROMISE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

// A failure has a status and one line of text. A success has neither. Forgets the failure.
static void check_failure(bool ok)
{
    PROMISE(ok == (failure.status == DONE));
    PROMISE(ok == (failure.text[0] == '\0'));
    PROMISE(memchr(failure.text, '\0', sizeof failure.text));
    for (const char *c = failure.text; *c; c++) PROMISE((unsigned char)*c >= ' ' && *c != 0x7f);
    memset(&failure, 0, sizeof failure);
}

#ifdef FUZZ_MAIN
#undef main  // that of the program is called microgpt_main
#include "fuzz_main.c"
#endif
