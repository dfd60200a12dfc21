"""Writes the files that a compaction copies into.

New files take the ids of old ones, from the first on. They are called <name>.cmp, and written to
their very end, since the space may hold records of that id from an earlier use.

Chunks go to the disk while the next is filled (files/chunks.pyx), past the page cache if they can,
whatever the journal type is: these files are not read soon. A file is synced, in a thread of its
own, once it is full and its last chunk was written, and counts for nothing before.

Memory: a few chunks.
"""

import errno
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from libc.string cimport memset

from journal.errors import JournalError, JournalIOError

from journal.buffer cimport pthread_mutex_lock, pthread_mutex_unlock
from journal.files.chunks cimport ChunkWriter
from journal.format cimport (
    ADD_RECORD, ADD_RECORD_TX, COMPACT_COUNT_MAX, END_MARK, HEADER_SIZE, LEADER_SIZE, ORDINAL_MAX,
    UPDATE_RECORD, UPDATE_RECORD_TX, encode_header, encode_header_leader, encode_leader,
    encode_mark, encode_record, leader_padding, mark_place, record_size)
from journal.file_pins cimport ARRIVES

__all__ = ["CompactionStopped", "NewFiles", "NothingGained", "OutputFile"]

log = logging.getLogger("journal")

cdef enum:
    SPLIT_LINE = 2
    SYNCS_MAX = 4               # new files that are synced while another is written


class OutputFile(NamedTuple):
    """A file that compaction wrote; called <name>.cmp until it is published.

    Attributes:
        was_free: it was one of the journal's free files, and is as long as these.
    """

    name: str
    number: int
    file_id: int
    slot: int
    was_free: bool


class NothingGained(JournalError):
    """The result would need more files than there are ids before the next younger file."""


class CompactionStopped(JournalError):
    """stop() was called."""


