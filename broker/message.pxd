# Methods of message.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.message_bytes as walk
from broker.message_form cimport MessageForm

cdef int _NO_ROUTING
cdef int _OTHERS


cdef class Message(MessageForm):
    cdef object _forget_own(self)

    @cython.locals(at=Py_ssize_t)
    cpdef object get(self, name)
    cpdef object remove(self, name)
