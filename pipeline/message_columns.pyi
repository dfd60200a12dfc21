from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple, final

from broker.model.properties import PropertyValue
from journal.delivery import LiveCursor, LiveRecord

__all__ = ["PROPERTY_TYPES", "TYPES", "CoreColumns", "MessagePacker"]

TYPES: Final[tuple[str, ...]]
PROPERTY_TYPES: Final[tuple[str, ...]]

class CoreColumns(NamedTuple):
    row_count: int
    message_ids: bytes
    record_offsets: bytes
    files: list[tuple[int, str | None]]
    types: bytes
    durables: bytes
    priorities: bytes
    timestamps: bytes
    expirations: bytes
    address: tuple[bytearray, bytes, bytes]
    user_id: tuple[bytearray, bytes, bytes]
    duplicate_id: tuple[bytearray, bytes, bytes]
    body: tuple[bytearray, bytes, bytes]
    body_sizes: bytes
    text: tuple[bytearray, bytes, bytes]
    property_count: int
    property_offsets: bytes
    property_names: tuple[bytearray, bytes, bytes]
    property_values: tuple[bytearray, bytes, bytes]
    property_types: bytes

@final
class MessagePacker:
    def __init__(
        self,
        property_text: Callable[[PropertyValue], str | None],
        duplicate_name: str,
        least_id: int,
        greatest_id: int,
        names: Collection[str] | None = None,
    ) -> None: ...
    def fill(
        self, records: Iterator[LiveRecord], *, rows_max: int, bodies_max: int
    ) -> list[tuple[int, LiveRecord]] | None: ...
    def fill_from(
        self, cursor: LiveCursor, *, rows_max: int, bodies_max: int
    ) -> list[tuple[int, LiveRecord]] | None: ...
    def columns(self) -> CoreColumns: ...
