"""When an open journal is compacted, and what it does meanwhile; how is compactor.pyx.

    files thread or caller ─▶ go on in a new file ─▶ older ones closed ─▶ Compactor ─▶ replaced

Appends go on all the time. Reclaim rests, since the copy counts on all older files to stay.
"""

import errno
import logging
import threading
import time

from libc.stdint cimport int32_t, int64_t

from journal.batch_ring cimport NEED_ROOM
from journal.buffer cimport GroupBuffer, pthread_mutex_lock, pthread_mutex_unlock
from journal.compactor cimport Compactor
from journal.data_files cimport DataFile, DataFiles
from journal.files.base cimport OpenFile
from journal.files.chunks cimport ChunkWriter
from journal.file_pins cimport FileCounts
from journal.reserve cimport COMPACTION_MORE

from journal.errors import JournalClosed, JournalError, JournalIOError
from journal.new_files import CompactionStopped, NothingGained
from journal.old_files import NotSound, OldFile
from journal.pool import NO_SPACE
from journal.replacement import Replacement

__all__ = ["Compaction"]

log = logging.getLogger("journal")

cdef enum:
    UPDATE_FACTOR = 10          # replaceable updates an add that make a compaction worth it
    LEADER_ROOM = 9             # a leader
    PADDING_SHARE = 10          # a leader begins in the sector of its record's head

cdef double LOOK_AGAIN_S = 0.02
# Between a compaction that came to nothing and the next.
cdef double RETRY_S = 1.0


