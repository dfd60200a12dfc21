# Fields of session_channel.py's class, compiled; see setup.py (COMPILED).

from broker.protocols.core.channel cimport Channel


cdef class SessionChannel:
    cdef object __weakref__
    cdef object _chunk_size
    cdef object _has_metadata
    cdef object _held
    cdef object _held_connection
    cdef object _to_end
    cdef public Channel channel
    cdef public object on_close
    cdef public object session

    cpdef object receive(self, kind, body)
    cdef object _receive_send(self, body)
    cdef object _send_null(self, correlation_id)
    cdef object _handled(self, Py_ssize_t size)
