"""The files that a compaction writes: the typed header of new_files.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from journal.buffer cimport GroupBuffer
from journal.files.base cimport Folder
from journal.files.chunks cimport ChunkWriter
from journal.pending_records cimport PendingRecord
from journal.index cimport RecordIndex

cdef class NewFiles:
    # Settings.
    cdef Folder folder
    cdef object pool
    cdef RecordIndex index
    cdef GroupBuffer buffer
    cdef ChunkWriter writer
    cdef bint leaders
    cdef int32_t user_version
    cdef Py_ssize_t old_count   # files that are compacted
    cdef int64_t file_id_end
    cdef uint64_t file_size
    # What was written, and what of it is not on disk.
    cdef readonly list outputs
    cdef Py_ssize_t output_count
    cdef list syncs
    cdef object sync_thread
    # The file that ended last, if it is not with the sync thread yet.
    cdef bint has_ended
    cdef uint32_t ended         # its number for the writer
    cdef str ended_name
    cdef int ended_fd
    cdef uint64_t ended_size    # bytes; zeros are to follow
    # The file being written.
    cdef int fd
    cdef int64_t file_id, next_file_id
    cdef int32_t slot
    cdef bint is_open, is_plain
    cdef uint32_t ordinal
    cdef bint has_old_generation, is_split
    # State and counters.
    cdef readonly bint stopping
    cdef readonly uint64_t bytes_written, records_copied

    cdef bint fits(self, uint32_t size) noexcept nogil
    cdef int make_room(self, uint32_t size) except -1 nogil
    cdef int split(self, uint8_t compact_count) except -1 nogil
    cdef int write(self, uint8_t type, int64_t tx_id, const PendingRecord *record,
                   int32_t records_in_file) except -1 nogil
    cdef int begin_output(self, uint32_t size) except -1 with gil
    cdef int end_output(self) except -1 with gil
    cdef int settle_ended(self) except -1 with gil
    cdef int fail(self, int error, str what) except -1 with gil
