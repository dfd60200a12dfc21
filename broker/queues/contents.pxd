# Fields of contents.py's class, compiled; see setup.py (COMPILED).

from broker.queues.reference cimport Reference
from broker.queues.reference_lists cimport PriorityList
from broker.storage.manager cimport StorageManager


cdef class QueueContents:
    cdef object __weakref__
    cdef public object binding
    cdef public object clock_ms
    cdef public object admission
    cdef public bint has_expiring
    cdef public bint is_deleted
    cdef public bint is_durable
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
    cdef public long long expired_count
    cdef public long long killed_count
    cdef public long long replaced_count
    cdef public long long unacknowledged_count
    cdef public long long undecided_count
    cdef object _auto_delete
    cdef object _dead_letters
    cdef object _end_turn
    cdef bint _goes_when_empty
    cdef bint _has_ring
    cdef object _schedule
    cdef object _settings

    cpdef object acknowledge(self, Reference reference, bint is_last)
    cpdef object acknowledged(self, Reference reference)
    cpdef object deliver(self)
    cpdef object take(self, Reference reference)
    cdef object _put(self, Reference reference)
    cdef object _forget(self, Reference reference)
    cdef object _release(self, Reference reference)
