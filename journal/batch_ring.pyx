"""The ring of batches that producers fill and a flusher empties.

    producers ──reserve, encode, accept──▶ slot ─ ─ ─ ring of slots ─ ─ ─▶ flusher ──▶ file
                                           head            taken           written, synced

A batch is what one slot holds. Batches are numbered from 0 for ever; a ticket is the number of
the batch that a record went into, so "durable" is one comparison: ticket < synced. The counters
only grow: synced <= written <= taken <= head.

A group never crosses a file: the last batch of a file is on disk before the first of the next is
written. So only the newest file can have a torn tail.

Marks (format.pyx): a batch opens with one that says how much of the file was on disk when the
batch was sealed. An end mark and one of an idle journal stand in a sector of their own, so that one
lost sector cannot take both a mark and a record that no other mark counts. The next batch begins
before them, behind the last record. Marks claim only what is on disk, hence none are written
without datasync.

No lock here: callers hold that of the buffer (buffer.pyx).
"""

from libc.string cimport memset

from journal.files.base cimport io_alloc, io_free
from journal.format cimport (
    LEADER_SIZE, MARK, ORDINAL_MAX, encode_mark, leader_padding, mark_place)
from journal.parking cimport now_ns


cdef class BatchRing:
    """Slots for batches; see GroupBuffer for the arguments."""

    def __cinit__(self, BackEnd back_end, *, uint64_t capacity, uint64_t timeout_ns,
                  bint datasync, bint leaders):
        cdef uint32_t i
        self.back_end = back_end
        self.capacity = (capacity + BUFFER_ALIGNMENT - 1) // BUFFER_ALIGNMENT * BUFFER_ALIGNMENT
        self.timer_off = timeout_ns == 0
        self.leaders = leaders
        self.marks = leaders and datasync
        # Half of the slots are on their way to the disk while the other half is filled.
        self.slot_count = min(max(3, 2 * back_end.queue_depth), 8)
        for i in range(self.slot_count):
            self.slots[i].data = <uint8_t *>io_alloc(self.capacity, BUFFER_ALIGNMENT)
            if self.slots[i].data == NULL:
                raise MemoryError
            # Touch the pages now and not in the middle of an append.
            memset(self.slots[i].data, 0, self.capacity)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(SLOTS_MAX):
            io_free(self.slots[i].data)

    # Filling.

    cdef void begin_file(self, OpenFile *file) noexcept nogil:
        """Batches go to `file` from now on; the slot being filled is empty."""
        self.file = file
        self.begin_slot()

    cdef int reserve(self, uint32_t size, uint8_t **where, bint frees) noexcept nogil:
        """Find room for a record of `size` bytes, and for its leader before it.

        `frees`: the record makes room, so it may have what is kept for a full disk.

        RESERVED: write the record at `where`, and its leader in the nine bytes before when
        leaders are on, then accept(). Otherwise nothing has changed.
        """
        cdef Slot *slot
        cdef uint64_t start, end
        while True:
            if self.error or self.stopping:
                return FAILED
            if not (self.head - self.written < self.slot_count):
                return NEED_ROOM
            if self.file.is_reserved and not frees:
                return NEED_FILE
            slot = &self.slots[self.head % self.slot_count]
            start = slot.used
            if self.leaders:
                if start == 0 and self.marks:
                    start = LEADER_SIZE
                start += leader_padding(slot.offset + start) + LEADER_SIZE
            end = start + size
            if self.file.ordinal == ORDINAL_MAX or self.file.size < self.mark_end(
                    self.file, slot.offset + self.padded(self.file, end)):
                return NEED_FILE
            if end <= self.capacity:
                break
            if not self.next_is_free():
                return NEED_ROOM
            self.seal()
        # What lies between the old end and the record is padding, mark or leader.
        memset(slot.data + slot.used, 0, start - slot.used)
        where[0] = slot.data + start
        if slot.records == 0 and not self.timer_off:
            slot.started_ns = now_ns()
        slot.used = end
        return RESERVED

    cdef uint64_t accept(self, int sync) noexcept nogil:
        """The reserved record is whole: count it; the ticket to wait for."""
        cdef Slot *slot = &self.slots[self.head % self.slot_count]
        slot.records += 1
        self.records += 1
        if self.leaders:
            self.file.ordinal += 1
        if sync == SYNCED or (sync and self.timer_off):
            slot.awaited += 1
            self.wanted = self.head + 1
        elif sync:
            self.sync_due = self.head + 1
        elif self.timer_off:
            self.flush_to = self.head + 1
        return self.head

    cdef bint roll(self, OpenFile *following) noexcept nogil:
        """Go on in `following`; false, and nothing changed, when no slot is free."""
        if not self.next_is_free():
            return False
        self.slots[self.head % self.slot_count].closes_file = True
        self.file = following
        self.seal()
        return True

    cdef uint64_t sync_all(self) noexcept nogil:
        """Ask for a sync of all that is accepted; the ticket to wait for, counted from 1.

        0: everything is on disk already.
        """
        cdef uint64_t end = self.head
        if self.slots[self.head % self.slot_count].records:
            end += 1
        if end > self.wanted:
            self.wanted = end
        return end

    cdef int64_t last_ticket(self) noexcept nogil:
        """The ticket of the last record that was accepted; -1: none yet."""
        return <int64_t>self.head - (0 if self.slots[self.head % self.slot_count].records else 1)

    # Room in a file, with the marks that it may need.

    cdef uint64_t padded(self, const OpenFile *file, uint64_t size) noexcept nogil:
        cdef uint64_t alignment = file.alignment
        return (size + alignment - 1) & ~(alignment - 1)

    cdef uint64_t mark_end(self, OpenFile *file, uint64_t end) noexcept nogil:
        """Where the file would end if records up to `end` and its end mark were all."""
        if not self.marks:
            return end
        return mark_place(end, file.size, file.alignment) + self.padded(file, LEADER_SIZE)

    cdef uint64_t mark_offset(self, OpenFile *file) noexcept nogil:
        """Where a mark goes behind all that the file holds.

        A file that an earlier version filled to its end has room right behind its records only.
        """
        if self.mark_end(file, file.position) > file.size:
            return file.position
        return mark_place(file.position, file.size, file.alignment)

    cdef uint64_t file_room(self, OpenFile *file) noexcept nogil:
        """The largest record that an empty `file` and an empty slot take."""
        cdef uint64_t end = file.size, room
        cdef uint64_t extra = 0
        if self.marks and end > self.padded(file, LEADER_SIZE):
            # The last sector that an end mark fits into is kept free for it.
            end = mark_place(end - self.padded(file, LEADER_SIZE) + 1, file.size, file.alignment)
            end -= mark_place(1, file.size, file.alignment)
        room = end - file.first if end > file.first else 0
        if self.leaders:
            extra = LEADER_SIZE + (LEADER_SIZE if self.marks else 0)
            extra += leader_padding(file.first + extra - LEADER_SIZE)
        room = min(room & ~(<uint64_t>self.back_end.alignment - 1), self.capacity)
        return room - extra if room > extra else 0

    # From one batch to the next.

    cdef void begin_slot(self) noexcept nogil:
        cdef Slot *slot = &self.slots[self.head % self.slot_count]
        slot.file = self.file
        slot.offset = self.file.position
        slot.used = 0
        slot.size = 0
        slot.records = 0
        slot.awaited = 0
        slot.started_ns = 0
        slot.closes_file = False

    cdef bint next_is_free(self) noexcept nogil:
        return self.head + 1 - self.written < self.slot_count

    cdef void seal(self) noexcept nogil:
        """End the batch being filled and begin the next, whose slot is free."""
        cdef Slot *slot = &self.slots[self.head % self.slot_count]
        cdef OpenFile *file = slot.file
        slot.marked_ordinal = file.marked_ordinal
        slot.ordinal_end = file.ordinal
        if slot.used:
            slot.size = self.padded(file, slot.used)
            memset(slot.data + slot.used, 0, slot.size - slot.used)
            if self.marks:
                slot.marked_ordinal = file.synced_ordinal
                encode_mark(slot.data, MARK, file.file_id, file.synced_ordinal)
        file.position = slot.offset + slot.size
        self.head += 1
        self.begin_slot()
