# Fields of deliveries.py's class, compiled; see setup.py (COMPILED).


cdef class EngineDelivery:
    cdef object _handle
    cdef object _made_in
    cdef object _whole

    cdef object _wrapped(self)
    cpdef object update(self, int state)
    cpdef object settle(self)
