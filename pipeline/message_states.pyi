from collections.abc import Iterable
from typing import Final, NamedTuple, final

from broker.model.wire import RecordType
from journal.delivery import LiveCursor, LiveRecord
from journal.loaded import PreparedTransaction

__all__ = [
    "MESSAGE_STATES",
    "MESSAGE_TYPES",
    "REFERENCE_STATES",
    "REFERENCE_TYPES",
    "MessageStates",
    "StateColumns",
]

MESSAGE_TYPES: Final[tuple[RecordType, ...]]
REFERENCE_TYPES: Final[tuple[int, ...]]
REFERENCE_STATES: Final[tuple[str, ...]]
MESSAGE_STATES: Final[tuple[str, ...]]

class StateColumns(NamedTuple):
    states: bytearray
    offsets: bytearray
    queue_ids: bytearray
    reference_states: bytearray
    delivery_counts: bytearray
    scheduled_ms: bytearray

@final
class MessageStates:
    def take_from(self, cursor: LiveCursor) -> list[tuple[LiveRecord, str]]: ...
    def take(self, records: Iterable[LiveRecord]) -> list[tuple[LiveRecord, str]]: ...
    def reason(self, record: LiveRecord) -> str: ...
    def take_prepared(self, transactions: Iterable[PreparedTransaction]) -> None: ...
    def columns(
        self,
        ids: memoryview,
        expirations_ms: memoryview,
        *,
        as_of_ms: int,
        is_prepared: bool = False,
    ) -> StateColumns: ...
