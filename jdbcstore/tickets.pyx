"""How far a store is durable, and who is to be told: callbacks and awaitables, in append order.

The order and the notification are the journal's own (journal.completion.CompletionQueue), which
counts on the batches of its native flusher. Here the committing thread reports, in Python.

Threads: any may call, under the GIL; one reaps at a time.
"""

import os

from journal.completion cimport CompletionQueue


cdef class Tickets(CompletionQueue):
    """Tickets of one store: numbers of batches, durable from the first to the last.

    Attributes:
        durable_below: tickets below this number are durable.
        error: what ended the store; None while it goes on.
    """

    def __cinit__(self):
        self.event_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def close(self):
        """Give up the event loop and the descriptor. Idempotent."""
        self.detach()
        if self.event_fd >= 0:
            os.close(self.event_fd)
            self.event_fd = -1

    def __dealloc__(self):
        if self.event_fd >= 0:
            os.close(self.event_fd)

    # The committing thread says how far it came.

    def advance(self, int64_t durable_below):
        """All tickets below are durable; wake the thread that calls reap()."""
        self.durable_below = durable_below
        if self.event_wanted:
            self.event_wanted = False
            self.bump()

    def fail(self, error):
        """Nothing beyond becomes durable: everybody who waits gets `error`."""
        if self.error is None:
            self.error = error
        self.event_wanted = False
        self.bump()

    def fileno(self):
        """A descriptor that becomes readable when there is something to reap."""
        return self.event_fd

    # What the queue asks.

    cdef int64_t durable_end(self) noexcept:
        return self.durable_below

    cdef object failure(self):
        return self.error

    cdef bint is_watched(self) noexcept:
        return self.event_wanted

    cdef int want_event(self) except -1:
        self.event_wanted = True
        return 0

    def bump(self):
        """Make the eventfd readable."""
        if self.event_fd >= 0:
            os.eventfd_write(self.event_fd, 1)
