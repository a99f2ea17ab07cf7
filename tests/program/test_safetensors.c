/* Model files, seen from outside: nothing here is shared with the program.
 *
 *   reading      a saved file opened by a reader of its own, and the loss computed from it in plain loops
 *   accepted     files that say the same thing in another way
 *   refused      malformed files, made by a generator that knows the format
 */
#define _XOPEN_SOURCE 700
#include "plain_model.h"

#include <inttypes.h>

#define FOLDER "tests/build/safetensors"
#define MADE FOLDER "/made.safetensors"

/* ------------------------------------------------------------------------------------------------------------------
 * Reading: two layers, two heads.
 */
static void test_reading(void)
{
    static const char text[] = "bca\n\"\\\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 a\nabcabc\n";
    write_file(FOLDER "/text", text, sizeof text - 1);
    free(output_of("--data " FOLDER
                   "/text --steps 60 --n-layer 2 --n-embd 8 --n-head 2 --block-size 6 "
                   "--activation relu2 -q --save " FOLDER "/two 2>&1"));
    PlainModel m = open_model(FOLDER "/two");
    check(m.bytes[8] == '{' && (8 + m.n_header) % 8 == 0,
          "the header begins with a brace and ends at a multiple of eight: %zu bytes", m.n_header);
    static const char *const metadata[] = {
        "'__metadata__':{",     "'format':'microgpt'",
        "'n_layer':'2'",        "'n_embd':'8'",
        "'n_head':'2'",         "'block_size':'6'",
        "'activation':'relu2'", "'vocab':' \\'\\\\abc\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'",
    };
    for (size_t i = 0; i < sizeof metadata / sizeof metadata[0]; i++) {
        char quoted[96];
        check(strstr(m.bytes + 8, with_quotes(metadata[i], quoted, sizeof quoted)) != NULL,
              "the metadata have %s", quoted);
    }
    enum { E = 8, B = 6 };
    const struct {
        const Tensor *t;
        size_t rows, cols;
    } shapes[] = {
        {&m.wte, 10, E},  {&m.wpe, B, E},        {&m.lm_head, 10, E},
        {&m.wq[1], E, E}, {&m.wk[1], E, E},      {&m.wv[1], E, E},
        {&m.wo[1], E, E}, {&m.fc1[1], 4 * E, E}, {&m.fc2[1], E, 4 * E},
    };
    bool right = m.n_layer == 2;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        right = right && shapes[i].t->rows == shapes[i].rows && shapes[i].t->cols == shapes[i].cols;
    }
    check(right, "every tensor has its shape");
    check_size("behind the tensors are Adam's means and the random generator",
               3 * 8 * m.n_numbers + 8 * 627, m.n_bytes - 8 - m.n_header);

    // "bca", " a" behind the three others, cut to the block, and so on: the tokens by hand, 9 is BOS
    static const uint32_t docs[4][8] = {
        {9, 4, 5, 3, 9}, {9, 1, 2, 9}, {9, 6, 7, 8, 0, 3, 9}, {9, 3, 4, 5, 3, 4, 5}};
    static const size_t lengths[4] = {4, 3, 6, 6};
    double expected = 0, loss = 0, tokens = 0, n_docs = 0, bits = 0, perplexity = 0;
    for (int i = 0; i < 4; i++) expected += plain_loss(&m, docs[i], lengths[i]) / 19;
    char *out = output_of("eval " FOLDER "/two --data " FOLDER "/text -q");
    int got =
        sscanf(out, "docs %lf\ntokens %lf\nloss %lf\nbits per character %lf\nperplexity %lf\n",
               &n_docs, &tokens, &loss, &bits, &perplexity);
    check(got == 5 && n_docs == 4 && tokens == 19, "eval: 4 documents of 19 tokens: %s", out);
    check_near("eval: the loss of plain loops", expected, loss, 1e-12);
    check_near("in bits", expected / log(2), bits, 1e-12);
    check_near("as perplexity", exp(expected), perplexity, 1e-11);
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

// In the headers here, ' stands for a double quote.
#define METADATA                                                                                   \
    "'__metadata__':{'format':'microgpt','n_layer':'1','n_embd':'2','n_head':'1',"                 \
    "'block_size':'3','activation':'relu','vocab':'ab'}"

typedef struct {
    char header[8192];
    unsigned char data[8192];
    size_t header_size, data_size;
    uint64_t length;  // as the first eight bytes say it
    size_t cut;       // the file's size, if it is cut
} Made;

