"""The acceptors of a broker together: made, bound, started, left by their clients, closed.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from broker.transport.acceptor import Acceptor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.environment import Environment
    from broker.server.protocols import Protocols
    from broker.transport.acceptor import AcceptorOptions

__all__ = ["bind", "close", "listen", "make_acceptors", "wait_until_left"]

log = logging.getLogger("broker")


def make_acceptors(
    options: Iterable[AcceptorOptions], protocols: Protocols, environment: Environment
) -> list[Acceptor]:
    """Make an acceptor for each of the options.

    Raises:
        BrokerError: one of them names a protocol or a parameter that does not exist.
    """
    return [
        Acceptor(
            one,
            protocols.for_acceptor(one),
            network=environment.network,
            clock=environment.clock,
            ids=environment.ids,
        )
        for one in options
    ]


def bind(acceptors: Iterable[Acceptor]) -> None:
    """Take the ports of those that start by themselves; nothing can connect until listen().

    Raises:
        BrokerError: an address is in use, or not of this machine.
    """
    for acceptor in acceptors:
        if acceptor.options.auto_start:
            acceptor.bind()


async def listen(acceptors: Iterable[Acceptor]) -> None:
    """Let clients connect, where acceptors start by themselves.

    Raises:
        BrokerError: an address is in use, or not of this machine.
    """
    for acceptor in acceptors:
        if acceptor.options.auto_start:
            await acceptor.start()


async def wait_until_left(
    acceptors: Sequence[Acceptor], timeout_ms: int, *ends: asyncio.Event
) -> None:
    """Wait until clients have left by themselves.

    Args:
        acceptors: whose clients.
        timeout_ms: milliseconds at most; 0 does not wait, -1 waits for ever.
        *ends: each of them ends the wait, too.
    """
    if timeout_ms == 0 or not any(one.connections for one in acceptors):
        return
    log.info("the broker stops when its clients have left (graceful-shutdown-enabled)")
    waits: list[asyncio.Future[Any]] = [
        asyncio.gather(*(one.wait_until_left() for one in acceptors)),
        *(asyncio.ensure_future(one.wait()) for one in ends),
    ]
    try:
        await asyncio.wait(
            waits,
            timeout=None if timeout_ms < 0 else timeout_ms / 1000,
            return_when=asyncio.FIRST_COMPLETED,
        )
    finally:
        for one in waits:
            one.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def close(acceptors: list[Acceptor]) -> None:
    """Give the ports up, close all connections, and forget the acceptors. Idempotent."""
    for acceptor in acceptors:
        await acceptor.stop()
        acceptor.close_connections()
    acceptors.clear()
