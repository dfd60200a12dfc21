# Fields of bindings.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.queues.queue cimport Queue


@cython.freelist(16)
cdef class RoutingContext:
    cdef object _context
    cdef int _depth
    cdef object _router
    cdef object _tx
    cdef public list queues

    cdef object _begin(self, router, context, tx, int depth)


@cython.locals(made=RoutingContext)
cpdef RoutingContext routing_context(router, context, tx, int depth)


cdef class Binding:
    cdef public object address
    cdef public object binding_id
    cdef public object binding_type
    cdef public int distance
    cdef public object filter
    cdef public bint is_exclusive
    cdef public object routing_name
    cdef public object routing_type
    cdef public object unique_name

    cpdef bint accepts(self, Message message) except -1
    cpdef bint has_consumer_for(self, Message message) except -1
    cpdef object route(self, Message message, RoutingContext routing)


cdef class LocalQueueBinding(Binding):
    cdef public Queue queue
