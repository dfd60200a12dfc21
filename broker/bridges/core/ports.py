"""What a core bridge needs of the broker that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from broker.environment import Environment
    from broker.notifications import Notifications
    from broker.queues.queue import Queue
    from broker.sessions.session import Session

__all__ = ["BridgingBroker"]


class BridgingBroker(Protocol):
    """What a bridge needs of its broker."""

    environment: Environment
    """Clock, ids, chance and network."""
    notifications: Notifications
    """Who tells of what happens."""

    @property
    def queues(self) -> Mapping[str, Queue]:
        """All there are, by name."""

    @property
    def node_uuid(self) -> UUID:
        """Of the broker, the same after a restart."""

    def new_session(self, name: str) -> Session:
        """Make a session of the broker itself: nothing is refused. Its caller closes it."""
