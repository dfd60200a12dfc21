# Fields of memory.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message


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
    cdef public long long uncommitted_count
    cdef public long long uncommitted_size

    cpdef bint has_room(self, long long bytes_max, long long count_max) except -1

    @cython.locals(size=Py_ssize_t, broker=GlobalMemory)
    cpdef object add(self, Message message)

    @cython.locals(size=Py_ssize_t, broker=GlobalMemory)
    cpdef object remove(self, Message message)
    cpdef object add_uncommitted(self, Py_ssize_t size, Py_ssize_t count)
    cpdef object hold(self, Py_ssize_t size)
    cpdef object free(self, Py_ssize_t size)
