/* How many processors there are to use, with other files in place of the system's: masks, and limits of groups, of both
 * versions.
 */
#define _GNU_SOURCE
#include "../../support/base/processors.h"
#include "../test.h"

#ifdef __linux__
#include <sched.h>
#include <unistd.h>

// The files that there are, and the processors of the mask; 0: there is none.
static struct {
    const char *group, *max, *middle, *inner, *quota, *period;
    int n_masked;
} world;

// In place of the C library's, for the whole program.
FILE *fopen(const char *name, const char *mode)
{
    const char *const files[][2] = {
        {"/proc/self/cgroup", world.group},
        {"/sys/fs/cgroup/cpu.max", world.max},
        {"/sys/fs/cgroup/a/cpu.max", world.middle},
        {"/sys/fs/cgroup/a/b/cpu.max", world.inner},
        {"/sys/fs/cgroup/else/cpu.max", "100000 100000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", world.quota},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", world.period},
    };
    for (size_t i = 0; *mode == 'r' && i < sizeof files / sizeof *files; i++) {
        const char *text = strcmp(name, files[i][0]) == 0 ? files[i][1] : NULL;
        if (text) return fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    }
    return NULL;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *mask)
{
    memset(mask, 0, size);
    for (int i = 0; i < world.n_masked; i++) CPU_SET(2 * (size_t)i + 1, mask);
    return world.n_masked && process == 0 ? 0 : -1;
}

static void check_limits(void)
{
    static const struct {
        const char *max, *middle, *inner, *quota, *period;
        size_t want;  // of 8
    } cases[] = {
        // a limit of version 2, in one group or in several
        {"max 100000\n", NULL, NULL, NULL, NULL, 8},
        {"50000 100000\n", NULL, NULL, NULL, NULL, 1},
        {"199999 100000\n", NULL, NULL, NULL, NULL, 1},
        {"200000 100000\n", NULL, NULL, NULL, NULL, 2},
        {"350000 50000\n", NULL, NULL, NULL, NULL, 7},
        {"900000 100000\n", NULL, NULL, NULL, NULL, 8},
        {"0 100000\n", NULL, NULL, NULL, NULL, 8},
        {"100000 0\n", NULL, NULL, NULL, NULL, 8},
        {"200000\n", NULL, NULL, NULL, NULL, 8},
        {"600000 100000\n", "500000 100000\n", "300000 100000\n", NULL, NULL, 3},
        {"600000 100000\n", "300000 100000\n", "500000 100000\n", NULL, NULL, 3},
        {"300000 100000\n", "600000 100000\n", "500000 100000\n", NULL, NULL, 3},
        {NULL, "300000 100000\n", NULL, NULL, NULL, 3},
        {NULL, NULL, NULL, NULL, NULL, 8},
        // of version 1, and of both
        {NULL, NULL, NULL, "-1\n", "100000\n", 8},
        {NULL, NULL, NULL, "300000\n", "100000\n", 3},
        {NULL, NULL, NULL, "300000\n", NULL, 8},
        {NULL, NULL, NULL, "max\n", "100000\n", 8},
        {NULL, "300000 100000\n", NULL, "-1\n", "100000\n", 3},
        {NULL, "500000 100000\n", NULL, "400000\n", "100000\n", 4},
        {NULL, "200000 100000\n", NULL, "400000\n", "100000\n", 2},
    };
    for (world.n_masked = 1; world.n_masked <= 5; world.n_masked++) {
        check_size("as many as in the mask", (size_t)world.n_masked, processors());
    }
    world.n_masked = 0;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    check_size("without a mask, those of the machine", n > 1 ? (size_t)n : 1, processors());
    world.n_masked = 8;
    world.group = "12:cpu:/else\n1:name=x:/a/b\n0::/a/b\n";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world.max = cases[i].max, world.middle = cases[i].middle, world.inner = cases[i].inner;
        world.quota = cases[i].quota, world.period = cases[i].period;
        check(processors() == cases[i].want, "limits %zu: expected %zu of 8, saw %zu", i,
              cases[i].want, processors());
    }
}
#endif

int main(void)
{
#ifdef __linux__
    check_limits();
#else
    printf("skip - limits of processors: only Linux has them\n");
#endif
    return finish();
}
