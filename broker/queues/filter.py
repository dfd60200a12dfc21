"""What a selector is to a queue and its consumers, as Protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.model.message import Message

__all__ = ["Equality", "Filter"]


class Equality(Protocol):
    """What has to be equal for a selector to match."""

    @property
    def name(self) -> str:
        """Of a property or header."""

    @property
    def key(self) -> str | int:
        """What stands for the constant."""

    def fetch_key(self, message: Message) -> str | int | None:
        """Give what stands for the name's value in a message."""


class Filter(Protocol):
    """What a selector became; `broker.selector.parse` makes one."""

    text: str

    @property
    def equality(self) -> Equality | None:
        """A condition without which it does not match; None where none can be looked up."""

    @property
    def is_equality(self) -> bool:
        """Whether it is that condition and nothing more."""

    def matches(self, message: Message) -> bool:
        """Whether the message is wanted."""
