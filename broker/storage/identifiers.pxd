# Fields of identifiers.py's class, compiled; see setup.py (COMPILED).


cdef class IdGenerator:
    cdef object _checkpoint_size
    cdef long long _limit
    cdef list _loaded_records
    cdef long long _next
    cdef object _store

    cpdef long long new_id(self) except? -1