cdef class NewFiles:
    """The new files of one compaction, one after another.

    Args:
        folder, pool, index, buffer: the journal's.
        writer: to write through; it rests.
        old_files: those that are compacted, in order of their ids.
        options: the journal's.
        file_size: bytes, of every file.
        file_id_end: id of the first file that is not compacted.

    Order of calls: open(); make_room() and write() for each record; sync(); close(). Then
    remove(), if they are not wanted after all. Threads: one, but for stop().
    """

    def __cinit__(self, Folder folder, pool, RecordIndex index, GroupBuffer buffer,
                  ChunkWriter writer, list old_files, options, uint64_t file_size,
                  int64_t file_id_end):
        self.folder = folder
        self.pool = pool
        self.index = index
        self.buffer = buffer
        self.writer = writer
        self.leaders = options.checksums
        self.user_version = options.user_version
        self.old_count = len(old_files)
        self.file_id_end = file_id_end
        self.next_file_id = old_files[0].file_id
        self.file_size = file_size
        self.outputs = []
        self.syncs = []
        self.fd = -1
        self.ended_fd = -1

    def stop(self):
        """Have check_stop(), and the next file, raise CompactionStopped. From any thread."""
        self.stopping = True

    def check_stop(self):
        """Give up if somebody wants so.

        Raises:
            CompactionStopped: stop() was called.
        """
        if self.stopping:
            raise CompactionStopped("compaction stopped: the journal closes")

    def open(self):
        """Have chunks to write through, and a thread ready to sync what is written."""
        self.writer.open()
        self.sync_thread = ThreadPoolExecutor(1, "journal-compaction-sync")

    def sync(self):
        """End the last file, and wait until all are on disk.

        Raises:
            JournalIOError: one cannot be written.
        """
        self.end_output()
        self.settle_ended()
        self.await_syncs(0)

    def close(self):
        """Wait for what is under way."""
        self.writer.rest()
        if self.sync_thread is not None:
            self.sync_thread.shutdown()

    def remove(self):
        """Delete the files, and have the index forget them. Idempotent.

        Those that were free are free again: a full disk has no room for others in their place.
        """
        cdef int32_t slot
        free_again = []
        for future in self.syncs:
            future.exception()
        self.syncs.clear()
        for fd in (self.fd, self.ended_fd):
            if fd >= 0:
                self.folder.close_file(fd)
        self.fd = self.ended_fd = -1
        self.is_open = False
        for output in self.outputs:
            try:
                if output.was_free:
                    self.folder.rename(f"{output.name}.cmp", f"{output.name}.tmp")
                    free_again.append((output.name, output.number))
                else:
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
        self.outputs.clear()
        if not free_again:
            return
        try:
            self.pool.take_back(free_again, others=0, reserve=len(self.pool.free) + self.old_count)
        except JournalIOError as error:
            log.warning("after a compaction that failed: %s", error)

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
        cdef uint64_t start = self.writer.offset + self.writer.used
        if not self.leaders:
            return start + size <= self.file_size
        if self.is_plain:
            return False        # It was begun for one record that is in it already.
        start += leader_padding(start) + LEADER_SIZE
        return mark_place(start + size, self.file_size, 1) + LEADER_SIZE <= self.file_size \
            and self.ordinal < ORDINAL_MAX

    cdef int make_room(self, uint32_t size) except -1 nogil:
        """Have a file open that takes a record of `size` bytes."""
        if self.is_open:
            if self.fits(size):
                return 0
            self.end_output()
        return self.begin_output(size)

    cdef int write(self, uint8_t type, int64_t tx_id, const PendingRecord *record,
                   int32_t records_in_file) except -1 nogil:
        """Append one record to the new file, which has room for it."""
        cdef uint32_t size = record_size(type, record.body_size)
        cdef uint64_t start = self.writer.offset + self.writer.used
        cdef uint32_t before = 0
        cdef uint8_t compact_count = 0
        cdef uint8_t *where
        if self.leaders and not self.is_plain:
            before = leader_padding(start) + LEADER_SIZE
        where = self.writer.make_room(before + size)
        if where == NULL:
            self.fail(-self.writer.failed, "cannot write a compacted file")
        memset(where, 0, before)
        where += before
        if type == ADD_RECORD or type == UPDATE_RECORD or type == ADD_RECORD_TX \
                or type == UPDATE_RECORD_TX:
            compact_count = min(record.compact_count + 1, COMPACT_COUNT_MAX)
        encode_record(where, type, self.file_id, compact_count, tx_id, record.record_id,
                      record.user_type, record.body, record.body_size, records_in_file)
        if before:
            encode_leader(where, self.file_id, self.ordinal, size)
            self.ordinal += 1
        self.writer.used += before + size
        self.records_copied += 1
        # Chunks are used again in turn, so this does not wait long.
        if self.has_ended and self.writer.is_written(self.ended):
            self.settle_ended()
        return 0

    cdef int begin_output(self, uint32_t size) except -1 with gil:
        """Begin the next file, with room for a record of `size` bytes."""
        cdef uint64_t first = HEADER_SIZE + LEADER_SIZE
        cdef uint8_t *header
        self.check_stop()
        if HEADER_SIZE + <uint64_t>size > self.file_size:
            raise JournalIOError(errno.EFBIG, "a record is larger than journal-file-size",
                                 str(self.folder.path))
        # Ids alone do not tell: spare files may have ids between the old and the next ones.
        if self.next_file_id >= self.file_id_end or self.output_count >= self.old_count:
            raise NothingGained("compaction gains nothing: the live records fill more files than "
                                f"the {self.old_count} that hold them")
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
        self.outputs.append(OutputFile(name, number, self.next_file_id, self.slot,
                                       pooled is not None))
        self.output_count += 1
        if pooled is not None:
            self.folder.rename(name, f"{name}.cmp")
            # Or a crash could give the new contents the old name, and a load would take them.
            self.folder.sync()
        self.fd = self.folder.open(f"{name}.cmp", create=True, direct=self.writer.direct)
        self.is_open = True
        if pooled is None and self.writer.direct:
            # A write that makes a file longer would keep its caller waiting.
            self.folder.truncate(self.fd, self.file_size, f"{name}.cmp")
        self.file_id = self.next_file_id
        self.next_file_id += 1
        self.ordinal = 0
        self.writer.begin(self.fd)
        header = self.writer.make_room(HEADER_SIZE + LEADER_SIZE)
        if header == NULL:
            self.fail(-self.writer.failed, "cannot write a compacted file")
        encode_header(header, self.user_version, self.file_id)
        self.writer.used = HEADER_SIZE
        first += leader_padding(first) + LEADER_SIZE
        self.is_plain = not self.leaders or first + size + LEADER_SIZE > self.file_size
        if not self.is_plain:
            encode_header_leader(header, self.file_size)
            self.writer.used += LEADER_SIZE
        return 0

    cdef int end_output(self) except -1 with gil:
        """End the file; it is synced and closed when all of it was written."""
        cdef uint8_t *where
        cdef uint64_t end = self.writer.offset + self.writer.used, gap = 0
        cdef int status
        if not self.is_open:
            return 0
        if not self.is_plain:
            # A record that all but fills a file, alone, has the mark right behind it.
            if mark_place(end, self.file_size, 1) + LEADER_SIZE <= self.file_size:
                gap = mark_place(end, self.file_size, 1) - end
            with nogil:         # Both calls may wait for the disk.
                where = self.writer.make_room(gap + LEADER_SIZE)
            if where == NULL:
                self.fail(-self.writer.failed, "cannot write a compacted file")
            memset(where, 0, gap)
            encode_mark(where + gap, END_MARK, self.file_id, self.ordinal)
            self.writer.used += gap + LEADER_SIZE
        with nogil:
            status = self.writer.end()
        if status < 0:
            self.fail(-self.writer.failed, "cannot write a compacted file")
        self.bytes_written += self.writer.offset
        self.settle_ended()
        self.ended = self.writer.file
        self.ended_name = f"{self.outputs[len(self.outputs) - 1].name}.cmp"
        self.ended_fd = self.fd
        self.ended_size = self.writer.offset
        self.has_ended = True
        self.is_open = False
        self.fd = -1
        return 0

    cdef int settle_ended(self) except -1 with gil:
        """Have the file that ended last synced, and closed, meanwhile."""
        cdef int fd = self.ended_fd
        if not self.has_ended:
            return 0
        with nogil:
            self.writer.settle(self.ended)
        if self.writer.failed:
            self.fail(-self.writer.failed, "cannot write a compacted file")
        self.syncs.append(
            self.sync_thread.submit(self.sync_output, fd, self.ended_name, self.ended_size))
        self.has_ended = False
        self.ended_fd = -1
        return 0

    def sync_output(self, int fd, name, uint64_t size):
        """Fill a new file from `size` on, sync and close it."""
        try:
            if size < self.file_size:
                self.folder.fill(fd, size, self.file_size - size, self.writer.direct, name)
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


cdef int errno_ENOMEM = errno.ENOMEM
