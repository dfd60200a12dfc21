# Fields of postoffice.py's class, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.routing.bindings as bindings
from broker.model.message cimport Message
from broker.routing.bindings cimport Binding, RoutingContext
from broker.routing.cached_routes cimport CachedRoute
from broker.routing.enqueuer cimport Enqueuer
from broker.routing.named_queues cimport NamedQueues
from broker.routing.route cimport Route
from broker.storage.context cimport OperationContext
from broker.storage.manager cimport StorageManager


cdef class PostOffice:
    cdef object _clock_ms
    cdef object _copies
    cdef object _counters
    cdef object _monotonic_s
    cdef object _routes
    cdef object _settings
    cdef StorageManager _storage
    cdef object _transactions
    cdef object _version
    cdef public object addresses
    cdef public object duplicates
    cdef public Enqueuer enqueuer
    cdef public object grouping
    cdef public NamedQueues named_queues
    cdef public object paging

    cpdef Route route_of(self, address)
    cpdef CachedRoute cached_route(self, name, until_s)

    @cython.locals(routing=RoutingContext)
    cpdef bint send_cached(
        self, CachedRoute cached, Message message, OperationContext context) except -1

    @cython.locals(routing=RoutingContext)
    cpdef bint send_with_id(
        self, CachedRoute cached, Message message, OperationContext context) except -1
    cdef bint _is_duplicate(self, list ids, tx) except -1

    @cython.locals(binding=Binding)
    cdef bint _choose(
        self, Message message, Route route, queue_name, RoutingContext routing) except -1
