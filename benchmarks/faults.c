/* A disk that fails on demand. Loaded before libc, it counts the calls that touch files and, at the n-th of them, kills
 * the process, tears a write in two, makes it short, or lets the call fail. Nothing happens until faults_arm is called.
 * Compiled and used by faults.py; no part of the package.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ = 1, LOOK = 2, MAKE = 4, WRITE = 8, SYNC = 16, NAME = 32, META = 64 }; /* what a call does */
enum { OFF, KILL, TEAR, FAIL, SHORT };                                            /* what becomes of it */

static int mode, error, kinds, sticky;
static long target, count;
static const char *hit = "";

void faults_arm(long n, int new_mode, int new_error, int new_kinds, int new_sticky) {
    count = 0, target = n, error = new_error, kinds = new_kinds, sticky = new_sticky, hit = "", mode = new_mode;
}
long faults_disarm(void) { return mode = OFF, count; }
const char *faults_hit(void) { return hit; }

static int strike(int kind, const char *name) {
    if (mode == OFF || !(kinds & kind)) return OFF;
    count++;
    if (count != target && !(sticky && count > target)) return OFF;
    if (!*hit) hit = name;
    if (mode == KILL || (mode == TEAR && kind != WRITE)) raise(SIGKILL);
    if (mode == SHORT && kind != WRITE) return OFF;
    if (mode == FAIL) errno = error;
    return mode;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
#define FAILS(kind) (strike(kind, __func__) == FAIL)

static int open_kind(int flags) { return flags & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC) ? MAKE : LOOK; }
static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t m = mode_of(flags, rest); \
        va_end(rest); \
        return FAILS(open_kind(flags)) ? -1 : real(path, flags, m); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t m = mode_of(flags, rest); \
        va_end(rest); \
        return FAILS(open_kind(flags)) ? -1 : real(at, path, flags, m); \
    }
OPENAT(openat)
OPENAT(openat64)

long syscall(long number, ...) {
    REAL(long, "syscall", long, ...);
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    /* openat2: the first field of its third argument holds the flags */
    if (number == 437 && FAILS(open_kind((int)*(unsigned long long *)c))) return -1;
    return real(number, a, b, c, d, e, f);
}

#define HALVED(call_half, call_whole, size) \
    int what = size > 0 ? strike(WRITE, __func__) : OFF; \
    if (what == FAIL) return -1; \
    if (what == SHORT || what == TEAR) { \
        ssize_t done = size > 1 ? call_half : 0; \
        if (what == TEAR) raise(SIGKILL); \
        if (size > 1) return done; \
    } \
    return call_whole

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    HALVED(real(fd, data, size / 2), real(fd, data, size), size);
}

#define PWRITE(name) \
    ssize_t name(int fd, const void *data, size_t size, off_t at) { \
        REAL(ssize_t, #name, int, const void *, size_t, off_t); \
        HALVED(real(fd, data, size / 2, at), real(fd, data, size, at), size); \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    return FAILS(WRITE) ? -1 : real(fd, parts, n);
}
ssize_t read(int fd, void *data, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    return FAILS(READ) ? -1 : real(fd, data, size);
}
#define PREAD(name) \
    ssize_t name(int fd, void *data, size_t size, off_t at) { \
        REAL(ssize_t, #name, int, void *, size_t, off_t); \
        return FAILS(READ) ? -1 : real(fd, data, size, at); \
    }
PREAD(pread)
PREAD(pread64)

#define SYNCING(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        return FAILS(SYNC) ? -1 : real(fd); \
    }
SYNCING(fsync)
SYNCING(fdatasync)

int rename(const char *a, const char *b) {
    REAL(int, "rename", const char *, const char *);
    return FAILS(NAME) ? -1 : real(a, b);
}
int renameat(int x, const char *a, int y, const char *b) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return FAILS(NAME) ? -1 : real(x, a, y, b);
}
int link(const char *a, const char *b) {
    REAL(int, "link", const char *, const char *);
    return FAILS(NAME) ? -1 : real(a, b);
}
int linkat(int x, const char *a, int y, const char *b, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    return FAILS(NAME) ? -1 : real(x, a, y, b, flags);
}
int unlink(const char *a) {
    REAL(int, "unlink", const char *);
    return FAILS(NAME) ? -1 : real(a);
}
int unlinkat(int x, const char *a, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return FAILS(NAME) ? -1 : real(x, a, flags);
}
int mkdir(const char *a, mode_t m) {
    REAL(int, "mkdir", const char *, mode_t);
    return FAILS(NAME) ? -1 : real(a, m);
}
int mkdirat(int x, const char *a, mode_t m) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    return FAILS(NAME) ? -1 : real(x, a, m);
}
#define CUTTING(name) \
    int name(int fd, off_t size) { \
        REAL(int, #name, int, off_t); \
        return FAILS(META) ? -1 : real(fd, size); \
    }
CUTTING(ftruncate)
CUTTING(ftruncate64)
int fchmod(int fd, mode_t m) {
    REAL(int, "fchmod", int, mode_t);
    return FAILS(META) ? -1 : real(fd, m);
}
int chmod(const char *a, mode_t m) {
    REAL(int, "chmod", const char *, mode_t);
    return FAILS(META) ? -1 : real(a, m);
}
int flock(int fd, int how) {
    REAL(int, "flock", int, int);
    return FAILS(META) ? -1 : real(fd, how);
}
