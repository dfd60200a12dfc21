"""From the records of one message to the steps of its way: functions without I/O.

add             sent            update 32   routed to a queue      update 33   acknowledged there
event           paged           update 34   delivered so often     update 36   scheduled
delete          no queue has it any more
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.wire import RecordType
from broker.records.message_records import (
    AcknowledgeRef,
    AddRef,
    DeliveryCount,
    ScheduledDelivery,
)
from broker.records.persisters import UnsupportedMessage, message_of_record
from broker.records.records import decode_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.storage.traced_records import TracedRecord

__all__ = ["Step", "message_of", "steps_of"]

log = logging.getLogger("broker")

_MESSAGES: Final = frozenset(
    (RecordType.ADD_MESSAGE_PROTOCOL, RecordType.ADD_LARGE_MESSAGE, RecordType.ADD_MESSAGE)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happened to a message.

    Attributes:
        what: sent, paged, routed, acknowledged, delivered, scheduled, deleted.
        queue: where; None where that does not matter.
        text: the rest, for people.
        transaction: id of the transaction that it is part of; None of none.
        outcome: of the transaction: `committed`, `rolled back`, `prepared`, `not ended`.
        copied: local time at which the file was copied to the history; None: it is the journal's.
    """

    what: str
    queue: str | None = None
    text: str = ""
    transaction: int | None = None
    outcome: str | None = None
    copied: str | None = None

    def as_json(self) -> dict[str, object]:
        """Give what has a value."""
        values = {
            "step": self.what,
            "queue": self.queue,
            "text": self.text or None,
            "transaction": self.transaction,
            "outcome": self.outcome,
            "copied": self.copied,
        }
        return {name: value for name, value in values.items() if value is not None}


def message_of(records: Sequence[TracedRecord]) -> Message | None:
    """Give the message, or the headers of a large one; None where no record has it."""
    for record in records:
        if record.user_type not in _MESSAGES or record.kind.startswith("delete"):
            continue
        try:
            if record.user_type == RecordType.ADD_LARGE_MESSAGE:
                found: Message = Message.decode_headers(record.body)
            else:
                found = message_of_record(record.body)
        except (RecordFormatError, UnsupportedMessage) as error:
            log.warning("message %d cannot be read: %s", record.record_id, error)
            return None
        found.give_id(record.record_id)
        return found
    return None


def steps_of(records: Sequence[TracedRecord], queues: Mapping[int, str]) -> list[Step]:
    """Give what happened, in order.

    Args:
        records: of one message, in their order.
        queues: names by the ids of queues that are there; of others the id is told.
    """
    found = [_step(record, queues) for record in records]
    return [one for one in found if one is not None]


def _step(record: TracedRecord, queues: Mapping[int, str]) -> Step | None:
    common: dict[str, Any] = {
        "transaction": record.tx_id,
        "outcome": None
        if record.tx_id is None
        else {"commit": "committed", "rollback": "rolled back", "prepare": "prepared"}.get(
            record.outcome or "", "not ended"
        ),
        "copied": None if record.copied is None else record.copied.isoformat(sep=" "),
    }
    if record.kind.startswith("delete"):
        return Step(what="deleted", text="no queue has it any more", **common)
    if record.user_type in _MESSAGES:
        return Step(what="paged" if record.kind == "event" else "sent", **common)
    if record.user_type is None:
        return None
    try:
        said = decode_record(
            record.user_type, record.body, is_update=record.kind.startswith(("update", "event"))
        )
    except RecordFormatError as error:
        return Step(what="unreadable", text=str(error), **common)
    match said:
        case AddRef(queue_id):
            return Step(what="routed", queue=_name(queue_id, queues), **common)
        case AcknowledgeRef(queue_id):
            return Step(what="acknowledged", queue=_name(queue_id, queues), **common)
        case DeliveryCount(queue_id, count):
            text = f"{count} times"
            return Step(what="delivered", queue=_name(queue_id, queues), text=text, **common)
        case ScheduledDelivery(queue_id, time):
            text = f"until {time} ms since 1970"
            return Step(what="scheduled", queue=_name(queue_id, queues), text=text, **common)
    return None


def _name(queue_id: int, queues: Mapping[int, str]) -> str:
    return queues.get(queue_id, f"queue {queue_id}, which is gone")
