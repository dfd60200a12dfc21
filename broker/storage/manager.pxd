# Fields of manager.py's classes, compiled; see setup.py (COMPILED).

cimport broker.model.packed as packed
from broker.model.message cimport Message
from broker.storage.context cimport Completions, Counter
from broker.storage.identifiers cimport IdGenerator


cdef class StorageManager:
    cdef object __weakref__
    cdef object _bindings
    cdef Counter _counter
    cdef object _done
    cdef IdGenerator _ids
    cdef object _max_redelivery_records
    cdef bint _sync_non_transactional
    cdef readonly object _messages
    cdef public Completions completions
    cdef public object page_writer
    cdef public object pages

    cpdef object new_id(self)
    cpdef object prewarm(self)
    cpdef object store_message(self, Message message, tx_id)
    cpdef object store_reference(self, queue_id, message_id, tx_id, bint is_last)
    cpdef object acknowledge(self, queue_id, message_id, tx_id, bint is_last)
    cdef object _note(self, record_id, kind, bytes body, tx_id, bint is_last, bint flush_now)
    cpdef object delete_message(self, message_id)
