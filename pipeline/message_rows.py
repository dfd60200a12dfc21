"""The messages of one journal as Arrow record batches: what a task gives.

What has become of a message is known only when all files of its journal were read, so a journal is
one task. Bodies are decoded by broker.storage, a Python object a message.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker.storage.describe_amqp import amqp_user_id, sections_of
from broker.storage.encoding import NSS, BodyReader, RecordFormatError
from broker.storage.java_text import uuid_text, whole_pairs
from broker.storage.json_view import json_view
from broker.storage.properties import PropertyType, last_values
from broker.storage.records import decode_record
from broker.storage.stored_messages import (
    AMQP_ADDRESS_PROPERTY,
    AmqpLargeMessage,
    AmqpMessageV1,
    AmqpMessageV2,
    AmqpMessageV3,
    CoreMessage,
    LargeCoreMessage,
    MessageType,
    Persister,
)
from pipeline.columns import arrow_schema
from pipeline.errors import DataLoss
from pipeline.live_journal import FolderJournal, open_journal, place_of
from pipeline.message_states import MESSAGE_TYPES, MessageStates, message_state
from pipeline.raw_rows import BODIES_MAX, ROWS_MAX, refuse_damage
from pipeline.schema import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.storage.json_view import JSON
    from broker.storage.properties import PropertyValue
    from broker.storage.stored_messages import MessageHeaders
    from broker.storage.wire import WireRecord
    from journal.delivery import LiveRecord
    from pipeline.filters import Wanted
    from pipeline.live_journal import LiveJournal
    from pipeline.places import Place

__all__ = ["message_batches"]

# By which the reference, and we, refuse a second copy of a message.
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
# AMQP 1.0, 3.2.1: what a header that does not say otherwise means.
AMQP_PRIORITY: Final = 4
_TYPE_NAMES: Final = {int(kind): kind.name for kind in MessageType}
_PROPERTY_TYPES: Final = {kind: kind.name.lower() for kind in PropertyType}


def message_batches(
    place: Place,
    wanted: Wanted,
    *,
    user_version: int,
    fails_on_data_loss: bool,
    as_of_ms: int,
) -> Iterator[pa.RecordBatch]:
    """Give the messages that a load finds, in the order of the log; prepared ones; damage.

    Args:
        place: of the journal.
        wanted: tests of message_id, address and timestamp_ms are made here.
        user_version: of every file's header.
        fails_on_data_loss: raise for what is not a torn tail, and for bodies that cannot be read.
        as_of_ms: what has expired and what is scheduled, seen from then; ms since 1970.

    Raises:
        DataLoss: see above.
        UnsupportedFormat: something else wrote it.
        JournalIOError: it cannot be read.
    """
    schema = arrow_schema(MESSAGES)
    with open_journal(place, user_version) as journal:
        if isinstance(journal, FolderJournal):
            refuse_damage(place.journal, journal.damages, fails_on_data_loss=fails_on_data_loss)
        rows = _rows(place, wanted, journal, as_of_ms, fails_on_data_loss=fails_on_data_loss)
        waiting: list[dict[str, Any]] = []
        size = 0
        for row in rows:
            waiting.append(row)
            size += row.get("body_size") or 0
            if len(waiting) >= ROWS_MAX or size >= BODIES_MAX:
                yield pa.RecordBatch.from_pylist(waiting, schema=schema)
                waiting, size = [], 0
        if waiting:
            yield pa.RecordBatch.from_pylist(waiting, schema=schema)


def _rows(
    place: Place,
    wanted: Wanted,
    journal: LiveJournal,
    as_of_ms: int,
    *,
    fails_on_data_loss: bool,
) -> Iterator[dict[str, Any]]:
    where = {"node": place.node, "journal": place.journal}
    states = MessageStates()
    broken = states.take(journal.records())
    # Of a table known only now.
    refuse_damage(place.journal, journal.damages, fails_on_data_loss=fails_on_data_loss)
    states.take_prepared(journal.prepared)
    for record in journal.records():
        if record.user_type in MESSAGE_TYPES:
            row = _row(record, states, wanted, as_of_ms, is_prepared=False)
            if row is not None:
                yield _checked(place, {**where, **row}, fails_on_data_loss=fails_on_data_loss)
    for transaction in journal.prepared:
        for record in transaction.records:
            if record.user_type in MESSAGE_TYPES:
                row = _row(record, states, wanted, as_of_ms, is_prepared=True)
                if row is not None:
                    yield _checked(place, {**where, **row}, fails_on_data_loss=fails_on_data_loss)
    for record, reason in broken:
        row = {
            "message_id": record.record_id,
            **place_of(record),
            "damage": f"record of type {record.user_type}: {reason}",
        }
        if wanted.fits(message_id=record.record_id, address=None, timestamp_ms=None):
            yield _checked(place, {**where, **row}, fails_on_data_loss=fails_on_data_loss)
    if wanted.fits(message_id=None, address=None, timestamp_ms=None):
        for damage in journal.damages:
            found = {"file": damage.file, "offset": damage.offset, "damage": damage.reason}
            yield {**where, **found}


def _checked(place: Place, row: dict[str, Any], *, fails_on_data_loss: bool) -> dict[str, Any]:
    if row.get("damage") is not None and fails_on_data_loss:
        reason = f"{row['file']}:{row['offset']}: message {row['message_id']}: {row['damage']}"
        raise DataLoss(place.journal, [reason])
    return row


def _row(
    record: LiveRecord, states: MessageStates, wanted: Wanted, as_of_ms: int, *, is_prepared: bool
) -> dict[str, Any] | None:
    """One message; None where it is not wanted."""
    if not wanted.fits(message_id=record.record_id):
        return None
    row: dict[str, Any] = {"message_id": record.record_id, **place_of(record)}
    try:
        message = decode_record(record.user_type, record.body, is_update=False)
        assert message is not None, "every type of MESSAGE_TYPES has a class"
        row |= _content(message)
    except RecordFormatError as error:
        row["damage"] = str(error)
    if not wanted.fits(address=row.get("address"), timestamp_ms=row.get("timestamp_ms")):
        return None
    references = states.of(record.record_id)
    row["state"] = message_state(
        references,
        is_prepared=is_prepared,
        expiration_ms=row.get("expiration_ms") or 0,
        as_of_ms=as_of_ms,
    )
    row["references"] = [
        {
            "queue_id": one.queue_id,
            "state": one.state(as_of_ms),
            "delivery_count": one.delivery_count,
            "scheduled_ms": one.scheduled_ms,
        }
        for one in references
    ]
    return row


def _content(message: WireRecord) -> dict[str, Any]:
    """The columns that come from a message's bytes.

    Raises:
        RecordFormatError: it is of a version that nobody reads, or a part of it is damaged.
    """
    if isinstance(message, CoreMessage):
        headers = message.headers
        address = headers.address if message.address is None else message.address
        return {
            **_core_headers(headers, address),
            "is_large": False,
            "body": message.body,
            "body_size": len(message.body),
            "text": _text_body(message) if headers.type == MessageType.TEXT else None,
        }
    if isinstance(message, LargeCoreMessage):
        return {**_core_headers(message.headers, message.headers.address), "is_large": True}
    if isinstance(message, AmqpMessageV1 | AmqpMessageV2 | AmqpMessageV3 | AmqpLargeMessage):
        return _amqp_content(message)
    raise RecordFormatError("a message of a version whose layout nobody reads any more")


def _core_headers(headers: MessageHeaders, address: str | None) -> dict[str, Any]:
    """The columns of a Core message's headers; texts are those of `print-data --decode`."""
    by_name = {_whole(name): item for name, item in last_values(headers.properties).items()}
    properties = {name: _property_text(item.value) for name, item in by_name.items()}
    return {
        "address": None if address is None else _whole(address),
        "protocol": Persister.CORE.name,
        "type": _TYPE_NAMES.get(headers.type, str(headers.type)),
        "durable": headers.durable,
        "priority": headers.priority,
        "timestamp_ms": headers.timestamp,
        "expiration_ms": headers.expiration,
        "user_id": None if headers.user_id is None else uuid_text(headers.user_id),
        "duplicate_id": properties.get(DUPLICATE_ID),
        "properties": list(properties.items()),
        "property_types": [(name, _PROPERTY_TYPES[item.type]) for name, item in by_name.items()],
    }


