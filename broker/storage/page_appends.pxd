# Fields of page_appends.py's class, compiled; see setup.py (COMPILED).

cimport broker.model.packed as packed

cdef int _ACKNOWLEDGE


cdef class PageAppends:
    cdef object _counter
    cdef object _done
    cdef object _messages
    cdef object _new_id

    cpdef bint delete(self, record_id) except -1
    cdef object _acknowledge(self, record_id, body, tx_id, bint is_last)
    cpdef object acknowledge(self, queue_id, page, number, tx_id, bint is_last)
