# Fields of frames.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk

cdef int _BODY_AT
cdef int _LENGTH_SIZE
cdef int _LENGTH_MIN


cdef class FrameReader:
    cdef Py_ssize_t _at
    cdef bytearray _buffer
    cdef Py_ssize_t _wanted
    cdef public long long channel_id
    cdef public bytes chunk
    cdef public Py_ssize_t end
    cdef public int kind
    cdef public Py_ssize_t size_max
    cdef public Py_ssize_t start

    cpdef object begin(self, bytes data)

    @cython.locals(
        chunk=bytes, at=Py_ssize_t, left=Py_ssize_t, wanted="long long", length="long long"
    )
    cpdef bint advance(self) except -1
    cpdef list feed(self, bytes data)
