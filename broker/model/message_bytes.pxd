# Types for message_bytes.py, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.packed as packed

cdef bytes _OWN_PREFIX
cdef bytes _ROUTING_TYPE
cdef dict _encoded_names
cdef bytes _last_units
cdef object _last_text
cdef int _BYTE_TAG
cdef bytes _BYTES_TAG
cdef int _NONE
cdef int _LOOK
cdef bytes _VALUE_SIZES
cdef int _NO_TAG
cdef int _BYTES_SIZED
cdef int _TEXT_SIZED
cdef long long _INT_RANGE
cdef long long _INT_SIGN


@cython.locals(value=int)
cpdef int byte_at(bytes data, Py_ssize_t at) except? -1


@cython.locals(value="long long")
cpdef long long int_at(bytes data, Py_ssize_t at) except? -1


@cython.locals(high="long long", low="long long")
cpdef long long long_at(bytes data, Py_ssize_t at) except? -1


cpdef text_at(bytes data, Py_ssize_t at, Py_ssize_t size)
cpdef bytes encoded_name(name)


@cython.locals(count="long long", size=Py_ssize_t, tag=int, width=int)
cpdef Py_ssize_t properties_end(bytes data, Py_ssize_t at) except -1


@cython.locals(count="long long", size=Py_ssize_t, found=Py_ssize_t, width=int, is_it=bint)
cpdef Py_ssize_t property_at(bytes data, Py_ssize_t at, bytes units) except? -1


@cython.locals(count="long long", size=Py_ssize_t, width=int)
cpdef list tags_of(bytes data, Py_ssize_t at)


@cython.locals(count="long long", size=Py_ssize_t, width=int)
cpdef list names_with(bytes data, Py_ssize_t at, bytes units)


@cython.locals(count=object, start=Py_ssize_t, end=Py_ssize_t)
cpdef bytes without_property(bytes data, Py_ssize_t at, bytes units)


@cython.locals(count="long long", size=Py_ssize_t, found=int, width=int)
cpdef int own_routing(bytes data, Py_ssize_t at) except? -3
