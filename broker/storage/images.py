"""What the two journals say at a start, taken in as it is read, before anything is made of it.

Only records that count come here, in log order: for a message its add, then what happened to it in
each queue. One reference is a small list until its queue is there; a message stays the bytes it was
stored as.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.storage.binding_records import (
    AddressBinding,
    AddressStatusRecord,
    IdCounter,
    QueueBinding,
    QueueStatusRecord,
)
from broker.storage.message_records import DuplicateId, HeuristicCompletion
from broker.storage.records import RecordFormatError, decode_record
from broker.storage.wire import RecordType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.storage.identifiers import IdGenerator
    from broker.storage.wire import WireRecord

__all__ = ["BindingsImage", "Entry", "MessagesImage", "Prepared", "Record", "Status"]

log = logging.getLogger("broker")

_LONG: Final = struct.Struct(">q")
_LONG_INT: Final = struct.Struct(">qi")
_LONG_LONG: Final = struct.Struct(">qq")


class Record(Protocol):
    """One live record, of either kind of store."""

    @property
    def record_id(self) -> int:
        """What it is about."""

    @property
    def user_type(self) -> int:
        """A RecordType."""

    @property
    def is_update(self) -> bool:
        """Whether an add came before it."""

    @property
    def body(self) -> bytes:
        """Its bytes."""


class Prepared(Protocol):
    """A transaction that waits for its decision."""

    @property
    def tx_id(self) -> int:
        """Of its records."""

    @property
    def extra(self) -> bytes:
        """Its Xid."""

    @property
    def records(self) -> Sequence[Record]:
        """What it added and updated."""


class Status(NamedTuple):
    """That a queue or address was paused or not, and the record that says so."""

    record_id: int
    is_paused: bool


class BindingsImage:
    """The bindings journal.

    Attributes:
        queues: by id.
        addresses: by id.
        queue_status: by queue id.
        address_status: by address id.
        settings: everything else, with the record's id, in log order: settings, diverts, users …
    """

    def __init__(self, ids: IdGenerator) -> None:
        self._ids = ids
        self.queues: dict[int, QueueBinding] = {}
        self.addresses: dict[int, AddressBinding] = {}
        self.queue_status: dict[int, Status] = {}
        self.address_status: dict[int, Status] = {}
        self.settings: list[tuple[int, WireRecord]] = []

    def take(self, batch: Sequence[Record]) -> None:
        """Take the next records.

        Raises:
            RecordFormatError: one of them is not what its type says; it names the record.
        """
        for item in batch:
            try:
                found = decode_record(item.user_type, item.body, is_update=item.is_update)
            except RecordFormatError as error:
                raise RecordFormatError(f"bindings record {item.record_id}: {error}") from error
            self._take(item.record_id, found, item.user_type)

    def _take(self, record_id: int, found: WireRecord | None, user_type: int) -> None:
        match found:
            case QueueBinding():
                self.queues[record_id] = found
            case AddressBinding():
                self.addresses[record_id] = found
            case IdCounter():
                self._ids.loaded(record_id, found)
            case QueueStatusRecord():
                self.queue_status[found.queue_id] = Status(record_id, found.status == 0)
            case AddressStatusRecord():
                self.address_status[found.address_id] = Status(record_id, found.status == 0)
            case None:
                log.warning("bindings record %d has the unknown type %d", record_id, user_type)
            case _:
                self.settings.append((record_id, found))


class Entry:
    """One message in one queue: how often it was delivered, and when it is due."""

    __slots__ = ("delivery_count", "scheduled_ms")

    def __init__(self) -> None:
        self.delivery_count = 0
        self.scheduled_ms = 0


class MessagesImage:
    """The message journal.

    Attributes:
        messages: bodies of records 45 by message id.
        large: bodies of records 30 by message id.
        queues: by queue id, the messages it has, in order.
        duplicate_ids: by address, the oldest first: the id and its record.
        heuristic: decisions of operators, with the record's id.
        others: records of pages and whatever else, with id, type and whether it is an update.
    """

    def __init__(self) -> None:
        self.messages: dict[int, bytes] = {}
        self.large: dict[int, bytes] = {}
        self.queues: dict[int, dict[int, Entry]] = {}
        self.duplicate_ids: dict[str, list[tuple[bytes, int]]] = {}
        self.heuristic: list[tuple[int, HeuristicCompletion]] = []
        self.others: list[tuple[int, int, bool, bytes]] = []

    def take(self, batch: Sequence[Record]) -> None:
        """Take the next records.

        Raises:
            RecordFormatError: one of them is not what its type says; it names the record.
        """
        for item in batch:
            try:
                self._take(item)
            except (RecordFormatError, struct.error) as error:
                raise RecordFormatError(
                    f"message record {item.record_id} of type {item.user_type}: {error}"
                ) from error

    def _take(self, item: Record) -> None:
        kind = item.user_type
        if kind == RecordType.ADD_MESSAGE_PROTOCOL:
            self.messages[item.record_id] = item.body
        elif kind == RecordType.ADD_REF:
            queue_id = _LONG.unpack_from(item.body)[0]
            self.queues.setdefault(queue_id, {})[item.record_id] = Entry()
        elif kind == RecordType.ACKNOWLEDGE_REF:
            queue_id = _LONG.unpack_from(item.body)[0]
            if self.queues.get(queue_id, {}).pop(item.record_id, None) is None:
                log.warning(
                    "queue %d acknowledged message %d, which it does not have",
                    queue_id,
                    item.record_id,
                )
        elif kind == RecordType.UPDATE_DELIVERY_COUNT:
            queue_id, count = _LONG_INT.unpack_from(item.body)
            entry = self.queues.get(queue_id, {}).get(item.record_id)
            if entry is not None:
                entry.delivery_count = count
        elif kind == RecordType.SET_SCHEDULED_DELIVERY_TIME:
            queue_id, time_ms = _LONG_LONG.unpack_from(item.body)
            entry = self.queues.get(queue_id, {}).get(item.record_id)
            if entry is not None:
                entry.scheduled_ms = time_ms
        elif kind == RecordType.ADD_LARGE_MESSAGE:
            self.large[item.record_id] = item.body
        elif kind in (RecordType.DUPLICATE_ID, RecordType.HEURISTIC_COMPLETION):
            self._take_decoded(item)
        else:
            self.others.append((item.record_id, kind, item.is_update, item.body))

    def _take_decoded(self, item: Record) -> None:
        found = decode_record(item.user_type, item.body, is_update=item.is_update)
        if isinstance(found, DuplicateId):
            self.duplicate_ids.setdefault(found.address, []).append(
                (found.duplicate_id, item.record_id)
            )
        elif isinstance(found, HeuristicCompletion):
            self.heuristic.append((item.record_id, found))
