"""Batches that have left, and whose outcome is not known yet; the oldest first. No I/O."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.bridges.jms.message import JMSMessage

__all__ = ["SIZE_MAX", "Departed", "InFlight"]

SIZE_MAX: Final = 10 * 1024 * 1024
"""Bytes on their way at most: 500 MB/s over a round trip of 20 ms. Large bodies are in files."""


@dataclass(slots=True, eq=False)
class Departed:
    """A batch on its way.

    Attributes:
        messages: in it.
        size: bytes of them.
        since_s: when it left (clock.monotonic_s).
    """

    messages: list[JMSMessage]
    size: int
    since_s: float


class InFlight:
    """See the module's text.

    Args:
        count_max: messages in all batches together, unless there is one batch alone.
        size_max: bytes of them, likewise.

    Attributes:
        failure: of the first batch that failed; no other may leave.
        is_over: all were given up; what becomes of them is of no interest any more.
    """

    def __init__(self, count_max: int, size_max: int = SIZE_MAX) -> None:
        self.failure: Exception | None = None
        self.is_over = False
        self._count_max = count_max
        self._size_max = size_max
        self._batches: deque[Departed] = deque()
        self._count = 0
        self._size = 0
        self._arrived_s = -math.inf
        self._changed = asyncio.Event()

    @property
    def since_s(self) -> float | None:
        """Since when the oldest batch is waited for alone; None if none is on its way."""
        return max(self._batches[0].since_s, self._arrived_s) if self._batches else None

    @property
    def oldest_count(self) -> int:
        """How many messages are in the oldest batch; 0 if none is on its way."""
        return len(self._batches[0].messages) if self._batches else 0

    @property
    def oldest_ms(self) -> int:
        """When the oldest message was sent, ms since 1970; 0 if none is on its way, or tells it."""
        return self._batches[0].messages[0].timestamp_ms if self._batches else 0

    def add(self, messages: list[JMSMessage], now_s: float) -> Departed:
        """Take note of a batch that leaves once there is room for it.

        Args:
            messages: in it.
            now_s: what the time is.
        """
        departed = Departed(messages, sum(message.size for message in messages), now_s)
        self._batches.append(departed)
        self._count += len(messages)
        self._size += departed.size
        return departed

    def arrived(self, departed: Departed, now_s: float) -> None:
        """Take note that a batch has arrived.

        Args:
            departed: the oldest one.
            now_s: what the time is.
        """
        assert self._batches[0] is departed, "outcomes come in order"
        self._batches.popleft()
        self._count -= len(departed.messages)
        self._size -= departed.size
        self._arrived_s = now_s
        self._changed.set()

    def failed(self, error: Exception) -> None:
        """A batch has failed; later ones have no outcome of their own.

        Args:
            error: why.
        """
        if self.failure is None:
            self.failure = error
        self._changed.set()

    async def wait_for_room(self) -> None:
        """Wait until the newest batch may leave.

        Raises:
            Exception: what a batch failed with.
        """
        while len(self._batches) > 1 and (
            self._count > self._count_max or self._size > self._size_max
        ):
            await self._change()
        self.check()

    async def wait_until_empty(self) -> None:
        """Wait until every batch has arrived.

        Raises:
            Exception: what a batch failed with.
        """
        while self._batches:
            await self._change()
        self.check()

    def check(self) -> None:
        """See that no batch has failed.

        Raises:
            Exception: what one failed with.
        """
        if self.failure is not None:
            raise self.failure

    def abort(self) -> int:
        """Give all up; how many messages have no outcome."""
        self.is_over = True
        count, self._count = self._count, 0
        batches, self._batches = self._batches, deque()
        for departed in batches:
            for message in departed.messages:
                message.close()
        return count

    async def _change(self) -> None:
        self.check()
        self._changed.clear()
        await self._changed.wait()
