"""Live records handed out: the typed header of delivery.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from journal.bodies cimport BodyReader
from journal.replay cimport Locator, Replay


cdef class LiveRecord:
    cdef readonly int64_t record_id
    cdef readonly int user_type
    cdef readonly bint is_update
    cdef readonly int compact_count
    cdef readonly object body
    cdef readonly str file
    cdef readonly uint64_t offset
    cdef readonly str checksum


@cython.final
cdef class LiveCursor:
    cdef Replay replay
    cdef list loaded            # LoadedFile, by number
    cdef BodyReader bodies
    cdef bint[256] is_wanted    # by user type
    cdef size_t place           # of the next live record
    # The record that next() came to.
    cdef const Locator *locator
    cdef const uint8_t *body

    cdef bint next(self) except -1
    cdef object file(self)
    cdef str file_name(self)
    cdef LiveRecord record(self)
