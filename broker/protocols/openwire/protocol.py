"""All OpenWire connections of a broker: client ids, and who is told of what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.protocols.openwire.advisories import Advisories
from broker.protocols.openwire.cluster_clients import ClusterClients
from broker.protocols.openwire.errors import INVALID_CLIENT_ID, OpenWireError
from broker.protocols.openwire.handler import OpenWireConnection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Peer, Sessions
    from broker.queues.consumer import Consumer

__all__ = ["OpenWireProtocol"]


class OpenWireProtocol:
    """See the module's text.

    Args:
        sessions: the broker.

    Attributes:
        advisories: of the broker.
        cluster: clients that are told of its members.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._clients: dict[str, OpenWireConnection] = {}
        self.advisories = Advisories(sessions.clock)
        self.cluster = ClusterClients(sessions)
        sessions.listen_slow(self._slow)

    def connect(self, peer: Peer, parameters: Mapping[str, Any]) -> OpenWireConnection:
        """Take a connection whose first bytes were OpenWire's."""
        made = OpenWireConnection(self._sessions, self, peer, parameters)
        self._sessions.connected(made)
        return made

    def check(self) -> None:
        """Nothing is left of a connection that is gone."""

    def enter(
        self, client_id: str, connection: OpenWireConnection, *, comes_back: bool, name: str
    ) -> None:
        """Take a client id for a connection.

        Args:
            client_id: of the client.
            connection: that is to have it.
            comes_back: it is a client's that lost its connection: the old one is ended.
            name: of the broker, for the error.

        Raises:
            OpenWireError: another connection has it.
        """
        other = self._clients.get(client_id)
        if other is not None and other is not connection:
            if not comes_back:
                raise OpenWireError(
                    f"Broker: {name} - Client: {client_id} already connected from {other.remote}",
                    INVALID_CLIENT_ID,
                    closes=True,
                )
            other.taken_over()
        self._clients[client_id] = connection

    def _slow(self, consumer: Consumer) -> None:
        for connection in list(self._clients.values()):
            connection.slow(consumer)

    def leave(self, client_id: str, connection: OpenWireConnection) -> None:
        """A connection is gone, or its client."""
        if self._clients.get(client_id) is connection:
            del self._clients[client_id]
