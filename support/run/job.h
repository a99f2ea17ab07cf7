/* job.h: one command at work, and the calls between the files that do its work. A Run is what the
 * algorithm sees of a command; the Job around it is everything else.
 *
 * The files of support/run/ include each other, support/base/, autograd.h, and of support/engine/
 * faster.h and threads.h; in the debugging build also debugger/views.h.
 *
 * A function that returns false has recorded the error.
 */
#ifndef JOB_H
#define JOB_H

#include "../base/files.h"
#include "model.h"
#include "../base/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// A model file being read: the header first, the numbers when there is memory for them.
typedef struct {
    int file;          // a descriptor, open while header.path is not NULL
    struct stat info;  // which file, and when it was last changed
    Header header;
    Options options;      // as the file stores them; defaults for the rest
    Tokenizer tokenizer;  // of the file's vocabulary
    Random random;        // where the random numbers were
    bool has_random;
    char missing[64];  // the first thing that a resume needs and the file lacks, or ""
} Checkpoint;

enum { POINTS = 256 };  // of the loss curve, at most

// What people see of a long run.
typedef struct {
    bool show_lines, show_bar;  // a line per step? a progress bar?
    uint64_t steps_before;      // steps done before this run began
    uint64_t steps;             // steps to do, those included
    uint64_t curve_start;       // the step before the curve; a resumed log adds earlier steps
    double began, last_draw, last_flush;
    double smooth, smooth_weight;  // their quotient is the running mean of the loss
    double last_sum, last_n;       // of the losses of the last steps
    double curve_sum[POINTS], curve_n[POINTS];
    double held_curve[POINTS];     // the latest loss held out; 0: not measured
    bool any_held;                 // is there one?
    uint64_t measured;             // the step of the latest; UINT64_MAX: none yet
    double held_loss, held_error;  // and its standard error
    uint64_t lowest_step;          // of the run, earlier parts in its log included
    double lowest;
} Progress;

// What --save writes.
typedef struct {
    Target target;
    bool training;   // the steps are not over
    uint64_t saved;  // the step of the latest save; UINT64_MAX: none yet
} Save;

// What --log writes.
typedef struct {
    Output *out;                     // NULL: no log
    const char *kept;                // the new name of another run's log; NULL: there was none
    bool has_held_out, row_is_open;  // it has the column; its last row still lacks it
} Log;

// Drawing samples.
typedef struct {
    Document prompt;            // the tokens that every sample begins with
    bool numbered;              // "sample  1: ", as after training
    size_t column;              // of a terminal, after the latest
    bool failed;                // the probabilities were not finite
    uint64_t *known;            // [n_slots] hashes of known texts; NULL: nothing is compared
    size_t n_slots;             // a power of two
    uint64_t n_drawn, n_known;  // samples so far; those that were known
    uint64_t known_in_a_row;    // since the last one that was not
} Samples;

// What a head does, on average.
typedef struct {
    double self, previous, first, elsewhere;  // shares of its attention, by the first that fits
    double entropy;                           // bits: 0 for one position, log2(n) for n alike
    double loss;                              // of the model without this head
    double error;                             // the standard error of what that adds to the loss
    size_t n_positions;                       // where it was seen
} HeadStats;

// A head at a position. sum->a[i] is its weight for position first + i.
typedef struct {
    const Entry *sum;
    size_t layer, head, query, first;
} Attention;

// What stands for a character on the screen, and its width in columns.
typedef struct {
    char text[8];
    int columns;
} Label;

// The losses of a log, one per step without a gap.
typedef struct {
    double *list;      // [n]
    double *held_out;  // [n] NAN where it was not measured
    size_t n;
    uint64_t first;     // the step of the first row; 0: the log has no row
    bool has_held_out;  // it has the column
} Losses;

// What goes into a page.
typedef struct {
    unsigned char *model;  // [n_model] the model file
    size_t n_model;
    bool names_model;         // index.html says where it goes
    bool has_documents, own;  // it gets documents; they are those of the training
    Losses log;               // list is NULL: no log
} Page;

// The documents of a step in parts.
typedef struct {
    Model *parts;    // [n]
    double *losses;  // [n] what each part adds to the mean loss
    size_t n;        // 0: there are none
} Batch;

// A command. free_job() frees all of it.
typedef struct Job {
    Run run;
    Options o;
    int argc;
    char **argv;
    Random rng;
    struct stat data_file;  // where the documents came from
    Checkpoint checkpoint;
    Progress progress;
    Save save;
    Log log;
    Documents held_out;  // a part of run.docs
    Documents measured;  // the same, or another part: what eval and heads measure
    Batch batch;
    Samples samples;
    double *maps;      // heads: attention in one word, [position][layer][head][position]
    HeadStats *stats;  // heads: [layer][head] over a file
    double *losses;    // of each document; heads: also without a head, and a copy of attn_wo
    Page page;
} Job;

