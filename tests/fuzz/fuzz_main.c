/* A main for a fuzz target where there is no fuzzer: feeds it files, and what becomes of each when it is cut short at
 * every place and when every byte is changed in several ways. Included by fuzz.h. Prints how many inputs were tried. An
 * input that ends in an abort (with sanitizers: abort_on_error=1) is kept.
 *
 *   fuzz_TARGET KEPT-INPUT PLACES FILE...      PLACES: how many places of a file are cut and changed, at most
 */
#include <signal.h>

static unsigned long long n_tried;
static const char *kept_name;
static const unsigned char *in_work;
static size_t n_in_work;

static void keep_input(int signal_number)
{
    static const char kept[] = "the input is kept\n", lost[] = "the input is lost\n";
    int file = open(kept_name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    bool ok = file >= 0 && write(file, in_work, n_in_work) == (ssize_t)n_in_work;
    if (write(STDERR_FILENO, ok ? kept : lost, sizeof kept - 1) > 0) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

// In memory of exactly its size, so that one byte too far is seen.
static void try_input(const unsigned char *bytes, size_t n)
{
    unsigned char *copy = malloc(n ? n : 1);
    PROMISE(copy);
    memcpy(copy, bytes, n);
    in_work = bytes;
    n_in_work = n;
    LLVMFuzzerTestOneInput(copy, n);
    n_tried++;
    free(copy);
}

int main(int argc, char **argv)
{
    static const unsigned char changes[] = {0x01, 0x80, 0xff, '"' ^ 'a'};
    size_t n_places = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    PROMISE(n_places > 0);
    kept_name = argv[1];
    signal(SIGABRT, keep_input);
    for (int a = 3; a < argc; a++) {
        unsigned char *bytes = NULL;
        size_t n = 0;
        int file = open(argv[a], O_RDONLY);
        PROMISE(file >= 0 && read_all(file, &bytes, &n, argv[a]));
        close(file);
        try_input(bytes, n);
        for (size_t i = 0; i < n; i += n / n_places + 1) {
            try_input(bytes, i);
            for (size_t k = 0; k < sizeof changes; k++) {
                bytes[i] ^= changes[k];
                try_input(bytes, n);
                bytes[i] ^= changes[k];
            }
        }
        free(bytes);
    }
    printf("%llu inputs tried\n", n_tried);
    return 0;
}
