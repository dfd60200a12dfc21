"""Telling those who wait: callbacks and awaitables, in append order, many at a time.

A Completion is made for every awaited record, so it is lean. It is what asyncio calls a
future-compatible object (asyncio.isfuture): tasks, gather and wait_for take it as they take a
Future. It is a coroutine as well, so create_task and TaskGroup take it. asyncio.wait takes no
coroutines; give it a task of the Completion. It differs from a Future in one thing: when the event
loop itself calls reap(), the waiting task is stepped there and then, without a call_soon and a
handle for each record. That is half of what awaiting a Future costs, and nothing else runs in
between anyway.
"""

import contextvars
from collections import deque

cimport cython

from libc.string cimport strcmp

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()
    int PyContext_Enter(object context) except -1
    int PyContext_Exit(object context) except -1
    bint PyCFunction_CheckExact(object o)
    ctypedef struct PyMethodDef:
        const char *ml_name
    ctypedef struct PyCFunctionObject:
        PyMethodDef *m_ml

from journal.buffer cimport (
    GroupBuffer, event_bump, event_take, pthread_mutex_lock, pthread_mutex_unlock)

copy_context = contextvars.copy_context
# asyncio is imported when somebody awaits: it is a fifth of what `import journal` would cost.
# Looked up once: it stands on the path of every awaited record.
cdef object get_running_loop = None


# How asyncio's own Task, the one in C, has itself woken; NULL until the first one waits.
cdef PyMethodDef *task_wakeup = NULL


cdef bint is_task_wakeup(object callback) noexcept:
    """Whether the callback steps a Task, and looks at nothing but the result it is given."""
    global task_wakeup
    cdef PyMethodDef *method
    if not PyCFunction_CheckExact(callback):
        return False
    method = (<PyCFunctionObject *>callback).m_ml
    if task_wakeup == NULL and strcmp(method.ml_name, b"TaskWakeup") == 0:
        task_wakeup = method
    return method == task_wakeup


@cython.freelist(1024)
cdef class Completion:
    """Done when everything up to `ticket` is durable; made by Journal.durable().

    Threads: those of its event loop only.
    """

    def __cinit__(self, int64_t ticket, object loop):
        self.ticket = ticket
        self.loop = loop

    # What a waiting task uses.

    def __await__(self):
        """Wait: None, or raises what ended the journal."""
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if not self.is_done:
            self._asyncio_future_blocking = True
            return self
        if self.is_cancelled:
            raise cancelled()
        if self.error is not None:
            raise self.error
        raise StopIteration

    # What asyncio.create_task() and TaskGroup ask of a coroutine.

    def send(self, value):
        """One step of waiting."""
        return self.__next__()

    def throw(self, kind, value=None, trace=None):
        """Raise what the waiting task is to get: its cancellation."""
        if value is None:
            value = kind() if isinstance(kind, type) else kind
        raise value

    def close(self):
        """Give up waiting; the record is on its way to the disk all the same."""
        self.cancel()

    def __repr__(self):
        state = "cancelled" if self.is_cancelled else "pending" if not self.is_done \
            else "durable" if self.error is None else f"failed: {self.error}"
        return f"<Completion of ticket {self.ticket}: {state}>"

    def get_loop(self):
        """The event loop it belongs to."""
        return self.loop

    def add_done_callback(self, callback, *, context=None):
        """Have `callback(self)` called when done, in `context` (None: a copy of this one)."""
        if context is None:
            context = copy_context()
        if self.is_done:
            self.loop.call_soon(callback, self, context=context)
        elif self.callback is None:
            self.callback = callback
            self.context = context
        else:
            if self.more is None:
                self.more = []
            self.more.append((callback, context))

    def remove_done_callback(self, callback):
        """Forget a callback; how many there were."""
        pairs = [] if self.callback is None else [(self.callback, self.context)]
        pairs += self.more or []
        kept = [pair for pair in pairs if pair[0] != callback]
        self.callback = self.context = self.more = None
        for one, context in kept:
            self.add_done_callback(one, context=context)
        return len(pairs) - len(kept)

    # What a Future offers beside.

    def done(self):
        """Whether it is durable, failed or cancelled."""
        return self.is_done

    def cancelled(self):
        """Whether somebody gave up waiting. The record is on its way to the disk all the same."""
        return self.is_cancelled

    def cancel(self, msg=None):
        """Give up waiting; false when it is done already."""
        if self.is_done:
            return False
        self.is_cancelled = True
        self.finish(None, None)
        return True

    def result(self):
        """None once durable; raises what ended the journal, or that it is not done."""
        if not self.is_done:
            raise not_done("Result is not set.")
        if self.is_cancelled:
            raise cancelled()
        if self.error is not None:
            raise self.error

    def exception(self):
        """What ended the journal, or None once durable."""
        if not self.is_done:
            raise not_done("Exception is not set.")
        if self.is_cancelled:
            raise cancelled()
        return self.error

    cdef int finish(self, object error, object success) except -1:
        """It is done.

        Args:
            error: what ended the journal, or None.
            success: a Future that has ended well, if the caller is the event loop: callbacks run
                here, and tasks are given that Future. They ask a Future for its result in C, and
                anything else by a method call. None: the callbacks run later.
        """
        cdef object callback = self.callback, context = self.context
        cdef list more = self.more
        self.is_done = True
        self.error = error
        self.callback = self.context = self.more = None
        if callback is None:
            return 0
        if success is not None:
            PyContext_Enter(context)
            try:
                callback(success if error is None and is_task_wakeup(callback) else self)
            finally:
                PyContext_Exit(context)
        else:
            self.loop.call_soon(callback, self, context=context)
        if more is not None:
            for callback, context in more:
                self.loop.call_soon(callback, self, context=context)
        return 0


