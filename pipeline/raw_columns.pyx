"""The records of one journal file as the buffers of Arrow columns: no Python object a record.

Files are scanned and validated as everywhere (journal.scan, journal.validation) into items of
C. This module writes them into columns, their bodies one behind the other.
"""

from typing import NamedTuple

from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from journal.format cimport (
    ADD_RECORD, CHECKSUM_NONE, EVENT_RECORD, PREPARE_RECORD, ROLLBACK_RECORD, SCAN_MARK,
    SCAN_RECORD, UPDATE_RECORD_TX, Record)
from journal.validation cimport validate
from journal.scan cimport LIVE, FileScan, Item, scan_bytes

__all__ = ["CHECKSUMS", "KINDS", "NO_ID", "VERDICTS", "PackedFile", "RawColumns", "Span"]

# Of a Span without an add or update; every id is above it.
NO_ID = -1 << 63

# What a code in the columns `kinds`, `checksums` and `verdicts` stands for.
KINDS = (
    "event", "add", "update", "add_tx", "update_tx", "delete_tx", "delete", "prepare", "commit",
    "rollback",
)
CHECKSUMS = ("none", "ok", "bad")
VERDICTS = ("live", "damaged", "torn", "suspect")

cdef enum:
    DELETE_TX = 15              # The last kind with a body, but for a prepare.
    KIND_COUNT = 10
    TYPE_COUNT = 256


class RawColumns(NamedTuple):
    """Some records, column by column; each column a buffer in the machine's byte order.

    A column called `has_...` is a bitmap, lowest bit first, of which rows have the column after it.

    Attributes:
        row_count: of rows.
        offsets: 64-bit, bytes from the start of the file to the type byte.
        sizes: 32-bit, bytes of the whole record.
        kinds: a byte each, an index into KINDS.
        record_ids, tx_ids: 64-bit.
        user_types: 16-bit, 0 ... 255.
        compact_counts: 32-bit.
        body_offsets: 32-bit, one more than there are rows; the body of row i is
            bodies[body_offsets[i]:body_offsets[i + 1]].
        bodies: all bodies, one behind the other.
        records_in_file: 32-bit.
        checksums: a byte each, an index into CHECKSUMS.
        ordinals: 32-bit.
        verdicts: a byte each, an index into VERDICTS.
    """

    row_count: int
    offsets: bytearray
    sizes: bytearray
    kinds: bytearray
    has_record_id: bytearray
    record_ids: bytearray
    has_tx_id: bytearray
    tx_ids: bytearray
    has_user_type: bytearray
    user_types: bytearray
    compact_counts: bytearray
    has_body: bytearray
    body_offsets: bytearray
    bodies: bytearray
    has_records_in_file: bytearray
    records_in_file: bytearray
    checksums: bytearray
    has_ordinal: bytearray
    ordinals: bytearray
    verdicts: bytearray


class Span(NamedTuple):
    """Some records of a file that follow one another.

    Attributes:
        row_count: of records.
        end: bytes from the start of the file to where the last of them ends; where the span was to
            begin if there is none.
        greatest_id: of the adds and updates among them; NO_ID: there are none.
        is_whole: nothing of the file is behind it.
    """

    row_count: int
    end: int
    greatest_id: int
    is_whole: bool


cdef inline bint has_tx(uint8_t type) noexcept nogil:
    return 13 <= type <= DELETE_TX or type >= PREPARE_RECORD


cdef inline bint has_user_type(uint8_t type) noexcept nogil:
    return type < DELETE_TX


cdef inline bint has_body(uint8_t type) noexcept nogil:
    return type <= DELETE_TX or type == PREPARE_RECORD


cdef inline bint is_add_or_update(const Item *item) noexcept nogil:
    return item.what == SCAN_RECORD and ADD_RECORD <= item.record.type <= UPDATE_RECORD_TX


cdef inline void mark(uint8_t[::1] bitmap, Py_ssize_t row) noexcept nogil:
    bitmap[row >> 3] |= <uint8_t>(1 << (row & 7))


