"""The typed header of writer.pyx."""

from libc.stdint cimport int64_t, uint64_t

from jdbcstore.batch cimport Batch
from jdbcstore.tickets cimport Tickets
from journal.waiters cimport Waiters

cdef class GroupWriter:
    cdef readonly Tickets tickets       # how far all is durable, and who is to be told
    cdef readonly Batch filling         # the batch that operations go to
    cdef readonly int64_t commits       # how many batches were written, for statistics
    cdef object write                   # makes one batch durable, or raises what ends the store
    cdef object ready                   # a deque of closed batches, the oldest first
    cdef Waiters room                   # of those who wait for a ticket
    cdef int has_failed                 # whether tickets.error is set
    cdef object thread
    cdef object wakeup               # a lock that the parked thread waits for
    cdef object writing                 # a lock that is held while a batch is written
    cdef int64_t taken_size             # of the batches that are closed and not durable
    cdef int64_t taken_count            # operations of the same batches
    cdef int64_t peak                   # operations that waited at once since the last commit
    cdef int64_t share                  # operations of one batch, at most
    cdef int64_t wanted                 # batches below are to be written as soon as can be
    cdef int64_t sync_deferred       # batches below are synced once flush_now() is called
    cdef int64_t blocked                # threads in wait()
    cdef int64_t rejoined            # of them, since the filling batch began
    cdef int64_t rejoining           # `blocked` when the last commit ended
    cdef double rejoin_until         # how long the batch waits for the rest of them
    cdef double sync_period_s
    cdef double filling_since           # when the first without a waiter came; 0.0: none yet
    cdef double parked_until            # when the parked thread looks by itself
    cdef bint is_busy, is_parked, is_stopping

    # Accepting: room, the batch, the operation put into it, its ticket.
    cpdef int make_room(self) except -1
    cdef Batch begin_rows(self)
    cdef int64_t accept(self, bint is_wanted, bint is_blocking) except -1
    cdef int64_t accept_end(self, object end, bint is_wanted, bint is_blocking) except -1
    cdef int64_t last_ticket(self) noexcept
    # Waiting.
    cpdef int want(self, int64_t ticket) except -1
    cdef void defer_sync(self, int64_t ticket) noexcept
    cpdef int flush_now(self) except -1
    cpdef int wait(self, int64_t ticket) except -1
    # Inner steps.
    cdef bint is_full(self) noexcept
    cdef int cut(self) except -1
    cdef int wake(self) except -1
    cdef Batch take_due(self)
    cdef Batch close_filling(self)
    cdef double due_at(self) noexcept
    cdef int commit(self, Batch batch) except -1
    cdef Batch next_for_thread(self)
