"""What a connection router has decided about a client, for the protocol that tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.model.transport_configuration import TransportConfiguration

__all__ = ["Redirection", "RoutingRefusal"]


class Redirection(NamedTuple):
    """Another broker serves the client.

    Attributes:
        router: name of the connection router.
        node_id: of the other broker.
        connector: how it is reached.
    """

    router: str
    node_id: str
    connector: TransportConfiguration

    @property
    def place(self) -> str:
        """`HOST:PORT` of the other broker."""
        return f"{self.connector.host}:{self.connector.port}"

    @property
    def text(self) -> str:
        """For people."""
        return f"Connection router {self.router} redirected the connection to {self.place}"


class RoutingRefusal(NamedTuple):
    """No broker that the router knows serves the client.

    Attributes:
        router: name of the connection router.
        is_unavailable: there may be a target later; else the client has to find one by itself.
    """

    router: str
    is_unavailable: bool

    @property
    def text(self) -> str:
        """For people."""
        if self.is_unavailable:
            return f"Connection router {self.router} not ready"
        return f"Connection router {self.router} rejected the connection"
