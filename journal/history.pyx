"""The history of an open journal: a copy of every full file, made before the file is used again.

    older, closed ──▶ uncopied ──journal-history thread──▶ retention.History ──▶ may be reclaimed

The index marks such a file `awaits_copy`, so it is neither reclaimed nor compacted. If no history
is kept all of this does nothing.
"""

import errno
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.data_files cimport DataFile, DataFiles

from journal.errors import JournalIOError
from journal.retention import History, restore_names

__all__ = ["HistoryMaintenance"]

log = logging.getLogger("journal")


cdef class HistoryMaintenance:
    """Copies the full files of one journal to its history.

    Args:
        files: the journal's.

    Order of calls: open(); copy_events_of() of files without data; mark_uncopied(); copy_uncopied()
    and add(); close().
    """

    def __cinit__(self, DataFiles files):
        self.files = files
        self.restored = []
        self.uncopied = deque()

    def open(self, name):
        """Give `.bkp` files their names back, and open the history, if one is kept.

        Before a recovery: a name that it is going to delete must not come back after it.
        """
        options = self.files.options
        self.restored = restore_names(self.files.folder, name)
        for file in self.restored:
            log.warning("%s was called %s.bkp, waiting for its copy to the history: loaded", file,
                        file)
        if options.retention_directory is None:
            return
        self.history = History(
            self.files.folder, options.retention_directory, name,
            file_size=self.files.pool.file_size, period_ms=options.retention_period_ms,
            max_bytes=options.retention_max_bytes)
        self.files.keeps_history = True
        self.thread = ThreadPoolExecutor(1, "journal-history")

    def copy_events_of(self, found):
        """Copy a loaded file that no record keeps, but events do, which only the history is for."""
        if self.files.keeps_history and found.record_count \
                and found.file_id > self.history.newest_id():
            self.history.copy(found.name, found.file_id)

    def mark_uncopied(self):
        """After a crash: keep files that the history lacks from being used again."""
        cdef DataFile file
        if not self.files.keeps_history:
            return
        newest = self.history.newest_id()
        for file in self.files.older:
            if file.opened.file_id > newest or file.name in self.restored:
                self.files.index.files[file.opened.slot].awaits_copy = True
                self.uncopied.append(file)

    def add(self, DataFile file):
        """A file is closed: copy it."""
        if self.files.keeps_history:
            self.uncopied.append(file)
            self.copy_uncopied()

    def copy_uncopied(self):
        """Have the history's thread copy the files that wait for it."""
        if self.uncopied:
            self.thread.submit(self.copy_waiting_files)

    def copy_waiting_files(self):
        """Copy closed files to the history, oldest first, and let them be used again.

        A full disk there does not end the journal: files pile up until it has room. Every roll of
        the journal checks for room again.
        """
        cdef DataFile file
        while self.uncopied and self.files.failure is None:
            file = self.uncopied[0]
            try:
                self.history.copy(file.name, file.opened.file_id)
            except JournalIOError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    self.files.fail(error)
                    return
                if not self.files.history_is_full:
                    log.error("no room for the history, no file is used again: %s", error)
                self.files.history_is_full = True
                with self.files.changed:
                    self.files.changed.notify_all()
                return
            except Exception as error:  # The result of the thread's work is not read.
                failure = JournalIOError(errno.EIO, f"the history's thread failed: {error!r}")
                failure.__cause__ = error
                self.files.fail(failure)
                raise
            self.files.history_is_full = False
            self.uncopied.popleft()
            pthread_mutex_lock(&self.files.buffer.lock)
            self.files.index.files[file.opened.slot].awaits_copy = False
            pthread_mutex_unlock(&self.files.buffer.lock)
            with self.files.changed:
                self.files.changed.notify_all()
            self.files.reclaim_due = True
            self.files.wake.set()

    def close(self):
        """Wait for the copy that is being made, and give up the history."""
        if self.history is not None:
            self.thread.shutdown()
            self.history.close()
