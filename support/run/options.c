/* options.c: the table of options, their defaults, and their values as text and back. */
#define _XOPEN_SOURCE 700
#include "options.h"
#include "../engine/faster.h"
#include "../base/output.h"
#include "../base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const Range ranges[] = {
    [COUNT] = {0, 0x1p53},
    [POSITIVE] = {1, 0x1p53},
    [SIZE] = {1, 0x1p20},
    [FEW] = {1, 1024},
    [UINT64] = {0, 0x1p64},
    [REAL] = {0, 1e300},
    [FRACTION] = {0, 0.9999999999999999},
};

const Option options[] = {
    {"data", "FILE", 0, TRAIN | EVAL | HEADS, TEXT, NOT_STORED, FIELD(data),
     "documents, one per line, UTF-8; - is standard input (default: the shipped names)"},
    {"new", NULL, 0, SAMPLE, FLAG, NOT_STORED, FIELD(new),
     "only names that are not in the data, each once"},
    {"data", "FILE", 0, SAMPLE, TEXT, NOT_STORED, FIELD(data),
     "the names that --new leaves out (default: the shipped names)"},
    {"data", "FILE", 0, PAGE, TEXT, NOT_STORED, FIELD(data),
     "documents the page trains on (default: the shipped names)"},
    {"docs", "N", 0, EVAL, POSITIVE, NOT_STORED, FIELD(docs),
     "use only the first N documents (default: all)"},
    {"docs", "N", 0, HEADS, POSITIVE, NOT_STORED, FIELD(docs),
     "use only the first N documents (default: 1000 that --seed draws)"},
    {"tsv", NULL, 0, HEADS, FLAG, NOT_STORED, FIELD(tsv),
     "print tab-separated values in full precision"},
    {"votes", NULL, 0, HEADS, FLAG, NOT_STORED, FIELD(votes),
     "who voted for each character of WORD: itself, heads, MLP units"},
    {"recipe", "microgpt|lesson", 0, TRAIN | CHECK, NAME, OF_RUN, FIELD(recipe),
     "which defaults to start from"},
    {"steps", "N", 0, TRAIN, COUNT, OF_RUN | FREE, CONFIG(steps), "training steps"},
    {"batch", "N", 0, TRAIN, SIZE, OF_RUN | OPTIONAL, CONFIG(batch), "documents per step"},
    {"holdout", "N", 0, TRAIN, COUNT, OF_RUN | OPTIONAL, CONFIG(holdout),
     "keep N documents, chosen by the seed, out of training; measure their loss"},
    {"holdout", NULL, 0, EVAL, FLAG, NOT_STORED, FIELD(only_held_out),
     "use only the documents that training kept out"},
    {"threads", "N", 0, TRAIN | EVAL | HEADS, FEW, NOT_STORED, FIELD(threads),
     "threads to use; same result for every N (default: one per processor)"},
    {"scalar", NULL, 0, TRAIN | SAMPLE | EVAL | HEADS | CHECK, FLAG, NOT_STORED, FIELD(scalar),
     "record every + and *, and let nothing but microgpt.c and autograd.c compute"},
    {"seed", "N", 0, TRAIN, UINT64, OF_RUN, CONFIG(seed), "seed of the random numbers"},
    {"seed", "N", 0, SAMPLE, UINT64, NOT_STORED, CONFIG(seed),
     "seed of the random numbers (default: continue from training)"},
    {"seed", "N", 0, HEADS, UINT64, NOT_STORED, CONFIG(seed),
     "which documents to draw (default: the model's seed)"},
    {"n-layer", "N", 0, TRAIN | CHECK, SIZE, OF_MODEL, CONFIG(n_layer), "number of layers"},
    {"n-embd", "N", 0, TRAIN | CHECK, SIZE, OF_MODEL, CONFIG(n_embd),
     "width of the model; a multiple of --n-head"},
    {"n-head", "N", 0, TRAIN | CHECK, SIZE, OF_MODEL, CONFIG(n_head), "attention heads per layer"},
    {"block-size", "N", 0, TRAIN | CHECK, SIZE, OF_MODEL, CONFIG(block_size),
     "context length in characters; longer documents are cut"},
    {"lr", "X", 0, TRAIN | CHECK, REAL, OF_RUN | FREE, CONFIG(lr),
     "learning rate at the first step"},
    {"beta1", "X", 0, TRAIN | CHECK, FRACTION, OF_RUN | FREE, CONFIG(beta1),
     "Adam: decay rate of the mean gradient"},
    {"beta2", "X", 0, TRAIN | CHECK, FRACTION, OF_RUN | FREE, CONFIG(beta2),
     "Adam: decay rate of the mean squared gradient"},
    {"weight-decay", "X", 0, TRAIN | CHECK, REAL, OF_RUN | FREE | OPTIONAL, CONFIG(weight_decay),
     "decoupled, as in AdamW: a step also takes rate * X * p off a parameter p"},
    {"init-std", "X", 0, TRAIN | CHECK, REAL, OF_RUN, CONFIG(init_std),
     "standard deviation of the initial parameters"},
    {"activation", "relu|relu2", 0, TRAIN | CHECK, NAME, OF_MODEL, CONFIG(activation),
     "activation in the MLP; relu2 is relu squared"},
    {"schedule", "linear|cosine", 0, TRAIN | CHECK, NAME, OF_RUN | FREE, CONFIG(schedule),
     "how the learning rate falls to 0"},
    {"samples", "N", 0, TRAIN | SAMPLE, COUNT, NOT_STORED, CONFIG(samples),
     "how many names to print"},
    {"temperature", "X", 0, TRAIN | SAMPLE, REAL, NOT_STORED, CONFIG(temperature),
     "higher is more surprising; 0 takes the likeliest character"},
    {"prompt", "TEXT", 0, TRAIN | SAMPLE, TEXT, NOT_STORED, FIELD(prompt),
     "text that every name begins with"},
    {"save", "FILE", 0, TRAIN, TEXT, NOT_STORED, FIELD(save),
     "save the model here, at the end and when interrupted"},
    {"save-every", "N", 0, TRAIN, POSITIVE, NOT_STORED, FIELD(save_every),
     "also save every N steps (default: off)"},
    {"resume", "FILE", 0, TRAIN, TEXT, NOT_STORED, FIELD(resume),
     "continue the run saved here, with its options"},
    {"log", "FILE", 0, TRAIN, TEXT, NOT_STORED, FIELD(log),
     "write step,loss,lr as CSV, one row per step; with --holdout also held_out"},
    {"log", "FILE", 0, PAGE, TEXT, NOT_STORED, FIELD(log), "log of the run, to plot its loss"},
    {"quiet", NULL, 'q', ~0u, FLAG, NOT_STORED, FIELD(quiet),
     "no progress, no step lines, few notes"},
    {"help", NULL, 'h', ~0u, FLAG, NOT_STORED, FIELD(help), "print this help and exit"},
    {"version", NULL, 0, ~0u, FLAG, NOT_STORED, FIELD(version), "print the version and exit"},
    {"step", NULL, 0, 0, COUNT, OF_RUN, FIELD(step), NULL},
    {"loss", NULL, 0, 0, REAL, OF_RUN | OPTIONAL, FIELD(loss), NULL},
    {"fingerprint", NULL, 0, 0, UINT64, OF_RUN, FIELD(fingerprint), NULL},
};
const size_t N_OPTIONS = sizeof options / sizeof options[0];
_Static_assert(sizeof options / sizeof options[0] <= 64, "Options.given has a bit for each");

