"""What a Core client is told when a connection router does not let it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import broker_error
from broker.protocols.core import versions
from broker.protocols.core.packet_connection import Disconnect, DisconnectReason
from broker.protocols.redirection import RoutingRefusal

if TYPE_CHECKING:
    from broker.protocols.redirection import Redirection

__all__ = ["check_version", "disconnect_of"]


def check_version(version: int) -> None:
    """Refuse a client that could not be sent elsewhere.

    Raises:
        BrokerError: it is too old.
    """
    if version < versions.CLIENT_ID:
        raise broker_error(
            "incompatible_version",
            "Server and client versions incompatible: a connection router needs version "
            f"{versions.CLIENT_ID}, the client speaks {version}",
        )


def disconnect_of(route: Redirection | RoutingRefusal, node_id: str) -> Disconnect:
    """Give the packet that sends a client elsewhere.

    Args:
        route: of the client.
        node_id: of this broker.

    Raises:
        BrokerError: the router has no target for it.
    """
    if isinstance(route, RoutingRefusal):
        kind = "router_not_ready" if route.is_unavailable else "router_rejected"
        raise broker_error(kind, route.text)
    return Disconnect(
        node_id,
        reason=int(DisconnectReason.REDIRECT),
        target_node_id=route.node_id,
        target_connector=route.connector,
    )
