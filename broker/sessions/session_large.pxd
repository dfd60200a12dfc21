# Fields of session_large.py's class, compiled; see setup.py (COMPILED).

from broker.sessions.session_xa cimport XaWork
from broker.storage.manager cimport StorageManager


cdef class LargeWork(XaWork):
    cdef public object _body
    cdef public object _copies
    cdef public object _upload
    cdef object _dead_letters
    cdef object _default_address
    cdef object _history
    cdef object _large
    cdef public object _prefixes
    cdef StorageManager _storage
