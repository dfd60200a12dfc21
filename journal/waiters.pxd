"""The typed header of waiters.pyx."""

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    WAIT_WORDS = 64
    WOKEN_BY_A_SIGNAL = 1       # what wait() may say

cdef class Waiters:
    cdef uint32_t words[WAIT_WORDS]     # parks those who wait for number n at n % WAIT_WORDS
    cdef uint32_t waiters[WAIT_WORDS]   # parked there, or about to be
    cdef uint64_t admitted_at           # when the thread that is admitted was, 0: none is
    cdef uint32_t admission_losses      # late ones, in ADMISSION_LOSS, less the prompt ones since
    cdef uint32_t admission_rest        # groups for which admission is off

    cdef int wait(self, uint64_t number, uint64_t *counter, int *error) noexcept nogil
    cdef void wake(self, uint64_t first, uint64_t end) noexcept nogil
    cdef void wake_all(self) noexcept nogil
    cdef void admit(self) noexcept nogil
    cdef void end_admission(self) noexcept nogil
    cdef void note_late(self) noexcept nogil
