"""Journal files built by hand from docs/format, not by our code, and damaged in words."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

import google_crc32c

EVENT, ADD, UPDATE, ADD_TX, UPDATE_TX, DELETE_TX, DELETE, PREPARE, COMMIT, ROLLBACK = range(10, 20)
LEADER, MARK, HEADER_LEADER, END_MARK = 0xF1, 0xF2, 0xF3, 0xF4
SECTOR = 512


def seven_bits(marker, crc, ordinal):
    bits = crc << 24 | ordinal
    return bytes([marker]) + bytes(0x80 | bits >> (7 * (7 - i)) & 0x7F for i in range(8))


def leader(file_id, ordinal, record):
    crc = google_crc32c.value(struct.pack(">qI", file_id, ordinal) + record)
    return seven_bits(LEADER, crc, ordinal)


def mark(marker, file_id, ordinal):
    crc = google_crc32c.value(struct.pack(">qIB", file_id, ordinal, marker))
    return seven_bits(marker, crc, ordinal)


def record(kind, file_id, *fields, version=2):
    head = struct.pack(">BI", kind, file_id & 0x7FFFFFFF) + (b"\0" if version > 1 else b"")
    body = head + b"".join(fields)
    return body + struct.pack(">I", len(body) + 4)


def long(value):
    return struct.pack(">q", value)


def integer(value):
    return struct.pack(">i", value)


@dataclass
class Built:
    """One file in the making; every append gives the offset of the record's type byte."""

    file_id: int = 1
    size: int = 16384
    has_leaders: bool = True
    ordinal: int = 0
    data: bytearray = field(default_factory=bytearray)

    def __post_init__(self):
        header = struct.pack(">iiq", 2, 0, self.file_id)
        self.data += header
        if self.has_leaders:
            sectors = self.size // SECTOR
            crc = google_crc32c.value(header + integer(sectors))
            self.data += seven_bits(HEADER_LEADER, crc, sectors)

    def append(self, record, *, by_artemis=False):
        if self.has_leaders and not by_artemis:
            if len(self.data) % SECTOR + 19 > SECTOR:
                self.data += bytes(SECTOR - len(self.data) % SECTOR)
            self.data += leader(self.file_id, self.ordinal, record)
            self.ordinal += 1
        self.data += record
        return len(self.data) - len(record)

    def add(self, record_id, body=b"body", **how):
        fields = long(record_id), integer(len(body)), b"\7", body
        return self.append(record(ADD, self.file_id, *fields), **how)

    def update(self, record_id, body=b"more", **how):
        fields = long(record_id), integer(len(body)), b"\7", body
        return self.append(record(UPDATE, self.file_id, *fields), **how)

    def delete(self, record_id, **how):
        return self.append(record(DELETE, self.file_id, long(record_id)), **how)

    def event(self, record_id, **how):
        fields = long(record_id), integer(0), b"\7"
        return self.append(record(EVENT, self.file_id, *fields), **how)

    def tx_add(self, tx_id, record_id, body=b"body", **how):
        fields = long(tx_id), long(record_id), integer(len(body)), b"\7", body
        return self.append(record(ADD_TX, self.file_id, *fields), **how)

    def tx_delete(self, tx_id, record_id, **how):
        fields = long(tx_id), long(record_id), integer(0)
        return self.append(record(DELETE_TX, self.file_id, *fields), **how)

    def prepare(self, tx_id, count, extra=b"xid", **how):
        fields = long(tx_id), integer(count), integer(len(extra)), extra
        return self.append(record(PREPARE, self.file_id, *fields), **how)

    def commit(self, tx_id, count, **how):
        return self.append(record(COMMIT, self.file_id, long(tx_id), integer(count)), **how)

    def rollback(self, tx_id, **how):
        return self.append(record(ROLLBACK, self.file_id, long(tx_id)), **how)

    def mark(self, ordinal=None):
        """Everything so far is synced, or so many records."""
        self.data += mark(MARK, self.file_id, self.ordinal if ordinal is None else ordinal)
        return self

    def end(self):
        self.data += mark(END_MARK, self.file_id, self.ordinal)
        return self

    def pad(self, block=SECTOR):
        """Zeros up to the next block, as direct writes leave."""
        self.data += bytes(-len(self.data) % block)
        return self

    def save(self, folder, number=None):
        """Write the file, filled with zeros to its size; its path."""
        number = self.file_id if number is None else number
        path = Path(folder) / f"activemq-data-{number}.amq"
        path.write_bytes(bytes(self.data).ljust(self.size, b"\0"))
        return path


def flip_byte(path, offset, bits=0xFF):
    poke(path, offset, bytes([path.read_bytes()[offset] ^ bits]))


def poke(path, offset, new):
    data = bytearray(path.read_bytes())
    data[offset : offset + len(new)] = new
    path.write_bytes(data)


def truncate(path, size):
    path.write_bytes(path.read_bytes()[:size])
