"""What puts records into a journal: the typed header of appends.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.lifecycle cimport JournalLifecycle

# Why put() refuses, before anything has changed.
cdef enum:
    ACCEPTED = 0
    DUPLICATE = 1
    UNKNOWN = 2
    UNKNOWN_TX = 3

cdef class JournalAppends(JournalLifecycle):
    cdef bint leaders, sync_transactional, sync_non_transactional
    cdef bint[256] replaceable
    cdef set failed_txs         # that lost an operation: nothing but a rollback is taken

    cdef object append(self, uint8_t type, object record_id, object user_type, object body,
                       object tx, object sync, object done, bint wait, bint flush_now=*,
                       bint makes_room=*)
    cdef int refuse_failed(self, uint8_t type, int64_t tx_id) except -1
    cdef int64_t put_object(self, uint8_t type, int64_t tx_id, int64_t record_id, uint8_t user,
                            object body, int sync, bint frees) except -1
    cdef int64_t put(self, uint8_t type, int64_t tx_id, int64_t record_id, uint8_t user_type,
                     const uint8_t *body, uint32_t body_size, int sync, bint frees) except -1
    cdef uint64_t write_record(self, uint8_t *where, uint8_t type, int64_t tx_id,
                               int64_t record_id, uint8_t user_type, const uint8_t *body,
                               uint32_t body_size, uint32_t size, int sync) noexcept nogil
    cdef int refusal(self, uint8_t type, int64_t tx_id, int64_t record_id) noexcept nogil
    cdef bint wants_sync(self, uint8_t type, sync) except -1
    cdef object finish(self, int64_t ticket, bint sync, object done, bint wait)
    cdef int64_t finish_unwritten(self, uint8_t type, object sync, object done,
                                  bint wait) except -2
    cdef int wait_for(self, int64_t ticket, bint sync) except -1