cdef class CompletionQueue:
    """Who is to be told about which ticket: `done` callbacks and awaitables, in append order.

    A store derives its own, which says how far it came and wakes the event loop. Without a loop
    somebody calls reap().

    Order: callbacks run in the order in which they were registered, awaitables end in the order of
    their tickets, and what was registered behind an awaitable comes behind it. Nothing is called by
    who registers: an operation that had nothing to write takes the ticket of the one before it.

    Threads: any may add; one reaps at a time, under the GIL.
    """

    def __cinit__(self):
        self.event_fd = -1
        self.callbacks = deque()

    # What a store says.

    cdef int64_t durable_end(self) noexcept:
        """Tickets below this number are durable."""
        return 0

    cdef int64_t written_end(self) noexcept:
        """Tickets below this number are written: enough for who asked for no sync."""
        return self.durable_end()

    cdef object failure(self):
        """What ended the store; None while it goes on."""
        return None

    cdef bint is_watched(self) noexcept:
        """Whether the next ticket that becomes durable makes the eventfd readable."""
        return False

    cdef int want_event(self) except -1:
        """Have the next ticket that becomes durable make the eventfd readable."""
        return 0

    # Registering.

    cdef int call_later(self, int64_t ticket, bint sync, object done) except -1:
        """Have `done` called once the ticket is durable (sync) or written."""
        self.callbacks.append((ticket, sync, done))
        # A ticket that is durable already: the event for it may have come and gone.
        if not self.is_watched() or ticket < self.durable_end():
            self.watch()
        return 0

    cpdef Completion durable(self, int64_t ticket):
        """An awaitable of the running loop, which watches the eventfd from now on."""
        cdef object loop
        cdef Completion completion
        if self.stepping == PyThread_get_thread_ident():
            loop = self.loop        # get_running_loop asks the kernel for the process id
        else:
            loop = running_loop()
        completion = Completion(ticket, loop)
        completion.behind = self.told + <uint64_t>len(self.callbacks)
        if ticket < self.durable_end():
            if self.next_due(self.durable_end(), self.written_end(), False) == NOTHING:
                completion.is_done = True
                return completion
            # Lower tickets are due and not told yet: it follows them, and waits for no higher one.
            completion.behind = self.told
            for before, _, _ in self.callbacks:
                if before > ticket:
                    break
                completion.behind += 1
        self.put_in_order(completion)
        # Only now: it may have become durable since the check, before there was a waiter to tell.
        if self.loop is not loop:
            self.attach(loop)
        elif not self.is_watched():
            self.watch()
        return completion

    cdef void put_in_order(self, Completion completion):
        """Put an awaitable behind those of lower tickets; nearly always it is the last."""
        cdef Completion before
        if self.first is None:
            self.first = self.last = completion
        elif completion.ticket >= self.last.ticket:
            self.last.following = completion
            self.last = completion
        elif completion.ticket < self.first.ticket:
            completion.following = self.first
            self.first = completion
        else:
            before = self.first
            while before.following.ticket <= completion.ticket:
                before = before.following
            completion.following = before.following
            before.following = completion
        if completion.following is not None:
            completion.behind = min(completion.behind, completion.following.behind)

    def attach(self, loop, after_reap=None):
        """Let `loop` reap from now on.

        Args:
            loop: watches the eventfd.
            after_reap: called without arguments behind each reap() that called a `done`; None
                leaves the one before.
        """
        if after_reap is not None:
            self.after_reap = after_reap
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

    # Telling.

    def on_event(self):
        """The eventfd is readable: called by the event loop, with no task running."""
        self.stepping = PyThread_get_thread_ident()
        try:
            self.take_event(True)
        finally:
            self.stepping = 0

    cpdef int take_event(self, bint at_once=False) except -1:
        """Reap, and have the eventfd bumped for who comes next; how many were told.

        Args:
            at_once: the caller is the event loop itself, so waiting tasks run in here.
        """
        event_take(self.event_fd)
        try:
            return self.reap(at_once)
        finally:
            if self.first is not None or self.callbacks:
                self.watch()

    cpdef int reap(self, bint at_once=False) except -1:
        """Tell all that are due; how many. For a callback, and any second caller: nothing."""
        cdef uint64_t told = self.told
        if self.reaping:
            return 0
        self.reaping = True
        try:
            try:
                return self.reap_due(at_once)
            finally:
                # Also where one has raised: those before it were told.
                if self.told != told and self.after_reap is not None:
                    self.after_reap()
        finally:
            self.reaping = False

    cdef int reap_due(self, bint at_once) except -1:
        cdef int count = 0
        cdef Due due
        error = self.failure()
        # Read once: those who are told may append more, and the event loop must get its turn.
        cdef int64_t durable = self.durable_end(), written = self.written_end()
        cdef uint64_t end = self.told + <uint64_t>len(self.callbacks)
        while True:
            due = self.next_due(durable, written, error is not None)
            if due == CALLBACK and self.told < end:
                self.run_callback(durable, written, error)
            elif due == AWAITABLE:
                self.resume_awaitable(durable, error, at_once)
            else:
                return count
            count += 1

    cdef Due next_due(self, int64_t durable, int64_t written, bint has_failed) except *:
        """Which is to be told next, by the order that the class promises."""
        cdef int64_t ticket
        cdef bint sync
        if self.callbacks and (self.first is None or self.told < self.first.behind):
            ticket, sync, _ = self.callbacks[0]
            if has_failed or ticket < (durable if sync else written):
                return CALLBACK
        if self.first is not None \
                and (has_failed or self.first.is_done or self.first.ticket < durable):
            return AWAITABLE
        return NOTHING

    cdef int run_callback(self, int64_t durable, int64_t written, object error) except -1:
        cdef int64_t ticket
        cdef bint sync
        ticket, sync, done = self.callbacks.popleft()
        self.told += 1
        done(None if ticket < (durable if sync else written) else error)
        return 0

    cdef int resume_awaitable(self, int64_t durable, object error, bint at_once) except -1:
        cdef Completion completion = self.first
        self.first = completion.following
        completion.following = None
        if self.first is None:
            self.last = None
        if completion.is_done:
            return 0        # Who asked has given up.
        outcome = None if completion.ticket < durable else error
        if completion.loop is self.loop and not completion.loop.is_closed():
            completion.finish(outcome, self.success if at_once else None)
        elif not completion.loop.is_closed():
            # Left behind by a loop that runs in another thread, or not at all.
            completion.loop.call_soon_threadsafe(finish_later, completion, outcome)
        return 0

    cdef int watch(self) except -1:
        """Have the next completion bump the eventfd; bump it now for what is due already."""
        self.want_event()
        if self.next_due(self.durable_end(), self.written_end(), self.failure() is not None):
            event_bump(self.event_fd)
        return 0


