# Fields of frames.py's class, compiled; see setup.py (COMPILED).


cdef class FrameReader:
    cdef bytearray _buffer
    cdef Py_ssize_t _wanted
    cdef public Py_ssize_t size_max

    cpdef list feed(self, data)
