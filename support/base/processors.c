/* processors.c: how many processors this process may use.
 *
 * Those of its affinity mask, or of the machine. A container's limit on processor time counts too:
 * with the time of 1.5 processors, a second thread would mostly wait.
 */
#define _GNU_SOURCE
#include "processors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>

// The processors that a group's limit allows: quota over period, in microseconds. 0: no limit.
static double limit_of(const char *quota_file, const char *period_file)
{
    double quota = 0, period = 0;
    FILE *file = fopen(quota_file, "re");
    int n = file ? fscanf(file, "%lf %lf", &quota, &period) : 0;
    if (file) fclose(file);
    if (n == 1 && period_file && (file = fopen(period_file, "re"))) {
        n += fscanf(file, "%lf", &period);
        fclose(file);
    }
    return n == 2 && quota > 0 && period > 0 ? quota / period : 0;
}

// The lowest limit of the groups that this process is in: its own and those around it.
static double lowest_limit(void)
{
    char line[4096], path[4200];
    double lowest =
        limit_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    FILE *groups = fopen("/proc/self/cgroup", "re");
    while (groups && fgets(line, sizeof line, groups)) {
        if (strncmp(line, "0::/", 4) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        char *end;
        do {
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", line + 3);
            double limit = limit_of(path, NULL);
            if (limit > 0 && (lowest == 0 || limit < lowest)) lowest = limit;
            end = strrchr(line + 3, '/');
            if (end) *end = '\0';
        } while (end);
    }
    if (groups) fclose(groups);
    return lowest;
}
#endif

size_t processors(void)
{
    long n = 1;
#ifdef _SC_NPROCESSORS_ONLN
    n = sysconf(_SC_NPROCESSORS_ONLN);
#endif
#ifdef __linux__
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) n = CPU_COUNT(&mask);
    double limit = lowest_limit();
    if (limit > 0 && limit < (double)n) n = (long)limit;
#endif
    return n > 1 ? (size_t)n : 1;
}
