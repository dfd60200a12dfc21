"""Load a journal: which records are live, which transactions are open, what is damaged.

    files, in the order of their ids
      |  scan, checksum           worker threads and the caller's, without the GIL, at most
      |                           `readahead` files ahead; each file through a small window, so
      v                           that its bytes are looked at while they are in the cache
    validate                      what of each file can be believed (validation.pyx)
      v
    apply                         in log order: the record index, open transactions, columns of
      |                           locators; no Python object a record (replay.pyx)
      v
    deliver                       reads live bodies again, where their files hold them (bodies.pyx),
                                  and hands out live records in batches (delivery.pyx)

Memory: what replay.pyx and scan_ahead.pyx name; no file as a whole.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc

from journal.delivery import (
    LiveCursor, deliver_columns, deliver_records, live_records, open_transactions)
from journal.errors import Damage, JournalDamaged, OptionError
from journal.loaded import FileShare, LoadedFile, LoadResult
from journal.scan_ahead import ScanAhead
from journal.window import STEP_SIZE

from journal.format cimport ADD_RECORD, ADD_RECORD_TX, CHECKSUM_NONE, SCAN_RECORD
from journal.header_check cimport HeaderCheck
from journal.index cimport RecordIndex
from journal.reclaim cimport find_reclaimable
from journal.replay cimport Replay
from journal.scan cimport LIVE, FileScan

__all__ = ["Loader"]

PRUNE_COUNT = 1 << 20           # deletes after which dead locators are dropped
READAHEAD = 8                   # files: some 80 bytes a record of each
BATCH_RECORDS = 1024
COLUMN_RECORDS = 65536
# By the Dropped of replay.pxd.
DROPPED = (
    "transaction {} lacks operations that its commit counts: dropped",
    "transaction {} lost an operation to damage: dropped as a whole",
    "prepared transaction {} lacks operations: it will not apply",
    "transaction {} was prepared without all its operations: its commit is dropped",
)


cdef class Loader:
    """Loads once; then delivers the live records, as often as wanted.

    Args:
        files: journal files in the order of their ids, from journal.folder.list_files or the plan
            of journal.compaction_recovery.plan_recovery.
        index: an empty RecordIndex, which the running journal goes on with.
        user_version: what every header must say.
        damage: "fail" raises on damage of acknowledged data with checksums; "quarantine" goes on
            without the records concerned. Holes in files without checksums never stop a load, since
            Artemis tolerates them; they are reported.
        replaceable: user types whose updates replace one another.
        readahead: files read and scanned ahead of the one that is applied.
        prune_count: deletes after which dead records are dropped while loading.
        step_size: bytes of a file that are read, then scanned, at once.
        progress: called after each file with files done, files in all, bytes done, bytes in all.

    Threads: one caller at a time.
    """

    # Settings.
    cdef readonly list files
    cdef readonly RecordIndex index
    cdef readonly int32_t user_version
    cdef readonly str damage
    cdef int readahead
    cdef int64_t step_size
    cdef object progress
    # State.
    cdef Replay replay
    cdef list loaded            # LoadedFile, in the order of their ids
    cdef list found             # (Damage, bool: acknowledged data of ours is concerned), in order

    def __init__(self, files, RecordIndex index not None, *, int32_t user_version=0,
                 str damage="fail", replaceable=(), int readahead=READAHEAD, progress=None,
                 int64_t prune_count=PRUNE_COUNT, int64_t step_size=STEP_SIZE):
        if damage not in ("fail", "quarantine"):
            raise OptionError(f"damage={damage!r}: must be 'fail' or 'quarantine'")
        if not 1 <= readahead <= 64:
            raise OptionError(f"readahead={readahead}: must be 1 to 64 files")
        self.files = list(files)
        self.index = index
        self.user_version = user_version
        self.damage = damage
        self.readahead = readahead
        self.progress = progress
        self.step_size = step_size
        self.loaded = []
        self.found = []
        self.replay = Replay(index, replaceable, prune_count)

    def load(self):
        """Read everything and fill the index.

        Returns:
            LoadResult.

        Raises:
            JournalDamaged: with damage="fail", when acknowledged data of ours cannot be read back.
            UnsupportedFormat: a foreign format or user version.
            JournalIOError: a file cannot be read.
        """
        cdef FileScan scan
        cdef HeaderCheck headers
        result = LoadResult()
        result.short_files = [file.name for file in self.files if file.is_short]
        for file in self.files:
            if not file.is_short:
                result.last_file_id = max(result.last_file_id, file.file_id, file.number)
        self.files = [file for file in self.files if not file.is_short]
        headers = HeaderCheck(self.replay, self.loaded, self.user_version)
        scans = ScanAhead(self.files, self.user_version, self.readahead, self.step_size,
                          self.progress)
        for number, (file, scan) in enumerate(scans):
            self.apply_file(file, scan, number, headers)
            scan = None
        self.replay.finish()
        self.found += headers.damages()
        result.files = list(self.loaded)
        result.record_count = len(self.index)
        result.max_id = self.replay.max_id
        result.delivered_count = self.replay.live.count
        result.damages = [damage for damage, _ in self.found]
        fatal = [damage for damage, is_fatal in self.found if is_fatal]
        if fatal and self.damage == "fail":
            raise JournalDamaged(fatal)
        result.prepared, result.failed = open_transactions(self.replay, self.loaded)
        return result

    cdef int apply_file(self, file, FileScan scan, int32_t number,
                        HeaderCheck headers) except -1:
        cdef int32_t slot
        cdef int failed
        cdef size_t i
        cdef uint64_t records = 0, sums = 0
        self.found += scan.found
        slot = self.index.file_new(scan.header.file_id)
        if slot < 0:
            raise MemoryError
        self.replay.file_has_data = scan.breaks_off() or (scan.has_leaders and bool(scan.found))
        with nogil:
            failed = self.replay.apply(scan, number, slot)
            if scan.is_sound:
                records = scan.record_count
                sums = records if scan.has_leaders else 0
            for i in range(0 if scan.is_sound else scan.count):
                if scan.items[i].what == SCAN_RECORD and scan.items[i].verdict == LIVE:
                    records += 1
                    if scan.items[i].record.checksum != CHECKSUM_NONE:
                        sums += 1
        if failed:
            raise MemoryError
        headers.note(number, scan, records, sums)
        for offset, size, tx_id, what in self.replay.dropped:
            self.found.append((Damage(file.name, offset, size, DROPPED[what].format(tx_id)), False))
        self.replay.dropped.clear()
        self.loaded.append(LoadedFile(
            slot, file.name, file.path, scan.header.file_id, file.number, scan.size,
            bool(self.replay.file_has_data), scan.last_data_position, scan.append_position,
            scan.next_ordinal, scan.marked, bool(scan.is_ended), bool(scan.is_closed),
            bool(scan.has_leaders),
            scan.torn_offset, scan.torn_size, records, sums))
        return 0

    # --- what the index says -------------------------------------------------------------------

    def shares(self):
        """A FileShare for each loaded file, in order. The newest file with data is never free."""
        cdef int32_t i, count = 0, found_count
        cdef int32_t *slots
        data = [number for number, file in enumerate(self.loaded) if file.has_data]
        data = data[:max(0, len(data) - 1)]
        slots = <int32_t *>realloc(NULL, (2 * len(data) + 1) * sizeof(int32_t))
        if slots == NULL:
            raise MemoryError
        try:
            for number in data:
                slots[count] = self.loaded[number].slot
                count += 1
            found_count = find_reclaimable(self.index, slots, count, slots + count)
            free_places = {data[slots[count + i]] for i in range(found_count)}
        finally:
            free(slots)
        return [
            FileShare(self.index.files[<int32_t>file.slot].live_bytes,
                      self.index.files[<int32_t>file.slot].add_count,
                      self.index.files[<int32_t>file.slot].replaceable_count,
                      number in free_places)
            for number, file in enumerate(self.loaded)
        ]

    def add_ids(self):
        """The ids of live adds, ascending."""
        cdef size_t i
        return sorted({self.replay.live.first[i].record_id for i in range(self.replay.live.count)
                       if self.replay.live.first[i].type in (ADD_RECORD, ADD_RECORD_TX)})

    # --- deliver -------------------------------------------------------------------------------

    def deliver(self, on_batch, *, batch_records=BATCH_RECORDS):
        """Hand out the live adds and updates in log order.

        Args:
            on_batch: called with a list of LiveRecord, at least one.
            batch_records: at most so many at once; fewer where their bodies reach 8 MiB.

        Returns:
            How many records there were.

        Raises:
            JournalIOError: a file cannot be read again, or has changed since it was loaded.
        """
        return deliver_records(self.replay, self.loaded, on_batch, batch_records)

    def deliver_columns(self, on_batch, *, batch_records=COLUMN_RECORDS):
        """Hand out the live adds and updates in log order, as columns: no object a record.

        Args:
            on_batch: called with RecordColumns of at least one record.
            batch_records: at most so many at once; fewer where their bodies reach 1 MiB.

        Returns:
            How many records there were.

        Raises:
            JournalIOError: a file cannot be read again, or has changed since it was loaded.
        """
        return deliver_columns(self.replay, self.loaded, on_batch, batch_records)

    def records(self):
        """The live adds and updates in log order, bodies copied; for small uses.

        Raises:
            JournalIOError: a file cannot be read again, or has changed since it was loaded.
        """
        return live_records(self.replay, self.loaded)

    def cursor(self, user_types):
        """Give a LiveCursor over the live adds and updates of these user types, 0 ... 255.

        For compiled callers, who read each body where the file's window has it.
        """
        return LiveCursor(self.replay, self.loaded, user_types)
