"""Group commit: many producers append, one at a time writes what all of them appended.

    producers ──accept──▶ filling ──cut──▶ ready ──take──▶ commit ──▶ durable

Batches are numbered from 0 for ever and written one after the other; a ticket is the number of the
batch that an operation went into, so "durable" is one comparison: ticket < tickets.durable_below.

An idle store commits at once. While a commit runs the next batch fills, so the batches grow as the
producers do, and no timer delays a waiter. Operations without a waiter are written at the latest
`sync_period_s` after they were appended.

A batch takes no more than half of what lately waited at once. If all that wait were in one, the
database would be idle until all of them had been told and had come again, and after that they would
be in one again. Producers that block are different: there are few, and none can do anything else.
A batch with blocked producers also waits for those that the last commit released and that are about
to append again. It waits at most half as long as that commit took: together they gain that time.

Who writes: a producer that blocks while no other thread writes does the write itself, which saves
two switches of threads. Everything else is written by the writer's own thread.

The first failure of a commit is final: every waiter gets the error, nothing more is accepted.

Threads: any. The GIL guards the batches: between two waits nothing here runs Python code, lets the
GIL go, or makes an object that the collector of garbage counts (which might run code of others).
Where that cannot be helped it is said, and done before or after the step that must be in one piece.
"""

import threading
from collections import deque

from cpython.exc cimport PyErr_CheckSignals
from libc.time cimport time_t

from jdbcstore.batch cimport Batch
from jdbcstore.tickets cimport Tickets
from journal.errors import JournalClosed
from journal.waiters cimport WOKEN_BY_A_SIGNAL, Waiters

cdef extern from "<math.h>":
    double INFINITY

cdef extern from "<time.h>":
    struct timespec:
        time_t tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC
    int clock_gettime(int clock, timespec *now) noexcept nogil

cdef object new_lock = threading.Lock

cdef enum:
    # One transaction of the database takes no more: later transactions wait for it, and its bytes
    # are in memory twice while they are sent.
    BATCH_SIZE_MAX = 8 * 1024 * 1024
    BATCH_OPERATIONS_MAX = 16384
    # No batch is cut smaller for the sake of those who wait: a commit has its price, too.
    SHARE_MIN = 500
    # Appenders wait while more than this is accepted and not durable, in bytes; a row counts its
    # body and what it costs in memory beside it.
    PENDING_SIZE_MAX = 64 * 1024 * 1024
    OPERATION_SIZE = 128

# Seconds at most that a batch waits for producers to rejoin, however slow the database is.
cdef double REJOIN_WAIT_MAX_S = 0.05


cdef inline double monotonic_s() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef inline int64_t memory_size(Batch batch) noexcept:
    """What a batch takes in memory, in bytes, about."""
    return batch.size + batch.operation_count * OPERATION_SIZE


