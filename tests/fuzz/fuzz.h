/* What the fuzz targets share: each is the whole program with one entry, LLVMFuzzerTestOneInput, that feeds it bytes
 * from outside and stops at the first broken promise. With libFuzzer that entry is all there is; with FUZZ_MAIN there is
 * also a main (tests/fuzz/fuzz_main.c) that needs nothing but a C compiler.
 */
#define MICROGPT_NO_MAIN
#include "../../microgpt.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A promise of the program's. Where it is broken, the input that broke it is kept by whoever called us.
#define PROMISE(condition)                                                                    \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);   \
            abort();                                                                          \
        }                                                                                     \
    } while (0)

// A failure has a status and one line of text. A success has neither. The next input begins without one.
static void check_failure(bool ok)
{
    PROMISE(ok == (failure.status == DONE));
    PROMISE(ok == (failure.text[0] == '\0'));
    PROMISE(memchr(failure.text, '\0', sizeof failure.text));
    for (const char *c = failure.text; *c; c++) {
        PROMISE((unsigned char)*c >= ' ' && *c != 0x7f);
    }
    memset(&failure, 0, sizeof failure);
}

#ifdef FUZZ_MAIN
#include "fuzz_main.c"
#endif