// memory.c
bool fits_memory(double bytes);  // the machine's, and the address space
bool size_model(Model *model, const Config *config, size_t vocab_size);  // allocates only layers
void free_model(Model *model);
bool share_model(Model *copy, const Model *model);             // the same parameters, another tape
bool copy_model(Model *copy, const Run *run, uint64_t batch);  // the same shapes; for training
void free_workspace(Model *copy);
bool new_tokenizer(Tokenizer *tokenizer);  // empty, with room for every character
void free_tokenizer(Tokenizer *tokenizer);

// prove.c
typedef struct {
    uint64_t fused;    // bit op: one entry per call may be recorded; see Tape
    bool adam, parts;  // fast_adam(), fast_batch()
} InUse;
extern InUse in_use;           // of what is there for speed alone: what the proof has not ruled out
bool prove(const Options *o);  // when a command begins that computes; false: no memory
bool check_everything(const Options *o);  // the same as a table, and more

// batch.c
size_t n_batch_parts(const Run *run, uint64_t num_params);
bool new_batch(Run *run);
void free_batch(Batch *batch);

// checkpoint.c
bool open_checkpoint(Checkpoint *checkpoint, const char *path);  // reads the header
void close_checkpoint(Checkpoint *checkpoint);                   // also if it was never opened
bool load_model(Job *job, const char *path);                     // a whole model, new
bool take_options(Options *o, const Checkpoint *checkpoint);     // of the run to resume
bool resume_run(Job *job);  // loads over the initial parameters
bool read_again(Checkpoint *checkpoint, unsigned char **bytes, size_t *n);  // the whole file
bool can_save(Target *target, const Job *job);
bool save_model(Target *target, const Options *o, const Run *run);

// progress.c
double seconds(void);  // on a clock that never goes back
void set_up_progress(Progress *progress, const Options *o, uint64_t steps_done);
void draw_bar(const Progress *progress, uint64_t done, double now);  // now: later than began

// curve.c
void add_to_curve(Progress *progress, uint64_t step, double loss);
void add_held_out(Progress *progress, uint64_t done, double loss);  // after so many steps
void draw_curve(const Progress *progress, double took);

// log.c
bool open_log(Job *job);
void log_step(Job *job, uint64_t done, double loss, double lr);
void end_row(Job *job, uint64_t done);  // the column for the loss held out
void flush_log(Job *job);
bool close_log(Job *job);
bool read_losses(Losses *losses, const char *name);  // the caller frees the lists

// documents.c
const char *data_name(const Options *o);  // what messages call the documents' file
void data_source(const Options *o, char *text, size_t room);  // as model files name it
bool read_texts(Job *job);               // the documents of --data, or the shipped names
bool has_its_documents(const Job *job);  // those that the model was trained on?
bool check_source(Job *job);             // before they are encoded
bool encode_documents(Job *job, const Documents *docs);  // with notes about them
void note_documents(const Run *run, const Documents *docs);
double passes(const Run *run);
const char *passes_text(const Run *run);  // "1000 steps: each of the 334 documents about 3 times"

// commands.c
void out_of_memory(void);  // ends the command when memory runs out in the middle

// training.c
bool fail_stopped(Job *job, const char *reason);  // saves, records the error, returns false

// samples.c
bool read_prompt(Run *run, const char *what, const char *text);
// A set of texts: the first n documents, and room for more. Is a text in it? With `add`, insert it.
bool know_documents(Job *job, size_t n, uint64_t more);
bool is_known(Samples *samples, const Document *text, bool add);
size_t keep_distinct(Job *job, Documents *docs, size_t n);

// holdout.c
bool hold_out(Job *job, size_t n_held);
bool is_measured_after(const Job *job, uint64_t done);  // that many steps
bool measure_held_out(Run *run);
bool say_held_out(Run *run, const char *new_line);

// heads.c
double mean_loss(Model *model, const Document *docs, size_t n_docs, size_t *n_tokens,
                 HeadStats *stats, double *each);
double error_of_mean(const Model *model, const Document *docs, size_t n_docs, const double *each);
bool read_attention(const Model *model, size_t n, size_t at, Attention *found);
size_t map_row(size_t n_heads, size_t query, size_t h);
bool show_heads(Job *job);  // over job->measured
bool show_word(Job *job);   // in the prompt

// maps.c
Label token_label(const Run *run, Terminal screen, size_t token);
Label position_label(const Run *run, Terminal screen, size_t i);
void say_label(Label label, size_t width);
void draw_maps(const Run *run, const double *maps, size_t n);
void say_stats(const Model *model, const HeadStats *stats, double loss, double error);
void say_findings(const Model *model, const HeadStats *stats, double loss);

// votes.c
bool show_votes(Job *job, size_t n);  // the n positions on the tape

// page.c
bool show_page(Job *job);  // shuffles run->docs

#endif
