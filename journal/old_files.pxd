"""The files that a compaction copies from: the typed header of old_files.pyx."""

from libc.stdint cimport int32_t, uint8_t, uint64_t

from journal.files.base cimport Folder
from journal.format cimport Record, Scan
from journal.scan cimport FileScan
from journal.window cimport Window

cdef class OldFiles:
    # Settings.
    cdef Folder folder
    cdef list files
    cdef int32_t user_version
    cdef readonly bint validates_first   # each file is validated before it is used
    # State.
    cdef Py_ssize_t given       # how many files were given
    cdef int ahead_fd           # of the file after that; -1: there is none
    # The file that is read.
    cdef str name
    cdef Window window
    cdef FileScan found
    cdef FileScan validated        # the same as read before, where it was validated
    cdef Scan scan
    cdef size_t first           # the first item that the last step found
    cdef bint is_begun, is_at_end
    cdef readonly uint64_t bytes_read

    cdef FileScan open_next(self)
    cdef bint more(self) except -1 nogil
    cdef int take_verdicts(self) except -1 nogil
    cdef const uint8_t *body_of(self, const Record *record) noexcept nogil
    cdef int not_sound(self) except -1 with gil
    cdef int fail(self, int error) except -1 with gil
