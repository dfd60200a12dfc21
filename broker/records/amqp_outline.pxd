# Fields of amqp_outline.py's class, compiled; see setup.py (COMPILED).

cimport cython

cdef int _HEADER
cdef int _DELIVERY_ANNOTATIONS
cdef int _MESSAGE_ANNOTATIONS
cdef int _PROPERTIES
cdef int _APPLICATION_PROPERTIES
cdef int _DATA
cdef int _SEQUENCE
cdef int _VALUE
cdef int _FOOTER
cdef int _NULL
cdef int _TRUE
cdef int _FALSE
cdef int _UINT_0
cdef int _LIST_0
cdef int _UBYTE
cdef int _BYTE
cdef int _UINT_1
cdef int _BOOLEAN
cdef int _UINT
cdef int _TIMESTAMP
cdef int _BINARY_1
cdef int _STRING_1
cdef int _SYMBOL_1
cdef int _BINARY
cdef int _STRING
cdef int _SYMBOL
cdef int _LIST_1
cdef int _MAP_1
cdef int _LIST
cdef int _MAP
cdef int _DURABLE
cdef int _PRIORITY
cdef int _TTL
cdef int _HEADER_FIELDS
cdef int _USER_ID
cdef int _TO
cdef int _EXPIRY
cdef int _CREATION
cdef int _GROUP_ID
cdef int _GROUP_SEQUENCE
cdef int _PROPERTIES_FIELDS
cdef int _PRIORITY_DEFAULT
cdef int _PRIORITY_MAX
cdef int _NO_ROUTING
cdef int _DEPTH_MAX
cdef bytes _ROUTING_TYPES
cdef bytes _SECTION
cdef bytes _OWN
cdef bytes _ANNOTATION
cdef bytes _ROUTING_TYPE
cdef bytes _DESTINATION
cdef bytes _WIDTHS
cdef int _NO_WIDTH

cpdef Outline outline_of(bytes encoded)


@cython.final
cdef class Outline:
    cdef bytes _data
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef Py_ssize_t _to_at
    cdef readonly bint durable
    cdef readonly int priority
    cdef readonly long long ttl_ms
    cdef readonly long long expiration
    cdef readonly int routing
    cdef readonly bint has_delivery_annotations

    @cython.locals(data=bytes, end=Py_ssize_t, last=int, section=int)
    cdef bint _walk(self) except -1

    @cython.locals(code=int)
    cdef bint _section(self, int section) except -1

    @cython.locals(at=Py_ssize_t, code=int, count=Py_ssize_t, data=bytes, end=Py_ssize_t, field=int)
    cdef bint _header(self) except -1

    @cython.locals(
        asked=int,
        at=Py_ssize_t,
        by_destination=int,
        code=int,
        count=Py_ssize_t,
        data=bytes,
        end=Py_ssize_t,
        is_routing=bint,
        name=bytes,
        number=int,
        value_at=Py_ssize_t,
    )
    cdef bint _message_annotations(self) except -1

    @cython.locals(at=Py_ssize_t, code=int, count=Py_ssize_t, data=bytes, end=Py_ssize_t, field=int)
    cdef bint _properties(self) except -1

    @cython.locals(at=Py_ssize_t, count=Py_ssize_t, data=bytes, end=Py_ssize_t)
    cdef bint _application_properties(self) except -1

    @cython.locals(at=Py_ssize_t, code=int, count=Py_ssize_t, data=bytes, end=Py_ssize_t)
    cdef Py_ssize_t _enter(self, int small) except? -2
    cdef bint _leave(self, Py_ssize_t end) except -1

    @cython.locals(
        at=Py_ssize_t,
        code=int,
        data=bytes,
        first=Py_ssize_t,
        is_symbol=bint,
        is_text=bint,
        last=Py_ssize_t,
        width=int,
    )
    cdef bint _skip(self, int depth) except -1

    @cython.locals(count=Py_ssize_t, end=Py_ssize_t)
    cdef bint _skip_items(self, int code, int depth) except -1

    @cython.locals(data=bytes)
    cdef Py_ssize_t _size(self, Py_ssize_t at) except? -1

    @cython.locals(data=bytes, value=Py_ssize_t)
    cdef Py_ssize_t _uint(self, Py_ssize_t at) except? -1
