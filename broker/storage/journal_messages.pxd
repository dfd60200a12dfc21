"""Plain messages of the message journal, a row each: the typed header of journal_messages.pyx."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t

from broker.records.core_form cimport CoreForm
from journal.delivery cimport LiveCursor

cdef enum:
    # Of a row's queue: no queue has the message.
    NO_QUEUE = -1
    # Among the rows of a queue: a reference that is an object.
    OBJECT_ROW = 0xFFFFFFFF

cdef struct MessageRow:
    int64_t message_id
    uint32_t place              # of the message's bytes in the file
    uint32_t size
    int32_t file                # in JournalMessages.files
    int32_t address             # in JournalMessages.addresses
    int32_t queue               # in JournalMessages.queues
    int8_t priority
    uint8_t is_object           # a Message was made of it


cdef class QueueRows:
    cdef readonly object queue_id
    cdef readonly int number
    cdef uint32_t *rows
    cdef Py_ssize_t count, room

    cpdef int append(self, uint32_t row) except -1
    cpdef int append_object(self) except -1
    cpdef long long row_at(self, Py_ssize_t at)


cdef class JournalMessages:
    cdef readonly list files, addresses, queues
    cdef object open_file
    cdef dict queues_by_id, addresses_by_units
    cdef MessageRow *rows
    cdef Py_ssize_t count, room
    cdef dict files_by_number
    cdef int32_t last_number, last_file
    cdef bytes last_units
    cdef int32_t last_address
    cdef QueueRows last_queue

    cpdef QueueRows queue(self, queue_id)
    cpdef Py_ssize_t row_of(self, long long message_id)
    cpdef int queue_of(self, Py_ssize_t row)
    cpdef bint is_object(self, Py_ssize_t row)
    cpdef int give(self, Py_ssize_t row, QueueRows queue) except -1
    cpdef object make(self, Py_ssize_t row)
    cdef int file_of(self, LiveCursor cursor) except -2
    cdef int address_of(self, const uint8_t *units, Py_ssize_t size) except -1
    cdef bint take_message(self, LiveCursor cursor) except -1
    cdef bint take_reference(self, LiveCursor cursor) except -1
