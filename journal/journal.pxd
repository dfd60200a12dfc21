"""The journal: the typed header of journal.pyx."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from journal.appends cimport JournalAppends

cdef class Journal(JournalAppends):
    cdef bint tx_is_known(self, int64_t tx_id) except -1
    cdef int roll_back(self, list tx_ids) except -1
    cdef bint check_given(self, int64_t ticket) except -1
