"""The live view of a journal in columns of C: the typed header of replay.pyx."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.format cimport ADD_RECORD_TX, DELETE_RECORD_TX, PREPARE_RECORD, Record
from journal.id_map cimport IdMap
from journal.index cimport RecordIndex
from journal.scan cimport FileScan

# One record that counts, or may: where to read its body again.
cdef struct Locator:
    int64_t record_id
    uint64_t body_offset
    uint32_t body_size
    int32_t file                # number of the file in the load
    uint32_t head_size          # body_offset less the offset of the type byte
    uint8_t type
    uint8_t user_type
    uint8_t compact_count
    uint8_t checksum

cdef struct Locators:
    Locator *first
    size_t count
    size_t room

# A transaction that has neither committed nor rolled back yet.
cdef struct Holder:
    int64_t tx_id
    uint64_t sequence           # order of the first record seen
    Locators operations
    Locator extra               # the prepare record
    bint is_used
    bint is_prepared
    bint is_invalid             # damaged: never to be committed
    int32_t next_unused

# Why a transaction was dropped.
cdef enum Dropped:
    DROPPED_COUNT = 0
    DROPPED_TAINTED = 1
    DROPPED_PREPARE = 2
    DROPPED_INVALID = 3


@cython.final
cdef class Replay:
    # Settings.
    cdef RecordIndex index
    cdef bint[256] replaceable
    cdef int64_t prune_count
    # The live view.
    cdef Locators live
    cdef IdMap deleted
    cdef uint64_t deletes_since_prune
    cdef list without_add       # ids of updates that pin their files as adds do, for now
    cdef int64_t max_id
    # Open transactions.
    cdef Holder *holders
    cdef uint32_t holder_count
    cdef uint32_t holder_room
    cdef int32_t holder_unused
    cdef IdMap open_txs         # tx id -> index in holders
    cdef IdMap tainted          # open transactions that lost a record
    cdef uint64_t next_sequence
    # Of the file being applied.
    cdef bint file_has_data
    cdef list dropped           # (offset, size, tx id, Dropped)

    cdef int apply(self, FileScan scan, int32_t file, int32_t slot) noexcept nogil
    cdef int apply_record(self, const Record *record, int32_t file, int32_t slot) noexcept nogil
    cdef int hold_update(self, const Record *record, int32_t slot) noexcept with gil
    cdef int apply_operation(self, const Record *record, int32_t file, int32_t slot) noexcept nogil
    cdef int apply_prepare(self, const Record *record, int32_t file, int32_t slot) noexcept nogil
    cdef int apply_commit(self, const Record *record, int32_t slot) noexcept nogil
    cdef int apply_rollback(self, const Record *record, int32_t slot) noexcept nogil
    cdef int note_dropped(self, const Record *record, int what) except -1 with gil
    cdef int emit(self, const Locator *locator) noexcept nogil
    cdef int emit_delete(self, int64_t record_id) noexcept nogil
    cdef void prune(self) noexcept nogil
    cdef Holder *holder(self, int64_t tx_id) noexcept nogil
    cdef Holder *open_holder(self, int64_t tx_id) noexcept nogil
    cdef void close_holder(self, Holder *holder) noexcept nogil
    cdef int taint_open(self) noexcept nogil


cdef inline bint is_tx_record(const Record *record) noexcept nogil:
    return ADD_RECORD_TX <= record.type <= DELETE_RECORD_TX or record.type >= PREPARE_RECORD
