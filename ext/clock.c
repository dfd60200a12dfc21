#include "clock.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

/* clock_gettime cannot fail for these two clocks. */
uint64_t qv_now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int64_t qv_wall_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void qv_sleep_ns(uint64_t ns) {
    uint64_t end = qv_now_ns() + ns;
    struct timespec until;

    if (end < ns) end = UINT64_MAX;
    until.tv_sec = (time_t)(end / NS_PER_S);
    until.tv_nsec = (long)(end % NS_PER_S);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
}

int qv_timer_slack(uint64_t ns) {
    return prctl(PR_SET_TIMERSLACK, (unsigned long)ns, 0, 0, 0) != 0 ? -errno : 0;
}
