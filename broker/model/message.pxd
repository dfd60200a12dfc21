# Methods of message.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk
cimport broker.model.packed as packed
from broker.model.message_fields cimport Parts
from broker.model.message_form cimport MessageForm

cdef int _BOOLEAN_TAG
cdef int _INT_TAG
cdef int _NO_ROUTING
cdef int _PERSISTER
cdef int _RECORD_ADDRESS_AT


cdef class Message(MessageForm):
    @cython.locals(parts=Parts)
    cdef dict _all_properties(self)

    cpdef bytes record(self)

    @cython.locals(at=Py_ssize_t, size="long long", message_id="long long")
    cpdef object _read_record(self, bytes data)

    @cython.locals(at=Py_ssize_t, data=bytes, parts=Parts, tag=int)
    cpdef object get(self, name)

    @cython.locals(parts=Parts)
    cpdef object remove(self, name)

    @cython.locals(at=Py_ssize_t, data=bytes, first=Py_ssize_t, parts=Parts, size=Py_ssize_t)
    cpdef object typed(self, name)
