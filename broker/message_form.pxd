# Fields of message_form.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.message_bytes as walk
cimport broker.packed as packed

cdef int _END_OF_BODY_SIZE
cdef int _ID_SIZE
cdef int _NO_ROUTING
cdef int _OTHERS
cdef int _PACKET_HEADER_SIZE
cdef int _PERSISTER
cdef int _RECORD_ADDRESS_AT
cdef int _USER_ID_SIZE
cdef int _MEMORY_OVERHEAD


cdef class MessageForm:
    # As narrow as they can be: a million of these may wait.
    cdef object _address
    cdef object _aside
    cdef object _body
    cdef bytes _data
    cdef object _expiration
    cdef object _priority
    cdef readonly dict _properties
    cdef object _type
    cdef object _user_id
    cdef public object large
    cdef public object owner
    cdef long long _message_id
    cdef long long _timestamp
    cdef unsigned int _aside_place
    cdef unsigned int _aside_size
    cdef int _headers_at
    cdef int _properties_at
    cdef public int durable_references
    cdef public int references
    cdef unsigned char _changed
    cdef unsigned char _durable
    cdef unsigned char _has_group
    cdef unsigned char _id_changed
    cdef signed char _routing
    cdef public unsigned char has_own_properties
    cdef public unsigned char is_large

    @cython.locals(headers_at="long long")
    cpdef object read(self, bytes chunk, Py_ssize_t start, Py_ssize_t end, long long message_id)
    cpdef bytes encode(self)
    cdef bytes _bytes(self)
    cdef Py_ssize_t _encoded_size(self) except -1
    cdef Py_ssize_t _memory_size(self) except -1
    cpdef object put_aside(self, aside, unsigned int place)
    cpdef Py_ssize_t forget_bytes(self) except -1
    cpdef bytes record(self)

    @cython.locals(at=cython.Py_ssize_t, size=cython.longlong, message_id=cython.longlong)
    cpdef object _read_record(self, bytes data)

    @cython.locals(headers_at=cython.longlong)
    cpdef object _read_form(self, bytes data)

    @cython.locals(at=cython.Py_ssize_t, size=cython.longlong, end=cython.Py_ssize_t)
    cpdef object _read(self, bytes data, Py_ssize_t headers_at)
    cdef bint _may_have(self, name) except -1
    cdef object _put_id(self)
    cdef object _rebuild(self)
    cpdef object _become(self, MessageForm source)
