# Fields of framing.py's class, compiled; see setup.py (COMPILED).

cimport cython


cdef class Framing:
    cdef readonly bytearray _buffer
    cdef Py_ssize_t _missing
    cdef public object limits
    cdef public object version

    cpdef object feed(self, data)

    @cython.locals(
        buffer=bytearray, flags=int, size=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t,
        is_publish=bint, packet_id=int)
    cpdef object next(self)
