"""The lifecycle of a journal: its folder taken, files loaded, threads started; all given up again.

Appends and what follows from them stand in journal.pyx, whose class this is the base of.

    data_files          the files, and how appends go on in the next one
    file_maintenance    the files thread: opens ahead, closes, reclaims
    compaction          when and around what compactor.pyx runs
    history             copies of full files
    adoption            files found by a load
"""

import errno
import logging
import os
import warnings
import weakref

from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.compaction cimport Compaction
from journal.completion cimport BufferCompletions
from journal.data_files cimport DataFile, DataFiles
from journal.format cimport ADD_RECORD_TX, record_size
from journal.history cimport HistoryMaintenance
from journal.file_maintenance cimport FileMaintenance

from journal.errors import (
    JournalClosed, JournalError, JournalIOError, OptionError, WrongState, not_loaded, not_to_load,
    not_to_open)
from journal.files.base import Folder
from journal.files.choose import choose_back_end
from journal.folder import JournalName, list_files
from journal.loader import Loader
from journal.lock import acquire_folder_lock
from journal.options import JournalOptions
from journal.pool import FilePool
from journal.adoption import recover, sync_loaded, adopt

__all__ = ["JournalLifecycle"]

log = logging.getLogger("journal")

# Journals that this process has open: a child of it must not touch them.
opened = weakref.WeakSet()


def after_fork():
    """In a child: it has no threads of a journal's, and the lock is its parent's."""
    for journal in list(opened):
        journal.leave_to_parent()
    opened.clear()


os.register_at_fork(after_in_child=after_fork)


