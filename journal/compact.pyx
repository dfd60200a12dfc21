"""Copies what is live out of old files into few new ones, while appends go on.

    old files ──read, judge──▶ live? (asked of the index, 64 at a time) ──copy──▶ <name>.cmp, synced
                                                                                      │
        journal synced ──▶ control file ──▶ index moved ──▶ old files .tmp, new files named ──▶
        control file gone ──▶ old files re-headed and free

Rules of what is copied, after the reference (JournalCompactor):

- An add or update of a live record is copied, its compact count one higher (127 at most). Of
  updates of a replaceable type only the last for a record, behind everything else.
- Records of a transaction wait for its end. A commit brings those that are live, still as
  transactional records, and a commit with the count for its new file; a rollback none.
- A transaction without an end in these files is open, or has ended in a younger file: all of its
  operations and prepares are copied, behind all files, in the order in which they began: a load
  reports them so.
- Deletes are dropped: what they deleted is not copied. A delete of an id that is live (used twice,
  which the contract forbids) is kept, so that a load gives what it gave before.
- A commit that the loader would refuse, by its count, is refused here.
- Once, a new file is begun where records that were copied often (compact count 2 or more) are
  followed by younger ones: the old ones are likely to stay.

New files take the ids of old ones, from the first on: so they lie before all younger files. They
are written to their very end, since the space may hold records of that id from an earlier use.

Why a crash never tears anything
- Until the control file is on disk nothing of this counts: recovery deletes `.cmp` files. From
  then on recovery finishes it (recovery.py): it deletes the old files by name, or they are called
  `.tmp` by now and go as leftovers, and renames the new. Both give the same live records:
- "Live" is asked of the index as it is at that moment, and so may honour a delete, or a commit
  with deletes, that came after the start and is not yet on disk. If its copy lacked the record, and
  a crash then lost the delete, a record would be gone without reason, or a transaction half done.
  Therefore all that was appended up to the end of copying is synced before the control file is
  written. A delete that comes after the question was asked finds its record copied, and applies at
  a load as it would have to the old files: younger files follow in order of id.
- A transaction without an end in the old files is copied whatever the index says: if it ended
  meanwhile its end lies in a younger file, and if a crash loses that end it is still open.
- An old file is not given a new use before the control file, which would have it deleted, is
  gone; and by then it is called `.tmp`, or a load would take its records again. It gets its name
  back with a new id on disk (FilePool.take_back).

What the index is told (publish) stands in moves.pyx.

Rejected: to copy the index at the start, as the reference does (a second index in memory, and all
appends wait for it); to write through O_DIRECT (files that nobody appends to gain nothing by it).

Memory: two old files and one chunk of a new one, 24 bytes a copied record, and bodies of
transactions that have not ended and of replaceable updates.
"""

import errno
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcpy, memset

from journal.control import ControlList, encode_control_list
from journal.errors import JournalDamaged, JournalError, JournalIOError
from journal.folder import CONTROL_FILE

from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.files.base cimport io_start_sync, io_write
from journal.format cimport (
    ADD_RECORD, ADD_RECORD_TX, COMMIT_RECORD, COMPACT_COUNT_MAX, DELETE_RECORD, DELETE_RECORD_TX,
    END_MARK, EVENT_RECORD, HEADER_SIZE, LEADER_SIZE, ORDINAL_MAX, PREPARE_RECORD, ROLLBACK_RECORD,
    SCAN_RECORD, UPDATE_RECORD, UPDATE_RECORD_TX, encode_header, encode_header_leader,
    encode_leader, encode_mark, encode_record, leader_padding, record_size)
from journal.index cimport (
    ARRIVES, LEAVES, NO_MEMORY, FileCounts, id_map_free, id_map_get, id_map_init,
    id_map_pop, id_map_put)
from journal.judge cimport judge
from journal.moves cimport Copied, CopiedOperation, IndexMoves
from journal.old_files cimport OldFiles
from journal.scan cimport LIVE, Item

__all__ = [
    "CompactionStopped", "Compactor", "NothingGained", "OutputFile", "control_file",
]

log = logging.getLogger("journal")

cdef enum:
    CHUNK = 64                  # records under one hold of the lock
    SPLIT_LINE = 2
    WRITE_SIZE = 1 << 20
    SYNCS_MAX = 4               # new files that are synced while another is written
    CONTROL_ALIGNMENT = 4096    # largest block that the reference reads in


