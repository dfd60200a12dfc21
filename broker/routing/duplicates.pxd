# Fields of duplicates.py's classes, compiled; see setup.py (COMPILED).

from broker.storage.manager cimport StorageManager


cdef class DuplicateCache:
    cdef list _circle
    cdef dict _counts
    cdef set _ids
    cdef bint _is_persistent
    cdef dict _older
    cdef Py_ssize_t _position
    cdef Py_ssize_t _sender_ids
    cdef Py_ssize_t _sender_ids_max
    cdef StorageManager _storage
    cdef public object address
    cdef public object rejected_count
    cdef public object size

    cpdef object record(self, bytes duplicate_id, tx_id, message_id=*)
    cpdef object add(self, bytes duplicate_id, record_id)