static void put_word(unsigned char *to, uint64_t word, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = (unsigned char)(word >> 8 * i);
}

static void put_number(Made *made, double x, bool narrow)
{
    float f = (float)x;
    uint64_t bits = 0;
    uint32_t bits32;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&bits32, &f, sizeof bits32);
    put_word(made->data + made->data_size, narrow ? bits32 : bits, narrow ? 4 : 8);
    made->data_size += narrow ? 4 : 8;
}

static void set_header(Made *made, const char *text)
{
    with_quotes(text, made->header, sizeof made->header);
    made->length = made->header_size = strlen(made->header);
}

// The good file. Its tensors may be narrow, its parts in the opposite order, its metadata at the end.
static Made good_file(bool narrow, bool backwards, bool metadata_last)
{
    static Made made;
    static char text[sizeof made.header];
    memset(&made, 0, sizeof made);
    char *at = text + sprintf(text, "{%s", metadata_last ? "" : METADATA);
    for (size_t p = 0; p < N_PARTS; p++) {
        size_t i = backwards ? N_PARTS - 1 - p : p, first = 0, begin = made.data_size;
        for (size_t k = 0; k < i; k++) first += parts[k].rows * parts[k].cols;
        for (size_t k = first; k < first + parts[i].rows * parts[i].cols; k++) {
            // numbers that are the same in F32 and F64
            put_number(&made, (double)((int)(k * 37 % 64) - 32) / 16, narrow);
        }
        at += sprintf(at, "%s'%s':{'dtype':'%s','shape':[%zu,%zu],'data_offsets':[%zu,%zu]}",
                      at == text + 1 ? "" : ",", parts[i].name, narrow ? "F32" : "F64",
                      parts[i].rows, parts[i].cols, begin, made.data_size);
    }
    sprintf(at, "%s%s}", metadata_last ? "," : "", metadata_last ? METADATA : "");
    set_header(&made, text);
    return made;
}

// Replaces a piece of the header, which must be there. Its quotes are ' as well; ` stands for '.
static void replace(Made *made, const char *from, const char *to)
{
    static char quoted[2][sizeof made->header], text[2 * sizeof made->header];
    char *at = strstr(made->header, with_quotes(from, quoted[0], sizeof quoted[0]));
    if (!at) {
        check(false, "the generator: expected %s in the header, saw %s", from, made->header);
        exit(finish());
    }
    *at = '\0';
    snprintf(text, sizeof text, "%s%s%s", made->header,
             with_quotes(to, quoted[1], sizeof quoted[1]), at + strlen(quoted[0]));
    memcpy(made->header, text, sizeof made->header);
    made->length = made->header_size = strlen(made->header);
}

// Samples from the file. Returns what it prints, standard error included.
static char *sample_made(const Made *made, int *status)
{
    static char bytes[8 + sizeof made->header + sizeof made->data];
    size_t n = 8 + made->header_size + made->data_size;
    put_word((unsigned char *)bytes, made->length, 8);
    memcpy(bytes + 8, made->header, made->header_size);
    memcpy(bytes + 8 + made->header_size, made->data, made->data_size);
    write_file(MADE, bytes, made->cut ? made->cut : n);
    return run_program("sample " MADE " --samples 30 --temperature 2 2>&1", status);
}

