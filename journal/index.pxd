"""Which records are live, in which file, and what pins each file: the typed header of index.pyx.

All functions are nogil and need the caller's lock: an index has no lock of its own.
Return values: >= 0 as said, NO_MEMORY (-1) when memory is out (the index is unchanged).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from journal.file_pins cimport FilePins
from journal.id_map cimport NO_MEMORY, IdMap
from journal.place_map cimport PlaceMap

cdef enum:
    NO_FILE = -1                # of a RecordEntry: it is unused
    OWN_UPDATES_MAX = 0xFFFF

cdef struct RecordEntry:
    int64_t record_id
    int32_t file                # slot of the file that holds the add
    uint32_t bytes              # as charged to live bytes, of the add and its own updates
    int32_t updates             # first UpdateEntry, -1: none; in an unused entry: next unused
    uint16_t own_updates        # the first ones, as far as they stand in the file of the add
    uint8_t is_partial          # its add is gone: `file` holds the first update that is left

cdef struct UpdateEntry:
    int32_t file
    int32_t count               # updates merged here (consecutive ones in one file)
    uint32_t bytes
    int32_t next                # next UpdateEntry, -1: last; the chain begins with the newest

cdef struct TxOperation:
    int64_t record_id
    int32_t file
    uint32_t bytes
    uint8_t kind                # TX_ADD, TX_UPDATE, TX_REPLACEABLE, TX_DELETE

cdef enum:
    TX_ADD = 0
    TX_UPDATE = 1
    TX_REPLACEABLE = 2
    TX_DELETE = 3

cdef struct Transaction:
    int64_t tx_id
    TxOperation *operations
    int64_t operation_count
    int64_t operation_room
    int32_t *pending_files
    int32_t pending_count
    int32_t pending_room
    int32_t last_file           # the file the counter counts in, -1: none
    int32_t counter             # operations since the file last changed
    bint prepared
    int32_t next_unused

cdef class RecordIndex(FilePins):
    cdef PlaceMap record_map
    cdef RecordEntry *records
    cdef uint32_t record_room, record_used, record_unused   # used: first never used place
    cdef UpdateEntry *updates
    cdef int32_t update_room, update_used, update_unused
    cdef IdMap tx_map
    cdef Transaction *transactions
    cdef uint32_t tx_room
    cdef uint32_t tx_used           # first never used place
    cdef int32_t tx_unused          # first place that a closed transaction left, -1: none
    # While a compaction runs: what has ended meanwhile of that which it copies.
    cdef bint watching
    cdef IdMap removed              # record id -> slot of the file with the delete
    cdef IdMap ended                # tx id -> slot of the file with its end * 2 + committed

    # Records outside transactions.
    cdef void prefetch_record(self, int64_t record_id) noexcept nogil
    cdef void expect_entry(self, int64_t record_id) noexcept nogil
    cdef int64_t place_of(self, int64_t record_id) noexcept nogil      # in `records`, or -1
    cdef bint contains(self, int64_t record_id) noexcept nogil
    cdef int add(self, int64_t record_id, int32_t file, uint32_t bytes) noexcept nogil
    cdef int update(self, int64_t record_id, int32_t file, uint32_t bytes,
                    bint replaceable) noexcept nogil                           # 1 known, 0 unknown
    cdef int remove(self, int64_t record_id, int32_t file) noexcept nogil      # 1 known, 0 unknown
    # A load finds an update whose add is gone.
    cdef int add_partial(self, int64_t record_id, int32_t file, uint32_t bytes) noexcept nogil
    cdef void forget_partial(self, int64_t record_id) noexcept nogil
    # Transactions. tx_operation and tx_prepare open the transaction on first use.
    cdef bint tx_is_open(self, int64_t tx_id) noexcept nogil
    cdef int tx_operation(self, int64_t tx_id, uint8_t kind, int64_t record_id, int32_t file,
                          uint32_t bytes) noexcept nogil
    cdef int tx_prepare(self, int64_t tx_id, int32_t file) noexcept nogil   # records in this file
    cdef int tx_count_in(self, int64_t tx_id, int32_t file) noexcept nogil  # records in this file
    cdef int tx_commit(self, int64_t tx_id, int32_t file) noexcept nogil    # 1, or 0 unknown
    cdef int tx_rollback(self, int64_t tx_id, int32_t file) noexcept nogil  # 1, or 0 unknown
    # Damaged at load: as if it had never been.
    cdef int tx_forget(self, int64_t tx_id) noexcept nogil
    cdef Transaction *tx_find(self, int64_t tx_id) noexcept nogil              # NULL: not open
    cdef Transaction *tx_open(self, int64_t tx_id) noexcept nogil              # NULL: no memory
    cdef void tx_close(self, Transaction *tx) noexcept nogil
    cdef int tx_touch(self, Transaction *tx, int32_t file) noexcept nogil
    # Compaction (compactor.pyx).
    cdef int watch(self) noexcept nogil
    cdef void unwatch(self) noexcept nogil
    # Inner steps.
    cdef int note_end(self, const Transaction *tx, int32_t file, bint committed) noexcept nogil
    cdef int entry_add_update(self, RecordEntry *entry, int32_t file, uint32_t bytes,
                              bint replaceable) noexcept nogil
    cdef int apply_operation(self, const TxOperation *operation) noexcept nogil
