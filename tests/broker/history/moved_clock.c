/* The wall clock of one process, moved while it runs: LD_PRELOAD, and seconds in a file of 8 bytes.
 *
 *     QUIVER_CLOCK_MOVED_BY=FILE LD_PRELOAD=moved_clock.so program
 *
 * As a step of a machine's clock, it leaves the monotonic clock, and so every timeout, as it is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *moved_by_s;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("QUIVER_CLOCK_MOVED_BY");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) abort();
    void *mapped = mmap(NULL, sizeof *moved_by_s, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) abort();
    close(fd);
    moved_by_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && moved_by_s != NULL &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *moved_by_s;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int result = (int)syscall(SYS_gettimeofday, now, zone);
    if (result == 0 && moved_by_s != NULL && now != NULL) now->tv_sec += *moved_by_s;
    return result;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where != NULL) *where = now.tv_sec;
    return now.tv_sec;
}
