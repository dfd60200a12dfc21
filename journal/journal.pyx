"""The journal: records appended, made durable together, found again, and their files reused.

    add, update, delete ... ─▶ put() ─▶ GroupBuffer ─▶ flusher thread ─▶ file
                                 │                         │
                            RecordIndex              tickets, eventfd ─▶ wait(), durable(), reap()
                                 │
                  files thread: opens ahead, closes, reclaims, starts compaction

Life: Journal(options) ─ open() ─ load() ─ appends ─ close(). A failed write or sync ends it: every
waiter gets JournalIOError, later calls JournalClosed with that as the cause.

Threads: any number may append and wait. The journal has two threads of its own, the flusher
(native, never takes the GIL) and the files thread. docs/threads.md has the lock order.
"""

import errno
import logging
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from libc.errno cimport ENOMEM
from libc.stdlib cimport free, malloc
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE

from journal.buffer cimport (
    FAILED, NEED_ROOM, RESERVED, pthread_mutex_lock, pthread_mutex_unlock)
from journal.completion cimport CompletionQueue
from journal.format cimport (
    ADD_RECORD, ADD_RECORD_TX, COMMIT_RECORD, DELETE_RECORD, DELETE_RECORD_TX, EVENT_RECORD,
    HEADER_SIZE, LEADER_SIZE, PREPARE_RECORD, ROLLBACK_RECORD, UPDATE_RECORD, UPDATE_RECORD_TX,
    encode_leader, encode_record, record_size)
from journal.index cimport TX_ADD, TX_DELETE, TX_REPLACEABLE, TX_UPDATE
from journal.compact cimport Compactor
from journal.index cimport LEAVES, FileCounts
from journal.reclaim cimport find_reclaimable

from journal.compact import CompactionStopped, NothingGained, OldFile
from journal.errors import (
    DuplicateRecord, JournalClosed, JournalError, JournalIOError, OptionError, RecordTooLarge,
    TransactionFailed,
    UnknownRecord, UnknownTransaction, WrongState, WrongUse)
from journal.files.base import Folder
from journal.files.choose import choose_back_end
from journal.folder import JournalName, list_files
from journal.loader import Loader
from journal.lock import acquire_folder_lock
from journal.options import JournalOptions
from journal.pool import FilePool
from journal.retention import History, restore_names
from journal.recovery import apply_recovery, plan_recovery

log = logging.getLogger("journal")

cdef enum:
    AHEAD_MAX = 8               # files opened ahead at most; one is the reference's, and the rule
    BATCH_CHUNK = 64            # records put under one hold of the lock

cdef enum:
    UPDATE_FACTOR = 10          # replaceable updates an add that make a compaction worth it

cdef double LOOK_AGAIN_S = 0.02
cdef double NO_SPACE_RETRY_S = 1.0

# Why put() refuses, before anything has changed.
cdef enum:
    ACCEPTED = 0
    DUPLICATE = 1
    UNKNOWN = 2
    UNKNOWN_TX = 3


cdef class DataFile:
    """One file that holds, or is about to hold, records; `number` is the one in its name."""

    def __cinit__(self, str name, int64_t number, int64_t file_id, int32_t slot):
        self.name = name
        self.opened.fd = -1
        self.opened.number = number
        self.opened.file_id = file_id
        self.opened.slot = slot

    @property
    def number(self):
        """The number in the file's name."""
        return self.opened.number

    @property
    def file_id(self):
        """The id in the file's header, which orders the files."""
        return self.opened.file_id

    def __repr__(self):
        return f"<DataFile {self.name} id {self.opened.file_id}>"


class FileCount(NamedTuple):
    """What pins one data file.

    Attributes:
        name, file_id: of the file.
        positives: adds, updates and transactions in it, dead ones included.
        live_bytes: of records in it that are live.
        negatives: how many positives of which file, by id, the records in this one release.
    """

    name: str
    file_id: int
    positives: int
    live_bytes: int
    negatives: dict[int, int]


class RecoveryFolder:
    """What recovery does to a folder, through the same calls as all else (recovery.py)."""

    def __init__(self, folder):
        self.folder = folder

    def delete(self, name):
        """Delete a file; one that is not there is no error."""
        try:
            self.folder.unlink(name)
        except JournalIOError as error:
            if error.errno != errno.ENOENT:
                raise

    def rename(self, source, target):
        """Rename a file, replacing `target`."""
        self.folder.rename(source, target)

    def sync(self):
        """Make all deletes and renames before this durable."""
        self.folder.sync()


