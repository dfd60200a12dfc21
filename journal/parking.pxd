"""The typed header of parking.pyx."""

from libc.stdint cimport uint32_t, uint64_t

cdef uint64_t now_ns() noexcept nogil
cdef void sleep_ns(uint64_t ns) noexcept nogil
cdef int set_timer_slack(uint64_t ns) noexcept nogil
cdef int park(uint32_t *word, uint32_t seen) noexcept nogil
cdef int park_until(uint32_t *word, uint32_t seen, uint64_t deadline_ns) noexcept nogil
cdef int unpark(uint32_t *word, bint all) noexcept nogil
cdef int open_event() noexcept nogil
cdef void bump_event(int fd) noexcept nogil
cdef uint64_t take_event(int fd) noexcept nogil
cdef void close_event(int fd) noexcept nogil
