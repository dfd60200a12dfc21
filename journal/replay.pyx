"""What the records of a journal's files, applied in log order, leave live or open.

The order and rules are Artemis's (JournalImpl.load). Adds and updates come out in log order,
those of a transaction at its commit; deletes are applied by id at the end, so an id is never
used twice. A commit or prepare claims how many operations of its transaction stand in its own
file; with another count the transaction is dropped, as damaged.

Where Artemis gives up with an exception (a prepare that does not match, committed in a later
file) the transaction is dropped and reported. A transaction that lost a record of a file with
checksums is dropped whole. So is every one that is open at the end of a file in which unidentified
records vanished, since nothing counts its operations there. Known limit, with
damage="quarantine" only: a transaction whose every record in such a file vanished looks whole.

Memory: 40 bytes a live add or update, and the index's share; no Python object a record.
"""

cimport cython
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from journal.format cimport (
    ADD_RECORD, ADD_RECORD_TX, COMMIT_RECORD, DELETE_RECORD, DELETE_RECORD_TX, EVENT_RECORD,
    PREPARE_RECORD, ROLLBACK_RECORD, SCAN_RECORD, UPDATE_RECORD)
from journal.id_map cimport (
    NO_MEMORY, id_map_expect, id_map_free, id_map_get, id_map_init, id_map_pop, id_map_put)
from journal.index cimport TX_ADD, TX_DELETE, TX_REPLACEABLE, TX_UPDATE
from journal.scan cimport DAMAGED, LIVE, Item

__all__ = ["Replay"]

cdef enum:
    RECORD_CHARGE = 23          # bytes beside the body that an add or update is charged
    TX_RECORD_CHARGE = 31
    PREFETCH_AHEAD = 16           # records: some hundred nanoseconds, more than memory takes
    KEPT_OPERATIONS = 64        # room a closed transaction leaves to the next one


cdef int push_locator(Locators *list, const Locator *locator) noexcept nogil:
    cdef size_t room
    cdef Locator *first
    if list.count == list.room:
        room = list.room * 2 if list.room else 8
        first = <Locator *>realloc(list.first, room * sizeof(Locator))
        if first == NULL:
            return NO_MEMORY
        list.first = first
        list.room = room
    list.first[list.count] = locator[0]
    list.count += 1
    return 0


cdef inline void locate(Locator *locator, const Record *record, int32_t file) noexcept nogil:
    locator.record_id = record.record_id
    locator.body_offset = record.body_offset
    locator.body_size = record.body_size
    locator.file = file
    locator.head_size = <uint32_t>(record.body_offset - record.offset)
    locator.type = record.type
    locator.user_type = record.user_type
    locator.compact_count = record.compact_count
    locator.checksum = <uint8_t>record.checksum


