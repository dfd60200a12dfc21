"""Steps of messages (sent, routed, acknowledged, deleted) from records, without bodies.

    records of a file ─▶ those that say anything of a message ─▶ with what became of their
                                                                 transaction, if its end is there

A step is what one record tells: that a message was sent, that a queue got it, and so on. Bodies are
read here, where they are, and go no further. Memory: the steps of one file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from broker.model.encoding import RecordFormatError
from broker.model.wire import RecordType
from pipeline.columns import Column, arrow_schema
from pipeline.filters import LONG_MAX, LONG_MIN
from pipeline.message_arrays import core_arrays
from pipeline.message_columns import MessagePacker
from pipeline.message_content import DUPLICATE_ID, message_content, property_text
from pipeline.message_states import MESSAGE_TYPES
from pipeline.raw_rows import ROWS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from journal.delivery import LiveRecord

__all__ = ["STEPS", "step_batches"]

STEPS: Final = (
    Column("node", "string", "name of the instance, or of the folder or database"),
    Column("file", "string", "of damage: name of the file"),
    Column("own", "bigint", "where the record stands: the file's id above an offset"),
    Column(
        "step",
        "string",
        "sent, routed, acknowledged, deleted, accepted, moved; told, of the transaction of an"
        " event; commit, rollback; damage",
    ),
    Column(
        "message_id",
        "bigint",
        "of accepted the id at its source, if source_id is there; of moved the original's",
    ),
    Column("tx_id", "bigint", "whose end is not known here; null of what counts, or never will"),
    Column("counts", "bigint", "where it began to count; null: that is not known here"),
    Column("compact_count", "int", "how often compaction has copied the record"),
    Column("is_event", "boolean", "it is of a page, or a large message's body"),
    Column("queue_id", "bigint", "of routed and acknowledged; of told the transaction"),
    Column(
        "source_id",
        "string",
        "of accepted: the node that it came from, 32 hex digits; null: a JMS bridge may have made"
        " its duplicate_id",
    ),
    Column("is_readable", "boolean", "of sent: the record can be decoded"),
    Column("address", "string", "of sent, and all that follow; of accepted, where it was sent to"),
    Column("priority", "int", "0 to 9"),
    Column("timestamp_ms", "bigint", "when it was sent, says the sender"),
    Column("user_id", "string", "the client's id"),
    Column("duplicate_id", "string", "by which a second copy is refused"),
    Column("bridged_id", "string", "JMSMessageID of what a JMS bridge made it of, if that tells"),
    Column("body_size", "bigint", "bytes; of a large one what its sender says"),
    Column("is_large", "boolean", "its body is a file, or rows, of its own"),
    Column("group_id", "string", "all of a group go to one consumer"),
    Column("is_scheduled", "boolean", "its time was in the future"),
    Column("is_moved", "boolean", "it was moved from another queue"),
    Column("moved_from", "string", "of moved: the queue"),
    Column("damage", "string", "what is wrong there"),
)

_REFERENCE: Final = int(RecordType.ADD_REF)
_ACKNOWLEDGE: Final = int(RecordType.ACKNOWLEDGE_REF)
_DUPLICATE_ID: Final = int(RecordType.DUPLICATE_ID)
_TRANSACTION: Final = int(RecordType.PAGE_TRANSACTION)
# Before the address, in records of what bridges brought (PostOfficeImpl.BRIDGE_CACHE_STR).
_BRIDGE: Final = "BRIDGE.".encode("utf-16-le")
# Of a node, and of its message: what a bridge makes a duplicate id of.
_NODE_ID_SIZE: Final = 16
_BRIDGE_ID_SIZE: Final = 24
# What a JMS bridge makes (broker.bridges.jms.transfers); as text by other protocols than Core's.
_JMS_ID_SIZE: Final = 32
_JMS_TEXT_SIZE: Final = 4 * _JMS_ID_SIZE
# A file's id above an offset in it, which has 31 bits.
_OFFSET_BITS: Final = 32
# Of steps, in the order in which they are looked for.
_NAMES: Final = (
    *("damage", "commit", "rollback", "deleted", "routed", "acknowledged", "sent", "told"),
    "accepted",
)
_DAMAGE, _SENT, _ACCEPTED = (_NAMES.index(name) for name in ("damage", "sent", "accepted"))
_WITH_NUMBER: Final = frozenset(_NAMES.index(name) for name in ("routed", "acknowledged", "told"))
_LONG: Final = struct.Struct(">q")
_INT: Final = struct.Struct(">i")
_LARGE_SIZE: Final = "_AMQ_LARGE_SIZE"
# Of a message what is told, and which of its properties.
_TAKEN: Final = (
    *("address", "priority", "timestamp_ms", "user_id", "duplicate_id", "body_size", "is_large"),
)
_GROUP: Final = "_AMQ_GROUP_ID"
_DELIVERY: Final = "_AMQ_SCHED_DELIVERY"
_ORIGINAL: Final = "_AMQ_ORIG_MESSAGE_ID"
_ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
# Of the two names of the list the one that every JMS bridge writes, Artemis's too.
_BRIDGED: Final = "AMQ_BRIDGE_MSG_ID_LIST"
_PROPERTIES: Final = (_GROUP, _DELIVERY, _ORIGINAL, _ORIGINAL_QUEUE, _BRIDGED)
# What is made of a message's content for that.
_MADE: Final = (*_TAKEN, "properties")
_CONTENT: Final = pa.schema(
    [
        ("address", pa.string()),
        ("priority", pa.int32()),
        ("timestamp_ms", pa.int64()),
        ("user_id", pa.string()),
        ("duplicate_id", pa.string()),
        ("body_size", pa.int64()),
        ("is_large", pa.bool_()),
        *((name, pa.string()) for name in _PROPERTIES),
    ]
)


def step_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the steps of records, those of a file together.

    Args:
        batches: of the columns of `journal` or `retention`, file after file, in its order.
    """
    schema = arrow_schema(STEPS)

    def file_of(batch: pa.RecordBatch) -> tuple[Any, ...]:
        return tuple(batch.column(name)[0].as_py() for name in ("node", "journal", "file"))

    for _, of_file in groupby((batch for batch in batches if batch.num_rows), file_of):
        found = [one for batch in of_file for one in _steps(batch, schema)]
        if found:
            (whole,) = pa.Table.from_batches(found, schema).combine_chunks().to_batches()
            yield from _cut(_decided(whole))


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, ROWS_MAX):
        yield batch.slice(start, ROWS_MAX)


