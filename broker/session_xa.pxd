# Fields of session_xa.py's class, compiled; see setup.py (COMPILED).

cdef class XaWork:
    cdef dict __dict__
    cdef object __weakref__
    cdef public object _core
    cdef public object context
    cdef public object tx
