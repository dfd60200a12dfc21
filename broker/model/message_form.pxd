# Fields of message_form.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk
cimport broker.model.packed as packed
from broker.model.message_fields cimport MessageFields, Parts

cdef int _END_OF_BODY_SIZE
cdef int _ID_SIZE
cdef int _NO_ROUTING
cdef int _OTHERS
cdef int _PACKET_HEADER_SIZE
cdef int _USER_ID_SIZE
cdef int _FIELDS_SIZE
cdef bytes _NO_BODY
cdef int _MEMORY_OVERHEAD
cdef int _TIMESTAMP_BEFORE
cdef int _UNCHANGED
cdef int _ID
cdef int _ALL
cdef int _NONE_OWN
cdef int _OWN_BUT_GROUP
cdef int _ANY_OWN


cdef class MessageForm(MessageFields):
    @cython.locals(headers_at="long long")
    cpdef object read(self, bytes chunk, Py_ssize_t start, Py_ssize_t end, long long message_id)
    cpdef object give_id(self, long long message_id)
    cpdef bytes encode(self)
    cdef bytes _bytes(self)

    @cython.locals(place=int, data=bytes)
    cdef bytes _read_back(self, aside)
    cdef Py_ssize_t _encoded_size(self) except -1
    cdef Py_ssize_t _memory_size(self) except -1
    cpdef object lies_in(self, aside, int place)
    cpdef object spill(self, aside, int place)
    cpdef object forget_bytes(self, aside, int place)
    cdef object _lie_aside(self, aside, int place, int size)
    cdef object _change(self)
    cdef object _forget_own(self)
    cdef Parts _with_parts(self)
    cdef long long _timestamp(self) except? -1

    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t _user_id_at(self, bytes data) except -1

    @cython.locals(headers_at=cython.longlong)
    cpdef object _read_form(self, bytes data)

    @cython.locals(at=cython.Py_ssize_t, size=cython.longlong, end=cython.Py_ssize_t)
    cpdef object _read(self, bytes data, Py_ssize_t headers_at)

    @cython.locals(data=bytes)
    cdef bint _may_have(self, name) except -1
    cdef object _put_id(self)

    @cython.locals(parts=Parts)
    cdef bint _are_bytes_enough(self) except -1

    @cython.locals(
        data=bytes,
        parts=Parts,
        address=bytes,
        user_id=bytes,
        timestamp="long long",
        at=Py_ssize_t,
    )
    cdef object _put_headers(self, bytes name, bytes value)

    cdef object _rebuild(self)

    @cython.locals(parts=Parts)
    cdef object _put_together(self)

    @cython.locals(parts=Parts, known=Parts)
    cpdef object _become(self, MessageForm source)
