# Fields of postoffice.py's classes, compiled; see setup.py (COMPILED).

from broker.message cimport Message


cdef class Route:
    cdef public list anycast
    cdef public list diverts
    cdef public list multicast
    cdef public Py_ssize_t position

    cpdef list queues_for(self, Message message, routing_type)
    cdef object _next_anycast(self, Message message)


cdef class PostOffice:
    cdef object _core
    cdef object _routes
    cdef object _storage
    cdef object _tree
    cdef object _version
    cdef public object addresses
    cdef public object duplicates

    cpdef Route route_of(self, address)
    cdef bint _is_duplicate(self, list ids, tx) except -1
    cdef object _limit_lifetime(self, Message message, address)
    cdef list _queues(self, Message message, Route route, queue_name)
    cpdef object put(self, Message message, list queues, context, tx)
    cdef object _record(self, Message message, list queues, long long scheduled_ms, context, tx)
    cdef object _memory_of(self, Message message, queue)
