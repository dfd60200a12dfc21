"""Copies what is live out of old files: the typed header of compact.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.buffer cimport GroupBuffer
from journal.files.base cimport Folder
from journal.format cimport Record
from journal.index cimport IdMap, RecordIndex
from journal.moves cimport IndexMoves
from journal.old_files cimport OldFiles
from journal.scan cimport FileScan

# An operation of a transaction, or a replaceable update, that cannot be copied yet.
cdef struct HeldRecord:
    int64_t record_id
    uint8_t *body               # in the file being read, or a copy of our own
    uint32_t body_size
    uint8_t type
    uint8_t user_type
    uint8_t compact_count
    bint owns_body

# A transaction whose end has not been read yet.
cdef struct HeldTransaction:
    int64_t tx_id
    uint64_t sequence           # how many began before it
    HeldRecord *records         # operations and prepares, in order
    size_t count
    size_t room
    int32_t last_file           # number of the file that the counter counts in
    int32_t counter
    bint is_used
    bint is_invalid             # a prepare claims what is not there
    int32_t next_unused

cdef class Compactor:
    # Settings.
    cdef readonly Folder folder
    cdef readonly object pool
    cdef RecordIndex index
    cdef GroupBuffer buffer
    cdef readonly list old_files
    cdef bint leaders
    cdef int32_t user_version
    cdef bint[256] replaceable
    cdef int64_t file_id_end
    cdef uint64_t file_size
    # What is read, and cannot be copied yet.
    cdef OldFiles source
    cdef int32_t reading
    cdef IdMap held_map
    cdef HeldTransaction *held
    cdef int32_t held_count, held_room, held_unused
    cdef uint64_t held_sequence
    cdef IdMap[256] update_maps  # by user type: record id -> place of its last update
    cdef HeldRecord *updates
    cdef size_t update_count, update_room
    # The file being written.
    cdef readonly list outputs
    cdef Py_ssize_t output_count
    cdef object syncs
    cdef object sync_thread
    cdef int fd
    cdef int64_t file_id, next_file_id
    cdef int32_t slot
    cdef bint is_open, is_plain
    cdef uint8_t *chunk
    cdef uint64_t chunk_room, chunk_offset, used
    cdef uint32_t ordinal
    cdef bint has_old_generation, is_split
    cdef IndexMoves moves       # what the index is to be told
    # State and counters.
    cdef readonly bint stopping
    cdef readonly uint64_t bytes_written, records_copied

    # Reading.
    cdef int copy_file(self, FileScan scan) except -1 nogil
    cdef int copy_records(self, FileScan scan, const size_t *picked,
                          int count) except -1 nogil
    cdef int hold(self, const Record *record) except -1 nogil
    cdef int end_held(self, const Record *record) except -1 nogil
    cdef int copy_committed(self, HeldTransaction *tx) except -1 nogil
    cdef int copy_open(self, HeldTransaction *tx) except -1 nogil
    cdef int pin_outputs(self, Py_ssize_t first, Py_ssize_t final) except -1 with gil
    cdef int copy_rest(self) except -1 nogil
    cdef int copy_updates(self) except -1 nogil
    cdef int hold_update(self, const Record *record) except -1 nogil
    cdef int own_bodies(self) except -1 nogil
    cdef HeldTransaction *find_held(self, int64_t tx_id, bint make) except? NULL nogil
    cdef void drop_held(self, HeldTransaction *tx) noexcept nogil
    # Writing.
    cdef int make_room(self, uint32_t size) except -1 nogil
    cdef bint fits(self, uint32_t size) noexcept nogil
    cdef int split(self, uint8_t compact_count) except -1 nogil
    cdef int write(self, uint8_t type, int64_t tx_id, const HeldRecord *record,
                   int32_t records_in_file) except -1 nogil
    cdef int flush_chunk(self) except -1 nogil
    cdef int begin_output(self, uint32_t size) except -1 with gil
    cdef int end_output(self) except -1 with gil
    cdef int note_copied(self, const HeldRecord *record) except -1 nogil
    cdef int fail(self, int error, str what) except -1 with gil
