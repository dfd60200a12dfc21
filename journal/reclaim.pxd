"""The typed header of reclaim.pyx."""

from libc.stdint cimport int32_t

from journal.index cimport RecordIndex

cdef int32_t find_reclaimable(RecordIndex index, const int32_t *slots, int32_t count,
                              int32_t *found) noexcept nogil
