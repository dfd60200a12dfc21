"""Artemis's text of TypedProperties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.java_text import (
    double_text,
    float_text,
    hash_order,
    hex_groups,
    shortened,
    simple_string_hash,
    table_size_for,
    text_of,
)
from broker.model.properties import Property, PropertyType, TypedProperties, last_values

if TYPE_CHECKING:
    from collections.abc import Mapping

# Byte values of these properties are lists of queue ids.
_ROUTE_PREFIX: Final = "_AMQ_ROUTE_TO"
_HEX_CHARS_MAX: Final = 150


def properties_text(properties: TypedProperties) -> str:
    """Give the text of properties as they stand in the bytes: `TypedProperties[k=v, …]`."""
    return properties_text_of(last_values(properties), table_size_for(len(properties)))


def properties_text_of(by_name: Mapping[str, Property], table_size: int) -> str:
    """Give the same of a map that has grown to `table_size` buckets."""
    hashes = {name: simple_string_hash(name) for name in by_name}
    order = hash_order(hashes, table_size=table_size)
    return f"TypedProperties[{', '.join(_property_text(by_name[name]) for name in order)}]"


def _property_text(item: Property) -> str:
    return f"{item.name}={_value_text(item)}"


def _value_text(item: Property) -> str:
    value = item.value
    if isinstance(value, bytes):
        longs = _longs_text(value) if item.name.startswith(_ROUTE_PREFIX) else ""
        return f"[{shortened(hex_groups(value), _HEX_CHARS_MAX)}]{longs}"
    if isinstance(value, float):
        return float_text(value) if item.type is PropertyType.FLOAT else double_text(value)
    return "NULL-value" if value is None else text_of(value)


def _longs_text(data: bytes) -> str:
    whole = len(data) - len(data) % 8
    longs = [
        str(int.from_bytes(data[start : start + 8], "big", signed=True))
        for start in range(0, whole, 8)
    ]
    if whole < len(data):
        longs.append("error-converting-longs=null")
    return f", bytesAsLongs[{', '.join(longs)}]"
