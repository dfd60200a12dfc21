"""Where a compaction has put each record: noted while it copies, applied to the index at the end.

- While the compaction runs the index notes deletes and ends of transactions that concern old or
  new files, with the file they stand in (RecordIndex.watch). A record that was copied and is not
  live any more is dead in its new file, and released there by the file of its delete; the same
  goes for the pins of a transaction.
- The lock is held for 64 records at a time, and released now and then: a mutex is not fair.
- Operations of open transactions move first: so the note of a delete names the file that its
  operation has moved to when the deleted record's own copies are counted.

Memory: 24 bytes a copied record.
"""

from libc.stdlib cimport free, realloc
from posix.unistd cimport usleep

from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.format cimport DELETE_RECORD_TX, PREPARE_RECORD
from journal.id_map cimport NO_MEMORY, id_map_get, id_map_put
from journal.file_pins cimport LEAVES, STAYS, FileCounts
from journal.index cimport NO_FILE

cdef enum:
    CHUNK = 64                  # records under one hold of the lock
    LOOKUPS = 1024                # the same, where a record is one look-up
    # Holds of the lock between two rests: a quarter of a millisecond or so, which is what an
    # append may wait then. A pause takes twice its time, since the kernel's timers have slack.
    PAUSE_AFTER = 64
    PAUSE_US = 50
    LEFT_BEHIND = -2


