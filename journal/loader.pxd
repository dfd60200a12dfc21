"""The live view of a journal in columns of C: the typed header of loader.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.format cimport Record
from journal.index cimport IdMap, RecordIndex
from journal.scan cimport FileScan

# One record that counts, or may: where to read its body again.
cdef struct Locator:
    int64_t record_id
    uint64_t body_offset
    uint32_t body_size
    int32_t file                # index in Loader.loaded
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

cdef class Loader:
    # Settings.
    cdef readonly object files
    cdef readonly RecordIndex index
    cdef readonly int32_t user_version
    cdef readonly str damage
    cdef bint[256] replaceable
    cdef int readahead
    cdef int64_t prune_count
    cdef int64_t step_size
    cdef object progress
    # State.
    cdef list loaded            # LoadedFile, in the order of their ids
    cdef list found             # (Damage, bool), in order
    cdef list without_add       # ids of updates that pin their files as adds do, for now
    cdef Locators live
    cdef IdMap deleted
    cdef uint64_t deletes_since_prune
    cdef Holder *holders
    cdef uint32_t holder_count
    cdef uint32_t holder_room
    cdef int32_t holder_unused
    cdef IdMap open_txs         # tx id -> index in holders
    cdef IdMap tainted          # open transactions that lost a record
    cdef uint64_t next_sequence
    cdef int64_t unmarked_max_id        # of files with live records without a leader; 0: none
    cdef int64_t checked_max_id         # of files of ours with live records of ours; 0: none
    cdef int64_t max_id
    cdef bint file_has_data
    cdef list dropped           # (tx id, offset, what), of the file being applied

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
