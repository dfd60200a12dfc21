"""One journal file, or all of a folder, for tools: scanned, validated, one object a record."""

import mmap
import os
import tempfile
from typing import NamedTuple

from libc.stdint cimport int64_t, uint8_t, uint64_t

from journal.errors import JournalIOError
from journal.files.base import Folder
from journal.folder import open_regular
from journal.remote import REMOTE_STEP, RemotePath

from journal.files.base cimport io_read
from journal.format cimport (
    CHECKSUM_BAD, CHECKSUM_NONE, EVENT_RECORD, PREPARE_RECORD, ROLLBACK_RECORD, SCAN_RECORD, Record)
from journal.validation cimport check_header, validate
from journal.scan cimport NO_CLAIM, FileScan, Item, scan_bytes

__all__ = ["FileView", "RawRecord", "check_headers", "read_bytes", "read_file", "read_folder"]

# Files above this are mapped instead of read, so that one foreign giant does not fill the memory.
MAP_SIZE_MIN = 256 << 20
# A header with its leader, and more.
START_SIZE = 512

KINDS = (
    "event", "add", "update", "add_tx", "update_tx", "delete_tx", "delete", "prepare", "commit",
    "rollback",
)
CHECKSUMS = ("none", "ok", "bad")
VERDICTS = ("live", "damaged", "torn", "suspect")


class RawRecord(NamedTuple):
    """One record as it stands in a file.

    Attributes:
        kind: "add", "update", "delete", "add_tx", "update_tx", "delete_tx", "prepare", "commit",
            "rollback" or "event".
        offset: bytes from the start of the file to the type byte.
        size: bytes from the type byte to the check size, both included.
        record_id, tx_id, user_type, body, records_in_file: None where the kind has none.
        user_type: 0 … 255.
        body: the body, or the extra data of a prepare.
        checksum: "ok", "none" (no leader) or "bad".
        ordinal: the record's number among those with a leader; None without one.
        verdict: "live", "damaged", "torn" or "suspect".
    """

    kind: str
    offset: int
    size: int
    record_id: int | None
    tx_id: int | None
    user_type: int | None
    compact_count: int
    body: bytes | None
    records_in_file: int | None
    checksum: str
    ordinal: int | None
    verdict: str

    @property
    def is_update(self):
        """Whether it updates an earlier add."""
        return self.kind in ("update", "update_tx")


cdef object raw_record(const Item *item, const uint8_t *data):
    cdef const Record *record = &item.record
    cdef uint8_t type = record.type
    kind = KINDS[type - EVENT_RECORD]
    is_tx = 13 <= type <= 15 or type >= PREPARE_RECORD
    has_body = type < 16 or type == PREPARE_RECORD
    return RawRecord(
        kind, record.offset, record.size,
        record.record_id if type < PREPARE_RECORD else None,
        record.tx_id if is_tx else None,
        record.user_type if type < 15 else None,
        record.compact_count,
        (<const char *>data + record.body_offset)[:record.body_size] if has_body else None,
        record.records_in_file if PREPARE_RECORD <= type < ROLLBACK_RECORD else None,
        CHECKSUMS[record.checksum],
        record.ordinal if record.checksum != CHECKSUM_NONE else None,
        VERDICTS[item.verdict])


cdef class FileView:
    """One journal file, validated; iterating gives its records in file order.

    Holds the file's bytes until it is dropped. Records whose verdict is not "live" are given too.
    """

    cdef FileScan scan_result
    cdef object data
    cdef readonly bint is_newest

    def __init__(self, str name, data, *, is_newest=True, user_version=0):
        """Scan and validate `data`, the whole file.

        Raises:
            UnsupportedFormat: a foreign format or user version.
        """
        self.scan_result = scan_bytes(name, data, user_version)
        self.data = data
        self.is_newest = is_newest
        validate(self.scan_result, is_newest)

    def __iter__(self):
        cdef const uint8_t[::1] view
        cdef FileScan scan = self.scan_result
        cdef size_t i
        if scan.count == 0:
            return
        view = self.data
        for i in range(scan.count):
            if scan.items[i].what == SCAN_RECORD:
                yield raw_record(&scan.items[i], &view[0])

    def __len__(self):
        """Number of records, those that do not count included."""
        return self.scan_result.record_count

    @property
    def name(self):
        """The file's name."""
        return self.scan_result.name

    @property
    def size(self):
        """Bytes."""
        return self.scan_result.size

    @property
    def is_short(self):
        """No whole header: Artemis ignores such a file."""
        return bool(self.scan_result.is_short)

    @property
    def version(self):
        """Format version."""
        return self.scan_result.header.version

    @property
    def user_version(self):
        """User version."""
        return self.scan_result.header.user_version

    @property
    def file_id(self):
        """What orders the files."""
        return self.scan_result.header.file_id

    @property
    def header_checksum(self):
        """Of the header: "ok", "none" or "bad"."""
        return CHECKSUMS[self.scan_result.header.checksum]

    @property
    def header_claim(self):
        """The file id that the header's leader vouches for, where that is not the header's."""
        claim = self.scan_result.header_claim
        return None if claim in (NO_CLAIM, self.file_id) else claim

    @property
    def has_checksums(self):
        """Whether any of it was written with leaders."""
        return bool(self.scan_result.has_leaders)

    @property
    def has_data(self):
        """Whether the file may not be used again: it holds, or held, more than events."""
        return bool(self.scan_result.has_data())

    @property
    def is_ended(self):
        """Whether an end mark closes it."""
        return bool(self.scan_result.is_ended)

    @property
    def is_closed(self):
        """Artemis went on behind a torn tail of ours: nothing may be appended."""
        return bool(self.scan_result.is_closed)

    @property
    def synced_count(self):
        """So many of its records with a leader are synced, says the last mark."""
        return self.scan_result.marked

    @property
    def next_ordinal(self):
        """Of the next record with a leader."""
        return self.scan_result.next_ordinal

    @property
    def last_data_position(self):
        """End of the last live record, in bytes from the start of the file."""
        return self.scan_result.last_data_position

    @property
    def append_position(self):
        """End of the last live record or mark, in bytes from the start of the file."""
        return self.scan_result.append_position

    @property
    def data_file_marks(self):
        """How often Artemis would have marked it as a data file for something broken."""
        return self.scan_result.data_file_marks

    @property
    def damages(self):
        """What does not hold what was written, in file order."""
        return [damage for damage, _ in self.scan_result.found]


