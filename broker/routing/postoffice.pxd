# Fields of postoffice.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.memory cimport AddressMemory
from broker.model.message cimport Message
from broker.queues.queue cimport Queue
from broker.queues.reference cimport Reference
from broker.storage.context cimport OperationContext
from broker.storage.manager cimport StorageManager
from broker.routing.cached_routes cimport CachedRoute


cdef class AnycastQueues:
    cdef list _queues
    cdef Py_ssize_t _position

    @cython.locals(queues=list, count=Py_ssize_t, position=Py_ssize_t, queue=Queue)
    cpdef Queue next_for(self, Message message)


cdef class Route:
    cdef list _anycast_by_address
    cdef public list anycast
    cdef public list diverts
    cdef public list multicast

    @cython.locals(found=list, queue=Queue, chosen=Queue, queues=AnycastQueues)
    cpdef list queues_for(self, Message message, routing_type)


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
    cdef public object paging

    cpdef Route route_of(self, address)
    cpdef CachedRoute cached_route(self, name, until_s)

    @cython.locals(route=Route, queues=list)
    cpdef bint send_cached(
        self, CachedRoute cached, Message message, OperationContext context) except -1
    cdef bint _is_duplicate(self, list ids, tx) except -1
    cdef object _limit_lifetime(self, Message message, address)
    cdef list _queues(self, Message message, Route route, queue_name)
    cpdef object put(self, Message message, list queues, OperationContext context, tx)

    @cython.locals(queue=Queue, reference=Reference)
    cdef object _put(
        self,
        Message message,
        list queues,
        long long scheduled_ms,
        AddressMemory memory,
        OperationContext context,
        tx,
    )

    @cython.locals(
        durable=list, queue=Queue, last=Queue, storage=StorageManager, message_id="long long"
    )
    cdef object _record(
        self, Message message, list queues, long long scheduled_ms, OperationContext context, tx
    )
    cdef object _memory_of(self, Message message, queue)


@cython.locals(queue=Queue)
cpdef object _add(error, Reference reference)
