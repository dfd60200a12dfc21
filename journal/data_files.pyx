"""The files of an open journal, and what all who work on them share.

    opened ahead ──roll──▶ current ──▶ older, still open ──flusher is done──▶ older, closed

Who does what to them: appends go on in the next one (make_room), the files thread opens, closes and
reclaims them (file_maintenance.pyx), compaction replaces older ones (compaction.pyx), a load finds
them (adoption.pyx). Here stands also why the journal ended, which all of these ask.

Threads: Python objects are guarded by the GIL, index and buffer by the buffer's lock, which is
never held while the GIL is taken. `changed` announces whatever others wait for; `wake` is for the
files thread.
"""

import logging
import os
import threading
from collections import deque
from typing import NamedTuple

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport errno
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from posix.fcntl cimport F_GETFL, F_SETFL, fcntl

from journal.batch_ring cimport FAILED, NEED_ROOM
from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.file_pins cimport LEAVES, FileCounts
from journal.files.guard cimport WriteGuard
from journal.format cimport HEADER_SIZE, LEADER_SIZE
from journal.waiters cimport WOKEN_BY_A_SIGNAL
from journal.reserve cimport open_count, reserve_size

from journal.errors import JournalClosed, JournalFull, JournalIOError

__all__ = ["DataFile", "DataFiles", "FileCount"]

log = logging.getLogger("journal")

cdef enum:
    AHEAD_MAX = 8               # files opened ahead at most; one is Artemis's, and the rule


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


