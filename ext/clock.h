/* Clocks and short sleeps.
 *
 * Any thread, any time; no state, no allocation, no errors but where said. Time for deadlines and
 * durations is monotonic nanoseconds from an arbitrary start; the wall clock is only for people. */
#ifndef QV_CLOCK_H
#define QV_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC; stands still while the machine is suspended. */
uint64_t qv_now_ns(void);

/* Milliseconds since 1970-01-01 UTC; may jump either way. */
int64_t qv_wall_ms(void);

/* Sleeps at least ns nanoseconds, signals notwithstanding. */
void qv_sleep_ns(uint64_t ns);

/* Lets the kernel end this thread's timed waits up to ns late, to join wake-ups; 0 restores the
 * default, usually 50000. With the default a 10 us wait lasts about 65 us. 0 or -errno. */
int qv_timer_slack(uint64_t ns);

#endif
