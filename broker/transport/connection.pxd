# Fields of connection.py's class, compiled; see setup.py (COMPILED).

cimport cython

cdef Py_ssize_t _FULL_READ
cdef Py_ssize_t _GATHERED_MAX


cdef class Connection:
    cdef object __weakref__
    cdef public object _detect
    cdef object _first
    cdef list _gathered
    cdef Py_ssize_t _gathered_size
    cdef object _handler
    cdef object _handshake
    cdef bint _is_flush_due
    cdef bint _is_closed
    cdef object _loop
    cdef public object _on_end
    cdef Py_ssize_t _reading_holders
    cdef object _transport
    cdef bint _yields
    cdef public object connection_id
    cdef public object created_ms
    cdef public object handshake_timeout_s
    cdef public bint is_paused
    cdef public object last_received_s
    cdef public object local
    cdef public object principal
    cdef public object remote
    cdef public object router
    cdef public object sni_host

    cpdef object write(self, bytes data)
    cdef object _flush(self)
