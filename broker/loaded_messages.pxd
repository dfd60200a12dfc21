# Fields of loaded_messages.py's classes, compiled; see setup.py (COMPILED).

cimport cython

from broker.message cimport Message
from broker.reference cimport Reference
from broker.storage.bytes_aside cimport BytesAside


@cython.locals(message=Message)
cpdef Message decode_message(message_id, body)


cdef class LoadedQueue:
    cdef public object queue_id
    cdef public list references


cdef class LoadedMessages:
    cdef BytesAside _aside
    cdef public list heuristic
    cdef public dict duplicate_ids
    cdef public dict known
    cdef public list others
    cdef public dict queues
    cdef public set unreadable

    @cython.locals(message=Message)
    cdef object _take(self, item)
    cdef object _add(self, message_id, Message message)
    cdef object _refer(self, message_id, queue_id)
    cdef Reference _find(self, message_id, queue)
