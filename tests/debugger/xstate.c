/* gdb 13 cannot write the registers of processors whose state is larger than it knows (those with AMX): the kernel takes
 * all of it or nothing, and gdb says "Couldn't write extended state status". Preloaded into gdb, this writes what gdb
 * has over what is there, and hands on the whole. The tests use it where gdb needs it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef long Ptrace(enum __ptrace_request request, pid_t process, void *address, void *data);

long ptrace(enum __ptrace_request request, ...)
{
    static unsigned char whole[1 << 16];
    va_list list;
    va_start(list, request);
    pid_t process = va_arg(list, pid_t);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    Ptrace *next = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGSET && (uintptr_t)address == NT_X86_XSTATE) {
        const struct iovec *given = data;
        struct iovec all = {whole, sizeof whole};
        if (next(PTRACE_GETREGSET, process, address, &all) == 0 && all.iov_len > given->iov_len) {
            memcpy(whole, given->iov_base, given->iov_len);
            return next(request, process, address, &all);
        }
    }
    return next(request, process, address, data);
}
