"""Clients that are told of the brokers of a cluster, by ConnectionControl.

    login                      the brokers that there are, before its answer
    a broker comes or goes     all of them again

A client with `failover:` takes these for the places that it may connect to. With
rebalanceClusterClients it goes at once to the first of them, which is another one for each client.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from broker.protocols.openwire.commands import ConnectionControl

if TYPE_CHECKING:
    from broker.discovery.topology import Departure, Member
    from broker.protocols.peer import Sessions

__all__ = ["ClusterClients"]


class ToldConnection(Protocol):
    """What this needs of a connection."""

    def send(self, command: ConnectionControl) -> None:
        """Write a command."""


class ClusterClients:
    """See the module's text.

    Args:
        sessions: the broker.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        # Whether each wants to go to another broker.
        self._connections: dict[ToldConnection, bool] = {}
        self._brokers: deque[str] = deque()
        self._is_listening = False

    def add(self, connection: ToldConnection, *, rebalances: bool, comes_back: bool) -> None:
        """Tell a client now, and at each change.

        Args:
            connection: of the client.
            rebalances: it goes to another broker when it is told.
            comes_back: it has just come from another one: not now.
        """
        if not self._is_listening:
            self._is_listening = True
            self._sessions.topology("").listen(self._changed)
            self._brokers.extend(self._known())
        self._connections[connection] = rebalances
        self._tell(connection, rebalances=rebalances and not comes_back, rotates=rebalances)

    def remove(self, connection: ToldConnection) -> None:
        """Tell it no more. Idempotent."""
        self._connections.pop(connection, None)

    def _known(self) -> list[str]:
        return [
            f"tcp://{member.primary.host}:{member.primary.port}"
            for member in self._sessions.topology("").members
            if member.primary is not None
        ]

    def _changed(self, statement: Member | Departure) -> None:
        known = self._known()
        if set(known) == set(self._brokers):
            return
        self._brokers = deque(known)
        for connection, rebalances in list(self._connections.items()):
            self._tell(connection, rebalances=rebalances, rotates=rebalances)

    def _tell(self, connection: ToldConnection, *, rebalances: bool, rotates: bool) -> None:
        connection.send(
            ConnectionControl(
                connected_brokers=",".join(self._brokers), rebalance_connection=rebalances
            )
        )
        if rotates:
            self._brokers.rotate(-1)