cdef class BufferCompletions(CompletionQueue):
    """Those of a journal, whose flusher bumps one eventfd a group.

    Args:
        buffer: the journal's.
        io_error: gives the JournalIOError that ended the journal.
    """

    def __init__(self, GroupBuffer buffer, object io_error):
        self.buffer = buffer
        self.io_error = io_error
        self.event_fd = buffer.event_fd

    cdef int64_t durable_end(self) noexcept:
        return <int64_t>self.buffer.synced

    cdef int64_t written_end(self) noexcept:
        return <int64_t>self.buffer.written

    cdef object failure(self):
        return self.io_error() if self.buffer.error else None

    cdef bint is_watched(self) noexcept:
        return self.buffer.event_wanted

    cdef int want_event(self) except -1:
        pthread_mutex_lock(&self.buffer.lock)
        self.buffer.event_wanted = True
        pthread_mutex_unlock(&self.buffer.lock)
        return 0


def finish_later(Completion completion, error):
    """End a completion from its own event loop's thread."""
    if not completion.is_done:
        completion.finish(error, None)


cdef object running_loop():
    """The event loop of this thread; RuntimeError where none runs."""
    global get_running_loop
    if get_running_loop is None:
        from asyncio import get_running_loop as found
        get_running_loop = found
    return get_running_loop()


cdef object cancelled():
    from asyncio import CancelledError
    return CancelledError()


cdef object not_done(str what):
    from asyncio import InvalidStateError
    return InvalidStateError(what)
