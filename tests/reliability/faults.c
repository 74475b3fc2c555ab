/* Calls that touch the disk under one folder are counted; the n-th fails once, or ends the process
 * before it or half-way, or it and all later ones fail, and no file is made or deleted. Loaded with LD_PRELOAD; set up from Python by ctypes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAIL, STOP, HALF, DEAD };
static char folder[4096];
static long at = -1, calls = 0;
static int how = FAIL;

void faults_set(const char *where, long n, int kind) {
    strncpy(folder, where, sizeof folder - 1);
    at = n, how = kind, calls = 0;
}
long faults_calls(void) { return calls; }

static int concerns(int fd) {
    char link[64], path[4096];
    if (at < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}
static int is_inside(const char *path) { return at >= 0 && strncmp(path, folder, strlen(folder)) == 0; }
static int is_dead(void) { return how == DEAD && at > 0 && calls >= at; }
static int is_due(int mine) { return mine && (++calls == at || is_dead()); }
static int failed(void) {
    if (how == STOP || how == HALF) kill(getpid(), SIGKILL);
    errno = EIO;
    return -1;
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t n) {
    if (is_due(concerns(fd))) { if (how == HALF) REAL(write)(fd, data, n / 2); return failed(); }
    return REAL(write)(fd, data, n);
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t o) {
    if (is_due(concerns(fd))) { if (how == HALF) REAL(pwrite)(fd, data, n / 2, o); return failed(); }
    return REAL(pwrite)(fd, data, n, o);
}
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t o) {
    if (is_due(concerns(fd))) { if (how == HALF) REAL(pwrite64)(fd, data, n / 2, o); return failed(); }
    return REAL(pwrite64)(fd, data, n, o);
}
int fsync(int fd) { return is_due(concerns(fd)) ? failed() : REAL(fsync)(fd); }
int fdatasync(int fd) { return is_due(concerns(fd)) ? failed() : REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t n) { return is_due(concerns(fd)) ? failed() : REAL(ftruncate)(fd, n); }
int ftruncate64(int fd, off64_t n) { return is_due(concerns(fd)) ? failed() : REAL(ftruncate64)(fd, n); }
int rename(const char *a, const char *b) {
    return is_due(is_inside(b)) ? failed() : REAL(rename)(a, b);
}
int unlink(const char *a) { return is_inside(a) && is_dead() ? failed() : REAL(unlink)(a); }
int mkdir(const char *a, mode_t m) { return is_inside(a) && is_dead() ? failed() : REAL(mkdir)(a, m); }
int open64(const char *a, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return flags & O_CREAT && is_inside(a) && is_dead() ? failed() : REAL(open64)(a, flags, mode);
}
