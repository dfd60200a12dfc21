"""What a broker's process does: start, serve until SIGTERM or SIGINT or a failed storage, stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.server import Broker

__all__ = ["EXIT_FAILED", "EXIT_OK", "serve"]

log = logging.getLogger("broker")

EXIT_OK, EXIT_FAILED = 0, 1


async def serve(broker: Broker, *, on_start: Callable[[Broker], object] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit status: 1 where the storage has failed.

    Args:
        broker: not started.
        on_start: called once it serves.

    Raises:
        JournalError: the storage cannot be opened.
        BrokerError: the broker cannot be started.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    await broker.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if on_start is not None:
        on_start(broker)
    waits = [asyncio.ensure_future(stopping.wait()), asyncio.ensure_future(broker.failed())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    has_failed = broker.failure is not None
    try:
        await broker.stop()
    except JournalError as error:
        log.critical("%s", error)
        has_failed = True
    return EXIT_FAILED if has_failed else EXIT_OK
