# Fields of route.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.routing.bindings cimport Binding, RoutingContext


cdef class RoutingGroup:
    cdef public list bindings
    cdef Py_ssize_t _position

    @cython.locals(bindings=list, count=Py_ssize_t, position=Py_ssize_t, binding=Binding)
    cpdef Binding next_for(self, Message message)


cdef class BalancedGroup(RoutingGroup):
    cdef object _mode

    cpdef Binding next_for(self, Message message)


cdef class SameFilter:
    cdef public list bindings
    cdef public object filter

    @cython.locals(binding=Binding)
    cpdef object route(self, Message message, RoutingContext routing)


cdef class Route:
    cdef list _alone_groups
    cdef list _anycast_groups
    cdef dict _by_name
    cdef list _either_groups
    cdef list _multicast_alone
    cdef list _multicast_groups
    cdef dict _named_groups
    cdef list _same_filters
    cdef list _single
    cdef public list anycast
    cdef public list diverts
    cdef public bint is_exclusive
    cdef public list multicast
    cdef public list remote

    @cython.locals(divert=Binding)
    cpdef bint divert(self, Message message, RoutingContext routing) except -1

    @cython.locals(
        binding=Binding, chosen=Binding, group=RoutingGroup, groups=list, same=SameFilter)
    cpdef object route(self, Message message, RoutingContext routing)


@cython.locals(binding=Binding, same=SameFilter)
cdef tuple _by_filter(list bindings)


@cython.locals(binding=Binding)
cdef list _by_routing_name(list bindings)
