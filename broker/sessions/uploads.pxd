# Fields of uploads.py's class, compiled; see setup.py (COMPILED).

from broker.storage.manager cimport StorageManager


cdef class Uploads:
    cdef object _body
    cdef object _copies
    cdef object _dead_letters
    cdef object _history
    cdef object _large
    cdef object _message
    cdef object _session
    cdef StorageManager _storage