static void test_accepted(void)
{
    static const struct {
        const char *what, *from, *to;
    } changes[] = {
        {"more metadata", "'format':'microgpt'", "'note':'x','format':'microgpt','date':''"},
        {"white space and padding", "{'__metadata__':{", "{ \n\t'__metadata__' : \r\n { "},
        {"escapes", "'vocab':'ab'", "'voc\\u0061b':'\\u0061b'"},
        {"a tensor for a resume that no one knows", "{'__metadata__'",
         "{'train.x':{'dtype':'F32','shape':[3,0],'data_offsets':[0,0]},'__metadata__'"},
        {"keys of a tensor in another order", "'dtype':'F64','shape':[3,2],'data_offsets':[0,48]",
         "'data_offsets':[0,48],'shape':[3,2],'dtype':'F64'"},
        {"part of what a resume needs", "'format'", "'train.seed':'7','train.steps':'18','format'"},
    };
    int status;
    Made made = good_file(false, false, false);
    char *names = sample_made(&made, &status), what[128];
    check(status == 0 && strlen(names) > 30, "a file made by hand is sampled: %.9s", names);
    for (int variant = 1; variant < 8; variant++) {
        made = good_file(variant & 1, variant & 2, variant & 4);
        char *out = sample_made(&made, &status);
        snprintf(what, sizeof what, "the same names from a file%s%s%s",
                 variant & 1 ? " in F32" : "", variant & 2 ? " in the opposite order" : "",
                 variant & 4 ? " with the metadata last" : "");
        check(status == 0 && strcmp(out, names) == 0, "%s", what);
        free(out);
    }
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        made = good_file(false, false, false);
        replace(&made, changes[i].from, changes[i].to);
        char *out = sample_made(&made, &status);
        check(status == 0 && strcmp(out, names) == 0, "the same names from a file with %s",
              changes[i].what);
        free(out);
    }
    made = good_file(false, false, false);
    replace(&made, "'vocab':'ab'", "'vocab':'\\ud83d\\ude00\\u00e9'");
    char *out = sample_made(&made, &status), *at = out;
    bool same = status == 0;
    for (size_t i = 0; same && names[i]; i++) {
        // a becomes a character of four bytes, b one of two
        const char *c = names[i] == 'a' ? "\xf0\x9f\x98\x80" : names[i] == 'b' ? "\xc3\xa9" : "\n";
        same = strncmp(at, c, strlen(c)) == 0;
        at += strlen(c);
    }
    check(same, "characters may be written as two escapes");
    free(out);
    free(names);
}

static size_t n_refused;

// The program ends with status 1, one line that names the file and a reason, and no sample.
static void refused(const Made *made, const char *what)
{
    static const char begin[] = "microgpt: " MADE ": ";
    int status;
    char *text = sample_made(made, &status);
    size_t n = strlen(text);
    bool ok = status == 1 && strncmp(text, begin, strlen(begin)) == 0 && n > strlen(begin) + 5 &&
              strchr(text, '\n') == text + n - 1;
    for (size_t i = 0; i + 1 < n; i++) ok = ok && text[i] >= ' ' && text[i] <= '~';
    n_refused += ok;
    if (!ok) check(false, "%s: expected status 1 and one line, saw %d: %.300s", what, status, text);
    free(text);
}

