/* model.h: the nouns of the program, then the two lists of what microgpt.c
 * and support/ ask of each other. They share nothing else but recipes[], which options.h declares.
 */
#ifndef MODEL_H
#define MODEL_H

// defines: Tape, Matrix, grad(), ag_add() and all other operations
#include "../../autograd.h"
// defines: tape_lane(), tape_end_lanes()
#include "../engine/faster.h"
// defines: Config, the settings of a run; RELU, RELU2; LINEAR, COSINE;
// RECIPE_MICROGPT, RECIPE_LESSON
#include "options.h"
// defines: say(), which prints to standard output; report(), which prints
// the error, if there is one, and returns the exit status
#include "../base/output.h"
// defines: Random, random_seed(), random_gauss(), random_below()
#include "../base/random.h"
// defines: Document, Documents; N_CODES, how many characters Unicode has
#include "../base/text.h"

typedef struct {
    uint32_t *uchars;    // [BOS] the character of each token
    uint32_t *token_of;  // [N_CODES] each character's token + 1, or 0
    size_t BOS, vocab_size;
} Tokenizer;

typedef struct {
    Matrix *attn_wq, *attn_wk, *attn_wv, *attn_wo;  // [n_embd][n_embd]
    Matrix *mlp_fc1;                                // [4 * n_embd][n_embd]
    Matrix *mlp_fc2;                                // [n_embd][4 * n_embd]
} Layer;

typedef struct {
    size_t n_layer, n_embd, n_head, head_dim, block_size, vocab_size;
    uint32_t BOS;        // the token before and after every document
    int activation;      // RELU or RELU2
    Matrix *state_dict;  // [n_matrices] all of the following, in order
    size_t n_matrices;
    Matrix *wte;      // [vocab_size][n_embd] what each token is
    Matrix *wpe;      // [block_size][n_embd] what each position is
    Matrix *lm_head;  // [vocab_size][n_embd] scores for each token
    Layer *layers;    // [n_layer]
    double *params;   // [num_params] the numbers in all of these
    uint64_t num_params;
    double *m, *v;            // [num_params] Adam's running means
    uint64_t steps_done;      // how often Adam has moved the parameters
    double **keys, **values;  // [n_layer] the cache: [positions][n_embd]
    uint32_t *tokens;         // [block_size + 1] a document, or a sample
    Tape tape;
} Model;

typedef struct {
    const Config *config;
    Documents docs;
    Tokenizer tokenizer;
    Model model;
    Random *rng;
    struct Job *job;  // the command this run is a part of
} Run;

/* ------------------------------------------------------------------------
 * What microgpt.c asks of support/. false: the error is recorded; stop.
 */
// Reads the documents into run->docs, as characters.
bool read_documents(Run *run);
// Takes all memory of run->model, once.
bool new_model(Run *run);
// The next matrix of a model, with its numbers.
Matrix *add_matrix(Model *model, const char *prefix, const char *name, size_t nout, size_t nin);
// Opens the files. A resumed run loads its model over the initial one.
bool begin_training(Run *run);
// For speed alone: the mean loss of a batch, in parts that threads share.
// It also adds the gradients of the parameters; backward() then adds
// nothing. NULL: not worth it; nothing is done.
double *fast_batch(Run *run, uint64_t first);
// For speed alone: moves the first parameters as adam() does, and clears
// their gradients. Returns their count, which may be 0.
size_t fast_adam(Model *model, const Config *config, double lr);
// Is the loss finite? Asked before it can reach the parameters.
bool check_loss(Run *run, uint64_t step, double loss);
// Prints, logs, and saves now and then.
bool after_step(Run *run, uint64_t step, double loss);
// Saves and reports; also after a failure, where trained is false.
bool end_training(Run *run, bool trained);
// Draws a token by its probability. A prompt, or temperature 0, decides
// first. After an error it is BOS, and after_sample() returns false.
size_t choose_token(Run *run, const double *probs, size_t pos_id);
// Prints a sample, and counts it as done.
bool after_sample(Run *run, size_t length, uint64_t *done);
// The command line, then the command it names. report() ends the program.
bool read_command_line(int argc, char **argv);
bool run_command(void);

/* ------------------------------------------------------------------------
 * What support/ asks of microgpt.c, where each is explained.
 */
bool microgpt(Run *run);
bool infer(Run *run);
void shuffle(Documents *docs, Random *rng);
size_t encode(const Tokenizer *tokenizer, uint32_t *text, size_t n);
void lay_out_parameters(Model *model);
void new_cache(Model *model, size_t positions);
double *linear(Tape *tape, double *x, Matrix *w);
double *softmax(Tape *tape, double *logits, size_t n);
double *rmsnorm(Tape *tape, double *x, size_t n);
double *gpt(Model *model, size_t token_id, size_t pos_id);
size_t take_document(Model *model, const Document *doc);
double *document_loss(Model *model, size_t n);
double *share_of_loss(const Run *run, Model *model, uint64_t first, uint64_t n);
void adam(Model *model, const Config *config, double lr);
double learning_rate(const Config *config, uint64_t step);

#endif
