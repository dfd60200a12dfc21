"""Load a journal: which records are live, which transactions are open, what is damaged.

    files, in the order of their ids
      |  scan, checksum           worker threads and the caller's, without the GIL, at most
      |                           `readahead` files ahead; each file through a small window, so
      v                           that its bytes are looked at while they are in the cache
    judge                         what of each file can be believed (judge.pyx)
      v
    apply                         in log order: the record index, open transactions, columns of
      |                           locators; no Python object a record
      v
    deliver                       reads live bodies again, where their files hold them (bodies.pyx),
                                  and hands out live records in batches

The order and rules are the reference's (JournalImpl.load). Adds and updates come out in log order,
those of a transaction at its commit; deletes are applied by id at the end, so an id is never
used twice. A commit or prepare claims how many operations of its transaction stand in its own
file; with another count the transaction is dropped, as damaged.

Where the reference gives up with an exception (a prepare that does not match, committed in a later
file) the transaction is dropped and reported. A transaction that lost a record of a file with
checksums is dropped whole. So is every one that is open at the end of a file in which records
vanished that nobody can name, since nothing counts its operations there. Known limit, with
damage="quarantine" only: a transaction whose every record in such a file vanished looks whole.

Memory: 40 bytes a live add or update, the index's share, a FileScan a file read ahead (80 bytes a
record of it), and a window a thread, no file as a whole.
"""

import array
import itertools
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport ENOMEM
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from journal.errors import Damage, JournalDamaged, JournalIOError, OptionError
from journal.format import header_block
from journal.reader import read_bytes
from journal.window import STEP_SIZE

from journal.bodies cimport BodyReader
from journal.format cimport (
    ADD_RECORD, ADD_RECORD_TX, CHECKSUM_NONE, CHECKSUM_OK, COMMIT_RECORD, DELETE_RECORD,
    DELETE_RECORD_TX, EVENT_RECORD, HEADER_SIZE, PREPARE_RECORD, ROLLBACK_RECORD,
    SCAN_RECORD, UPDATE_RECORD, UPDATE_RECORD_TX)
from journal.index cimport (
    NO_MEMORY, TX_ADD, TX_DELETE, TX_REPLACEABLE, TX_UPDATE, id_map_expect, id_map_free,
    id_map_get, id_map_init, id_map_pop, id_map_put)
from journal.judge cimport judge
from journal.reclaim cimport find_reclaimable
from journal.scan cimport DAMAGED, LIVE, NO_CLAIM, Item, scan_bytes
from journal.window cimport FileWindow

__all__ = [
    "DeletedRecord", "FailedTransaction", "FileShare", "LiveRecord", "LoadResult", "LoadedFile",
    "Loader", "PreparedTransaction", "RecordColumns",
]

cdef enum:
    PRUNE_COUNT = 1 << 20       # deletes after which dead locators are dropped
    RECORD_CHARGE = 23          # bytes beside the body that an add or update is charged
    TX_RECORD_CHARGE = 31
    EXPECT_AHEAD = 16           # records: some hundred nanoseconds, more than memory takes
    KEPT_OPERATIONS = 64        # room a closed transaction leaves to the next one

# Why a transaction was dropped.
cdef enum:
    DROPPED_COUNT = 0
    DROPPED_TAINTED = 1
    DROPPED_PREPARE = 2
    DROPPED_INVALID = 3

DROPPED = (
    "transaction {} lacks operations that its commit counts: dropped",
    "transaction {} lost an operation to damage: dropped as a whole",
    "prepared transaction {} lacks operations: it will not apply",
    "transaction {} was prepared without all its operations: its commit is dropped",
)
CHECKSUM_WORDS = ("none", "ok", "bad")
READAHEAD = 8                   # files: some 80 bytes a record of each
BATCH_RECORDS = 1024
COLUMN_RECORDS = 65536
BATCH_BYTES = 8 << 20           # bodies in one batch, unless a single one is larger
COLUMN_BYTES = 1 << 20          # the same of columns: a block that stays in the cache


