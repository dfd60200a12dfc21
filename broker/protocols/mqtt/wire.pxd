# Fields of wire.py's class, compiled; see setup.py (COMPILED).

cimport cython


cdef class PacketReader:
    cdef Py_ssize_t _at
    cdef bytes _data
    cdef Py_ssize_t _end
    cdef bint _strict

    @cython.locals(start=Py_ssize_t)
    cpdef bytes take(self, Py_ssize_t size)
    cpdef bytes rest(self)

    @cython.locals(data=bytes, place=Py_ssize_t, value="unsigned long")
    cpdef object number(self, Py_ssize_t size)
    cpdef bytes binary(self)
    cpdef str text(self)
