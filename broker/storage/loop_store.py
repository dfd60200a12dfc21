"""A store as the event loop uses it, and what a client is told when it has no room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.errors import BrokerError, broker_error
from journal.api import RecordStore

if TYPE_CHECKING:
    import asyncio

    from journal.errors import JournalFull

__all__ = ["LoopStore", "refused"]


class LoopStore(RecordStore, Protocol):
    """A store whose callbacks an event loop runs; both of ours are."""

    def attach_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let `loop` reap from now on."""

    def detach_loop(self) -> None:
        """Take the store out of the event loop."""


def refused(error: JournalFull) -> BrokerError:
    """Give what a client is told of a record that a full disk has no room for."""
    return broker_error("address_is_full", f"the disk is full: {error}")