@cython.freelist(1024)
@cython.no_gc       # Holds no containers, so that it can never be part of a cycle.
cdef class LiveRecord:
    """An add or update that counts.

    Attributes:
        record_id, user_type (0 … 255), compact_count: as written.
        is_update: of an earlier add.
        body: bytes.
        file, offset: where its type byte stands.
        checksum: "ok", or "none" where the record has no leader.
    """

    cdef readonly int64_t record_id
    cdef readonly int user_type
    cdef readonly bint is_update
    cdef readonly int compact_count
    cdef readonly object body
    cdef readonly str file
    cdef readonly uint64_t offset
    cdef readonly str checksum

    @property
    def kind(self):
        """Which: add, or update."""
        return "update" if self.is_update else "add"

    def __repr__(self):
        return (f"<{self.kind} {self.record_id} user_type={self.user_type} {len(self.body)} bytes"
                f" at {self.file}:{self.offset}>")


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Adds and updates that count, in log order, column by column; each one a buffer.

    Attributes:
        record_ids: 64-bit integers.
        user_types: a byte each.
        updates: a byte each, 1 for an update of an earlier add.
        offsets: 32-bit integers, one more than there are records; the body of record i is
            bodies[offsets[i]:offsets[i + 1]].
        bodies: all bodies, one behind the other.
    """

    record_ids: array.array
    user_types: bytearray
    updates: bytearray
    offsets: array.array
    bodies: bytes

    def __len__(self):
        """Number of records."""
        return len(self.record_ids)


@dataclass(frozen=True, slots=True)
class DeletedRecord:
    """A delete within a transaction; the reference lets it carry a body."""

    record_id: int
    body: bytes


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """Prepared and undecided: applies once it is committed.

    Attributes:
        tx_id: of the transaction.
        extra: what the caller gave to prepare.
        records: adds and updates, in order.
        deletes: in order.
    """

    tx_id: int
    extra: bytes
    records: tuple
    deletes: tuple


@dataclass(frozen=True, slots=True)
class FailedTransaction:
    """Left open, or damaged: will not apply, and needs a rollback record."""

    tx_id: int
    records: tuple
    deletes: tuple


@dataclass(slots=True)
class LoadedFile:
    """One file, as the running journal takes it over.

    Attributes:
        slot: in the record index.
        name, file_id, number, size: as in the folder.
        has_data: holds, or held, more than events; never to be used again while it pins anything.
        last_data_position: end of the last live record; there the reference appends.
        append_position: end of the last live record or mark.
        next_ordinal: of the next record with a leader.
        synced_count: by the last mark.
        is_ended: an end mark closes it.
        is_closed: the reference went on behind a torn tail of ours; never append to it.
        has_checksums: it was, at least in part, written with leaders.
        torn_offset, torn_size: the torn tail, to be kept elsewhere and zeroed before any append;
            size 0 where there is none.
        record_count, checksum_count: live records of any kind, and those with a good leader.
    """

    slot: int
    name: str
    path: object
    file_id: int
    number: int
    size: int
    has_data: bool
    last_data_position: int
    append_position: int
    next_ordinal: int
    synced_count: int
    is_ended: bool
    is_closed: bool
    has_checksums: bool
    torn_offset: int
    torn_size: int
    record_count: int
    checksum_count: int


@dataclass(frozen=True, slots=True)
class FileShare:
    """What of a file is still needed, as the record index counts it.

    Attributes:
        live_bytes: of adds and updates that are live.
        add_count, replaceable_count: what compaction's rules count; never less than live.
        is_reclaimable: nothing in it is needed, it waits to be used again.
    """

    live_bytes: int
    add_count: int
    replaceable_count: int
    is_reclaimable: bool


@dataclass(slots=True)
class LoadResult:
    """What a load found.

    Attributes:
        files: in the order of their ids; short ones left out.
        short_files: names of files without a whole header, which the reference deletes.
        record_count: live records.
        max_id: largest record id of any add or update seen, -1 if none.
        last_file_id: the largest in any header or name; the next file gets the one after it.
        delivered_count: live adds and updates that deliver() gives.
        prepared, failed: open transactions, in the order they began.
        damages: in the order of files and offsets, torn tails included.
        torn: those of them that were never acknowledged.
    """

    files: list = field(default_factory=list)
    short_files: list = field(default_factory=list)
    record_count: int = 0
    max_id: int = -1
    last_file_id: int = 0
    delivered_count: int = 0
    prepared: list = field(default_factory=list)
    failed: list = field(default_factory=list)
    damages: list = field(default_factory=list)

    @property
    def torn(self):
        """Damage beyond what was ever acknowledged."""
        return [damage for damage in self.damages if damage.torn]


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


cdef inline bint is_tx_record(const Record *record) noexcept nogil:
    return ADD_RECORD_TX <= record.type <= DELETE_RECORD_TX or record.type >= PREPARE_RECORD


cdef class Loader:
    """Loads once; then delivers the live records, as often as wanted.

    Args:
        files: journal files in the order of their ids, from journal.folder.list_files or the plan
            of journal.recovery.plan_recovery.
        index: an empty RecordIndex, which the running journal goes on with.
        user_version: what every header must say.
        damage: "fail" raises on damage of acknowledged data with checksums; "quarantine" goes on
            without the records concerned. Holes in files without checksums never stop a load, since
            the reference tolerates them; they are reported.
        replaceable: user types whose updates replace one another.
        readahead: files read and scanned ahead of the one that is applied.
        prune_count: deletes after which dead records are dropped while loading.
        step_size: bytes of a file that are read, then scanned, at once.
        progress: called after each file with files done, files in all, bytes done, bytes in all.

    Threads: one caller at a time.
    """

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
        self.prune_count = prune_count
        self.step_size = step_size
        self.loaded = []
        self.found = []
        self.without_add = []
        self.dropped = []
        self.max_id = -1
        self.holder_unused = -1
        for user_type in replaceable:
            self.replaceable[<uint8_t>user_type] = True

    def __cinit__(self, *args, **kwargs):
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

    # --- load ----------------------------------------------------------------------------------

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
        result = LoadResult()
        result.short_files = [file.name for file in self.files if file.is_short]
        for file in self.files:
            if not file.is_short:
                result.last_file_id = max(result.last_file_id, file.file_id, file.number)
        self.files = [file for file in self.files if not file.is_short]
        claims = []
        sealed = set()
        for number, (file, scan) in enumerate(self._scans()):
            self._apply_file(file, scan, number)
            if scan.header_claim != NO_CLAIM:
                claims.append((number, scan))
            if scan.header.checksum != CHECKSUM_NONE:
                sealed.add(file.name)
            scan = None
        for record_id in self.without_add:
            self.index.forget_partial(record_id)
        self._check_headers(claims)
        self._check_ids(sealed)
        with nogil:
            self.prune()
        result.files = list(self.loaded)
        result.record_count = len(self.index)
        result.max_id = self.max_id
        result.delivered_count = self.live.count
        result.damages = [damage for damage, _ in self.found]
        fatal = [damage for damage, is_fatal in self.found if is_fatal]
        if fatal and self.damage == "fail":
            raise JournalDamaged(fatal)
        self._report_open(result)
        return result

    def _scans(self):
        """(file, judged FileScan) in the order of ids, reading ahead."""
        cdef FileScan scan
        total = sum(file.size for file in self.files)
        done = 0
        windows = deque()
        # Its threads start with the first submit, so that a small folder costs none.
        with ThreadPoolExecutor(self._thread_count(), "journal-load") as pool:
            ahead = deque()
            following = 0
            newest = -1
            known = {}
            try:
                for number, file in enumerate(self.files):
                    while following < len(self.files) and len(ahead) < self.readahead:
                        if following in known:
                            ahead.append(known.pop(following))
                        else:
                            ahead.append(pool.submit(self._scan, self.files[following], windows))
                        following += 1
                    if newest < 0:
                        newest, known = self._find_newest(ahead, windows)
                    self._help(ahead, number, windows)
                    first = ahead.popleft()
                    scan = first if isinstance(first, FileScan) else first.result()
                    first = None
                    judge(scan, number >= newest)
                    yield file, scan
                    done += file.size
                    if self.progress is not None:
                        self.progress(number + 1, len(self.files), done, total)
            finally:
                for future in ahead:
                    if not isinstance(future, FileScan):
                        future.cancel()

    def _scan(self, file, windows):
        """Read and scan one file, through a window that is free or a new one; on any thread."""
        try:
            window = windows.pop()
        except IndexError:
            window = FileWindow(self.step_size)
        scan = window.read(file.path, lambda window: scan_window(file, self.user_version, window))
        windows.append(window)
        return scan

    def _help(self, ahead, number, windows):
        """Scan what no thread has begun, as long as the first file ahead is not done."""
        for place, future in enumerate(ahead):
            first = ahead[0]
            if isinstance(first, FileScan) or first.done():
                return
            if not isinstance(future, FileScan) and future.cancel():
                ahead[place] = self._scan(self.files[number + place], windows)

    def _thread_count(self):
        # The caller's thread scans too.
        return max(1, min(self.readahead, len(os.sched_getaffinity(0)) - 1))

    def _find_newest(self, ahead, windows):
        """Index of the newest file with data, and the scans that finding it took.

        Args:
            ahead: scans of the first files, done or not.
        """
        cdef FileScan scan
        known = {}
        for number in range(len(self.files) - 1, -1, -1):
            if number < len(ahead):
                scan = ahead[number].result()
            else:
                scan = self._scan(self.files[number], windows)
                known[number] = scan
            if scan.has_data():
                return number, known
        return 0, known

    def _apply_file(self, file, FileScan scan, int32_t number):
        cdef int32_t slot
        cdef int failed
        cdef size_t i
        cdef uint64_t records = 0, sums = 0
        self.found += scan.found
        slot = self.index.file_new(scan.header.file_id)
        if slot < 0:
            raise MemoryError
        self.file_has_data = scan.breaks_off() or (scan.has_leaders and bool(scan.found))
        with nogil:
            failed = self.apply(scan, number, slot)
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
        if records > sums:
            self.unmarked_max_id = max(self.unmarked_max_id, scan.header.file_id)
        if sums and scan.header.checksum == CHECKSUM_OK:
            self.checked_max_id = max(self.checked_max_id, scan.header.file_id)
        for offset, size, tx_id, what in self.dropped:
            self.found.append((Damage(file.name, offset, size, DROPPED[what].format(tx_id)), False))
        self.dropped.clear()
        self.loaded.append(LoadedFile(
            slot, file.name, file.path, scan.header.file_id, file.number, scan.size,
            bool(self.file_has_data), scan.last_data_position, scan.append_position,
            scan.next_ordinal, scan.marked, bool(scan.is_ended), bool(scan.is_closed),
            bool(scan.has_leaders),
            scan.torn_offset, scan.torn_size, records, sums))

    def _check_headers(self, scans):
        """Headers disowned by their leader in favour of another id that the file's records carry.

        The reference leaves just that when it uses one of our files again, since it writes 16 bytes
        only; else the header is damaged. docs/decisions/0008 says how the two are told apart.
        """
        cdef FileScan scan
        for number, scan in scans:
            if scan.header_claim in (NO_CLAIM, scan.header.file_id) or scan.record_count \
                    or self._is_used_again(number, scan):
                continue
            self.found.append((Damage(
                scan.name, 0, HEADER_SIZE,
                f"header damaged: it says file id {scan.header.file_id}, its checksum and the"
                f" records say {scan.header_claim}"), True))

    def _is_used_again(self, number, FileScan scan):
        """Whether the reference gave the file its id, or reading it under the old one is the same.

        A new id is above every other one of its day. Where the reference wrote last, it freed
        the file too: our next load gives its free files headers of ours.
        """
        file_id = scan.header.file_id
        if file_id < scan.header_claim or file_id <= self.checked_max_id \
                or sum(file.file_id == file_id for file in self.loaded) > 1:
            return False
        return self.unmarked_max_id >= max(1, self.checked_max_id) \
            or self._would_change_nothing(number, scan.header_claim)

    def _would_change_nothing(self, number, int64_t file_id):
        """Whether all that was loaded stays the same with this file read under `file_id`.

        Ids are never used twice: an add or update is gone if any file deletes its id.
        """
        cdef FileScan scan
        cdef const Record *record
        cdef size_t i
        file = self.loaded[number]
        data = bytearray(read_bytes(file.path))
        data[:HEADER_SIZE] = header_block(file_id, self.user_version, leader=False)
        scan = scan_bytes(file.name, data, self.user_version)
        judge(scan, False)
        if any(is_fatal for _, is_fatal in scan.found):
            return False
        deleted = set()
        outcomes = {scan.items[i].record.tx_id: scan.items[i].record.type for i in range(scan.count)
                    if scan.items[i].what == SCAN_RECORD
                    and scan.items[i].record.type in (COMMIT_RECORD, ROLLBACK_RECORD)}
        for i in range(scan.count):
            record = &scan.items[i].record
            if scan.items[i].what != SCAN_RECORD:
                continue
            if is_tx_record(record) and self.holder(record.tx_id) != NULL:
                return False
            if record.type == PREPARE_RECORD and record.tx_id not in outcomes:
                return False
            if record.type == DELETE_RECORD or record.type == DELETE_RECORD_TX:
                if self.index.contains(record.record_id):
                    return False
                if record.type == DELETE_RECORD or outcomes.get(record.tx_id) == COMMIT_RECORD:
                    deleted.add(record.record_id)
        for i in range(scan.count):
            record = &scan.items[i].record
            if scan.items[i].what == SCAN_RECORD and ADD_RECORD <= record.type <= UPDATE_RECORD_TX \
                    and record.record_id not in deleted \
                    and id_map_get(&self.deleted, record.record_id) < 0 \
                    and not (is_tx_record(record)
                             and outcomes.get(record.tx_id) == ROLLBACK_RECORD):
                return False
        return True

    def _check_ids(self, sealed):
        """No two files have one id: a header that was overwritten with another's hides a file."""
        for older, newer in itertools.pairwise(self.loaded):
            if older.file_id == newer.file_id and sealed & {older.name, newer.name}:
                self.found.append((Damage(
                    newer.name, 0, HEADER_SIZE,
                    f"header damaged: it says file id {newer.file_id}, as {older.name} does"),
                    True))

    # --- apply: one file's records, in order ---------------------------------------------------

    cdef int apply(self, FileScan scan, int32_t file, int32_t slot) noexcept nogil:
        cdef size_t i
        cdef Item *item
        for i in range(scan.count):
            # Ids in an order of their own miss the cache with every look into the index.
            if i + EXPECT_AHEAD < scan.count:
                self.index.expect(scan.items[i + EXPECT_AHEAD].record.record_id)
                item = &scan.items[i + EXPECT_AHEAD // 2]
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
            if i + EXPECT_AHEAD < self.live.count:
                id_map_expect(&self.deleted, self.live.first[i + EXPECT_AHEAD].record_id)
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

    def _report_open(self, result):
        """Prepared and failed transactions, with the bodies of their records."""
        cdef uint32_t i
        cdef size_t j
        cdef Holder *holder
        cdef Locator *locator
        order = sorted((self.holders[i].sequence, i) for i in range(self.holder_count)
                       if self.holders[i].is_used)
        with BodyReader(self.loaded) as bodies:
            for _, i in order:
                holder = &self.holders[i]
                records = []
                deletes = []
                for j in range(holder.operations.count):
                    locator = &holder.operations.first[j]
                    body = read_body(bodies, locator)
                    if locator.type == DELETE_RECORD_TX:
                        deletes.append(DeletedRecord(locator.record_id, body))
                    else:
                        records.append(live_record(self.loaded[locator.file].name, locator, body))
                if holder.is_prepared and not holder.is_invalid \
                        and id_map_get(&self.tainted, holder.tx_id) < 0:
                    result.prepared.append(PreparedTransaction(
                        holder.tx_id, read_body(bodies, &holder.extra), tuple(records),
                        tuple(deletes)))
                else:
                    result.failed.append(FailedTransaction(
                        holder.tx_id, tuple(records), tuple(deletes)))

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
        return sorted({self.live.first[i].record_id for i in range(self.live.count)
                       if self.live.first[i].type in (ADD_RECORD, ADD_RECORD_TX)})

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
        cdef size_t i, size = 0, limit = batch_records
        cdef Locator *locator
        cdef int32_t current = -1
        cdef str name = None
        cdef list batch = []
        cdef BodyReader bodies
        with BodyReader(self.loaded) as bodies:
            for i in range(self.live.count):
                locator = &self.live.first[i]
                if locator.file != current:
                    current = locator.file
                    name = self.loaded[current].name
                batch.append(live_record(name, locator, read_body(bodies, locator)))
                size += locator.body_size
                if <size_t>len(batch) >= limit or size >= <size_t>BATCH_BYTES:
                    on_batch(batch)
                    batch = []
                    size = 0
        if batch:
            on_batch(batch)
        return self.live.count

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
        cdef size_t first = 0, last, i, size
        cdef Locator *locator
        cdef int64_t[::1] ids
        cdef uint8_t[::1] user_types, updates
        cdef int32_t[::1] offsets
        cdef bytes block
        cdef char *out
        cdef BodyReader bodies
        with BodyReader(self.loaded) as bodies:
            while first < self.live.count:
                last, size = first, 0
                while last < self.live.count and last - first < <size_t>batch_records and (
                        size == 0
                        or size + self.live.first[last].body_size <= <size_t>COLUMN_BYTES):
                    size += self.live.first[last].body_size
                    last += 1
                columns = RecordColumns(
                    array.array("q", bytes(8 * (last - first))), bytearray(last - first),
                    bytearray(last - first), array.array("i", bytes(4 * (last - first + 1))),
                    PyBytes_FromStringAndSize(NULL, size))
                ids, user_types, updates, offsets, block = (
                    columns.record_ids, columns.user_types, columns.updates, columns.offsets,
                    columns.bodies)
                out = PyBytes_AS_STRING(block)      # Nobody else knows these bytes yet.
                size = 0
                for i in range(first, last):
                    locator = &self.live.first[i]
                    ids[i - first] = locator.record_id
                    user_types[i - first] = locator.user_type
                    updates[i - first] = is_update(locator)
                    memcpy(out + size,
                           bodies.get(locator.file, locator.body_offset, locator.body_size),
                           locator.body_size)
                    size += locator.body_size
                    offsets[i - first + 1] = <int32_t>size
                ids, user_types, updates, offsets = None, None, None, None
                on_batch(columns)
                first = last
        return self.live.count

    def records(self):
        """The live adds and updates in log order, bodies copied; for small uses.

        Raises:
            JournalIOError: a file cannot be read again, or has changed since it was loaded.
        """
        cdef size_t i
        cdef BodyReader bodies
        with BodyReader(self.loaded) as bodies:
            for i in range(self.live.count):
                yield live_record(self.loaded[self.live.first[i].file].name, &self.live.first[i],
                                  read_body(bodies, &self.live.first[i]))


def scan_window(file, int32_t user_version, FileWindow window not None):
    """Scan the file that `window` is open on."""
    cdef FileScan scan = FileScan(file.name, user_version)
    cdef int failed
    with nogil:
        failed = scan.scan_file(window)
    if failed == -ENOMEM:
        raise MemoryError
    if failed:
        raise JournalIOError(-failed, "cannot read", os.fspath(file.path))
    return scan


cdef inline bint is_update(const Locator *locator) noexcept nogil:
    return locator.type == UPDATE_RECORD or locator.type == UPDATE_RECORD_TX


cdef LiveRecord live_record(str name, const Locator *locator, object body):
    cdef LiveRecord record = LiveRecord.__new__(LiveRecord)
    record.record_id = locator.record_id
    record.user_type = locator.user_type
    record.is_update = is_update(locator)
    record.compact_count = locator.compact_count
    record.body = body
    record.file = name
    record.offset = locator.body_offset - locator.head_size
    record.checksum = CHECKSUM_WORDS[locator.checksum]
    return record


cdef bytes read_body(BodyReader bodies, const Locator *locator):
    return PyBytes_FromStringAndSize(
        <const char *>bodies.get(locator.file, locator.body_offset, locator.body_size),
        locator.body_size)
