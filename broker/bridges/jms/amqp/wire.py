"""A client's AMQP connection: Proton's engine between a socket and those who wait for its events.

    socket ─▶ push ─▶ events ─▶ links (`EngineLink.happened`), and callers of `until()`
    calls of endpoints ─▶ flush() ─▶ socket

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from proton import SASL, Collector, Connection, Endpoint, Event, Transport, TransportException

from broker.bridges.jms.errors import ConnectionLost
from broker.environment import pause_after_full_read
from broker.protocols.amqp.wrappers import give_up_where_made

if TYPE_CHECKING:
    from collections.abc import Callable

    from proton import Delivery, Session

    from broker.bridges.jms.providers import Credentials

__all__ = ["EngineLink", "Wire"]

give_up_where_made()

# Silence of the broker that ends the connection; half of it is told.
_IDLE_S: Final = 60.0
_FRAME_SIZE_MAX: Final = 128 * 1024
_BEAT_MIN_S: Final = 0.05
_CLOSE_S: Final = 1.0
_ENDED: Final = (Event.SESSION_REMOTE_CLOSE, Event.LINK_REMOTE_CLOSE, Event.LINK_REMOTE_DETACH)


class EngineLink(Protocol):
    """What is told of the deliveries of a link."""

    def happened(self, delivery: Delivery) -> None:
        """Something of a delivery came, or its state changed."""

    def flowed(self) -> None:
        """A flow of the link came."""


class Wire(asyncio.Protocol):
    """See the module's text.

    Args:
        host: virtual host, of SASL and of the open frame.
        container: names the client.
        credentials: who the bridge is.

    Attributes:
        connection: of the engine.
        links: who is told of deliveries, by the link's name.
        probes: sessions that the broker may end.
        lost: why the connection has ended; None while it works.
        is_refused: the broker has closed the connection without a word.
    """

    def __init__(self, host: str, container: str, credentials: Credentials) -> None:
        self.links: dict[str, EngineLink] = {}
        self.probes: list[Session] = []
        self.lost: ConnectionLost | None = None
        self.is_refused = False
        self._has_heard = False
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()
        self._socket: asyncio.Transport | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._collector = Collector()
        self.connection = Connection()
        self.connection.collect(self._collector)
        self.connection.container = container
        self.connection.hostname = host
        self._engine = Transport(Transport.CLIENT)
        self._engine.idle_timeout = _IDLE_S
        self._engine.max_frame_size = _FRAME_SIZE_MAX
        self._sasl = self._engine.sasl()
        self._sasl.allow_insecure_mechs = True
        if credentials.user_name is None:
            self._sasl.allowed_mechs("ANONYMOUS")
        else:
            self._sasl.allowed_mechs("PLAIN")
            self.connection.user = credentials.user_name
            self.connection.password = credentials.password or ""
        self._engine.bind(self.connection)
        self.connection.open()

    # --- of the socket ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to speak."""
        # By what it does: that of uvloop is of no class of asyncio's.
        self._socket = cast("asyncio.Transport", transport)
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        self._has_heard = True
        self._take(data)
        pause_after_full_read(data, self._socket, self._loop)

    def _take(self, data: bytes) -> None:
        """Have the engine take as many at once as it has room for."""
        while data:
            try:
                room = self._engine.capacity()
                if room <= 0:
                    break
                self._engine.push(data[:room])
            except TransportException as error:
                self.fail(str(error))
                break
            data = data[room:]
            self._look()
        self._look()
        self.flush()

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing comes any more."""
        self._closed.set()
        self.is_refused = error is None and not self._has_heard
        self._look()
        self.fail(self._refusal() or str(error or "the broker closed the connection"))
        if self._beat is not None:
            self._beat.cancel()
        self._engine.unbind()

    # --- of the engine ------------------------------------------------------------------------

    def _look(self) -> None:
        """Take note of what has happened."""
        while (event := self._collector.peek()) is not None:
            kind = event.type
            if kind is Event.DELIVERY:
                delivery = event.delivery
                link = self.links.get(delivery.link.name)
                if link is not None:
                    link.happened(delivery)
            elif kind is Event.LINK_FLOW:
                flowing = self.links.get(event.link.name)
                if flowing is not None:
                    flowing.flowed()
            elif kind is Event.CONNECTION_REMOTE_CLOSE:
                self.fail(_told("the broker closed the connection", self.connection))
            elif kind in _ENDED:
                self._endpoint_ended(event)
            elif kind is Event.TRANSPORT_ERROR:
                self.fail(self._reason())
            self._collector.pop()
        waiting, self._waiting = self._waiting, set()
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def _endpoint_ended(self, event: Any) -> None:  # noqa: ANN401 - Proton's.
        if event.session in self.probes:
            return
        endpoint, what = event.session, "session"
        if event.type is not Event.SESSION_REMOTE_CLOSE:
            endpoint = event.link
            place = endpoint.target if endpoint.is_sender else endpoint.source
            what = f"link of {place.address or 'transactions'}"
        if endpoint.state & Endpoint.LOCAL_ACTIVE:
            self.fail(_told(f"the broker closed the {what}", endpoint))

    def _refusal(self) -> str | None:
        is_refused = self._sasl.outcome == SASL.AUTH
        return "the broker refuses user or password" if is_refused else None

    def _reason(self) -> str:
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        condition = self._engine.condition
        return "no AMQP" if condition is None else f"{condition.name}: {condition.description}"

    def fail(self, reason: str) -> None:
        """It is over; the first reason counts."""
        if self.lost is None:
            self.lost = ConnectionLost(reason)
        for one in self._waiting:
            if not one.done():
                one.set_result(None)
        self._waiting.clear()

    def flush(self) -> None:
        """Write what the engine has to say, and let its heartbeats be due."""
        socket = self._socket
        if socket is None or socket.is_closing():
            return
        try:
            while (size := self._engine.pending()) > 0:
                socket.write(self._engine.peek(size))
                self._engine.pop(size)
        except TransportException as error:
            self.fail(str(error))
            size = -1
        if size < 0:
            socket.close()
            return
        now_s = self._loop.time()
        due_s = self._engine.tick(now_s)
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
        if due_s:
            self._beat = self._loop.call_later(max(_BEAT_MIN_S, due_s - now_s), self._beaten)

    def _beaten(self) -> None:
        self._beat = None
        self.flush()
        self._look()

    # --- of the bridge ------------------------------------------------------------------------

    def check(self) -> None:
        """See that the connection works.

        Raises:
            ConnectionLost: it does not.
        """
        if self.lost is not None:
            raise ConnectionLost(str(self.lost))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition of the engine's objects holds.

        Args:
            condition: looked at whenever something has come.

        Raises:
            ConnectionLost: the connection has ended before.
        """
        self.flush()
        while not condition():
            self.check()
            changed = self._loop.create_future()
            self._waiting.add(changed)
            try:
                await changed
            finally:
                self._waiting.discard(changed)

    async def close(self) -> None:
        """Close in order, as far as the connection still works; returns once its socket is gone.

        TLS ends with an answer of the broker, which has so many seconds for it.
        """
        if self.lost is None:
            self.lost = ConnectionLost("closed")
            self.connection.close()
            self.flush()
            self._engine.close_head()
        if self._socket is None:
            return
        # One of TLS that is closed again forgets its connection, and fails at its next call.
        if not self._socket.is_closing():
            self._socket.close()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._closed.wait()
        finally:
            self._socket.abort()
        await self._closed.wait()


def _told(what: str, endpoint: Any) -> str:  # noqa: ANN401 - Proton's.
    condition = endpoint.remote_condition
    if condition is None:
        return what
    return f"{what}: {condition.name}: {condition.description}"
