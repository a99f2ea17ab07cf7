/* How many processors there are to use, with other files in place of the system's: masks, and limits of groups, of both
 * versions.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tests/build/processors"

#ifdef __linux__
static int n_masked;  // processors of the mask; 0: there is none

static FILE *open_ours(const char *name, const char *mode)
{
    char path[8192];
    snprintf(path, sizeof path, FOLDER "%s", name);
    return fopen(path, mode);
}

// Of this process, which is 0 here.
static int our_mask(pid_t process, size_t size, cpu_set_t *mask)
{
    memset(mask, 0, size);
    for (int i = 0; i < n_masked; i++) CPU_SET(2 * (size_t)i + 1, mask);
    return n_masked && process == 0 ? 0 : -1;
}

#define fopen open_ours
#define sched_getaffinity our_mask
#include "../../support/base/processors.c"
#undef fopen
#include "../test.h"

// Writes a file, with its folders.
static void put_file(const char *name, const char *text)
{
    char command[1024];
    snprintf(command, sizeof command, "mkdir -p \"$(dirname %s%s)\"", FOLDER, name);
    FILE *file = system(command) == 0 ? open_ours(name, "w") : NULL;
    if (!file || fprintf(file, "%s%s", text, *text ? "\n" : "") < 0 || fclose(file) != 0) {
        check(false, "%s: expected a new file, saw none", name);
        exit(finish());
    }
}

static void no_files(void)
{
    if (system("rm -rf " FOLDER) != 0) exit(1);
}

// The limit of one group, as version 2 writes it.
static void check_one(const char *limit, size_t want)
{
    no_files();
    put_file("/proc/self/cgroup", "0::/");
    put_file("/sys/fs/cgroup/cpu.max", limit);
    check(processors() == want, "of 8, with %.20s: expected %zu, saw %zu", limit, want,
          processors());
}

// The quota and the period of version 1.
static void check_old(const char *quota, const char *period, size_t want)
{
    no_files();
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota);
    if (period) put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period);
    check(processors() == want, "of 8, with %.20s of %.20s: expected %zu, saw %zu", quota,
          period ? period : "nothing", want, processors());
}

// Limits of a group, of the one around it, and of the outermost.
static void check_nested(const char *inner, const char *middle, const char *outer, size_t want)
{
    no_files();
    put_file("/proc/self/cgroup", "12:cpu:/else\n1:name=x:/a/b\n0::/a/b");
    if (*inner) put_file("/sys/fs/cgroup/a/b/cpu.max", inner);
    if (*middle) put_file("/sys/fs/cgroup/a/cpu.max", middle);
    if (*outer) put_file("/sys/fs/cgroup/cpu.max", outer);
    put_file("/sys/fs/cgroup/else/cpu.max", "100000 100000");
    check(processors() == want, "of 8, with '%.6s' in '%.6s' in '%.6s': expected %zu, saw %zu",
          inner, middle, outer, want, processors());
}

static void check_all(void)
{
    no_files();
    for (n_masked = 1; n_masked <= 5; n_masked++) {
        check_size("as many as in the mask", (size_t)n_masked, processors());
    }
    n_masked = 0;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    check_size("without a mask, those of the machine", n > 1 ? (size_t)n : 1, processors());
    n_masked = 8;
    check_one("max 100000", 8);
    check_one("100000 100000", 1);
    check_one("50000 100000", 1);
    check_one("150000 100000", 1);
    check_one("199999 100000", 1);
    check_one("200000 100000", 2);
    check_one("350000 50000", 7);
    check_one("800000 100000", 8);
    check_one("900000 100000", 8);
    check_one("0 100000", 8);
    check_one("100000 0", 8);
    check_one("0.5 1", 1);
    check_one("200000", 8);
    check_one("", 8);
    check_old("-1", "100000", 8);
    check_old("300000", "100000", 3);
    check_old("300000", "0.5", 8);
    check_old("300000", "", 8);
    check_old("300000", NULL, 8);
    check_old("max", "100000", 8);
    check_nested("300000 100000", "500000 100000", "600000 100000", 3);
    check_nested("500000 100000", "300000 100000", "600000 100000", 3);
    check_nested("500000 100000", "600000 100000", "300000 100000", 3);
    check_nested("max 100000", "max 100000", "300000 100000", 3);
    check_nested("", "300000 100000", "", 3);
    check_nested("", "", "", 8);
    put_file("/sys/fs/cgroup/a/cpu.max", "300000 100000");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    check_size("none of the old kind, one of the new", 3, processors());
    unlink(FOLDER "/sys/fs/cgroup/a/cpu.max");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    check_size("a limit of the old kind alone", 4, processors());
    put_file("/sys/fs/cgroup/a/cpu.max", "500000 100000");
    check_size("and a higher one of the new", 4, processors());
    put_file("/sys/fs/cgroup/a/cpu.max", "200000 100000");
    check_size("and a lower one", 2, processors());
}
#else
#include "../test.h"
#endif

int main(void)
{
#ifdef __linux__
    check_all();
#else
    printf("skip - limits of processors: only Linux has them\n");
#endif
    return finish();
}
