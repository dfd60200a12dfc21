"""Connections to a broker of the same process, without a port: vm://.

A pair of connected sockets: one end is the client's, the other is given to the broker, which may
run in another thread. Users, permissions and limits are those of any connection.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from broker.environment import DatagramSocket, Listener

__all__ = ["InProcessBroker", "InProcessNetwork"]

P = TypeVar("P", bound=asyncio.BaseProtocol)


class InProcessBroker(Protocol):
    """What a connection needs of the broker."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the broker; None if it was not started yet."""

    async def accept_in_process(self, connected: socket.socket) -> None:
        """Serve a client at the other end of this socket; in the broker's loop.

        Raises:
            BrokerError: the broker is not active.
        """


class InProcessNetwork:
    """A `Network` that leads to one broker, whatever host and port are asked for.

    Args:
        broker: of this process.
    """

    def __init__(self, broker: InProcessBroker) -> None:
        self._broker = broker

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InProcessNetwork) and other._broker is self._broker

    def __hash__(self) -> int:
        return id(self._broker)

    def bind(self, host: str, port: int) -> Sequence[Listener]:
        """Refuse: clients do not listen."""
        raise OSError(f"in-process connections have no port {host}:{port}")

    async def connect(
        self,
        make: Callable[[], P],
        host: str,
        port: int,
        *,
        ssl: ssl.SSLContext | None,
        server_hostname: str | None,
    ) -> P:
        """Connect to the broker; see `Network`. TLS is not used within a process."""
        loop = self._broker.loop
        if loop is None or not loop.is_running():
            raise ConnectionRefusedError("the broker of vm:// does not run")
        near, far = socket.socketpair()
        try:
            near.setblocking(False)
            far.setblocking(False)
            await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self._broker.accept_in_process(far), loop)
            )
        except BaseException as error:
            near.close()
            far.close()
            if isinstance(error, Exception):
                raise ConnectionRefusedError(f"the broker of vm:// refuses: {error}") from error
            raise
        _, made = await asyncio.get_running_loop().create_connection(
            cast("Callable[[], asyncio.Protocol]", make), sock=near
        )
        return cast("P", made)

    async def open_datagrams(self, host: str | None, port: int) -> DatagramSocket:
        """Refuse: there is nothing to discover."""
        raise OSError(f"in-process connections have no datagrams ({host}:{port})")

    async def join_group(
        self,
        group: str,
        port: int,
        interface: str | None,
        received: Callable[[bytes], object],
    ) -> DatagramSocket:
        """Refuse: there is nothing to discover."""
        del interface, received
        raise OSError(f"in-process connections have no multicast group {group}:{port}")
