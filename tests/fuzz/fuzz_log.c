/* Any bytes as a log: a page refuses it in one line, or has a finite loss for each step; and a resumed
 * run refuses it and leaves it alone, or keeps its first rows as they are. The curve is drawn.
 */
#define _XOPEN_SOURCE 700
#include "../../support/run/job.h"
#include "fuzz.h"

static const char path[] = "fuzz.csv";

static void put_file(const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    PROMISE(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

// What the file has now: [size] in a static buffer.
static const uint8_t *get_file(size_t *size)
{
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    *size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    PROMISE(file && fclose(file) == 0);
    return bytes;
}

static void check_page(void)
{
    Losses losses = {0};
    bool ok = read_losses(&losses, path);
    check_failure(ok);
    PROMISE(!ok || (losses.n > 0 && losses.first > 0 && all_finite(losses.list, losses.n)));
    free(losses.list);
    free(losses.held_out);
}

// A run resumed after three steps, the last of which had a loss of 2 or one that its file lacks.
static void check_resume(const uint8_t *data, size_t size, double loss)
{
    static Job job;
    job.o = (Options){.log = path, .resume = "model", .loss = loss, .config = {.steps = 9}};
    size_t n;
    put_file(data, size);
    job.progress = (Progress){.show_bar = true, .steps = 9, .steps_before = 3, .curve_start = 3};
    bool ok = open_log(&job);
    check_failure(ok);
    if (ok) {
        if (job.log.row_is_open) end_row(&job, 3);
        for (uint64_t step = 3; step < 9; step++) {
            add_to_curve(&job.progress, step, 2);
            log_step(&job, step + 1, 2, 0);
        }
        job.progress.show_bar = false;
        draw_curve(&job.progress, 1);
    }
    PROMISE(close_log(&job));
    const uint8_t *now = get_file(&n);
    size_t same = 0;
    while (same < n && same < size && now[same] == data[same]) same++;
    PROMISE(ok || (same == n && same == size));
    PROMISE(!ok || memcmp(now, "step,loss,lr", 12) == 0);
    PROMISE(!ok || size == 0 || same >= 13);
    memset(&failure, 0, sizeof failure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 16) return 0;
    standard_error.file = 1000;  // nobody looks at the curve
    put_file(data, size);
    check_page();
    check_resume(data, size, 2);
    check_resume(data, size, 0);
    return 0;
}
