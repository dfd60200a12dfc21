"""The engine of Qpid Proton under one connection: bytes in, events out, bytes out. No sockets.

    push(bytes) ─▶ events ─▶ calls of endpoints ─▶ output()

What is not a valid frame ends the engine: it says why in its close frame, and takes nothing more.
Of a frame whose body it cannot decode it says nothing: is_stuck.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Final

from cproton import isnull, pn_collector_peek, pn_collector_pop, pn_event_type
from proton import Collector, Connection, Endpoint, Transport, TransportException

from broker.protocols.amqp.wrappers import give_up_where_made

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Engine", "is_undecodable"]

give_up_where_made()

_ENGINE: Final = ("proton", "cproton")


def is_undecodable(error: Exception) -> bool:
    """Whether the engine raised it: at a value of the peer's that is not what belongs there.

    It looks at values when it is asked for them: a text that is not UTF-8, a map for a list.
    """
    name = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] in _ENGINE


class Engine:
    """See the module's text.

    Args:
        frame_size_max: bytes, told to the peer; larger frames end the connection.
        idle_timeout_ms: silence of the peer that ends the connection, half of which it is told; 0
            is none.

    Attributes:
        connection: of the engine.
        is_at_end: nothing is written any more.
    """

    __slots__ = (
        "_collector",
        "_transport",
        "connection",
        "is_at_end",
    )

    def __init__(self, *, frame_size_max: int, idle_timeout_ms: int) -> None:
        self._collector = Collector()
        self.connection = Connection()
        self.connection.collect(self._collector)
        self._transport = Transport(Transport.SERVER)
        self._transport.max_frame_size = frame_size_max
        self._transport.channel_max = 65535
        if idle_timeout_ms:
            self._transport.idle_timeout = idle_timeout_ms / 1000
        self._transport.bind(self.connection)
        self.is_at_end = False

    def push(self, data: bytes) -> Iterator[None]:
        """Take bytes, in as many steps as it has room for; events are looked at between them."""
        transport = self._transport
        while data:
            try:
                room = transport.capacity()
                if room <= 0:
                    # It has ended: what follows is not looked at.
                    return
                transport.push(data[:room])
            except TransportException:
                return
            data = data[room:]
            yield

    def events(self) -> Iterator[tuple[int, object]]:
        """Give what has happened, in order: the kind of each event and its handle."""
        # Proton's object of an event has five others, of which hardly any is wanted.
        collector = self._collector._impl
        while not isnull(handle := pn_collector_peek(collector)):
            yield pn_event_type(handle), handle
            pn_collector_pop(collector)

    def output(self) -> Iterator[bytes]:
        """Give what is to be written."""
        transport = self._transport
        while True:
            try:
                size = transport.pending()
                data = transport.peek(size) if size > 0 else None
            except TransportException:
                size, data = -1, None
            if not data:
                self.is_at_end = size < 0
                return
            transport.pop(len(data))
            yield bytes(data)

    def tick(self, now_s: float) -> float:
        """Let heartbeats be due; when to call it again, 0 for never."""
        return float(self._transport.tick(now_s))

    @property
    def is_stuck(self) -> bool:
        """Whether it takes nothing more, and does not say why: then its user has to close."""
        transport = self._transport
        return (
            transport.capacity() < 0
            and transport.condition is None
            and not self.connection.state & Endpoint.REMOTE_CLOSED
        )

    @property
    def error(self) -> str | None:
        """What was wrong with a frame."""
        condition = self._transport.condition
        return None if condition is None else f"{condition.name}: {condition.description}"

    def close_input(self) -> None:
        """Nothing comes any more."""
        try:
            self._transport.close_tail()
        except TransportException:
            # It has ended already.
            return

    def free(self) -> None:
        """The connection is gone."""
        self._transport.unbind()
        self._collector.release() if hasattr(self._collector, "release") else None
