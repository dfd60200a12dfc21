from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from journal.errors import Damage
from journal.folder import JournalFile
from journal.index import RecordIndex

__all__ = [
    "DeletedRecord",
    "FailedTransaction",
    "FileShare",
    "LiveRecord",
    "LoadResult",
    "LoadedFile",
    "Loader",
    "PreparedTransaction",
    "RecordColumns",
]

@final
class LiveRecord:
    @property
    def record_id(self) -> int: ...
    @property
    def user_type(self) -> int: ...
    @property
    def is_update(self) -> bool: ...
    @property
    def compact_count(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def file(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def checksum(self) -> str: ...
    @property
    def kind(self) -> str: ...

@dataclass(frozen=True, slots=True)
class RecordColumns:
    record_ids: array[int]
    user_types: bytearray
    updates: bytearray
    offsets: array[int]
    bodies: bytes
    def __len__(self) -> int: ...

@dataclass(frozen=True, slots=True)
class DeletedRecord:
    record_id: int
    body: bytes

@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    tx_id: int
    extra: bytes
    records: tuple[LiveRecord, ...]
    deletes: tuple[DeletedRecord, ...]

@dataclass(frozen=True, slots=True)
class FailedTransaction:
    tx_id: int
    records: tuple[LiveRecord, ...]
    deletes: tuple[DeletedRecord, ...]

@dataclass(slots=True)
class LoadedFile:
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
    live_bytes: int
    add_count: int
    replaceable_count: int
    is_reclaimable: bool

@dataclass(slots=True)
class LoadResult:
    files: list[LoadedFile] = ...
    short_files: list[str] = ...
    record_count: int = ...
    max_id: int = ...
    last_file_id: int = ...
    delivered_count: int = ...
    prepared: list[PreparedTransaction] = ...
    failed: list[FailedTransaction] = ...
    damages: list[Damage] = ...
    @property
    def torn(self) -> list[Damage]: ...

@final
class Loader:
    def __init__(
        self,
        files: Iterable[JournalFile],
        index: RecordIndex,
        *,
        user_version: int = 0,
        damage: Literal["fail", "quarantine"] = "fail",
        replaceable: Collection[int] = (),
        readahead: int = 8,
        progress: Callable[[int, int, int, int], object] | None = None,
        prune_count: int = ...,
        step_size: int = ...,
    ) -> None: ...
    @property
    def files(self) -> list[JournalFile]: ...
    @property
    def index(self) -> RecordIndex: ...
    @property
    def user_version(self) -> int: ...
    @property
    def damage(self) -> str: ...
    def shares(self) -> list[FileShare]: ...
    def add_ids(self) -> list[int]: ...
    def load(self) -> LoadResult: ...
    def deliver(
        self, on_batch: Callable[[list[LiveRecord]], object], *, batch_records: int = 1024
    ) -> int: ...
    def deliver_columns(
        self, on_batch: Callable[[RecordColumns], object], *, batch_records: int = 65536
    ) -> int: ...
    def records(self) -> Iterator[LiveRecord]: ...
