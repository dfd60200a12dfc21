"""The typed header of completion.pyx."""

from libc.stdint cimport uint64_t

from journal.buffer cimport GroupBuffer

cdef class Completion:
    cdef readonly uint64_t ticket
    cdef object loop
    cdef Completion following       # in the journal's queue, in append order
    cdef object callback            # the first, most often the only one: a task's wake-up
    cdef object context
    cdef list more                  # (callback, context) of the others
    cdef object error
    cdef bint is_done, is_cancelled
    cdef public bint _asyncio_future_blocking

    cdef int finish(self, object error, object success) except -1


cdef class CompletionQueue:
    cdef GroupBuffer buffer
    cdef object io_error            # gives the JournalIOError that ended the journal
    cdef object callbacks           # (ticket, needs sync, done), in append order
    cdef Completion first, last     # in append order
    cdef object loop                # the event loop that watches the eventfd
    cdef bint reaping
    cdef object success             # a Future of `loop` that has ended well
    cdef unsigned long stepping     # the thread whose event loop reaps just now, 0: none

    cdef int call_later(self, uint64_t ticket, bint sync, object done) except -1
    cdef Completion durable(self, uint64_t ticket)
    cdef int take_event(self, bint at_once) except -1
    cdef int reap(self, bint at_once) except -1
    cdef int reap_due(self, bint at_once) except -1
    cdef int watch(self) except -1
    cdef bint is_due(self) except -1
