"""The body of a large message, which is a file or rows and never all in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LargeBody", "ReadableBody"]


class ReadableBody(Protocol):
    """The body of a large message, which is a file or rows and never all in memory."""

    @property
    def size(self) -> int:
        """Bytes of the body so far."""

    def read(self, offset: int, size: int) -> bytes:
        """Give at most `size` bytes from `offset` on; fewer only at the end."""

    def hold(self) -> None:
        """Somebody reads it from now on: delete() takes nothing away from him before release()."""

    def release(self) -> None:
        """One who held it reads no more."""


class LargeBody(ReadableBody, Protocol):
    """One that a broker has."""

    def is_ready(self, offset: int, size: int, callback: Callable[[], object]) -> bool:
        """Whether read() gives these bytes without waiting; else `callback()` when to ask again."""

    def delete(self) -> None:
        """Remove it for good; whoever holds it reads on."""

    def copy(self, message_id: int) -> LargeBody:
        """Give the same bytes to another message; as durable as these when this returns."""
