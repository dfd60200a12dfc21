"""The journal: the typed header of journal.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.buffer cimport GroupBuffer
from journal.compaction cimport Compaction
from journal.completion cimport CompletionQueue
from journal.data_files cimport DataFiles
from journal.files.base cimport BackEnd, Folder, OpenFile
from journal.history cimport HistoryKeeper
from journal.index cimport RecordIndex
from journal.keeper cimport FileKeeper

cdef class Journal:
    # Identity and settings.
    cdef readonly object options
    cdef readonly Folder folder
    cdef BackEnd back_end
    cdef readonly object pool
    cdef bint leaders, sync_transactional, sync_non_transactional
    cdef bint[256] replaceable
    cdef readonly uint32_t record_size_max
    # State. Index and buffer are guarded by the buffer's lock; Python objects by the GIL, which is
    # never taken while that lock is held.
    cdef readonly str state
    cdef bint loaded            # appends are welcome
    cdef RecordIndex index
    cdef GroupBuffer buffer
    cdef int64_t next_tx_id
    cdef set failed_txs         # that lost an operation: nothing but a rollback is taken
    cdef CompletionQueue completions
    # The files, and who looks after them; from load() on.
    cdef DataFiles files
    cdef HistoryKeeper history
    cdef Compaction compaction
    cdef FileKeeper keeper

    cdef object append(self, uint8_t type, int64_t record_id, object user_type, object body,
                       object tx, object sync, object done, bint wait)
    cdef int refuse_failed(self, uint8_t type, int64_t tx_id) except -1
    cdef int64_t put_object(self, uint8_t type, int64_t tx_id, int64_t record_id, uint8_t user,
                            object body, bint wants_sync) except -1
    cdef int64_t put(self, uint8_t type, int64_t tx_id, int64_t record_id, uint8_t user_type,
                     const uint8_t *body, uint32_t body_size, bint sync) except -1
    cdef uint64_t write_record(self, uint8_t *where, uint8_t type, int64_t tx_id,
                               int64_t record_id, uint8_t user_type, const uint8_t *body,
                               uint32_t body_size, uint32_t size, bint sync) noexcept nogil
    cdef int refusal(self, uint8_t type, int64_t tx_id, int64_t record_id) noexcept nogil
    cdef bint wants_sync(self, uint8_t type, sync) except -1
    cdef int check_was_loaded(self) except -1
    cdef int check_usable(self) except -1
    cdef object finish(self, int64_t ticket, bint sync, object done, bint wait)
    cdef int wait_for(self, uint64_t ticket, bint sync) except -1
