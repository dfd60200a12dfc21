"""The result of a load: files, open transactions, damage; and records as columns.

One record as an object is LiveRecord, in delivery.pyx.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array
    from pathlib import Path

    from journal.delivery import LiveRecord
    from journal.errors import Damage

__all__ = [
    "DeletedRecord",
    "FailedTransaction",
    "FileShare",
    "LoadResult",
    "LoadedFile",
    "PreparedTransaction",
    "RecordColumns",
]


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Adds and updates that count, in log order, column by column; each one a buffer.

    Attributes:
        record_ids: 64-bit integers.
        user_types: a byte each.
        updates: a byte each, 1 for an update of an earlier add.
        offsets: 32-bit integers, one more than there are records; the body of record i is
            bodies[offsets[i]:offsets[i + 1]].
        bodies: all bodies, one behind the other.
    """

    record_ids: array[int]
    user_types: bytearray
    updates: bytearray
    offsets: array[int]
    bodies: bytes

    def __len__(self) -> int:
        """Number of records."""
        return len(self.record_ids)


@dataclass(frozen=True, slots=True)
class DeletedRecord:
    """A delete within a transaction; Artemis lets it carry a body.

    Attributes:
        record_id: of the record that it deletes.
        body: empty unless the caller gave one.
    """

    record_id: int
    body: bytes


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """Prepared and undecided: applies once it is committed.

    Attributes:
        tx_id: of the transaction.
        extra: what the caller gave to prepare.
        records: adds and updates, in order.
        deletes: in order.
    """

    tx_id: int
    extra: bytes
    records: tuple[LiveRecord, ...]
    deletes: tuple[DeletedRecord, ...]


@dataclass(frozen=True, slots=True)
class FailedTransaction:
    """Left open, or damaged: will not apply. Journal.load() appends its rollback.

    Attributes:
        tx_id: of the transaction.
        records: adds and updates, in order.
        deletes: in order.
    """

    tx_id: int
    records: tuple[LiveRecord, ...]
    deletes: tuple[DeletedRecord, ...]


@dataclass(slots=True)
class LoadedFile:
    """One file, as the running journal takes it over.

    Attributes:
        slot: in the record index.
        name, file_id, number, size: as in the folder.
        has_data: holds, or held, more than events; never to be used again while it pins anything.
        last_data_position: end of the last live record; there Artemis appends.
        append_position: end of the last live record or mark.
        next_ordinal: of the next record with a leader.
        synced_count: by the last mark.
        is_ended: an end mark closes it.
        is_closed: Artemis went on behind a torn tail of ours; never append to it.
        has_checksums: it was, at least in part, written with leaders.
        torn_offset: start of the torn tail, to be kept elsewhere and zeroed before any append.
        torn_size: bytes of the torn tail; 0 if there is none.
        record_count, checksum_count: live records of any kind, and those with a good leader.
    """

    slot: int
    name: str
    path: Path
    file_id: int
    number: int
    size: int
    has_data: bool
    last_data_position: int
    append_position: int
    next_ordinal: int
    synced_count: int
    is_ended: bool
    is_closed: bool
    has_checksums: bool
    torn_offset: int
    torn_size: int
    record_count: int
    checksum_count: int


@dataclass(frozen=True, slots=True)
class FileShare:
    """What of a file is still needed, as the record index counts it.

    Attributes:
        live_bytes: of adds and updates that are live.
        add_count, replaceable_count: what compaction's rules count; never less than live.
        is_reclaimable: nothing in it is needed, it waits to be used again.
    """

    live_bytes: int
    add_count: int
    replaceable_count: int
    is_reclaimable: bool


@dataclass(slots=True)
class LoadResult:
    """What a load found.

    Attributes:
        files: in the order of their ids; short ones left out.
        short_files: names of files without a whole header, which Artemis deletes.
        record_count: live records.
        max_id: largest record id of any add or update seen, -1 if none.
        last_file_id: the largest in any header or name; the next file gets the one after it.
        delivered_count: live adds and updates that deliver() gives.
        prepared: transactions that wait for a commit or rollback, in the order they began.
        failed: transactions that were left open or are damaged, in the order they began.
        damages: in the order of files and offsets, torn tails included.
        torn: those of them that were never acknowledged.
    """

    files: list[LoadedFile] = field(default_factory=list)
    short_files: list[str] = field(default_factory=list)
    record_count: int = 0
    max_id: int = -1
    last_file_id: int = 0
    delivered_count: int = 0
    prepared: list[PreparedTransaction] = field(default_factory=list)
    failed: list[FailedTransaction] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)

    @property
    def torn(self) -> list[Damage]:
        """Damage beyond what was ever acknowledged."""
        return [damage for damage in self.damages if damage.torn]
