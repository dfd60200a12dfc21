"""A store as the event loop uses it, and what a client is told when it has no room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.errors import BrokerError, broker_error
from journal.api import RecordStore

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from journal.errors import JournalFull

__all__ = ["LoopStore", "refused"]


class LoopStore(RecordStore, Protocol):
    """A store that tells an event loop what is durable: the one way by which completions come.

    Both of ours have the loop watch an eventfd that their thread writes to. A store without a
    thread calls `loop.call_soon(self.reap)`, or later: when it likes, but never within an append.
    """

    def attach_loop(
        self, loop: asyncio.AbstractEventLoop, after_reap: Callable[[], object] | None = None
    ) -> None:
        """From now on see to it that due `done` callbacks run in turns of `loop`, by reap().

        Behind each reap() that called one, `after_reap` is called; None leaves the one before.
        """

    def detach_loop(self) -> None:
        """Take the store out of the event loop."""


def refused(error: JournalFull) -> BrokerError:
    """Give what a client is told of a record that a full disk has no room for."""
    return broker_error("address_is_full", f"the disk is full: {error}")
