#include "park.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

/* EAGAIN: the word has changed already. EINTR: a signal. Both are wake-ups; anything else is a bug.
 */
int qv_park(uint32_t *word, uint32_t seen) {
    long failed = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);

    assert(!failed || errno == EAGAIN || errno == EINTR);
    return failed ? -errno : 0;
}

/* FUTEX_WAIT_BITSET, since it takes an absolute time; FUTEX_WAIT takes a relative one. */
int qv_park_until(uint32_t *word, uint32_t seen, uint64_t deadline_ns) {
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    long failed = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, &until, NULL,
                          FUTEX_BITSET_MATCH_ANY);

    if (failed && errno == ETIMEDOUT) return -ETIMEDOUT;
    assert(!failed || errno == EAGAIN || errno == EINTR);
    return 0;
}

int qv_unpark(uint32_t *word, int all) {
    long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, all ? INT_MAX : 1, NULL, NULL, 0);

    return woken < 0 ? 0 : (int)woken;
}

int qv_event_fd(void) {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

/* EAGAIN means that the counter is full, and a full counter is readable: the wake-up is not lost.
 */
void qv_event_bump(int fd) {
    const uint64_t one = 1;
    ssize_t written;

    do {
        written = write(fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

uint64_t qv_event_take(int fd) {
    uint64_t count = 0;
    ssize_t got;

    do {
        got = read(fd, &count, sizeof count);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof count ? count : 0;
}

void qv_event_close(int fd) {
    if (fd >= 0) (void)close(fd);
}
