"""A store that is opened once its lock is free, and told that the broker serves.

    open_when_free()   in a thread: waits for the lock, opens the stores
    activate()         in a thread: says in the stores that the broker serves

A thread that waits is interrupted by a StartWait.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from broker.storage.open import open_stores
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.options import BrokerOptions
    from broker.storage.open import Stores
    from broker.storage.waiting import StartWait

__all__ = ["OpenStores", "activate", "interruptible", "open_when_free"]

log = logging.getLogger("broker")

T = TypeVar("T")


class OpenStores(Protocol):
    """Opens the stores of a broker; stores in memory can stand in here."""

    async def __call__(
        self, options: BrokerOptions, *, on_lost: Callable[[Exception], object], wait: StartWait
    ) -> Stores | None:
        """See `open_when_free`."""


async def open_when_free(
    options: BrokerOptions, *, on_lost: Callable[[Exception], object], wait: StartWait
) -> Stores | None:
    """Wait for the lock and open the stores, in a thread; None if the broker keeps nothing.

    Args:
        options: of the broker.
        on_lost: called, from a thread of the lock or lease, when that is lost.
        wait: what stop() interrupts; a cancelled task does it itself.

    Raises:
        JournalClosed: the wait was interrupted.
        JournalError: the storage is in use, damaged, or cannot be reached.
    """
    store = options.store
    if store is None:
        return None
    opening = asyncio.ensure_future(
        asyncio.to_thread(
            open_stores,
            store,
            on_lost=on_lost,
            is_backup=options.is_backup,
            is_pair=options.shares_store,
            wait=wait,
        )
    )
    try:
        return await interruptible(opening, wait)
    except asyncio.CancelledError:
        try:
            # The lock may have become free at the same moment.
            opening.result().close(in_good_order=False)
        except JournalError as error:
            log.info("the start was ended: %s", error)
        raise


async def interruptible(work: asyncio.Future[T], wait: StartWait) -> T:
    """Wait for a thread; if the task is cancelled, interrupt the thread and see it end first."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        wait.interrupt()
        await asyncio.wait((work,))
        # Retrieved, or asyncio logs an exception that was never retrieved.
        work.exception()
        raise


async def activate(stores: Stores, wait: StartWait) -> None:
    """Say in the stores that the broker serves, in a thread: a database may be away meanwhile.

    Args:
        stores: open and loaded.
        wait: what stop() interrupts.

    Raises:
        JournalClosed: it was interrupted.
        JournalError: the lock was lost, or cannot be written.
    """
    await interruptible(asyncio.ensure_future(asyncio.to_thread(stores.activated)), wait)
