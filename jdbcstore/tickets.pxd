"""The typed header of tickets.pyx."""

from libc.stdint cimport int64_t

from journal.completion cimport Completion

cdef class Tickets:
    cdef readonly int64_t durable   # tickets below this number are durable
    cdef readonly object error      # what ended the store, None: nothing yet
    cdef object callbacks           # (ticket, done), in append order
    cdef Completion first, last     # awaitables, in append order
    cdef object loop                # the event loop that watches the eventfd
    cdef int event_fd
    cdef bint event_wanted, reaping
    cdef object success             # a Future of `loop` that has ended well
    cdef unsigned long stepping     # the thread whose event loop reaps just now, 0: none

    cdef int finish_due(self, bint at_once) except -1
    cdef bint is_due(self) except -1
    cdef int watch(self) except -1
