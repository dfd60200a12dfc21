"""Turns packed buffers of messages and their states into Arrow arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from broker.model.message_types import Persister
from pipeline.message_columns import PROPERTY_TYPES, TYPES
from pipeline.message_states import MESSAGE_STATES, REFERENCE_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pipeline.message_columns import CoreColumns
    from pipeline.message_states import StateColumns

__all__ = ["core_arrays", "state_arrays"]

Buffer: TypeAlias = "bytes | bytearray"


def core_arrays(found: CoreColumns, names: Collection[str]) -> dict[str, pa.Array]:
    """The columns of Core messages, by name; those are left out that are null of all of them.

    Args:
        found: of the messages.
        names: of the columns that are wanted, as the packer was told; no other is made.
    """
    count, properties = found.row_count, found.property_count

    def of_properties(values: Callable[[], pa.Array]) -> pa.Array:
        offsets = _numbers(pa.int32(), count + 1, found.property_offsets)
        keys = _texts(pa.string(), properties, found.property_names)
        return pa.MapArray.from_arrays(offsets, keys, values())

    made: dict[str, Callable[[], pa.Array]] = {
        "message_id": lambda: _numbers(pa.int64(), count, found.message_ids),
        "address": lambda: _texts(pa.string(), count, found.address),
        "protocol": lambda: pa.repeat(pa.scalar(Persister.CORE.name), count),
        "is_large": lambda: pa.repeat(pa.scalar(value=False), count),
        "type": lambda: _words(TYPES, count, found.types),
        "durable": lambda: _numbers(pa.uint8(), count, found.durables).cast(pa.bool_()),
        "priority": lambda: _numbers(pa.int8(), count, found.priorities).cast(pa.int32()),
        "timestamp_ms": lambda: _numbers(pa.int64(), count, found.timestamps),
        "expiration_ms": lambda: _numbers(pa.int64(), count, found.expirations),
        "user_id": lambda: _texts(pa.string(), count, found.user_id),
        "duplicate_id": lambda: _texts(pa.string(), count, found.duplicate_id),
        "properties": lambda: of_properties(
            lambda: _texts(pa.string(), properties, found.property_values)
        ),
        "property_types": lambda: of_properties(
            lambda: _words(PROPERTY_TYPES, properties, found.property_types)
        ),
        "body": lambda: _texts(pa.binary(), count, found.body),
        "body_size": lambda: _numbers(pa.int64(), count, found.body_sizes),
        "text": lambda: _texts(pa.string(), count, found.text),
        "file": lambda: _files(found),
        "offset": lambda: _numbers(pa.int64(), count, found.record_offsets),
    }
    return {name: make() for name, make in made.items() if name in names}


def state_arrays(found: StateColumns, count: int, kind: pa.ListType) -> dict[str, pa.Array]:
    """The columns `state` and `references` of so many messages.

    Args:
        found: of the messages.
        count: of messages.
        kind: the type of `references`.
    """
    references = len(found.reference_states)
    fields = {
        "queue_id": _numbers(pa.int64(), references, found.queue_ids),
        "state": _words(REFERENCE_STATES, references, found.reference_states),
        "delivery_count": _numbers(pa.int32(), references, found.delivery_counts),
        "scheduled_ms": _numbers(pa.int64(), references, found.scheduled_ms),
    }
    of_kind = [kind.value_type.field(index) for index in range(kind.value_type.num_fields)]
    structs = pa.StructArray.from_arrays([fields[one.name] for one in of_kind], fields=of_kind)
    offsets = _numbers(pa.int32(), count + 1, found.offsets)
    return {
        "state": _words(MESSAGE_STATES, count, found.states),
        "references": pa.ListArray.from_arrays(offsets, structs, type=kind),
    }


def _numbers(kind: pa.DataType, count: int, values: Buffer) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(values)])


def _words(words: tuple[str, ...], count: int, codes: Buffer) -> pa.Array:
    indices = _numbers(pa.uint8(), count, codes)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string())).cast(pa.string())


def _texts(kind: pa.DataType, count: int, buffers: tuple[Buffer, Buffer, Buffer]) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [pa.py_buffer(one) for one in buffers])


def _files(found: CoreColumns) -> pa.Array:
    """The name of each message's file: they come file by file."""
    firsts = [first for first, _ in found.files]
    ends = [*firsts[1:], found.row_count]
    parts = [
        pa.repeat(pa.scalar(name, pa.string()), end - first)
        for (first, name), end in zip(found.files, ends, strict=False)
    ]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())
