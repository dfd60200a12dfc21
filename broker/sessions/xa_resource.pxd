# Fields of xa_resource.py's class, compiled; see setup.py (COMPILED).


cdef class XaResource:
    cdef object _session
    cdef object _timeout_ms
    cdef object _transactions
