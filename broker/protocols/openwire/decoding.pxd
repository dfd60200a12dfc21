# Types for decoding.py, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk
from broker.protocols.openwire.modified_utf8 cimport decode

cdef list _PLANS
cdef int _BOOLEAN
cdef int _BYTE
cdef int _INT
cdef int _LONG
cdef int _STRING
cdef int _BYTES
cdef int _NESTED
cdef int _ARRAY
cdef int _THROWABLE
cdef int _DEPTH_MAX
cdef int _ONE_BYTE
cdef int _TWO_BYTES


cdef class LooseReader:
    cdef bytes _data
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef int _depth
    cdef int _version
    cdef bint _has_stack_traces

    cdef object _begin(self)

    @cython.locals(plan=tuple, step=int)
    cdef object _body(self, int type_id)

    cdef object _value(self, int step, object nested)

    @cython.locals(at=Py_ssize_t)
    cdef bytes _take(self, Py_ssize_t size)

    cdef bint _boolean(self) except -1
    cdef int _unsigned_byte(self) except -1

    @cython.locals(value=int)
    cdef int _byte(self) except? -1

    @cython.locals(value=int)
    cdef int _unsigned_short(self) except -1

    @cython.locals(value=int)
    cdef int _short(self) except? -1

    @cython.locals(value="long long")
    cdef long long _int(self) except? -1

    cdef long long _long(self) except? -1

    @cython.locals(value="long long")
    cdef long long _whole_long(self) except? -1

    cdef object _string(self)
    cdef bytes _bytes(self)
    cdef object _nested(self, tuple allowed)
    cdef object _nested_body(self, int type_id)

    @cython.locals(count=int)
    cdef list _array(self, tuple allowed)

    cdef Py_ssize_t _items_left(self) except? -1

    @cython.locals(count=int)
    cdef object _throwable(self)


cdef class TightReader(LooseReader):
    cdef bytes _bits
    cdef Py_ssize_t _bit

    @cython.locals(size=int)
    cdef object _begin(self)

    @cython.locals(at=Py_ssize_t)
    cdef bint _boolean(self) except -1

    @cython.locals(high="long long")
    cdef long long _long(self) except? -1

    cdef object _string(self)

    @cython.locals(bit=Py_ssize_t)
    cdef object _nested_body(self, int type_id)

    cdef Py_ssize_t _items_left(self) except? -1
