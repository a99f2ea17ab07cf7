/* A main for a fuzz target where there is no fuzzer: feeds it files, and what becomes of each when it is cut short at
 * every place and when every byte is changed in several ways; then, for some seconds, random changes of them. Included by
 * fuzz.h. Prints how many inputs were tried. An input that ends in an abort (with sanitizers: abort_on_error=1) is kept.
 *
 *   fuzz_TARGET KEPT-INPUT SECONDS PLACES FILE...      PLACES: how many places of a file are cut and changed, at most
 */
#include <signal.h>
#include <time.h>

static unsigned long long n_tried;
static const char *kept_name;
static const unsigned char *in_work;
static size_t n_in_work;
static size_t n_places;
static uint64_t fuzz_state = 1;

static void keep_input(int signal_number)
{
    int file = open(kept_name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    bool ok = file >= 0 && write(file, in_work, n_in_work) == (ssize_t)n_in_work;
    static const char kept[] = "the input is kept\n", lost[] = "the input is lost\n";
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

static size_t any_below(size_t n)
{
    fuzz_state ^= fuzz_state << 13;
    fuzz_state ^= fuzz_state >> 7;
    fuzz_state ^= fuzz_state << 17;
    return (size_t)((fuzz_state >> 16) % n);
}

static void try_systematically(unsigned char *bytes, size_t n)
{
    static const unsigned char changes[] = {0x01, 0x80, 0xff, '"' ^ 'a'};
    size_t stride = n / n_places + 1;
    try_input(bytes, n);
    for (size_t i = 0; i < n; i += stride) {
        try_input(bytes, i);
        for (size_t k = 0; k < sizeof changes; k++) {
            bytes[i] ^= changes[k];
            try_input(bytes, n);
            bytes[i] ^= changes[k];
        }
    }
}

// A few bytes changed, and a piece put elsewhere, as chance has it.
static void try_at_random(const unsigned char *bytes, size_t n)
{
    unsigned char *changed = malloc(n + 1);
    PROMISE(changed);
    memcpy(changed, bytes, n);
    for (size_t k = any_below(4) + 1; n && k > 0; k--) {
        changed[any_below(n)] = any_below(2) ? (unsigned char)any_below(256) : bytes[any_below(n)];
    }
    if (n && any_below(3) == 0) {
        size_t from = any_below(n), to = any_below(n),
               length = any_below(n - (from > to ? from : to)) + 1;
        memmove(changed + to, bytes + from, length);
    }
    try_input(changed, any_below(8) ? n : any_below(n + 1));
    free(changed);
}

int main(int argc, char **argv)
{
    if (argc < 5 || strtoul(argv[3], NULL, 10) == 0) {
        fprintf(stderr, "fuzz: KEPT-INPUT SECONDS PLACES FILE...\n");
        return 2;
    }
    kept_name = argv[1];
    n_places = strtoul(argv[3], NULL, 10);
    signal(SIGABRT, keep_input);
    double seconds_left = strtod(argv[2], NULL);
    time_t end = time(NULL) + (time_t)seconds_left;
    for (bool first = true; first || (seconds_left > 0 && time(NULL) < end); first = false) {
        for (int i = 4; i < argc; i++) {
            unsigned char *bytes = NULL;
            size_t n = 0;
            int file = open(argv[i], O_RDONLY);
            PROMISE(file >= 0 && read_all(file, &bytes, &n, argv[i]));
            close(file);
            if (first) {
                try_systematically(bytes, n);
            }
            for (int k = 0; !first && k < 1000; k++) {
                try_at_random(bytes, n);
            }
            free(bytes);
        }
    }
    printf("%llu inputs tried\n", n_tried);
    return 0;
}