cdef class Journal:
    """A journal in the reference's file format; see the module's text and journal.api.

    Args:
        options: how it is kept; journal.options.JournalOptions.
    """

    def __cinit__(self, options):
        if not isinstance(options, JournalOptions):
            raise TypeError("a Journal is made of JournalOptions")
        self.options = options
        self.state = "new"
        self.data_files = []
        self.ready = deque()
        self.failed_txs = set()
        self.files_wake = threading.Event()
        self.file_ready = threading.Condition()
        self.reclaim_lock = threading.Lock()
        self.compact_lock = threading.Lock()
        self.uncopied = deque()
        self.ahead = 1
        self.leaders = options.checksums
        self.sync_transactional = options.sync_transactional
        self.sync_non_transactional = options.sync_non_transactional
        for user_type in options.replaceable_types:
            self.replaceable[<uint8_t>(user_type & 0xFF)] = True

    # --- life ---------------------------------------------------------------------------------

    def open(self):
        """Take the folder: make it if need be, lock it, choose the back end.

        Raises:
            JournalLocked: another process has it.
            JournalIOError: it cannot be made, opened or probed.
            WrongState: not new.
        """
        if self.state != "new":
            raise WrongState(f"cannot open a journal that is {self.state}")
        options = self.options
        if options.create_directory:
            try:
                options.directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise JournalIOError(error.errno or 0, "cannot make the directory",
                                     str(options.directory)) from error
        self.folder = Folder(options.directory)
        try:
            acquire_folder_lock(self.folder, options.lock_acquisition_timeout_ms)
            self.back_end = choose_back_end(self.folder, options)
        except BaseException:
            self.folder.close()
            raise
        file_size = options.corrected_file_size(self.back_end.alignment)
        if file_size != options.file_size:
            log.warning("journal-file-size %d is not a multiple of the block size %d: %d is used",
                        options.file_size, self.back_end.alignment, file_size)
        self.pool = FilePool(self.folder, options, self.back_end, file_size)
        self.state = "open"

    def load(self, on_batch=None, *, progress=None):
        """Read everything back, then accept appends.

        Args:
            on_batch: called with each batch of live records, in log order.
            progress: called as progress(files_done, files_total, bytes_done, bytes_total).

        Raises:
            JournalDamaged: acknowledged data is damaged and options.damage is "fail".
            UnsupportedFormat: a file of another format or user version.
            JournalIOError: the disk fails.
            WrongState: not open, or loaded already.
        """
        if self.state != "open":
            raise WrongState(f"cannot load a journal that is {self.state}")
        options = self.options
        name = JournalName(options.prefix, options.extension)
        # First of all: a name that recovery is going to delete must not come back after it.
        uncopied = self.open_history(name)
        plan = plan_recovery(options.directory, name)
        if plan.is_needed:
            log.warning("%s: %s", options.directory, plan.describe())
            apply_recovery(plan, RecoveryFolder(self.folder))
        self.index = RecordIndex()
        loader = Loader(
            list_files(options.directory, name), self.index, user_version=options.user_version,
            damage=options.damage, replaceable=options.replaceable_types, progress=progress)
        result = loader.load()
        self.sync_loaded(result)
        for damage in result.damages:
            log.warning("%s%s", damage, " (never acknowledged)" if damage.torn else "")
        if on_batch is not None:
            loader.deliver(on_batch)
        try:
            current = self.take_over(result)
            self.hold_uncopied(uncopied)
            self.start(current)
            self.copy_uncopied()
            self.next_tx_id = max(
                [result.max_id] + [tx.tx_id for tx in result.prepared + result.failed])
            for tx in result.failed:
                # The reference does so too: or the operations would pin their files for ever.
                if self.index.tx_is_open(tx.tx_id):
                    self.rollback(tx.tx_id, sync=False, wait=False)
        except BaseException:
            self.stop()
            raise
        self.rolled = True
        self.files_wake.set()
        return result

    def stop(self):
        """End the threads and give up the files after a load that failed half-way."""
        self.state = "failed"
        self.loaded = False
        self.stopping = True
        self.files_wake.set()
        if self.files_thread is not None:
            self.files_thread.join()
        if self.buffer is not None:
            self.buffer.close()
        try:
            self.close_files()
        except JournalIOError as error:
            log.warning("%s", error)    # What ended the load is raised.

    def sync_loaded(self, result):
        """Make what was found durable before anybody relies on it.

        A process that was killed leaves writes in the page cache, and names in the directory, that
        a power failure would still take back.
        """
        newest = None
        for found in result.files:
            if found.has_data:
                newest = found.name
        if not self.options.datasync:
            return
        if newest is not None:
            fd = self.folder.open(newest, write=True)
            try:
                self.folder.sync_file(fd, newest)
            finally:
                self.folder.close_file(fd, newest)
        self.folder.sync()

    def open_history(self, name):
        """Give `.bkp` files their names back, and open the history; what is to be copied again."""
        options = self.options
        restored = restore_names(self.folder, name)
        for file in restored:
            log.warning("%s was called %s.bkp, waiting for its copy to the history: loaded", file,
                        file)
        if options.retention_directory is None:
            return restored
        self.history = History(
            self.folder, options.retention_directory, name, file_size=self.pool.file_size,
            period_ms=options.retention_period_ms, max_bytes=options.retention_max_bytes)
        self.keeps_history = True
        self.history_thread = ThreadPoolExecutor(1, "journal-history")
        return restored

    def hold_uncopied(self, restored):
        """After a crash: keep files that the history lacks from being used again."""
        cdef DataFile file
        if not self.keeps_history:
            return
        newest = self.history.newest_id()
        for file in self.data_files:
            if file.opened.file_id > newest or file.name in restored:
                self.index.files[file.opened.slot].held = True
                self.uncopied.append(file)

    def take_over(self, result):
        """Sort the loaded files into data files and free ones; the file to go on in."""
        cdef DataFile file
        self.pool.next_file_id = result.last_file_id
        for short in result.short_files:
            self.pool.to_attic(short, "it is too short for a header")
        with_data = [found for found in result.files if found.has_data]
        for found in with_data:
            file = DataFile(found.name, found.number, found.file_id, found.slot)
            self.data_files.append(file)
        for found in result.files:
            if not found.has_data:
                if self.keeps_history and found.record_count \
                        and found.file_id > self.history.newest_id():
                    # Nothing but events, which only the history is for.
                    self.history.keep(found.name, found.file_id)
                self.index.file_drop(found.slot)
                self.pool.give_back(found.name, found.number, others=len(with_data) + 1)
        while len(self.pool.free) + len(self.data_files) < self.options.min_files:
            self.pool.free.append(self.pool.create())
        if with_data:
            newest = with_data[len(with_data) - 1]
            if newest.torn_size:
                self.cut_torn_tail(newest)
            # Without leaders we do not go on in a file that has some: there a record without one
            # is believed only where the reference would append.
            if not newest.is_ended and not newest.is_closed \
                    and newest.size == self.pool.file_size \
                    and (self.leaders or not newest.has_checksums):
                file = self.data_files.pop()
                self.go_on_in(file, newest)
                return file
        return self.open_ahead(self.pool.take())

    def cut_torn_tail(self, found):
        """Zero what was never acknowledged, so that no later reader can take it for a record."""
        fd = self.folder.open(found.name, write=True)
        try:
            torn = self.folder.read(fd, found.torn_size, found.torn_offset, found.name)
            self.pool.keep_bytes(found.name, found.torn_offset, torn,
                                 "the end of the last write was never acknowledged")
            self.folder.fill(fd, found.torn_offset, len(torn), False, found.name)
            self.folder.sync_file(fd, found.name, metadata=True)
        finally:
            self.folder.close_file(fd, found.name)

    def go_on_in(self, DataFile file, found):
        """Open the newest data file and append behind what it holds."""
        cdef uint64_t alignment = self.back_end.alignment
        self.open_file(file)
        file.opened.position = (
            max(found.append_position, file.opened.first) + alignment - 1) // alignment * alignment
        file.opened.ordinal = found.next_ordinal
        file.opened.synced_ordinal = found.synced_count
        file.opened.marked_ordinal = found.synced_count
        # What a killed process wrote may be in the page cache only: it is reported as there now.
        if self.options.datasync:
            fd = self.folder.open(found.name)
            try:
                self.folder.sync_file(fd, found.name)
            finally:
                self.folder.close_file(fd, found.name)

    def start(self, DataFile current):
        """Go on in `current`: start the threads and accept appends."""
        options = self.options
        self.current = current
        self.buffer = GroupBuffer(
            self.back_end, capacity=options.buffer_size,
            timeout_ns=options.effective_buffer_timeout_ns(), datasync=options.datasync,
            leaders=options.checksums)
        self.completions = CompletionQueue(self.buffer, self.io_error)
        self.record_size_max = <uint32_t>self.buffer.file_room(&current.opened)
        if self.record_size_max < record_size(ADD_RECORD_TX, 0):
            raise OptionError(
                f"journal-file-size is {current.opened.size}: with blocks of "
                f"{self.back_end.alignment} bytes no record fits")
        self.buffer.begin_file(&current.opened)
        self.buffer.start()
        self.ready.append(self.open_ahead(self.pool.take()))
        self.files_thread = threading.Thread(target=self.keep_files, name="journal-files",
                                             daemon=True)
        self.files_thread.start()
        self.state = "loaded"
        self.loaded = True

    def close(self):
        """Make everything accepted durable, then give up threads, files and the lock. Idempotent.

        Raises:
            JournalIOError: the journal had failed, or fails now; it is closed all the same.
        """
        if self.state == "closed":
            return
        failed = None
        if self.state == "loaded":
            self.end_compaction()
            self.stopping = True
            self.loaded = False
            self.files_wake.set()
            self.files_thread.join()
            self.buffer.close()
            self.reap()
            if self.buffer.error:
                failed = self.io_error()
            self.detach_loop()
            try:
                self.close_files()
            except JournalIOError as error:
                failed = failed or error
        if self.history is not None:
            self.history_thread.shutdown()
            self.history.close()
        self.state = "closed"
        if self.back_end is not None:
            self.back_end.close()
        if self.folder is not None:
            self.folder.close()
        if failed is not None:
            raise failed

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *exception):
        self.close()

    def file_counts(self):
        """What pins each data file, the current one last: FileCount of each."""
        cdef DataFile file
        cdef FileCounts counts
        cdef int64_t *negatives
        cdef int32_t i, room
        result = []
        for file in [*self.data_files, self.current]:
            # Copied under the lock, turned into objects without it: objects may call the collector.
            room = self.index.files[file.opened.slot].negative_count + 16
            negatives = <int64_t *>malloc(2 * room * sizeof(int64_t))
            if negatives == NULL:
                raise MemoryError
            pthread_mutex_lock(&self.buffer.lock)
            counts = self.index.files[file.opened.slot]
            room = min(room, counts.negative_count)
            for i in range(room):
                negatives[2 * i] = self.index.files[counts.negatives[i].target].file_id
                negatives[2 * i + 1] = counts.negatives[i].count
            pthread_mutex_unlock(&self.buffer.lock)
            result.append(FileCount(
                file.name, counts.file_id, counts.positives, counts.live_bytes,
                {negatives[2 * i]: negatives[2 * i + 1] for i in range(room)}))
            free(negatives)
        return result

    def close_files(self):
        """Detach what is still open: the current file, those opened ahead, and the closed."""
        failed = None
        if self.buffer is not None:
            try:
                self.detach_closed()
            except JournalIOError as error:
                failed = error
        for file in [*self.data_files, self.current, *self.ready]:
            try:
                if file is not None:
                    self.detach(file)
            except JournalIOError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    # --- records ------------------------------------------------------------------------------

    def add(self, int64_t record_id, user_type, body, *, tx=None, sync=None, done=None,
            bint wait=True):
        """Append an add record; a ticket.

        Args:
            record_id: not live in this journal, and never used before.
            user_type: 0 to 255, the caller's meaning; negative is taken as its byte.
            body: bytes-like, contiguous; copied before this returns.
            tx: open (or new) transaction; the record counts only after its commit.
            sync: make it durable as soon as the disk can; None: as the options say, never in a
                transaction.
            done: called as done(None) or done(error) from reap(), in append order, once the
                record is durable (with sync) or in its file (without).
            wait: with sync and no `done`: return only once it is durable.

        Raises:
            DuplicateRecord: the id is live.
            RecordTooLarge: the body fits neither one file nor the buffer.
            JournalIOError: the disk failed while waiting.
            JournalClosed: closed, or ended by an earlier failure.
        """
        return self.append(ADD_RECORD if tx is None else ADD_RECORD_TX, record_id, user_type,
                           body, tx, sync, done, wait)

    def add_durable(self, int64_t record_id, user_type, body):
        """Append an add record; the awaitable of its durability.

        durable(add(..., sync=True, wait=False)) in one call, for event loops that do little else.
        Errors as for add().
        """
        return self.completions.durable(self.append(
            ADD_RECORD, record_id, user_type, body, None, True, None, False))

    def update(self, int64_t record_id, user_type, body, *, tx=None, sync=None, done=None,
               bint wait=True):
        """Append an update of a live record; a ticket. Arguments as for add().

        Raises:
            UnknownRecord: the id is not live (not checked in a transaction).
        """
        return self.append(UPDATE_RECORD if tx is None else UPDATE_RECORD_TX, record_id,
                           user_type, body, tx, sync, done, wait)

    def delete(self, int64_t record_id, body=b"", *, tx=None, sync=None, done=None,
               bint wait=True):
        """Append a delete of a live record; a ticket. Arguments as for add().

        Args:
            body: only in a transaction: kept with the delete until the transaction ends.

        Raises:
            UnknownRecord: the id is not live (not checked in a transaction).
        """
        if tx is None and len(body):
            raise ValueError("only a delete in a transaction carries a body")
        return self.append(DELETE_RECORD if tx is None else DELETE_RECORD_TX, record_id, 0, body,
                           tx, sync, done, wait)

    def try_update(self, int64_t record_id, user_type, body, *, sync=None, done=None,
                   bint wait=True):
        """As update(), but None instead of UnknownRecord; `done` is then called at once."""
        try:
            return self.update(record_id, user_type, body, sync=sync, done=done, wait=wait)
        except UnknownRecord:
            return self.not_there(done)

    def try_delete(self, int64_t record_id, *, sync=None, done=None, bint wait=True):
        """As delete(), but None instead of UnknownRecord; `done` is then called at once."""
        try:
            return self.delete(record_id, sync=sync, done=done, wait=wait)
        except UnknownRecord:
            return self.not_there(done)

    def event(self, int64_t record_id, user_type, body, *, sync=None, done=None,
              bint wait=True):
        """Append an event: kept only in the history, never loaded, pins nothing; a ticket."""
        return self.append(EVENT_RECORD, record_id, user_type, body, None, sync, done, wait)

    def add_many(self, record_ids, user_type, bodies, *, tx=None, sync=None, done=None,
                 bint wait=True):
        """Append many adds with one call and at most one wait; the last one's ticket.

        Args:
            record_ids: a sequence of ids.
            user_type: of all of them.
            bodies: a sequence of bytes, as long as record_ids.
            tx, sync, done, wait: as for add(), for the whole batch.

        Outside a transaction each record stands alone: after an error those before it are in.
        """
        cdef list ids = list(record_ids)
        cdef list parts = list(bodies)
        cdef Py_ssize_t count = len(ids), i = 0, j, end
        cdef uint8_t type_byte = ADD_RECORD if tx is None else ADD_RECORD_TX
        cdef uint8_t user = <uint8_t>(<int>user_type & 0xFF)
        cdef int64_t tx_id = 0 if tx is None else tx, ticket = 0, record_id
        cdef bint wants_sync = False if tx is not None else self.wants_sync(type_byte, sync)
        cdef bytes body
        cdef uint8_t *where
        cdef uint32_t size
        cdef int result, refused
        if len(parts) != count:
            raise ValueError(f"{count} ids and {len(parts)} bodies")
        self.check_usable()
        # All that can be wrong is found before the lock is taken.
        for number in ids:
            if type(number) is not int:
                raise TypeError(f"a record id is an int, not {type(number).__name__}")
            record_id = number
        for body in parts:
            if body is None:
                raise TypeError("a body is bytes, not None")
            if PyBytes_GET_SIZE(body) > self.record_size_max - record_size(type_byte, 0):
                raise self.too_large(PyBytes_GET_SIZE(body))
        while i < count:
            end = min(i + BATCH_CHUNK, count)
            result = RESERVED
            refused = ACCEPTED
            j = i
            pthread_mutex_lock(&self.buffer.lock)
            # No Python object is made in here, so that nothing can give up the GIL.
            while j < end:
                record_id = <int64_t>ids[j]
                refused = self.refusal(type_byte, tx_id, record_id)
                if refused:
                    break
                body = <bytes>parts[j]
                size = record_size(type_byte, <uint32_t>PyBytes_GET_SIZE(body))
                result = self.buffer.reserve(size, &where)
                if result != RESERVED:
                    break
                ticket = <int64_t>self.write_record(
                    where, type_byte, tx_id, record_id, user,
                    <const uint8_t *>PyBytes_AS_STRING(body),
                    <uint32_t>PyBytes_GET_SIZE(body), size, wants_sync and j + 1 == count)
                j += 1
            current = self.current
            self.buffer.release()
            i = j
            if refused:
                raise self.refused(refused, record_id, tx_id)
            if result != RESERVED:
                self.make_room(result, current, False)
        return self.finish(ticket, wants_sync, done, wait)

    # --- transactions -------------------------------------------------------------------------

    def begin(self):
        """A transaction id that this journal has not seen. Any other unused one will do too."""
        self.next_tx_id += 1
        return self.next_tx_id

    def prepare(self, int64_t tx, extra=b"", *, sync=None, done=None, bint wait=True):
        """Make the transaction survive as prepared, with `extra` data for its owner; a ticket."""
        return self.append(PREPARE_RECORD, 0, 0, extra, tx, sync, done, wait)

    def commit(self, int64_t tx, *, sync=None, done=None, bint wait=True):
        """Make all of the transaction count; a ticket.

        Raises:
            UnknownTransaction: it has no record, or has ended.
        """
        return self.append(COMMIT_RECORD, 0, 0, b"", tx, sync, done, wait)

    def rollback(self, int64_t tx, *, sync=None, done=None, bint wait=True):
        """Make none of the transaction count; a ticket.

        Raises:
            UnknownTransaction: it has no record, or has ended.
        """
        return self.append(ROLLBACK_RECORD, 0, 0, b"", tx, sync, done, wait)

    # --- completion ---------------------------------------------------------------------------

    def wait(self, int64_t ticket):
        """Return once everything up to `ticket` is durable; asks for the sync if nobody has.

        Raises:
            JournalIOError: the disk failed; what is beyond `durable_ticket` is unknown.
        """
        self.wait_for(ticket, True)

    def sync(self):
        """Return once everything accepted so far is durable.

        Raises:
            JournalIOError: the disk failed.
        """
        cdef uint64_t end
        self.check_usable()
        pthread_mutex_lock(&self.buffer.lock)
        end = self.buffer.sync_all()
        self.buffer.release()
        if end:
            self.wait_for(end - 1, True)

    def durable(self, int64_t ticket):
        """An awaitable of the running loop, done once everything up to `ticket` is durable.

        The record must ask for its sync itself (sync=True, wait=False).
        """
        return self.completions.durable(ticket)

    def reap(self):
        """Call the `done` callbacks and end the awaitables that are due, in append order; how many.

        An event loop does it by itself; without one, call on_event() when fileno() is readable.
        One thread reaps at a time: for any other, and for a callback, it does nothing.
        """
        return 0 if self.completions is None else self.completions.reap(False)

    def fileno(self):
        """A descriptor that becomes readable when there is something to reap."""
        return self.buffer.event_fd

    @property
    def type_used(self):
        """The journal type in use, which differs from the one asked for after a fall back."""
        return self.back_end.name

    def stats(self):
        """Counters since load(), by name; bytes, nanoseconds and numbers as the names say."""
        buffer = self.buffer
        return {
            "records": buffer.records, "flushes": buffer.flushes, "syncs": buffer.syncs,
            "bytes_written": buffer.bytes_written, "io_ns": buffer.io_ns,
            "io_ns_max": buffer.io_ns_max, "live_records": len(self.index),
            "data_files": len(self.data_files) + 1, "files_ahead": len(self.ready),
            "free_files": len(self.pool.free),
        }

    def __len__(self):
        """Number of live records."""
        return len(self.index) if self.index is not None else 0

    def __contains__(self, record_id):
        """Whether the record is live."""
        return self.index is not None and self.index.contains(record_id)

    @property
    def durable_ticket(self):
        """Tickets below this number are durable."""
        return self.buffer.synced

    def attach_loop(self, loop):
        """Let `loop` reap from now on. durable() does it; for callbacks call it yourself."""
        self.completions.attach(loop)

    def detach_loop(self):
        """Take the eventfd out of the event loop."""
        if self.completions is not None:
            self.completions.detach()

    def on_event(self):
        """Reap, and have the next completion make fileno() readable again.

        For a poll loop of one's own, when fileno() is readable; an asyncio loop does it by itself.
        """
        self.completions.take_event(False)

    # --- one append ---------------------------------------------------------------------------

    cdef object append(self, uint8_t type, int64_t record_id, object user_type, object body,
                       object tx, object sync, object done, bint wait):
        """Put one record of any kind; a ticket."""
        cdef int64_t tx_id = 0 if tx is None else tx
        cdef uint8_t user = <uint8_t>(<int>user_type & 0xFF)
        cdef bint wants_sync
        cdef int64_t ticket
        wants_sync = self.wants_sync(type, sync)
        if self.failed_txs and tx_id in self.failed_txs:
            if self.refuse_failed(type, tx_id):
                self.not_there(done)
                return self.buffer.head
        try:
            ticket = self.put_object(type, tx_id, record_id, user, body, wants_sync)
        except (WrongUse, JournalIOError):
            if tx is not None and type <= DELETE_RECORD_TX:
                self.failed_txs.add(tx_id)
            raise
        return self.finish(ticket, wants_sync, done, wait)

    cdef int refuse_failed(self, uint8_t type, int64_t tx_id) except -1:
        """An operation of the transaction failed: only a rollback is left, and that ends it.

        1 when nothing of the transaction was ever written, so that there is nothing to roll back.
        """
        if type != ROLLBACK_RECORD:
            raise TransactionFailed(
                f"transaction {tx_id} lost an operation to an earlier error: roll it back")
        self.failed_txs.discard(tx_id)
        return 0 if self.index.tx_is_open(tx_id) else 1

    cdef int64_t put_object(self, uint8_t type, int64_t tx_id, int64_t record_id, uint8_t user,
                            object body, bint wants_sync) except -1:
        """put() with the bytes of any bytes-like object."""
        cdef Py_buffer view
        if PyBytes_CheckExact(body):
            if PyBytes_GET_SIZE(body) > 0x7FFFFF00:
                raise self.too_large(PyBytes_GET_SIZE(body))
            return self.put(type, tx_id, record_id, user,
                            <const uint8_t *>PyBytes_AS_STRING(body),
                            <uint32_t>PyBytes_GET_SIZE(body), wants_sync)
        PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
        try:
            if view.len > 0x7FFFFF00:
                raise self.too_large(view.len)
            return self.put(type, tx_id, record_id, user, <const uint8_t *>view.buf,
                            <uint32_t>view.len, wants_sync)
        finally:
            PyBuffer_Release(&view)

    cdef bint wants_sync(self, uint8_t type, sync) except -1:
        if ADD_RECORD_TX <= type <= DELETE_RECORD_TX:
            return False
        if sync is not None:
            return sync
        if type >= PREPARE_RECORD:
            return self.sync_transactional
        return self.sync_non_transactional

    cdef object finish(self, int64_t ticket, bint sync, object done, bint wait):
        if done is not None:
            self.completions.call_later(ticket, sync, done)
        elif wait:
            if sync:
                self.wait_for(ticket, True)
            elif self.buffer.timer_off:
                self.wait_for(ticket, False)
        return ticket

    cdef int wait_for(self, uint64_t ticket, bint sync) except -1:
        cdef int result
        if self.buffer is None:
            raise WrongState(f"the journal is {self.state}")
        if ticket < (self.buffer.synced if sync else self.buffer.written):
            return 0
        with nogil:
            result = self.buffer.wait_synced(ticket) if sync else self.buffer.wait_written(ticket)
        if result < 0:
            raise self.io_error()
        return 0

    cdef int64_t put(self, uint8_t type, int64_t tx_id, int64_t record_id, uint8_t user_type,
                     const uint8_t *body, uint32_t body_size, bint sync) except -1:
        cdef uint32_t size = record_size(type, body_size)
        cdef uint8_t *where
        cdef int result, refused
        cdef uint64_t ticket
        cdef DataFile current
        if not self.loaded:
            self.check_usable()
        if size > self.record_size_max:
            raise self.too_large(body_size)
        while True:
            pthread_mutex_lock(&self.buffer.lock)
            refused = self.refusal(type, tx_id, record_id)
            if refused:
                pthread_mutex_unlock(&self.buffer.lock)
                raise self.refused(refused, record_id, tx_id)
            result = self.buffer.reserve(size, &where)
            if result == RESERVED:
                break
            current = self.current
            pthread_mutex_unlock(&self.buffer.lock)
            self.make_room(result, current, type >= DELETE_RECORD_TX)
        ticket = self.write_record(where, type, tx_id, record_id, user_type, body, body_size,
                                   size, sync)
        self.buffer.release()
        return <int64_t>ticket

    cdef int refusal(self, uint8_t type, int64_t tx_id, int64_t record_id) noexcept nogil:
        """Why the record cannot be appended, under the lock; ACCEPTED when it can."""
        if type == ADD_RECORD:
            return DUPLICATE if self.index.contains(record_id) else ACCEPTED
        if type == UPDATE_RECORD or type == DELETE_RECORD:
            return ACCEPTED if self.index.contains(record_id) else UNKNOWN
        if type == COMMIT_RECORD or type == ROLLBACK_RECORD:
            return ACCEPTED if self.index.tx_is_open(tx_id) else UNKNOWN_TX
        return ACCEPTED

    cdef uint64_t write_record(self, uint8_t *where, uint8_t type, int64_t tx_id,
                               int64_t record_id, uint8_t user_type, const uint8_t *body,
                               uint32_t body_size, uint32_t size, bint sync) noexcept nogil:
        """Encode the record where room was reserved, and let it count; its ticket."""
        cdef OpenFile *file = &self.current.opened
        cdef int32_t records_in_file = 0
        cdef int result = 0
        if type == ADD_RECORD:
            result = self.index.add(record_id, file.slot, size)
        elif type == UPDATE_RECORD:
            result = self.index.update(record_id, file.slot, size, self.replaceable[user_type])
        elif type == DELETE_RECORD:
            result = self.index.remove(record_id, file.slot)
        elif type == ADD_RECORD_TX:
            result = self.index.tx_operation(tx_id, TX_ADD, record_id, file.slot, size)
        elif type == UPDATE_RECORD_TX:
            result = self.index.tx_operation(
                tx_id, TX_REPLACEABLE if self.replaceable[user_type] else TX_UPDATE, record_id,
                file.slot, size)
        elif type == DELETE_RECORD_TX:
            result = self.index.tx_operation(tx_id, TX_DELETE, record_id, file.slot, size)
        elif type == PREPARE_RECORD:
            result = records_in_file = self.index.tx_prepare(tx_id, file.slot)
        elif type == COMMIT_RECORD:
            records_in_file = self.index.tx_count_in(tx_id, file.slot)
            result = self.index.tx_commit(tx_id, file.slot)
        elif type == ROLLBACK_RECORD:
            result = self.index.tx_rollback(tx_id, file.slot)
        encode_record(where, type, file.file_id, 0, tx_id, record_id, user_type, body, body_size,
                      records_in_file)
        if self.leaders:
            encode_leader(where, file.file_id, file.ordinal, size)
        if result < 0:
            # What is live is no longer known: stop before anything else is acknowledged.
            self.buffer.fail(ENOMEM)
        return self.buffer.accept(sync)

    cdef int make_room(self, int result, DataFile current, bint frees) except -1:
        """reserve() found no room: wait for a slot, or go on in the next file.

        `frees`: the record is a delete or ends a transaction, so it may have the last file.
        """
        cdef int failed
        if result == NEED_ROOM:
            with nogil:
                failed = self.buffer.wait_for_room()
            if failed < 0:
                raise self.closed_error()
        elif result == FAILED:
            raise self.closed_error()
        else:
            self.roll_file(current, frees)
        return 0

    cdef int roll_file(self, DataFile current, bint frees) except -1:
        """Leave `current`, which is full, for the file opened ahead. Another thread may have."""
        while self.current is current:
            if self.no_space is not None and len(self.ready) <= (0 if frees else 1):
                raise self.disk_full()
            if not self.ready:
                self.await_file(current)
            elif not self.try_roll(current, False):
                self.make_room(NEED_ROOM, current, frees)
        return 0

    cdef bint try_roll(self, DataFile current, bint leave) except -1:
        """Go on in the file opened ahead; false when every slot waits for the disk.

        With `leave` the index takes note, in the same step, that all older files are to go.
        The GIL is held from the look at `ready` to the end, so all of this is one step.
        """
        cdef DataFile following = <DataFile>self.ready[0]
        cdef bint rolled
        pthread_mutex_lock(&self.buffer.lock)
        rolled = self.buffer.roll(&following.opened)
        if rolled and self.keeps_history:
            self.index.files[current.opened.slot].held = True
        if rolled and leave:
            self.leave_older()
            self.index.files[current.opened.slot].compaction = LEAVES
        self.buffer.release()
        if not rolled:
            return False
        self.ready.popleft()
        self.data_files.append(current)
        self.current = following
        self.rolled = True
        self.files_wake.set()
        return True

    def await_file(self, DataFile current):
        """Wait for the files thread to open a file ahead, and ask it for more at a time."""
        self.ahead = min(self.ahead * 2, AHEAD_MAX)
        self.files_wake.set()
        with self.file_ready:
            opened = self.file_ready.wait_for(
                lambda: self.ready or self.current is not current or self.failure is not None
                or self.no_space is not None or self.stopping,
                timeout=self.options.file_open_timeout_s)
        if self.failure is not None or self.stopping:
            raise self.closed_error()
        if not opened:
            log.warning("no journal file was opened within %s s (journal-file-open-timeout), "
                        "appends go on waiting", self.options.file_open_timeout_s)

    def disk_full(self):
        """The error for an append that would need a file the disk has no room for."""
        error = JournalIOError(
            self.no_space.errno, "no room for another journal file, delete records or make room",
            str(self.options.directory))
        error.__cause__ = self.no_space
        return error

    # --- the files thread ---------------------------------------------------------------------

    def keep_files(self):
        """Open files ahead, close full ones, reclaim dead ones, until the journal closes."""
        while not self.stopping:
            try:
                self.detach_closed()
                if self.rolled or self.reclaim_due:
                    judge = self.rolled
                    self.rolled = self.reclaim_due = False
                    self.reclaim()
                    if judge and self.needs_compaction():
                        self.compact_in_background()
                self.open_more()
            except JournalIOError as error:
                self.fail(error)
                return
            except JournalClosed:
                return          # close() came in between, or the flusher met an error first.
            except Exception as error:  # A thread that died silently would hang every append.
                failure = JournalIOError(errno.EIO, f"the files thread died of {error!r}")
                failure.__cause__ = error
                self.fail(failure)
                raise
            if (len(self.ready) >= self.ahead or self.no_space is not None) and not self.rolled \
                    and not self.reclaim_due:
                self.files_wake.wait(NO_SPACE_RETRY_S if self.no_space is not None else None)
                self.files_wake.clear()

    def open_more(self):
        """Top up the files that are opened ahead.

        A full disk is no failure: appends are refused until there is room again, and the last
        file opened ahead is kept for what makes room (roll_file).
        """
        while len(self.ready) < self.ahead and not self.stopping:
            try:
                file = self.open_ahead(self.pool.take())
            except JournalIOError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                if self.no_space is None:
                    log.error("no room for another journal file: %s", error)
                self.no_space = error
                with self.file_ready:
                    self.file_ready.notify_all()
                return
            self.no_space = None
            with self.file_ready:
                self.ready.append(file)
                self.file_ready.notify_all()

    def open_ahead(self, pooled):
        """A free file, open and ready to become the current one."""
        cdef DataFile file
        cdef int32_t slot
        if self.buffer is not None:
            pthread_mutex_lock(&self.buffer.lock)
        slot = self.index.file_new(pooled.file_id)
        if self.buffer is not None:
            pthread_mutex_unlock(&self.buffer.lock)
        if slot < 0:
            raise MemoryError
        file = DataFile(pooled.name, pooled.number, pooled.file_id, slot)
        self.open_file(file)
        return file

    def open_file(self, DataFile file):
        """Open a file for the flusher, at the place of its first record."""
        cdef int result
        cdef uint64_t header = HEADER_SIZE + (LEADER_SIZE if self.leaders else 0)
        cdef uint64_t alignment = self.back_end.alignment
        file.opened.fd = self.pool.open(file.name)
        file.opened.size = self.pool.file_size
        file.opened.first = (header + alignment - 1) // alignment * alignment
        file.opened.position = file.opened.first
        with nogil:
            result = self.back_end.attach(&file.opened)
        if result < 0:
            self.folder.close_file(file.opened.fd, file.name)
            raise JournalIOError(-result, "cannot open", file.name)
        file.is_open = True

    def detach(self, DataFile file):
        """Close the file's descriptor."""
        cdef int result
        if not file.is_open:
            return
        file.is_open = False
        with nogil:
            result = self.back_end.detach(&file.opened)
        if result < 0:
            raise JournalIOError(-result, "cannot close", file.name)

    def detach_closed(self):
        """Close the files that the flusher is done with; their end mark goes to disk first."""
        cdef DataFile file
        cdef int result = 0
        for file in list(self.data_files):
            if not (file.is_open and file.opened.is_done):
                continue
            if self.options.datasync:
                with nogil:
                    result = self.back_end.sync(&file.opened)
                if result < 0:
                    raise JournalIOError(-result, "cannot sync", file.name)
            self.detach(file)
            with self.file_ready:
                self.file_ready.notify_all()
            if self.keeps_history:
                self.uncopied.append(file)
                self.copy_uncopied()

    def reclaim(self):
        """Use again the files that hold nothing live; how many.

        What made them so is synced first: or a crash could keep the reuse and lose the reason.
        Not while a compaction runs, which counts on all files to stay.
        """
        with self.reclaim_lock:
            return 0 if self.compacting else self.reclaim_now()

    def reclaim_now(self):
        """Use again the files that hold nothing live; how many. Under reclaim_lock."""
        cdef int32_t count = 0, n, i
        cdef int32_t *slots
        cdef int32_t *found
        cdef DataFile file
        candidates = []
        for file in self.data_files:
            if file.is_open:
                break
            candidates.append(file)
        count = <int32_t>len(candidates)
        if not count:
            return 0
        slots = <int32_t *>malloc(count * sizeof(int32_t))
        found = <int32_t *>malloc(count * sizeof(int32_t))
        try:
            if slots == NULL or found == NULL:
                raise MemoryError
            for i in range(count):
                file = candidates[i]
                slots[i] = file.opened.slot
            with nogil:
                pthread_mutex_lock(&self.buffer.lock)
                n = find_reclaimable(self.index, slots, count, found)
                pthread_mutex_unlock(&self.buffer.lock)
            dead = [candidates[found[i]] for i in range(n)]
        finally:
            free(slots)
            free(found)
        if dead:
            self.sync()
        for file in dead:
            self.data_files.remove(file)
            pthread_mutex_lock(&self.buffer.lock)
            self.index.file_drop(file.opened.slot)
            pthread_mutex_unlock(&self.buffer.lock)
            self.pool.give_back(file.name, file.opened.number,
                                others=len(self.data_files) + len(self.ready) + 1)
        return len(dead)

    # --- the history --------------------------------------------------------------------------

    def copy_uncopied(self):
        """Have the history's thread copy the files that wait for it."""
        if self.uncopied:
            self.history_thread.submit(self.keep_history)

    def keep_history(self):
        """Copy closed files to the history, oldest first, and let them be used again.

        A full disk there is no failure: files pile up until it has room, asked at every roll.
        """
        cdef DataFile file
        while self.uncopied and self.failure is None:
            file = self.uncopied[0]
            try:
                self.history.keep(file.name, file.opened.file_id)
            except JournalIOError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    self.fail(error)
                    return
                if not self.history_is_full:
                    log.error("no room for the history, no file is used again: %s", error)
                self.history_is_full = True
                with self.file_ready:
                    self.file_ready.notify_all()
                return
            self.history_is_full = False
            self.uncopied.popleft()
            pthread_mutex_lock(&self.buffer.lock)
            self.index.files[file.opened.slot].held = False
            pthread_mutex_unlock(&self.buffer.lock)
            with self.file_ready:
                self.file_ready.notify_all()
            self.reclaim_due = True
            self.files_wake.set()

    # --- compaction ---------------------------------------------------------------------------

    def compact(self):
        """Copy what is live out of all older files now; whether that replaced any.

        Appends go on meanwhile. A compaction that is running already is awaited first.

        Raises:
            JournalDamaged: an older file does not hold what was written to it.
            JournalIOError: the disk failed. If the journal could go on, it does.
            JournalClosed: closed, or ended by a failure.
        """
        self.check_usable()
        with self.compact_lock:
            self.check_usable()
            return self.compact_files()

    def needs_compaction(self):
        """Whether, by the reference's rules, a compaction is worth its price now."""
        cdef int64_t live_bytes = 0, adds = 0, replaceable = 0, count = 0
        cdef FileCounts *counts
        cdef DataFile file
        cdef int64_t limit
        if self.options.compact_min_files == 0 or self.compacting or self.stopping:
            return False
        pthread_mutex_lock(&self.buffer.lock)
        for file in self.data_files:
            counts = &self.index.files[file.opened.slot]
            live_bytes += counts.live_bytes
            adds += counts.add_count
            replaceable += counts.replaceable_count
            count += 1
        pthread_mutex_unlock(&self.buffer.lock)
        if count <= self.options.compact_min_files:
            return False
        if adds > 0 and replaceable > 0 and replaceable // adds > UPDATE_FACTOR:
            return True
        limit = int(count * self.pool.file_size * self.options.compact_percentage / 100)
        return live_bytes < limit

    def compact_in_background(self):
        """Start a compaction, unless one is running."""
        if self.compact_lock.acquire(blocking=False):
            threading.Thread(target=self.compact_quietly, name="journal-compaction",
                             daemon=True).start()

    def compact_quietly(self):
        """The compaction thread; it has the lock. What fails here is tried after the next roll."""
        try:
            if not self.stopping and not self.ending:
                self.compact_files()
        except (JournalClosed, CompactionStopped) as error:
            log.info("compaction given up: %s", error)
        except (JournalError, MemoryError) as error:
            log.error("compaction given up, the journal goes on without it: %s", error)
        finally:
            self.compact_lock.release()

    def compact_files(self):
        """One compaction; whether it replaced files. See compact.pyx for the order of steps."""
        with self.reclaim_lock:
            self.compacting = True
        try:
            files = self.leave_files()
            if not files:
                return False
            return self.replace_files(files)
        finally:
            self.compaction = None
            pthread_mutex_lock(&self.buffer.lock)
            self.index.unwatch()
            pthread_mutex_unlock(&self.buffer.lock)
            self.compacting = False
            self.reclaim_due = True
            self.files_wake.set()

    def replace_files(self, files):
        """Copy the live records of `files` into new ones, and let those take their place."""
        cdef DataFile file, following = self.file_after(files)
        cdef Compactor compactor
        started = time.monotonic()
        old_files = [OldFile(file.name, file.opened.number, file.opened.file_id, file.opened.slot)
                     for file in files]
        compactor = Compactor(self.folder, self.pool, self.index, self.buffer, old_files,
                              self.options, self.pool.file_size, following.opened.file_id)
        self.compaction = compactor
        try:
            if self.ending:
                compactor.stop()
            compactor.copy()
            self.sync()
            compactor.prepare_control()
        except NothingGained as error:
            compactor.abandon()
            log.info("%s", error)
            return False
        except BaseException:
            compactor.abandon()
            compactor.discard_control()
            raise
        self.publish_compaction(compactor, files)
        log.info("compacted %d files into %d in %.3f s: %d records, %d bytes", len(files),
                 len(compactor.outputs), time.monotonic() - started, compactor.records_copied,
                 compactor.bytes_written)
        return True

    def publish_compaction(self, Compactor compactor, files):
        """From the control file on: whatever fails now ends the journal."""
        cdef DataFile file
        try:
            compactor.commit()
            try:
                compactor.publish()
            except BaseException:
                compactor.revoke()
                raise
            self.data_files[:len(files)] = [
                DataFile(output.name, output.number, output.file_id, output.slot)
                for output in compactor.outputs]
            compactor.install()
            for file in files:
                self.pool.take_back(file.name, file.opened.number,
                                    others=len(self.data_files) + len(self.ready) + 1)
        except BaseException as error:
            self.fail(error if isinstance(error, JournalIOError) else JournalIOError(
                errno.EIO, f"compaction failed: {error}", str(self.options.directory)))
            raise

    def leave_files(self):
        """Go on in a new file, and have the index watch all older ones; these, closed.

        Empty: there are no records to compact.
        """
        cdef DataFile current
        cdef int watching
        watching = self.index.watch()
        if watching < 0:
            raise MemoryError
        while True:
            self.check_usable()
            current = self.current
            if self.current_is_empty():
                if not self.data_files:
                    return []
                pthread_mutex_lock(&self.buffer.lock)
                self.leave_older()
                pthread_mutex_unlock(&self.buffer.lock)
                files = list(self.data_files)
                break
            if self.no_space is not None and len(self.ready) < 2:
                raise self.disk_full()
            if not self.ready:
                self.await_file(current)
            elif self.try_roll(current, True):
                files = self.data_files[:self.data_files.index(current) + 1]
                break
            else:
                self.make_room(NEED_ROOM, current, False)
        # The flusher is done with a file right after all in it is synced, and wakes nobody for it;
        # the files thread closes it.
        self.sync()
        at_rest = False
        while not at_rest:
            self.files_wake.set()
            with self.file_ready:
                at_rest = self.file_ready.wait_for(
                    lambda: self.failure is not None or self.stopping or self.ending
                    or self.history_is_full or self.are_at_rest(files), timeout=LOOK_AGAIN_S)
        self.check_usable()
        if self.history_is_full:
            raise CompactionStopped("compaction stopped: files wait for room in the history")
        if not self.are_at_rest(files):
            raise CompactionStopped("compaction stopped: the journal closes")
        return files

    cdef void leave_older(self) noexcept:
        """Under the lock: the records of all older files are going to be copied elsewhere."""
        cdef DataFile file
        for file in self.data_files:
            self.index.files[file.opened.slot].compaction = LEAVES

    def current_is_empty(self):
        """Whether nothing was appended to the current file yet."""
        cdef bint empty
        pthread_mutex_lock(&self.buffer.lock)
        empty = self.current.opened.position == self.current.opened.first \
            and self.buffer.slots[self.buffer.head % self.buffer.slot_count].used == 0
        pthread_mutex_unlock(&self.buffer.lock)
        return empty

    def are_at_rest(self, files):
        """Whether nobody writes to the files or copies them any more."""
        cdef DataFile file
        for file in files:
            if file.is_open or self.index.files[file.opened.slot].held:
                return False
        return True

    def file_after(self, files):
        """The file that follows `files`."""
        if len(self.data_files) > len(files):
            return self.data_files[len(files)]
        return self.current

    def end_compaction(self):
        """Let a compaction stop, or finish if it is decided already."""
        self.ending = True
        if self.compaction is not None:
            self.compaction.stop()
        with self.file_ready:
            self.file_ready.notify_all()
        with self.compact_lock:
            pass

    # --- errors -------------------------------------------------------------------------------

    def fail(self, error):
        """End the journal because of `error`: every waiter gets it."""
        if self.failure is None:
            self.failure = error
            log.error("the journal stops: %s", error)
        pthread_mutex_lock(&self.buffer.lock)
        self.buffer.fail(<int>(error.errno or 5))
        pthread_mutex_unlock(&self.buffer.lock)
        with self.file_ready:
            self.file_ready.notify_all()

    def io_error(self):
        """The failure that ended the journal."""
        if self.failure is None:
            self.failure = JournalIOError(
                self.buffer.error, "write or sync failed, the journal is closed",
                str(self.options.directory))
        return self.failure

    def closed_error(self):
        """JournalClosed with its cause."""
        if self.buffer is not None and self.buffer.error:
            error = JournalClosed("the journal closed itself after a failure; open it again")
            error.__cause__ = self.io_error()
            return error
        return JournalClosed("the journal is closed")

    cdef int check_usable(self) except -1:
        if self.state != "loaded":
            if self.state == "closed":
                raise self.closed_error()
            raise WrongState(f"cannot append to a journal that is {self.state}: load it first")
        if self.stopping or self.buffer.error:
            raise self.closed_error()
        return 0

    def too_large(self, size):
        """RecordTooLarge in words."""
        return RecordTooLarge(
            f"a body of {size} bytes makes a record larger than {self.record_size_max} bytes, "
            "what fits journal-file-size and journal-buffer-size")

    def refused(self, int why, int64_t record_id, int64_t tx_id):
        """The error for what refusal() found."""
        if why == DUPLICATE:
            return DuplicateRecord(f"record {record_id} is live already")
        if why == UNKNOWN:
            return UnknownRecord(f"Cannot find add info {record_id}")
        return UnknownTransaction(f"Cannot find tx with id {tx_id}")

    def not_there(self, done):
        """An operation that had nothing to write is done at once."""
        if done is not None:
            done(None)
