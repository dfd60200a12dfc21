# Fields of session.py's class that every message touches, compiled; see setup.py (COMPILED).

from broker.session_xa cimport XaWork


cdef class Session(XaWork):
    cdef object _addresses
    cdef object _administration
    cdef object _body
    cdef object _default_address
    cdef object _upload
    cdef public dict consumers
    cdef public object name
    cdef public object options
    cdef public object user
