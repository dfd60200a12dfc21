"""Bodies that are sent in parts: where they are read from.

Threads: the event loop's alone; read() waits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.model.large_body import LargeBody

__all__ = ["Body", "BodyInMemory", "StoredBody"]


class Body(Protocol):
    """A body that is read in parts."""

    size: int

    async def read(self, offset: int, size: int) -> bytes:
        """Give at most `size` bytes from `offset` on.

        Raises:
            JournalIOError: it cannot be read.
        """

    def close(self) -> None:
        """Read it no more."""


class BodyInMemory:
    """One that its message has."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self.size = len(body)

    async def read(self, offset: int, size: int) -> bytes:
        """As Body.read()."""
        return bytes(self._body[offset : offset + size])

    def close(self) -> None:
        """Nothing."""


class StoredBody:
    """One of a large message; held, since an operator may acknowledge that meanwhile."""

    def __init__(self, body: LargeBody) -> None:
        self._body = body
        self.size = body.size
        body.hold()

    async def read(self, offset: int, size: int) -> bytes:
        """As Body.read()."""
        ready = asyncio.Event()
        while not self._body.is_ready(offset, size, ready.set):
            await ready.wait()
            ready.clear()
        return self._body.read(offset, size)

    def close(self) -> None:
        """Hold it no more."""
        self._body.release()
