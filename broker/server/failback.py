"""When a backup that has become active gives its place back: a primary asks for it.

    primary comes back ─▶ writes F ─▶ seen here, each second ─▶ (failback-delay) ─▶ the backup stops

Artemis also wants the primary to have announced itself to the cluster. Here the state alone counts:
if the primary dies before it serves, the backup that waits again takes over (`node_state`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from broker.storage.open import Ownership

__all__ = ["fail_back", "primary_asks"]

log = logging.getLogger("broker")

_PERIOD_S: Final = 1.0  # As in Artemis (SharedStoreBackupActivation.startFailbackChecker).


class Restart(Protocol):
    """Has the broker stop, and wait for its place again."""

    def __call__(self, reason: str, *, is_failback: bool) -> Awaitable[None]:
        """See `broker.server.server.Broker`."""


async def fail_back(ownership: Ownership, delay_ms: int, restart: Restart) -> None:
    """Give the place to a primary that asks for it, once.

    Args:
        ownership: of the store that both have.
        delay_ms: how long it has to have asked (failback-delay), milliseconds.
        restart: of the broker.
    """
    await primary_asks(ownership, delay_ms)
    log.info("AMQ221008: primary server wants to restart, restarting server in backup")
    await restart("the primary asks for its place", is_failback=True)


async def primary_asks(ownership: Ownership, delay_ms: int) -> None:
    """Return once a primary asks for its place, and has done so for so long."""
    loop = asyncio.get_running_loop()
    asked_s: float | None = None
    is_told = False
    while True:
        await asyncio.sleep(_PERIOD_S)
        try:
            asks = await asyncio.to_thread(ownership.is_awaiting_failback)
            is_told = False
        except JournalIOError as error:
            # The lock, or lease, says whether the broker may go on; this only waits for another.
            if not is_told:
                is_told = True
                log.warning("whether a primary asks for its place is not known: %s", error)
            continue
        if not asks:
            asked_s = None
            continue
        if asked_s is None:
            asked_s = loop.time()
        if (loop.time() - asked_s) * 1000 >= delay_ms:
            return
