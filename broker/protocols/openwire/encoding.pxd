# Types for encoding.py, compiled; see setup.py (COMPILED).

cimport cython

from broker.protocols.openwire.modified_utf8 cimport encode

cdef dict _NUMBERS
cdef object _PACK_BYTE
cdef object _PACK_SHORT
cdef object _PACK_UNSIGNED_SHORT
cdef object _PACK_INT
cdef object _PACK_UNSIGNED_INT
cdef object _PACK_LONG
cdef int _TEXT_SIZE_MAX
cdef int _BOOLEAN
cdef int _BYTE
cdef int _INT
cdef int _LONG
cdef int _STRING
cdef int _BYTES
cdef int _NESTED
cdef int _ARRAY


cdef class LooseWriter:
    cdef bint _has_stack_traces
    cdef list _parts
    cdef dict _plans

    cdef object _begin(self)
    cdef object _end(self)

    @cython.locals(step=int)
    cdef object _body(self, object command)

    cdef object _value(self, int step, object value)
    cdef object _boolean(self, bint value)
    cdef object _long(self, long long value)
    cdef object _string(self, object value)
    cdef object _text(self, bytes data)
    cdef object _bytes(self, bytes value)
    cdef object _nested(self, object value)
    cdef object _nested_body(self, object value)
    cdef object _array(self, object values)
    cdef object _throwable(self, object value)


cdef class TightWriter(LooseWriter):
    cdef bytearray _bits
    cdef Py_ssize_t _bit

    cdef object _begin(self)

    @cython.locals(size=Py_ssize_t)
    cdef object _end(self)

    @cython.locals(at=int)
    cdef object _boolean(self, bint value)

    @cython.locals(is_int=bint, is_long=bint, is_short=bint)
    cdef object _long(self, long long value)

    cdef object _string(self, object value)
    cdef object _nested_body(self, object value)
