"""Exports all stored data of a stopped broker into one document, as Artemis's `data exp`.

    bindings ─▶ addresses, queues      messages of the journal, by id ─▶ messages of the pages

Not in it, as there: settings, users, duplicate ids, prepared transactions; due times and delivery
counts, except what a message says of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from broker.model.encoding import RecordFormatError
from broker.model.java_text import hash_order, long_hash, simple_string_hash
from broker.model.message import Message
from broker.model.wire import RecordType
from broker.printing.xml.writer import LARGE_CHUNK_SIZE, XmlWriter
from broker.records.binding_records import AddressBinding, QueueBinding
from broker.records.page_records import NO_TX, entries, entry_size
from broker.records.persisters import UnsupportedMessage, message_of_record
from broker.records.records import decode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from broker.model.large_body import LargeBody, ReadableBody
    from broker.printing.live_messages import LiveMessages
    from broker.records.page_records import PageEntry
    from broker.storage.page_folders import PageFolder
    from journal.data_print import LiveRecord

__all__ = ["UNDEFINED_PREFIX", "Exporter", "page_stores_in_order"]

UNDEFINED_PREFIX: Final = "UndefinedQueue_"
# Ids of messages left out that are told; there may be very many.
_IDS_TOLD: Final = 10
# Of a large body at a time.
_READ_SIZE: Final = 256 * LARGE_CHUNK_SIZE


class Progress(Protocol):
    """Told how many messages were written."""

    def __call__(self, messages: int, /) -> object: ...


@dataclass(slots=True)
class ExportReport:
    """What was written."""

    addresses: int = 0
    queues: int = 0
    messages: int = 0
    losses: int = 0


class Exporter:
    """Writes one document. Threads: one.

    Args:
        write: takes the text of the document, in pieces.
        find_large: gives the body of a large message by its id; None where it is gone.
        on_loss: called with a line for people for each thing that is not, or not all, in it.
        on_progress: told how many messages were written.
        undefined_prefix: of the name, before its id, of a queue that no binding names.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        find_large: Callable[[int], ReadableBody | None],
        on_loss: Callable[[str], object],
        on_progress: Progress = lambda messages: None,
        undefined_prefix: str = UNDEFINED_PREFIX,
    ) -> None:
        self._writer = XmlWriter(write, self._lose)
        self._find_large = find_large
        self._tell_loss = on_loss
        self._on_progress = on_progress
        self._undefined_prefix = undefined_prefix
        self._queues: dict[int, str] = {}
        # Of other protocols, in order of their appearance.
        self._foreign_ids: list[int] = []
        self._foreign_count = 0
        self.report = ExportReport()

    def run(
        self,
        bindings: Iterable[LiveRecord],
        messages: LiveMessages,
        pages: Mapping[str, PageFolder],
    ) -> ExportReport:
        """Write it all.

        Args:
            bindings: live records of the bindings journal.
            messages: of the message journal, which was taken in.
            pages: of each address.

        Raises:
            RecordFormatError: a binding is not what its type says.
            JournalIOError: pages or bodies cannot be read.
            OSError: the document cannot be written.
        """
        self._writer.begin()
        self._write_bindings(bindings)
        self._writer.begin_messages()
        for message in messages.messages():
            queues = self._names_of(message.queue_ids)
            try:
                found = _decode(message.user_type, message.body)
            except RecordFormatError as error:
                self._lose(f"message {message.message_id} is damaged: left out: {error}")
                continue
            self._write(found, message.message_id, queues)
        for address in page_stores_in_order(pages):
            self._write_pages(address, pages[address], messages)
        self._writer.end()
        self._tell_foreign()
        return self.report

    def _lose(self, what: str) -> None:
        self.report.losses += 1
        self._tell_loss(what)

    def _tell_foreign(self) -> None:
        """Say in one line what is of a kind that cannot be read here."""
        count = self._foreign_count
        if count:
            ids = ", ".join(map(str, self._foreign_ids))
            more = f" and {count - _IDS_TOLD} more" if count > _IDS_TOLD else ""
            self._tell_loss(
                f"left out, of a kind not read here: {count} messages, of ids {ids}{more}"
            )

    def _write_bindings(self, records: Iterable[LiveRecord]) -> None:
        addresses: dict[int, AddressBinding] = {}
        queues: dict[int, QueueBinding] = {}
        for record in records:
            try:
                found = decode_record(record.user_type, record.body, is_update=record.is_update)
            except RecordFormatError as error:
                raise RecordFormatError(f"bindings record {record.record_id}: {error}") from error
            if isinstance(found, AddressBinding):
                addresses[record.record_id] = found
            elif isinstance(found, QueueBinding):
                queues[record.record_id] = found
        for address_id in _walk_order(addresses):
            self._writer.address(address_id, addresses[address_id])
        for queue_id in _walk_order(queues):
            self._writer.queue(queue_id, queues[queue_id])
        self._queues = {queue_id: binding.name for queue_id, binding in queues.items()}
        self.report.addresses, self.report.queues = len(addresses), len(queues)

    def _names_of(self, queue_ids: Iterable[int]) -> list[str]:
        found = []
        for queue_id in _walk_order(queue_ids):
            name = self._queues.get(queue_id)
            if name is None:
                name = self._queues[queue_id] = f"{self._undefined_prefix}{queue_id}"
                self._lose(f"queue {queue_id} has no binding: exported as {name}")
            found.append(name)
        return found

    # Messages.

    def _write(self, message: Message | None, message_id: int, queues: list[str]) -> None:
        """Write a message of a journal or page; None is one of another protocol."""
        if message is None:
            self.report.losses += 1
            self._foreign_count += 1
            if self._foreign_count <= _IDS_TOLD:
                self._foreign_ids.append(message_id)
            return
        if message.is_large:
            message.message_id = message_id
            body = self._find_large(message_id)
            if body is None:
                self._lose(f"large message {message_id} has no body: left out")
                return
            message.large = cast("LargeBody", body)  # It is read, and no more.
            large = message.large
            assert large is not None, "it was given one"
            large.hold()
            try:
                self._writer.message(message, queues, _pieces(large))
            finally:
                large.release()
        else:
            self._writer.message(message, queues)
        self._count()

    def _count(self) -> None:
        self.report.messages += 1
        self._on_progress(self.report.messages)

    # Pages.

    def _write_pages(self, address: str, folder: PageFolder, journal: LiveMessages) -> None:
        for page, size in folder.sizes().items():
            data = folder.read(page, 0, size)
            acknowledged = journal.page_acknowledgements(page)
            # Their acknowledgements are deleted when all of the page are there. Artemis does
            # not look here, and exports such messages once more.
            complete = journal.complete_queues(page)
            at = 0
            for entry in entries(data, 0, 0):
                at = entry.end
                queues = [
                    self._queues[queue_id]
                    for queue_id in entry.queue_ids
                    if queue_id in self._queues
                    and queue_id not in complete
                    and (queue_id, entry.number) not in acknowledged
                ]
                counts = entry.tx_id == NO_TX or entry.tx_id in journal.page_transactions
                if queues and counts:
                    self._write_entry(entry, data, queues)
            if at < size and entry_size(data, at) > 0 and at + entry_size(data, at) < size:
                self._lose(f"page {page} of {address} is damaged from byte {at} on")

    def _write_entry(self, entry: PageEntry, data: bytes, queues: list[str]) -> None:
        message_id = entry.message_id(data)
        try:
            found = entry.message(data)
        except UnsupportedMessage:
            found = None
        except RecordFormatError as error:
            self._lose(f"message {message_id} is damaged: left out: {error}")
            return
        self._write(found, message_id, queues)


def _decode(user_type: int, body: bytes) -> Message | None:
    """Give the message of a record; None where it is of a kind that cannot be read here.

    Raises:
        RecordFormatError: it is not what its type says.
    """
    if user_type == RecordType.ADD_LARGE_MESSAGE:
        return Message.decode_headers(body)
    if user_type != RecordType.ADD_MESSAGE_PROTOCOL:
        return None
    try:
        return message_of_record(body)
    except UnsupportedMessage:
        return None


def _walk_order(ids: Iterable[int]) -> list[int]:
    """Give ids as Artemis walks over a map of them."""
    return list(hash_order({one: long_hash(one) for one in ids}))


def page_stores_in_order(addresses: Iterable[str]) -> list[str]:
    """Give the addresses that have pages as Artemis walks over them."""
    return list(hash_order({address: simple_string_hash(address) for address in addresses}))


def _pieces(body: ReadableBody) -> Iterator[bytes]:
    at = 0
    while piece := body.read(at, _READ_SIZE):
        yield piece
        at += len(piece)
