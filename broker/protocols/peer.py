"""What a protocol and a socket want of each other; neither knows more of the other than this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.notifications import Origin
    from broker.sessions.session import Session

__all__ = ["Handler", "Peer"]


class Peer(Protocol):
    """The socket, as a protocol sees it."""

    connection_id: str
    """8 hexadecimal digits, as long as the broker runs."""
    remote: str
    """Address of the other side, for logs."""
    local: str
    """Address of ours."""
    created_ms: int
    """When it came, ms since 1970."""
    is_paused: bool
    """The other side does not read what it was sent."""
    handshake_timeout_s: float
    """How long somebody unknown may take for what he begins; 0 for ever."""

    @property
    def is_open(self) -> bool:
        """Whether anything written may still arrive."""

    @property
    def silent_s(self) -> float:
        """Seconds since the last byte came."""

    def hold_reading(self) -> None:
        """Read no more from the socket, until release_reading() was called as often."""

    def release_reading(self) -> None:
        """Read again, unless another holder is left."""

    def write(self, data: bytes) -> None:
        """Send bytes, in the order of the calls; dropped where the connection is gone."""

    def close(self) -> None:
        """Send what was written, then close."""

    def abort(self) -> None:
        """Close at once."""


class Handler(Protocol):
    """What speaks one protocol on one connection. Never waits."""

    @property
    def origin(self) -> Origin:
        """What sessions, and those who manage the broker, know of the connection."""

    def fail(self) -> None:
        """End it with all its sessions: an operator wants it so."""

    def close_session(self, session: Session) -> None:
        """End one of its sessions, and tell its client: an operator wants it so."""

    def kill(self, session: Session) -> None:
        """End it with all its sessions, and tell the client that one of them is too slow."""

    def receive(self, data: bytes) -> None:
        """Take the next bytes; any exception closes the connection."""

    def pause(self) -> None:
        """The peer does not read: deliver nothing until go_on()."""

    def go_on(self) -> None:
        """The peer reads again."""

    def lost(self, error: Exception | None) -> None:
        """The connection is gone; None where either side closed it in good order."""
