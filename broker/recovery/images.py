"""What the bindings journal says at a start, taken in before anything is made of it.

Only records that count come here, in log order. The message journal: loaded_messages.py.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.model.encoding import RecordFormatError
from broker.records.binding_records import (
    AddressBinding,
    AddressStatusRecord,
    IdCounter,
    QueueBinding,
    QueueStatusRecord,
)
from broker.records.records import decode_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.model.wire import WireRecord
    from broker.storage.identifiers import IdGenerator

__all__ = ["BindingsImage", "Prepared", "Record", "Status"]

log = logging.getLogger("broker")


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