cdef class JournalLifecycle:
    """new ─ open() ─ load() ─ loaded ─ close(); "failed" after a load that failed half-way.

    Args:
        options: how the journal is kept; journal.options.JournalOptions.
    """

    def __cinit__(self, options):
        if not isinstance(options, JournalOptions):
            raise TypeError("a Journal is made of JournalOptions")
        self.options = options
        self.state = "new"

    # --- lifecycle ----------------------------------------------------------------------------

    def open(self):
        """Take the folder: make it if need be, lock it, choose the back end. `with` does it, too.

        A folder that is in use is waited for: for ever, unless the option
        lock_acquisition_timeout_ms says how long. After a second a line in the log `journal` says
        so. load() is called next.

        Raises:
            JournalLocked: another process, or another journal of this one, has the folder, and
                the time is over.
            JournalIOError: it cannot be made, opened or probed.
            WrongState: it was opened before.
        """
        if self.state != "new":
            raise not_to_open("journal", self.state)
        options = self.options
        if options.create_directory:
            try:
                options.directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise JournalIOError(error.errno or 0, "cannot make the directory",
                                     str(options.directory)) from error
        self.folder = Folder(options.directory)
        try:
            acquire_folder_lock(self.folder, options.lock_acquisition_timeout_ms,
                                owner=self)
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
        self.owner_pid = os.getpid()
        opened.add(self)

    def guard_writes(self, guard):
        """Have nothing written, renamed or deleted from when a right to write is lost.

        Between open() and load(). The journal ends with the guard's error, by itself if there is
        anything to write, and close() raises it. A file that is being written then is finished, or
        not; a commit that was under way may be there.

        Args:
            guard: a journal.files.guard.WriteGuard, good until the journal is closed; None is none.

        Raises:
            WrongState: not open, or loaded already.
        """
        if self.state != "open":
            raise not_to_load("journal", self.state)
        self.folder.guard = self.back_end.guard = guard

    def load(self, on_batch=None, *, progress=None, on_cursor=None):
        """Read everything back, then accept appends. open() or `with` comes first.

        Args:
            on_batch: called with each batch of live records, a list of LiveRecord, in log order.
            on_cursor: called once with a LiveCursor over the live records, for compiled callers who
                want no object a record.
            progress: called as progress(files_done, files_total, bytes_done, bytes_total).

        Returns:
            A LoadResult: counts, files, damage. Its `prepared` has the prepared transactions,
            which the caller has to commit or roll back by their `tx_id`; those in `failed` were
            left open, and are rolled back by now.

        Raises:
            JournalDamaged: acknowledged data is damaged and options.damage is "fail".
            UnsupportedFormat: a file of another format or user version.
            JournalIOError: the disk fails.
            WrongState: not open, or loaded already.
        """
        if self.state != "open":
            raise not_to_load("journal", self.state)
        options = self.options
        name = JournalName(options.prefix, options.extension)
        self.index = RecordIndex()
        self.files = DataFiles(self.folder, self.back_end, self.pool, self.index, options)
        self.history = HistoryMaintenance(self.files)
        self.compaction = Compaction(self.files)
        self.maintenance = FileMaintenance(self.files, self.history, self.compaction)
        self.history.open(name)
        recover(self.files, name)
        loader = Loader(
            list_files(options.directory, name), self.index, user_version=options.user_version,
            damage=options.damage, replaceable=options.replaceable_types, progress=progress)
        result = loader.load()
        sync_loaded(self.files, result)
        for damage in result.damages:
            log.warning("%s%s", damage, " (never acknowledged)" if damage.torn else "")
        if on_batch is not None:
            loader.deliver(on_batch)
        if on_cursor is not None:
            with loader.cursor(range(256)) as cursor:
                on_cursor(cursor)
        try:
            current = adopt(self.files, self.history, result)
            self.history.mark_uncopied()
            self.start(current)
            self.history.copy_uncopied()
            self.next_tx_id = max(
                [0, result.max_id] + [tx.tx_id for tx in result.prepared + result.failed])
            # Artemis does so too: or the operations would pin their files for ever.
            self.roll_back([tx.tx_id for tx in result.failed if self.index.tx_is_open(tx.tx_id)])
        except BaseException:
            self.stop()
            raise
        self.files.rolled = True
        self.files.wake.set()
        return result

    cdef int roll_back(self, list tx_ids) except -1:
        """Append a rollback for each; journal.pyx can."""
        raise NotImplementedError

    def stop(self):
        """End the threads and give up the files after a load that failed half-way."""
        self.state = "failed"
        self.loaded = False
        self.maintenance.stop()
        if self.buffer is not None:
            self.buffer.close()
        try:
            self.maintenance.close_files()
        except JournalIOError as error:
            log.warning("%s", error)    # What ended the load is raised.

    def start(self, DataFile current):
        """Go on in `current`: start the threads and accept appends."""
        options = self.options
        self.files.current = current
        self.buffer = self.files.buffer = GroupBuffer(
            self.back_end, capacity=options.buffer_size,
            timeout_ns=options.effective_buffer_timeout_ns(), datasync=options.datasync,
            leaders=options.checksums)
        self.completions = BufferCompletions(self.buffer, self.files.io_error)
        self.record_size_max = <uint32_t>self.buffer.file_room(&current.opened)
        if self.record_size_max < record_size(ADD_RECORD_TX, 0):
            raise OptionError(
                f"journal-file-size is {current.opened.size}: with blocks of "
                f"{self.back_end.alignment} bytes no record fits")
        self.buffer.begin_file(&current.opened)
        self.buffer.start()
        self.maintenance.start()
        self.state = "loaded"
        self.loaded = True

    def close(self):
        """Make everything accepted durable, then give up threads, files and the lock. Idempotent.

        Raises:
            JournalIOError: the journal had failed, or fails now; it is closed all the same.
        """
        if self.state in ("closed", "forked"):
            return
        opened.discard(self)
        failed = None
        if self.state == "loaded":
            self.compaction.end()
            self.loaded = False
            self.maintenance.stop()
            self.buffer.close()
            self.completions.reap(False)
            if self.buffer.error:
                failed = self.files.io_error()
            self.completions.detach()
            try:
                self.maintenance.close_files()
            except JournalIOError as error:
                failed = failed or error
        if self.history is not None:
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

    async def __aenter__(self):
        """Open it in a thread: the folder's lock may be waited for. load() is for the caller."""
        import asyncio      # A fifth of what `import journal` costs.
        await asyncio.to_thread(self.open)
        return self

    async def __aexit__(self, *exception):
        """Call what is due in the loop, and close in a thread, since the disk is waited for."""
        import asyncio
        if self.state == "loaded":
            try:
                await asyncio.to_thread(self.files.sync)
            except JournalError:
                pass                    # close() raises what ended the journal.
            self.completions.reap(False)
            self.completions.detach()
        await asyncio.to_thread(self.close)

    def leave_to_parent(self):
        """This process was forked while the journal was open: nothing here is its own."""
        self.state = "forked"
        self.loaded = False
        if self.buffer is not None:
            self.buffer.running = False         # Its thread is the parent's.
        self.buffer = None
        self.maintenance = None
        # The lock lasts as long as anybody has the descriptor.
        self.folder.close()

    def __del__(self):
        if self.state in ("open", "loaded"):
            warnings.warn(f"{self!r} was never closed", ResourceWarning, source=self)

    def __repr__(self):
        what = self.state
        if what == "loaded":
            what = f"loaded, {self.back_end.name}, {len(self.index)} live records"
        return f"<{type(self).__name__} {str(self.options.directory)!r}: {what}>"

    # --- files --------------------------------------------------------------------------------

    def pin_file(self, name):
        """Never write over a loaded data file: readers that have it open may go on reading records.

        A compaction that has copied its live records deletes it, where it would use it again. Once
        all records in it are deleted it is used again all the same.
        """
        self.pool.pinned.add(name)

    def unpin_file(self, name):
        """Let a file be used again; a name that is not pinned is ignored."""
        self.pool.pinned.discard(name)

    def file_counts(self):
        """What pins each data file, the current one last: data_files.FileCount of each."""
        return self.files.counts()

    def reclaim(self):
        """Use again the files that hold nothing live; how many. The files thread does it by itself.

        What made them so is synced first. Not while a compaction runs.
        """
        return 0 if self.maintenance is None else self.maintenance.reclaim()

    def compact(self, progress=None):
        """Copy what is live out of all older files now; whether that replaced any.

        Appends go on meanwhile. A compaction that is running already is awaited first.

        Args:
            progress: called as progress(files_done, files_total, bytes_read, bytes_total) after
                each file that was copied, from this thread.

        Raises:
            JournalDamaged: an older file does not hold what was written to it.
            JournalIOError: the disk failed. If the journal could go on, it does.
            JournalClosed: closed, or ended by a failure.
        """
        self.check_usable()
        return self.compaction.compact(progress)

    def copy_to_history(self):
        """Go on in another file, and have all older ones copied to the history.

        Does not wait for the copies, which all_are_copied() tells of.

        Raises:
            JournalIOError: there is no room for another file.
            JournalClosed: closed, or ended by a failure.
            WrongState: no history is kept.
        """
        self.check_usable()
        if not self.files.keeps_history:
            raise WrongState("this journal keeps no history")
        if not self.compaction.current_is_empty():
            self.files.roll_file(self.files.current, False)
        # The files thread closes and copies only what the flusher is done with.
        self.files.sync()

    def all_are_copied(self):
        """Whether the history has a copy of each file but the current one; wakes who makes them.

        Raises:
            JournalIOError: the history has no room.
            JournalClosed: closed, or ended by a failure.
        """
        cdef DataFile file
        cdef bint waits = False
        self.check_usable()
        self.files.check_running()
        pthread_mutex_lock(&self.files.buffer.lock)
        for file in self.files.older:
            waits = waits or self.files.index.files[file.opened.slot].awaits_copy
        pthread_mutex_unlock(&self.files.buffer.lock)
        if waits and self.files.history_is_full:
            raise JournalIOError(errno.ENOSPC, "the history has no room",
                                 str(self.options.retention_directory))
        if waits:
            self.files.wake.set()
        return not waits

    # --- what it is --------------------------------------------------------------------------

    @property
    def type_used(self):
        """The journal type in use, which differs from the one asked for after a fall back."""
        return self.back_end.name

    def stats(self):
        """Counters since load(), by name; bytes, nanoseconds and numbers as the names say."""
        self.check_was_loaded()
        buffer = self.buffer
        return {
            "records": buffer.records, "flushes": buffer.flushes, "syncs": buffer.syncs,
            "bytes_written": buffer.bytes_written, "io_ns": buffer.io_ns,
            "io_ns_max": buffer.io_ns_max, "live_records": len(self.index),
            "data_files": len(self.files.older) + 1, "files_ahead": len(self.files.ready),
            "free_files": len(self.pool.free),
        }

    def __len__(self):
        """Number of live records."""
        return len(self.index) if self.index is not None else 0

    def __contains__(self, record_id):
        """Whether the record is live."""
        return self.index is not None and self.index.contains(record_id)

    cdef int check_was_loaded(self) except -1:
        if self.buffer is None:
            self.check_own()
            raise not_loaded("journal", self.state)
        return 0

    cdef int check_own(self) except -1:
        """Refuse a journal that another process has open."""
        if self.state == "forked":
            raise JournalClosed(
                f"{self.options.directory} is open in process {self.owner_pid}, which this one was "
                "forked from: a child cannot use it")
        return 0

    cdef int check_usable(self) except -1:
        if self.state != "loaded":
            self.check_own()
            if self.state == "closed":
                raise JournalClosed("the journal is closed") if self.files is None \
                    else self.files.closed_error()
            raise not_loaded("journal", self.state)
        return self.files.check_running()
