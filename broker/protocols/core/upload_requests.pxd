# Fields of upload_requests.py's class, compiled since every frame asks for `kept`; see setup.py.


cdef class UploadRequests:
    cdef object _session
    cdef object _channel
    cdef object _answers
    cdef object _receive
    cdef object _producer_of
    cdef public list kept
    cdef object _kept_connection
    cdef object _to_end
    cdef object _address
    cdef object _amqp
