/* Clocks: they go forward, agree with the C library, and sleep long enough. */
#include <sys/prctl.h>
#include <time.h>

#include "check.h"
#include "clock.h"

static void test_monotonic_time_never_goes_back(void) {
    uint64_t before = qv_now_ns();

    for (int i = 0; i < 10000; i++) {
        uint64_t now = qv_now_ns();
        CHECK(now >= before);
        before = now;
    }
}

static void test_wall_time_is_milliseconds_since_1970(void) {
    int64_t before = (int64_t)time(NULL) * 1000 - 1000;
    int64_t wall = qv_wall_ms();

    CHECK(wall >= before);
    CHECK(wall <= (int64_t)time(NULL) * 1000 + 1000);
}

static void test_sleep_lasts_at_least_as_long_as_asked(void) {
    const uint64_t lengths[] = {0, 1, 1000, 100000, 2000000};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint64_t start = qv_now_ns();
        qv_sleep_ns(lengths[i]);
        CHECK(qv_now_ns() - start >= lengths[i]);
    }
}

static void test_timer_slack_is_set_for_this_thread(void) {
    CHECK_EQ(qv_timer_slack(1000), 0);
    CHECK_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1000);
}

int main(void) {
    const check_entry cases[] = {
        CASE(test_monotonic_time_never_goes_back),
        CASE(test_wall_time_is_milliseconds_since_1970),
        CASE(test_sleep_lasts_at_least_as_long_as_asked),
        CASE(test_timer_slack_is_set_for_this_thread),
    };

    return RUN_CASES(cases);
}
