"""Headers that may say another id than their file has: the typed header of header_check.pyx."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from journal.replay cimport Replay
from journal.scan cimport FileScan

cdef class HeaderCheck:
    cdef Replay replay
    cdef list loaded
    cdef int32_t user_version
    cdef list claims                    # (number, FileScan) where the leader disowns the header
    cdef set sealed                     # names of files whose header has a leader
    cdef int64_t unmarked_max_id        # of files with live records without a leader; 0: none
    cdef int64_t checked_max_id         # of files of ours with live records of ours; 0: none
    cdef list found

    cdef int note(self, int32_t number, FileScan scan, uint64_t records,
                  uint64_t checksums) except -1
    cdef list damages(self)
    cdef object check_claims(self)
    cdef bint is_used_again(self, number, FileScan scan) except -1
    cdef bint would_change_nothing(self, number, int64_t file_id) except -1
    cdef object check_ids(self)