cdef class Compaction:
    """Compacts the files of one journal, one compaction at a time.

    Args:
        files: the journal's.
    """

    def __cinit__(self, DataFiles files):
        self.files = files
        self.lock = threading.Lock()

    def compact(self, progress=None):
        """Copy what is live out of all older files now; whether that replaced any.

        Appends go on meanwhile. A compaction that is running already is awaited first.

        Args:
            progress: as of Compactor.copy().

        Raises:
            JournalDamaged: an older file does not hold what was written to it.
            JournalIOError: the disk failed. If the journal could go on, it does.
            JournalClosed: closed, or ended by a failure.
        """
        self.files.check_running()
        with self.lock:
            self.files.check_running()
            return self.compact_files(progress)

    def needs_compaction(self):
        """Whether, by Artemis's rules, a compaction is worth its price now."""
        cdef int64_t live_bytes = 0, adds = 0, replaceable = 0, count = 0
        cdef FileCounts *counts
        cdef DataFile file
        cdef int64_t limit
        options = self.files.options
        if options.compact_min_files == 0 or self.files.is_compacting or self.files.stopping:
            return False
        if time.monotonic() < self.not_before_s:
            return False
        pthread_mutex_lock(&self.files.buffer.lock)
        for file in self.files.older:
            counts = &self.files.index.files[file.opened.slot]
            live_bytes += counts.live_bytes
            adds += counts.add_count
            replaceable += counts.replaceable_count
            count += 1
        pthread_mutex_unlock(&self.files.buffer.lock)
        if self.files.no_space is not None:
            # Files are what is wanted, whatever they hold.
            return count > self.outputs_needed() and self.has_room()
        if count <= options.compact_min_files:
            return False
        if adds > 0 and replaceable > 0 and replaceable // adds > UPDATE_FACTOR:
            return True
        limit = int(count * self.files.pool.file_size * options.compact_percentage / 100)
        return live_bytes < limit

    def outputs_needed(self):
        """Files at most that all live records of the older files take, leaders included."""
        cdef int64_t size = 0
        cdef int32_t i
        cdef FileCounts *counts
        cdef DataFile file
        files = [*self.files.older, self.files.current]
        pthread_mutex_lock(&self.files.buffer.lock)
        for file in files:
            counts = &self.files.index.files[file.opened.slot]
            size += counts.live_bytes + LEADER_ROOM * counts.positives
            for i in range(counts.negative_count):
                size -= LEADER_ROOM * counts.negatives[i].count
        pthread_mutex_unlock(&self.files.buffer.lock)
        size += size // PADDING_SHARE
        return max(size, 0) // (self.files.pool.file_size - 2 * LEADER_ROOM) + 1

    def has_room(self):
        """Whether there are files to go on in and to copy into, on a full disk, too."""
        return self.files.no_space is None or (
            self.files.spare() >= self.outputs_needed() + COMPACTION_MORE)

    def compact_in_background(self):
        """Start a compaction, unless one is running."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            threading.Thread(target=self.compact_quietly, name="journal-compaction",
                             daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            # The system has no thread left. No other code would release the lock.
            self.lock.release()
            log.error("no compaction, the journal goes on without it: %s", error)

    def compact_quietly(self):
        """The compaction thread; it has the lock.

        What fails here is tried after the next roll, on a full disk after RETRY_S.
        """
        has_replaced = False
        try:
            if not self.files.stopping and not self.ending:
                has_replaced = self.compact_files()
        except (JournalClosed, CompactionStopped) as error:
            log.info("compaction given up: %s", error)
        except (JournalError, MemoryError) as error:
            log.error("compaction given up, the journal goes on without it: %s", error)
        finally:
            if not has_replaced:
                self.not_before_s = time.monotonic() + RETRY_S
            self.lock.release()

    def compact_files(self, progress=None):
        """One compaction; whether it replaced files. See compactor.pyx for the order of steps."""
        with self.files.reclaim_lock:
            self.files.is_compacting = True
        try:
            files = self.leave_files()
            if not files:
                return False
            return self.replace_files(files, progress)
        finally:
            self.compactor = None
            if self.writer is not None and self.writer.failed:
                self.close_writer()
            pthread_mutex_lock(&self.files.buffer.lock)
            self.files.index.unwatch()
            pthread_mutex_unlock(&self.files.buffer.lock)
            self.files.is_compacting = False
            self.files.reclaim_due = True
            self.files.wake.set()

    def replace_files(self, files, progress=None):
        """Copy the live records of `files` into new ones, and let those take their place."""
        cdef DataFile file, following = self.file_after(files)
        cdef Compactor compactor
        started = time.monotonic()
        old_files = [OldFile(file.name, file.opened.number, file.opened.file_id, file.opened.slot)
                     for file in files]
        compactor = self.begin(old_files, following, False)
        control = Replacement(self.files.folder, self.files.pool, old_files, self.files.options)
        try:
            try:
                compactor.copy(progress)
            except NotSound as found:
                log.info("compaction begins again: %s", found)
                compactor.target.remove()
                compactor = self.begin(old_files, following, True)
                compactor.copy(progress)
            self.files.sync()
            self.prepare(control, compactor.target.outputs)
        except NothingGained as error:
            compactor.abandon()
            log.info("%s", error)
            return False
        except BaseException:
            compactor.abandon()
            control.discard()
            raise
        self.publish(compactor, control, files)
        log.info("compacted %d files into %d in %.3f s: %d records, %d bytes", len(files),
                 len(compactor.target.outputs), time.monotonic() - started,
                 compactor.target.records_copied, compactor.target.bytes_written)
        return True

    def prepare(self, control, outputs):
        """Write the control file, on a full disk over a free file."""
        try:
            control.prepare(outputs)
        except JournalIOError as error:
            pooled = self.files.pool.take_free() if error.errno in NO_SPACE else None
            if pooled is None:
                raise
            self.files.folder.rename(pooled.name, control.control_name())
            control.prepare(outputs)

    def begin(self, old_files, DataFile following, validates_first):
        """A Compactor, which end() stops."""
        if self.writer is None:
            self.writer = ChunkWriter(self.files.folder, self.files.pool.file_size)
        self.compactor = Compactor(
            self.files.folder, self.files.pool, self.files.index, self.files.buffer, self.writer,
            old_files, self.files.options, self.files.pool.file_size, following.opened.file_id,
            validates_first)
        if self.ending:
            self.compactor.stop()
        return self.compactor

    def publish(self, Compactor compactor, control, files):
        """From the control file on: whatever fails now ends the journal."""
        try:
            control.commit()
            try:
                compactor.publish()
            except BaseException:
                control.revoke()
                raise
            self.files.older[:len(files)] = [
                DataFile(output.name, output.number, output.file_id, output.slot)
                for output in compactor.target.outputs]
            control.install()
            self.files.pool.take_back(
                [(old.name, old.number) for old in compactor.old_files],
                others=len(self.files.older) + len(self.files.ready) + 1,
                reserve=self.files.ahead + self.files.reserve() - len(self.files.ready))
        except BaseException as error:
            self.files.fail(error if isinstance(error, JournalIOError) else JournalIOError(
                errno.EIO, f"compaction failed: {error}", str(self.files.options.directory)))
            raise

    def leave_files(self):
        """Go on in a new file, and have the index watch all older ones; these, closed.

        Returns an empty list if no file has records to compact.
        """
        cdef DataFile current
        cdef int watching
        watching = self.files.index.watch()
        if watching < 0:
            raise MemoryError
        while True:
            self.files.check_running()
            current = self.files.current
            if self.current_is_empty():
                if not self.files.older:
                    return []
                pthread_mutex_lock(&self.files.buffer.lock)
                self.files.leave_older()
                pthread_mutex_unlock(&self.files.buffer.lock)
                files = list(self.files.older)
                break
            if not self.has_room():
                raise self.files.disk_full()
            if not self.files.ready:
                self.files.await_file(current, True)
            elif self.files.try_roll(current, True):
                files = self.files.older[:self.files.older.index(current) + 1]
                break
            else:
                self.files.make_room(NEED_ROOM, current, False)
        # The flusher is done with a file right after all in it is synced, and wakes no thread for
        # it; the files thread closes it.
        self.files.sync()
        at_rest = False
        while not at_rest:
            self.files.wake.set()
            with self.files.changed:
                at_rest = self.files.changed.wait_for(
                    lambda: self.files.failure is not None or self.files.stopping or self.ending
                    or self.files.history_is_full or self.are_at_rest(files), timeout=LOOK_AGAIN_S)
        self.files.check_running()
        if self.files.history_is_full:
            raise CompactionStopped("compaction stopped: files wait for room in the history")
        if not self.are_at_rest(files):
            raise CompactionStopped("compaction stopped: the journal closes")
        return files

    def current_is_empty(self):
        """Whether nothing was appended to the current file yet."""
        cdef GroupBuffer buffer = self.files.buffer
        cdef OpenFile *file = &self.files.current.opened
        cdef bint empty
        pthread_mutex_lock(&buffer.lock)
        empty = file.position == file.first \
            and buffer.slots[buffer.head % buffer.slot_count].used == 0
        pthread_mutex_unlock(&buffer.lock)
        return empty

    def are_at_rest(self, files):
        """Whether no thread writes to the files or copies them any more."""
        cdef DataFile file
        for file in files:
            if file.is_open or self.files.index.files[file.opened.slot].awaits_copy:
                return False
        return True

    def file_after(self, files):
        """The file that follows `files`."""
        if len(self.files.older) > len(files):
            return self.files.older[len(files)]
        return self.files.current

    def end(self):
        """Let a compaction stop, or finish if it is decided already."""
        self.ending = True
        if self.compactor is not None:
            self.compactor.stop()
        with self.files.changed:
            self.files.changed.notify_all()
        with self.lock:
            self.close_writer()

    def close_writer(self):
        """What is on its way is awaited."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
