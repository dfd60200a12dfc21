# Fields of page.py's class, compiled; see setup.py (COMPILED).

cimport cython


cdef class Page:
    cdef public Py_ssize_t count
    cdef public bint is_closed
    cdef public bint is_gone
    cdef public bint is_invalid
    cdef public list large
    cdef public Py_ssize_t left
    cdef public long long number
    cdef public dict remaining
    cdef public Py_ssize_t room
    cdef public Py_ssize_t size
    cdef public object store
    cdef public dict transactions
    cdef public Py_ssize_t written_size

    cpdef object added(self, queue_id, Py_ssize_t count=*)

    @cython.locals(left=Py_ssize_t)
    cpdef Py_ssize_t removed(self, queue_id, Py_ssize_t count=*) except -1
