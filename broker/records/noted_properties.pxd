# Fields of noted_properties.py's class, compiled; see setup.py (COMPILED).

from broker.model.message cimport Message


cdef class NotedProperties(Message):
    cdef public bint _is_marked
    cdef public dict _extra
    cdef public object _address_read

    cpdef object remove(self, name)
    cpdef object _noted(self)
    cpdef bytes _encoded_notes(self)
