"""One record into the journal: checked, put into the buffer under its lock, and told when durable.

    append() ─▶ put_object() ─▶ put() ─┬─ refusal()        by the index
                                       ├─ reserve()        room in the buffer, or another file
                                       └─ write_record()   the index counts it, format encodes it
"""

from libc.errno cimport ENOMEM
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE

from journal.batch_ring cimport RESERVED, SYNCED_IN_TIME
from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.data_files cimport DataFile
from journal.files.base cimport OpenFile
from journal.format cimport (
    ADD_RECORD, ADD_RECORD_TX, COMMIT_RECORD, DELETE_RECORD, DELETE_RECORD_TX, PREPARE_RECORD,
    ROLLBACK_RECORD, UPDATE_RECORD, UPDATE_RECORD_TX, encode_leader, encode_record, record_size)
from journal.index cimport TX_ADD, TX_DELETE, TX_REPLACEABLE, TX_UPDATE
from journal.lifecycle cimport JournalLifecycle
from journal.values cimport as_id, as_user_type
from journal.waiters cimport WOKEN_BY_A_SIGNAL

from journal.errors import (
    DuplicateRecord, JournalIOError, RecordTooLarge, TransactionFailed, UnknownRecord,
    UnknownTransaction, WrongUse)


cdef class JournalAppends(JournalLifecycle):
    """What puts records into a journal.

    Args:
        options: how it is kept; journal.options.JournalOptions.
    """

    def __cinit__(self, options):
        self.failed_txs = set()
        self.leaders = options.checksums
        self.sync_transactional = options.sync_transactional
        self.sync_non_transactional = options.sync_non_transactional
        for user_type in options.replaceable_types:
            self.replaceable[<uint8_t>(user_type & 0xFF)] = True

    cdef object append(self, uint8_t type, object record_id, object user_type, object body,
                       object tx, object sync, object done, bint wait, bint flush_now=True,
                       bint makes_room=False):
        """Put one record of any kind; a ticket."""
        cdef int64_t number = as_id(record_id, "a record id")
        cdef int64_t tx_id = 0
        cdef uint8_t user = as_user_type(user_type)
        cdef bint wants_sync
        cdef int64_t ticket
        if tx is not None or type >= PREPARE_RECORD:
            tx_id = as_id(tx, "a transaction id")
        wants_sync = self.wants_sync(type, sync)
        if tx is not None and self.failed_txs and tx_id in self.failed_txs:
            if self.refuse_failed(type, tx_id):
                return self.finish_unwritten(type, sync, done, wait)
        try:
            ticket = self.put_object(type, tx_id, number, user, body,
                                     SYNCED_IN_TIME if wants_sync and not flush_now else wants_sync,
                                     makes_room or DELETE_RECORD_TX <= type <= ROLLBACK_RECORD)
        except (WrongUse, JournalIOError):
            if tx is not None and type <= DELETE_RECORD_TX:
                self.failed_txs.add(tx_id)
            raise
        return self.finish(ticket, wants_sync, done, wait)

    cdef int refuse_failed(self, uint8_t type, int64_t tx_id) except -1:
        """An operation of the transaction failed: only a rollback is left, and that ends it.

        1 when nothing of the transaction was ever written, so that there is nothing to roll back.
        """
        if type != ROLLBACK_RECORD:
            raise TransactionFailed(
                f"transaction {tx_id} lost an operation to an earlier error: roll it back")
        self.failed_txs.discard(tx_id)
        return 0 if self.index.tx_is_open(tx_id) else 1

    cdef int64_t put_object(self, uint8_t type, int64_t tx_id, int64_t record_id, uint8_t user,
                            object body, int sync, bint frees) except -1:
        """put() with the bytes of any bytes-like object."""
        cdef Py_buffer view
        if PyBytes_CheckExact(body):
            if PyBytes_GET_SIZE(body) > 0x7FFFFF00:
                raise self.too_large(PyBytes_GET_SIZE(body))
            return self.put(type, tx_id, record_id, user,
                            <const uint8_t *>PyBytes_AS_STRING(body),
                            <uint32_t>PyBytes_GET_SIZE(body), sync, frees)
        PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
        try:
            if view.len > 0x7FFFFF00:
                raise self.too_large(view.len)
            return self.put(type, tx_id, record_id, user, <const uint8_t *>view.buf,
                            <uint32_t>view.len, sync, frees)
        finally:
            PyBuffer_Release(&view)

    cdef bint wants_sync(self, uint8_t type, sync) except -1:
        if ADD_RECORD_TX <= type <= DELETE_RECORD_TX:
            return False
        if sync is not None:
            return sync
        if type >= PREPARE_RECORD:
            return self.sync_transactional
        return self.sync_non_transactional

    cdef object finish(self, int64_t ticket, bint sync, object done, bint wait):
        if done is not None:
            self.completions.call_later(ticket, sync, done)
        elif wait:
            if sync:
                self.wait_for(ticket, True)
            elif self.buffer.timer_off:
                self.wait_for(ticket, False)
        return ticket

    cdef int64_t finish_unwritten(self, uint8_t type, object sync, object done,
                                  bint wait) except -2:
        """End an operation that had nothing to write; the ticket of what was appended before it.

        It is told in its turn: with sync once all before it is durable.
        """
        cdef bint wants_sync = self.wants_sync(type, sync)
        cdef int64_t ticket
        self.check_usable()
        pthread_mutex_lock(&self.buffer.lock)
        ticket = self.buffer.last_ticket()
        if wants_sync:
            self.buffer.sync_all()
        self.buffer.release()
        self.finish(ticket, wants_sync, done, wait)
        return ticket

    cdef int wait_for(self, int64_t ticket, bint sync) except -1:
        cdef int result
        self.check_was_loaded()
        if ticket < <int64_t>(self.buffer.synced if sync else self.buffer.written):
            return 0
        while True:
            with nogil:
                result = self.buffer.wait_synced(ticket) if sync \
                    else self.buffer.wait_written(ticket)
            if result != WOKEN_BY_A_SIGNAL:
                break
            PyErr_CheckSignals()
        if result < 0:
            raise self.files.io_error()
        return 0

    cdef int64_t put(self, uint8_t type, int64_t tx_id, int64_t record_id, uint8_t user_type,
                     const uint8_t *body, uint32_t body_size, int sync, bint frees) except -1:
        cdef uint32_t size = record_size(type, body_size)
        cdef uint8_t *where
        cdef int result, refused
        cdef uint64_t ticket
        cdef DataFile current
        if not self.loaded:
            self.check_usable()
        if size > self.record_size_max:
            raise self.too_large(body_size)
        while True:
            pthread_mutex_lock(&self.buffer.lock)
            refused = self.refusal(type, tx_id, record_id)
            if refused:
                pthread_mutex_unlock(&self.buffer.lock)
                raise self.refused(refused, record_id, tx_id)
            result = self.buffer.reserve(size, &where, frees)
            if result == RESERVED:
                break
            current = self.files.current
            pthread_mutex_unlock(&self.buffer.lock)
            self.files.make_room(result, current, frees)
        ticket = self.write_record(where, type, tx_id, record_id, user_type, body, body_size,
                                   size, sync)
        self.buffer.release()
        return <int64_t>ticket

    cdef int refusal(self, uint8_t type, int64_t tx_id, int64_t record_id) noexcept nogil:
        """Why the record cannot be appended, under the lock; ACCEPTED when it can."""
        if type == ADD_RECORD:
            return DUPLICATE if self.index.contains(record_id) else ACCEPTED
        if type == UPDATE_RECORD or type == DELETE_RECORD:
            return ACCEPTED if self.index.contains(record_id) else UNKNOWN
        if type == COMMIT_RECORD or type == ROLLBACK_RECORD:
            return ACCEPTED if self.index.tx_is_open(tx_id) else UNKNOWN_TX
        return ACCEPTED

    cdef uint64_t write_record(self, uint8_t *where, uint8_t type, int64_t tx_id,
                               int64_t record_id, uint8_t user_type, const uint8_t *body,
                               uint32_t body_size, uint32_t size, int sync) noexcept nogil:
        """Encode the record where room was reserved, and let it count; its ticket."""
        cdef OpenFile *file = self.buffer.file
        cdef int32_t records_in_file = 0
        cdef int result = 0
        if type == ADD_RECORD:
            result = self.index.add(record_id, file.slot, size)
        elif type == UPDATE_RECORD:
            result = self.index.update(record_id, file.slot, size, self.replaceable[user_type])
        elif type == DELETE_RECORD:
            result = self.index.remove(record_id, file.slot)
        elif type == ADD_RECORD_TX:
            result = self.index.tx_operation(tx_id, TX_ADD, record_id, file.slot, size)
        elif type == UPDATE_RECORD_TX:
            result = self.index.tx_operation(
                tx_id, TX_REPLACEABLE if self.replaceable[user_type] else TX_UPDATE, record_id,
                file.slot, size)
        elif type == DELETE_RECORD_TX:
            result = self.index.tx_operation(tx_id, TX_DELETE, record_id, file.slot, size)
        elif type == PREPARE_RECORD:
            result = records_in_file = self.index.tx_prepare(tx_id, file.slot)
        elif type == COMMIT_RECORD:
            records_in_file = self.index.tx_count_in(tx_id, file.slot)
            result = self.index.tx_commit(tx_id, file.slot)
        elif type == ROLLBACK_RECORD:
            result = self.index.tx_rollback(tx_id, file.slot)
        encode_record(where, type, file.file_id, 0, tx_id, record_id, user_type, body, body_size,
                      records_in_file)
        if self.leaders:
            encode_leader(where, file.file_id, file.ordinal, size)
        if result < 0:
            # What is live is no longer known: stop before anything else is acknowledged.
            self.buffer.fail(ENOMEM)
        return self.buffer.accept(sync)

    # --- errors -------------------------------------------------------------------------------

    def too_large(self, size):
        """RecordTooLarge in words."""
        return RecordTooLarge(
            f"a body of {size} bytes makes a record larger than {self.record_size_max} bytes, "
            "what fits journal-file-size and journal-buffer-size")

    def refused(self, int why, int64_t record_id, int64_t tx_id):
        """The error for what refusal() found."""
        if why == DUPLICATE:
            return DuplicateRecord(f"record {record_id} is live already")
        if why == UNKNOWN:
            return UnknownRecord(f"Cannot find add info {record_id}")
        return UnknownTransaction(f"Cannot find tx with id {tx_id}")