// Pieces of the header, each replaced by another one.
static void test_headers(void)
{
    static const char none[] = "";
    static const struct {
        const char *from, *to[24];
    } changes[] = {
        // the configuration
        {METADATA ",", {none}},
        {METADATA,
         {"'__metadata__':{}", METADATA "," METADATA, METADATA ",'__metadata__':{'x':'y'}",
          METADATA ",'__metadata__':{}", "'__metadata__':[]", "'__metadata__':'format'"}},
        {"'format':'microgpt',", {none}},
        {"'n_layer':'1',", {none}},
        {"'n_embd':'2',", {none}},
        {"'n_head':'1',", {none}},
        {"'block_size':'3',", {none}},
        {"'activation':'relu',", {none}},
        {",'vocab':'ab'", {none}},
        {"'microgpt'", {"'pt'"}},
        {"'n_layer':'1'",
         {"'n_layer':1", "'n_layer':null", "'n_layer':{}", "'n_layer':'1','n_layer':'1'",
          "'n_layer':'1','n_laye\\u0072':'1'", "'n_layer':'0'", "'n_layer':'2'", "'n_layer':'-1'",
          "'n_layer':'1.0'", "'n_layer':'18446744073709551615'", "'n_layer':'18446744073709551617'",
          "'n_layer':'1048576'", "'n_layer':''", "'n_layer':' 1'"}},
        {"'n_embd':'2'", {"'n_embd':'3'", "'n_embd':'1'", "'n_embd':'1048576'"}},
        {"'n_head':'1'", {"'n_head':'0'", "'n_head':'3'"}},
        {"'block_size':'3'", {"'block_size':'4'", "'block_size':'1048576'"}},
        {"'relu'", {"'gelu'"}},
        {"'format'",
         {"'train.seed':'x','format'", "'train.lr':'1e999','format'",
          "'train.recipe':'cake','format'"}},
        // the characters: none, twice, too many, too few, line ends, surrogates, escapes, UTF-8
        {"'ab'",
         {"''", "'aa'", "'a\\u0061'", "'abc'", "'a'", "'a\\u0000'", "'a\\n'", "'a\\r'", "'\\nb'"}},
        {"'ab'",
         {"'a\\ud83d'", "'a\\ude00'", "'a\\udc00\\udc00'", "'a\\udfff\\udfff'", "'a\\ud83d\\ue000'",
          "'a\\ud83d\\ud83d'", "'a\\u00e'", "'a\\x62'"}},
        {"'ab'",
         {"'a\xff'", "'a\xc3'", "'a\xc1\xa2'", "'a\xed\xa0\x80'", "'a\xf4\x90\x80\x80'", "'a\t'"}},
        // the JSON
        {"'vocab':'ab'}", {"'vocab':'ab',}"}},
        {"[400,528]}}",
         {"[400,528]},}", "[400,528]}}x", "[400,528]}}{}", "[400,528]}}}", "[400,528]}",
          "[400,528}}"}},
        {"{'__metadata__'",
         {"{,'__metadata__'", "{/**/'__metadata__'", " {'__metadata__'", "['__metadata__'",
          "{\f'__metadata__'"}},
        {"'vocab':", {"'vocab' "}},
        {"'wte':", {"wte:", "`wte`:"}},
        {"'wte'", {"'wte"}},
        // the tensors
        {"'dtype':'F64',", {none}},
        {"'shape':[3,2],", {none}},
        {",'data_offsets':[0,48]", {none}},
        {"'dtype':'F64'", {"'dtype':'F64','dtype':'F64'", "'strides':[2,1],'dtype':'F64'"}},
        {"'shape':[3,2]", {"'shape':[3,2],'shape':[3,2]"}},
        {"'data_offsets':[0,48]", {"'data_offsets':[0,48],'data_offsets':[0,48]"}},
        {"'F64'", {"'F63'", "''", "'\\u001b[31m'", "'\\u007f'", "'f64'", "64", "'I64'", "'F32'"}},
        {"'dtype':'F64','shape':[3,2]", {"'dtype':'BF16','shape':[12,2]"}},
        {"{'dtype':'F64','shape':[3,2],'data_offsets':[0,48]}", {"[]", "null"}},
        {"[3,2]",
         {"[3,2,]", "[3 2]", "[,3,2]", "6", "[6]", "[3,2,1]", "[3,2,1,1,1,1,1,1,1]", "[]", "[2,3]",
          "[3,0]", "[-3,-2]", "[3.0,2]", "[3e0,2]", "['3','2']", "[03,2]", "[+3,2]", "[0x3,2]"}},
        {"[3,2]",  // products that wrap around, in numbers and in bytes
         {"[9223372036854775811,2]", "[2305843009213693955,2]", "[18446744073709551619,2]",
          "[18446744073709551615,18446744073709551615]"}},
        {"[0,48]",
         {"[48]", "[0,48,48]", "[]", "[48,0]", "[-48,0]", "[0,48.5]", "[8,56]", "[0,40]"}},
        {"[48,96]", {"[56,104]", "[40,88]", "[0,48]"}},
        {"[400,528]",
         {"[400,536]", "[400,1000000000000]", "[9223372036854775808,9223372036854775936]",
          "[18446744073709551488,18446744073709551615]", "[18446744073709551615,127]",
          "[400,18446744073709552144]"}},
        {"'wpe'", {"'wte'", "'wt\\u0065'"}},
        {"'lm_head'", {"'lm_tail'", "''"}},
        {"'layer0.attn_wq'", {"'layer1.attn_wq'"}},
        {"{",
         {"{'bias':{'dtype':'F64','shape':[0],'data_offsets':[0,0]},",
          "{'train.m.wte':{'dtype':'F64','shape':[0,2],'data_offsets':[0,0]},",
          "{'train.v.wte':{'dtype':'F64','shape':[0,2],'data_offsets':[0,0]},",
          "{'train.random':{'dtype':'F64','shape':[0,2],'data_offsets':[0,0]},",
          "{'train.random':{'dtype':'F64','shape':[0],'data_offsets':[0,0]},"}},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        for (const char *const *to = changes[i].to; *to; to++) {
            char what[512];
            Made made = good_file(false, false, false);
            replace(&made, changes[i].from, *to);
            snprintf(what, sizeof what, "%s in place of %s", *to, changes[i].from);
            refused(&made, what);
        }
    }
}

