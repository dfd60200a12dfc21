"""Lets the new files of a compaction take the place of the old ones.

    control file written under another name ──▶ renamed: decided ──▶ old files .tmp, new files
    named ──▶ control file gone

A crash before the control file has its name leaves the old files, and one after it the new ones:
compaction_recovery.py finishes what the control file says. The whole order is in compactor.pyx.
"""

import errno
import logging

from libc.stdint cimport int32_t, uint8_t, uint32_t

from journal.control import ControlList, encode_control_list
from journal.errors import JournalIOError
from journal.folder import CONTROL_FILE

from journal.files.base cimport Folder
from journal.format cimport (
    ADD_RECORD, HEADER_SIZE, LEADER_SIZE, encode_header, encode_header_leader, encode_leader,
    encode_record, leader_padding, record_size)

__all__ = ["Replacement", "control_file"]

log = logging.getLogger("journal")

cdef enum:
    CONTROL_ALIGNMENT = 4096    # largest block that Artemis reads in


class Replacement:
    """How the files of one compaction change places.

    Args:
        folder, pool: the journal's.
        old_files: OldFile of each that goes.
        options: the journal's.

    Order of calls: prepare(); commit(); install(); or discard() in place of commit(), revoke() in
    place of install(). Threads: one.
    """

    def __init__(self, Folder folder not None, pool, old_files, options):
        self.folder = folder
        self.pool = pool
        self.old_files = old_files
        self.outputs = []
        self.user_version = options.user_version
        self.leaders = options.checksums

    def prepare(self, outputs):
        """Write the control file under another name; nothing is decided yet.

        Args:
            outputs: OutputFile of each file that comes, on disk.

        Raises:
            JournalIOError: it cannot be written; Compactor.abandon() is in place.
        """
        self.outputs = outputs
        data = control_file(
            ControlList(tuple(old.name for old in self.old_files),
                        tuple(f"{output.name}.cmp" for output in self.outputs)),
            self.user_version, self.leaders)
        fd = self.folder.open(self.control_name(), create=True)
        try:
            self.folder.write(fd, data, 0, self.control_name())
            self.folder.truncate(fd, len(data), self.control_name())
            self.folder.sync_file(fd, self.control_name(), metadata=True)
        finally:
            self.folder.close_file(fd, self.control_name())

    def control_name(self):
        """A name that recovery removes, and no other file has: nothing names numbers below 0."""
        return f"{self.pool.name_of(0)}.tmp"

    def discard(self):
        """Undo prepare()."""
        try:
            self.folder.unlink(self.control_name())
        except JournalIOError as error:
            if error.errno != errno.ENOENT:
                log.warning("after a compaction that failed: %s", error)

    def commit(self):
        """From here on the new files count, whatever happens.

        Raises:
            JournalIOError: it is unknown whether they count: the journal must end.
        """
        self.folder.rename(self.control_name(), CONTROL_FILE)
        self.folder.sync()

    def revoke(self):
        """Undo commit(), as long as install() has not begun: the old files count again."""
        self.folder.unlink(CONTROL_FILE)
        self.folder.sync()

    def install(self):
        """Give the new files their names and take the old ones theirs; done with the control file.

        Raises:
            JournalIOError: the journal must end; recovery finishes this.
        """
        for old in self.old_files:
            self.folder.rename(old.name, f"{old.name}.tmp")
        for output in self.outputs:
            self.folder.rename(f"{output.name}.cmp", output.name)
        self.folder.sync()
        self.folder.unlink(CONTROL_FILE)
        self.folder.sync()


def control_file(control, int32_t user_version, bint leader):
    """The bytes of a control file: a journal file with id 0 and one add record.

    The size is a multiple of 4096, which Artemis can read with any block size.
    """
    cdef bytes body = encode_control_list(control)
    cdef uint32_t body_size = <uint32_t>len(body)
    cdef uint32_t size = record_size(ADD_RECORD, body_size)
    cdef uint32_t first = HEADER_SIZE
    cdef uint32_t total
    cdef uint8_t[::1] data
    if leader:
        first += LEADER_SIZE
        first += leader_padding(first) + LEADER_SIZE
    total = (first + size + CONTROL_ALIGNMENT - 1) // CONTROL_ALIGNMENT * CONTROL_ALIGNMENT
    result = bytearray(total)
    data = result
    encode_header(&data[0], user_version, 0)
    if leader:
        encode_header_leader(&data[0], total)
    encode_record(&data[first], ADD_RECORD, 0, 0, 0, 1, 0, <const uint8_t *>body, body_size, 0)
    if leader:
        encode_leader(&data[first], 0, 0, size)
    return bytes(result)