def read_bytes(path, buffer=None):
    """The whole of a regular file, never through a symbolic link.

    Args:
        path: of the file.
        buffer: a bytearray to use again; it grows to the file's size and is never shrunk.

    Returns:
        A read-only memoryview of the file's bytes: over `buffer` if given, over bytes of its own if
        not, or over a map of a file of more than 256 MiB.

    Raises:
        JournalIOError: it cannot be opened or read.
    """
    cdef uint8_t[::1] room
    cdef int64_t count = 0
    cdef uint64_t size
    cdef int fd
    if isinstance(path, RemotePath):
        return read_remote(path, buffer)
    place, name = os.path.split(path)
    with Folder(place or ".") as folder:
        fd = open_regular(folder, name)
        try:
            size = folder.size(fd, name)
            if size > <uint64_t>MAP_SIZE_MIN:
                return memoryview(mmap.mmap(fd, size, prot=mmap.PROT_READ))
            if buffer is None:
                return memoryview(folder.read(fd, size, 0, name))
            if len(buffer) < size:
                buffer.extend(bytes(size - len(buffer)))
            if size:
                room = buffer
                with nogil:
                    count = io_read(fd, &room[0], size, 0)
                room = None
            if count < 0:
                raise JournalIOError(<int>-count, "cannot read", os.fspath(path))
            return memoryview(buffer)[:count].toreadonly()
        finally:
            folder.close_file(fd, name)


cdef read_remote(path, buffer):
    """read_bytes() of a RemotePath; a map is over a copy in a temporary file."""
    size = path.size()
    pieces = (path.read(offset, min(REMOTE_STEP, size - offset))
              for offset in range(0, size, REMOTE_STEP))
    if size > MAP_SIZE_MIN:
        with tempfile.TemporaryFile() as copy:
            for piece in pieces:
                copy.write(piece)
            copy.flush()
            return memoryview(mmap.mmap(copy.fileno(), copy.tell(), prot=mmap.PROT_READ))
    whole = bytearray() if buffer is None else buffer
    count = 0
    for piece in pieces:
        whole[count:count + len(piece)] = piece
        count += len(piece)
    return memoryview(whole)[:count].toreadonly()


def read_file(path, *, is_newest=True, user_version=0):
    """One journal file, scanned and validated.

    Args:
        path: of the file.
        is_newest: report what fails behind the last mark as a torn tail, not as damage.
        user_version: what the header must say.

    Raises:
        UnsupportedFormat: a foreign format or user version.
        JournalIOError: it cannot be read.
    """
    return FileView(os.path.basename(path), read_bytes(path), is_newest=is_newest,
                    user_version=user_version)


def read_folder(files, *, user_version=0):
    """The files of a journal in the order of their ids, one FileView at a time.

    Args:
        files: what journal.folder.list_files gives.
        user_version: what the headers must say.

    Memory: one file, two while the caller keeps the last one.
    """
    newest = newest_with_data(files, user_version)
    for index, file in enumerate(files):
        yield FileView(file.name, read_bytes(file.path), is_newest=index >= newest,
                       user_version=user_version)


def newest_with_data(files, user_version=0):
    """Index in `files` of the newest one that holds data; 0 if none does."""
    cdef FileScan scan
    buffer = bytearray()
    for index in range(len(files) - 1, 0, -1):
        data = read_bytes(files[index].path, buffer)
        scan = scan_bytes(files[index].name, data, user_version)
        data.release()
        if scan.has_data():
            return index
    return 0


def check_headers(files, *, user_version=0):
    """See that this version reads all files, by their headers alone: before anything is written.

    A header whose checksum is wrong is left to who loads: it may be damaged.

    Args:
        files: what journal.folder.list_files gives.
        user_version: what the headers must say.

    Raises:
        UnsupportedFormat: a foreign format or user version.
        JournalIOError: one cannot be read.
    """
    cdef FileScan scan
    for file in files:
        place, name = os.path.split(file.path)
        with Folder(place or ".") as folder:
            fd = open_regular(folder, name)
            try:
                data = folder.read(fd, min(folder.size(fd, name), START_SIZE), 0, name)
            finally:
                folder.close_file(fd, name)
        scan = scan_bytes(name, data, user_version)
        if not scan.is_short and scan.header.checksum != CHECKSUM_BAD:
            check_header(scan)
