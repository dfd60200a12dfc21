"""Requests of one session: what it, its producers and its consumers send and wait with."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeVar

from broker.client.aio.waiting import settled
from broker.client.errors import CallTimeout, ClosedError

if TYPE_CHECKING:
    from broker.client.errors import ClientError
    from broker.client.replies import Reply
    from broker.client.session_state import SessionState
    from broker.environment import Environment
    from broker.protocols.core.packet import Packet

P = TypeVar("P", bound="Packet")


class CallConnection(Protocol):
    """What requests need of the connection that they go by."""

    @property
    def is_connected(self) -> bool:
        """Whether sessions work now."""

    async def wait_ready(self) -> None:
        """Wait for a reconnect that is under way.

        Raises:
            ClientError: closed, or the connection is lost for good, or not back in time.
        """

    async def drain(self) -> None:
        """Wait until the socket takes more."""

    def fail(self, error: ClientError) -> None:
        """Give the connection up."""


class Calls:
    """See the module's text.

    Args:
        connection: by which they go.
        state: of the session.
        environment: clock, ids, chance and network.

    Attributes:
        state: of the session.
        environment: as given.
        is_closed: the session is closed; every further request is refused.
        sending_large: held while the parts of a large message are sent, since those of two would
            be taken for one.
    """

    def __init__(
        self, connection: CallConnection, state: SessionState, environment: Environment
    ) -> None:
        self._connection = connection
        self.environment = environment
        self.state = state
        self.is_closed = False
        self.sending_large = asyncio.Lock()

    def now_ms(self) -> int:
        """Milliseconds since 1970, as messages expire."""
        return self.environment.clock.now_ms()

    def check_open(self) -> None:
        """Refuse what comes behind the end of the session.

        Raises:
            ClosedError: the session is closed.
        """
        if self.is_closed:
            raise ClosedError("the session is closed")

    async def ready(self) -> None:
        """Wait for a reconnect that is under way.

        Raises:
            ClosedError: the session is closed.
            ClientError: the connection is lost for good.
        """
        self.check_open()
        if not self._connection.is_connected:
            await self._connection.wait_ready()

    async def drain(self) -> None:
        """Wait until the socket takes more."""
        await self._connection.drain()

    async def call(self, packet: Packet, expected: type[P], *, ahead: bool = False) -> P:
        """Send a request of the protocol and wait for its answer.

        Args:
            packet: the request.
            expected: the class of its answer.
            ahead: do not wait for the answers of earlier requests of this kind.

        Raises:
            BrokerRefused: the broker answered with an error.
            ClientError: the answer did not come.
        """
        await self.ready()
        answer = await self.answered(self.state.channel.call(packet, expected, ahead=ahead), packet)
        assert isinstance(answer, expected)
        return answer

    async def answered(self, reply: Reply[Packet], what: object) -> Packet:
        """Wait for the answer to a request; after its timeout the connection is given up.

        Args:
            reply: to the request.
            what: it was, for the error's text.

        Raises:
            CallTimeout: the answer did not come in time.
        """
        try:
            return await settled(reply, self.state.options.call_timeout_s, what)
        except CallTimeout as error:
            self._connection.fail(error)
            raise
