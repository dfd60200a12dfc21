"""Broadcasts by UDP multicast, as Artemis sends and hears them (UDPBroadcastEndpointFactory).

The sender's socket is bound to local-bind-address and local-bind-port. With an address and no port
it takes a port of 3000 to 4000 at random, and any after a hundred that were taken. The receiver's
socket is bound to the group's address and port, so that it hears this group alone, and joins the
group on the interface of local-bind-address. The time to live is 1: broadcasts stay in the network
they are sent in.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.discovery.endpoints import Broadcaster, Receiver
    from broker.environment import DatagramSocket, Environment

__all__ = ["ANY_PORT", "UdpEndpoint", "check_group_address"]

log = logging.getLogger("broker")

ANY_PORT: Final = -1
_RANDOM_PORTS: Final = (3000, 4000)
_RANDOM_PORT_ATTEMPTS: Final = 100
_RESERVED: Final = ipaddress.IPv4Address("224.0.0.0")


def check_group_address(text: str) -> None:
    """See that an address is one of a multicast group.

    Raises:
        ValueError: it is not a class D address, or the reserved one.
    """
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        address = None
    if address is None or not address.is_multicast:
        raise ValueError(
            f"group-address {text!r} is not a class D address: 224.0.0.1 to 239.255.255.255"
        )
    if address == _RESERVED:
        raise ValueError("group-address 224.0.0.0 is reserved; take 224.0.0.1 to 239.255.255.255")


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpEndpoint:
    """A multicast group.

    Attributes:
        environment: network and chance of the process.
        group_address: class D.
        group_port: of all that send and hear.
        local_bind_address: of an interface of this machine; None leaves it to the system.
        local_bind_port: that datagrams come from; -1 is any.
    """

    environment: Environment
    group_address: str
    group_port: int
    local_bind_address: str | None = None
    local_bind_port: int = ANY_PORT

    async def open_broadcaster(self) -> Broadcaster:
        """Open the socket that sends.

        Raises:
            OSError: address or port cannot be taken.
        """
        return _UdpBroadcaster(await self._sending_socket(), self.group_address, self.group_port)

    async def _sending_socket(self) -> DatagramSocket:
        network = self.environment.network
        address = self.local_bind_address
        if self.local_bind_port != ANY_PORT or address is None:
            return await network.open_datagrams(address, max(self.local_bind_port, 0))
        for _ in range(_RANDOM_PORT_ATTEMPTS):
            port = self.environment.chance.randint(*_RANDOM_PORTS)
            try:
                found = await network.open_datagrams(address, port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            log.warning(
                "AMQ212056: local-bind-address specified for broadcast group but no "
                "local-bind-port. Using random port for UDP Broadcast (%s:%d)",
                address,
                port,
            )
            return found
        return await network.open_datagrams(address, 0)

    async def open_receiver(self, received: Callable[[bytes], None]) -> Receiver:
        """Join the group.

        Raises:
            OSError: the port is taken by others, or no interface has such an address.
        """
        return await self.environment.network.join_group(
            self.group_address, self.group_port, self.local_bind_address, received
        )


class _UdpBroadcaster:
    """Sends to one group."""

    def __init__(self, socket: DatagramSocket, address: str, port: int) -> None:
        self._socket = socket
        self._address = address
        self._port = port

    async def broadcast(self, data: bytes) -> None:
        """Send one datagram.

        Raises:
            OSError: the network is not there, or refuses its size.
        """
        self._socket.send(data, self._address, self._port)

    async def close(self) -> None:
        """Close the socket."""
        self._socket.close()
