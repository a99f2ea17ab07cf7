/* What surrounds a run, piece by piece, where a system would have to be slow, small or strange to show it: a step of
 * many seconds, no /proc, no word about memory, a file that vanishes between two calls, numbers that overflow in Adam's
 * memory.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static enum { NOTHING, READLINK, SYSCONF_PAGES, SYSCONF_SIZE, STAT, FSTAT } missing;  // what fails

// Functions, and not conditions in the macros: where the program's branches are counted, they stay what they are.
static ssize_t our_readlink(const char *name, char *text, size_t room)
{
    return missing == READLINK ? -1 : readlink(name, text, room);
}

static long our_sysconf(int what)
{
    bool hidden = (missing == SYSCONF_PAGES && what == _SC_PHYS_PAGES) ||
                  (missing == SYSCONF_SIZE && what == _SC_PAGESIZE);
    return hidden ? -1 : sysconf(what);
}

static int our_stat(const char *name, struct stat *info)
{
    errno = ENOENT;
    return missing == STAT ? -1 : stat(name, info);
}

static int our_fstat(int file, struct stat *info)
{
    errno = EIO;
    return missing == FSTAT ? -1 : fstat(file, info);
}

#define readlink(name, text, room) our_readlink(name, text, room)
#define sysconf(what) our_sysconf(what)
#define stat(name, info) our_stat(name, info)
#define fstat(file, info) our_fstat(file, info)
#define main microgpt_main
#include "../../microgpt.c"
#undef main
#include "../../support/base/files.c"
#include "../../support/run/maps.c"
#include "../../support/run/memory.c"
#include "../../support/run/progress.c"
#include "../../support/base/safetensors.c"
#include "../../support/run/training.c"
#include "../test.h"

#include <fcntl.h>

#define FOLDER "tests/build/run"

// Texts that are put into a file: one that is longer than the buffer, and none at all.
static void test_output(void)
{
    static Output out = {.file = 1000};
    put(&out, "%s", "x");
    check(!out.error, "a short text waits");
    put(&out, "%*s", (int)sizeof out.bytes, "");
    check(out.error == EBADF,
          "a text that does not fit behind another, and a file that is none: the file's error");
    out = (Output){.file = 1000};
    put(&out, "%*s", (int)sizeof out.bytes, "");
    check(out.error == EOVERFLOW && out.n == 0,
          "a text that is longer than the buffer is an error");
    out = (Output){.file = 1000, .by_line = true};
    put(&out, "%s", "");
    check(!out.error && out.n == 0, "by line, an empty text is nothing to write");
}

// Without /proc, the program's folder is what its name says.
static void test_folder(void)
{
    char folder[32];
    static const struct {
        const char *name, *folder;
    } programs[] = {
        {"/usr/local/bin/microgpt", "/usr/local/bin/"},
        {"./nowhere", "./"},
        {"nowhere-at-all", ""},
        {"link", "/"},
        {"/a/name/that/is/much/longer/than/the/room", ""},
    };
    missing = READLINK;
    check(symlink("/", FOLDER "/link") == 0, "a link that leads elsewhere");
    setenv("PATH", "/nowhere:" FOLDER ":/bin", 1);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        program_folder(programs[i].name, folder, sizeof folder);
        check(strcmp(folder, programs[i].folder) == 0,
              "no /proc: the folder of %s: expected %s, saw %s", programs[i].name,
              programs[i].folder, folder);
    }
    missing = NOTHING;
}

// A run of a small model of one layer, before its first step.
static Job job;
static uint32_t letters[] = {'a', 'b'};
static Model *const model = &job.run.model;
static Progress progress;

static bool start(void)
{
    job.o = default_options(RECIPE_MICROGPT);
    job.o.config.n_embd = 4;
    job.o.config.init_std = 1;
    job.run = (Run){.config = &job.o.config,
                    .tokenizer = {.uchars = letters, .BOS = 2, .vocab_size = 3},
                    .docs = {.longest = 2},
                    .rng = &job.rng,
                    .job = &job};
    random_seed(&job.rng, 1);
    bool ok = new_model(&job.run);
    if (ok) {
        init_parameters(model, &job.rng, &job.o.config);
    }
    return ok;
}

static void test_memory(void)
{
    missing = SYSCONF_PAGES;
    check(start(), "a system that does not tell how much memory it has%s", failure.text);
    free_model(model);
    missing = SYSCONF_SIZE;
    check(start(), "nor how large its pages are%s", failure.text);
    free_model(model);
    missing = NOTHING;
}

// A model is saved if all of its numbers are finite, those of Adam's memory, too.
static void test_saving(void)
{
    Target target = {0};
    if (!start() || !find_target(&target, FOLDER "/model")) {
        check(false, "a model: expected one, saw: %s", failure.text);
        return;
    }
    double *numbers[] = {model->params, model->m, model->v};
    static const char *const names[] = {"a parameter", "a mean", "a mean of squares"};
    for (size_t i = 0; i < 3; i++) {
        double *last = numbers[i] + model->num_params - 1, kept = *last;
        *last = i ? INFINITY : NAN;
        bool saved = save_model(&target, &job.o, &job.run);
        check(!saved && strcmp(failure.text,
                               FOLDER "/model: not saved: a parameter is no longer finite") == 0,
              "%s that is not finite: %s", names[i], failure.text);
        check(access(FOLDER "/model", F_OK) != 0, "and no file");
        *last = kept;
    }
    memset(&failure, 0, sizeof failure);
    check(save_model(&target, &job.o, &job.run), "otherwise there is one%s", failure.text);

    target = (Target){0};
    missing = STAT;
    check(!find_target(&target, FOLDER "/model") &&
              strcmp(failure.text, FOLDER "/model: No such file or directory") == 0,
          "a file that vanishes while it is looked at: %s", failure.text);

    Header header = {.path = FOLDER "/model"};
    int file = open(header.path, O_RDONLY);
    memset(&failure, 0, sizeof failure);
    missing = FSTAT;
    check(read_header(file, &header) &&
              header.data_size == 8 * (3 * model->num_params + N_WORDS + 3),
          "a file that does not tell its size is read all the same%s", failure.text);
    missing = NOTHING;
    close(file);
    free_header(&header);
    free_model(model);
}

// What is on standard error, which is a file meanwhile.
static char seen[4096];

static void see(void)
{
    FILE *file = fopen(FOLDER "/stderr", "r");
    size_t n = file ? fread(seen, 1, sizeof seen - 1, file) : 0;
    seen[n] = '\0';
    if (file) {
        fclose(file);
    }
}

static void test_times(void)
{
    static const struct {
        double seconds;
        const char *text;
    } times[] = {
        {0.4, "0:00"},        {59.6, "1:00"},     {3599, "59:59"},       {3600, "1:00:00"},
        {359999, "99:59:59"}, {360000, "4 days"}, {1e300, "11574 days"},
    };
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[32];
        time_text(times[i].seconds, text, sizeof text);
        check(strcmp(text, times[i].text) == 0, "%g seconds: expected %s, saw %s", times[i].seconds,
              times[i].text, text);
    }
}

static void test_progress(void)
{
    setenv("NO_COLOR", "1", 1);
    if (!start() || !freopen(FOLDER "/stderr", "w", stderr)) {
        check(false, "a run: expected one, saw: %s", failure.text);
        return;
    }
    set_up_progress(&progress, &job.o, 0);
    progress.show_bar = true;
    add_to_curve(&progress, 0, 2);
    progress.began = seconds() - 100;
    progress.last_draw = progress.began;
    update_progress(&progress, 1);
    see();
    check(strstr(seen, "1/1000  loss 2.00  0.0 steps/s  27:45:00 left") != NULL,
          "a step of 100 seconds is drawn");
    update_progress(&progress, 2);
    see();
    check(strstr(seen, "2/1000") == NULL, "the next one, which comes at once, is not");
    draw_bar(&progress, 5, progress.began + 2);
    see();
    check(strstr(seen, "  2.5 steps/s  6:38 left") != NULL,
          "slow steps are counted with a decimal");

    for (uint64_t step = 1; step < 1000; step++) {
        add_to_curve(&progress, step, 2);
    }
    draw_curve(&progress, 23.4);
    see();
    check(strstr(seen, "loss over 1000 steps, in 23 s\n") != NULL, "a long run took whole seconds");

    // Where standard output is closed, or a socket, there is no bar.
    int out = dup(STDOUT_FILENO), ends[2];
    fflush(stdout);
    missing = FSTAT;
    set_up_progress(&progress, &job.o, 0);
    missing = NOTHING;
    check(!progress.show_bar, "standard output that tells nothing of itself: no bar");
    if (out >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
        dup2(ends[0], STDOUT_FILENO);
        progress.show_bar = true;
        set_up_progress(&progress, &job.o, 0);
        dup2(out, STDOUT_FILENO);
        check(!progress.show_bar, "standard output into a socket: no bar");
    }
    free_model(model);
}

// What is written is counted, and the same is counted where nothing is written.
static void test_text(void)
{
    static Output out = {.file = -1};
    Text text = {.to = &out}, counted = {0};
    Text *const both[] = {&text, &counted};
    for (size_t i = 0; i < 2; i++) {
        write_json(both[i], "{%s}", "abc");
        write_text(both[i], "\"\n\303\251");
    }
    check_size("bytes written", 15, text.n);
    check_size("bytes counted", 15, counted.n);
    check(out.n == 15 && memcmp(out.bytes, "{abc}\\\"\\u000a\303\251", 15) == 0,
          "what is in it: saw '%.*s'", (int)out.n, out.bytes);
}

int main(void)
{
    if (system("rm -rf " FOLDER " && mkdir -p " FOLDER) != 0) {
        check(false, "a folder for files: expected to make it, saw a failure");
        return finish();
    }
    test_output();
    test_folder();
    test_memory();
    test_saving();
    test_times();
    test_progress();
    test_text();
    return finish();
}
