# Fields of spill_file.py's class that every message of a start passes, compiled; see setup.py.

cimport cython

from broker.model.message cimport Message
from broker.model.message_form cimport MessageForm


cdef class SpillFile:
    cdef object _folder
    cdef long long _kept_size
    cdef object _segment
    cdef list _batch
    cdef long long _batch_place
    cdef long long _place
    cdef object _writer
    cdef object _writing
    cdef public object _read
    cdef long long _read_size
    cdef public long long size

    @cython.locals(data=bytes, size=Py_ssize_t, batch=list)
    cpdef object take(self, Message message)
    cpdef object was_read(self, MessageForm message, file, int place, Py_ssize_t size)

    @cython.locals(message=MessageForm)
    cdef bint _is_oldest_gone(self) except -1

    @cython.locals(message=MessageForm)
    cpdef object _forget_oldest(self)
