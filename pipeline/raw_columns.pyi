from collections.abc import Collection
from typing import Final, NamedTuple, final

from journal.errors import Damage

__all__ = ["CHECKSUMS", "KINDS", "VERDICTS", "PackedFile", "RawColumns"]

KINDS: Final[tuple[str, ...]]
CHECKSUMS: Final[tuple[str, ...]]
VERDICTS: Final[tuple[str, ...]]

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
    def want(
        self,
        kinds: Collection[str] | None,
        user_types: Collection[int] | None,
        ids: tuple[int, int] | None,
    ) -> None: ...
    def pack(
        self, first: int, *, rows_max: int, bodies_max: int
    ) -> tuple[RawColumns, int | None]: ...
