"""All AMQP connections of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.protocols.amqp.handler import AmqpConnection
from broker.protocols.amqp.opening import Containers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Peer, Sessions

__all__ = ["AmqpProtocol"]


class AmqpProtocol:
    """See the module's text.

    Args:
        sessions: the broker.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._containers = Containers()

    def connect(self, peer: Peer, parameters: Mapping[str, Any]) -> AmqpConnection:
        """Take a connection whose first bytes were AMQP's."""
        made = AmqpConnection(self._sessions, self._containers, peer, parameters)
        self._sessions.connected(made)
        return made

    def check(self) -> None:
        """Nothing is left of a connection that is gone."""