def _text_body(message: CoreMessage) -> str | None:
    """The text that a text message holds; None where it holds something else."""
    try:
        text = NSS.read(BodyReader(message.body))
    except RecordFormatError:
        # Clients may put anything under any type; the bytes themselves are in `body`.
        return None
    return None if text is None else _whole(text)


def _whole(text: str) -> str:
    """A text that is UTF-8, too: no half of a surrogate pair."""
    return whole_pairs(text, "\ufffd")


def _property_text(value: PropertyValue) -> str | None:
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return _text(value)


def _amqp_content(
    message: AmqpMessageV1 | AmqpMessageV2 | AmqpMessageV3 | AmqpLargeMessage,
) -> dict[str, Any]:
    view = json_view(message)
    sections = sections_of(message)
    header = _object(view["header"])
    properties = _object(view["properties"])
    application = _object(view["applicationProperties"])
    extra = () if isinstance(message, AmqpMessageV1) else message.extra_properties or ()
    kept = last_values(extra).get(AMQP_ADDRESS_PROPERTY)
    noted = properties.get("to") if kept is None else _property_text(kept.value)
    address = view["address"] or noted
    is_large = isinstance(message, AmqpLargeMessage)
    whole = None if isinstance(message, AmqpLargeMessage) else message.encoded
    return {
        "address": address if isinstance(address, str) else None,
        "protocol": message.persister.name,
        "is_large": is_large,
        "durable": bool(header.get("durable")),
        "priority": _integer(header.get("priority", AMQP_PRIORITY), 31),
        "timestamp_ms": _integer(properties.get("creationTime"), 63),
        "expiration_ms": getattr(message, "expiration", 0),
        "user_id": amqp_user_id(sections),
        "duplicate_id": _text(application.get(DUPLICATE_ID)),
        "properties": [(name, _text(value)) for name, value in application.items()],
        "body": whole,
        "body_size": None if whole is None else len(whole),
    }


def _object(view: JSON) -> dict[str, JSON]:
    return view if isinstance(view, dict) else {}


def _integer(value: JSON, bits: int) -> int | None:
    """A value if it is an integer of so many bits and a sign: clients may send anything."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(1 << bits) <= value < 1 << bits else None


def _text(value: JSON) -> str | None:
    """A property's value as text: strings as they are, the rest as JSON has it.

    >>> _text("a"), _text(True), _text(1.5), _text(None)
    ('a', 'true', '1.5', None)
    """
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
