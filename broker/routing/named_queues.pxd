# Fields of named_queues.py's class, compiled; see setup.py (COMPILED).

from broker.model.message cimport Message
from broker.routing.bindings cimport RoutingContext


cdef class NamedQueues:
    cdef object _addresses
    cdef object _counters

    cpdef bint route(self, Message message, RoutingContext routing) except -1
    cpdef list targets(self, Message message)
    cdef object _to_third_node(self, Message message, list ids, node_id, RoutingContext routing)
    cdef object _to_ids(self, Message message, list ids, RoutingContext routing)
