# Fields of session_transaction.py's class, compiled; see setup.py (COMPILED).

from broker.storage.context cimport OperationContext


cdef class SessionTransaction:
    cdef dict _consumers
    cdef bint _is_xa
    cdef object _transactions
    cdef public OperationContext context
    cdef public object pending
    cdef public object tx

    cpdef object usable(self)
