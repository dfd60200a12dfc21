# Fields of reference.py's classes, compiled; see setup.py (COMPILED).

from broker.message cimport Message


cdef class Reference:
    cdef public object consumer
    cdef public int delivery_count
    cdef public Reference following
    cdef public int level
    cdef public Message message
    cdef public int persisted_count
    cdef public Reference previous
    cdef public object queue
    cdef public long long scheduled_ms

    cpdef bint record_gone(self, tx=*) except -1
    cpdef object let_go(self)


cdef class ReferenceList:
    cdef public Reference head
    cdef public int level
    cdef public Reference tail

    cpdef object add_tail(self, Reference reference)
    cpdef object add_head(self, Reference reference)
    cpdef object remove(self, Reference reference)


cdef class Cursor:
    cdef PriorityList _owner
    cdef public list places


cdef class PriorityList:
    cdef public Py_ssize_t count
    cdef public list cursors
    cdef public list levels
    cdef public tuple used

    cpdef ReferenceList level_of(self, Message message)
    cpdef object add_tail(self, Reference reference)
    cpdef object add_head(self, Reference reference)
    cpdef Reference head(self)
    cpdef object remove(self, Reference reference)
