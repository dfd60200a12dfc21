"""The journal: records appended, made durable together, found again, and their files reused.

    add, update, delete ... ─▶ put() ─▶ GroupBuffer ─▶ flusher thread ─▶ file
                                 │                         │
                            RecordIndex              tickets, eventfd ─▶ wait(), durable(), reap()

Here: what is called of it. How one record is put in: appends.pyx. How a journal opens, loads and
closes: lifecycle.pyx.

A failed write or sync ends it: every waiter gets JournalIOError, later calls JournalClosed with
that as the cause.

Threads: any number may append and wait. The journal has two threads of its own, the flusher
(native, never takes the GIL) and the files thread. docs/threads.md has the lock order.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from journal.appends cimport ACCEPTED, JournalAppends
from journal.atomics cimport load64
from journal.batch_ring cimport RESERVED
from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.format cimport (
    ADD_RECORD, ADD_RECORD_TX, COMMIT_RECORD, DELETE_RECORD, DELETE_RECORD_TX, EVENT_RECORD,
    PREPARE_RECORD, ROLLBACK_RECORD, UPDATE_RECORD, UPDATE_RECORD_TX, record_size)
from journal.values cimport as_id, as_user_type

from journal.errors import JournalIOError, UnknownRecord, WrongUse
from journal.transaction import Transaction

__all__ = ["Journal"]

cdef int64_t ID_MAX = 2 ** 63 - 1

cdef enum:
    BATCH_CHUNK = 64            # records put under one hold of the lock


cdef class Journal(JournalAppends):
    """A journal in Artemis's file format, a RecordStore.

    Args:
        options: how it is kept; journal.options.JournalOptions.
    """

    # --- records ------------------------------------------------------------------------------

    def add(self, record_id, user_type, body, *, tx=None, sync=None, done=None,
            bint wait=True, bint flush_now=True, bint makes_room=False):
        """Append an add record; a ticket.

        Args:
            record_id: not live in this journal, and never used before.
            user_type: 0 to 255, the caller's meaning.
            body: bytes-like, contiguous; copied before this returns.
            tx: open (or new) transaction; the record counts only after its commit.
            sync: make it durable as soon as the disk can; None: as the options say, never in a
                transaction.
            done: called as done(None) or done(error) from reap(), in append order, once the
                record is durable (with sync) or in its file (without).
            wait: with sync and no `done`: return only once it is durable.
            flush_now: off, with sync: the record has no waiter. It is synced with the next sync, at
                the latest journal-buffer-timeout from now, or when flush_now() is called.
            makes_room: other records can be deleted because of this one, as of an acknowledgement.
                On a full disk it is accepted, as deletes and the ends of transactions are.

        Raises:
            DuplicateRecord: the id is live.
            RecordTooLarge: the body fits neither one file nor the buffer.
            JournalFull: the disk has no room for another file; nothing was appended.
            JournalIOError: the disk failed while waiting.
            JournalClosed: closed, or ended by an earlier failure.
            TypeError, ValueError, OverflowError: an id or user type that is none; nothing is cut.
        """
        return self.append(ADD_RECORD if tx is None else ADD_RECORD_TX, record_id, user_type,
                           body, tx, sync, done, wait, flush_now, makes_room)

    def add_durable(self, record_id, user_type, body):
        """Append an add record; the awaitable of its durability.

        durable(add(..., sync=True, wait=False)) in one call, for event loops that do little else.
        Errors as for add().
        """
        return self.completions.durable(self.append(
            ADD_RECORD, record_id, user_type, body, None, True, None, False))

    def update(self, record_id, user_type, body, *, tx=None, sync=None, done=None,
               bint wait=True, bint flush_now=True, bint makes_room=False):
        """Append an update of a live record; a ticket. Arguments as for add().

        Raises:
            UnknownRecord: the id is not live (not checked in a transaction).
        """
        return self.append(UPDATE_RECORD if tx is None else UPDATE_RECORD_TX, record_id,
                           user_type, body, tx, sync, done, wait, flush_now, makes_room)

    def delete(self, record_id, body=b"", *, tx=None, sync=None, done=None,
               bint wait=True):
        """Append a delete of a live record; a ticket. Arguments as for add().

        Args:
            body: only in a transaction: kept with the delete until the transaction ends.

        Raises:
            UnknownRecord: the id is not live (not checked in a transaction).
        """
        if tx is None and len(body):
            raise ValueError("only a delete in a transaction carries a body")
        return self.append(DELETE_RECORD if tx is None else DELETE_RECORD_TX, record_id, 0, body,
                           tx, sync, done, wait)

    def try_update(self, record_id, user_type, body, *, sync=None, done=None,
                   bint wait=True):
        """As update(), but None instead of UnknownRecord; `done` is called in its turn."""
        try:
            return self.update(record_id, user_type, body, sync=sync, done=done, wait=wait)
        except UnknownRecord:
            self.finish_unwritten(UPDATE_RECORD, sync, done, False)

    def try_delete(self, record_id, *, sync=None, done=None, bint wait=True):
        """As delete(), but None instead of UnknownRecord; `done` is called in its turn."""
        try:
            return self.delete(record_id, sync=sync, done=done, wait=wait)
        except UnknownRecord:
            self.finish_unwritten(DELETE_RECORD, sync, done, False)

    def event(self, record_id, user_type, body, *, sync=None, done=None,
              bint wait=True):
        """Append an event: kept only in the history, never loaded, pins nothing; a ticket."""
        return self.append(EVENT_RECORD, record_id, user_type, body, None, sync, done, wait)

    def add_many(self, record_ids, user_type, bodies, *, tx=None, sync=None, done=None,
                 bint wait=True):
        """Append many adds with one call and at most one wait; the last one's ticket.

        Args:
            record_ids: a sequence of ids.
            user_type: of all of them.
            bodies: a sequence of bytes, as long as record_ids.
            tx, sync, done, wait: as for add(), for the whole batch.

        Outside a transaction each record stands alone: after an error those before it are in.
        """
        cdef list ids = list(record_ids)
        cdef list parts = list(bodies)
        cdef Py_ssize_t count = len(ids), i = 0, j, end
        cdef uint8_t type_byte = ADD_RECORD if tx is None else ADD_RECORD_TX
        cdef uint8_t user = as_user_type(user_type)
        cdef int64_t tx_id = 0 if tx is None else as_id(tx, "a transaction id")
        cdef int64_t ticket = 0, record_id
        cdef bint wants_sync = False if tx is not None else self.wants_sync(type_byte, sync)
        cdef bytes body
        cdef uint8_t *where
        cdef uint32_t size
        cdef int result, refused
        if len(parts) != count:
            raise ValueError(f"{count} ids and {len(parts)} bodies")
        self.check_usable()
        if tx is not None and self.failed_txs and tx_id in self.failed_txs:
            self.refuse_failed(type_byte, tx_id)
        if not count:
            return self.finish_unwritten(type_byte, sync, done, wait)
        # All that can be wrong is found before the lock is taken.
        for number in ids:
            if type(number) is not int:
                raise TypeError(f"a record id is an int, not {type(number).__name__}")
            record_id = number
        for body in parts:
            if body is None:
                raise TypeError("a body is bytes, not None")
            if PyBytes_GET_SIZE(body) > self.record_size_max - record_size(type_byte, 0):
                if tx is not None:
                    self.failed_txs.add(tx_id)
                raise self.too_large(PyBytes_GET_SIZE(body))
        while i < count:
            end = min(i + BATCH_CHUNK, count)
            result = RESERVED
            refused = ACCEPTED
            j = i
            pthread_mutex_lock(&self.buffer.lock)
            # No Python object is made in here, so that nothing can give up the GIL.
            while j < end:
                record_id = <int64_t>ids[j]
                refused = self.refusal(type_byte, tx_id, record_id)
                if refused:
                    break
                body = <bytes>parts[j]
                size = record_size(type_byte, <uint32_t>PyBytes_GET_SIZE(body))
                result = self.buffer.reserve(size, &where, False)
                if result != RESERVED:
                    break
                ticket = <int64_t>self.write_record(
                    where, type_byte, tx_id, record_id, user,
                    <const uint8_t *>PyBytes_AS_STRING(body),
                    <uint32_t>PyBytes_GET_SIZE(body), size, wants_sync and j + 1 == count)
                j += 1
            current = self.files.current
            self.buffer.release()
            i = j
            if refused:
                raise self.refused(refused, record_id, tx_id)
            if result != RESERVED:
                try:
                    self.files.make_room(result, current, False)
                except JournalIOError:
                    if tx is not None:
                        self.failed_txs.add(tx_id)
                    raise
        return self.finish(ticket, wants_sync, done, wait)

    # --- transactions -------------------------------------------------------------------------

    def transaction(self, tx=None, *, sync=None):
        """A transaction as a context manager: `with journal.transaction() as tx: tx.add(...)`.

        The end of the block commits, an exception rolls back; `async with` awaits the commit.

        Args:
            tx: its id; None takes one of begin().
            sync: of the commit; None: as the options say.
        """
        return Transaction(self, self.begin() if tx is None else tx, sync=sync)

    def begin(self):
        """An unused transaction id: 1 or above, and above all that load() found.

        The id of any transaction that is not open will do, too, 0 among them.

        Raises:
            WrongUse: the highest 64-bit number was given out.
        """
        while self.next_tx_id < ID_MAX:
            self.next_tx_id += 1
            if not self.tx_is_known(self.next_tx_id):
                return self.next_tx_id
        raise WrongUse(f"no transaction id is left above {ID_MAX}: choose an unused one")

    cdef bint tx_is_known(self, int64_t tx_id) except -1:
        """Whether the transaction is open, or has failed and awaits its rollback."""
        cdef bint is_open
        self.check_usable()
        pthread_mutex_lock(&self.buffer.lock)
        is_open = self.index.tx_is_open(tx_id)
        pthread_mutex_unlock(&self.buffer.lock)
        return is_open or tx_id in self.failed_txs

    def prepare(self, tx, extra=b"", *, sync=None, done=None, bint wait=True):
        """Make the transaction survive as prepared, with `extra` data for its owner; a ticket."""
        return self.append(PREPARE_RECORD, 0, 0, extra, tx, sync, done, wait)

    def commit(self, tx, *, sync=None, done=None, bint wait=True, bint flush_now=True):
        """Make all of the transaction count; a ticket. `flush_now` is as for add().

        Raises:
            UnknownTransaction: it has no record, or has ended.
        """
        return self.append(COMMIT_RECORD, 0, 0, b"", tx, sync, done, wait, flush_now)

    def rollback(self, tx, *, sync=None, done=None, bint wait=True):
        """Make none of the transaction count; a ticket.

        Raises:
            UnknownTransaction: it has no record, or has ended.
        """
        return self.append(ROLLBACK_RECORD, 0, 0, b"", tx, sync, done, wait)

    cdef int roll_back(self, list tx_ids) except -1:
        """Append a rollback for each, without waiting."""
        for tx_id in tx_ids:
            self.rollback(tx_id, sync=False, wait=False)
        return 0

    # --- completion ---------------------------------------------------------------------------

    def wait(self, ticket):
        """Return once everything up to `ticket` is durable; requests the sync if needed.

        Raises:
            JournalIOError: the disk failed; what is beyond `durable_ticket` is unknown.
            WrongUse: this journal has not given that ticket.
        """
        cdef int64_t number = as_id(ticket, "a ticket")
        self.check_given(number)
        self.wait_for(number, True)

    def sync(self):
        """Return once everything accepted so far is durable.

        Raises:
            JournalIOError: the disk failed.
        """
        self.check_usable()
        self.files.sync()

    def flush_now(self):
        """Let nothing wait for its time that was appended with sync and without flush_now.

        Returns at once.
        """
        if self.buffer is not None:
            with nogil:
                self.buffer.flush_now()

    def prewarm(self):
        """Somebody is about to append what he waits for: let the flusher wake meanwhile.

        Returns at once, and changes nothing else; nothing need come.
        """
        if self.buffer is not None:
            with nogil:
                self.buffer.prewarm()

    def reserve_ends(self, count):
        """Keep room for the ends of what is kept elsewhere: `count` records that make room.

        Room for one is 80 bytes, as for the end of a live record. The last count holds. Returns at
        once; the files are made soon.

        Returns:
            False while the disk is full and the files that are there are too few.

        Raises:
            JournalClosed: it is not open.
        """
        cdef int64_t number = as_id(count, "a count")
        self.check_usable()
        return self.files.reserve_ends(number)

    cdef bint check_given(self, int64_t ticket) except -1:
        """Whether there is anything to wait for; refuse a ticket that nothing would end."""
        cdef int64_t last
        self.check_was_loaded()
        if ticket < <int64_t>load64(&self.buffer.synced):
            return False
        pthread_mutex_lock(&self.buffer.lock)
        last = self.buffer.last_ticket()
        pthread_mutex_unlock(&self.buffer.lock)
        if ticket > last:
            raise WrongUse(f"ticket {ticket} was not given by this journal: the last one is {last}")
        return True

    def durable(self, ticket):
        """An awaitable of the running loop, done once everything up to `ticket` is durable.

        Requests the sync if no other caller has. A caller that gives up waiting, by a timeout say,
        delays no other caller.

        Raises:
            WrongUse: this journal has not given that ticket.
        """
        cdef int64_t number = as_id(ticket, "a ticket")
        if self.check_given(number):
            self.buffer.want(number)
        return self.completions.durable(number)

    def reap(self):
        """Call the `done` callbacks and end the awaitables that are due, in append order; how many.

        An event loop does it by itself; without one, call on_event() when fileno() is readable.
        One thread reaps at a time: for any other, and for a callback, it does nothing.
        """
        return 0 if self.completions is None else self.completions.reap(False)

    def fileno(self):
        """A descriptor that becomes readable when there is something to reap."""
        self.check_was_loaded()
        return self.buffer.event_fd

    @property
    def durable_ticket(self):
        """Tickets below this number are durable."""
        self.check_was_loaded()
        return self.buffer.synced

    def attach_loop(self, loop, after_reap=None):
        """Let `loop` reap from now on. durable() does it; for callbacks call it yourself.

        Args:
            loop: watches fileno().
            after_reap: called without arguments behind each reap() that called a `done`: once for
                all of them. None leaves the one of the call before.
        """
        self.check_was_loaded()
        self.completions.attach(loop, after_reap)

    def detach_loop(self):
        """Take the eventfd out of the event loop."""
        if self.completions is not None:
            self.completions.detach()

    def on_event(self):
        """Reap, and have the next completion make fileno() readable again.

        For a poll loop of one's own, when fileno() is readable; an asyncio loop does it by itself.
        """
        self.check_was_loaded()
        self.completions.take_event(False)
