/* options.h: every option, in one table. The command line, the help and the model files are all
 * made from it: a new option is a field below, a row in options.c and, if its default is not 0, a
 * line in recipes[].
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERSION "1.2.0"

// The settings of a run: all that the algorithm can be told. The defaults are recipes[], which
// microgpt.c begins with.
typedef struct {
    uint64_t seed;            // where the random numbers start
    uint64_t n_layer;         // layers
    uint64_t n_embd;          // width of the model: numbers per token
    uint64_t n_head;          // attention heads per layer
    uint64_t block_size;      // the most tokens the model looks back at
    int activation;           // RELU or RELU2
    double init_std;          // spread of the initial parameters
    bool zero_outputs;        // attn_wo and mlp_fc2 start at zero
    uint64_t steps;           // training steps
    uint64_t batch;           // documents per step
    uint64_t holdout;         // documents kept out of training
    double lr, beta1, beta2;  // Adam's learning rate and decay rates
    double weight_decay;      // how much of rate * parameter a step takes off
    int schedule;             // LINEAR or COSINE: how the learning rate falls to 0
    uint64_t samples;         // names to print
    double temperature;       // above 0; lower is safer, higher is more surprising
} Config;

enum { RELU, RELU2 };                     // as --activation lists them
enum { LINEAR, COSINE };                  // as --schedule lists them
enum { RECIPE_MICROGPT, RECIPE_LESSON };  // as --recipe lists them

// What the command line asks for.
typedef struct {
    const struct Command *command;
    const char *arguments[2];  // the words that are not options
    size_t n_arguments;
    uint64_t given;  // bit i: the command line gives options[i]
    const char *data, *prompt, *save, *resume, *log;
    int recipe;
    Config config;
    uint64_t save_every, docs;
    uint64_t threads;            // 0: as many as there are processors
    uint64_t step, fingerprint;  // of the run and its documents; in model files only
    double loss;                 // of the latest step, or 0 before the first; in model files only
    bool greedy;                 // temperature 0: take the likeliest token
    bool scalar;  // every + and * is an entry of the tape; nothing is there for speed alone
    bool new, only_held_out, quiet, tsv, votes, help, version;
} Options;

enum { TRAIN = 1, SAMPLE = 2, EVAL = 4, HEADS = 8, PAGE = 16, CHECK = 32 };  // commands, as bits
typedef enum { FLAG, TEXT, NAME, COUNT, POSITIVE, SIZE, FEW, UINT64, REAL, FRACTION } Kind;

// What a model file stores, as bits: a property of the model, or of the run that trains it. A
// resumed run takes over what the file stores; only FREE options may be given another value.
// OPTIONAL may be missing; the default applies. A new option must be OPTIONAL, or older files
// cannot be resumed.
enum { NOT_STORED = 0, OF_MODEL = 1, OF_RUN = 2, FREE = 4, OPTIONAL = 8 };

typedef struct {
    const char *name, *argument;  // the argument of a NAME lists the names: "relu|relu2"
    char letter;                  // -q, or 0
    unsigned commands;            // that take it; 0: only model files have it
    Kind kind;
    unsigned stored;
    size_t offset;  // of its field in Options
    const char *help;
} Option;

#define FIELD(name) offsetof(Options, name)
#define CONFIG(name) FIELD(config.name)

typedef struct {
    double min, max;
} Range;

extern const Option options[];  // [N_OPTIONS]
extern const size_t N_OPTIONS;
extern const Config recipes[];  // [RECIPE_MICROGPT], [RECIPE_LESSON]
extern const Range ranges[];    // [kind] of a number

Options default_options(int recipe);
// Do options fit each other? file: the model file that they come from; NULL: the command line.
bool check_options(const Options *o, const char *file);
// Returns what is wrong with the value, which is then not set; or NULL.
const char *set_option(Options *o, const Option *option, const char *value);
void copy_option(Options *to, const Options *from, const Option *option);
void option_text(const Option *option, const Options *o, char *text, size_t room);
bool was_given(const Options *o, size_t offset);  // offset: FIELD(log), CONFIG(seed)

void metadata_key(const Option *option, char *key, size_t room);  // "n_embd", "train.init_std"

#endif
