# Fields of reference.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.queues.memory cimport AddressMemory
from broker.model.message cimport Message
from broker.storage.manager cimport StorageManager


cdef class Reference:
    # As narrow as they can be: a million of these may wait. 80 bytes, and 16 of the collector's.
    cdef public object consumer
    cdef public Reference following
    cdef public Message message
    cdef public Reference previous
    cdef public object queue
    cdef public long long sequence
    cdef public int delivery_count
    cdef unsigned short _persisted_count
    cdef public signed char level

    cdef object _begin(self, Message message, queue, long long scheduled_ms)

    cpdef bint leaves_record(self) except -1

    @cython.locals(message=Message, storage=StorageManager)
    cpdef bint record_gone(self, tx, bint is_last) except -1

    @cython.locals(message=Message, storage=StorageManager, owner=AddressMemory)
    cpdef object release(self)


@cython.locals(reference=Reference)
cpdef Reference reference_to(Message message, queue, long long scheduled_ms)
