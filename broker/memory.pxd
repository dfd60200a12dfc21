# Fields of memory.py's classes, compiled; see setup.py (COMPILED).

from broker.message cimport Message


cdef class GlobalMemory:
    cdef public long long count
    cdef public long long count_max
    cdef public double disk_usage
    cdef public bint is_disk_full
    cdef public object on_unused
    cdef public long long size
    cdef public long long size_max
    cdef public dict waiting


cdef class AddressMemory:
    cdef object _settings
    cdef object _waiting
    cdef public bint is_blocked
    cdef public object address
    cdef public GlobalMemory broker
    cdef public long long count
    cdef public long long size

    cpdef object add(self, Message message)
    cpdef object remove(self, Message message)
