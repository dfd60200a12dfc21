# Methods of message.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk
from broker.model.message_fields cimport Parts
from broker.model.message_form cimport MessageForm

cdef int _NO_ROUTING


cdef class Message(MessageForm):
    @cython.locals(parts=Parts)
    cdef dict _all_properties(self)

    @cython.locals(at=Py_ssize_t, parts=Parts)
    cpdef object get(self, name)

    @cython.locals(parts=Parts)
    cpdef object remove(self, name)

    @cython.locals(at=Py_ssize_t, data=bytes, first=Py_ssize_t, parts=Parts, size=Py_ssize_t)
    cpdef object typed(self, name)
