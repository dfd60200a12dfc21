# Fields of handler.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.protocols.core.frames cimport FrameReader
from broker.protocols.core.session_channel cimport SessionChannel


cdef class CoreConnection:
    cdef object __weakref__
    cdef public dict _channels
    cdef object _clock
    cdef object _cluster
    cdef public object _connection
    cdef public object _incomplete_s
    cdef public bint _is_known
    cdef bint _is_routed
    cdef public object _lost_s
    cdef public object _prefixes
    cdef public object _protocol
    cdef public FrameReader _reader
    cdef dict _receivers
    cdef public object _sessions
    cdef public object _temporary
    cdef public object _ttl_ms
    cdef public int _version
    cdef public object client_id

    @cython.locals(reader=FrameReader, channel=SessionChannel)
    cpdef object receive(self, bytes data)
    cdef object _receive_own(self, FrameReader reader)
