"""The appends of a store: checked, counted, and put into the batch that fills.

Everything from the look at an id until the operation has its ticket is one step under the GIL; see
writer.pyx for what that asks of the code.
"""

from libc.stdint cimport int64_t, uint8_t

from jdbcstore.batch cimport Batch
from jdbcstore.batch import StagedEnd
from jdbcstore.live cimport LiveIds
from jdbcstore.writer cimport GroupWriter
from journal.values cimport as_id, as_user_type
from journal.errors import (
    DuplicateRecord, JournalClosed, RecordTooLarge, UnknownRecord, not_loaded)

ID_MIN, ID_MAX = -(2 ** 63), 2 ** 63 - 1

cdef enum:
    ADD_RECORD = 11             # jdbcstore.rows
    UPDATE_RECORD = 12
    ADD_RECORD_TX = 13
    UPDATE_RECORD_TX = 14
    DELETE_RECORD_TX = 15


cdef class Appends:
    """What a store does with records, once it is loaded; made by the store itself.

    Args:
        sync_transactional: commit, prepare and rollback wait for the database unless told
            otherwise.
        sync_non_transactional: the same for all other records.
    """

    def __init__(self, bint sync_transactional=True, bint sync_non_transactional=True):
        self.state = "new"
        self.live = LiveIds()
        self.next_seq = 1
        self.sync_transactional = sync_transactional
        self.sync_non_transactional = sync_non_transactional

    # --- records ------------------------------------------------------------------------------

    def add(self, record_id, user_type, body, *, tx=None, sync=None, done=None,
            bint wait=True, bint flush_now=True, bint makes_room=False):
        """Append an add record; a ticket.

        Args:
            record_id: not live in this store, and never used before.
            user_type: 0 to 255, the caller's meaning.
            body: bytes-like, contiguous; copied before this returns.
            tx: open (or new) transaction; the record counts only after its commit.
            sync: make it durable as soon as the database can; None: as the store was told, never
                in a transaction.
            done: called as done(None) or done(error) from reap(), in append order, once the record
                is committed in the database.
            wait: with sync and no `done`: return only once it is.
            flush_now: off, with sync: no caller waits. The record is written with the next batch
                that a caller waits for, at the latest after jdbc-journal-sync-period, or when
                flush_now() is called.
            makes_room: a database keeps no reserve: the same as without.

        Raises:
            DuplicateRecord: the id is live.
            RecordTooLarge: the body is larger than the database takes.
            JournalIOError: the database failed while waiting.
            JournalClosed: closed, or ended by an earlier failure.
        """
        cdef int64_t number = as_id(record_id, "a record id")
        cdef uint8_t user = as_user_type(user_type)
        if tx is not None:
            return self.append_tx(ADD_RECORD_TX, record_id, user_type, body, tx, done)
        cdef bint is_wanted = self.wants_sync(sync)
        cdef bytes data = self.checked_body(body)
        cdef int64_t ticket = self.put(
            number, ADD_RECORD, user, data, is_wanted and flush_now,
            wait and done is None)
        if is_wanted and not flush_now:
            self.writer.defer_sync(ticket)
        self.finish(ticket, is_wanted, done, wait)
        return ticket

    def add_durable(self, record_id, user_type, body):
        """Append an add record; the awaitable of its durability. Errors as for add()."""
        cdef bytes data = self.checked_body(body)
        return self.writer.tickets.durable(
            self.put(as_id(record_id, "a record id"), ADD_RECORD, as_user_type(user_type), data,
                     True, False))

    def add_many(self, record_ids, user_type, bodies, *, tx=None, sync=None, done=None,
                 bint wait=True):
        """Append many adds with one call and at most one wait; the last one's ticket.

        Outside a transaction each record stands alone: after an error those before it are in.
        """
        cdef list ids = list(record_ids), parts = list(bodies)
        cdef bint is_wanted = tx is None and self.wants_sync(sync)
        cdef uint8_t user = as_user_type(user_type)
        cdef Py_ssize_t index
        cdef int64_t ticket
        if len(parts) != len(ids):
            raise ValueError(f"{len(ids)} ids and {len(parts)} bodies")
        self.check_usable()
        # All that can be wrong is found before anything is accepted.
        for record_id in ids:
            check_id(record_id)
        for body in parts:
            if not isinstance(body, bytes):
                raise TypeError(f"a body is bytes, not {type(body).__name__}")
            if tx is not None and len(body) > self.body_size_max:
                self.fail_transaction(tx)
            self.checked_body(body)
        ticket = self.writer.last_ticket()
        for index in range(len(ids)):
            if tx is None:
                ticket = self.put(
                    ids[index], ADD_RECORD, user, bytes(parts[index]), False, True)
            else:
                ticket = self.append_tx(
                    ADD_RECORD_TX, ids[index], user_type, parts[index], tx, None)
        if is_wanted and not (wait and done is None):
            self.writer.want(ticket)
        self.finish(ticket, is_wanted, done, wait)
        return ticket

    def update(self, record_id, user_type, body, *, tx=None, sync=None, done=None,
               bint wait=True, bint flush_now=True, bint makes_room=False):
        """Append an update of a live record; a ticket. Arguments as for add().

        Raises:
            UnknownRecord: the id is not live (not checked in a transaction).
        """
        cdef int64_t number = as_id(record_id, "a record id")
        cdef uint8_t user = as_user_type(user_type)
        if tx is not None:
            return self.append_tx(UPDATE_RECORD_TX, record_id, user_type, body, tx, done)
        cdef bint is_wanted = self.wants_sync(sync)
        cdef bytes data = self.checked_body(body)
        cdef int64_t ticket = self.put(
            number, UPDATE_RECORD, user, data, is_wanted and flush_now,
            wait and done is None)
        if is_wanted and not flush_now:
            self.writer.defer_sync(ticket)
        self.finish(ticket, is_wanted, done, wait)
        return ticket

    def delete(self, record_id, body=b"", *, tx=None, sync=None, done=None,
               bint wait=True):
        """Append a delete of a live record; a ticket. Arguments as for add().

        Only in a transaction may there be a body: it is kept with the delete until that ends.

        Raises:
            UnknownRecord: the id is not live (not checked in a transaction).
        """
        cdef int64_t number = as_id(record_id, "a record id")
        if tx is not None:
            return self.append_tx(DELETE_RECORD_TX, record_id, 0xFF, body, tx, done)
        if memoryview(body).nbytes:
            raise ValueError("only a delete in a transaction carries a body")
        cdef bint is_wanted = self.wants_sync(sync)
        cdef int64_t ticket = self.remove(number, is_wanted, wait and done is None)
        self.finish(ticket, is_wanted, done, wait)
        return ticket

    def try_update(self, record_id, user_type, body, *, sync=None, done=None, wait=True):
        """As update(), but None instead of UnknownRecord; `done` is called in its turn."""
        try:
            return self.update(record_id, user_type, body, sync=sync, done=done, wait=wait)
        except UnknownRecord:
            self.finish_unwritten(self.wants_sync(sync), done, False)

    def try_delete(self, record_id, *, sync=None, done=None, wait=True):
        """As delete(), but None instead of UnknownRecord; `done` is called in its turn."""
        try:
            return self.delete(record_id, sync=sync, done=done, wait=wait)
        except UnknownRecord:
            self.finish_unwritten(self.wants_sync(sync), done, False)

    def event(self, record_id, user_type, body, *, sync=None, done=None, bint wait=True):
        """Do nothing: an event goes to a history, and a table keeps none. As Artemis does."""
        self.check_usable()
        return self.finish_unwritten(self.wants_sync(sync), done, wait)

    # --- for transactions ---------------------------------------------------------------------

    def stage(self, int64_t tx_id, int64_t record_id, int record_type, int user_type, bytes body,
              bytes extra, *, bint is_wanted=False, bint is_blocking=False):
        """Put one row of a transaction that has not ended; (ticket, seq)."""
        self.writer.make_room()
        cdef Batch batch = self.writer.begin_rows()
        cdef int64_t seq = self.next_seq
        cdef int64_t ticket
        batch.reserve_row()
        self.next_seq = seq + 1
        batch.put(record_id, <uint8_t>record_type, <uint8_t>user_type, body, tx_id, extra, seq,
                  False)
        ticket = self.writer.accept(is_wanted, is_blocking)
        return ticket, seq

    def put_operations(self, list operations, bint is_wanted, bint is_blocking, bint flush_now):
        """Put all of a transaction into one batch: adds and updates first, as at a load; a ticket.

        Args:
            operations: jdbcstore.transactions.Operation each.
            is_wanted, is_blocking: see GroupWriter.accept().
            flush_now: as for add().
        """
        cdef int64_t ticket
        cdef object operation
        cdef int record_type
        cdef int64_t record_id
        cdef Batch batch
        self.writer.make_room()
        batch = self.writer.begin_rows()
        try:
            for operation in operations:
                record_type = operation[0]
                record_id = operation[1]
                if record_type != DELETE_RECORD_TX:
                    batch.reserve_row()
                    batch.put(
                        record_id, <uint8_t>(record_type - (ADD_RECORD_TX - ADD_RECORD)),
                        <uint8_t><int>operation[2], <bytes>operation[3], 0, None, self.next_seq,
                        not self.live.put(record_id))
                    self.next_seq += 1
            for operation in operations:
                record_type = operation[0]
                if record_type == DELETE_RECORD_TX:
                    record_id = operation[1]
                    batch.reserve_delete()
                    self.live.take(record_id)
                    batch.remove(record_id)
        except MemoryError as error:
            self.writer.fail(error)     # A part of it must never be written.
            raise
        ticket = self.writer.accept(is_wanted and flush_now, is_blocking)
        if is_wanted and not flush_now:
            self.writer.defer_sync(ticket)
        return ticket

    def end_staged(self, one, bint is_commit, bint is_wanted, bint is_blocking):
        """Have the database rewrite the rows of a staged transaction, or delete them; a ticket."""
        cdef int64_t offset = 0, first = one.first_seq, final = one.final_seq
        cdef int64_t ticket
        self.writer.make_room()
        if is_commit:
            # Behind all others; no other operation gets these numbers.
            offset = self.next_seq - first
            self.next_seq += final - first + 1
        deleted_ids = tuple(one.deleted_ids) if is_commit else ()
        ticket = self.writer.accept_end(
            StagedEnd(one.tx_id, bool(is_commit), deleted_ids, offset), is_wanted, is_blocking)
        if is_commit:
            for record_id in one.live_ids:
                self.live.put(record_id)
            for record_id in deleted_ids:
                self.live.take(record_id)
        return ticket

    def finish_append(self, int64_t ticket, bint sync, done, bint wait):
        """What every append ends with: the wait, or the callback for later."""
        self.finish(ticket, sync, done, wait)
        return ticket

    def finish_unwritten(self, bint sync, done, bint wait):
        """End an operation that had nothing to write; the ticket of what was appended before it.

        It is told in its turn: with sync once all before it is durable.
        """
        cdef int64_t ticket = self.writer.last_ticket()
        if sync and done is not None:
            self.writer.want(ticket)
        self.finish(ticket, sync, done, wait)
        return ticket

    def last_ticket(self):
        """The ticket of all that was accepted so far."""
        return self.writer.last_ticket()

    def ensure_usable(self):
        """Refuse what a store cannot take that is closed, failed or not loaded.

        Raises:
            JournalClosed: closed, or ended by a failure.
            WrongState: not loaded.
        """
        self.check_usable()

    def checked(self, body):
        """The body as bytes, for a store that is usable."""
        return self.checked_body(body)

    # --- inner steps --------------------------------------------------------------------------

    cdef int64_t put(self, int64_t record_id, uint8_t record_type, uint8_t user_type, bytes body,
                     bint is_wanted, bint is_blocking) except -1:
        """Put an add or an update into the batch that fills; its ticket."""
        cdef GroupWriter writer = self.writer
        cdef Batch batch
        writer.make_room()
        batch = writer.begin_rows()
        batch.reserve_row()
        if record_type == ADD_RECORD:
            if not self.live.put(record_id):
                raise DuplicateRecord(f"record {record_id} is live already")
        elif not self.live.has(record_id):
            raise UnknownRecord(f"Cannot find add info {record_id}")
        batch.put(record_id, record_type, user_type, body, 0, None, self.next_seq, False)
        self.next_seq += 1
        return writer.accept(is_wanted, is_blocking)

    cdef int64_t remove(self, int64_t record_id, bint is_wanted, bint is_blocking) except -1:
        """Put a delete into the batch that fills; its ticket."""
        cdef GroupWriter writer = self.writer
        cdef Batch batch
        self.check_usable()
        writer.make_room()
        batch = writer.begin_rows()
        batch.reserve_delete()
        if not self.live.take(record_id):
            raise UnknownRecord(f"Cannot find add info {record_id}")
        batch.remove(record_id)
        return writer.accept(is_wanted, is_blocking)

    cdef int finish(self, int64_t ticket, bint sync, object done, bint wait) except -1:
        if done is not None:
            self.writer.tickets.call_later(ticket, True, done)
        elif sync and wait:
            self.writer.wait(ticket)
        return 0

    cdef bytes checked_body(self, object body):
        """A body as bytes that no row is too small for, in a store that accepts appends."""
        cdef bytes data = body if type(body) is bytes else bytes(memoryview(body))
        self.check_usable()
        if len(data) > self.body_size_max:
            raise RecordTooLarge(
                f"a body of {len(data)} bytes is larger than {self.body_size_max} bytes, "
                "what this database takes in one row")
        return data

    cdef int check_usable(self) except -1:
        if self.writer is None or self.state != "loaded":
            if self.state == "forked":
                raise self.failure
            if self.state == "closed":
                raise JournalClosed("the store is closed") from self.failure
            raise not_loaded("store", self.state)
        if self.writer.tickets.error is not None:
            error = self.writer.tickets.error
            raise JournalClosed(f"the store ended: {error}") from error
        return 0

    cdef inline bint wants_sync(self, object sync) except -1:
        return self.sync_non_transactional if sync is None else bool(sync)


def check_id(number):
    """Refuse what is no 64-bit number.

    Raises:
        TypeError: not an int.
        OverflowError: too large.
    """
    if type(number) is not int:
        raise TypeError(f"an id is an int, not {type(number).__name__}")
    if not ID_MIN <= number <= ID_MAX:
        raise OverflowError(f"{number} is not a 64-bit number")
