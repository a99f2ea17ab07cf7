/* Any bytes as a file of documents: they are read, or refused in one line. Tokens made of them can
 * be turned back into the text.
 */
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/run/job.h"
#include "fuzz.h"

static void check_documents(const Documents *all, size_t size)
{
    size_t longest = 0, total = 0;
    PROMISE(all->n > 0 && all->n <= size);
    for (size_t i = 0; i < all->n; i++) {
        Document doc = all->list[i];
        PROMISE(doc.length > 0);
        PROMISE(doc.tokens >= all->text && (size_t)(doc.tokens - all->text) + doc.length <= size);
        PROMISE(!is_space(doc.tokens[0]) && !is_space(doc.tokens[doc.length - 1]));
        for (size_t k = 0; k < doc.length; k++) {
            char bytes[4];
            size_t used = 0, length = encode_utf8(doc.tokens[k], bytes);
            PROMISE(doc.tokens[k] != '\n' && doc.tokens[k] != '\r' && doc.tokens[k] != 0);
            PROMISE(decode_utf8((const unsigned char *)bytes, length, &used) ==
                    (int32_t)doc.tokens[k]);
            PROMISE(used == length);
        }
        longest = doc.length > longest ? doc.length : longest;
        total += doc.length;
    }
    PROMISE(longest == all->longest);
    PROMISE(total <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Documents all = {0};
    Tokenizer tokenizer = {0};
    bool ok = split_documents(data, size, &all, "input");
    check_failure(ok);
    if (ok) {
        check_documents(&all, size);
        uint32_t *codes = malloc((size + 1) * sizeof *codes);
        PROMISE(codes);
        size_t n = 0;
        for (size_t i = 0; i < all.n; i++) {
            memcpy(codes + n, all.list[i].tokens, all.list[i].length * sizeof *codes);
            n += all.list[i].length;
        }
        PROMISE(n == all.n_text);
        if (new_tokenizer(&tokenizer)) {
            find_characters(&tokenizer, &all);
            PROMISE(encode(&tokenizer, all.text, all.n_text) == all.n_text);
            PROMISE(tokenizer.BOS > 0 && tokenizer.vocab_size == tokenizer.BOS + 1 &&
                    tokenizer.BOS <= n);
            for (size_t i = 1; i < tokenizer.BOS; i++) {
                PROMISE(tokenizer.uchars[i - 1] < tokenizer.uchars[i]);
            }
            n = 0;
            for (size_t i = 0; i < all.n; i++) {
                for (size_t k = 0; k < all.list[i].length; k++, n++) {
                    PROMISE(all.list[i].tokens[k] < tokenizer.BOS);
                    PROMISE(tokenizer.uchars[all.list[i].tokens[k]] == codes[n]);
                }
            }
        }
        free(codes);
    }
    free_tokenizer(&tokenizer);
    free(all.list);
    free(all.text);
    return 0;
}
