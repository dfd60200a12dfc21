"""What a compaction has read and cannot copy yet: the typed header of pending_records.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.format cimport Record
from journal.id_map cimport IdMap

# An operation of a transaction, or a replaceable update, that cannot be copied yet.
cdef struct PendingRecord:
    int64_t record_id
    uint8_t *body               # in what is in memory of the file, or a copy of our own
    uint32_t body_size
    uint8_t type
    uint8_t user_type
    uint8_t compact_count
    bint owns_body

# A transaction whose end has not been read yet.
cdef struct PendingTransaction:
    int64_t tx_id
    uint64_t sequence           # how many began before it
    PendingRecord *records         # operations and prepares, in order
    size_t count
    size_t room
    size_t owned                # so many of the first have bodies of their own
    int32_t last_file           # number of the file that the counter counts in
    int32_t counter
    bint is_used
    bint borrows                # it is among the borrowers
    int32_t next_borrower
    bint is_invalid             # a prepare claims what is not there
    int32_t next_unused

cdef class PendingRecords:
    # Transactions, by id and by place.
    cdef IdMap map
    cdef PendingTransaction *transactions
    cdef int32_t count, room, unused
    cdef uint64_t sequence
    cdef int32_t borrowers      # place of the first that borrows bodies; -1: none
    # Replaceable updates.
    cdef IdMap[256] update_maps     # by user type: record id -> place of its last update
    cdef PendingRecord *updates
    cdef size_t update_count, update_room

    cdef int hold(self, const Record *record, const uint8_t *body,
                  int32_t reading) except -1 nogil
    cdef int hold_update(self, const Record *record, const uint8_t *body) except -1 nogil
    cdef PendingTransaction *find(self, int64_t tx_id, bint make) except? NULL nogil
    cdef void drop(self, PendingTransaction *tx) noexcept nogil
    cdef void order_by_beginning(self) noexcept nogil
    cdef int own_bodies(self) except -1 nogil

cdef void borrow(PendingRecord *target, const Record *record, const uint8_t *body) noexcept nogil
cdef int no_memory(str what) except -1 with gil
