"""Copies what is live out of old files into few new ones, while appends go on.

    old files ──read, check──▶ live? (asked of the index, 64 at a time) ──copy──▶ <name>.cmp, synced
                                                                                      │
        journal synced ──▶ control file ──▶ index moved ──▶ old files .tmp, new files named ──▶
        control file gone ──▶ old files re-headed and free

Rules of what is copied, after Artemis (JournalCompactor):

- An add or update of a live record is copied, its compact count one higher (127 at most). Of
  updates of a replaceable type only the last for a record, behind everything else.
- Records of a transaction wait for its end. A commit brings those that are live, still as
  transactional records, and a commit with the count for its new file; a rollback none.
- A transaction without an end in these files is open, or has ended in a younger file. All of its
  operations and prepares are copied, behind all files, in the order in which the transactions
  began. A load reports them in that order.
- Deletes are dropped: what they deleted is not copied. A delete of an id that is live (used twice,
  which the contract forbids) is kept, so that a load gives what it gave before.
- A commit that the loader would refuse, by its count, is refused here.
- Once, a new file is begun where records that were copied often (compact count 2 or more) are
  followed by younger ones: the old ones are likely to stay.

New files take the ids of old ones, from the first on: so they lie before all younger files.

Why a crash never tears anything
- Until the control file is on disk nothing of this counts: recovery deletes `.cmp` files. From
  then on recovery finishes it (compaction_recovery.py): it deletes the old files by name, or as
  leftovers if they are called `.tmp` by now, and renames the new. Both give the same live records:
- "Live" is asked of the index as it is at that moment, and so may honour a delete, or a commit
  with deletes, that came after the start and is not yet on disk. If its copy lacked the record, and
  a crash then lost the delete, a record would be gone without reason, or a transaction half done.
  Therefore all that was appended up to the end of copying is synced before the control file is
  written. A delete that comes after the question was asked finds its record copied, and applies at
  a load as it would have to the old files: younger files follow in order of id.
- A transaction without an end in the old files is copied whatever the index says. If it ended
  meanwhile its end lies in a younger file. If a crash loses that end it is still open.
- An old file is not used again before the control file is gone, since recovery would delete it by
  that list. By then it is called `.tmp`, or a load would take its records again. It gets its name
  back with a new id on disk (FilePool.take_back()).

What the index is told (publish) stands in relocations.pyx.

Old files are read by old_files.pyx, new ones written by new_files.pyx, what waits is kept in
pending_records.pyx; control file and names are replacement.pyx.

Rejected: to copy the index at the start, as Artemis does (a second index in memory, and all
appends wait for it).

Memory: what old_files.pyx and new_files.pyx say, 24 bytes a copied record, and bodies of
transactions that have not ended and of replaceable updates.
"""

import errno

from libc.string cimport memset

from journal.errors import JournalError

from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.format cimport (
    ADD_RECORD, COMMIT_RECORD, DELETE_RECORD, DELETE_RECORD_TX, EVENT_RECORD, PREPARE_RECORD,
    ROLLBACK_RECORD, SCAN_RECORD, UPDATE_RECORD, UPDATE_RECORD_TX, record_size)
from journal.files.chunks cimport ChunkWriter
from journal.pending_records cimport PendingRecord, PendingTransaction, borrow, no_memory
from journal.id_map cimport NO_MEMORY, id_map_get
from journal.file_pins cimport LEAVES, FileCounts
from journal.relocations cimport Copied, CopiedOperation
from journal.scan cimport LIVE, Item

__all__ = ["Compactor"]

cdef enum:
    CHUNK = 64                  # records under one hold of the lock