class OutputFile(NamedTuple):
    """A file that compaction wrote; called <name>.cmp until it is published."""

    name: str
    number: int
    file_id: int
    slot: int


class NothingGained(JournalError):
    """The result would need more files than there are ids before the next younger file."""


class CompactionStopped(JournalError):
    """stop() was called."""


cdef class Compactor:
    """One compaction of one journal.

    Args:
        folder, pool, index, buffer: the journal's; the index watches since the old files were told.
        old_files: OldFile of each, in order of their ids.
        options: the journal's.
        file_size: bytes, of every file.
        file_id_end: id of the first file that is not compacted.

    Order of calls: copy(); then the caller syncs the journal; commit(); publish(); install();
    or abandon() in place of commit(). Threads: one.
    """

    def __cinit__(self, Folder folder, pool, RecordIndex index, GroupBuffer buffer, list old_files,
                  options, uint64_t file_size, int64_t file_id_end):
        self.folder = folder
        self.pool = pool
        self.index = index
        self.buffer = buffer
        self.moves = IndexMoves(index, buffer)
        self.old_files = old_files
        self.source = OldFiles(folder, old_files, options.user_version)
        self.leaders = options.checksums
        self.user_version = options.user_version
        for user_type in options.replaceable_types:
            self.replaceable[<uint8_t>(user_type & 0xFF)] = True
        self.file_id_end = file_id_end
        self.next_file_id = old_files[0].file_id
        self.file_size = file_size
        self.outputs = []
        self.syncs = []
        self.fd = -1
        self.held_unused = -1
        if id_map_init(&self.held_map) < 0:
            raise MemoryError

    def __dealloc__(self):
        cdef int32_t i
        cdef size_t j
        for i in range(self.held_count):
            for j in range(self.held[i].count):
                if self.held[i].records[j].owns_body:
                    free(self.held[i].records[j].body)
            free(self.held[i].records)
        for j in range(self.update_count):
            if self.updates[j].owns_body:
                free(self.updates[j].body)
        for i in range(256):
            if self.update_maps[i].entries != NULL:
                id_map_free(&self.update_maps[i])
        id_map_free(&self.held_map)
        free(self.held)
        free(self.updates)
        free(self.chunk)

    def stop(self):
        """Have copy() raise CompactionStopped soon. From any thread."""
        self.stopping = True

    # --- copy ---------------------------------------------------------------------------------

    def copy(self, progress=None):
        """Write and sync everything live into new files, which nobody knows of yet.

        Args:
            progress: called as progress(files_done, files_total, bytes_read, bytes_total) after
                each old file; None: nobody is told.

        Raises:
            JournalDamaged: an old file does not hold what was written to it.
            JournalIOError: a file cannot be read or written.
            NothingGained: no ids left for another new file.
            CompactionStopped: stop() was called.
        """
        cdef FileScan scan
        self.sync_thread = ThreadPoolExecutor(1, "journal-compaction-sync")
        try:
            self.source.read_ahead()
            for number in range(len(self.old_files)):
                self.check_stop()
                scan = self.source.take()
                judge(scan, False)
                damages = [damage for damage, is_ours in scan.found if is_ours]
                if damages:
                    raise JournalDamaged(damages)
                self.reading = number
                # One stretch: to get the GIL back may take long where many threads append.
                with nogil:
                    self.copy_file(scan)
                    self.own_bodies()
                if progress is not None:
                    progress(number + 1, len(self.old_files), (number + 1) * self.file_size,
                             len(self.old_files) * self.file_size)
            with nogil:
                self.copy_rest()
            self.end_output()
            self.await_syncs(0)
        finally:
            self.source.close()
            self.sync_thread.shutdown()
        self.folder.sync()

    def check_stop(self):
        """Give up if somebody wants so."""
        if self.stopping:
            raise CompactionStopped("compaction stopped: the journal closes")

    cdef int copy_file(self, FileScan scan) except -1 nogil:
        """Copy, hold or drop every record of one file, in order."""
        cdef size_t[CHUNK] picked
        cdef int count = 0
        cdef size_t i
        cdef const Item *item
        cdef uint8_t type
        for i in range(scan.count):
            item = &scan.items[i]
            if item.what != SCAN_RECORD or item.verdict != LIVE:
                continue
            type = item.record.type
            if type == ADD_RECORD or type == UPDATE_RECORD or type == DELETE_RECORD:
                picked[count] = i
                count += 1
                if count == CHUNK:
                    self.copy_records(scan, picked, count)
                    count = 0
            elif type == COMMIT_RECORD or type == ROLLBACK_RECORD:
                # What stands before the commit stays before it.
                self.copy_records(scan, picked, count)
                count = 0
                self.end_held(&item.record)
            elif type != EVENT_RECORD:
                self.hold(&item.record)
        return self.copy_records(scan, picked, count)

    cdef int copy_records(self, FileScan scan, const size_t *picked,
                          int count) except -1 nogil:
        """Copy those of the records at items `picked` that are live."""
        cdef bint[CHUNK] live
        cdef int i
        cdef int64_t place
        cdef const Record *record
        cdef HeldRecord copy
        if count == 0:
            return 0
        pthread_mutex_lock(&self.buffer.lock)
        for i in range(count):
            self.index.expect(scan.items[picked[i]].record.record_id)
        for i in range(count):
            place = id_map_get(&self.index.record_map, scan.items[picked[i]].record.record_id)
            live[i] = place >= 0 and (
                scan.items[picked[i]].record.type == DELETE_RECORD
                or self.index.files[self.index.records[place].file].compaction == LEAVES)
        pthread_mutex_unlock(&self.buffer.lock)
        for i in range(count):
            if not live[i]:
                continue
            record = &scan.items[picked[i]].record
            if record.type == UPDATE_RECORD and self.replaceable[record.user_type]:
                self.hold_update(record)
                continue
            borrow(&copy, record, self.source.data)
            if record.type != DELETE_RECORD:
                self.split(record.compact_count)
            self.make_room(record_size(record.type, record.body_size))
            self.write(record.type, 0, &copy, 0)
            if record.type != DELETE_RECORD:
                self.note_copied(&copy)
        return 0

    # Transactions.

    cdef HeldTransaction *find_held(self, int64_t tx_id, bint make) except? NULL nogil:
        cdef int64_t place = id_map_get(&self.held_map, tx_id)
        cdef HeldTransaction *tx
        cdef int32_t room
        if place >= 0:
            return &self.held[place]
        if not make:
            return NULL
        if self.held_unused >= 0:
            place = self.held_unused
        else:
            if self.held_count == self.held_room:
                room = self.held_room * 2 if self.held_room else CHUNK
                tx = <HeldTransaction *>realloc(self.held, room * sizeof(HeldTransaction))
                if tx == NULL:
                    self.fail(errno_ENOMEM, "no memory for a transaction")
                memset(tx + self.held_room, 0,
                       (room - self.held_room) * sizeof(HeldTransaction))
                self.held = tx
                self.held_room = room
            place = self.held_count
        if id_map_put(&self.held_map, tx_id, <uint32_t>place) < 0:
            self.fail(errno_ENOMEM, "no memory for a transaction")
        tx = &self.held[place]
        if place == self.held_count:
            self.held_count += 1
        else:
            self.held_unused = tx.next_unused
        tx.tx_id = tx_id
        tx.sequence = self.held_sequence
        self.held_sequence += 1
        tx.last_file = -1
        tx.counter = 0
        tx.is_used = True
        tx.is_invalid = False
        return tx

    cdef void drop_held(self, HeldTransaction *tx) noexcept nogil:
        cdef size_t i
        id_map_pop(&self.held_map, tx.tx_id)
        for i in range(tx.count):
            if tx.records[i].owns_body:
                free(tx.records[i].body)
        tx.count = 0
        tx.is_used = False
        tx.next_unused = self.held_unused
        self.held_unused = <int32_t>(tx - self.held)

    cdef int hold(self, const Record *record) except -1 nogil:
        """Keep an operation or prepare until the end of its transaction is known."""
        cdef HeldTransaction *tx = self.find_held(record.tx_id, True)
        cdef HeldRecord *records
        cdef size_t room
        if tx.last_file != self.reading:
            tx.last_file = self.reading
            tx.counter = 0
        if record.type == PREPARE_RECORD:
            if record.records_in_file != tx.counter:
                tx.is_invalid = True
        else:
            tx.counter += 1
        if tx.count == tx.room:
            room = tx.room * 2 if tx.room else 8
            records = <HeldRecord *>realloc(tx.records, room * sizeof(HeldRecord))
            if records == NULL:
                self.fail(errno_ENOMEM, "no memory for a transaction")
            tx.records = records
            tx.room = room
        borrow(&tx.records[tx.count], record, self.source.data)
        tx.count += 1
        return 0

    cdef int end_held(self, const Record *record) except -1 nogil:
        """A commit or rollback: copy or drop what is held."""
        cdef HeldTransaction *tx = self.find_held(record.tx_id, False)
        if tx == NULL:
            return 0
        if tx.last_file != self.reading:
            tx.counter = 0
        if record.type == COMMIT_RECORD and not tx.is_invalid \
                and tx.counter == record.records_in_file:
            self.copy_committed(tx)
        self.drop_held(tx)
        return 0

    cdef int copy_committed(self, HeldTransaction *tx) except -1 nogil:
        """Copy the operations that still count, and a commit behind them."""
        cdef bint[CHUNK] live
        cdef size_t start = 0, end, i
        cdef int64_t place
        cdef HeldRecord *record
        cdef HeldRecord commit
        cdef int32_t in_file = 0, last_slot = -1, copies = 0
        cdef Py_ssize_t first_output = 0, output
        while start < tx.count:
            end = min(start + CHUNK, tx.count)
            pthread_mutex_lock(&self.buffer.lock)
            for i in range(start, end):
                record = &tx.records[i]
                place = -1
                if record.type != PREPARE_RECORD:
                    place = id_map_get(&self.index.record_map, record.record_id)
                live[i - start] = place >= 0 and (
                    record.type == DELETE_RECORD_TX
                    or self.index.files[self.index.records[place].file].compaction == LEAVES)
            pthread_mutex_unlock(&self.buffer.lock)
            for i in range(start, end):
                if not live[i - start]:
                    continue
                record = &tx.records[i]
                if record.type != DELETE_RECORD_TX:
                    self.split(record.compact_count)
                self.make_room(record_size(record.type, record.body_size))
                self.write(record.type, tx.tx_id, record, 0)
                if record.type != DELETE_RECORD_TX:
                    self.note_copied(record)
                if copies == 0:
                    first_output = self.output_count - 1
                if self.slot != last_slot:
                    last_slot = self.slot
                    in_file = 0
                in_file += 1
                copies += 1
            start = end
        if copies == 0:
            return 0
        memset(&commit, 0, sizeof(HeldRecord))
        self.make_room(record_size(COMMIT_RECORD, 0))
        self.write(COMMIT_RECORD, tx.tx_id, &commit, in_file if self.slot == last_slot else 0)
        # The file of the commit must outlive the files of the operations. In one file the pin
        # and its release cancel out.
        output = self.output_count - 1
        if output != first_output:
            self.pin_outputs(first_output, output)
        return 0

    cdef int pin_outputs(self, Py_ssize_t first, Py_ssize_t final) except -1 with gil:
        """The last of these new files holds the commit of a transaction in all of them."""
        cdef int32_t commit = self.outputs[final].slot, slot
        cdef FileCounts *counts
        cdef int result = 0
        for output in self.outputs[first:final + 1]:
            slot = output.slot
            with nogil:
                pthread_mutex_lock(&self.buffer.lock)
                counts = &self.index.files[slot]
                counts.positives += 1
                result = self.index.negate(commit, slot, 1)
                pthread_mutex_unlock(&self.buffer.lock)
            if result < 0:
                raise MemoryError
        return 0

    cdef int copy_rest(self) except -1 nogil:
        """Behind all files: transactions without an end, then replaceable updates."""
        cdef int32_t i
        cdef bint is_known
        if self.held_count == 0:
            return self.copy_updates()
        # Nothing is looked up or ended any more: places may change.
        qsort(self.held, self.held_count, sizeof(HeldTransaction), &by_beginning)
        for i in range(self.held_count):
            if not self.held[i].is_used:
                continue
            pthread_mutex_lock(&self.buffer.lock)
            is_known = self.index.tx_is_open(self.held[i].tx_id) \
                or id_map_get(&self.index.ended, self.held[i].tx_id) >= 0
            pthread_mutex_unlock(&self.buffer.lock)
            # What the loader gave up without a trace cannot end any more.
            if is_known:
                self.copy_open(&self.held[i])
        return self.copy_updates()

    cdef int copy_open(self, HeldTransaction *tx) except -1 nogil:
        """Copy all operations and prepares of a transaction that has no end here."""
        cdef size_t i
        cdef int64_t number = 0
        cdef int32_t in_file = 0, last_slot = -1
        cdef HeldRecord *record
        cdef CopiedOperation *copied
        if tx.is_invalid:
            self.fail(errno_EIO, "a prepare does not match its transaction")
        for i in range(tx.count):
            record = &tx.records[i]
            if record.type != PREPARE_RECORD and record.type != DELETE_RECORD_TX:
                self.split(record.compact_count)
            self.make_room(record_size(record.type, record.body_size))
            if self.slot != last_slot:
                last_slot = self.slot
                in_file = 0
            self.write(record.type, tx.tx_id, record, in_file)
            copied = self.moves.new_operation()
            if copied == NULL:
                self.fail(errno_ENOMEM, "no memory for a transaction")
            copied.tx_id = tx.tx_id
            copied.record_id = record.record_id
            copied.number = -1
            copied.file = self.slot
            copied.bytes = record_size(record.type, record.body_size)
            copied.type = record.type
            copied.replaceable = self.replaceable[record.user_type]
            if record.type != PREPARE_RECORD:
                copied.number = number
                number += 1
                in_file += 1
        return 0

    # Replaceable updates.

    cdef int hold_update(self, const Record *record) except -1 nogil:
        """Keep the update, in place of an earlier one of its type for its record."""
        cdef IdMap *map = &self.update_maps[record.user_type]
        cdef HeldRecord *updates
        cdef int64_t place
        cdef size_t room
        if map.entries == NULL and id_map_init(map) < 0:
            self.fail(errno_ENOMEM, "no memory for an update")
        place = id_map_get(map, record.record_id)
        if place >= 0:
            if self.updates[place].owns_body:
                free(self.updates[place].body)
        else:
            if self.update_count == self.update_room:
                room = self.update_room * 2 if self.update_room else CHUNK
                updates = <HeldRecord *>realloc(self.updates, room * sizeof(HeldRecord))
                if updates == NULL:
                    self.fail(errno_ENOMEM, "no memory for an update")
                self.updates = updates
                self.update_room = room
            place = <int64_t>self.update_count
            if id_map_put(map, record.record_id, <uint32_t>place) < 0:
                self.fail(errno_ENOMEM, "no memory for an update")
            self.update_count += 1
        borrow(&self.updates[place], record, self.source.data)
        return 0

    cdef int copy_updates(self) except -1 nogil:
        """Copy the last replaceable update of each record that is live still."""
        cdef bint[CHUNK] live
        cdef size_t start = 0, end, i
        cdef int64_t place
        cdef HeldRecord *record
        while start < self.update_count:
            end = min(start + CHUNK, self.update_count)
            pthread_mutex_lock(&self.buffer.lock)
            for i in range(start, end):
                place = id_map_get(&self.index.record_map, self.updates[i].record_id)
                live[i - start] = place >= 0 and \
                    self.index.files[self.index.records[place].file].compaction == LEAVES
            pthread_mutex_unlock(&self.buffer.lock)
            for i in range(start, end):
                record = &self.updates[i]
                if live[i - start]:
                    self.split(record.compact_count)
                    self.make_room(record_size(record.type, record.body_size))
                    self.write(record.type, 0, record, 0)
                    self.note_copied(record)
            start = end
        return 0

    cdef int own_bodies(self) except -1 nogil:
        """The file that was read makes room for the next: copy what is still needed of it."""
        cdef int32_t i
        cdef size_t j
        for i in range(self.held_count):
            if self.held[i].is_used and self.held[i].last_file == self.reading:
                for j in range(self.held[i].count):
                    if not own_body(&self.held[i].records[j]):
                        self.fail(errno_ENOMEM, "no memory for a transaction")
        for j in range(self.update_count):
            if not own_body(&self.updates[j]):
                self.fail(errno_ENOMEM, "no memory for an update")
        return 0

    # --- write --------------------------------------------------------------------------------

    cdef int note_copied(self, const HeldRecord *record) except -1 nogil:
        cdef Copied *copied = self.moves.new_copied()
        if copied == NULL:
            self.fail(errno_ENOMEM, "no memory for a compaction")
        copied.record_id = record.record_id
        copied.file = self.slot
        copied.bytes = record_size(record.type, record.body_size)
        copied.type = record.type
        copied.replaceable = self.replaceable[record.user_type] and (
            record.type == UPDATE_RECORD or record.type == UPDATE_RECORD_TX)
        return 0

    cdef int split(self, uint8_t compact_count) except -1 nogil:
        """Begin a new file, once, where often copied records end; if there are ids enough."""
        if compact_count >= SPLIT_LINE:
            self.has_old_generation = True
        elif self.has_old_generation and not self.is_split:
            self.is_split = True
            if self.is_open and self.next_file_id + 1 < self.file_id_end:
                self.end_output()
        return 0

    cdef bint fits(self, uint32_t size) noexcept nogil:
        """Whether the file being written takes a record of `size` bytes."""
        cdef uint64_t start = self.chunk_offset + self.used
        if not self.leaders:
            return start + size <= self.file_size
        if self.is_plain:
            return False        # It was begun for one record that is in it already.
        start += leader_padding(start) + LEADER_SIZE
        return start + size + LEADER_SIZE <= self.file_size and self.ordinal < ORDINAL_MAX

    cdef int make_room(self, uint32_t size) except -1 nogil:
        """Have a file open that takes a record of `size` bytes."""
        if self.is_open:
            if self.fits(size):
                return 0
            self.end_output()
        return self.begin_output(size)

    cdef int write(self, uint8_t type, int64_t tx_id, const HeldRecord *record,
                   int32_t records_in_file) except -1 nogil:
        """Append one record to the new file, which has room for it."""
        cdef uint32_t size = record_size(type, record.body_size)
        cdef uint64_t start = self.chunk_offset + self.used
        cdef uint32_t before = 0
        cdef uint8_t compact_count = 0
        cdef uint8_t *where
        if self.leaders and not self.is_plain:
            before = leader_padding(start) + LEADER_SIZE
        if self.used + before + size + LEADER_SIZE > self.chunk_room:
            self.flush_chunk()
            if before + size + LEADER_SIZE > self.chunk_room:
                free(self.chunk)
                self.chunk_room = before + size + LEADER_SIZE
                self.chunk = <uint8_t *>malloc(self.chunk_room)
                if self.chunk == NULL:
                    self.chunk_room = 0
                    self.fail(errno_ENOMEM, "no memory to write a compacted file")
        memset(self.chunk + self.used, 0, before)
        where = self.chunk + self.used + before
        if type == ADD_RECORD or type == UPDATE_RECORD or type == ADD_RECORD_TX \
                or type == UPDATE_RECORD_TX:
            compact_count = min(record.compact_count + 1, COMPACT_COUNT_MAX)
        encode_record(where, type, self.file_id, compact_count, tx_id, record.record_id,
                      record.user_type, record.body, record.body_size, records_in_file)
        if before:
            encode_leader(where, self.file_id, self.ordinal, size)
            self.ordinal += 1
        self.used += before + size
        self.records_copied += 1
        return 0

    cdef int flush_chunk(self) except -1 nogil:
        cdef int result
        if self.used == 0:
            return 0
        result = io_write(self.fd, self.chunk, self.used, self.chunk_offset, False)
        if result < 0:
            self.fail(-result, "cannot write a compacted file")
        # A hint: if it fails, so does the sync.
        io_start_sync(self.fd, self.chunk_offset, self.used)
        self.chunk_offset += self.used
        self.bytes_written += self.used
        self.used = 0
        return 0

    cdef int begin_output(self, uint32_t size) except -1 with gil:
        """Begin the next file, with room for a record of `size` bytes."""
        cdef uint64_t first = HEADER_SIZE + LEADER_SIZE
        self.check_stop()
        if HEADER_SIZE + <uint64_t>size > self.file_size:
            raise JournalIOError(errno.EFBIG, "a record is larger than journal-file-size",
                                 str(self.folder.path))
        if self.next_file_id >= self.file_id_end:
            raise NothingGained("compaction gains nothing: the live records fill more files than "
                                f"the {len(self.old_files)} that hold them")
        if self.chunk == NULL:
            self.chunk_room = min(<uint64_t>WRITE_SIZE, self.file_size)
            self.chunk = <uint8_t *>malloc(self.chunk_room)
            if self.chunk == NULL:
                self.chunk_room = 0
                raise MemoryError
        self.await_syncs(SYNCS_MAX - 1)
        pooled = self.pool.take_free()
        number = self.pool.new_id() if pooled is None else pooled.number
        name = self.pool.name_of(number)
        with nogil:
            pthread_mutex_lock(&self.buffer.lock)
            self.slot = self.index.file_new(self.next_file_id)
            if self.slot >= 0:
                self.index.files[self.slot].compaction = ARRIVES
            pthread_mutex_unlock(&self.buffer.lock)
        if self.slot < 0:
            raise MemoryError
        self.outputs.append(OutputFile(name, number, self.next_file_id, self.slot))
        self.output_count += 1
        if pooled is not None:
            self.folder.rename(name, f"{name}.cmp")
            # Or a crash could give the new contents the old name, and a load would take them.
            self.folder.sync()
        self.fd = self.folder.open(f"{name}.cmp", create=True)
        self.is_open = True
        self.file_id = self.next_file_id
        self.next_file_id += 1
        self.chunk_offset = 0
        self.ordinal = 0
        encode_header(self.chunk, self.user_version, self.file_id)
        self.used = HEADER_SIZE
        first += leader_padding(first) + LEADER_SIZE
        self.is_plain = not self.leaders or first + size + LEADER_SIZE > self.file_size
        if not self.is_plain:
            encode_header_leader(self.chunk, self.file_size)
            self.used += LEADER_SIZE
        return 0

    cdef int end_output(self) except -1 with gil:
        """Write the rest of the file, and have it synced and closed meanwhile."""
        cdef uint64_t offset
        cdef int fd = self.fd
        if not self.is_open:
            return 0
        if not self.is_plain:
            if self.used + LEADER_SIZE > self.chunk_room:
                self.flush_chunk()
            encode_mark(self.chunk + self.used, END_MARK, self.file_id, self.ordinal)
            self.used += LEADER_SIZE
        self.flush_chunk()
        name = f"{self.outputs[len(self.outputs) - 1].name}.cmp"
        offset = self.chunk_offset
        if offset < self.file_size:
            self.folder.fill(fd, offset, self.file_size - offset, False, name)
        self.is_open = False
        self.fd = -1
        self.syncs.append(self.sync_thread.submit(self.sync_output, fd, name))
        return 0

    def sync_output(self, int fd, name):
        """Sync and close a new file."""
        try:
            self.folder.sync_file(fd, name, metadata=True)
        finally:
            self.folder.close_file(fd, name)

    def await_syncs(self, left):
        """Wait until at most `left` new files are not on disk."""
        while len(self.syncs) > left:
            self.syncs.pop(0).result()

    cdef int fail(self, int error, str what) except -1 with gil:
        if error == errno_ENOMEM:
            raise MemoryError(what)
        raise JournalIOError(error, what, str(self.folder.path))

    # --- decide -------------------------------------------------------------------------------

    def abandon(self):
        """Undo copy(): remove what it wrote. The journal is as before."""
        cdef int32_t slot
        for future in self.syncs:
            future.exception()
        self.syncs.clear()
        if self.is_open:
            self.is_open = False
            self.folder.close_file(self.fd)
        for output in self.outputs:
            try:
                self.folder.unlink(f"{output.name}.cmp")
            except JournalIOError as error:
                # A load removes what is left.
                if error.errno != errno.ENOENT:
                    log.warning("after a compaction that failed: %s", error)
            slot = output.slot
            with nogil:
                pthread_mutex_lock(&self.buffer.lock)
                self.index.file_drop(slot)
                pthread_mutex_unlock(&self.buffer.lock)
        self.end_watch()

    def end_watch(self):
        """Have the index stop taking notes."""
        with nogil:
            pthread_mutex_lock(&self.buffer.lock)
            self.index.unwatch()
            pthread_mutex_unlock(&self.buffer.lock)

    def prepare_control(self):
        """Write the control file under another name; nothing is decided yet.

        Raises:
            JournalIOError: it cannot be written; abandon() is in place.
        """
        data = control_file(
            ControlList(tuple(old.name for old in self.old_files),
                        tuple(f"{output.name}.cmp" for output in self.outputs)),
            self.user_version, self.leaders)
        fd = self.folder.open(self.control_name(), create=True)
        try:
            self.folder.write(fd, data, 0, self.control_name())
            self.folder.sync_file(fd, self.control_name(), metadata=True)
        finally:
            self.folder.close_file(fd, self.control_name())

    def control_name(self):
        """A name that recovery removes, and no other file has: nothing names numbers below 0."""
        return f"{self.pool.name_of(0)}.tmp"

    def discard_control(self):
        """Undo prepare_control()."""
        try:
            self.folder.unlink(self.control_name())
        except JournalIOError as error:
            if error.errno != errno.ENOENT:
                log.warning("after a compaction that failed: %s", error)

    def commit(self):
        """From here on the new files count, whatever happens.

        Raises:
            JournalIOError: nobody knows whether they do: the journal must end.
        """
        self.folder.rename(self.control_name(), CONTROL_FILE)
        self.folder.sync()

    def revoke(self):
        """Undo commit(), as long as install() has not begun: the old files count again."""
        self.folder.unlink(CONTROL_FILE)
        self.folder.sync()

    def publish(self):
        """Tell the index where everything is now, and forget the old files.

        Raises:
            MemoryError: the index is of no use any more: the journal must end.
            JournalError: a bug: the index knows of something that was not copied.
        """
        cdef int32_t slot
        cdef int result
        with nogil:
            result = self.moves.apply()
        if result == NO_MEMORY:
            raise MemoryError("no memory to move the index to the compacted files")
        if result < 0:
            raise JournalError("compaction: the index names a record that was not copied")
        for old in self.old_files:
            slot = old.slot
            with nogil:
                pthread_mutex_lock(&self.buffer.lock)
                self.index.file_drop(slot)
                pthread_mutex_unlock(&self.buffer.lock)
        self.end_watch()

    def install(self):
        """Give the new files their names and take the old ones theirs; done with the control file.

        Raises:
            JournalIOError: the journal must end; recovery finishes this.
        """
        for old in self.old_files:
            self.folder.rename(old.name, f"{old.name}.tmp")
        for output in self.outputs:
            self.folder.rename(f"{output.name}.cmp", output.name)
        self.folder.sync()
        self.folder.unlink(CONTROL_FILE)
        self.folder.sync()


