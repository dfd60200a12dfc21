"""How a connection opens and closes: whether its container may, and what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from proton import Data, Described, Endpoint, int32, symbol, ulong

from broker.protocols.amqp.conditions import (
    DECODE_ERROR,
    FORCED,
    INVALID_FIELD,
    REDIRECT,
    AmqpError,
)
from broker.protocols.amqp.termini import symbols
from broker.protocols.redirection import RoutingRefusal
from journal.version import __version__

if TYPE_CHECKING:
    from proton import Condition, Connection

    from broker.protocols.peer import Peer, Sessions

__all__ = ["Containers", "accept", "admit", "end"]

_SOLE: Final = "sole-connection-for-container"
_OFFERED: Final = (_SOLE, "DELAYED_DELIVERY", "SHARED-SUBS", "ANONYMOUS-RELAY")
_FAILED: Final = "amqp:connection-establishment-failed"
_CLOSE, _ERROR = 0x18, 0x1D
_FRAME_HEADER_SIZE: Final = 8


class Containers:
    """Container ids of the connections that are open, each with how many have it."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def enter(self, connection: Connection) -> str:
        """Count the container of a connection that opens; its id.

        Raises:
            AmqpError: it wants to be the only one of its id, and is not.
        """
        container: str = connection.remote_container or ""
        wanted = symbols(connection.remote_desired_capabilities)
        if _SOLE in wanted and container in self._counts:
            info = {symbol("invalid-field"): symbol("container-id")}
            raise AmqpError(INVALID_FIELD, "container-id", info)
        self._counts[container] = self._counts.get(container, 0) + 1
        return container

    def leave(self, container: str) -> None:
        """A connection of that id has ended."""
        left = self._counts[container] - 1
        if left:
            self._counts[container] = left
        else:
            del self._counts[container]


def admit(sessions: Sessions, peer: Peer, container: str | None, user: str | None) -> None:
    """See whether this broker serves a client.

    Args:
        sessions: the broker.
        peer: the socket.
        container: id of the client.
        user: who was authenticated.

    Raises:
        AmqpError: another broker does, or none; or it has no name.
    """
    if container is None:
        raise AmqpError(DECODE_ERROR, "an open without a container-id")
    if not sessions.is_active:
        raise AmqpError(FORCED, "the broker takes no clients now")
    route = sessions.route(peer, container, user)
    if route is None:
        return
    if isinstance(route, RoutingRefusal):
        raise AmqpError(FORCED, route.text)
    info = {
        symbol("network-host"): route.connector.host,
        symbol("port"): int32(route.connector.port),
    }
    raise AmqpError(REDIRECT, route.text, info)


def end(connection: Connection, sessions: Sessions, why: Condition) -> bytes:
    """Close a connection, which is opened first if it is not; give what the engine does not write.

    It closes no connection that the peer has not opened: whose frames it cannot decode, say.
    """
    if connection.state & Endpoint.LOCAL_UNINIT:
        connection.container = sessions.node_id
        connection.properties = {symbol(_FAILED): True}
        connection.open()
    connection.condition = why
    connection.close()
    if not connection.state & Endpoint.REMOTE_UNINIT:
        return b""
    data = Data()
    error = Described(ulong(_ERROR), [symbol(why.name), why.description])
    data.put_object(Described(ulong(_CLOSE), [error]))
    body: bytes = data.encode()
    return (_FRAME_HEADER_SIZE + len(body)).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body


def accept(connection: Connection, sessions: Sessions) -> None:
    """Open a connection, and say what the broker can do, and who takes its place."""
    connection.container = sessions.node_id
    connection.offered_capabilities = [symbol(one) for one in _OFFERED]
    properties: dict[object, object] = {
        symbol("product"): "Quiver",
        symbol("version"): __version__,
    }
    servers = _failover_servers(sessions)
    if servers:
        properties[symbol("failover-server-list")] = servers
    connection.properties = properties
    connection.open()


def _failover_servers(sessions: Sessions) -> list[dict[Any, Any]]:
    """Give the backup of this broker, as a client connects to it; nothing without one."""
    found = [
        member.backup
        for member in sessions.topology("").members
        if member.node_id == sessions.node_id and member.backup is not None
    ]
    return [
        {
            symbol("network-host"): one.host,
            symbol("hostname"): one.host,
            symbol("port"): one.port,
            symbol("scheme"): "amqps" if one.parameters.get("sslEnabled") in _YES else "amqp",
        }
        for one in found
    ]


# Of a connector that came from a URI parameters are texts.
_YES: Final = (True, "true")
