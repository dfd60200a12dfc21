"""Which records are live, in which file, and what pins each file.

The rules are Artemis's (JournalFileImpl, JournalRecord, JournalTransaction):

- An add pins its file (positives + 1), and so does an update, once for consecutive updates of
  one record in one file. A transaction pins every file that holds an operation of it.
- A delete releases them, and its own file remembers on whose behalf (negatives).
- A commit or rollback does the same for the files of its transaction.

The counters of the files are file_pins.pyx's.

Memory: 24 bytes a live record, its updates in the file of the add included, 16 for those in another
file, and 13 to 26 in the map of ids. No lock here: the journal's own lock guards an index. Nothing
here raises; -1 is "out of memory".
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memset

from journal.file_pins cimport LEAVES, STAYS, FilePins
from journal.id_map cimport (
    FIRST_ROOM, id_map_free, id_map_get, id_map_init, id_map_pop, id_map_put, id_map_reserve,
    prefetch)
from journal.place_map cimport (
    PlaceSearch, place_map_expect, place_map_first, place_map_free, place_map_init,
    place_map_next, place_map_put, place_map_remove)

cdef enum:
    NO_PLACE = 0xFFFFFFFF


cdef class RecordIndex(FilePins):
    """Live records, open transactions and the counters of every file of one journal."""

    def __cinit__(self):
        self.record_unused = NO_PLACE
        self.update_unused = -1
        self.tx_unused = -1
        if place_map_init(&self.record_map) < 0 or id_map_init(&self.tx_map) < 0:
            raise MemoryError

    def __dealloc__(self):
        cdef uint32_t i
        self.unwatch()
        for i in range(self.tx_used):
            free(self.transactions[i].operations)
            free(self.transactions[i].pending_files)
        free(self.transactions)
        free(self.records)
        free(self.updates)
        place_map_free(&self.record_map)
        id_map_free(&self.tx_map)

    def __len__(self):
        """Number of live records."""
        return self.record_map.count

    def __contains__(self, record_id):
        """Whether the record is live."""
        return self.contains(record_id)

    # Records outside transactions.

    cdef void prefetch_record(self, int64_t record_id) noexcept nogil:
        """Have the map's line for an id on its way; a use of it comes some records later."""
        place_map_expect(&self.record_map, record_id)

    cdef void expect_entry(self, int64_t record_id) noexcept nogil:
        """The same for what the map says of it; expect() was called some records before."""
        cdef PlaceSearch search
        cdef int64_t place = place_map_first(&self.record_map, record_id, &search)
        if place >= 0:
            prefetch(&self.records[place])

    cdef int64_t place_of(self, int64_t record_id) noexcept nogil:
        cdef PlaceSearch search
        cdef int64_t place = place_map_first(&self.record_map, record_id, &search)
        while place >= 0 and self.records[place].record_id != record_id:
            place = place_map_next(&self.record_map, &search)
        return place

    cdef bint contains(self, int64_t record_id) noexcept nogil:
        return self.place_of(record_id) >= 0

    cdef int add(self, int64_t record_id, int32_t file, uint32_t bytes) noexcept nogil:
        """The record is live in `file`. An id that was live keeps pinning its old file."""
        cdef int64_t known = self.place_of(record_id)
        cdef uint32_t place, room
        cdef RecordEntry *records
        if known >= 0:
            place = <uint32_t>known
        elif self.record_unused != NO_PLACE:
            place = self.record_unused
        else:
            if self.record_used == self.record_room:
                room = self.record_room * 2 if self.record_room else FIRST_ROOM
                records = <RecordEntry *>realloc(self.records, room * sizeof(RecordEntry))
                if records == NULL:
                    return NO_MEMORY
                self.records = records
                self.record_room = room
            place = self.record_used
        if known < 0:
            if place_map_put(&self.record_map, record_id, place) < 0:
                return NO_MEMORY
            if place == self.record_unused:
                self.record_unused = <uint32_t>self.records[place].updates
            else:
                self.record_used += 1
        self.records[place].record_id = record_id
        self.records[place].file = file
        self.records[place].bytes = bytes
        self.records[place].updates = -1
        self.records[place].own_updates = 0
        self.records[place].is_partial = False
        self.files[file].positives += 1
        self.files[file].live_bytes += bytes
        self.files[file].add_count += 1
        return 0

    cdef int entry_add_update(self, RecordEntry *entry, int32_t file, uint32_t bytes,
                              bint replaceable) noexcept nogil:
        cdef UpdateEntry *updates
        cdef int32_t place = entry.updates, room
        if place < 0 and entry.file == file and not replaceable \
                and entry.own_updates < OWN_UPDATES_MAX:
            entry.own_updates += 1
            entry.bytes += bytes
            self.files[file].positives += 1
            self.files[file].live_bytes += bytes
            return 1
        if place >= 0 and self.updates[place].file == file:
            self.updates[place].bytes += bytes
        else:
            if self.update_unused >= 0:
                place = self.update_unused
                self.update_unused = self.updates[place].next
            else:
                if self.update_used == self.update_room:
                    room = self.update_room * 2 if self.update_room else FIRST_ROOM
                    updates = <UpdateEntry *>realloc(self.updates, room * sizeof(UpdateEntry))
                    if updates == NULL:
                        return NO_MEMORY
                    self.updates = updates
                    self.update_room = room
                place = self.update_used
                self.update_used += 1
            self.updates[place].file = file
            self.updates[place].bytes = bytes
            self.updates[place].count = 0
            self.updates[place].next = entry.updates
            entry.updates = place
            if replaceable:
                self.files[file].replaceable_count += 1
        self.updates[place].count += 1
        self.files[file].positives += 1
        self.files[file].live_bytes += bytes
        return 1

    cdef int update(self, int64_t record_id, int32_t file, uint32_t bytes,
                    bint replaceable) noexcept nogil:
        """An update of a live record stands in `file`."""
        cdef int64_t place = self.place_of(record_id)
        if place < 0:
            return 0
        return self.entry_add_update(&self.records[place], file, bytes, replaceable)

    cdef int remove(self, int64_t record_id, int32_t file) noexcept nogil:
        """A delete of the record stands in `file`: release all that it pinned."""
        cdef int64_t place = self.place_of(record_id)
        cdef RecordEntry *entry
        cdef UpdateEntry *update
        cdef int32_t i, following
        cdef uint8_t compaction
        if place < 0:
            return 0
        entry = &self.records[place]
        if self.negate(file, entry.file, 1 + entry.own_updates) < 0:
            return NO_MEMORY
        self.files[entry.file].live_bytes -= entry.bytes
        compaction = self.files[entry.file].compaction
        i = entry.updates
        while i >= 0:
            update = &self.updates[i]
            compaction |= self.files[update.file].compaction
            if self.negate(file, update.file, update.count) < 0:
                return NO_MEMORY
            self.files[update.file].live_bytes -= update.bytes
            following = update.next
            update.next = self.update_unused
            self.update_unused = i
            i = following
        if self.watching and compaction \
                and id_map_put(&self.removed, record_id, <uint32_t>file) < 0:
            return NO_MEMORY
        place_map_remove(&self.record_map, record_id, <uint32_t>place)
        entry.file = NO_FILE
        entry.updates = <int32_t>self.record_unused
        self.record_unused = <uint32_t>place
        return 1

    cdef int add_partial(self, int64_t record_id, int32_t file, uint32_t bytes) noexcept nogil:
        """An update of an unknown record stands in `file`, which it pins as an add would."""
        cdef int result = self.add(record_id, file, bytes)
        if result == 0:
            self.records[self.place_of(record_id)].is_partial = True
        return result

    cdef void forget_partial(self, int64_t record_id) noexcept nogil:
        """As if add_partial() had not been called; nothing happens once the record was removed."""
        cdef int64_t place = self.place_of(record_id)
        cdef RecordEntry *entry
        cdef UpdateEntry *update
        cdef int32_t i, following
        if place < 0 or not self.records[place].is_partial:
            return
        place_map_remove(&self.record_map, record_id, <uint32_t>place)
        entry = &self.records[place]
        self.files[entry.file].positives -= 1 + entry.own_updates
        self.files[entry.file].add_count -= 1
        self.files[entry.file].live_bytes -= entry.bytes
        i = entry.updates
        while i >= 0:
            update = &self.updates[i]
            self.files[update.file].positives -= update.count
            self.files[update.file].live_bytes -= update.bytes
            following = update.next
            update.next = self.update_unused
            self.update_unused = i
            i = following
        entry.file = NO_FILE
        entry.updates = <int32_t>self.record_unused
        self.record_unused = <uint32_t>place

    # Transactions.

    cdef Transaction *tx_find(self, int64_t tx_id) noexcept nogil:
        cdef int64_t place = id_map_get(&self.tx_map, tx_id)
        return &self.transactions[place] if place >= 0 else NULL

    cdef Transaction *tx_open(self, int64_t tx_id) noexcept nogil:
        """The open transaction of that id, a new one where there is none."""
        cdef Transaction *tx = self.tx_find(tx_id)
        cdef Transaction *transactions
        cdef uint32_t place, room
        if tx != NULL:
            return tx
        if self.tx_unused >= 0:
            place = <uint32_t>self.tx_unused
        else:
            place = self.tx_used
            if place == self.tx_room:
                room = self.tx_room * 2 if self.tx_room else FIRST_ROOM
                transactions = <Transaction *>realloc(self.transactions,
                                                      room * sizeof(Transaction))
                if transactions == NULL:
                    return NULL
                memset(transactions + self.tx_room, 0,
                       (room - self.tx_room) * sizeof(Transaction))
                self.transactions = transactions
                self.tx_room = room
        if id_map_put(&self.tx_map, tx_id, place) < 0:
            return NULL
        tx = &self.transactions[place]
        if place == self.tx_used:
            self.tx_used += 1
        else:
            self.tx_unused = tx.next_unused
        tx.tx_id = tx_id
        tx.last_file = -1
        tx.counter = 0
        tx.prepared = False
        tx.operation_count = 0
        tx.pending_count = 0
        return tx

    cdef void tx_close(self, Transaction *tx) noexcept nogil:
        """Free the place; small arrays stay with it for the next transaction."""
        id_map_pop(&self.tx_map, tx.tx_id)
        tx.next_unused = self.tx_unused
        self.tx_unused = <int32_t>(tx - self.transactions)
        if tx.operation_room > 1024:
            free(tx.operations)
            tx.operations = NULL
            tx.operation_room = 0

    cdef int tx_touch(self, Transaction *tx, int32_t file) noexcept nogil:
        """The transaction has a record in `file`, which it pins once."""
        cdef int32_t i, room
        cdef int32_t *pending
        if tx.last_file != file:
            tx.last_file = file
            tx.counter = 0
        for i in range(tx.pending_count - 1, -1, -1):
            if tx.pending_files[i] == file:
                return 0
        if tx.pending_count == tx.pending_room:
            room = tx.pending_room * 2 if tx.pending_room else 4
            pending = <int32_t *>realloc(tx.pending_files, room * sizeof(int32_t))
            if pending == NULL:
                return NO_MEMORY
            tx.pending_files = pending
            tx.pending_room = room
        tx.pending_files[tx.pending_count] = file
        tx.pending_count += 1
        self.files[file].positives += 1
        return 0

    cdef bint tx_is_open(self, int64_t tx_id) noexcept nogil:
        return id_map_get(&self.tx_map, tx_id) >= 0

    cdef int tx_operation(self, int64_t tx_id, uint8_t kind, int64_t record_id, int32_t file,
                          uint32_t bytes) noexcept nogil:
        """An operation of the transaction stands in `file`; nothing counts until its commit."""
        cdef Transaction *tx = self.tx_open(tx_id)
        cdef TxOperation *operations
        cdef int64_t room
        if tx == NULL:
            return NO_MEMORY
        if tx.operation_count == tx.operation_room:
            room = tx.operation_room * 2 if tx.operation_room else 8
            operations = <TxOperation *>realloc(tx.operations, room * sizeof(TxOperation))
            if operations == NULL:
                return NO_MEMORY
            tx.operations = operations
            tx.operation_room = room
        if self.tx_touch(tx, file) < 0:
            return NO_MEMORY
        tx.operations[tx.operation_count].record_id = record_id
        tx.operations[tx.operation_count].file = file
        tx.operations[tx.operation_count].bytes = bytes
        tx.operations[tx.operation_count].kind = kind
        tx.operation_count += 1
        tx.counter += 1
        return 0

    cdef int tx_count_in(self, int64_t tx_id, int32_t file) noexcept nogil:
        """How many operations a commit or prepare in `file` has to claim for that file."""
        cdef Transaction *tx = self.tx_find(tx_id)
        if tx == NULL:
            return 0
        if tx.last_file != file:
            tx.last_file = file
            tx.counter = 0
        return tx.counter

    cdef int tx_prepare(self, int64_t tx_id, int32_t file) noexcept nogil:
        """A prepare stands in `file`, which it pins; the count that it has to claim."""
        cdef Transaction *tx = self.tx_open(tx_id)
        if tx == NULL or self.tx_touch(tx, file) < 0:
            return NO_MEMORY
        tx.prepared = True
        return tx.counter

    cdef int apply_operation(self, const TxOperation *operation) noexcept nogil:
        """Make one operation of a committed transaction count."""
        cdef int64_t place
        if operation.kind == TX_DELETE:
            # Remembered by the file of the delete record: that one must outlive the add. The
            # commit's file in turn outlives it, by the pin of the transaction.
            return self.remove(operation.record_id, operation.file)
        place = self.place_of(operation.record_id)
        if place < 0:
            return self.add(operation.record_id, operation.file, operation.bytes)
        return self.entry_add_update(&self.records[place], operation.file, operation.bytes,
                                     operation.kind == TX_REPLACEABLE)

    cdef int tx_commit(self, int64_t tx_id, int32_t file) noexcept nogil:
        """A commit stands in `file`: adds and updates count, then deletes, then the pins go."""
        cdef Transaction *tx = self.tx_find(tx_id)
        cdef int64_t i
        cdef int32_t p
        if tx == NULL:
            return 0
        for i in range(tx.operation_count):
            if tx.operations[i].kind != TX_DELETE:
                if self.apply_operation(&tx.operations[i]) < 0:
                    return NO_MEMORY
        for i in range(tx.operation_count):
            if tx.operations[i].kind == TX_DELETE:
                if self.apply_operation(&tx.operations[i]) < 0:
                    return NO_MEMORY
        for p in range(tx.pending_count):
            if self.negate(file, tx.pending_files[p], 1) < 0:
                return NO_MEMORY
        if self.note_end(tx, file, True) < 0:
            return NO_MEMORY
        self.tx_close(tx)
        return 1

    cdef int tx_rollback(self, int64_t tx_id, int32_t file) noexcept nogil:
        """A rollback stands in `file`: only the pins of the transaction's files go."""
        cdef Transaction *tx = self.tx_find(tx_id)
        cdef int32_t p
        if tx == NULL:
            return 0
        for p in range(tx.pending_count):
            if self.negate(file, tx.pending_files[p], 1) < 0:
                return NO_MEMORY
        if self.note_end(tx, file, False) < 0:
            return NO_MEMORY
        self.tx_close(tx)
        return 1

    cdef int note_end(self, const Transaction *tx, int32_t file, bint committed) noexcept nogil:
        """Remember, for a compaction in progress, where a transaction that it copies ended."""
        cdef int32_t p
        if not self.watching:
            return 0
        for p in range(tx.pending_count):
            if self.files[tx.pending_files[p]].compaction == LEAVES:
                return id_map_put(&self.ended, tx.tx_id, <uint32_t>file * 2 + committed)
        return 0

    # Compaction.

    cdef int watch(self) noexcept nogil:
        """From now on remember what ends of that which lies in files that leave or arrive.

        Room is made at once for all there is, so that no delete later waits for it.
        """
        self.unwatch()
        if id_map_init(&self.removed) < 0 or id_map_init(&self.ended) < 0 \
                or id_map_reserve(&self.removed, self.record_map.count) < 0 \
                or id_map_reserve(&self.ended, self.tx_map.count) < 0:
            self.unwatch()
            return NO_MEMORY
        self.watching = True
        return 0

    cdef void unwatch(self) noexcept nogil:
        cdef int32_t file
        self.watching = False
        id_map_free(&self.removed)
        id_map_free(&self.ended)
        for file in range(self.file_room):
            self.files[file].compaction = STAYS

    cdef int tx_forget(self, int64_t tx_id) noexcept nogil:
        """The transaction turned out damaged: its files are as if it never was."""
        cdef Transaction *tx = self.tx_find(tx_id)
        cdef int32_t p
        if tx == NULL:
            return 0
        for p in range(tx.pending_count):
            self.files[tx.pending_files[p]].positives -= 1
        self.tx_close(tx)
        return 1
