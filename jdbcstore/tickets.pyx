"""How far a store is durable, and who is to be told: callbacks and awaitables, in append order.

The journal's CompletionQueue counts on the batches of its native flusher; this one is told by
whoever commits, in Python. Awaitables are the journal's own (journal.completion.Completion).

Threads: any may call, under the GIL; one reaps at a time.
"""

import asyncio
import os
from collections import deque

from journal.completion cimport Completion

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

get_running_loop = asyncio.get_running_loop


cdef class Tickets:
    """Tickets of one store: numbers of batches, durable from the first to the last.

    Attributes:
        durable: tickets below this number are durable.
        error: what ended the store; None while it goes on.
    """

    def __cinit__(self):
        self.event_fd = -1
        self.callbacks = deque()
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

    # Whoever commits says how far it came.

    def advance(self, int64_t durable):
        """All tickets below `durable` are; whoever reaps is woken."""
        self.durable = durable
        if self.event_wanted:
            self.event_wanted = False
            self.bump()

    def fail(self, error):
        """Nothing beyond becomes durable: everybody who waits gets `error`."""
        if self.error is None:
            self.error = error
        self.event_wanted = False
        self.bump()

    # Whoever waits.

    def call_later(self, int64_t ticket, done):
        """Have `done(None)` or `done(error)` called by a reap once the ticket is durable."""
        self.callbacks.append((ticket, done))
        if not self.event_wanted:
            self.watch()

    def awaitable(self, int64_t ticket):
        """A Completion of the running loop, which watches the eventfd from now on."""
        cdef object loop
        cdef Completion completion
        if self.stepping == PyThread_get_thread_ident():
            loop = self.loop        # get_running_loop asks the kernel for the process id
        else:
            loop = get_running_loop()
        completion = Completion(ticket, loop)
        if ticket < self.durable:
            completion.is_done = True
            return completion
        if self.first is None:
            self.first = completion
        else:
            self.last.following = completion
        self.last = completion
        # Only now: it may have become durable since it was asked, with nobody to tell.
        if self.loop is not loop:
            self.attach(loop)
        elif not self.event_wanted:
            self.watch()
        return completion

    def fileno(self):
        """A descriptor that becomes readable when there is something to reap."""
        return self.event_fd

    def attach(self, loop):
        """Let `loop` reap from now on."""
        self.detach()
        loop.add_reader(self.event_fd, self.on_event)
        self.loop = loop
        self.success = loop.create_future()
        self.success.set_result(None)
        self.watch()

    def detach(self):
        """Take the eventfd out of the event loop."""
        if self.loop is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(self.event_fd)
            self.loop = None

    def on_event(self):
        """The eventfd is readable: called by the event loop, with no task running."""
        self.stepping = PyThread_get_thread_ident()
        try:
            self.take_event(True)
        finally:
            self.stepping = 0

    def take_event(self, bint at_once=False):
        """Reap, and have the eventfd bumped for who comes next.

        Args:
            at_once: the caller is the event loop itself, so waiting tasks run in here.
        """
        try:
            os.eventfd_read(self.event_fd)
        except BlockingIOError:
            pass        # Somebody else has read it.
        try:
            return self.reap(at_once)
        finally:
            if self.first is not None or self.callbacks:
                self.watch()

    def reap(self, bint at_once=False):
        """Tell everybody who is due; how many. For a callback, and any second caller: nothing."""
        if self.reaping:
            return 0
        self.reaping = True
        try:
            return self.finish_due(at_once)
        finally:
            self.reaping = False

    # Inner steps.

    cdef int finish_due(self, bint at_once) except -1:
        cdef int count = 0
        cdef Completion completion
        cdef int64_t ticket
        cdef object error = self.error
        # Read once: those who are told may append more, and the event loop must get its turn.
        cdef int64_t durable = self.durable
        while self.callbacks:
            ticket, done = self.callbacks[0]
            if ticket >= durable and error is None:
                break
            self.callbacks.popleft()
            count += 1
            done(None if ticket < durable else error)
        while self.first is not None:
            completion = self.first
            if completion.ticket >= durable and error is None:
                break
            self.first = completion.following
            completion.following = None
            if self.first is None:
                self.last = None
            count += 1
            if completion.is_done:
                continue
            outcome = None if completion.ticket < durable else error
            if completion.loop is self.loop and not completion.loop.is_closed():
                completion.finish(outcome, self.success if at_once else None)
            elif not completion.loop.is_closed():
                # Left behind by a loop that runs in another thread, or not at all.
                completion.loop.call_soon_threadsafe(finish_later, completion, outcome)
        return count

    cdef bint is_due(self) except -1:
        cdef int64_t ticket
        if self.error is not None:
            return True
        if self.callbacks:
            ticket, _ = self.callbacks[0]
            if ticket < self.durable:
                return True
        return self.first is not None and self.first.ticket < self.durable

    cdef int watch(self) except -1:
        """Have the next advance bump the eventfd; bump it now for what is due already."""
        self.event_wanted = True
        if self.is_due():
            self.bump()
        return 0

    def bump(self):
        """Make the eventfd readable."""
        if self.event_fd >= 0:
            os.eventfd_write(self.event_fd, 1)


def finish_later(Completion completion, error):
    """End a completion from its own event loop's thread."""
    if not completion.is_done:
        completion.finish(error, None)
