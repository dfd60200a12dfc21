"""References of one queue to messages that lie in the journal's files: objects when they are due.

A start with a million messages makes no object of any of them. A queue gets lists of places, 8
bytes a message, in its list of waiting references (reference_lists.py). A reader that comes to such
a list (the queue's next delivery, a browser, management) has all of its references made at once, by
one read of the file.

Threads: the event loop's.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc

from broker.queues.memory cimport AddressMemory
from broker.model.message cimport Message
from broker.queues.queue cimport Queue
from broker.queues.reference cimport reference_to
from broker.storage.journal_messages cimport JournalMessages, MessageRow

from broker.model.message_form import MEMORY_OVERHEAD

__all__ = ["QueueFiller", "StoredReferences"]

cdef enum:
    # Of one list, unless a single message is larger: read, and made objects, at once.
    PART_SIZE = 256 << 10
    COUNT_MAX = 512
    FIRST_ROOM = 16
    # Bytes between two messages that are read with them, a message of another queue say.
    GAP_MAX = 4 << 10
    PRIORITIES = 10

cdef int OVERHEAD = MEMORY_OVERHEAD


cdef class StoredReferences:
    """Some references of one queue, one behind the other, of one file and one address.

    Args:
        queue: that has them.
        file: where their messages are.
        memory: of their address, where they count already.
    """

    def __init__(self, Queue queue not None, file, AddressMemory memory not None):
        self.queue = queue
        self.file = file
        self.memory = memory

    def __dealloc__(self):
        free(self.places)

    def __len__(self):
        return self.count

    cdef bint fits(self, file, AddressMemory memory, uint32_t size):
        return (self.file is file and self.memory is memory and self.count < COUNT_MAX
                and self.size + size <= PART_SIZE)

    cdef int add(self, uint32_t place, uint32_t size) except -1:
        cdef StoredPlace *places
        cdef Py_ssize_t room
        if self.count == self.room:
            room = self.room * 2 if self.room else FIRST_ROOM
            places = <StoredPlace *>realloc(self.places, room * sizeof(StoredPlace))
            if places == NULL:
                raise MemoryError
            self.places = places
            self.room = room
        self.places[self.count].place = place
        self.places[self.count].size = size
        self.count += 1
        self.size += size
        return 0

    cpdef list make(self):
        """Give a Reference of each.

        Raises:
            JournalIOError: the disk fails.
            RecordFormatError: these bytes are not a message any more.
        """
        cdef Message message
        cdef Py_ssize_t i
        cdef list found = self.read(), made = []
        for i in range(self.count):
            message = Message.__new__(Message)
            message._read_form(found[i])
            message.references = message.durable_references = 1
            message.owner = self.memory
            made.append(reference_to(message, self.queue, 0))
        # When all are there: a read that fails makes none.
        for i in range(self.count):
            made[i].message.lies_in(self.file, self.places[i].place)
        return made

    cdef list read(self):
        """The bytes of each message, of as few reads as can be."""
        cdef Py_ssize_t first = 0, after, i
        cdef long long start, end
        cdef bytes data
        cdef list found = []
        while first < self.count:
            start = self.places[first].place
            end = start + self.places[first].size
            after = first + 1
            while after < self.count and end <= self.places[after].place <= end + GAP_MAX:
                end = <long long>self.places[after].place + self.places[after].size
                after += 1
            data = self.file.read(start, end - start)
            for i in range(first, after):
                found.append(data[self.places[i].place - start:
                                  self.places[i].place - start + self.places[i].size])
            first = after
        return found


cdef class QueueFiller:
    """Gives a queue the plain messages that it has.

    Args:
        messages: of the journal.
        queue: takes references in their order, and nothing else meanwhile.
        memory_of: gives the memory that a message of an address counts for, in this queue.
    """

    def __init__(self, JournalMessages messages not None, Queue queue not None, memory_of):
        self.messages = messages
        self.queue = queue
        self.memory_of = memory_of
        self.memories = [None] * len(messages.addresses)
        self.open = [None] * PRIORITIES

    cpdef int add(self, Py_ssize_t row) except -1:
        """Put one more behind all that the queue has."""
        cdef MessageRow *message = &self.messages.rows[row]
        cdef StoredReferences last = self.open[message.priority]
        cdef AddressMemory memory = self.memories[message.address]
        file = self.messages.files[message.file]
        if memory is None:
            memory = self.memory_of(self.messages.addresses[message.address], self.queue)
            self.memories[message.address] = memory
        if last is None or not last.fits(file, memory, message.size):
            self.close(message.priority)
            last = self.open[message.priority] = StoredReferences(self.queue, file, memory)
            self.open_count += 1
        last.add(message.place, message.size)
        memory.hold(message.size + OVERHEAD)
        return 0

    cpdef int flush(self) except -1:
        """Let the queue have all of them: before a reference that is an object, and at the end."""
        cdef int priority
        for priority in range(PRIORITIES if self.open_count else 0):
            self.close(priority)
        return 0

    cdef int close(self, int priority) except -1:
        last = self.open[priority]
        if last is not None:
            self.open[priority] = None
            self.open_count -= 1
            self.queue.waiting.add_stored(priority, last)
        return 0
