"""Plain messages that the message journal holds at a start, a row of 32 bytes each.

    LiveCursor ─▶ read() ─▶ rows: id, place in the file, queue ─▶ make() ─▶ Message
                     └──▶ every other record, as an object, to the reader

A message is plain as long as one queue at most has it, and nothing has happened to it there: not
delivered, not scheduled; it does not expire and has no group. Its bytes are checked here, once,
where the load has them in memory; they stay where they are, in the journal's file.

Threads: the event loop's.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp

from broker.records.core_form cimport int_at, long_at, read_core

from broker.model.message import Message
from broker.model.wire import RecordType

__all__ = ["JournalMessages", "QueueRows"]

cdef extern from "<string.h>" nogil:
    void *memmem(const void *, size_t, const void *, size_t)

cdef enum:
    PRIORITY_MAX = 9
    # What stands before a message in the body of its record, from the end of the message's body.
    END_OF_BODY_SIZE = 4
    ID_SIZE = 8
    FIRST_ROOM = 64

cdef int ADD_MESSAGE = RecordType.ADD_MESSAGE_PROTOCOL
cdef int ADD_REFERENCE = RecordType.ADD_REF
cdef bytes GROUP_ID = "_AMQ_GROUP_ID".encode("utf-16-le")


cdef class QueueRows:
    """What a queue's id has, in order: rows, and references that are objects.

    Attributes:
        queue_id: of the records.
        number: in JournalMessages.queues.
    """

    def __init__(self, queue_id, int number):
        self.queue_id = queue_id
        self.number = number

    def __dealloc__(self):
        free(self.rows)

    def __len__(self):
        return self.count

    cpdef int append(self, uint32_t row) except -1:
        """Take a row."""
        cdef uint32_t *rows
        cdef Py_ssize_t room
        if self.count == self.room:
            room = self.room * 2 if self.room else FIRST_ROOM
            rows = <uint32_t *>realloc(self.rows, room * sizeof(uint32_t))
            if rows == NULL:
                raise MemoryError
            self.rows = rows
            self.room = room
        self.rows[self.count] = row
        self.count += 1
        return 0

    cpdef int append_object(self) except -1:
        """Take a reference that is an object, which the caller has in a list of its own."""
        return self.append(OBJECT_ROW)

    cpdef long long row_at(self, Py_ssize_t at):
        """The row that stands there; -1: a reference that is an object.

        Raises:
            IndexError: there are not so many.
        """
        if not 0 <= at < self.count:
            raise IndexError(f"{at} of {self.count} rows")
        return -1 if self.rows[at] == OBJECT_ROW else <long long>self.rows[at]


cdef class JournalMessages:
    """All plain messages; see the module's text.

    Args:
        open_file: called with a LoadedFile; gives a file that messages can be read from (read()),
            or None: then its messages are given to the reader.

    Attributes:
        files: what open_file gave.
        addresses: text of each.
        queues: QueueRows of each queue's id.
    """

    def __init__(self, open_file=None):
        self.open_file = open_file
        self.files = []
        self.addresses = []
        self.queues = []
        self.queues_by_id = {}
        self.addresses_by_units = {}
        self.files_by_number = {}
        self.last_number = self.last_file = -1

    def __dealloc__(self):
        free(self.rows)

    def __len__(self):
        return self.count

    def read(self, LiveCursor cursor not None, on_record, on_message):
        """Take what is plain; the rest is handed over, in order.

        Args:
            cursor: over all live records.
            on_record: called with each other LiveRecord.
            on_message: called with each message that is not plain: its LiveRecord, the file it can
                be read from (or None), and the place of its record's body there.
        """
        cdef int user_type
        cdef int file
        while cursor.next():
            user_type = cursor.locator.user_type
            if user_type == ADD_REFERENCE:
                if not self.take_reference(cursor):
                    on_record(cursor.record())
            elif user_type == ADD_MESSAGE:
                if not self.take_message(cursor):
                    file = self.file_of(cursor)
                    on_message(cursor.record(), None if file < 0 else self.files[file],
                               cursor.locator.body_offset)
            else:
                on_record(cursor.record())

    cdef bint take_message(self, LiveCursor cursor) except -1:
        """Make a row of a message; False: it is not plain."""
        cdef CoreForm form
        cdef const uint8_t *data = cursor.body
        cdef int64_t size = cursor.locator.body_size
        cdef int64_t headers_at, address_size, place
        cdef MessageRow *rows
        cdef MessageRow *row
        cdef Py_ssize_t room
        cdef int file
        if not read_core(data, size, &form) or form.expiration \
                or not 0 <= form.priority <= PRIORITY_MAX:
            return False
        # What the record says of id and address is what the message's own bytes say.
        headers_at = form.body_at + form.body_size
        if long_at(data + headers_at) != cursor.locator.record_id or not data[headers_at + ID_SIZE]:
            return False
        address_size = int_at(data + headers_at + ID_SIZE + 1)
        if address_size != form.address_size or memcmp(
                data + headers_at + ID_SIZE + 5, data + form.address_at, address_size):
            return False
        if form.property_count and memmem(
                data + form.properties_at, size - form.properties_at,
                PyBytes_AS_STRING(GROUP_ID), PyBytes_GET_SIZE(GROUP_ID)) != NULL:
            return False
        place = cursor.locator.body_offset + form.body_at - END_OF_BODY_SIZE
        size -= form.body_at - END_OF_BODY_SIZE
        if place + size > INT32_MAX or self.count == <Py_ssize_t>OBJECT_ROW:
            return False
        # As nearly all are: in the order of their ids, so that they are found by them.
        if self.count and self.rows[self.count - 1].message_id >= cursor.locator.record_id:
            return False
        file = self.file_of(cursor)
        if file < 0:
            return False
        if self.count == self.room:
            room = self.room * 2 if self.room else FIRST_ROOM
            rows = <MessageRow *>realloc(self.rows, room * sizeof(MessageRow))
            if rows == NULL:
                raise MemoryError
            self.rows = rows
            self.room = room
        row = &self.rows[self.count]
        row.message_id = cursor.locator.record_id
        row.place = <uint32_t>place
        row.size = <uint32_t>size
        row.file = file
        row.address = self.address_of(data + form.address_at, form.address_size)
        row.queue = NO_QUEUE
        row.priority = form.priority
        row.is_object = False
        self.count += 1
        return True

    cdef bint take_reference(self, LiveCursor cursor) except -1:
        """Give a plain message its queue; False: it is not plain, or is so no more."""
        cdef Py_ssize_t row
        cdef int64_t queue_id
        if cursor.locator.body_size < ID_SIZE:
            return False
        row = self.row_of(cursor.locator.record_id)
        if row < 0 or self.rows[row].queue != NO_QUEUE:
            return False
        queue_id = long_at(cursor.body)
        if self.last_queue is None or self.last_queue.queue_id != queue_id:
            self.last_queue = self.queue(queue_id)
        self.rows[row].queue = self.last_queue.number
        self.last_queue.append(<uint32_t>row)
        return True

    cdef int file_of(self, LiveCursor cursor) except -2:
        """The place in `files` of the one that the record stands in; -1: it cannot be open."""
        cdef int32_t number = cursor.locator.file
        if number == self.last_number:
            return self.last_file
        found = self.files_by_number.get(number)
        if found is None:
            opened = None if self.open_file is None else self.open_file(cursor.file())
            found = -1
            if opened is not None:
                found = len(self.files)
                self.files.append(opened)
            self.files_by_number[number] = found
        self.last_number = number
        self.last_file = found
        return self.last_file

    cdef int address_of(self, const uint8_t *units, Py_ssize_t size) except -1:
        if self.last_units is not None and size == PyBytes_GET_SIZE(self.last_units) \
                and memcmp(units, PyBytes_AS_STRING(self.last_units), size) == 0:
            return self.last_address
        self.last_units = PyBytes_FromStringAndSize(<const char *>units, size)
        found = self.addresses_by_units.get(self.last_units)
        if found is None:
            found = self.addresses_by_units[self.last_units] = len(self.addresses)
            self.addresses.append(self.last_units.decode("utf-16-le", "surrogatepass"))
        self.last_address = found
        return self.last_address

    cpdef QueueRows queue(self, queue_id):
        """What a queue's id has; empty, if nothing was known of it."""
        found = self.queues_by_id.get(queue_id)
        if found is None:
            found = self.queues_by_id[queue_id] = QueueRows(queue_id, len(self.queues))
            self.queues.append(found)
        return found

    cpdef Py_ssize_t row_of(self, long long message_id):
        """The row of a message; -1: there is none, or it is an object by now."""
        cdef Py_ssize_t low = 0, after = self.count, middle
        # Nearly always the last one is meant.
        if after and self.rows[after - 1].message_id == message_id:
            low = after - 1
        else:
            while low < after:
                middle = (low + after) // 2
                if self.rows[middle].message_id < message_id:
                    low = middle + 1
                else:
                    after = middle
        if low >= self.count or self.rows[low].message_id != message_id \
                or self.rows[low].is_object:
            return -1
        return low

    cpdef int queue_of(self, Py_ssize_t row):
        """The number of the queue that has the message; below 0: none has."""
        return self.rows[row].queue

    cpdef bint is_object(self, Py_ssize_t row):
        """Whether make() was called."""
        return self.rows[row].is_object

    cpdef int give(self, Py_ssize_t row, QueueRows queue) except -1:
        """Let a queue have a message that none has."""
        self.rows[row].queue = queue.number
        return queue.append(<uint32_t>row)

    cpdef object make(self, Py_ssize_t row):
        """Make the message; from now on the object is all that counts.

        Raises:
            JournalIOError: the disk fails.
        """
        cdef MessageRow *found = &self.rows[row]
        file = self.files[found.file]
        message = Message.decode(file.read(found.place, found.size))
        message.spill(file, found.place)
        found.is_object = True
        return message

    def unreferenced(self):
        """Ids of those that no queue has."""
        cdef Py_ssize_t row
        for row in range(self.count):
            if self.rows[row].queue == NO_QUEUE and not self.rows[row].is_object:
                yield self.rows[row].message_id
