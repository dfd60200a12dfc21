"""Clients of one of a pair can go to the other one while it cannot know whether it owns the store.

    active ─▶ in-doubt: ports given up, connections closed ─▶ active: ports taken again
                                                           └▶ failed: the other one has the store

A lease is in doubt once it has expired and the database does not answer. The other one may have it
by then, and no answer leaves here. Clients that stayed would wait for as long as the outage lasts.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.server.lifecycle import Lifecycle
    from broker.storage.open import Ownership
    from broker.transport.acceptor import Acceptor

__all__ = ["Doubt"]

log = logging.getLogger("broker")

# Between two looks. Nothing is asked for them; clients wait that much longer.
_LOOK_S: Final = 0.25


class Doubt:
    """See the module's text.

    Args:
        ownership: of the store.
        acceptors: of the broker.
        lifecycle: told of it.
        on_certain: called when clients may come again.
        on_failure: told of a fault of the broker itself, which ends it: ports might stay closed.
    """

    def __init__(
        self,
        ownership: Ownership,
        acceptors: Iterable[Acceptor],
        lifecycle: Lifecycle,
        on_certain: Callable[[], object],
        on_failure: Callable[[Exception], object],
    ) -> None:
        self._ownership = ownership
        self._acceptors = acceptors
        self._lifecycle = lifecycle
        self._on_certain = on_certain
        self._on_failure = on_failure
        self._left: list[Acceptor] | None = None
        self._failure = ""
        self._task = asyncio.create_task(self._watch())
        self._task.add_done_callback(self._ended)

    def stop(self) -> None:
        """Look no more; acceptors stay as they are. Idempotent."""
        self._task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._on_failure(error)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                is_in_doubt = self._ownership.check()
            except JournalError:
                return  # Lost: the lease itself tells the broker.
            if is_in_doubt and self._left is None:
                await self._leave()
            elif not is_in_doubt and self._left is not None:
                await self._come_back(self._left)

    async def _leave(self) -> None:
        self._left = [one for one in self._acceptors if one.is_listening]
        self._lifecycle.in_doubt()
        for one in self._left:
            await one.leave()

    async def _come_back(self, left: list[Acceptor]) -> None:
        for one in left:
            if one.is_listening:
                continue
            try:
                await one.start()
            except BrokerError as error:
                # Tried again with the next look.
                if str(error) != self._failure:
                    self._failure = str(error)
                    log.error("clients cannot come again yet: %s", error)
                return
        self._left = None
        self._failure = ""
        self._lifecycle.certain()
        self._on_certain()
