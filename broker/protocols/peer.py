"""What a protocol and a socket want of each other; neither knows more of the other than this."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Handler", "Peer"]


class Peer(Protocol):
    """The socket, as a protocol sees it."""

    remote: str
    """Address of the other side, for logs."""
    is_held_up: bool
    """The other side does not read what it was sent."""

    @property
    def is_open(self) -> bool:
        """Whether anything written may still arrive."""

    @property
    def silent_s(self) -> float:
        """Seconds since the last byte came."""

    def write(self, data: bytes) -> None:
        """Send bytes, in the order of the calls; dropped where the connection is gone."""

    def close(self) -> None:
        """Send what was written, then close."""

    def abort(self) -> None:
        """Close at once."""


class Handler(Protocol):
    """What speaks one protocol on one connection. Never waits."""

    def receive(self, data: bytes) -> None:
        """Take the next bytes; any exception closes the connection."""

    def hold_up(self) -> None:
        """The peer does not read: deliver nothing until go_on()."""

    def go_on(self) -> None:
        """The peer reads again."""

    def lost(self, error: Exception | None) -> None:
        """The connection is gone; None where either side closed it in good order."""
