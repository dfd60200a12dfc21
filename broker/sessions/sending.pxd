# Fields of sending.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.routing.cached_routes cimport CachedRoute
from broker.routing.postoffice cimport PostOffice
from broker.sessions.permissions cimport Permissions
from broker.storage.context cimport OperationContext


cdef class Sending:
    cdef object _addresses
    cdef object _administration
    cdef object _clock_ms
    cdef OperationContext _context
    cdef bint _has_prefixes
    cdef object _flow_control
    cdef object _management
    cdef object _marks
    cdef Permissions _permissions
    cdef PostOffice _postoffice
    cdef object _prefixes
    cdef object _settings
    cdef object _user
    cdef public object default_address
    cdef public dict routes

    cpdef object send(self, Message message, tx)

    @cython.locals(known=CachedRoute, route=CachedRoute)
    cdef object _remember_route(self, address, until_s)
    cdef object _prepare_address(self, address, queue, routing_type)