// Lengths of the header that are none, numbers that are not finite, random generators out of range.
static void test_values(void)
{
    const Made good = good_file(false, false, false);
    const size_t n = good.header_size;
    const uint64_t lengths[] = {
        0,          1,          7,         100,        100000000,      100000001,
        UINT32_MAX, 1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX - 7, UINT64_MAX,
        n - 1,      n + 1};
    static const uint64_t numbers[] = {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
                                       0x7ff0000000000001, 0xffffffffffffffff};
    static const double words[] = {-1, 4294967296.0, 0.5};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        Made made = good;
        made.length = lengths[i];
        refused(&made, "a header's length");
    }
    for (size_t i = 0; i < 2 * sizeof numbers / sizeof numbers[0]; i++) {
        Made made = good;
        put_word(made.data + (i % 2 ? 8 * (N_NUMBERS - 1) : 0), numbers[i / 2], 8);
        refused(&made, "a number that is not finite");
    }
    Made narrow = good_file(true, false, false);
    put_word(narrow.data, 0x7f800000, 4);
    refused(&narrow, "infinity in F32");
    for (size_t bad = 0; bad < 4; bad++) {
        Made made = good;
        replace(
            &made, "[400,528]}}",
            "[400,528]},'train.random':{'dtype':'F64','shape':[627],'data_offsets':[528,5544]}}");
        for (size_t i = 0; i < 627; i++) {
            put_number(&made,
                       bad == 3 && i == 624 ? 625
                       : bad < 3 && i == 5  ? words[bad]
                                            : 0,
                       false);
        }
        refused(&made, "a random generator out of range");
    }
}

// The FNV-1a hash of all numbers is accepted; a bit flipped in any of them is then found.
static void test_checksum(void)
{
    int status;
    char metadata[64];
    uint64_t hash = 0xcbf29ce484222325;
    Made made = good_file(false, false, false);
    for (size_t i = 0; i < made.data_size; i++) hash = (hash ^ made.data[i]) * 0x100000001b3;
    snprintf(metadata, sizeof metadata, "'checksum':'fnv1a64:%016" PRIx64 "','format'", hash);
    replace(&made, "'format'", metadata);
    free(sample_made(&made, &status));
    check(status == 0, "a checksum that fits: expected status 0, saw %d", status);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        Made flipped = made;
        flipped.data[8 * i + i % 6] ^= (unsigned char)(1 << i % 8);
        refused(&flipped, "a flipped bit");
    }
}

// Cut at every mark of the header (or at every so many-th): the file, which then ends there; or the header, with the data
// behind it. Then within an escape, within the length, within the data; and a byte too many.
static void test_cuts(size_t stride)
{
    const Made good = good_file(false, false, false);
    Made made;
    size_t n_marks = 0, data = 8 + good.header_size;
    for (size_t i = 0; i < good.header_size; i++) {
        if (!strchr("{}[]:,\"", good.header[i]) || n_marks++ % stride) continue;
        made = good;
        made.cut = 8 + i;
        refused(&made, "a file cut within the header");
        made = good;
        made.header_size = made.length = i;
        refused(&made, "a header cut");
    }
    static const char *const escapes[] = {"{'\\",      "{'\\u",       "{'\\u00",
                                          "{'\\ud83d", "{'\\ud83d\\", "{'\\ud83d\\u"};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        made = good;
        set_header(&made, escapes[i]);
        refused(&made, "a header cut within an escape");
    }
    made.length = ++made.header_size;
    refused(&made, "a zero byte within an escape");
    const size_t cuts[] = {1, 7, data, data + 1, data + 48, data + 400, data + 527};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        made = good;
        made.cut = cuts[i];
        refused(&made, "a file cut within the length or the data");
    }
    made = good;
    made.data_size++;
    refused(&made, "a byte too many");
}

// Nesting as deep as the header has room for, wherever a value stands.
static void test_nesting(void)
{
    static const char *const places[] = {"'1'", "[3,2]", "'F64'",
                                         "{'dtype':'F64','shape':[3,2],'data_offsets':[0,48]}"};
    static char deep[2][6001];
    for (size_t i = 0; i < 6000; i++) {
        deep[0][i] = '[';
        deep[1][i] = "{'a':"[i % 5];
    }
    for (size_t i = 0; i < 8; i++) {
        Made made = good_file(false, false, false);
        replace(&made, places[i / 2], deep[i % 2]);
        refused(&made, "deep nesting");
    }
    Made made = good_file(false, false, false);
    set_header(&made, deep[0]);
    refused(&made, "nothing but nesting");
}

int main(void)
{
    if (system("mkdir -p " FOLDER) != 0) return 1;
    test_reading();
    test_accepted();
    test_headers();
    test_values();
    test_checksum();
    test_cuts(all_of_it() ? 1 : 10);
    test_nesting();
    check(n_refused >= 250, "%zu malformed files are refused with a reason", n_refused);
    return finish();
}
