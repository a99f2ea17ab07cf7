/* The largest vocabulary: every character there is, in one text. */
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/run/job.h"
#include "../test.h"

int main(void)
{
    enum { MOST = 0x110000 };
    unsigned char *text = malloc(4 * (size_t)MOST);
    Documents all = {0};
    Tokenizer tokenizer = {0};
    size_t n = 0;
    for (uint32_t code = 1; text && code < MOST; code++) {
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        if (!surrogate && code != '\n' && code != '\r') {
            n += encode_utf8(code, (char *)text + n);
        }
    }
    bool ok = text && split_documents(text, n, &all, "all characters") && new_tokenizer(&tokenizer);
    if (ok) {
        find_characters(&tokenizer, &all);
        ok = encode(&tokenizer, all.text, all.n_text) == all.n_text;
    }
    check(ok, "a text of every character is read%s%s", ok ? "" : ": expected success, saw ",
          failure.text);
    check_size("each is in the vocabulary, and the mark beside", all.longest + 1,
               tokenizer.vocab_size);
    check(tokenizer.vocab_size > 1112000,
          "the vocabulary has %zu tokens: expected more than 1112000", tokenizer.vocab_size);
    size_t in_order = 1;
    for (size_t i = 1; i < tokenizer.BOS; i++) {
        in_order += tokenizer.uchars[i - 1] < tokenizer.uchars[i];
    }
    check_size("in the order of code points", tokenizer.BOS, in_order);
    free_tokenizer(&tokenizer);
    free(all.list);
    free(all.text);
    free(text);
    return finish();
}