def _decided(steps: pa.RecordBatch) -> pa.RecordBatch:
    """The steps of a file; transactions that end in the same file are decided.

    What follows is in this file, or in one behind it: an end that is here is the next one.
    """
    step, tx_id, own = (steps.column(name) for name in ("step", "tx_id", "own"))
    is_commit = pc.equal(step, "commit")
    is_end = pc.or_(is_commit, pc.equal(step, "rollback"))
    ends = steps.filter(is_end)
    if not ends.num_rows:
        return steps
    places: dict[int, int] = {}
    again: set[int] = set()
    for number, one in enumerate(ends.column("tx_id").to_pylist()):
        if one in places:
            # The same id, used again: whose end is whose, all files together tell.
            again.add(one)
        places[one] = number
    for one in again:
        del places[one]
    if not places:
        return steps
    found = pc.index_in(tx_id, value_set=pa.array(list(places), pa.int64()), skip_nulls=True)
    number = pa.array(list(places.values()), pa.int32()).take(found)
    end_own = ends.column("own").take(number)
    is_decided = pc.fill_null(
        pc.and_(pc.greater(end_own, own), pc.invert(is_end)), fill_value=False
    )
    is_committed = pc.equal(ends.column("step"), "commit").take(number)
    counts = pc.if_else(is_decided, end_own, steps.column("counts"))
    left = pc.if_else(is_decided, pa.scalar(None, pa.int64()), tx_id)
    steps = _with(_with(steps, "counts", counts), "tx_id", left)
    # What was rolled back never counts.
    return steps.filter(pc.or_(pc.invert(is_decided), pc.fill_null(is_committed, fill_value=False)))


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), batch.schema.field(name), column)


