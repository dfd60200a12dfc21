"""When a broker that starts knows enough of its peers to decide with them.

    watch(connection) ─▶ all peers have told what they have, or the time is over ─▶ is_settled

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SETTLES_S", "Joining", "Settling"]

SETTLES_S: Final = 5.0
"""Seconds that a start waits for peers, as a LOCAL handler of Artemis waits for bindings."""


class Joining(Protocol):
    """A cluster connection, as far as it is asked about its peers."""

    @property
    def is_joined(self) -> bool:
        """Whether all peers that it knows have told what they have."""

    def is_awaited(self, node_id: str) -> bool:
        """Whether a peer is about to tell what it has."""


class Settling:
    """See the module's text.

    Args:
        settles_s: seconds that peers have.
        on_changed: called when peers have told what they have, were lost, or are not waited for
            any more; not before it is settled.

    Attributes:
        is_settled: it is so; and so it stays.
    """

    def __init__(self, settles_s: float, on_changed: Callable[[], object]) -> None:
        self._settles_s = settles_s
        self._on_changed = on_changed
        self._connections: list[Joining] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self.is_settled = False

    @property
    def is_in_use(self) -> bool:
        """Whether cluster connections are in use."""
        return bool(self._connections)

    @property
    def may_choose(self) -> bool:
        """Whether what is not known is not there: it is settled, and connections are in use."""
        return self.is_settled and self.is_in_use

    def is_awaited(self, node_id: str) -> bool:
        """Whether a peer is about to tell what it has."""
        return any(one.is_awaited(node_id) for one in self._connections)

    def watch(self, connection: Joining) -> None:
        """Wait until a cluster connection has its peers."""
        if connection not in self._connections:
            self._connections.append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._settles_s, self._settle)
        if connection.is_joined:
            self.peers_changed()

    def leave(self, connection: Joining) -> None:
        """A cluster connection stops: that its peers are gone then means nothing."""
        if connection in self._connections:
            self._connections.remove(connection)

    def peers_changed(self) -> None:
        """A peer has told what it has, was lost, or is not waited for any more."""
        if self._is_stopped:
            return
        if self.is_settled:
            self._on_changed()
        elif all(one.is_joined for one in self._connections):
            self._settle()

    def _settle(self) -> None:
        self.is_settled = True
        self._on_changed()

    def stop(self) -> None:
        """Do not wait for peers any more. Idempotent."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