cdef class Relocations:
    """What one compaction has copied, and where to.

    Args:
        index, buffer: the journal's; the buffer's lock guards the index.
    """

    def __cinit__(self, RecordIndex index, GroupBuffer buffer):
        self.index = index
        self.buffer = buffer

    def __dealloc__(self):
        free(self.copied)
        free(self.operations)

    cdef Copied *new_copied(self) noexcept nogil:
        """A place for one more copied record; NULL when memory is out."""
        cdef Copied *copied
        cdef size_t room
        if self.copied_count == self.copied_room:
            room = self.copied_room * 2 if self.copied_room else 1024
            copied = <Copied *>realloc(self.copied, room * sizeof(Copied))
            if copied == NULL:
                return NULL
            self.copied = copied
            self.copied_room = room
        self.copied_count += 1
        return &self.copied[self.copied_count - 1]

    cdef CopiedOperation *new_operation(self) noexcept nogil:
        """A place for one more operation or prepare; NULL when memory is out."""
        cdef CopiedOperation *copied
        cdef size_t room
        if self.operation_count == self.operation_room:
            room = self.operation_room * 2 if self.operation_room else CHUNK
            copied = <CopiedOperation *>realloc(self.operations, room * sizeof(CopiedOperation))
            if copied == NULL:
                return NULL
            self.operations = copied
            self.operation_room = room
        self.operation_count += 1
        return &self.operations[self.operation_count - 1]

    cdef int apply(self) noexcept nogil:
        """0, NO_MEMORY, or LEFT_BEHIND when something in an old file was not copied."""
        cdef size_t i = 0, j, end
        cdef uint32_t place = 0, place_end, tx = 0, tx_end
        cdef uint32_t holds = 0
        cdef int result = 0
        cdef Copied *copied
        while i < self.operation_count and result >= 0:
            end = min(i + CHUNK, self.operation_count)
            pthread_mutex_lock(&self.buffer.lock)
            while i < end and result >= 0:
                result = self.move_operation(&self.operations[i])
                i += 1
            pthread_mutex_unlock(&self.buffer.lock)
            pause(&holds)
        i = 0
        while i < self.copied_count and result >= 0:
            end = min(i + CHUNK, self.copied_count)
            pthread_mutex_lock(&self.buffer.lock)
            for j in range(i, end):
                self.index.prefetch_record(self.copied[j].record_id)
            while i < end and result >= 0:
                copied = &self.copied[i]
                result = self.move_record(copied.record_id, copied.file, copied.bytes,
                                          copied.replaceable)
                i += 1
            pthread_mutex_unlock(&self.buffer.lock)
            pause(&holds)
        while tx < self.index.tx_used and result >= 0:
            pthread_mutex_lock(&self.buffer.lock)
            tx_end = min(tx + CHUNK, self.index.tx_used)
            while tx < tx_end and result >= 0:
                if self.index.tx_find(self.index.transactions[tx].tx_id) \
                        == &self.index.transactions[tx]:
                    result = self.settle_transaction(&self.index.transactions[tx])
                tx += 1
            pthread_mutex_unlock(&self.buffer.lock)
            pause(&holds)
        # Nothing may name an old file now: its slot is about to be another's.
        while place < self.index.record_used and result >= 0:
            pthread_mutex_lock(&self.buffer.lock)
            place_end = min(place + LOOKUPS, self.index.record_used)
            while place < place_end and result >= 0:
                if self.is_left_behind(place):
                    result = LEFT_BEHIND
                place += 1
            pthread_mutex_unlock(&self.buffer.lock)
            pause(&holds)
        return result

    cdef bint is_left_behind(self, uint32_t place) noexcept nogil:
        cdef RecordEntry *entry = &self.index.records[place]
        cdef int32_t i
        if entry.file == NO_FILE:
            return False
        if self.index.files[entry.file].compaction == LEAVES:
            return True
        i = entry.updates
        while i >= 0:
            if self.index.files[self.index.updates[i].file].compaction == LEAVES:
                return True
            i = self.index.updates[i].next
        return False

    cdef int move_operation(self, const CopiedOperation *copied) noexcept nogil:
        cdef int64_t ended = id_map_get(&self.index.ended, copied.tx_id)
        cdef int64_t deleted
        cdef int32_t last_file
        cdef FileCounts *counts = &self.index.files[copied.file]
        cdef Transaction *tx
        if ended >= 0:
            # Its end stands in a younger file, which releases the new file as it did the old.
            counts.positives += 1
            if self.index.negate(<int32_t>(ended >> 1), copied.file, 1) < 0:
                return NO_MEMORY
            if not ended & 1 or copied.type == PREPARE_RECORD:
                return 0
            if copied.type != DELETE_RECORD_TX:
                return self.move_record(copied.record_id, copied.file, copied.bytes,
                                        copied.replaceable)
            deleted = id_map_get(&self.index.removed, copied.record_id)
            if deleted >= 0 and self.index.files[deleted].compaction == LEAVES:
                return id_map_put(&self.index.removed, copied.record_id,
                                  <uint32_t>copied.file)
            return 0
        tx = self.index.tx_find(copied.tx_id)
        if tx == NULL:
            return LEFT_BEHIND
        last_file = tx.last_file
        if copied.number >= 0:
            if copied.number >= tx.operation_count \
                    or tx.operations[copied.number].record_id != copied.record_id:
                return LEFT_BEHIND
            tx.operations[copied.number].file = copied.file
            tx.operations[copied.number].bytes = copied.bytes
        # Pin the new file, but let the counter go on where appends are.
        if last_file != copied.file:
            tx.last_file = copied.file
        if self.index.tx_touch(tx, copied.file) < 0:
            return NO_MEMORY
        tx.last_file = last_file
        return 0

    cdef int settle_transaction(self, Transaction *tx) noexcept nogil:
        """Let an open transaction forget the old files."""
        cdef int32_t i = 0
        cdef int64_t j
        while i < tx.pending_count:
            if self.index.files[tx.pending_files[i]].compaction == LEAVES:
                tx.pending_count -= 1
                tx.pending_files[i] = tx.pending_files[tx.pending_count]
            else:
                i += 1
        if tx.last_file >= 0 and self.index.files[tx.last_file].compaction == LEAVES:
            tx.last_file = -1
            tx.counter = 0
        for j in range(tx.operation_count):
            if self.index.files[tx.operations[j].file].compaction == LEAVES:
                return LEFT_BEHIND
            if self.index.files[tx.operations[j].file].compaction == STAYS:
                break           # Operations stand in order of their files.
        return 0

    cdef int move_record(self, int64_t record_id, int32_t file, uint32_t bytes,
                         bint replaceable) noexcept nogil:
        """One copy of an add or update lies in `file`: it pins it, dead or alive."""
        cdef FileCounts *counts = &self.index.files[file]
        cdef int64_t place = self.index.place_of(record_id)
        cdef int64_t deleted
        cdef RecordEntry *entry
        counts.positives += 1
        if place < 0:
            deleted = id_map_get(&self.index.removed, record_id)
            return self.index.negate(<int32_t>deleted, file, 1) if deleted >= 0 else 0
        counts.live_bytes += bytes
        entry = &self.index.records[place]
        self.strip_updates(entry)
        if self.index.files[entry.file].compaction != LEAVES:
            return self.attach_update(entry, file, bytes, replaceable)
        entry.file = file
        entry.bytes = bytes
        # They come one by one as well.
        entry.own_updates = 0
        counts.add_count += 1
        return 0

    cdef void strip_updates(self, RecordEntry *entry) noexcept nogil:
        """Forget the updates in old files; their copies come one by one."""
        cdef int32_t *link = &entry.updates
        cdef int32_t i
        while link[0] >= 0:
            i = link[0]
            if self.index.files[self.index.updates[i].file].compaction == LEAVES:
                link[0] = self.index.updates[i].next
                self.index.updates[i].next = self.index.update_unused
                self.index.update_unused = i
            else:
                link = &self.index.updates[i].next

    cdef int attach_update(self, RecordEntry *entry, int32_t file, uint32_t bytes,
                           bint replaceable) noexcept nogil:
        """Put an update in a new file behind those in younger ones."""
        cdef int32_t newest = entry.updates, last = -1, i = entry.updates
        cdef FileCounts *counts = &self.index.files[file]
        cdef int64_t positives = counts.positives, live_bytes = counts.live_bytes
        cdef UpdateEntry *oldest
        cdef int result
        while i >= 0:
            last = i
            i = self.index.updates[i].next
        if last >= 0 and self.index.updates[last].file == file:
            oldest = &self.index.updates[last]
            oldest.count += 1
            oldest.bytes += bytes
            return 0
        entry.updates = -1
        result = self.index.entry_add_update(entry, file, bytes, replaceable)
        # The caller has counted it.
        counts.positives = positives
        counts.live_bytes = live_bytes
        if result >= 0 and last >= 0:
            self.index.updates[last].next = entry.updates
            entry.updates = newest
        elif result < 0:
            entry.updates = newest
        return result


cdef void pause(uint32_t *holds) noexcept nogil:
    """Between two holds of the lock: let those who wait for it have it."""
    holds[0] += 1
    if holds[0] % PAUSE_AFTER == 0:
        usleep(PAUSE_US)
