# Fields of producer.py's class, compiled; see setup.py (COMPILED).


cdef class Producer:
    cdef public object address
    cdef public long long created_ms
    cdef public object last_user_id
    cdef object _name
    cdef object _new_uuid
    cdef public long long number
    cdef public long long sent_bytes
    cdef public long long sent_count