cdef class DataFiles:
    """The files of one open journal, from its loading on.

    Args:
        folder, back_end, pool, index: the journal's. `buffer` is set once there is one.
        options: the journal's.
    """

    def __cinit__(self, Folder folder, BackEnd back_end, pool, RecordIndex index, options):
        self.folder = folder
        self.back_end = back_end
        self.pool = pool
        self.index = index
        self.options = options
        self.leaders = options.checksums
        self.compacts = options.compact_min_files > 0
        self.older = []
        self.ready = deque()
        self.ahead = 1
        self.wake = threading.Event()
        self.changed = threading.Condition()
        self.reclaim_lock = threading.Lock()

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
        file.opened.alignment = self.back_end.alignment
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

    def counts(self):
        """What pins each data file, the current one last: FileCount of each."""
        cdef DataFile file
        cdef FileCounts counts
        cdef int64_t *negatives
        cdef int32_t i, room
        result = []
        for file in [*self.older, self.current]:
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

    # --- what is kept for a full disk ---------------------------------------------------------

    cdef int64_t spare(self):
        """Files that hold nothing and are ready, or nearly so."""
        return len(self.ready) + len(self.pool.free)

    cdef int64_t reserve(self):
        """Files of those that are kept for what makes room; the buffer's lock is not held."""
        cdef int64_t count
        pthread_mutex_lock(&self.buffer.lock)
        count = open_count(self.index)
        pthread_mutex_unlock(&self.buffer.lock)
        return reserve_size(count + self.ends, len(self.older), self.pool.file_size, self.compacts)

    def ahead_now(self):
        """Files to be open ahead. On a full disk one: compaction needs free ones."""
        return self.ahead if self.no_space is None else 1

    def lacks_files(self):
        """Whether another file is to be made: for those opened ahead, and for the reserve.

        A journal that has not filled a file yet makes do with one for both, unless it has to keep
        room for ends of what is elsewhere.
        """
        if not self.older and not self.was_short and not self.ends:
            return self.spare() < self.ahead
        return self.spare() < self.ahead + self.reserve()

    cdef bint reserve_ends(self, int64_t count):
        """Keep room for so many ends besides those of live records; false where there is none."""
        self.ends = count
        if self.no_space is not None:
            return self.spare() >= self.reserve()
        if self.lacks_files():
            self.wake.set()
        return True

    def guard_reserve(self):
        """While the disk is full and the reserve is not whole, the current file is part of it."""
        cdef bint is_reserved = self.no_space is not None and self.spare() < self.reserve()
        pthread_mutex_lock(&self.buffer.lock)
        self.current.opened.is_reserved = is_reserved
        pthread_mutex_unlock(&self.buffer.lock)

    cdef bint may_roll(self, bint frees):
        """Whether an append may go on in the file opened ahead."""
        return len(self.ready) > 0 and (frees or self.spare() > self.reserve())

    def write_cached(self, DataFile file):
        """Write a direct file through the page cache, from its beginning on: nothing is padded.

        An acknowledgement takes 100 bytes of the reserve there, and not a block. The GIL is kept:
        another thread must not go on in the same file meanwhile.
        """
        cdef int flags = fcntl(file.opened.fd, F_GETFL)
        if flags < 0 or fcntl(file.opened.fd, F_SETFL, flags & ~<int>os.O_DIRECT) < 0:
            raise JournalIOError(errno, "cannot write through the page cache", file.name)
        file.opened.alignment = 1

    # --- appends go on ------------------------------------------------------------------------

    cdef int make_room(self, int result, DataFile current, bint frees) except -1:
        """reserve() found no room: wait for a slot, or go on in the next file.

        `frees`: the record makes room, so it may have a file of the reserve.
        """
        cdef int failed
        if result == NEED_ROOM:
            with nogil:
                failed = self.buffer.wait_for_room()
            if failed < 0:
                raise self.closed_error()
            PyErr_CheckSignals()
        elif result == FAILED:
            raise self.closed_error()
        else:
            self.roll_file(current, frees)
        return 0

    cdef int roll_file(self, DataFile current, bint frees) except -1:
        """Leave `current`, which is full, for the file opened ahead. Another thread may have."""
        while self.current is current:
            if self.may_roll(frees):
                if not self.try_roll(current, False):
                    self.make_room(NEED_ROOM, current, frees)
            elif self.no_space is not None and not (frees and self.spare()):
                raise self.disk_full()
            else:
                self.await_file(current, frees)
        return 0

    cdef bint try_roll(self, DataFile current, bint leave) except -1:
        """Go on in the file opened ahead; false when every slot waits for the disk.

        With `leave` the index takes note, in the same step, that all older files are to go.
        The GIL is held from the look at `ready` to the end, so all of this is one step.
        """
        cdef DataFile following = <DataFile>self.ready[0]
        cdef bint rolled
        if self.no_space is not None and self.spare() <= self.reserve():
            following.opened.is_reserved = True
            if following.opened.alignment > 1 and self.back_end.direct:
                self.write_cached(following)
        pthread_mutex_lock(&self.buffer.lock)
        rolled = self.buffer.roll(&following.opened)
        if rolled and self.keeps_history:
            self.index.files[current.opened.slot].awaits_copy = True
        if rolled and leave:
            self.leave_older()
            self.index.files[current.opened.slot].compaction = LEAVES
        self.buffer.release()
        if not rolled:
            return False
        self.ready.popleft()
        self.older.append(current)
        self.current = following
        self.rolled = True
        self.wake.set()
        return True

    cdef void leave_older(self) noexcept:
        """Under the lock: the records of all older files are going to be copied elsewhere."""
        cdef DataFile file
        for file in self.older:
            self.index.files[file.opened.slot].compaction = LEAVES

    def await_file(self, DataFile current, frees):
        """Wait for the files thread to open a file ahead, and ask it for more at a time."""
        self.was_short = True
        if not self.ready:
            self.ahead = min(self.ahead * 2, AHEAD_MAX)
        self.wake.set()
        with self.changed:
            opened = self.changed.wait_for(
                lambda: self.may_roll(frees) or self.current is not current
                or self.failure is not None or self.stopping
                or (self.no_space is not None and not (frees and self.spare())),
                timeout=self.options.file_open_timeout_s)
        if self.failure is not None or self.stopping:
            raise self.closed_error()
        if not opened:
            log.warning("no journal file was opened within %s s (journal-file-open-timeout), "
                        "appends go on waiting", self.options.file_open_timeout_s)

    def disk_full(self):
        """The error for an append that would need a file the disk has no room for."""
        error = JournalFull(
            self.no_space.errno, "no room for another journal file: only what makes room, such as "
            "deletes and acknowledgements, is accepted", str(self.options.directory))
        error.__cause__ = self.no_space
        return error

    cdef int sync(self) except -1:
        """Return once everything accepted so far is durable."""
        cdef uint64_t end
        cdef int result = 0
        self.check_running()
        pthread_mutex_lock(&self.buffer.lock)
        end = self.buffer.sync_all()
        self.buffer.release()
        while end > self.buffer.synced:
            with nogil:
                result = self.buffer.wait_synced(end - 1)
            if result != WOKEN_BY_A_SIGNAL:
                break
            PyErr_CheckSignals()
        if result < 0:
            raise self.io_error()
        return 0

    # --- the end ------------------------------------------------------------------------------

    def fail(self, error):
        """End the journal because of `error`: every waiter gets it."""
        if self.failure is None:
            self.failure = error
            log.error("the journal stops: %s", error)
        pthread_mutex_lock(&self.buffer.lock)
        self.buffer.fail(<int>(error.errno or 5))
        pthread_mutex_unlock(&self.buffer.lock)
        with self.changed:
            self.changed.notify_all()

    def io_error(self):
        """The failure that ended the journal."""
        cdef WriteGuard guard = self.folder.guard
        if self.failure is None and guard is not None and guard.is_lost:
            self.failure = guard.failure()
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

    cdef int check_running(self) except -1:
        """Raise JournalClosed once the journal closes or has failed."""
        if self.stopping or self.buffer.error:
            raise self.closed_error()
        return 0
