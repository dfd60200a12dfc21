# Fields of queue.py's class that every message touches, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.queues.consumers cimport Consumers
from broker.queues.contents cimport QueueContents
from broker.queues.reference cimport Reference


cdef class Queue(QueueContents):
    cdef public object browsers
    cdef public Consumers consumers
    cdef public object created_ms
    cdef public object clock_s
    cdef public object filter
    cdef public object groups
    cdef public object index
    cdef public bint is_paused
    cdef public bint is_temporary
    cdef public object last_consumer_left_ms
    cdef public bint records_deliveries
    cdef public object status_record_id
    cdef public bint was_used
    cdef bint _has_groups
    cdef bint _is_delivering
    cdef bint _is_open
    cdef bint _is_rebalancing
    cdef bint _needs_cursors
    cdef object _open_timer
    cdef object _parse_filter
    cdef bint _takes_all
    cdef object _turn

    cpdef bint accepts(self, Message message) except -1
    cpdef object add(self, Reference reference)
    cpdef object load(self, Reference reference)
    cpdef object deliver(self)

    @cython.locals(message=Message)
    cdef object _place(self, Reference reference)
