"""The body of a large message, which is a file or rows and never all in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LARGE_COMPRESSED", "LARGE_SIZE", "LargeBody", "LargeCopy", "ReadableBody"]

# Properties of Core's large messages.
LARGE_SIZE: Final = "_AMQ_LARGE_SIZE"
# Its body is as its client compressed it, and its size is that of before.
LARGE_COMPRESSED: Final = "_AMQ_LARGE_COMPRESSED"


class ReadableBody(Protocol):
    """The body of a large message, which is a file or rows and never all in memory."""

    @property
    def size(self) -> int:
        """Bytes of the body so far."""

    def read(self, offset: int, size: int) -> bytes:
        """Give at most `size` bytes from `offset` on; fewer only at the end."""

    def hold(self) -> None:
        """A reader holds it from now on: delete() removes nothing before release()."""

    def release(self) -> None:
        """A reader that held it has finished."""


class LargeBody(ReadableBody, Protocol):
    """One that a broker has."""

    def is_ready(self, offset: int, size: int, callback: Callable[[], object]) -> bool:
        """Whether read() gives these bytes without waiting; else `callback()` when to ask again."""

    def delete(self) -> None:
        """Remove it for good; readers that hold it read on."""

    def copy(self, message_id: int) -> LargeCopy:
        """Give the same bytes to another message, once that is complete."""


class LargeCopy(LargeBody, Protocol):
    """One that is not there yet. Everything raises JournalIOError when the device fails."""

    def finish(self, *, sync: bool, callback: Callable[[], object]) -> bool:
        """It is complete: whether it is written, with `sync` durably; else `callback()` then.

        A failure in between is raised by the next call of finish().
        """

    def settle(self) -> None:
        """Block until what was begun is written and its callbacks were called."""

    def close(self) -> None:
        """Give it up: callbacks that wait for it are called now. Idempotent."""
