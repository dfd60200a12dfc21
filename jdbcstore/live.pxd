"""The typed header of live.pyx."""

from libc.stdint cimport int64_t

from journal.id_map cimport IdMap

cdef class LiveIds:
    cdef IdMap map
    cdef readonly int64_t max_id    # the highest id that was ever put here; -1: none above it

    cpdef bint put(self, int64_t record_id) except -1
    cpdef bint take(self, int64_t record_id) noexcept
    cdef bint has(self, int64_t record_id) noexcept