cdef class Compactor:
    """One compaction of one journal.

    Args:
        folder, pool, index, buffer: the journal's; the index watches since the old files were told.
        writer: what the new files are written through; it rests.
        old_files: OldFile of each, in order of their ids.
        options: the journal's.
        file_size: bytes, of every file.
        file_id_end: id of the first file that is not compacted.
        validates_first: as of OldFiles.

    Order of calls: copy(); then the caller syncs the journal, and Replacement commits; publish();
    or abandon() in place of all that follows copy(). Threads: one, but for stop().
    """

    def __cinit__(self, Folder folder, pool, RecordIndex index, GroupBuffer buffer,
                  ChunkWriter writer, list old_files, options, uint64_t file_size,
                  int64_t file_id_end, bint validates_first):
        self.folder = folder
        self.index = index
        self.buffer = buffer
        self.old_files = old_files
        self.file_size = file_size
        for user_type in options.replaceable_types:
            self.replaceable[<uint8_t>(user_type & 0xFF)] = True
        self.source = OldFiles(folder, old_files, options.user_version, validates_first)
        self.pending = PendingRecords()
        self.target = NewFiles(folder, pool, index, buffer, writer, old_files, options,
                               file_size, file_id_end)
        self.relocations = Relocations(index, buffer)

    def stop(self):
        """Have copy() raise CompactionStopped soon. From any thread."""
        self.target.stop()

    # --- copy ---------------------------------------------------------------------------------

    def copy(self, progress=None):
        """Write and sync everything live into new files, which do not count yet.

        Args:
            progress: called as progress(files_done, files_total, bytes_read, bytes_total) after
                each old file; None: no progress is reported.

        Raises:
            JournalDamaged: an old file does not hold what was written to it.
            JournalIOError: a file cannot be read or written.
            NotSound: without `validates_first`; the target is to be removed.
            NothingGained: no ids left for another new file.
            CompactionStopped: stop() was called.
        """
        cdef FileScan scan
        self.target.open()
        try:
            for number in range(len(self.old_files)):
                self.target.check_stop()
                scan = self.source.open_next()
                self.reading = number
                # One stretch: to get the GIL back may take long where many threads append.
                with nogil:
                    while self.source.more():
                        self.copy_step(scan)
                        self.pending.own_bodies()
                self.source.end()
                if progress is not None:
                    progress(number + 1, len(self.old_files), (number + 1) * self.file_size,
                             len(self.old_files) * self.file_size)
            with nogil:
                self.copy_rest()
            self.target.sync()
        finally:
            self.source.close()
            self.target.close()
        self.folder.sync()

    cdef int copy_step(self, FileScan scan) except -1 nogil:
        """Copy, hold or drop every record that the source found last, in order."""
        cdef size_t[CHUNK] picked
        cdef int count = 0
        cdef size_t i
        cdef const Item *item
        cdef uint8_t type
        for i in range(self.source.first, scan.count):
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
                self.end_pending(&item.record)
            elif type != EVENT_RECORD:
                self.pending.hold(&item.record, self.source.body_of(&item.record), self.reading)
        return self.copy_records(scan, picked, count)

    cdef int copy_records(self, FileScan scan, const size_t *picked,
                          int count) except -1 nogil:
        """Copy those of the records at items `picked` that are live."""
        cdef bint[CHUNK] live
        cdef int i
        cdef int64_t place
        cdef const Record *record
        cdef PendingRecord copy
        if count == 0:
            return 0
        pthread_mutex_lock(&self.buffer.lock)
        for i in range(count):
            self.index.prefetch_record(scan.items[picked[i]].record.record_id)
        for i in range(count):
            place = self.index.place_of(scan.items[picked[i]].record.record_id)
            live[i] = place >= 0 and (
                scan.items[picked[i]].record.type == DELETE_RECORD
                or self.index.files[self.index.records[place].file].compaction == LEAVES)
        pthread_mutex_unlock(&self.buffer.lock)
        for i in range(count):
            if not live[i]:
                continue
            record = &scan.items[picked[i]].record
            if record.type == UPDATE_RECORD and self.replaceable[record.user_type]:
                self.pending.hold_update(record, self.source.body_of(record))
                continue
            borrow(&copy, record, self.source.body_of(record))
            if record.type != DELETE_RECORD:
                self.target.split(record.compact_count)
            self.target.make_room(record_size(record.type, record.body_size))
            self.target.write(record.type, 0, &copy, 0)
            if record.type != DELETE_RECORD:
                self.note_copied(&copy)
        return 0

    # Transactions.

    cdef int end_pending(self, const Record *record) except -1 nogil:
        """A commit or rollback: copy or drop what is held."""
        cdef PendingTransaction *tx = self.pending.find(record.tx_id, False)
        if tx == NULL:
            return 0
        if tx.last_file != self.reading:
            tx.counter = 0
        if record.type == COMMIT_RECORD and not tx.is_invalid \
                and tx.counter == record.records_in_file:
            self.copy_committed(tx)
        self.pending.drop(tx)
        return 0

    cdef int copy_committed(self, PendingTransaction *tx) except -1 nogil:
        """Copy the operations that still count, and a commit behind them."""
        cdef bint[CHUNK] live
        cdef size_t start = 0, end, i
        cdef int64_t place
        cdef PendingRecord *record
        cdef PendingRecord commit
        cdef int32_t in_file = 0, last_slot = -1, copies = 0
        cdef Py_ssize_t first_output = 0, output
        while start < tx.count:
            end = min(start + CHUNK, tx.count)
            pthread_mutex_lock(&self.buffer.lock)
            for i in range(start, end):
                record = &tx.records[i]
                place = -1
                if record.type != PREPARE_RECORD:
                    place = self.index.place_of(record.record_id)
                live[i - start] = place >= 0 and (
                    record.type == DELETE_RECORD_TX
                    or self.index.files[self.index.records[place].file].compaction == LEAVES)
            pthread_mutex_unlock(&self.buffer.lock)
            for i in range(start, end):
                if not live[i - start]:
                    continue
                record = &tx.records[i]
                if record.type != DELETE_RECORD_TX:
                    self.target.split(record.compact_count)
                self.target.make_room(record_size(record.type, record.body_size))
                self.target.write(record.type, tx.tx_id, record, 0)
                if record.type != DELETE_RECORD_TX:
                    self.note_copied(record)
                if copies == 0:
                    first_output = self.target.output_count - 1
                if self.target.slot != last_slot:
                    last_slot = self.target.slot
                    in_file = 0
                in_file += 1
                copies += 1
            start = end
        if copies == 0:
            return 0
        memset(&commit, 0, sizeof(PendingRecord))
        self.target.make_room(record_size(COMMIT_RECORD, 0))
        self.target.write(COMMIT_RECORD, tx.tx_id, &commit,
                          in_file if self.target.slot == last_slot else 0)
        # The file of the commit must outlive the files of the operations. In one file the pin
        # and its release cancel out.
        output = self.target.output_count - 1
        if output != first_output:
            self.pin_outputs(first_output, output)
        return 0

    cdef int pin_outputs(self, Py_ssize_t first, Py_ssize_t final) except -1 with gil:
        """The last of these new files holds the commit of a transaction in all of them."""
        cdef int32_t commit = self.target.outputs[final].slot, slot
        cdef FileCounts *counts
        cdef int result = 0
        for output in self.target.outputs[first:final + 1]:
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
        if self.pending.count == 0:
            return self.copy_updates()
        # Nothing is looked up or ended any more.
        self.pending.order_by_beginning()
        for i in range(self.pending.count):
            if not self.pending.transactions[i].is_used:
                continue
            pthread_mutex_lock(&self.buffer.lock)
            is_known = self.index.tx_is_open(self.pending.transactions[i].tx_id) \
                or id_map_get(&self.index.ended, self.pending.transactions[i].tx_id) >= 0
            pthread_mutex_unlock(&self.buffer.lock)
            # What the loader gave up without a trace cannot end any more.
            if is_known:
                self.copy_open(&self.pending.transactions[i])
        return self.copy_updates()

    cdef int copy_open(self, PendingTransaction *tx) except -1 nogil:
        """Copy all operations and prepares of a transaction that has no end here."""
        cdef size_t i
        cdef int64_t number = 0
        cdef int32_t in_file = 0, last_slot = -1
        cdef PendingRecord *record
        cdef CopiedOperation *copied
        if tx.is_invalid:
            self.target.fail(errno_EIO, "a prepare does not match its transaction")
        for i in range(tx.count):
            record = &tx.records[i]
            if record.type != PREPARE_RECORD and record.type != DELETE_RECORD_TX:
                self.target.split(record.compact_count)
            self.target.make_room(record_size(record.type, record.body_size))
            if self.target.slot != last_slot:
                last_slot = self.target.slot
                in_file = 0
            self.target.write(record.type, tx.tx_id, record, in_file)
            copied = self.relocations.new_operation()
            if copied == NULL:
                no_memory("no memory for a transaction")
            copied.tx_id = tx.tx_id
            copied.record_id = record.record_id
            copied.number = -1
            copied.file = self.target.slot
            copied.bytes = record_size(record.type, record.body_size)
            copied.type = record.type
            copied.replaceable = self.replaceable[record.user_type]
            if record.type != PREPARE_RECORD:
                copied.number = number
                number += 1
                in_file += 1
        return 0

    cdef int copy_updates(self) except -1 nogil:
        """Copy the last replaceable update of each record that is live still."""
        cdef bint[CHUNK] live
        cdef size_t start = 0, end, i
        cdef int64_t place
        cdef PendingRecord *record
        while start < self.pending.update_count:
            end = min(start + CHUNK, self.pending.update_count)
            pthread_mutex_lock(&self.buffer.lock)
            for i in range(start, end):
                place = self.index.place_of(self.pending.updates[i].record_id)
                live[i - start] = place >= 0 and \
                    self.index.files[self.index.records[place].file].compaction == LEAVES
            pthread_mutex_unlock(&self.buffer.lock)
            for i in range(start, end):
                record = &self.pending.updates[i]
                if live[i - start]:
                    self.target.split(record.compact_count)
                    self.target.make_room(record_size(record.type, record.body_size))
                    self.target.write(record.type, 0, record, 0)
                    self.note_copied(record)
            start = end
        return 0

    cdef int note_copied(self, const PendingRecord *record) except -1 nogil:
        cdef Copied *copied = self.relocations.new_copied()
        if copied == NULL:
            no_memory("no memory for a compaction")
        copied.record_id = record.record_id
        copied.file = self.target.slot
        copied.bytes = record_size(record.type, record.body_size)
        copied.type = record.type
        copied.replaceable = self.replaceable[record.user_type] and (
            record.type == UPDATE_RECORD or record.type == UPDATE_RECORD_TX)
        return 0

    # --- decide -------------------------------------------------------------------------------

    def abandon(self):
        """Undo copy(): remove what it wrote. The journal is as before."""
        self.target.remove()
        self.end_watch()

    def end_watch(self):
        """Have the index stop taking notes."""
        with nogil:
            pthread_mutex_lock(&self.buffer.lock)
            self.index.unwatch()
            pthread_mutex_unlock(&self.buffer.lock)

    def publish(self):
        """Tell the index where everything is now, and forget the old files.

        Raises:
            MemoryError: the index is of no use any more: the journal must end.
            JournalError: a bug: the index knows of something that was not copied.
        """
        cdef int32_t slot
        cdef int result
        with nogil:
            result = self.relocations.apply()
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


cdef int errno_EIO = errno.EIO
