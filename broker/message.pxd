# Fields of message.py's class, compiled; see setup.py (COMPILED).

cimport cython


cdef class Message:
    cdef object _address
    cdef object _body
    cdef bint _changed
    cdef bytes _data
    cdef object _durable
    cdef object _expiration
    cdef bint _has_own_properties
    cdef Py_ssize_t _headers_at
    cdef bint _id_changed
    cdef object _message_id
    cdef object _priority
    cdef readonly dict _properties
    cdef Py_ssize_t _properties_at
    cdef object _timestamp
    cdef object _type
    cdef object _user_id
    cdef public Py_ssize_t durable_references
    cdef public bint is_large
    cdef public object large
    cdef public object owner
    cdef public Py_ssize_t references

    cpdef bytes encode(self)
    cpdef bytes record(self)

    @cython.locals(at=Py_ssize_t)
    cpdef object get(self, name)
    cpdef object remove(self, name)

    @cython.locals(at=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t, durable=int,
                   has_address=int, has_user_id=int, has_properties=int)
    cpdef object _read(self, bytes data, Py_ssize_t headers_at)
    cdef bint _may_have(self, name) except -1
    cdef object _put_id(self)
    cdef object _rebuild(self)
    cpdef object _become(self, Message source)
