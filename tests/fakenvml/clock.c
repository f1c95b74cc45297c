/* The scenario's clock: since the library was loaded, the wall, or a file that
 * a test steps. */
#include "fakenvml.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* In file time, samples are stamped from here: no test then depends on the wall
 * clock. */
#define FILE_EPOCH_US 1700000000000000ULL

static enum { BASE_START, BASE_WALL, BASE_FILE } base;
static double t_zero = -1;
static const volatile double *file_seconds;
static char file_path[512];

u64 now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ULL + t.tv_nsec;
}
u64 wall_us(void) {
    if (base == BASE_FILE) return FILE_EPOCH_US + (u64)(*file_seconds * 1e6);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000ULL + t.tv_nsec / 1000;
}
double tnow(void) {
    if (base == BASE_FILE) return *file_seconds;
    if (base == BASE_WALL) return wall_us() / 1e6;
    double t = now_ns() / 1e9;
    if (t_zero < 0) t_zero = t;
    return t - t_zero;
}
void nap(u64 ns) {
    struct timespec t = {ns / 1000000000ULL, ns % 1000000000ULL};
    if (ns) nanosleep(&t, NULL);
}
/* `start`, `wall`, or `file:PATH`, a file of 8 bytes that holds the seconds as
 * a double. */
void clock_base(const char *how) {
    if (strncmp(how, "file:", 5)) {
        base = !strcmp(how, "wall") ? BASE_WALL : BASE_START;
        return;
    }
    if (file_seconds && !strcmp(file_path, how + 5)) {
        base = BASE_FILE;
        return;
    }
    int fd = open(how + 5, O_RDONLY | O_CLOEXEC);
    void *m = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (m == MAP_FAILED) {
        fprintf(stderr, "fakenvml: cannot map the clock %s\n", how + 5);
        return;
    }
    snprintf(file_path, sizeof file_path, "%s", how + 5);
    file_seconds = m;
    base = BASE_FILE;
}
