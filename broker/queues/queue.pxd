# Fields of queue.py's class that every message touches, compiled; see setup.py (COMPILED).

cimport cython

from broker.model.message cimport Message
from broker.queues.reference cimport PriorityList, Reference
from broker.storage.manager cimport StorageManager


@cython.final
cdef class Queue:
    cdef dict __dict__
    cdef object __weakref__
    cdef public object binding
    cdef public object browsers
    cdef public object consumers
    cdef public object clock_ms
    cdef public object clock_s
    cdef public object consumer_numbers
    cdef public object filter
    cdef public bint has_expiring
    cdef public bint is_deleted
    cdef public bint is_dispatching
    cdef public bint is_durable
    cdef public bint is_plain
    cdef public object index
    cdef public bint is_rebalancing
    cdef public bint records_deliveries
    cdef public object last_values
    cdef public object name
    cdef public object pages
    cdef public object queue_id
    cdef public StorageManager storage
    cdef public object timers
    cdef public PriorityList waiting
    cdef public long long acknowledged_count
    cdef public long long added_count
    cdef public long long delivering_count
    cdef object _auto_delete
    cdef object _dead_letters
    cdef object _parse_filter
    cdef object _settings
    cdef bint _has_groups
    cdef bint _has_ring
    cdef bint _takes_all
    cdef bint _goes_when_empty
    cdef bint _is_delivering
    cdef bint _is_open
    cdef bint _needs_cursors
    cdef object _end_turn
    cdef object _open_timer
    cdef object _schedule
    cdef object _turn

    cpdef bint accepts(self, Message message) except -1
    cpdef object add(self, Reference reference)
    cpdef object load(self, Reference reference)
    cpdef object acknowledge(self, Reference reference, bint is_last)
    cpdef object acknowledged(self, Reference reference)
    cpdef object deliver(self)

    @cython.locals(message=Message)
    cdef object _place(self, Reference reference)
    cdef object _forget(self, Reference reference)
    cdef object _release(self, Reference reference)
