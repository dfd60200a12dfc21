"""The typed header of appends.pyx."""

from libc.stdint cimport int64_t, uint8_t

from jdbcstore.live cimport LiveIds
from jdbcstore.writer cimport GroupWriter

cdef class Appends:
    cdef public str state               # "new", "open", "loaded", "closed" or "failed"
    cdef public GroupWriter writer      # None until it is loaded
    cdef public LiveIds live
    cdef public int64_t next_seq        # of the next row
    cdef public int64_t body_size_max   # bytes of the largest body that the table takes
    cdef public object failure          # what had ended it when it was closed
    cdef public bint sync_transactional
    cdef public bint sync_non_transactional

    cdef int64_t put(self, int64_t record_id, uint8_t record_type, uint8_t user_type, bytes body,
                     bint is_wanted, bint is_blocking) except -1
    cdef int64_t remove(self, int64_t record_id, bint is_wanted, bint is_blocking) except -1
    cdef int finish(self, int64_t ticket, bint sync, object done, bint wait) except -1
    cdef bytes checked_body(self, object body)
    cdef int check_usable(self) except -1
    cdef inline bint wants_sync(self, object sync) except -1
