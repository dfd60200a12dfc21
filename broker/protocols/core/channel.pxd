# Fields of channel.py's class, compiled; see setup.py (COMPILED).


cdef class Channel:
    cdef object _unconfirmed
    cdef long long _first_unconfirmed
    cdef long long _handled_size
    cdef public long long channel_id
    cdef public object connection
    cdef public long long last_handled
    cdef public int version
    cdef public long long window_size

    cpdef object send_frame(self, bytes frame, bint is_confirmed)
    cpdef object handled(self, Py_ssize_t size)
