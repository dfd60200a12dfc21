"""More of a queue's pages, for those who look at all that waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.queues.queue import Queue

__all__ = ["HELD_MAX", "POLL_S", "read_more"]

POLL_S: Final = 0.1
"""Between two looks at what came meanwhile."""
_READ_AHEAD: Final = 1000
HELD_MAX: Final = 100_000
"""Messages of one queue's pages in memory for this at most, as for management's lists: what lies
behind them is looked at once they have gone."""


async def read_more(queue: Queue) -> bool:
    """Have more of the queue's pages read; whether something may have come."""
    pages = queue.pages
    if pages is None or not pages.unread_count or pages.held_count >= HELD_MAX:
        return False
    before = queue.waiting.count
    pages.look_ahead(pages.held_count + _READ_AHEAD)
    if queue.waiting.count > before:
        return True
    if not pages.is_reading:
        return False
    await asyncio.sleep(POLL_S)
    return True
