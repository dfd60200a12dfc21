# Fields of cached_routes.py's class, compiled; see setup.py (COMPILED).

from broker.queues.memory cimport AddressMemory
from broker.routing.route cimport Route


cdef class CachedRoute:
    cdef long long _bytes_max
    cdef long long _count_max
    cdef object _monotonic_s
    cdef object _paging
    cdef tuple _takes
    cdef double _until_s
    cdef object _version
    cdef public object address
    cdef public AddressMemory memory
    cdef public Route route

    cpdef bint holds(self, version) except -1
    cpdef bint is_open(self, int routing) except -1
