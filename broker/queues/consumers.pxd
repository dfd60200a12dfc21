# Fields of consumers.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.consumer cimport Consumer


cdef class ConsumerLevel:
    cdef public list members
    cdef public Py_ssize_t position
    cdef public object priority

    @cython.locals(members=list, count=Py_ssize_t, position=Py_ssize_t, consumer=Consumer)
    cpdef Consumer next_ready(self)


cdef class Consumers:
    cdef public Py_ssize_t count
    cdef public Py_ssize_t filtered_count
    cdef public bint is_plain
    cdef public list levels
    cdef public bint may_take

    @cython.locals(level=ConsumerLevel, consumer=Consumer)
    cpdef Consumer next_ready(self)
