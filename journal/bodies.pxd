"""Bodies of records read again: the typed header of bodies.pyx."""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef class BodyReader:
    cdef object loaded
    cdef object folder
    cdef object remote          # the RemotePath that is open, in place of `folder` and `fd`
    cdef int fd
    cdef int32_t file           # the one that is open, -1: none
    cdef uint8_t *buffer
    cdef uint64_t room
    cdef uint64_t start, end    # what of the file is in the buffer

    cdef const uint8_t *get(self, int32_t file, uint64_t offset, uint32_t size) except NULL
    cdef int move(self, int32_t file, uint64_t offset, uint32_t size) except -1
    cdef int change(self, int32_t file) except -1
    cdef bint is_remote_same(self, int32_t file) except -1
    cdef int fill(self, int32_t file, uint64_t offset, uint64_t count) except -1
