"""What the broker needs of a place for bodies of large messages: a folder of files, or a table.

    upload = bodies.create(id, is_durable=…)
    upload.append(part) …  ─▶ upload.has_room(go_on)      not: take no more before go_on()
    upload.finish(…, callback=go_on)                      not: send the message at go_on()

A file is written at once and never lets anybody wait (large_files.py); a table is written by a
thread (large_tables.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.model.large_body import LargeCopy

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import Executor

    from broker.model.large_body import LargeBody

__all__ = ["LargeBodies", "LargeUpload"]


class LargeUpload(LargeCopy, Protocol):
    """A body that comes in parts. Everything raises JournalIOError when the device fails."""

    def append(self, chunk: bytes) -> None:
        """Put bytes at the end."""

    def has_room(self, callback: Callable[[], object]) -> bool:
        """Whether more may be appended now; else `callback()` once there is room."""


class LargeBodies(Protocol):
    """The bodies of all messages. Everything raises JournalIOError when the device fails."""

    def start(
        self, loop: asyncio.AbstractEventLoop, executor: Callable[[int, str], Executor]
    ) -> None:
        """Begin; everything else is called from the thread of `loop`.

        Args:
            loop: that is told of what threads have done.
            executor: makes threads of some count and name.
        """

    def close(self) -> None:
        """End what was begun. Idempotent."""

    def create(self, message_id: int, *, is_durable: bool) -> LargeUpload:
        """Begin a body."""

    def find(self, message_id: int) -> LargeBody | None:
        """Give the body of a message, durable or not; None where there is none."""

    def sweep_temporary(self) -> int:
        """Delete bodies of messages that are not durable, before anything is loaded; how many."""

    def sweep(self, kept: set[int], below: int = 2**63) -> int:
        """Delete what belongs to no message, after a start; how many.

        Args:
            kept: ids of the durable large messages.
            below: ids from here on are of messages that came after the start.
        """
