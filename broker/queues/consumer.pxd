# Fields of consumer.py's class, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.queues.contents cimport QueueContents
from broker.queues.reference cimport Reference


cdef class Consumer:
    cdef object _clock_s
    cdef bint _records_deliveries
    cdef public bint can_take
    cdef public object consumer_id
    cdef public bint counts_messages
    cdef public int counted_delivery
    cdef public QueueContents queue
    cdef public object sink
    cdef public object filter
    cdef public bint is_browser
    cdef public object priority
    cdef public bint is_pre_acknowledging
    cdef public long long created_ms
    cdef public long long credits
    cdef public bint is_unlimited
    cdef public long long delivered_bytes
    cdef public long long delivered_count
    cdef public object delivering
    cdef Py_ssize_t _found_at
    cdef public double last_acknowledged_s
    cdef public double last_delivered_s
    cdef public long long number
    cdef public object on_answered
    cdef public bint is_started
    cdef public bint is_paused
    cdef public object pause_cause
    cdef public bint is_closed
    cdef public long long acknowledged_count
    cdef public object stream
    cdef public object cursor
    cdef public object page_browser

    @cython.locals(last=Reference, reference=Reference)
    cpdef object acknowledge(self, tx, long long message_id)

    @cython.locals(reference=Reference, queue=QueueContents, recorded=list)
    cdef object _acknowledge_together(self, Reference last)

    @cython.locals(reference=Reference, message=Message, at=Py_ssize_t)
    cdef Reference _find(self, long long message_id)
    cdef object _answered(self)
    cdef object _acknowledge(self, tx, Reference reference, bint is_last)
    cdef object _write(self, Message message, delivery_count)
    cdef object _write_on(self)
    cpdef object handle(self, Reference reference, Message message)
    cpdef object charge(self, Py_ssize_t size)
