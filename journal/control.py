"""The control file of a compaction: which files to delete and which to rename, once complete.

It is a journal file with id 0 and one add record. The record's body is that of Artemis
(AbstractJournalUpdateTask). It holds three lists: old files, new files (still with `.cmp`), and
pairs of names to rename. Each list is a 4-byte count and its entries. A name is a 2-byte size and
that many bytes. Bytes behind the third list are to be ignored.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["ControlList", "decode_control_list", "encode_control_list"]

COUNT = struct.Struct(">i")
SIZE = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class ControlList:
    """What a compaction has decided.

    Attributes:
        old_files: to be deleted.
        new_files: names with `.cmp`, which they lose.
        renames: (from, to); Artemis writes none.
    """

    old_files: tuple[str, ...]
    new_files: tuple[str, ...]
    renames: tuple[tuple[str, str], ...] = ()


def encode_control_list(control: ControlList) -> bytes:
    """The body of the control file's record.

    >>> encode_control_list(ControlList(("a-1.amq",), ())).hex()
    '000000010007612d312e616d710000000000000000'
    """
    parts = []
    for names in (control.old_files, control.new_files):
        parts += [COUNT.pack(len(names)), *map(_encode_name, names)]
    parts.append(COUNT.pack(len(control.renames)))
    parts += [_encode_name(name) for pair in control.renames for name in pair]
    return b"".join(parts)


def decode_control_list(body: bytes) -> ControlList:
    """Read the body of the control file's record.

    Raises:
        ValueError: it is cut short, or a count or name makes no sense.

    >>> decode_control_list(bytes.fromhex("000000010007612d312e616d710000000000000000")).old_files
    ('a-1.amq',)
    """
    position = 0

    def take(size: int) -> bytes:
        nonlocal position
        if position + size > len(body):
            raise ValueError(f"control list ends within an entry at byte {position}")
        position += size
        return body[position - size : position]

    def count() -> int:
        value: int = COUNT.unpack(take(COUNT.size))[0]
        if not 0 <= value <= len(body):
            raise ValueError(f"control list claims {value} entries")
        return value

    def name() -> str:
        return take(SIZE.unpack(take(SIZE.size))[0]).decode("utf-8")

    old_files = tuple(name() for _ in range(count()))
    new_files = tuple(name() for _ in range(count()))
    renames = tuple((name(), name()) for _ in range(count()))
    return ControlList(old_files, new_files, renames)


def _encode_name(name: str) -> bytes:
    encoded = name.encode("utf-8")
    return SIZE.pack(len(encoded)) + encoded
