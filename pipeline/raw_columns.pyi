from collections.abc import Collection
from typing import Final, NamedTuple, final

from journal.errors import Damage

__all__ = ["CHECKSUMS", "KINDS", "NO_ID", "VERDICTS", "PackedFile", "RawColumns", "Span"]

KINDS: Final[tuple[str, ...]]
CHECKSUMS: Final[tuple[str, ...]]
VERDICTS: Final[tuple[str, ...]]
NO_ID: Final[int]

class RawColumns(NamedTuple):
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
    row_count: int
    end: int
    greatest_id: int
    is_whole: bool

@final
class PackedFile:
    def __init__(
        self,
        name: str,
        data: bytes | bytearray | memoryview,
        *,
        is_newest: bool = True,
        user_version: int = 0,
    ) -> None: ...
    @property
    def file_id(self) -> int: ...
    @property
    def damages(self) -> list[Damage]: ...
    @property
    def is_moved(self) -> bool: ...
    def clip(self, first: int, end: int) -> None: ...
    def span(self, first: int, *, rows_max: int, end: int, is_growing: bool) -> Span: ...
    def want(
        self,
        kinds: Collection[str] | None,
        user_types: Collection[int] | None,
        ids: tuple[int, int] | None,
    ) -> None: ...
    def pack(
        self, first: int, *, rows_max: int, bodies_max: int, with_bodies: bool = True
    ) -> tuple[RawColumns, int | None]: ...
