"""A queue without consumers gives its message groups to one elsewhere that has some.

    the last consumer leaves, or another broker has consumers ─▶ redistribution-delay ─▶ give()

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.queues.queue import Queue
    from broker.routing.remote_bindings import RemoteQueueBinding

__all__ = ["HANDOVER_MS", "Handover"]

HANDOVER_MS: Final = 5000
"""Milliseconds that such a queue keeps its groups where redistribution-delay is -1."""


class Handover:
    """See the module's text.

    Args:
        successors: gives the queues elsewhere that have consumers.
        give: called with a queue, and with those.
    """

    def __init__(
        self,
        successors: Callable[[Queue], list[RemoteQueueBinding]],
        give: Callable[[Queue, list[RemoteQueueBinding]], object],
    ) -> None:
        self._successors = successors
        self._give = give
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def consider(self, queue: Queue) -> None:
        """Consumers of the queue have changed, here or elsewhere, or what it has."""
        if queue.consumers.count or not self._successors(queue):
            self.cancel(queue.name)
        elif queue.name not in self._timers:
            delay_ms = queue.settings.redistribution_delay_ms
            delay_s = (HANDOVER_MS if delay_ms < 0 else delay_ms) / 1000
            loop = asyncio.get_running_loop()
            self._timers[queue.name] = loop.call_later(delay_s, self._due, queue)

    def _due(self, queue: Queue) -> None:
        self._timers.pop(queue.name, None)
        successors = self._successors(queue)
        if successors and not queue.is_deleted and not queue.consumers.count:
            self._give(queue, successors)

    def cancel(self, name: str) -> None:
        """A queue is gone, or has consumers again."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """Give nothing away any more. Idempotent."""
        for name in list(self._timers):
            self.cancel(name)
