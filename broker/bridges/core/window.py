"""How many messages a bridge may have on their way at once.

The target recognizes a message that it was sent before as long as its id is in the cache of the
address, which keeps the newest `id-cache-size`. So from the oldest message that may be sent again
up to the newest one there must never be more than that: a message may be sent again until its
acknowledgement is durable here.

    oldest that may be sent again … newest      at most the window, and the window ≤ id-cache-size

Ids that others send to the address do not count: of each node the newest stay
(broker/routing/duplicates.py). At a target of Artemis they do.

The bridge asks the target for its `id-cache-size` (management: `IDCacheSize` of the broker, and
`idCacheSize` of the settings of the address). Bridges of one name share it (`concurrency`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Final

from broker.client.errors import BrokerRefused, CallTimeout
from broker.routing.duplicates import SENDER_WINDOW

if TYPE_CHECKING:
    from broker.client.aio.session import AsyncSession

__all__ = [
    "ASSUMED",
    "MESSAGES_MAX",
    "cache_size_at",
    "cache_size_of",
    "deliveries_max_at",
    "forgets_ids",
    "told_of",
    "window_of",
]

log = logging.getLogger("broker.bridge")

MESSAGES_MAX: Final = SENDER_WINDOW
"""At most, whatever the target remembers."""
ASSUMED: Final = 500
"""Where the target does not tell: a fortieth of the default of id-cache-size, 20,000."""
ANSWER_S: Final = 5.0
"""How long it may take to tell."""


def window_of(cache_size: int | None, *, bridge_count: int, uses_detection: bool) -> int:
    """Give how many messages may be on their way.

    Args:
        cache_size: of the target; None where it does not tell.
        bridge_count: how many bridges share it.
        uses_detection: without it one message at a time: no more than one can double (Artemis
            sends blocking, then).

    >>> window_of(20_000, bridge_count=1, uses_detection=True)
    4000
    >>> window_of(100, bridge_count=4, uses_detection=True)
    25
    >>> window_of(0, bridge_count=1, uses_detection=True)
    1
    """
    if not uses_detection:
        return 1
    size = ASSUMED if cache_size is None else cache_size
    return max(1, min(MESSAGES_MAX, size // bridge_count))


async def cache_size_of(sessions: tuple[AsyncSession, AsyncSession], address: str) -> int | None:
    """Ask the target how many ids it remembers for an address; None where it does not tell.

    Args:
        sessions: started, that block on all sends: a refusal comes at once. One for each question:
            an answer takes some round trips, which a slow link has only once that way.
        address: that is sent to.

    Raises:
        TimeoutError: no answer came in time.
        ClientError: the connection is lost.
    """
    of_address, of_broker = sessions
    async with asyncio.timeout(ANSWER_S):
        sizes = await asyncio.gather(_of_address(of_address, address), _of_broker(of_broker))
    for size in sizes:
        if isinstance(size, int) and _is_size(size):
            return size
    return None


async def cache_size_at(session: AsyncSession, address: str) -> int | None:
    """Ask the same on one session, one question after the other.

    Raises:
        ClientError: the connection is lost.
    """
    size = await _of_address(session, address)
    if not _is_size(size):
        size = await _of_broker(session)
    return size if isinstance(size, int) and _is_size(size) else None


async def told_of(session: AsyncSession, name: str) -> object:
    """Ask for an attribute of the target; None where it does not tell, or not in time.

    Args:
        session: started, that blocks on all sends.
        name: of the attribute of the broker, as in Artemis's control.

    Raises:
        ClientError: the connection is lost.
    """
    try:
        async with asyncio.timeout(ANSWER_S):
            found: object = await session.attribute("broker", name)
    except CallTimeout:
        # The connection is given up.
        raise
    except (BrokerRefused, ValueError, TypeError, TimeoutError) as error:
        log.debug("a broker does not tell its %s: %r", name, error)
        return None
    return found


async def forgets_ids(session: AsyncSession) -> bool:
    """Ask whether the target forgets all ids when it restarts; see told_of().

    One that does not tell is believed to keep them, as by default.
    """
    return await told_of(session, "persistIDCache") is False


def _is_size(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and size >= 0


async def deliveries_max_at(session: AsyncSession, address: str) -> int | None:
    """Ask for the max-delivery-attempts of an address; None where the broker does not tell.

    Raises:
        ClientError: the connection is lost.
    """
    found = await _setting(session, address, "maxDeliveryAttempts")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


async def _of_address(session: AsyncSession, address: str) -> object:
    return await _setting(session, address, "idCacheSize")


async def _setting(session: AsyncSession, address: str, name: str) -> object:
    try:
        told = await session.manage("broker", "getAddressSettingsAsJSON", address)
        found: object = json.loads(told).get(name)
    except (BrokerRefused, ValueError, TypeError) as error:
        log.debug("the target does not tell the %s of %s: %r", name, address, error)
        return None
    return found


async def _of_broker(session: AsyncSession) -> object:
    try:
        size: object = await session.attribute("broker", "IDCacheSize")
    except (BrokerRefused, ValueError, TypeError) as error:
        log.debug("the target does not tell its id-cache-size: %r", error)
        return None
    return size
