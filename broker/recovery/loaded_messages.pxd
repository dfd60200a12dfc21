# Fields of loaded_messages.py's classes, compiled; see setup.py (COMPILED).

cimport cython

cimport broker.model.message_bytes as walk
from broker.queues.memory cimport AddressMemory
from broker.model.message cimport Message
from broker.queues.queue cimport Queue
from broker.queues.reference cimport Reference, reference_to
from broker.storage.spill_file cimport SpillFile
from broker.storage.journal_messages cimport JournalMessages, QueueRows
from broker.queues.stored_references cimport QueueFiller

cdef int _MESSAGE
cdef int _LARGE_MESSAGE
cdef int _REFERENCE
cdef int _ACKNOWLEDGE
cdef int _DELIVERY_COUNT
cdef int _SCHEDULED
cdef int _CORE


@cython.locals(message=Message)
cpdef Message decode_message(long long message_id, bytes body)


@cython.locals(size="long long")
cdef long long _form_at(bytes body) except -1


cdef class LoadedQueue:
    cdef public object queue_id
    cdef public list references
    cdef public QueueRows rows

    cpdef object append(self, Reference reference)


cdef class KnownMessages:
    cdef list _in_order
    cdef dict _others

    cpdef object get(self, message_id)
    cpdef object put(self, message_id, known)

    @cython.locals(
        known=list, after=cython.Py_ssize_t, low=cython.Py_ssize_t, middle=cython.Py_ssize_t
    )
    cdef Py_ssize_t _place(self, long long message_id) except? -2


@cython.locals(message=Message, reference=Reference)
cdef long long _id_of(known) except? -1


cdef class LoadedMessages:
    cdef SpillFile _aside
    cdef dict _made
    cdef public JournalMessages plain
    cdef public list heuristic
    cdef public dict duplicate_ids
    cdef public KnownMessages known
    cdef public list others
    cdef public dict queues
    cdef public set unreadable

    cpdef object _take_one(self, item, file, long long place)

    @cython.locals(message=Message, kind=int, body=bytes, found=Reference)
    cdef object _take(self, item, file, long long place)
    cdef object _add(self, message_id, Message message)

    @cython.locals(reference=Reference)
    cdef object _refer(self, message_id, queue_id)
    cdef Reference _find(self, message_id, queue)
    cdef LoadedQueue _queue(self, queue_id)
    cpdef object make(self, message_id)

    @cython.locals(message=Message, reference=Reference)
    cdef object _make(self, Py_ssize_t row)
    cdef Reference _reference_of(self, Py_ssize_t row)

    @cython.locals(
        reference=Reference,
        message=Message,
        memory=AddressMemory,
        filler=QueueFiller,
        rows=QueueRows,
        leaves_rows=bint,
        row="long long",
        at=Py_ssize_t,
        count=Py_ssize_t,
    )
    cpdef object fill(self, Queue queue, LoadedQueue loaded, memory_of, has_body)
