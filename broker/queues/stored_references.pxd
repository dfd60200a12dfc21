"""References to messages in the journal's files: the typed header of stored_references.pyx."""

from libc.stdint cimport uint32_t

from broker.queues.memory cimport AddressMemory
from broker.queues.queue cimport Queue
from broker.storage.journal_messages cimport JournalMessages

cdef struct StoredPlace:
    uint32_t place
    uint32_t size


cdef class StoredReferences:
    cdef Queue queue
    cdef object file
    cdef AddressMemory memory
    cdef StoredPlace *places
    cdef Py_ssize_t count, room
    cdef long long size

    cdef bint fits(self, file, AddressMemory memory, uint32_t size)
    cdef int add(self, uint32_t place, uint32_t size) except -1
    cpdef list make(self)
    cdef list read(self)


cdef class QueueFiller:
    cdef JournalMessages messages
    cdef Queue queue
    cdef object memory_of
    cdef list memories          # by address
    cdef list open              # by priority
    cdef int open_count

    cpdef int add(self, Py_ssize_t row) except -1
    cpdef int flush(self) except -1
    cdef int close(self, int priority) except -1
