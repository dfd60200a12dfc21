"""A file seen through a small window: the typed header of window.pyx."""

from libc.stdint cimport uint8_t, uint64_t

from journal.format cimport Scan

cdef struct Window:
    uint8_t *buffer
    uint64_t room
    uint64_t step               # bytes read at once
    int fd
    void *owner                 # a FileWindow on a RemotePath; NULL: on `fd`

cdef int window_more(Window *window, Scan *scan) noexcept nogil

cdef class FileWindow:
    cdef Window window
    cdef readonly uint64_t size
    cdef object remote          # the RemotePath that is open
    cdef object failure         # what a read of it raised

    cdef read_remote(self, path, look)
