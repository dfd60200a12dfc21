"""The typed header of completion.pyx."""

from libc.stdint cimport int64_t, uint64_t

from journal.buffer cimport GroupBuffer

cdef class Completion:
    cdef readonly int64_t ticket
    cdef uint64_t behind            # callbacks registered before it, since the beginning
    cdef object loop
    cdef Completion following       # in the journal's queue, in append order
    cdef object callback            # the first, most often the only one: a task's wake-up
    cdef object context
    cdef list more                  # (callback, context) of the others
    cdef object error
    cdef bint is_done, is_cancelled
    cdef public bint _asyncio_future_blocking

    cdef int finish(self, object error, object success) except -1


cdef enum Due:
    NOTHING = 0
    CALLBACK = 1
    AWAITABLE = 2


cdef class CompletionQueue:
    cdef int event_fd               # readable when there is something to reap; the store's
    cdef object callbacks           # (ticket, needs sync, done), in the order of registration
    cdef uint64_t told              # callbacks that were called
    cdef Completion first, last     # by ticket
    cdef object loop                # the event loop that watches the eventfd
    cdef object after_reap          # called when a reap has called a `done`, or None
    cdef bint reaping
    cdef object success             # a Future of `loop` that has ended well
    cdef unsigned long stepping     # the thread whose event loop reaps just now, 0: none

    # What a store says.
    cdef int64_t durable_end(self) noexcept
    cdef int64_t written_end(self) noexcept
    cdef object failure(self)
    cdef bint is_watched(self) noexcept
    cdef int want_event(self) except -1
    # Registering and telling.
    cdef int call_later(self, int64_t ticket, bint sync, object done) except -1
    cpdef Completion durable(self, int64_t ticket)
    cdef void put_in_order(self, Completion completion)
    cpdef int take_event(self, bint at_once=*) except -1
    cpdef int reap(self, bint at_once=*) except -1
    cdef int reap_due(self, bint at_once) except -1
    cdef Due next_due(self, int64_t durable, int64_t written, bint has_failed) except *
    cdef int run_callback(self, int64_t durable, int64_t written, object error) except -1
    cdef int resume_awaitable(self, int64_t durable, object error, bint at_once) except -1
    cdef int watch(self) except -1


cdef class BufferCompletions(CompletionQueue):
    cdef GroupBuffer buffer
    cdef object io_error
