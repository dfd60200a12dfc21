"""What a compaction has read and cannot copy yet.

Operations and prepares of transactions wait for the end of their transaction, and of the updates
of a replaceable type only the last for a record counts. Operations borrow their bodies from what is
in memory of the file, and get copies of their own when that makes room for more.

Memory: bodies of transactions that have not ended, and of replaceable updates.
"""

from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcpy, memset

from journal.format cimport PREPARE_RECORD
from journal.id_map cimport id_map_free, id_map_get, id_map_init, id_map_pop, id_map_put

__all__ = ["PendingRecords"]

cdef enum:
    FIRST_ROOM = 64


cdef class PendingRecords:
    """The transactions without an end, and the last replaceable updates, of one compaction.

    Threads: one.
    """

    def __cinit__(self):
        self.unused = -1
        self.borrowers = -1
        if id_map_init(&self.map) < 0:
            raise MemoryError

    def __dealloc__(self):
        cdef int32_t i
        cdef size_t j
        for i in range(self.count):
            for j in range(self.transactions[i].count):
                if self.transactions[i].records[j].owns_body:
                    free(self.transactions[i].records[j].body)
            free(self.transactions[i].records)
        for j in range(self.update_count):
            if self.updates[j].owns_body:
                free(self.updates[j].body)
        for i in range(256):
            if self.update_maps[i].entries != NULL:
                id_map_free(&self.update_maps[i])
        id_map_free(&self.map)
        free(self.transactions)
        free(self.updates)

    cdef int hold(self, const Record *record, const uint8_t *body,
                  int32_t reading) except -1 nogil:
        """Keep an operation or prepare until the end of its transaction is known."""
        cdef PendingTransaction *tx = self.find(record.tx_id, True)
        cdef PendingRecord *records
        cdef size_t room
        if tx.last_file != reading:
            tx.last_file = reading
            tx.counter = 0
        if record.type == PREPARE_RECORD:
            if record.records_in_file != tx.counter:
                tx.is_invalid = True
        else:
            tx.counter += 1
        if tx.count == tx.room:
            room = tx.room * 2 if tx.room else 8
            records = <PendingRecord *>realloc(tx.records, room * sizeof(PendingRecord))
            if records == NULL:
                no_memory("no memory for a transaction")
            tx.records = records
            tx.room = room
        borrow(&tx.records[tx.count], record, body)
        tx.count += 1
        if not tx.borrows:
            tx.borrows = True
            tx.next_borrower = self.borrowers
            self.borrowers = <int32_t>(tx - self.transactions)
        return 0

    cdef PendingTransaction *find(self, int64_t tx_id, bint make) except? NULL nogil:
        """The transaction with that id; NULL if it is not held and not to be made."""
        cdef int64_t place = id_map_get(&self.map, tx_id)
        cdef PendingTransaction *tx
        cdef int32_t room
        if place >= 0:
            return &self.transactions[place]
        if not make:
            return NULL
        if self.unused >= 0:
            place = self.unused
        else:
            if self.count == self.room:
                room = self.room * 2 if self.room else FIRST_ROOM
                tx = <PendingTransaction *>realloc(
                    self.transactions, room * sizeof(PendingTransaction))
                if tx == NULL:
                    no_memory("no memory for a transaction")
                memset(tx + self.room, 0,
                       (room - self.room) * sizeof(PendingTransaction))
                self.transactions = tx
                self.room = room
            place = self.count
        if id_map_put(&self.map, tx_id, <uint32_t>place) < 0:
            no_memory("no memory for a transaction")
        tx = &self.transactions[place]
        if place == self.count:
            self.count += 1
        else:
            self.unused = tx.next_unused
        tx.tx_id = tx_id
        tx.sequence = self.sequence
        self.sequence += 1
        tx.last_file = -1
        tx.counter = 0
        tx.is_used = True
        tx.is_invalid = False
        return tx

    cdef void drop(self, PendingTransaction *tx) noexcept nogil:
        """Forget a transaction and what is held of it."""
        cdef size_t i
        id_map_pop(&self.map, tx.tx_id)
        for i in range(tx.count):
            if tx.records[i].owns_body:
                free(tx.records[i].body)
        tx.count = 0
        tx.owned = 0
        tx.is_used = False
        tx.next_unused = self.unused
        self.unused = <int32_t>(tx - self.transactions)

    cdef void order_by_beginning(self) noexcept nogil:
        """Put the transactions in the order in which they began; none may be looked up after."""
        qsort(self.transactions, self.count, sizeof(PendingTransaction), &by_beginning)

    cdef int hold_update(self, const Record *record, const uint8_t *body) except -1 nogil:
        """Keep the update, in place of an earlier one of its type for its record."""
        cdef IdMap *map = &self.update_maps[record.user_type]
        cdef PendingRecord *updates
        cdef int64_t place
        cdef size_t room
        if map.entries == NULL and id_map_init(map) < 0:
            no_memory("no memory for an update")
        place = id_map_get(map, record.record_id)
        if place >= 0:
            if self.updates[place].owns_body:
                free(self.updates[place].body)
        else:
            if self.update_count == self.update_room:
                room = self.update_room * 2 if self.update_room else FIRST_ROOM
                updates = <PendingRecord *>realloc(self.updates, room * sizeof(PendingRecord))
                if updates == NULL:
                    no_memory("no memory for an update")
                self.updates = updates
                self.update_room = room
            place = <int64_t>self.update_count
            if id_map_put(map, record.record_id, <uint32_t>place) < 0:
                no_memory("no memory for an update")
            self.update_count += 1
        borrow(&self.updates[place], record, body)
        if not own_body(&self.updates[place]):
            no_memory("no memory for an update")
        return 0

    cdef int own_bodies(self) except -1 nogil:
        """What was read makes room for more: copy what is still needed of it."""
        cdef PendingTransaction *tx
        while self.borrowers >= 0:
            tx = &self.transactions[self.borrowers]
            # It may have ended meanwhile, and another have begun in its place.
            while tx.owned < tx.count:
                if not own_body(&tx.records[tx.owned]):
                    no_memory("no memory for a transaction")
                tx.owned += 1
            tx.borrows = False
            self.borrowers = tx.next_borrower
        return 0


# --- leaves ------------------------------------------------------------------------------------

cdef int by_beginning(const void *first, const void *second) noexcept nogil:
    """The order of two held transactions."""
    cdef uint64_t a = (<const PendingTransaction *>first).sequence
    cdef uint64_t b = (<const PendingTransaction *>second).sequence
    return (a > b) - (a < b)


cdef void borrow(PendingRecord *target, const Record *record, const uint8_t *body) noexcept nogil:
    """The record with its body where it stands in memory."""
    target.record_id = record.record_id
    target.body = <uint8_t *>body
    target.body_size = record.body_size
    target.type = record.type
    target.user_type = record.user_type
    target.compact_count = record.compact_count
    target.owns_body = False


cdef bint own_body(PendingRecord *record) noexcept nogil:
    """Copy a borrowed body; false when memory is out."""
    cdef uint8_t *body
    if record.owns_body:
        return True
    body = <uint8_t *>malloc(record.body_size if record.body_size else 1)
    if body == NULL:
        return False
    memcpy(body, record.body, record.body_size)
    record.body = body
    record.owns_body = True
    return True


cdef int no_memory(str what) except -1 with gil:
    raise MemoryError(what)
