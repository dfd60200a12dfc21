"""What sends of any protocol need: room at their address, and a producer that is counted.

A connection that sends to a blocked address is held: nothing is read from it, and no later frame of
it is looked at, so the order of its frames stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.sessions.producer import Producer
    from broker.sessions.session import Session

__all__ = ["HeldConnection", "Producers", "has_room"]

# Addresses of a session that are counted each for itself, as of Core's.
_COUNTED_MAX: Final = 100


class HeldConnection(Protocol):
    """A connection that can wait."""

    def hold(self, then: Callable[[], object]) -> None:
        """Look at nothing that comes until resume(), which begins by calling `then()`."""

    def resume(self) -> None:
        """Go on; nothing where the connection is gone."""


def has_room(
    session: Session, address: str, connection: HeldConnection, go_on: Callable[[], object]
) -> bool:
    """Say whether an address takes messages now; else the connection is held until it does.

    Args:
        session: that sends.
        address: where to.
        connection: of the client.
        go_on: what it goes on with.
    """
    if session.flow_control.is_open(address):
        return True
    is_waiting = is_granted = False

    def grant(is_failing: bool) -> None:
        # Where it fails, sending says so.
        nonlocal is_granted
        is_granted = True
        if is_waiting:
            connection.resume()

    session.request_credits(address, grant)
    if is_granted:
        return True
    is_waiting = True
    connection.hold(go_on)
    return False


class Producers:
    """The producers of a connection's sessions, one for each address, as management shows them.

    Args:
        new_producer: makes one; None is for all addresses beyond those that are counted.
    """

    __slots__ = (
        "_new_producer",
        "_uncounted",
    )

    def __init__(self, new_producer: Callable[[str | None], Producer]) -> None:
        self._new_producer = new_producer
        self._uncounted = new_producer(None)

    def count(self, session: Session, address: str | None, size: int) -> None:
        """Count a message of `size` bytes that was sent."""
        producers = session.producers
        producer = producers.get(address)
        if producer is None:
            producer = self._uncounted
            if len(producers) < _COUNTED_MAX:
                producer = producers[address] = self._new_producer(address)
        producer.sent_count += 1
        producer.sent_bytes += size
