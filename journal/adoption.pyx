"""How an opened journal comes by its files: what a crash left is put right, the rest sorted.

    recover() ─▶ Loader ─▶ sync_loaded() ─▶ adopt(): data files, free files, the one to go on in
"""

import errno
import logging

from array import array

from libc.stdint cimport int32_t, uint64_t

from journal.data_files cimport DataFile, DataFiles
from journal.history cimport HistoryMaintenance
from journal.reclaim cimport find_reclaimable

from journal.errors import JournalIOError
from journal.pool import NO_SPACE
from journal.compaction_recovery import apply_recovery, plan_recovery

__all__ = ["recover", "sync_loaded", "adopt"]

log = logging.getLogger("journal")


def recover(DataFiles files, name):
    """Finish or undo a compaction that was cut off."""
    directory = files.options.directory
    plan = plan_recovery(directory, name)
    if plan.is_needed:
        log.warning("%s: %s", directory, plan.describe())
        apply_recovery(plan, RecoveryFolder(files.folder))


class RecoveryFolder:
    """What recovery does to a folder, by the calls that all else uses (compaction_recovery.py)."""

    def __init__(self, folder):
        self.folder = folder

    def delete(self, name):
        """Delete a file; a missing file is ignored."""
        try:
            self.folder.unlink(name)
        except JournalIOError as error:
            if error.errno != errno.ENOENT:
                raise

    def rename(self, source, target):
        """Rename a file, replacing `target`."""
        self.folder.rename(source, target)

    def sync_file(self, name):
        """Make what the file holds durable."""
        fd = self.folder.open(name)
        try:
            self.folder.sync_file(fd, name, metadata=True)
        finally:
            self.folder.close_file(fd, name)

    def sync(self):
        """Make all deletes and renames before this durable."""
        self.folder.sync()


def sync_loaded(DataFiles files, result):
    """Make what was found durable before anybody relies on it.

    A process that was killed leaves writes in the page cache, and names in the directory, that
    a power failure would still take back.
    """
    newest = None
    for found in result.files:
        if found.has_data:
            newest = found.name
    if not files.options.datasync:
        return
    if newest is not None:
        fd = files.folder.open(newest, write=True)
        try:
            files.folder.sync_file(fd, newest)
        finally:
            files.folder.close_file(fd, newest)
    files.folder.sync()


def adopt(DataFiles files, HistoryMaintenance history, result):
    """Sort the loaded files into data files and free ones; the file to go on in."""
    cdef DataFile file
    files.pool.next_file_id = result.last_file_id
    for short in result.short_files:
        files.pool.to_attic(short, "it is too short for a header")
    with_data = [found for found in result.files if found.has_data]
    for found in with_data:
        file = DataFile(found.name, found.number, found.file_id, found.slot)
        files.older.append(file)
    for found in result.files:
        if not found.has_data:
            history.copy_events_of(found)
            files.index.file_drop(found.slot)
            files.pool.give_back(found.name, found.number, others=len(with_data) + 1)
    make_files(files)
    if with_data:
        newest = with_data[len(with_data) - 1]
        if newest.torn_size:
            cut_torn_tail(files, newest)
        # Without leaders we do not go on in a file that has some: there a record without one
        # is believed only where Artemis would append.
        if not newest.is_ended and not newest.is_closed \
                and newest.size == files.pool.file_size \
                and (files.leaders or not newest.has_checksums):
            file = files.older.pop()
            go_on_in(files, file, newest)
            return file
    if not files.pool.free:
        reuse_dead(files)
    return files.open_ahead(files.pool.take())


def make_files(DataFiles files):
    """Make files up to journal-min-files. On a full disk those that are there have to do."""
    while len(files.pool.free) + len(files.older) < files.options.min_files:
        try:
            files.pool.add_free()
        except JournalIOError as error:
            if error.errno not in NO_SPACE or not (files.pool.free or files.older):
                raise
            log.warning("no room for journal-min-files: %s", error)
            return


def reuse_dead(DataFiles files):
    """Where no file is free, use those again that hold nothing live: the disk may be full.

    What made them so was synced by sync_loaded(). With a history they wait for their copies.
    """
    cdef DataFile file
    cdef int32_t count = <int32_t>len(files.older), n, i
    if files.keeps_history or not count:
        return
    slots = array("i", [0]) * (2 * count)
    cdef int32_t[::1] view = slots
    for i in range(count):
        file = files.older[i]
        view[i] = file.opened.slot
    n = find_reclaimable(files.index, &view[0], count, &view[count])
    for file in [files.older[view[count + i]] for i in range(n)]:
        files.older.remove(file)
        files.index.file_drop(file.opened.slot)
        files.pool.give_back(file.name, file.opened.number, others=len(files.older) + 1,
                             shrink=False)


def cut_torn_tail(DataFiles files, found):
    """Zero what was never acknowledged, so that no later reader can take it for a record."""
    cut(files, found.name, found.torn_offset, found.torn_size,
        "the end of the last write was never acknowledged")


def clear_gap(DataFiles files, found, uint64_t position):
    """Zero what stands between the last whole record and `position`, where appends go on.

    Only a file without leaders needs this. A write that broke off inside a block of such a file is
    not a torn tail for long: once a record follows at the next block, a reader reports damage.
    """
    if found.has_checksums or position <= found.append_position:
        return
    fd = files.folder.open(found.name)
    try:
        gap = files.folder.read(fd, position - found.append_position, found.append_position,
                                found.name)
    finally:
        files.folder.close_file(fd, found.name)
    size = len(bytes(gap).rstrip(b"\0"))
    if size:
        cut(files, found.name, found.append_position, size,
            "no whole record, and appends go on in the next block")


def cut(DataFiles files, str name, uint64_t offset, uint64_t size, str why):
    """Keep the bytes in attic/, and zero them where they are; durable on return."""
    fd = files.folder.open(name, write=True)
    try:
        data = files.folder.read(fd, size, offset, name)
        files.pool.keep_bytes(name, offset, data, why)
        files.folder.fill(fd, offset, len(data), False, name)
        files.folder.sync_file(fd, name, metadata=True)
    finally:
        files.folder.close_file(fd, name)


def go_on_in(DataFiles files, DataFile file, found):
    """Open the newest data file and append behind what it holds."""
    cdef uint64_t alignment = files.back_end.alignment
    files.open_file(file)
    file.opened.position = (
        max(found.append_position, file.opened.first) + alignment - 1) // alignment * alignment
    if files.back_end.direct and file.opened.position + 2 * alignment > file.opened.size:
        # It was written through the page cache: no block is left behind the last record for its
        # end mark.
        files.write_cached(file)
        file.opened.position = max(found.append_position, file.opened.first)
    if file.opened.position == file.opened.first and found.record_count:
        # A compaction begins records inside the header block, so the file is not empty. Callers
        # check for an empty file by its position, so the position must be beyond the first block.
        file.opened.position += alignment
    clear_gap(files, found, file.opened.position)
    file.opened.ordinal = found.next_ordinal
    file.opened.synced_ordinal = found.synced_count
    file.opened.marked_ordinal = found.synced_count
    # What a killed process wrote may be in the page cache only: it is reported as there now.
    if files.options.datasync:
        fd = files.folder.open(found.name)
        try:
            files.folder.sync_file(fd, found.name)
        finally:
            files.folder.close_file(fd, found.name)
