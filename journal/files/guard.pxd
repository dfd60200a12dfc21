"""Whether this process may still write: the typed header of guard.pyx."""

from libc.stdint cimport uint64_t

cdef class WriteGuard:
    # Identity.
    cdef int lock_fd, owner_fd
    cdef object explain
    # State; written by any thread, each time as a whole.
    cdef uint64_t locked_ns     # when the lock itself was looked at last
    cdef int error              # why it is lost; 0: it is not

    cdef int prove(self) noexcept nogil
    cdef bint has_name(self, int fd) noexcept nogil
    cdef void lock_again(self) noexcept nogil

cdef inline int may_write(WriteGuard guard) noexcept nogil:
    """0, or -errno where there is a guard, and the right is lost."""
    return 0 if guard is None else guard.prove()