cdef class PackedFile:
    """One journal file, scanned and validated; pack() gives its records.

    Holds the file's bytes until it is dropped, and 80 bytes a record. Threads: one at a time.

    Args:
        name: the file's, for what is said of damage.
        data: all its bytes, from journal.reader.read_bytes.
        is_newest: no file with a higher id holds data: what fails behind its last mark is torn.
        user_version: what its header must say.

    Raises:
        UnsupportedFormat: a foreign format or user version.
    """

    cdef FileScan scan
    cdef object data
    cdef uint8_t[KIND_COUNT] wanted_kinds
    cdef uint8_t[TYPE_COUNT] wanted_types
    cdef bint needs_type
    cdef bint needs_id
    cdef int64_t least_id
    cdef int64_t greatest_id
    cdef uint64_t first_offset
    cdef uint64_t end_offset

    def __init__(self, str name, data, *, bint is_newest=True, int32_t user_version=0):
        self.scan = scan_bytes(name, data, user_version)
        self.data = data
        validate(self.scan, is_newest)
        self.want(None, None, None)
        self.clip(0, INT64_MAX)

    @property
    def file_id(self):
        """What orders the files."""
        return self.scan.header.file_id

    @property
    def damages(self):
        """What does not hold what was written, in file order."""
        return [damage for damage, _ in self.scan.found]

    def want(self, kinds, user_types, ids):
        """Say which records pack() gives; all conditions hold together.

        Args:
            kinds: names of KINDS; None: any.
            user_types: 0 ... 255; None: any, and none.
            ids: least and greatest record id, both included; None: any, and none.
        """
        cdef int i
        for i in range(KIND_COUNT):
            self.wanted_kinds[i] = kinds is None or KINDS[i] in kinds
        self.needs_type = user_types is not None
        for i in range(TYPE_COUNT):
            self.wanted_types[i] = user_types is None or i in user_types
        self.needs_id = ids is not None
        if ids is not None:
            self.least_id, self.greatest_id = ids

    def clip(self, uint64_t first, uint64_t end):
        """Have pack() give records only that begin at an offset of first <= offset < end."""
        self.first_offset = first
        self.end_offset = end

    @property
    def is_moved(self):
        """Whether a compaction wrote this file: what it copies was counted up."""
        cdef size_t i
        for i in range(self.scan.count):
            if is_add_or_update(&self.scan.items[i]):
                return self.scan.items[i].record.compact_count > 0
        return False

    def span(self, uint64_t first, *, size_t rows_max, uint64_t end, bint is_growing):
        """Give how far a reader comes from an offset on.

        Args:
            first: where to begin, bytes from the start of the file.
            rows_max: so many records at most.
            end: only records that begin before this offset.
            is_growing: somebody may be writing: stop before what is not a whole, live record.
        """
        cdef size_t i, rows = 0
        cdef uint64_t reached = first
        cdef int64_t greatest = NO_ID
        cdef const Item *item
        for i in range(self.scan.count):
            item = &self.scan.items[i]
            if item.record.offset < first:
                continue
            if item.what != SCAN_RECORD or item.verdict != LIVE:
                if is_growing and item.what != SCAN_MARK:
                    return Span(rows, reached, greatest, False)
                if item.what != SCAN_RECORD:
                    continue
            if rows == rows_max or item.record.offset >= end:
                return Span(rows, reached, greatest, False)
            rows += 1
            reached = item.record.offset + item.record.size
            if is_add_or_update(item):
                greatest = max(greatest, item.record.record_id)
        return Span(rows, reached, greatest, True)

    cdef bint is_wanted(self, const Item *item) noexcept nogil:
        cdef const Record *record = &item.record
        if not self.first_offset <= record.offset < self.end_offset:
            return False
        if item.what != SCAN_RECORD or not self.wanted_kinds[record.type - EVENT_RECORD]:
            return False
        if self.needs_type and not (
                has_user_type(record.type) and self.wanted_types[record.user_type]):
            return False
        return not self.needs_id or (
            record.type < PREPARE_RECORD
            and self.least_id <= record.record_id <= self.greatest_id)

    def pack(self, size_t first, *, size_t rows_max, uint64_t bodies_max, bint with_bodies=True):
        """Give the next records.

        Args:
            first: where to begin: 0, then what the last call gave.
            rows_max: at most so many at once.
            bodies_max: fewer where their bodies reach so many bytes, but for a single larger one.
            with_bodies: else all bodies are empty, and none of them is copied.

        Returns:
            RawColumns, perhaps of no row, and where the next call begins; None behind the last.
        """
        cdef size_t last = first, rows = 0
        cdef uint64_t bodies = 0, size
        with nogil:
            while last < self.scan.count and rows < rows_max:
                if self.is_wanted(&self.scan.items[last]):
                    size = 0
                    if with_bodies and has_body(self.scan.items[last].record.type):
                        size = self.scan.items[last].record.body_size
                    if rows and bodies + size > bodies_max:
                        break
                    bodies += size
                    rows += 1
                last += 1
        columns = RawColumns(
            rows, bytearray(8 * rows), bytearray(4 * rows), bytearray(rows),
            *(bytearray((rows + 7) // 8), bytearray(8 * rows)),
            *(bytearray((rows + 7) // 8), bytearray(8 * rows)),
            *(bytearray((rows + 7) // 8), bytearray(2 * rows)), bytearray(4 * rows),
            *(bytearray((rows + 7) // 8), bytearray(4 * (rows + 1)), bytearray(bodies)),
            *(bytearray((rows + 7) // 8), bytearray(4 * rows)), bytearray(rows),
            *(bytearray((rows + 7) // 8), bytearray(4 * rows)), bytearray(rows))
        if rows:
            self.fill(columns, first, last, with_bodies)
        return columns, None if last == self.scan.count else last

    cdef object fill(self, columns, size_t first, size_t last, bint with_bodies):
        cdef const uint8_t[::1] data = self.data
        cdef int64_t[::1] offsets = memoryview(columns.offsets).cast("q")
        cdef int32_t[::1] sizes = memoryview(columns.sizes).cast("i")
        cdef uint8_t[::1] kinds = columns.kinds
        cdef uint8_t[::1] with_id = columns.has_record_id, with_tx = columns.has_tx_id
        cdef uint8_t[::1] with_type = columns.has_user_type, with_body = columns.has_body
        cdef uint8_t[::1] with_count = columns.has_records_in_file
        cdef uint8_t[::1] with_ordinal = columns.has_ordinal
        cdef int64_t[::1] record_ids = memoryview(columns.record_ids).cast("q")
        cdef int64_t[::1] tx_ids = memoryview(columns.tx_ids).cast("q")
        cdef int16_t[::1] user_types = memoryview(columns.user_types).cast("h")
        cdef int32_t[::1] compact_counts = memoryview(columns.compact_counts).cast("i")
        cdef int32_t[::1] body_offsets = memoryview(columns.body_offsets).cast("i")
        # One byte at least, for an address.
        cdef uint8_t[::1] bodies = columns.bodies or bytearray(1)
        cdef int32_t[::1] counts = memoryview(columns.records_in_file).cast("i")
        cdef uint8_t[::1] checksums = columns.checksums, verdicts = columns.verdicts
        cdef int32_t[::1] ordinals = memoryview(columns.ordinals).cast("i")
        cdef const Record *record
        cdef Py_ssize_t row = 0
        cdef int32_t end = 0
        cdef size_t i
        with nogil:
            for i in range(first, last):
                if not self.is_wanted(&self.scan.items[i]):
                    continue
                record = &self.scan.items[i].record
                offsets[row] = record.offset
                sizes[row] = record.size
                kinds[row] = record.type - EVENT_RECORD
                compact_counts[row] = record.compact_count
                checksums[row] = record.checksum
                verdicts[row] = self.scan.items[i].verdict
                if record.type < PREPARE_RECORD:
                    record_ids[row] = record.record_id
                    mark(with_id, row)
                if has_tx(record.type):
                    tx_ids[row] = record.tx_id
                    mark(with_tx, row)
                if has_user_type(record.type):
                    user_types[row] = record.user_type
                    mark(with_type, row)
                if has_body(record.type):
                    if with_bodies and record.body_size:
                        memcpy(&bodies[end], &data[record.body_offset], record.body_size)
                        end += record.body_size
                    mark(with_body, row)
                if PREPARE_RECORD <= record.type < ROLLBACK_RECORD:
                    counts[row] = record.records_in_file
                    mark(with_count, row)
                if record.checksum != CHECKSUM_NONE:
                    ordinals[row] = record.ordinal
                    mark(with_ordinal, row)
                row += 1
                body_offsets[row] = end