# --- leaves ------------------------------------------------------------------------------------

cdef int errno_ENOMEM = errno.ENOMEM
cdef int errno_EIO = errno.EIO


cdef int by_beginning(const void *first, const void *second) noexcept nogil:
    """The order of two held transactions."""
    cdef uint64_t a = (<const HeldTransaction *>first).sequence
    cdef uint64_t b = (<const HeldTransaction *>second).sequence
    return (a > b) - (a < b)


cdef inline void borrow(HeldRecord *held, const Record *record, uint8_t *data) noexcept nogil:
    """The record as it stands in the file that is in memory."""
    held.record_id = record.record_id
    held.body = data + record.body_offset
    held.body_size = record.body_size
    held.type = record.type
    held.user_type = record.user_type
    held.compact_count = record.compact_count
    held.owns_body = False


cdef bint own_body(HeldRecord *record) noexcept nogil:
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


def control_file(control, int32_t user_version, bint leader):
    """The bytes of a control file: a journal file with id 0 and one add record.

    The size is a multiple of 4096, which the reference can read with any block size.
    """
    cdef bytes body = encode_control_list(control)
    cdef uint32_t body_size = <uint32_t>len(body)
    cdef uint32_t size = record_size(ADD_RECORD, body_size)
    cdef uint32_t first = HEADER_SIZE
    cdef uint32_t total
    cdef uint8_t[::1] data
    if leader:
        first += LEADER_SIZE
        first += leader_padding(first) + LEADER_SIZE
    total = (first + size + CONTROL_ALIGNMENT - 1) // CONTROL_ALIGNMENT * CONTROL_ALIGNMENT
    result = bytearray(total)
    data = result
    encode_header(&data[0], user_version, 0)
    if leader:
        encode_header_leader(&data[0], total)
    encode_record(&data[first], ADD_RECORD, 0, 0, 0, 1, 0, <const uint8_t *>body, body_size, 0)
    if leader:
        encode_leader(&data[first], 0, 0, size)
    return bytes(result)