// A build that is not for speed does not prove its fast ways, so it does not use them.
Options default_options(int recipe)
{
    return (Options){.recipe = recipe, .config = recipes[recipe], .scalar = !have_faster};
}

bool check_options(const Options *o, const char *file)
{
    const Config *config = &o->config;
    if (config->n_embd % config->n_head == 0) return true;
    if (file) return fail("%s: metadata: n_embd is not a multiple of n_head", file);
    return usage("--n-embd %" PRIu64 " is not a multiple of --n-head %" PRIu64, config->n_embd,
                 config->n_head);
}

static char problem[256];  // of the latest value
#define PROBLEM(...) (snprintf(problem, sizeof problem, __VA_ARGS__), problem)

// A whole number within the range of its kind.
static const char *set_whole_number(uint64_t *field, const Option *option, const char *value)
{
    double min = ranges[option->kind].min;
    uint64_t max = option->kind == UINT64 ? UINT64_MAX : (uint64_t)ranges[option->kind].max;
    char *end;
    errno = 0;
    uint64_t n = strtoull(value, &end, 10);
    bool whole = *value && !*end && !value[strspn(value, "-0123456789")];
    bool in_range = errno != ERANGE && !(*value == '-' && n) && (double)n >= min && n <= max;
    if (!whole && end > value && strcmp(end, "%") == 0) {
        return PROBLEM("not a whole number, but a share; how many? For 100: --%s 100",
                       option->name);
    }
    if (!whole) return "not a whole number";
    if (!in_range) return PROBLEM("out of range: %.0f to %" PRIu64, min, max);
    *field = n;
    return NULL;
}

