# Fields of session_xa.py's class, compiled; see setup.py (COMPILED).

from broker.storage.context cimport OperationContext


cdef class XaWork:
    cdef dict __dict__
    cdef object __weakref__
    cdef public object _transactions
    cdef public OperationContext context
    cdef public object tx
