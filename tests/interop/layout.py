"""Journal files laid out by hand: a second statement of docs/format/journal.md, in plain Python.

It writes what our journal writes (leaders, marks, padding) without using it, so that a mistake
in journal/format.pyx and one in a test cannot agree. Slow, for small files only.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

HEADER_SIZE = 16
LEADER_SIZE = 9
SECTOR_SIZE = 512
HEAD_SIZE = 10
LEADER, MARK, HEADER_LEADER, END_MARK = 0xF1, 0xF2, 0xF3, 0xF4
TYPES = {
    "event": 10,
    "add": 11,
    "update": 12,
    "add_tx": 13,
    "update_tx": 14,
    "delete_tx": 15,
    "delete": 16,
    "prepare": 17,
    "commit": 18,
    "rollback": 19,
}


def _crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = _crc_table()


def crc32c(data):
    """CRC-32C, bit-reflected, of the whole of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def nine_bytes(marker, crc, ordinal):
    """A marker and 56 bits, seven a byte, each byte with its top bit set."""
    bits = crc << 24 | ordinal
    return bytes([marker, *(0x80 | bits >> shift & 0x7F for shift in range(49, -7, -7))])


@dataclass
class Record:
    """One record, and which of the fields its kind has."""

    kind: str
    id: int = 0
    user_type: int = 0
    body: bytes = b""
    tx: int = 0
    number_of_records: int = 0
    compact_count: int = 0

    def encode(self, file_id):
        """The record's bytes in the file of that id."""
        head = struct.pack(">BiB", TYPES[self.kind], file_id & 0x7FFFFFFF, self.compact_count)
        size = len(self.body)
        user_type = self.user_type & 0xFF
        match self.kind:
            case "event" | "add" | "update":
                rest = struct.pack(">qiB", self.id, size, user_type) + self.body
            case "add_tx" | "update_tx":
                rest = struct.pack(">qqiB", self.tx, self.id, size, user_type) + self.body
            case "delete_tx":
                rest = struct.pack(">qqi", self.tx, self.id, size) + self.body
            case "delete":
                rest = struct.pack(">q", self.id)
            case "prepare":
                rest = struct.pack(">qii", self.tx, self.number_of_records, size) + self.body
            case "commit":
                rest = struct.pack(">qi", self.tx, self.number_of_records)
            case "rollback":
                rest = struct.pack(">q", self.tx)
        record = head + rest
        return record + struct.pack(">i", len(record) + 4)


@dataclass
class FileLayout:
    """One journal file of ours in the making.

    Attributes:
        file_id: of the header.
        size: of the whole file, in bytes.
        alignment: 1 as NIO and MAPPED write, else the block size of ASYNCIO and IO_URING.
        leaders: False writes pure bytes of Artemis's format.
    """

    file_id: int
    size: int = 102400
    alignment: int = 1
    leaders: bool = True
    user_version: int = 0
    ordinal: int = 0
    data: bytearray = field(default_factory=bytearray)
    places: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self):
        self.data += struct.pack(">iiq", 2, self.user_version, self.file_id)
        if self.leaders:
            sectors = self.size // SECTOR_SIZE
            crc = crc32c(self.data[:HEADER_SIZE] + struct.pack(">I", sectors))
            self.data += nine_bytes(HEADER_LEADER, crc, sectors)
        self._align()

    def flush(self, *records):
        """Write records as one flush: a mark over what the last one synced, then each record."""
        self.mark()
        for record in records:
            self.append(record)
        self._align()

    def append(self, record):
        """Write one record behind its leader, both moved on where a sector would split them."""
        encoded = record.encode(self.file_id)
        if self.leaders:
            within = len(self.data) % SECTOR_SIZE
            if within + LEADER_SIZE + HEAD_SIZE > SECTOR_SIZE:
                self.data += bytes(SECTOR_SIZE - within)
            place = struct.pack(">qi", self.file_id, self.ordinal)
            self.data += nine_bytes(LEADER, crc32c(place + encoded), self.ordinal)
            self.ordinal += 1
        self.places.append((len(self.data), len(encoded)))
        self.data += encoded

    def mark(self, marker=MARK):
        """Write a mark: all records so far are synced."""
        if self.leaders:
            place = struct.pack(">qi", self.file_id, self.ordinal)
            self.data += nine_bytes(marker, crc32c(place + bytes([marker])), self.ordinal)

    def idle_mark(self, marker=MARK):
        """Write a mark as a flush of its own."""
        self.mark(marker)
        self._align()

    def bytes(self, *, under=b""):
        """The file, filled up with zeros, or with what `under`, an earlier use, had there."""
        assert len(self.data) <= self.size
        return bytes(self.data) + under[len(self.data) :].ljust(self.size - len(self.data), b"\0")

    def write(self, folder, name=None, *, under=b""):
        """Write the file into a journal folder, named after its id unless told."""
        path = folder / f"activemq-data-{name or self.file_id}.amq"
        path.write_bytes(self.bytes(under=under))
        return path

    def _align(self):
        self.data += bytes(-len(self.data) % self.alignment)
