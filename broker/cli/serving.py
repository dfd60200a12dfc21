"""The main function of a broker's process: start, serve until a signal or failed storage, stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import TYPE_CHECKING, Any, Final

from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.server.server import Broker

__all__ = ["EXIT_FAILED", "EXIT_OK", "serve"]

log = logging.getLogger("broker")

EXIT_OK, EXIT_FAILED = 0, 1
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def serve(broker: Broker, *, on_start: Callable[[Broker], object] | None = None) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; the exit status.

    It is 1 where the storage has failed, or a scale-down has left something.

    A signal also ends a start that waits for another broker. A second one ends the stop's wait for
    clients that have not left (graceful-shutdown-timeout). SIGHUP stays ignored if the
    parent process ignored it (`nohup`).

    Args:
        broker: not started.
        on_start: called each time that it begins to serve.

    Raises:
        JournalError: the storage cannot be opened.
        BrokerError: the broker cannot be started.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            log.info("stopping at once after a second signal: clients are not waited for")
            broker.stop_waiting()
        stopping.set()

    for number in _STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop)
    told = asyncio.ensure_future(stopping.wait())
    if on_start is not None:
        broker.on_active = lambda: on_start(broker)
    try:
        if not await _start(broker, told):
            return EXIT_OK
        await _first_of(told, asyncio.ensure_future(broker.ended()))
    finally:
        told.cancel()
    has_failed = broker.failure is not None
    try:
        await broker.stop()
    except JournalError as error:
        log.critical("%s", error)
        has_failed = True
    report = broker.scale_down_choice.report
    if report is not None and not report.is_complete:
        has_failed = True
    return EXIT_FAILED if has_failed else EXIT_OK


async def _start(broker: Broker, told: asyncio.Future[Any]) -> bool:
    """Start it; False if a signal came before it served."""
    starting = asyncio.ensure_future(broker.start())
    await _first_of(told, starting)
    with contextlib.suppress(asyncio.CancelledError):
        await starting
        return True
    log.info("stopped before the broker was active")
    return False


async def _first_of(told: asyncio.Future[Any], other: asyncio.Future[Any]) -> None:
    """Wait until one of the two is done, and cancel the other one if it is not the signal."""
    try:
        await asyncio.wait((told, other), return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not other.done():
            other.cancel()