@cython.final
cdef class Replay:
    """Applies files, one after the other; then holds what is live, and what is open.

    Args:
        index: an empty RecordIndex, filled here.
        replaceable: user types whose updates replace one another.
        prune_count: deletes after which dead locators are dropped.

    Threads: one at a time.
    """

    def __init__(self, RecordIndex index not None, replaceable, int64_t prune_count):
        self.index = index
        self.prune_count = prune_count
        self.without_add = []
        self.dropped = []
        self.max_id = -1
        self.holder_unused = -1
        for user_type in replaceable:
            self.replaceable[<uint8_t>user_type] = True

    def __cinit__(self, *args):
        if id_map_init(&self.deleted) < 0 or id_map_init(&self.open_txs) < 0 \
                or id_map_init(&self.tainted) < 0:
            raise MemoryError

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.holder_count):
            free(self.holders[i].operations.first)
        free(self.holders)
        free(self.live.first)
        id_map_free(&self.deleted)
        id_map_free(&self.open_txs)
        id_map_free(&self.tainted)

    # --- one file's records, in order ----------------------------------------------------------

    cdef int apply(self, FileScan scan, int32_t file, int32_t slot) noexcept nogil:
        """Apply one validated file: number `file` of the load, `slot` of the index; 0 or NO_MEMORY.

        `file_has_data` says then whether it may not be used again; the caller sets it before, from
        what the scan saw.
        """
        cdef size_t i
        cdef Item *item
        for i in range(scan.count):
            # Ids in an order of their own miss the cache with every look into the index.
            if i + PREFETCH_AHEAD < scan.count:
                self.index.prefetch_record(scan.items[i + PREFETCH_AHEAD].record.record_id)
                item = &scan.items[i + PREFETCH_AHEAD // 2]
                if item.record.type == UPDATE_RECORD or item.record.type == DELETE_RECORD:
                    self.index.expect_entry(item.record.record_id)
            item = &scan.items[i]
            if item.what == SCAN_RECORD and item.verdict == LIVE:
                if self.apply_record(&item.record, file, slot) < 0:
                    return NO_MEMORY
            elif item.verdict == DAMAGED and item.record.tx_id and is_tx_record(&item.record):
                if id_map_put(&self.tainted, item.record.tx_id, 0) < 0:
                    return NO_MEMORY
        # What ended within this file was counted. What is still open may have lost an operation.
        return self.taint_open() if scan.has_lost else 0

    cdef int apply_record(self, const Record *record, int32_t file, int32_t slot) noexcept nogil:
        cdef Locator locator
        cdef int done = 0
        if record.type == EVENT_RECORD:
            return 0
        if record.type == COMMIT_RECORD:
            return self.apply_commit(record, slot)
        if record.type == ROLLBACK_RECORD:
            return self.apply_rollback(record, slot)
        self.file_has_data = True
        if record.type == PREPARE_RECORD:
            return self.apply_prepare(record, file, slot)
        if record.type == DELETE_RECORD:
            if self.index.remove(record.record_id, slot) < 0:
                return NO_MEMORY
            return self.emit_delete(record.record_id)
        if record.type != DELETE_RECORD_TX and record.record_id > self.max_id:
            self.max_id = record.record_id
        if record.type == ADD_RECORD:
            done = self.index.add(record.record_id, slot, record.body_size + RECORD_CHARGE)
        elif record.type == UPDATE_RECORD:
            done = self.index.update(record.record_id, slot, record.body_size + RECORD_CHARGE,
                                     self.replaceable[record.user_type])
            if done == 0:
                done = self.hold_update(record, slot)
        else:
            return self.apply_operation(record, file, slot)
        if done < 0:
            return NO_MEMORY
        locate(&locator, record, file)
        return self.emit(&locator)

    cdef int hold_update(self, const Record *record, int32_t slot) noexcept with gil:
        """An update whose add went with its file, deleted since: the delete must outlive it.

        Else the file with the delete would be freed first, and the update loaded as live again.
        So it pins its file until the delete releases it; without one it is forgotten at the end.
        """
        try:
            self.without_add.append(record.record_id)
        except MemoryError:
            return NO_MEMORY
        return self.index.add_partial(record.record_id, slot, record.body_size + RECORD_CHARGE)

    cdef int apply_operation(self, const Record *record, int32_t file, int32_t slot) noexcept nogil:
        cdef Holder *holder = self.open_holder(record.tx_id)
        cdef Locator locator
        cdef uint8_t kind
        if holder == NULL:
            return NO_MEMORY
        if record.type == ADD_RECORD_TX:
            kind = TX_ADD
        elif record.type == DELETE_RECORD_TX:
            kind = TX_DELETE
        else:
            kind = TX_REPLACEABLE if self.replaceable[record.user_type] else TX_UPDATE
        if self.index.tx_operation(record.tx_id, kind, record.record_id, slot,
                                   record.body_size + TX_RECORD_CHARGE) < 0:
            return NO_MEMORY
        locate(&locator, record, file)
        return push_locator(&holder.operations, &locator)

    cdef int apply_prepare(self, const Record *record, int32_t file, int32_t slot) noexcept nogil:
        cdef Holder *holder = self.open_holder(record.tx_id)
        if holder == NULL:
            return NO_MEMORY
        holder.is_prepared = True
        locate(&holder.extra, record, file)
        if self.index.tx_count_in(record.tx_id, slot) != record.records_in_file \
                or id_map_get(&self.tainted, record.tx_id) >= 0:
            holder.is_invalid = True
            self.note_dropped(record, DROPPED_PREPARE)
            return 0
        return 0 if self.index.tx_prepare(record.tx_id, slot) >= 0 else NO_MEMORY

    cdef int apply_commit(self, const Record *record, int32_t slot) noexcept nogil:
        cdef Holder *holder = self.holder(record.tx_id)
        cdef Locators *operations
        cdef size_t i
        cdef bint is_tainted = id_map_pop(&self.tainted, record.tx_id) >= 0
        if holder == NULL:
            # Its body was reclaimed, or is what the damage took.
            if is_tainted:
                self.note_dropped(record, DROPPED_TAINTED)
            return 0
        self.file_has_data = True
        if is_tainted or holder.is_invalid \
                or self.index.tx_count_in(record.tx_id, slot) != record.records_in_file:
            self.note_dropped(record, DROPPED_TAINTED if is_tainted else
                              DROPPED_INVALID if holder.is_invalid else DROPPED_COUNT)
            self.index.tx_forget(record.tx_id)
            self.close_holder(holder)
            return 0
        operations = &holder.operations
        for i in range(operations.count):
            if operations.first[i].type != DELETE_RECORD_TX \
                    and self.emit(&operations.first[i]) < 0:
                return NO_MEMORY
        for i in range(operations.count):
            if operations.first[i].type == DELETE_RECORD_TX \
                    and self.emit_delete(operations.first[i].record_id) < 0:
                return NO_MEMORY
        self.close_holder(holder)
        return 0 if self.index.tx_commit(record.tx_id, slot) >= 0 else NO_MEMORY

    cdef int apply_rollback(self, const Record *record, int32_t slot) noexcept nogil:
        cdef Holder *holder = self.holder(record.tx_id)
        id_map_pop(&self.tainted, record.tx_id)
        if holder == NULL:
            return 0
        self.file_has_data = True
        self.close_holder(holder)
        return 0 if self.index.tx_rollback(record.tx_id, slot) >= 0 else NO_MEMORY

    cdef int note_dropped(self, const Record *record, int what) except -1 with gil:
        self.dropped.append((record.offset, record.size, record.tx_id, what))
        return 0

    def finish(self):
        """All files were applied: forget updates that no delete came for, drop what is deleted."""
        for record_id in self.without_add:
            self.index.forget_partial(record_id)
        with nogil:
            self.prune()

    # --- the live view -------------------------------------------------------------------------

    cdef int emit(self, const Locator *locator) noexcept nogil:
        return push_locator(&self.live, locator)

    cdef int emit_delete(self, int64_t record_id) noexcept nogil:
        if id_map_put(&self.deleted, record_id, 0) < 0:
            return NO_MEMORY
        self.deletes_since_prune += 1
        if self.deletes_since_prune >= <uint64_t>self.prune_count:
            self.prune()
        return 0

    cdef void prune(self) noexcept nogil:
        """Drop what has been deleted. The ids stay known: none is ever used twice."""
        cdef size_t i, kept = 0
        self.deletes_since_prune = 0
        if self.deleted.count == 0:
            return
        for i in range(self.live.count):
            if i + PREFETCH_AHEAD < self.live.count:
                id_map_expect(&self.deleted, self.live.first[i + PREFETCH_AHEAD].record_id)
            if id_map_get(&self.deleted, self.live.first[i].record_id) < 0:
                self.live.first[kept] = self.live.first[i]
                kept += 1
        self.live.count = kept

    # --- open transactions ---------------------------------------------------------------------

    cdef Holder *holder(self, int64_t tx_id) noexcept nogil:
        cdef int64_t place = id_map_get(&self.open_txs, tx_id)
        return &self.holders[place] if place >= 0 else NULL

    cdef Holder *open_holder(self, int64_t tx_id) noexcept nogil:
        """The open transaction of that id, a new one where there is none."""
        cdef Holder *holder = self.holder(tx_id)
        cdef Holder *holders
        cdef uint32_t place = self.holder_count, room
        if holder != NULL:
            return holder
        if self.holder_unused >= 0:
            place = <uint32_t>self.holder_unused
        elif place == self.holder_room:
            room = self.holder_room * 2 if self.holder_room else 64
            holders = <Holder *>realloc(self.holders, room * sizeof(Holder))
            if holders == NULL:
                return NULL
            memset(holders + self.holder_room, 0, (room - self.holder_room) * sizeof(Holder))
            self.holders = holders
            self.holder_room = room
        if id_map_put(&self.open_txs, tx_id, place) < 0:
            return NULL
        holder = &self.holders[place]
        if place == self.holder_count:
            self.holder_count += 1
        else:
            self.holder_unused = holder.next_unused
        holder.tx_id = tx_id
        holder.sequence = self.next_sequence
        self.next_sequence += 1
        holder.operations.count = 0
        holder.is_used = True
        holder.is_prepared = False
        holder.is_invalid = False
        return holder

    cdef void close_holder(self, Holder *holder) noexcept nogil:
        id_map_pop(&self.open_txs, holder.tx_id)
        holder.is_used = False
        holder.next_unused = self.holder_unused
        self.holder_unused = <int32_t>(holder - self.holders)
        if holder.operations.room > KEPT_OPERATIONS:
            free(holder.operations.first)
            memset(&holder.operations, 0, sizeof(Locators))

    cdef int taint_open(self) noexcept nogil:
        """Records vanished: any open transaction may have lost an operation."""
        cdef uint32_t i
        for i in range(self.holder_count):
            # A prepare was counted, and nothing of its transaction follows it but the end.
            if self.holders[i].is_used and not self.holders[i].is_prepared \
                    and id_map_put(&self.tainted, self.holders[i].tx_id, 0) < 0:
                return NO_MEMORY
        return 0
