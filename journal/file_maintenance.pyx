"""The files thread: opens files ahead, closes full ones, reclaims dead ones, starts compaction.

It sleeps until DataFiles.wake is set: a file was rolled, or something may be reclaimed.
"""

import errno
import logging
import threading

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.compaction cimport Compaction
from journal.data_files cimport DataFile, DataFiles
from journal.history cimport HistoryMaintenance
from journal.reclaim cimport find_reclaimable

from journal.errors import JournalClosed, JournalIOError
from journal.pool import NO_SPACE

__all__ = ["FileMaintenance"]

log = logging.getLogger("journal")

cdef double NO_SPACE_RETRY_S = 1.0


cdef class FileMaintenance:
    """Keeps the files of one journal.

    Args:
        files, history, compaction: the journal's.
    """

    def __cinit__(self, DataFiles files, HistoryMaintenance history, Compaction compaction):
        self.files = files
        self.history = history
        self.compaction = compaction

    def start(self):
        """Start the thread."""
        self.thread = threading.Thread(target=self.keep_files, name="journal-files", daemon=True)
        self.thread.start()

    def stop(self):
        """End the thread. Idempotent."""
        self.files.stopping = True
        self.files.wake.set()
        if self.thread is not None:
            self.thread.join()

    def keep_files(self):
        """Open files ahead, close full ones, reclaim dead ones, until the journal closes."""
        while not self.files.stopping:
            try:
                self.detach_closed()
                # A full disk: what has died since the last roll may be all the room there is.
                is_full = self.files.no_space is not None
                if self.files.rolled or self.files.reclaim_due or is_full:
                    considers_compaction = self.files.rolled or is_full
                    self.files.rolled = self.files.reclaim_due = False
                    self.reclaim()
                    if considers_compaction and self.compaction.needs_compaction():
                        self.compaction.compact_in_background()
                self.open_more()
            except JournalIOError as error:
                self.files.fail(error)
                return
            except JournalClosed:
                return          # close() came in between, or the flusher met an error first.
            except Exception as error:  # A thread that died silently would hang every append.
                failure = JournalIOError(errno.EIO, f"the files thread failed: {error!r}")
                failure.__cause__ = error
                self.files.fail(failure)
                raise
            has_enough = self.files.no_space is not None or not self.files.lacks_files()
            if has_enough and not self.files.rolled and not self.files.reclaim_due:
                self.files.wake.wait(None if self.files.no_space is None else NO_SPACE_RETRY_S)
                self.files.wake.clear()

    def open_more(self):
        """Top up the files that are opened ahead, and the reserve.

        A full disk does not raise: appends are refused until there is room again. Records that
        make room are still accepted, from the reserve.
        """
        self.open_free()
        error = None
        while error is None and self.files.lacks_files() and not self.files.stopping:
            try:
                if self.files.no_space is not None:
                    self.files.pool.check_room()
                self.files.pool.add_free()
            except JournalIOError as failure:
                if failure.errno not in NO_SPACE:
                    raise
                error = failure
            else:
                self.open_free()
        self.note_room(error)

    def open_free(self):
        """Open free files ahead."""
        while len(self.files.ready) < self.files.ahead_now() and not self.files.stopping:
            pooled = self.files.pool.take_free()
            if pooled is None:
                return
            file = self.files.open_ahead(pooled)
            with self.files.changed:
                self.files.ready.append(file)
                self.files.changed.notify_all()

    def note_room(self, error):
        """Tell who waits whether the disk has room for the files that are wanted."""
        if error is not None and self.files.no_space is None:
            log.error("no room for another journal file, new records are refused: %s", error)
        elif error is None and self.files.no_space is not None:
            log.info("there is room for journal files again: records are accepted")
        self.files.no_space = error
        self.close_ahead()
        self.files.guard_reserve()
        with self.files.changed:
            self.files.changed.notify_all()

    def close_ahead(self):
        """Make files that were opened ahead, and are not to be any more, free ones again."""
        cdef DataFile file
        while len(self.files.ready) > self.files.ahead_now():
            file = self.files.ready.pop()
            self.files.detach(file)
            pthread_mutex_lock(&self.files.buffer.lock)
            self.files.index.file_drop(file.opened.slot)
            pthread_mutex_unlock(&self.files.buffer.lock)
            self.files.pool.put_back(file.name, file.opened.number, file.opened.file_id)

    def detach_closed(self):
        """Close the files that the flusher is done with; their end mark goes to disk first."""
        cdef DataFile file
        cdef int result = 0
        for file in list(self.files.older):
            if not (file.is_open and file.opened.is_done):
                continue
            if self.files.options.datasync:
                with nogil:
                    result = self.files.back_end.sync(&file.opened)
                if result < 0:
                    raise JournalIOError(-result, "cannot sync", file.name)
            self.files.detach(file)
            with self.files.changed:
                self.files.changed.notify_all()
            self.history.add(file)

    def close_files(self):
        """Detach what is still open: the current file, those opened ahead, and the closed."""
        failed = None
        if self.files.buffer is not None:
            try:
                self.detach_closed()
            except JournalIOError as error:
                failed = error
        for file in [*self.files.older, self.files.current, *self.files.ready]:
            try:
                if file is not None:
                    self.files.detach(file)
            except JournalIOError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    # --- reclaim ------------------------------------------------------------------------------

    def reclaim(self):
        """Use again the files that hold nothing live; how many.

        What made them so is synced first: or a crash could keep the reuse and lose the reason.
        Not while a compaction runs, which counts on all files to stay.
        """
        with self.files.reclaim_lock:
            return 0 if self.files.is_compacting else self.reclaim_now()

    def reclaim_now(self):
        """Use again the files that hold nothing live; how many. Under reclaim_lock."""
        cdef int32_t count = 0, n, i
        cdef int32_t *slots
        cdef int32_t *found
        cdef DataFile file
        cdef bint is_full
        candidates = []
        for file in self.files.older:
            if file.is_open:
                break
            candidates.append(file)
        if not candidates:
            return 0
        is_full = self.files.no_space is not None
        if is_full:
            # What was released by the current file counts, too. It is not to be used again itself.
            candidates.append(self.files.current)
        count = <int32_t>len(candidates)
        slots = <int32_t *>malloc(count * sizeof(int32_t))
        found = <int32_t *>malloc(count * sizeof(int32_t))
        try:
            if slots == NULL or found == NULL:
                raise MemoryError
            for i in range(count):
                file = candidates[i]
                slots[i] = file.opened.slot
            with nogil:
                pthread_mutex_lock(&self.files.buffer.lock)
                n = find_reclaimable(self.files.index, slots, count, found)
                if is_full:
                    self.files.index.files[slots[count - 1]].positives_met = False
                    self.files.index.files[slots[count - 1]].negatives_met = False
                pthread_mutex_unlock(&self.files.buffer.lock)
            dead = [candidates[found[i]] for i in range(n)
                    if not (is_full and found[i] == count - 1)]
        finally:
            free(slots)
            free(found)
        if dead:
            self.files.sync()
        for file in dead:
            self.files.older.remove(file)
            pthread_mutex_lock(&self.files.buffer.lock)
            self.files.index.file_drop(file.opened.slot)
            pthread_mutex_unlock(&self.files.buffer.lock)
            self.files.pool.give_back(
                file.name, file.opened.number,
                others=len(self.files.older) + len(self.files.ready) + 1,
                shrink=not self.files.lacks_files())
        return len(dead)
