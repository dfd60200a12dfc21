# Fields of session_large.py's class, compiled; see setup.py (COMPILED).

from broker.sessions.session_xa cimport XaWork


cdef class LargeWork(XaWork):
    cdef public object _body
    cdef public object _copies
    cdef public object _upload
    cdef object _default_address
