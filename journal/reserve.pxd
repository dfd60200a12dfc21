"""Files that are kept for what makes room: the typed header of reserve.pyx."""

from libc.stdint cimport int64_t, uint64_t

from journal.index cimport RecordIndex

cdef enum:
    # Free files that a compaction needs besides those it copies into: to go on in, to be opened
    # ahead after that, and one in whose place the control file is written.
    COMPACTION_MORE = 3

cdef int64_t open_count(RecordIndex index) noexcept nogil
cdef int64_t reserve_size(int64_t count, int64_t older, uint64_t file_size,
                          bint compacts) noexcept nogil
