# Fields of enqueuer.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.queues.memory cimport AddressMemory
from broker.queues.queue cimport Queue
from broker.queues.reference cimport Reference
from broker.routing.duplicates cimport DuplicateCache
from broker.storage.context cimport OperationContext
from broker.storage.manager cimport StorageManager


cdef class Enqueuer:
    cdef object _addresses
    cdef object _copies
    cdef object _paging
    cdef StorageManager _storage
    cdef object _transactions

    cpdef object put(self, Message message, list queues, OperationContext context, tx)

    @cython.locals(queue=Queue, reference=Reference)
    cpdef object put_in_memory(
        self,
        Message message,
        list queues,
        long long scheduled_ms,
        AddressMemory memory,
        OperationContext context,
        tx,
    )

    @cython.locals(durable=list, storage=StorageManager)
    cpdef object put_with_id(
        self,
        Message message,
        list queues,
        AddressMemory memory,
        OperationContext context,
        DuplicateCache ids,
        bytes duplicate_id,
    )

    @cython.locals(queue=Queue, reference=Reference)
    cdef object _put_alone(
        self,
        Message message,
        list queues,
        long long scheduled_ms,
        AddressMemory memory,
        OperationContext context,
    )

    cpdef object put_and_forward(self, Message message, list queues, OperationContext context, tx)
    cpdef object put_acknowledged(
        self, Message message, list queues, list acknowledged, OperationContext context, tx
    )

    cdef list _put_taken(self, Message message, list queues, OperationContext context)

    @cython.locals(durable=list, storage=StorageManager, message_id="long long")
    cdef object _record(
        self, Message message, list queues, long long scheduled_ms, OperationContext context, tx
    )

    @cython.locals(storage=StorageManager)
    cdef object _record_together(self, Message message, list durable, long long scheduled_ms)

    @cython.locals(queue=Queue, last=Queue, storage=StorageManager)
    cdef object _refer(self, long long message_id, list durable, long long scheduled_ms, tx_id)

    cdef object _memory_of(self, Message message, queue)


@cython.locals(durable=list, queue=Queue)
cdef list _durable(list queues)


@cython.locals(queue=Queue)
cpdef object _add(error, Reference reference)
