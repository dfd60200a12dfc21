# Fields of named_queues.py's class, compiled; see setup.py (COMPILED).

from broker.model.message cimport Message
from broker.routing.bindings cimport RoutingContext
from broker.routing.route cimport Route


cdef class NamedQueues:
    cdef object _addresses
    cdef object _counters
    cdef dict _forwarding
    cdef dict _gone

    cpdef int route(
        self, Message message, Route route, queue_name, grouping, RoutingContext routing
    ) except -1
    cpdef list targets(self, Message message)
    cdef object _forwarding_to(self, node_id)
    cdef list _to_third_node(self, Message message, list ids, node_id, RoutingContext routing)
    cdef list _to_ids(self, Message message, list ids, RoutingContext routing)
    cdef bint _in_place_of(
        self, list gone, Message message, Route route, queue_name, grouping, RoutingContext routing
    ) except -1