cdef class GroupWriter:
    """The batches of one store.

    Args:
        write: makes one batch durable, or raises what ends the store.
        sync_period_s: seconds that an operation without a waiter may wait for others to join it.
        name: of the thread.

    Attributes:
        tickets: how far all is durable, and who is to be told.
        filling: the batch that operations go to.
        commits: how many batches were written, for statistics.
    """

    def __init__(self, write, double sync_period_s, str name):
        self.tickets = Tickets()
        self.filling = Batch(0)
        self.write = write
        self.sync_period_s = sync_period_s
        self.share = SHARE_MIN
        self.ready = deque()
        self.room = Waiters()
        self.wakeup = new_lock()
        self.wakeup.acquire()
        self.writing = new_lock()
        self.thread = threading.Thread(target=self.run, name=name, daemon=True)

    def start(self):
        """Start the thread."""
        self.thread.start()

    def stop(self):
        """Write all that is accepted, then end the thread; after a failure only the latter.

        Nothing is written any more when this returns, so that the connection may be closed.
        """
        self.is_stopping = True
        self.wake()
        if self.thread.is_alive():
            self.thread.join()
        # The store may have failed, by a lost lease, while a producer wrote.
        self.writing.acquire()
        self.writing.release()

    # --- accepting ----------------------------------------------------------------------------

    cpdef int make_room(self) except -1:
        """Wait until there is room for one more operation.

        Raises:
            Exception: what ended the store.
        """
        while self.is_full() and self.tickets.error is None:
            self.wait(self.tickets.durable_below)
        if self.tickets.error is not None:
            raise self.tickets.error
        return 0

    cdef bint is_full(self) noexcept:
        return self.taken_size > 0 and \
            self.taken_size + memory_size(self.filling) > PENDING_SIZE_MAX

    cdef Batch begin_rows(self):
        """The batch for anything but the end of a staged transaction. Put it in, then accept()."""
        if self.filling.ended is not None:
            self.cut()
        return self.filling

    cdef int64_t accept(self, bint is_wanted, bint is_blocking) except -1:
        """An operation was put into `filling`; its ticket.

        Args:
            is_wanted: it is to be durable as soon as can be.
            is_blocking: the caller goes on to wait(), and may write it itself.
        """
        cdef int64_t number = self.filling.number
        cdef bint is_first = False
        if is_wanted:
            is_first = self.wanted <= number
            self.wanted = max(self.wanted, number + 1)
            is_first = is_first and not is_blocking
        elif self.filling_since == 0.0:
            self.filling_since = monotonic_s()
            is_first = True         # To have the thread set its alarm.
        self.peak = max(self.peak, self.taken_count + self.filling.operation_count)
        if self.filling.size > BATCH_SIZE_MAX \
                or self.filling.operation_count >= min(self.share, BATCH_OPERATIONS_MAX):
            self.cut()
        elif is_first:
            self.wake()
        return number

    cdef int64_t accept_end(self, object end, bint is_wanted, bint is_blocking) except -1:
        """Accept the end of a staged transaction, in a batch of ends; its ticket."""
        cdef list ends = [end]      # Before anything is looked at: lists are counted.
        if self.filling.row_count or self.filling.delete_count:
            self.cut()
        self.filling.put_end(ends)
        return self.accept(is_wanted, is_blocking)

    cdef int64_t last_ticket(self) noexcept:
        """The ticket of all that was accepted so far."""
        return self.filling.number if self.filling.operation_count else self.filling.number - 1

    cdef int cut(self) except -1:
        """Close the batch that fills; it is written as soon as can be."""
        self.ready.append(self.close_filling())
        return self.wake()

    cdef int wake(self) except -1:
        """Wake the thread if it sleeps and no other thread is about to write."""
        if self.is_parked and not self.is_busy:
            self.is_parked = False
            self.wakeup.release()
        return 0

    # --- waiting ------------------------------------------------------------------------------

    cpdef int want(self, int64_t ticket) except -1:
        """Have everything up to `ticket` written as soon as can be; does not wait."""
        if self.wanted <= ticket:
            self.wanted = ticket + 1
            self.wake()
        return 0

    cdef void defer_sync(self, int64_t ticket) noexcept:
        """What was accepted without flush_now is to be durable if somebody calls flush_now()."""
        self.sync_deferred = max(self.sync_deferred, ticket + 1)

    cpdef int flush_now(self) except -1:
        """Have deferred syncs done as soon as can be; does not wait."""
        if self.sync_deferred > self.tickets.durable_below:
            self.want(self.sync_deferred - 1)
        return 0

    cpdef int wait(self, int64_t ticket) except -1:
        """Return once everything up to `ticket` is durable; request it if no caller has.

        Raises:
            Exception: what ended the store.
        """
        cdef Batch batch
        cdef int result
        self.blocked += 1
        if ticket == self.filling.number:
            self.rejoined += 1
        try:
            while ticket >= self.tickets.durable_below:
                if self.tickets.error is not None:
                    raise self.tickets.error
                self.wanted = max(self.wanted, ticket + 1)
                batch = None if self.is_busy else self.take_due()
                if batch is not None:
                    self.is_busy = True
                    self.commit(batch)
                    continue
                if self.parked_until > self.due_at():
                    self.wake()         # To have the thread set its alarm.
                with nogil:
                    result = self.room.wait(
                        ticket, <uint64_t *>&self.tickets.durable_below, &self.has_failed)
                if result == WOKEN_BY_A_SIGNAL:
                    PyErr_CheckSignals()
        finally:
            self.blocked -= 1
        return 0

    def sync(self):
        """Return once everything accepted so far is durable.

        Raises:
            Exception: what ended the store.
        """
        cdef int64_t ticket = self.last_ticket()
        if ticket >= 0:
            self.wait(ticket)
        if self.tickets.error is not None:
            raise self.tickets.error

    def fail(self, error):
        """The end: everybody who waits, or asks from now on, gets `error`."""
        self.tickets.fail(error)
        self.has_failed = 1
        self.room.wake_all()
        self.is_busy = False
        self.wake()

    # --- writing ------------------------------------------------------------------------------

    cdef Batch take_due(self):
        """The batch that is to be written now, None when none is."""
        if self.tickets.error is not None:
            return None
        if self.ready:
            return self.ready.popleft()
        if self.filling.operation_count and self.due_at() <= monotonic_s():
            return self.close_filling()
        return None

    cdef double due_at(self) noexcept:
        """When to write the filling batch: a monotonic time in seconds, infinite for never."""
        cdef double at = INFINITY
        if self.is_stopping:
            return 0.0
        if self.filling_since != 0.0:
            at = self.filling_since + self.sync_period_s
        if self.wanted > self.filling.number:
            at = 0.0 if self.rejoined >= self.rejoining else min(at, self.rejoin_until)
        return at

    cdef Batch close_filling(self):
        cdef Batch batch = self.filling
        cdef Batch following = Batch.__new__(Batch)     # With no tuple of arguments.
        following.number = batch.number + 1
        self.taken_size += memory_size(batch)
        self.taken_count += batch.operation_count
        self.filling = following
        self.filling_since = 0.0
        self.rejoined = 0
        return batch

    cdef int commit(self, Batch batch) except -1:
        """Write one batch, and tell everybody. The caller has set `is_busy`."""
        cdef double started, ended
        self.room.end_admission()
        self.writing.acquire()          # Never blocks: one thread at a time writes.
        started = monotonic_s()
        try:
            try:
                self.write(batch)
            finally:
                self.writing.release()
        except Exception as error:
            # Whatever it is, those who wait must hear of it.
            self.fail(error)
            return 0
        except BaseException as interrupt:
            # Ctrl-C in the thread of a producer: whether this batch was committed is unknown.
            closed = JournalClosed("interrupted while it wrote to the database")
            closed.__cause__ = interrupt
            self.fail(closed)
            raise
        ended = monotonic_s()
        self.rejoining = self.blocked
        self.rejoin_until = ended + min((ended - started) / 2, REJOIN_WAIT_MAX_S)
        self.is_busy = False
        self.commits += 1
        self.taken_size -= memory_size(batch)
        self.taken_count -= batch.operation_count
        self.share = max(SHARE_MIN, self.peak // 2)
        self.peak = self.taken_count + self.filling.operation_count
        if self.ready or self.filling.operation_count or self.is_stopping:
            self.wake()
        # Sets `durable_below` first of all; then the event loop is woken, without the GIL.
        self.tickets.advance(batch.number + 1)
        self.room.wake(batch.number, batch.number + 1)
        return 0

    def run(self):
        """What the thread does."""
        cdef Batch batch = self.next_for_thread()
        while batch is not None:
            self.commit(batch)
            batch = self.next_for_thread()

    cdef Batch next_for_thread(self):
        """Wait for a batch that is due, and take it; None at the end."""
        cdef Batch batch
        cdef double timeout_s
        while self.tickets.error is None:
            self.parked_until = INFINITY
            if not self.is_busy:
                batch = self.take_due()
                if batch is not None:
                    self.is_busy = True
                    return batch
                if self.is_stopping:
                    return None
                if self.filling.operation_count:
                    self.parked_until = self.due_at()
            timeout_s = -1.0
            if self.parked_until != INFINITY:
                timeout_s = max(0.0, self.parked_until - monotonic_s())
            self.is_parked = True
            if not self.wakeup.acquire(True, timeout_s):
                if self.is_parked:
                    self.is_parked = False
                else:
                    self.wakeup.acquire()     # Somebody rang just now.
        return None