static const char *set_number(double *field, const Option *option, const char *value)
{
    double min = ranges[option->kind].min, max = ranges[option->kind].max;
    char *end;
    double x = strtod(value, &end);
    bool number = *value && !*end && !value[strspn(value, "+-.0123456789eE")];
    if (!number) return "not a number";
    if (!isfinite(x) || x < min || x > max) {
        return PROBLEM("out of range: %.16g to %.16g", min, max);
    }
    *field = x;
    return NULL;
}

const char *set_option(Options *o, const Option *option, const char *value)
{
    void *field = (char *)o + option->offset;
    if (option->kind >= REAL) return set_number(field, option, value);
    if (option->kind > NAME) return set_whole_number(field, option, value);
    if (option->kind == NAME) {
        int i = find_name(option->argument, value);
        if (i < 0) return PROBLEM("not one of %s", option->argument);
        *(int *)field = i;
    } else if (option->kind == FLAG) {
        *(bool *)field = !value || *value;  // a model file has "1" or nothing
    } else {
        *(const char **)field = value;
    }
    return NULL;
}

void copy_option(Options *to, const Options *from, const Option *option)
{
    size_t at = option->offset;
    size_t size = option->kind > NAME    ? 8
                  : option->kind == FLAG ? sizeof(bool)
                  : option->kind == TEXT ? sizeof(char *)
                                         : sizeof(int);
    memcpy((char *)to + at, (const char *)from + at, size);
}

// A real number gets as many digits as it takes to read the same number back.
void option_text(const Option *option, const Options *o, char *text, size_t room)
{
    const void *field = (const char *)o + option->offset;
    text[0] = '\0';
    if (option->kind >= REAL) {
        double x = *(const double *)field;
        int digits = 1;
        do {
            snprintf(text, room, "%.*g", digits, x);
        } while (digits++ < 17 && (strtod(text, NULL) < x || strtod(text, NULL) > x));
    } else if (option->kind > NAME) {
        snprintf(text, room, "%" PRIu64, *(const uint64_t *)field);
    } else if (option->kind == FLAG && *(const bool *)field) {
        snprintf(text, room, "1");
    } else if (option->kind == NAME) {
        const char *names = option->argument;
        for (int i = *(const int *)field; i > 0; i--) names += strcspn(names, "|") + 1;
        snprintf(text, room, "%.*s", (int)strcspn(names, "|"), names);
    }
}

bool was_given(const Options *o, size_t offset)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (options[i].offset == offset && o->given >> i & 1) return true;
    }
    return false;
}

void metadata_key(const Option *option, char *key, size_t room)
{
    snprintf(key, room, "%s%s", option->stored & OF_MODEL ? "" : "train.", option->name);
    for (; *key; key++) *key = *key == '-' ? '_' : *key;
}
