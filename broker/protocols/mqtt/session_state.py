"""What a client's session is made of, whether it is connected or not (4.1).

Its messages are in the queues of its subscriptions. Here stands what these do not know: which
packet ids are in use, for which of their messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from broker.protocols.mqtt.packets import Filter, Version, Will
    from broker.sessions.prefixes import Prefixes

__all__ = ["NEVER_S", "Outgoing", "SessionState", "Subscribed", "WillToSend"]

NEVER_S: Final = 2**32 - 1
"""A session expiry interval that does not end."""
_ID_MAX: Final = 0xFFFF


class Owner(Protocol):
    """The connection of a session."""

    def taken_over(self) -> None:
        """Another connection has the client's session from now on: end."""

    @property
    def connected_ms(self) -> int:
        """When the client came, ms since 1970."""


@dataclass(slots=True)
class Subscribed:
    """A subscription.

    Attributes:
        filter: as the client wrote it, with its options.
        identifier: that the client gave it; None without one.
        queue: of it.
        share: the group that shares its messages; None without one.
        is_own: the queue was made for it, and goes with it.
    """

    filter: Filter
    identifier: int | None
    queue: str
    share: str | None
    is_own: bool = True


@dataclass(slots=True)
class Outgoing:
    """A message of QoS 1 or 2 that the client has not acknowledged to the end.

    Attributes:
        packet_id: of it.
        qos: that it was sent with.
        queue: where it waits, until it is acknowledged.
        message_id: of it.
        consumer_id: that was given it; 0 in a connection that has ended.
        is_released: PUBREC came: PUBREL was, or will be, sent.
    """

    packet_id: int
    qos: int
    queue: str
    message_id: int
    consumer_id: int = 0
    is_released: bool = False


@dataclass(slots=True)
class WillToSend:
    """A will whose client has gone.

    Attributes:
        will: what is published.
        user: whose it was.
        due_s: when, by `Clock.monotonic_s()`.
        version: of the connection that left it.
        prefixes: of its acceptor.
    """

    will: Will
    user: str | None
    due_s: float
    version: Version
    prefixes: Prefixes


class SessionState:
    """See the module's text.

    Args:
        client_id: whose.

    Attributes:
        client_id: as given.
        expiry_s: how long it outlives its connection.
        subscriptions: by filter, as the client wrote it.
        incoming: packet ids of QoS 2 messages that came, until their PUBREL.
        outgoing: by packet id.
        owner: its connection; None while it has none.
        ended_s: since when it has none, by `Clock.monotonic_s()`.
        will: that waits for its time.
        record_id: message id of its record; 0 without one.
    """

    __slots__ = (
        "_last_id",
        "_left",
        "client_id",
        "ended_s",
        "expiry_s",
        "incoming",
        "outgoing",
        "owner",
        "record_id",
        "subscriptions",
        "will",
    )

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.expiry_s = 0
        self.subscriptions: dict[str, Subscribed] = {}
        # A set takes three times as much of which most are empty.
        self.incoming: dict[int, None] = {}
        self.outgoing: dict[int, Outgoing] = {}
        self.owner: Owner | None = None
        self.ended_s = 0.0
        self.will: WillToSend | None = None
        self.record_id = 0
        self._last_id = 0
        # Those of earlier connections that were not acknowledged, by queue and message.
        self._left: dict[tuple[str, int], Outgoing] = {}

    @property
    def is_kept(self) -> bool:
        """Whether it outlives its connection."""
        return self.expiry_s > 0

    def qos_left(self, queue: str, message_id: int) -> int:
        """Give the QoS that a message was sent with on an earlier connection; 0 if it was not.

        It comes again as it was sent, whatever its subscription is by now: the client may have it
        under its packet id (4.4).
        """
        left = self._left.get((queue, message_id)) if self._left else None
        return 0 if left is None else left.qos

    def begin(self, queue: str, message_id: int, consumer_id: int, qos: int) -> tuple[int, bool]:
        """Give a packet id to a message that is sent, and whether the client may have had it.

        Args:
            queue: where it waits.
            message_id: of it.
            consumer_id: that is given it.
            qos: that of `qos_left()`, if it is not 0.

        Raises:
            MqttError: all of them are in use.
        """
        left = self._left.pop((queue, message_id), None) if self._left else None
        if left is not None:
            left.consumer_id = consumer_id
            return left.packet_id, True
        packet_id = self._new_id()
        self.outgoing[packet_id] = Outgoing(packet_id, qos, queue, message_id, consumer_id)
        return packet_id, False

    def _new_id(self) -> int:
        outgoing = self.outgoing
        if len(outgoing) >= _ID_MAX:
            # Their messages have expired, or an operator removed them.
            for one in self._left.values():
                del outgoing[one.packet_id]
            self._left.clear()
            if len(outgoing) >= _ID_MAX:
                raise MqttError(
                    ReasonCode.QUOTA_EXCEEDED, "AMQ850001: no packet id is left for the client"
                )
        last = self._last_id
        while True:
            last = last % _ID_MAX + 1
            if last not in outgoing:
                self._last_id = last
                return last

    @property
    def in_flight(self) -> int:
        """Messages that the client was sent on its connection, and has not acknowledged."""
        return len(self.outgoing) - len(self._left)

    def disconnected(self) -> None:
        """Its connection has ended: what was not acknowledged comes again."""
        for one in self.outgoing.values():
            one.consumer_id = 0
            if not one.is_released:
                self._left[one.queue, one.message_id] = one

    def released(self) -> list[int]:
        """Give the packet ids whose PUBREL has no answer, in the order of their PUBRECs."""
        return [one.packet_id for one in self.outgoing.values() if one.is_released]
