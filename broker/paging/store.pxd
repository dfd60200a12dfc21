# What every paged message passes of store.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.paging.page cimport Page


cdef class PagingStore:
    cdef dict __dict__
    cdef object __weakref__
    cdef public object subscriptions

    @cython.locals(page=Page, durable=list, others=list, ids=list, data=bytes)
    cpdef object append(self, Message message, list queues, tx)

    @cython.locals(left=Py_ssize_t)
    cpdef object removed(self, Page page, queue_id, Py_ssize_t count=*)
