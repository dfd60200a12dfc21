"""The files that a compaction copies from: the typed header of old_files.pyx."""

from libc.stdint cimport int32_t, uint8_t, uint64_t

from journal.files.base cimport Folder
from journal.scan cimport FileScan
from journal.window cimport Window

cdef class OldFiles:
    # Settings.
    cdef Folder folder
    cdef list files
    cdef int32_t user_version
    # State.
    cdef object thread
    cdef object ahead           # Future of the file after the one that was given; None: no more
    cdef Window[2] windows      # each the whole of a file: of the one given, of the one ahead
    cdef Py_ssize_t given       # how many files were given
    cdef uint8_t *data          # bytes of the file given last
    cdef readonly uint64_t bytes_read

    cdef FileScan take(self)
    cdef int scan_whole(self, FileScan scan, Window *window, uint64_t size) noexcept nogil
