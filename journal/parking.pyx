"""Sleeping and waking threads, and the monotonic clock: ext/park.h and ext/clock.h for cimport.

Threads: any, without the GIL. None raises: an int is 0, a count or descriptor, or -errno.
"""

from journal.native cimport (
    qv_event_bump, qv_event_close, qv_event_fd, qv_event_take, qv_now_ns, qv_park, qv_park_until,
    qv_sleep_ns, qv_timer_slack, qv_unpark)


cdef uint64_t now_ns() noexcept nogil:
    return qv_now_ns()


cdef void sleep_ns(uint64_t ns) noexcept nogil:
    qv_sleep_ns(ns)


cdef int set_timer_slack(uint64_t ns) noexcept nogil:
    return qv_timer_slack(ns)


cdef int park(uint32_t *word, uint32_t seen) noexcept nogil:
    return qv_park(word, seen)


cdef int park_until(uint32_t *word, uint32_t seen, uint64_t deadline_ns) noexcept nogil:
    return qv_park_until(word, seen, deadline_ns)


cdef int unpark(uint32_t *word, bint all) noexcept nogil:
    return qv_unpark(word, all)


cdef int open_event() noexcept nogil:
    return qv_event_fd()


cdef void bump_event(int fd) noexcept nogil:
    qv_event_bump(fd)


cdef uint64_t take_event(int fd) noexcept nogil:
    return qv_event_take(fd)


cdef void close_event(int fd) noexcept nogil:
    qv_event_close(fd)
