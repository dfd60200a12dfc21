"""Tells the index where a compaction has put everything: the typed header of relocations.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from journal.buffer cimport GroupBuffer
from journal.index cimport RecordEntry, RecordIndex, Transaction, UpdateEntry

# An add or update as it was copied, outside of transactions that are open.
cdef struct Copied:
    int64_t record_id
    int32_t file                # slot of the file it is in now
    uint32_t bytes
    uint8_t type
    bint replaceable

# An operation or prepare of an open transaction as it was copied.
cdef struct CopiedOperation:
    int64_t tx_id
    int64_t record_id
    int64_t number              # among the transaction's operations; -1: a prepare
    int32_t file
    uint32_t bytes
    uint8_t type
    bint replaceable

cdef class Relocations:
    cdef RecordIndex index
    cdef GroupBuffer buffer
    cdef Copied *copied
    cdef size_t copied_count, copied_room
    cdef CopiedOperation *operations
    cdef size_t operation_count, operation_room

    cdef Copied *new_copied(self) noexcept nogil
    cdef CopiedOperation *new_operation(self) noexcept nogil
    cdef int apply(self) noexcept nogil
    # Under the lock.
    cdef int move_operation(self, const CopiedOperation *copied) noexcept nogil
    cdef int move_record(self, int64_t record_id, int32_t file, uint32_t bytes,
                         bint replaceable) noexcept nogil
    cdef void strip_updates(self, RecordEntry *entry) noexcept nogil
    cdef int attach_update(self, RecordEntry *entry, int32_t file, uint32_t bytes,
                           bint replaceable) noexcept nogil
    cdef bint is_left_behind(self, uint32_t place) noexcept nogil
    cdef int settle_transaction(self, Transaction *tx) noexcept nogil
