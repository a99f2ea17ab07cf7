/* Model files, seen from outside: nothing here is shared with the program.
 *
 *   reading      a saved file opened by a reader of its own, and the loss computed from it in plain loops
 *   accepted     files that say the same thing in another way
 *   refused      malformed files, made by a generator that knows the format
 *
 * The last two are done twice: with ./microgpt, and with a build of it that has the sanitizers.
 */
#define _POSIX_C_SOURCE 200809L
#include "plain_model.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder = "tests/build/safetensors";
static const char *program = "./microgpt";

static void expect(bool ok, const char *what, const char *expected, const char *saw)
{
    if (ok) {
        check(true, "%s", what);
    } else {
        check(false, "%s: expected %s, saw %s", what, expected, saw);
    }
}

static char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

// Runs the program with standard output and error in files. Returns its exit status; above 255, the signal's number
// is added.
static int run(char *const arguments[])
{
    pid_t child = fork();
    if (child == 0) {
        int out = open(in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        int err = open(in_folder("err"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(out, 1);
        dup2(err, 2);
        execv(program, arguments);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Reading: two layers, two heads.
 */
static void test_reading(void)
{
    char *model = in_folder("two.safetensors"), *text = in_folder("two.txt"), saw[256];
    FILE *file = fopen(text, "w");
    fputs("bca\n\"\\\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 a\nabcabc\n", file);
    fclose(file);
    char *train[] = {"microgpt", "--data",       text,    "--steps",  "60",     "--n-layer",
                     "2",        "--n-embd",     "8",     "--n-head", "2",      "--block-size",
                     "6",        "--activation", "relu2", "-q",       "--save", model,
                     NULL};
    int status = run(train);
    snprintf(saw, sizeof saw, "%d", status);
    expect(status == 0, "a model with any characters is saved", "exit status 0", saw);

    PlainModel m = open_model(model);
    snprintf(saw, sizeof saw, "%zu of %zu bytes", m.n_header, m.n_bytes);
    expect(m.n_bytes > 8 && m.n_header < m.n_bytes - 8 && m.bytes[8] == '{' &&
               (8 + m.n_header) % 8 == 0,
           "the header begins with a brace and ends at a multiple of eight", "so", saw);
    static const char *const metadata[] = {
        "\"__metadata__\":{",
        "\"format\":\"microgpt\"",
        "\"n_layer\":\"2\"",
        "\"n_embd\":\"8\"",
        "\"n_head\":\"2\"",
        "\"block_size\":\"6\"",
        "\"activation\":\"relu2\"",
        "\"vocab\":\" \\\"\\\\abc\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
    };
    for (size_t i = 0; i < sizeof metadata / sizeof metadata[0]; i++) {
        char what[128];
        snprintf(what, sizeof what, "the metadata have %s", metadata[i]);
        expect(strstr(m.bytes + 8, metadata[i]) != NULL, what, metadata[i], "a header without it");
    }

    enum { E = 8, B = 6 };
    const struct {
        const Tensor *t;
        size_t rows, cols;
    } shapes[] = {
        {&m.wte, 10, E},       {&m.wpe, B, E},        {&m.lm_head, 10, E},   {&m.wq[0], E, E},
        {&m.wk[0], E, E},      {&m.wv[0], E, E},      {&m.wo[0], E, E},      {&m.fc1[0], 4 * E, E},
        {&m.fc2[0], E, 4 * E}, {&m.wq[1], E, E},      {&m.wk[1], E, E},      {&m.wv[1], E, E},
        {&m.wo[1], E, E},      {&m.fc1[1], 4 * E, E}, {&m.fc2[1], E, 4 * E},
    };
    bool right = m.n_layer == 2;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        right = right && shapes[i].t->rows == shapes[i].rows && shapes[i].t->cols == shapes[i].cols;
    }
    expect(right, "every tensor has its shape", "the shapes of the configuration", "others");
    size_t n_data = m.n_bytes - 8 - m.n_header;
    snprintf(saw, sizeof saw, "%zu", n_data - 8 * m.n_numbers);
    expect(n_data == 3 * 8 * m.n_numbers + 8 * 627, "and the rest of the data is for a resume",
           "twice as much, and the random generator", saw);

    // "bca", " a" behind the three others, cut to the block, and so on: the tokens by hand, 9 is BOS
    static const uint32_t docs[4][8] = {
        {9, 4, 5, 3, 9}, {9, 1, 2, 9}, {9, 6, 7, 8, 0, 3, 9}, {9, 3, 4, 5, 3, 4, 5}};
    static const size_t lengths[4] = {4, 3, 6, 6};
    double total = 0, expected, loss = 0, tokens = 0, n_docs = 0;
    for (int i = 0; i < 4; i++) {
        total += plain_loss(&m, docs[i], lengths[i]);
    }
    expected = total / (4 + 3 + 6 + 6);
    char *eval[] = {"microgpt", "eval", model, "--data", text, NULL};
    status = run(eval);
    size_t n;
    char *out = read_file(in_folder("out"), &n), want[256];
    double bits = 0, perplexity = 0;
    int got =
        sscanf(out, "docs %lf\ntokens %lf\nloss %lf\nbits per character %lf\nperplexity %lf\n",
               &n_docs, &tokens, &loss, &bits, &perplexity);
    snprintf(want, sizeof want, "docs 4, tokens 19, loss %.17g", expected);
    snprintf(saw, sizeof saw, "exit status %d: %.200s", status, out);
    expect(status == 0 && got == 5 && n_docs == 4 && tokens == 19 && fabs(loss - expected) < 1e-12,
           "eval gives the loss that plain loops give from the file", want, saw);
    expect(fabs(bits - expected / log(2)) < 1e-12 && fabs(perplexity - exp(expected)) < 1e-11,
           "bits per character and perplexity are that loss in other units", "so", saw);
    free(out);
    close_model(&m);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Small files made by hand: one layer, two numbers wide, three positions, the characters a and b.
 */
static const struct {
    const char *name;
    size_t rows, cols;
} parts[] = {
    {"wte", 3, 2},
    {"wpe", 3, 2},
    {"lm_head", 3, 2},
    {"layer0.attn_wq", 2, 2},
    {"layer0.attn_wk", 2, 2},
    {"layer0.attn_wv", 2, 2},
    {"layer0.attn_wo", 2, 2},
    {"layer0.mlp_fc1", 8, 2},
    {"layer0.mlp_fc2", 2, 8},
};
enum { N_PARTS = 9, N_NUMBERS = 66 };

#define METADATA                                                                                   \
    "\"__metadata__\":{\"format\":\"microgpt\",\"n_layer\":\"1\",\"n_embd\":\"2\",\"n_head\":"     \
    "\"1\","                                                                                       \
    "\"block_size\":\"3\",\"activation\":\"relu\",\"vocab\":\"ab\"}"

typedef struct {
    char header[8192];
    unsigned char data[8192];
    size_t header_size, data_size;
    uint64_t length;  // as the first eight bytes say it
    size_t cut;       // the file's size, if it is cut
} Made;

// Numbers that are the same in F32 and F64.
static double number(size_t i) { return (double)((int)(i * 37 % 64) - 32) / 16; }

static void put_word(unsigned char *to, uint64_t word, int n)
{
    for (int i = 0; i < n; i++) {
        to[i] = (unsigned char)(word >> 8 * i);
    }
}

static void put_number(Made *made, double x, bool narrow)
{
    uint64_t bits = 0;
    if (narrow) {
        float f = (float)x;
        uint32_t bits32;
        memcpy(&bits32, &f, 4);
        bits = bits32;
    } else {
        memcpy(&bits, &x, 8);
    }
    put_word(made->data + made->data_size, bits, narrow ? 4 : 8);
    made->data_size += narrow ? 4 : 8;
}

// The good file. Its tensors may be narrow, its parts in the opposite order, its metadata at the end.
static void make(Made *made, bool narrow, bool backwards, bool metadata_last)
{
    memset(made, 0, sizeof *made);
    char *at = made->header;
    at += sprintf(at, "{%s", metadata_last ? "" : METADATA);
    for (size_t p = 0; p < N_PARTS; p++) {
        size_t i = backwards ? N_PARTS - 1 - p : p, first = 0, begin = made->data_size;
        for (size_t k = 0; k < i; k++) {
            first += parts[k].rows * parts[k].cols;
        }
        for (size_t k = 0; k < parts[i].rows * parts[i].cols; k++) {
            put_number(made, number(first + k), narrow);
        }
        at += sprintf(at,
                      "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}",
                      at == made->header + 1 ? "" : ",", parts[i].name, narrow ? "F32" : "F64",
                      parts[i].rows, parts[i].cols, begin, made->data_size);
    }
    at += sprintf(at, "%s%s}", metadata_last ? "," : "", metadata_last ? METADATA : "");
    made->header_size = strlen(made->header);
    made->length = made->header_size;
}

// Replaces a piece of the header, which must be there.
static void replace(Made *made, const char *from, const char *to)
{
    char *at = strstr(made->header, from);
    if (!at || strlen(made->header) + strlen(to) >= sizeof made->header) {
        printf("not ok - the generator: expected %s in the header, saw %s\n", from, made->header);
        exit(1);
    }
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
    made->header_size = strlen(made->header);
    made->length = made->header_size;
}

static char *write_made(const Made *made)
{
    char *path = in_folder("made.safetensors");
    FILE *file = fopen(path, "wb");
    unsigned char length[8];
    put_word(length, made->length, 8);
    fwrite(length, 1, 8, file);
    fwrite(made->header, 1, made->header_size, file);
    fwrite(made->data, 1, made->data_size, file);
    fclose(file);
    if (made->cut && truncate(path, (off_t)made->cut) != 0) {
        abort();
    }
    return path;
}

static int sample_made(const Made *made)
{
    char *arguments[] = {"microgpt", "sample", write_made(made), "--samples", "30", "--temperature",
                         "2",        NULL};
    return run(arguments);
}

static int n_refused, n_not_refused;

// The program ends with status 1, one line that names the file and a reason, and no sample.
static void refused(const Made *made, const char *what)
{
    int status = sample_made(made);
    size_t n_out, n_err;
    char *out = read_file(in_folder("out"), &n_out), *err = read_file(in_folder("err"), &n_err);
    char begin[300], saw[512];
    snprintf(begin, sizeof begin, "microgpt: %s: ", in_folder("made.safetensors"));
    bool ok = status == 1 && n_out == 0 && strncmp(err, begin, strlen(begin)) == 0 &&
              n_err > strlen(begin) + 5 && strchr(err, '\n') == err + n_err - 1;
    for (size_t i = 0; i + 1 < n_err; i++) {
        ok = ok && err[i] >= ' ' && err[i] <= '~';
    }
    n_refused += ok;
    n_not_refused += !ok;
    if (!ok) {
        snprintf(saw, sizeof saw, "exit status %d: %.300s", status, err);
        expect(false, what, "exit status 1 and a line with the reason", saw);
    }
    free(out);
    free(err);
}

typedef struct {
    const char *what, *from, *to;
} Change;

static void test_accepted(void)
{
    static const Change changes[] = {
        {"more metadata", "\"format\":\"microgpt\"",
         "\"note\":\"x\",\"format\":\"microgpt\",\"date\":\"\""},
        {"white space and padding", "{\"__metadata__\":{", "{ \n\t\"__metadata__\" : \r\n { "},
        {"escapes", "\"vocab\":\"ab\"", "\"voc\\u0061b\":\"\\u0061b\""},
        {"a tensor for a resume that no one knows", "{\"__metadata__\"",
         "{\"train.x\":{\"dtype\":\"BOOL\",\"shape\":[3,0],\"data_offsets\":[0,0]},\"__metadata__"
         "\""},
        {"keys of a tensor in another order",
         "\"dtype\":\"F64\",\"shape\":[3,2],\"data_offsets\":[0,48]",
         "\"data_offsets\":[0,48],\"shape\":[3,2],\"dtype\":\"F64\""},
        {"part of what a resume needs", "\"format\"",
         "\"train.seed\":\"7\",\"train.steps\":\"18\",\"format\""},
    };
    Made made;
    size_t n;
    make(&made, false, false, false);
    int status = sample_made(&made);
    char *names = read_file(in_folder("out"), &n), saw[256];
    snprintf(saw, sizeof saw, "exit status %d and %zu bytes", status, n);
    expect(status == 0 && n > 30, "a file made by hand is sampled", "30 lines", saw);

    for (int variant = 1; variant < 8; variant++) {
        char what[128];
        make(&made, variant & 1, variant & 2, variant & 4);
        status = sample_made(&made);
        char *out = read_file(in_folder("out"), &n);
        snprintf(what, sizeof what, "the same names from a file%s%s%s",
                 variant & 1 ? " in F32" : "", variant & 2 ? " in the opposite order" : "",
                 variant & 4 ? " with the metadata last" : "");
        expect(status == 0 && strcmp(out, names) == 0, what, names, out);
        free(out);
    }
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char what[128];
        make(&made, false, false, false);
        replace(&made, changes[i].from, changes[i].to);
        status = sample_made(&made);
        char *out = read_file(in_folder("out"), &n);
        snprintf(what, sizeof what, "the same names from a file with %s", changes[i].what);
        expect(status == 0 && strcmp(out, names) == 0, what, names, out);
        free(out);
    }
    make(&made, false, false, false);
    replace(&made, "\"vocab\":\"ab\"", "\"vocab\":\"\\ud83d\\ude00\\u00e9\"");
    status = sample_made(&made);
    char *out = read_file(in_folder("out"), &n);
    bool same = status == 0;
    for (size_t i = 0, k = 0; same && names[i];
         i++) {  // a becomes a character of four bytes, b one of two
        const char *c = names[i] == 'a' ? "\xf0\x9f\x98\x80" : names[i] == 'b' ? "\xc3\xa9" : "\n";
        same = strncmp(out + k, c, strlen(c)) == 0;
        k += strlen(c);
    }
    expect(same, "characters may be written as two escapes", "names in them", out);
    free(out);
    free(names);
}

// Of the cuts, only every so many-th is tried.
static void test_refused(const char *with, size_t stride)
{
    static const Change changes[] = {
        // the configuration
        {"no metadata", METADATA ",", ""},
        {"empty metadata", METADATA, "\"__metadata__\":{}"},
        {"metadata twice", METADATA, METADATA "," METADATA},
        {"metadata twice, with other keys", METADATA, METADATA ",\"__metadata__\":{\"x\":\"y\"}"},
        {"metadata twice, the second empty", METADATA, METADATA ",\"__metadata__\":{}"},
        {"metadata: a list", METADATA, "\"__metadata__\":[]"},
        {"metadata: a string", METADATA, "\"__metadata__\":\"format\""},
        {"metadata: a number", "\"n_layer\":\"1\"", "\"n_layer\":1"},
        {"metadata: null", "\"n_layer\":\"1\"", "\"n_layer\":null"},
        {"metadata: an object", "\"n_layer\":\"1\"", "\"n_layer\":{}"},
        {"metadata: a key twice", "\"n_layer\":\"1\"", "\"n_layer\":\"1\",\"n_layer\":\"1\""},
        {"metadata: a key twice, once escaped", "\"n_layer\":\"1\"",
         "\"n_layer\":\"1\",\"n_laye\\u0072\":\"1\""},
        {"no format", "\"format\":\"microgpt\",", ""},
        {"another format", "\"microgpt\"", "\"pt\""},
        {"no n_layer", "\"n_layer\":\"1\",", ""},
        {"no n_embd", "\"n_embd\":\"2\",", ""},
        {"no n_head", "\"n_head\":\"1\",", ""},
        {"no block_size", "\"block_size\":\"3\",", ""},
        {"no activation", "\"activation\":\"relu\",", ""},
        {"no vocab", ",\"vocab\":\"ab\"", ""},
        {"n_layer 0", "\"n_layer\":\"1\"", "\"n_layer\":\"0\""},
        {"n_layer 2", "\"n_layer\":\"1\"", "\"n_layer\":\"2\""},
        {"n_layer -1", "\"n_layer\":\"1\"", "\"n_layer\":\"-1\""},
        {"n_layer 1.0", "\"n_layer\":\"1\"", "\"n_layer\":\"1.0\""},
        {"n_layer of 64 bits", "\"n_layer\":\"1\"", "\"n_layer\":\"18446744073709551615\""},
        {"n_layer beyond 64 bits", "\"n_layer\":\"1\"", "\"n_layer\":\"18446744073709551617\""},
        {"n_layer 1048576", "\"n_layer\":\"1\"", "\"n_layer\":\"1048576\""},
        {"n_layer empty", "\"n_layer\":\"1\"", "\"n_layer\":\"\""},
        {"n_layer, a space before it", "\"n_layer\":\"1\"", "\"n_layer\":\" 1\""},
        {"n_embd 3", "\"n_embd\":\"2\"", "\"n_embd\":\"3\""},
        {"n_embd 1", "\"n_embd\":\"2\"", "\"n_embd\":\"1\""},
        {"n_embd 1048576", "\"n_embd\":\"2\"", "\"n_embd\":\"1048576\""},
        {"n_head 0", "\"n_head\":\"1\"", "\"n_head\":\"0\""},
        {"n_head 3", "\"n_head\":\"1\"", "\"n_head\":\"3\""},
        {"block_size 4", "\"block_size\":\"3\"", "\"block_size\":\"4\""},
        {"block_size 1048576", "\"block_size\":\"3\"", "\"block_size\":\"1048576\""},
        {"another activation", "\"relu\"", "\"gelu\""},
        {"an empty vocab", "\"vocab\":\"ab\"", "\"vocab\":\"\""},
        {"a character twice", "\"vocab\":\"ab\"", "\"vocab\":\"aa\""},
        {"a character twice, once escaped", "\"vocab\":\"ab\"", "\"vocab\":\"a\\u0061\""},
        {"too many characters", "\"vocab\":\"ab\"", "\"vocab\":\"abc\""},
        {"too few characters", "\"vocab\":\"ab\"", "\"vocab\":\"a\""},
        {"a zero character", "\"vocab\":\"ab\"", "\"vocab\":\"a\\u0000\""},
        {"a newline as a character", "\"vocab\":\"ab\"", "\"vocab\":\"a\\n\""},
        {"a carriage return as a character", "\"vocab\":\"ab\"", "\"vocab\":\"a\\r\""},
        {"a newline as the first character", "\"vocab\":\"ab\"", "\"vocab\":\"\\nb\""},
        {"a lone high surrogate", "\"vocab\":\"ab\"", "\"vocab\":\"a\\ud83d\""},
        {"a lone low surrogate", "\"vocab\":\"ab\"", "\"vocab\":\"a\\ude00\""},
        {"two low surrogates", "\"vocab\":\"ab\"", "\"vocab\":\"a\\udc00\\udc00\""},
        {"two low surrogates, the last ones", "\"vocab\":\"ab\"", "\"vocab\":\"a\\udfff\\udfff\""},
        {"a high surrogate and one too many", "\"vocab\":\"ab\"", "\"vocab\":\"a\\ud83d\\ue000\""},
        {"two high surrogates", "\"vocab\":\"ab\"", "\"vocab\":\"a\\ud83d\\ud83d\""},
        {"half an escape", "\"vocab\":\"ab\"", "\"vocab\":\"a\\u00e\""},
        {"an unknown escape", "\"vocab\":\"ab\"", "\"vocab\":\"a\\x62\""},
        {"a byte that is not UTF-8", "\"vocab\":\"ab\"", "\"vocab\":\"a\xff\""},
        {"half a character", "\"vocab\":\"ab\"", "\"vocab\":\"a\xc3\""},
        {"an overlong character", "\"vocab\":\"ab\"", "\"vocab\":\"a\xc1\xa2\""},
        {"a surrogate in UTF-8", "\"vocab\":\"ab\"", "\"vocab\":\"a\xed\xa0\x80\""},
        {"a code point above the last", "\"vocab\":\"ab\"", "\"vocab\":\"a\xf4\x90\x80\x80\""},
        {"a control character in a string", "\"vocab\":\"ab\"", "\"vocab\":\"a\t\""},
        {"train.seed that is no number", "\"format\"", "\"train.seed\":\"x\",\"format\""},
        {"train.lr that is not finite", "\"format\"", "\"train.lr\":\"1e999\",\"format\""},
        {"train.recipe that is none", "\"format\"", "\"train.recipe\":\"cake\",\"format\""},
        // the JSON
        {"a comma too many in a list", "[3,2]", "[3,2,]"},
        {"a comma too few in a list", "[3,2]", "[3 2]"},
        {"a comma at the beginning of a list", "[3,2]", "[,3,2]"},
        {"a comma too many in an object", "\"vocab\":\"ab\"}", "\"vocab\":\"ab\",}"},
        {"a comma too many at the end", "[400,528]}}", "[400,528]},}"},
        {"a comma at the beginning", "{\"__metadata__\"", "{,\"__metadata__\""},
        {"no colon", "\"vocab\":", "\"vocab\" "},
        {"a key without quotes", "\"wte\":", "wte:"},
        {"a key in single quotes", "\"wte\":", "'wte':"},
        {"a comment", "{\"__metadata__\"", "{/**/\"__metadata__\""},
        {"a space before the header", "{\"__metadata__\"", " {\"__metadata__\""},
        {"a list instead of the header", "{\"__metadata__\"", "[\"__metadata__\""},
        {"something behind the header", "[400,528]}}", "[400,528]}}x"},
        {"two headers", "[400,528]}}", "[400,528]}}{}"},
        {"a brace too many", "[400,528]}}", "[400,528]}}}"},
        {"a brace too few", "[400,528]}}", "[400,528]}"},
        {"a bracket too few", "[400,528]}}", "[400,528}}"},
        {"a string without end", "\"wte\"", "\"wte"},
        {"a form feed as white space", "{\"__metadata__\"", "{\f\"__metadata__\""},
        // the tensors
        {"no dtype", "\"dtype\":\"F64\",", ""},
        {"no shape", "\"shape\":[3,2],", ""},
        {"no offsets", ",\"data_offsets\":[0,48]", ""},
        {"dtype twice", "\"dtype\":\"F64\"", "\"dtype\":\"F64\",\"dtype\":\"F64\""},
        {"shape twice", "\"shape\":[3,2]", "\"shape\":[3,2],\"shape\":[3,2]"},
        {"offsets twice", "\"data_offsets\":[0,48]",
         "\"data_offsets\":[0,48],\"data_offsets\":[0,48]"},
        {"a key too many", "\"dtype\":\"F64\"", "\"strides\":[2,1],\"dtype\":\"F64\""},
        {"a dtype that is none", "\"F64\"", "\"F63\""},
        {"an empty dtype", "\"F64\"", "\"\""},
        {"a dtype with control characters", "\"F64\"", "\"\\u001b[31m\""},
        {"a dtype of a character that deletes", "\"F64\"", "\"\\u007f\""},
        {"a dtype in small letters", "\"F64\"", "\"f64\""},
        {"a dtype that is a number", "\"F64\"", "64"},
        {"integers", "\"F64\"", "\"I64\""},
        {"F32 with the bytes of F64", "\"F64\"", "\"F32\""},
        {"BF16 with the bytes of F64", "\"dtype\":\"F64\",\"shape\":[3,2]",
         "\"dtype\":\"BF16\",\"shape\":[12,2]"},
        {"a tensor that is a list", "{\"dtype\":\"F64\",\"shape\":[3,2],\"data_offsets\":[0,48]}",
         "[]"},
        {"a tensor that is null", "{\"dtype\":\"F64\",\"shape\":[3,2],\"data_offsets\":[0,48]}",
         "null"},
        {"a shape that is a number", "[3,2]", "6"},
        {"a shape of one dimension", "[3,2]", "[6]"},
        {"a shape of three dimensions", "[3,2]", "[3,2,1]"},
        {"a shape of nine dimensions", "[3,2]", "[3,2,1,1,1,1,1,1,1]"},
        {"an empty shape", "[3,2]", "[]"},
        {"the shape on its side", "[3,2]", "[2,3]"},
        {"a shape with a zero", "[3,2]", "[3,0]"},
        {"a negative shape", "[3,2]", "[-3,-2]"},
        {"a shape with a fraction", "[3,2]", "[3.0,2]"},
        {"a shape with an exponent", "[3,2]", "[3e0,2]"},
        {"a shape of strings", "[3,2]", "[\"3\",\"2\"]"},
        {"a shape with a leading zero", "[3,2]", "[03,2]"},
        {"a shape with a plus", "[3,2]", "[+3,2]"},
        {"a hexadecimal shape", "[3,2]", "[0x3,2]"},
        {"a shape whose product wraps to the right size", "[3,2]", "[9223372036854775811,2]"},
        {"a shape whose product in bytes wraps", "[3,2]", "[2305843009213693955,2]"},
        {"a shape of the largest numbers", "[3,2]", "[18446744073709551615,18446744073709551615]"},
        {"a shape beyond 64 bits", "[3,2]", "[18446744073709551619,2]"},
        {"one offset", "[0,48]", "[48]"},
        {"three offsets", "[0,48]", "[0,48,48]"},
        {"no offset at all", "[0,48]", "[]"},
        {"offsets in the wrong order", "[0,48]", "[48,0]"},
        {"negative offsets", "[0,48]", "[-48,0]"},
        {"an offset with a fraction", "[0,48]", "[0,48.5]"},
        {"a gap", "[48,96]", "[56,104]"},
        {"an overlap", "[48,96]", "[40,88]"},
        {"a gap at the beginning", "[0,48]", "[8,56]"},
        {"an end that is too early", "[0,48]", "[0,40]"},
        {"an end that is too late", "[400,528]", "[400,536]"},
        {"an end far behind the file", "[400,528]", "[400,1000000000000]"},
        {"an offset of 2^63", "[400,528]", "[9223372036854775808,9223372036854775936]"},
        {"an offset at the edge of 64 bits", "[400,528]",
         "[18446744073709551488,18446744073709551615]"},
        {"offsets whose difference wraps", "[400,528]", "[18446744073709551615,127]"},
        {"an offset beyond 64 bits", "[400,528]", "[400,18446744073709552144]"},
        {"two tensors in one place", "[48,96]", "[0,48]"},
        {"two tensors of one name", "\"wpe\"", "\"wte\""},
        {"two tensors of one name, one escaped", "\"wpe\"", "\"wt\\u0065\""},
        {"a tensor that is missing", "\"lm_head\"", "\"lm_tail\""},
        {"a layer that is missing", "\"layer0.attn_wq\"", "\"layer1.attn_wq\""},
        {"a tensor without a name", "\"lm_head\"", "\"\""},
        {"a tensor too many", "{\"__metadata__\"",
         "{\"bias\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[0,0]},\"__metadata__\""},
        {"a tensor for a resume in another shape", "{\"__metadata__\"",
         "{\"train.m.wte\":{\"dtype\":\"F64\",\"shape\":[0,2],\"data_offsets\":[0,0]},\"__metadata_"
         "_\""},
        {"the other tensor for a resume in another shape", "{\"__metadata__\"",
         "{\"train.v.wte\":{\"dtype\":\"F64\",\"shape\":[0,2],\"data_offsets\":[0,0]},\"__metadata_"
         "_\""},
        {"a random generator in two dimensions", "{\"__metadata__\"",
         "{\"train.random\":{\"dtype\":\"F64\",\"shape\":[0,2],\"data_offsets\":[0,0]},\"__"
         "metadata__\""},
        {"a random generator in another shape", "{\"__metadata__\"",
         "{\"train.random\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[0,0]},\"__metadata__"
         "\""},
    };
    static const uint64_t lengths[] = {
        0,
        1,
        2,
        7,
        8,
        100,
        100000000,
        100000001,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        0x100000000,
        INT64_MAX,
        (uint64_t)INT64_MAX + 1,
        UINT64_MAX - 8,
        UINT64_MAX - 7,
        UINT64_MAX,
    };
    static const uint64_t numbers[] = {
        0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
        0x7ff0000000000001, 0xffffffffffffffff,
    };
    Made made;
    char what[160];
    n_refused = n_not_refused = 0;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        make(&made, false, false, false);
        replace(&made, changes[i].from, changes[i].to);
        refused(&made, changes[i].what);
    }
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        make(&made, false, false, false);
        made.length = lengths[i];
        snprintf(what, sizeof what, "a header of %llu bytes", (unsigned long long)lengths[i]);
        refused(&made, what);
    }
    for (int d = -1; d <= 1; d += 2) {
        make(&made, false, false, false);
        made.length = made.header_size + (uint64_t)d;
        refused(&made, "a header's length off by one");
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        for (size_t at = 0; at < N_NUMBERS; at += N_NUMBERS - 1) {
            make(&made, false, false, false);
            put_word(made.data + 8 * at, numbers[i], 8);
            snprintf(what, sizeof what, "number %zu is %llx", at, (unsigned long long)numbers[i]);
            refused(&made, what);
        }
    }
    make(&made, true, false, false);
    put_word(made.data, 0x7f800000, 4);
    refused(&made, "infinity in F32");

    // Cut at every mark of the header: the file, which then ends there; or the header, with the data behind it.
    Made good;
    size_t n_marks = 0;
    make(&good, false, false, false);
    for (size_t i = 0; i < good.header_size; i++) {
        if (strchr("{}[]:,\"", good.header[i]) && n_marks++ % stride == 0) {
            made = good;
            made.cut = 8 + i;
            snprintf(what, sizeof what, "a file cut at byte %zu", made.cut);
            refused(&made, what);
            made = good;
            made.header_size = made.length = i;
            snprintf(what, sizeof what, "a header cut at byte %zu", i);
            refused(&made, what);
        }
    }
    // Cut within an escape, where the header ends as well.
    static const char *const escapes[] = {"{\"\\",      "{\"\\u",       "{\"\\u00",
                                          "{\"\\ud83d", "{\"\\ud83d\\", "{\"\\ud83d\\u"};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        made = good;
        strcpy(made.header, escapes[i]);
        made.header_size = made.length = strlen(escapes[i]);
        snprintf(what, sizeof what, "a header cut within an escape: %s", escapes[i]);
        refused(&made, what);
    }
    made = good;
    memcpy(made.header, "{\"\\u0\0", 6);
    made.header_size = made.length = 6;
    refused(&made, "a zero byte within an escape");
    for (size_t i = 1; i < 8; i++) {
        made = good;
        made.cut = i;
        refused(&made, "a file cut within the length");
    }
    for (size_t p = 0, at = 0; p < N_PARTS; p++) {
        for (size_t d = 0; d < 3; d++) {
            made = good;
            made.cut = 8 + good.header_size + at + d;
            snprintf(what, sizeof what, "data cut %zu bytes behind the beginning of %s", d,
                     parts[p].name);
            refused(&made, what);
        }
        at += 8 * parts[p].rows * parts[p].cols;
    }
    made = good;
    made.data_size--;
    refused(&made, "the last byte is missing");
    made.data_size += 2;
    refused(&made, "a byte too many");

    // Nesting as deep as the header has room for, wherever a value stands.
    static const char *const places[] = {
        "\"1\"",
        "[3,2]",
        "\"F64\"",
        "{\"dtype\":\"F64\",\"shape\":[3,2],\"data_offsets\":[0,48]}",
    };
    static char deep[2][6001];
    for (int i = 0; i < 6000; i++) {
        deep[0][i] = '[';
        deep[1][i] = "{\"a\":"[i % 5];
    }
    for (size_t i = 0; i < 4; i++) {
        for (int kind = 0; kind < 2; kind++) {
            made = good;
            replace(&made, places[i], deep[kind]);
            refused(&made, "deep nesting");
        }
    }
    memset(made.header, '[', 8000);
    made.header_size = made.length = 8000;
    refused(&made, "nothing but nesting");

    // A random generator whose state is none.
    for (int bad = 0; bad < 4; bad++) {
        static const double values[] = {-1, 4294967296.0, 0.5, 625};
        made = good;
        char entry[160];
        snprintf(entry, sizeof entry,
                 "[400,528]},\"train.random\":{\"dtype\":\"F64\",\"shape\":[627],"
                 "\"data_offsets\":[528,%d]}}",
                 528 + 8 * 627);
        replace(&made, "[400,528]}}", entry);
        for (int i = 0; i < 627; i++) {
            put_number(&made, i == (bad == 3 ? 624 : 5) ? values[bad] : 0, false);
        }
        refused(&made, "a random generator out of range");
    }

    char saw[64];
    snprintf(what, sizeof what, "malformed files are refused with a reason%s", with);
    snprintf(saw, sizeof saw, "%d refused, %d not", n_refused, n_not_refused);
    expect(n_not_refused == 0 && n_refused >= 100, what, "at least 100 refused, and none not", saw);
    printf("# %d malformed files%s\n", n_refused, with);
}

int main(void)
{
    char command[1024];
    const char *cc = getenv("CC") && *getenv("CC") ? getenv("CC") : "cc";
    snprintf(command, sizeof command, "mkdir -p %s", folder);
    if (system(command) != 0) {
        return 1;
    }
    test_reading();
    test_accepted();
    test_refused("", all_of_it() ? 1 : 10);
    if (!all_of_it()) {
        return finish();
    }

    snprintf(
        command, sizeof command,
        "%s -std=c11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all "
        "-o %s/microgpt microgpt.c autograd.c -lm 2>%s/err && %s/microgpt --version >%s/out 2>&1",
        cc, folder, folder, folder, folder);
    if (system(command) == 0) {
        program = "tests/build/safetensors/microgpt";
        test_accepted();
        test_refused(", under the sanitizers", 10);
    } else {
        printf("skip - malformed files under the sanitizers: %s has none\n", cc);
    }
    return finish();
}
