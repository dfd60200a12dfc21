# Fields of dispatch.py's classes, and what it works with, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.consumer cimport Consumer
from broker.model.message cimport Message
from broker.queues.queue cimport Queue
from broker.queues.reference cimport PriorityList, Reference


cdef class ConsumerLevel:
    cdef public list members
    cdef public Py_ssize_t position
    cdef public object priority

    @cython.locals(members=list, count=Py_ssize_t, position=Py_ssize_t, consumer=Consumer)
    cpdef Consumer next_ready(self)


cdef class Consumers:
    cdef public Py_ssize_t count
    cdef public Py_ssize_t filtered_count
    cdef public list levels

    @cython.locals(level=ConsumerLevel, consumer=Consumer)
    cpdef Consumer next_ready(self)


cpdef bint dispatch(Queue queue) except -1


@cython.locals(
    waiting=PriorityList,
    consumers=Consumers,
    reference=Reference,
    message=Message,
    consumer=Consumer,
)
cdef bint _dispatch_heads(Queue queue) except -1
