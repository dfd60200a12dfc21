# Fields of paging/reference.py's class, compiled; see setup.py (COMPILED).

from broker.model.message cimport Message
from broker.paging.page cimport Page
from broker.queues.reference cimport Reference


cdef class PagedReference(Reference):
    cdef public long long number
    cdef public Page page
    cdef public object record_id
    cdef public Py_ssize_t size
    cdef public object subscription
    cdef public object transaction

    cpdef object fill(
        self,
        Message message,
        subscription,
        Page page,
        long long number,
        transaction,
        long long scheduled_ms,
    )
    cpdef bint leaves_record(self) except -1
    cpdef bint record_gone(self, tx, bint is_last) except -1
    cpdef object release(self)
