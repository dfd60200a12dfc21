"""What all ends of links have in common, and what they need of their connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from proton import Link

    from broker.environment import Clock
    from broker.ports import Timers
    from broker.protocols.amqp.conditions import AmqpError
    from broker.protocols.amqp.deliveries import EngineDelivery
    from broker.protocols.amqp.transactions import Transactions
    from broker.protocols.peer import Peer
    from broker.sessions.session import Session

__all__ = ["LinkConnection", "OurLink"]


class LinkConnection(Protocol):
    """What links need of their connection."""

    clock: Clock
    parameters: Mapping[str, Any]
    """Of the acceptor."""
    transactions: Transactions
    """That the peer has declared."""
    timers: Timers
    peer: Peer
    leaves_out_local: bool
    """A subscription of its container wants nothing that it sends."""

    @property
    def container_id(self) -> str:
        """Of the peer."""

    def flush(self) -> None:
        """Write what the engine has to say."""

    def flush_later(self) -> None:
        """Write what the engine has to say, behind this turn."""

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> None:
        """Call it while the connection lasts."""

    def end_link(self, link: Link, error: AmqpError) -> None:
        """Detach a link, and tell why."""


class OurLink:
    """Our end of a link.

    Args:
        connection: it is on.
        session: of the broker, that works for it.

    Attributes:
        session: as given.
        is_closed: it has ended.
    """

    def __init__(self, connection: LinkConnection, session: Session) -> None:
        self._connection = connection
        self.session = session
        self.is_closed = False

    def flow(self) -> None:
        """The peer says what it has."""
        raise NotImplementedError

    def updated(self, delivery: EngineDelivery) -> None:
        """Something of a delivery has come.

        Raises:
            AmqpError: the link is to be detached.
        """
        raise NotImplementedError

    def check(self) -> None:
        """From time to time."""

    def pause(self) -> None:
        """The peer does not read."""

    def go_on(self) -> None:
        """The peer reads again."""

    def relieve(self) -> None:
        """Something was written."""

    def close(self) -> None:
        """The link, its session or the connection ends."""
        self.is_closed = True
