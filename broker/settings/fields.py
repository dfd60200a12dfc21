"""A field of AddressSettings: its names in XML and JSON, its kind of value, its default."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from broker.settings.value_types import ValueType

__all__ = ["Setting", "optional", "setting"]

T = TypeVar("T")


class Setting(NamedTuple):
    """One element of address-setting.

    Attributes:
        attribute: of AddressSettings.
        elements: its names in XML, the first is the one to write.
        json_name: in management and in records.
        kind: what its text may be.
    """

    attribute: str
    elements: tuple[str, ...]
    json_name: str
    kind: ValueType[Any]


def setting(element: str, json_name: str, kind: ValueType[T], default: T, *aliases: str) -> T:
    """A field of AddressSettings."""
    metadata = {"setting": ((element, *aliases), json_name, kind)}
    return dataclasses.field(default=default, metadata=metadata)


def optional(element: str, json_name: str, kind: ValueType[T]) -> T | None:
    """A field of AddressSettings without a default of its own."""
    return dataclasses.field(default=None, metadata={"setting": ((element,), json_name, kind)})