def _steps(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of a batch that say anything of a message."""
    codes = _codes(batch)
    is_step = pc.is_valid(codes)
    batch, codes = batch.filter(is_step), codes.filter(is_step)
    count = batch.num_rows
    if not count:
        return
    told = _Told.of(batch, codes.to_pylist())
    content, is_readable = _content(batch, told.sent)
    place = _spread(dict(zip(told.sent, range(len(told.sent)), strict=True)), count)
    own = pc.add(
        pc.shift_left(pc.fill_null(batch.column("file_id"), 0), _OFFSET_BITS),
        batch.column("offset"),
    )
    tx_id = batch.column("tx_id")
    no_number, no_text = pa.scalar(None, pa.int64()), pa.scalar(None, pa.string())
    node_ids, message_ids, addresses = (
        {row: one[number] for row, one in told.accepted.items()} for number in range(3)
    )
    arrays = {
        "node": batch.column("node"),
        "file": pc.if_else(pc.equal(codes, _DAMAGE), batch.column("file"), no_text),
        "own": own,
        "step": pa.DictionaryArray.from_arrays(codes, pa.array(_NAMES)).cast(pa.string()),
        "message_id": pc.coalesce(_spread(message_ids, count), batch.column("record_id")),
        "tx_id": tx_id,
        "counts": pc.if_else(pc.is_valid(tx_id), no_number, own),
        "compact_count": batch.column("compact_count"),
        "is_event": pc.equal(batch.column("kind"), "event"),
        "queue_id": _spread(told.numbers, count),
        "source_id": _spread(node_ids, count, text=True),
        "is_readable": is_readable.take(place),
        **{name: content.column(name).take(place) for name in _TAKEN},
        "bridged_id": _last_of(content.column(_BRIDGED)).take(place),
        "group_id": content.column(_GROUP).take(place),
        "is_scheduled": pc.is_valid(content.column(_DELIVERY)).take(place),
        "is_moved": pc.is_valid(content.column(_ORIGINAL)).take(place),
        "moved_from": pa.nulls(count, pa.string()),
        "damage": batch.column("damage"),
    }
    if told.given:
        arrays["duplicate_id"] = pc.coalesce(
            arrays["duplicate_id"], _spread(told.given, count, text=True)
        )
    arrays["address"] = pc.coalesce(arrays["address"], _spread(addresses, count, text=True))
    made = pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
    yield from _moved(made, content, told.sent)
    if told.others:
        others = _spread(dict.fromkeys(told.others, 1), count)
        made = made.filter(pc.is_null(others))
    yield made


def _codes(batch: pa.RecordBatch) -> pa.Array:
    """What each record says, by its place in _NAMES; null: nothing."""
    kind, user_type = batch.column("kind"), batch.column("user_type")
    is_added = pc.is_in(kind, pa.array(["add", "add_tx"]))
    is_event = pc.equal(kind, "event")
    is_message = pc.is_in(user_type, pa.array(MESSAGE_TYPES, pa.int16()))
    tests = {
        "damage": pc.equal(kind, "damage"),
        "commit": pc.equal(kind, "commit"),
        "rollback": pc.equal(kind, "rollback"),
        "deleted": pc.is_in(kind, pa.array(["delete", "delete_tx"])),
        "routed": pc.equal(user_type, _REFERENCE),
        "acknowledged": pc.equal(user_type, _ACKNOWLEDGE),
        "sent": pc.and_(is_message, pc.or_(is_added, is_event)),
        "told": pc.and_(pc.equal(user_type, _TRANSACTION), is_event),
        "accepted": pc.and_(pc.equal(user_type, _DUPLICATE_ID), is_added),
    }
    names = list(tests)
    return pc.case_when(
        pc.make_struct(*tests.values(), field_names=names),
        *(pa.scalar(_NAMES.index(name), pa.int8()) for name in names),
    )


@dataclass
class _Told:
    """What bodies say, by the row of each.

    Attributes:
        sent: rows of messages, in order.
        numbers: the queue of a reference; of `told` the transaction.
        accepted: the node that a bridge brought a message from, the message's id there, and the
            address here.
        given: duplicate ids that a JMS bridge may have made.
        others: rows of other duplicate ids.
    """

    sent: list[int]
    numbers: dict[int, int]
    accepted: dict[int, tuple[str, int, str]]
    given: dict[int, str]
    others: list[int]

    @classmethod
    def of(cls, batch: pa.RecordBatch, codes: list[int]) -> _Told:
        found = cls([], {}, {}, {}, [])
        ends, data = _bodies(batch)
        read = _LONG.unpack_from
        for row, code in enumerate(codes):
            if code in _WITH_NUMBER:
                if ends[row + 1] - ends[row] >= _LONG.size:
                    (found.numbers[row],) = read(data, ends[row])
            elif code == _SENT:
                found.sent.append(row)
            elif code == _ACCEPTED:
                body = bytes(data[ends[row] : ends[row + 1]])
                one = _brought(body)
                given = _made_by_jms_bridge(body) if one is None else None
                if one is not None:
                    found.accepted[row] = one
                elif given is not None:
                    found.given[row] = given
                else:
                    found.others.append(row)
        return found


def _bodies(batch: pa.RecordBatch) -> tuple[memoryview, memoryview]:
    """Where each body ends, of one row more than there are; and all of them together."""
    column = batch.column("body")
    _, offsets, data = column.buffers()
    ends = memoryview(offsets).cast("B").cast("i")
    whole = memoryview(b"" if data is None else data).cast("B")
    return ends[column.offset : column.offset + len(column) + 1], whole


def _brought(body: bytes) -> tuple[str, int, str] | None:
    """The node that a bridge brought a message from, its id there, and its address here.

    None: no bridge brought it.
    """
    if not body.startswith(_BRIDGE, _INT.size):
        return None
    given = _given(body)
    if given is None or len(given) != _BRIDGE_ID_SIZE:
        return None
    given_at = _INT.size + _INT.unpack_from(body)[0]
    address = body[_INT.size + len(_BRIDGE) : given_at].decode("utf-16-le", "replace")
    return given[:_NODE_ID_SIZE].hex(), _LONG.unpack_from(given, _NODE_ID_SIZE)[0], address


def _made_by_jms_bridge(body: bytes) -> str | None:
    """A duplicate id of a JMS bridge's size, in hex; None: of another size, or no hex."""
    given = _given(body)
    if given is not None and len(given) == _JMS_ID_SIZE:
        return given.hex()
    if given is None or len(given) != _JMS_TEXT_SIZE:
        return None
    try:
        return bytes.fromhex(given.decode("utf-16-le")).hex()
    except ValueError:
        return None


def _given(body: bytes) -> bytes | None:
    """The id in the record of a duplicate id; None: the record is damaged."""
    if len(body) < _INT.size:
        return None
    (address_size,) = _INT.unpack_from(body)
    given_at = _INT.size + address_size
    if address_size < 0 or given_at + _INT.size > len(body):
        return None
    (size,) = _INT.unpack_from(body, given_at)
    return body[given_at + _INT.size : given_at + _INT.size + max(0, size)]


def _last_of(lists: pa.Array) -> pa.Array:
    """The last id of each list of ids."""
    return pc.replace_substring_regex(lists, "^.*,", "")


def _spread(values: dict[int, Any], count: int, *, text: bool = False) -> pa.Array:
    """A column of so many rows, with values in some of them."""
    column: list[Any] = [None] * count
    for row, value in values.items():
        column[row] = value
    return pa.array(column, pa.string() if text else pa.int64())


class _Record(NamedTuple):
    """What MessagePacker.fill() asks for."""

    user_type: int
    record_id: int
    body: bytes
    offset: int = 0


def _content(batch: pa.RecordBatch, rows: list[int]) -> tuple[pa.RecordBatch, pa.Array]:
    """What messages say, in the order of their rows; and whether each can be read."""
    ends, data = _bodies(batch)
    types, ids = batch.column("user_type").to_pylist(), batch.column("record_id").to_pylist()
    packer = MessagePacker(property_text, DUPLICATE_ID, LONG_MIN, LONG_MAX, _MADE)
    records = (
        _Record(types[row], ids[row], bytes(data[ends[row] : ends[row + 1]])) for row in rows
    )
    # It asks for no more than these have.
    given = cast("Iterator[LiveRecord]", records)
    others = packer.fill(given, rows_max=len(rows) + 1, bodies_max=LONG_MAX) or []
    core = core_arrays(packer.columns(), _MADE)
    found = pa.RecordBatch.from_arrays(
        [
            *(core[name] for name in _TAKEN),
            *(pc.map_lookup(core["properties"], pa.scalar(name), "last") for name in _PROPERTIES),
        ],
        schema=_CONTENT,
    )
    if not others:
        return found, pa.repeat(pa.scalar(value=True), len(rows))
    read = [_read(record) for _, record in others]
    made = pa.RecordBatch.from_pylist([one or {} for one in read], schema=_CONTENT)
    order, taken = [0] * len(rows), iter(range(found.num_rows))
    by_place = {place: number for number, (place, _) in enumerate(others)}
    is_readable = [True] * len(rows)
    for place in range(len(rows)):
        number = by_place.get(place)
        order[place] = next(taken) if number is None else found.num_rows + number
        is_readable[place] = number is None or read[number] is not None
    both = pa.Table.from_batches([found, made]).combine_chunks()
    (whole,) = both.take(pa.array(order, pa.int64())).combine_chunks().to_batches()
    return whole, pa.array(is_readable, pa.bool_())


def _read(record: LiveRecord) -> dict[str, Any] | None:
    """The content of a message that is not a plain Core message; None: it cannot be read."""
    try:
        found = message_content(record.user_type, bytes(record.body))
    except RecordFormatError:
        return None
    properties = dict(found.get("properties") or ())
    if found.get("is_large"):
        size = properties.get(_LARGE_SIZE)
        found["body_size"] = int(size) if size is not None and size.isdecimal() else None
    return {
        **{name: found.get(name) for name in _TAKEN},
        **{name: properties.get(name) for name in _PROPERTIES},
    }


def _moved(
    steps: pa.RecordBatch, content: pa.RecordBatch, rows: list[int]
) -> Iterator[pa.RecordBatch]:
    """Of each message that was moved from a queue, that the other one was, with the same end."""
    both = pc.and_(
        pc.is_valid(content.column(_ORIGINAL)), pc.is_valid(content.column(_ORIGINAL_QUEUE))
    )
    found = [
        (rows[one], number)
        for one in pc.indices_nonzero(both).to_pylist()
        if (number := _id_of(content.column(_ORIGINAL)[one].as_py())) is not None
    ]
    if not found:
        return
    place = {row: one for one, row in enumerate(rows)}
    taken = steps.take(pa.array([row for row, _ in found], pa.int64()))
    queues = content.column(_ORIGINAL_QUEUE).take(
        pa.array([place[row] for row, _ in found], pa.int64())
    )
    taken = _with(taken, "step", pa.repeat(pa.scalar("moved"), len(found)))
    taken = _with(taken, "message_id", pa.array([number for _, number in found], pa.int64()))
    yield _with(taken, "moved_from", queues)


def _id_of(text: str) -> int | None:
    """A message's id, written as a broker does.

    >>> _id_of("12"), _id_of("012"), _id_of("none")
    (12, None, None)
    """
    if not text.isdecimal() or str(int(text)) != text or int(text) > LONG_MAX:
        return None
    return int(text)
