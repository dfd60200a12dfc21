# Fields of session.py's class that every message touches, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.consumer cimport Consumer
from broker.model.message cimport Message
from broker.routing.postoffice cimport PostOffice
from broker.sessions.session_large cimport LargeWork
from broker.routing.cached_routes cimport CachedRoute


@cython.final
cdef class Session(LargeWork):
    cdef bint _acknowledges_alone
    cdef bint _has_prefixes
    cdef object _addresses
    cdef object _administration
    cdef object _clock_ms
    cdef object _limits
    cdef object _management
    cdef object _marks
    cdef object _notifications
    cdef object _parse_filter
    cdef PostOffice _postoffice
    cdef object _resource_limits
    cdef dict _routes
    cdef object _security
    cdef bint _sends_alone
    cdef object _settings
    cdef public dict consumers
    cdef public object name
    cdef public object options
    cdef public object user

    cpdef object new_id(self)
    cpdef object prewarm(self, Message message)

    @cython.locals(route=CachedRoute)
    cpdef object accept(self, Message message)

    @cython.locals(consumer=Consumer)
    cpdef object accept_acknowledgement(self, consumer_id, message_id, bint is_individual)
    cdef object _send(self, Message message, tx)

    @cython.locals(known=CachedRoute, route=CachedRoute)
    cdef object _remember_route(self, address, until_s)
    cdef object _check(self, permission, address, queue)
    cdef object _prepare_address(self, address, queue, routing_type)
    cpdef Consumer consumer(self, consumer_id)
