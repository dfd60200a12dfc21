"""What has become of the messages of one journal: their references, by queue.

A message stands first in the log, what became of it much later; so a reader goes through the log
twice, here first. Memory: some 300 bytes a reference that a live message has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.storage.encoding import RecordFormatError
from broker.storage.message_records import (
    AcknowledgeRef,
    AddRef,
    DeliveryCount,
    ScheduledDelivery,
)
from broker.storage.records import decode_record
from broker.storage.wire import RecordType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from journal.delivery import LiveRecord
    from journal.loaded import PreparedTransaction

__all__ = ["MESSAGE_TYPES", "MessageStates", "Reference", "message_state"]

MESSAGE_TYPES: Final = (
    RecordType.ADD_MESSAGE_PROTOCOL,
    RecordType.ADD_LARGE_MESSAGE,
    RecordType.ADD_MESSAGE,
)
_REFERENCE_TYPES: Final = frozenset(
    (
        RecordType.ADD_REF,
        RecordType.ACKNOWLEDGE_REF,
        RecordType.UPDATE_DELIVERY_COUNT,
        RecordType.SET_SCHEDULED_DELIVERY_TIME,
    )
)


@dataclass(slots=True)
class Reference:
    """A message in a queue.

    Attributes:
        queue_id: of the queue.
        delivery_count: how often it was delivered, as far as that was stored.
        scheduled_ms: not to be delivered before; ms since 1970, 0: at once.
        is_acknowledged: the queue is done with it.
        is_prepared: it counts only once a prepared transaction commits.
        is_acknowledging: a prepared transaction acknowledges it.
    """

    queue_id: int
    delivery_count: int = 0
    scheduled_ms: int = 0
    is_acknowledged: bool = False
    is_prepared: bool = False
    is_acknowledging: bool = False

    def state(self, as_of_ms: int) -> str:
        """One word for it, at a moment in ms since 1970."""
        if self.is_acknowledged:
            return "acknowledged"
        if self.is_acknowledging:
            return "acknowledging"
        if self.is_prepared:
            return "prepared"
        return "scheduled" if self.scheduled_ms > as_of_ms else "live"


class MessageStates:
    """The references of all messages that are live or prepared."""

    def __init__(self) -> None:
        self._references: dict[int, dict[int, Reference]] = {}

    def take(self, records: Iterable[LiveRecord]) -> list[tuple[LiveRecord, str]]:
        """Take the records of a load, those that are of no reference passed over.

        Returns:
            Those that cannot be read, and why.
        """
        broken = []
        for record in records:
            if record.user_type in _REFERENCE_TYPES:
                try:
                    self._take(record)
                except RecordFormatError as error:
                    broken.append((record, str(error)))
        return broken

    def take_prepared(self, transactions: Iterable[PreparedTransaction]) -> None:
        """Take what transactions that wait for their end would change."""
        for transaction in transactions:
            for record in transaction.records:
                if record.user_type not in (RecordType.ADD_REF, RecordType.ACKNOWLEDGE_REF):
                    continue
                try:
                    found = decode_record(record.user_type, record.body, is_update=True)
                except RecordFormatError:
                    # Nobody can say which queue; the commit will not be able to, either.
                    continue
                if isinstance(found, AddRef):
                    self._reference(record.record_id, found.queue_id).is_prepared = True
                elif isinstance(found, AcknowledgeRef):
                    self._reference(record.record_id, found.queue_id).is_acknowledging = True

    def _take(self, record: LiveRecord) -> None:
        found = decode_record(record.user_type, record.body, is_update=record.is_update)
        match found:
            case AddRef():
                self._reference(record.record_id, found.queue_id)
            case AcknowledgeRef():
                self._reference(record.record_id, found.queue_id).is_acknowledged = True
            case DeliveryCount():
                self._reference(record.record_id, found.queue_id).delivery_count = found.count
            case ScheduledDelivery():
                self._reference(record.record_id, found.queue_id).scheduled_ms = found.time

    def _reference(self, message_id: int, queue_id: int) -> Reference:
        of_message = self._references.setdefault(message_id, {})
        if queue_id not in of_message:
            of_message[queue_id] = Reference(queue_id)
        return of_message[queue_id]

    def of(self, message_id: int) -> list[Reference]:
        """The references of a message, in the order in which queues were first named."""
        return list(self._references.get(message_id, {}).values())


def message_state(
    references: list[Reference], *, is_prepared: bool, expiration_ms: int, as_of_ms: int
) -> str:
    """One word for a message, the first that fits.

    prepared        its own record waits for a prepared transaction's commit
    unreferenced    no queue ever had it: the next start removes it
    acknowledged    every queue is done with it
    expired         some queue has it still, and it has expired
    scheduled       all queues that have it wait for a time
    live            else

    Args:
        references: of the message.
        is_prepared: see above.
        expiration_ms: ms since 1970, 0: never.
        as_of_ms: the moment that is meant, ms since 1970.
    """
    if is_prepared:
        return "prepared"
    if not references:
        return "unreferenced"
    left = [one.state(as_of_ms) for one in references if not one.is_acknowledged]
    if not left:
        return "acknowledged"
    if 0 < expiration_ms <= as_of_ms:
        return "expired"
    return "scheduled" if all(state == "scheduled" for state in left) else "live"
