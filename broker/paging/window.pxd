# Fields of window.py's class, compiled; see setup.py (COMPILED).

cdef class Window:
    cdef Py_ssize_t _count_max
    cdef Py_ssize_t _prefetch_count
    cdef Py_ssize_t _prefetch_size
    cdef Py_ssize_t _size_max

    cpdef bint has_room(self, Py_ssize_t count, Py_ssize_t size, Py_ssize_t waiting) except -1
