# Fields of page_appends.py's class, compiled; see setup.py (COMPILED).

cimport broker.packed as packed

cdef int _ACKNOWLEDGE


cdef class PageAppends:
    cdef object _counter
    cdef object _done
    cdef object _messages
    cdef object _new_id

    cpdef object delete(self, record_id, tx_id=*)
    cpdef object acknowledge(self, queue_id, page, number, tx_id, bint is_last)
